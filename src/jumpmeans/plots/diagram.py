"""The process as a diagram: states in a ring, arrows between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .axes import axes, colours, in_unit
from .given import in_time_unit

# Radius of a state, when the ring has radius 1 and two or three states.
RADIUS = 0.24
# With more arrows than this their rates would cover each other.
MOST_NUMBERS = 20
# Arrows in both directions bend apart by so much.
BEND = 0.18


def plot_transitions(model: Any, ax: Any = None, *, least: float = 0.01, time_unit: str | None = None) -> Any:
    """Draw states as circles and moves as arrows: a diagram of what may happen and how fast.

    Parameters
    ----------
    model : fitted model or Process
    ax : matplotlib axes, optional
        A new figure if left out.
    least : float
        Moves less likely than this among those from their state are left out.
    time_unit : str, optional
        Of dwell times and rates, such as "years"; after dates it is that, or days.

    Returns
    -------
    ax : matplotlib axes
        A circle holds the state and its mean dwell; an arrow has the rate of the move (up to twenty of them), and is
        the wider, the likelier the move is among those from its state.
    """
    process, _, unit = in_time_unit(model, time_unit)
    M = len(process.rates)
    ax = axes(ax, size=(4.8, 4.2))
    angles = np.pi * (1.0 if M == 2 else 0.5) - 2.0 * np.pi * np.arange(M) / M
    centres = np.stack([np.cos(angles), np.sin(angles)], axis=1) * (M > 1)
    radius = min(RADIUS, 0.62 * np.sin(np.pi / M)) if M > 1 else RADIUS
    size = "small" if M <= 6 else "x-small"
    Q, P = process.rate_matrix, process.next_state().values
    moves = np.argwhere(P >= max(least, 1e-300))
    numbers = len(moves) <= MOST_NUMBERS
    for a, b in moves:
        _arrow(ax, centres[a], centres[b], radius, float(P[a, b]), f"{Q[a, b]:.2g}" if numbers else "", size)
    from matplotlib.patches import Circle

    for colour, label, rate, centre in zip(colours(M), process.states.tolist(), process.rates, centres, strict=True):
        ax.add_patch(Circle(tuple(centre), radius, facecolor="white", edgecolor=colour, linewidth=2.0, zorder=3))
        dwell = "for ever" if rate == 0 else f"{1.0 / rate:.3g}"
        ax.text(*centre, f"{label}\n{dwell}", ha="center", va="center", size=size, zorder=4)
    far = 1.0 + RADIUS + 0.1
    ax.set_xlim(-far, far)
    ax.set_ylim(-far if M > 2 else -0.6, far if M > 2 else 0.6)
    ax.set_aspect("equal")
    ax.set_axis_off()
    rates = f", {in_unit('rate of each move', f'1/{unit}' if unit else None)}" if numbers and len(moves) else ""
    ax.set_title(f"{in_unit('mean dwell', unit)}{rates}", loc="left", size="medium")
    return ax


def _arrow(ax: Any, start: Any, end: Any, radius: float, p: float, text: str, size: str) -> None:
    from matplotlib.patches import FancyArrowPatch

    way = end - start
    length = float(np.hypot(*way))
    across = np.array([-way[1], way[0]]) / length
    # where a bent arrow leaves and meets the circles
    turn = np.arctan(2.0 * BEND)
    ahead = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    out, into = ahead @ (way / length), ahead.T @ (way / length)
    tail, head = start + radius * 1.05 * out, end - radius * 1.08 * into
    ax.add_patch(
        FancyArrowPatch(
            tuple(tail), tuple(head), connectionstyle=f"arc3,rad={-BEND}", arrowstyle="-|>", mutation_scale=11,
            linewidth=0.6 + 2.0 * p, color="0.35", shrinkA=0, shrinkB=0, zorder=1,
        )
    )  # fmt: skip
    if not text:
        return
    chord = float(np.hypot(*(head - tail)))
    middle = 0.5 * (tail + head) + across * (0.5 * BEND * chord)
    ax.text(
        *middle, text, ha="center", va="center", size=size, zorder=2,
        bbox={"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"},
    )  # fmt: skip
