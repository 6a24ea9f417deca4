"""Covariates: what is known of a sequence besides its observations, complete at every row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import AnyArray, Floats, Ints
from ..errors import PanelError, first_few, nearest
from .columns import all_integers, read_values
from .layout import Layout

if TYPE_CHECKING:
    from .panel import Panel


@dataclass(frozen=True, eq=False)
class Covariates:
    """Columns of covariates; what a row says holds from it until the next row, before the first row its own.

    Parameters
    ----------
    names : tuple of str, length C
    values : (n, C)
        Numbers, or indices into `categories`; never missing.
    categories : tuple of (ndarray or None), length C
        Labels of a column of categories, of which the first is the one that others are compared with.
    """

    names: tuple[str, ...]
    values: Floats
    categories: tuple[AnyArray | None, ...]

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64).view()
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def __reduce__(self) -> tuple[Any, ...]:  # unpickled arrays are read-only again
        return Covariates, (self.names, self.values, self.categories)

    def take(self, rows: Ints) -> Covariates:
        """The same of some rows."""
        return Covariates(self.names, self.values[rows], self.categories)

    def index(self, name: str) -> int:
        """Position of a column."""
        if name not in self.names:
            raise PanelError(
                f"there is no covariate {name!r}{nearest(name, self.names)}; there are {first_few(self.names)}."
            )
        return self.names.index(name)

    def column(self, name: str) -> AnyArray:
        """(n,) a column as the caller knows it: labels if they came as labels."""
        c = self.index(name)
        x, labels = self.values[:, c], self.categories[c]
        if labels is not None:
            return labels[x.astype(np.int64)]
        return x.astype(np.int64) if all_integers(x) else x


def covariate_names(given: Any) -> tuple[str, ...]:
    """Names of columns as a user lists them."""
    if given is None:
        return ()
    names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Sequence) else None
    if names is None or not all(isinstance(name, str) for name in names):
        raise PanelError(f"covariates must be a list of names of columns, got {given!r}.")
    _distinct(names)
    return names


def read_covariates(columns: Any, layout: Layout) -> Covariates | None:
    """Covariates of {name: column in the caller's order}; a missing entry is that of the row before it."""
    if columns is None or not len(columns):
        return None
    if not isinstance(columns, Mapping):
        raise PanelError(f"covariates must be {{name: one entry per row}}, got {type(columns).__name__}.")
    _distinct(tuple(columns))
    values, categories = [], []
    for name, column in columns.items():
        x, labels = read_values(column, name)
        if len(x) != len(layout.rows):
            raise PanelError(
                f"covariates must have one entry per row, got {len(x)} for {name!r} and {len(layout.rows)} rows."
            )
        values.append(_complete(x[layout.rows], name, layout))
        categories.append(labels)
    return Covariates(tuple(columns), np.column_stack(values), tuple(categories))


def _distinct(names: Sequence[str]) -> None:
    for name in names:
        if not isinstance(name, str) or list(names).count(name) > 1:
            raise PanelError(f"covariates must have distinct names, got {name!r} among {first_few(names)}.")


def _complete(x: Floats, name: str, layout: Layout) -> Floats:
    """(n,) a column with what is missing carried forward within the sequence."""
    infinite = np.flatnonzero(np.isinf(x))
    if len(infinite):
        raise PanelError(
            f"covariates must be finite or missing, got {x[infinite[0]]} of {name!r} at {layout.where(infinite)}; put "
            "NaN where it is missing."
        )
    there = np.where(np.isnan(x), -1, np.arange(len(x)))
    last = np.maximum.accumulate(there)
    unknown = np.flatnonzero(last < layout.offsets[:-1][layout.sequence_index])
    if len(unknown):
        raise PanelError(
            f"covariate {name!r} must be known at the first row of a sequence, got none at {layout.where(unknown)}; "
            "fill it in there, or drop these rows."
        )
    return np.asarray(x[last])


def with_covariates(panel: Panel, given: Mapping[str, Any]) -> Panel:
    """The panel with covariates of every row, or one for all of them, put in or replaced."""
    if not isinstance(given, Mapping) or not given:
        raise PanelError(f"covariates must be {{name: value, or one per row}}, got {given!r}.")
    n = panel.n_observations
    layout = Layout(panel.ids, panel.offsets, np.arange(n))
    own = panel.covariates
    names = list(own.names) if own else []
    values = [own.values[:, c] for c in range(len(names))] if own else []
    categories = list(own.categories) if own else []
    for name, value in given.items():
        scalar = np.ndim(value) == 0
        column = np.full(n, value, dtype=object) if scalar else np.asarray(panel_order(panel, value), dtype=object)
        x, labels = read_values(column.tolist(), name)
        if len(x) != n:
            raise PanelError(f"covariates must have one entry per row, got {len(x)} for {name!r} and {n} rows.")
        x = _complete(x, name, layout)
        if name in names:
            c = names.index(name)
            values[c], categories[c] = _recoded(x, labels, categories[c], name)
        else:
            names.append(name)
            values.append(x)
            categories.append(labels)
    return replace(panel, covariates=Covariates(tuple(names), np.column_stack(values), tuple(categories)))


def with_covariates_later(panel: Panel, given: Mapping[str, Any]) -> Panel:
    """The panel with other covariates from the last row of each sequence on."""
    # what an only row says holds ahead of it, too: a row at the start keeps what it was there
    alone = np.flatnonzero((panel.lengths == 1) & (panel.start_times < panel.times[panel.offsets[:-1]]))
    if len(alone):
        ids = panel.ids
        apart, _ = replace(panel, ids=np.arange(panel.n_sequences)).insert_times(alone, panel.start_times[alone])
        panel = replace(apart, ids=ids)
    after = with_covariates(panel, given).covariates
    own = panel.covariates
    assert own is not None and after is not None
    values = own.values.copy()
    last = panel.offsets[1:] - 1
    values[last] = after.values[last]
    return replace(panel, covariates=Covariates(own.names, values, own.categories))


def panel_order(panel: Panel, column: Any) -> AnyArray:
    """A column in the caller's order of rows, in that of the panel; of another length as it is."""
    array = np.asarray(column, dtype=object)
    return array[panel.rows] if len(array) == panel.n_observations else array


def _recoded(x: Floats, labels: AnyArray | None, old: AnyArray | None, name: str) -> tuple[Floats, AnyArray | None]:
    """A column in the categories of the one that it replaces, if those are there."""
    if (labels is None) != (old is None):
        raise PanelError(f"covariate {name!r} must stay what it was, {'numbers' if old is None else 'categories'}.")
    if labels is None or old is None:
        return x, labels
    known = old.tolist()
    new = [label for label in labels.tolist() if label not in known]
    if new:
        raise PanelError(
            f"covariate {name!r} must be among {first_few(known)}, got {new[0]!r}{nearest(new[0], known)}."
        )
    places = np.array([known.index(label) for label in labels.tolist()], dtype=np.float64)
    return places[x.astype(np.int64)], old
