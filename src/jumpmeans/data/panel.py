"""Panel: many sequences of irregular observations as flat arrays, validated once and then read-only."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from jumpmeans.data.clock import DAY, Clock
from jumpmeans.data.columns import (
    AnyArray,
    FloatArray,
    IntArray,
    all_integers,
    read_column,
    read_keys,
    read_numbers,
    read_times,
    read_values,
)
from jumpmeans.errors import MissingExtraError, PanelError

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Panel:
    """Sequences of irregularly timed observations; made by `from_frame`, `from_arrays` or `read_panel`.

    Sequences stand in the order in which their ids first appear, the rows of one sequence in time order.
    All arrays are read-only. A sequence of one row and a sequence without any value are allowed.

    Parameters
    ----------
    times : ndarray of float64, shape (n,)
        Times in the caller's unit; for dates, days since ``clock.origin``.
    values : ndarray of float64, shape (n, D)
        One column per observed quantity; NaN is missing. Labels are held as indices into `categories`.
    offsets : ndarray of int64, shape (S + 1,)
        Sequence ``i`` has the rows ``offsets[i]:offsets[i + 1]``.
    ids : ndarray, shape (S,)
        Integers, or objects that are strings.
    start_times, end_times : ndarray of float64, shape (S,)
        The window of each sequence; by default its first and last time.
    weights : ndarray of float64, shape (S,)
        How often each sequence counts.
    groups : ndarray, shape (S,), or None
        What the sequences have in common, for example the patient.
    rows : ndarray of int64, shape (n,)
        The caller's number of each row, counted from 0.
    columns : tuple of str, length D
        Names of the columns of `values`.
    categories : tuple of (ndarray or None), length D
        The sorted labels of a column of labels, None for a column of numbers.
    integer : tuple of bool, length D
        Whether a column holds nothing but whole numbers, so that they may be shown as integers.
    clock : Clock or None
        How dates became numbers, None for times that were numbers.

    Examples
    --------
    >>> panel = Panel.from_arrays([0.0, 1.5, 0.0], ["mild", "severe", "mild"], ids=["a", "a", "b"])
    >>> panel
    Panel(2 sequences, 3 rows, times 0 to 1.5, values of 'value')
    >>> panel.values.ravel(), panel.labels(0)
    (array([0., 1., 0.]), array(['mild', 'severe'], dtype=object))
    """

    times: FloatArray
    values: FloatArray
    offsets: IntArray
    ids: AnyArray
    start_times: FloatArray
    end_times: FloatArray
    weights: FloatArray
    groups: AnyArray | None
    rows: IntArray
    columns: tuple[str, ...]
    categories: tuple[AnyArray | None, ...]
    integer: tuple[bool, ...]
    clock: Clock | None = None

    # ------------------------------------------------------------------ making

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        id: str = "id",
        time: str = "time",
        value: str | Sequence[str] = "value",
        weight: str | None = None,
        group: str | None = None,
        start: str | None = None,
        end: str | None = None,
    ) -> Panel:
        """Panel of a long table: one row per observation.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table
            Never changed. Rows of one id need not be adjacent, but must be in order of time.
        id, time : str
            Columns of ids (integers or strings) and of times (numbers or dates).
        value : str or list of str
            One or more columns of values: numbers, or labels (strings, booleans, categoricals).
        weight, group, start, end : str, optional
            Columns that are constant within an id: the weight of the sequence, its group, and its window.

        Returns
        -------
        Panel

        Raises
        ------
        PanelError
            If the table breaks a rule of the panel; the message names the sequence, the row and the way out.

        Examples
        --------
        >>> import pandas as pd
        >>> visits = pd.DataFrame({"patient": ["a", "a", "b"], "day": [0, 30, 0], "edss": [2.0, None, 4.5]})
        >>> Panel.from_frame(visits, id="patient", time="day", value="edss")
        Panel(2 sequences, 3 rows, times 0 to 30, values of 'edss', 1 row without a value)
        """
        try:
            table = nw.from_native(frame, eager_only=True)
        except TypeError:
            raise PanelError(
                f"frame must be a pandas, polars or pyarrow table in memory, got {type(frame).__name__}."
            ) from None
        values = [value] if isinstance(value, str) else list(value)
        if not values:
            raise PanelError("value must name at least one column, got an empty list.")
        for name in [id, time, *values, *(c for c in (weight, group, start, end) if c is not None)]:
            if name not in table.columns:
                raise PanelError(f"there is no column {name!r}{_nearest(name, table.columns)}.")

        def column(name: str | None) -> Any:
            return None if name is None else table[name]

        return cls._build(
            column(time),
            [column(name) for name in values],
            column(id),
            values,
            weights=column(weight),
            groups=column(group),
            start_times=column(start),
            end_times=column(end),
        )

    @classmethod
    def from_arrays(
        cls,
        times: Any,
        values: Any,
        ids: Any,
        *,
        weights: Any = None,
        groups: Any = None,
        start_times: Any = None,
        end_times: Any = None,
        columns: Sequence[str] | None = None,
    ) -> Panel:
        """Panel of arrays with one entry per observation.

        Parameters
        ----------
        times : array_like, shape (n,)
            Numbers or dates.
        values : array_like, shape (n,) or (n, D)
            Numbers (NaN is missing) or labels (None is missing).
        ids : array_like, shape (n,)
            Integers or strings: the sequence of each row.
        weights, groups, start_times, end_times : array_like, shape (n,), optional
            Constant within an id: the weight of the sequence, its group, and its window.
        columns : sequence of str, length D, optional
            Names of the columns of values; by default 'value', or 'value_0', 'value_1' and so on.

        Returns
        -------
        Panel

        Examples
        --------
        >>> Panel.from_arrays([0, 1, 2], [5.0, 5.5, 7.0], ids=[1, 1, 1]).lengths
        array([3])
        """
        array = read_column(values)
        if array.ndim not in (1, 2):
            raise PanelError(f"values must have shape (n,) or (n, D), got {array.shape}.")
        if array.ndim == 1:
            array = array[:, None]
        D = array.shape[1]
        names = columns or (["value"] if D == 1 else [f"value_{d}" for d in range(D)])
        if len(names) != D:
            raise PanelError(f"columns must name the {D} columns of values, got {len(names)} names.")
        return cls._build(
            times,
            list(array.T),
            ids,
            names,
            weights=weights,
            groups=groups,
            start_times=start_times,
            end_times=end_times,
        )

    @classmethod
    def _build(
        cls,
        times: Any,
        values: list[Any],
        ids: Any,
        columns: Sequence[str],
        *,
        weights: Any,
        groups: Any,
        start_times: Any,
        end_times: Any,
    ) -> Panel:
        optional = [x for x in (weights, groups, start_times, end_times) if x is not None]
        sizes = {len(x) for x in (ids, times, *values, *optional)}
        if len(sizes) > 1:
            raise PanelError(f"all columns must have one entry per row, got lengths {sorted(sizes)}.")
        if sizes == {0}:
            raise PanelError("a panel must have at least one row, got none; was everything filtered out?")
        keys, codes = read_keys(ids, "ids")
        stamps, zone = read_times(times)
        clock = None
        if stamps.dtype.kind == "M":
            clock = Clock(np.fmin.reduce(stamps), zone)
            stamps = (stamps - clock.origin) / DAY
        encoded = [read_values(x, name) for x, name in zip(values, columns, strict=True)]
        rows = np.argsort(codes, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(codes))])
        times = stamps[rows]
        panel = cls(
            times=times,
            values=np.column_stack([x for x, _ in encoded])[rows],
            offsets=offsets,
            ids=keys,
            start_times=times[offsets[:-1]],
            end_times=times[offsets[1:] - 1],
            weights=np.ones(len(keys)),
            groups=None,
            rows=rows,
            columns=tuple(columns),
            categories=tuple(labels for _, labels in encoded),
            integer=tuple(labels is None and all_integers(x) for x, labels in encoded),
            clock=clock,
        )
        extra: dict[str, Any] = {}
        if weights is not None:
            extra["weights"] = panel._per_sequence(read_numbers(weights, "weights"), "weights")
        if groups is not None:
            names, group_codes = read_keys(groups, "groups")
            extra["groups"] = names[panel._per_sequence(group_codes, "groups")]
        for name, window in (("start_times", start_times), ("end_times", end_times)):
            if window is not None:
                encode = clock.encode if clock else panel.encode_times
                extra[name] = panel._per_sequence(encode(window), name)
        return dataclasses.replace(panel, **extra) if extra else panel

    def _per_sequence(self, column: AnyArray, name: str) -> AnyArray:
        """One entry per sequence of a column in the caller's order, which must be constant within an id."""
        column = column[self.rows]
        first = column[self.offsets[:-1]]
        same = np.repeat(first, self.lengths)
        differs = (column != same) & ~(np.isnan(column) & np.isnan(same))
        if differs.any():
            raise PanelError(
                f"{name} must be constant within an id, but differ from the first one at "
                f"{self._where(np.flatnonzero(differs))}; give every row of an id the same."
            )
        return first

    def __post_init__(self) -> None:
        for name in ("times", "values", "start_times", "end_times", "weights"):
            self._freeze(name, np.float64)
        for name in ("offsets", "rows"):
            self._freeze(name, np.int64)
        self._freeze("ids")
        if self.groups is not None:
            self._freeze("groups")
        for labels in self.categories:
            if labels is not None:
                labels.flags.writeable = False
        self._check_times()
        self._check_windows()
        infinite = np.isinf(self.values)
        if infinite.any():
            rows, d = np.nonzero(infinite)
            raise PanelError(
                f"values must be finite or missing, got {self.values[rows[0], d[0]]} in column "
                f"{self.columns[d[0]]!r} at {self._where(rows)}; put NaN where a value is missing."
            )
        bad = ~((self.weights > 0) & np.isfinite(self.weights))
        if bad.any():
            raise PanelError(
                f"weights must be finite and positive, got {self.weights[bad][0]} at "
                f"{self._where(self.offsets[:-1][bad])}; drop the rows of a sequence that should not count."
            )

    def _freeze(self, name: str, dtype: npt.DTypeLike | None = None) -> None:
        view = np.asarray(getattr(self, name), dtype=dtype).view()
        view.flags.writeable = False
        object.__setattr__(self, name, view)

    def _check_times(self) -> None:
        if not len(self.times):
            raise PanelError("a panel must have at least one sequence, got none.")
        bad = np.flatnonzero(~np.isfinite(self.times))
        if bad.size:
            raise PanelError(
                f"times must be finite, got {self._show(self.times[bad[0]])} at {self._where(bad)}; "
                "fill in the times or drop these rows."
            )
        bad = self._not_rising(self.times)
        if bad.size:
            before, now = self.times[bad[0] - 1 : bad[0] + 1]
            if now == before:
                got, remedy = f"{self._show(now)} twice", "keep one of the two rows, or merge them"
            else:
                got = f"{self._show(now)} after {self._show(before)}"
                remedy = "sort the rows by time within each id"
            raise PanelError(
                f"times must increase strictly within a sequence, got {got} at {self._where(bad)}; {remedy}."
            )

    def _check_windows(self) -> None:
        late = ~(self.start_times <= self.times[self.offsets[:-1]]) | np.isinf(self.start_times)
        early = ~(self.end_times >= self.times[self.offsets[1:] - 1]) | np.isinf(self.end_times)
        for bad, rule, got in (
            (late, "start at or before its first time", self.start_times),
            (early, "end at or after its last time", self.end_times),
        ):
            if bad.any():
                raise PanelError(
                    f"the window of a sequence must {rule}, got {self._show(got[bad][0])} at "
                    f"{self._where(self.offsets[:-1][bad])}; widen the window or drop the rows outside it."
                )
        relative = self.relative_times()
        rows = np.union1d(self._not_rising(relative), np.flatnonzero(np.isinf(relative)))
        if rows.size:
            time, start = self.times[rows[0]], self.start_times[self.sequence_index[rows[0]]]
            raise PanelError(
                "times less the start of their sequence must be finite and increase in floating point, got "
                f"{time} less {start}, too far apart, at {self._where(rows)}; "
                "move the origin of time, or the start of the window, nearer to the data."
            )

    def _not_rising(self, x: FloatArray) -> IntArray:
        """Rows whose entry is not above that of the row before it in the same sequence."""
        later = self._later_rows()
        return later[x[later] <= x[later - 1]]

    def _later_rows(self) -> IntArray:
        """Rows that are not the first of their sequence, shape (n - S,)."""
        later = np.ones(self.n_observations, dtype=np.bool_)
        later[self.offsets[:-1]] = False
        return np.flatnonzero(later)

    def _show(self, time: float) -> str:
        if self.clock is None:
            return f"{time:.15g}"
        return str(np.datetime_as_string(self.clock.decode(time), unit="auto"))

    def _where(self, rows: IntArray) -> str:
        """The first five of the given rows, in words."""
        more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        return "; ".join(self.locate(row) for row in rows[:5]) + more

    # ----------------------------------------------------------------- reading

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
    def lengths(self) -> IntArray:
        """Rows of each sequence, shape (S,)."""
        return np.diff(self.offsets)

    @property
    def observed(self) -> BoolArray:
        """Whether a row has at least one value, shape (n,)."""
        seen: BoolArray = np.any(~np.isnan(self.values), axis=1)
        return seen

    @property
    def sequence_index(self) -> IntArray:
        """The sequence of each row, shape (n,)."""
        return np.repeat(np.arange(self.n_sequences), self.lengths)

    def gaps(self) -> tuple[FloatArray, FloatArray]:
        """Times between successive rows of the same sequence, and the weight of each.

        Returns
        -------
        lengths, weights : ndarray of float64, shape (n - S,)
        """
        later = self._later_rows()
        return self.times[later] - self.times[later - 1], self.weights[self.sequence_index[later]]

    def relative_times(self) -> FloatArray:
        """Times since the start of the window of the own sequence, shape (n,)."""
        with np.errstate(over="ignore"):
            return self.times - np.repeat(self.start_times, self.lengths)

    def to_caller_order(self, x: npt.ArrayLike) -> AnyArray:
        """Rows in the order of the table that the panel was made of.

        Parameters
        ----------
        x : array_like, shape (n, ...)
            One entry per row of the panel.

        Returns
        -------
        ndarray, shape (n, ...)
        """
        x = np.asarray(x)
        out = np.empty_like(x)
        out[self.rows] = x
        return out

    def locate(self, row: int) -> str:
        """Where a row of the panel is, in words: its sequence and the caller's row number.

        Parameters
        ----------
        row : int
            Row of the panel.
        """
        i = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return f"sequence {self.ids[i : i + 1].tolist()[0]!r}, row {self.rows[row]}"

    def decode_times(self, x: npt.ArrayLike) -> AnyArray:
        """Times of the panel as the caller knows them: dates if they came as dates.

        Parameters
        ----------
        x : array_like of float
            Times in the unit of `times`.

        Returns
        -------
        ndarray of datetime64[ns] or float64, same shape
        """
        return self.clock.decode(x) if self.clock else np.asarray(x)

    def encode_times(self, t: Any) -> FloatArray:
        """Times in the unit of `times`; the inverse of `decode_times`.

        Parameters
        ----------
        t : scalar or sequence, shape (k,)
            Numbers in the unit of `times`; in a panel of dates also dates or ISO strings.

        Returns
        -------
        ndarray of float64, same shape
        """
        if np.ndim(t) == 0:
            scalar: FloatArray = self.encode_times(np.asarray(t)[None])[0]
            return scalar
        if self.clock is not None and read_column(t).dtype.kind not in "iuf":
            return self.clock.encode(t)
        stamps, _ = read_times(t)
        if stamps.dtype.kind == "M":
            raise PanelError(f"times must be numbers, as in the panel, got dates such as {stamps[0]}.")
        return stamps

    def labels(self, column: int | str = 0) -> AnyArray:
        """Distinct labels of a column, sorted.

        Parameters
        ----------
        column : int or str
            Position or name of a column of values.

        Returns
        -------
        ndarray
            The categories of a column of labels, else the values that occur (int64 if all are whole numbers).
        """
        d = self.columns.index(column) if isinstance(column, str) else column
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
        d = self.columns.index(column) if isinstance(column, str) else column
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

    def to_frame(self) -> Any:
        """The panel as a pandas table, in the caller's order of rows.

        Returns
        -------
        pandas.DataFrame
            Columns id, time and the values; weight, group, start and end where they say anything.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("to_frame() needs pandas: pip install 'jumpmeans[frames]'.") from None

        def dates(x: FloatArray) -> Any:
            if self.clock is None:
                return x
            stamps = pd.Series(self.decode_times(x))
            return stamps.dt.tz_localize("UTC").dt.tz_convert(self.clock.zone) if self.clock.zone else stamps

        sequence = self.sequence_index
        values = {name: self.decode_values(self.values[:, d], d) for d, name in enumerate(self.columns)}
        extra: dict[str, Any] = {}
        if np.any(self.weights != 1):
            extra["weight"] = self.weights[sequence]
        if self.groups is not None:
            extra["group"] = self.groups[sequence]
        if np.any(self.start_times != self.times[self.offsets[:-1]]):
            extra["start"] = dates(self.start_times[sequence])
        if np.any(self.end_times != self.times[self.offsets[1:] - 1]):
            extra["end"] = dates(self.end_times[sequence])
        clash = values.keys() & {"id", "time", *extra}
        if clash:
            raise PanelError(f"to_frame() has its own column {min(clash)!r}; rename that column of values.")
        out = {"id": self.ids[sequence], "time": dates(self.times)} | values | extra
        return pd.DataFrame(out).iloc[np.argsort(self.rows)].reset_index(drop=True)

    # ---------------------------------------------------------------- deriving

    def with_values(self, values: npt.ArrayLike) -> Panel:
        """The same panel with other values.

        Parameters
        ----------
        values : array_like, shape (n, D)
            In the order of the panel; indices into the categories for columns of labels.

        Returns
        -------
        Panel
        """
        values = np.array(values, dtype=np.float64)
        if values.shape != self.values.shape:
            raise PanelError(f"values must have shape {self.values.shape}, got {values.shape}.")
        for x, name, categories in zip(values.T, self.columns, self.categories, strict=True):
            if categories is not None and not np.isin(x[~np.isnan(x)], np.arange(len(categories))).all():
                raise PanelError(f"column {name!r} must hold indices into its {len(categories)} labels.")
        integer = tuple(flag and all_integers(x) for flag, x in zip(self.integer, values.T, strict=True))
        return dataclasses.replace(self, values=values, integer=integer)

    def insert_times(self, ids: Any, times: Any) -> tuple[Panel, IntArray]:
        """The panel with rows added at given times, their values missing.

        A time that is there already is not added again. A time outside the window of its sequence widens it.

        Parameters
        ----------
        ids : array_like, shape (k,)
            Sequence of each request. Of sequences with the same id the first is meant.
        times : array_like, shape (k,)
            As taken by `encode_times`; may repeat.

        Returns
        -------
        panel : Panel
            New rows have the row numbers after the caller's own, in the order of the panel.
        index : ndarray of int64, shape (k,)
            Row of the new panel that answers each request.
        """
        n = self.n_observations
        asked_times = self.encode_times(times)
        asked = self._find_sequences(ids)
        if asked.shape != asked_times.shape:
            raise PanelError(f"ids and times must be of one length, got {len(asked)} and {len(asked_times)}.")
        if not np.isfinite(asked_times).all():
            raise PanelError(f"times must be finite, got {asked_times[~np.isfinite(asked_times)][0]}.")
        sequence = np.concatenate([self.sequence_index, asked])
        merged = np.concatenate([self.times, asked_times])
        order = np.lexsort((merged, sequence))  # stable: an old row comes before a request for its time
        new = np.ones(len(order), dtype=np.bool_)
        new[1:] = (np.diff(sequence[order]) > 0) | (np.diff(merged[order]) > 0)
        index = np.empty(len(order), dtype=np.int64)
        index[order] = np.cumsum(new) - 1
        kept = order[new]
        added = kept >= n
        rows = np.empty(len(kept), dtype=np.int64)
        rows[~added] = self.rows[kept[~added]]
        rows[added] = np.arange(n, len(kept))
        values = np.full((len(kept), self.n_columns), np.nan)
        values[~added] = self.values[kept[~added]]
        offsets = np.concatenate([[0], np.cumsum(np.bincount(sequence[kept]))])
        kept_times = merged[kept]
        panel = dataclasses.replace(
            self,
            times=kept_times,
            values=values,
            offsets=offsets,
            start_times=np.minimum(self.start_times, kept_times[offsets[:-1]]),
            end_times=np.maximum(self.end_times, kept_times[offsets[1:] - 1]),
            rows=rows,
        )
        return panel, index[n:]

    def _find_sequences(self, ids: Any) -> IntArray:
        known: dict[Any, int] = {}
        for i, key in enumerate(self.ids.tolist()):
            known.setdefault(key, i)
        asked = np.atleast_1d(np.asarray(ids, dtype=object)).tolist()
        for key in asked:
            if key not in known:
                raise PanelError(f"there is no sequence {key!r}{_nearest(key, known)}.")
        return np.fromiter((known[key] for key in asked), np.int64, len(asked))

    def select(self, sequence_indices: Any) -> Panel:
        """Panel of some of the sequences.

        Parameters
        ----------
        sequence_indices : array_like of int, shape (k,), or of bool, shape (S,)
            Positions of sequences; may repeat, and the copies then share an id.

        Returns
        -------
        Panel
            Its rows are numbered anew, from 0 in the order of the panel.
        """
        chosen = np.arange(self.n_sequences)[sequence_indices]
        lengths = self.lengths[chosen]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.arange(offsets[-1])
        source = rows + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        return dataclasses.replace(
            self,
            times=self.times[source],
            values=self.values[source],
            offsets=offsets,
            ids=self.ids[chosen],
            start_times=self.start_times[chosen],
            end_times=self.end_times[chosen],
            weights=self.weights[chosen],
            groups=None if self.groups is None else self.groups[chosen],
            rows=rows,
        )

    def head(self, n: int) -> Panel:
        """Panel of the first n rows of every sequence; the window of a sequence that was longer ends with them."""
        if n < 1:
            raise ValueError(f"n must be at least 1, got {n}.")
        lengths = np.minimum(self.lengths, n)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.arange(offsets[-1])
        source = rows + np.repeat(self.offsets[:-1] - offsets[:-1], lengths)
        times = self.times[source]
        end_times = np.where(lengths < self.lengths, times[offsets[1:] - 1], self.end_times)
        return dataclasses.replace(
            self, times=times, values=self.values[source], offsets=offsets, end_times=end_times, rows=rows
        )

    def __len__(self) -> int:
        return self.n_sequences

    def __repr__(self) -> str:
        parts = [
            _count(self.n_sequences, "sequence"),
            _count(self.n_observations, "row"),
            f"times {self._show(self.start_times.min())} to {self._show(self.end_times.max())}",
            f"values of {', '.join(map(repr, self.columns))}",
        ]
        missing = self.n_observations - int(self.observed.sum())
        if missing:
            parts.append(f"{_count(missing, 'row')} without a value")
        return f"Panel({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in dataclasses.fields(self))


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _nearest(name: Any, known: Iterable[Any]) -> str:
    """The likeliest meaning of a wrong name, and what there is: the tail of an error message."""
    names = [str(x) for x in known]
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return f"{hint}; there are {', '.join(names[:10])}{more}"
