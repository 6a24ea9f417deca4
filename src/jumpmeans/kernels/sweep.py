"""One pass over a block of sequences: candidates, decode, jump times, statistics."""

import numpy as np
from numba import njit

from ..jit import JIT
from .decode import best_path, place_candidates, trace_back
from .jump_times import place_jumps
from .stats import add_trajectory, label_rows

SETTLED = 1e-12


@njit(**JIT)
def sweep_block(
    tau, seen, offsets, ends, weights, cost, lam, X, search,
    slots, states, starts, rows, n_dwells,
    row_states, exits, time, log_time, jumps, run_state, run_time,
):  # fmt: skip
    """Decode every sequence of a block and place its jumps.

    Parameters
    ----------
    tau : (n,) row times relative to the window of each sequence; seen : (n,) bool, row holds an observation
    offsets : (S + 1,) rows of each sequence
    ends, weights : (S,) window lengths and sequence weights
    cost : (n, M), lam : (M,), X : (M, M) as in `best_path`
    search : (6,) int: base, per_gap, beam, first_running, rounds, free_end. One round is a sweep of a fit; many
        rounds alternate decoding and jump times until the cost no longer falls
    slots : (S + 1,) room of each sequence in states, starts, rows (IN, OUT: current dwells, n_dwells of them)
    row_states : (n,) OUT
    exits, time, log_time, jumps : OUT sums; run_state, run_time : (S, 2) OUT

    Returns
    -------
    where : (2,) int
        Sequence without any path and the row where it died; -1 if all went well.
    """
    base, per_gap, beam, first_running, rounds, free_end = search
    S = ends.shape[0]
    M = lam.shape[0]
    room = 1
    for i in range(S):
        room = max(room, slots[i + 1] - slots[i])
    cand_time = np.empty(room)
    cand_row = np.empty(room, np.int64)
    from_start = np.empty((room, M), np.int32)
    from_state = np.empty((room, M), np.int16)
    work = np.empty((8, room))
    out = np.zeros(3, np.int64)
    where = np.full(2, -1, np.int64)
    for i in range(S):
        first, last = offsets[i], offsets[i + 1]
        a, b = slots[i], slots[i + 1]
        tau_i, seen_i = tau[first:last], seen[first:last]
        states_i, starts_i, rows_i = states[a:b], starts[a:b], rows[a:b]
        before = np.inf
        for _ in range(rounds):
            n_cand = place_candidates(
                tau_i, seen_i, ends[i], starts_i[1:], rows_i[1:], n_dwells[i] - 1,
                base, per_gap, beam == 1, cand_time, cand_row,
            )  # fmt: skip
            value = best_path(
                cost[first:last], ends[i], lam, X, first_running == 1,
                cand_time, cand_row, n_cand, from_start, from_state, out, free_end == 1,
            )  # fmt: skip
            if value == np.inf:
                where[0] = i
                where[1] = out[2]
                return where
            if before - value <= SETTLED * (1.0 + abs(value)):
                break
            before = value
            n_dwells[i] = trace_back(cand_time, cand_row, from_start, from_state, out, states_i, starts_i, rows_i)
            place_jumps(
                states_i, starts_i, rows_i, n_dwells[i], tau_i, seen_i, ends[i], lam, first_running == 1, work,
                free_end == 1,
            )  # fmt: skip
        n = n_dwells[i]
        label_rows(states_i, rows_i, n, row_states[first:last])
        add_trajectory(
            states_i, starts_i, n, ends[i], weights[i], first_running == 1,
            exits, time, log_time, jumps, run_state[i], run_time[i],
        )  # fmt: skip
    return where
