"""Sums over all sequences, in one order: each thread adds what is its own, a tree adds the threads of a block, and then
the blocks are added first to last. So two runs agree to the last bit, and no addition waits for another.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from ...forms import COUNTS, MEAN, NOTHING
from .arithmetic import LANES, SUM_THREADS, log
from .values import make_value

# Sums that a block makes at a time.
TOGETHER = 16


class Summed(NamedTuple):
    """What statistics are made of: n_states M, real, and of each column its form, what is kept, number of codes.

    begin : sums that stand before those of the columns.
    """

    n_states: int
    real: Any
    columns: tuple[tuple[str, str, int], ...]
    begin: int

    @property
    def column_places(self) -> list[int]:
        """Where the sums of each column begin, and where the last ones end."""
        M, places = self.n_states, [self.begin]
        for _, kept, codes in self.columns:
            places.append(places[-1] + {NOTHING: 0, MEAN: 3 * M, COUNTS: M * codes}[kept])
        return places


def make_block_sum(n):
    """block_sum(own (n,), out (blocks, n)): sums of a block's threads, by a tree."""

    @cuda.jit(device=True)
    def block_sum(own, out):
        shared = cuda.shared.array((TOGETHER, SUM_THREADS), np.float64)
        thread, block = cuda.threadIdx.x, cuda.blockIdx.x
        for first in range(0, n, TOGETHER):
            last = min(first + TOGETHER, n)
            for k in range(first, last):
                shared[k - first, thread] = own[k]
            width = SUM_THREADS // 2
            while width > 0:
                cuda.syncthreads()
                if thread < width:
                    for k in range(last - first):
                        shared[k, thread] += shared[k, thread + width]
                width //= 2
            if thread == 0:
                for k in range(first, last):
                    out[block, k] = shared[k - first, 0]
            cuda.syncthreads()

    return block_sum


def make_column(form, kept, codes, d, place, M, real):
    """add(x, theta, origin, at, s, w, own): what one row adds to the sums of column d, which begin at `place`."""
    if kept == COUNTS:

        @cuda.jit(device=True)
        def add(x, theta, origin, at, s, w, own):
            y = x[d, at]
            if y == y:
                own[place + s * codes + np.int32(y)] += w

    else:
        value = make_value(form, real)

        @cuda.jit(device=True)
        def add(x, theta, origin, at, s, w, own):
            y = x[d, at]
            if y == y:
                own[place + s] += w
                own[place + M + s] += w * (y - origin[d, s])
                own[place + 2 * M + s] += w * value(y, theta[d], s)

    return add


def make_columns(summed):
    """The same of all columns; None if nothing is kept."""
    add = None
    for d, (form, kept, codes) in enumerate(summed.columns):
        if kept == NOTHING:
            continue
        own = make_column(form, kept, codes, d, summed.column_places[d], summed.n_states, np.float64)
        add = own if add is None else _both(add, own)
    return add


def _both(first, second):
    @cuda.jit(device=True)
    def add(x, theta, origin, at, s, w, own):
        first(x, theta, origin, at, s, w, own)
        second(x, theta, origin, at, s, w, own)

    return add


@lru_cache(maxsize=64)
def make_gather(summed: Summed) -> Any:
    """The kernel of statistics: `jumpmeans.kernels.stats`, and those of the columns.

    kernel[blocks, threads](sequences, weights, first_running, dwells, x, theta, origin, run_state, run_time, out)

    theta (D, K, M), origin (D, M): the columns at unit price, and what values are counted from
    run_state, run_time (2, S) OUT: running dwells in the order of the panel, the first (state -1 if it does not count)
    and the last; out (blocks, n) OUT: exits, time, log_time (M,), jumps (M, M), first (M,), then the columns.
    """
    M, real = summed.n_states, summed.real
    n_sums = summed.column_places[-1]
    block_sum = make_block_sum(n_sums)
    add_columns = make_columns(summed)
    has_columns = add_columns is not None

    if not has_columns:

        @cuda.jit(device=True)
        def add_columns(x, theta, origin, at, s, w, own):
            pass

    @cuda.jit
    def kernel(sequences, weights, first_running, dwells, x, theta, origin, run_state, run_time, out):
        ats, _, lengths, ends, numbers = sequences
        places, counts, states, starts, rows = dwells
        own = cuda.local.array(n_sums, np.float64)
        for k in range(n_sums):
            own[k] = 0.0
        for i in range(cuda.grid(1), ats.shape[0], cuda.gridsize(1)):
            at, L, place, n, number = ats[i], lengths[i], places[i], counts[i], numbers[i]
            w = weights[i]
            run_state[0, number] = -1
            run_time[0, number] = real(0.0)
            own[(3 + M) * M + states[place]] += w
            for k in range(n):
                s = states[place + LANES * k]
                start = np.float64(starts[place + LANES * k])
                last = k == n - 1
                until = np.float64(ends[i]) if last else np.float64(starts[place + LANES * (k + 1)])
                t = until - start
                if last:
                    run_state[1, number] = s
                    run_time[1, number] = real(t)
                else:
                    own[(3 + s) * M + states[place + LANES * (k + 1)]] += w
                    if k == 0 and first_running:
                        run_state[0, number] = s
                        run_time[0, number] = real(t)
                    else:
                        own[s] += w
                        own[M + s] += w * t
                        own[2 * M + s] += w * log(t)
                if has_columns:
                    for row in range(rows[place + LANES * k], L if last else rows[place + LANES * (k + 1)]):
                        add_columns(x, theta, origin, at + LANES * row, s, w, own)
        block_sum(own, out)

    return kernel


@lru_cache(maxsize=64)
def make_outlasted(n_states: int) -> Any:
    """The kernel that adds up running dwells that have outlasted their mean.

    kernel[blocks, threads](run_state, run_time, weights, lam, out): of the dwells y of each state with λ y >= 1 and
    y > 0, the sums of w, w y and w ln y; out (blocks, 3 M). weights (S,) in the order of the panel.
    """
    M, n_sums = n_states, 3 * n_states
    block_sum = make_block_sum(n_sums)

    @cuda.jit
    def kernel(run_state, run_time, weights, lam, out):
        own = cuda.local.array(n_sums, np.float64)
        for k in range(n_sums):
            own[k] = 0.0
        S = run_state.shape[1]
        for i in range(cuda.grid(1), S, cuda.gridsize(1)):
            for side in range(2):
                s = run_state[side, i]
                if s < 0:
                    continue
                y = np.float64(run_time[side, i])
                if y > 0.0 and lam[s] * y >= 1.0:
                    w = weights[i]
                    own[s] += w
                    own[M + s] += w * y
                    own[2 * M + s] += w * log(y)
        block_sum(own, out)

    return kernel


@cuda.jit
def add_blocks(parts, out):
    """Sums of all blocks, first to last: parts (blocks, n), out (n,) OUT."""
    k = cuda.grid(1)
    if k < out.shape[0]:
        total = 0.0
        for block in range(parts.shape[0]):
            total += parts[block, k]
        out[k] = total


@cuda.jit
def label_rows(sequences, dwells, row_states):
    """State of every row (n,) OUT, in the order of the panel."""
    _, row0s, lengths, _, _ = sequences
    places, counts, states, _, rows = dwells
    i = cuda.grid(1)
    if i < row0s.shape[0]:
        place, n = places[i], counts[i]
        for k in range(n):
            last = lengths[i] if k == n - 1 else rows[place + LANES * (k + 1)]
            for row in range(rows[place + LANES * k], last):
                row_states[row0s[i] + row] = states[place + LANES * k]


@cuda.jit
def pack_dwells(sequences, dwells, offsets, states, starts, rows):
    """Dwells one after the other in the order of the panel, OUT; those of sequence i begin at offsets[i]."""
    places, counts, own_states, own_starts, own_rows = dwells
    numbers = sequences[4]
    i = cuda.grid(1)
    if i < numbers.shape[0]:
        to, place = offsets[numbers[i]], places[i]
        for k in range(counts[i]):
            states[to + k] = own_states[place + LANES * k]
            starts[to + k] = own_starts[place + LANES * k]
            rows[to + k] = own_rows[place + LANES * k]


@cuda.jit
def blank_dwells(dwells):
    """Dwells without jumps, OUT: every sequence is in state 0."""
    places, counts, states, starts, rows = dwells
    i = cuda.grid(1)
    if i < places.shape[0]:
        counts[i] = 1
        states[places[i]] = 0
        starts[places[i]] = 0.0
        rows[places[i]] = 0


@cuda.jit
def number_counts(sequences, counts, out):
    """Counts (S,) in the order of the panel, OUT."""
    i = cuda.grid(1)
    if i < counts.shape[0]:
        out[sequences[4][i]] = counts[i]


@cuda.jit
def lay_out(sequences, values, out):
    """Rows of the panel (n,) interleaved, OUT."""
    ats, row0s, lengths = sequences[0], sequences[1], sequences[2]
    i = cuda.grid(1)
    if i < ats.shape[0]:
        for row in range(lengths[i]):
            out[ats[i] + LANES * row] = values[row0s[i] + row]
