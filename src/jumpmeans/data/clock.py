"""Clock: dates as numbers and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from ..arrays import AnyArray, Floats
from ..errors import PanelError
from ..stored import stored
from ..stored.kinds import require
from .columns import as_series, read_column
from .times import DAY, read_times

_MICROSECONDS_PER_DAY = 86_400_000_000
_FARTHEST = 106_751.0  # days, 292 years: what int64 holds in nanoseconds
_EARLIEST, _LATEST = np.datetime64("1678-01-01", "us"), np.datetime64("2262-01-01", "us")


@stored
@dataclass(frozen=True)
class Clock:
    """How dates are kept as numbers: float days since an origin.

    Parameters
    ----------
    origin : datetime64[ns]
        The date of day 0; in UTC when there is a zone.
    zone : str or None
        The time zone of the caller's dates, None for dates without one.

    Examples
    --------
    >>> clock = Clock(np.datetime64("2024-03-01", "ns"))
    >>> clock.encode(["2024-03-02T12:00"])
    array([1.5])
    >>> clock.decode([1.5])
    array(['2024-03-02T12:00:00.000000000'], dtype='datetime64[ns]')
    """

    origin: np.datetime64
    zone: str | None = None

    def check_fields(self) -> None:
        """Refuse what is no clock, if it comes from a file."""
        known = isinstance(self.origin, np.datetime64) and self.origin.dtype == "datetime64[ns]"
        require(known and not np.isnat(self.origin), f"the origin of a clock must be a date, got {self.origin!r}")
        require(self.zone is None or isinstance(self.zone, str), f"a zone must be a name, got {self.zone!r}")

    def days(self, stamps: AnyArray) -> Floats:
        """Days since the origin of datetime64[ns] of the own zone; those 292 years or more away are refused."""
        coarse = (stamps.astype("datetime64[s]") - self.origin.astype("datetime64[s]")) / DAY
        far = np.flatnonzero(np.abs(coarse) > _FARTHEST)
        if far.size:
            first, other = np.datetime_as_string([self.origin, stamps[far[0]]], unit="D")
            raise PanelError(
                f"dates must lie within 292 years of the first, got {first} and {other} at row {far[0]}; correct "
                "them, or give the times as numbers, for example years."
            )
        days: Floats = (stamps - self.origin) / DAY
        return days

    def decode(self, days: npt.ArrayLike) -> npt.NDArray[np.datetime64]:
        """Dates of the given days, to the microsecond.

        Parameters
        ----------
        days : array_like of float
            Days since the origin; NaN, and days that datetime64[ns] does not hold, become NaT.

        Returns
        -------
        ndarray of datetime64[ns], same shape
            In UTC when the clock has a zone.
        """
        days = np.asarray(days, dtype=np.float64)
        known = np.abs(days) <= 2 * _FARTHEST
        steps = np.rint(np.where(known, days, 0.0) * _MICROSECONDS_PER_DAY).astype("timedelta64[us]")
        dates = self.origin.astype("datetime64[us]") + steps
        known &= (dates > _EARLIEST) & (dates < _LATEST)
        exact = self.origin + np.where(known, steps, np.timedelta64(0, "us")).astype("timedelta64[ns]")
        return np.where(known, exact, np.datetime64("NaT", "ns"))

    def encode(self, dates: Any) -> Floats:
        """Days since the origin of the given dates; the inverse of `decode`.

        Parameters
        ----------
        dates : sequence, shape (k,)
            datetime64 (read as UTC when the clock has a zone), Python dates or datetimes, or ISO strings.

        Returns
        -------
        ndarray of float64, shape (k,)
        """
        stamps, zone = read_times(dates)
        if stamps.dtype.kind != "M":
            raise PanelError(f"these times must be dates, like those of the panel, got {stamps[:5]}.")
        from_numpy = isinstance(dates, np.ndarray) and dates.dtype.kind == "M"
        if not from_numpy and (zone is None) != (self.zone is None):
            wanted = "without a time zone" if self.zone is None else f"with a time zone (such as {self.zone})"
            raise PanelError(f"dates must be {wanted}, like those of the panel; convert them first.")
        return self.days(stamps)


def encode_times(times: Any, clock: Clock | None) -> Floats:
    """Times as a panel with this clock holds them, from numbers in its unit, or from dates if it has dates.

    A scalar gives a scalar.
    """
    if not isinstance(as_series(times), nw.Series | list | tuple) and np.ndim(times) == 0:
        scalar: Floats = encode_times(np.asarray(times)[None], clock)[0]
        return scalar
    if clock is not None and read_column(times, "times").dtype.kind not in "iuf":
        return clock.encode(times)
    stamps, _ = read_times(times)
    if stamps.dtype.kind == "M":
        raise PanelError(f"times must be numbers, as in the panel, got dates such as {stamps[0]}.")
    return stamps
