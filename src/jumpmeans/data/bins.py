"""Bins: bounds that make categories of numbers."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import Floats


def bins_by_column(bins: Any, columns: Sequence[str]) -> list[Floats | None]:
    """Bounds of the categories of each column, None for a column without.

    Parameters
    ----------
    bins : sequence of float, {column: sequence of float} or None
        Rising bounds, for all columns or for each of those named.
    columns : names of all columns
    """
    if not isinstance(bins, Mapping):
        return [None if bins is None else _rising(bins)] * len(columns)
    unknown = [name for name in bins if name not in columns]
    if unknown:
        raise ValueError(f"bins must name columns among {list(columns)}, got {unknown}.")
    return [_rising(bins[name]) if name in bins else None for name in columns]


def _rising(bounds: Any) -> Floats:
    try:
        edges = np.asarray(bounds, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        edges = np.empty(0)
    if edges.ndim != 1 or not len(edges) or np.isnan(edges).any() or not (np.diff(edges) > 0).all():
        raise ValueError(f"bins must be rising bounds such as [120, 140, 160], got {reprlib.repr(bounds)}.")
    return edges
