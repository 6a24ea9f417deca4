"""Tables that a person reads: shares in per cent, bounds in one field, units named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..evaluation.compare import Comparison

Form = Callable[[float], str]
# Columns of trials that are errors, as people call them.
OF_ERRORS = {"error": "error", "se": "standard error", "change": "change", "change_se": "its standard error"}


def number(x: float, digits: int = 3) -> str:
    """A number to so many digits, what stands before its point in full."""
    return f"{x:.0f}" if 10.0 ** (digits - 1) <= abs(x) < 1e9 else f"{x:.{digits}g}"


def share(x: float) -> str:
    """A share in per cent."""
    return f"{100 * x:.1f} %"


def of_states(summary: Mapping[str, Any], unit: str | None) -> dict[str, list[Any]]:
    """The columns of a summary; what a state shows stands there where it is more than its name."""
    columns: dict[str, list[Any]] = {}
    for name, column in summary.items():
        cells = list(column)
        if name.startswith("mean_dwell"):
            title = f"mean dwell ({unit})" if unit else "mean dwell"
            columns[title] = [number(dwell, 4) if dwell < inf else "for ever" for dwell in cells]
            if "dwell_low" in summary:
                bounds = zip(summary["dwell_low"], summary["dwell_high"], strict=True)
                columns["90 % interval"] = [_interval(low, high, number) if low < inf else "" for low, high in bounds]
        elif name == "time_share":
            columns["share of time"] = list(map(share, cells))
        elif name == "shows" and cells == [str(state) for state in summary["state"]]:
            continue
        elif name == "visits":
            columns[name] = list(map(number, cells))
        elif name not in ("note", "dwell_low", "dwell_high"):
            columns[name] = cells
    return columns


def of_comparison(found: Comparison) -> dict[str, list[str]]:
    """The rows of a comparison, least error first."""
    form = share if found.measure.startswith("share") else number
    rows = found.rows
    return {
        "model or rule": [row["name"] for row in rows],
        "error": [_known(row["error"], form) or "failed" for row in rows],
        "interval": [_interval(row["low"], row["high"], form) for row in rows],
        "log score": [_known(row["log_score"], number) for row in rows],
        "seconds": [_known(row["seconds"], lambda x: number(x, 2)) for row in rows],
    }


def of_trials(table: Mapping[str, Sequence[Any]], measure: str) -> dict[str, list[Any]]:
    """Trials of weights, without what none of them has; a change is one from the first."""
    form = share if measure.startswith("share") else number
    told = {
        name: [_known(x, form) for x in column] if name in OF_ERRORS else list(column) for name, column in table.items()
    }
    return {OF_ERRORS.get(name, name): column for name, column in told.items() if any(map(_is_told, column))}


def _is_told(x: Any) -> bool:
    return x is not None and x == x and x != ""


def _interval(low: float, high: float, form: Form) -> str:
    return f"{form(low).removesuffix(' %')} to {form(high)}" if low == low else ""


def _known(x: float | None, form: Form) -> str:
    return form(x) if x is not None and x == x else ""
