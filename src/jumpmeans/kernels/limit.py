"""What paths that are looked for may cost at most: which bounds of a sequence say more, and against which limit."""

import numpy as np
from numba import njit

from ..jit import LEAF
from . import departures
from .bounds import REACH, bound_gaps, least_ahead, likely_path, look_ahead, look_behind, share_stretches
from .task import dwell_cost, known_cost

# Of a limit on bounds, what rounding may come to.
SLACK = 1e-9
# If more gaps than this share are left, none is left out: to look for what is would cost more.
MOST_LEFT = 0.6
# Dwells at hand that cost more than this leave most gaps within bounds of the whole: departures from them bound more.
WORTH = 8.0


@njit(**LEAF)
def reach_of(value):
    """The limit of the bounds of gaps where a path may jump that costs no more than `value`."""
    return value + SLACK * (1.0 + abs(value))


@njit(forceinline=True, **LEAF)
def take_likely(task, states, starts, rows, bounds):
    """Dwells (OUT) of a likely path, whose jumps are where candidates are in any case, by bounds of what is ahead.

    Returns their number, and their cost; infinite, and no jump, where there is none.
    """
    n = likely_path(task.tau, task.kinds, task.into, bounds, states, starts, rows)
    value = least_ahead(bounds) if n > 0 else np.inf  # its rows and jumps
    for k in range(n):
        value += dwell_cost(task, states, starts, rows, k, n)
    if value == np.inf:
        states[0], starts[0], rows[0], n = 0, 0.0, 0, 1
        value = known_cost(task, states, starts, rows, n)
    return n, value


@njit(**LEAF)
def bound(task, once, plain, states, starts, rows, n, blank, first, margin, bounds):
    """Bounds (OUT) of a sequence, for paths that cost no more than the n dwells at hand (IN, OUT).

    once : as in `look_ahead`; plain : whether, besides, all rows are snapshots that hold jumps. blank : whether the
    dwells are none yet, and a likely path takes their place. first : whether the sequence has no bounds yet.
    margin : what departures from the dwells may cost, where bounds are of those.
    Returns the number of dwells, the limit, and whether no other path can cost as little.
    """
    L = task.tau.shape[0]
    if first and (blank or not plain or L <= REACH):
        look_ahead(task.cost, task.kinds, task.into, once, plain, bounds)
    if blank:
        n, value = take_likely(task, states, starts, rows, bounds)
    else:
        value = known_cost(task, states, starts, rows, n)
    limit = reach_of(value)
    if first:
        bounds.whole[0] = not plain or (L <= REACH and limit - least_ahead(bounds) <= WORTH)
    whole = bounds.whole[0]
    if whole:
        if plain and departures.is_alone(task.cost, task.into, task.tau, task.end, states, rows, n, limit, bounds):
            return n, limit, True
        if not first:
            return n, limit, False
        look_behind(task.cost, task.kinds, task.into, once, bounds)
        if once and not plain:
            share_stretches(task.seen, task.kinds, bounds)
    else:
        if value == np.inf:
            return n, np.inf, False
        for k in range(n):
            bounds.dwells[k] = dwell_cost(task, states, starts, rows, k, n)
        departures.look_ahead(task.cost, task.into, states, rows, n, bounds.dwells, bounds)
        departures.look_behind(task.cost, task.into, states, rows, n, bounds.dwells, bounds)
        limit += margin - value
    bound_gaps(task.into, L + 1, once, limit, bounds)
    if not whole:
        left = 0
        for row in range(L + 1):
            left += bounds.gaps[row] <= limit
        if left > MOST_LEFT * L:
            limit = np.inf
    return n, limit, False
