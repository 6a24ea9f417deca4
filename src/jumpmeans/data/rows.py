"""The arrays of a panel, and what is read off them: sizes, gaps, times and values as the caller knows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import AnyArray, Bools, Floats, Ints
from ..errors import PanelError, first_few, nearest
from .clock import Clock, encode_times
from .covariates import Covariates
from .known import Kinds, StateSet, allowed_states, tidy_kinds
from .layout import Layout
from .rules import check_panel
from .sampling import tally


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """What a `Panel` holds; see there. Checked and made read-only at once."""

    times: Floats
    values: Floats
    offsets: Ints
    ids: AnyArray
    start_times: Floats
    end_times: Floats
    weights: Floats
    groups: AnyArray | None
    rows: Ints
    columns: tuple[str, ...]
    categories: tuple[AnyArray | None, ...]
    integer: tuple[bool, ...]
    clock: Clock | None = None
    frame_backend: str | None = None
    kinds: Kinds | None = None
    known: Ints | None = None
    state_sets: tuple[StateSet, ...] = ()
    covariates: Covariates | None = None

    def __post_init__(self) -> None:
        for name in ("times", "values", "start_times", "end_times", "weights"):
            self._freeze(name, np.float64)
        for name in ("offsets", "rows"):
            self._freeze(name, np.int64)
        self._freeze("ids")
        if self.groups is not None:
            self._freeze("groups")
        if self.known is not None:
            self._freeze("known", np.int64)
        if self.kinds is not None:
            object.__setattr__(self, "kinds", tidy_kinds(self))
        for labels in (*self.categories, *(self.covariates.categories if self.covariates else ())):
            if labels is not None:
                labels.flags.writeable = False
        check_panel(self)

    def _freeze(self, name: str, dtype: npt.DTypeLike | None = None) -> None:
        view = np.asarray(getattr(self, name), dtype=dtype).view()
        view.flags.writeable = False
        object.__setattr__(self, name, view)

    @property
    def layout(self) -> Layout:
        """Which rows belong to which sequence, and where they stood in the caller's table."""
        return Layout(self.ids, self.offsets, self.rows)

    @property
    def n_sequences(self) -> int:
        """Number of sequences, S."""
        return len(self.ids)

    @property
    def n_observations(self) -> int:
        """Number of rows, n, those with missing values included."""
        return len(self.times)

    @property
    def n_columns(self) -> int:
        """Number of columns of values, D."""
        return int(self.values.shape[1])

    @property
    def lengths(self) -> Ints:
        """Rows of each sequence, shape (S,)."""
        return np.diff(self.offsets)

    @property
    def observed(self) -> Bools:
        """Whether a row has at least one value, shape (n,)."""
        seen: Bools = np.any(~np.isnan(self.values), axis=1)
        return seen

    @property
    def sequence_index(self) -> Ints:
        """The sequence of each row, shape (n,)."""
        return self.layout.sequence_index

    @property
    def shortest_gap(self) -> float:
        """Least time between successive rows of a sequence with a value, if not of one instant; infinite if none."""
        rows = np.flatnonzero(self.observed)
        gaps = np.diff(self.times[rows])
        return float(gaps[(np.diff(self.sequence_index[rows]) == 0) & (gaps > 0)].min(initial=np.inf))

    @property
    def early(self) -> str | None:
        """Where a row is, in words, that is the first of its sequence and lies within its window; None if none does."""
        found = np.flatnonzero(self.times[self.offsets[:-1]] > self.start_times)
        return self.locate(int(self.offsets[found[0]])) if len(found) else None

    def n_present(self, column: int | None = None) -> int:
        """Number of rows with a value in a column, or in any."""
        return int(tally(self, column).counts.sum())

    def present_weight(self, column: int | None = None) -> float:
        """Weight of the rows with a value in a column, or in any."""
        return tally(self, column).total

    def gaps(self) -> tuple[Floats, Floats]:
        """(k,) times between successive rows of the same sequence that are not at one instant; (k,) weight of each."""
        later = self.layout.later_rows
        later = later[self.times[later] > self.times[later - 1]]
        return self.times[later] - self.times[later - 1], self.weights[self.sequence_index[later]]

    @property
    def sets(self) -> dict[Any, tuple[Any, ...]]:
        """Labels that mean one of several states, as `from_frame` takes them."""
        return {name: states for name, states in self.state_sets if states != (name,)}

    def allowed_states(self, labels: AnyArray) -> Bools | None:
        """States that each row is known to be in one of.

        Parameters
        ----------
        labels : ndarray, shape (M,)
            Labels of the states of a model; what rows are known to be in must be among them.

        Returns
        -------
        ndarray of bool, shape (n, M), or None
            All of them for a row of which nothing is known; None if that is so of every row.
        """
        return allowed_states(self, labels)

    def relative_times(self) -> Floats:
        """Times since the start of the window of the own sequence, shape (n,)."""
        with np.errstate(over="ignore"):
            return self.times - np.repeat(self.start_times, self.lengths)

    def to_caller_order(self, x: npt.ArrayLike) -> AnyArray:
        """Entries of shape (n, ...), one per row of the panel, in the order of the table it was made of."""
        x = np.asarray(x)
        out = np.empty_like(x)
        out[self.rows] = x
        return out

    def locate(self, row: int) -> str:
        """Where a row of the panel is, in words: its sequence and the caller's row number."""
        return self.layout.locate(row)

    def show_time(self, time: float) -> str:
        """A time of the panel as text: a date if times came as dates."""
        if self.clock is None:
            return f"{time:.15g}"
        return str(np.datetime_as_string(self.clock.decode(time), unit="auto"))

    def decode_times(self, x: npt.ArrayLike) -> AnyArray:
        """Times of the panel as the caller knows them, in the same shape: datetime64[ns] if they came as dates."""
        return self.clock.decode(x) if self.clock else np.asarray(x)

    def encode_times(self, t: Any) -> Floats:
        """Times in the unit of `times`; the inverse of `decode_times`.

        Parameters
        ----------
        t : scalar or sequence, shape (k,)
            Numbers in the unit of `times` or durations; in a panel of dates also dates or ISO strings.

        Returns
        -------
        ndarray of float64, same shape
        """
        return encode_times(t, self.clock)

    def labels(self, column: int | str = 0) -> AnyArray:
        """Distinct labels of a column, sorted unless the column declared an order.

        Parameters
        ----------
        column : int or str
            Position or name of a column of values.

        Returns
        -------
        ndarray
            The categories of a column of labels, else the values that occur (int64 if all are whole numbers).
        """
        d = self._column(column)
        categories = self.categories[d]
        if categories is not None:
            return categories
        present = np.unique(self.values[:, d])
        return self.decode_values(present[~np.isnan(present)], d)

    def decode_values(self, x: npt.ArrayLike, column: int | str = 0) -> AnyArray:
        """Values of a column as the caller knows them: labels if they came as labels.

        Parameters
        ----------
        x : array_like of float
            Values as in that column of `values`.
        column : int or str
            Position or name of a column of values.

        Returns
        -------
        ndarray, same shape
            Labels (None where missing) of a column of labels; int64 for a column of whole numbers if none is
            missing; else float64.
        """
        d = self._column(column)
        x = np.asarray(x, dtype=np.float64)
        missing = np.isnan(x)
        categories = self.categories[d]
        if categories is None:
            return x.astype(np.int64) if self.integer[d] and not missing.any() else x
        labels = categories[np.where(missing, 0, x).astype(np.int64)]
        if missing.any():
            labels = labels.astype(object)
            labels[missing] = None
        return labels

    def _column(self, column: int | str) -> int:
        if not isinstance(column, str):
            return column
        if column not in self.columns:
            raise PanelError(
                f"there is no column {column!r}{nearest(column, self.columns)}; there are {first_few(self.columns)}."
            )
        return self.columns.index(column)
