"""Columns of any frame, array or list as plain arrays: numbers, labels, keys and dates, each checked once."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from jumpmeans.errors import PanelError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
AnyArray = npt.NDArray[Any]

_EARLIEST, _LATEST = np.datetime64("1678-01-01", "s"), np.datetime64("2262-01-01", "s")  # datetime64[ns]
_LARGEST_INTEGER = 2.0**53  # beyond it float64 cannot tell neighbouring integers apart


def _is_missing(x: Any) -> bool:
    return x is None or (isinstance(x, float | datetime) and x != x)  # in pandas a missing date is a datetime


def _is_number(kind: type) -> bool:
    return issubclass(kind, Real | Decimal) and not issubclass(kind, bool)


def _as_series(column: Any) -> Any:
    return nw.from_native(column, series_only=True, pass_through=True)


def read_column(column: Any) -> AnyArray:
    """Array of numbers, booleans, dates, or else objects with None for what is missing."""
    series = _as_series(column)
    framed = isinstance(series, nw.Series)
    array: AnyArray = series.to_numpy() if framed else np.asarray(column)
    if array.dtype.kind in "iufbmM":
        return array
    objects = np.array(array if framed else column, dtype=object)  # of a list, so that 1 and "1" stay apart
    missing = series.is_null().to_numpy() if framed else np.frompyfunc(_is_missing, 1, 1)(objects).astype(bool)
    objects[missing] = None
    return objects


def read_numbers(column: Any, name: str) -> FloatArray:
    """A column of numbers; anything else is refused."""
    array = read_column(column)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        raise PanelError(f"{name} must be numbers, got {array.dtype} values such as {array[0]!r}.") from None


def read_keys(column: Any, name: str) -> tuple[AnyArray, IntArray]:
    """Distinct integers or strings in order of first appearance, and the index of each row into them."""
    array = read_column(column)
    items = array.tolist()
    if array.dtype.kind == "f":
        items = [int(x) if x.is_integer() else None if x != x else x for x in items]
    index = {key: i for i, key in enumerate(dict.fromkeys(items))}
    if None in index:
        row = items.index(None)
        raise PanelError(f"{name} must not be missing, got none at row {row}; fill it in or drop the row.")
    first_rows: dict[str, int] = {}
    for kind in set(map(type, items)):
        word = "string" if issubclass(kind, str) else "integer" if _is_integer(kind) else kind.__name__
        first_rows[word] = next(i for i, x in enumerate(items) if type(x) is kind)
    if len(first_rows) > 1 or not first_rows.keys() <= {"integer", "string"}:
        got = " and ".join(f"{items[i]!r} at row {i}" for i in sorted(first_rows.values())[:2])
        raise PanelError(f"{name} must be all integers or all strings, got {got}; convert the column.")
    keys = np.array(list(index), dtype=object if "string" in first_rows else None)
    return keys, np.fromiter(map(index.__getitem__, items), np.int64, len(items))


def _is_integer(kind: type) -> bool:
    return issubclass(kind, Integral) and not issubclass(kind, bool)


def read_values(column: Any, name: str) -> tuple[FloatArray, AnyArray | None]:
    """Numbers and None, or indices into sorted labels and the labels; NaN is missing."""
    array = read_column(column)
    if array.dtype.kind in "iuf":
        x = array.astype(np.float64)
        if array.dtype.kind != "f" and np.any(np.abs(x) > _LARGEST_INTEGER):
            raise PanelError(f"integers in column {name!r} must be below 2**53; make larger ones strings.")
        return x, None
    if array.dtype.kind in "mM":
        raise PanelError(f"values must be numbers or labels, got dates or durations in column {name!r}.")
    items = array.tolist()
    kinds = set(map(type, items)) - {type(None)}
    if all(map(_is_number, kinds)):
        return _floats(items), None
    if kinds <= {bool, np.bool_}:
        return _floats(items), np.array([False, True])
    items = [None if x is None else str(x) for x in items]
    labels = sorted(set(items) - {None})
    index: dict[str | None, float] = {label: k for k, label in enumerate(labels)}
    index[None] = np.nan
    return np.fromiter(map(index.__getitem__, items), np.float64, len(items)), np.array(labels, dtype=object)


def _floats(items: list[Any]) -> FloatArray:
    return np.array([np.nan if x is None else float(x) for x in items])


def read_times(column: Any, parse: bool = False) -> tuple[AnyArray, str | None]:
    """Numbers, or datetime64[ns] (in UTC if zoned) and the zone; strings pass for dates only with `parse`."""
    zone: str | None = getattr(getattr(_as_series(column), "dtype", None), "time_zone", None)
    array = read_column(column)
    if array.dtype.kind in "iuf":
        return array.astype(np.float64), None
    if array.dtype == object:
        items = [_parse_date(x) if parse and isinstance(x, str) else x for x in array.tolist()]
        kinds = {kind: _is_number(kind) for kind in set(map(type, items)) - {type(None)}}
        wrong = [kind for kind, number in kinds.items() if not number and not issubclass(kind, date)]
        if wrong:
            row = next(i for i, x in enumerate(items) if type(x) is wrong[0])
            step = "parse the dates first (read_panel does)" if wrong[0] is str else "convert the column"
            raise PanelError(f"times must be numbers or dates, got {items[row]!r} at row {row}; {step}.")
        if all(kinds.values()):
            return _floats(items), None
        if any(kinds.values()):
            raise PanelError("times must be all numbers or all dates, got both; convert the column.")
        array, zone = _read_datetimes(items)
    if array.dtype.kind != "M":
        raise PanelError(f"times must be numbers or dates, got {array.dtype}; convert the column.")
    seconds = array.astype("datetime64[s]")
    outside = np.flatnonzero((seconds < _EARLIEST) | (seconds >= _LATEST))
    if outside.size:
        row = outside[0]
        raise PanelError(f"dates must lie in the years 1678 to 2261, got {array[row]} at row {row}.")
    return array.astype("datetime64[ns]"), zone


def _parse_date(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise PanelError(f"dates must be ISO dates such as 2024-03-01T12:30, got {text!r}.") from None


def _read_datetimes(items: list[Any]) -> tuple[AnyArray, str | None]:
    """Python dates as datetime64 in UTC, and 'UTC' if they have a zone."""
    zoned = [isinstance(x, datetime) and x.tzinfo is not None for x in items]
    plain = [x is not None and not has_zone for x, has_zone in zip(items, zoned, strict=True)]
    if any(zoned) and any(plain):
        raise PanelError(
            "dates must all have a time zone or all have none, got one with a zone at row "
            f"{zoned.index(True)} and one without at row {plain.index(True)}; convert them to one kind."
        )
    if any(zoned):
        items = [x if x is None else x.astimezone(UTC).replace(tzinfo=None) for x in items]
    return np.array(items, dtype="datetime64[us]"), "UTC" if any(zoned) else None


def all_integers(x: FloatArray) -> bool:
    """Whether all present values are integers that float64 holds exactly."""
    present = x[~np.isnan(x)]
    return bool(np.all((present == np.rint(present)) & (np.abs(present) <= _LARGEST_INTEGER)))
