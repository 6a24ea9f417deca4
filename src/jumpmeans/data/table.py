"""Table: a matrix that says what its rows and columns are."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import AnyArray, Floats, read_floats
from .frames import make_frame

# A printed table shows so many rows and columns at most, the first ones.
SHOWN_ROWS, SHOWN_COLUMNS = 20, 12


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """A labelled matrix, read-only.

    Parameters
    ----------
    values : (R, C)
    rows, columns : (R,), (C,)
        Labels, distinct.
    row_name, column_name : str
        What rows and columns are, such as "from" and "to".
    name : str
        What the numbers are.
    unit : str or None
        Their unit, if it is known.

    Examples
    --------
    >>> table = Table([[-1.0, 1.0], [0.5, -0.5]], ["well", "ill"], ["well", "ill"], "from", "to", "rates", "1/year")
    >>> table["well", "ill"]
    1.0
    >>> table["ill"]
    array([ 0.5, -0.5])
    >>> table
    rates (1/year)
    from / to  well   ill
    well         -1     1
    ill         0.5  -0.5
    """

    values: Floats
    rows: AnyArray
    columns: AnyArray
    row_name: str
    column_name: str
    name: str
    unit: str | None = None

    def __post_init__(self) -> None:
        values = read_floats("values", self.values)
        labels = {"rows": _labels("rows", self.rows), "columns": _labels("columns", self.columns)}
        if values.shape != tuple(len(x) for x in labels.values()):
            raise ValueError(
                f"values must have a row for each of the {len(labels['rows'])} row labels and a column for each of the "
                f"{len(labels['columns'])} column labels, got shape {values.shape}."
            )
        for what, x in labels.items():
            if len(set(x.tolist())) < len(x):
                raise ValueError(f"labels of {what} must be distinct, got {reprlib.repr(x.tolist())}.")
        for name, array in {"values": values, **labels}.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.values, dtype=dtype)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows.tolist())

    def __getitem__(self, key: Any) -> Any:
        """Number at a pair (row label, column label), or (C,) numbers of a row."""
        if not isinstance(key, tuple):
            return self.values[_place(key, self.rows, "row")]
        if len(key) != 2:
            raise KeyError(f"a table is read by table[row, column] or table[row], got {len(key)} labels.")
        return float(self.values[_place(key[0], self.rows, "row"), _place(key[1], self.columns, "column")])

    def __repr__(self) -> str:
        rows, columns = self.rows.tolist()[:SHOWN_ROWS], self.columns.tolist()[:SHOWN_COLUMNS]
        cells = [[f"{self.row_name} / {self.column_name}", *map(_shown, columns)]]
        cells += [
            [_shown(label), *(f"{x:.4g}" for x in line[: len(columns)])]
            for label, line in zip(rows, self.values.tolist(), strict=False)
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in cells]
        R, C = self.values.shape
        if (R, C) != (len(rows), len(columns)):
            lines.append(f"... {R} rows and {C} columns in all")
        return "\n".join([str(self.name) if self.unit is None else f"{self.name} ({self.unit})", *lines])

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with a column of row labels, named `row_name`, and one of numbers for each column label.

        Parameters
        ----------
        backend : "pandas", "polars" or "pyarrow", optional
            Kind of frame; the first one installed if left out.
        """
        names = [self.row_name, *map(str, self.columns.tolist())]
        twice = [name for i, name in enumerate(names) if name in names[:i]]
        if twice:
            raise ValueError(
                f"columns of a frame must have distinct names, got {twice[0]!r} twice; rename it, or use .values."
            )
        return make_frame(dict(zip(names, [self.rows, *self.values.T], strict=True)), backend)


def _shown(label: Any) -> str:
    """A label in print: times without the digits that rounding leaves."""
    return f"{label:.6g}" if isinstance(label, float) else str(label)


def _labels(what: str, given: Any) -> AnyArray:
    """A copy of labels: words or numbers, each alone."""
    try:
        labels = np.atleast_1d(np.array(given))
    except ValueError:  # of lists that differ in length
        labels = np.empty((0, 0))
    if labels.ndim > 1 or not all(isinstance(label, Hashable) for label in labels.tolist()):
        raise ValueError(f"labels of {what} must be words or numbers, one for each, got {reprlib.repr(given)}.")
    return labels


def _place(label: Any, labels: AnyArray, what: str) -> int:
    known = labels.tolist()
    if not isinstance(label, Hashable) or label not in known:
        raise KeyError(f"there is no {what} {label!r}; there are {known[:10]}{' and more' if len(known) > 10 else ''}.")
    return int(known.index(label))
