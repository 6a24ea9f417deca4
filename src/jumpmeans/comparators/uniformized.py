"""Paths of a process with a given number of states, drawn by uniformization, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Ints
from ..engines.base import Dwells, Engine, NoPathError, Sequences
from ..kernels.uniformization import events_at_rows, sample_block
from ..model.process import Process
from ..model.structure import jumps_needed

T = TypeVar("T")

# Ω over the largest rate: as many events left out as kept in the fastest state (Rao and Teh's choice).
UNIFORMIZATION = 2.0


class Block(NamedTuple):
    """Paths of the sequences of one block: dwells (S + 1,) offsets; states, starts and first row of each dwell."""

    dwells: Ints
    states: NDArray[np.int32]
    starts: Floats
    rows: NDArray[np.int32]


@dataclass(eq=False)
class Paths:
    """Current paths of all sequences; sums jumps (M, M), time (M,), first (M,) over them; row_states (n,)."""

    blocks: list[Block]
    jumps: Floats
    time: Floats
    first: Floats
    row_states: Ints

    @classmethod
    def at_rows(cls, sequences: Sequences, moves: NDArray[np.bool_]) -> Paths:
        """Possible jumps at the rows, and between them where one jump is not enough; states not drawn yet."""
        blocks = []
        for b in range(sequences.n_blocks):
            own, lines = sequences.block(b)
            offsets = sequences.offsets[own.start : own.stop + 1]
            dwells, starts = events_at_rows(sequences.tau[lines], offsets - offsets[0], jumps_needed(moves))
            blocks.append(Block(dwells, np.zeros(len(starts), np.int32), starts, np.zeros(len(starts), np.int32)))
        M = len(moves)
        return cls(blocks, np.zeros((M, M)), np.zeros(M), np.zeros(M), np.zeros(len(sequences.tau), np.int64))

    def to_dwells(self) -> Dwells:
        """All paths in the layout of `publish_trajectories`."""
        counts = np.concatenate([np.diff(block.dwells) for block in self.blocks])
        states, starts, rows = (np.concatenate(part) for part in list(zip(*self.blocks, strict=True))[1:])
        slots = np.concatenate([[0], np.cumsum(counts)])
        return Dwells(slots, states, starts, rows, counts, self.row_states.astype(np.int32))


def draw_paths(
    engine: Engine,
    sequences: Sequences,
    paths: Paths,
    process: Process,
    log_density: Floats,
    rngs: Sequence[np.random.Generator],
    *,
    fresh: bool = False,
) -> Paths:
    """New paths given the parameters; `fresh` ones jump only where the current ones may."""
    M = len(process.rates)
    rate = UNIFORMIZATION * float(process.rates.max())
    B = np.eye(M) + (process.rate_matrix / rate if rate > 0 else 0.0)
    both = np.stack([B, B.T])
    seen = np.asarray(np.isfinite(sequences.x).any(axis=1))
    lik = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    row_states = np.zeros(len(sequences.tau), np.int64)

    def work(b: int) -> tuple[Block, Floats, Floats, Floats]:
        own, lines = sequences.block(b)
        offsets = sequences.offsets[own.start : own.stop + 1]
        jumps, time, first = np.zeros((M, M)), np.zeros(M), np.zeros(M)
        old = paths.blocks[b]
        *block, where = sample_block(
            sequences.tau[lines], seen[lines], offsets - offsets[0], sequences.ends[own], lik[lines],
            process.initial_probs, process.rates, both, 0.0 if fresh else rate, old.dwells, old.states, old.starts,
            rngs[b], row_states[lines], jumps, time, first,
        )  # fmt: skip
        if where[0] >= 0:
            raise NoPathError(int(own.start + where[0]), int(where[1]))
        return Block(*block), jumps, time, first

    blocks, jumps, time, first = zip(*map_blocks(engine, work, sequences.n_blocks), strict=True)
    return Paths(list(blocks), sum(jumps), sum(time), sum(first), row_states)


def map_blocks(engine: Engine, work: Callable[[int], T], n: int) -> list[T]:
    """Work on every block where the engine runs them, else one after the other."""
    run = getattr(engine, "_map", None)
    return [work(b) for b in range(n)] if run is None else run(work, n)


def log_joint(paths: Paths, process: Process, log_density: Floats) -> float:
    """Log-density of paths and values given the parameters."""
    rates = process.rates[:, None] * process.transition_probs
    used = paths.jumps > 0
    started = paths.first > 0
    return float(
        (paths.jumps[used] * np.log(rates[used])).sum()
        - process.rates @ paths.time
        + paths.first[started] @ np.log(process.initial_probs[started])
        + log_density[np.arange(len(log_density)), paths.row_states].sum()
    )
