"""What workers do with the files of a panel that lies on a cluster, and how they are told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..arrays import AnyArray, Ints
from ..data.deriving import pieces
from ..data.panel import Panel
from ..data.sampling import marks_of
from ..data.scan import Agreed, Source, aligned, ids_of, in_file
from ..emissions import Record
from ..errors import PanelError
from ..passes.block import Block
from .dask import Dask, submit


def over(engine: Dask, name: str, work: Callable[..., Any], sources: Sequence[Source], *shared: Any) -> list[Any]:
    """Results of work(source, *shared) for each source."""
    return over_tasks(engine, name, work, [(source, *shared) for source in sources])


def over_tasks(engine: Dask, name: str, work: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> list[Any]:
    """Results of work(*task) in the order of the tasks; of errors of panels the first in this order is raised."""
    client = engine.client
    client.wait_for_workers(1)
    return over_futures(client, name, attempt, [work] * len(tasks), tasks)


def over_futures(client: Any, name: str, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
    """Results of work(*arguments), brought here."""
    found = client.gather(submit(client, name, work, *arguments))
    for result in found:
        if isinstance(result, PanelError):
            raise result
    return list(found)


# ------------------------------------------------------------------------------------------------ on the workers


def attempt(work: Callable[..., Any], task: tuple[Any, ...]) -> Any:
    """The result of a task, or the error of its panel."""
    try:
        return work(*task)
    except PanelError as error:
        return error


def ids_in(source: Source, keys: frozenset[int]) -> dict[int, Any]:
    """Ids of a file behind some keys."""
    panel = source.read()
    return {} if panel is None else ids_of(panel, keys)


def panel_of(source: Source, agreed: Agreed, scale: float) -> Panel:
    """The panel of a file as a part of all."""
    panel = source.read()
    if panel is None:
        raise PanelError(f"{source.path!r} must be as it was when it was scanned, but has no rows now; scan it again.")
    panel = aligned(panel, agreed)
    return panel if scale == 1.0 else replace(panel, weights=panel.weights * scale)


def part_work(source: Source, work: Callable[..., Any], agreed: Agreed, scale: float, shared: tuple[Any, ...]) -> Any:
    """A task of `each`; errors name the file."""
    panel = panel_of(source, agreed, scale)
    with in_file(source.path):
        return work(panel, *shared)


def whole(panel: Panel) -> Panel:
    """The panel of a file."""
    return panel


def groups_of(panel: Panel) -> AnyArray | None:
    """Labels of the groups of a file."""
    return panel.groups


def cut_marks(panel: Panel, size: int | None) -> Any:
    """Marks of the sequences, or of their pieces."""
    return marks_of(pieces(panel, size) if size else panel)


def take(panel: Panel, chosen: Ints, longest: int, size: int | None) -> Panel:
    """Some sequences, or pieces, and the first rows of each."""
    return (pieces(panel, size) if size else panel).select(chosen).head(longest)


def part_block(panel: Panel, record: Record, labels: AnyArray | None, first: int, known: bool) -> Block:
    """All of a file as one block, whose first sequence has the given number."""
    return replace(Block.of(panel, record.encode(panel), labels if known else None), first=first)


def read_block(common: tuple[Any, ...], task: tuple[Any, ...]) -> Block | PanelError:
    """The block of a file, or the error of its panel."""
    work, record, labels = common
    source, agreed, scale, first, known = task
    return attempt(part_work, (source, work, agreed, scale, (record, labels, first, known)))


def about_block(block: Block | PanelError) -> Any:
    """What must be known of all blocks together: the longest gap, and whether rows tell all that happened."""
    return block if isinstance(block, PanelError) else (block.longest_gap, block.is_exact)


def join_blocks(edges: list[int], *parts: Block) -> list[Block]:
    """The blocks between edges, numbers of sequences, from the blocks of one file or of several in a row."""
    own = [part.part(max(edges[0] - part.first, 0), min(edges[-1] - part.first, part.n_sequences)) for part in parts]
    joined = Block.joined([part for part in own if part.n_sequences])
    return [joined.part(i - edges[0], j - edges[0]) for i, j in pairwise(edges)]


def write_part(panel: Panel, path: str, work: Callable[..., Any], shared: tuple[Any, ...]) -> str:
    """A Parquet file of what a read-out says of a panel."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(work(panel, *shared)), path)
    return path
