"""Vectors carried over many stretches of time at once."""

import numpy as np
from numba import njit

from ..jit import JIT
from .forward_backward import carry


@njit(**JIT)
def carry_all(V, times, tables, side, out):
    """out[k, r] = V[r] e^{Q times[k]} (side 0) or e^{Q times[k]} V[r] (side 1); V : (R, M), out : (K, R, M) OUT."""
    rate, B, table = tables[:3]
    work = np.empty((2, V.shape[1]))
    for k in range(times.shape[0]):
        for r in range(V.shape[0]):
            carry(V[r], times[k], rate, B, table, side, out[k, r], work)
