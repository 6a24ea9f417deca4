"""Names of array types, numbers read, weighted sums and order statistics (weight k: k copies), units for all digits."""

from __future__ import annotations

import math
import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Bools = NDArray[np.bool_]
AnyArray = NDArray[Any]


def read_floats(name: str, value: Any) -> Floats:
    """A copy of numbers that a user gave; anything else is refused by its name."""
    try:
        return np.array(value, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be numbers, in rows of one length, got {reprlib.repr(value)}.") from None


def weighted_quantile(x: Floats, weights: Floats, q: Floats) -> Floats:
    """Smallest values at which the cumulative weight reaches each share q of the total."""
    order = np.argsort(x, kind="stable")
    reached = np.cumsum(weights[order])
    index = np.searchsorted(reached, np.asarray(q) * reached[-1])
    return np.asarray(x[order[np.minimum(index, len(x) - 1)]])


def weighted_median(x: Floats, weights: Floats) -> float:
    """Median of x; the mean of the two middle values where exactly half of the weight lies on each side.

    Values of weight 0 are not there.
    """
    used = weights > 0
    if used.any() and not used.all():
        x, weights = x[used], weights[used]
    if np.all(weights == 1.0):  # as nearly always: no need to sort
        i = (len(x) - 1) // 2
        x = np.partition(x, [i, min(i + 1, len(x) - 1)])
        return float(0.5 * (x[i] + x[i + 1])) if len(x) % 2 == 0 else float(x[i])
    order = np.argsort(x, kind="stable")
    x = x[order]
    reached = np.cumsum(weights[order])
    half = 0.5 * reached[-1]
    i = int(np.searchsorted(reached, half))
    if reached[i] == half and i + 1 < len(x):
        return float(0.5 * (x[i] + x[i + 1]))
    return float(x[i])


def power_of_two(x: float) -> float:
    """Largest power of two up to a positive number; 1 for anything else. Dividing by it is exact.

    Parameters
    ----------
    x : float

    Returns
    -------
    unit : float
        What the `unit` of a family may be made of, so that a change of unit changes no digit.
    """
    return math.ldexp(1.0, math.frexp(x)[1] - 1) if 0 < x < math.inf else 1.0


def totals(groups: NDArray[np.integer[Any]], weights: Floats, n: int) -> Floats:
    """(n,) sum of the weights of each group."""
    return np.bincount(groups, weights=weights, minlength=n).astype(np.float64, copy=False)


def pooled(x: Floats, units: Ints, shares: Floats, n: int) -> Floats:
    """Sums over the sequences of each of n units, (S, ...) to (n, ...): `units` (S,), each counts by its share (S,)."""
    out = np.zeros((n, *x.shape[1:]))
    np.add.at(out, units, x * shares.reshape(-1, *[1] * (x.ndim - 1)))
    return out


def sum_in_order(parts: list[Any]) -> Any:
    """Sum of the parts, first to last."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
