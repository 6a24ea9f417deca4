"""A sequence without any path, in words that a user can act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..data.panel import Panel
from ..engines.scanned import ScannedPanel
from ..errors import InfeasibleError
from ..passes import NoPathError


@contextmanager
def explained(panel: Any, why: str, remedy: str = "") -> Iterator[None]:
    """Turn the internal error of a sequence without any path into one that a user can act on."""
    try:
        yield
    except NoPathError as error:
        row, shown = error.row, error.shown
        if isinstance(panel, ScannedPanel):
            said, file = panel.at(error.sequence, no_path_of, row, shown, why, remedy)
            raise InfeasibleError(f"in {file!r}: {said}") from None
        raise InfeasibleError(no_path_of(panel, error.sequence, row, shown, why, remedy)) from None


def no_path_of(panel: Panel, sequence: int, place: int, shown: bool, why: str, remedy: str) -> str:
    """What to say of a sequence that has no path, which dies at a place within it; `shown` as of `NoPathError`."""
    first, last = panel.offsets[sequence], panel.offsets[sequence + 1]
    row = min(max(int(first) + place, int(first)), int(last) - 1)
    if not shown:
        values = [panel.decode_values(panel.values[row, d : d + 1], d).tolist()[0] for d in range(panel.n_columns)]
        return (
            "some state must be able to show each row, at a cost that floats can hold, got none for "
            f"{values[0] if len(values) == 1 else values!r} at {panel.locate(row)}; correct the row, rescale the "
            "column, or lower emission_weight."
        )
    if panel.kinds is not None and panel.kinds[row] and panel.times[row] <= panel.start_times[sequence]:
        return (
            f"a move must not be at the start of its window, got one at {panel.locate(row)}, which leaves a dwell "
            "of length 0 before it; let the window begin earlier (start=...), or say first_dwell='running'."
        )
    pair, is_first = pair_of(panel, row)
    allow = "allow it to be first (Structure(initial=...))" if is_first else "allow the move (Structure(allowed=...))"
    return f"{why} must be able to explain every sequence, got none for {pair}; {allow}, {remedy}or correct the row."


def pair_of(panel: Panel, row: int) -> tuple[str, bool]:
    """A row and the one before it that shows anything, in words; and whether there is none."""
    first = int(panel.offsets[panel.sequence_index[row]])
    before = np.flatnonzero(panel.observed[first:row]) + first
    place = f"{panel.locate(row)} ({_shown(panel, row)}"
    if not len(before):
        return f"{place}, the first to show anything)", True
    last = int(before[-1])
    return f"{place} after {_shown(panel, last)} in row {panel.layout.rows[last]})", False


def _shown(panel: Panel, row: int) -> str:
    """What a row shows and when, in words."""
    values = [
        f"{x:g}" if labels is None else repr(labels.tolist()[int(x)])
        for x, labels in zip(panel.values[row].tolist(), panel.categories, strict=True)
        if np.isfinite(x)
    ]
    return f"{' and '.join(values) or 'nothing'} at time {panel.show_time(panel.times[row])}"
