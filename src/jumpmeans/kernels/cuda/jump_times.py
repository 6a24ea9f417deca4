"""Jump times of one sequence by one thread: `jumpmeans.kernels.jump_times`, step by step, always in 64 bits.

What differs: rows are found at `at + 32 row`, and `work` has a ninth row, which says what jumps are held.
"""

import numpy as np
from numba import cuda

from ...kinds import ENTRY, TRANSITION
from ..jump_times import GOOD_ENOUGH, MAX_NEWTON, TOLERANCE
from .arithmetic import LANES, log, log1p, nextafter, sqrt

INF = np.inf
# Rows of scratch that a chain needs.
WORK = 9


@cuda.jit(device=True)
def between(left, right, l1, l2, run1, run2, x0):
    """Best point between `left` and `right` for dwells of rates l1 and l2 on either side of it."""
    w = right - left
    if run2 and not run1:
        if l1 * w <= 1.0:
            return right
        if l2 * (w - 1.0 / l1) <= 1.0:
            return left + 1.0 / l1
    elif run1 and not run2:
        if l2 * w <= 1.0:
            return left
        if l1 * (w - 1.0 / l2) <= 1.0:
            return right - 1.0 / l2
    elif run1 and run2:
        a = right - 1.0 / l2 if l2 > 0.0 else left
        b = left + 1.0 / l1 if l1 > 0.0 else right
        if a <= b:
            return min(max(x0, a), b)
    d = (l1 - l2) * w
    return left + 2.0 * w / (d + 2.0 + sqrt(d * d + 4.0))


@cuda.jit(device=True)
def solve_chain(n, work):
    """Newton step of a chain by Thomas elimination; a jump with diag <= 0 stays and cuts the chain."""
    curve, grad, diag, step = work[3], work[4], work[5], work[6]
    for k in range(1, n):
        if diag[k] <= 0.0:
            step[k] = 0.0
            continue
        rhs = -grad[k]
        if k > 1 and diag[k - 1] > 0.0:
            m = curve[k - 1] / diag[k - 1]
            diag[k] -= m * curve[k - 1]
            rhs += m * step[k - 1]
        step[k] = rhs
    for i in range(1, n):
        k = n - i
        if diag[k] > 0.0:
            if k < n - 1 and diag[k + 1] > 0.0:
                step[k] += curve[k] * step[k + 1]
            step[k] /= diag[k]


@cuda.jit(device=True)
def work_through(states, starts, n, end, lam, first_running, work, last_rate):
    """Newton with a working set of held jumps."""
    K = n - 1
    low, high = work[0], work[1]
    slope, curve, grad, diag, step, new, held = work[2], work[3], work[4], work[5], work[6], work[7], work[8]
    for k in range(1, n):
        held[k] = 1.0 if starts[k] <= low[k] or starts[k] >= high[k] else 0.0
    residual = INF
    stuck = False
    for _ in range(min(MAX_NEWTON + 10 * n, 3000)):
        for k in range(n):
            t = (starts[k + 1] if k < K else end) - starts[k]
            rate = last_rate if k == K else lam[states[k]]
            free = (k == K or (k == 0 and first_running)) and rate * t < 1.0
            slope[k] = 0.0 if free else rate - 1.0 / t
            curve[k] = 0.0 if free else 1.0 / (t * t)
        inside = 0.0
        residual = 0.0
        for k in range(1, n):
            g = slope[k - 1] - slope[k]
            grad[k] = g
            right_rate = last_rate if k == K else lam[states[k]]
            size = abs(g) / (lam[states[k - 1]] + right_rate + sqrt(curve[k - 1]) + sqrt(curve[k]))
            if held[k] == 0.0:
                inside = max(inside, size)
            if not ((starts[k] <= low[k] and g > 0.0) or (starts[k] >= high[k] and g < 0.0)):
                residual = max(residual, size)
        if residual <= GOOD_ENOUGH:
            break
        if inside <= GOOD_ENOUGH or stuck:
            for k in range(1, n):
                if not ((starts[k] <= low[k] and grad[k] >= 0.0) or (starts[k] >= high[k] and grad[k] <= 0.0)):
                    held[k] = 0.0
        for k in range(1, n):
            diag[k] = -1.0 if held[k] > 0.0 else curve[k - 1] + curve[k]
            if held[k] == 0.0 and diag[k] == 0.0:
                diag[k] = -1.0  # flat on both sides: already at its best
        solve_chain(n, work)
        alpha = 1.0
        blocker = 0
        for k in range(1, n):
            room = (high[k] if step[k] > 0.0 else low[k]) - starts[k]
            if step[k] != 0.0 and room / step[k] < alpha:
                alpha = room / step[k]
                blocker = k
        full = alpha
        moved = False
        expected = 0.0
        for _ in range(60):
            if alpha <= 0.0:
                break
            expected = 0.0
            change = 0.0
            noise = 0.0
            for k in range(1, n):
                new[k] = min(max(starts[k] + alpha * step[k], low[k]), high[k])
            if blocker > 0 and alpha == full:
                new[blocker] = high[blocker] if step[blocker] > 0.0 else low[blocker]
            new[0] = 0.0
            for k in range(1, n):
                expected += grad[k] * (new[k] - starts[k])
            for k in range(n):
                t = (starts[k + 1] if k < K else end) - starts[k]
                u = (new[k + 1] if k < K else end) - new[k]
                rate = last_rate if k == K else lam[states[k]]
                if k == K or (k == 0 and first_running):
                    if u < 0.0 or (k == 0 and u <= 0.0):
                        change += INF
                    elif rate * t >= 1.0 and rate * u >= 1.0:
                        change += rate * (u - t) - log1p((u - t) / t)
                        noise += 1e-16 * (rate * abs(u - t) + 1.0)
                    else:
                        zt, zu = max(rate * t, 1.0), max(rate * u, 1.0)
                        change += (zu - zt) - log(zu / zt)
                elif u <= 0.0:
                    change += INF
                else:
                    change += rate * (u - t) - log1p((u - t) / t)
                    noise += 1e-16 * (rate * abs(u - t) + 1.0)
            if change <= 1e-4 * min(expected, 0.0) + noise or (change < INF and -1e-12 <= expected <= 0.0):
                moved = True
                break
            alpha *= 0.5
        if moved:
            for k in range(1, n):
                starts[k] = new[k]
        if blocker > 0 and (alpha == full or full <= 1e-12):
            b = high[blocker] if step[blocker] > 0.0 else low[blocker]
            if b > starts[blocker - 1] and (blocker == K or b < starts[blocker + 1]):
                starts[blocker] = b
            held[blocker] = 1.0
        elif not moved or expected == 0.0:
            if stuck:
                break
            stuck = True
            continue
        stuck = False
    return residual


@cuda.jit(device=True)
def at_row(rows, k, n, kinds, at, L):
    """Whether jump k is at the very time of its row: any into a TRANSITION, the last of those before an ENTRY."""
    row = rows[k]
    if row >= L:
        return False
    kind = kinds[at + LANES * row]
    return kind == TRANSITION or (kind == ENTRY and (k == n - 1 or rows[k + 1] != row))


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
        low, high = work[0], work[1]
        for sweep in range(2):
            for i in range(1, n):
                k = i if sweep == 0 else n - i
                left = starts[k - 1]
                right = starts[k + 1] if k < K else end
                rate = last_rate if k == K else lam[states[k]]
                b = between(left, right, lam[states[k - 1]], rate, first_running and k == 1, k == K, starts[k])
                b = min(max(b, low[k]), high[k])
                if b > left and (b < right or k == K):
                    starts[k] = b

        slope, curve, grad, diag, step, new = work[2], work[3], work[4], work[5], work[6], work[7]
        residual = INF
        for _ in range(MAX_NEWTON):
            for k in range(n):
                t = (starts[k + 1] if k < K else end) - starts[k]
                rate = last_rate if k == K else lam[states[k]]
                free = (k == K or (k == 0 and first_running)) and rate * t < 1.0
                slope[k] = 0.0 if free else rate - 1.0 / t
                curve[k] = 0.0 if free else 1.0 / (t * t)
            residual = 0.0
            for k in range(1, n):
                g = slope[k - 1] - slope[k]
                pinned = low[k] >= high[k] or (starts[k] <= low[k] and g > 0.0) or (starts[k] >= high[k] and g < 0.0)
                grad[k] = g
                diag[k] = -1.0 if pinned else curve[k - 1] + curve[k]
                if not pinned:
                    right_rate = last_rate if k == K else lam[states[k]]
                    scale = lam[states[k - 1]] + right_rate + sqrt(curve[k - 1]) + sqrt(curve[k])
                    residual = max(residual, abs(g) / scale)
            if residual <= TOLERANCE:
                break
            solve_chain(n, work)
            alpha = 1.0
            moved = False
            for _ in range(60):
                expected = 0.0
                change = 0.0
                new[0] = 0.0
                for k in range(1, n):
                    new[k] = min(max(starts[k] + alpha * step[k], low[k]), high[k])
                    expected += grad[k] * (new[k] - starts[k])
                for k in range(n):
                    t = (starts[k + 1] if k < K else end) - starts[k]
                    u = (new[k + 1] if k < K else end) - new[k]
                    rate = last_rate if k == K else lam[states[k]]
                    if k == K or (k == 0 and first_running):
                        if u < 0.0 or (k == 0 and u <= 0.0):
                            change = INF
                        else:
                            zt, zu = max(rate * t, 1.0), max(rate * u, 1.0)
                            change += (zu - zt) - log(zu / zt)
                    elif u <= 0.0:
                        change = INF
                    else:
                        change += rate * (u - t) - log1p((u - t) / t)
                if change <= 1e-4 * expected and expected < 0.0:
                    moved = True
                    break
                alpha *= 0.5
            if not moved:
                break
            for k in range(1, n):
                starts[k] = new[k]
        if residual > GOOD_ENOUGH:
            residual = work_through(states, starts, n, end, lam, first_running, work, last_rate)
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
