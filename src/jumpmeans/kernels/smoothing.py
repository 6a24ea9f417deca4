"""Exponential smoothing of rows over time, both ways, in linear time."""

import numpy as np
from numba import njit

from ..jit import JIT


@njit(**JIT)
def smooth_rows(features, times, offsets, bandwidth):
    """(n, F) mean of the present rows of the same sequence, weighted by exp(-|time apart| / bandwidth)."""
    n, F = features.shape
    out = np.zeros((n, F))
    weight = np.zeros((n, F))
    total = np.empty(F)
    mass = np.empty(F)
    for i in range(offsets.shape[0] - 1):
        for way in range(2):
            total[:] = 0.0
            mass[:] = 0.0
            for k in range(offsets[i], offsets[i + 1]):
                row = k if way == 0 else offsets[i] + offsets[i + 1] - 1 - k
                before = row - 1 if way == 0 else row + 1
                decay = np.exp(-abs(times[row] - times[before]) / bandwidth) if k > offsets[i] else 0.0
                for f in range(F):
                    total[f] *= decay
                    mass[f] *= decay
                    if way == 1:  # the row itself was counted on the way out
                        out[row, f] += total[f]
                        weight[row, f] += mass[f]
                    if not np.isnan(features[row, f]):
                        total[f] += features[row, f]
                        mass[f] += 1.0
                    if way == 0:
                        out[row, f] += total[f]
                        weight[row, f] += mass[f]
    for row in range(n):
        for f in range(F):
            out[row, f] = out[row, f] / weight[row, f] if weight[row, f] > 0.0 else np.nan
    return out
