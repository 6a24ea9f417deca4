"""Every update is the exact minimiser over its block, and the sums it works from are those of the data."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import reference
from jumpmeans.emissions import Bernoulli, Categorical, Exponential, Gaussian, Laplace, Poisson
from jumpmeans.fit.em_steps import maximise
from jumpmeans.kernels.stats import add_trajectory, label_rows
from jumpmeans.model.constraints import Constraints
from jumpmeans.model.objective import Prices, Stats, complete_cost, jump_costs, prior_cost, running_cost
from jumpmeans.model.process import Process
from jumpmeans.model.updates import exact_rate, exact_rates, transition_rows, uniform_rows
from jumpmeans.passes import Expected

SEEDS = st.integers(0, 2**32 - 1)


# -------------------------------------------------------------- costs of dwells


def test_dwell_costs():
    for z in (1e-12, 0.3, 1.0, 1.7, 1e9):
        assert complete_cost(z) == float(reference.h(z))
        assert running_cost(z) == float(reference.g(z))
    assert complete_cost(1.0) == 0.0 == running_cost(1.0) == running_cost(0.0)
    assert complete_cost(0.0) == math.inf == complete_cost(-1.0)


# ----------------------------------------------------------------------- rates


def rate_problem(rng):
    n = rng.integers(0, 9)
    exits = float(rng.integers(0, 5)) * rng.choice([1.0, 0.37])
    time = exits * rng.exponential() * 10.0 ** rng.integers(-3, 4)
    scale = 10.0 ** rng.integers(-3, 4)
    y = scale * rng.exponential(1.0, n) * (rng.random(n) > 0.2)
    if n > 2 and rng.random() < 0.5:
        y[1:] = rng.choice(y[:2], n - 1)  # ties
    w = rng.choice([1.0, 0.5, 3.0], n)
    a, b = rng.exponential() + 0.01, scale * (rng.exponential() + 0.01)
    return exits, time, y, w, a, b


@given(seed=SEEDS)
@settings(max_examples=50)
def test_exact_rate(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        problem = rate_problem(rng)
        rate = exact_rate(*problem)
        assert rate == pytest.approx(reference.best_rate(*problem), rel=1e-12)
        least = reference.rate_cost(rate, *problem)
        found = minimize_scalar(
            lambda log_rate, p=problem: reference.rate_cost(math.exp(log_rate), *p),
            bracket=(math.log(rate) - 1, math.log(rate) + 1),
        )
        assert least <= found.fun + 1e-12 * (1 + abs(found.fun))


def test_rate_at_a_break():
    """Running dwells whose mean is just reached are neither free nor charged: both sides agree."""
    # K + a = 2, T + b = 4 gives 1/2; a running dwell of length 2 sits exactly at its mean
    assert exact_rate(1.0, 3.0, np.array([2.0]), np.array([1.0]), 1.0, 1.0) == pytest.approx(0.5, rel=1e-15)
    # longer ones pull the rate down, shorter ones do nothing
    assert exact_rate(1.0, 3.0, np.array([1.9]), np.array([1.0]), 1.0, 1.0) == 0.5
    assert exact_rate(1.0, 3.0, np.array([6.0]), np.array([1.0]), 1.0, 1.0) == pytest.approx(0.3, rel=1e-15)


def test_rate_weights_are_copies(rng):
    for _ in range(50):
        exits, time, y, _, a, b = rate_problem(rng)
        k = rng.integers(1, 4, len(y))
        copies = exact_rate(exits, time, np.repeat(y, k), np.ones(k.sum()), a, b)
        assert exact_rate(exits, time, y, k.astype(float), a, b) == pytest.approx(copies, rel=1e-14)


def test_rate_without_prior():
    """Only running dwells: any rate up to 1/longest is free; the largest is taken. Nothing at all: 0."""
    y = np.array([1.0, 4.0, 2.0])
    assert exact_rate(0.0, 0.0, y, np.ones(3), 0.0, 0.0) == pytest.approx(0.25, rel=1e-15)
    assert exact_rate(0.0, 0.0, np.zeros(2), np.ones(2), 0.0, 0.0) == 0.0
    assert exact_rate(0.0, 0.0, np.empty(0), np.empty(0), 0.0, 0.0) == 0.0


def test_exact_rates_sort_out_states(rng):
    run_state = np.array([[-1, 0], [1, 0], [-1, 2]], np.int32)
    run_time = np.array([[0.0, 3.0], [5.0, 0.1], [0.0, 9.0]])
    weights = np.array([1.0, 2.0, 1.0])
    exits, time = np.array([2.0, 0.0, 1.0]), np.array([3.0, 0.0, 1.0])
    stats = Stats(exits, time, time, np.zeros((3, 3)), run_state, run_time, weights, ())
    rates = exact_rates(stats, Prices(1.0, np.ones(1), 1.5, 0.7, 0.0), np.array([True, True, False]))
    assert rates[0] == exact_rate(2.0, 3.0, np.array([3.0, 0.1]), np.array([1.0, 2.0]), 1.5, 0.7)
    assert rates[1] == exact_rate(0.0, 0.0, np.array([5.0]), np.array([2.0]), 1.5, 0.7)
    assert rates[2] == 0.0
    np.testing.assert_allclose(stats.total_time, [3.0 + 3.0 + 2 * 0.1, 2 * 5.0, 1.0 + 9.0], rtol=1e-15)


def test_rate_prior_has_no_unit(rng):
    rates = rng.exponential(1.0, 4)
    rates[1] = 0.0  # absorbing: left out
    a, b = 2.0, 3.0
    direct = sum(b * r - a * math.log(r) for r in rates if r > 0) - 3 * (a - a * math.log(a / b))
    assert prior_cost(rates, Prices(1.0, np.ones(1), a, b, 0.0)) == pytest.approx(direct, rel=1e-12)
    scaled = prior_cost(rates / 60.0, Prices(1.0, np.ones(1), a, 60.0 * b, 0.0))
    assert scaled == pytest.approx(direct, rel=1e-12)
    printed = prior_cost(rates, Prices(1.0, np.ones(1), 0.0, b, 0.0))
    assert printed == pytest.approx(b * rates.sum(), rel=1e-12)


# ----------------------------------------------------------------- transitions


def row_cost(p, n, alpha, allowed):
    return -sum((n[j] + alpha) * math.log(p[j]) for j in range(len(n)) if allowed[j] and n[j] + alpha > 0)


def test_transition_rows_are_minimisers(rng):
    for _ in range(50):
        M = 4
        moves = rng.random((M, M)) < 0.7
        np.fill_diagonal(moves, False)
        jumps = rng.integers(0, 5, (M, M)) * moves * rng.choice([1.0, 0.4])
        alpha = rng.choice([0.01, 1.0])
        P = transition_rows(jumps, alpha, moves)
        assert np.all(P[~moves] == 0) and np.all(P[moves] > 0)
        np.testing.assert_allclose(P.sum(axis=1), moves.any(axis=1).astype(float), rtol=1e-15)
        for m in np.flatnonzero(moves.any(axis=1)):
            least = row_cost(P[m], jumps[m], alpha, moves[m])
            for _ in range(20):
                other = np.where(moves[m], P[m] * np.exp(0.1 * rng.standard_normal(M)), 0.0)
                assert least <= row_cost(other / other.sum(), jumps[m], alpha, moves[m]) + 1e-12


def test_rows_without_any_count():
    moves = ~np.eye(3, dtype=bool)
    jumps = np.zeros((3, 3))
    jumps[0, 1] = 2.0
    previous = np.array([[0, 0.5, 0.5], [0.9, 0, 0.1], [0.5, 0.5, 0]])
    P = transition_rows(jumps, 0.0, moves, previous)
    np.testing.assert_array_equal(P, [[0, 1, 0], [0.9, 0, 0.1], [0.5, 0.5, 0]])
    np.testing.assert_array_equal(transition_rows(jumps, 0.0, moves)[1:], uniform_rows(moves)[1:])
    moves[2] = False  # nowhere to go
    np.testing.assert_array_equal(transition_rows(jumps, 0.5, moves)[2], np.zeros(3))


def test_jump_costs():
    X = jump_costs(np.array([[0.0, 0.25], [1.0, 0.0]]), 2.0)
    np.testing.assert_allclose(X, [[np.inf, 2 * math.log(4)], [0.0, np.inf]], rtol=1e-15)
    assert X.flags.c_contiguous


# ------------------------------------------------------------------- emissions


def values_of(family, rng, n):
    if family is Gaussian or family is Laplace:
        return rng.standard_normal(n) * 3 + 120.0
    if family is Poisson:
        return rng.poisson(2.0, n).astype(float)
    if family is Exponential:
        return rng.exponential(3.0, n) + 1e-9
    return (rng.random(n) < 0.3).astype(float)


def start_of(family, rng, M):
    if family is Bernoulli:
        return rng.uniform(0.05, 0.95, M)
    return rng.uniform(0.5, 4.0, M) + (115.0 if family in (Gaussian, Laplace) else 0.0)


MEANS = [Gaussian, Laplace, Poisson, Exponential, Bernoulli]


def direct_sum(name, theta, x, states, weights):
    d = reference.DIVERGENCE[name]
    return math.fsum(
        w * d(value, theta[s]) for value, s, w in zip(x, states, weights, strict=True) if not math.isnan(value)
    )


@pytest.mark.parametrize("family", MEANS)
def test_emission_updates_are_minimisers(family, rng):
    for _ in range(30):
        M, n = 3, int(rng.integers(5, 40))
        column = family(start_of(family, rng, M))
        if family in (Poisson, Bernoulli):
            column = column._copy(earlier=family.make_earlier(1.7, 0.01))
        x = values_of(family, rng, n)
        x[rng.random(n) < 0.2] = np.nan
        states, weights = rng.integers(0, M, n), rng.choice([1.0, 2.0, 0.3], n)
        stats = column.stats(x, states, weights)
        new = column.update(stats)
        count, mean = getattr(column, "earlier", (0.0, 0.0))

        def cost(theta, s, x=x, states=states, weights=weights, count=count, mean=mean):
            own = states == s
            prior = count * reference.DIVERGENCE[family.name](mean, theta) if count else 0.0
            return prior + direct_sum(family.name, {s: theta}, x[own], states[own], weights[own])

        for s in range(M):
            if not np.isfinite(x[states == s]).any() and not count:
                assert new.means[s] == column.means[s]
                continue
            own = x[(states == s) & np.isfinite(x)]
            low, high = (own.min(), own.max()) if family in (Gaussian, Laplace) else (1e-9, 1 - 1e-9)
            if family in (Poisson, Exponential):
                high = max(own.max(initial=0.0), mean) + 1.0
            if high > low:
                found = minimize_scalar(cost, bounds=(low, high), args=(s,), method="bounded", options={"xatol": 1e-10})
                assert cost(new.means[s], s) <= found.fun + 1e-9 * (1 + abs(found.fun))


@pytest.mark.parametrize("family", MEANS)
def test_totals_follow_without_another_pass(family, rng):
    """Σ w d(x, θ) from the statistics equals the direct sum, under the old and under the new parameters."""
    for _ in range(30):
        M, n = 3, 40
        column = family(start_of(family, rng, M))
        if family in (Poisson, Bernoulli):
            column = column._copy(earlier=family.make_earlier(1.7, 0.01))
        x = values_of(family, rng, n)
        x[rng.random(n) < 0.2] = np.nan
        states, weights = rng.integers(0, M, n), rng.choice([1.0, 2.0, 0.3], n)
        whole = column.stats(x, states, weights)
        parts = column.stats(x[:15], states[:15], weights[:15]) + column.stats(x[15:], states[15:], weights[15:])
        for stats in (whole, parts):
            for theta in (column, column.update(whole), family(start_of(family, rng, M))):
                expected = direct_sum(family.name, theta.means, x, states, weights)
                assert theta.total(stats) == pytest.approx(expected, rel=1e-12)


def test_totals_do_not_cancel():
    """Readings of 1e8 with a spread of 1e-3: totals keep their digits, being taken about the mean."""
    rng = np.random.default_rng(3)
    x = 1e8 + 1e-3 * rng.standard_normal(1000)
    states, weights = np.zeros(1000, int), np.ones(1000)
    column = Gaussian([1e8])
    stats = column.stats(x, states, weights)
    new = column.update(stats)
    assert new.total(stats) == pytest.approx(0.5 * np.sum((x - new.means[0]) ** 2), rel=1e-9)


def test_symbol_frequencies(rng):
    for alpha in (0.0, 0.5):
        M, N, n = 3, 4, 60
        probs = rng.dirichlet(np.ones(N), M)
        column = Categorical(probs, list("abcd"), alpha)
        x = rng.integers(0, N, n).astype(float)
        x[rng.random(n) < 0.2] = np.nan
        states, weights = rng.integers(0, 2, n), rng.choice([1.0, 2.5], n)  # state 2 sees nothing
        stats = column.stats(x, states, weights)
        new = column.update(stats)
        for s in range(2):
            counts = np.array([weights[(states == s) & (x == v)].sum() + alpha for v in range(N)])
            np.testing.assert_allclose(new.probs[s], counts / counts.sum(), rtol=1e-14)
        np.testing.assert_allclose(new.probs[2], probs[2] if alpha == 0 else np.full(N, 0.25), rtol=1e-15)
        for theta in (column, new):
            expected = -sum(
                w * math.log(theta.probs[s, int(v)])
                for v, s, w in zip(x, states, weights, strict=True)
                if not math.isnan(v)
            )
            assert theta.total(stats) == pytest.approx(expected, rel=1e-13)
            assert column._copy(probs=theta.probs).prior_cost() == pytest.approx(
                -alpha * np.log(theta.probs * N).sum() if alpha else 0.0, rel=1e-11
            )


@pytest.mark.parametrize("family", MEANS)
def test_soft_statistics_of_hard_weights(family, rng):
    """Rows shared 0/1 among the states give the statistics of rows assigned to them."""
    M, n = 3, 50
    column = family(start_of(family, rng, M))
    x = values_of(family, rng, n)
    x[::7] = np.nan
    states, weights = rng.integers(0, M, n), rng.choice([1.0, 2.0], n)
    probs = np.zeros((n, M))
    probs[np.arange(n), states] = weights
    hard, soft = column.stats(x, states, weights), column.soft_stats(x, probs)
    assert column.total(soft) == pytest.approx(column.total(hard), rel=1e-13)
    assert column.update(soft).total(hard) == pytest.approx(column.update(hard).total(hard), rel=1e-13)


# ------------------------------------------------------------------ statistics


@pytest.mark.parametrize("first_running", [False, True])
def test_statistics_of_a_trajectory(first_running, rng):
    M = 3
    exits, time, log_time, jumps = np.zeros(M), np.zeros(M), np.zeros(M), np.zeros((M, M))
    expected = {"exits": np.zeros(M), "time": np.zeros(M), "log": np.zeros(M), "jumps": np.zeros((M, M))}
    for weight in (1.0, 2.5):
        n = 7
        states = np.array([0, 2, 1, 0, 1, 2, 0], np.int32)
        starts = np.concatenate([[0.0], np.sort(rng.random(n - 1)) * 5])
        end = 6.0
        run_state, run_time = np.full(2, -1, np.int32), np.zeros(2)
        add_trajectory(states, starts, n, end, weight, first_running, exits, time, log_time, jumps, run_state, run_time)
        for k in range(n - 1):
            t = starts[k + 1] - starts[k]
            expected["jumps"][states[k], states[k + 1]] += weight
            if k > 0 or not first_running:
                expected["exits"][states[k]] += weight
                expected["time"][states[k]] += weight * t
                expected["log"][states[k]] += weight * math.log(t)
        assert run_state.tolist() == [0 if first_running else -1, 0]
        np.testing.assert_allclose(run_time, [starts[1] if first_running else 0.0, end - starts[-1]], rtol=1e-15)
    for got, want in zip((exits, time, log_time, jumps), expected.values(), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)


def test_rows_get_their_state_by_index():
    row_states = np.full(6, -1, np.int32)
    label_rows(np.array([2, 0, 1], np.int32), np.array([0, 2, 6], np.int32), 3, row_states)
    assert row_states.tolist() == [2, 2, 0, 0, 0, 0]


# --------------------------------------------------------------- closing EM steps


def test_pseudo_counts_of_a_closing_step_lean_on_the_common_rate():
    """Every allowed jump happened α more times, in the time that takes at the rate of all states together."""
    moves = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 0]], dtype=bool)
    process = Process([2.0, 1.0, 0.0], [[0, 0.5, 0.5], [1, 0, 0], [0, 0, 0]], emission=Gaussian([0.0, 1.0, 2.0], 1.0))
    integrals = np.array([[4.0, 3.0, 2.0], [5.0, 6.0, 1.0], [0.0, 0.0, 10.0]])
    stats = process.emission.soft_stats(np.zeros((1, 1)), np.ones((1, 3)))
    expected = Expected(integrals, np.ones(3), stats, np.zeros(1))
    n = np.array([[0.0, 3.0, 2.0], [5.0, 0.0, 0.0]])
    plain = maximise(process, expected, Constraints.of(moves))
    np.testing.assert_allclose(plain.rates, [5 / 4, 5 / 6, 0.0], rtol=1e-14)
    common = 10.0 / 20.0
    leaning = maximise(process, expected, Constraints.of(moves), pseudo_count=0.5)
    np.testing.assert_allclose(leaning.rates, [6 / (4 + 1 / common), 5.5 / (6 + 0.5 / common), 0.0], rtol=1e-14)
    np.testing.assert_allclose(leaning.transition_probs[0], (n[0] + [0, 0.5, 0.5]) / 6, rtol=1e-14)
    still = maximise(
        process, expected._replace(integrals=np.diag([1.0, 0.0, 1.0])), Constraints.of(moves), pseudo_count=0.5
    )
    assert still.rates.tolist() == [
        0.0,
        1.0,
        0.0,
    ]  # no jumps at all: no common rate; a state without time keeps its own
