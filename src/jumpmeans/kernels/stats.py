"""Sufficient statistics of trajectories: all that the parameter updates need, nothing per observation."""

import numpy as np
from numba import njit

from ..jit import LEAF


@njit(**LEAF)
def add_trajectory(states, starts, n, end, weight, first_running, exits, time, log_time, jumps, run_state, run_time):
    """Add one trajectory to the sums (OUT) of its block; its running dwells go to run_state, run_time (2,).

    exits, time, log_time : (M,) number, total and total log of complete dwells; jumps : (M, M) counts.
    """
    run_state[0] = -1
    run_time[0] = 0.0
    for k in range(n - 1):
        s = states[k]
        t = starts[k + 1] - starts[k]
        jumps[s, states[k + 1]] += weight
        if k == 0 and first_running:
            run_state[0] = s
            run_time[0] = t
        else:
            exits[s] += weight
            time[s] += weight * t
            log_time[s] += weight * np.log(t)
    run_state[1] = states[n - 1]
    run_time[1] = end - starts[n - 1]


@njit(**LEAF)
def label_rows(states, rows, n, row_states):
    """State of every row of one sequence (OUT), by index."""
    for k in range(n):
        last = rows[k + 1] if k + 1 < n else row_states.shape[0]
        for r in range(rows[k], last):
            row_states[r] = states[k]
