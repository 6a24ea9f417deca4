"""Breaks: times, or values of a covariate that grows with time, at which rates may change."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..arrays import AnyArray, Floats, Ints
from ..errors import PanelError
from .covariates import Covariates

if TYPE_CHECKING:
    from .panel import Panel

TIME = "time"
# Ages in whole years may be off by one.
ROUNDED = 1.0 + 1e-9


class Broken(NamedTuple):
    """A panel with blank rows where rates may change, and in which row of it each row of the panel is."""

    panel: Panel
    rows: Ints


def read_breaks(breaks: Any) -> dict[str, list[Any]]:
    """Breaks of each covariate, or of time, as they were given."""
    if breaks is None:
        return {}
    named = breaks if isinstance(breaks, Mapping) else {TIME: breaks}
    out: dict[str, list[Any]] = {}
    for name, given in named.items():
        listed = [] if isinstance(given, str) or not np.iterable(given) else list(given)
        if not isinstance(name, str) or not listed:
            raise ValueError(
                "breaks must be a list of times such as [5, 10], or {name of a covariate: values}, got "
                f"{reprlib.repr(breaks)}."
            )
        out[name] = listed
    return out


def edges_of(name: str, listed: list[Any], panel: Panel) -> Floats:
    """Breaks as rising numbers: in the unit of the panel's times, or of a covariate."""
    try:
        x = panel.encode_times(listed) if name == TIME else np.array(listed, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"breaks must be numbers (or dates, of dates), got {reprlib.repr(listed)} for {name!r}."
        ) from None
    if not np.isfinite(x).all() or np.any(np.diff(x) <= 0):
        raise ValueError(f"breaks must be finite and increase, got {reprlib.repr(listed)} for {name!r}.")
    return x


def with_breaks(panel: Panel, breaks: Mapping[str, list[Any]]) -> Broken:
    """The panel with a blank row at each break, and columns of pieces (0, 1, ...) in place of what is broken."""
    edges = {name: edges_of(name, listed, panel) for name, listed in breaks.items()}
    levels = {name: _level(panel, name) for name in breaks}
    first = panel.times[panel.offsets[:-1]]
    ids, times = [], []
    for name, level in levels.items():
        crossings = edges[name] - level[:, None]
        inside = (crossings > panel.start_times[:, None]) & (crossings < panel.end_times[:, None])
        # what holds ahead of the first row is that row's own: a break up to there needs a row at the start
        early = np.flatnonzero((inside & (crossings <= first[:, None])).any(axis=1))
        ids += [np.nonzero(inside)[0], early]
        times += [crossings[inside], panel.start_times[early]]
    sequence = np.concatenate(ids)
    wide, n = replace(panel, ids=np.arange(panel.n_sequences)), panel.n_observations
    if len(sequence):  # copies of a sequence share an id: here each has its own
        wide, _ = wide.insert_times(sequence, np.concatenate(times))
    later = np.append(wide.times[1:], np.inf)
    later[wide.offsets[1:] - 1] = wide.end_times
    middle = wide.times + 0.5 * (later - wide.times)  # no break is inside a gap
    own = wide.covariates
    kept = [c for c, name in enumerate(own.names if own else ()) if name not in breaks]
    columns: list[AnyArray] = [own.values[:, c] for c in kept] if own else []
    for name, level in levels.items():
        columns.append(np.searchsorted(edges[name], middle + level[wide.sequence_index], side="right"))
    names = [*(own.names[c] for c in kept), *levels] if own else list(levels)
    categories = [*(own.categories[c] for c in kept), *(None for _ in levels)] if own else [None for _ in levels]
    covariates = Covariates(tuple(names), np.column_stack(columns).astype(np.float64), tuple(categories))
    return Broken(replace(wide, ids=panel.ids, covariates=covariates), np.flatnonzero(wide.rows < n))


def _level(panel: Panel, name: str) -> Floats:
    """(S,) what is to be added to the time for the value of a covariate that grows with it; 0 for time itself."""
    if name == TIME:
        return np.zeros(panel.n_sequences)
    if panel.covariates is None:
        raise PanelError(f"breaks must be of time or of a covariate, got {name!r} and a panel without covariates.")
    c = panel.covariates.index(name)
    if panel.covariates.categories[c] is not None or panel.clock is not None:
        got = "categories" if panel.clock is None else "times that are dates"
        raise PanelError(
            f"a covariate with breaks must be numbers that grow by one in each unit of time, got {got} for {name!r}; "
            "give times as numbers in its unit."
        )
    x = panel.covariates.values[:, c]
    # rows that were added carry a value forward: the caller's first row is the one that tells
    order = np.lexsort((panel.rows, panel.sequence_index))
    first = order[panel.offsets[:-1]]
    grown = x - x[first][panel.sequence_index]
    passed = panel.times - panel.times[first][panel.sequence_index]
    odd = np.flatnonzero((passed >= 0) & ((grown < -ROUNDED) | (grown > passed + ROUNDED)))
    if len(odd):
        raise PanelError(
            f"a covariate with breaks must grow by one in each unit of time, or be that of the first row, got "
            f"{x[odd[0]]:g} of {name!r} at {panel.layout.where(odd[:1])}, {passed[odd[0]]:g} after "
            f"{(x - grown)[odd[0]]:g}; give it in the unit of the times."
        )
    return np.asarray(x[first] - panel.times[first])
