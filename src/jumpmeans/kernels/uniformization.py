"""Paths of a Markov jump process given its parameters and the observations, by uniformization (Rao and Teh 2013).

A path with exit rates λ is a discrete chain with transition matrix B = I + Q/Ω at the events of a Poisson process of
rate Ω ≥ max λ, its self-transitions left out. Given the path, the events left out are a Poisson process of rate
Ω - λ of the current state; given all events, the chain is drawn anew by forward filtering, backward sampling.
Random numbers come from the generator that is passed in: one per block, so threads cannot change a draw.
"""

import numpy as np
from numba import njit

from ..jit import JIT


@njit(**JIT)
def grow(a):
    """The same array with room for twice as many entries along its first axis."""
    out = np.empty((2 * a.shape[0] + 8, *a.shape[1:]), a.dtype)
    out[: a.shape[0]] = a
    return out


@njit(inline="always", **JIT)
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
def events_at_rows(tau, offsets, per_gap):
    """Times at which a first path may jump: the opening of each sequence, its rows, per_gap - 1 times between two.

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
            if tau[row] > 0.0:
                for k in range(1, per_gap):
                    event[n] = before + (tau[row] - before) * (k / per_gap)
                    n += 1
                event[n] = tau[row]
                n += 1
                before = tau[row]
        dwells[i + 1] = n
    return dwells, event[:n].copy()


@njit(**JIT)
def place_events(states, starts, end, lam, rate, rng, event):
    """Jumps of a path and the events left out between them, in order; returns their times (grown) and number.

    A rate of 0 leaves nothing out: the events are then the starts themselves.
    """
    n = 0
    for k in range(states.shape[0]):
        if n == event.shape[0]:
            event = grow(event)
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
def filter_events(tau, seen, lik, pi, B, event, n, alpha):
    """Forward pass: alpha[k] (OUT) is the law of the state after event k given the rows before event k + 1.

    lik : (L, M) likelihood of each row, up to a factor of its own. Returns the row that cannot be explained, or -1.
    """
    L, M = lik.shape
    row = 0
    for k in range(n):
        a = alpha[k]
        if k == 0:
            for s in range(M):
                a[s] = pi[s]
        else:
            before = alpha[k - 1]
            for r in range(M):
                a[r] = 0.0
            for s in range(M):
                x = before[s]
                if x > 0.0:
                    for r in range(M):
                        a[r] += x * B[s, r]
        while row < L and (k + 1 == n or tau[row] < event[k + 1]):
            if seen[row]:
                norm = 0.0
                for s in range(M):
                    a[s] *= lik[row, s]
                    norm += a[s]
                if not norm > 0.0:
                    return row
                for s in range(M):
                    a[s] /= norm
            row += 1
    return -1


@njit(**JIT)
def sample_block(
    tau, seen, offsets, ends, lik, pi, lam, B, rate, dwells, states, starts, rng,
    row_states, jumps, time, first,
):  # fmt: skip
    """Draw a new path for every sequence of a block, given the current one.

    Parameters
    ----------
    tau : (n,) row times relative to the window of each sequence; seen : (n,) bool, row holds an observation
    offsets : (S + 1,) rows of each sequence; ends : (S,) window lengths
    lik : (n, M) likelihood of the rows; pi, lam : (M,); B : (2, M, M) = I + Q/Ω and its transpose
    rate : Ω, or 0 to use the given starts as the only events
    dwells : (S + 1,) dwells of each sequence in states, starts: the current paths
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
    event = np.empty(64)
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
        tau_i = tau[top:bottom]
        event, n = place_events(states[a:b], starts[a:b], ends[i], lam, rate, rng, event)
        if n > chain.shape[0]:
            chain = np.empty(event.shape[0], np.int32)
            alpha = np.empty((event.shape[0], M))
        died = filter_events(tau_i, seen[top:bottom], lik[top:bottom], pi, B[0], event, n, alpha)
        if died >= 0:
            where[0] = i
            where[1] = died
            break
        chain[n - 1] = pick(alpha[n - 1], M, rng.random())
        for k in range(n - 2, -1, -1):
            into = B[1, chain[k + 1]]
            for s in range(M):
                weights[s] = alpha[k, s] * into[s]
            chain[k] = pick(weights, M, rng.random())
        while total + n > new_states.shape[0]:
            new_states, new_starts, new_rows = grow(new_states), grow(new_starts), grow(new_rows)
        row = 0
        for k in range(n):
            if k == 0 or chain[k] != chain[k - 1]:
                new_states[total] = chain[k]
                new_starts[total] = event[k]
                new_rows[total] = row
                if k == 0:
                    first[chain[k]] += 1.0
                else:
                    jumps[chain[k - 1], chain[k]] += 1.0
                    time[chain[k - 1]] += event[k] - new_starts[total - 1]
                total += 1
            while row < tau_i.shape[0] and (k + 1 == n or tau_i[row] < event[k + 1]):
                row_states[top + row] = chain[k]
                row += 1
        time[chain[n - 1]] += ends[i] - new_starts[total - 1]
        new_dwells[i + 1] = total
    return new_dwells, new_states[:total].copy(), new_starts[:total].copy(), new_rows[:total].copy(), where
