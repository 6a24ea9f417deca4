"""One descent: trajectories and parameters in turn, each step an exact minimisation of the objective."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Bools, Floats
from ..errors import RiseWarning
from ..history import History
from ..model.constraints import Constraints, split
from ..model.hazards import exact_hazards
from ..model.levels import Levels
from ..model.objective import Cost, Prices, Stats, evaluate
from ..model.params import Params
from ..model.updates import bound_rates, exact_rates, shared_rows, transition_rows, used_moves
from ..passes import Search, Sequences
from ..progress import say
from .levels import ridge_of, settled, spread_given
from .trials import last

# What rounding can add to the objective, relative to its terms.
RISE = 1e-9
# The options that each term of the objective is made with.
BEHIND = {
    "observations": "emission_weight",
    "transitions": "transition_weight",
    "dwells": "prior_dwell_time or prior_time",
    "running_dwells": "prior_dwell_time or prior_time",
    "rate_prior": "prior_dwell_count and prior_dwell_time, or prior_time",
    "transition_prior": "transition_weight and pseudo_count",
    "emission_prior": "emission_weight and pseudo_count",
    "states": "state_cost",
    "shared_rows": "shared_row_weight",
    "offsets": "emission_weight and offset_sd",
}


class Model(NamedTuple):
    """What is minimised: the prices of the objective, what is known of the process, how jumps are looked for."""

    prices: Prices
    constraints: Constraints
    search: Search

    @property
    def is_exact(self) -> bool:
        """Whether all that the decoder uses is part of the objective; then no step can raise it."""
        return self.prices.prior_count > 0 and not self.prices.integrated

    def at(self, levels: Levels | None) -> Model:
        """The same under the ridge of these offsets."""
        return self if levels is None else self._replace(prices=self.prices._replace(ridge=ridge_of(levels)))


class Descent(NamedTuple):
    """One descent from one start: where it ended, and the objective after each sweep.

    params, stats : λ, P and θ of the objective, and the statistics of the trajectories they go with.
    dwells : these trajectories, beside the blocks of `Sequences`; levels : those of the people in them.
    """

    params: Params
    stats: Stats
    dwells: Any
    history: list[Cost]
    timing: History
    converged: bool
    levels: Levels | None = None

    @property
    def cost(self) -> Cost:
        """The objective at the end, by term."""
        return self.history[-1]


def minimise(stats: Stats, params: Params, model: Model) -> Params:
    """Parameters of least objective for the trajectories behind `stats`; the previous ones fill what is free."""
    prices, constraints, _ = model
    moves = constraints.moves
    leavable = np.asarray(moves.any(axis=1))
    effects = params.effects
    if effects is None:
        rates = exact_rates(stats, prices, leavable)
    else:
        rates, effects = exact_hazards(stats, prices, effects, leavable)
    if prices.prior_count == 0 and (params.base_row is not None or prices.integrated):
        rates = some_rate(rates, stats, params.rates, prices, leavable)
    emission = params.emission.update(stats.emission)
    if prices.integrated:
        return Params(rates, used_moves(stats.jumps, moves, prices), emission, effects=effects)
    if params.base_row is None and constraints.binds:
        before = params.rates[:, None] * params.transition_probs
        return Params(*split(bound_rates(stats, prices, constraints, before), params.transition_probs), emission)
    if params.base_row is None:
        rows = transition_rows(stats.jumps, prices.jump_pseudo_count, moves, params.transition_probs)
        return Params(rates, rows, emission, effects=effects)
    rows, base_row = shared_rows(stats.jumps, moves, prices, params.base_row)
    return Params(rates, rows, emission, base_row, effects)


def some_rate(rates: Floats, stats: Stats, before: Floats, prices: Prices, leavable: Bools) -> Floats:
    """Rates with something for states never left: J as printed asks for 0, the decoder for a rate to leave by.

    Such a rate is no part of J; should leaving by it prove dear, `descend` keeps what it had.
    """
    time = prices.prior_time + stats.total_time
    unknown = leavable & (stats.exits == 0)
    return np.where(unknown, np.where(time > 0, 1.0 / np.where(time > 0, time, 1.0), before), rates)


def descend(
    sequences: Sequences, params: Params, model: Model, max_iter: int, tol: float, dwells: Any = None,
    timing: History | None = None,
) -> Descent:  # fmt: skip
    """Alternate trajectories and parameters until the objective stops falling.

    `dwells` are the trajectories to go on from and `timing` the history to write on, if there are any.
    """
    return last(sweeps(sequences, params, model, max_iter, tol, dwells, timing))


def sweeps(
    sequences: Sequences, params: Params, model: Model, max_iter: int, tol: float, dwells: Any = None,
    timing: History | None = None,
) -> Iterator[Descent]:  # fmt: skip
    """Where a descent is after each sweep."""
    dwells = sequences.no_jumps() if dwells is None else dwells
    timing = History() if timing is None else timing
    history: list[Cost] = []
    end: Descent | None = None
    size = 0.0
    while end is None or (not end.converged and len(history) < max_iter):
        found, stats = sequences.sweep(dwells, params, model.prices, model.search)
        with np.errstate(all="ignore"):  # what is not finite is refused
            decoded = evaluate(stats, params, model.prices) if model.is_exact else None
            levels = sequences.levels
            if levels is not None:
                levels, stats = settled(levels, stats, params, model.prices)
            better = minimise(stats, params, model)
            cost = evaluate(stats, better, model.prices)
            decoded = cost if decoded is None else decoded
        check_finite(cost)
        # J after an update is that before it less what was gained: digits lost there are no rise later on. Where all
        # dwells are of one length their costs cancel: each was still made of numbers of about 1.
        size, before = max(cost.size, decoded.size) + float(stats.exits.sum() + stats.weights.sum()), size
        if end is not None and rises(end.cost, cost, max(before, size)):
            if model.is_exact:
                warn_of_rise(end.cost, cost)
            yield end._replace(converged=True)
            return
        if end is not None and rises(decoded, cost, size):
            warn_of_rise(decoded, cost)
        history.append(cost)
        timing.add(cost.total)
        say(f"{len(params.rates)} states, sweep {len(history)}, objective {cost.total:.6g}")
        at_rest = end is not None and end.cost.total - cost.total <= tol * abs(cost.total)
        params, dwells, sequences = better, found, sequences.at(levels)
        end = Descent(params, stats, dwells, list(history), timing, at_rest, levels)
        with timing.paused():
            yield end


# Descents that follow the first at most, each under the spread that the one before left, and the change that ends them.
ROUNDS, SPREAD_CHANGE = 5, 0.02


def descend_with_spread(
    sequences: Sequences, run: Descent, model: Model, max_iter: int, tol: float
) -> tuple[Descent, Model]:
    """From the end of a descent to one under a spread of the offsets that its own trajectories bear out."""
    model = model.at(run.levels)
    for _ in range(ROUNDS):
        before = run.levels
        if before is None or before.fixed:
            break
        levels = spread_given(before, run.stats, run.params)
        change = np.abs(np.log(levels.sds[before.columns] / before.sds[before.columns]))
        if np.all(change <= SPREAD_CHANGE):
            break
        model = model.at(levels)
        timing = run.timing.restarted()
        run = descend(sequences.at(levels), run.params, model, max_iter, tol, run.dwells, timing)
    return run, model


def rises(before: Cost, after: Cost, size: float) -> bool:
    """Whether the objective rose by more than rounding, which is relative to `size`."""
    return after.total - before.total > RISE * size


def check_finite(cost: Cost) -> None:
    """Refuse an objective that floats cannot hold, by the name of its first term that is beyond them."""
    for name, value in zip(cost._fields, cost, strict=True):
        if not np.isfinite(value):
            raise ValueError(
                f"every term of the objective must be finite, got {name} = {value}; bring readings, times, weights "
                f"and the options behind it ({BEHIND[name]}) nearer to 1."
            )


def warn_of_rise(before: Cost, after: Cost) -> None:
    """Say by how much the objective rose where no step may raise it."""
    size = (after.total - before.total) / max(before.size, after.size)
    warnings.warn(
        f"no step may raise the objective, got a rise from {before.total:.12g} to {after.total:.12g} (a share of "
        f"{size:.1g}); the fit keeps the lower one. Please report it with the data.",
        RiseWarning,
        stacklevel=4,
    )
