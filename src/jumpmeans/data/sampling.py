"""A few sequences that stand for a panel, and the weight of its rows: the same in whatever parts it lies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..arrays import Floats, Ints
from .deriving import pieces

if TYPE_CHECKING:
    from .panel import Panel
    from .rows import Rows

# A long sequence is cut so that the sample holds at least this many, if there are.
SAMPLED_SEQUENCES = 20


class Tally(NamedTuple):
    """Rows counted by the weight of their sequence: distinct weights, rising, and how many rows have each."""

    weights: Floats
    counts: Ints

    @property
    def total(self) -> float:
        """Weight of all rows, rounded once: no order of them can change a bit."""
        return math.fsum((self.weights * self.counts).tolist())


def tally(panel: Rows, d: int | None = None) -> Tally:
    """Rows with a value in column d, or in any."""
    present = panel.observed if d is None else ~np.isnan(panel.values[:, d])
    if np.all(panel.weights == panel.weights[0]):
        return Tally(panel.weights[:1], np.array([np.count_nonzero(present)]))
    per_sequence = np.add.reduceat(present.astype(np.int64), panel.offsets[:-1])
    weights, place = np.unique(panel.weights, return_inverse=True)
    return Tally(weights, np.bincount(place.ravel(), weights=per_sequence).astype(np.int64))


def joined_tally(parts: list[Tally]) -> Tally:
    """Rows of all parts."""
    weights, place = np.unique(np.concatenate([part.weights for part in parts]), return_inverse=True)
    counts = np.concatenate([part.counts for part in parts])
    return Tally(weights, np.bincount(place.ravel(), weights=counts).astype(np.int64))


class Marks(NamedTuple):
    """What sequences are ordered by for a sample: lengths (S,) and keys (K, S), the last one first."""

    lengths: Ints
    keys: Floats


def marks_of(panel: Panel) -> Marks:
    """Marks of the sequences of a panel."""
    place = np.arange(panel.n_observations) - np.repeat(panel.offsets[:-1], panel.lengths) + 1.0
    values = np.nan_to_num(panel.values)
    keys = [
        np.add.reduceat(values[:, d] * weight, panel.offsets[:-1])
        for d in range(panel.n_columns)
        for weight in (np.sqrt(place), place, np.ones(len(place)))
    ]
    return Marks(panel.lengths, np.array([*keys, panel.end_times - panel.start_times]))


def choose(parts: list[Marks], most_rows: int) -> tuple[Ints, int]:
    """Sequences of a sample of about `most_rows` rows, and how many rows of each at most.

    They are spread evenly over all in the order of their length and values, so that their order does not matter.
    """
    lengths = np.concatenate([part.lengths for part in parts])
    S = len(lengths)
    longest = most_rows // min(S, SAMPLED_SEQUENCES)
    order = np.lexsort([*np.concatenate([part.keys for part in parts], axis=1), lengths])
    n = max(1, min(S, int(most_rows / np.minimum(lengths, longest).mean())))
    return np.sort(order[((np.arange(n) + 0.5) * S / n).astype(np.int64)]), longest


def sample(panel: Panel, most_rows: int, size: int | None = None) -> Panel:
    """The panel, or about `most_rows` of its rows: sequences, or pieces of at most `size` rows, spread over all."""
    if panel.n_observations <= most_rows:
        return panel
    if size:
        panel = pieces(panel, size)
    chosen, longest = choose([marks_of(panel)], most_rows)
    return panel.select(chosen).head(longest)
