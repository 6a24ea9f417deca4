"""Observed information: how sharply the likelihood falls around its maximum.

The gradient comes from one pass over the data (Fisher's identity: it is the expected gradient of the complete data) and
the information from its central differences, in coordinates without edges: logarithms of rates, of means of counts and
of variances, logarithms of probabilities relative to the largest of their row, and means as they are. What lies at the
edge of its range (a rate of 0) has no such coordinate: it is held where it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import AnyArray, Bools, Floats
from ..emissions.parts import Part
from ..model.constraints import Constraints
from ..model.effects import Effects
from ..model.frailty import Frailty
from ..model.process import Process
from .ascent import FRAILTY, Point, Task, look, parts_of, rebuild, times, ways_of

# Steps of the differences: of logarithms, and of other numbers in units of their own standard error.
LOG_STEP, STEP = 1e-4, 1e-2
# What is expected to have been seen less often than this lies at the edge.
AT_EDGE = 1e-2


class Information(NamedTuple):
    """What the data tell of a process at the maximum of its likelihood.

    names : (k,) of the free coordinates; matrix : (k, k) observed information in them; complete : (k,) what it would be
    if the paths were seen; slope : (k,) gradient that is left; held : (p,) what was held where it is; edge : those of
    them that lie at the edge of their range, and not because no row could tell of them, as of the readings of the dead;
    pull : (M, M) gradient of the log-likelihood in each rate itself.
    """

    chart: Chart
    names: list[str]
    matrix: Floats
    complete: Floats
    slope: Floats
    held: list[str]
    edge: list[str]
    pull: Floats


class Chart(NamedTuple):
    """Coordinates around a process: all values (n,), which of them move as logarithms, and which are free (k of n).

    frailty : where there is any; its variance is the last of the values, unless it is given.
    """

    task: Task
    process: Process
    values: Floats
    logs: Bools
    free: Bools
    frailty: Frailty | None = None

    def _values_at(self, step: Floats) -> Floats:
        """(n,) values at a step (k,) from the centre."""
        moved = np.zeros(len(self.values))
        moved[self.free] = step
        # an effect of a covariate in large units moves by more than an exponential can take
        grown = self.values * np.exp(np.where(self.logs, moved, 0.0))
        return np.where(self.logs, grown, self.values + moved)

    def process_at(self, step: Floats) -> Process:
        """The process at a step (k,) from the centre."""
        values = self._values_at(step)
        u = np.where(self.logs, np.sqrt(np.where(self.logs, values, 0.0)), values)
        return rebuild(u, self.process, self.task)

    def frailty_at(self, step: Floats) -> Frailty | None:
        """The frailty there."""
        if self.frailty is None or self.frailty.fixed:
            return self.frailty
        return self.frailty.with_variance(float(self._values_at(step)[-1]))

    def slope_at(self, step: Floats) -> Floats:
        """(k,) gradient of the log-likelihood there."""
        point = look(self.task, self.process_at(step), frailty=self.frailty_at(step))
        return _ways(point, self.task.constraints)[self.free]


def _ways(point: Point, constraints: Constraints) -> Floats:
    """(n,) gradient in the logarithm of each value, or in the value itself where it moves as it is."""
    here, image = ways_of(point, constraints)
    return np.concatenate([np.ravel(a.weights * (b.values - a.values)) for a, b in zip(here, image, strict=True)])


def observed_information(task: Task, process: Process, frailty: Frailty | None = None) -> Information:
    """Observed information of a process, which must be near the maximum of the likelihood."""
    point = look(task, process, frailty=frailty)
    _refuse_rough(process, point)
    parts = ways_of(point, task.constraints)[0]
    names = _names(process, task.constraints, parts)
    values = np.concatenate([np.ravel(part.values) for part in parts])
    weights = np.concatenate([np.ravel(part.weights) for part in parts])
    logs = np.concatenate([np.full(part.values.size, part.root) for part in parts])
    seen = np.where(logs, weights * values, np.inf) > AT_EDGE
    known = np.concatenate([_known(part) for part in parts])
    seen &= (weights > 0) & ~known
    free = seen & ~np.concatenate([_references(part) for part in parts])
    chart = Chart(task, process, values, logs, free, point.frailty)
    floored = _at_floor(chart, parts, point)
    seen, free = seen & ~floored, free & ~floored
    chart = chart._replace(free=free)
    steps = np.where(logs, LOG_STEP, STEP / np.sqrt(np.where(weights > 0, weights, 1.0)))[free]
    k = len(steps)
    matrix = np.empty((k, k))
    for i in range(k):
        step = np.zeros(k)
        step[i] = steps[i]
        there, back = (chart.slope_at(sign * step) for sign in (1.0, -1.0))
        matrix[:, i] = (back - there) / (2.0 * steps[i])
    R = point.expected.integrals
    pull = np.where(task.constraints.moves, R - times(process, point.expected), 0.0)
    is_held = ~seen & ~known
    moves = np.array([name.startswith(("rate ", "effect ")) for name in names])
    return Information(
        chart,
        [name for name, is_free in zip(names, free.tolist(), strict=True) if is_free],
        0.5 * (matrix + matrix.T),
        np.where(logs, weights * values, weights)[free],
        _ways(point, task.constraints)[free],
        [names[i] for i in np.flatnonzero(is_held)],
        [names[i] for i in np.flatnonzero(is_held & ((weights > 0) | moves))],
        pull,
    )


def _references(part: Part) -> Bools:
    """Entries that follow from the others of their row: the largest of probabilities that sum to 1."""
    out = np.zeros(part.values.shape, dtype=bool)
    if part.whole is not None:
        free = np.where(_known(part).reshape(out.shape), -1.0, part.values)
        largest = np.expand_dims(free.argmax(axis=part.whole), part.whole)
        np.put_along_axis(out, largest, True, axis=part.whole)
    return out.ravel()


def _known(part: Part) -> Bools:
    """Entries that are fixed."""
    return np.zeros(part.values.size, dtype=bool) if part.known is None else np.ravel(part.known)


def _at_floor(chart: Chart, parts: list[Part], point: Point) -> Bools:
    """Entries that cannot go lower: spreads at the least that they may have."""
    lower = chart.process_at(np.where(chart.logs, -LOG_STEP, 0.0)[chart.free])
    moved = parts_of(lower, point.expected, chart.task.constraints)
    moved += [part._replace(values=0.0 * part.values) for part in parts[len(moved) :]]  # a variance has none
    stuck = [
        np.ravel(b.values > a.values * np.exp(-0.5 * LOG_STEP)) & (a.root and a.whole is None)
        for a, b in zip(parts, moved, strict=True)
    ]
    return np.concatenate(stuck)


def rate_names(states: AnyArray, constraints: Constraints) -> list[str]:
    """(n_rates,) of the free rates: their moves."""
    labels = [str(label) for label in states.tolist()]
    moves: list[list[str]] = [[] for _ in range(constraints.n_rates)]
    for i, j in np.argwhere(constraints.group >= 0).tolist():
        moves[constraints.group[i, j]].append(f"{labels[i]} → {labels[j]}")
    return [f"rate {' = '.join(own)}" for own in moves]


def effect_names(effects: Effects, states: AnyArray) -> list[str]:
    """(n_free,) of the free coefficients: their column, and the moves that have them."""
    labels = [str(label) for label in states.tolist()]
    names = []
    for i in range(effects.n_free):
        places = np.argwhere(effects.number == i)
        moves = " = ".join(f"{labels[r]} → {labels[s]}" for _, r, s in places.tolist())
        names.append(f"effect of {effects.names[places[0, 0]]} on {moves}")
    return names


def _names(process: Process, constraints: Constraints, parts: list[Part]) -> list[str]:
    """(n,) what each value is."""
    labels = [str(label) for label in process.states.tolist()]
    names = rate_names(process.states, constraints)
    for part in parts[1:]:
        if process.effects is not None and part.name == "effect":
            names += effect_names(process.effects, process.states)
            continue
        if part.name == FRAILTY:
            names.append(part.name)
            continue
        for place in np.ndindex(part.values.shape):
            state = place[-1] if part.whole == 0 else place[0]
            which = "" if len(place) == 1 else f" {place[0] if part.whole == 0 else place[-1]}"
            names.append(f"{part.name}{which} of {labels[state]}")
    return names


def _refuse_rough(process: Process, point: Point) -> None:
    """Refuse families whose gradient is not known."""
    for column, stats in zip(process.emission.columns, point.expected.emission, strict=True):
        if column.n_free and not column.parts(stats):
            raise ValueError(
                f"emission must be of a family whose gradient is known for an information, got {column.name!r}; "
                "jm.bootstrap(model, panel) gives intervals for every family."
            )
