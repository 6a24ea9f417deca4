"""What an engine works on, and the one block of work that every engine runs.

A panel is cut into fixed blocks of sequences. A block is decoded by `run_block`, whatever the engine;
an engine only decides where blocks run, and joins their statistics in order. So the number of
threads or machines never changes a bit of the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Ints, power_of_two, sum_in_order
from ..kernels.expectations import expect_block
from ..kernels.forward_backward import power_tables, smooth_block
from ..kernels.sweep import sweep_block
from ..model.objective import Stats, Weights
from ..model.process import Params, Process

if TYPE_CHECKING:
    from ..data.panel import Panel


MAX_ROUNDS = 100
BEAM_PER_GAP = 8
# Eigenvectors worse than this lose too many digits: expected statistics then go by digits.
LARGEST_CONDITION = 1e4


class Search(NamedTuple):
    """How jumps are looked for: candidates per gap at first, at most, and the paper's choices.

    rounds : 1 for a sweep of a fit; more alternate decoding and jump times to a fixed point.
    free_end : 1 if the running dwell costs nothing, as in the nonparametric objective as printed.
    """

    base: int
    per_gap: int
    beam: int
    first_running: int
    rounds: int = 1
    free_end: int = 0


class NoPathError(Exception):
    """Internal: sequence `sequence` has no path of finite cost; it dies at `row` (within the sequence)."""

    def __init__(self, sequence: int, row: int) -> None:
        super().__init__(sequence, row)
        self.sequence, self.row = sequence, row


@dataclass(frozen=True, eq=False)
class Sequences:
    """A panel in the layout of the kernels: times relative to each window, values encoded.

    tau (n,), offsets (S + 1,), ends (S,), weights (S,), x (n, D), blocks (B + 1,) bounds in sequences.
    """

    tau: Floats
    offsets: Ints
    ends: Floats
    weights: Floats
    x: Floats
    blocks: Ints

    @classmethod
    def from_panel(cls, panel: Panel, x: Floats) -> Sequences:
        """Lay out a panel whose encoded values are x (n, D)."""
        # blocks depend on the data alone, never on the number of workers
        n = panel.n_observations
        size = int(np.clip(n // 16, 512, 8192))
        edges = np.searchsorted(panel.offsets, np.arange(0, n, size))
        blocks = np.unique(np.append(edges, panel.n_sequences))
        return cls(
            panel.relative_times(),
            panel.offsets,
            panel.end_times - panel.start_times,
            panel.weights,
            x,
            blocks,
        )

    def block(self, b: int) -> tuple[slice, slice]:
        """Sequences and rows of block b."""
        i, j = self.blocks[b], self.blocks[b + 1]
        return slice(i, j), slice(self.offsets[i], self.offsets[j])

    def part(self, first: int, last: int) -> Sequences:
        """The sequences of blocks first, ..., last - 1 alone."""
        i, j = self.blocks[first], self.blocks[last]
        lines = slice(self.offsets[i], self.offsets[j])
        return Sequences(
            self.tau[lines],
            self.offsets[i : j + 1] - self.offsets[i],
            self.ends[i:j],
            self.weights[i:j],
            self.x[lines],
            self.blocks[first : last + 1] - i,
        )

    @property
    def longest_gap(self) -> float:
        """No gap, window ends included, is longer."""
        inside = np.diff(self.tau, prepend=0.0)
        inside[self.offsets[:-1]] = self.tau[self.offsets[:-1]]
        return float(max(inside.max(), (self.ends - self.tau[self.offsets[1:] - 1]).max(), 0.0))

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.blocks) - 1


@dataclass(eq=False)
class Dwells:
    """Room for the current dwells of every sequence, and the state of every row. Engines write into it.

    slots (S + 1,): dwells of sequence i lie at slots[i]:slots[i] + counts[i] of states, starts, rows.
    """

    slots: Ints
    states: NDArray[np.int32]
    starts: Floats
    rows: NDArray[np.int32]
    counts: Ints
    row_states: NDArray[np.int32]

    @classmethod
    def blank(cls, sequences: Sequences, per_gap: int) -> Dwells:
        """No jumps yet; room for `per_gap` in every gap."""
        first, last = sequences.tau[sequences.offsets[:-1]], sequences.tau[sequences.offsets[1:] - 1]
        gaps = np.diff(sequences.offsets) - 1 + (first > 0) + (last < sequences.ends)
        slots = np.concatenate([[0], np.cumsum(1 + per_gap * gaps)])
        room = int(slots[-1])
        return cls(
            slots,
            np.zeros(room, np.int32),
            np.zeros(room),
            np.zeros(room, np.int32),
            np.ones(len(gaps), np.int64),
            np.zeros(len(sequences.tau), np.int32),
        )


def run_block(
    sequences: Sequences,
    dwells: Dwells,
    b: int,
    params: Params,
    costs: Floats,
    weights: Weights,
    search: Search,
) -> Stats:
    """Decode block b, write its dwells, return its statistics. `costs` are those of the jumps, (M, M)."""
    own, lines = sequences.block(b)
    M = params.emission.n_states
    S = own.stop - own.start
    x = sequences.x[lines]
    offsets = sequences.offsets[own.start : own.stop + 1]
    exits, time, log_time, jumps = np.zeros(M), np.zeros(M), np.zeros(M), np.zeros((M, M))
    run_state, run_time = np.full((S, 2), -1, np.int32), np.zeros((S, 2))
    slots = dwells.slots[own.start : own.stop + 1]
    room = slice(slots[0], slots[-1])
    row_states = dwells.row_states[lines]
    where = sweep_block(
        sequences.tau[lines], np.isfinite(x).any(axis=1), offsets - offsets[0],
        sequences.ends[own], sequences.weights[own],
        params.emission.cost(x, weights.emission), params.rates, costs, tuple(search),
        slots - slots[0], dwells.states[room], dwells.starts[room], dwells.rows[room], dwells.counts[own],
        row_states, exits, time, log_time, jumps, run_state, run_time,
    )  # fmt: skip
    if where[0] >= 0:  # found after the row that no state could explain
        raise NoPathError(int(own.start + where[0]), int(where[1]) - 1)
    row_weights = np.repeat(sequences.weights[own], np.diff(offsets))
    emission = params.emission.stats(x, row_states, row_weights)
    return Stats(exits, time, log_time, jumps, run_state, run_time, sequences.weights[own], emission)


@dataclass(frozen=True, eq=False)
class Propagator:
    """A process made ready for the probability kernels: tables for e^{Qt}, and the eigenbasis of Q if it is sound."""

    process: Process
    tables: tuple[Any, ...]
    eigen: tuple[Any, ...]
    basis: tuple[NDArray[np.complex128], NDArray[np.complex128]]

    @classmethod
    def of(cls, process: Process, longest_gap: float) -> Propagator:
        """Tables for gaps up to the longest one."""
        Q = process.generator()
        unit = power_of_two(float(process.rates.max()))  # so that the unit of time cannot change a digit
        eigenvalues, V = (part.astype(np.complex128) for part in np.linalg.eig(Q / unit))
        eigenvalues *= unit
        sound = np.linalg.cond(V) < LARGEST_CONDITION
        # of a pair of complex vectors, the real and imaginary parts of the first one
        first, second = eigenvalues.imag > 0, eigenvalues.imag < 0
        real = V.real.copy()
        real[:, second] = V.imag[:, first]
        inverse_T = np.ascontiguousarray(np.linalg.inv(real).T) if sound else real
        inverse_T[:, first] *= 0.5
        inverse_T[:, second] *= -0.5
        left = inverse_T.astype(np.complex128)
        left[:, first] += 1j * inverse_T[:, second]
        left[:, second] = left[:, first].conj()
        differences = eigenvalues[:, None] - eigenvalues[None, :]
        inverses = 1.0 / np.where(differences == 0, 1.0, differences)
        eigen = (bool(sound), eigenvalues, real, inverse_T, differences, inverses)
        return cls(process, power_tables(Q, longest_gap), eigen, (left, V.T))

    def transform(self, S: NDArray[np.complex128]) -> Floats:
        """Statistics gathered in the eigenbasis, back in states."""
        sound, eigenvalues = self.eigen[:2]
        if not sound:
            return np.zeros(S.shape)
        # of a pair of complex eigenvalues, what the second one adds is the conjugate of what the first one adds
        share = 1.0 + np.sign(eigenvalues.imag)
        shares = np.where(eigenvalues.imag[:, None] == 0, share[None, :], share[:, None])
        left, right = self.basis
        return np.asarray((left @ (shares * S) @ right).real)


class Expected(NamedTuple):
    """Expected statistics of the process given all observations, weighted; those of blocks add up in order.

    integrals : (M, M) Σ R: diagonal = time in each state, times q_ij = number of jumps; first : (M,) first states;
    emission : statistics of each column under soft assignment; log_lik : (S,) log-likelihood of each sequence.
    """

    integrals: Floats
    first: Floats
    emission: tuple[Any, ...]
    log_lik: Floats


def smooth_one(sequences: Sequences, b: int, propagator: Propagator, posterior: Floats, log_lik: Floats) -> None:
    """Posterior of the rows of block b (OUT) and log-likelihood of its sequences (OUT)."""
    own, lines = sequences.block(b)
    offsets = sequences.offsets[own.start : own.stop + 1]
    process = propagator.process
    where = smooth_block(
        sequences.tau[lines], offsets - offsets[0], process.emission.unit_log_density(sequences.x[lines]),
        process.initial_probs, propagator.tables, posterior[lines], log_lik[own],
    )  # fmt: skip
    if where[0] >= 0:
        raise NoPathError(int(own.start + where[0]), int(where[1]))
    log_lik[own] -= np.add.reduceat(process.emission.log_units(sequences.x[lines]), offsets[:-1] - offsets[0])


def expect_one(sequences: Sequences, b: int, propagator: Propagator) -> Expected:
    """Expected statistics of block b."""
    own, lines = sequences.block(b)
    offsets = sequences.offsets[own.start : own.stop + 1]
    process = propagator.process
    M = len(process.rates)
    x = sequences.x[lines]
    posterior, log_lik = np.empty((len(x), M)), np.zeros(own.stop - own.start)
    S, R, first = np.zeros((M, M), np.complex128), np.zeros((M, M)), np.zeros(M)
    where = expect_block(
        sequences.tau[lines], offsets - offsets[0], sequences.ends[own], sequences.weights[own],
        process.emission.unit_log_density(x), process.initial_probs, propagator.tables, propagator.eigen,
        posterior, log_lik, S, R, first,
    )  # fmt: skip
    if where[0] >= 0:
        raise NoPathError(int(own.start + where[0]), int(where[1]))
    log_lik -= np.add.reduceat(process.emission.log_units(x), offsets[:-1] - offsets[0])
    posterior *= np.repeat(sequences.weights[own], np.diff(offsets))[:, None]
    return Expected(R + propagator.transform(S), first, process.emission.soft_stats(x, posterior), log_lik)


def join_expected(parts: list[Expected]) -> Expected:
    """Expected statistics of all blocks, added in their order."""
    return Expected(
        sum_in_order([part.integrals for part in parts]),
        sum_in_order([part.first for part in parts]),
        tuple(sum_in_order(list(column)) for column in zip(*(part.emission for part in parts), strict=True)),
        np.concatenate([part.log_lik for part in parts]),
    )


class Engine(Protocol):
    """Where the blocks run."""

    def sweep(self, sequences: Sequences, dwells: Dwells, params: Params, weights: Weights, search: Search) -> Stats:
        """Decode all blocks into `dwells`; statistics joined in sequence order."""

    def smooth(self, sequences: Sequences, process: Process) -> tuple[Floats, Floats]:
        """Posterior (n, M) of every row, and log-likelihood (S,) of every sequence."""

    def expect(self, sequences: Sequences, process: Process) -> Expected:
        """Expected statistics of all blocks, joined in sequence order."""
