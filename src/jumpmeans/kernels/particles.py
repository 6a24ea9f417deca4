"""Paths of the infinite model given its measures, by conditional sequential Monte Carlo; new states are born on the way.

The measures are known at M atoms, and by the total mass of what is left; an atom of the rest is looked at only when
a particle jumps to it. All particles and sequences share what has been revealed so far, so that they move under
one fixed (infinite) set of measures. Random numbers come from the generator that is passed in.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..objective import JIT
from .uniformization import grow, pick


class Measures(NamedTuple):
    """μ_0 and the rows μ_i at the atoms found so far, with room for more.

    base : (cap,) ω_j = μ_0 of each atom; rows : (cap + 1, cap) μ_ij, row 0 that of the first states, row s + 1 that of
    state s with 0 on the diagonal (a jump to itself cannot be seen); left : (cap + 1,) mass of each row outside the
    atoms; exits : (cap,) Σ_j μ_sj + left; theta : (cap, K) emission; scalars : ω_*, α_0, γ; size : (1,) M.
    """

    base: Any
    rows: Any
    left: Any
    exits: Any
    theta: Any
    scalars: Any
    size: Any


@njit(**JIT)
def enlarge(m):
    """The same measures with more room."""
    cap = m.base.shape[0]
    new = 2 * cap + 8
    base, exits, left = np.zeros(new), np.zeros(new), np.zeros(new + 1)
    rows, theta = np.zeros((new + 1, new)), np.zeros((new, m.theta.shape[1]))
    base[:cap] = m.base
    exits[:cap] = m.exits
    left[: cap + 1] = m.left
    rows[: cap + 1, :cap] = m.rows
    theta[:cap] = m.theta
    return Measures(base, rows, left, exits, theta, m.scalars, m.size)


@njit(**JIT)
def log_gamma_draw(shape, rng):
    """Logarithm of a standard gamma draw: exact also where the draw itself would be 0 in floating point."""
    return np.log(rng.standard_gamma(shape + 1.0)) + np.log(1.0 - rng.random()) / shape


@njit(**JIT)
def beta_draw(a, b, rng):
    """Beta(a, b), for any small parameters; a parameter of 0 gives all to the other."""
    if b <= 0.0:
        return 1.0
    if a <= 0.0:
        return 0.0
    x, y = log_gamma_draw(a, rng), log_gamma_draw(b, rng)
    if x == -np.inf and y == -np.inf:
        return 1.0 if rng.random() * (a + b) < a else 0.0
    return 1.0 / (1.0 + np.exp(y - x))


@njit(**JIT)
def draw_theta(family, prior, theta, rng):
    """Emission of a state from its prior (OUT): a row of Dirichlet(prior) for symbols, mean and sd for measurements."""
    if family == 0:
        total = 0.0
        for k in range(theta.shape[0]):
            theta[k] = rng.standard_gamma(prior[k])
            total += theta[k]
        for k in range(theta.shape[0]):
            theta[k] /= total
    else:
        mean, count, shape, scale = prior
        variance = scale / rng.standard_gamma(shape)
        theta[0] = mean + np.sqrt(variance / count) * rng.standard_normal()
        theta[1] = np.sqrt(variance)


@njit(**JIT)
def give_birth(m, row, family, prior, rng):
    """Reveal the atom that a jump from `row` into the rest of its measure leads to; returns the measures.

    Given ω_*, the atom of a jump is a size-biased pick from DP(α_0): it has the share b ~ Beta(1, α_0) of ω_*. Its
    share of what is left of a row is Beta(ω, rest), and Beta(ω + 1, rest) of the row that the jump came from. Its own
    row has never been used: Gamma(ω_j, γ) at every atom.
    """
    M = m.size[0]
    if M == m.base.shape[0]:
        m = enlarge(m)
    alpha, gamma = m.scalars[1], m.scalars[2]
    keep = (1.0 - rng.random()) ** (1.0 / alpha)  # 1 - b
    mass, rest = (1.0 - keep) * m.scalars[0], keep * m.scalars[0]
    for k in range(M + 1):
        share = beta_draw(mass + 1.0 if k == row else mass, rest, rng)
        m.rows[k, M] = share * m.left[k]
        m.left[k] *= 1.0 - share
    total = 0.0
    for j in range(M):
        m.rows[M + 1, j] = rng.standard_gamma(m.base[j]) / gamma
        total += m.rows[M + 1, j]
    m.rows[M + 1, M] = 0.0
    m.left[M + 1] = rng.standard_gamma(rest) / gamma
    m.exits[M] = total + m.left[M + 1]
    m.base[M] = mass
    draw_theta(family, prior, m.theta[M], rng)
    m.scalars[0] = rest
    m.size[0] = M + 1
    return m


@njit(**JIT)
def next_state(m, row, total, family, prior, rng):
    """State drawn from a row of known total mass; returns the measures (it may be a new one) and the state."""
    u = rng.random() * total
    last = -1
    for j in range(m.size[0]):
        mass = m.rows[row, j]
        if mass > 0.0:
            last = j
            u -= mass
            if u < 0.0:
                return m, j
    if m.left[row] > 0.0 or last < 0:
        m = give_birth(m, row, family, prior, rng)
        return m, m.size[0] - 1
    return m, last


@njit(**JIT)
def advance(m, s, t, until, family, prior, rng, jump_time, jump_state, n):
    """Run the process that leaves state s at time t; its jumps before `until` are added to the arrays (grown) at n."""
    while t < until:
        m, s = next_state(m, s + 1, m.exits[s], family, prior, rng)
        if n == jump_time.shape[0]:
            jump_time, jump_state = grow(jump_time), grow(jump_state)
        jump_time[n] = t
        jump_state[n] = s
        n += 1
        t += rng.standard_exponential() / m.exits[s]
    return m, s, jump_time, jump_state, n


@njit(**JIT)
def weigh(m, state, N, value, family, w):
    """Likelihood of a value under the state of each particle (OUT), up to a common factor."""
    if family == 0:
        k = np.int64(value)
        for p in range(N):
            w[p] = m.theta[state[p], k]
    else:
        top = -np.inf
        for p in range(N):
            mean, sd = m.theta[state[p], 0], m.theta[state[p], 1]
            z = (value - mean) / sd
            w[p] = -0.5 * z * z - np.log(sd)
            top = max(top, w[p])
        for p in range(N):
            w[p] = np.exp(w[p] - top)


@njit(**JIT)
def resample(w, N, n, ancestor, rng):
    """N independent indices in proportion to the N weights (OUT), in rising order: sorted uniforms by spacings."""
    total = 0.0
    for p in range(N):
        total += w[p]
    spacing = 0.0
    for p in range(n):
        spacing += rng.standard_exponential()
        ancestor[p] = spacing
    spacing += rng.standard_exponential()
    p = 0
    reached = w[0]
    for k in range(n):
        u = ancestor[k] / spacing * total
        while p + 1 < N and (reached <= u or w[p] == 0.0):
            p += 1
            reached += w[p]
        ancestor[k] = p
    return ancestor


@njit(**JIT)
def sweep_paths(m, tau, x, offsets, ends, dwells, states, starts, N, family, prior, rng):
    """Draw a new path for every sequence, given the measures and its current path.

    Parameters
    ----------
    m : Measures; changed, and returned
    tau : (n,) row times relative to the window; x : (n,) values or symbol codes, NaN where missing
    offsets : (S + 1,) rows of each sequence; ends : (S,) window lengths
    dwells : (S + 1,) dwells of each sequence in states, starts: the current paths
    N : number of particles, the current path among them; family : 0 symbols, 1 measurements
    prior : parameters of the emission's prior; rng : numpy Generator

    Returns
    -------
    m, dwells, states, starts : measures with the states found, and the new paths
    """
    S = ends.shape[0]
    longest = 1
    for i in range(S):
        longest = max(longest, offsets[i + 1] - offsets[i])
    state, moved, opening = np.empty(N, np.int64), np.empty(N, np.int64), np.empty(N, np.int64)
    opened = np.empty(N, np.int64)
    w, drawn = np.ones(N), np.empty(N)
    ancestor = np.empty((longest, N), np.int32)
    begin = np.empty((longest, N + 1), np.int64)
    jump_time, jump_state = np.empty(1024), np.empty(1024, np.int32)
    back = np.empty(longest, np.int64)
    new_dwells = np.zeros(S + 1, np.int64)
    new_states, new_starts = np.empty(states.shape[0] + 8, np.int32), np.empty(states.shape[0] + 8)
    total = 0
    for i in range(S):
        old_states, old_starts = states[dwells[i] : dwells[i + 1]], starts[dwells[i] : dwells[i + 1]]
        begun = 0.0  # time up to which the particles have come
        step = 0
        used = 0
        at = 1  # next jump of the current path
        for row in range(offsets[i], offsets[i + 1]):
            if np.isnan(x[row]):
                continue
            if step == 0:
                first_total = m.left[0]
                for j in range(m.size[0]):
                    first_total += m.rows[0, j]
                for p in range(N - 1):
                    m, state[p] = next_state(m, 0, first_total, family, prior, rng)
                    ancestor[0, p] = p
                state[N - 1] = old_states[0]
                ancestor[0, N - 1] = N - 1
                for p in range(N):
                    opening[p] = state[p]
            else:
                resample(w, N, N - 1, drawn, rng)
                for p in range(N - 1):
                    ancestor[step, p] = np.int32(drawn[p])
                # the current path may go on from any particle that has come to its state
                for p in range(N):
                    if state[p] != state[N - 1]:
                        w[p] = 0.0
                ancestor[step, N - 1] = pick(w, N, rng.random())
                for p in range(N):
                    moved[p] = state[ancestor[step, p]]
                    opened[p] = opening[ancestor[step, p]]
                for p in range(N):
                    state[p] = moved[p]
                    opening[p] = opened[p]
            for p in range(N - 1):
                begin[step, p] = used
                leaves = begun + rng.standard_exponential() / m.exits[state[p]]
                if leaves < tau[row]:  # most particles stay where they are
                    m, state[p], jump_time, jump_state, used = advance(
                        m, state[p], leaves, tau[row], family, prior, rng, jump_time, jump_state, used
                    )
            begin[step, N - 1] = used
            while at < old_states.shape[0] and old_starts[at] <= tau[row]:
                if used == jump_time.shape[0]:
                    jump_time, jump_state = grow(jump_time), grow(jump_state)
                jump_time[used] = old_starts[at]
                jump_state[used] = old_states[at]
                state[N - 1] = old_states[at]
                used += 1
                at += 1
            begin[step, N] = used
            weigh(m, state, N, x[row], family, w)
            begun = tau[row]
            step += 1
        if step == 0:  # nothing was seen: a path from the process itself
            first_total = m.left[0]
            for j in range(m.size[0]):
                first_total += m.rows[0, j]
            m, s = next_state(m, 0, first_total, family, prior, rng)
            s0 = s
        else:
            p = pick(w, N, rng.random())
            s, s0 = state[p], opening[p]
            for k in range(step - 1, -1, -1):
                back[k] = p
                p = ancestor[k, p]
        needed = 1
        for k in range(step):
            needed += begin[k, back[k] + 1] - begin[k, back[k]]
        while total + needed > new_states.shape[0]:
            new_states, new_starts = grow(new_states), grow(new_starts)
        new_states[total] = s0
        new_starts[total] = 0.0
        total += 1
        for k in range(step):
            for q in range(begin[k, back[k]], begin[k, back[k] + 1]):
                new_states[total] = jump_state[q]
                new_starts[total] = jump_time[q]
                total += 1
        # after the last observation nothing is known: the process runs on by itself
        m, s, jump_time, jump_state, used = advance(m, s, begun, ends[i], family, prior, rng, jump_time, jump_state, 0)
        while total + used > new_states.shape[0]:
            new_states, new_starts = grow(new_states), grow(new_starts)
        for q in range(used):
            new_states[total] = jump_state[q]
            new_starts[total] = jump_time[q]
            total += 1
        new_dwells[i + 1] = total
    return m, new_dwells, new_states[:total].copy(), new_starts[:total].copy()


@njit(**JIT)
def path_stats(tau, offsets, ends, dwells, states, starts, row_states, rows, jumps, time, first):
    """State of every row and first row of every dwell (OUT); jumps (M, M), time and first states (M,) (OUT sums)."""
    for i in range(ends.shape[0]):
        a, b = dwells[i], dwells[i + 1]
        first[states[a]] += 1.0
        row = offsets[i]
        for k in range(a, b):
            last = k + 1 == b
            rows[k] = row - offsets[i]
            until = ends[i] if last else starts[k + 1]
            time[states[k]] += until - starts[k]
            if not last:
                jumps[states[k], states[k + 1]] += 1.0
            while row < offsets[i + 1] and (last or tau[row] < starts[k + 1]):
                row_states[row] = states[k]
                row += 1


@njit(**JIT)
def draw_tables(counts, base, rng):
    """Number of tables of each count n under mass ω: Σ_l Bernoulli(ω / (ω + l)), l = 0 .. n - 1; (R, M) like counts."""
    R, M = counts.shape
    out = np.zeros((R, M))
    for i in range(R):
        for j in range(M):
            for l in range(np.int64(counts[i, j])):
                if l == 0 or rng.random() * (base[j] + l) < base[j]:
                    out[i, j] += 1.0
    return out
