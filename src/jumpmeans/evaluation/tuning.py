"""Hyperparameters by held-out error: `tune` for any model, `state_path` for the price of a state."""

from __future__ import annotations

import difflib
import inspect
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import Parallel, cpu_count, delayed
from numpy.typing import NDArray
from sklearn.base import clone

from ..arrays import Floats
from ..data.panel import Panel
from ..emissions import Family, find_families, shows_states
from ..engines import Threads
from ..errors import MissingExtraError
from ..estimators import InfiniteJumpMeans
from ..estimators.read_out import as_panel
from ..fit.setup import check_choice, check_count, total_weight
from ..plots import plot_state_path, plot_trials
from ..progress import quiet, track
from .scores import Truth, hold_out, reconstruction_error

Setting = dict[str, Any]

# Without a grid each weight is left to the model in half of the settings, else multiplied by one of these.
FACTORS = tuple(10.0 ** (k / 2) for k in (-4, -3, -2, -1, 1, 2, 3, 4))
LEFT_ALONE = 0.5
# Prices of a state along a path: steps to a decade, and decades below and above the automatic one.
PATH_STEPS, PATH_BELOW, PATH_ABOVE = 4, 1, 3
# What can happen along a path, where the price of a state only rises.
FEWER = ("merge", "drop")


@dataclass(frozen=True, eq=False)
class Tuned:
    """What `tune` found.

    Attributes
    ----------
    model : estimator
        The best setting, fitted to the whole panel.
    trials : list of dict
        One row for each setting, the model as it was given first: every parameter that was varied, `error` and `se`
        (mean over the folds and its standard error), `change` and `change_se` (the same of the paired difference
        from the first row), `states` (mean number over the folds; NaN for models without states) and `message` (why a
        setting failed, or what it warned of).
    best : dict
        Parameters of the best setting as far as they were varied; empty if the model as given is best.
    best_trial : int
        Its row.
    fold_errors : (n_trials, folds)
        Error of every setting on every hold-out; NaN where it failed.
    measure : str
        What the error is.
    """

    model: Any
    trials: list[dict[str, Any]]
    best: Setting
    best_trial: int
    fold_errors: Floats
    measure: str

    def to_frame(self) -> Any:
        """The trials as a pandas table."""
        return _frame(self.trials)

    def plot(self, ax: Any = None) -> Any:
        """Draw the error of every trial; see `plots.plot_trials`."""
        return plot_trials(self.trials, self.best_trial, self.measure, ax)


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
    n_states: NDArray[np.int64]
    objective: Floats
    error: Floats
    error_se: Floats
    fold_states: Floats
    sweeps: NDArray[np.int64]
    models: tuple[InfiniteJumpMeans, ...]
    fold_errors: Floats
    auto_cost: float
    measure: str

    def to_frame(self) -> Any:
        """The path as a pandas table, a row for each price."""
        names = ("state_cost", "n_states", "objective", "error", "error_se", "fold_states", "sweeps")
        return _frame({name: getattr(self, name) for name in names})

    def plot(self, ax: Any = None) -> Any:
        """Draw number of states and error over the price; see `plots.plot_state_path`."""
        return plot_state_path(
            self.state_cost, self.n_states, self.error, self.error_se, self.measure, ax, auto_cost=self.auto_cost
        )


def tune(
    model: Any,
    panel: Any,
    grid: Mapping[str, Sequence[Any]] | Sequence[Setting] | None = None,
    budget: int | None = None,
    *,
    fraction: float = 0.25,
    folds: int = 5,
    method: str = "posterior",
    bins: npt.ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Tuned:
    """Choose hyperparameters by the error of values held out.

    Parameters
    ----------
    model : estimator
        Any model or comparator with `fit` and `predict_value`; it is left as it is. As given it is the first trial,
        so that on these hold-outs the result is never worse than no tuning.
    panel : Panel or frame
    grid : dict of parameter to list, or list of dict, optional
        Values of each parameter, of which all combinations are tried; or the settings themselves, one dict each.
    budget : int, optional
        Most trials, the model as given included: of a larger grid so many settings are drawn. Without a grid,
        settings are drawn around the model's own weights: each one that is "auto" (see `hyperparameters` of the
        model) stays so in half of them, else it is multiplied by a power of √10 from 0.01 to 100. Numbers
        given by the user are kept.
    fraction : float
        Share of the observed rows that is held out each time.
    folds : int
        Number of hold-outs; all trials are scored on the same ones.
    method : "posterior" or "trajectory"
        What predicts a held-out value; see `predict_value`. Models that know but one way use that.
    bins : array_like of float, optional
        Bounds of categories of continuous values, which are then scored as labels.
    n_jobs : int, optional
        Processes to work in, all cores by default; does not change the result. With more than one, the "threads"
        engine of each has a single thread.
    random_state : int, Generator or None
        Decides the rows held out and the settings drawn.

    Returns
    -------
    Tuned
        The best setting fitted to the whole panel, the table of trials, and `plot()`.

    Notes
    -----
    The error of labels, symbols and binned values is the share predicted wrongly; that of measurements, counts and 0/1
    readings the mean absolute error, in the unit of the column. Of several columns it is the mean over them,
    the absolute error of each in units of its mean absolute deviation from the median. Of equal errors the earlier
    setting wins. The error of the best of many settings is a little too good: hold out other rows to judge it.

    A setting that cannot be fitted to this data has NaN and the message in the table.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> process = jm.Process([0.2, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 4], sds=1))
    >>> panel, _ = jm.simulate(process, 20, 10, random_state=0)
    >>> tuned = jm.tune(jm.JumpMeans(1), panel, {"n_states": [2]}, folds=2, n_jobs=1)
    >>> tuned.best, len(tuned.trials)
    ({'n_states': 2}, 2)
    """
    panel = as_panel(panel)
    scorer = _scorer(model, panel, method, bins)
    for_masks, for_settings = np.random.default_rng(random_state).spawn(2)
    hold_outs = _hold_outs(panel, fraction, folds, for_masks)
    settings = _settings(model, panel, grid, budget, for_settings)
    engine = _engine(model, n_jobs)
    tasks = [(clone(model).set_params(**(setting | engine)), held) for setting in settings for held in hold_outs]
    found = _in_parallel(_try, [(trial, held, scorer) for trial, held in tasks], n_jobs, "tuning")
    scores = [found[k * folds : (k + 1) * folds] for k in range(len(settings))]
    errors = np.array([[score.error for score in row] for row in scores])
    mean = errors.mean(axis=1)
    if np.isnan(mean).all():
        raise ValueError(f"at least one setting must fit the data, got none: {_message(scores[0])}")
    best = int(np.nanargmin(mean))
    names = list(dict.fromkeys(name for setting in settings for name in setting))
    own = model.get_params(deep=False)
    trials = [
        {name: setting.get(name, own[name]) for name in names}
        | {"error": float(mean[k]), "se": _standard_error(errors[k])}
        | {"change": float(mean[k] - mean[0]), "change_se": _standard_error(errors[k] - errors[0])}
        | {"states": float(np.mean([score.n_states for score in scores[k]])), "message": _message(scores[k])}
        for k, setting in enumerate(settings)
    ]
    fitted = clone(model).set_params(**settings[best]).fit(panel)
    return Tuned(fitted, trials, settings[best], best, errors, scorer.measure)


def state_path(
    panel: Any,
    state_costs: Sequence[float] | None = None,
    *,
    emission: Family | Sequence[Family] = "gaussian",
    fraction: float = 0.25,
    folds: int = 3,
    method: str = "posterior",
    bins: npt.ArrayLike | None = None,
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
    scorer = _scorer(model, panel, method, bins)
    auto = float(model.hyperparameters(panel)["state_cost"])
    hold_outs = _hold_outs(panel, fraction, folds, np.random.default_rng(random_state).spawn(1)[0])
    costs = _prices(model, panel, auto) if state_costs is None else _given_prices(state_costs)
    model.set_params(**_engine(model, n_jobs))
    n = total_weight(panel)
    chains: list[tuple[Any, ...]] = [(model, panel, costs, None, scorer)]
    chains += [(model, held.masked, costs * (total_weight(held.masked) / n), held, scorer) for held in hold_outs]
    (models, _, _), *others = _in_parallel(_walk, chains, n_jobs, "path of states")
    for fitted in models:
        fitted.set_params(engine=options.get("engine", "threads"))
    errors = np.array([errors for _, errors, _ in others]).T
    return StatePath(
        state_cost=costs,
        n_states=np.array([fitted.n_states_ for fitted in models]),
        objective=np.array([fitted.objective_ for fitted in models]),
        error=errors.mean(axis=1),
        error_se=np.array([_standard_error(row) for row in errors]),
        fold_states=np.mean([counts for _, _, counts in others], axis=0),
        sweeps=np.array([fitted.n_iter_ for fitted in models]),
        models=tuple(models),
        fold_errors=errors,
        auto_cost=auto,
        measure=scorer.measure,
    )


# ------------------------------------------------------------------------------------------------- the settings


def _settings(model: Any, panel: Panel, grid: Any, budget: int | None, rng: np.random.Generator) -> list[Setting]:
    """What is tried: nothing changed first, then settings that differ from it and from each other."""
    check_count("budget", budget, 1)
    own = model.get_params(deep=False)
    if grid is None:
        if budget is None:
            raise ValueError("grid or budget must be given, got neither; say budget=20 to search around the defaults.")
        return [{}, *_drawn_around(model, panel, budget - 1, rng)]
    listed = _listed(grid)
    for name in dict.fromkeys(name for setting in listed for name in setting):
        if name not in own:
            close = difflib.get_close_matches(str(name), own, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else "."
            raise ValueError(f"grid must name parameters of {type(model).__name__}: {list(own)}, got {name!r}{hint}")
    distinct: dict[str, Setting] = {}
    for setting in listed:
        if _key(setting) != _key({name: own[name] for name in setting}):
            distinct.setdefault(_key(setting), setting)
    settings = list(distinct.values())
    if budget is not None and budget - 1 < len(settings):
        settings = [settings[i] for i in np.sort(rng.choice(len(settings), budget - 1, replace=False))]
    return [{}, *settings]


def _listed(grid: Any) -> list[Setting]:
    if isinstance(grid, Mapping):
        for name, values in grid.items():
            if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
                raise ValueError(f"grid[{name!r}] must be a list of values to try, got {values!r}.")
        lists = [values.tolist() if isinstance(values, np.ndarray) else values for values in grid.values()]
        return [dict(zip(grid, values, strict=True)) for values in itertools.product(*lists)]
    if isinstance(grid, str) or not isinstance(grid, Sequence) or not all(isinstance(row, Mapping) for row in grid):
        raise ValueError(f"grid must be a dict of parameter to list of values, or a list of dicts, got {grid!r}.")
    return [dict(row) for row in grid]


def _key(setting: Setting) -> str:
    return repr(sorted(setting.items()))


def _drawn_around(model: Any, panel: Panel, n: int, rng: np.random.Generator) -> list[Setting]:
    """Settings of the weights that the model chooses by itself."""
    if not hasattr(model, "hyperparameters"):
        raise ValueError(f"grid must be given for {type(model).__name__}, which has no weights of its own to vary.")
    shown = [family.shows_state for family in find_families(model.emission, panel.n_columns)]
    idle = {"state_cost"} if any(shown) else set()  # the labels are the states
    idle |= {"emission_weight"} if all(shown) else set()
    own = model.get_params(deep=False)
    numbers = {
        name: value
        for name, value in model.hyperparameters(panel).items()
        if isinstance(own[name], str) and own[name] == "auto" and name not in idle
    }
    if not numbers:
        raise ValueError("budget without a grid needs a weight that is 'auto', got numbers for all; give a grid.")
    found: dict[str, Setting] = {}
    while len(found) < min(n, (len(FACTORS) + 1) ** len(numbers) - 1):
        moved = rng.random(len(numbers)) >= LEFT_ALONE
        factors = rng.choice(FACTORS, len(numbers))
        setting = {
            name: (np.asarray(value) * factor).tolist()
            for (name, value), move, factor in zip(numbers.items(), moved, factors, strict=True)
            if move
        }
        if setting:
            found.setdefault(_key(setting), setting)
    return list(found.values())


def _prices(model: InfiniteJumpMeans, panel: Panel, auto: float) -> Floats:
    """Prices from many states to one."""
    single = clone(model).set_params(max_states=1, refine=0).fit(panel)
    above = max(PATH_ABOVE, np.log10(max(single.objective_ / auto, 1.0)))
    return auto * 10.0 ** (np.arange(-PATH_BELOW * PATH_STEPS, np.ceil(above * PATH_STEPS) + 1) / PATH_STEPS)


def _given_prices(state_costs: Sequence[float]) -> Floats:
    costs = np.unique(np.asarray(state_costs, dtype=np.float64))
    if not len(costs) or not np.all(np.isfinite(costs) & (costs > 0)):
        raise ValueError(f"state_costs must be finite numbers > 0, at least one, got {state_costs!r}.")
    return costs


# ------------------------------------------------------------------------------------------------- the scores


class HeldOut(NamedTuple):
    """A panel without some of its values, and these."""

    masked: Panel
    truth: Truth


class Scorer(NamedTuple):
    """How predictions are judged: labels (D,) or measurements, the unit (D,) of their errors, bins if there are."""

    method: str
    labels: tuple[bool, ...]
    units: tuple[float, ...]
    bins: Any
    measure: str

    def error(self, model: Any, held: HeldOut) -> float:
        """Error of a fitted model on what was held out."""
        ways = inspect.signature(model.predict_value).parameters
        how = {"method": self.method} if "method" in ways else {}
        predicted = model.predict_value(held.masked, **how)
        if self.bins is not None or all(self.labels):
            return reconstruction_error(predicted, held.truth, self.bins)
        true, guess = (
            np.asarray(x).reshape(len(held.truth.rows), -1) for x in (held.truth.values, predicted[held.truth.rows])
        )
        parts = []
        for d, (is_label, unit) in enumerate(zip(self.labels, self.units, strict=True)):
            if is_label:
                present = np.array([x is not None and x == x for x in true[:, d].tolist()])
                wrong = guess[present, d] != true[present, d]
            else:
                wrong = np.abs(guess[:, d].astype(np.float64) - true[:, d].astype(np.float64)) / unit
                wrong = wrong[~np.isnan(true[:, d].astype(np.float64))]
            if len(wrong):
                parts.append(np.mean(wrong))
        return float(np.mean(parts))


def _scorer(model: Any, panel: Panel, method: str, bins: Any) -> Scorer:
    check_choice("method", method, ("posterior", "trajectory"))
    emission = getattr(model, "emission", "auto")
    if isinstance(emission, str) and emission == "auto":
        labels = tuple(categories is not None for categories in panel.categories)
    else:
        labels = tuple(family.has_labels for family in find_families(emission, panel.n_columns))
    units: tuple[float, ...] = (1.0,)
    if panel.n_columns > 1:
        spreads = [np.nanmean(np.abs(x - np.nanmedian(x))) if np.isfinite(x).any() else 1.0 for x in panel.values.T]
        units = tuple(float(spread) or 1.0 for spread in spreads)
    if bins is not None or all(labels):
        measure = "share wrong, held out"
    elif panel.n_columns > 1:
        measure = "error, held out"
    else:
        measure = "mean absolute error, held out"
    return Scorer(method, labels, units, bins, measure)


def _hold_outs(panel: Panel, fraction: float, folds: int, rng: np.random.Generator) -> list[HeldOut]:
    if not isinstance(folds, int | np.integer) or folds < 1:
        raise ValueError(f"folds must be an integer of at least 1, got {folds!r}.")
    return [HeldOut(*hold_out(panel, fraction, int(seed))) for seed in rng.integers(2**31, size=folds)]


class Score(NamedTuple):
    """Error of one setting on one hold-out (NaN: it failed), its states, and what it said."""

    error: float
    n_states: float
    message: str


def _try(model: Any, held: HeldOut, scorer: Scorer) -> Score:
    """Fit and score one setting; data that it cannot be fitted to are no reason to stop."""
    with warnings.catch_warnings(record=True) as caught, quiet():
        warnings.simplefilter("always")
        try:
            model.fit(held.masked)
            error = scorer.error(model, held)
        except ValueError as failure:
            return Score(np.nan, np.nan, str(failure))
    states = getattr(model, "states_", None)
    said = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
    return Score(error, np.nan if states is None else float(len(states)), said)


def _walk(
    model: InfiniteJumpMeans, panel: Panel, costs: Floats, held: HeldOut | None, scorer: Scorer
) -> tuple[list[InfiniteJumpMeans], list[float], list[int]]:
    """Fits for rising prices, each started from the one before; kept, or scored if something was held out."""
    models: list[InfiniteJumpMeans] = []
    errors: list[float] = []
    counts: list[int] = []
    searched = {"moves": model.moves, "check": model.check}
    before: InfiniteJumpMeans | None = None
    with quiet():
        for cost in costs.tolist():
            fitted = clone(model).set_params(state_cost=cost)
            if before is not None:
                fitted.set_params(moves=FEWER, check=False)
            before = fitted.fit(panel, start=before).set_params(**searched)
            counts.append(before.n_states_)
            if held is None:
                models.append(before)
            else:
                errors.append(scorer.error(before, held))
    return models, errors, counts


# ------------------------------------------------------------------------------------------------- the parts


def _in_parallel(work: Callable[..., Any], tasks: list[tuple[Any, ...]], n_jobs: int | None, title: str) -> list[Any]:
    """Results in the order of the tasks, with a bar."""
    stream: Iterator[Any]
    if _jobs(n_jobs) == 1:
        stream = (work(*task) for task in tasks)
    else:
        stream = Parallel(_jobs(n_jobs), return_as="generator")(delayed(work)(*task) for task in tasks)
    return [next(stream) for _ in track(len(tasks), title)]


def _jobs(n_jobs: int | None) -> int:
    if n_jobs is None or n_jobs == -1:
        return int(cpu_count())
    if n_jobs < 1:
        raise ValueError(f"n_jobs must be at least 1 (or None for all cores), got {n_jobs}.")
    return n_jobs


def _engine(model: Any, n_jobs: int | None) -> Setting:
    """Engine of a model that shares the cores with others; nothing if it need not be changed."""
    name = getattr(model, "engine", None)
    return {"engine": Threads(1)} if isinstance(name, str) and name == "threads" and _jobs(n_jobs) > 1 else {}


def _standard_error(x: Floats) -> float:
    return float(np.std(x, ddof=1) / np.sqrt(len(x))) if len(x) > 1 else np.nan


def _message(scores: list[Score]) -> str:
    """Why a setting failed, or else what it warned of."""
    failed = [score.message for score in scores if np.isnan(score.error)]
    return next(iter(failed), next((score.message for score in scores if score.message), ""))


def _frame(columns: Any) -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("to_frame() needs pandas: pip install 'jumpmeans[frames]'.") from None
    return pd.DataFrame(columns)
