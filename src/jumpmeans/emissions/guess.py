"""Which family a column is, by its values: a guess, with the reason for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from ..data.panel import Panel

# Whole numbers are taken for labels if there are at most so many different ones, each seen so often on the average.
MOST_LABELS, EACH_SEEN = 10, 5


class Guess(NamedTuple):
    """A family by name, and why it was taken."""

    family: str
    why: str


def guess_families(panel: Panel, n_states: int | None = None) -> list[Guess]:
    """A family for each column.

    Labels, and whole numbers of which there are few, are taken for the states themselves where they are the only column
    and no other number of states was asked for; else for symbols of hidden ones. All other numbers are measurements.
    """
    return [_guess(panel, d, n_states) for d in range(panel.n_columns)]


def _guess(panel: Panel, d: int, n_states: int | None) -> Guess:
    labels, name = panel.labels(d), panel.columns[d]
    x = panel.values[:, d]
    if panel.categories[d] is None:
        few = panel.integer[d] and 0 < len(labels) <= MOST_LABELS
        if not few or np.isfinite(x).sum() < EACH_SEEN * len(labels):
            return Guess("gaussian", f"{name!r} holds numbers")
        what = f"{name!r} holds {len(labels)} different whole numbers, taken for labels"
    else:
        what = f"{name!r} holds labels"
    if panel.n_columns > 1:
        return Guess("categorical", f"{what}, one of several columns")
    if n_states is not None and n_states != len(labels):
        return Guess("categorical", f"{what}, and {n_states} states are not {len(labels)}")
    return Guess("direct", f"{what}, which are the states")
