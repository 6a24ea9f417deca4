"""The probability of every state over the window of one sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators.read_out import as_panel
from .axes import axes, colours, legend, time_axis
from .given import mean_of, position, process_of, state_names

# More looks than this would hide the lowest probabilities under ticks.
MOST_TICKS = 150


def plot_posterior(
    model: Any, panel: Any, id: Any, ax: Any = None, *, time_unit: str | None = None, value_unit: str | None = None
) -> Any:
    """Draw the probability of every state over the window of one sequence, stacked to 1.

    Parameters
    ----------
    model : fitted model
        With `predict_proba(panel, at=...)`.
    panel : Panel or frame
    id : str or int
        The sequence.
    ax : matplotlib axes, optional
        A new figure if left out.
    time_unit, value_unit : str, optional
        Of the time axis, such as "hours"; dates need none. Of the means of the states.

    Returns
    -------
    ax : matplotlib axes
        Rows with a value are ticked along the bottom, unless there are too many to tell apart.
    """
    process = process_of(model)
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"model must have predict_proba(panel, at=...), got {type(model).__name__}; give the fitted model."
        )
    panel = as_panel(panel)
    i = position(panel.ids, id, "panel")
    one = panel.select([i])
    grid = np.unique(np.concatenate([np.linspace(one.start_times[0], one.end_times[0], 400), one.times]))
    probs = model.predict_proba(one, at={id: grid})
    ax = axes(ax)
    when = one.decode_times(grid)
    names, means = state_names(process)
    ax.stackplot(when, probs.T, colors=colours(len(names)), labels=names, linewidth=0.0, alpha=0.9)
    looks = one.decode_times(one.times[one.observed])
    if len(looks) <= MOST_TICKS:
        for shade, width in (("white", 2.6), ("black", 1.0)):
            ax.plot(
                looks, np.zeros(len(looks)), "|", color=shade, markersize=8, markeredgewidth=width, clip_on=False,
                zorder=5,
            )  # fmt: skip
    ax.set_ylim(0.0, 1.0)
    ax.set_ylabel("probability")
    time_axis(ax, panel.clock, time_unit)
    legend(ax, f"sequence {id}, state" + (f" ({mean_of(value_unit)})" if means else ""))
    return ax
