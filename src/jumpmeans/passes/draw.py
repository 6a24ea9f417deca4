"""Paths of a process drawn given all observations, by uniformization (Rao and Teh 2013)."""

from __future__ import annotations

from threading import local
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Floats, Ints, sum_in_order
from ..kernels.uniformization import compare_states, events_at_rows, sample_block
from ..kinds import FORCES, NAMES, PINS, SNAPSHOT
from ..model.process import Process
from .block import Block, Dwells

# Ω over the largest rate: as many events left out as kept in the fastest state (Rao and Teh's choice).
UNIFORMIZATION = 2.0


class Unseeded(np.random.SeedSequence):
    """No entropy: for generators whose state is set, which spares them the search for a good one."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """Zeros."""
        return np.zeros(n_words, dtype)


UNSEEDED = Unseeded()


class Generators(local):
    """One generator of each kind in each thread: to make one, and to hand a new one to a kernel, is dear."""

    def __init__(self) -> None:
        self.of: dict[type[np.random.BitGenerator], np.random.Generator] = {}


GENERATORS = Generators()


class Numbers(NamedTuple):
    """Random numbers to come: the kind of generator, and where it stands."""

    kind: type[np.random.BitGenerator]
    state: Any

    @classmethod
    def of(cls, rng: np.random.Generator) -> Numbers:
        """Those that a generator would give next."""
        return cls(type(rng.bit_generator), rng.bit_generator.state)

    def generator(self) -> np.random.Generator:
        """A generator of them, until this thread asks for the next one."""
        rng = GENERATORS.of.get(self.kind)
        if rng is None:
            rng = GENERATORS.of[self.kind] = np.random.Generator(self.kind(UNSEEDED))
        rng.bit_generator.state = self.state
        return rng


class Paths(NamedTuple):
    """Current paths of a block, and the random numbers that its next ones are drawn with."""

    dwells: Dwells
    numbers: Numbers


class Law(NamedTuple):
    """What the parameters say to all blocks: the process, Ω, and what events do to the state.

    steps : (kinds, M, M) the matrix of an event by the kind of the row that it belongs to (none: I + Q/Ω), transposed:
    [kind, state after, state before].
    """

    process: Process
    rate: float
    steps: Floats

    @classmethod
    def of(cls, process: Process) -> Law:
        """The law of paths under a process."""
        Q, rate = process.rate_matrix, UNIFORMIZATION * float(process.rates.max())
        stay = np.eye(len(Q))
        jump = np.where(stay > 0, 0.0, Q)
        steps = np.repeat(stay[None], len(NAMES), axis=0)
        steps[SNAPSHOT] += Q.T / rate if rate > 0 else 0.0
        steps[PINS] += jump.T
        steps[FORCES] = jump.T
        return cls(process, rate, steps)


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
    return Paths(Dwells(offsets, blank, starts, blank), Numbers.of(rng)), None


def draw(block: Block, paths: Paths, law: Law, fresh: bool) -> tuple[Paths, Drawn]:
    """New paths given the parameters; `fresh` ones jump only where the current ones may."""
    process, M = law.process, len(law.process.rates)
    # units are the same in all states: they cancel
    log_density = block.admitted(process.emission.unit_log_density(block.x))
    lik = np.empty(log_density.shape)
    compare_states(log_density, lik)
    np.exp(lik, out=lik)
    row_states = np.zeros(len(block.tau), np.int64)
    jumps, time, first = np.zeros((M, M)), np.zeros(M), np.zeros(M)
    old, rng = paths.dwells, paths.numbers.generator()
    *dwells, where = sample_block(
        block.tau, block.row_kinds, block.tells, block.offsets, block.ends, lik, process.initial_probs,
        process.rates, law.steps, 0.0 if fresh else law.rate,
        old.offsets, old.states, old.starts, old.rows, rng,
        row_states, jumps, time, first,
    )  # fmt: skip
    if where[0] >= 0:
        raise block.no_path(where[0], where[1], -log_density)
    return Paths(Dwells(*dwells), Numbers.of(rng)), Drawn(jumps, time, first, row_states)
