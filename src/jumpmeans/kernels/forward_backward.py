"""Posterior of a Markov jump process at its rows, by filtering and smoothing (derivation, eq. 16).

Vectors are carried across a gap t by e^{Qt} without forming it: with Λ the largest rate, Λt is written in
hexadecimal digits down to 1/4096; each digit costs one product with a stored power of e^{Q/Λ}, the rest
a few terms of uniformization (derivation, eq. 15). Every number is non-negative, so even the smallest probabilities
keep their relative accuracy, for gaps from tiny to huge and for any Q. Digits end where e^{Qt} no longer changes: it
has then reached its limit (the stationary law; with absorbing states, where each state ends up), and longer gaps are
alike.

How a row was seen (`kinds`) says two things of the way to it. The gap before it is open, e^{Qt}, or barred, where the
state holds: diag(e^{-λt}). At the row itself nothing happens (I), a jump must happen (N, which is Q without its
diagonal), or one may (I + N). `arrive` takes a vector that way, `look_back` takes one back: all that speaks of
probabilities goes by them.
"""

import numpy as np
from numba import njit

from ..ahead import awaited
from ..arrays import Floats
from ..jit import JIT, LEAF
from ..kinds import BARS, FORCES, PINS

RADIX = 16
FINE = 4096.0
# So many hold gaps of up to 2.8e14 mean dwells of the fastest state; tables beyond that grow until they settle.
USUAL_DIGITS = 15
MAX_DIGITS = 256  # the range of a float
SAME = 1e-11
# A float has no more than 14 hexadecimal digits: those of larger numbers are read from the top.
TOP = 2.0**56
N_TERMS = 5
NEGLIGIBLE = 1e-17
LARGEST_TABLE = 2**29


def power_tables(Q: Floats, longest: float) -> tuple[float, Floats, Floats, int, Floats]:
    """Stored powers for gaps up to `longest`: Λ, B = I + Q/Λ, table[k, d - 1] = e^{Q d 16^k / (4096 Λ)}, n_terms, λ.

    Both B and the table come as pairs, the second one transposed, so that products run along rows. n_terms is the
    number of events of uniformization within 1/(4096 Λ) that any path from state to state and on may need.
    Compiled are only the products of one digit: an interrupt comes through between two digits.
    """
    M = len(Q)
    rate = float(np.max(-np.diag(Q)))
    with np.errstate(over="ignore"):
        reach = np.float64(rate) * longest * FINE
    n_digits = 1
    while n_digits < MAX_DIGITS and RADIX**n_digits <= reach:
        n_digits += 1
    _check_size(M, min(n_digits, USUAL_DIGITS))
    B = np.zeros((2, M, M))
    B[0] = np.eye(M)
    unit, n_terms = np.eye(M), 1
    if rate > 0.0:
        B[0] = Q / rate
        np.fill_diagonal(B[0], np.maximum(1.0 + np.diag(Q) / rate, 0.0))
        unit, n_terms = _short_step(B[0])
    B[1] = B[0].T
    levels = []
    for k in range(n_digits):
        _check_size(M, k + 1)
        level = np.empty((RADIX, M, M))
        level[0] = unit
        _fill_powers(level)
        power = level[-1]
        levels.append(level[:-1])
        if k + 1 >= USUAL_DIGITS and np.all(np.abs(power - unit) <= SAME * unit):
            break
        unit = power
    table = np.empty((2, len(levels), RADIX - 1, M, M))
    for k, level in enumerate(levels):
        table[0, k] = level
        table[1, k] = level.transpose(0, 2, 1)
    return rate, B, table, n_terms, -np.diag(Q)


def _check_size(M, n_digits):
    size = 2 * n_digits * (RADIX - 1) * M * M * 8
    if size > LARGEST_TABLE:
        raise ValueError(
            f"the powers of e^{{Qt}} must fit into {LARGEST_TABLE / 2**30:g} GiB, got {size / 2**30:.2g} GiB for {M} "
            "states; use fewer states (with emission='direct' every distinct value is one: give numbers a family such "
            "as 'gaussian')."
        )


def _short_step(B):
    """e^{(B - I)/4096} by its series, and how many terms the way from any state to any other and on may take."""
    M = len(B)
    unit, term = np.eye(M), np.eye(M)
    n_terms = N_TERMS + M
    for n in range(1, N_TERMS + M):
        term = (term @ B) / (n * FINE)
        unit = unit + term
        # a state reached just now, for which this is the first term, may lead to others that are not yet
        if np.all(term <= NEGLIGIBLE * unit):
            n_terms = min(n_terms, 2 * n)
            break
    return _normalised(unit), n_terms


@njit(**JIT)
def _fill_powers(powers):
    """Powers 2 to 16 of powers[0], OUT in the places after it; rows sum to 1, each sum taken from left to right.

    It hands nothing out: an interrupt that comes while numba hands out arrays ends in a SystemError.
    """
    M = powers.shape[1]
    for d in range(1, powers.shape[0]):
        power = powers[d]
        np.dot(powers[d - 1], powers[0], power)
        for s in range(M):
            total = 0.0
            for r in range(M):
                total += power[s, r]
            for r in range(M):
                power[s, r] /= total


def _normalised(A):
    """A with rows that sum to 1, each sum taken from left to right."""
    return A / np.cumsum(A, axis=1)[:, -1:]


@njit(forceinline=True, **LEAF)
def _multiply(v, A, out):
    M = v.shape[0]
    for r in range(M):
        out[r] = 0.0
    for s in range(M):
        x = v[s]
        if x > 0.0:
            for r in range(M):
                out[r] += x * A[s, r]


@njit(forceinline=True, **LEAF)
def largest_gap(n_digits):
    """The longest gap that so many digits hold, in units of 1/(4096 Λ)."""
    return np.nextafter(float(RADIX) ** n_digits, 0.0)


@njit(forceinline=True, **LEAF)
def in_digits(z, n_digits):
    """Λt = z as the place of its lowest digit, the digits from there on, and what is left over below 1/4096."""
    x = min(z * FINE, largest_gap(n_digits))
    k = 0
    while x >= TOP:
        x /= RADIX
        k += 1
    whole = np.floor(x)
    return k, np.int64(whole), (x - whole) / FINE


@njit(**LEAF)
def carry(v, t, rate, B, table, side, out, work):
    """Out = v e^{Qt} (side 0) or e^{Qt} v (side 1); work : (2, M) scratch."""
    M = v.shape[0]
    n_digits = table.shape[1]
    k, digits, r = in_digits(rate * t, n_digits)
    term, other = work[0], work[1]
    for s in range(M):
        out[s] = v[s]
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
                # a state reached just now may lead to others that are not yet
                if term[s] > NEGLIGIBLE * out[s]:
                    settled = False
            if settled:
                break


@njit(forceinline=True, **LEAF)
def is_barred(kind):
    """Whether the state holds over the gap before such a row."""
    return BARS[kind]


@njit(forceinline=True, **LEAF)
def is_pinned(kind):
    """Whether such a row is where a jump must lie, or may."""
    return PINS[kind]


@njit(**LEAF)
def hold(v, t, lam, possible, out):
    """V weighed by the chances to hold over a gap t, (M,) OUT.

    Over a long gap these may be below what a float can hold: that of the slowest state which `possible` (M,) admits is
    left out. Returns its logarithm.
    """
    least = np.inf
    for s in range(v.shape[0]):
        if v[s] > 0.0 and possible[s] > 0.0:
            least = min(least, lam[s])
    for s in range(v.shape[0]):
        out[s] = v[s] * np.exp((least - lam[s]) * t) if v[s] > 0.0 and possible[s] > 0.0 else 0.0
    return -least * t if least < np.inf else 0.0


@njit(**LEAF)
def land(v, kind, rate, B, side, work):
    """Take v (M,), in place, from just before a pinned row to just after it (side 0), or the future's word back (1)."""
    M = v.shape[0]
    before = work[0]
    for s in range(M):
        before[s] = v[s]
        if FORCES[kind]:
            v[s] = 0.0
    for r in range(M):
        if before[r] > 0.0:
            for s in range(M):
                if s != r:
                    v[s] += before[r] * (rate * B[side, r, s])


@njit(**LEAF)
def arrive(v, t, kind, lam, rate, B, table, out, work):
    """State probabilities v brought to a row t later, OUT; returns the logarithm of what is left out of them."""
    shift = 0.0
    if is_barred(kind):
        shift = hold(v, t, lam, v, out)
    else:
        carry(v, t, rate, B, table, 0, out, work)
    if is_pinned(kind):
        land(out, kind, rate, B, 0, work)
    return shift


@njit(**LEAF)
def look_back(v, t, kind, possible, lam, rate, B, table, out, work):
    """What the future says of each state at a row, v, brought back over the gap t before it, OUT, up to a factor.

    v is used up; possible : (M,) 0 for what is no state at the beginning of the gap.
    """
    if is_pinned(kind):
        land(v, kind, rate, B, 1, work)
    if is_barred(kind):
        hold(v, t, lam, possible, out)
    else:
        carry(v, t, rate, B, table, 1, out, work)


@njit(forceinline=True, **LEAF)
def absorb(a, log_density, out):
    """State probabilities a (M,) given the row itself, OUT; returns its log-likelihood, -inf if it cannot be."""
    M = a.shape[0]
    top = -np.inf
    for s in range(M):
        if a[s] > 0.0:
            top = max(top, log_density[s])
    norm = 0.0
    if top > -np.inf:
        for s in range(M):
            d = log_density[s] - top
            p = 0.0
            if a[s] > 0.0 and d > -np.inf:
                p = a[s] * np.exp(d) if d != 0.0 else a[s]
            out[s] = p
            norm += p
    if norm == 0.0:
        return -np.inf
    for s in range(M):
        out[s] /= norm
    return top + np.log(norm)


@njit(**LEAF)
def filter_sequence(tau, kinds, log_density, pi, lam, rate, B, table, filtered, ahead, work):
    """Forward pass over one sequence.

    filtered, ahead : (L, M) OUT: state probabilities with and without the row itself.
    Returns the log-likelihood and the row that the process cannot produce (-1 if none).
    """
    total = 0.0
    for row in range(log_density.shape[0]):
        a = ahead[row]
        before = filtered[row - 1] if row > 0 else pi
        t = tau[row] - (tau[row - 1] if row > 0 else 0.0)
        total += arrive(before, t, kinds[row], lam, rate, B, table, a, work)
        gain = absorb(a, log_density[row], filtered[row])
        if gain == -np.inf:
            return total, row
        total += gain
    return total, -1


@njit(forceinline=True, **LEAF)
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


@njit(**LEAF)
def smooth_sequence(tau, kinds, posterior, ahead, lam, rate, B, table, ratio, back, work):
    """Backward pass over one sequence: posterior (L, M) IN: filtered probabilities; OUT: given all rows."""
    M = posterior.shape[1]
    for row in range(tau.shape[0] - 2, -1, -1):
        future_ratio(posterior[row + 1], ahead[row + 1], ratio)
        t = tau[row + 1] - tau[row]
        look_back(ratio, t, kinds[row + 1], posterior[row], lam, rate, B, table, back, work)
        norm = 0.0
        for s in range(M):
            posterior[row, s] *= back[s]
            norm += posterior[row, s]
        for s in range(M):
            posterior[row, s] /= norm


@awaited
@njit(**JIT)
def smooth_block(tau, kinds, offsets, paces, log_density, pi, tables, posterior, log_lik):
    """Posterior state probabilities of every row of a block (OUT), and each sequence's log-likelihood (OUT).

    kinds : (n,) how each row was seen, a first row at the start of its window as a snapshot
    paces : (S,) what multiplies all rates of a sequence; tables reach as far as the longest gap of the quickest one
    log_density : (n, M), zero rows where nothing was observed; tables : as `power_tables` makes them.

    Returns
    -------
    where : (2,) int
        Sequence and row (within it) that the process cannot produce; -1 if all went well.
    """
    rate, B, table, _, lam = tables
    M = pi.shape[0]
    room = 1
    for i in range(offsets.shape[0] - 1):
        room = max(room, offsets[i + 1] - offsets[i])
    ahead = np.empty((room, M))
    ratio = np.empty(M)
    back = np.empty(M)
    work = np.empty((2, M))
    quick = np.empty(M)
    where = np.full(2, -1, np.int64)
    for i in range(offsets.shape[0] - 1):
        first, last = offsets[i], offsets[i + 1]
        own, seen_as = tau[first:last], kinds[first:last]
        top = rate * paces[i]
        for s in range(M):
            quick[s] = lam[s] * paces[i]
        log_lik[i], died = filter_sequence(
            own, seen_as, log_density[first:last], pi, quick, top, B, table, posterior[first:last], ahead, work
        )
        if died >= 0:
            where[0] = i
            where[1] = died
            return where
        smooth_sequence(own, seen_as, posterior[first:last], ahead, quick, top, B, table, ratio, back, work)
    return where
