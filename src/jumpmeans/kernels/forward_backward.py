"""Posterior of a Markov jump process at its rows, by forward filtering and backward smoothing.

Vectors are carried across a gap t by e^{Qt} without forming it: with Λ the largest rate, Λt is written in
hexadecimal digits down to 1/4096; each digit costs one product with a stored power of e^{Q/Λ}, the rest
a few terms of uniformization. Every number is non-negative, so even the smallest probabilities keep their
relative accuracy, for gaps from tiny to huge and for any Q.
"""

import numpy as np
from numba import njit

from ..jit import JIT

RADIX = 16
FINE = 4096.0
MAX_DIGITS = 15
N_TERMS = 5
NEGLIGIBLE = 1e-17


@njit(**JIT)
def power_tables(Q, longest):
    """Stored powers for gaps up to `longest`: Λ, B = I + Q/Λ, table[k, d - 1] = e^{Q d 16^k / (4096 Λ)}.

    Both B and the table come as pairs, the second one transposed, so that products run along rows.
    """
    M = Q.shape[0]
    rate = 0.0
    for s in range(M):
        rate = max(rate, -Q[s, s])
    B = np.zeros((2, M, M))
    n_digits = 1
    while n_digits < MAX_DIGITS and RADIX**n_digits <= rate * longest * FINE:
        n_digits += 1
    table = np.zeros((2, n_digits, RADIX - 1, M, M))
    unit = np.eye(M)
    B[0] = np.eye(M)
    if rate > 0.0:
        for s in range(M):
            for r in range(M):
                B[0, s, r] = Q[s, r] / rate if r != s else max(1.0 + Q[s, s] / rate, 0.0)
        term = np.eye(M)
        for n in range(1, N_TERMS + M):
            term = np.dot(term, B[0]) / (n * FINE)
            unit += term
        for s in range(M):
            unit[s] /= unit[s].sum()
    for k in range(n_digits):
        power = unit.copy()
        for d in range(RADIX - 1):
            table[0, k, d] = power
            power = np.dot(power, unit)
            for s in range(M):
                power[s] /= power[s].sum()
        unit = power
    for k in range(n_digits):
        for d in range(RADIX - 1):
            table[1, k, d] = table[0, k, d].T
    B[1] = B[0].T
    return rate, B, table


@njit(inline="always", **JIT)
def _multiply(v, A, out):
    M = v.shape[0]
    for r in range(M):
        out[r] = 0.0
    for s in range(M):
        x = v[s]
        if x > 0.0:
            for r in range(M):
                out[r] += x * A[s, r]


@njit(**JIT)
def carry(v, t, rate, B, table, side, out, work):
    """Out = v e^{Qt} (side 0) or e^{Qt} v (side 1); work : (2, M) scratch."""
    M = v.shape[0]
    n_digits = table.shape[1]
    x = min(rate * t * FINE, float(RADIX) ** n_digits - 1.0)
    whole = np.floor(x)
    r = (x - whole) / FINE
    digits = np.int64(whole)
    term, other = work[0], work[1]
    for s in range(M):
        out[s] = v[s]
    k = 0
    while digits > 0:
        d = digits & (RADIX - 1)
        if d > 0:
            _multiply(out, table[side, k, d - 1], other)
            for s in range(M):
                out[s] = other[s]
        digits >>= 4
        k += 1
    if r > 0.0:
        factor = np.exp(-r)
        for s in range(M):
            term[s] = out[s] * factor
            out[s] = term[s]
        for n in range(1, N_TERMS + M):
            _multiply(term, B[side], other)
            f = r / n
            settled = True
            for s in range(M):
                term[s] = other[s] * f
                out[s] += term[s]
                # a state not yet reached may be several jumps away
                if term[s] > NEGLIGIBLE * out[s] or (out[s] == 0.0 and n < M):
                    settled = False
            if settled:
                break


@njit(**JIT)
def filter_sequence(tau, log_density, pi, rate, B, table, filtered, ahead, work):
    """Forward pass over one sequence.

    filtered, ahead : (L, M) OUT: state probabilities with and without the row itself.
    Returns the log-likelihood and the row that the process cannot produce (-1 if none).
    """
    L, M = log_density.shape
    total = 0.0
    for row in range(L):
        a = ahead[row]
        if row > 0:
            carry(filtered[row - 1], tau[row] - tau[row - 1], rate, B, table, 0, a, work)
        elif tau[0] > 0.0:
            carry(pi, tau[0], rate, B, table, 0, a, work)
        else:
            for s in range(M):
                a[s] = pi[s]
        top = -np.inf
        for s in range(M):
            if a[s] > 0.0:
                top = max(top, log_density[row, s])
        norm = 0.0
        if top > -np.inf:
            for s in range(M):
                d = log_density[row, s] - top
                p = 0.0
                if a[s] > 0.0 and d > -np.inf:
                    p = a[s] * np.exp(d) if d != 0.0 else a[s]
                filtered[row, s] = p
                norm += p
        if norm == 0.0:
            return total, row
        for s in range(M):
            filtered[row, s] /= norm
        total += top + np.log(norm)
    return total, -1


@njit(inline="always", **JIT)
def future_ratio(posterior, ahead, ratio):
    """Posterior over prediction of a row, (M,) OUT: what the future says of a state, up to a common factor.

    Scaled to at most 1, so that a barely possible row cannot overflow.
    """
    M = posterior.shape[0]
    least = np.inf
    for s in range(M):
        if posterior[s] > 0.0:
            least = min(least, ahead[s])
    for s in range(M):
        ratio[s] = posterior[s] * (least / ahead[s]) if posterior[s] > 0.0 else 0.0


@njit(**JIT)
def smooth_block(tau, offsets, log_density, pi, rate, B, table, posterior, log_lik):
    """Posterior state probabilities of every row of a block (OUT), and each sequence's log-likelihood (OUT).

    log_density : (n, M), zero rows where nothing was observed.

    Returns
    -------
    where : (2,) int
        Sequence and row (within it) that the process cannot produce; -1 if all went well.
    """
    M = pi.shape[0]
    room = 1
    for i in range(offsets.shape[0] - 1):
        room = max(room, offsets[i + 1] - offsets[i])
    ahead = np.empty((room, M))
    ratio = np.empty(M)
    back = np.empty(M)
    work = np.empty((2, M))
    where = np.full(2, -1, np.int64)
    for i in range(offsets.shape[0] - 1):
        first, last = offsets[i], offsets[i + 1]
        log_lik[i], died = filter_sequence(
            tau[first:last], log_density[first:last], pi, rate, B, table, posterior[first:last], ahead, work
        )
        if died >= 0:
            where[0] = i
            where[1] = died
            return where
        for row in range(last - 2, first - 1, -1):
            future_ratio(posterior[row + 1], ahead[row + 1 - first], ratio)
            carry(ratio, tau[row + 1] - tau[row], rate, B, table, 1, back, work)
            norm = 0.0
            for s in range(M):
                posterior[row, s] *= back[s]
                norm += posterior[row, s]
            for s in range(M):
                posterior[row, s] /= norm
    return where
