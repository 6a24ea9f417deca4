"""The test of a fit on values held out, beside rules of thumb, and how `run.json` keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..data.panel import Panel
    from ..evaluation.compare import Comparison

# Without being asked: such a share, where so many values are there and no more rows than this.
SHARE, LEAST_VALUES, MOST_ROWS = 0.25, 40, 5_000
# What is kept of each way to predict.
NUMBERS = ("error", "low", "high")
KEPT = ("name", *NUMBERS, "rule_of_thumb")


def usual_share(panel: Panel, with_report: bool) -> float:
    """The share to hold out where none was asked for: as is quick, and enough to tell anything."""
    return SHARE if with_report and LEAST_VALUES <= panel.observed.sum() <= MOST_ROWS else 0.0


def hold_out_test(model: Any, panel: Any, share: float, seed: int) -> Comparison:
    """A model fitted again to a part of the values, and rules of thumb, on the rest."""
    from sklearn.base import clone

    from ..comparators import CarriedForward, Interpolation, MostCommon
    from ..evaluation import compare

    emission = model.emission
    models = {
        type(model).__name__: clone(model),
        "last value carried forward": CarriedForward(emission=emission),
        "interpolation": Interpolation(emission=emission),
        "most common value": MostCommon(emission=emission),
    }
    return compare(panel, models, fraction=share, folds=1, n_jobs=1, random_state=seed)


def has_failed(found: Comparison) -> bool:
    """Whether the model itself could not be fitted to a part of the values."""
    return all(row["error"] != row["error"] for row in found.rows if not row["rule_of_thumb"])


def to_record(found: Comparison | None) -> dict[str, Any] | None:
    """A test as `run.json` keeps it."""
    if found is None:
        return None
    rows = [{name: row[name] for name in KEPT} for row in found.rows]
    return {"measure": found.measure, "verdict": found.verdict, "rows": rows}


def from_record(record: Any) -> Comparison | None:
    """The test that `run.json` keeps, if it is one; a number that is not there is NaN."""
    from ..evaluation.compare import Comparison

    if not isinstance(record, Mapping) or not isinstance(record.get("rows"), list):
        return None
    rows: list[dict[str, Any]] = [
        dict(row) for row in record["rows"] if isinstance(row, Mapping) and set(row) == set(KEPT)
    ]
    for row in rows:
        row |= {name: row[name] if _is_number(row[name]) else float("nan") for name in NUMBERS}
    return Comparison(rows, str(record.get("measure")), str(record.get("verdict"))) if rows else None


def _is_number(x: Any) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)
