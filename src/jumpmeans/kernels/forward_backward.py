"""Posterior of a Markov jump process at its rows, by forward filtering and backward smoothing.

Vectors are carried across a gap t by e^{Qt} without forming it: t = (n + r)/Λ with Λ the largest rate,
r in [0, 1) by uniformization and n by binary powers of P(1/Λ). Every term is non-negative, so even the
smallest probabilities keep their relative accuracy, for gaps from tiny to huge and for any Q.
"""

import numpy as np
from numba import njit

from ..objective import JIT

N_POWERS = 62
MAX_TERMS = 24


@njit(**JIT)
def transition_powers(Q):
    """Λ, B = I + Q/Λ and the table (N_POWERS, M, M) of P(2^k/Λ)."""
    M = Q.shape[0]
    rate = 0.0
    for s in range(M):
        rate = max(rate, -Q[s, s])
    B = np.eye(M)
    powers = np.zeros((N_POWERS, M, M))
    if rate == 0.0:
        for k in range(N_POWERS):
            powers[k] = B
        return rate, B, powers
    for s in range(M):
        for r in range(M):
            B[s, r] = Q[s, r] / rate if r != s else 1.0 + Q[s, s] / rate
        B[s, s] = max(B[s, s], 0.0)
    term = np.eye(M) * np.exp(-1.0)
    total = term.copy()
    for n in range(1, MAX_TERMS):
        term = np.dot(term, B) / n
        total += term
    for k in range(N_POWERS):
        for s in range(M):
            total[s] /= total[s].sum()
        powers[k] = total
        total = np.dot(total, total)
    return rate, B, powers


@njit(**JIT)
def carry(v, t, rate, B, powers, transpose, out, work):
    """out = v e^{Qt} (or e^{Qt} v with transpose); work : (2, M) scratch."""
    M = v.shape[0]
    x = min(rate * t, 2.0 ** (N_POWERS - 1))
    whole = np.floor(x)
    r = x - whole
    term, next_term = work[0], work[1]
    factor = np.exp(-r)
    for s in range(M):
        term[s] = v[s] * factor
        out[s] = term[s]
    n = 1
    scale = 1.0
    while r > 0.0 and n < MAX_TERMS:
        scale *= r / n
        if scale < 1e-18:
            break
        _multiply(term, B, transpose, next_term)
        for s in range(M):
            term[s] = next_term[s] * (r / n)
            out[s] += term[s]
        n += 1
    bits = np.int64(whole)
    k = 0
    while bits > 0:
        if bits & 1:
            _multiply(out, powers[k], transpose, next_term)
            for s in range(M):
                out[s] = next_term[s]
        bits >>= 1
        k += 1


@njit(inline="always", **JIT)
def _multiply(v, A, transpose, out):
    M = v.shape[0]
    for s in range(M):
        out[s] = 0.0
    if transpose:
        for s in range(M):
            for r in range(M):
                out[s] += A[s, r] * v[r]
    else:
        for s in range(M):
            if v[s] > 0.0:
                for r in range(M):
                    out[r] += v[s] * A[s, r]


@njit(**JIT)
def smooth_block(tau, offsets, log_density, pi, rate, B, powers, posterior, log_lik):
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
        total = 0.0
        for l in range(first, last):
            if l == first:
                carry(pi, tau[l], rate, B, powers, False, ahead[0], work)
            else:
                carry(posterior[l - 1], tau[l] - tau[l - 1], rate, B, powers, False, ahead[l - first], work)
            a = ahead[l - first]
            top = -np.inf
            for s in range(M):
                if a[s] > 0.0:
                    top = max(top, log_density[l, s])
            norm = 0.0
            if top > -np.inf:
                for s in range(M):
                    p = a[s] * np.exp(log_density[l, s] - top) if a[s] > 0.0 else 0.0
                    posterior[l, s] = p
                    norm += p
            if norm == 0.0:
                where[0] = i
                where[1] = l - first
                return where
            for s in range(M):
                posterior[l, s] /= norm
            total += top + np.log(norm)
        log_lik[i] = total
        for l in range(last - 2, first - 1, -1):
            a = ahead[l + 1 - first]
            least = np.inf  # any common factor cancels; this one keeps the ratios at most 1
            for s in range(M):
                if posterior[l + 1, s] > 0.0:
                    least = min(least, a[s])
            for s in range(M):
                ratio[s] = posterior[l + 1, s] * (least / a[s]) if a[s] > 0.0 else 0.0
            carry(ratio, tau[l + 1] - tau[l], rate, B, powers, True, back, work)
            norm = 0.0
            for s in range(M):
                posterior[l, s] *= back[s]
                norm += posterior[l, s]
            for s in range(M):
                posterior[l, s] /= norm
    return where
