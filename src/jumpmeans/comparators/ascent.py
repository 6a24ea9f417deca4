"""Up the likelihood of a process: EM steps, and leaps that learn from them.

An EM step is a gradient step, scaled by the information that the data would hold if the paths were seen. A leap
(quasi-Newton acceleration of EM, Jamshidian and Jennrich 1997) starts from that scaling and corrects it by what the
last steps did to the gradient, so it costs one pass over the data, as an EM step does. It is taken in the square roots
of rates, probabilities, means of counts and variances, where that information hardly changes and zero is no edge.
A leap that would lower the likelihood is not made: an EM step, which cannot, takes its place.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from ..emissions import Bernoulli, Categorical, Column, Exponential, Gaussian, Poisson, Record
from ..engines.base import Engine, Expected, NoPathError, Sequences
from ..fit.em_steps import maximise
from ..history import History
from ..model.process import Process
from ..progress import track

# How many steps a leap remembers.
MEMORY = 10
# Steps along which the gradient fell by less than this share of what it could carry no news of the curvature.
LEAST_BEND = 1e-8


class Task(NamedTuple):
    """What to climb: where passes run, the data, allowed moves (M, M), and the least spread of each column (D,)."""

    engine: Engine
    sequences: Sequences
    moves: NDArray[np.bool_]
    floors: Floats


class Point(NamedTuple):
    """A process, its log-likelihood, the expected statistics under it, and where one EM step takes it."""

    process: Process
    log_lik: float
    expected: Expected
    image: Process


class Climb(NamedTuple):
    """One ascent from one start; the history holds the log-likelihood after each step."""

    end: Point
    history: History
    converged: bool


def look(task: Task, process: Process) -> Point:
    """One pass over the data."""
    expected = task.engine.expect(task.sequences, process)
    # a floor that moved with the fit could lower the likelihood
    image = maximise(process, expected, task.moves, floors=task.floors)
    return Point(process, float(task.sequences.weights @ expected.log_lik), expected, image)


class Part(NamedTuple):
    """Some parameters: their values, the information in each (see `slope`), and whether they move as square roots."""

    values: Floats
    weights: Floats
    root: bool

    @property
    def coordinates(self) -> Floats:
        """The values as a leap moves them, flat."""
        return np.ravel(np.sqrt(self.values) if self.root else self.values)

    @property
    def information(self) -> Floats:
        """Information of the complete data in each coordinate."""
        return np.ravel((4.0 if self.root else 1.0) * self.weights)

    def slope(self, image: Part) -> Floats:
        """Gradient of the log-likelihood: weight times the way to the EM step, per coordinate."""
        way = np.ravel(self.weights * (image.values - self.values))
        if not self.root:
            return way
        u = self.coordinates
        return np.where(u > 0, 2.0 * way / np.where(u > 0, u, 1.0), 0.0)


def parts_of(process: Process, expected: Expected, moves: NDArray[np.bool_]) -> list[Part]:
    """All that a leap moves, in the order of `rebuild`; columns of other families make plain EM steps."""
    M = len(process.rates)
    time = np.maximum(np.diag(expected.integrals), 0.0)
    parts = [
        Part(process.generator()[moves], np.repeat(time, moves.sum(axis=1)), True),
        Part(process.initial_probs, np.full(M, expected.first.sum()), True),
    ]
    for column, stats in zip(process.emission.columns, expected.emission, strict=True):
        if isinstance(column, Gaussian):
            variances = column.sds**2
            parts.append(Part(column.means, stats.weight / variances, False))
            about_reference = variances + (column.means - stats.reference) ** 2
            parts.append(Part(about_reference, stats.weight / (2.0 * variances), True))
        elif isinstance(column, Poisson):
            parts.append(Part(column.means, stats.weight, True))
        elif isinstance(column, Exponential):
            parts.append(Part(column.means, stats.weight / column.means, True))
        elif isinstance(column, Bernoulli):
            chances = np.stack([column.means, 1.0 - column.means])
            parts.append(Part(chances, np.broadcast_to(stats.weight, chances.shape), True))
        elif isinstance(column, Categorical):
            weight = stats.counts.sum(axis=1, keepdims=True)
            parts.append(Part(column.probs, np.broadcast_to(weight, column.probs.shape), True))
    return parts


def rebuild(u: Floats, like: Process, task: Task) -> Process:
    """The process at coordinates u; what they leave out is taken from another one."""
    taken = 0

    def take(*shape: int) -> Floats:
        nonlocal taken
        size = int(np.prod(shape))
        taken += size
        return u[taken - size : taken].reshape(shape)

    M = len(like.rates)
    Q = np.zeros((M, M))
    Q[task.moves] = take(int(task.moves.sum())) ** 2
    rates = Q.sum(axis=1)
    safe = np.where(rates > 0, rates, 1.0)[:, None]
    P = np.where(rates[:, None] > 0, Q / safe, like.transition_probs)
    pi = take(M) ** 2
    columns: list[Column] = []
    for column, floor in zip(like.emission.columns, task.floors, strict=True):
        if isinstance(column, Gaussian):
            columns.append(Gaussian(take(M), np.maximum(np.abs(take(M)), floor)))
        elif isinstance(column, Poisson | Exponential):
            columns.append(type(column)(take(M) ** 2))
        elif isinstance(column, Bernoulli):
            chances = take(2, M) ** 2
            columns.append(Bernoulli(chances[0] / chances.sum(axis=0)))
        elif isinstance(column, Categorical):
            probs = take(*column.probs.shape) ** 2
            columns.append(Categorical(probs / probs.sum(axis=1, keepdims=True), column.symbols))
        else:
            columns.append(column)
    return Process(rates, P, pi / pi.sum(), Record(columns), like.states)


class Terrain(NamedTuple):
    """Coordinates of a point, gradient and complete-data information there, all (k,)."""

    u: Floats
    slope: Floats
    information: Floats

    @classmethod
    def at(cls, point: Point, moves: NDArray[np.bool_]) -> Terrain:
        """What one pass tells of a point."""
        here = parts_of(point.process, point.expected, moves)
        image = parts_of(point.image, point.expected, moves)
        return cls(
            np.concatenate([part.coordinates for part in here]),
            np.concatenate([part.slope(target) for part, target in zip(here, image, strict=True)]),
            np.maximum(np.concatenate([part.information for part in here]), 1e-300),
        )


def direction(terrain: Terrain, pairs: list[tuple[Floats, Floats]]) -> Floats:
    """Quasi-Newton direction: limited-memory BFGS from the complete-data information.

    pairs : steps s and the falls y of the gradient along them, s·y > 0, oldest first.
    """
    d = terrain.slope.copy()
    shares = []
    for s, y in reversed(pairs):
        shares.append(s @ d / (s @ y))
        d -= shares[-1] * y
    d /= terrain.information
    for (s, y), share in zip(pairs, reversed(shares), strict=True):
        d += s * (share - y @ d / (s @ y))
    return d


def leap(task: Task, here: Point, terrain: Terrain, pairs: list[tuple[Floats, Floats]]) -> Point | None:
    """The point a leap leads to; None if it is worse than where it starts, or no process can be there."""
    with np.errstate(all="ignore"):
        u = terrain.u + direction(terrain, pairs)
        if not (np.isfinite(u).all() and np.isfinite(u**2).all()):
            return None
    try:
        there = look(task, rebuild(u, here.image, task))
    except NoPathError:
        return None
    return there if there.log_lik >= here.log_lik else None


def climb(task: Task, start: Process, max_iter: int, tol: float, largest_rate: float, accelerate: bool) -> Climb:
    """Steps until an EM step raises the likelihood by no more than a share `tol`, or a rate runs away."""
    history = History()
    here = look(task, start)
    terrain = Terrain.at(here, task.moves)
    pairs: list[tuple[Floats, Floats]] = []
    plain = True
    for _ in track(max_iter, "EM"):
        plain = plain or not pairs or not accelerate
        there = look(task, here.image) if plain else leap(task, here, terrain, pairs)
        if there is None:
            pairs.clear()
            plain = True
            history.add(here.log_lik)
            continue
        settled = there.log_lik - here.log_lik <= tol * abs(there.log_lik)
        ahead = Terrain.at(there, task.moves)
        s, y = ahead.u - terrain.u, terrain.slope - ahead.slope
        scale = np.sqrt((s * terrain.information) @ s) * np.sqrt((y / terrain.information) @ y)
        if s @ y > LEAST_BEND * scale:
            pairs = [*pairs[1 - MEMORY :], (s, y)]
        here, terrain = there, ahead
        history.add(here.log_lik)
        if settled and plain:
            return Climb(here, history, True)
        if (here.process.rates > largest_rate).any():
            break
        plain = settled  # the last word is an EM step's
    return Climb(here, history, False)
