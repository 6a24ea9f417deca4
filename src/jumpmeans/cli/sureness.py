"""How sure the mean dwells and the hazard ratios of a fit are: refits behind the report and the tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from ..data.interval import Interval
    from ..data.panel import Panel
    from .say import Say

# Without being asked: so many refits, of panels with at most so many rows; they take seconds.
REFITS, MOST_ROWS = 100, 5_000


def intervals(
    say: Say, model: Any, panel: Panel, refits: int | None, jobs: int | None, seed: int
) -> tuple[Interval | None, Interval | None]:
    """Intervals of the mean dwell of each state and of the effects on its rates, by a bootstrap of sequences.

    None where there are none. `refits` None: as many as are quick.
    """
    from ..evaluation import bootstrap

    if refits is None:
        if panel.n_observations > MOST_ROWS or panel.n_sequences < 2:
            return None, None
        refits = REFITS
    if refits == 0:
        return None, None
    say.note(f"{refits} refits to resampled sequences, for the intervals")
    found = bootstrap(model, panel, refits, n_jobs=jobs, random_state=seed)
    depends = model.process_.effects is not None
    return found.interval(lambda fitted: fitted.process_.sojourn()), found.interval(effects_of) if depends else None


def effects_of(model: Any) -> np.ndarray[Any, Any]:
    """(K, M, M) logarithms of the hazard ratios."""
    return model.process_.effects.coefs  # type: ignore[no-any-return]


def to_record(interval: Interval | None) -> dict[str, Any] | None:
    """An interval as `run.json` keeps it."""
    if interval is None:
        return None
    import numpy as np

    return {"level": interval.level, "low": np.ravel(interval.low), "high": np.ravel(interval.high)}


def from_record(record: Any, answer: Any) -> Interval | None:
    """The interval of an answer that `run.json` keeps, if it is one of it; a bound without a number is infinite."""
    import numpy as np

    from ..data.interval import Interval, numbers

    if not isinstance(record, Mapping):
        return None
    answer = numbers(answer)
    bounds = [record.get(name) for name in ("low", "high")]
    if any(not isinstance(x, list) or len(x) != answer.size for x in bounds):
        return None
    low, high = np.array([[np.inf if x is None else x for x in own] for own in bounds if own], np.float64)
    return Interval.of(answer, low.reshape(answer.shape), high.reshape(answer.shape), float(record["level"]))
