"""What chance chooses of a panel: sequences drawn again, rows held out. The same in whatever parts the panel lies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Ints

if TYPE_CHECKING:
    from .panel import Panel

# Random numbers that Philox makes at each value of its counter.
PER_COUNT = 4


def resampled(panel: Panel, times: Ints) -> Panel:
    """The panel in which sequence i was drawn times[i] times: a weight, which counts as so many copies."""
    drawn = np.flatnonzero(times)
    few = panel.select(drawn)
    return replace(few, weights=few.weights * times[drawn])


def held_rows(panel: Panel, fraction: float, seed: int, first: int = 0) -> Ints:
    """Observed rows to hold out, about a share of them; `first` is the number of the panel's first row in all of it.

    Each row is told by a random number of its own, which the seed and the row's number give without those before it.
    """
    numbers = np.random.Philox(key=seed, counter=first // PER_COUNT)
    skipped = first % PER_COUNT
    chance = np.random.Generator(numbers).random(skipped + panel.n_observations)[skipped:]
    return np.flatnonzero((chance < fraction) & panel.observed)


def without_held_rows(panel: Panel, fraction: float, seed: int, first: int) -> Panel:
    """The panel without what its held rows tell."""
    return panel.blank(held_rows(panel, fraction, seed, first))
