"""The process as a table of colours: how long states last, and where they go."""

from __future__ import annotations

from typing import Any

import numpy as np

from .axes import LETTERS_PER_INCH, axes, in_unit, inches_wide
from .given import in_time_unit, mean_of, state_names

# More cells than this on a side leave no room for numbers.
MOST_CELLS = 12
CELL = "probability of the jump"


def plot_states(model: Any, ax: Any = None, *, time_unit: str | None = None, value_unit: str | None = None) -> Any:
    """Draw how long each state lasts on average and where it goes: the process as a table of colours.

    Parameters
    ----------
    model : fitted model or Process
    ax : matplotlib axes, optional
        A new figure if left out.
    time_unit, value_unit : str, optional
        Of the mean dwell times, such as "years"; after dates it is that, or days. Of the means of the states.

    Returns
    -------
    ax : matplotlib axes
        Row: the state left, its mean dwell time 1/λ at the right. Cell: probability of the jump.
    """
    process, _, unit = in_time_unit(model, time_unit)
    M = len(process.rates)
    P = np.ma.masked_array(process.transition_probs, np.eye(M, dtype=bool))
    ax = axes(ax, size=(4.8, 3.0 + max(0.0, 0.22 * (M - 6))))
    image = ax.imshow(P, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    ax.set_facecolor("0.93")
    names, means = state_names(process)
    short = [str(label) for label in process.states.tolist()]
    crowded = (max(map(len, short)) + 2) * M > LETTERS_PER_INCH * 0.8 * inches_wide(ax)
    ax.set_xticks(range(M), short, rotation=90 if crowded else 0)
    ax.set_yticks(range(M), names)
    ax.set_xlabel("to state")
    ax.set_ylabel(f"from state ({mean_of(value_unit)})" if means else "from state")
    dwells = [f"{1.0 / rate:.3g}" if rate > 0 else "for ever" for rate in process.rates]
    right = ax.secondary_yaxis("right")
    right.set_yticks(range(M), dwells)
    right.set_ylabel(in_unit("mean dwell time", unit))
    right.tick_params(length=0)
    right.spines["right"].set_visible(False)
    ax.tick_params(length=0)
    ax.set_xticks(np.arange(M + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(M + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.5)
    ax.tick_params(which="minor", length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if M > MOST_CELLS:
        ax.figure.colorbar(image, ax=ax, label=CELL, pad=0.12)
        return ax
    ax.set_title(CELL, loc="left", size="medium")
    size = "medium" if M <= 6 else "x-small"
    for a, b in np.argwhere(~np.eye(M, dtype=bool)):
        p = process.transition_probs[a, b]
        if p > 0:
            text = f"{p:.2f}" if p >= 0.005 else "<.01"
            ax.text(b, a, text, ha="center", va="center", size=size, color="white" if p > 0.55 else "black")
    return ax
