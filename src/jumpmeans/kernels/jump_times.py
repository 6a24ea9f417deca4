"""Jump times for fixed states: a convex chain with boxes, solved by projected Newton to a KKT residual.

Minimise Σ h(lam t_k) + g(lam_last y) over the jumps b_1..b_K, each in its gap (lo, hi] (derivation, eq. 7).
The Hessian is tridiagonal. Exact coordinate sweeps come first: they centre the dwells, after which Newton is quick.

Where rates vary, t_k is told by the clock of its state, which is linear between the rows that hold jumps: a row behind
which the pace changes must be one of them. So the chain stays convex, and each end of a dwell has a pace of its own.
"""

import numpy as np
from numba import njit
from numpy import log, log1p, sqrt  # by these names: a device has its own (`kernels.cuda.jump_times`)

from ..ahead import awaited
from ..jit import LEAF
from ..kinds import BARS, PINS
from .clock import dwell_hours, pace_before

TOLERANCE = 1e-10
MAX_NEWTON = 60
# Rows of scratch.
WORK = 9
# A chain left with a larger residual goes to the slower method,
GOOD_ENOUGH = 1e-9
# but for this much where what is left to gain is no more than the rounding of so many terms: in a window of 10^7 dwells
# no float is nearer to the best time of a jump.
COARSE, ROUNDING = 1e-8, 2e-16
# Jumps that the slower method looks at in all: chains of millions would take it hours.
MOST_LOOKS = 20_000_000


@njit(forceinline=True, **LEAF)
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


@njit(**LEAF)
def solve_chain(n, grad, curve, diag, step):
    """Newton step[1:n] (OUT) of a chain by Thomas elimination; a jump with diag <= 0 stays and cuts the chain."""
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


@njit(**LEAF)
def gradient(k, states, rows, n, lam, course, last_rate, slope, curve):
    """Derivative of the chain by jump k, and its size relative to that of its own terms."""
    before, after = pace_before(course, rows[k], states[k - 1]), pace_before(course, rows[k], states[k])
    g = before * slope[k - 1] - after * slope[k]
    scale = (
        before * lam[states[k - 1]]
        + after * (last_rate if k == n - 1 else lam[states[k]])
        + before * sqrt(curve[k - 1])
        + after * sqrt(curve[k])
    )
    return g, abs(g) / scale


@njit(**LEAF)
def curvature(k, states, rows, course, curve):
    """Second derivative by jump k."""
    before, after = pace_before(course, rows[k], states[k - 1]), pace_before(course, rows[k], states[k])
    return before * before * curve[k - 1] + after * after * curve[k]


@njit(**LEAF)
def couple(states, rows, n, course, curve):
    """From the curvature of each dwell by its length (IN) to that by the two jumps at its ends, less its sign (OUT)."""
    if course is None:
        return
    for k in range(1, n - 1):
        s = states[k]
        curve[k] *= pace_before(course, rows[k], s) * pace_before(course, rows[k + 1], s)


@njit(**LEAF)
def between_jumps(states, starts, rows, n, k, end, L, lam, course, first_running, last_rate):
    """Best time of jump k while all others stay, its box apart."""
    K = n - 1
    rate = last_rate if k == K else lam[states[k]]
    before, after = lam[states[k - 1]], rate
    left = starts[k - 1]
    right = starts[k + 1] if k < K else end
    if course is not None:
        # neighbours as far away as they would be if the pace here had been theirs all the time
        fast, slow = pace_before(course, rows[k], states[k - 1]), pace_before(course, rows[k], states[k])
        left = starts[k] - dwell_hours(course, states, starts, rows, k - 1, n, end, L) / fast
        right = starts[k] + dwell_hours(course, states, starts, rows, k, n, end, L) / slow
        before, after = before * fast, after * slow
    return between(left, right, before, after, first_running and k == 1, k == K, starts[k])


@njit(**LEAF)
def centre_jumps(states, starts, rows, n, end, L, lam, course, first_running, work, last_rate):
    """Two sweeps over the jumps, each to its best place while the others stay."""
    K = n - 1
    low, high = work[0], work[1]
    for sweep in range(2):
        for i in range(1, n):
            k = i if sweep == 0 else n - i
            b = between_jumps(states, starts, rows, n, k, end, L, lam, course, first_running, last_rate)
            now = starts[k]
            starts[k] = min(max(b, low[k]), high[k])
            # rounding must not close a complete dwell
            closes = k < K and not dwell_hours(course, states, starts, rows, k, n, end, L) > 0.0
            if closes or not dwell_hours(course, states, starts, rows, k - 1, n, end, L) > 0.0:
                starts[k] = now


@njit(**LEAF)
def newton(states, starts, rows, n, end, L, lam, course, first_running, work, last_rate):
    """Projected Newton; returns the KKT residual and, where no float is better, what a whole step would gain."""
    K = n - 1
    low, high = work[0], work[1]
    slope, curve, grad, diag, step, new = work[2], work[3], work[4], work[5], work[6], work[7]
    residual = gain = np.inf
    for _ in range(MAX_NEWTON):
        for k in range(n):
            t = dwell_hours(course, states, starts, rows, k, n, end, L)
            rate = last_rate if k == K else lam[states[k]]
            free = (k == K or (k == 0 and first_running)) and rate * t < 1.0
            slope[k] = 0.0 if free else rate - 1.0 / t
            curve[k] = 0.0 if free else 1.0 / (t * t)
        residual = 0.0
        for k in range(1, n):
            grad[k], size = gradient(k, states, rows, n, lam, course, last_rate, slope, curve)
            g = grad[k]
            pinned = low[k] >= high[k] or (starts[k] <= low[k] and g > 0.0) or (starts[k] >= high[k] and g < 0.0)
            diag[k] = -1.0 if pinned else curvature(k, states, rows, course, curve)
            if not pinned:
                residual = max(residual, size)
        if residual <= TOLERANCE:
            break

        couple(states, rows, n, course, curve)
        solve_chain(n, grad, curve, diag, step)

        alpha = 1.0
        moved = False
        for _ in range(60):
            expected = 0.0
            change = 0.0
            differs = False
            new[0] = 0.0
            for k in range(1, n):
                new[k] = min(max(starts[k] + alpha * step[k], low[k]), high[k])
                differs |= new[k] != starts[k]
                expected += grad[k] * (new[k] - starts[k])
            if not differs:
                break  # no more would a shorter step
            for k in range(n):
                t = dwell_hours(course, states, starts, rows, k, n, end, L)
                u = dwell_hours(course, states, new, rows, k, n, end, L)
                rate = last_rate if k == K else lam[states[k]]
                if k == K or (k == 0 and first_running):
                    zt, zu = max(rate * t, 1.0), max(rate * u, 1.0)
                    change += (zu - zt) - log(zu / zt)
                    if new[k] > end or (k == 0 and new[1] <= 0.0):
                        change = np.inf
                elif u <= 0.0:
                    change = np.inf
                else:
                    change += rate * (u - t) - log1p((u - t) / t)
            if change <= 1e-4 * expected and expected < 0.0:
                moved = True
                break
            alpha *= 0.5
        if not moved:
            gain = 0.0
            for k in range(1, n):
                gain -= grad[k] * step[k]
            break
        for k in range(1, n):
            starts[k] = new[k]
    return residual, gain


@njit(**LEAF)
def work_through(states, starts, rows, n, end, L, lam, course, first_running, work, last_rate):
    """Newton with a working set of held jumps.

    Slower than projection, but two jumps that a stiff dwell ties together cannot stall it. A jump is held where
    a step meets its box, and let go once the rest is at its best.
    """
    K = n - 1
    low, high = work[0], work[1]
    slope, curve, grad, diag, step, new = work[2], work[3], work[4], work[5], work[6], work[7]
    held = work[8]  # 1 or 0
    for k in range(1, n):
        held[k] = 1.0 if starts[k] <= low[k] or starts[k] >= high[k] else 0.0
    residual = np.inf
    stuck = False
    for _ in range(max(min(MAX_NEWTON + 10 * n, 3000, MOST_LOOKS // n), 2)):
        for k in range(n):
            t = dwell_hours(course, states, starts, rows, k, n, end, L)
            rate = last_rate if k == K else lam[states[k]]
            free = (k == K or (k == 0 and first_running)) and rate * t < 1.0
            slope[k] = 0.0 if free else rate - 1.0 / t
            curve[k] = 0.0 if free else 1.0 / (t * t)
        inside = 0.0
        residual = 0.0
        for k in range(1, n):
            grad[k], size = gradient(k, states, rows, n, lam, course, last_rate, slope, curve)
            g = grad[k]
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
            diag[k] = -1.0 if held[k] == 1.0 else curvature(k, states, rows, course, curve)
            if held[k] == 0.0 and diag[k] == 0.0:
                diag[k] = -1.0  # flat on both sides: already at its best
        couple(states, rows, n, course, curve)
        solve_chain(n, grad, curve, diag, step)
        alpha = 1.0
        blocker = 0
        for k in range(1, n):
            room = (high[k] if step[k] > 0.0 else low[k]) - starts[k]
            if step[k] != 0.0 and room / step[k] < alpha:
                alpha = room / step[k]
                blocker = k
        full = alpha
        moved = False
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
                t = dwell_hours(course, states, starts, rows, k, n, end, L)
                u = dwell_hours(course, states, new, rows, k, n, end, L)
                rate = last_rate if k == K else lam[states[k]]
                if k == K or (k == 0 and first_running):
                    if rate * t >= 1.0 and rate * u >= 1.0:
                        part = rate * (u - t) - log1p((u - t) / t)
                        noise += 1e-16 * (rate * abs(u - t) + 1.0)
                    else:
                        zt, zu = max(rate * t, 1.0), max(rate * u, 1.0)
                        part = (zu - zt) - log(zu / zt)
                    if new[k] > end or (k == 0 and new[1] <= 0.0):
                        part = np.inf
                elif u <= 0.0:
                    part = np.inf
                else:
                    part = rate * (u - t) - log1p((u - t) / t)
                    noise += 1e-16 * (rate * abs(u - t) + 1.0)
                change += part
            if change <= 1e-4 * min(expected, 0.0) + noise or (change < np.inf and -1e-12 <= expected <= 0.0):
                moved = True
                break
            alpha *= 0.5
        if moved:
            for k in range(1, n):
                starts[k] = new[k]
        if blocker > 0 and (alpha == full or full <= 1e-12):
            # as good as there
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


@njit(**LEAF)
def solve_jumps(states, starts, rows, n, end, L, lam, course, first_running, work, last_rate):
    """Best starts[1:n] (IN, OUT) within their boxes work[0] to work[1]; returns the KKT residual."""
    centre_jumps(states, starts, rows, n, end, L, lam, course, first_running, work, last_rate)
    residual, gain = newton(states, starts, rows, n, end, L, lam, course, first_running, work, last_rate)
    floats_do_no_better = residual <= COARSE and gain <= ROUNDING * n
    if residual > GOOD_ENOUGH and not floats_do_no_better:
        residual = work_through(states, starts, rows, n, end, L, lam, course, first_running, work, last_rate)
    return residual


@njit(forceinline=True, **LEAF)
def at_row(rows, k, n, kinds):
    """Whether jump k is at the very time of a row that pins it: the last of those before the row."""
    row = rows[k]
    if row >= kinds.shape[0]:
        return False
    kind = kinds[row]
    return PINS[kind] and (BARS[kind] or k == n - 1 or rows[k + 1] != row)


@awaited
@njit(**LEAF)
def place_jumps(states, starts, rows, n, tau, seen, kinds, end, lam, course, first_running, work, free_end=False):
    """Move the starts[1:n] (IN, OUT) of a trajectory to their best places; the states stay.

    A jump stays between the observations around it; blank rows (not seen, (L,) bool) do not hold it, and
    rows (IN, OUT) follows where it passes some. Jumps at a TRANSITION or an ENTRY (kinds, (L,)) are at its time.
    course : `clock.Course`, None where rates do not vary; lam : (M,) rates at pace 1
    work : (WORK, >= n) scratch; free_end : the running dwell costs nothing.

    Returns the KKT residual: largest projected gradient relative to its terms.
    """
    K = n - 1
    if K == 0:
        return 0.0
    L = tau.shape[0]
    last_rate = 0.0 if free_end else lam[states[K]]  # at rate 0 a running dwell is free, however long
    low, high = work[0], work[1]
    for k in range(1, n):
        if at_row(rows, k, n, kinds):
            low[k] = tau[rows[k]]
            high[k] = tau[rows[k]]
            starts[k] = tau[rows[k]]
            continue
        before = rows[k] - 1
        while before >= 0 and not seen[before]:
            before -= 1
        after = rows[k]
        while after < L and not seen[after]:
            after += 1
        low[k] = np.nextafter(tau[before] if before >= 0 else 0.0, np.inf)
        high[k] = tau[after] if after < L else end

    residual = solve_jumps(states, starts, rows, n, end, L, lam, course, first_running, work, last_rate)
    for k in range(1, n):
        if at_row(rows, k, n, kinds):
            continue
        while rows[k] > 0 and tau[rows[k] - 1] >= starts[k] and not seen[rows[k] - 1]:
            rows[k] -= 1
        while rows[k] < L and tau[rows[k]] < starts[k] and not seen[rows[k]]:
            rows[k] += 1
    return residual
