"""What a fit optimises, iteration by iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from .axes import PALETTE, axes, open_frame


def plot_history(model: Any, ax: Any = None) -> Any:
    """Draw what the fit optimises, after each of its iterations.

    Parameters
    ----------
    model : fitted model
        Of JumpMeans the objective, which falls; of EM and the samplers their log-density.
    ax : matplotlib axes, optional
        A new figure if left out.

    Returns
    -------
    ax : matplotlib axes
    """
    values, name = getattr(model, "objective_history_", None), "objective J"
    if values is None and hasattr(model, "history_"):
        values, name = model.history_.values, "log-density"
    if values is None:
        raise NotFittedError(
            f"model must be fitted and keep a history, got {type(model).__name__}; call fit(panel) first."
        )
    ax = axes(ax)
    marker = "o" if len(values) <= 40 else None
    ax.plot(np.arange(1, len(values) + 1), values, color=PALETTE[0], marker=marker, markersize=3.5, linewidth=1.6)
    ax.set_xlabel("iteration")
    ax.set_ylabel(name)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.ticklabel_format(axis="y", useOffset=False)
    open_frame(ax)
    return ax
