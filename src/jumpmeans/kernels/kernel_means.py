"""Means of the values of a sequence under a Gaussian kernel of the time apart, and how well they predict."""

import numpy as np
from numba import njit

from ..jit import JIT

# A value whose weight is below exp(-FAR) of the nearest one's does not change the answer in double precision.
FAR = 40.0


@njit(forceinline=True, **JIT)
def _gather(times, values, first, last, t, x):
    """Rows first:last that have a value, copied to t and x (OUT); returns their number."""
    n = 0
    for row in range(first, last):
        if not np.isnan(values[row, 0]):
            t[n] = times[row]
            for f in range(values.shape[1]):
                x[n, f] = values[row, f]
            n += 1
    return n


@njit(forceinline=True, **JIT)
def _apart(gap, near, unit, width):
    """½ (gap² - near²) / width²: 0 for the nearest value, infinite where squares are beyond floats."""
    if gap <= near:
        return 0.0
    square = (gap / unit) ** 2
    return 0.5 / (width / unit) ** 2 * (square - (near / unit) ** 2) if square < np.inf else np.inf


@njit(**JIT)
def leave_one_out(times, offsets, weights, values, widths):
    """(G + 1,) mean squared error of predicting each value from the others, for G widths and an infinite one.

    The widths must rise by factors of √2: the weight of a pair under one is then the square of its
    weight under the next wider one, and a pair costs a single exponential.
    """
    F, G = values.shape[1], widths.shape[0]
    error, count = np.zeros(G + 1), 0.0
    t, x = np.empty(times.shape[0]), np.empty(values.shape)
    total, mass = np.empty((G, F)), np.empty(G)
    everything = np.empty(F)
    width = widths[G - 1]
    unit = 2.0 ** np.floor(np.log2(width))  # squares are taken in a unit near the width; powers of two are exact
    for s in range(offsets.shape[0] - 1):
        n = _gather(times, values, offsets[s], offsets[s + 1], t, x)
        if n < 2:
            continue
        everything[:] = 0.0
        for i in range(n):
            for f in range(F):
                everything[f] += x[i, f]
        for i in range(n):
            total[:] = 0.0
            mass[:] = 0.0
            near = np.inf
            if i > 0:
                near = t[i] - t[i - 1]
            if i < n - 1:
                near = min(near, t[i + 1] - t[i])
            for way in range(2):
                j = i - 1 if way == 0 else i + 1
                while 0 <= j < n:
                    apart = _apart(abs(t[j] - t[i]), near, unit, width)
                    if apart > FAR:
                        break
                    w = np.exp(-apart)
                    for g in range(G - 1, -1, -1):
                        mass[g] += w
                        for f in range(F):
                            total[g, f] += w * x[j, f]
                        w *= w
                        if w < 1e-18:
                            break
                    j += 2 * way - 1
            count += weights[s]
            for f in range(F):
                for g in range(G):
                    error[g] += weights[s] * (total[g, f] / mass[g] - x[i, f]) ** 2
                error[G] += weights[s] * ((everything[f] - x[i, f]) / (n - 1) - x[i, f]) ** 2
    return error / max(count, 1e-300)


@njit(**JIT)
def kernel_means(times, offsets, values, width):
    """(n, F) kernel mean of the values of the own sequence at every row; NaN where it has none."""
    F = values.shape[1]
    out = np.full(values.shape, np.nan)
    t, x = np.empty(times.shape[0]), np.empty(values.shape)
    unit = 2.0 ** np.floor(np.log2(width))
    total = np.empty(F)
    for s in range(offsets.shape[0] - 1):
        n = _gather(times, values, offsets[s], offsets[s + 1], t, x)
        if n == 0:
            continue
        if width == np.inf:
            for f in range(F):
                out[offsets[s] : offsets[s + 1], f] = x[:n, f].mean()
            continue
        right = 0  # first value after the row
        for row in range(offsets[s], offsets[s + 1]):
            while right < n and t[right] <= times[row]:
                right += 1
            near = np.inf
            if right > 0:
                near = times[row] - t[right - 1]
            if right < n:
                near = min(near, t[right] - times[row])
            total[:] = 0.0
            mass = 0.0
            for way in range(2):
                j = right - 1 if way == 0 else right
                while 0 <= j < n:
                    apart = _apart(abs(t[j] - times[row]), near, unit, width)
                    if apart > FAR:
                        break
                    w = np.exp(-apart)
                    mass += w
                    for f in range(F):
                        total[f] += w * x[j, f]
                    j += 2 * way - 1
            for f in range(F):
                out[row, f] = total[f] / mass
    return out
