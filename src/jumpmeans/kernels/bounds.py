"""Where a jump can still pay: bounds from below on all trajectories of one sequence that jump in a gap.

A dwell costs nothing at best, and a jump at best what the cheapest into its state costs, or out of it. So observations
and such jumps, forward to a gap and backward to it, bound what a trajectory costs that jumps there, wherever its jumps
are and however many. Beyond what a trajectory at hand costs, the decoder needs no candidates in the gap: over the
others it finds the same. Dwells that are left out add up, so that bounds say little of long sequences.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..jit import JIT, LEAF
from ..kinds import SNAPSHOT

# Rows beyond which a sequence has no bounds.
REACH = 1000


class Bounds(NamedTuple):
    """Bounds of one sequence, in room that serves all of a block.

    gaps : (n + 1,) least cost of a path that jumps in the gap before each row, or behind the last.
    ahead : (n + 1, M) least cost of each row and all behind it, from each state.
    moves : (2, M) the cheapest jump into each state, and out of it; behind : (M,) room.
    """

    gaps: Any
    ahead: Any
    moves: Any
    behind: Any


@njit(**JIT)
def make_bounds(n, M):
    """Room for n rows and M states; no gap is bounded."""
    return Bounds(np.full(n + 1, -np.inf), np.empty((min(n, REACH) + 1, M)), np.empty((2, M)), np.empty(M))


@njit(**LEAF)
def bound_jumps(cost, into, once, bounds):
    """Bounds (OUT) of a sequence; cost (L, M) and into (gaps, M, M) as in `decode.best_path`.

    once : the paths that are bounded jump in the gap at hand once, so that there is no way there and back.
    """
    L, M = cost.shape
    ahead, behind = bounds.ahead, bounds.behind
    enter, leave = bounds.moves[0], bounds.moves[1]
    enter[:] = np.inf
    leave[:] = np.inf
    for g in range(into.shape[0]):
        for r in range(M):
            for s in range(M):
                enter[r] = min(enter[r], into[g, r, s])
                leave[s] = min(leave[s], into[g, r, s])
    ahead[L, :] = 0.0
    least = 0.0
    for row in range(L - 1, -1, -1):
        best = np.inf
        for s in range(M):
            v = min(ahead[row + 1, s], leave[s] + least) + cost[row, s]
            ahead[row, s] = v
            best = min(best, v)
        least = best
    behind[:] = 0.0
    for row in range(L + 1):
        least, other, who = np.inf, np.inf, 0
        for s in range(M):
            v = behind[s]
            if v < least:
                least, other, who = v, least, s
            else:
                other = min(other, v)
        best = np.inf
        for r in range(M):
            v = other if r == who else least
            if not once:
                v = min(v, behind[r] + leave[r])
            best = min(best, v + enter[r] + ahead[row, r])
        bounds.gaps[row] = best
        if row < L:
            for s in range(M):
                behind[s] = min(behind[s], least + enter[s]) + cost[row, s]


@njit(**LEAF)
def likely_path(tau, kinds, into, bounds, states, starts, rows):
    """Dwells (OUT) that follow the bounds, with jumps in the middle of gaps; returns their number, 0 for none."""
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
