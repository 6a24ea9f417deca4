"""Paths of a process drawn given all observations, by uniformization (Rao and Teh 2013)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Floats, Ints, sum_in_order
from ..kernels.uniformization import events_at_rows, sample_block
from ..model.process import Process
from .block import Block, Dwells

# Ω over the largest rate: as many events left out as kept in the fastest state (Rao and Teh's choice).
UNIFORMIZATION = 2.0


class Paths(NamedTuple):
    """Current paths of a block, and the random numbers that its next ones are drawn with."""

    dwells: Dwells
    rng: np.random.Generator


class Drawn(NamedTuple):
    """What follows from drawn paths: sums jumps (M, M), time (M,), first (M,) over them; row_states (n,)."""

    jumps: Floats
    time: Floats
    first: Floats
    row_states: Ints

    @classmethod
    def join(cls, parts: list[Drawn]) -> Drawn:
        """The same of all blocks, in their order."""
        jumps, time, first = (sum_in_order([part[k] for part in parts]) for k in range(3))
        return cls(jumps, time, first, np.concatenate([part.row_states for part in parts]))


def begin(block: Block, rng: np.random.Generator, jumps: int) -> tuple[Paths, None]:
    """Possible jumps at the rows, and between them where one jump is not enough; states not drawn yet."""
    offsets, starts = events_at_rows(block.tau, block.offsets, jumps)
    blank = np.zeros(len(starts), np.int32)
    return Paths(Dwells(offsets, blank, starts, blank), rng), None


def copied(rng: np.random.Generator) -> np.random.Generator:
    """The same random numbers again: drawing changes a generator, and a pass changes nothing that it is given."""
    bits = type(rng.bit_generator)(0)
    bits.state = rng.bit_generator.state
    return np.random.Generator(bits)


def draw(block: Block, paths: Paths, process: Process, fresh: bool) -> tuple[Paths, Drawn]:
    """New paths given the parameters; `fresh` ones jump only where the current ones may."""
    M = len(process.rates)
    rate = UNIFORMIZATION * float(process.rates.max())
    B = np.eye(M) + (process.rate_matrix / rate if rate > 0 else 0.0)
    log_density = process.emission.log_density(block.x)
    lik = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    row_states = np.zeros(len(block.tau), np.int64)
    jumps, time, first = np.zeros((M, M)), np.zeros(M), np.zeros(M)
    old, rng = paths.dwells, copied(paths.rng)
    *dwells, where = sample_block(
        block.tau, block.seen, block.offsets, block.ends, lik, process.initial_probs, process.rates,
        np.stack([B, B.T]), 0.0 if fresh else rate, old.offsets, old.states, old.starts, rng,
        row_states, jumps, time, first,
    )  # fmt: skip
    if where[0] >= 0:
        raise block.no_path(where[0], where[1], -log_density)
    return Paths(Dwells(*dwells), rng), Drawn(jumps, time, first, row_states)
