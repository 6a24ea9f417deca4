"""Posteriors of rows, log-likelihoods and expected statistics on a device, one thread for one sequence after the other.

As in `jumpmeans.kernels.forward_backward` and `.expectations`, for rows that are snapshots. What gaps add to expected
times and jumps is added up in the eigenbasis of Q; a sequence with a gap that must not go by it is left out and marked.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from ..expectations import CLOSE, LARGEST_B, LONGEST
from ..forward_backward import FINE
from .arithmetic import LANES, cos, exp, expm1, sin
from .probabilities import INF, gap_before, make_carry, make_filter, make_future_ratio
from .sums import Summed, make_block_sum, make_columns
from .sweep import MOST_LOCAL, PLACE
from .values import make_row

POSTERIOR, WEIGH, AGREE = "posterior", "weigh", "agree"


class Smoothed(NamedTuple):
    """What a pass is compiled for: n_states M, real, forms of the columns, masked, and room for rows of a sequence."""

    n_states: int
    real: Any
    forms: tuple[str, ...]
    masked: bool
    room: int

    @property
    def is_local(self) -> bool:
        """Whether a thread keeps all that it works with beside itself."""
        return self.room <= MOST_LOCAL


def scratch_shapes(form: Smoothed) -> list[tuple[tuple[int, ...], Any]]:
    """Shape and type of what one thread works with: filtered, ahead (rows, M), and rows that say something."""
    n, M = form.room, form.n_states
    return [((n, M), np.float64), ((n, M), np.float64), ((n,), np.int32)]


def _with_room(form, one, n_sums):
    """The kernel that calls one(i, ..., filtered, ahead, rows, own) for each sequence, and adds up `own`."""
    M, room, length = form.n_states, form.room, max(n_sums, 1)
    block_sum = make_block_sum(length)
    if form.is_local:

        @cuda.jit
        def kernel(scratch, observed, sequences, weights, tau, chain, more, out, where):
            filtered = cuda.local.array((room, M), np.float64)
            ahead = cuda.local.array((room, M), np.float64)
            rows = cuda.local.array(room, np.int32)
            own = cuda.local.array(length, np.float64)
            for k in range(n_sums):
                own[k] = 0.0
            for i in range(cuda.grid(1), sequences[0].shape[0], cuda.gridsize(1)):
                one(i, observed, sequences, weights, tau, chain, more, where, filtered, ahead, rows, own)
            if n_sums > 0:
                block_sum(own, out)

    else:

        @cuda.jit
        def kernel(scratch, observed, sequences, weights, tau, chain, more, out, where):
            thread = cuda.grid(1)
            filtered, ahead, rows = scratch[0][:, :, thread], scratch[1][:, :, thread], scratch[2][:, thread]
            own = cuda.local.array(length, np.float64)
            for k in range(n_sums):
                own[k] = 0.0
            for i in range(thread, sequences[0].shape[0], cuda.gridsize(1)):
                one(i, observed, sequences, weights, tau, chain, more, where, filtered, ahead, rows, own)
            if n_sums > 0:
                block_sum(own, out)

    return kernel


@lru_cache(maxsize=64)
def make_smooth(form: Smoothed, what: str) -> Any:
    """The kernel of posteriors.

    kernel[blocks, threads](scratch, observed, sequences, weights, tau, chain, more, out, where)

    observed : x, theta, given, mask as for a sweep, with log-densities for costs
    chain : pi (M,), rate, reach, B, table
    more : log_lik (S,) OUT in the order of the panel, posterior (n, M) OUT likewise (POSTERIOR), dwells (AGREE)
    out : (blocks, M²) OUT for AGREE: posterior weight over the rows where trajectories are in each state
    where : (1,) IN, OUT: the first row that cannot be, as in a sweep
    """
    M = form.n_states
    density_row = make_row(form.forms, M, np.float64, form.masked)
    carry, weigh_row, future_ratio = make_carry(M), make_filter(M), make_future_ratio(M)
    looks_back, keeps_rows, agrees = what != WEIGH, what == POSTERIOR, what == AGREE

    @cuda.jit(device=True)
    def one(i, observed, sequences, weights, tau, chain, more, where, filtered, ahead, rows, own):
        ats, row0s, lengths, _, numbers = sequences
        x, theta, given, mask = observed
        pi, rate, reach, B, table = chain
        log_lik, posterior, dwells = more
        places, counts, states, _, dwell_rows = dwells
        at, row0, L = ats[i], row0s[i], lengths[i]
        v = cuda.local.array(M, np.float64)
        density = cuda.local.array(M, np.float64)
        term = cuda.local.array(M, np.float64)
        other = cuda.local.array(M, np.float64)
        for s in range(M):
            v[s] = pi[s]
        total = 0.0
        for row in range(L):
            carry(v, gap_before(tau, at, row), rate, reach, B, table, 0, term, other)
            if looks_back:
                for s in range(M):
                    ahead[row, s] = v[s]
            density_row(x, theta, given, row0 + row, mask, at + LANES * row, -INF, density)
            gain = weigh_row(density, v, v)
            if gain == -INF:
                cuda.atomic.min(where, 0, numbers[i] * PLACE + row)
                return
            total += gain
            if looks_back:
                for s in range(M):
                    filtered[row, s] = v[s]
        log_lik[numbers[i]] = total
        if not looks_back:
            return
        k = counts[i] - 1 if agrees else 0
        for row in range(L - 1, -1, -1):
            if row < L - 1:
                future_ratio(v, ahead[row + 1], density)
                carry(density, gap_before(tau, at, row + 1), rate, reach, B, table, 1, term, other)
                norm = 0.0
                for s in range(M):
                    v[s] = filtered[row, s] * density[s]
                    norm += v[s]
                for s in range(M):
                    v[s] /= norm
            if keeps_rows:
                for s in range(M):
                    posterior[row0 + row, s] = v[s]
            if agrees:
                while dwell_rows[places[i] + LANES * k] > row:
                    k -= 1
                shown = states[places[i] + LANES * k]
                for s in range(M):
                    own[shown * M + s] += weights[i] * v[s]

    return _with_room(form, one, M * M if agrees else 0)


@lru_cache(maxsize=64)
def make_expect(form: Smoothed, summed: Summed, keeps_rows: bool, is_real: bool) -> Any:
    """The kernel of expected statistics; arguments as in `make_smooth`.

    chain : pi (M,), rate, reach, B, table, then the eigenbasis: values, V, inverse_V, differences, inverses, each as
    in `add_by_eigen`; complex ones unless `is_real`
    more : ends (S,) in the order of the layout, log_lik (S,) OUT, posterior (n, M) OUT if `keeps_rows`, stat_theta,
    origin as in `make_gather`, left_out (S,) OUT: 1 for a sequence that was left out, its number as in the layout
    out : (blocks, n) OUT: real and imaginary part of what is gathered in the eigenbasis (M, M), first states (M,), and
    the columns from `summed.begin` on.
    """
    M = form.n_states
    density_row = make_row(form.forms, M, np.float64, form.masked)
    carry, weigh_row, future_ratio = make_carry(M), make_filter(M), make_future_ratio(M)
    add_gap = make_add_gap(M, is_real)
    add_columns = make_columns(summed)
    has_columns = add_columns is not None
    first_at = 2 * M * M

    if not has_columns:

        @cuda.jit(device=True)
        def add_columns(x, theta, origin, at, s, w, own):
            pass

    @cuda.jit(device=True)
    def informative(observed, tau, at, row0, L, end, cover, filtered, rows):
        """Rows that say something, or keep gaps in `cover`; their densities in filtered; returns how many."""
        x, theta, given, mask = observed
        n = 0
        last = 0.0
        for row in range(L):
            following = np.float64(tau[at + LANES * (row + 1)]) if row + 1 < L else end
            keep = following - last > cover
            density_row(x, theta, given, row0 + row, mask, at + LANES * row, -INF, filtered[n])
            for s in range(M):
                keep = keep or filtered[n, s] != 0.0
            if keep:
                rows[n] = row
                last = np.float64(tau[at + LANES * row])
                n += 1
        return n

    @cuda.jit(device=True)
    def one(i, observed, sequences, weights, tau, chain, more, where, filtered, ahead, rows, own):
        ats, row0s, lengths, _, numbers = sequences
        pi, rate, reach, B, table, values, V, inverse_V, differences, inverses = chain
        ends, log_lik, posterior, stat_theta, origin, left_out = more
        at, row0, L, w, end = ats[i], row0s[i], lengths[i], weights[i], np.float64(ends[i])
        v = cuda.local.array(M, np.float64)
        a = cuda.local.array(M, np.float64)
        b = cuda.local.array(M, np.float64)
        term = cuda.local.array(M, np.float64)
        other = cuda.local.array(M, np.float64)
        cover = reach / FINE / rate if rate > 0.0 else INF
        n = informative(observed, tau, at, row0, L, end, cover, filtered, rows)
        for s in range(M):
            v[s] = pi[s]
        total = 0.0
        time = 0.0
        by_eigen = True
        for k in range(n):
            now = np.float64(tau[at + LANES * rows[k]])
            by_eigen = by_eigen and rate * (now - time) <= LONGEST
            carry(v, now - time, rate, reach, B, table, 0, term, other)
            time = now
            for s in range(M):
                ahead[k, s] = v[s]
            gain = weigh_row(filtered[k], v, v)
            if gain == -INF:
                cuda.atomic.min(where, 0, numbers[i] * PLACE + rows[k])
                return
            total += gain
            for s in range(M):
                filtered[k, s] = v[s]
        by_eigen = by_eigen and rate * (end - time) <= LONGEST
        log_lik[numbers[i]] = total
        # what the future says of a state may be beyond the eigenbasis: known before anything is added
        if by_eigen:
            by_eigen = look_back(tau, at, n, rate, reach, B, table, pi, filtered, ahead, rows, v, b, term, other)
        left_out[i] = 0 if by_eigen else 1
        if not by_eigen:
            return
        for k in range(n, -1, -1):
            begun = np.float64(tau[at + LANES * rows[k - 1]]) if k > 0 else 0.0
            t = (np.float64(tau[at + LANES * rows[k]]) if k < n else end) - begun
            for s in range(M):
                a[s] = filtered[k - 1, s] if k > 0 else pi[s]
                b[s] = 1.0
            if k < n:
                # v holds the posterior of row k
                future_ratio(v, ahead[k], b)
                norm = 0.0
                for s in range(M):
                    norm += ahead[k, s] * b[s]
                for s in range(M):
                    b[s] /= norm
                if has_columns:
                    for s in range(M):
                        if v[s] > 0.0:
                            add_columns(
                                observed[0], stat_theta, origin, at + LANES * rows[k], s, w * v[s], own
                            )  # fmt: skip
                if keeps_rows:
                    for s in range(M):
                        posterior[row0 + rows[k], s] = v[s]
            if t > 0.0:
                add_gap(a, b, t, w, values, V, inverse_V, differences, inverses, own)
                if k < n:
                    carry(b, t, rate, reach, B, table, 1, term, other)
            norm = 0.0
            for s in range(M):
                b[s] *= a[s]
                norm += b[s]
            for s in range(M):
                v[s] = b[s] / norm
                if k == 0:
                    own[first_at + s] += w * v[s]

    @cuda.jit(device=True)
    def look_back(tau, at, n, rate, reach, B, table, pi, filtered, ahead, rows, v, b, term, other):
        """Whether all that the future says can go by the eigenbasis."""
        for k in range(n - 1, -1, -1):
            future_ratio(v, ahead[k], b)
            norm = 0.0
            largest = 0.0
            for s in range(M):
                norm += ahead[k, s] * b[s]
                largest = max(largest, b[s])
            if largest > LARGEST_B * norm:
                return False
            if k > 0:
                t = np.float64(tau[at + LANES * rows[k]]) - np.float64(tau[at + LANES * rows[k - 1]])
                carry(b, t, rate, reach, B, table, 1, term, other)
                norm = 0.0
                for s in range(M):
                    v[s] = b[s] * filtered[k - 1, s]
                    norm += v[s]
                for s in range(M):
                    v[s] /= norm
        if n > 0:
            for s in range(M):
                v[s] = filtered[n - 1, s]
        return True

    return _with_room(form, one, summed.column_places[-1])


def expected_places(M: int) -> int:
    """Sums that gaps and first states take before those of the columns."""
    return 2 * M * M + M


def make_add_gap(M, is_real):
    """add_gap: `add_by_eigen`, into own (2 M² + ...), the real parts and then the imaginary ones."""

    @cuda.jit(device=True)
    def real_quotient(ek, el, dk, inverse, t):
        z = dk * t
        if abs(z) > CLOSE:
            return (ek - el) * inverse
        return el * expm1(z) * inverse if z != 0.0 else el * t

    @cuda.jit(device=True)
    def quotient(ek, el, dk, inverse, t):
        z = dk * t
        if abs(z.real) + abs(z.imag) > CLOSE:
            return (ek - el) * inverse
        series = complex(1.0, 0.0)
        for n in range(9, 1, -1):
            series = 1.0 + z * series / float(n)
        return el * t * series

    @cuda.jit(device=True)
    def add(own, k, l, value):
        own[k * M + l] += value.real
        own[(M + k) * M + l] += value.imag

    @cuda.jit(device=True)
    def add_gap(a, b, t, w, values, V, inverse_V, differences, inverses, own):
        x = cuda.local.array(M, np.float64)
        y = cuda.local.array(M, np.float64)
        e = cuda.local.array(M, np.float64)
        turn = cuda.local.array(M, np.float64)
        for k in range(M):
            x[k] = 0.0
            y[k] = 0.0
            size = exp(values[k].real * t)
            e[k] = size
            turn[k] = 0.0
            if not is_real and values[k].imag != 0.0:
                e[k] = size * cos(values[k].imag * t)
                turn[k] = size * sin(values[k].imag * t)
        for s in range(M):
            for k in range(M):
                x[k] += w * a[s] * V[s, k]
                y[k] += b[s] * inverse_V[s, k]
        for k in range(M):
            if is_real or values[k].imag == 0.0:
                own[k * M + k] += x[k] * y[k] * e[k] * t
                for l in range(k):
                    if is_real or values[l].imag == 0.0:
                        phi = real_quotient(e[k], e[l], differences[k, l].real, inverses[k, l].real, t)
                        own[k * M + l] += x[k] * y[l] * phi
                        own[l * M + k] += x[l] * y[k] * phi
            elif values[k].imag > 0.0:
                first, last = complex(x[k], x[k + 1]), complex(y[k], y[k + 1])
                ek = complex(e[k], turn[k])
                for l in range(M):
                    if l == k:
                        add(own, k, k, first * last * ek * t)
                        continue
                    phi = quotient(ek, complex(e[l], turn[l]), differences[k, l], inverses[k, l], t)
                    if values[l].imag == 0.0:
                        add(own, k, l, first * y[l] * phi)
                        add(own, l, k, x[l] * last * phi)
                    elif values[l].imag > 0.0:
                        add(own, k, l, first * complex(y[l], y[l + 1]) * phi)
                    else:
                        add(own, k, l, first * complex(y[l - 1], -y[l]) * phi)

    return add_gap
