"""Hyperparameters by held-out error, for any model."""

from __future__ import annotations

import difflib
import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ..arrays import Floats
from ..chance import as_generator
from ..data.frames import make_frame
from ..emissions import find_families
from ..engines.scanned import ScannedPanel
from ..estimators.read_out import as_data
from ..fit.setup import Data
from ..plots import plot_trials
from ..progress import quiet
from .folds import (
    HeldOut,
    HeldOutThere,
    Scorer,
    cluster_of,
    in_parallel,
    make_folds,
    make_folds_there,
    make_scorer,
    shared_engine,
    standard_error,
)

Setting = dict[str, Any]

# Without a grid each weight is left to the model in half of the settings, else multiplied by one of these.
FACTORS = tuple(10.0 ** (k / 2) for k in (-4, -3, -2, -1, 1, 2, 3, 4))
LEFT_ALONE = 0.5


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

    def to_frame(self, backend: str | None = None) -> Any:
        """The trials as a frame, pandas if it is installed; see `Table.to_frame` for `backend`."""
        return make_frame({name: [row[name] for row in self.trials] for name in self.trials[0]}, backend)

    def plot(self, ax: Any = None) -> Any:
        """Draw the error of every trial; see `plots.plot_trials`."""
        return plot_trials(self.trials, self.best_trial, self.measure, ax)


def tune(
    model: Any,
    panel: Any,
    grid: Mapping[str, Sequence[Any]] | Sequence[Setting] | None = None,
    budget: int | None = None,
    *,
    fraction: float = 0.25,
    folds: int = 5,
    method: str = "posterior",
    bins: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Tuned:
    """Choose hyperparameters by the error of values held out.

    Parameters
    ----------
    model : estimator
        Any model or comparator with `fit` and `predict_value`; it is left as it is. As given it is the first trial,
        so that on these hold-outs the result is never worse than no tuning.
    panel : Panel, frame or ScannedPanel
        Trials on a panel on a cluster follow one another, each on all of its workers.
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
        What predicts a held-out value; see `predict_value`.
    bins : sequence of float, or {column: sequence of float}, optional
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
    Of more than 100,000 rows each is held out, or not, by a random number of its own, so that the share is met but for
    chance, and a panel on a cluster leaves out the rows that it would leave out in memory.

    A setting that cannot be fitted to this data, or not at all, has NaN and the message in the table.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> process = jm.Process([0.2, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 4], sds=1))
    >>> panel, _ = jm.simulate(process, 20, 10, random_state=0)
    >>> tuned = jm.tune(jm.JumpMeans(1), panel, {"n_states": [2]}, folds=2, n_jobs=1)
    >>> tuned.best, len(tuned.trials)
    ({'n_states': 2}, 2)
    """
    panel = as_data(panel)
    scorer = make_scorer(model, panel, method, bins)
    for_masks, for_settings = as_generator(random_state).spawn(2)
    there = isinstance(panel, ScannedPanel)
    hold_outs = (make_folds_there if there else make_folds)(panel, fraction, folds, for_masks)
    settings = _settings(model, panel, grid, budget, for_settings)
    engine, jobs, cluster = ({}, 1, None) if there else (shared_engine(model, n_jobs), n_jobs, cluster_of(model))
    tasks = [(clone(model).set_params(**(setting | engine)), held) for setting in settings for held in hold_outs]
    found = in_parallel(_try, [(trial, held, scorer) for trial, held in tasks], jobs, "tuning", cluster)
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
        | {"error": float(mean[k]), "se": standard_error(errors[k])}
        | {"change": float(mean[k] - mean[0]), "change_se": standard_error(errors[k] - errors[0])}
        | {"states": float(np.mean([score.n_states for score in scores[k]])), "message": _message(scores[k])}
        for k, setting in enumerate(settings)
    ]
    fitted = clone(model).set_params(**settings[best]).fit(panel)
    return Tuned(fitted, trials, settings[best], best, errors, scorer.measure)


# ------------------------------------------------------------------------------------------------- the settings


def _settings(model: Any, panel: Data, grid: Any, budget: int | None, rng: np.random.Generator) -> list[Setting]:
    """What is tried: nothing changed first, then settings that differ from it and from each other."""
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1):
        raise ValueError(f"budget must be an integer of at least 1, got {budget!r}.")
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


def _drawn_around(model: Any, panel: Data, n: int, rng: np.random.Generator) -> list[Setting]:
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


# ------------------------------------------------------------------------------------------------- the trials


class Score(NamedTuple):
    """Error of one setting on one hold-out (NaN: it failed), its states, and what it said."""

    error: float
    n_states: float
    message: str


def _try(model: Any, held: HeldOut | HeldOutThere, scorer: Scorer) -> Score:
    """Fit and score one setting; one that fails, in whatever way, is no reason to stop."""
    with warnings.catch_warnings(record=True) as caught, quiet():
        warnings.simplefilter("always")
        try:
            model.fit(held.masked)
            error = scorer.error(model, held)
        except Exception as failure:
            kind = "" if isinstance(failure, ValueError) else f"{type(failure).__name__}: "
            return Score(np.nan, np.nan, f"{kind}{failure}")
    states = getattr(model, "states_", None)
    said = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
    return Score(error, np.nan if states is None else float(len(states)), said)


def _message(scores: list[Score]) -> str:
    """Why a setting failed, or else what it warned of."""
    failed = [score.message for score in scores if np.isnan(score.error)]
    return next(iter(failed), next((score.message for score in scores if score.message), ""))
