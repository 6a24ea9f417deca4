"""The price of a state: how many states remain as it grows, and the held-out error along the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from ..arrays import Floats, Ints
from ..chance import as_generator
from ..data.frames import make_frame
from ..data.panel import Panel
from ..emissions import shows_states
from ..estimators import InfiniteJumpMeans
from ..estimators.read_out import as_panel
from ..fit.setup import total_weight
from ..plots import plot_state_path
from ..progress import quiet
from .folds import HeldOut, Scorer, in_parallel, make_folds, make_scorer, shared_engine, standard_error

# Prices of a state along a path: steps to a decade, and decades below and above the automatic one.
PATH_STEPS, PATH_BELOW, PATH_ABOVE = 4, 1, 3
# What can happen along a path, where the price of a state only rises.
FEWER = ("merge", "drop")


@dataclass(frozen=True, eq=False)
class StatePath:
    """How the number of states falls as their price grows; what `state_path` found.

    Attributes
    ----------
    state_cost : (C,)
        ξ_1, rising.
    n_states : (C,)
        Number of states of the whole panel; never rises.
    objective : (C,)
        J, the price of the states included.
    error, error_se : (C,)
        Held-out error: mean over the folds, and its standard error.
    fold_states : (C,)
        Mean number of states over the folds, which have fewer observations.
    sweeps : (C,)
        Sweeps over the whole panel that the accepted descents took.
    models : tuple of InfiniteJumpMeans
        The fits to the whole panel; to fit one of them again starts afresh.
    fold_errors : (C, folds)
    auto_cost : float
        What "auto" comes to.
    measure : str
        What the error is.
    """

    state_cost: Floats
    n_states: Ints
    objective: Floats
    error: Floats
    error_se: Floats
    fold_states: Floats
    sweeps: Ints
    models: tuple[InfiniteJumpMeans, ...]
    fold_errors: Floats
    auto_cost: float
    measure: str

    def to_frame(self, backend: str | None = None) -> Any:
        """The path as a frame, pandas if it is installed, a row for each price; see `Table.to_frame` for `backend`."""
        names = ("state_cost", "n_states", "objective", "error", "error_se", "fold_states", "sweeps")
        return make_frame({name: getattr(self, name) for name in names}, backend)

    def plot(self, ax: Any = None) -> Any:
        """Draw number of states and error over the price; see `plots.plot_state_path`."""
        return plot_state_path(
            self.state_cost, self.n_states, self.error, self.error_se, self.measure, ax, auto_cost=self.auto_cost
        )


def state_path(
    panel: Any,
    state_costs: Sequence[float] | None = None,
    *,
    emission: str | Sequence[str] = "gaussian",
    fraction: float = 0.25,
    folds: int = 3,
    method: str = "posterior",
    bins: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
    **options: Any,
) -> StatePath:
    """How the number of hidden states falls as their price grows, with the held-out error along the way.

    Parameters
    ----------
    panel : Panel or frame
    state_costs : list of float, optional
        Prices ξ_1, taken in rising order; by default from a tenth of the automatic one to its thousandfold, in
        quarters of a decade, and on from there to the objective of a single state, beyond which no second one pays.
    emission : str or list of str
        Family of each value column, as in `InfiniteJumpMeans`.
    fraction, folds, method, bins, n_jobs, random_state
        As in `tune`.
    **options
        Further options of `InfiniteJumpMeans`.

    Returns
    -------
    StatePath
        A row for each price, and `plot()`.

    Notes
    -----
    Warm start: the least price gets the full search; each higher one goes on from the states and parameters found
    for the price before. A higher price makes no new state worth while, so states are only merged and
    dropped from there. The same is done on each hold-out, at the same price per observation.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> process = jm.Process([0.2, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 4], sds=1))
    >>> panel, _ = jm.simulate(process, 20, 10, random_state=0)
    >>> jm.state_path(panel, [1, 1e5], folds=2, n_jobs=1).n_states
    array([2, 1])
    """
    panel = as_panel(panel)
    if "state_cost" in options:
        raise ValueError(f"state_costs must hold the prices, got state_cost={options['state_cost']!r}; rename it.")
    model = InfiniteJumpMeans(emission=emission, **options)
    if shows_states(emission):
        raise ValueError("emission must be of hidden states, got 'direct': the labels decide how many there are.")
    scorer = make_scorer(model, panel, method, bins)
    auto = float(model.hyperparameters(panel)["state_cost"])
    hold_outs = make_folds(panel, fraction, folds, as_generator(random_state).spawn(1)[0])
    costs = _prices(model, panel, auto) if state_costs is None else _given_prices(state_costs)
    model.set_params(**shared_engine(model, n_jobs))
    n = total_weight(panel)
    chains: list[tuple[Any, ...]] = [(model, panel, costs, None, scorer)]
    chains += [(model, held.masked, costs * (total_weight(held.masked) / n), held, scorer) for held in hold_outs]
    (models, _, _), *others = in_parallel(_walk, chains, n_jobs, "path of states")
    for fitted in models:
        fitted.set_params(engine=options.get("engine", "threads"))
    errors = np.array([errors for _, errors, _ in others]).T
    return StatePath(
        state_cost=costs,
        n_states=np.array([fitted.n_states_ for fitted in models]),
        objective=np.array([fitted.objective_ for fitted in models]),
        error=errors.mean(axis=1),
        error_se=np.array([standard_error(row) for row in errors]),
        fold_states=np.mean([counts for _, _, counts in others], axis=0),
        sweeps=np.array([fitted.n_iter_ for fitted in models]),
        models=tuple(models),
        fold_errors=errors,
        auto_cost=auto,
        measure=scorer.measure,
    )


def _prices(model: InfiniteJumpMeans, panel: Panel, auto: float) -> Floats:
    """Prices from many states to one."""
    single = clone(model).set_params(max_states=1, refine=0).fit(panel)
    above = max(PATH_ABOVE, np.log10(max(single.objective_ / auto, 1.0)))
    return auto * 10.0 ** (np.arange(-PATH_BELOW * PATH_STEPS, np.ceil(above * PATH_STEPS) + 1) / PATH_STEPS)


def _given_prices(state_costs: Sequence[float]) -> Floats:
    try:
        costs = np.unique(np.asarray(state_costs, dtype=np.float64))
    except (TypeError, ValueError):
        costs = np.empty(0)
    if not len(costs) or not np.all(np.isfinite(costs) & (costs > 0)):
        raise ValueError(f"state_costs must be finite numbers > 0, at least one, got {state_costs!r}.")
    return costs


def _walk(
    model: InfiniteJumpMeans, panel: Panel, costs: Floats, held: HeldOut | None, scorer: Scorer
) -> tuple[list[InfiniteJumpMeans], list[float], list[int]]:
    """Fits for rising prices, each started from the one before; kept, or scored if something was held out."""
    models: list[InfiniteJumpMeans] = []
    errors: list[float] = []
    counts: list[int] = []
    searched = {"proposals": model.proposals, "check": model.check}
    before: InfiniteJumpMeans | None = None
    with quiet():
        for cost in costs.tolist():
            fitted = clone(model).set_params(state_cost=cost)
            if before is not None:
                fitted.set_params(proposals=FEWER, check=False)
            before = fitted.fit(panel, start=before).set_params(**searched)
            counts.append(before.n_states_)
            if held is None:
                models.append(before)
            else:
                errors.append(scorer.error(before, held))
    return models, errors, counts
