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
def add_totals(groups, weights, out):
    """Add the weights of each group to its sum (OUT), in order; numpy's `bincount` would hold all other threads."""
    for i in range(groups.shape[0]):
        out[groups[i]] += weights[i]


@njit(**LEAF)
def label_rows(states, rows, n, row_states):
    """State of every row of one sequence (OUT), by index."""
    for k in range(n):
        last = rows[k + 1] if k + 1 < n else row_states.shape[0]
        for r in range(rows[k], last):
            row_states[r] = states[k]


@njit(**LEAF)
def split_dwells(
    tau, offsets, ends, weights, pattern, first_running, dwell_offsets, states, starts, rows,
    exits, time, log_time, long_state, long_weight, running, long_offsets, piece_pattern, piece_time,
):  # fmt: skip
    """Dwells of a block by the pattern of covariates that they were spent under; of rows, each gap has that before it.

    pattern : (n,) of each row; dwell_offsets to rows : the dwells, as in `sweep_block`.
    exits, time, log_time : (Z, M) OUT sums of complete dwells under one pattern. long_state, long_weight, running (R,):
    OUT, dwells that still run, or that patterns change in; long_offsets (R + 1,) of their pieces, and pattern and time
    of each (Q,) OUT.

    Returns the number of long dwells.
    """
    n_long = 0
    q = 0
    for i in range(ends.shape[0]):
        first, L = offsets[i], offsets[i + 1] - offsets[i]
        a, b = dwell_offsets[i], dwell_offsets[i + 1]
        for k in range(a, b):
            last = k == b - 1
            until = ends[i] if last else starts[k + 1]
            end_row = L if last else rows[k + 1]
            begun = q
            since = starts[k]
            own = pattern[first + max(rows[k] - 1, 0)]
            for row in range(rows[k], end_row):  # at each row a pattern may end
                new = pattern[first + row]
                at = min(max(tau[first + row], since), until)
                if new != own:
                    if at > since:
                        piece_pattern[q] = own
                        piece_time[q] = at - since
                        q += 1
                    since = at
                    own = new
            if until > since or q == begun:
                piece_pattern[q] = own
                piece_time[q] = until - since
                q += 1
            s = states[k]
            runs = last or (first_running and k == a)
            if runs or q - begun > 1:
                long_state[n_long] = s
                long_weight[n_long] = weights[i]
                running[n_long] = runs
                n_long += 1
                long_offsets[n_long] = q
            else:
                q = begun
                t = until - starts[k]
                exits[piece_pattern[q], s] += weights[i]
                time[piece_pattern[q], s] += weights[i] * t
                log_time[piece_pattern[q], s] += weights[i] * np.log(t)
    return n_long
