"""One descent: trajectories and parameters in turn, each step an exact minimisation of the objective."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from ..engines.base import Dwells, Engine, Search, Sequences
from ..history import History
from ..model.objective import Cost, Stats, Weights, evaluate
from ..model.process import Params
from ..model.updates import exact_rates, shared_rows, transition_rows, used_moves
from ..progress import say

# The objective cannot rise by more than rounding, but for rates that are no part of it.
RISE = 1e-9


class Model(NamedTuple):
    """What is minimised: the weights of the objective, the moves that may happen, how jumps are looked for."""

    weights: Weights
    moves: NDArray[np.bool_]
    search: Search


class Run(NamedTuple):
    """One descent from one start: where it ended, and the objective after each sweep."""

    params: Params
    stats: Stats
    history: list[Cost]
    timing: History
    converged: bool

    @property
    def cost(self) -> Cost:
        """The objective at the end, by term."""
        return self.history[-1]


def minimise(stats: Stats, params: Params, model: Model) -> Params:
    """Parameters of least objective for the trajectories behind `stats`; the previous ones fill what is free."""
    weights, moves, _ = model
    leavable = np.asarray(moves.any(axis=1))
    rates = exact_rates(stats, weights, leavable)
    if weights.prior_count == 0 and (params.base_row is not None or weights.integrated):
        rates = some_rate(rates, stats, params.rates, weights, leavable)
    emission = params.emission.update(stats.emission)
    if weights.integrated:
        return Params(rates, used_moves(stats.jumps, moves, weights), emission)
    if params.base_row is None:
        rows = transition_rows(stats.jumps, weights.jump_pseudo_count, moves, params.transition_probs)
        return Params(rates, rows, emission)
    rows, base_row = shared_rows(stats.jumps, moves, weights, params.base_row)
    return Params(rates, rows, emission, base_row)


def some_rate(rates: Floats, stats: Stats, before: Floats, weights: Weights, leavable: NDArray[np.bool_]) -> Floats:
    """Rates with something for states never left: J as printed asks for 0, the decoder for a rate to leave by.

    Such a rate is no part of J; should leaving by it prove dear, `descend` keeps what it had.
    """
    time = weights.prior_time + stats.total_time
    unknown = leavable & (stats.exits == 0)
    return np.where(unknown, np.where(time > 0, 1.0 / np.where(time > 0, time, 1.0), before), rates)


def descend(
    engine: Engine, sequences: Sequences, params: Params, model: Model, max_iter: int, tol: float,
    dwells: Dwells | None = None, timing: History | None = None,
) -> Run:  # fmt: skip
    """Alternate trajectories and parameters until the objective stops falling.

    `dwells` (IN, OUT) are the trajectories to go on from and `timing` the history to write on, if there are any.
    """
    if dwells is None:
        dwells = Dwells.blank(sequences, model.search.per_gap)
    history: list[Cost] = []
    timing = History() if timing is None else timing
    converged = False
    kept: Stats | None = None
    while not converged and len(history) < max_iter:
        stats = engine.sweep(sequences, dwells, params, model.weights, model.search)
        better = minimise(stats, params, model)
        cost = evaluate(stats, better, model.weights)
        if kept is not None and cost.total - history[-1].total > RISE * abs(cost.total):
            return Run(params, kept, history, timing, True)
        params, kept = better, stats
        history.append(cost)
        timing.add(cost.total)
        say(f"{len(params.rates)} states, sweep {len(history)}, objective {cost.total:.6g}")
        if len(history) > 1:
            converged = history[-2].total - history[-1].total <= tol * abs(history[-1].total)
    assert kept is not None  # max_iter is at least 1
    return Run(params, kept, history, timing, converged)
