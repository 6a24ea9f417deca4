"""What follows from a rate matrix: probabilities over time, times spent, times until a set is reached, limits.

Functions of Q (M, M) alone, without labels. None of them subtracts: sums of non-negative terms keep their relative
accuracy, however far apart the rates lie. Elimination goes in logarithms, where nothing underflows; probabilities over
a time take a rate below 1e-308 of the largest for 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.special import gammainc

from ..arrays import Bools, Floats, Ints
from ..kernels.forward_backward import power_tables
from ..kernels.transitions import carry_all

# Terms of a series below this share of their sum do not count.
NEGLIGIBLE = 1e-17
# log2 of the longest time that is looked at.
LONGEST = 1023.0


def transition_matrices(Q: Floats, times: Floats) -> Floats:
    """(K, M, M) e^{Qt} for each of (K,) finite times >= 0."""
    return _carried(np.eye(len(Q)), times, _tables(Q, times), side=0)


def survivals(Q: Floats, target: Bools, times: Floats) -> Floats:
    """(K, M) probability of not having been in the target (M,) up to each time, by the state at 0."""
    return _surviving(target, times, _tables(_ended(Q, target), times))


def _ended(Q: Floats, target: Bools) -> Floats:
    """The rate matrix of a process that stays in the target."""
    return np.where(target[:, None], 0.0, Q)


def _surviving(target: Bools, times: Floats, tables: Any) -> Floats:
    alive = (~target).astype(np.float64)
    return np.minimum(_carried(alive[None], times, tables, side=1)[:, 0], alive)


def _tables(Q: Floats, times: Floats) -> Any:
    return power_tables(Q, float(times.max(initial=0.0)))


def _carried(V: Floats, times: Floats, tables: Any, side: int) -> Floats:
    out = np.empty((len(times), *V.shape))
    carry_all(V, times, tables, side, out)
    return out


def time_shares(Q: Floats, t: float) -> Floats:
    """(M, M) share of the time from 0 to t > 0, finite, that is spent in each state, by the state at 0.

    Over a step so short that half an event is expected the share is a Poisson series; over twice the time it is
    the mean of the shares over both halves, (J + P J) / 2, with P the transitions over the first.
    """
    M = len(Q)
    rate = float(np.max(-np.diag(Q)))
    if rate == 0.0 or t == 0.0:
        return np.eye(M)
    B = Q / rate
    np.fill_diagonal(B, np.maximum(1.0 + np.diag(Q) / rate, 0.0))
    (m, e), (n, f) = math.frexp(rate), math.frexp(t)
    doublings = max(0, e + f + 1)
    z = math.ldexp(m * n, e + f - doublings)  # events in the first step; rate * t itself may overflow
    P, J, power = np.zeros((M, M)), np.zeros((M, M)), np.eye(M)
    chance = math.exp(-z)
    for k in range(1, 32 + M):
        P += chance * power
        added = gammainc(k, z) * power  # a time in proportion to the chance of k events or more
        J += added
        if k > M and np.all(added <= NEGLIGIBLE * J):
            break
        power, chance = power @ B, chance * z / k
    P, J = _normalised(P), _normalised(J)
    for _ in range(doublings):
        P, J = _normalised(P @ P), _normalised(0.5 * (J + P @ J))
    return J


def total_times(Q: Floats, t: float) -> Floats:
    """(M, M) expected time in each state from 0 to t, by the state at 0; t may be infinite, and then so may times."""
    M = len(Q)
    if t < np.inf:
        with np.errstate(over="ignore"):
            return t * time_shares(Q, t) if t > 0 else np.zeros((M, M))
    closed = _closed(Q) >= 0
    out = np.where(_reach(Q) & closed, np.inf, 0.0)
    own = np.flatnonzero(~closed)
    if len(own):
        out[np.ix_(own, own)] = _solve(Q, own, _log(Q[np.ix_(own, np.flatnonzero(closed))]), np.eye(len(own)))
    return out


def hitting_probs(Q: Floats, target: Bools) -> Floats:
    """(M,) probability of ever being in the target, by the state at 0."""
    can, sure = _chances(Q, target)
    out = sure.astype(np.float64)
    own = np.flatnonzero(can & ~sure)
    if len(own):
        away = np.flatnonzero(sure | ~can)
        into = Q[np.ix_(own, np.flatnonzero(sure))].sum(axis=1)
        out[own] = np.minimum(_solve(Q, own, _log(Q[np.ix_(own, away)]), into[:, None])[:, 0], 1.0)
    return out


def mean_passages(Q: Floats, target: Bools) -> Floats:
    """(M,) expected time until the target is first reached, by the state at 0; infinite where it may never be."""
    out = np.where(target, 0.0, np.inf)
    own = np.flatnonzero(_chances(Q, target)[1] & ~target)
    if len(own):
        into = _log(Q[np.ix_(own, np.flatnonzero(target))])
        out[own] = _solve(Q, own, into, np.ones((len(own), 1)))[:, 0]
    return out


def median_passages(Q: Floats, target: Bools) -> Floats:
    """(M,) time by which the target is reached with probability 1/2; infinite where it never comes to that."""
    out = np.where(target, 0.0, np.inf)
    tables = power_tables(_ended(Q, target), 2.0**LONGEST)
    with np.errstate(divide="ignore"):
        soonest = np.log2(np.log(2.0)) - np.log2(-np.diag(Q))  # a state must be left first
    for s in np.flatnonzero((hitting_probs(Q, target) > 0.5) & ~target).tolist():

        def excess(x: float, s: int = s) -> float:
            return float(_surviving(target, np.array([2.0**x]), tables)[0, s]) - 0.5

        high, step = float(soonest[s]), 1.0
        while high < LONGEST and excess(high) > 0.0:
            high, step = min(high + step, LONGEST), 2.0 * step
        if high == soonest[s] or excess(high) <= 0.0:
            out[s] = 2.0 ** (high if high == soonest[s] else brentq(excess, soonest[s] - 1e-6, high, xtol=1e-13))
    return out


def closed_classes(Q: Floats) -> list[Ints]:
    """States of each set that is never left once entered and has no smaller such set in it."""
    label = _closed(Q)
    classes = [np.flatnonzero(label == c) for c in range(label.max() + 1)]
    return sorted(classes, key=lambda states: int(states[0]))


def limits(Q: Floats) -> Floats:
    """(M, M) probability of each state after a very long time, by the state at 0."""
    out = np.zeros(Q.shape)
    for states in closed_classes(Q):
        member = np.zeros(len(Q), dtype=bool)
        member[states] = True
        out[:, states] = hitting_probs(Q, member)[:, None] * _stationary(Q[np.ix_(states, states)])
    return out


# ------------------------------------------------------------------------------------------------- elimination


def _eliminate(log_q: Floats, log_out: Floats, log_r: Floats) -> tuple[Floats, Floats, Floats]:
    """States taken out one by one, the last first (Grassmann, Taksar and Heyman 1985).

    log_q (n, n): rates between the states; log_out (n,): rate out of all of them; log_r (n, K): what a visit is worth
    per unit of rate. A visit to a state taken out is replaced by where it leads. Returns the rates at the time
    when each state is taken out (below the diagonal, and above it into it), the rates out d (n,), and the worths.
    """
    q, out, r = log_q.copy(), log_out.copy(), log_r.copy()
    n = len(q)
    d = np.full(n, -np.inf)
    np.fill_diagonal(q, -np.inf)
    for k in range(n - 1, -1, -1):
        d[k] = np.logaddexp(np.logaddexp.reduce(q[k, :k], initial=-np.inf), out[k])
        if k == 0:
            break
        via = q[:k, k] - d[k]
        q[:k, :k] = np.logaddexp(q[:k, :k], via[:, None] + q[k, :k])
        np.fill_diagonal(q, -np.inf)
        out[:k] = np.logaddexp(out[:k], via + out[k])
        r[:k] = np.logaddexp(r[:k], via[:, None] + r[k])
    return q, d, r


def _solve(Q: Floats, own: Ints, log_away: Floats, worth: Floats) -> Floats:
    """(n, K) worth of a life among the states `own`, which ends by the rates `away` (n, any number), from each of them.

    worth : (n, K) per unit of time in each state, >= 0. It solves -Q_own x = worth.
    """
    log_out = np.logaddexp.reduce(log_away, axis=1, initial=-np.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        q, d, r = _eliminate(_log(Q[np.ix_(own, own)]), log_out, _log(worth))
        x = np.empty(worth.shape)
        for k in range(len(own)):
            onward = np.logaddexp.reduce(q[k, :k, None] + x[:k], axis=0, initial=-np.inf)
            x[k] = np.logaddexp(r[k], onward) - d[k]
        return np.exp(x)


def _stationary(Q: Floats) -> Floats:
    """(n,) stationary probabilities of states that all lead to one another."""
    n = len(Q)
    q, d, _ = _eliminate(_log(Q), np.full(n, -np.inf), np.empty((n, 0)))
    log_pi = np.zeros(n)
    for k in range(1, n):
        log_pi[k] = np.logaddexp.reduce(log_pi[:k] + q[:k, k]) - d[k]
    pi = np.exp(log_pi - log_pi.max())
    return np.asarray(pi / pi.sum())


def _log(x: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(x, 0.0))


# ------------------------------------------------------------------------------------------------- who leads where


def _reach(Q: Floats) -> Bools:
    """(M, M) whether a state can ever lead to another; to itself always."""
    return np.asarray(np.isfinite(shortest_path((Q > 0).astype(np.float64), unweighted=True)))


def _chances(Q: Floats, target: Bools) -> tuple[Bools, Bools]:
    """(M,), (M,) whether a state can ever lead to the target, and whether it must."""
    reach = _reach(_ended(Q, target))
    can = np.asarray(reach[:, target].any(axis=1))
    lost = np.asarray(reach[:, ~can].any(axis=1))
    return can, can & ~lost


def _closed(Q: Floats) -> Ints:
    """(M,) number of the closed class of each state, -1 for a state that is left for good."""
    n, label = connected_components((Q > 0).astype(np.float64), connection="strong")
    left = np.zeros(n, dtype=bool)
    i, j = np.nonzero(Q > 0)
    left[label[i[label[i] != label[j]]]] = True
    number = np.where(left, -1, np.cumsum(~left) - 1)
    return np.asarray(number[label], dtype=np.int64)


def _normalised(A: Floats) -> Floats:
    return np.asarray(A / A.sum(axis=1, keepdims=True))
