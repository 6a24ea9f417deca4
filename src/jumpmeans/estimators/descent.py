"""One descent: trajectories and parameters in turn, each step an exact minimisation of the objective."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..engines.base import Dwells, Engine, Search, Sequences
from ..objective import Cost, Stats, Weights, evaluate
from ..params import Params
from ..progress import History
from .updates import exact_rates, shared_rows, transition_rows


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
    rates = exact_rates(stats, weights, np.asarray(moves.any(axis=1)))
    emission = params.emission.update(stats.emission)
    if params.base_row is None:
        rows = transition_rows(stats.jumps, weights.jump_pseudo_count, moves, params.transition_probs)
        return Params(rates, rows, emission)
    rows, base_row = shared_rows(stats.jumps, moves, weights, params.base_row)
    return Params(rates, rows, emission, base_row)


def descend(engine: Engine, sequences: Sequences, params: Params, model: Model, max_iter: int, tol: float) -> Run:
    """Alternate trajectories and parameters until the objective stops falling."""
    dwells = Dwells.blank(sequences, model.search.per_gap)
    history: list[Cost] = []
    timing = History()
    converged = False
    while not converged and len(history) < max_iter:
        stats = engine.sweep(sequences, dwells, params, model.weights, model.search)
        params = minimise(stats, params, model)
        history.append(evaluate(stats, params, model.weights))
        timing.add(history[-1].total)
        if len(history) > 1:
            converged = history[-2].total - history[-1].total <= tol * abs(history[-1].total)
    return Run(params, stats, history, timing, converged)
