"""A sweep on a device: `jumpmeans.kernels.sweep`, one thread for one sequence after the other."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from ..candidates import SPREAD
from ..sweep import SETTLED
from .arithmetic import LANES, nextafter
from .decode import links, make_best_path, make_candidates, make_costs
from .jump_times import WORK, make_place_jumps
from .values import make_row

# Candidates that a thread keeps beside itself; with more, it works in memory that all share.
MOST_LOCAL = 64
# A place of a sequence and a row, as one number: the least of all is the first to fail.
PLACE = 1 << 31


class Form(NamedTuple):
    """What a sweep is compiled for.

    n_states : M; real : np.float64 or np.float32; forms : of the columns (`values`); kinds, masked : whether rows have
    kinds, and states that they allow; room : candidates there may be, a power of two; search : whether several sets of
    candidates are tried, and decoded to a fixed point; first_running, free_end : as in `best_path`.
    """

    n_states: int
    real: Any
    forms: tuple[str, ...]
    kinds: bool
    masked: bool
    room: int
    search: bool
    first_running: bool
    free_end: bool

    @property
    def is_local(self) -> bool:
        """Whether a thread keeps all that it works with beside itself."""
        return self.room <= MOST_LOCAL


def scratch_shapes(form: Form) -> list[tuple[tuple[int, ...], Any]]:
    """Shape and type of all that one thread works with: the room of `best_path`, dwells, others, and `work`."""
    n, M = form.room, form.n_states
    dwells = [((n,), np.int32), ((n,), np.float64), ((n,), np.int32)]
    return [
        ((n,), form.real), ((n,), np.int32), ((n, M), links(n, M)[1]),
        ((M, n), form.real), ((M, n), form.real), ((M, n), form.real), ((M, n), np.int32),
        *dwells, *dwells, ((WORK, n), np.float64),
    ]  # fmt: skip


@lru_cache(maxsize=64)
def make_sweep(form: Form) -> Any:
    """The kernel of a sweep.

    kernel[blocks, threads](scratch, observed, sequences, tau, seen, parameters, search, old, new, where)

    scratch : arrays of `scratch_shapes` with the thread as last axis, or empty ones if it is local
    observed : x (D, N), theta (D, K, M), given (n, M), mask (N,), kinds (N,)
    sequences : at (S,) place of the first row, row0 (S,) the same in the order of the panel, length (S,), end (S,),
        number (S,) in the panel
    parameters : lam (M,) as costs are made of and in 64 bits, into (M, M), start_cost (M,)
    search : (6,) int32: base, per_gap, beam, first_running, rounds, free_end
    old, new : dwells: at (S,), count (S,), states, starts, rows; new is OUT
    where : (1,) int64 IN, OUT: number of the first sequence without any path times PLACE, plus the row where it died
    """
    M, real, room, is_local, search_more = form.n_states, form.real, form.room, form.is_local, form.search
    row_costs = make_row(form.forms, M, real, form.masked)
    place_candidates, spread_candidates = make_candidates(real, form.kinds)
    best_path, trace_back = make_best_path(form, SPREAD if search_more else 1, row_costs)
    place_jumps = make_place_jumps(form)
    complete_cost, running_cost = make_costs(np.float64)
    inf, link = real(np.inf), links(room, M)[1]
    with_kinds, narrow = form.kinds, form.real is np.float32
    first_running, free_end = form.first_running, form.free_end

    @cuda.jit(device=True)
    def take_path(observed, at, L, end, tau, seen, lam64, room_, found, dwells, work):
        states, starts, rows = dwells
        n = trace_back(room_, found, states, starts, rows)
        place_jumps(
            states, starts, rows, n, tau, seen, observed[4], at, L, end, lam64, work
        )  # fmt: skip
        return n

    @cuda.jit(device=True)
    def settle(
        observed, at, row0, L, end, tau, seen, parameters, base, per_gap, beam, rounds,
        room_, found, dwells, n, work,
    ):  # fmt: skip
        lam, lam64, into, start_cost = parameters
        _, starts, rows = dwells
        before = np.inf
        for _ in range(rounds):
            n_cand = place_candidates(
                tau, seen, observed[4], at, L, end, starts, rows, n, base, per_gap, beam, room_[0], room_[1]
            )  # fmt: skip
            value = best_path(
                observed, at, row0, L, end, lam, into, start_cost, False, n_cand, room_, found
            )  # fmt: skip
            if value == inf:
                return 0
            if before - value <= SETTLED * (1.0 + abs(value)):
                break
            before = value
            n = take_path(observed, at, L, end, tau, seen, lam64, room_, found, dwells, work)
        return n

    @cuda.jit(device=True)
    def trajectory_cost(observed, at, row0, L, end, parameters, dwells, n):
        x, theta, given, mask, _ = observed
        _, lam64, into, start_cost = parameters
        states, starts, rows = dwells
        costs = cuda.local.array(M, real)
        total = 0.0
        for k in range(n):
            s = states[k]
            last = k == n - 1
            for row in range(rows[k], L if last else rows[k + 1]):
                row_costs(x, theta, given, row0 + row, mask, at + LANES * row, inf, costs)
                total += costs[s]
                if row == 0:
                    total += start_cost[s]
            z = lam64[s] * ((end if last else starts[k + 1]) - starts[k])
            if last:
                total += 0.0 if free_end else running_cost(z)
            else:
                total += into[states[k + 1], s]
                total += running_cost(z) if k == 0 and first_running else complete_cost(z)
        return total

    @cuda.jit(device=True)
    def search_further(
        observed, at, row0, L, end, tau, seen, parameters, base, per_gap, beam, rounds,
        room_, found, dwells, n, other, work,
    ):  # fmt: skip
        lam, lam64, into, start_cost = parameters
        best = trajectory_cost(observed, at, row0, L, end, parameters, dwells, n)
        for start in range(2 if per_gap > 1 else 1):
            if start == 0:
                m = 0
                n_cand = spread_candidates(tau, observed[4], at, L, end, room_[0], room_[1])
                value = best_path(
                    observed, at, row0, L, end, lam, into, start_cost, True, n_cand, room_,
                    found,
                )  # fmt: skip
                if value < inf:
                    m = take_path(
                        observed, at, L, end, tau, seen, lam64, room_, found, other, work
                    )  # fmt: skip
            else:
                m = settle(
                    observed, at, row0, L, end, tau, seen, parameters, 1, 1, False, rounds,
                    room_, found, other, 1, work,
                )  # fmt: skip
            if m == 0:
                continue
            m = settle(
                observed, at, row0, L, end, tau, seen, parameters, base, per_gap, beam, rounds,
                room_, found, other, m, work,
            )  # fmt: skip
            value = trajectory_cost(observed, at, row0, L, end, parameters, other, m)
            if value < best - SETTLED * (1.0 + abs(best)):
                best = value
                n = m
                for k in range(n):
                    dwells[0][k], dwells[1][k], dwells[2][k] = other[0][k], other[1][k], other[2][k]
        return n

    @cuda.jit(device=True)
    def keep(i, at, tau, L, dwells, n, new):
        """Write the dwells in the bits that they are held with: in order, each jump behind the row before it."""
        states, starts, rows = dwells
        new_at, counts, new_states, new_starts, new_rows = new
        place = new_at[i]
        counts[i] = n
        last = real(0.0)
        for k in range(n):
            start = real(starts[k])
            if narrow and k > 0:
                if start <= last:
                    start = nextafter(last, inf)
                if rows[k] < L and not with_kinds:
                    start = min(start, tau[at + LANES * rows[k]])
            last = start
            new_states[place + LANES * k] = states[k]
            new_starts[place + LANES * k] = start
            new_rows[place + LANES * k] = rows[k]

    @cuda.jit(device=True)
    def one(i, observed, sequences, tau, seen, parameters, search, old, new, where, room_, dwells, other, work):
        ats, row0s, lengths, ends, numbers = sequences
        old_at, old_count, old_states, old_starts, old_rows = old
        found = cuda.local.array(3, np.int32)
        base, per_gap, beam, rounds = search[0], search[1], search[2] == 1, search[4]
        at, row0, L, end = ats[i], row0s[i], lengths[i], ends[i]
        n = old_count[i]
        place = old_at[i]
        for k in range(n):
            dwells[0][k] = old_states[place + LANES * k]
            dwells[1][k] = old_starts[place + LANES * k]
            dwells[2][k] = old_rows[place + LANES * k]
        n = settle(
            observed, at, row0, L, end, tau, seen, parameters, base, per_gap, beam, rounds,
            room_, found, dwells, n, work,
        )  # fmt: skip
        if n == 0:
            cuda.atomic.min(where, 0, numbers[i] * PLACE + found[2])
            return
        if search_more:
            n = search_further(
                observed, at, row0, L, end, tau, seen, parameters, base, per_gap, beam, rounds,
                room_, found, dwells, n, other, work,
            )  # fmt: skip
        keep(i, at, tau, L, dwells, n, new)

    if is_local:
        length = room if search_more else 1

        @cuda.jit
        def kernel(scratch, observed, sequences, tau, seen, parameters, search, old, new, where):
            room_ = (
                cuda.local.array(room, real), cuda.local.array(room, np.int32), cuda.local.array((room, M), link),
                cuda.local.array((M, room), real), cuda.local.array((M, room), real), cuda.local.array((M, room), real),
                cuda.local.array((M, room), np.int32),
            )  # fmt: skip
            dwells = (
                cuda.local.array(room, np.int32), cuda.local.array(room, np.float64), cuda.local.array(room, np.int32)
            )  # fmt: skip
            other = (
                cuda.local.array(length, np.int32),
                cuda.local.array(length, np.float64),
                cuda.local.array(length, np.int32),
            )
            work = cuda.local.array((WORK, room), np.float64)
            i = cuda.grid(1)
            if i < sequences[0].shape[0]:
                one(i, observed, sequences, tau, seen, parameters, search, old, new, where, room_, dwells, other, work)

    else:

        @cuda.jit
        def kernel(scratch, observed, sequences, tau, seen, parameters, search, old, new, where):
            thread = cuda.grid(1)
            s = scratch
            room_ = (
                s[0][:, thread], s[1][:, thread], s[2][:, :, thread],
                s[3][:, :, thread], s[4][:, :, thread], s[5][:, :, thread], s[6][:, :, thread],
            )  # fmt: skip
            dwells = s[7][:, thread], s[8][:, thread], s[9][:, thread]
            other = s[10][:, thread], s[11][:, thread], s[12][:, thread]
            for i in range(thread, sequences[0].shape[0], cuda.gridsize(1)):
                one(
                    i, observed, sequences, tau, seen, parameters, search, old, new, where, room_, dwells, other,
                    s[13][:, :, thread],
                )  # fmt: skip

    return kernel
