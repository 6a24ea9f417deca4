"""The most likely path between looks: best chains of jumps, best states at the looks, and where the dwells lie."""

import numpy as np
from numba import njit

from ..jit import JIT

# A longer chain, or a cycle, must gain more than this to count: what rounding can make of nothing.
LEAST_GAIN = 1e-12


@njit(**JIT)
def best_chains(jump_values, most):
    """The fields of `Chains`, for at most `most` jumps each worth jump_values (M, M); the shortest of equals."""
    M = jump_values.shape[0]
    # exact[k, a, b]: best chain of exactly k jumps
    exact = np.full((most + 1, M, M), -np.inf)
    previous = np.full((most + 1, M, M), -1, np.int32)
    for a in range(M):
        exact[0, a, a] = 0.0
    for k in range(1, most + 1):
        for a in range(M):
            for c in range(M):
                if exact[k - 1, a, c] == -np.inf:
                    continue
                for b in range(M):
                    v = exact[k - 1, a, c] + jump_values[c, b]
                    if v > exact[k, a, b]:
                        exact[k, a, b] = v
                        previous[k, a, b] = c
    # within[k, a, b]: best chain of at most k jumps, and its length; the shortest of equals
    within, length = exact.copy(), np.zeros((most + 1, M, M), np.int32)
    for k in range(1, most + 1):
        for a in range(M):
            for b in range(M):
                if exact[k, a, b] > within[k - 1, a, b] + LEAST_GAIN:
                    length[k, a, b] = k
                else:
                    within[k, a, b] = within[k - 1, a, b]
                    length[k, a, b] = length[k - 1, a, b]
    value = np.full((M, M, M), -np.inf)
    before = np.zeros((M, M, M), np.int32)
    behind = np.zeros((M, M, M), np.int32)
    for k in range(most + 1):
        for m in range(M):
            for a in range(M):
                if exact[k, a, m] == -np.inf:
                    continue
                for b in range(M):
                    v = exact[k, a, m] + within[most - k, m, b]
                    if v > value[m, a, b] + LEAST_GAIN:
                        value[m, a, b] = v
                        before[m, a, b] = k
                        behind[m, a, b] = length[most - k, m, b]
    return value, before, behind, previous


@njit(**JIT)
def most_likely(
    gaps, narrow, offsets, log_density, log_initial, lam,
    chains, direct, states, slow, value,
):  # fmt: skip
    """Best state at every look (OUT: states), state of the gap before it (OUT: slow), log-density (OUT: value (S,)).

    Returns
    -------
    where : int
        -1, or the look at which a sequence has no path left.
    """
    M = lam.shape[0]
    V, W = np.empty(M), np.empty(M)
    for s in range(offsets.shape[0] - 1):
        first, last = offsets[s], offsets[s + 1]
        from_state = np.zeros((last - first, M), np.int32)
        from_slow = np.zeros((last - first, M), np.int32)
        V[:] = log_initial + log_density[first]
        if V.max() == -np.inf:
            return first
        for i in range(first + 1, last):
            table = direct if narrow[i] else chains
            W[:] = -np.inf
            for a in range(M):
                if V[a] == -np.inf:
                    continue
                for step in range(M):
                    m = (a + step) % M  # first the state that is there already
                    stay = V[a] - lam[m] * gaps[i]
                    for b in range(M):
                        v = stay + table[m, a, b]
                        if v > W[b]:
                            W[b] = v
                            from_state[i - first, b] = a
                            from_slow[i - first, b] = m
            V[:] = W + log_density[i]
            if V.max() == -np.inf:
                return i
        b = int(np.argmax(V))
        value[s] = V[b]
        for i in range(last - 1, first - 1, -1):
            states[i] = b
            slow[i] = from_slow[i - first, b]
            b = from_state[i - first, b]
        slow[first] = states[first]
    return -1


@njit(**JIT)
def place_dwells(
    times, gaps, narrow, offsets, states, slow, chains, direct,
    epsilon, codes, starts, limits,
):  # fmt: skip
    """Write the dwells of all sequences (OUT: codes, starts), and where they start in the limit (OUT: limits)."""
    n = 0
    for s in range(offsets.shape[0] - 1):
        first, last = offsets[s], offsets[s + 1]
        codes[n] = states[first]
        starts[n] = times[first]
        limits[n] = times[first]
        n += 1
        for i in range(first + 1, last):
            _, before, behind, previous = direct if narrow[i] else chains
            a, m, b = states[i - 1], slow[i], states[i]
            left, right = before[m, a, b], behind[m, a, b]
            tiny = max(epsilon, 4.0 * np.spacing(max(abs(times[i - 1]), abs(times[i]))))
            tiny = min(tiny, gaps[i] / (2 * (left + right + 1)))
            c = m
            for k in range(left, 0, -1):
                codes[n + k - 1] = c
                soon = max(times[i - 1] + k * tiny, np.nextafter(times[i - 1], np.inf))
                starts[n + k - 1] = min(soon, times[i])
                limits[n + k - 1] = times[i - 1]
                c = previous[k, a, c]
            n += left
            c = b
            for k in range(right, 0, -1):
                codes[n + k - 1] = c
                starts[n + k - 1] = times[i] - (right - k) * tiny
                limits[n + k - 1] = times[i]
                c = previous[k, m, c]
            n += right
