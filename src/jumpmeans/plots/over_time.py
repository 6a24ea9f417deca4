"""Shares of states over time, observed against expected, and the chance of not having got somewhere."""

from __future__ import annotations

from typing import Any

import numpy as np

from .axes import axes, colours, in_unit, legend, open_frame
from .given import in_time_unit

# Curves are drawn through so many points.
POINTS = 200


def plot_prevalence(
    model: Any, panel: Any, times: Any = None, ax: Any = None, *, initial: Any = None, carry: bool | str = True,
    time_unit: str | None = None,
) -> Any:  # fmt: skip
    """Draw the share of sequences in each state over time: as observed (dots), and as the process expects (lines).

    Parameters
    ----------
    model : fitted model
    panel : Panel or frame
    times : (K,), optional
        Times since the start of each window, of the dots, as `prevalence` takes them; by default eleven from 0 to the
        longest.
    ax : matplotlib axes, optional
        A new figure if left out.
    initial, carry : optional
        Where sequences start, and whether those in an absorbing state stay counted, as in `prevalence`.
    time_unit : str, optional
        Of the time axis, such as "years"; after dates it is that, or days.

    Returns
    -------
    ax : matplotlib axes
        Dots grow with the number of sequences under observation.
    """
    process, length, unit = in_time_unit(model, time_unit)
    seen = model.prevalence(panel, times, initial=initial, carry=carry)
    grid = np.linspace(0.0, float(seen.times.max()), POINTS)
    expected = model.prevalence(panel, grid, initial=initial).expected.values
    ax = axes(ax)
    sizes = 4.0 + 32.0 * seen.n / max(float(seen.n.max()), 1.0)
    for m, (colour, state) in enumerate(zip(colours(len(process.states)), process.states.tolist(), strict=True)):
        ax.plot(grid / length, expected[:, m], color=colour, linewidth=1.4, label=str(state))
        dots = seen.observed.values[:, m]
        ax.scatter(seen.times / length, dots, s=sizes, color=colour, linewidths=0, clip_on=False, zorder=3)
    ax.set_ylim(0.0, 1.0)
    ax.set_ylabel("share of sequences")
    _since(ax, unit)
    legend(ax, "state: observed (dots), expected (lines)")
    return ax


def plot_survival(
    model: Any, target: Any, times: Any = None, ax: Any = None, *, start: Any = None, time_unit: str | None = None
) -> Any:
    """Draw the probability of not having reached a target over time, from each state or from one start.

    Parameters
    ----------
    model : fitted model or Process
    target : state or list of states
    times : (K,), optional
        In the unit of the axis; by default up to three times the longest median (a third of the way down), where
        there is one.
    ax : matplotlib axes, optional
        A new figure if left out.
    start : state or (M,) probabilities, optional
        As in `survival`.
    time_unit : str, optional
        Of the time axis, such as "years"; after dates it is that, or days.

    Returns
    -------
    ax : matplotlib axes
    """
    process, _, unit = in_time_unit(model, time_unit)
    if times is None:
        times = np.linspace(0.0, _far(process, target), POINTS)
    table = model.survival(target, times, start, time_unit)
    t = np.asarray(table.rows, dtype=np.float64)
    ax = axes(ax)
    shades = dict(zip(process.states.tolist(), colours(len(process.states)), strict=True))
    for c, label in enumerate(table.columns.tolist()):
        if np.any(table.values[:, c] > 0):  # a start in the target has nothing to wait for
            ax.plot(t, table.values[:, c], color=shades.get(label, "black"), linewidth=1.6, label=str(label))
    ax.set_ylim(0.0, 1.02)
    ax.set_ylabel(table.name)
    _since(ax, unit)
    legend(ax, "start")
    return ax


def _far(process: Any, target: Any) -> float:
    """A time by which most that will happen has happened."""
    table = process.first_passage(target)
    medians = table.values[:, 2]
    medians = medians[np.isfinite(medians) & (medians > 0)]
    if len(medians):
        return 3.0 * float(medians.max())
    rates = process.rates[process.rates > 0]
    return 5.0 / float(rates.min()) if len(rates) else 1.0


def _since(ax: Any, unit: str | None) -> None:
    ax.set_xlabel(in_unit("time since the start", unit))
    ax.margins(x=0.02)
    open_frame(ax)
