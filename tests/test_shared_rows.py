"""Blocks of the nonparametric objective: the dwell term's identity, and rows drawn to a shared base row."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from jumpmeans.model.objective import Prices, shared_row_cost
from jumpmeans.model.updates import exact_rate, shared_rows


def prices_of(xi, xi2, alpha=0.0):
    return Prices(xi, np.ones(1), 1.0, 1.0, alpha, shared_row=xi2)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 5.0])
def test_printed_dwell_term_is_a_minimum_over_the_rate(gamma, rng):
    """K ln((γ + T)/K) - Σ ln t = min_λ { Σ h(λ t) + γ λ }, at λ = K / (γ + T)."""
    t = rng.exponential(1.0, 7)
    K, T = len(t), t.sum()

    def cost(log_rate):
        z = np.exp(log_rate) * t
        return float((z - np.log(z) - 1.0).sum() + gamma * np.exp(log_rate))

    best = minimize_scalar(cost, bounds=(-10, 10), method="bounded", options={"xatol": 1e-10})
    assert best.fun == pytest.approx(K * np.log((gamma + T) / K) - np.log(t).sum(), rel=1e-9)
    none = np.zeros(0)
    assert exact_rate(K, T, none, none, 0.0, gamma) == pytest.approx(np.exp(best.x), rel=1e-5)
    # kept in full, κ_0 = ξ_2 stays: a = ξ_2
    assert exact_rate(K, T, none, none, 0.7, gamma) == pytest.approx((K + 0.7) / (gamma + T), rel=1e-12)


def joint_cost(rows, base, counts, xi, xi2):
    used = counts > 0
    return -xi * (counts[used] * np.log(rows[used])).sum() + xi2 * shared_row_cost(rows, base)


@pytest.mark.parametrize("masked", [False, True])
def test_shared_rows_are_the_minimum_that_scipy_finds(masked, rng):
    M, xi, xi2 = 4, 0.8, 1.7
    moves = ~np.eye(M, dtype=bool)
    if masked:
        moves[0, 2] = moves[3, 1] = False
    jumps = np.where(moves, rng.integers(0, 9, (M, M)) + 0.2, 0.0)
    rows, base = shared_rows(jumps, moves, prices_of(xi, xi2), np.full(M, 1 / M))
    reachable = moves | np.eye(M, dtype=bool)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=1e-12)
    assert np.all(rows[~reachable] == 0) and base.sum() == pytest.approx(1.0)

    def unpack(v):
        table = np.where(reachable, np.exp(v[: M * M].reshape(M, M)), 0.0)
        other = np.exp(v[M * M :])
        return table / table.sum(axis=1, keepdims=True), other / other.sum()

    def cost(v):
        return joint_cost(*unpack(v), jumps, xi, xi2)

    found = minimize(cost, np.zeros(M * M + M), method="BFGS", options={"gtol": 1e-9, "maxiter": 2000})
    ours = joint_cost(rows, base, jumps, xi, xi2)
    assert ours == pytest.approx(found.fun, rel=1e-7)
    np.testing.assert_allclose(base, unpack(found.x)[1], atol=2e-3)


def test_alternating_never_raises_the_cost(rng):
    M = 5
    moves = ~np.eye(M, dtype=bool)
    jumps = np.where(moves, rng.poisson(2.0, (M, M)), 0.0)
    prices = prices_of(1.0, 0.5, alpha=0.01)
    base, costs = rng.dirichlet(np.ones(M)), []
    for _ in range(30):
        rows, base = shared_rows(jumps, moves, prices, base, max_iter=1)
        costs.append(joint_cost(rows, base, jumps + np.where(moves, 0.01, 0.0), 1.0, 0.5))
    assert np.all(np.diff(costs) <= 1e-12)
