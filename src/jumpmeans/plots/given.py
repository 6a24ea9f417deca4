"""What a caller asked to see: found, or refused with a reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from ..data.panel import Panel
from ..data.times import in_unit
from ..model.process import Process


def process_of(model: Any) -> Process:
    """The process itself, or that of a fitted model: the one whose words the pictures take."""
    process = model if isinstance(model, Process) else getattr(model, "process_", None)
    if process is None:
        raise NotFittedError(
            f"model must be fitted and have a process_, got {type(model).__name__}; call fit(panel) first, on a model "
            "with states."
        )
    return process  # type: ignore[no-any-return]


def in_time_unit(model: Any, asked: str | None) -> tuple[Process, float, str | None]:
    """The process of a model in the unit of time asked for, how many units of the model make one, and its name."""
    process = process_of(model)
    length, unit = in_unit(None if model is process else model._time_unit(), asked)
    return replace(process, rates=length * process.rates), length, unit


def position(ids: NDArray[Any], id: Any, name: str) -> int:
    """Place of a sequence among those of a panel or of trajectories."""
    known = ids.tolist()
    if np.ndim(id) == 0 and id in known:
        return known.index(id)
    more = f" and {len(known) - 5} more" if len(known) > 5 else ""
    there = f"there are {known[:5]}{more}" if known else "there are none"
    raise ValueError(f"id must be a sequence of the {name}, got {id!r}; {there}.")


def column_index(panel: Panel | None, process: Process | None, column: int | str) -> int:
    """Place of a column of values, in the panel and in the emission of the model."""
    if isinstance(column, str):
        if panel is None:
            raise ValueError(f"column {column!r} must come with the panel that names it; give panel=... too.")
        if column not in panel.columns:
            raise ValueError(f"column must be one of {list(panel.columns)}, got {column!r}.")
        column = panel.columns.index(column)
    counts = {} if panel is None else {"panel": panel.n_columns}
    if process is not None:
        counts["model"] = len(process.emission.columns)
    for owner, n in counts.items():
        if not isinstance(column, int | np.integer) or not 0 <= column < n:
            raise ValueError(
                f"column must be a name or an integer below {n}, the number of columns of the {owner}, got {column!r}."
            )
    return column


def state_names(process: Process) -> tuple[list[str], bool]:
    """Labels of the states, with the mean of each where there is one column of numbers; and whether there is."""
    names = [str(label) for label in process.states.tolist()]
    columns = process.emission.columns
    if len(columns) > 1 or columns[0].is_symbolic:
        return names, False
    return with_means(names, columns[0].state_values()), True


def with_means(names: list[Any], means: Any) -> list[str]:
    """Names of states, each with its mean if it has one."""
    return [f"{name} ({x:.4g})" if x == x else str(name) for name, x in zip(names, means, strict=True)]


def mean_of(unit: str | None) -> str:
    """What stands in brackets after the name of a state."""
    return f"mean, {unit}" if unit else "mean"
