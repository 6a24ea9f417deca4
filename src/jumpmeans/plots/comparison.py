"""Errors of several models beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .axes import FIGURE_SIZE, PALETTE, axes, open_frame

# Height of a row on paper, in inches.
ROW = 0.28


def plot_comparison(rows: Sequence[Mapping[str, Any]], measure: str, ax: Any = None) -> Any:
    """Draw the error of every model with its interval, least at the top; rules of thumb have hollow marks.

    Parameters
    ----------
    rows : list of dict
        As of `compare(panel).rows`.
    measure : str
        What the error is, for the axis.
    ax : matplotlib axes, optional

    Returns
    -------
    ax
    """
    shown = [row for row in rows if np.isfinite(row["error"])]
    ax = axes(ax, (FIGURE_SIZE[0], max(FIGURE_SIZE[1] / 2, ROW * len(shown) + 0.8)))
    for place, row in enumerate(shown):
        low, high = (row[key] if np.isfinite(row[key]) else row["error"] for key in ("low", "high"))
        thumb = bool(row["rule_of_thumb"])
        ax.plot([low, high], [place, place], color=PALETTE[6], linewidth=1.0)
        ax.plot(row["error"], place, "o", color=PALETTE[0], markerfacecolor="white" if thumb else PALETTE[0])
    ax.set_yticks(range(len(shown)), [str(row["name"]).replace("$", r"\$") for row in shown])
    ax.set_ylim(len(shown) - 0.5, -0.5)
    ax.set_xlabel(measure)
    open_frame(ax)
    return ax
