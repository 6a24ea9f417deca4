"""Panels that stay where they are: partitioned Parquet, read and validated on the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import AnyArray, Floats, Ints
from ..data.building import Roles
from ..data.chosen import resampled, without_held_rows
from ..data.panel import Panel
from ..data.sampling import choose
from ..data.scan import (
    Agreed,
    Digest,
    Source,
    agree,
    all_tallies,
    digest,
    find_files,
    find_split,
    join_panels,
    refuse_split,
    regrouped,
)
from ..emissions import Record
from ..errors import PanelError, first_few
from ..memory import require_room
from ..passes.block import cut_bounds
from ..passes.sequences import Sequences
from . import get_engine
from .dask import MOST_ROWS_OF_A_TASK, Dask, HeldThere, given, submit
from .reading import (
    about_block,
    cut_marks,
    groups_of,
    ids_in,
    join_blocks,
    over,
    over_futures,
    over_tasks,
    part_block,
    part_work,
    read_block,
    take,
    whole,
    write_part,
)


def scan_panel(
    paths: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    engine: Any = "dask",
    regroup: bool = False,
    **columns: Any,
) -> ScannedPanel:
    r"""Panel of many Parquet files that is never gathered: workers of a cluster read, validate and keep it.

    Parameters
    ----------
    paths : str, path or list of them
        A pattern such as "visits/\*.parquet", a folder, or the files in their order. All workers must see them. The
        rows of a sequence lie in one file.
    engine : "dask", Dask, distributed.Client or str
        The cluster, as `jumpmeans.engines.Dask` takes it; models are fitted to the panel there, whatever their own
        engine.
    regroup : bool
        Whether a sequence may have rows in several files: they are then read with those of its first file, in the
        order of the files. Every file is read once for each that takes rows from it.
    columns : id, time, value, weight, group, start, end, kind, true_state, sets
        As in `Panel.from_frame`. Labels are those of all files together.

    Returns
    -------
    ScannedPanel
        `JumpMeans`, `InfiniteJumpMeans` and `EM` take it like a panel; `decode_to` and `predict_proba_to` of a fitted
        model write what they find beside it.

    Raises
    ------
    PanelError
        If a file breaks a rule of the panel, does not fit to the others, or shares a sequence with another; the
        message names it.
    """
    roles = Roles.named(**columns)
    if roles.covariates:
        raise PanelError(
            f"covariates must be left out of a panel on a cluster, got {first_few(roles.covariates)}; read the files "
            "with read_panel."
        )
    if not isinstance(engine, Dask):
        engine = get_engine("dask") if isinstance(engine, str) and engine == "dask" else Dask(engine)
    sources = [Source(path, roles) for path in find_files(paths)]
    found = over(engine, "scan", digest, sources)
    homes = split_sequences(engine, sources, found)
    if homes and not regroup:
        refuse_split(sources, homes)
    if homes:
        sources = regrouped(sources, homes)
        found = over(engine, "scan", digest, sources)
    kept = [(source, own) for source, own in zip(sources, found, strict=True) if own is not None]
    if not kept:
        raise PanelError(f"a panel must have at least one row, got none in {len(sources)} files.")
    return ScannedPanel(engine, [source for source, _ in kept], [own for _, own in kept])


class ScannedPanel:
    """Sequences in Parquet files, made by `jumpmeans.scan_panel`; what stands here is little for each sequence.

    Parameters
    ----------
    engine : Dask
        The cluster that reads them.
    sources : list of Source
        How each file is read.
    digests : list of Digest
        What each tells of itself.
    agreed : Agreed, optional
        What is common to all of them, if they are a part of more; by default what they agree on.

    Attributes
    ----------
    columns, categories, integer, clock
        As of a `Panel`.
    lengths, weights : (S,)
        Rows and weight of each sequence, in the order of the files.
    """

    def __init__(
        self, engine: Dask, sources: list[Source], digests: list[Digest], agreed: Agreed | None = None
    ) -> None:
        if agreed is None:
            agreed = agree(digests, sources[0].roles.value)
        origin = None if agreed.clock is None else agreed.clock.origin
        self.engine = engine
        self.sources = [replace(own, origin=origin) for own in sources]
        self.agreed: Agreed = agreed
        self.lengths: Ints = np.concatenate([own.lengths for own in digests])
        self.weights: Floats = np.concatenate([own.weights for own in digests])
        self.scale = 1.0
        self.firsts: Ints = np.cumsum([0, *(len(own.lengths) for own in digests)])
        self.early = next((f"{own.early} of {own.path!r}" for own in digests if own.early is not None), None)
        self.shortest_gap = min(own.shortest_gap for own in digests)
        self._tallies = all_tallies(digests)

    # ------------------------------------------------------------------ what it holds

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of values."""
        return self.agreed.columns

    @property
    def categories(self) -> tuple[AnyArray | None, ...]:
        """The labels of each column of labels."""
        return self.agreed.categories

    @property
    def integer(self) -> tuple[bool, ...]:
        """Whether a column holds nothing but whole numbers."""
        return self.agreed.integer

    @property
    def clock(self) -> Any:
        """How dates became numbers."""
        return self.agreed.clock

    @property
    def known(self) -> Any:
        """The sets of states that rows are known to be in one of; None if nothing is known of any."""
        return self.agreed.state_sets or None

    @property
    def frame_backend(self) -> None:
        """Frames come out in the first kind that is installed."""
        return

    @property
    def n_columns(self) -> int:
        """Number of columns of values."""
        return len(self.columns)

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.lengths)

    @property
    def n_observations(self) -> int:
        """Number of rows."""
        return int(self.lengths.sum())

    def __len__(self) -> int:
        return self.n_sequences

    def __repr__(self) -> str:
        names = ", ".join(map(repr, self.columns))
        return (
            f"ScannedPanel({self.n_sequences} sequences, {self.n_observations} rows in {len(self.sources)} files, "
            f"values of {names})"
        )

    def labels(self, column: int | str = 0) -> AnyArray:
        """Distinct labels of a column, as of a `Panel`."""
        d = self.columns.index(column) if isinstance(column, str) else column
        categories = self.categories[d]
        if categories is not None:
            return categories
        values = self.agreed.values[d]
        return values.astype(np.int64) if self.integer[d] else values

    def n_present(self, column: int | None = None) -> int:
        """Number of rows with a value, as of a `Panel`."""
        return int(self._tally(column).counts.sum())

    def present_weight(self, column: int | None = None) -> float:
        """Weight of the rows with a value, as of a `Panel`."""
        own = self._tally(column)
        return own._replace(weights=own.weights * self.scale).total

    def _tally(self, column: int | None) -> Any:
        return self._tallies[0 if column is None else column + 1]

    def with_scaled_weights(self, scale: float) -> ScannedPanel:
        """The same panel with all weights times a number."""
        new = copy(self)
        new.scale, new.weights = self.scale * scale, self.weights * scale
        return new

    def altered(self, works: Sequence[Callable[[Panel], Panel] | None]) -> ScannedPanel:
        """The panel as it is when a function alters that of each file, whenever it is read; None leaves a file out.

        Labels, dates and sets of states stay as they are; what else is told of a panel is asked for anew.
        """
        sources = [
            replace(source, alter=(*source.alter, work))
            for source, work in zip(self.sources, works, strict=True)
            if work is not None
        ]
        digests = over(self.engine, "scan", digest, sources)
        new = ScannedPanel(self.engine, sources, digests, self.agreed.with_values_of(digests))
        return new if self.scale == 1.0 else new.with_scaled_weights(self.scale)

    def resampled(self, times: Ints) -> ScannedPanel:
        """The panel in which sequence i was drawn times[i] times, as `resampled` of one in memory."""
        times = times.astype(np.min_scalar_type(int(times.max())))
        own = [times[i:j] for i, j in pairwise(self.firsts)]
        return self.altered([partial(resampled, times=few) if few.any() else None for few in own])

    def without_held_rows(self, fraction: float, seed: int) -> ScannedPanel:
        """The panel without what a share of its rows tell, as `without_held_rows` of one in memory."""
        return self.altered(
            [partial(without_held_rows, fraction=fraction, seed=seed, first=first) for first in self.first_rows]
        )

    @property
    def first_rows(self) -> list[int]:
        """Number of the first row of each file."""
        return np.concatenate([[0], np.cumsum(self.lengths)])[self.firsts[:-1]].tolist()

    @property
    def groups(self) -> AnyArray | None:
        """(S,) labels of the groups, brought here; None if there are none."""
        found = self.each("groups", groups_of)
        return None if any(own is None for own in found) else np.concatenate(found)

    def refuse_dependence(self, structure: Any) -> None:
        """Refuse a structure whose rates depend on covariates, which panels on a cluster do not have."""
        if structure is not None and structure.depends:
            raise PanelError(
                "rates must not depend on covariates or breaks for a panel on a cluster, which has none; read the "
                "files with read_panel."
            )

    # ---------------------------------------------------------------- what workers do

    def each(self, name: str, work: Callable[..., Any], *shared: Any, only: Sequence[int] | None = None) -> list[Any]:
        """Results of work(panel of a file, *shared) in the order of the files; of some of them, if `only` these.

        The dashboard shows it by its name. An error of the panel names the file.
        """
        return self.each_own(name, work, dict.fromkeys(range(len(self.sources)) if only is None else only, shared))

    def each_own(self, name: str, work: Callable[..., Any], own: dict[int, tuple[Any, ...]]) -> list[Any]:
        """The same where each file has arguments of its own: {place of the file: arguments}."""
        tasks = [(self.sources[p], work, self.agreed, self.scale, arguments) for p, arguments in own.items()]
        return over_tasks(self.engine, name, part_work, tasks)

    def sample(self, most_rows: int, size: int | None = None) -> Panel:
        """About `most_rows` rows: sequences, or pieces of at most `size` rows, spread evenly over all."""
        if self.n_observations <= most_rows:
            return self.gather()
        marks = self.each("marks", cut_marks, size)
        chosen, longest = choose(marks, most_rows)
        firsts = np.cumsum([0, *(len(own.lengths) for own in marks)])
        places = np.searchsorted(chosen, firsts)
        own = [chosen[i:j] - first for (i, j), first in zip(pairwise(places), firsts, strict=False)]
        tasks = {p: (few, longest, size) for p, few in enumerate(own) if len(few)}
        return join_panels(self.each_own("sample", take, tasks))

    def gather(self) -> Panel:
        """All of it as one `Panel` in the memory of this process."""
        n = self.n_observations
        require_room(
            f"a panel of {n:,} rows",
            16.0 * (3 + self.n_columns) * n,  # its parts, and all together
            "leave it on the cluster, where models are fitted to it and write what they read out, or take a sample",
        )
        return join_panels(self.each("gather", whole))

    def at(self, sequence: int, work: Callable[..., Any], *arguments: Any) -> Any:
        """Result of work(panel of its file, place of the sequence there, *arguments), and the name of the file."""
        p = int(np.searchsorted(self.firsts, sequence, side="right")) - 1
        (found,) = self.each("look", work, sequence - int(self.firsts[p]), *arguments, only=[p])
        return found, self.sources[p].path

    def hold(self, record: Record, labels: AnyArray | None) -> Sequences:
        """The sequences on the workers, in the blocks that a panel in memory would be cut into.

        A block belongs to the file where it begins; where it ends in the next one, its worker fetches the rest.
        """
        client = self.engine.client
        client.wait_for_workers(1)
        offsets = np.concatenate([[0], np.cumsum(self.lengths)])
        bounds = cut_bounds(offsets)
        common = submit(client, "parameters", given, [(part_block, record, labels)]) * len(self.sources)
        tasks = [
            (source, self.agreed, self.scale, int(first), bool(self.known))
            for source, first in zip(self.sources, self.firsts, strict=False)
        ]
        parts = submit(client, "read", read_block, common, tasks)
        about = over_futures(client, "read: results", about_block, parts)
        chunks, counts = [], []
        for edges in chunk_bounds(bounds, offsets, self.firsts):
            p, q = np.searchsorted(self.firsts, [edges[0], edges[-1] - 1], side="right") - 1
            chunks.append((edges, parts[p : q + 1]))
            counts.append(len(edges) - 1)
        held = [
            client.submit(join_blocks, edges, *own, key=f"blocks-{parts[0].key[-36:]}-{k}", pure=False)
            for k, (edges, own) in enumerate(chunks)
        ]
        return Sequences(
            HeldThere(client, held, counts),
            self.weights,
            max(gap for gap, _ in about),
            all(exact for _, exact in about),
            float(self.weights @ self.lengths),
        )

    def write(self, name: str, folder: str | PathLike[str], work: Callable[..., Any], *shared: Any) -> list[str]:
        """A Parquet file of work(panel of a file, names of id and time, *shared), a dict of columns, for each file.

        Returns their paths.
        """
        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        tasks = {
            p: (str(out / f"part-{p:05}.parquet"), work, ((source.roles.id, source.roles.time), *shared))
            for p, source in enumerate(self.sources)
        }
        return self.each_own(name, write_part, tasks)


def chunk_bounds(bounds: Sequence[int], offsets: Ints, firsts: Ints) -> list[list[int]]:
    """Edges of blocks, a list for each task: those that begin in one file, of a bounded number of rows."""
    starts = np.asarray(bounds[:-1])
    file = np.searchsorted(firsts, starts, side="right") - 1
    found: list[list[int]] = []
    for k, start in enumerate(starts.tolist()):
        fresh = k == 0 or file[k] != file[k - 1]
        if fresh or offsets[start] - offsets[found[-1][0]] >= MOST_ROWS_OF_A_TASK:
            found.append([start])
        found[-1].append(bounds[k + 1])
    return found


def split_sequences(engine: Dask, sources: list[Source], digests: list[Digest | None]) -> dict[Any, list[int]]:
    """Ids with rows in several files, and the places of these."""
    places = [p for p, own in enumerate(digests) if own is not None]
    split = find_split([own for own in digests if own is not None])
    wanted: dict[int, set[int]] = {}
    for key, files in split:
        for k in files:
            wanted.setdefault(places[k], set()).add(key)
    tasks = [(sources[p], frozenset(keys)) for p, keys in wanted.items()]
    found = dict(zip(wanted, over_tasks(engine, "ids", ids_in, tasks), strict=True)) if tasks else {}
    homes: dict[Any, list[int]] = {}
    for key, files in split:
        for k in files:
            homes.setdefault(found[places[k]][key], []).append(places[k])
    return {key: files for key, files in homes.items() if len(files) > 1}
