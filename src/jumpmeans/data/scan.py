"""Panels in many Parquet files: what is read of each, what all of them must agree on, and their panels in one."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from itertools import pairwise
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import AnyArray, Floats, Ints
from ..errors import PanelError, first_few
from .building import Roles, build, open_frame
from .clock import Clock
from .columns import declared_order
from .files import parquet_names, read_parquet
from .known import StateSet
from .panel import Panel
from .sampling import Tally, joined_tally, tally

# Distinct numbers of a column that are kept, for those that are labels; more are measurements.
MOST_VALUES = 2000


def find_files(paths: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[str]:
    """Files by a pattern or a folder, in the order of their names, or as they are listed."""
    if isinstance(paths, str | PathLike):
        pattern = fspath(paths)
        found = sorted(glob(f"{pattern}/*.parquet") if Path(pattern).is_dir() else glob(pattern, recursive=True))
        if not found:
            raise PanelError(f"there must be a file for {pattern!r}, got none; check the folder and the pattern.")
        return found
    found = [fspath(path) for path in paths]
    if not found:
        raise PanelError("paths must name at least one file, got an empty list.")
    twice = [path for i, path in enumerate(found) if path in found[:i]]
    if twice:
        raise PanelError(f"paths must be distinct, got {twice[0]!r} twice; leave one out.")
    return found


@contextmanager
def in_file(path: str) -> Iterator[None]:
    """Errors of a panel name the file that it is read from."""
    try:
        yield
    except PanelError as error:
        text = str(error)
        raise PanelError(text if repr(path) in text else f"in {path!r}: {text}") from None


@dataclass(frozen=True)
class Source:
    """How the sequences of one file are read.

    Parameters
    ----------
    path : str
    roles : Roles
        Of the columns.
    origin : datetime64 or None
        Day 0 of all files; of this file alone, if None.
    away : frozenset
        Ids whose rows go to the sequence's first file, which is another.
    more : tuple of (path, frozenset)
        Later files, and ids whose rows there belong to sequences of this file.
    alter : tuple of functions
        What is done to the panel of the file, one after the other, whenever it is read.
    """

    path: str
    roles: Roles
    origin: np.datetime64 | None = None
    away: frozenset[Any] = frozenset()
    more: tuple[tuple[str, frozenset[Any]], ...] = ()
    alter: tuple[Callable[[Panel], Panel], ...] = ()

    def read(self) -> Panel | None:
        """The panel of the file; None if it has no rows."""
        table = self._table(self.path, self.away, keep=False)
        for path, ids in self.more:
            import pyarrow as pa

            table = pa.concat_tables([table, self._table(path, ids, keep=True)], promote_options="permissive")
        if not table.num_rows:
            return None
        with in_file(self.path):
            panel = Panel(**build(self.roles.pick(open_frame(table)[0]), self.origin))
        for work in self.alter:
            panel = work(panel)
        return panel

    def _table(self, path: str, ids: frozenset[Any], keep: bool) -> Any:
        """Rows of a file: those of the given ids to keep, or all but them."""
        with in_file(path):
            self.roles.check(parquet_names(Path(path)))
        table = read_parquet(Path(path), self.roles.names())
        if not ids:
            return table
        import pyarrow as pa
        import pyarrow.compute as pc

        own = pc.is_in(table[self.roles.id], value_set=pa.array(list(ids), table[self.roles.id].type))
        return table.filter(own if keep else pc.invert(own))

    def order_of(self, name: str) -> list[Any] | None:
        """The order that a column declares for its labels."""
        return declared_order(open_frame(self._table(self.path, frozenset(), keep=False))[0][name])


# --------------------------------------------------------------------------------------- what a file tells


class Shown(NamedTuple):
    """What a column of a file holds: a word for its kind, labels, distinct numbers, and whether all are whole."""

    kind: str
    labels: AnyArray | None
    values: Floats
    integer: bool


class Digest(NamedTuple):
    """What one file tells of itself: little for each sequence, and all that must be known of all files together.

    lengths, weights, keys : (S,) rows and weight of each sequence, and a number that stands for its id
    shown : one for each column of values; tallies : rows with a value by weight, in any column and in each
    """

    path: str
    lengths: Ints
    weights: Floats
    keys: NDArray[np.uint64]
    id_kind: str
    clock: Clock | None
    shown: tuple[Shown, ...]
    tallies: tuple[Tally, ...]
    state_sets: tuple[StateSet, ...]
    group_kind: str | None
    window: tuple[float, float]
    early: str | None
    shortest_gap: float


def digest(source: Source) -> Digest | None:
    """What a file tells of itself; None if it has no rows."""
    panel = source.read()
    if panel is None:
        return None
    return Digest(
        source.path,
        panel.lengths,
        panel.weights,
        id_keys(panel.ids),
        _words(panel.ids),
        panel.clock,
        tuple(_shown(panel, d, source) for d in range(panel.n_columns)),
        tuple(tally(panel, d) for d in (None, *range(panel.n_columns))),
        panel.state_sets,
        None if panel.groups is None else _words(panel.groups),
        (float(panel.start_times.min()), float(panel.end_times.max())),
        panel.early,
        panel.shortest_gap,
    )


def id_keys(ids: AnyArray) -> NDArray[np.uint64]:
    """(S,) a number for each id, the same wherever it is; of different ones very rarely the same."""
    if ids.dtype != object:
        return ids.astype(np.int64).view(np.uint64)
    texts = (hashlib.blake2b(str(key).encode(), digest_size=8).digest() for key in ids.tolist())
    return np.frombuffer(b"".join(texts), np.uint64)


def _words(labels: AnyArray) -> str:
    return "strings" if labels.dtype == object and isinstance(labels[0], str) else "integers"


def _shown(panel: Panel, d: int, source: Source) -> Shown:
    labels = panel.categories[d]
    if labels is None:
        values = np.unique(panel.values[:, d])
        values = values[~np.isnan(values)]
        return Shown("numbers" if len(values) else "nothing", None, values[: MOST_VALUES + 1], panel.integer[d])
    order = source.order_of(panel.columns[d])
    kind = "true or false" if labels.dtype == bool else "labels"
    if order is not None:
        kind = f"labels in the order {first_few(order)}"
        labels = np.array([str(x) for x in order], dtype=object) if labels.dtype == object else np.array(order)
    return Shown(kind, labels, np.empty(0), False)


# ------------------------------------------------------------------------------------- what all agree on


class Agreed(NamedTuple):
    """What is common to all files; fields as of `Panel`. `values` are the distinct numbers of each column."""

    columns: tuple[str, ...]
    categories: tuple[AnyArray | None, ...]
    integer: tuple[bool, ...]
    values: tuple[Floats, ...]
    clock: Clock | None
    state_sets: tuple[StateSet, ...]

    def with_values_of(self, digests: Sequence[Digest]) -> Agreed:
        """The same, of files with other distinct numbers."""
        return self._replace(values=tuple(_all_values(digests, d) for d in range(len(self.columns))))


def agree(digests: Sequence[Digest], columns: Sequence[str]) -> Agreed:
    """What is common to all files; the first that does not fit to those before it is named."""
    first = digests[0]
    for other in digests[1:]:
        _same(first, other, "ids", first.id_kind, other.id_kind)
        _same(first, other, "times", _of_clock(first.clock), _of_clock(other.clock))
        _same(first, other, "groups", first.group_kind, other.group_kind)
    categories, integer, values = [], [], []
    for d, name in enumerate(columns):
        told = [one for one in digests if one.shown[d].kind != "nothing"]
        for other in told[1:]:
            _same(told[0], other, f"values of column {name!r}", told[0].shown[d].kind, other.shown[d].kind)
        categories.append(_all_labels([one.shown[d] for one in told]))
        integer.append(categories[-1] is None and all(one.shown[d].integer for one in told))
        values.append(_all_values(told, d))
    sets = dict.fromkeys(own for one in digests for own in one.state_sets)
    clock = first.clock
    if clock is not None:
        clock = Clock(min(one.clock.origin for one in digests if one.clock is not None), clock.zone)
    return Agreed(tuple(columns), tuple(categories), tuple(integer), tuple(values), clock, tuple(sets))


def _same(first: Digest, other: Digest, what: str, one: str | None, two: str | None) -> None:
    if one != two:
        raise PanelError(
            f"{what} must be of one kind in all files, got {one or 'none'} in {first.path!r} and {two or 'none'} in "
            f"{other.path!r}; convert the column of one of the two."
        )


def _of_clock(clock: Clock | None) -> str:
    return "numbers" if clock is None else "dates" if clock.zone is None else f"dates of the zone {clock.zone}"


def _all_values(digests: Sequence[Digest], d: int) -> Floats:
    """Distinct numbers of a column over all files."""
    return np.unique(np.concatenate([np.empty(0), *(one.shown[d].values for one in digests)]))


def _all_labels(shown: Sequence[Shown]) -> AnyArray | None:
    """Labels of a column over all files: in their declared order, which all share, or sorted."""
    if not shown or shown[0].labels is None:
        return None
    if shown[0].kind.startswith("labels in") or shown[0].labels.dtype != object:
        return shown[0].labels
    return np.array(sorted({x for one in shown if one.labels is not None for x in one.labels.tolist()}), dtype=object)


def aligned(panel: Panel, agreed: Agreed) -> Panel:
    """The panel of a file, its labels and sets of states numbered as in all files together."""
    values = panel.values.copy()
    for d, labels in enumerate(agreed.categories):
        own = panel.categories[d]
        if labels is None or own is None:
            continue
        place = {label: k for k, label in enumerate(labels.tolist())}
        code = np.array([place[label] for label in own.tolist()], dtype=np.float64)
        present = ~np.isnan(values[:, d])
        values[present, d] = code[values[present, d].astype(np.int64)]
    known = panel.known
    if known is not None:
        sets = np.array([agreed.state_sets.index(own) for own in panel.state_sets] + [-1])
        known = sets[known]
    elif agreed.state_sets:
        known = np.full(panel.n_observations, -1)
    return dataclasses.replace(
        panel, values=values, known=known, state_sets=agreed.state_sets, categories=agreed.categories,
        integer=agreed.integer,
    )  # fmt: skip


def join_panels(parts: Sequence[Panel]) -> Panel:
    """The sequences of all parts, which agree on all else; rows are numbered anew."""
    if len(parts) == 1:
        return parts[0]

    def joined(name: str, empty: Callable[[Panel], Any] | None = None) -> Any:
        found = [getattr(part, name) for part in parts]
        if all(x is None for x in found):
            return None
        return np.concatenate([empty(part) if x is None and empty else x for part, x in zip(parts, found, strict=True)])

    first = np.cumsum([0, *(part.n_observations for part in parts)])
    return dataclasses.replace(
        parts[0],
        **{name: joined(name) for name in ("times", "values", "ids", "start_times", "end_times", "weights", "groups")},
        offsets=np.concatenate([[0], *(part.offsets[1:] + n for part, n in zip(parts, first, strict=False))]),
        rows=np.arange(first[-1]),
        kinds=joined("kinds", lambda part: np.zeros(part.n_observations, np.int8)),
        known=joined("known", lambda part: np.full(part.n_observations, -1)),
    )  # fmt: skip


# ----------------------------------------------------------------------------------- sequences in one file


class Split(NamedTuple):
    """A sequence with rows in several files: its key, and the places of these files, the first one first."""

    key: int
    files: list[int]


def find_split(digests: Sequence[Digest]) -> list[Split]:
    """Sequences that seem to have rows in more than one file: their ids are yet to be compared."""
    if not digests:
        return []
    keys = np.concatenate([one.keys for one in digests])
    file = np.repeat(np.arange(len(digests)), [len(one.keys) for one in digests])
    order = np.argsort(keys, kind="stable")
    edges = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[:1]], append=~keys[order[-1:]]))
    return [
        Split(int(keys[order[i]]), file[order[i:j]].tolist()) for i, j in pairwise(edges.tolist()) if j - i > 1
    ]  # fmt: skip


def ids_of(panel: Panel, keys: frozenset[int]) -> dict[int, Any]:
    """Ids behind keys."""
    own = id_keys(panel.ids)
    return {key: panel.ids[[i]].tolist()[0] for i, key in enumerate(own.tolist()) if key in keys}


def regrouped(sources: Sequence[Source], homes: dict[Any, list[int]]) -> list[Source]:
    """Sources that read every sequence in its first file; homes {id: files with rows of it}."""
    away: list[set[Any]] = [set() for _ in sources]
    more: list[dict[int, set[Any]]] = [{} for _ in sources]
    for key, (home, *others) in homes.items():
        for other in others:
            away[other].add(key)
            more[home].setdefault(other, set()).add(key)
    return [
        dataclasses.replace(
            source,
            away=frozenset(gone),
            more=tuple((sources[k].path, frozenset(extra[k])) for k in sorted(extra)),
        )
        for source, gone, extra in zip(sources, away, more, strict=True)
    ]


def refuse_split(sources: Sequence[Source], homes: dict[Any, list[int]]) -> None:
    """Refuse files of which two have rows of one sequence."""
    if homes:
        key, files = next(iter(homes.items()))
        more = f", and {len(homes) - 1} more" if len(homes) > 1 else ""
        raise PanelError(
            f"every sequence must lie in one file, got rows of sequence {key!r} in {sources[files[0]].path!r} and "
            f"{sources[files[1]].path!r}{more}; write the files anew by sequence, or say regroup=True."
        )


def all_tallies(digests: Sequence[Digest]) -> list[Tally]:
    """Rows with a value by weight, in any column and in each, over all files."""
    return [joined_tally(list(own)) for own in zip(*(one.tallies for one in digests), strict=True)]
