"""Columns of any frame, array or list as plain arrays: numbers, labels and keys, each checked once."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator
from decimal import Decimal
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import narwhals as nw
import numpy as np

from ..arrays import AnyArray, Floats, Ints
from ..errors import PanelError, shorten

_LARGEST_INTEGER = 2.0**53  # beyond it float64 cannot tell neighbouring integers apart
_PIECE = 1 << 20  # values that are looked at together


def is_missing(x: Any) -> bool:
    """Whether a Python object stands for nothing: None, NaN or NaT of any kind, pandas' NA, a masked element."""
    if x is None or x is np.ma.masked:
        return True
    if type(x) in (str, int, bool):  # the usual ones, and the check below is slow
        return False
    try:
        return bool(x != x)
    except (TypeError, ValueError):
        return type(x).__name__ == "NAType"  # pandas' NA has no truth
    except ArithmeticError:
        return True  # a signalling NaN


def is_number(kind: type) -> bool:
    """Whether objects of this type are numbers; booleans are labels, and numpy's durations are no integers to us."""
    return issubclass(kind, Real | Decimal) and not issubclass(kind, bool | np.bool_ | np.timedelta64)


def as_series(column: Any) -> Any:
    """A narwhals series if the column is one of a frame, else the column itself."""
    return nw.from_native(column, series_only=True, pass_through=True)


# ----------------------------------------------------------------------------------------------- any column


def read_column(column: Any, name: str) -> AnyArray:
    """Array (n,) of numbers, booleans, dates, durations, or else objects with None for what is missing."""
    series = as_series(column)
    array = _of_series(series) if isinstance(series, nw.Series) else _of_sequence(column, name)
    if array.ndim != 1:
        raise PanelError(f"{name} must be one-dimensional, one entry per row, got shape {array.shape}; flatten it.")
    return array


def read_table(values: Any) -> list[Any]:
    """The columns of values of shape (n,) or (n, D)."""
    if isinstance(as_series(values), nw.Series) or declared_order(values) is not None:
        return [values]
    array = _of_sequence(values, "values")
    if array.ndim not in (1, 2):
        raise PanelError(f"values must have shape (n,) or (n, D), got {array.shape}.")
    if array.ndim == 2 and not array.shape[1]:
        raise PanelError(f"values must have at least one column, got shape {array.shape}.")
    return [array] if array.ndim == 1 else list(array.T)


def _of_series(series: Any) -> AnyArray:
    dtype = series.dtype
    missing = np.False_ if dtype == nw.Object else series.is_null().to_numpy()
    # As an array, integers with gaps would be rounded, a missing category of pyarrow would be some other one, and
    # integers of 128 bits have none.
    listed = dtype in (nw.Categorical, nw.Enum, nw.Int128) or (dtype.is_integer() and missing.any())
    array: AnyArray = np.array(series.to_list(), dtype=object) if listed else series.to_numpy()
    return array if array.dtype.kind in "iufbmM" else _with_none(array, missing)


def _of_sequence(column: Any, name: str) -> AnyArray:
    masked = [x for x in column if isinstance(x, np.ma.MaskedArray)] if isinstance(column, list | tuple) else []
    if any(x.ndim for x in masked):
        column = np.ma.array(column)
    mask: Any = np.ma.getmaskarray(column) if isinstance(column, np.ma.MaskedArray) else False
    # as plain arrays masked elements would warn, and pandas' own arrays round integers that have gaps
    special = any(x.ndim == 0 for x in masked) or not isinstance(getattr(column, "dtype", np.dtype("O")), np.dtype)
    try:
        array = np.asarray(column, dtype=object if special else None)
        plain = array.dtype.kind in "iufbmM"
        if isinstance(column, list | tuple) and array.dtype.kind == "f" and np.any(np.abs(array) >= _LARGEST_INTEGER):
            plain = False  # some of these may be integers, which the array has rounded
        # of a list, so that 1 and "1" stay apart
        objects = array if plain else np.array(column, dtype=object)
    except ValueError:
        raise PanelError(f"{name} must have rows of equal length, got a ragged list.") from None
    if not plain:
        return _with_none(objects, mask)
    if not np.any(mask):
        return array
    if array.dtype.kind in "iub":
        return _with_none(array.astype(object), mask)
    return np.where(mask, np.array("NaT" if array.dtype.kind in "mM" else np.nan, array.dtype), array)


def _with_none(objects: AnyArray, missing: Any) -> AnyArray:
    """A copy with None where an object is, or is said to be, missing."""
    out = np.array(objects, dtype=object)
    out[np.asarray(np.frompyfunc(is_missing, 1, 1)(out), dtype=bool) | missing] = None
    return out


# -------------------------------------------------------------------------------------------------- numbers


def read_numbers(column: Any, name: str) -> Floats:
    """A column of numbers; anything else is refused."""
    array = read_column(column, name)
    if array.dtype.kind in "iuf" or (array.dtype == object and all(map(is_number, _kinds(array)))):
        return exact_floats(array, name)
    try:
        if array.dtype.kind not in "mM":
            return array.astype(np.float64)  # booleans, and numbers written as text
    except (TypeError, ValueError, OverflowError):
        pass
    raise PanelError(f"{name} must be numbers, got {array.dtype} values such as {shorten(repr(array[0]))}.")


def exact_floats(array: AnyArray, name: str) -> Floats:
    """Numbers (and None) as float64; an integer that would be rounded is refused."""
    try:
        floats = array.astype(np.float64)  # None becomes NaN
    except OverflowError:
        floats = np.array([_float(x) for x in array.tolist()])
    for row, x in _large_integers(array, floats):
        if np.isinf(floats[row]) or int(floats[row]) != x:
            raise PanelError(
                f"integers in {name} must be below 2**53, or float64 would round them, got {shorten(str(x))} at row "
                f"{row}; take a larger unit, or subtract the first."
            )
    return floats


def _large_integers(array: AnyArray, floats: Floats) -> Iterator[tuple[int, int]]:
    """Rows and integers of a column that may lie beyond those which float64 tells apart."""
    for row in np.flatnonzero(np.abs(floats) >= _LARGEST_INTEGER) if array.dtype.kind != "f" else ():
        if isinstance(array[row], Integral):
            yield int(row), int(array[row])


def _float(x: Any) -> float:
    try:
        return float("nan") if x is None else float(x)
    except OverflowError:
        return float("inf")


def _kinds(array: AnyArray) -> set[type]:
    """Types of the entries that are there."""
    return {array.dtype.type} if array.dtype != object else set(map(type, array.tolist())) - {type(None)}


def all_integers(x: Floats) -> bool:
    """Whether all present values are integers that float64 holds exactly."""
    for i in range(0, len(x), _PIECE):  # measurements are told by the first few
        present = x[i : i + _PIECE]
        present = present[~np.isnan(present)]
        if not np.all((present == np.rint(present)) & (np.abs(present) <= _LARGEST_INTEGER)):
            return False
    return True


# ----------------------------------------------------------------------------------------- labels and keys


def read_keys(column: Any, name: str) -> tuple[AnyArray, Ints]:
    """Distinct integers or strings in order of first appearance, and the index of each row into them."""
    array = read_column(column, name)
    if array.dtype.kind in "iu":  # most panels, and Python's own numbers would take ten times the room
        if len(array) and np.all(array[1:] >= array[:-1]):  # sorted already, as most are
            first = np.concatenate([[0], np.flatnonzero(array[1:] > array[:-1]) + 1])
            codes = np.repeat(np.arange(len(first)), np.diff(first, append=len(array)))
            return array[first].astype(array.dtype if array.dtype == np.uint64 else np.int64), codes
        found, first, codes = np.unique(array, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        return found[order].astype(array.dtype if array.dtype == np.uint64 else np.int64), place[codes.ravel()]
    items = array.tolist()
    if array.dtype.kind == "f":
        items = [int(x) if x.is_integer() else None if x != x else x for x in items]
    first_rows: dict[str, int] = {}
    for kind in set(map(type, items)) - {type(None)}:
        integer = issubclass(kind, Integral) and is_number(kind)
        word = "string" if issubclass(kind, str) else "integer" if integer else kind.__name__
        first_rows[word] = next(i for i, x in enumerate(items) if type(x) is kind)
    if len(first_rows) > 1 or not first_rows.keys() <= {"integer", "string"}:
        rows = sorted(first_rows.values())[:2]
        got = " and ".join(f"{shorten(repr(items[i]))} at row {i}" for i in rows)
        raise PanelError(f"{name} must be all integers or all strings, got {got}; convert the column.")
    if None in items:
        row = items.index(None)
        raise PanelError(f"{name} must not be missing, got none at row {row}; fill it in or drop the row.")
    index = {key: i for i, key in enumerate(dict.fromkeys(items))}
    keys = np.array(list(index), dtype=object if "string" in first_rows else None)
    if keys.dtype.kind == "f":  # integers that no integer type holds together
        keys = np.array(list(index), dtype=object)
    return keys, np.fromiter(map(index.__getitem__, items), np.int64, len(items))


def read_values(column: Any, name: str, aside: Container[Any] = ()) -> tuple[Floats, AnyArray | None]:
    """Numbers and None, or indices into labels and the labels; NaN is missing, and so are entries set `aside`.

    Labels stand in the order that the column declares (an ordered category), else sorted.
    """
    array = read_column(column, f"column {name!r}")
    if aside:
        array = array.astype(object)
        array[[isinstance(x, Hashable) and x in aside for x in array.tolist()]] = None
    if array.dtype.kind in "mM":
        raise PanelError(f"values must be numbers or labels, got dates or durations in column {name!r}.")
    order = declared_order(column)
    kinds = _kinds(array)
    numbers = all(map(is_number, kinds))
    if numbers and (order is None or not kinds or all(a < b for a, b in pairwise(order))):
        return _observed_numbers(array, name), None
    items = array.tolist() if array.dtype.kind != "f" else [None if x != x else x for x in array.tolist()]
    if numbers or kinds <= {bool, np.bool_}:
        present = set(items) - {None}
        labels = np.array([False, True] if order is None else [x for x in order if x in present])
    else:
        items = [None if x is None else str(x) for x in items]
        present = set(items) - {None}
        known = sorted(present, key=str) if order is None else [x for x in map(str, order) if x in present]
        labels = np.array(known, dtype=object)
    index: dict[Any, float] = {label: k for k, label in enumerate(labels.tolist())}
    index[None] = np.nan
    return np.fromiter(map(index.__getitem__, items), np.float64, len(items)), labels


def _observed_numbers(array: AnyArray, name: str) -> Floats:
    x = exact_floats(array, f"column {name!r}")
    for row, large in _large_integers(array, x):
        if abs(large) > _LARGEST_INTEGER:
            raise PanelError(
                f"integers in column {name!r} must be below 2**53, got {large} at row {row}; make larger ones strings."
            )
    return x


def declared_order(column: Any) -> list[Any] | None:
    """The categories of an ordered column of pandas, polars (Enum) or pyarrow, else None."""
    native = nw.to_native(column, pass_through=True)
    dtype: Any = getattr(native, "dtype", None)
    if getattr(dtype, "ordered", False):  # pandas
        return list(dtype.categories)
    series = as_series(native)
    if not isinstance(series, nw.Series):
        return None
    if series.implementation.is_polars() and series.dtype == nw.Enum:
        return list(dtype.categories)
    if series.implementation.is_pyarrow() and getattr(native.type, "ordered", False):
        return native.unify_dictionaries().chunk(0).dictionary.to_pylist()
    return None
