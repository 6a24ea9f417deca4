"""Clock: dates as numbers and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jumpmeans.data.columns import FloatArray, read_times
from jumpmeans.errors import PanelError

DAY = np.timedelta64(1, "D")
_MICROSECONDS_PER_DAY = 86_400_000_000


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

    def decode(self, days: npt.ArrayLike) -> npt.NDArray[np.datetime64]:
        """Dates of the given days, to the microsecond.

        Parameters
        ----------
        days : array_like of float
            Days since the origin; NaN becomes NaT.

        Returns
        -------
        ndarray of datetime64[ns], same shape
            In UTC when the clock has a zone.
        """
        days = np.asarray(days, dtype=np.float64)
        missing = np.isnan(days)
        steps = np.rint(np.where(missing, 0.0, days) * _MICROSECONDS_PER_DAY).astype("timedelta64[us]")
        return np.where(missing, np.datetime64("NaT", "ns"), self.origin + steps.astype("timedelta64[ns]"))

    def encode(self, dates: Any) -> FloatArray:
        """Days since the origin of the given dates; the inverse of `decode`.

        Parameters
        ----------
        dates : sequence, shape (k,)
            datetime64 (read as UTC when the clock has a zone), Python dates or datetimes, or ISO strings.

        Returns
        -------
        ndarray of float64, shape (k,)
        """
        stamps, zone = read_times(dates, parse=True)
        if stamps.dtype.kind != "M":
            raise PanelError(f"these times must be dates, like those of the panel, got {stamps[:5]}.")
        from_numpy = isinstance(dates, np.ndarray) and dates.dtype.kind == "M"
        if not from_numpy and (zone is None) != (self.zone is None):
            wanted = "without a time zone" if self.zone is None else f"with a time zone (such as {self.zone})"
            raise PanelError(f"dates must be {wanted}, like those of the panel; convert them first.")
        days: FloatArray = (stamps - self.origin) / DAY
        return days
