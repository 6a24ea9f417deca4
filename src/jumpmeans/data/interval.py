"""Interval: an answer with its bounds, each of the same kind as the answer itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..arrays import Floats
from ..options import Rule, is_finite
from .frames import make_frame
from .table import SHOWN_ROWS, Table

BOUNDS = ("estimate", "low", "high")
# What the level of an interval must be.
LEVEL = Rule("a number between 0 and 1", lambda value: is_finite(value) and 0 < value < 1)


@dataclass(frozen=True, eq=False, repr=False)
class Interval:
    """What a model answers, and between which bounds.

    Parameters
    ----------
    estimate, low, high : Table, array or float
        The answer of the model, and its bounds in the same form.
    level : float
        Chance that bounds made in this way hold the truth.

    Examples
    --------
    >>> answer = Table([[2.0], [5.0]], ["well", "ill"], ["mean"], "state", "dwell", "time in a state", "year")
    >>> found = Interval.of(answer, np.array([[1.5], [3.0]]), np.array([[2.8], [8.0]]), 0.9)
    >>> found.high["ill", "mean"]
    8.0
    >>> found
    time in a state (year), 90 % interval
    state / dwell  estimate  low  high
    well, mean            2  1.5   2.8
    ill, mean             5    3     8
    """

    estimate: Any
    low: Any
    high: Any
    level: float

    @classmethod
    def of(cls, answer: Any, low: Floats, high: Floats, level: float) -> Self:
        """Bounds, given as plain arrays, in the form of the answer."""
        estimate, below, above = (in_form(answer, np.asarray(x)) for x in (numbers(answer), low, high))
        return cls(estimate, below, above, level)

    def __iter__(self) -> Iterator[Any]:  # low, high = found
        return iter((self.low, self.high))

    def _places(self) -> dict[str, list[Any]]:
        """What each number is of: labels of a table, places in an array."""
        if isinstance(self.estimate, Table):
            table = self.estimate
            cells = [(row, column) for row in table.rows.tolist() for column in table.columns.tolist()]
            names = [table.row_name, table.column_name]
        else:
            cells = list(np.ndindex(np.shape(self.estimate)))
            names = [f"axis_{k}" for k in range(np.ndim(self.estimate))]
        return {name: [cell[k] for cell in cells] for k, name in enumerate(names)}

    def _numbers(self) -> dict[str, Floats]:
        return {name: np.ravel(numbers(getattr(self, name))) for name in BOUNDS}

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame of one row for each number: its labels, estimate, low, high; `backend` as in `Table.to_frame`."""
        return make_frame(self._places() | self._numbers(), backend)

    def __repr__(self) -> str:
        places = self._places()
        what = self.estimate.name if isinstance(self.estimate, Table) else "answer"
        unit = getattr(self.estimate, "unit", None)
        lines = [[" / ".join(places), *BOUNDS]]
        labels = [", ".join(map(str, cell)) for cell in zip(*places.values(), strict=True)] or [""]
        rows = zip(labels, *(x.tolist() for x in self._numbers().values()), strict=True)
        lines += [[label, *(f"{x:.4g}" for x in row)] for label, *row in rows]
        left = len(lines) - 1 - SHOWN_ROWS
        lines = lines[: SHOWN_ROWS + 1]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in lines]
        head = f"{what}{'' if unit is None else f' ({unit})'}, {100 * self.level:g} % interval"
        return "\n".join([head, *text, *([f"... {left} more"] if left > 0 else [])])


def numbers(answer: Any) -> Floats:
    """An answer as numbers; anything else is refused."""
    try:
        return np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"an answer must be a Table, an array or a number, got {type(answer).__name__}; ask for numbers, such as "
            "lambda m: m.process_.sojourn()."
        ) from None


def in_form(answer: Any, values: Floats) -> Any:
    """Numbers in the form of an answer: a table with its labels, an array, or a float."""
    if isinstance(answer, Table):
        return replace(answer, values=values)
    return float(values) if np.ndim(values) == 0 else values


def asked(answer: Any) -> Callable[[Any], Any]:
    """The question a user asks of a model, or the error of one that is none."""
    if not callable(answer):
        raise ValueError(
            f"answer must be a function of a fitted model, such as lambda m: m.process_.sojourn(), got {answer!r}."
        )
    return answer  # type: ignore[no-any-return]
