"""Jump times of one sequence by one thread, always in 64 bits: the chain is that of `jumpmeans.kernels.jump_times`.

What differs: rows are found at `at + 32 row`, and rates do not vary.
"""

import numpy as np
from numba import cuda

from ...kinds import BARS, PINS
from .. import jump_times
from .arithmetic import LANES, log, log1p, nextafter, on_device, sqrt

# Rows of scratch that a chain needs.
WORK = jump_times.WORK


@cuda.jit(device=True)
def dwell_hours(course, states, starts, rows, k, n, end, L):
    """Length of dwell k: rates do not vary here, and `course` is None."""
    return (starts[k + 1] if k < n - 1 else end) - starts[k]


@cuda.jit(device=True)
def pace_before(course, row, s):
    """All clocks tell time itself."""
    return 1.0


solve_jumps = on_device(
    [
        jump_times.between, jump_times.solve_chain, jump_times.gradient, jump_times.curvature, jump_times.couple,
        jump_times.between_jumps, jump_times.centre_jumps, jump_times.newton, jump_times.work_through,
        jump_times.solve_jumps,
    ],
    {"dwell_hours": dwell_hours, "pace_before": pace_before, "log": log, "log1p": log1p, "sqrt": sqrt},
)  # fmt: skip


@cuda.jit(device=True)
def at_row(rows, k, n, kinds, at, L):
    """Whether jump k is at the very time of a row that pins it: the last of those before the row."""
    row = rows[k]
    if row >= L:
        return False
    kind = kinds[at + LANES * row]
    return PINS[kind] and (BARS[kind] or k == n - 1 or rows[k + 1] != row)


def make_place_jumps(form):
    """`place_jumps`: starts (IN, OUT) have 64 bits, the times of rows as many as they are held with."""
    real, with_kinds, first_running, free_end = form.real, form.kinds, form.first_running, form.free_end
    inf = real(np.inf)

    @cuda.jit(device=True)
    def boxes(starts, rows, n, tau, seen, kinds, at, L, end, work):
        low, high = work[0], work[1]
        for k in range(1, n):
            if with_kinds and at_row(rows, k, n, kinds, at, L):
                time = tau[at + LANES * rows[k]]
                low[k] = time
                high[k] = time
                starts[k] = time
                continue
            before = rows[k] - 1
            while before >= 0 and not seen[at + LANES * before]:
                before -= 1
            after = rows[k]
            while after < L and not seen[at + LANES * after]:
                after += 1
            # the next number in the bits that times are held with: a jump must stay behind its row there too
            low[k] = nextafter(tau[at + LANES * before] if before >= 0 else real(0.0), inf)
            high[k] = tau[at + LANES * after] if after < L else end

    @cuda.jit(device=True)
    def place_jumps(states, starts, rows, n, tau, seen, kinds, at, L, end, lam, work):
        K = n - 1
        if K == 0:
            return 0.0
        last_rate = 0.0 if free_end else lam[states[K]]
        boxes(starts, rows, n, tau, seen, kinds, at, L, end, work)
        residual = solve_jumps(states, starts, rows, n, end, L, lam, None, first_running, work, last_rate)
        for k in range(1, n):
            if with_kinds and at_row(rows, k, n, kinds, at, L):
                continue
            while rows[k] > 0 and tau[at + LANES * (rows[k] - 1)] >= starts[k]:
                if seen[at + LANES * (rows[k] - 1)]:
                    break
                rows[k] -= 1
            while rows[k] < L and tau[at + LANES * rows[k]] < starts[k]:
                if seen[at + LANES * rows[k]]:
                    break
                rows[k] += 1
        return residual

    return place_jumps
