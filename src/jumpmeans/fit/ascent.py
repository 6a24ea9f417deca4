"""Up the likelihood of a process: EM steps, and leaps that learn from them.

An EM step is a gradient step, scaled by the information that the data would hold if the paths were seen. A leap
(quasi-Newton acceleration of EM, Jamshidian and Jennrich 1997) starts from that scaling and corrects it by what the
last steps did to the gradient, so it costs one pass over the data, as an EM step does. It is taken in the square roots
of rates, probabilities, means of counts and variances, where that information hardly changes and zero is no edge.
A leap that would lower the likelihood is not made: an EM step, which cannot, takes its place.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..arrays import Bools, Floats
from ..data.panel import Panel
from ..emissions import Record
from ..emissions.parts import Part
from ..history import History
from ..model.constraints import Constraints, split
from ..model.frailty import Frailty
from ..model.levels import Levels
from ..model.process import Process
from ..model.updates import transition_rows
from ..passes import Expected, NoPathError, Sequences
from ..progress import say, status
from .em_steps import maximise
from .levels import find_levels, step_levels
from .regression import FEWEST_JUMPS, Loads, by_number
from .trials import last

# How many steps a leap remembers.
MEMORY = 10
# A state's spread is never taken below this share of the column's noise: a state of one reading would have none.
SCALE_FLOOR = 0.05
# EM cannot raise a zero: what a start rules out but the structure allows gets this share.
SMALLEST_SHARE = 1e-6
# A state left at this rate, in units of 1 / shortest gap, is seen twice in a row by a chance of e^-10 at most.
LARGEST_RATE = 10.0
# An effect that multiplies a rate by more than e to this over the values of its covariate has no end either.
LARGEST_EFFECT = 10.0
# Here a climb ends, before anything overflows.
STOP_RATE = 1e4
# A climb for refine="converged" takes at most so many steps, and ends when one raises the likelihood by less.
MOST_STEPS, TOLERANCE = 1000, 1e-9
# Steps along which the gradient fell by less than this share of what it could carry no news of the curvature.
LEAST_BEND = 1e-8


class Task(NamedTuple):
    """What to climb: the data, what is known, the least spread of each column (D,), the shortest gap."""

    sequences: Sequences
    constraints: Constraints
    floors: Floats
    shortest_gap: float = np.inf

    @classmethod
    def of(cls, sequences: Sequences, constraints: Constraints, blank: Record, x: Floats, panel: Panel) -> Task:
        """The likelihood of a panel whose encoded values are x (n, D)."""
        return cls(sequences, constraints, SCALE_FLOOR * blank.noises(x, panel), panel.shortest_gap)


class Point(NamedTuple):
    """A process, its log-likelihood, the expected statistics under it, and where one EM step takes it.

    Where people have levels, log_lik is the bound F of `model.levels`, and a step takes these from `levels` to
    `next_levels`; where their rates differ, from `frailty` to `next_frailty`.
    """

    process: Process
    log_lik: float
    expected: Expected
    image: Process
    levels: Levels | None = None
    next_levels: Levels | None = None
    frailty: Frailty | None = None
    next_frailty: Frailty | None = None


class Climb(NamedTuple):
    """One ascent from one start; the history holds the log-likelihood after each step."""

    end: Point
    history: History
    converged: bool


def look(
    task: Task, process: Process, levels: Levels | None = None, frailty: Frailty | None = None
) -> Point:  # fmt: skip
    """One pass over the data."""
    expected = task.sequences.at(levels).under(frailty).expect(process)
    weights, next_frailty = task.sequences.weights, None
    if expected.people is not None:
        frailty, weighed = expected.people
        log_lik = frailty.total(weighed)
        next_frailty = frailty.stepped(weighed).zoomed(weighed)
    else:
        log_lik = float(weights @ expected.log_lik) if levels is None else levels.bound(expected.log_lik)
    next_levels, expected = step_levels(levels, expected, process)
    # a floor that moved with the fit could lower the likelihood
    image = maximise(process, expected, task.constraints, floors=task.floors)
    # a first state that is given has no term: π is uniform, which is taken out again
    given = float(weights.sum() * np.log(len(process.rates))) if task.constraints.given else 0.0
    return Point(process, log_lik + given, expected, image, levels, next_levels, frailty, next_frailty)


def parts_of(process: Process, expected: Expected, constraints: Constraints) -> list[Part]:
    """All that a leap moves, in the order of `rebuild`; columns of other families make plain EM steps."""
    M = len(process.rates)
    parts = [
        Part(constraints.free_rates(process.rate_matrix), constraints.pool(times(process, expected)), True, name="rate")
    ]
    if process.effects is not None and expected.depending is not None:
        parts.append(Part(process.effects.free, _weights(process, expected), False, name="effect"))
    if constraints.initial is None:
        parts.append(Part(process.initial_probs, np.full(M, expected.first.sum()), True, 0, "first state"))
    for column, stats in zip(process.emission.columns, expected.emission, strict=True):
        parts += column.parts(stats)
    return parts


def times(process: Process, expected: Expected) -> Floats:
    """(M, M) expected time in the state that each move leaves, each times its hazard ratio where there is one."""
    if process.effects is not None and expected.depending is not None:
        return Loads.of(process.effects, expected.depending).time
    time = np.maximum(np.diag(expected.integrals), 0.0)
    return np.broadcast_to(time[:, None], expected.integrals.shape)


def _weights(process: Process, expected: Expected) -> Floats:
    """(n_free,) complete-data information in each effect; 0 where too few jumps tell of it."""
    assert process.effects is not None and expected.depending is not None
    Q, loads = process.rate_matrix, Loads.of(process.effects, expected.depending)
    jumps = by_number(process.effects, np.broadcast_to(Q * expected.integrals, process.effects.coefs.shape))
    return np.where(jumps > FEWEST_JUMPS, by_number(process.effects, Q * loads.second), 0.0)


def targets(point: Point, constraints: Constraints) -> list[Part]:
    """Where each part goes by itself, all others held: weight times the way there is the gradient."""
    parts = parts_of(point.image, point.expected, constraints)
    process, depending = point.process, point.expected.depending
    if process.effects is None or depending is None:
        return parts
    Q, loads = process.rate_matrix, Loads.of(process.effects, depending)
    jumps, time = constraints.pool(Q * point.expected.integrals), constraints.pool(loads.time)
    free = np.where(time > 0, jumps / np.where(time > 0, time, 1.0), constraints.free_rates(Q))
    weights = _weights(process, point.expected)
    slope = by_number(process.effects, Q * (depending.slopes - loads.first))
    beta = process.effects.free + np.where(weights > 0, slope / np.where(weights > 0, weights, 1.0), 0.0)
    return [parts[0]._replace(values=free), parts[1]._replace(values=beta), *parts[2:]]


def ways_of(point: Point, constraints: Constraints) -> tuple[list[Part], list[Part]]:
    """All that a leap moves, and where each part of it goes by itself; the variance of frailty comes last."""
    here, image = parts_of(point.process, point.expected, constraints), targets(point, constraints)
    if point.expected.people is None or point.expected.people[0].fixed:
        return here, image
    frailty, weighed = point.expected.people
    v, information = frailty.variance, frailty.information()
    own = Part(np.array([v]), np.array([v * information]), True, name=FRAILTY)
    ahead = own._replace(values=np.array([v + frailty.slope(weighed) / information]))
    return [*here, own], [*image, ahead]


def rebuild(u: Floats, like: Process, task: Task) -> Process:
    """The process at coordinates u; what they leave out is taken from another one."""
    taken = 0

    def take(*shape: int) -> Floats:
        nonlocal taken
        size = int(np.prod(shape))
        taken += size
        return u[taken - size : taken].reshape(shape)

    constraints = task.constraints
    rates, P = split(constraints.rates(take(constraints.n_rates) ** 2), like.transition_probs)
    effects = None if like.effects is None else like.effects.with_free(take(like.effects.n_free))
    pi = take(len(rates)) ** 2 if constraints.initial is None else constraints.initial
    columns = [
        column.rebuild(take, floor) for column, floor in zip(like.emission.columns, task.floors.tolist(), strict=True)
    ]
    return Process(rates, P, pi / pi.sum(), Record(columns), like.states, effects)


class Terrain(NamedTuple):
    """Coordinates of a point, gradient and complete-data information there, all (k,)."""

    u: Floats
    slope: Floats
    information: Floats

    @classmethod
    def at(cls, point: Point, constraints: Constraints) -> Terrain:
        """What one pass tells of a point."""
        here, image = ways_of(point, constraints)
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
    frailty = here.next_frailty
    if frailty is not None and not frailty.fixed:
        frailty = frailty.with_variance(float(u[-1] ** 2))
    try:
        there = look(task, rebuild(u, here.image, task), here.next_levels, frailty)
    except NoPathError:
        return None
    return there if there.log_lik >= here.log_lik else None


def climb(
    task: Task, start: Process, max_iter: int, tol: float, accelerate: bool = True, levels: Levels | None = None,
    history: History | None = None, frailty: Frailty | None = None,
) -> Climb:  # fmt: skip
    """Steps until an EM step raises the likelihood by no more than a share `tol`, or a rate runs away."""
    with status("EM"):
        return last(steps(task, start, max_iter, tol, accelerate, levels, history, frailty))


def steps(
    task: Task, start: Process, max_iter: int, tol: float, accelerate: bool = True, levels: Levels | None = None,
    history: History | None = None, frailty: Frailty | None = None,
) -> Iterator[Climb]:  # fmt: skip
    """Where a climb is after each step."""
    history = History() if history is None else history
    here = look(task, start, levels, frailty)
    terrain = Terrain.at(here, task.constraints)
    pairs: list[tuple[Floats, Floats]] = []
    plain = True
    for _ in range(max_iter):
        plain = plain or not pairs or not accelerate
        if plain:
            there: Point | None = look(task, here.image, here.next_levels, here.next_frailty)
        else:
            there = leap(task, here, terrain, pairs)
        if there is None:
            pairs.clear()
            plain = True
            history.add(here.log_lik)
            with history.paused():
                yield Climb(here, history, False)
            continue
        settled = there.log_lik - here.log_lik <= tol * abs(there.log_lik)
        ahead = Terrain.at(there, task.constraints)
        s, y = ahead.u - terrain.u, terrain.slope - ahead.slope
        scale = np.sqrt((s * terrain.information) @ s) * np.sqrt((y / terrain.information) @ y)
        if s @ y > LEAST_BEND * scale:
            pairs = [*pairs[1 - MEMORY :], (s, y)]
        here, terrain = there, ahead
        history.add(here.log_lik)
        say(f"{len(start.rates)} states, step {len(history)}, log-likelihood {here.log_lik:.6g}")
        at_rest = settled and plain
        with history.paused():
            yield Climb(here, history, at_rest)
        if at_rest or runs_away(here.process, task.shortest_gap, STOP_RATE).any():
            return
        plain = settled  # the last word is an EM step's


# Name of the part that is the variance of frailty.
FRAILTY = "frailty variance"
# Times that a climb goes on from levels of people that are found anew, at the most.
LEVEL_ROUNDS = 5


def with_best_levels(task: Task, run: Climb, max_iter: int, tol: float, accelerate: bool) -> Climb:
    """A climb gone on with from the best levels of people under the process that it found, as long as F rises by that.

    A person may be taken for one at another level in other states, which a climb alone does not mend.
    """
    if run.end.levels is None:
        return run
    history = run.history
    for _ in range(LEVEL_ROUNDS):
        process = run.end.process
        found = find_levels(task.sequences.at(run.end.levels), process).levels
        better = look(task, process, found).log_lik > run.end.log_lik + tol * abs(run.end.log_lik)
        if not better or len(history) >= max_iter:
            break
        run = climb(task, process, max_iter - len(history), tol, accelerate, found, history)
    # what is published of people is what is read from a panel
    found = find_levels(task.sequences.at(run.end.levels), run.end.process).levels
    end = look(task, run.end.process, found)
    return run._replace(end=end) if end.log_lik >= run.end.log_lik else run


def most_likely(
    sequences: Sequences, process: Process, constraints: Constraints, panel: Panel, shortest_gap: float
) -> tuple[Process, Sequences]:
    """The process of highest likelihood that EM finds from a given one, and the levels then; a warning if none is.

    `panel` tells of the noise of the readings; the shortest gap is that of all rows.
    """
    emission = process.emission.with_pseudo_count(0.0)
    task = Task.of(sequences, constraints, emission, emission.encode(panel), panel)._replace(shortest_gap=shortest_gap)
    end = climb(task, replace(process, emission=emission), MOST_STEPS, TOLERANCE, levels=sequences.levels).end
    warn_if_endless(end.process, task.shortest_gap)
    return end.process, sequences.at(end.levels)


def opened(process: Process, constraints: Constraints, gap: float) -> Process:
    """The process within what is known, with a small chance of all else that it rules out: EM cannot raise a zero."""
    moves = constraints.moves
    P = transition_rows(process.transition_probs, 0.0, moves)
    rates = np.where(moves.any(axis=1), np.where(process.rates > 0, process.rates, SMALLEST_SHARE / gap), 0.0)
    pi = np.where(process.initial_probs > 0, process.initial_probs, SMALLEST_SHARE)
    P = transition_rows(np.where(P > 0, P, SMALLEST_SHARE), 0.0, moves)
    if constraints.binds:
        rates, P = split(constraints.imposed(rates[:, None] * P), P)
    return Process(
        rates,
        P,
        constraints.initial_probs(pi),
        process.emission.with_pseudo_count(0.0),
        process.states,
        process.effects,
    )


def runs_away(process: Process, shortest: float, largest: float) -> Bools:
    """(M,) whether a state is left more often than `largest` times in the shortest gap, if there is any gap."""
    if not np.isfinite(shortest):
        return np.zeros(len(process.rates), dtype=bool)
    return np.asarray(process.rates > largest / shortest)


def warn_if_endless(process: Process, shortest: float) -> bool:
    """Whether a rate has run so high that the data cannot tell it from infinity; a warning then names the state."""
    endless = runs_away(process, shortest, LARGEST_RATE)
    if not endless.any():
        return False
    s = int(np.argmax(np.where(endless, process.rates, 0.0)))
    warnings.warn(
        f"the likelihood may have no maximum: the rate of state {process.states.tolist()[s]!r} has run up to "
        f"{process.rates[s]:.3g}, and with a shortest gap of {shortest:.3g} between observations the data "
        "cannot tell it from infinity; merge this state with another, forbid some of its moves "
        "(Structure(allowed=...)), or observe more often.",
        ConvergenceWarning,
        stacklevel=4,
    )
    return True


def warn_if_unbounded(process: Process, z: Floats | None) -> bool:
    """Whether an effect has run so far that the data cannot tell it from infinity; a warning then names the move."""
    effects = process.effects
    if effects is None or z is None:
        return False
    reach = np.abs(effects.coefs) * np.ptp(z, axis=0)[:, None, None]
    endless = (reach > LARGEST_EFFECT) & (process.transition_probs > 0)
    if not endless.any():
        return False
    k, r, s = np.unravel_index(int(np.argmax(np.where(endless, reach, 0.0))), reach.shape)
    labels = process.states.tolist()
    warnings.warn(
        f"the likelihood may have no maximum: the effect of {effects.names[k]!r} on {labels[r]!r} → {labels[s]!r} has "
        f"run to {effects.coefs[k, r, s]:.3g}, as such moves hardly happen at some of its values; leave it out "
        "(Structure(covariates={(state, next): [names]})), or share it (covariates='shared').",
        ConvergenceWarning,
        stacklevel=4,
    )
    return True
