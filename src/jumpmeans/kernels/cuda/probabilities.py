"""Vectors carried over gaps of time by one thread: `jumpmeans.kernels.forward_backward`, step by step, for snapshots.

Always in 64 bits. Tables are those of `power_tables`: B (2, M, M), table (2, digits, 15, M, M).
"""

import numpy as np
from numba import cuda

from ..forward_backward import FINE, N_TERMS, NEGLIGIBLE, RADIX, TOP
from .arithmetic import LANES, exp, log

INF = np.inf


def make_carry(M):
    """carry(v, t, rate, reach, B, table, side, term, other): v (M,), IN and OUT, over a gap t; term, other: scratch.

    side 0: v e^{Qt}; 1: e^{Qt} v. reach: the longest gap that the digits hold, in units of 1/(4096 Λ).
    """

    @cuda.jit(device=True)
    def advance(v, A, factor, other):
        """Multiply a row vector by a matrix and a factor, in its place."""
        for r in range(M):
            other[r] = 0.0
        for s in range(M):
            x = v[s]
            if x > 0.0:
                for r in range(M):
                    other[r] += x * A[s, r]
        for r in range(M):
            v[r] = other[r] * factor

    @cuda.jit(device=True)
    def carry(v, t, rate, reach, B, table, side, term, other):
        x = min(rate * t * FINE, reach)
        k = 0
        while x >= TOP:
            x /= RADIX
            k += 1
        digits = np.int64(x)
        r = (x - np.float64(digits)) / FINE
        while digits > 0:
            d = digits & (RADIX - 1)
            if d > 0:
                advance(v, table[side, k, d - 1], 1.0, other)
            digits >>= 4
            k += 1
        if r > 0.0:
            factor = exp(-r)
            for s in range(M):
                term[s] = v[s] * factor
                v[s] = term[s]
            for n in range(1, N_TERMS + M):
                advance(term, B[side], r / n, other)
                settled = True
                for s in range(M):
                    v[s] += term[s]
                    if term[s] > NEGLIGIBLE * v[s]:
                        settled = False
                if settled:
                    break

    return carry


def make_filter(M):
    """filter(density, ahead, filtered): one row of the forward pass; returns log-likelihood, -inf if it cannot be.

    density (M,) of the row, ahead (M,) probabilities before it, filtered (M,) OUT after it; the last two may be one.
    """

    @cuda.jit(device=True)
    def weigh_row(density, ahead, filtered):
        top = -INF
        for s in range(M):
            if ahead[s] > 0.0:
                top = max(top, density[s])
        norm = 0.0
        if top > -INF:
            for s in range(M):
                d = density[s] - top
                p = 0.0
                if ahead[s] > 0.0 and d > -INF:
                    p = ahead[s] * exp(d) if d != 0.0 else ahead[s]
                filtered[s] = p
                norm += p
        if norm == 0.0:
            return -INF
        for s in range(M):
            filtered[s] /= norm
        return top + log(norm)

    return weigh_row


def make_future_ratio(M):
    """future_ratio(posterior, ahead, ratio): posterior over prediction of a row, at most 1, OUT."""

    @cuda.jit(device=True)
    def future_ratio(posterior, ahead, ratio):
        least = INF
        for s in range(M):
            if posterior[s] > 0.0:
                least = min(least, ahead[s])
        for s in range(M):
            ratio[s] = posterior[s] * (least / ahead[s]) if posterior[s] > 0.0 else 0.0

    return future_ratio


def gap_before(tau, at, row):
    """Time from the row before, or from the start of the window."""
    time = np.float64(tau[at + LANES * row])
    if row > 0:
        time -= np.float64(tau[at + LANES * (row - 1)])
    return time


gap_before = cuda.jit(device=True)(gap_before)
