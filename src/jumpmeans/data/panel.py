"""Panel: many sequences of irregular observations as flat arrays, validated once and then read-only."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import AnyArray, Ints
from ..errors import PanelError
from ..kinds import NAMES, SNAPSHOT
from . import deriving
from .building import Columns, Roles, build, open_frame
from .columns import read_table
from .covariates import with_covariates
from .frames import panel_frame
from .rows import Rows
from .table import Table


@dataclass(frozen=True, eq=False, repr=False)
class Panel(Rows):
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
        The labels of a column of labels, in the order that the column declares (an ordered category) or else
        sorted; None for a column of numbers.
    integer : tuple of bool, length D
        Whether a column holds nothing but whole numbers, so that they may be shown as integers.
    clock : Clock or None
        How dates became numbers, None for times that were numbers or durations.
    frame_backend : str or None
        The kind of frame the panel was made of, 'pandas', 'polars' or 'pyarrow'; frames come out in the same kind.
    kinds : ndarray of int8, shape (n,), or None
        How each row was seen, by the codes of `jumpmeans.kinds`; None: all as snapshots. With a window that begins at
        its first row, a sequence has nothing that this row could tell of: it is a snapshot, whatever it was called.
    known : ndarray of int64, shape (n,), or None
        Index into `state_sets` of the states that a row is known to be in one of, -1 where nothing is known.
    state_sets : tuple of StateSet
        Name and states of each: those that a label means, or the one that is known.
    covariates : Covariates or None
        What rates may depend on, known at every row.

    Examples
    --------
    >>> panel = Panel.from_arrays([0.0, 1.5, 0.0], ["mild", "severe", "mild"], ids=["a", "a", "b"])
    >>> panel
    Panel(2 sequences, 3 rows, times 0 to 1.5, values of 'value')
    >>> panel.values.ravel(), panel.labels(0)
    (array([0., 1., 0.]), array(['mild', 'severe'], dtype=object))
    """

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
        kind: str | None = None,
        true_state: str | None = None,
        sets: Mapping[Any, Sequence[Any]] | None = None,
        covariates: str | Sequence[str] | None = None,
    ) -> Panel:
        """Panel of a long table: one row per observation.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table
            Never changed. Rows of one id need not be adjacent, but must be in order of time.
        id, time : str
            Columns of ids (integers or strings) and of times: numbers, dates, durations (held as days), or text
            that reads as numbers or as ISO dates.
        value : str or list of str
            One or more columns of values: numbers, or labels (strings, booleans, categories). Strings are labels
            as they are, so '01' and '1' are two. Ordered categories keep their order; other labels are sorted.
        weight, group, start, end : str, optional
            Columns that are constant within an id: the weight of the sequence, its group, and its window.
        kind : str, optional
            Column that says how each row was seen. "snapshot" (1 in msm's obstype, and what a missing entry means): the
            state at this instant, and no word of what happened since the row before. "transition" (2): the state of
            the row before held until this instant and then became this one, or stayed. "entry" (3): this state was
            entered at this instant, from one unknown, as with dates of death. Such a row may have the time of the row
            before it.
        true_state : str, optional
            Column of states that are known, empty elsewhere; for hidden states, or where the values do not tell.
        sets : dict, optional
            Labels among the values (or true states) that mean one of several states, ``{"alive": ["well", "ill"]}``.
            Their rows have no value, but a state that is known to be one of these.
        covariates : list of str, optional
            Columns that rates may depend on (`Structure(covariates=...)`): numbers or categories, of which the first
            is the one that others are compared with. What a row says holds from it until the next row, before the
            first row its own; a missing entry is that of the row before it.

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

        Deaths are known to the day, and of the last patient only that he was alive:

        >>> visits = pd.DataFrame({
        ...     "patient": ["a", "a", "b", "b"], "day": [0, 30, 0, 90],
        ...     "state": ["well", "dead", "ill", "alive"], "how": ["snapshot", "entry", "snapshot", "snapshot"],
        ... })
        >>> Panel.from_frame(
        ...     visits, id="patient", time="day", value="state", kind="how", sets={"alive": ["well", "ill"]}
        ... )
        Panel(2 sequences, 4 rows, times 0 to 90, values of 'state', 1 row without a value, 1 entry, 1 row by a set)
        """
        roles = Roles.named(
            id=id, time=time, value=value, weight=weight, group=group, start=start, end=end,
            kind=kind, true_state=true_state, sets=sets, covariates=covariates,
        )  # fmt: skip
        table, backend = open_frame(frame)
        roles.check(table.columns)
        return cls(**build(roles.pick(table)), frame_backend=backend)

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
        kinds: Any = None,
        true_states: Any = None,
        sets: Mapping[Any, Sequence[Any]] | None = None,
        columns: Sequence[str] | None = None,
        covariates: Mapping[str, Any] | None = None,
    ) -> Panel:
        """Panel of arrays with one entry per observation.

        Parameters
        ----------
        times : array_like, shape (n,)
            Numbers, dates, durations (held as days), or ISO strings.
        values : array_like, shape (n,) or (n, D)
            Numbers or labels, as in `from_frame`. None, NaN, pandas' NA and masked entries are missing.
        ids : array_like, shape (n,)
            Integers or strings: the sequence of each row.
        weights, groups, start_times, end_times : array_like, shape (n,), optional
            Constant within an id: the weight of the sequence, its group, and its window.
        kinds, true_states : array_like, shape (n,), optional
            How each row was seen, and its state where that is known, as in `from_frame`.
        sets : dict, optional
            Labels that mean one of several states, as in `from_frame`.
        columns : sequence of str, length D, optional
            Names of the columns of values; by default 'value', or 'value_0', 'value_1' and so on.
        covariates : {name: (n,) array_like}, optional
            What rates may depend on, as in `from_frame`.

        Returns
        -------
        Panel

        Examples
        --------
        >>> Panel.from_arrays([0, 1, 2], [5.0, 5.5, 7.0], ids=[1, 1, 1]).lengths
        array([3])
        """
        table = read_table(values)
        D = len(table)
        names = columns or (["value"] if D == 1 else [f"value_{d}" for d in range(D)])
        if len(names) != D:
            raise PanelError(f"columns must name the {D} columns of values, got {len(names)} names.")
        return cls(**build(Columns(
            times, table, ids, names, weights, groups, start_times, end_times, kinds, true_states, sets, covariates
        )))  # fmt: skip

    # ------------------------------------------------------------ other shapes

    def to_frame(self) -> Any:
        """The panel as a table, in the caller's order of rows.

        Returns
        -------
        pandas, polars or pyarrow table
            Of the kind that the panel was made of, else of the first of these that is installed. Columns id, time
            and the values; weight, group, start, end, kind and true_state where they say anything. The last of these
            has the labels of sets too: `from_frame` with ``sets=panel.sets`` reads them again. Then the covariates,
            what was missing of them filled in.
        """
        return panel_frame(self)

    def state_table(self, column: int | str = 0) -> Table:
        """How often each label followed each other one at the next row with a value, by weight.

        Parameters
        ----------
        column : int or str
            Position or name of a column of labels or whole numbers.

        Examples
        --------
        >>> Panel.from_arrays([0, 1, 2, 0, 1], ["a", "a", "b", "b", None], ids=[1, 1, 1, 2, 2]).state_table()
        number of successive rows
        from / to  a  b
        a          1  1
        b          0  0
        """
        return deriving.state_table(self, column)

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
        return deriving.with_values(self, values)

    def blank(self, rows: Any) -> Panel:
        """The same panel with nothing told of some rows but their times: neither values nor states nor moves.

        Parameters
        ----------
        rows : array_like of int, shape (k,), or of bool, shape (n,)
            In the order of the panel.

        Returns
        -------
        Panel
            What the other rows tell stays true: a later "transition" tells of the time since the blank row.
        """
        return deriving.blank(self, np.asarray(rows))

    def with_covariates(self, covariates: Mapping[str, Any]) -> Panel:
        """The same panel with covariates put in, or replaced by others: what if all were of age 60?

        Parameters
        ----------
        covariates : {name: value, or (n,) array_like in the caller's order of rows}

        Returns
        -------
        Panel
        """
        return with_covariates(self, covariates)

    def insert_times(self, ids: Any, times: Any) -> tuple[Panel, Ints]:
        """The panel with rows added at given times, their values missing; covariates stay what they are.

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
        return deriving.insert_times(self, ids, times)

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
        return deriving.select(self, sequence_indices)

    def head(self, n: int) -> Panel:
        """Panel of the first n rows of every sequence; the window of a sequence that was longer ends with them."""
        return deriving.head(self, n)

    def __len__(self) -> int:
        return self.n_sequences

    @property
    def shape(self) -> tuple[int]:
        """(S,): to tools that split data, such as scikit-learn's, a panel is an array of sequences."""
        return (self.n_sequences,)

    def __getitem__(self, key: Any) -> Panel:
        """Panel of some of the sequences, by position: a number, a slice, numbers or booleans."""
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # as arrays of any shape are indexed
            key = key[0]
        return deriving.select(self, np.atleast_1d(key) if not isinstance(key, slice) else key)

    def __iter__(self) -> Iterator[Panel]:
        return (self[i] for i in range(self.n_sequences))

    def __array__(self, *_: Any, **__: Any) -> AnyArray:
        raise TypeError("a panel is no array of numbers; its arrays are .times and .values.")

    def __repr__(self) -> str:
        parts = [
            _count(self.n_sequences, "sequence"),
            _count(self.n_observations, "row"),
            f"times {self.show_time(self.start_times.min())} to {self.show_time(self.end_times.max())}",
            f"values of {', '.join(map(repr, self.columns))}",
        ]
        missing = self.n_observations - int(self.observed.sum())
        if missing:
            parts.append(f"{_count(missing, 'row')} without a value")
        for code, noun in enumerate(NAMES):
            if code != SNAPSHOT and self.kinds is not None and np.any(self.kinds == code):
                parts.append(_count(int(np.sum(self.kinds == code)), noun))
        if self.known is not None:
            parts.append(f"{_count(int(np.sum(self.known >= 0)), 'row')} by a set")
        if self.covariates is not None:
            parts.append(f"covariates {', '.join(map(repr, self.covariates.names))}")
        return f"Panel({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, field.name) for field in dataclasses.fields(self))


def _count(n: int, noun: str) -> str:
    many = f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n} {noun if n == 1 else many}"
