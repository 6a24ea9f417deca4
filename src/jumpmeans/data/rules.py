"""What must hold of a panel, said with the sequence, the row and the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Floats, Ints
from ..errors import PanelError
from ..kinds import FORCES, PINS

if TYPE_CHECKING:
    from .rows import Rows


# Weights count copies: sums of more of them, times readings, would leave what floats hold.
LARGEST_WEIGHT = 1e100
# Digits of a float: what is lighter than the heaviest by more counts for nothing.
WIDEST_WEIGHTS = 1e15


def check_panel(panel: Rows) -> None:
    """Refuse a panel that breaks a rule."""
    _check_times(panel)
    _check_kinds(panel)
    _check_windows(panel)
    _check_values(panel)
    _check_weights(panel)


def _check_times(panel: Rows) -> None:
    times = panel.times
    if not len(times):
        raise PanelError("a panel must have at least one sequence, got none.")
    bad = np.flatnonzero(~np.isfinite(times))
    if bad.size:
        raise PanelError(
            f"times must be finite, got {panel.show_time(times[bad[0]])} at {panel.layout.where(bad)}; "
            "fill in the times or drop these rows."
        )
    bad = _not_rising(panel, times)
    if bad.size:
        before, now = times[bad[0] - 1 : bad[0] + 1]
        if now == before:
            got = f"{panel.show_time(now)} twice"
            remedy = "keep one of the two rows, merge them, or say by kind= that the later one tells of a move"
        else:
            got = f"{panel.show_time(now)} after {panel.show_time(before)}"
            remedy = "sort the rows by time within each id"
        raise PanelError(
            f"times must increase strictly within a sequence, got {got} at {panel.layout.where(bad)}; {remedy}."
        )


def _check_windows(panel: Rows) -> None:
    first, last = panel.times[panel.offsets[:-1]], panel.times[panel.offsets[1:] - 1]
    late = ~(panel.start_times <= first) | np.isinf(panel.start_times)
    early = ~(panel.end_times >= last) | np.isinf(panel.end_times)
    for bad, rule, got in (
        (late, "start at or before its first time", panel.start_times),
        (early, "end at or after its last time", panel.end_times),
    ):
        if bad.any():
            raise PanelError(
                f"the window of a sequence must {rule}, got {panel.show_time(got[bad][0])} at "
                f"{panel.layout.where(panel.offsets[:-1][bad])}; widen the window or drop the rows outside it."
            )
    relative = panel.relative_times()
    rows = np.union1d(_not_rising(panel, relative), np.flatnonzero(np.isinf(relative)))
    if rows.size:
        time, start = panel.times[rows[0]], panel.start_times[panel.sequence_index[rows[0]]]
        raise PanelError(
            "times less the start of their sequence must be finite and increase in floating point, got "
            f"{time} less {start}, too far apart, at {panel.layout.where(rows)}; "
            "move the origin of time, or the start of the window, nearer to the data."
        )


def _check_values(panel: Rows) -> None:
    infinite = np.isinf(panel.values)
    if infinite.any():
        rows, d = np.nonzero(infinite)
        raise PanelError(
            f"values must be finite or missing, got {panel.values[rows[0], d[0]]} in column "
            f"{panel.columns[d[0]]!r} at {panel.layout.where(rows)}; put NaN where a value is missing."
        )


def _check_weights(panel: Rows) -> None:
    bad = ~((panel.weights > 0) & (panel.weights <= LARGEST_WEIGHT))
    if bad.any():
        raise PanelError(
            f"weights must be positive and at most {LARGEST_WEIGHT:g}, got {panel.weights[bad][0]} at "
            f"{panel.layout.where(panel.offsets[:-1][bad])}; drop the rows of a sequence that should not count."
        )
    lost = panel.weights < panel.weights.max(initial=0.0) / WIDEST_WEIGHTS
    if lost.any():
        raise PanelError(
            f"weights must lie within a factor of {WIDEST_WEIGHTS:g}, or the lightest vanish in every sum, got "
            f"{panel.weights[lost][0]:g} at {panel.layout.where(panel.offsets[:-1][lost])} beside "
            f"{panel.weights.max():g}; drop the rows of a sequence that should not count."
        )


def _check_kinds(panel: Rows) -> None:
    if panel.kinds is None:
        return
    later = panel.layout.later_rows
    entry = FORCES[panel.kinds]
    bad = later[(panel.times[later] == panel.times[later - 1]) & entry[later] & entry[later - 1]]
    if bad.size:
        raise PanelError(
            f"two states must not be entered at one instant, got {panel.show_time(panel.times[bad[0]])} twice at "
            f"{panel.layout.where(bad)}; drop the first of them, or move it to an earlier time."
        )


def _not_rising(panel: Rows, x: Floats) -> Ints:
    """Rows whose entry is not above that of the row before it in the same sequence.

    It may equal that one where the row tells of a move at its very instant, or tells nothing.
    """
    if panel.kinds is None:  # without numbers of rows, which would take the memory of several columns
        bad = x[1:] <= x[:-1]
        bad[panel.offsets[1:-1] - 1] = False
        return np.flatnonzero(bad) + 1
    later = panel.layout.later_rows
    tells = panel.observed if panel.known is None else panel.observed | (panel.known >= 0)
    both = PINS[panel.kinds] | ~tells
    same = panel.times[later] == panel.times[later - 1]
    return later[np.where(both[later] & same, x[later] < x[later - 1], x[later] <= x[later - 1])]
