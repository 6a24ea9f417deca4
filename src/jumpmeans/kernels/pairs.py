"""The same posterior and expectations where every gap may have rates of its own.

Gaps of equal length under equal rates are one pair (Q, t): its e^{Qt} is formed once, and what its gaps expect is
integrated once, R = ∫ e^{Qᵀu} W e^{Qᵀ(t-u)} du with W the sum of the products a bᵀ of `expectations`. Both come from a
step so short that few events are expected in it, by uniformization, and doublings from there: P(2h) = P(h) P(h) and
R(2h) = P(h)ᵀ R(h) + R(h) P(h)ᵀ. Every number is non-negative, so any Q will do, and any gap.
"""

import math

import numpy as np
from numba import njit

from ..jit import JIT
from .forward_backward import NEGLIGIBLE, absorb, future_ratio, hold, is_barred, is_pinned, land

# Events expected in the shortest step, at most; and terms of its series that always suffice for them.
SHORT = 0.0625
LEAST_TERMS = 10


@njit(forceinline=True, **JIT)
def _product(A, B, out):
    M = A.shape[0]
    for i in range(M):
        for j in range(M):
            out[i, j] = 0.0
        for k in range(M):
            x = A[i, k]
            if x > 0.0:
                for j in range(M):
                    out[i, j] += x * B[k, j]


@njit(**JIT)
def _steps(rate, t):
    """Events expected in the shortest step, and how many doublings lead from there to t."""
    m, e = math.frexp(rate)
    n, f = math.frexp(t)
    doublings = 0
    x = math.ldexp(m * n, e + f) if e + f < 1000 else np.inf
    if x > SHORT:
        doublings = max(0, e + f + 4)
        x = math.ldexp(m * n, e + f - doublings)
    return x, doublings


@njit(**JIT)
def _normalise(P):
    for i in range(P.shape[0]):
        total = 0.0
        for j in range(P.shape[0]):
            total += P[i, j]
        for j in range(P.shape[0]):
            P[i, j] /= total


@njit(**JIT)
def uniformize(Q, B):
    """B = I + Q/Λ (M, M) OUT; returns Λ, the largest rate."""
    M = Q.shape[0]
    rate = 0.0
    for s in range(M):
        rate = max(rate, -Q[s, s])
    for r in range(M):
        for s in range(M):
            x = Q[r, s] / rate if rate > 0.0 else 0.0
            B[r, s] = max(1.0 + x, 0.0) if r == s else x
    return rate


@njit(**JIT)
def _short_step(B, x, P, power, other):
    """P = e^{(B - I) x} (M, M) OUT, for a small x."""
    M = B.shape[0]
    chance = np.exp(-x)
    for i in range(M):
        for j in range(M):
            power[i, j] = chance if i == j else 0.0
            P[i, j] = power[i, j]
    for n in range(1, LEAST_TERMS + M):
        _product(power, B, other)
        settled = True
        for i in range(M):
            for j in range(M):
                power[i, j] = other[i, j] * (x / n)
                P[i, j] += power[i, j]
                # a state reached just now may lead to others that are not yet
                if power[i, j] > NEGLIGIBLE * P[i, j]:
                    settled = False
        if settled:
            break


@njit(**JIT)
def transitions_of_pairs(Q, groups, lengths, P):
    """P[p] = e^{Q[groups[p]] lengths[p]}, (n_pairs, M, M) OUT."""
    M = Q.shape[1]
    B, power, other = np.empty((M, M)), np.empty((M, M)), np.empty((M, M))
    before, rate = -1, 0.0
    for p in range(groups.shape[0]):
        if groups[p] != before:
            before = groups[p]
            rate = uniformize(Q[before], B)
        x, doublings = _steps(rate, lengths[p])
        _short_step(B, x, P[p], power, other)
        _normalise(P[p])
        for _ in range(doublings):
            _product(P[p], P[p], other)
            P[p] = other
            _normalise(P[p])


@njit(**JIT)
def integrate_pairs(Q, groups, lengths, W, R):
    """Add to R (G, M, M), OUT, the integrals of all pairs: R[groups[p]] += ∫ e^{Qᵀu} W[p] e^{Qᵀ(t-u)} du."""
    M = Q.shape[1]
    B, C, E = np.empty((M, M)), np.empty((M, M)), np.empty((M, M))
    power, other, more = np.empty((M, M)), np.empty((M, M)), np.empty((M, M))
    D, J = np.empty((M, M)), np.empty((M, M))
    before, rate = -1, 0.0
    for p in range(groups.shape[0]):
        if groups[p] != before:
            before = groups[p]
            rate = uniformize(Q[before], B)
            for i in range(M):
                for j in range(M):
                    C[i, j] = B[j, i]
        x, doublings = _steps(rate, lengths[p])
        h = math.ldexp(lengths[p], -doublings)
        # Σ_n e^{-x} x^n / (n + 1)! D_n h, with D_n = Σ_{l + m = n} C^l W C^m and D_{n + 1} = C D_n + W C^{n + 1}
        chance = np.exp(-x)
        for i in range(M):
            for j in range(M):
                power[i, j] = 1.0 if i == j else 0.0
                E[i, j] = chance if i == j else 0.0
                D[i, j] = W[p, i, j]
                J[i, j] = chance * D[i, j]
        factor = chance
        for n in range(1, LEAST_TERMS + 2 * M):
            if x == 0.0:
                break
            _product(power, C, other)
            power[:] = other
            _product(C, D, other)
            _product(W[p], power, more)
            chance *= x / n
            factor *= x / (n + 1)
            settled = True
            for i in range(M):
                for j in range(M):
                    D[i, j] = other[i, j] + more[i, j]
                    J[i, j] += factor * D[i, j]
                    E[i, j] += chance * power[i, j]
                    if factor * D[i, j] > NEGLIGIBLE * J[i, j] or chance * power[i, j] > NEGLIGIBLE * E[i, j]:
                        settled = False
            if settled:
                break
        for i in range(M):
            for j in range(M):
                J[i, j] *= h
        for _ in range(doublings):
            _product(E, J, other)
            _product(J, E, more)
            for i in range(M):
                for j in range(M):
                    J[i, j] = other[i, j] + more[i, j]
            _product(E, E, other)
            E[:] = other
            for j in range(M):  # columns of Eᵀ are rows of P
                total = 0.0
                for i in range(M):
                    total += E[i, j]
                for i in range(M):
                    E[i, j] /= total
        R[before] += J


@njit(forceinline=True, **JIT)
def _forward(v, P, out):
    M = v.shape[0]
    for j in range(M):
        out[j] = 0.0
    for i in range(M):
        if v[i] > 0.0:
            for j in range(M):
                out[j] += v[i] * P[i, j]


@njit(forceinline=True, **JIT)
def _cross(v, g, t, pair, kind, lam, P, out):
    """State probabilities v at the end of a gap, OUT, before what happens at its row; log of what is left out."""
    if is_barred(kind):
        return hold(v, t, lam[g], v, out)
    if pair >= 0:
        _forward(v, P[pair], out)
    else:
        for s in range(v.shape[0]):
            out[s] = v[s]
    return 0.0


@njit(**JIT)
def expect_pairs(
    tau, kinds, offsets, ends, weights, paces, log_density, pi, gap_groups, gap_pairs, jumps, lam, P,
    posterior, log_lik, W, R, first_counts,
):  # fmt: skip
    """Posterior of the rows (OUT), log-likelihoods (OUT), and what the gaps of each pair expect.

    tau and ends are in each sequence's own time, in which its jumps are `paces` (S,) times less dense.
    gap_groups, gap_pairs (n + S,): rates and pair of the gap before each row, then of those to the ends of the windows;
    -1 for a gap without a pair, as it is of length 0 or barred. jumps (G, 2, M, M): rates of the moves and their
    transpose; lam (G, M) exit rates; P (n_pairs, M, M).
    W (n_pairs, M, M) OUT; R (G, M, M) OUT: what needs no integral, barred gaps and jumps at rows.
    first_counts (M,) OUT. Returns (2,) sequence and row that cannot be, or -1.
    """
    M = pi.shape[0]
    n_rows = tau.shape[0]
    room = 1
    for i in range(offsets.shape[0] - 1):
        room = max(room, offsets[i + 1] - offsets[i])
    ahead = np.empty((room, M))
    ratio, back, before, work = np.empty(M), np.empty(M), np.empty(M), np.empty((2, M))
    where = np.full(2, -1, np.int64)
    for i in range(offsets.shape[0] - 1):
        first, L = offsets[i], offsets[i + 1] - offsets[i]
        w, pace = weights[i], paces[i]
        filtered = posterior[first : first + L]
        total = 0.0
        for k in range(L):
            row = first + k
            g, kind = gap_groups[row], kinds[row]
            t = tau[row] - (tau[row - 1] if k > 0 else 0.0)
            a = filtered[k - 1] if k > 0 else pi
            total += _cross(a, g, t, gap_pairs[row], kind, lam, P, ahead[k])
            if is_pinned(kind):
                land(ahead[k], kind, pace, jumps[g], 0, work)
            gain = absorb(ahead[k], log_density[row], filtered[k])
            if gain == -np.inf:
                where[0] = i
                where[1] = k
                return where
            total += gain
        log_lik[i] = total
        for k in range(L, -1, -1):
            gap = first + k if k < L else n_rows + i
            g, pair = gap_groups[gap], gap_pairs[gap]
            t = (tau[gap] if k < L else ends[i]) - (tau[first + k - 1] if k > 0 else 0.0)
            a = filtered[k - 1] if k > 0 else pi
            kind = kinds[gap] if k < L else np.int8(0)
            if k < L:
                future_ratio(filtered[k], ahead[k], ratio)
                norm = 0.0
                for s in range(M):
                    norm += ahead[k, s] * ratio[s]
                for s in range(M):
                    ratio[s] /= norm
                if is_pinned(kind):
                    _cross(a, g, t, pair, kind, lam, P, before)
                    for r in range(M):
                        for s in range(M):
                            if s != r:
                                R[g, r, s] += w * pace * before[r] * ratio[s]
                    land(ratio, kind, pace, jumps[g], 1, work)
            else:
                ratio[:] = 1.0
            if is_barred(kind):
                hold(ratio, t, lam[g], a, back)
            elif pair >= 0:
                for r in range(M):
                    x = 0.0
                    if a[r] > 0.0:
                        for s in range(M):
                            W[pair, r, s] += w * a[r] * ratio[s]
                            x += P[pair, r, s] * ratio[s]
                    back[r] = x
            else:
                back[:] = ratio
            norm = 0.0
            for s in range(M):
                back[s] *= a[s]
                norm += back[s]
            for s in range(M):
                x = back[s] / norm
                if is_barred(kind):
                    R[g, s, s] += w * t * x
                if k > 0:
                    filtered[k - 1, s] = x
                else:
                    first_counts[s] += w * x
    return where
