"""Maximum likelihood of the process by expectation maximisation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..emissions import Gaussian, Laplace, Record
from ..emissions.column import Column
from ..engines.base import Engine, Sequences
from ..estimators.base import Floats
from ..estimators.em_steps import maximise
from ..params import Process
from ..progress import History, track

# A state's spread is never taken below this share of the column's noise: one reading alone would have none.
SCALE_FLOOR = 0.05
# A zero of a start can never grow: allowed moves, exits and first states get at least this share.
SMALLEST_SHARE = 1e-6
# Rates above this, in units of 1 / shortest gap, leave a trace of e^-10 in the data: they may as well be infinite.
LARGEST_RATE = 10.0
# ... and here the climb ends, before anything overflows.
STOP_RATE = 1e4
# Extrapolations grow and shrink by this factor.
STRIDE = 4.0


class Point(NamedTuple):
    """A process, its log-likelihood, where one EM step takes it, and the expected jumps (M, M) and times (M,)."""

    process: Process
    log_lik: float
    image: Process
    jumps: Floats
    time: Floats


class Climb(NamedTuple):
    """One ascent from one start."""

    end: Point
    history: History
    converged: bool

    @property
    def log_lik(self) -> float:
        """Log-likelihood at the end."""
        return self.end.log_lik


def look(engine: Engine, sequences: Sequences, process: Process, moves: NDArray[np.bool_], floors: Floats) -> Point:
    """One pass over the data: the likelihood of a process, and the better one that it leads to."""
    expected = engine.expect(sequences, process)
    image = maximise(process, expected, moves)
    columns = zip(image.emission.columns, expected.emission, floors, strict=True)
    image = replace(image, emission=Record(own_scale(*column) for column in columns))
    return Point(
        process,
        float(sequences.weights @ expected.log_lik),
        image,
        np.where(moves, process.generator() * expected.integrals, 0.0),
        np.diag(expected.integrals),
    )


def own_scale(column: Column, stats: Any, floor: float) -> Column:
    """The column with the likeliest spread of each state, but none below the floor.

    `with_scale` has a floor that moves with the fit: the likelihood could fall.
    """
    if isinstance(column, Gaussian):
        shift = column.means - stats.reference
        squares = 2.0 * stats.cost - 2.0 * shift * (stats.sum - stats.weight * stats.reference)
        squares += stats.weight * shift**2
        sds = np.sqrt(np.maximum(squares, 0.0) / np.maximum(stats.weight, 1e-300))
        return Gaussian(column.means, np.maximum(sds, floor))
    if isinstance(column, Laplace):
        M = column.n_states
        weight = np.bincount(stats.states, weights=stats.weights, minlength=M)
        deviations = stats.weights * np.abs(stats.x - column.medians[stats.states])
        scales = np.bincount(stats.states, weights=deviations, minlength=M) / np.maximum(weight, 1e-300)
        return Laplace(column.medians, np.maximum(scales, floor))
    return column


def climb(
    engine: Engine, sequences: Sequences, start: Process, moves: NDArray[np.bool_], floors: Floats,
    max_iter: int, tol: float, largest_rate: float,
) -> Climb:  # fmt: skip
    """EM steps until the likelihood stops rising, every second pass an extrapolation of the two before.

    Extrapolated points (SQUAREM, Varadhan and Roland 2008) are kept only if they are better than a plain step.
    """
    history = History()
    longest = STRIDE
    before: Point | None = None
    here: Point | None = None
    for _ in track(max_iter, "EM"):
        if here is None:
            here = look(engine, sequences, start, moves, floors)
        elif before is None:
            before, here = here, look(engine, sequences, here.image, moves, floors)
        else:
            stride, proposal = extrapolate(before, here, longest)
            leap = look(engine, sequences, proposal, moves, floors)
            better = leap.log_lik >= here.log_lik
            if not better:
                longest = max(longest / STRIDE, 1.0)
            elif stride == longest:
                longest *= STRIDE
            before, here = None, leap if better else here
        history.add(here.log_lik)
        if before is not None and here.log_lik - before.log_lik <= tol * abs(here.log_lik):
            return Climb(here, history, True)
        if (here.process.rates > largest_rate).any():
            break
    assert here is not None
    return Climb(here, history, False)


def extrapolate(before: Point, here: Point, longest: float) -> tuple[float, Process]:
    """A step along the two last ones, in the logarithms of the rate matrix, and its length (1: a plain EM step)."""
    Q0, Q1, Q2 = (process.generator() for process in (before.process, here.process, here.image))
    free = (Q0 > 0) & (Q1 > 0) & (Q2 > 0)
    u, v, w = (np.log(Q[free]) for Q in (Q0, Q1, Q2))
    first, bend = v - u, (w - v) - (v - u)
    weights = np.maximum(here.jumps[free], 0.0)
    size, turn = np.sqrt(weights @ first**2), np.sqrt(weights @ bend**2)
    stride = float(np.clip(size / turn if turn > 0 else 1.0, 1.0, longest))
    if stride == 1.0:
        return stride, here.image
    Q = np.where(Q2 > 0, Q2, 0.0)
    Q[free] = np.exp(np.clip(u + 2.0 * stride * first + stride**2 * bend, -700.0, 700.0))
    rates = Q.sum(axis=1)
    P = np.where(rates[:, None] > 0, Q / np.where(rates > 0, rates, 1.0)[:, None], here.image.transition_probs)
    return stride, replace(here.image, rates=rates, transition_probs=P)
