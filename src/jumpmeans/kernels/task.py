"""One sequence, what a trajectory of it is charged, and what one costs."""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..jit import LEAF
from ..kinds import FORCES, SNAPSHOT
from ..model.objective import complete_cost, running_cost
from .clock import dwell_hours


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


@njit(forceinline=True, **LEAF)
def is_plain(task):
    """Whether all rows are snapshots that hold jumps."""
    plain = True
    for row in range(task.kinds.shape[0]):
        plain = plain and task.seen[row] and task.kinds[row] == SNAPSHOT
    return plain


@njit(**LEAF)
def dwell_cost(task, states, starts, rows, k, n):
    """Cost of dwell k of n."""
    z = task.lam[states[k]] * dwell_hours(task.course, states, starts, rows, k, n, task.end, task.cost.shape[0])
    if k == n - 1:
        return 0.0 if task.free_end else running_cost(z)
    return running_cost(z) if k == 0 and task.first_running else complete_cost(z)


@njit(**LEAF)
def trajectory_cost(task, states, starts, rows, n):
    """Cost of one trajectory: its observations, jumps and dwells."""
    total = 0.0
    for k in range(n):
        s = states[k]
        last = k == n - 1
        for row in range(rows[k], task.cost.shape[0] if last else rows[k + 1]):
            total += task.cost[row, s]
        if not last:
            gap = min(max(rows[k + 1] - 1, 0), task.into.shape[0] - 1)
            total += task.into[gap, states[k + 1], s]
        total += dwell_cost(task, states, starts, rows, k, n)
    return total


@njit(**LEAF)
def known_cost(task, states, starts, rows, n):
    """What the current dwells cost, if they are a path; infinite where they are not."""
    for k in range(n):
        if states[k] >= task.lam.shape[0]:
            return np.inf
    if n == 1:
        for row in range(task.kinds.shape[0]):
            if FORCES[task.kinds[row]]:
                return np.inf
    return trajectory_cost(task, states, starts, rows, n)
