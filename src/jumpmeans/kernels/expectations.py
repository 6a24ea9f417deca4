"""Expected times and jumps of a Markov jump process between its rows, given all of them.

For a gap t with filtered probabilities a before it and the future's word b after it (normalised so that
a e^{Qt} b = 1), R_ij = ∫ (a e^{Qu})_i (e^{Q(t-u)} b)_j du gives the expected time in i as R_ii and the
expected jumps i → j as q_ij R_ij. Gaps add up, in one of two ways:

* in the eigenbasis of Q, where the integral is a divided difference of exponentials: M² a gap;
* by doubling, I(2h) = I(h) e^{Qh}ᵀ + e^{Qh}ᵀ I(h) from a short uniformized step: M³ a doubling, but all
  numbers positive, for a Q with ill-conditioned eigenvectors and for gaps that end in a barely possible row.
"""

import numpy as np
from numba import njit

from ..objective import JIT
from .forward_backward import N_TERMS, carry, filter_sequence, future_ratio

# Divided differences closer than this (times t) are taken by their series.
CLOSE = 0.1
# The eigenbasis has absolute errors near 1e-15 times its condition; b above this would blow them up.
LARGEST_B = 1e5


@njit(inline="always", **JIT)
def _divided_difference(ek, el, dk, inverse, t):
    """(e^{λk t} - e^{λl t}) / (λk - λl) with dk = λk - λl; by its series where the two nearly agree."""
    z = dk * t
    if abs(z.real) + abs(z.imag) > CLOSE:
        return (ek - el) * inverse
    # e^{λl t} t (e^z - 1) / z
    series = 1.0 + z / 2.0 * (
        1.0
        + z
        / 3.0
        * (1.0 + z / 4.0 * (1.0 + z / 5.0 * (1.0 + z / 6.0 * (1.0 + z / 7.0 * (1.0 + z / 8.0 * (1.0 + z / 9.0))))))
    )
    return el * t * series


@njit(**JIT)
def add_by_eigen(a, b, t, weight, eigenvalues, V, inverse_V, differences, inverses, S, x, y, e):
    """Add a gap to S (M, M) complex, OUT, in the eigenbasis."""
    M = a.shape[0]
    for k in range(M):
        x[k] = 0.0
        y[k] = 0.0
        e[k] = np.exp(eigenvalues[k] * t)
    for s in range(M):
        if a[s] > 0.0:
            for k in range(M):
                x[k] += weight * a[s] * V[s, k]
        if b[s] > 0.0:
            for k in range(M):
                y[k] += b[s] * inverse_V[s, k]
    for k in range(M):
        S[k, k] += x[k] * y[k] * e[k] * t
        for l in range(k):
            phi = _divided_difference(e[k], e[l], differences[k, l], inverses[k, l], t)
            S[k, l] += x[k] * y[l] * phi
            S[l, k] += x[l] * y[k] * phi


@njit(**JIT)
def add_by_doubling(a, b, t, weight, rate, B, R):
    """Add a gap to R (M, M), OUT, by uniformization of a short step and doubling."""
    M = a.shape[0]
    if rate == 0.0:
        for i in range(M):
            for j in range(M):
                R[i, j] += weight * t * a[i] * b[j]
        return
    doublings = 0
    h = t
    while rate * h > 0.01:
        h *= 0.5
        doublings += 1
    # I(h) = Σ_{n,m} (a Bⁿ)ᵀ (Bᵐ b) (Λh)^{n+m+1} / (n+m+1)! e^{-Λh} / Λ
    x = rate * h
    N = N_TERMS + 2
    left = np.zeros((N, M))
    right = np.zeros((N, M))
    left[0] = a
    right[0] = b
    for n in range(1, N):
        left[n] = np.dot(left[n - 1], B[0])
        right[n] = np.dot(B[0], right[n - 1])
    integral = np.zeros((M, M))
    P = np.eye(M)
    term = np.eye(M)
    factor = np.exp(-x)
    for n in range(1, N):
        term = np.dot(term, B[0]) * (x / n)
        P += term
    P *= factor
    chance = factor * x / rate
    for total in range(N):
        for n in range(total + 1):
            for i in range(M):
                for j in range(M):
                    integral[i, j] += chance * left[n, i] * right[total - n, j]
        chance *= x / (total + 2)
    for _ in range(doublings):
        PT = P.T.copy()
        integral = np.dot(integral, PT) + np.dot(PT, integral)
        P = np.dot(P, P)
    for i in range(M):
        for j in range(M):
            R[i, j] += weight * integral[i, j]


@njit(**JIT)
def expect_block(
    tau, offsets, ends, weights, log_density, pi, rate, B, table,
    use_eigen, eigenvalues, V, inverse_V, differences, inverses,
    posterior, log_lik, S, R, first_counts,
):  # fmt: skip
    """Posterior of every row of a block (OUT), log-likelihoods (OUT), and the expected statistics.

    S (M, M) complex in the eigenbasis, R (M, M) directly: OUT, their sum (once transformed) is Σ R over gaps.
    inverse_V is transposed. first_counts (M,) OUT: expected number of times each state is the first.

    Returns
    -------
    where : (2,) int
        Sequence and row that the process cannot produce; -1 if all went well.
    """
    M = pi.shape[0]
    room = 1
    for i in range(offsets.shape[0] - 1):
        room = max(room, offsets[i + 1] - offsets[i])
    ahead = np.empty((room, M))
    ratio = np.empty(M)
    back = np.empty(M)
    ones = np.ones(M)
    work = np.empty((2, M))
    x, y, e = np.empty(M, np.complex128), np.empty(M, np.complex128), np.empty(M, np.complex128)
    where = np.full(2, -1, np.int64)
    for i in range(offsets.shape[0] - 1):
        first, last = offsets[i], offsets[i + 1]
        w = weights[i]
        log_lik[i], died = filter_sequence(
            tau[first:last], log_density[first:last], pi, rate, B, table, posterior[first:last], ahead, work
        )
        if died >= 0:
            where[0] = i
            where[1] = died
            return where
        open_end = ends[i] - tau[last - 1]
        if open_end > 0.0:
            a = posterior[last - 1]
            if use_eigen:
                add_by_eigen(a, ones, open_end, w, eigenvalues, V, inverse_V, differences, inverses, S, x, y, e)
            else:
                add_by_doubling(a, ones, open_end, w, rate, B, R)
        for l in range(last - 1, first - 1, -1):
            t = tau[l] - tau[l - 1] if l > first else tau[l]
            a = posterior[l - 1] if l > first else pi
            if t == 0.0:
                continue
            future_ratio(posterior[l], ahead[l - first], ratio)
            carry(ratio, t, rate, B, table, 1, back, work)
            norm = 0.0
            for s in range(M):
                norm += a[s] * back[s]
            largest = 0.0
            for s in range(M):
                ratio[s] /= norm
                largest = max(largest, ratio[s])
            if use_eigen and largest <= LARGEST_B:
                add_by_eigen(a, ratio, t, w, eigenvalues, V, inverse_V, differences, inverses, S, x, y, e)
            else:
                add_by_doubling(a, ratio, t, w, rate, B, R)
            if l > first:
                for s in range(M):
                    posterior[l - 1, s] *= back[s] / norm
            else:
                for s in range(M):
                    first_counts[s] += w * pi[s] * back[s] / norm
        if tau[first] == 0.0:
            for s in range(M):
                first_counts[s] += w * posterior[first, s]
    return where
