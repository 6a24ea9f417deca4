"""Paths of a process drawn given all observations, by uniformization (Rao and Teh 2013)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Floats, Ints, sum_in_order
from ..kernels.uniformization import events_at_rows, sample_block
from ..kinds import ENTRY, HELD, SNAPSHOT, TRANSITION
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
    offsets, starts = events_at_rows(block.tau, block.row_kinds, block.offsets, jumps)
    blank = np.zeros(len(starts), np.int32)
    return Paths(Dwells(offsets, blank, starts, blank), rng), None


def copied(rng: np.random.Generator) -> np.random.Generator:
    """The same random numbers again: drawing changes a generator, and a pass changes nothing that it is given."""
    bits = type(rng.bit_generator)(0)
    bits.state = rng.bit_generator.state
    return np.random.Generator(bits)


def matrices(Q: Floats, rate: float) -> Floats:
    """(4, M, M) what an event does to the state, by the kind of the row that it belongs to; none: I + Q/Ω."""
    stay = np.eye(len(Q))
    jump = np.where(stay > 0, 0.0, Q)
    steps = np.empty((4, *Q.shape))
    steps[SNAPSHOT] = stay + (Q / rate if rate > 0 else 0.0)
    steps[TRANSITION], steps[ENTRY], steps[HELD] = stay + jump, jump, stay
    return steps


def draw(block: Block, paths: Paths, process: Process, fresh: bool) -> tuple[Paths, Drawn]:
    """New paths given the parameters; `fresh` ones jump only where the current ones may."""
    M = len(process.rates)
    rate = UNIFORMIZATION * float(process.rates.max())
    log_density = block.admitted(process.emission.log_density(block.x))
    top = log_density.max(axis=1, keepdims=True)
    lik = np.exp(log_density - np.where(top > -np.inf, top, 0.0))
    seen = block.seen if block.allowed is None else block.seen | ~block.allowed.all(axis=1)
    steps = matrices(process.rate_matrix, rate)
    row_states = np.zeros(len(block.tau), np.int64)
    jumps, time, first = np.zeros((M, M)), np.zeros(M), np.zeros(M)
    old, rng = paths.dwells, copied(paths.rng)
    *dwells, where = sample_block(
        block.tau, block.row_kinds, seen, block.offsets, block.ends, lik, process.initial_probs, process.rates,
        np.stack([steps, steps.transpose(0, 2, 1)]), 0.0 if fresh else rate,
        old.offsets, old.states, old.starts, old.rows, rng,
        row_states, jumps, time, first,
    )  # fmt: skip
    if where[0] >= 0:
        raise block.no_path(where[0], where[1], -log_density)
    return Paths(Dwells(*dwells), rng), Drawn(jumps, time, first, row_states)
