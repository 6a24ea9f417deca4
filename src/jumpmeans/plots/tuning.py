"""What was tried and how well it did: settings of a model, prices of a state."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from .axes import PALETTE, axes, legend, open_frame

# A longer entry of a legend is broken into lines.
LEGEND_LETTERS = 60


def plot_trials(trials: list[dict[str, Any]], best: int, measure: str = "held-out error", ax: Any = None) -> Any:
    """Draw the held-out error of every setting that was tried.

    Parameters
    ----------
    trials : list of dict
        As `jumpmeans.tune` returns them: parameters, `error`, `se`, the model as given first.
    best : int
        Index of the best one.
    measure : str
        Name of the error.
    ax : matplotlib axes, optional
        A new figure if left out.

    Returns
    -------
    ax : matplotlib axes
        Bars: one standard error over the hold-outs to either side. Over the number of the trial; where a single
        parameter was varied and has numbers, over its values.
    """
    if not trials or not all({"error", "se"} <= row.keys() for row in trials):
        got = "rows without" if trials else "none"
        raise ValueError(f"trials must hold at least one setting with its error and se, got {got}; see jumpmeans.tune.")
    if best not in range(len(trials)):
        raise ValueError(f"best must be the row of a trial, below {len(trials)}, got {best!r}.")
    ax = axes(ax)
    error, se = (np.array([row[name] for row in trials], dtype=np.float64) for name in ("error", "se"))
    varied = [name for name in trials[0] if name not in ("error", "se", "change", "change_se", "states", "message")]
    x, name = _trial_places(trials, varied)
    ok, winner = np.isfinite(error), np.arange(len(trials)) == best
    if ok[0]:
        ax.axhline(error[0], color="0.35", linestyle="--", linewidth=1.1, zorder=1, label="as given")
    changed = [key for key in varied if repr(trials[best][key]) != repr(trials[0][key])]
    setting = ", ".join(f"{key} {_short(trials[best][key])}" for key in changed) or "as given"
    for rows, marker, colour, label in (
        (ok & ~winner, "o", PALETTE[0], None),
        (winner, "D", PALETTE[1], textwrap.fill(f"best: {setting}", LEGEND_LETTERS)),
    ):
        ax.errorbar(
            x[rows], error[rows], np.nan_to_num(se[rows]), linestyle="none", marker=marker, markersize=4.5,
            color=colour, elinewidth=1.2, label=label, zorder=2,
        )  # fmt: skip
    if not ok.all():
        ax.plot(
            x[~ok], np.zeros((~ok).sum()), "x", color="black", markersize=5, clip_on=False, zorder=4,
            transform=ax.get_xaxis_transform(), label="failed",
        )  # fmt: skip
    if np.nanmin(x) > 0 and np.nanmax(x) / np.nanmin(x) > 50:
        ax.set_xscale("log")
    elif np.all(np.isnan(x) | (x == np.round(x))):
        ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel(name)
    ax.set_ylabel(measure)
    open_frame(ax)
    legend(ax, f"{len(trials)} settings")
    return ax


def plot_state_path(
    state_cost: Floats, n_states: NDArray[Any], error: Floats, error_se: Floats, measure: str = "held-out error",
    ax: Any = None, *, auto_cost: float | None = None,
) -> Any:  # fmt: skip
    """Draw how the number of states falls as their price grows, and the held-out error along the way.

    Parameters
    ----------
    state_cost, n_states, error, error_se : (C,)
        Columns of the table that `jumpmeans.state_path` returns.
    measure : str
        Name of the error.
    ax : matplotlib axes, optional
        A new figure if left out.
    auto_cost : float, optional
        The automatic price, to be marked.

    Returns
    -------
    ax : matplotlib axes
        Of the number of states, on the left; the error, with one standard error over the hold-outs to either side,
        has the axis on the right.
    """
    lengths = [len(column) for column in (state_cost, n_states, error, error_se)]
    if min(lengths) == 0 or len(set(lengths)) > 1:
        raise ValueError(
            f"state_cost, n_states, error and error_se must have one entry for each price, got {lengths} of them; give "
            "the columns of jumpmeans.state_path."
        )
    ax = axes(ax)
    steps, dots = PALETTE[0], PALETTE[1]
    ax.plot(state_cost, n_states, color=steps, marker="o", markersize=4, linewidth=1.6, zorder=2)
    if auto_cost is not None:
        ax.axvline(auto_cost, color="0.35", linestyle=":", linewidth=1.4, zorder=1, label="automatic price")
        legend(ax, "")
    ax.set_xscale("log")
    ax.set_xlabel("state_cost")
    ax.set_ylabel("number of states", color=steps)
    ax.set_ylim(0.0, float(np.max(n_states)) * 1.08)
    ax.yaxis.get_major_locator().set_params(integer=True)
    open_frame(ax)
    right = ax.twinx()
    right.errorbar(
        state_cost, error, np.nan_to_num(error_se), color=dots, marker="s", markersize=3.5, linewidth=1.2,
        linestyle="--", elinewidth=1.2,
    )  # fmt: skip
    right.set_ylabel(measure, color=dots)
    right.spines["top"].set_visible(False)
    for axis, colour in ((ax, steps), (right, dots)):
        axis.tick_params(axis="y", colors=colour)
    return ax


def _trial_places(trials: list[dict[str, Any]], varied: list[str]) -> tuple[Floats, str]:
    """Where trials stand and on what axis: values of the one parameter varied, if they are numbers, or their rows."""
    if len(trials) > 2 and len(varied) == 1:
        values = [row[varied[0]] for row in trials]
        if not isinstance(values[0], int | float):  # "auto", or nothing: the dashed line alone stands for it
            values[0] = np.nan
        if all(isinstance(value, int | float) for value in values):
            return np.array(values, dtype=np.float64), varied[0]
    return np.arange(len(trials), dtype=np.float64), "trial (row of the table)"


def _short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "/".join(map(_short, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)
