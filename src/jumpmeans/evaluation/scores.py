"""How good is a reconstruction: values held out, the share predicted wrongly, labels matched."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.utils import check_random_state

from jumpmeans.arrays import AnyArray, Ints
from jumpmeans.data.panel import Panel


class Truth(NamedTuple):
    """What `hold_out` blanked, in the caller's order of rows."""

    ids: AnyArray
    """Sequence of each blanked row, shape (k,)."""
    times: AnyArray
    """Time of each, shape (k,): dates if the panel has dates."""
    rows: Ints
    """The caller's row numbers, rising, shape (k,)."""
    values: AnyArray
    """What stood there, shape (k,) or (k, D): labels, integers where all values are whole, or floats."""


def hold_out(panel: Panel, fraction: float = 0.3, random_state: Any = 0) -> tuple[Panel, Truth]:
    """Blank a random part of the observed rows.

    Parameters
    ----------
    panel : Panel
    fraction : float
        Share of the observed rows to blank, strictly between 0 and 1.
    random_state : int, RandomState or None
        Decides which rows.

    Returns
    -------
    masked : Panel
        The same rows and times, the values of the chosen rows missing.
    truth : Truth
        The rows that were blanked, and their values.

    Examples
    --------
    >>> panel = Panel.from_arrays(range(6), ["a", "a", "b", "b", "a", "b"], ids=[1] * 6)
    >>> masked, truth = hold_out(panel, fraction=0.5)
    >>> truth.rows, truth.values
    (array([1, 2, 5]), array(['a', 'b', 'b'], dtype=object))
    >>> masked.observed
    array([ True, False, False,  True,  True, False])
    """
    if not 0 < fraction < 1:
        raise ValueError(f"fraction must lie strictly between 0 and 1, got {fraction}.")
    observed = np.flatnonzero(panel.observed)
    k = round(fraction * len(observed))
    if k == 0:
        raise ValueError(f"fraction={fraction} of {len(observed)} observed rows is none; take a larger one.")
    chosen = check_random_state(random_state).choice(observed, size=k, replace=False)
    chosen = chosen[np.argsort(panel.rows[chosen])]
    values = panel.values.copy()
    values[chosen] = np.nan
    columns = [panel.decode_values(panel.values[chosen, d], d) for d in range(panel.n_columns)]
    truth = Truth(
        ids=panel.ids[panel.sequence_index[chosen]],
        times=panel.decode_times(panel.times[chosen]),
        rows=panel.rows[chosen],
        values=columns[0] if len(columns) == 1 else np.column_stack(columns),
    )
    return panel.with_values(values), truth


def reconstruction_error(predicted: npt.ArrayLike, truth: Truth, bins: npt.ArrayLike | None = None) -> float:
    """Share of the held-out values that are predicted wrongly.

    Parameters
    ----------
    predicted : array_like, shape (n,) or (n, D), or the same with k instead of n
        One entry per row of the caller's table, or one per held-out row in the order of `truth`.
    truth : Truth
        From `hold_out`.
    bins : array_like of float, shape (b,), optional
        For continuous values: rising bounds; a prediction is right if it lies in the bin of the true value.

    Returns
    -------
    float
        Between 0 and 1; values missing in the truth do not count.

    Examples
    --------
    >>> truth = Truth(np.array(["a", "a"]), np.array([1.0, 4.0]), np.array([1, 2]), np.array([118.0, 150.0]))
    >>> reconstruction_error([119.5, 139.0], truth, bins=[120, 140, 160])
    0.5
    """
    true = truth.values
    guess = np.asarray(predicted, dtype=object if true.dtype == object else None)
    if guess.ndim and len(guess) > max(len(true), truth.rows[-1]):
        guess = guess[truth.rows]
    if guess.shape != true.shape:
        raise ValueError(
            "predicted must have one entry per row of the table, or one per held-out row: shape "
            f"{('n', *true.shape[1:])} or {true.shape}, got {np.shape(predicted)}."
        )
    present = ~_missing(true)
    guess, true = guess[present], true[present]
    if _missing(guess).any():
        raise ValueError("predicted must have a value for every held-out row, got missing ones; fill them in.")
    if bins is not None:
        bounds = np.asarray(bins, dtype=np.float64)
        guess, true = np.digitize(_numbers(guess), bounds), np.digitize(_numbers(true), bounds)
    elif _is_text(guess) != _is_text(true):
        raise ValueError(f"predicted must be of the kind of the truth, got {guess.item(0)!r} for {true.item(0)!r}.")
    return float(np.mean(guess != true))


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
    names_a, index_a = np.unique(a, return_inverse=True)
    names_b, index_b = np.unique(b, return_inverse=True)
    together = np.zeros((len(names_a), len(names_b)), dtype=np.int64)
    np.add.at(together, (index_a, index_b), 1)
    row, column = linear_sum_assignment(together, maximize=True)
    return dict(zip(names_a[row].tolist(), names_b[column].tolist(), strict=True))


def _missing(x: AnyArray) -> npt.NDArray[np.bool_]:
    return np.equal(x.astype(object), None) | (x != x)  # type: ignore[call-overload, no-any-return]


def _is_text(x: AnyArray) -> bool:
    return any(isinstance(item, str) for item in x.ravel()[:1])


def _numbers(x: AnyArray) -> npt.NDArray[np.float64]:
    try:
        return x.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"bins are for numbers, got values such as {x.item(0)!r}; leave them out.") from None
