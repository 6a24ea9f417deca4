"""Where a jump can still pay: bounds from below on all trajectories of one sequence that jump in a gap.

A dwell costs nothing at best. So observations and jumps, forward to a gap and backward to it, bound what a trajectory
costs that jumps there, wherever its jumps are. Beyond what a trajectory at hand costs, the decoder needs no candidates
in the gap, and in the others only the moves that can pay: over those that are left it finds the same. Dwells that are
left out add up, so that bounds say little of long sequences: `departures` has those that do.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..jit import LEAF
from ..kinds import BARS, PINS, SNAPSHOT

# Rows beyond which a sequence has no bounds of its whole.
REACH = 1000
# From so many states on it pays to ask first whether the likeliest of them is left for any other.
MANY = 8


class Bounds(NamedTuple):
    """Bounds of one sequence, in room that serves all of a block.

    gaps : (n + 1,) least cost of a path that jumps in the gap before each row, or behind the last.
    best : (n + 1, 2) the move (from, into) of such a path; others : (n + 1,) least cost with any other one.
    ahead : (n + 1, M) least cost of each row and all behind it, from each state; behind : (n + 1, M) of all rows before
    it, up to each state. Where a stretch of gaps is one to jumps, they are those of the whole stretch.
    moves : (2, M) the cheapest jump into each state, and out of it. away : (M, M) room for costs of jumps, transposed.
    dwells : (n + 2,) what the dwells of a path at hand cost. whole : (1,) whether bounds are of the whole sequence.
    """

    gaps: Any
    best: Any
    others: Any
    ahead: Any
    behind: Any
    moves: Any
    away: Any
    dwells: Any
    whole: Any


def make_bounds(n: int, into: Any) -> Bounds:
    """Room for n rows under these costs of jumps (gaps, M, M), as in `decode.best_path`; no gap is bounded."""
    M = into.shape[1]
    moves = np.empty((2, M))
    find_cheapest(into, moves)
    return Bounds(
        np.full(n + 1, -np.inf), np.empty((n + 1, 2), np.int64), np.empty(n + 1), np.empty((n + 1, M)),
        np.empty((n + 1, M)), moves, np.empty((M, M)), np.empty(n + 2), np.zeros(1, np.bool_),
    )  # fmt: skip


@njit(**LEAF)
def are_alone(seen, rows, n):
    """Whether no stretch of gaps between rows that hold jumps has more jumps than gaps."""
    L = seen.shape[0]
    k = 1
    while k < n:
        first, last = rows[k], rows[k]
        while first > 0 and not seen[first - 1]:
            first -= 1
        while last < L and not seen[last]:
            last += 1
        i = k
        while i < n and rows[i] <= last:
            i += 1
        if i - k > last + 1 - first:
            return False
        k = i
    return True


@njit(forceinline=True, **LEAF)
def _is_loose(kinds, row):
    """Whether more than one jump may be in the gap before a row: the last one at the row itself."""
    return row < kinds.shape[0] and PINS[kinds[row]] and not BARS[kinds[row]]


@njit(forceinline=True, **LEAF)
def two_least(values):
    """Where the least of some values is, it, and the least of the others."""
    who = 0
    least, second = values[0], np.inf
    for s in range(1, values.shape[0]):
        v = values[s]
        if v < least:
            second = least
            least = v
            who = s
        elif v < second:
            second = v
    return who, least, second


@njit(**LEAF)
def find_cheapest(into, moves):
    """The cheapest jump into each state, and out of it (OUT)."""
    enter, leave = moves[0], moves[1]
    enter[:] = np.inf
    leave[:] = np.inf
    for g in range(into.shape[0]):
        for r in range(into.shape[1]):
            for s in range(into.shape[2]):
                enter[r] = min(enter[r], into[g, r, s])
                leave[s] = min(leave[s], into[g, r, s])


@njit(forceinline=True, **LEAF)
def look_ahead(cost, kinds, into, once, plain, bounds):
    """Bounds (OUT) of what is ahead of each row; cost (L, M) and into (gaps, M, M) as in `decode.best_path`.

    once : the paths that are bounded jump once in each gap, and in a stretch as often as it has gaps.
    plain : whether all rows are snapshots that hold jumps.
    """
    L, M = cost.shape
    ahead, leave = bounds.ahead, bounds.moves[1]
    many = M >= MANY
    ahead[L, :] = 0.0
    if once and plain and not many and into.shape[0] == 1:  # as below without a question, for nearly all rows
        away = bounds.away
        for s in range(M):
            for r in range(M):
                away[s, r] = into[0, r, s]
        for row in range(L - 1, -1, -1):
            for s in range(M):
                v = ahead[row + 1, s]
                for r in range(M):
                    v = min(v, away[s, r] + ahead[row + 1, r])
                ahead[row, s] = v + cost[row, s]
        return
    for row in range(L - 1, -1, -1):
        gap = min(row, into.shape[0] - 1)
        loose = not once or _is_loose(kinds, row + 1)
        likely, least, second = two_least(ahead[row + 1]) if loose or many else (0, 0.0, 0.0)
        for s in range(M):
            v = ahead[row + 1, s]
            if loose:
                v = min(v, leave[s] + least)
            elif not many or leave[s] + second < v:
                for r in range(M):
                    v = min(v, into[gap, r, s] + ahead[row + 1, r])
            else:
                v = min(v, into[gap, likely, s] + least)
            ahead[row, s] = v + cost[row, s]


@njit(forceinline=True, **LEAF)
def look_behind(cost, kinds, into, once, bounds):
    """Bounds (OUT) of what is behind each row, as `look_ahead` has them."""
    L, M = cost.shape
    behind, enter = bounds.behind, bounds.moves[0]
    many = M >= MANY
    behind[0, :] = 0.0
    for row in range(L):
        gap = min(max(row - 1, 0), into.shape[0] - 1)
        loose = not once or _is_loose(kinds, row)
        likely, least, second = two_least(behind[row]) if loose or many else (0, 0.0, 0.0)
        for r in range(M):
            v = behind[row, r]
            if loose:
                v = min(v, least + enter[r])
            elif not many or second + enter[r] < v:
                for s in range(M):
                    v = min(v, behind[row, s] + into[gap, r, s])
            else:
                v = min(v, least + into[gap, r, likely])
            behind[row + 1, r] = v + cost[row, r]


@njit(**LEAF)
def share_stretches(seen, kinds, bounds):
    """Bounds of gaps (IN, OUT) where jumps pass blank rows, or where there may be two: any way through all of them."""
    L, M = seen.shape[0], bounds.ahead.shape[1]
    ahead, behind = bounds.ahead, bounds.behind
    enter, leave = bounds.moves[0], bounds.moves[1]
    first = 0
    while first <= L:
        last = first
        while last < L and not seen[last]:
            last += 1
        for s in range(M):
            best_ahead, best_behind = ahead[first, s], behind[first, s]
            for g in range(first + 1, last + 1):
                best_ahead = min(best_ahead, ahead[g, s])
                best_behind = min(best_behind, behind[g, s])
            for g in range(first, last + 1):
                ahead[g, s] = best_ahead
                behind[g, s] = best_behind
        if _is_loose(kinds, last):
            least_ahead, least_behind = two_least(ahead[last])[1], two_least(behind[last])[1]
            for g in range(first, last + 1):
                for s in range(M):
                    ahead[g, s] = min(ahead[g, s], leave[s] + least_ahead)
                    behind[g, s] = min(behind[g, s], least_behind + enter[s])
        first = last + 1


@njit(forceinline=True, **LEAF)
def bound_gaps(into, n, once, limit, bounds):
    """Bounds (OUT) of the n gaps of a sequence; what is surely beyond the limit is not told to the last digit."""
    M = into.shape[1]
    ahead, behind = bounds.ahead, bounds.behind
    enter, leave = bounds.moves[0], bounds.moves[1]
    for row in range(n):
        who, least, second = two_least(behind[row])
        gap = min(max(row - 1, 0), into.shape[0] - 1)
        best, others, rough = np.inf, np.inf, np.inf
        for r in range(M):
            v = (second if r == who else least) + enter[r] + ahead[row, r]
            if not once:  # there and back
                v = min(v, behind[row, r] + leave[r] + enter[r] + ahead[row, r])
            rough = min(rough, v)
            if not once or v > limit:
                continue
            for s in range(M):
                v = behind[row, s] + into[gap, r, s] + ahead[row, r]
                if s != r and v < others:
                    if v < best:
                        others = best
                        best = v
                        bounds.best[row, 0], bounds.best[row, 1] = s, r
                    else:
                        others = v
        bounds.gaps[row] = best if once and rough <= limit else rough
        bounds.others[row] = others


@njit(**LEAF)
def find_moves(into, row, gap, limit, bounds, sources, targets):
    """States (OUT) that a jump in the gap before a row may lead from, and into, on paths up to the limit.

    Returns their numbers. Each list is in the order of the states.
    """
    if bounds.gaps[row] > limit:
        return 0, 0
    if bounds.others[row] > limit:
        sources[0], targets[0] = bounds.best[row, 0], bounds.best[row, 1]
        return 1, 1
    M = into.shape[1]
    ahead, behind = bounds.ahead, bounds.behind
    n_sources, n_targets = 0, 0
    for s in range(M):
        sources[s] = 0
    for r in range(M):
        leads = False
        for s in range(M):
            if s != r and behind[row, s] + into[gap, r, s] + ahead[row, r] <= limit:
                leads = True
                sources[s] = 1
        if leads:
            targets[n_targets] = r
            n_targets += 1
    for s in range(M):
        if sources[s]:
            sources[n_sources] = s
            n_sources += 1
    return n_sources, n_targets


@njit(forceinline=True, **LEAF)
def least_ahead(bounds):
    """Bound of all paths."""
    return two_least(bounds.ahead[0])[1]


@njit(forceinline=True, **LEAF)
def likely_path(tau, kinds, into, bounds, states, starts, rows):
    """Dwells (OUT) that follow the bounds ahead, with jumps in the middle of gaps; returns their number, 0 for none."""
    L, M = tau.shape[0], bounds.ahead.shape[1]
    s = 0
    for r in range(M):
        if bounds.ahead[0, r] < bounds.ahead[0, s]:
            s = r
    states[0], starts[0], rows[0] = s, 0.0, 0
    n = 1
    for row in range(L):
        if kinds[row] != SNAPSHOT:
            return 0
        if row == 0:
            continue
        gap = min(row - 1, into.shape[0] - 1)
        best, to = bounds.ahead[row, s], s
        for r in range(M):
            v = into[gap, r, s] + bounds.ahead[row, r]
            if v < best:
                best, to = v, r
        if to != s:
            lo, hi = tau[row - 1], tau[row]
            if hi <= lo:
                return 0
            time = lo + 0.5 * (hi - lo)
            states[n], starts[n], rows[n] = to, time if time > lo else hi, row
            n += 1
            s = to
    return n
