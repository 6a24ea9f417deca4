"""Panels made of a panel: some of its sequences, some of its rows, rows added, other values."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Bools, Ints, read_floats
from ..errors import PanelError
from ..kinds import BARS, HELD, SNAPSHOT
from ..options import count
from .columns import all_integers
from .layout import find_sequences
from .table import Table

if TYPE_CHECKING:
    from .panel import Panel

PER_ROW = ("times", "values", "kinds", "known")
PER_SEQUENCE = ("ids", "start_times", "end_times", "weights", "groups")


def select(panel: Panel, sequence_indices: Any) -> Panel:
    """Panel of some of the sequences."""
    try:
        chosen = np.arange(panel.n_sequences)[sequence_indices]
    except (IndexError, TypeError, ValueError) as error:
        raise PanelError(
            f"sequence_indices must be positions of the {panel.n_sequences} sequences, or a boolean for each: {error}."
        ) from None
    return dataclasses.replace(
        panel,
        **{name: x[chosen] for name in PER_SEQUENCE if (x := getattr(panel, name)) is not None},
        **_take(panel, panel.offsets[:-1][chosen], panel.lengths[chosen]),
    )


def head(panel: Panel, n: int) -> Panel:
    """Panel of the first n rows of every sequence."""
    count().check("n", n)
    lengths = np.minimum(panel.lengths, min(n, panel.n_observations))
    taken = _take(panel, panel.offsets[:-1], lengths)
    last = taken["times"][taken["offsets"][1:] - 1]
    return dataclasses.replace(panel, **taken, end_times=np.where(lengths < panel.lengths, last, panel.end_times))


def pieces(panel: Panel, n: int) -> Panel:
    """Panel of sequences of at most n rows: longer ones are cut, and what lay between two pieces is left out."""
    counts = -(-panel.lengths // n)
    whole = np.repeat(np.arange(panel.n_sequences), counts)
    place = n * (np.arange(len(whole)) - np.repeat(np.cumsum(counts) - counts, counts))
    lengths = np.minimum(panel.lengths[whole] - place, n)
    taken = _take(panel, panel.offsets[:-1][whole] + place, lengths)
    edges, times = taken["offsets"], taken["times"]
    first, last = place == 0, place + lengths == panel.lengths[whole]
    own = {name: x[whole] for name in PER_SEQUENCE if (x := getattr(panel, name)) is not None}
    own["start_times"] = np.where(first, own["start_times"], times[edges[:-1]])
    own["end_times"] = np.where(last, own["end_times"], times[edges[1:] - 1])
    return dataclasses.replace(panel, **taken, **own)


def from_first_seen(panel: Panel) -> tuple[Panel, Bools]:
    """Panel of the rows from the first of each sequence that tells anything, where its window then begins.

    Also (S,) whether there is such a row; a sequence without any stays as it is.
    """
    told = panel.observed if panel.known is None else panel.observed | (panel.known >= 0)
    rows = np.flatnonzero(told)
    place = np.searchsorted(rows, panel.offsets)
    seen = place[1:] > place[:-1]
    first = panel.offsets[:-1].copy()
    first[seen] = rows[place[:-1][seen]]
    taken = _take(panel, first, panel.offsets[1:] - first)
    starts = np.where(seen, taken["times"][taken["offsets"][:-1]], panel.start_times)
    return dataclasses.replace(panel, **taken, start_times=starts), seen


def state_table(panel: Panel, column: int | str) -> Table:
    """Weighted number of successive values of each pair of labels."""
    labels = panel.labels(column)
    d = panel.columns.index(column) if isinstance(column, str) else column
    if panel.categories[d] is None and not panel.integer[d]:
        raise PanelError(
            f"states must be labels or whole numbers to be counted, got other numbers in column {panel.columns[d]!r}; "
            "count the states of a model: trajectories_.jump_counts()."
        )
    x = panel.values[:, d]
    rows = np.flatnonzero(np.isfinite(x))
    codes = x[rows] if panel.categories[d] is not None else np.searchsorted(labels, x[rows])
    sequence = panel.sequence_index[rows]
    same = sequence[1:] == sequence[:-1]
    counts = np.zeros((len(labels), len(labels)))
    pairs = codes[:-1][same].astype(np.int64), codes[1:][same].astype(np.int64)
    np.add.at(counts, pairs, panel.weights[sequence[1:][same]])
    return Table(counts, labels, labels, "from", "to", "number of successive rows")


def _take(panel: Panel, first: Ints, lengths: Ints) -> dict[str, Any]:
    """What belongs to rows, for sequences of the given first rows and lengths; rows are numbered anew."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.arange(offsets[-1])
    source = rows + np.repeat(first - offsets[:-1], lengths)
    taken = {name: x[source] for name in PER_ROW if (x := getattr(panel, name)) is not None}
    if panel.covariates is not None:
        taken["covariates"] = panel.covariates.take(source)
    return taken | {"offsets": offsets, "rows": rows}


def with_values(panel: Panel, values: Any) -> Panel:
    """The same panel with other values."""
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(np.float64), np.nan)
    values = read_floats("values", values)
    if values.shape != panel.values.shape:
        raise PanelError(f"values must have shape {panel.values.shape}, got {values.shape}.")
    for x, name, categories in zip(values.T, panel.columns, panel.categories, strict=True):
        if categories is not None and not np.isin(x[~np.isnan(x)], np.arange(len(categories))).all():
            raise PanelError(f"column {name!r} must hold indices into its {len(categories)} labels.")
    integer = tuple(flag and all_integers(x) for flag, x in zip(panel.integer, values.T, strict=True))
    return dataclasses.replace(panel, values=values, integer=integer)


def blank(panel: Panel, rows: Ints) -> Panel:
    """The same panel with nothing told of some rows but their times."""
    values = panel.values.copy()
    values[rows] = np.nan
    told = {}
    # as a blank snapshot a row bars nothing, so the jump that it told of may still be at its time
    for name, nothing in (("kinds", SNAPSHOT), ("known", -1)):
        if (x := getattr(panel, name)) is not None:
            told[name] = x.copy()
            told[name][rows] = nothing
    return dataclasses.replace(with_values(panel, values), **told)


def insert_times(panel: Panel, ids: Any, times: Any) -> tuple[Panel, Ints]:
    """The panel with rows added at given times, and the row that answers each request."""
    n = panel.n_observations
    asked_times = np.atleast_1d(panel.encode_times(times))
    asked = find_sequences(ids, panel.ids)
    if asked.shape != asked_times.shape:
        raise PanelError(f"ids and times must be of one length, got {len(asked)} and {len(asked_times)}.")
    if not np.isfinite(asked_times).all():
        raise PanelError(f"times must be finite, got {asked_times[~np.isfinite(asked_times)][0]}.")
    sequence = np.concatenate([panel.sequence_index, asked])
    merged = np.concatenate([panel.times, asked_times])
    starts = panel.start_times.copy()
    np.minimum.at(starts, asked, asked_times)
    # two times are one if they are as far from the start in floating point
    with np.errstate(over="ignore"):
        since = merged - starts[sequence]
    order = np.lexsort((since, sequence))  # stable: an old row comes before a request for its time
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (np.diff(sequence[order]) > 0) | (np.diff(since[order]) > 0) | (order[1:] < n)
    index = np.empty(len(order), dtype=np.int64)
    index[order] = np.cumsum(new) - 1
    kept = order[new]
    added = kept >= n
    rows = np.empty(len(kept), dtype=np.int64)
    rows[~added] = panel.rows[kept[~added]]
    rows[added] = np.arange(n, len(kept))
    values = np.full((len(kept), panel.n_columns), np.nan)
    values[~added] = panel.values[kept[~added]]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(sequence[kept]))])
    kept_times = merged[kept]
    more: dict[str, Any] = {}
    if panel.known is not None:
        more["known"] = np.full(len(kept), -1)
        more["known"][~added] = panel.known[kept[~added]]
    if panel.covariates is not None:
        # those of the row before; ahead of the first row, its own
        last = np.maximum.accumulate(np.where(added, -1, kept))
        more["covariates"] = panel.covariates.take(np.maximum(last, panel.offsets[:-1][sequence[kept]]))
    if panel.kinds is not None:
        kinds = np.append(panel.kinds, SNAPSHOT)
        # a window that begins earlier is not one in which the first state held
        first = panel.offsets[:-1][kept_times[offsets[:-1]] < panel.start_times]
        kinds[first] = np.where(BARS[kinds[first]], SNAPSHOT, kinds[first])
        # behind an added row comes the old one of its gap; where that gap is barred, the added row changes nothing
        later = np.searchsorted(np.flatnonzero(~added), np.arange(len(kept)))
        same = np.append(sequence[:n], -1)[later] == sequence[kept]
        barred = same & BARS[kinds[later]]
        more["kinds"] = np.where(added, np.where(barred, HELD, SNAPSHOT), kinds[later])
    wide = dataclasses.replace(
        panel,
        times=kept_times,
        values=values,
        offsets=offsets,
        start_times=starts,
        end_times=np.maximum(panel.end_times, kept_times[offsets[1:] - 1]),
        rows=rows,
        **more,
    )
    return wide, index[n:]


def split_requests(at: Any) -> tuple[list[Any], Any]:
    """Ids and times of requests given as {id: times} or as a pair (ids, times)."""
    if isinstance(at, Mapping):
        try:
            times = [np.atleast_1d(np.asarray(t)) for t in at.values()]
        except ValueError:  # of lists that differ in length
            times = [np.empty((1, 1))]
        if not sum(map(len, times)):
            raise PanelError("at must ask for at least one time, got none; leave it out for the rows of the panel.")
        if any(t.ndim > 1 for t in times):
            raise PanelError("at must give each id one list of times, got a table; flatten it.")
        return [key for key, t in zip(at, times, strict=True) for _ in t], np.concatenate(times)
    try:
        ids, times = at
    except (TypeError, ValueError):
        raise PanelError(f"at must be {{id: times}} or a pair (ids, times), got {type(at).__name__}.") from None
    return ids, times
