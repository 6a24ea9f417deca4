"""Where the rows of sequences lie on a device: 32 sequences of like length side by side, row by row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import cuda

from ...arrays import Floats, Ints
from ...kernels.cuda.arithmetic import LANES, SUM_BLOCKS, SUM_THREADS, THREADS
from ...kernels.cuda.sums import add_blocks, blank_dwells, lay_out, number_counts, pack_dwells
from ...passes.block import Block, Dwells

# States that a row allows are the bits of one number.
MOST_MASKED = 64
# Jobs of a kernel that works in memory that all threads share, at most; and bytes that it may take.
MOST_THREADS, MOST_SCRATCH = 1 << 17, 1 << 34


def places(lengths: Ints, room: Any) -> tuple[Ints, int]:
    """(S,) place of the first of `room(length)` slots of each sequence, in their order, and how many slots there are.

    Sequences are in order of length, so that the last of 32 says how long all of them are.
    """
    S = len(lengths)
    groups = -(-S // LANES)
    last = np.minimum(np.arange(1, groups + 1) * LANES, S) - 1
    ends = np.cumsum(room(lengths[last])) * LANES
    begins = np.append(0, ends[:-1])
    return np.repeat(begins, LANES)[:S] + np.arange(S) % LANES, int(ends[-1])


def blocks_of(n: int) -> int:
    """Blocks of threads that have one for each of n things."""
    return max(1, -(-n // THREADS))


@dataclass
class DeviceDwells:
    """Dwells of all sequences on the device: number (S,), and states, starts and rows at the places of `at` (S,)."""

    at: Any
    counts: Any
    states: Any
    starts: Any
    rows: Any

    @property
    def arrays(self) -> tuple[Any, ...]:
        """As kernels take them."""
        return self.at, self.counts, self.states, self.starts, self.rows


@dataclass
class Layout:
    """Sequences on a device. Arrays are there, but for those that say otherwise.

    at, row0, numbers (S,): place of the first row, the same in the order of the panel, number in the panel.
    lengths, ends, weights (S,); tau, seen, kinds, mask (N,); x (D, N): interleaved. mask: states that a row allows.
    by_number (S,): weights in the order of the panel.
    n_rows: rows of the panel; longest: of a sequence; most_gap: kinds that are not snapshots in a sequence at most.
    """

    real: Any
    sequences: tuple[Any, ...]
    weights: Any
    by_number: Any
    tau: Any
    x: Any
    seen: Any
    kinds: Any
    mask: Any
    has_kinds: bool
    is_masked: bool
    n_sequences: int
    n_rows: int
    longest: int
    lengths: Ints
    rooms: dict[tuple[int, Any], tuple[Any, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, block: Block, real: Any) -> Layout:
        """The sequences of a block, sent to the device."""
        lengths = np.diff(block.offsets)
        order = np.argsort(lengths, kind="stable")
        lengths, S, n = lengths[order], block.n_sequences, len(block.tau)
        at, size = places(lengths, lambda length: length)
        sequences = (
            cuda.to_device(at), cuda.to_device(block.offsets[:-1][order]), cuda.to_device(lengths.astype(np.int32)),
            cuda.to_device(block.ends[order].astype(real)), cuda.to_device(order),
        )  # fmt: skip

        def interleaved(values: Any, dtype: Any, out: Any = None) -> Any:
            out = cuda.device_array(size, dtype) if out is None else out
            lay_out[blocks_of(S), THREADS](sequences, cuda.to_device(np.ascontiguousarray(values, dtype)), out)
            return out

        x = cuda.device_array((block.x.shape[1], size), real)
        for d in range(len(x)):
            interleaved(block.x[:, d], real, x[d])
        has_kinds = bool(block.row_kinds.any())
        allowed = block.allowed
        nothing = np.zeros(1, np.int8)
        mask = cuda.to_device(np.zeros(1, np.uint64))
        if allowed is not None and allowed.shape[1] <= MOST_MASKED:
            mask = interleaved(allowed @ (np.uint64(1) << np.arange(allowed.shape[1], dtype=np.uint64)), np.uint64)
        return cls(
            real, sequences, cuda.to_device(block.weights[order]), cuda.to_device(block.weights),
            interleaved(block.tau, real), x, interleaved(block.holds, np.bool_),
            interleaved(block.row_kinds, np.int8) if has_kinds else cuda.to_device(nothing),
            mask, has_kinds, allowed is not None, S, n, int(lengths[-1]), lengths,
        )  # fmt: skip

    def most_dwells(self, per_gap: int) -> int:
        """Dwells of a sequence at most."""
        return int(self._room(per_gap)(self.longest))

    def _room(self, per_gap: int) -> Any:
        """Room for the dwells of a sequence by its length."""
        return lambda length: 1 + per_gap * (length + 1) + (length if self.has_kinds else 0)

    def new_dwells(self, per_gap: int, n_states: int) -> DeviceDwells:
        """Room for dwells with so many jumps in a gap at most."""
        if (per_gap, None) not in self.rooms:
            at, size = places(self.lengths, self._room(per_gap))
            self.rooms[per_gap, None] = cuda.to_device(at), size
        at, size = self.rooms[per_gap, None]
        codes = np.int8 if n_states <= np.iinfo(np.int8).max else np.int16
        rows = np.int16 if self.longest < np.iinfo(np.int16).max else np.int32
        return DeviceDwells(
            at, cuda.device_array(self.n_sequences, np.int32), cuda.device_array(size, codes),
            cuda.device_array(size, self.real), cuda.device_array(size, rows),
        )  # fmt: skip

    def blank(self) -> DeviceDwells:
        """Dwells without jumps."""
        dwells = self.new_dwells(0, 1)
        blank_dwells[blocks_of(self.n_sequences), THREADS](dwells.arrays)
        return dwells

    def fetch(self, dwells: DeviceDwells) -> Dwells:
        """Dwells of all sequences, brought here."""
        S, grid = self.n_sequences, blocks_of(self.n_sequences)
        counts = cuda.device_array(S, np.int32)
        number_counts[grid, THREADS](self.sequences, dwells.counts, counts)
        offsets = np.append(0, np.cumsum(counts.copy_to_host(), dtype=np.int64))
        states, rows = (cuda.device_array(int(offsets[-1]), np.int32) for _ in range(2))
        starts = cuda.device_array(int(offsets[-1]), np.float64)
        pack_dwells[grid, THREADS](
            self.sequences, dwells.arrays, cuda.to_device(offsets[:-1]), states, starts, rows
        )  # fmt: skip
        return Dwells(offsets, states.copy_to_host(), starts.copy_to_host(), rows.copy_to_host())


def scratch(shapes: list[tuple[tuple[int, ...], Any]], jobs: int, threads: int) -> tuple[tuple[Any, ...], int]:
    """Memory for as many threads as there are jobs, or as it may take; and how many blocks of threads that is."""
    each = sum(int(np.prod(shape)) * np.dtype(dtype).itemsize for shape, dtype in shapes)
    n = max(1, min(jobs, MOST_THREADS, MOST_SCRATCH // each))
    blocks = max(1, n // threads)
    return tuple(cuda.device_array((*shape, blocks * threads), dtype) for shape, dtype in shapes), blocks


def no_scratch(shapes: list[tuple[tuple[int, ...], Any]]) -> tuple[Any, ...]:
    """The same for threads that keep all beside themselves."""
    return tuple(cuda.device_array((1,) * (len(shape) + 1), dtype) for shape, dtype in shapes)


def total(parts: Any) -> Floats:
    """Sums of all blocks (blocks, n), brought here as (n,)."""
    n = parts.shape[1]
    out = cuda.device_array(n, np.float64)
    add_blocks[blocks_of(n), THREADS](parts, out)
    return np.asarray(out.copy_to_host())


def sum_grid(n_sequences: int) -> tuple[int, int]:
    """Blocks and threads of a sum: by the data alone."""
    return min(SUM_BLOCKS, -(-n_sequences // SUM_THREADS)), SUM_THREADS
