"""How good is a reconstruction: errors of predicted values, and labels matched."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from ..arrays import AnyArray, Bools, Floats
from ..data.bins import bins_by_column
from ..options import choice
from .hold_out import Truth

# What must hold of predictions for the logarithmic score, and the way out.
CHANCES = ("probabilities and densities must be numbers", "give what the model thought each true value's chance was")


def reconstruction_error(
    predicted: npt.ArrayLike,
    truth: Truth,
    bins: Any = None,
    *,
    measure: str = "auto",
    labels: Sequence[Any] | None = None,
) -> float:
    """How far predictions are from the values held out; the less the better.

    Parameters
    ----------
    predicted : array_like, shape (n,) or (n, D), or the same with k instead of n
        One entry per row of the caller's table, or one per held-out row in the order of `truth`.
    truth : Truth
        From `hold_out`.
    bins : sequence of float, or {column: sequence of float}, optional
        Rising bounds that make categories of numbers, for all columns or each of those named; a prediction is right
        if it lies in the category of the true value.
    measure : "auto", "wrong", "mae", "rmse" or "log_score"
        Share predicted wrongly; mean absolute error; root mean square error; or the logarithmic score -ln p, for
        which `predicted` holds the probability, or density, that was given to each true value. Auto: the share
        wrong where there are labels, whole numbers or bins, and else, for measurements, the mean absolute error.
    labels : (N,), optional
        For "log_score": `predicted` is then a table of chances, a column for each of these labels, as
        `predict_value_proba` gives it.

    Returns
    -------
    float
        Values missing in the truth do not count. The share wrong and the score are of all columns together, errors are
        averaged over columns, each in its own unit.

    Examples
    --------
    >>> truth = Truth(np.array(["a", "a"]), np.array([1.0, 4.0]), np.array([1, 2]), np.array([118.5, 150.0]))
    >>> reconstruction_error([119.5, 139.0], truth, bins=[120, 140, 160])
    0.5
    >>> reconstruction_error([119.5, 139.0], truth)
    6.0
    """
    choice("auto", "wrong", "mae", "rmse", "log_score").check("measure", measure)
    if not isinstance(truth, Truth):
        raise ValueError(f"truth must be what hold_out gives, got {type(truth).__name__}.")
    true = np.asarray(truth.values)
    if not true.size or _missing(true).all():
        raise ValueError("truth must hold at least one value, got none; hold out observed rows.")
    if measure == "log_score":
        return _log_score(_true_chances(predicted, truth, labels), ~_missing(true))
    if labels is not None:
        raise ValueError(f"labels must be given for measure 'log_score' only, got them for {measure!r}.")
    guess = held_out_rows(predicted, truth, true.shape[1:])
    names = column_names(truth)
    ways: dict[str, str] = {}
    parts = []
    for d, (name, bounds) in enumerate(zip(names, bins_by_column(bins, names), strict=True)):
        g, t = present_pairs(guess, true, d)
        if len(t):
            ways[name] = _way(g, t, bounds, measure)
            parts.append(differences(g, t, bounds, wrong=ways[name] == "wrong"))
    if len(set(ways.values())) > 1:
        raise ValueError(
            f"columns must all be labels, or all measurements, to have one error, got both: {ways}; give bins for the "
            "measurements, or score one column at a time."
        )
    how = next(iter(ways.values()))
    if how == "wrong":
        return float(np.mean(np.concatenate(parts)))
    mean = _mean_absolute if how == "mae" else _root_mean_square
    return float(np.mean([mean(part) for part in parts]))


def column_names(truth: Truth) -> tuple[str, ...]:
    """Names of the columns of a truth; by default those that a panel of arrays has."""
    shape = np.shape(truth.values)
    D = shape[1] if len(shape) > 1 else 1
    if len(truth.columns) == D:
        return truth.columns
    return ("value",) if D == 1 else tuple(f"value_{d}" for d in range(D))


def held_out_rows(predicted: Any, truth: Truth, tail: tuple[int, ...]) -> AnyArray:
    """(k, *tail) predictions of the held-out rows, given for them or for all rows of the table."""
    try:
        guess = np.asarray(predicted, dtype=object if truth.values.dtype == object else None)
    except ValueError:  # of rows that differ in length
        guess = np.empty(())
    k = len(truth.rows)
    if truth.n_rows is None:
        whole = guess.ndim > 0 and len(guess) > max(k, int(np.max(truth.rows)))
    else:
        whole = guess.ndim > 0 and len(guess) == truth.n_rows
    if whole:
        guess = guess[truth.rows]
    if guess.shape != (k, *tail):
        n = "n" if truth.n_rows is None else truth.n_rows
        raise ValueError(
            "predicted must have one entry per row of the table, or one per held-out row: shape "
            f"{(n, *tail)} or {(k, *tail)}, got {_shape(predicted)}."
        )
    return guess


def present_pairs(guess: AnyArray, true: AnyArray, d: int) -> tuple[AnyArray, AnyArray]:
    """Predictions and true values of column d where there is one to be predicted."""
    g, t = (x if x.ndim == 1 else x[:, d] for x in (guess, true))
    present = ~_missing(t)
    g, t = g[present], t[present]
    if _missing(g).any():
        raise ValueError(
            f"predicted must have a value for every held-out row, got missing ones, {int(_missing(g).sum())} of "
            f"{len(g)}; fill them in."
        )
    return g, t


def differences(guess: AnyArray, true: AnyArray, bounds: Floats | None, wrong: bool) -> AnyArray:
    """Whether each prediction is wrong, or how far it is above the true value."""
    if wrong and bounds is None:
        return np.asarray(guess != true)
    rule, step = ("bins are", "leave them out") if wrong else ("distances are", "use measure='wrong'")
    g, t = (_numbers(x, f"{rule} for numbers", step) for x in (guess, true))
    return g - t if bounds is None else np.asarray(np.digitize(g, bounds) != np.digitize(t, bounds))


def match_labels(a: npt.ArrayLike, b: npt.ArrayLike) -> dict[Any, Any]:
    """Name the labels of one labelling by those of another so that most entries agree.

    Parameters
    ----------
    a, b : array_like, shape (n,)
        Two labellings of the same things, such as hidden states and the truth.

    Returns
    -------
    dict
        Label of `a` to label of `b`, one to one. If `a` has more labels than `b`, some are left out.

    Examples
    --------
    >>> match_labels([0, 0, 1, 1, 1], ["wake", "wake", "sleep", "sleep", "wake"])
    {0: 'wake', 1: 'sleep'}
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"a and b must be of one length, got shapes {a.shape} and {b.shape}.")
    try:
        (names_a, index_a), (names_b, index_b) = (np.unique(x, return_inverse=True) for x in (a, b))
    except TypeError:
        raise ValueError("a and b must each hold numbers or strings, got both, or missing ones; drop these.") from None
    together = np.zeros((len(names_a), len(names_b)), dtype=np.int64)
    np.add.at(together, (index_a, index_b), 1)
    row, column = linear_sum_assignment(together, maximize=True)
    return dict(zip(names_a[row].tolist(), names_b[column].tolist(), strict=True))


# ------------------------------------------------------------------------------------------------- the parts


def _way(guess: AnyArray, true: AnyArray, bounds: Floats | None, measure: str) -> str:
    """How a column is scored: "wrong", "mae" or "rmse"."""
    if bounds is not None and measure in ("mae", "rmse"):
        raise ValueError(f"bins make categories, which measure {measure!r} does not know; leave one of them out.")
    if bounds is None and _is_text(guess) != _is_text(true):
        raise ValueError(f"predicted must be of the kind of the truth, got {guess.item(0)!r} for {true.item(0)!r}.")
    if measure != "auto":
        return measure
    if bounds is not None or _is_text(true):
        return "wrong"
    if not _are_whole(true):
        return "mae"
    if not _are_whole(guess):
        raise ValueError(
            "measure must be given where whole numbers are predicted by others, got 'auto'; say 'mae' or 'rmse' for "
            "counts and measurements, 'wrong' for labels, or give bins."
        )
    return "wrong"


def _true_chances(predicted: Any, truth: Truth, labels: Sequence[Any] | None) -> Floats:
    """Chance, or density, that was given to each true value."""
    true = np.asarray(truth.values)
    wide = truth._replace(values=np.empty(0))  # chances are numbers, whatever was observed
    if labels is None:
        return _numbers(held_out_rows(predicted, wide, true.shape[1:]), *CHANCES)
    try:
        names = list(labels)
    except TypeError:
        names = []
    if isinstance(labels, str) or not names:
        raise ValueError(f"labels must list what the columns of chances stand for, got {labels!r}.")
    if true.ndim > 1:
        raise ValueError("labels are for a truth of one column, got several; score one column at a time.")
    missing = _missing(true)
    unknown = [value for value in true[~missing].tolist() if value not in names]
    if unknown:
        raise ValueError(f"labels must name every held-out value, got {reprlib.repr(names)} without {unknown[0]!r}.")
    table = _numbers(held_out_rows(predicted, wide, (len(names),)), *CHANCES)
    if np.any(table[~missing] > 1 + 1e-9):
        raise ValueError(f"chances of labels must be at most 1, got {table[~missing].max():g}.")
    column = [0 if gone else names.index(value) for value, gone in zip(true.tolist(), missing.tolist(), strict=True)]
    return table[np.arange(len(true)), column]


def _log_score(chances: Floats, present: Bools) -> float:
    """Mean of -ln p; infinite if what was thought impossible happened."""
    p = chances[present]
    if not np.all(p >= 0):
        raise ValueError(f"probabilities and densities must be >= 0, got {p[~(p >= 0)][0]:g}.")
    with np.errstate(divide="ignore"):
        return float(-np.mean(np.log(p)))


def _mean_absolute(x: Floats) -> float:
    return float(np.mean(np.abs(x)))


def _root_mean_square(x: Floats) -> float:
    scale = float(np.max(np.abs(x))) or 1.0  # so that no square overflows
    return scale * float(np.sqrt(np.mean((x / scale) ** 2)))


def _missing(x: AnyArray) -> Bools:
    return np.equal(x.astype(object), None) | (x != x)  # type: ignore[call-overload, no-any-return]


def _is_text(x: AnyArray) -> bool:
    return any(isinstance(item, str) for item in x.ravel()[:1])


def _are_whole(x: AnyArray) -> bool:
    """Whether all are whole numbers, or truth values."""
    numbers = _numbers(x, "values must be labels or numbers", "convert them")
    return bool(np.all(numbers == np.rint(numbers)))


def _numbers(x: AnyArray, rule: str, step: str) -> Floats:
    try:
        return x.astype(np.float64)
    except (TypeError, ValueError):
        odd = next(item for item in x.ravel().tolist() if not isinstance(item, int | float))
        raise ValueError(f"{rule}, got values such as {odd!r}; {step}.") from None


def _shape(x: Any) -> Any:
    try:
        return np.shape(x)
    except ValueError:
        return "rows that differ in length"
