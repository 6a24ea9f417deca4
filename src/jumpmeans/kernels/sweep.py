"""One pass over a block of sequences: candidates, decode, jump times, statistics.

A sweep of a fit decodes once, over the current jumps and fresh candidates. The trajectories that are published are
searched with more care: decoding and jump times alternate to a fixed point, from several sets of candidates (those of
the sweep; many in each gap where a path that costs less may jump, for one jump; the paper's, one in the middle of each
gap), and the best one is kept.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..jit import LEAF
from ..kinds import SNAPSHOT
from .bounds import REACH, are_alone, find_cheapest, make_bounds
from .candidates import SPREAD, place_candidates, spread_candidates
from .clock import Course, set_candidates
from .decode import QUEUE, best_path, make_room, trace_back, widen
from .jump_times import WORK, place_jumps
from .limit import bound
from .stats import add_trajectory, label_rows
from .task import Task, is_plain, trajectory_cost

SETTLED = 1e-12
# How much a departure from the path at hand may cost in a search: its jumps may cost less where they are placed.
NEAR = 1.0
# Rounds of a search in which bounds are looked for again.
BOUNDED = 2
# What a search returns instead of a number of dwells: there is no path, a queue needs more room, or they are at hand.
NO_PATH, NO_ROOM, SAME = 0, -1, -2


class Scratch(NamedTuple):
    """Dwells of the sequence at hand, those that compete with them, and (WORK, n) where jumps are placed."""

    states: Any
    starts: Any
    rows: Any
    other_states: Any
    other_starts: Any
    other_rows: Any
    work: Any


@njit(inline="always", **LEAF)
def decode(task, one_a_gap, n_cand, room, bounds, limit):
    """Cost of the best path through the candidates, which is left in `room` (OUT); as `best_path` says."""
    set_candidates(task.course, room.cand_time, room.cand_row, n_cand, task.end)
    return best_path(
        task.cost, task.kinds, task.end, task.lam, task.into, task.course, task.first_running, task.free_end,
        one_a_gap, n_cand, room, bounds, limit,
    )  # fmt: skip


@njit(**LEAF)
def place(task, work, states, starts, rows, n):
    """Put the jumps of n dwells (IN, OUT) at their best places."""
    place_jumps(
        states, starts, rows, n, task.tau, task.seen, task.kinds, task.end, task.lam, task.course, task.first_running,
        work, task.free_end,
    )  # fmt: skip


@njit(**LEAF)
def is_same(states, rows, n, others, first, m):
    """Whether dwells are those at hand, but for their jump times."""
    if n != m:
        return False
    for k in range(n):
        if states[k] != others[k] or rows[k] != first[k]:
            return False
    return True


# Where a search starts from: the dwells at hand; many places in each gap, for one jump; no jump and the paper's
# candidates, which is also what more candidates and the beam must not fall behind, and, from there, those asked for.
AT_HAND, SPREAD_OUT, MIDDLES, FROM_MIDDLES = 0, 1, 2, 3


@njit(inline="always", **LEAF)
def settle(
    task, base, per_gap, beam, rounds, start, dwells, n, room, bounds, limit, once, plain, scratch, best_n
):  # fmt: skip
    """Alternate decoding and jump times, from the n dwells (IN, OUT), until the cost no longer falls.

    start : SPREAD_OUT begins instead with one jump a gap at most, from many places in each, and goes on if that is not
    what the best_n dwells in `scratch` are.
    limit : what paths that are looked for cost at most, by the bounds that there are. plain : as in `bound`; once : as
    in `look_ahead`; only then do bounds hold for single moves.
    Returns the number of dwells, NO_PATH, NO_ROOM or SAME; the limit; and whether no other path can be as good.
    """
    states, starts, rows = dwells
    before = np.inf
    bounded = plain or task.tau.shape[0] <= REACH
    spread = start == SPREAD_OUT
    wide = spread
    only = np.bool_(False)
    for i in range(rounds + spread):
        if bounded and not wide and not only and i < BOUNDED:
            first = start == AT_HAND and i == 0
            n, limit, only = bound(
                task, once, plain, states, starts, rows, n, first and once and n == 1, first,
                0.0 if rounds == 1 else NEAR, bounds,
            )  # fmt: skip
        if only:  # what a search would find
            value = 0.0 if rounds == 1 else trajectory_cost(task, states, starts, rows, n)
        else:
            if wide:
                n_cand = spread_candidates(
                    task.tau, task.kinds, task.end, bounds.gaps, limit, room.cand_time, room.cand_row
                )  # fmt: skip
            else:
                n_cand = place_candidates(
                    task.tau, task.seen, task.kinds, task.end, starts[1:], rows[1:], n - 1, base, per_gap, beam,
                    bounds.gaps, limit, room.cand_time, room.cand_row,
                )  # fmt: skip
            value = decode(task, wide, n_cand, room, bounds, limit if once else np.inf)
            if value == np.inf:
                return NO_PATH, limit, only
            if value == -np.inf:
                return NO_ROOM, limit, only
        if not wide:
            if before - value <= SETTLED * (1.0 + abs(value)):
                break
            before = value
        if not only:
            n = trace_back(room, states, starts, rows)
        place(task, scratch.work, states, starts, rows, n)
        if wide and is_same(scratch.states, scratch.rows, best_n, states, rows, n):
            return SAME, limit, only
        wide = np.bool_(False)
    return n, limit, only


@njit(inline="always", **LEAF)
def search_sequence(task, search, n, room, bounds, scratch):
    """Best dwells of one sequence, from the n that are in `scratch` (IN, OUT).

    Returns their number, NO_PATH or NO_ROOM.
    """
    base, per_gap, beam, rounds = search[0], search[1], search[2] == 1, search[4]
    mine = scratch.states, scratch.starts, scratch.rows
    others = scratch.other_states, scratch.other_starts, scratch.other_rows
    plain = is_plain(task)
    # a fresh candidate is alone in its gap
    once = base == 1 and not beam and (per_gap == 1 or plain) and are_alone(task.seen, scratch.rows, n)
    plain = plain and once
    best = np.inf
    limit = np.inf
    m = n
    for start in range(1 if rounds == 1 else FROM_MIDDLES + 1 if per_gap > 1 else SPREAD_OUT + 1):
        middles = start == MIDDLES
        if middles:
            others[0][0], others[1][0], others[2][0] = 0, 0.0, 0
            m = np.int64(1)
        # all of it compiled once, whatever is searched
        m, limit, only = settle(
            task, np.int64(1) if middles else base, np.int64(1) if middles else per_gap, beam and not middles, rounds,
            start, mine if start == AT_HAND else others, m, room, bounds, limit, once, plain, scratch, n,
        )  # fmt: skip
        if m == NO_ROOM or (start == AT_HAND and (m == NO_PATH or rounds == 1 or only)):
            return m
        if middles and m == NO_PATH:
            break
        if m <= 0 or middles:
            continue
        kept = mine if start == AT_HAND else others
        value = trajectory_cost(task, kept[0], kept[1], kept[2], m)
        if start == AT_HAND or value < best - SETTLED * (1.0 + abs(best)):
            best = value
            n = m
            for k in range(n):
                mine[0][k], mine[1][k], mine[2][k] = kept[0][k], kept[1][k], kept[2][k]
    return n


@njit(**LEAF)
def sweep_on(
    i, at, tau, seen, kinds, offsets, ends, weights, cost, lam, into, course, search,
    old_offsets, old_states, old_starts, old_rows, dwell_offsets, states, starts, rows,
    row_states, exits, time, log_time, jumps, run_state, run_time, room, bounds, scratch, where,
):  # fmt: skip
    """Sweep sequences from i on, with `at` dwells found so far, to the end of the block or as far as there is room.

    Returns how far it came: the next sequence (their number at the end or if one has no path, see `where`, OUT), and
    the dwells found.
    """
    first_running, free_end = search[3] == 1, search[5] == 1
    S = ends.shape[0]
    while i < S:
        first, last = offsets[i], offsets[i + 1]
        jumps_of = into  # (1 or L, M, M): for all, for the sequence, or from each of its rows on
        if into.shape[0] > 1:
            jumps_of = into[i : i + 1] if course is None else into[first:last]
            find_cheapest(jumps_of, bounds.moves)
        if course is None:
            own = course
        else:
            own = Course(
                course.tau[first:last], course.pace[first:last], course.at_rows[first:last], course.at_candidates
            )  # fmt: skip
        task = Task(
            tau[first:last], seen[first:last], kinds[first:last], ends[i], cost[first:last],
            lam[min(i, lam.shape[0] - 1)], jumps_of, own, first_running, free_end,
        )  # fmt: skip
        a = old_offsets[i]
        n = old_offsets[i + 1] - a
        for k in range(n):
            scratch.states[k], scratch.starts[k] = old_states[a + k], old_starts[a + k]
            scratch.rows[k] = old_rows[a + k]
        n = search_sequence(task, search, n, room, bounds, scratch)
        if n == NO_ROOM:
            return i, at
        if n == NO_PATH:
            where[0] = i
            where[1] = room.found[2]
            return S, at
        label_rows(scratch.states, scratch.rows, n, row_states[first:last])
        add_trajectory(
            scratch.states, scratch.starts, n, ends[i], weights[i], first_running,
            exits, time, log_time, jumps, run_state[i], run_time[i],
        )  # fmt: skip
        for k in range(n):
            states[at + k], starts[at + k], rows[at + k] = scratch.states[k], scratch.starts[k], scratch.rows[k]
        at += n
        i += 1
        dwell_offsets[i] = at
    return i, at


def sweep_block(
    tau, seen, kinds, offsets, ends, weights, cost, lam, X, course, search,
    old_offsets, old_states, old_starts, old_rows,
    dwell_offsets, states, starts, rows,
    row_states, exits, time, log_time, jumps, run_state, run_time,
) -> Any:  # fmt: skip
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
    per_gap, rounds = search[1], search[4]
    S, M = len(ends), lam.shape[1]
    own = np.diff(offsets)
    longest = int(own.max(initial=0))
    most = 1 + per_gap * (longest + 1)
    if kinds.any():  # not all of them snapshots
        pinned = np.diff(np.append(0, np.cumsum(kinds != SNAPSHOT))[offsets])
        most = 1 + per_gap + int((per_gap * own + pinned).max(initial=0))
    # made here and not by a kernel: what allocates counts references, and would be compiled with all that it calls
    room = make_room(max(most, SPREAD * (longest + 1)) if rounds > 1 else most, M, QUEUE)
    scratch = Scratch(
        np.empty(most, np.int32), np.empty(most), np.empty(most, np.int32),
        np.empty(most, np.int32), np.empty(most), np.empty(most, np.int32), np.empty((WORK, most)),
    )  # fmt: skip
    into = np.ascontiguousarray(X.transpose(0, 2, 1))
    bounds = make_bounds(longest + 1, into)
    where = np.full(2, -1, np.int64)
    i, at = 0, 0
    while i < S:
        i, at = sweep_on(
            i, at, tau, seen, kinds, offsets, ends, weights, cost, lam, into, course, search,
            old_offsets, old_states, old_starts, old_rows, dwell_offsets, states, starts, rows,
            row_states, exits, time, log_time, jumps, run_state, run_time, room, bounds, scratch, where,
        )  # fmt: skip
        if i < S:
            room = widen(room)
    return where
