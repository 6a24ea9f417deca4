"""Exact minimisers of the objective over each block of parameters, from sufficient statistics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from .constraints import Constraints
from .objective import Prices, Stats


def exact_rate(exits: float, time: float, run_times: Floats, run_weights: Floats, a: float, b: float) -> float:
    """λ that minimises Σ h(λ t) + Σ g(λ y) + b λ - a ln λ (derivation, eq. 8).

    The derivative times λ is λ (b + T) - (a + K) + Σ w (λ y - 1)₊, increasing and piecewise linear with
    breaks at 1/y: the dwells y that have outlasted their mean are those whose break lies below its root.
    """
    # without them the root would lie higher: only those longer than the mean dwell then can have outlasted theirs
    long = (run_times > 0) & (run_times * (a + exits) >= ALMOST * (b + time))
    y, w = run_times[long], run_weights[long]
    order = np.argsort(-y, kind="stable")
    y, w = y[order], w[order]
    count = a + exits + np.concatenate([[0.0], np.cumsum(w)])
    total = b + time + np.concatenate([[0.0], np.cumsum(w * y)])
    outlasted = int(np.count_nonzero(total[:-1] <= count[:-1] * y))
    if total[outlasted] == 0:  # no prior and no time at all: nothing speaks against any rate
        return 0.0
    return float(count[outlasted] / total[outlasted])


def exact_rates(stats: Stats, prices: Prices, leavable: NDArray[np.bool_]) -> Floats:
    """(M,) exact rates; 0 for states that cannot be left."""
    if stats.is_apart and prices.running:
        return np.where(leavable, rates_apart(stats, prices), 0.0)
    rates = np.zeros(len(stats.exits))
    if not prices.running:
        stats = stats._replace(run_state=np.full_like(stats.run_state, -1))
    run_weights = np.broadcast_to(stats.weights[:, None], stats.run_state.shape)
    for m in np.flatnonzero(leavable):
        own = stats.run_state == m
        rates[m] = exact_rate(
            stats.exits[m], stats.time[m], stats.run_time[own], run_weights[own],
            prices.prior_count, prices.prior_time,
        )  # fmt: skip
    return rates


def rates_apart(stats: Stats, prices: Prices) -> Floats:
    """The same from sums over the running dwells alone, of all states at once.

    The derivative is convex and piecewise linear, so Newton's steps from beyond all breaks fall to its root and end
    there. Each needs the sums over the dwells that have outlasted their mean.
    """
    rates = np.full(len(stats.exits), np.inf)
    for _ in range(MOST_STEPS):
        number, time, _ = stats.outlasted(rates)
        total = prices.prior_time + stats.time + time
        better = np.where(total > 0, prices.prior_count + stats.exits + number, 0.0) / np.where(total > 0, total, 1.0)
        ended = np.all(better >= rates)
        rates = better
        if ended:
            break
    return rates


class Running(NamedTuple):
    """Running dwells of one state: 1/y in order, and the sums of w and of w y of the longest."""

    breaks: Floats
    weight: Floats
    time: Floats

    @classmethod
    def of(cls, run_times: Floats, run_weights: Floats) -> Running:
        """Of dwells y and their weights w; those of length 0 cost nothing."""
        order = np.argsort(-run_times, kind="stable")
        y, w = run_times[order], run_weights[order]
        y, w = y[y > 0], w[y > 0]
        return cls(1.0 / y, np.append(0.0, np.cumsum(w)), np.append(0.0, np.cumsum(w * y)))

    def excess(self, lam: Floats) -> tuple[Floats, Floats]:
        """Σ w (λ y - 1)₊, which is λ times the derivative of Σ w g(λ y), and its own derivative in λ."""
        k = np.searchsorted(self.breaks, lam, side="right")
        return lam * self.time[k] - self.weight[k], self.time[k]


def bound_rates(stats: Stats, prices: Prices, constraints: Constraints, before: Floats) -> Floats:
    """(M, M) rates q = λ P of less objective than those before, where some are known or shared.

    The objective is Σ_r { T λ_r + Σ w g(λ_r y) - s ln λ_r } - Σ ν ln q with λ_r = Σ_j q_rj, ν = ξ (n + α) and
    s = a + K - Σ ν. Each step minimises a bound that touches it: convex parts by Jensen's inequality over the shares
    of λ_r, a concave one (s < 0) by its tangent. It falls apart into one equation for each free rate. So no step
    can raise the objective, and where they settle is a stationary point (the minimum if ξ <= 1).
    """
    moves, free = constraints.moves, constraints.group >= 0
    nu = np.where(moves, prices.transition * (stats.jumps + prices.jump_pseudo_count), 0.0)
    # without a prior count, a state never left has no prior in the objective
    priced = moves.any(axis=1) & ((stats.exits > 0) | (prices.prior_count > 0))
    time = stats.time + np.where(priced, prices.prior_time, 0.0)
    surplus = np.where(priced, stats.exits + prices.prior_count - nu.sum(axis=1), 0.0)
    run_weights = np.broadcast_to(stats.weights[:, None], stats.run_state.shape)
    running = [
        Running.of(stats.run_time[own], run_weights[own])
        for m in range(len(moves))
        for own in [(stats.run_state == m) & prices.running]
    ]
    events = constraints.pool(nu)
    q = constraints.free_rates(constraints.imposed(before))
    q = np.where((q == 0) & (events > 0), max(float(before.max()), 1e-300), q)
    for _ in range(MOST_STEPS):
        Q = constraints.rates(q)
        lam = Q.sum(axis=1)
        safe = np.where(lam > 0, lam, 1.0)
        shares = Q / safe[:, None]
        n = events + constraints.pool(np.maximum(surplus, 0.0)[:, None] * shares)
        exposure = constraints.pool_rows(time + np.maximum(-surplus, 0.0) / safe)
        ratio = np.ones(len(q))
        for _ in range(MOST_STEPS):  # Newton: convex and piecewise linear, so it ends at the root
            excess, slope = np.zeros((2, *moves.shape))
            for m in np.flatnonzero(free.any(axis=1)):
                own = free[m]
                excess[m, own], slope[m, own] = running[m].excess(lam[m] * ratio[constraints.group[m, own]])
            value = ratio * q * exposure + constraints.pool(shares * excess) - n
            steep = q * exposure + constraints.pool(shares * lam[:, None] * slope)
            better = np.where(steep > 0, ratio - value / np.where(steep > 0, steep, 1.0), ratio)
            ended = np.abs(better - ratio) <= 1e-15 * ratio
            ratio = np.maximum(better, 0.0)
            if ended.all():
                break
        settled = np.all(np.abs(ratio - 1.0) * q <= SETTLED * q)
        q = q * ratio
        if settled:
            break
    return constraints.rates(q)


def transition_rows(
    jumps: Floats, pseudo_count: float, moves: NDArray[np.bool_], previous: Floats | None = None
) -> Floats:
    """P, (M, M): p ∝ n + α over the allowed moves (derivation, eq. 9); a row without any count keeps its values."""
    counts = np.where(moves, jumps + pseudo_count, 0.0)
    total = counts.sum(axis=1, keepdims=True)
    if previous is None:
        previous = uniform_rows(moves)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), previous)


def uniform_rows(moves: NDArray[np.bool_]) -> Floats:
    """P, (M, M) with every allowed move equally likely."""
    return moves / np.maximum(moves.sum(axis=1, keepdims=True), 1)


def shared_rows(
    jumps: Floats, moves: NDArray[np.bool_], prices: Prices, base_row: Floats, max_iter: int = 1000
) -> tuple[Floats, Floats]:
    """π (M, M) and π_0 (M,): rows drawn to a shared base row (derivation, eq. 13).

    The two are updated in turn to a fixed point.

    π_mj ∝ ξ (n_mj + α) + ξ_2 π_0j and π_0j ∝ Π_m π_mj^{1/M}, each the exact minimiser given the other. The diagonal
    part of π_m is kept though no trajectory uses it; forbidden moves are left out of a row.
    """
    M = len(base_row)
    reachable = moves | np.eye(M, dtype=bool)
    counts = np.where(moves, prices.transition * (jumps + prices.jump_pseudo_count), 0.0)
    if reachable.all() and prices.shared_row > 0:
        total = counts.sum(axis=1, keepdims=True) + prices.shared_row
        for _ in range(max_iter):
            rows = (counts + prices.shared_row * base_row) / total
            logs = np.log(np.maximum(rows, LEAST_SHARE)).sum(axis=0)
            new = np.exp((logs - logs.max()) / M)
            new /= new.sum()
            settled = np.abs(new - base_row).max() <= SETTLED
            base_row = new
            if settled:
                break
        return rows, base_row
    for _ in range(max_iter):
        rows = np.where(reachable, counts + prices.shared_row * base_row, 0.0)
        total = rows.sum(axis=1, keepdims=True)
        rows = np.where(total > 0, rows / np.where(total > 0, total, 1.0), uniform_rows(reachable))
        new = geometric_mean_row(np.maximum(rows, LEAST_SHARE), reachable)
        settled = np.abs(new - base_row).max() <= SETTLED
        base_row = new
        if settled:
            break
    return rows, base_row


# What rounding of sums cannot take off.
ALMOST = 0.99
SETTLED = 1e-13
# Of steps that end by themselves.
MOST_STEPS = 500
# A state that no jump enters loses its share of the base row little by little: no further than this.
LEAST_SHARE = 1e-300


def geometric_mean_row(rows: Floats, reachable: NDArray[np.bool_]) -> Floats:
    """π_0 that minimises Σ_m Σ_j π_0j ln(π_0j / π_mj) over the reachable j: |R_j| (ln π_0j + 1) = ν + Σ_m ln π_mj."""
    sizes = reachable.sum(axis=0)
    logs = np.where(reachable, np.log(rows), 0.0).sum(axis=0)
    if np.all(sizes == sizes[0]):
        row = np.exp((logs - logs.max()) / sizes[0])
        return row / row.sum()
    low, high = -logs.max() - 700.0 * sizes.max(), sizes.max() - logs.min()
    for _ in range(200):  # the sum rises with ν
        nu = 0.5 * (low + high)
        if np.exp(np.minimum((nu + logs) / sizes - 1.0, 700.0)).sum() > 1.0:
            high = nu
        else:
            low = nu
    row = np.exp((0.5 * (low + high) + logs) / sizes - 1.0)
    return row / row.sum()


def used_moves(jumps: Floats, moves: NDArray[np.bool_], prices: Prices) -> Floats:
    """e^-cost of each jump when the rows are integrated out: nothing for those in use, ξ_2 for a first one.

    A path that uses a new jump twice pays for it once; to charge each time bounds that from above, so J cannot rise.
    """
    first = max(float(np.exp(-prices.shared_row)), LEAST_SHARE)
    return np.where(moves, np.where(jumps > 0, 1.0, first), 0.0)
