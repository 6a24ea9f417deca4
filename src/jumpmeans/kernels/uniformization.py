"""Paths of a Markov jump process given its parameters and the observations, by uniformization (Rao and Teh 2013).

A path with exit rates λ is a discrete chain with transition matrix B = I + Q/Ω at the events of a Poisson process of
rate Ω ≥ max λ, its self-transitions left out. Given the path, the events left out are a Poisson process of rate
Ω - λ of the current state; given all events, the chain is drawn anew by forward filtering, backward sampling.
A row that is no snapshot is an event too, with a matrix of its own instead of B: I + N after a barred gap, N where
a state is entered (N: Q without its diagonal). In a barred gap there are no others, and its length weighs the states.
Random numbers come from the generator that is passed in: one per block, so threads cannot change a draw.
"""

import numpy as np
from numba import njit

from ..jit import JIT, LEAF
from ..kinds import SNAPSHOT
from .forward_backward import is_barred

LEAST = np.finfo(np.float64).min


@njit(**JIT)
def grow(a):
    """The same array with room for twice as many entries along its first axis."""
    out = np.empty((2 * a.shape[0] + 8, *a.shape[1:]), a.dtype)
    out[: a.shape[0]] = a
    return out


@njit(forceinline=True, **JIT)
def pick(weights, n, u):
    """Index drawn in proportion to the first n weights by a uniform u; never one of weight 0, -1 if all are."""
    total = 0.0
    for s in range(n):
        total += weights[s]
    left = u * total
    last = -1
    for s in range(n):
        if weights[s] > 0.0:
            last = s
            left -= weights[s]
            if left < 0.0:
                return s
    return last


@njit(**JIT)
def events_at_rows(tau, kinds, offsets, per_gap):
    """Times at which a first path may jump: the opening of each sequence, its rows, per_gap - 1 times between two.

    None in a barred gap; before a row that is entered, per_gap times beside its own jump.

    Returns
    -------
    dwells : (S + 1,) offsets of each sequence in the times
    event : (n,)
    """
    S = offsets.shape[0] - 1
    dwells = np.zeros(S + 1, np.int64)
    event = np.zeros(S + tau.shape[0] * per_gap)
    n = 0
    for i in range(S):
        event[n] = 0.0
        n += 1
        before = 0.0
        for row in range(offsets[i], offsets[i + 1]):
            if tau[row] > before and not is_barred(kinds[row]):
                entered = kinds[row] != SNAPSHOT
                parts = per_gap + 1 if entered else per_gap
                for k in range(1, parts):
                    event[n] = before + (tau[row] - before) * (k / parts)
                    n += 1
                if not entered:
                    event[n] = tau[row]
                    n += 1
            before = tau[row]
        dwells[i + 1] = n
    return dwells, event[:n].copy()


@njit(**JIT)
def place_events(states, starts, rows, tau, kinds, end, lam, rate, rng, event):
    """Jumps of a path and the events left out between them, in order; returns their times (grown) and number.

    Jumps at the events of rows are left to `add_rows`. A rate of 0 leaves nothing out: the events are then the starts.
    """
    n = 0
    for k in range(states.shape[0]):
        if n == event.shape[0]:
            event = grow(event)
        if k == 0 or kinds[rows[k]] == SNAPSHOT or tau[rows[k]] != starts[k]:
            event[n] = starts[k]
            n += 1
        extra = rate - lam[states[k]]
        if extra <= 0.0:
            continue
        until = starts[k + 1] if k + 1 < states.shape[0] else end
        t = starts[k] + rng.standard_exponential() / extra
        while t < until:
            if n == event.shape[0]:
                event = grow(event)
            event[n] = t
            n += 1
            t += rng.standard_exponential() / extra
    return event, n


@njit(**JIT)
def add_rows(tau, kinds, free, n_free, event, before, kind):
    """The n_free times of `free` and the events of rows, in order, without those that lie in barred gaps.

    event, before, kind : OUT, time of each, number of rows before it, and kind of the row that it is the event of
    (a snapshot is none). Returns how many.
    """
    L = tau.shape[0]
    n, row = 0, 0
    for k in range(n_free + 1):
        t = free[k] if k < n_free else np.inf
        while row < L and tau[row] < t:
            if kinds[row] != SNAPSHOT:
                event[n], before[n], kind[n] = tau[row], row, kinds[row]
                n += 1
            row += 1
        own = row < L and kinds[row] != SNAPSHOT and (is_barred(kinds[row]) or tau[row] == t)
        if k < n_free and (k == 0 or not own):
            event[n], before[n], kind[n] = t, row, SNAPSHOT
            n += 1
    return n


@njit(**LEAF)
def compare_states(log_density, out):
    """Log-densities of each row less that of the state that shows it best (OUT, (n, M)).

    A row that nothing explains stays impossible: -inf less the least number that there is.
    """
    for row in range(log_density.shape[0]):
        best = LEAST
        for s in range(log_density.shape[1]):
            best = max(best, log_density[row, s])
        for s in range(log_density.shape[1]):
            out[row, s] = log_density[row, s] - best


@njit(**JIT)
def filter_events(tau, seen, lik, pi, lam, steps, before, kind, n, alpha):
    """Forward pass: alpha[k] (OUT) is the law of the state after event k given all that lies before event k + 1.

    lik : (L, M) likelihood of each row, up to a factor of its own; steps : as in `sample_block`; before, kind : as in
    `add_rows`. Returns the row that cannot be explained, or -1.
    """
    L, M = lik.shape
    for k in range(n):
        a = alpha[k]
        if k == 0:
            for s in range(M):
                a[s] = pi[s]
        else:
            for r in range(M):
                total = 0.0
                for s in range(M):
                    total += alpha[k - 1, s] * steps[kind[k], r, s]
                a[r] = total
            if kind[k] != SNAPSHOT and not _normalise(a):
                return before[k]
        following = before[k + 1] if k + 1 < n else L
        for row in range(before[k], following):
            if seen[row]:
                for s in range(M):
                    a[s] *= lik[row, s]
                if not _normalise(a):
                    return row
        if k + 1 < n and is_barred(kind[k + 1]):
            t = tau[following] - (tau[following - 1] if following > 0 else 0.0)
            least = np.inf
            for s in range(M):
                if a[s] > 0.0:
                    least = min(least, lam[s])
            for s in range(M):
                if a[s] > 0.0:
                    a[s] *= np.exp((least - lam[s]) * t)
    return -1


@njit(forceinline=True, **JIT)
def _normalise(a):
    """Scale weights to sum to 1, in place; False if there are none."""
    norm = 0.0
    for s in range(a.shape[0]):
        norm += a[s]
    if not norm > 0.0:
        return False
    for s in range(a.shape[0]):
        a[s] /= norm
    return True


@njit(**JIT)
def sample_block(
    tau, kinds, seen, offsets, ends, lik, pi, lam, steps, rate, dwells, states, starts, rows, rng,
    row_states, jumps, time, first,
):  # fmt: skip
    """Draw a new path for every sequence of a block, given the current one.

    Parameters
    ----------
    tau : (n,) row times relative to the window of each sequence; seen : (n,) bool, row rules out or favours states
    kinds : (n,) how each row was seen, a first row at the start of its window as a snapshot
    offsets : (S + 1,) rows of each sequence; ends : (S,) window lengths
    lik : (n, M) likelihood of the rows; pi, lam : (M,)
    steps : (kinds, M, M) matrix of an event, by kind (of a snapshot: I + Q/Ω), as [kind, state after, state before]
    rate : Ω, or 0 to use the given starts as the only events
    dwells : (S + 1,) dwells of each sequence in states, starts, rows: the current paths
    rng : numpy Generator
    row_states : (n,) OUT; jumps : (M, M), time, first : (M,) OUT sums

    Returns
    -------
    dwells, states, starts, rows : the new paths; rows : first row of each dwell
    where : (2,) int
        Sequence and row (within it) that no path explains; -1 if all went well.
    """
    S = ends.shape[0]
    M = lam.shape[0]
    free = np.empty(64)
    event, before, kind = np.empty(64), np.empty(64, np.int64), np.empty(64, np.int8)
    alpha = np.empty((64, M))
    chain = np.empty(64, np.int32)
    weights = np.empty(M)
    room = states.shape[0] + 8
    new_states = np.empty(room, np.int32)
    new_starts = np.empty(room)
    new_rows = np.empty(room, np.int32)
    new_dwells = np.zeros(S + 1, np.int64)
    where = np.full(2, -1, np.int64)
    total = 0
    for i in range(S):
        a, b = dwells[i], dwells[i + 1]
        top, bottom = offsets[i], offsets[i + 1]
        L = bottom - top
        tau_i, kinds_i = tau[top:bottom], kinds[top:bottom]
        free, n = place_events(states[a:b], starts[a:b], rows[a:b], tau_i, kinds_i, ends[i], lam, rate, rng, free)
        if n + L > chain.shape[0]:
            room = 2 * (n + L)
            event, before, kind = np.empty(room), np.empty(room, np.int64), np.empty(room, np.int8)
            chain, alpha = np.empty(room, np.int32), np.empty((room, M))
        n = add_rows(tau_i, kinds_i, free, n, event, before, kind)
        died = filter_events(tau_i, seen[top:bottom], lik[top:bottom], pi, lam, steps, before, kind, n, alpha)
        if died >= 0:
            where[0] = i
            where[1] = died
            break
        chain[n - 1] = pick(alpha[n - 1], M, rng.random())
        for k in range(n - 2, -1, -1):
            for s in range(M):
                weights[s] = alpha[k, s] * steps[kind[k + 1], chain[k + 1], s]
            chain[k] = pick(weights, M, rng.random())
        while total + n > new_states.shape[0]:
            new_states, new_starts, new_rows = grow(new_states), grow(new_starts), grow(new_rows)
        for k in range(n):
            if k == 0 or chain[k] != chain[k - 1]:
                new_states[total] = chain[k]
                new_starts[total] = event[k]
                new_rows[total] = before[k]
                if k == 0:
                    first[chain[k]] += 1.0
                else:
                    jumps[chain[k - 1], chain[k]] += 1.0
                    time[chain[k - 1]] += event[k] - new_starts[total - 1]
                total += 1
            for row in range(before[k], before[k + 1] if k + 1 < n else L):
                row_states[top + row] = chain[k]
        time[chain[n - 1]] += ends[i] - new_starts[total - 1]
        new_dwells[i + 1] = total
    return new_dwells, new_states[:total].copy(), new_starts[:total].copy(), new_rows[:total].copy(), where
