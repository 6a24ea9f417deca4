"""Paths of the infinite model given its measures, by conditional SMC; new states are born on the way.

The measures are known at M atoms, and by the total mass of what is left; an atom of the rest is looked at only when
a particle jumps to it. All particles and sequences share what has been revealed so far, so that they move under
one fixed (infinite) set of measures. Random numbers come from the generator that is passed in.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..jit import JIT
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
        mean, size, shape, scale = prior
        variance = scale / rng.standard_gamma(shape)
        theta[0] = mean + np.sqrt(variance / size) * rng.standard_normal()
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


@njit(forceinline=True, **JIT)
def pick_known(rows, left, row, M, u):
    """Known state that a mass u of a row falls on, -1 for the rest (never a part without mass)."""
    last = -1
    for j in range(M):
        mass = rows[row, j]
        if mass > 0.0:
            last = j
            u -= mass
            if u < 0.0:
                return j
    return -1 if left[row] > 0.0 else last


@njit(**JIT)
def pick_first(rows, left, M, state, p, n, rng):
    """First states of the particles p, p + 1, ... (OUT) up to one that finds a new state: its number, or n."""
    total = left[0]
    for j in range(M):
        total += rows[0, j]
    while p < n:
        state[p] = pick_known(rows, left, 0, M, rng.random() * total)
        if state[p] < 0:
            break
        p += 1
    return p


@njit(**JIT)
def open_paths(m, state, n, family, prior, rng):
    """First states of n particles (OUT); returns the measures, since some may be new."""
    p = pick_first(m.rows, m.left, m.size[0], state, 0, n, rng)
    while p < n:
        m = give_birth(m, 0, family, prior, rng)
        state[p] = m.size[0] - 1
        p = pick_first(m.rows, m.left, m.size[0], state, p + 1, n, rng)
    return m


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
def run_known(exits, rows, left, M, state, n, p, t, wait, begun, until, rng, begin, jump_time, jump_state, used):
    """Run particle p from time t, then p + 1, ... from `begun`, up to a jump into the rest of a measure.

    wait : time to the next jump in units of 1 / exit rate. It is memoryless, so what one particle leaves of it serves
    the next. Returns where things stand: p (n when all are done), t, wait, used. A negative p, -1 - p, says that the
    jump is still to be made but there is no room to write it down.
    """
    s = state[p]
    while True:
        hazard = exits[s] * (until - t)
        if wait >= hazard:
            wait -= hazard
            state[p] = s
            p += 1
            if p == n:
                return p, t, wait, used
            begin[p] = used
            s = state[p]
            t = begun
            continue
        if used == jump_time.shape[0]:
            state[p] = s
            return -1 - p, t, wait, used
        t = min(t + wait / exits[s], until)
        wait = rng.standard_exponential()
        r = pick_known(rows, left, s + 1, M, rng.random() * exits[s])
        if r < 0:
            state[p] = s
            return p, t, wait, used
        s = r
        jump_time[used] = t
        jump_state[used] = s
        used += 1


@njit(**JIT)
def run_on(m, state, n, begun, until, family, prior, rng, begin, jump_time, jump_state, used):
    """Run the process of the first n particles from one time to another; returns the measures and the jumps.

    state : (n,) IN, OUT; begin : (n,) OUT, where the jumps of each particle begin in jump_time, jump_state (grown),
    of which `used` are taken.
    """
    p, t, wait = 0, begun, rng.standard_exponential()
    begin[0] = used
    while True:
        p, t, wait, used = run_known(
            m.exits, m.rows, m.left, m.size[0], state, n, p, t, wait, begun, until, rng,
            begin, jump_time, jump_state, used,
        )  # fmt: skip
        if p == n:
            return m, jump_time, jump_state, used
        if p < 0:
            jump_time, jump_state = grow(jump_time), grow(jump_state)
            p = -1 - p
            continue
        m = give_birth(m, state[p] + 1, family, prior, rng)
        state[p] = m.size[0] - 1
        jump_time[used] = t
        jump_state[used] = state[p]
        used += 1


@njit(**JIT)
def draw_ancestors(w, N, state, spacings, ancestor, rng):
    """Ancestor of every particle (OUT): independent draws by weight.

    The last particle is the current path; it may go on from any particle that has come to its state (ancestor
    sampling). spacings : (N,) room to work in.
    """
    total, alike, whole = 0.0, 0.0, 0.0
    for p in range(N):
        total += w[p]
        if state[p] == state[N - 1]:
            alike += w[p]
        spacings[p] = rng.standard_exponential()
        whole += spacings[p]
    # sorted uniforms by their spacings: all draws in one pass
    scale = total / whole
    p = 0
    reached = w[0]
    u = 0.0
    for k in range(N - 1):
        u += spacings[k] * scale
        while p + 1 < N and reached <= u:
            p += 1
            reached += w[p]
        ancestor[k] = p
    ancestor[N - 1] = N - 1
    u = rng.random() * alike
    for p in range(N):
        if state[p] == state[N - 1]:
            u -= w[p]
            if u < 0.0:
                ancestor[N - 1] = p
                break


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
    state, before = np.empty(N, np.int64), np.empty(N, np.int64)
    opening = np.empty(N, np.int64)  # first states
    w, spacings = np.ones(N), np.empty(N)
    ancestor = np.empty((longest, N), np.int64)
    begin = np.empty((longest, N + 1), np.int64)
    line = np.empty(longest, np.int64)
    jump_time, jump_state = np.empty(1024), np.empty(1024, np.int32)
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
                m = open_paths(m, state, N - 1, family, prior, rng)
                state[N - 1] = old_states[0]
                opening[:] = state
            else:
                draw_ancestors(w, N, state, spacings, ancestor[step], rng)
                before[:] = state
                for p in range(N):
                    state[p] = before[ancestor[step, p]]
            m, jump_time, jump_state, used = run_on(
                m, state, N - 1, begun, tau[row], family, prior, rng, begin[step], jump_time, jump_state, used
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
            m = open_paths(m, state, 1, family, prior, rng)
            first = state[0]
        else:
            p = pick(w, N, rng.random())
            state[0] = state[p]
            for k in range(step - 1, -1, -1):
                line[k] = p
                if k > 0:
                    p = ancestor[k, p]
            first = opening[p]
        # after the last observation nothing is known: the process runs on by itself
        m, jump_time, jump_state, end = run_on(
            m, state, 1, begun, ends[i], family, prior, rng, before, jump_time, jump_state, used
        )
        needed = 1 + end - used
        for k in range(step):
            needed += begin[k, line[k] + 1] - begin[k, line[k]]
        while total + needed > new_states.shape[0]:
            new_states, new_starts = grow(new_states), grow(new_starts)
        new_states[total] = first
        new_starts[total] = 0.0
        total += 1
        for k in range(step + 1):
            a, b = (begin[k, line[k]], begin[k, line[k] + 1]) if k < step else (used, end)
            new_states[total : total + b - a] = jump_state[a:b]
            new_starts[total : total + b - a] = jump_time[a:b]
            total += b - a
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
