"""What to use on a panel: models and rules of thumb side by side, on values that none of them has seen."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.base import clone

from ..arrays import Bools, Floats, Ints
from ..chance import as_generator
from ..comparators import EM, CarriedForward, Interpolation, KernelSmoother, MostCommon
from ..data.frames import make_frame
from ..data.panel import Panel
from ..emissions import Family, shows_states
from ..emissions.guess import guess_families
from ..estimators import InfiniteJumpMeans, JumpMeans
from ..estimators.read_out import ReadOut, as_panel
from ..plots import plot_comparison
from ..progress import quiet
from .folds import HeldOut, Scorer, in_parallel, make_folds, make_scorer, shared_engine
from .scores import differences, held_out_rows, present_pairs

# Half the width of a 95 % interval, in standard errors.
NORMAL_95 = 1.959963984540054
# How each kind of model is read out: its name in the table, and the arguments of `predict_value`.
ONE_WAY: dict[str, dict[str, Any]] = {"": {}}
PROCESS_WAYS: dict[str, dict[str, Any]] = {"posterior": {}}
JUMP_WAYS: dict[str, dict[str, Any]] = {
    "posterior": {},
    "trajectory": {"method": "trajectory"},
    "trajectory that errs least": {"method": "trajectory", "criterion": "time"},
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """What `compare` found.

    Attributes
    ----------
    rows : list of dict
        One for each way to predict, least error first: `name`, `error` with the bounds `low` and `high` of its 95 %
        interval, `log_score` (mean of -ln of what was given to each true value; NaN where there is no probability),
        `seconds` (of a fit and its prediction, mean over the hold-outs), `rule_of_thumb`, and `message` (why it failed,
        or what it warned of).
    measure : str
        What the error is.
    verdict : str
        What to use, in a sentence.
    """

    rows: list[dict[str, Any]]
    measure: str
    verdict: str

    def to_frame(self, backend: str | None = None) -> Any:
        """The rows as a frame, pandas if it is installed; see `Table.to_frame` for `backend`."""
        return make_frame({name: [row[name] for row in self.rows] for name in self.rows[0]}, backend)

    def plot(self, ax: Any = None) -> Any:
        """Draw the errors with their intervals; see `plots.plot_comparison`."""
        return plot_comparison(self.rows, self.measure, ax)

    def __str__(self) -> str:
        return self.verdict


def compare(
    panel: Any,
    models: Mapping[str, Any] | None = None,
    *,
    emission: Family | Sequence[Family] = "auto",
    n_states: int | None = None,
    fraction: float = 0.25,
    folds: int = 3,
    bins: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Comparison:
    """Predict values held out by models and by rules of thumb, and say what to use.

    Parameters
    ----------
    panel : Panel or frame
    models : {name: model}, optional
        What to compare, fitted or not. By default `JumpMeans` (its posterior and its trajectories by both criteria),
        `InfiniteJumpMeans` (hidden states only), `EM`, the last value carried forward, interpolation, a kernel
        smoother, and the most common value.
    emission : str or list of str
        Family of each column for the models by default; "auto": "direct" for a column of labels or of few whole
        numbers, "gaussian" for other numbers, and "categorical" for labels among several columns.
    n_states : int, optional
        Hidden states of JumpMeans and EM by default; as many as InfiniteJumpMeans finds without the first values
        held out, if left out.
    fraction, folds : float, int
        Share of the observed rows held out each time, and how many times. All see the same hold-outs.
    bins : sequence of float, or {column: sequence of float}, optional
        Bounds of categories of continuous values, which are then scored as labels.
    n_jobs : int, optional
        Processes to work in, all cores by default; does not change the result.
    random_state : int, Generator or None

    Returns
    -------
    Comparison
        Rows with intervals, `verdict`, `to_frame()` and `plot()`.

    Notes
    -----
    Intervals and the verdict take sequences (groups, where there are some) as what was sampled: values of one sequence
    are alike. The verdict names a rule of thumb unless a model errs less than the best of them beyond chance, at 95 %.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> found = jm.compare(jm.datasets.load_edss(), folds=1, n_jobs=1)
    >>> print(found)  # doctest: +SKIP
    """
    panel = as_panel(panel)
    held = make_folds(panel, fraction, folds, as_generator(random_state))
    if models is None:
        models = usual_models(held[0].masked, emission, n_states)
    if not models:
        raise ValueError("models must name at least one model, got none.")
    judge = next((model for model in models.values() if hasattr(model, "emission")), None)
    scorer = make_scorer(judge, panel, "posterior", bins)
    tasks = [
        (name, clone(model).set_params(**shared_engine(model, n_jobs)), panel, fold, scorer)
        for name, model in models.items()
        for fold in held
    ]
    results: dict[str, list[Outcome]] = {}
    thumbs = {name: not isinstance(model, ReadOut) for name, model in models.items()}
    owner = {}
    for (name, *_), outcomes in zip(tasks, in_parallel(_try, tasks, n_jobs, "comparing"), strict=True):
        for outcome in outcomes:
            results.setdefault(outcome.name, []).append(outcome)
            owner[outcome.name] = name
    clusters = _clusters(panel)
    rows = [
        {**_row(name, outcomes, clusters), "rule_of_thumb": thumbs[owner[name]], "message": _message(outcomes)}
        for name, outcomes in results.items()
    ]
    rows.sort(key=lambda row: (np.isnan(row["error"]), row["error"]))
    return Comparison(rows, scorer.measure, _verdict(rows, results, clusters, scorer.measure))


def usual_models(panel: Panel, emission: Family | Sequence[Family], n_states: int | None) -> dict[str, Any]:
    """What is compared where nothing else is asked for."""
    if isinstance(emission, str) and emission == "auto":
        families: Any = [guess.family for guess in guess_families(panel, n_states)]
        emission = families[0] if len(families) == 1 else families
    models: dict[str, Any] = {}
    if shows_states(emission):
        models["JumpMeans"] = JumpMeans(emission=emission)
        models["EM"] = EM(emission=emission)
    else:
        infinite = InfiniteJumpMeans(emission=emission)
        models["InfiniteJumpMeans"] = infinite
        if n_states is None:
            with warnings.catch_warnings(), quiet():
                warnings.simplefilter("ignore")
                n_states = clone(infinite).fit(panel).n_states_
        models["JumpMeans"] = JumpMeans(n_states, emission=emission)
        models["EM"] = EM(n_states, emission=emission)
    thumbs: Any = emission
    models["last value carried forward"] = CarriedForward(emission=thumbs)
    models["interpolation"] = Interpolation(emission=thumbs)
    models["kernel smoother"] = KernelSmoother(emission=thumbs)
    models["most common value"] = MostCommon(emission=thumbs)
    return models


# ------------------------------------------------------------------------------------------------- one model


class Outcome(NamedTuple):
    """How one way to predict did on one hold-out: (k,) errors and -ln p, the sequence of each; what it said."""

    name: str
    errors: Floats
    sequences: Ints
    log_scores: Floats | None
    seconds: float
    message: str
    failed: bool = False


def _try(name: str, model: Any, panel: Panel, held: HeldOut, scorer: Scorer) -> list[Outcome]:
    """Fit once and read out in every way; a model that fails is no reason to stop."""
    ways = JUMP_WAYS if hasattr(model, "jumps_per_gap") else PROCESS_WAYS if isinstance(model, ReadOut) else ONE_WAY
    titles = {way: f"{name}, {way}" if len(ways) > 1 else name for way in ways}
    with warnings.catch_warnings(record=True) as caught, quiet():
        warnings.simplefilter("always")
        try:
            begun = time.perf_counter()
            model.fit(held.masked)
            fitted = time.perf_counter() - begun
            out = []
            for way, asked in ways.items():
                begun = time.perf_counter()
                errors, sequences = _errors(model.predict_value(held.masked, **asked), panel, held, scorer)
                took = fitted + time.perf_counter() - begun
                scores = _log_scores(model, panel, held) if way == "posterior" else None
                out.append(Outcome(titles[way], errors, sequences, scores, took, ""))
        except Exception as failure:
            none, nowhere = np.empty(0), np.empty(0, np.int64)
            return [Outcome(title, none, nowhere, None, np.nan, str(failure), True) for title in titles.values()]
    said = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
    return [outcome._replace(message=said) for outcome in out]


def _errors(predicted: Any, panel: Panel, held: HeldOut, scorer: Scorer) -> tuple[Floats, Ints]:
    """Errors of all values held out, column after column, and the sequence of each."""
    true = held.truth.values
    guess = held_out_rows(predicted, held.truth, true.shape[1:])
    sequence = _held_sequences(panel, held)
    parts, owners = [], []
    for d, (is_label, unit, bounds) in enumerate(zip(scorer.labels, scorer.units, scorer.bounds, strict=True)):
        far = differences(*present_pairs(guess, true, d), bounds, wrong=is_label)
        parts.append(far.astype(np.float64) if is_label else np.abs(far) / unit)
        owners.append(sequence[_present(panel, held, d)])
    return np.concatenate(parts), np.concatenate(owners)


def _log_scores(model: Any, panel: Panel, held: HeldOut) -> Floats:
    """(k,) -ln of the probability, or density, that the posterior gives to each row held out."""
    with np.errstate(divide="ignore"):
        log_probs = np.log(model.predict_proba(held.masked)[held.truth.rows])
    emission = model.process_.emission
    density = panel.to_caller_order(emission.log_density(emission.encode(panel)))[held.truth.rows]
    return np.asarray(-logsumexp(log_probs + density, axis=1))


def _held_sequences(panel: Panel, held: HeldOut) -> Ints:
    return np.asarray(panel.to_caller_order(panel.sequence_index)[held.truth.rows])


def _present(panel: Panel, held: HeldOut, d: int) -> Bools:
    return np.asarray(~np.isnan(panel.to_caller_order(panel.values[:, d])[held.truth.rows]))


# ------------------------------------------------------------------------------------------------- all of them


def _clusters(panel: Panel) -> Ints:
    """(S,) what was sampled: the sequence, or the group that it belongs to."""
    if panel.groups is None:
        return np.arange(panel.n_sequences)
    return np.unique(panel.groups.astype(str), return_inverse=True)[1]


def _mean(x: Floats, clusters: Ints) -> tuple[float, float]:
    """Mean and its standard error, for values that are alike within a cluster; NaN for a single cluster."""
    mean = float(np.mean(x))
    off = np.bincount(clusters, weights=x - mean)
    n = len(np.unique(clusters))
    if n < 2:
        return mean, np.nan
    return mean, float(np.sqrt(n / (n - 1) * np.sum(off**2)) / len(x))


def _row(name: str, outcomes: list[Outcome], clusters: Ints) -> dict[str, Any]:
    if any(outcome.failed for outcome in outcomes):
        return {"name": name, "error": np.nan, "low": np.nan, "high": np.nan, "log_score": np.nan, "seconds": np.nan}
    errors, owners = _together(outcomes, clusters)
    mean, se = _mean(errors, owners)
    scores = [outcome.log_scores for outcome in outcomes if outcome.log_scores is not None]
    return {
        "name": name,
        "error": mean,
        "low": max(mean - NORMAL_95 * se, 0.0) if se == se else np.nan,
        "high": mean + NORMAL_95 * se,
        "log_score": float(np.mean(np.concatenate(scores))) if scores else np.nan,
        "seconds": float(np.mean([outcome.seconds for outcome in outcomes])),
    }


def _together(outcomes: list[Outcome], clusters: Ints) -> tuple[Floats, Ints]:
    errors = np.concatenate([outcome.errors for outcome in outcomes])
    return errors, clusters[np.concatenate([outcome.sequences for outcome in outcomes])]


def _message(outcomes: list[Outcome]) -> str:
    failed = [outcome.message for outcome in outcomes if outcome.failed]
    return next(iter(failed), next((outcome.message for outcome in outcomes if outcome.message), ""))


def _verdict(rows: list[dict[str, Any]], results: dict[str, list[Outcome]], clusters: Ints, measure: str) -> str:
    """What to use, in a sentence."""
    good = [row for row in rows if row["error"] == row["error"]]
    if not good:
        return f"Nothing could be compared: {rows[0]['message']}"
    thumb = next((row for row in good if row["rule_of_thumb"]), None)
    model = next((row for row in good if not row["rule_of_thumb"]), None)
    if thumb is None or model is None:
        return f"Use {good[0]['name']}: it errs least ({measure}: {_shown(good[0]['error'], measure)})."
    mine, owners = _together(results[model["name"]], clusters)
    theirs, _ = _together(results[thumb["name"]], clusters)
    change, se = _mean(mine - theirs, owners)
    numbers = f"{_shown(model['error'], measure)} against {_shown(thumb['error'], measure)}"
    if change + NORMAL_95 * se < 0:
        return f"Use {model['name']}: it errs less than {thumb['name']}, the best rule of thumb ({measure}: {numbers})."
    worse = "errs more" if change - NORMAL_95 * se > 0 else "does not err less beyond chance"
    return (
        f"To fill in values use {thumb['name']}: {model['name']}, the best model, {worse} ({measure}: {numbers}). "
        "A model is still what tells jump times, rates and probabilities."
    )


def _shown(error: float, measure: str) -> str:
    return f"{100 * error:.1f} %" if measure.startswith("share") else f"{error:.3g}"
