"""How sure the mean dwells of a fit are: refits behind the report and the table of states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..data.interval import Interval
    from ..data.panel import Panel
    from .say import Say

# Without being asked: so many refits, of panels with at most so many rows; they take seconds.
REFITS, MOST_ROWS = 100, 5_000


def dwell_interval(
    say: Say, model: Any, panel: Panel, refits: int | None, jobs: int | None, seed: int
) -> Interval | None:
    """Interval of the mean dwell of each state by a bootstrap of sequences; None where there is none.

    `refits` None: as many as are quick.
    """
    from ..evaluation import bootstrap

    if refits is None:
        if panel.n_observations > MOST_ROWS or panel.n_sequences < 2:
            return None
        refits = REFITS
    if refits == 0:
        return None
    say.note(f"{refits} refits to resampled sequences, for the intervals of the dwell times")
    found = bootstrap(model, panel, refits, n_jobs=jobs, random_state=seed)
    return found.interval(lambda fitted: fitted.process_.sojourn())


def to_record(interval: Interval | None) -> dict[str, Any] | None:
    """An interval as `run.json` keeps it."""
    if interval is None:
        return None
    return {
        "level": interval.level, "low": interval.low.values.ravel(), "high": interval.high.values.ravel(),
    }  # fmt: skip


def from_record(record: Any, model: Any) -> Interval | None:
    """The interval that `run.json` keeps, if it is one of this model; a bound without a number is infinite."""
    import numpy as np

    from ..data.interval import Interval

    if not isinstance(record, Mapping):
        return None
    answer = model.process_.sojourn()
    bounds = [record.get(name) for name in ("low", "high")]
    if any(not isinstance(x, list) or len(x) != len(answer.values) for x in bounds):
        return None
    low, high = np.array([[np.inf if x is None else x for x in own] for own in bounds if own], np.float64)
    return Interval.of(answer, low[:, None], high[:, None], float(record["level"]))
