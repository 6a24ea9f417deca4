"""How the pictures look, and how they are saved: the same bytes for the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullFormatter

from jumpmeans.plots import PALETTE

BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, BLACK = PALETTE[:7]
# Colour, marker and dash of every method: told apart without colour too.
STYLE: dict[str, dict[str, Any]] = {
    "plain_trajectory": {"color": BLUE, "marker": "o", "label": "JUMP-means, trajectory"},
    "plain_posterior": {"color": SKY, "marker": "s", "linestyle": "--", "label": "JUMP-means, posterior"},
    "em": {"color": ORANGE, "marker": "^", "label": "EM"},
    "mcmc": {"color": GREEN, "marker": "D", "linestyle": "-.", "label": "MCMC"},
    "pmcmc": {"color": PINK, "marker": "v", "linestyle": "-.", "label": "particle MCMC"},
    "most_common": {"color": "0.5", "linestyle": ":", "label": "most common"},
}
RC = {
    "font.size": 9, "axes.titlesize": 9, "axes.labelsize": 9, "legend.fontsize": 8, "xtick.labelsize": 8,
    "ytick.labelsize": 8, "axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1.5,
    "lines.markersize": 4, "svg.hashsalt": "jumpmeans", "legend.frameon": False, "path.simplify": True,
}  # fmt: skip


def figure(rows: int = 1, columns: int = 1, size: tuple[float, float] = (4.8, 3.0), **options: Any) -> Any:
    """A figure and its axes (rows, columns) in our style."""
    plt.rcParams.update(RC)
    return plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **options)


def decades(ax: Any) -> None:
    """A logarithmic x axis with names at powers of ten alone."""
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    ticks = [10.0**k for k in range(-6, 8) if low <= 10.0**k <= high]
    names = [f"{t:g}" if 1e-3 < t < 1e4 else f"$10^{{{round(np.log10(t))}}}$" for t in ticks]
    ax.set_xticks(ticks, names)
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(low, high)


def dots(ax: Any, means: dict[str, Any], names: dict[str, str]) -> None:
    """Mean error (%) of every method with bars of two standard errors, in the order of the names, ours in blue."""
    for y, key in enumerate(reversed(names)):
        if key in means:
            mine = key.endswith(("_trajectory", "_time", "_posterior"))
            ax.errorbar(
                means[key]["mean"], y, xerr=2 * means[key]["se"], fmt="o" if mine else "D",
                color=BLUE if mine else ORANGE, markersize=3.5, capsize=2,
            )  # fmt: skip
    ax.set_yticks(range(len(names)), reversed(names.values()))
    ax.grid(axis="x", color="0.9")
    ax.grid(axis="y", color="0.95")
    ax.set_axisbelow(True)
    ax.set_xlabel("error (%)")


def save(fig: Any, folder: Path, name: str) -> None:
    """As SVG and PNG, without dates."""
    folder.mkdir(parents=True, exist_ok=True)
    fig.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
    fig.savefig(folder / f"{name}.png", dpi=160, metadata={"Software": None})
    plt.close(fig)
    trim(folder / f"{name}.svg")


def trim(path: Path) -> None:
    """Lines without blanks at their ends, so that version control has nothing to say."""
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")
