"""What all pictures share: axes, colours, the axis of time, legends."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import MissingExtraError

# Okabe and Ito's colours, told apart by all kinds of colour vision; yellow last, for it is faint on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
# Small enough to be printed at half the width of a page with its letters still legible.
FIGURE_SIZE = (4.8, 3.0)
LETTERS_PER_INCH = 16.0
# Room left and right of a window, so that what was seen at its ends is not cut.
MARGIN = 0.02


def axes(ax: Any, size: tuple[float, float] = FIGURE_SIZE) -> Any:
    """The axes given, or those of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError("plots need matplotlib; install it by pip install 'jumpmeans[plots]'.") from error
    if ax is None:
        return plt.subplots(figsize=size, layout="constrained")[1]
    if not hasattr(ax, "plot"):
        raise ValueError(f"ax must be one matplotlib axes, got {type(ax).__name__}; of plt.subplots take the second.")
    return ax


def inches_wide(ax: Any) -> float:
    """Width of the axes on paper."""
    return float(ax.get_position().width * ax.figure.get_size_inches()[0])


def colours(M: int) -> list[Any]:
    """A colour for every state; beyond the palette, shades of one scale that every eye can order."""
    if M <= len(PALETTE):
        return list(PALETTE[:M])
    import matplotlib

    return [tuple(shade) for shade in matplotlib.colormaps["viridis"](np.linspace(0.0, 0.95, M))]


def time_axis(ax: Any, clock: Any, unit: str | None) -> None:
    """Name the axis of time: dates, or numbers of a unit."""
    ax.margins(x=MARGIN)
    if clock is None:
        ax.set_xlabel(in_unit("time", unit))
    else:
        import matplotlib.dates as dates

        locator = dates.AutoDateLocator(minticks=3, maxticks=6)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        ax.set_xlabel("date (UTC)" if clock.zone else "date")
    open_frame(ax)


def in_unit(name: str, unit: str | None) -> str:
    """A name with its unit, if there is one."""
    return f"{name} ({unit})" if unit else name


def open_frame(ax: Any) -> None:
    """No lines above and at the right."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def legend(ax: Any, title: str) -> None:
    """Names above the axes, where there are no data, in as many columns as fit; the title alone if there are none."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        ax.set_title(title, loc="left", size="medium")
        return
    columns = int(np.clip(LETTERS_PER_INCH * inches_wide(ax) // (max(map(len, labels)) + 5), 1, len(labels)))
    ax.legend(
        handles, labels, title=title, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, frameon=False,
        fontsize="small", title_fontsize="medium", alignment="left", handlelength=1.3, columnspacing=1.2,
        borderaxespad=0.2, handletextpad=0.5,
    )  # fmt: skip
