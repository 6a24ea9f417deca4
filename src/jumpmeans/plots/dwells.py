"""How long dwells last, against the exponential law that a Markov process gives them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Bools, Floats
from .axes import axes, colours, in_unit, legend, open_frame
from .given import in_time_unit

# Fewer ended dwells than this say nothing of a law.
FEWEST = 3


def plot_dwells(model: Any, trajectories: Any = None, ax: Any = None, *, time_unit: str | None = None) -> Any:
    """Draw the share of dwells that last longer, by state: of trajectories (steps), and exponential (dashed).

    Parameters
    ----------
    model : fitted model
    trajectories : Trajectories, optional
        By default `model.trajectories_`; `model.decode(panel)` for another panel.
    ax : matplotlib axes, optional
        A new figure if left out.
    time_unit : str, optional
        Of the time axis, such as "years"; after dates it is that, or days.

    Returns
    -------
    ax : matplotlib axes
        On a logarithmic scale, where an exponential law is a line. Steps are Kaplan and Meier's: a dwell that still
        runs at the end of its window counts as long as it was seen. States with fewer than three ended dwells are left
        out.

    Notes
    -----
    Steps that fall off sooner than their line mean shorter dwells, later ones longer. A decoder leaves out dwells too
    short to tell, so that steps begin flat also where the law holds.
    """
    from matplotlib.ticker import LogLocator

    process, length, unit = in_time_unit(model, time_unit)
    paths = getattr(model, "trajectories_", None) if trajectories is None else trajectories
    if paths is None:
        raise ValueError(
            f"trajectories must be given for a {type(model).__name__}, which has none of its own; "
            "give model.decode(panel)."
        )
    ax = axes(ax)
    lengths, ended = paths.dwell_times() / length, ~paths.running
    low = 1.0
    for m, (colour, state) in enumerate(zip(colours(len(process.states)), process.states.tolist(), strict=True)):
        own = paths.codes == m
        if np.sum(own & ended) < FEWEST:
            continue
        t, share = _lasting(lengths[own], ended[own])
        ax.step(t, share, where="post", color=colour, linewidth=1.6, label=str(state))
        far = np.array([0.0, t[-1]])
        ax.plot(far, np.exp(-process.rates[m] * far), color=colour, linewidth=1.0, linestyle="--")
        low = min(low, float(share[share > 0].min()))
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))  # between the powers of ten, which may be one
    ax.yaxis.set_minor_formatter("{x:g}")
    ax.set_ylim(0.7 * low, 1.1)
    ax.set_ylabel("share of dwells that last longer")
    ax.set_xlabel(in_unit("length of a dwell", unit))
    open_frame(ax)
    legend(ax, "state: decoded (steps), exponential (dashed)")
    return ax


def _lasting(lengths: Floats, ended: Bools) -> tuple[Floats, Floats]:
    """Kaplan and Meier's share of dwells that last longer than each length, from 0 on."""
    t, index = np.unique(lengths[ended], return_inverse=True)
    ends = np.bincount(index)
    at_risk = len(lengths) - np.searchsorted(np.sort(lengths), t)
    share = np.cumprod(1.0 - ends / at_risk)
    return np.append(0.0, t), np.append(1.0, share)
