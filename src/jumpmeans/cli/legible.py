"""Tables that a person reads: shares in per cent, bounds in one field, units named."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..evaluation.compare import Comparison

SHARE, NUMBER = "{:.1f} %", "{:.3g}"


def of_states(summary: Mapping[str, Any], unit: str | None) -> dict[str, list[Any]]:
    """The columns of a summary; what a state shows stands there where it is more than its name."""
    columns: dict[str, list[Any]] = {}
    for name, column in summary.items():
        cells = list(column)
        if name.startswith("mean_dwell"):
            title = f"mean dwell ({unit})" if unit else "mean dwell"
            columns[title] = [f"{dwell:.4g}" if dwell < inf else "for ever" for dwell in cells]
            if "dwell_low" in summary:
                bounds = zip(summary["dwell_low"], summary["dwell_high"], strict=True)
                columns["90 % interval"] = [_interval(low, high, NUMBER) if low < inf else "" for low, high in bounds]
        elif name == "time_share":
            columns["share of time"] = [SHARE.format(100 * share) for share in cells]
        elif name == "shows" and cells == [str(state) for state in summary["state"]]:
            continue
        elif name not in ("note", "dwell_low", "dwell_high"):
            columns[name] = cells
    return columns


def of_ratios(ratios: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Hazard ratios, with their bounds where these are known."""
    columns = {name: list(ratios[name]) for name in ("covariate", "from", "to")}
    columns["hazard ratio"] = [NUMBER.format(x) for x in ratios["hazard_ratio"]]
    if "low" in ratios:
        bounds = zip(ratios["low"], ratios["high"], strict=True)
        columns["90 % interval"] = [_interval(low, high, NUMBER) for low, high in bounds]
    return columns


def of_comparison(found: Comparison) -> dict[str, list[str]]:
    """The rows of a comparison, least error first."""
    form, scale = (SHARE, 100) if found.measure.startswith("share") else (NUMBER, 1)
    rows = found.rows
    return {
        "model or rule": [row["name"] for row in rows],
        "error": [_known(scale * row["error"], form) or "failed" for row in rows],
        "interval": [_interval(scale * row["low"], scale * row["high"], form) for row in rows],
        "log score": [_known(row["log_score"], NUMBER) for row in rows],
        "seconds": [_known(row["seconds"], "{:.2g}") for row in rows],
    }


def _interval(low: float, high: float, form: str) -> str:
    return f"{form.format(low).removesuffix(' %')} to {form.format(high)}" if low == low else ""


def _known(x: float, form: str) -> str:
    return form.format(x) if x == x else ""
