"""Times of any kind as arrays: numbers, durations as days, or dates; text is read as numbers or ISO dates."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from ..arrays import AnyArray, Floats
from ..errors import PanelError, shorten
from .columns import as_series, exact_floats, is_number, read_column
from .text import NUMBER, read_numbers

DAY = np.timedelta64(1, "D")
# Units of time, and how many days they have.
UNITS = {
    "seconds": 1 / 86400, "minutes": 1 / 1440, "hours": 1 / 24, "days": 1.0, "weeks": 7.0, "months": 365.25 / 12,
    "years": 365.25,
}  # fmt: skip
SHORT = {"s": "seconds", "min": "minutes", "h": "hours", "d": "days", "y": "years"}

_FIRST_YEAR, _LAST_YEAR = 1678, 2261  # what datetime64[ns] holds
_KINDS = "numbers, dates or durations"


def read_times(column: Any) -> tuple[AnyArray, str | None]:
    """Numbers, or datetime64[ns] (in UTC if zoned) and the zone. Durations become days."""
    array = read_column(column, "times")
    if array.dtype.kind in "iuf":
        return exact_floats(array, "times"), None
    if array.dtype.kind == "m":
        return _days(array), None
    if array.dtype.kind == "M":
        return _nanoseconds(array), getattr(getattr(as_series(column), "dtype", None), "time_zone", None)
    if array.dtype != object:
        raise PanelError(f"times must be {_KINDS}, got {array.dtype}; convert the column.")
    return _read_objects(array)


def in_unit(known: str | None, asked: str | None) -> tuple[float, str | None]:
    """How many units of a model's times make one of the unit asked for, and its name.

    Lengths between dates are known to be in days, and become what is asked for; of numbers a unit is only the name.
    """
    if known is None or asked is None:
        return 1.0, asked or known
    word = asked.strip().lower()
    days = UNITS.get(SHORT.get(word, word.removesuffix("s") + "s"))
    if days is not None:
        return days, asked
    raise ValueError(f"time_unit must be one of {', '.join(UNITS)} where times are dates, got {asked!r}.")


def _days(durations: AnyArray) -> Floats:
    unit = np.datetime_data(durations.dtype)[0]
    if unit in ("Y", "M", "generic"):
        raise PanelError(f"durations must have a unit of fixed length, got {durations.dtype}; convert them to days.")
    days: Floats = durations / DAY
    return days


def _nanoseconds(dates: AnyArray) -> AnyArray:
    years = dates.astype("datetime64[Y]").astype(np.int64) + 1970
    outside = np.flatnonzero(~np.isnat(dates) & ((years < _FIRST_YEAR) | (years > _LAST_YEAR)))
    if outside.size:
        raise _bad_year(dates[outside[0]], int(outside[0]))
    return dates.astype("datetime64[ns]")


def _bad_year(got: Any, row: int) -> PanelError:
    return PanelError(
        f"dates must lie in the years {_FIRST_YEAR} to {_LAST_YEAR}, got {got} at row {row}; correct them, or give "
        "the times as numbers."
    )


def _read_objects(array: AnyArray) -> tuple[AnyArray, str | None]:
    items = _read_text(array.tolist())
    families = {kind: _family(kind) for kind in set(map(type, items)) - {type(None)}}
    wrong = [kind for kind, family in families.items() if family is None]
    if wrong:
        row = next(i for i, x in enumerate(items) if type(x) is wrong[0])
        raise PanelError(f"times must be {_KINDS}, got {shorten(repr(items[row]))} at row {row}; convert the column.")
    found = sorted(filter(None, set(families.values())))
    if len(found) > 1:
        raise PanelError(f"times must be all {' or all '.join(found)}, got both; convert the column.")
    if found == ["dates"]:
        return _read_dates(items)
    if found == ["durations"]:
        return _days(np.array([np.timedelta64("NaT") if x is None else x for x in items], "timedelta64[us]")), None
    return exact_floats(np.array(items, dtype=object), "times"), None


def _family(kind: type) -> str | None:
    if issubclass(kind, date):
        return "dates"
    if issubclass(kind, timedelta | np.timedelta64):
        return "durations"
    return "numbers" if is_number(kind) else None


def _read_text(items: list[Any]) -> list[Any]:
    """Numbers or datetimes in the place of strings, all of one kind."""
    rows = [i for i, x in enumerate(items) if isinstance(x, str)]
    if not rows:
        return items
    texts = [items[i] for i in rows]
    numbers = read_numbers(texts)
    if numbers is None:
        strays = [i for i in rows if not NUMBER.fullmatch(items[i])]
        if len(strays) < len(rows):
            row = strays[0]
            raise PanelError(
                f"times must be all numbers or all ISO dates, got {shorten(repr(items[row]))} at row {row}; mend it."
            )
    read = [_parse_date(x, i) for x, i in zip(texts, rows, strict=True)] if numbers is None else numbers.tolist()
    if len(rows) == len(items):
        return read
    out = list(items)
    for i, x in zip(rows, read, strict=True):
        out[i] = x
    return out


def _parse_date(text: str, row: int) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise PanelError(
            f"times must be numbers or ISO dates such as 2024-03-01T12:30, got {shorten(repr(text))} at row {row}; "
            "write them so (yyyy-mm-dd in a spreadsheet)."
        ) from None


def _read_dates(items: list[Any]) -> tuple[AnyArray, str | None]:
    """Python dates as datetime64 in UTC, and 'UTC' if they have a zone."""
    for row, x in enumerate(items):
        if x is not None and not _FIRST_YEAR <= x.year <= _LAST_YEAR:
            raise _bad_year(x, row)
    zoned = [isinstance(x, datetime) and x.tzinfo is not None for x in items]
    plain = [x is not None and not has_zone for x, has_zone in zip(items, zoned, strict=True)]
    if any(zoned) and any(plain):
        raise PanelError(
            "dates must all have a time zone or all have none, got one with a zone at row "
            f"{zoned.index(True)} and one without at row {plain.index(True)}; convert them to one kind."
        )
    if any(zoned):
        items = [x if x is None else x.astimezone(UTC).replace(tzinfo=None) for x in items]
    return _nanoseconds(np.array(items, dtype="datetime64[us]")), "UTC" if any(zoned) else None
