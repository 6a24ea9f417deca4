"""One pass over a block of sequences: candidates, decode, jump times, statistics.

A sweep of a fit decodes once, over the current jumps and fresh candidates. The trajectories that are published are
searched with more care: decoding and jump times alternate to a fixed point, from several sets of candidates (those of
the sweep; the paper's, one in the middle of each gap; many in each gap, for one jump), and the best one is kept.
"""

import numpy as np
from numba import njit

from ..jit import JIT
from ..model.objective import complete_cost, running_cost
from .decode import SPREAD, best_path, place_candidates, spread_candidates, trace_back
from .jump_times import place_jumps
from .stats import add_trajectory, label_rows

SETTLED = 1e-12


@njit(**JIT)
def trajectory_cost(cost, end, lam, X, first_running, free_end, states, starts, rows, n):
    """Cost of one trajectory: its observations, jumps and dwells."""
    total = 0.0
    for k in range(n):
        s = states[k]
        last = k == n - 1
        for row in range(rows[k], cost.shape[0] if last else rows[k + 1]):
            total += cost[row, s]
        z = lam[s] * ((end if last else starts[k + 1]) - starts[k])
        if last:
            total += 0.0 if free_end else running_cost(z)
        else:
            total += X[s, states[k + 1]]
            total += running_cost(z) if k == 0 and first_running else complete_cost(z)
    return total


@njit(**JIT)
def settle(
    tau, seen, end, cost, lam, X, first_running, free_end, base, per_gap, beam, rounds,
    states, starts, rows, n, cand_time, cand_row, from_start, from_state, work, out,
):  # fmt: skip
    """Alternate decoding and jump times, from the current dwells (IN, OUT, n of them), until the cost no longer falls.

    Returns the number of dwells; 0 if there is no path.
    """
    before = np.inf
    for _ in range(rounds):
        n_cand = place_candidates(
            tau, seen, end, starts[1:], rows[1:], n - 1, base, per_gap, beam, cand_time, cand_row
        )  # fmt: skip
        value = best_path(
            cost, end, lam, X, first_running, cand_time, cand_row, n_cand, from_start, from_state, out, free_end,
            np.bool_(False),
        )  # fmt: skip
        if value == np.inf:
            return 0
        if before - value <= SETTLED * (1.0 + abs(value)):
            break
        before = value
        n = trace_back(cand_time, cand_row, from_start, from_state, out, states, starts, rows)
        place_jumps(states, starts, rows, n, tau, seen, end, lam, first_running, work, free_end)
    return n


@njit(**JIT)
def one_a_gap(
    tau, seen, end, cost, lam, X, first_running, free_end, spread, rounds,
    states, starts, rows, cand_time, cand_row, from_start, from_state, work, out,
):  # fmt: skip
    """Dwells (OUT) with one jump a gap at most, from many places in each or from its middle; 0 if there is no path."""
    if not spread:
        one = np.int64(1)  # a plain 1 would be a type of its own, and all compiled twice
        return settle(
            tau, seen, end, cost, lam, X, first_running, free_end, one, one, np.bool_(False), rounds,
            states, starts, rows, one, cand_time, cand_row, from_start, from_state, work, out,
        )  # fmt: skip
    n_cand = spread_candidates(tau, end, cand_time, cand_row)
    value = best_path(
        cost, end, lam, X, first_running, cand_time, cand_row, n_cand, from_start, from_state, out, free_end,
        np.bool_(True),
    )  # fmt: skip
    if value == np.inf:
        return 0
    n = trace_back(cand_time, cand_row, from_start, from_state, out, states, starts, rows)
    place_jumps(states, starts, rows, n, tau, seen, end, lam, first_running, work, free_end)
    return n


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
    search : (6,) int: base, per_gap, beam, first_running, rounds, free_end. One round is a sweep of a fit; more are a
        search for what is published
    slots : (S + 1,) room of each sequence in states, starts, rows (IN, OUT: current dwells, n_dwells of them)
    row_states : (n,) OUT
    exits, time, log_time, jumps : OUT sums; run_state, run_time : (S, 2) OUT

    Returns
    -------
    where : (2,) int
        Sequence without any path and the row where it died; -1 if all went well.
    """
    base, per_gap, rounds = search[0], search[1], search[4]
    beam, first_running, free_end = search[2] == 1, search[3] == 1, search[5] == 1
    S = ends.shape[0]
    M = lam.shape[0]
    room, points = 1, 1
    for i in range(S):
        room = max(room, slots[i + 1] - slots[i])
        points = max(points, offsets[i + 1] - offsets[i] + 1)
    many = max(room, SPREAD * points) if rounds > 1 else room
    cand_time = np.empty(many)
    cand_row = np.empty(many, np.int64)
    from_start = np.empty((many, M), np.int32)
    from_state = np.empty((many, M), np.int16)
    work = np.empty((8, room))
    other_states, other_starts, other_rows = np.empty(room, np.int32), np.empty(room), np.empty(room, np.int32)
    out = np.zeros(3, np.int64)
    where = np.full(2, -1, np.int64)
    for i in range(S):
        first, last = offsets[i], offsets[i + 1]
        a, b = slots[i], slots[i + 1]
        tau_i, seen_i, cost_i = tau[first:last], seen[first:last], cost[first:last]
        states_i, starts_i, rows_i = states[a:b], starts[a:b], rows[a:b]
        n_dwells[i] = settle(
            tau_i, seen_i, ends[i], cost_i, lam, X, first_running, free_end, base, per_gap, beam, rounds,
            states_i, starts_i, rows_i, n_dwells[i], cand_time, cand_row, from_start, from_state, work, out,
        )  # fmt: skip
        if n_dwells[i] == 0:
            where[0] = i
            where[1] = out[2]
            return where
        if rounds > 1:
            best = trajectory_cost(
                cost_i, ends[i], lam, X, first_running, free_end, states_i, starts_i, rows_i, n_dwells[i]
            )
            # one a gap is also what more candidates and the beam must not fall behind
            for start in range(2 if per_gap > 1 else 1):
                n = one_a_gap(
                    tau_i, seen_i, ends[i], cost_i, lam, X, first_running, free_end, start == 0, rounds,
                    other_states, other_starts, other_rows, cand_time, cand_row, from_start, from_state, work, out,
                )  # fmt: skip
                if n == 0:
                    continue
                n = settle(
                    tau_i, seen_i, ends[i], cost_i, lam, X, first_running, free_end, base, per_gap, beam, rounds,
                    other_states, other_starts, other_rows, n,
                    cand_time, cand_row, from_start, from_state, work, out,
                )  # fmt: skip
                value = trajectory_cost(
                    cost_i, ends[i], lam, X, first_running, free_end, other_states, other_starts, other_rows, n
                )
                if value < best - SETTLED * (1.0 + abs(best)):
                    best = value
                    n_dwells[i] = n
                    states_i[:n], starts_i[:n], rows_i[:n] = other_states[:n], other_starts[:n], other_rows[:n]
        n = n_dwells[i]
        label_rows(states_i, rows_i, n, row_states[first:last])
        add_trajectory(
            states_i, starts_i, n, ends[i], weights[i], first_running,
            exits, time, log_time, jumps, run_state[i], run_time[i],
        )  # fmt: skip
    return where
