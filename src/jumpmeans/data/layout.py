"""Layout: which rows belong to which sequence, and where they stood in the caller's table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import AnyArray, Ints
from ..errors import PanelError, first_few, nearest


class Layout(NamedTuple):
    """Rows of sequence i are offsets[i]:offsets[i + 1]; row r was row rows[r] of the caller."""

    ids: AnyArray
    offsets: Ints
    rows: Ints

    @classmethod
    def of_codes(cls, ids: AnyArray, codes: Ints) -> Layout:
        """Rows gathered by sequence, those of one sequence in the order they came in."""
        offsets = np.concatenate([[0], np.cumsum(np.bincount(codes))])
        return cls(ids, offsets, np.argsort(codes, kind="stable"))

    @property
    def sequence_index(self) -> Ints:
        """The sequence of each row, shape (n,)."""
        return np.repeat(np.arange(len(self.ids)), np.diff(self.offsets))

    @property
    def later_rows(self) -> Ints:
        """Rows that are not the first of their sequence, shape (n - S,)."""
        later = np.ones(len(self.rows), dtype=np.bool_)
        later[self.offsets[:-1]] = False
        return np.flatnonzero(later)

    def per_sequence(self, column: AnyArray, name: str) -> AnyArray:
        """One entry per sequence of a column in the caller's order, which must be constant within an id."""
        column = column[self.rows]
        first: AnyArray = column[self.offsets[:-1]]
        same = first[self.sequence_index]
        differs = (column != same) & ~(np.isnan(column) & np.isnan(same))
        if differs.any():
            raise PanelError(
                f"{name} must be constant within an id, but differ from the first one at "
                f"{self.where(np.flatnonzero(differs))}; give every row of an id the same."
            )
        return first

    def locate(self, row: int) -> str:
        """Where a row is, in words."""
        i = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return f"sequence {self.ids[i : i + 1].tolist()[0]!r}, row {self.rows[row]}"

    def where(self, rows: Ints) -> str:
        """The first five of the given rows, in words."""
        more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        return "; ".join(self.locate(int(row)) for row in rows[:5]) + more


def find_sequences(ids: Any, known: AnyArray) -> Ints:
    """Position of each id among the known ones; of sequences with the same id the first."""
    places: dict[Any, int] = {}
    for i, key in enumerate(known.tolist()):
        places.setdefault(key, i)
    asked = np.atleast_1d(np.asarray(ids, dtype=object))
    if asked.ndim > 1:
        raise PanelError(f"ids must be one-dimensional, one for each time, got shape {asked.shape}; flatten them.")
    for key in asked.tolist():
        try:
            there = key in places
        except TypeError:  # a list, for example
            there = False
        if not there:
            raise PanelError(f"there is no sequence {key!r}{nearest(key, places)}; there are {first_few(places)}.")
    return np.fromiter((places[key] for key in asked.tolist()), np.int64, len(asked))
