"""Where it can pay to depart from a path at hand: bounds that are local, so that they serve sequences of any length.

Another path departs from the one at hand for some rows, joins it again, and departs once more. What it saves there are
the costs of the dwells of the path at hand that it shares in part: all of them at most, for no dwell costs less than
nothing. What it pays are rows and jumps that are dearer. Departures that share a dwell hang together; the best path has
none that hang together and pay more than all the dwells that they share in part, for the path at hand is cheaper there.
So each move is bounded by the least that departures that hang together pay above the path at hand, if one of them makes
it, less the dwells that they share in part, each counted once.

Rows are snapshots that hold jumps, and paths jump once a gap.
"""

import numpy as np
from numba import njit

from ..jit import LEAF
from .bounds import MANY, two_least


@njit(forceinline=True, **LEAF)
def is_alone(cost, into, tau, end, states, rows, n, limit, bounds):
    """Whether every other path has rows and jumps that cost more than a limit, by where it first departs from n dwells.

    bounds : as `bounds.look_ahead` left them.
    """
    L, M = cost.shape
    ahead, enter = bounds.ahead, bounds.moves[0]
    if n > 1 and rows[1] == 0:
        return False
    for s in range(M):
        if s != states[0] and ahead[0, s] <= limit:
            return False
        if tau[0] > 0.0 and ahead[0, s] + enter[s] <= limit:
            return False
    behind = 0.0
    k = 0
    for row in range(1, L + 1):
        s = states[k]
        behind += cost[row - 1, s]
        gap = min(row - 1, into.shape[0] - 1)
        moves = k + 1 < n and rows[k + 1] == row
        to = states[k + 1] if moves else s
        if moves and behind + ahead[row, s] <= limit:
            return False
        if (tau[row] if row < L else end) > tau[row - 1]:
            for r in range(M):
                if r != to and behind + into[gap, r, s] + ahead[row, r] <= limit:
                    return False
        if moves:
            behind += into[gap, to, s]
            k += 1
    return True


@njit(forceinline=True, **LEAF)
def look_ahead(cost, into, states, rows, n, dwells, bounds):
    """Bounds (OUT) of what departures pay behind each gap, above n dwells that cost `dwells`; 0 if they are over."""
    L, M = cost.shape
    ahead, leave = bounds.ahead, bounds.moves[1]
    many = M >= MANY
    ahead[L, :] = 0.0
    k = n - 1
    for row in range(L, 0, -1):
        gap = min(row - 1, into.shape[0] - 1)
        own = to = states[k]
        shared = 0.0
        if k > 0 and rows[k] == row:
            own = states[k - 1]
            shared = into[gap, to, own] + dwells[k]
            k -= 1
        likely, least, second = two_least(ahead[row]) if many else (0, 0.0, 0.0)
        x = cost[row - 1, own] + shared
        for s in range(M):
            v = ahead[row, s]
            if not many or leave[s] + second < v:
                for r in range(M):
                    v = min(v, into[gap, r, s] + ahead[row, r])
            else:
                v = min(v, into[gap, likely, s] + least)
            ahead[row - 1, s] = v + (cost[row - 1, s] - x)
        v = ahead[row, own]
        for r in range(M):
            if r != to:
                v = min(v, into[gap, r, own] + ahead[row, r])
        ahead[row - 1, own] = min(0.0, v - shared)


@njit(forceinline=True, **LEAF)
def look_behind(cost, into, states, rows, n, dwells, bounds):
    """Bounds (OUT) of what departures pay before each gap, and the jump and dwell that they share in part there."""
    L, M = cost.shape
    behind, enter = bounds.behind, bounds.moves[0]
    many = M >= MANY
    behind[0, :] = -dwells[0]
    behind[0, states[0]] = np.inf
    k = 0
    for row in range(L + 1):
        gap = min(max(row - 1, 0), into.shape[0] - 1)
        own = to = states[k]
        goes_on = behind[row, own]  # departed before, in this dwell
        behind[row, own] = min(goes_on, -dwells[k])
        if k + 1 < n and rows[k + 1] == row:
            to = states[k + 1]
            shared = into[gap, to, own] + dwells[k + 1]
            for s in range(M):
                behind[row, s] -= shared
            k += 1
        if row == L:
            break
        likely, least, second = two_least(behind[row]) if many else (0, 0.0, 0.0)
        x = cost[row, to]
        for r in range(M):
            v = behind[row, r]
            if not many or second + enter[r] < v:
                for s in range(M):
                    v = min(v, behind[row, s] + into[gap, r, s])
            else:
                v = min(v, least + into[gap, r, likely])
            behind[row + 1, r] = v + (cost[row, r] - x)
        v = goes_on if to == own else behind[row, to]
        for s in range(M):
            if s != own:
                v = min(v, behind[row, s] + into[gap, to, s])
        behind[row + 1, to] = v
