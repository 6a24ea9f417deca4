"""One pass over a block of sequences: candidates, decode, jump times, statistics.

A sweep of a fit decodes once, over the current jumps and fresh candidates. The trajectories that are published are
searched with more care: decoding and jump times alternate to a fixed point, from several sets of candidates (those of
the sweep; the paper's, one in the middle of each gap; many in each gap, for one jump), and the best one is kept.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..jit import JIT
from ..kinds import SNAPSHOT
from ..model.objective import complete_cost, running_cost
from .clock import dwell_hours, own_course, set_candidates
from .decode import QUEUE, SPREAD, best_path, make_room, place_candidates, spread_candidates, trace_back, widen
from .jump_times import place_jumps
from .stats import add_trajectory, label_rows

SETTLED = 1e-12


class Task(NamedTuple):
    """One sequence and what its trajectory is charged: the arguments of `best_path`, and where rows hold jumps."""

    tau: Any
    seen: Any
    kinds: Any
    end: float
    cost: Any
    lam: Any
    into: Any
    course: Any
    first_running: bool
    free_end: bool


@njit(**JIT)
def trajectory_cost(task, states, starts, rows, n):
    """Cost of one trajectory: its observations, jumps and dwells."""
    total = 0.0
    for k in range(n):
        s = states[k]
        last = k == n - 1
        for row in range(rows[k], task.cost.shape[0] if last else rows[k + 1]):
            total += task.cost[row, s]
        z = task.lam[s] * dwell_hours(task.course, states, starts, rows, k, n, task.end, task.cost.shape[0])
        if last:
            total += 0.0 if task.free_end else running_cost(z)
        else:
            gap = min(max(rows[k + 1] - 1, 0), task.into.shape[0] - 1)
            total += task.into[gap, states[k + 1], s]
            total += running_cost(z) if k == 0 and task.first_running else complete_cost(z)
    return total


@njit(**JIT)
def decode(task, one_a_gap, n_cand, room):
    """Cost of the best path through the candidates, which is left in `room` (OUT)."""
    set_candidates(task.course, room.cand_time, room.cand_row, n_cand, task.end)
    while True:
        value = best_path(
            task.cost, task.kinds, task.end, task.lam, task.into, task.course, task.first_running, task.free_end,
            one_a_gap, n_cand, room,
        )  # fmt: skip
        if value != -np.inf:
            return value
        room = widen(room)


@njit(**JIT)
def take_path(task, room, work, states, starts, rows):
    """The best path in `room` as dwells (OUT), with its jumps at their best places; returns their number."""
    n = trace_back(room, states, starts, rows)
    place_jumps(
        states, starts, rows, n, task.tau, task.seen, task.kinds, task.end, task.lam, task.course, task.first_running,
        work, task.free_end,
    )  # fmt: skip
    return n


@njit(**JIT)
def settle(task, base, per_gap, beam, rounds, states, starts, rows, n, room, work):
    """Alternate decoding and jump times, from the current dwells (IN, OUT, n of them), until the cost no longer falls.

    Returns the number of dwells; 0 if there is no path.
    """
    before = np.inf
    for _ in range(rounds):
        n_cand = place_candidates(
            task.tau, task.seen, task.kinds, task.end, starts[1:], rows[1:], n - 1, base, per_gap, beam,
            room.cand_time, room.cand_row,
        )  # fmt: skip
        value = decode(task, np.bool_(False), n_cand, room)
        if value == np.inf:
            return 0
        if before - value <= SETTLED * (1.0 + abs(value)):
            break
        before = value
        n = take_path(task, room, work, states, starts, rows)
    return n


@njit(**JIT)
def one_a_gap(task, spread, rounds, states, starts, rows, room, work):
    """Dwells (OUT) with one jump a gap at most, from many places in each or from its middle; 0 if there is no path."""
    if not spread:
        one = np.int64(1)  # a plain 1 would be a type of its own, and all compiled twice
        return settle(task, one, one, np.bool_(False), rounds, states, starts, rows, one, room, work)
    n_cand = spread_candidates(task.tau, task.kinds, task.end, room.cand_time, room.cand_row)
    if decode(task, np.bool_(True), n_cand, room) == np.inf:
        return 0
    return take_path(task, room, work, states, starts, rows)


@njit(**JIT)
def own_jumps(into, course, i, first, last):
    """The costs of jumps (1 or L, M, M) of sequence i, whose rows are first, ..., last - 1."""
    if into.shape[0] == 1:
        return into
    if course is None:
        return into[i : i + 1]
    return into[first:last]


@njit(**JIT)
def sweep_block(
    tau, seen, kinds, offsets, ends, weights, cost, lam, X, course, search,
    old_offsets, old_states, old_starts, old_rows,
    dwell_offsets, states, starts, rows,
    row_states, exits, time, log_time, jumps, run_state, run_time,
):  # fmt: skip
    """Decode every sequence of a block and place its jumps.

    Parameters
    ----------
    tau : (n,) row times relative to the window of each sequence; seen : (n,) bool, row holds an observation, and no
        jump passes it; kinds : (n,) how each row was seen
    offsets : (S + 1,) rows of each sequence
    ends, weights : (S,) window lengths and sequence weights
    cost : (n, M) as in `best_path`; lam : (1 or S, M) rates, for all sequences or for each
    X : (1, S or n, M, M) cost of a jump from each state (row) into each, for all or each sequence, or from each row on
    course : `clock.Course` of all rows; None where rates do not vary within sequences, and only then may there be costs
        of jumps for each sequence
    search : (6,) int: base, per_gap, beam, first_running, rounds, free_end. One round is a sweep of a fit; more are a
        search for what is published
    old_offsets (S + 1,), old_states, old_starts, old_rows : current dwells
    dwell_offsets (S + 1,), states, starts, rows : OUT, the dwells that were found, one sequence after the other
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
    M = lam.shape[1]
    gaps = 1
    most = 1 + per_gap
    for i in range(S):
        own = offsets[i + 1] - offsets[i] + 1
        gaps = max(gaps, own)
        pinned = 0
        for row in range(offsets[i], offsets[i + 1]):
            pinned += kinds[row] != SNAPSHOT
        most = max(most, 1 + per_gap * own + pinned)
    room = make_room(max(most, SPREAD * gaps) if rounds > 1 else most, M, QUEUE)
    into = X.transpose(0, 2, 1).copy()
    work = np.empty((8, most))
    states_i, starts_i, rows_i = np.empty(most, np.int32), np.empty(most), np.empty(most, np.int32)
    other_states, other_starts, other_rows = np.empty(most, np.int32), np.empty(most), np.empty(most, np.int32)
    where = np.full(2, -1, np.int64)
    at = 0
    for i in range(S):
        first, last = offsets[i], offsets[i + 1]
        task = Task(
            tau[first:last], seen[first:last], kinds[first:last], ends[i], cost[first:last],
            lam[min(i, lam.shape[0] - 1)], own_jumps(into, course, i, first, last), own_course(course, first, last),
            first_running, free_end,
        )  # fmt: skip
        a = old_offsets[i]
        n = old_offsets[i + 1] - a
        for k in range(n):
            states_i[k], starts_i[k], rows_i[k] = old_states[a + k], old_starts[a + k], old_rows[a + k]
        n = settle(task, base, per_gap, beam, rounds, states_i, starts_i, rows_i, n, room, work)
        if n == 0:
            where[0] = i
            where[1] = room.found[2]
            return where
        if rounds > 1:
            best = trajectory_cost(task, states_i, starts_i, rows_i, n)
            # one a gap is also what more candidates and the beam must not fall behind
            for start in range(2 if per_gap > 1 else 1):
                m = one_a_gap(task, start == 0, rounds, other_states, other_starts, other_rows, room, work)
                if m == 0:
                    continue
                m = settle(
                    task, base, per_gap, beam, rounds, other_states, other_starts, other_rows, m, room, work
                )  # fmt: skip
                value = trajectory_cost(task, other_states, other_starts, other_rows, m)
                if value < best - SETTLED * (1.0 + abs(best)):
                    best = value
                    n = m
                    states_i[:n], starts_i[:n], rows_i[:n] = other_states[:n], other_starts[:n], other_rows[:n]
        label_rows(states_i, rows_i, n, row_states[first:last])
        add_trajectory(
            states_i, starts_i, n, ends[i], weights[i], first_running,
            exits, time, log_time, jumps, run_state[i], run_time[i],
        )  # fmt: skip
        for k in range(n):
            states[at + k], starts[at + k], rows[at + k] = states_i[k], starts_i[k], rows_i[k]
        at += n
        dwell_offsets[i + 1] = at
    return where
