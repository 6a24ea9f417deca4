"""Expected times and jumps of a Markov jump process between its rows, given all (derivation, eq. 17).

For a gap t with filtered probabilities a before it and the future's word b after it (normalised so that
a e^{Qt} b = 1), R_ij = ∫ (a e^{Qu})_i (e^{Q(t-u)} b)_j du gives the expected time in i as R_ii and the
expected jumps i → j as q_ij R_ij. R is linear in the product a bᵀ. Gaps add up, in one of two ways:

* in the eigenbasis of Q, where the integral is a divided difference of exponentials;
* piece by piece, the pieces of a gap being the digits by which vectors are carried across it: the products
  a bᵀ of all pieces of one length are added first and integrated together at the end. All numbers are
  positive, so it serves a Q with ill-conditioned eigenvectors and gaps that end in a barely possible row.

Both take M² a gap. Over a barred gap the time goes to the states at its beginning. A jump at the instant of a row is
one more term of R, p bᵀ off the diagonal with p the probabilities just before it: R_ij times q_ij then counts it.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..ahead import awaited
from ..arrays import Floats, Ints
from ..jit import LEAF
from ..kinds import HELD, SNAPSHOT
from .forward_backward import (
    FINE,
    NEGLIGIBLE,
    RADIX,
    _multiply,
    arrive,
    carry,
    filter_sequence,
    future_ratio,
    hold,
    in_digits,
    is_barred,
    is_pinned,
    land,
    largest_gap,
)

# Divided differences closer than this (times t) are taken by their series.
CLOSE = 0.1
# 1/9! to 1/2!.
SERIES = tuple(1.0 / math.factorial(n) for n in range(9, 1, -1))
# The eigenbasis has absolute errors near 1e-15 times its condition; b above this would blow them up.
LARGEST_B = 1e5
# Eigenvalues are off by some 1e-15 of the largest rate: gaps longer than this, in units of it, would show.
LONGEST = 1e5


@njit(forceinline=True, **LEAF)
def _divided_difference(ek, el, dk, inverse, t):
    """(e^{λk t} - e^{λl t}) / (λk - λl) with dk = λk - λl; by its series where the two nearly agree."""
    z = dk * t
    if abs(z.real) + abs(z.imag) > CLOSE:
        return (ek - el) * inverse
    # e^{λl t} t (e^z - 1) / z, by products: to divide complex numbers is slow
    series = z * SERIES[0]
    for share in SERIES[1:]:
        series = (series + share) * z
    series += 1.0
    return el * t * series


@njit(forceinline=True, **LEAF)
def _real_divided_difference(ek, el, dk, inverse, t):
    """The same for two real eigenvalues."""
    z = dk * t
    if abs(z) > CLOSE:
        return (ek - el) * inverse
    return el * np.expm1(z) * inverse if z != 0.0 else el * t


@njit(**LEAF)
def add_by_eigen(a, b, t, weight, eigenvalues, V, inverse_V, differences, inverses, S, x, y, e):
    """Add a gap to S (M, M) complex, OUT, in the eigenbasis.

    Complex eigenvalues come in pairs, positive imaginary part first. V and inverse_V (transposed) are real:
    columns k, k + 1 of a pair hold the real and imaginary parts of the first one's vector. Half of S tells all: rows
    of second ones are left out, and their columns in the rows of real ones (see `Propagator.transform`).
    """
    M = a.shape[0]
    for k in range(M):
        x[k] = 0.0
        y[k] = 0.0
        value = eigenvalues[k]
        if value.imag == 0.0:
            e[k] = np.exp(value.real * t)
        elif value.imag > 0.0:
            e[k] = np.exp(value * t)
        else:
            e[k] = np.conj(e[k - 1])
    for s in range(M):
        if a[s] > 0.0:
            for k in range(M):
                x[k] += weight * a[s] * V[s, k]
        if b[s] > 0.0:
            for k in range(M):
                y[k] += b[s] * inverse_V[s, k]
    for k in range(M):
        if eigenvalues[k].imag == 0.0:
            xk, yk, ek = x[k], y[k], e[k].real
            S[k, k] += xk * yk * ek * t
            for l in range(k):
                if eigenvalues[l].imag == 0.0:
                    phi = _real_divided_difference(ek, e[l].real, differences[k, l].real, inverses[k, l].real, t)
                    S[k, l] += xk * y[l] * phi
                    S[l, k] += x[l] * yk * phi
        elif eigenvalues[k].imag > 0.0:
            first, last = complex(x[k], x[k + 1]), complex(y[k], y[k + 1])
            for l in range(M):
                if l == k:
                    S[k, k] += first * last * e[k] * t
                    continue
                quotient = _divided_difference(e[k], e[l], differences[k, l], inverses[k, l], t)
                if eigenvalues[l].imag == 0.0:
                    S[k, l] += first * y[l] * quotient
                    S[l, k] += x[l] * last * quotient
                elif eigenvalues[l].imag > 0.0:
                    S[k, l] += first * complex(y[l], y[l + 1]) * quotient
                else:
                    S[k, l] += first * complex(y[l - 1], -y[l]) * quotient


@njit(forceinline=True, **LEAF)
def _copy(x, out):
    for s in range(x.shape[0]):
        out[s] = x[s]


@njit(forceinline=True, **LEAF)
def _add_product(x, y, out):
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            out[i, j] += x[i] * y[j]


@njit(**LEAF)
def add_by_digits(a, b, t, weight, rate, B, table, C, D, R, left, back, work):
    """Add the products of the pieces of a gap, OUT, and carry b across it: back (M,) OUT.

    C (n_digits, 15, M, M): pieces as long as each entry of the table; D (n_terms, M, M): what is left over, by
    events of uniformization; R (M, M) takes the gap itself if nothing moves, and what a gap has beyond the table: there
    e^{Qt} is at its limit, whatever t. left (n_digits + 1, M): scratch.
    """
    M = a.shape[0]
    n_digits = table.shape[1]
    for s in range(M):
        left[0, s] = weight * a[s]
        back[s] = b[s]
    if rate == 0.0:
        for i in range(M):
            for j in range(M):
                R[i, j] += t * left[0, i] * b[j]
        return
    x = rate * t * FINE
    low, digits, r = in_digits(rate * t, n_digits)
    top = low
    _copy(left[0], left[low])
    while digits >> (4 * (top - low)) > 0:
        d = (digits >> (4 * (top - low))) & (RADIX - 1)
        if d > 0:
            _multiply(left[top], table[0, top, d - 1], left[top + 1])
        else:
            _copy(left[top], left[top + 1])
        top += 1
    if r > 0.0:
        chance = r * np.exp(-r)
        share = 1.0  # of the paths of n jumps, those with all of them in what is left over
        for n in range(D.shape[0]):
            for s in range(M):
                work[0, s] = chance * left[top, s]
            _add_product(work[0], b, D[n])
            chance *= r / (n + 2)
            share *= r * FINE / x
            if share < NEGLIGIBLE:
                break
        carry(b, r / rate, rate, B, table, 1, back, work)
    beyond = x > largest_gap(n_digits)
    for k in range(top - 1, low - 1, -1):
        d = (digits >> (4 * (k - low))) & (RADIX - 1)
        if d > 0:
            _add_product(left[k], back, C[k, d - 1])
            _multiply(back, table[1, k, d - 1], work[0])
            for s in range(M):
                back[s] = work[0, s]
        if beyond and k == top - 1:
            rest = t - largest_gap(n_digits) / FINE / rate
            for i in range(M):
                for j in range(M):
                    R[i, j] += rest * left[top, i] * back[j]


@njit(**LEAF)
def add_landing(a, b, t, pace, weight, kind, lam, rate, B, table, R, before, work):
    """Add the jump at a pinned row, t after probabilities a, to R (M, M), OUT; b (M,) IN, OUT: taken to just before it.

    t and R are in the sequence's own time, in which a jump is `pace` times less dense; before (M,): scratch.
    """
    arrive(a, t, np.int8(HELD if is_barred(kind) else SNAPSHOT), lam, rate, B, table, before, work)
    for r in range(a.shape[0]):
        for s in range(a.shape[0]):
            if s != r:
                R[r, s] += weight * pace * before[r] * b[s]
    land(b, kind, rate * pace, B, 1, work)


def integrate_digits(rate, B, table, C, D, R):
    """Add to R (M, M), OUT, the integrals of all pieces; C and D are used up.

    A piece of length d h is one of h, b carried back over d - 1 steps, and one of (d - 1) h, a carried over one;
    the piece h of one digit has length 16 in the next; the shortest one is left to uniformization.
    """
    for k in range(table.shape[1] - 1, -1, -1):
        for d in range(RADIX - 2, 0, -1):
            C[k, 0] += C[k, d] @ table[1, k, d - 1]
            C[k, d - 1] += table[1, k, 0] @ C[k, d]
        if k > 0:
            C[k - 1, 0] += C[k, 0] @ table[1, k - 1, RADIX - 2]
            C[k - 1, RADIX - 2] += table[1, k - 1, 0] @ C[k, 0]
    chance = np.exp(-1.0 / FINE) / FINE
    for n in range(D.shape[0]):
        D[n] += chance * C[0, 0]
        chance /= FINE * (n + 2)
    # Σ_n Σ_{l + m = n} B^l D_n B^m (transposed)
    powers = np.empty_like(D)
    powers[0] = np.eye(R.shape[0])
    for n in range(1, D.shape[0]):
        powers[n] = powers[n - 1] @ B[1]
    for n in range(D.shape[0] - 1, -1, -1):
        R += (D[n] @ powers[n]) / rate
        if n > 0:
            D[n - 1] += B[1] @ D[n]


@njit(**LEAF)
def informative_rows(tau, kinds, end, log_density, cover, rows):
    """Rows that say something (OUT), where barred gaps begin, and those that keep gaps in `cover`; returns how many."""
    L, M = log_density.shape
    n = 0
    last = 0.0
    for row in range(L):
        following = tau[row + 1] if row + 1 < L else end
        keep = following - last > cover or kinds[row] != SNAPSHOT or (row + 1 < L and is_barred(kinds[row + 1]))
        for s in range(M):
            keep = keep or log_density[row, s] != 0.0
        if keep:
            rows[n] = row
            last = tau[row]
            n += 1
    return n


def expect_block(
    tau: Floats, kinds: NDArray[np.int8], offsets: Ints, ends: Floats, weights: Floats, paces: Floats,
    log_density: Floats, pi: Floats, tables: tuple[Any, ...], eigen: tuple[Any, ...],
    posterior: Floats, log_lik: Floats, S: NDArray[np.complex128], R: Floats, first_counts: Floats,
) -> Ints:  # fmt: skip
    """Posterior of the rows of a block (OUT), log-likelihoods (OUT), and the expected statistics.

    kinds (n,): how each row was seen, a first row at the start of its window as a snapshot.
    paces (S,): what multiplies all rates of a sequence; times gathered of it are so many times as long.
    Snapshots that say nothing (log-density 0 in every state) are passed over, and get a posterior of 0.
    S (M, M) complex in the eigenbasis, R (M, M) directly: OUT, their sum (once transformed) is Σ R over gaps.
    tables : as `power_tables` makes them; eigen : whether its basis is sound, and that, as in `add_by_eigen`.
    first_counts (M,) OUT: expected number of times each state is the first.

    Returns
    -------
    where : (2,) int
        Sequence and row that the process cannot produce; -1 if all went well.
    """
    # what is gathered by digits is summed up outside the kernel: its products of matrices can be interrupted
    rate, B, table, n_terms, lam = tables
    M, n_digits = len(pi), table.shape[1]
    C, D = np.zeros((n_digits, RADIX - 1, M, M)), np.zeros((n_terms, M, M))
    # made here and not by a kernel, as in `sweep.sweep_block`
    room = int(np.diff(offsets).max(initial=1))
    desk = Desk(
        np.empty(room, np.int64), np.empty(room), np.empty((room, M)), np.empty(room, np.int8),
        np.empty((room, M)), np.empty((room, M)), np.empty(M), np.empty(M), np.ones(M), np.empty(M),
        np.empty((2, M)), np.empty((n_digits + 1, M)), np.empty(M), np.empty(M), np.empty(M, np.complex128),
    )  # fmt: skip
    where = np.full(2, -1, np.int64)
    posterior[:] = 0.0
    any_digits = gather_block(
        tau, kinds, offsets, ends, weights, paces, log_density, pi, lam, rate, B, table, *eigen,
        posterior, log_lik, S, R, first_counts, C, D, desk, where,
    )  # fmt: skip
    if any_digits and rate > 0.0:
        integrate_digits(rate, B, table, C, D, R)
    return where


class Desk(NamedTuple):
    """Where `gather_block` works, and used again for every sequence: the rows that say something, and scratch."""

    rows: Any
    times: Any
    density: Any
    kinds: Any
    filtered: Any
    ahead: Any
    ratio: Any
    back: Any
    ones: Any
    quick: Any
    work: Any
    left: Any
    x: Any
    y: Any
    e: Any


@awaited
@njit(**LEAF)
def gather_block(
    tau, kinds, offsets, ends, weights, paces, log_density, pi, lam, rate, B, table,
    use_eigen, eigenvalues, V, inverse_V, differences, inverses,
    posterior, log_lik, S, R, first_counts, C, D, desk, where,
):  # fmt: skip
    """As `expect_block`, at a desk, with the gaps that go by digits in C and D (OUT; see `add_by_digits`).

    where (2,) OUT. Returns whether any gap went by digits.
    """
    M = pi.shape[0]
    n_digits = table.shape[1]
    rows, times, density, kept_kinds, filtered, ahead, ratio, back, ones, quick, work, left, x, y, e = desk
    any_digits = False
    cover = largest_gap(n_digits) / FINE / rate if rate > 0.0 else np.inf
    for i in range(offsets.shape[0] - 1):
        first, last = offsets[i], offsets[i + 1]
        w, pace = weights[i], paces[i]
        for s in range(M):
            quick[s] = lam[s] * pace
        n = informative_rows(tau[first:last], kinds[first:last], ends[i], log_density[first:last], cover / pace, rows)
        for k in range(n):
            times[k] = tau[first + rows[k]]
            _copy(log_density[first + rows[k]], density[k])
            kept_kinds[k] = kinds[first + rows[k]]
        log_lik[i], died = filter_sequence(
            times[:n], kept_kinds[:n], density[:n], pi, quick, rate * pace, B, table, filtered, ahead, work
        )
        if died >= 0:
            where[0] = i
            where[1] = rows[died]
            return any_digits
        # backwards over the gaps: k is the row behind the gap, n the end of the window
        for k in range(n, -1, -1):
            begin = times[k - 1] if k > 0 else 0.0
            t = pace * ((times[k] if k < n else ends[i]) - begin)
            a = filtered[k - 1] if k > 0 else pi
            b = ones
            largest = 1.0
            kind = np.int8(SNAPSHOT)
            if k < n:
                b = ratio
                future_ratio(filtered[k], ahead[k], ratio)
                norm = 0.0
                for s in range(M):
                    norm += ahead[k, s] * ratio[s]
                largest = 0.0
                for s in range(M):
                    ratio[s] /= norm
                    largest = max(largest, ratio[s])
                _copy(filtered[k], posterior[first + rows[k]])
                kind = kept_kinds[k]
                if is_pinned(kind):
                    add_landing(a, ratio, t, pace, w, kind, lam, rate, B, table, R, back, work)
                    largest = 0.0
                    for s in range(M):
                        largest = max(largest, ratio[s])
            if is_barred(kind):
                hold(b, t, lam, a, back)
            elif t > 0.0:
                by_eigen = use_eigen and largest <= LARGEST_B and rate * t <= LONGEST
                if by_eigen:
                    add_by_eigen(a, b, t, w, eigenvalues, V, inverse_V, differences, inverses, S, x, y, e)
                else:
                    add_by_digits(a, b, t, w, rate, B, table, C, D, R, left, back, work)
                    any_digits = True
                possible = 0
                for s in range(M):
                    possible += a[s] > 0.0
                if k == n or possible == 1:  # the future changes nothing
                    _copy(ones, back)
                elif by_eigen:
                    carry(b, t, rate, B, table, 1, back, work)
            else:
                _copy(b, back)
            norm = 0.0
            for s in range(M):
                back[s] *= a[s]
                norm += back[s]
            for s in range(M):
                before = back[s] / norm
                if is_barred(kind):
                    R[s, s] += w * t * before
                if k > 0:
                    filtered[k - 1, s] = before
                else:
                    first_counts[s] += w * back[s] / norm
    return any_digits
