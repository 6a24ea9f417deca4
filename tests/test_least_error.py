"""The trajectory that errs least: against all paths on a grid, by hand, and the laws it must keep."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jumpmeans as jm
import reference
from jumpmeans.fit.publish import publish_trajectories
from jumpmeans.kernels.forward_backward import power_tables
from jumpmeans.kernels.least_error import PRICE, count_cells, cut_gap, jump_prices, least_error_block
from jumpmeans.model.propagator import Propagator
from jumpmeans.model.structure import jumps_needed
from jumpmeans.passes import Block, Dwells
from jumpmeans.passes.least_error import stacked

SEEDS = st.integers(0, 2**32 - 1)
NEVER = -np.inf


def generator(off_diagonal):
    Q = np.array(off_diagonal, float)
    np.fill_diagonal(Q, 0.0)
    np.fill_diagonal(Q, -Q.sum(axis=1))
    return Q


def solve(tau, end, log_density, pi, Q, prices=None):
    """States, starts and rows of the one sequence, its cost, and where it died."""
    tau, log_density = np.asarray(tau, float), np.ascontiguousarray(log_density, float)
    prices = jump_prices(Q) if prices is None else prices
    longest = float(np.diff(np.concatenate([[0.0], tau, [end]])).max())
    where, counts, states, starts, rows, row_states, cost = least_error_block(
        tau, np.zeros(len(tau), np.int8), np.array([0, len(tau)]), np.array([float(end)]), log_density,
        np.asarray(pi, float), stacked([power_tables(Q, longest)]), np.zeros(len(tau) + 1, np.int64),
        prices, jumps_needed(np.isfinite(prices)),
    )  # fmt: skip
    if where[0] < 0:
        check_layout(tau, end, log_density, pi, prices, states, starts, rows, row_states)
        assert counts.tolist() == [len(states)]
    return (states.tolist(), starts.tolist(), rows.tolist()), float(cost[0]), where.tolist()


def check_layout(tau, end, log_density, pi, prices, states, starts, rows, row_states):
    """A trajectory as `sweep_block` gives it, that could have happened and could have shown the rows."""
    assert starts[0] == 0.0 and rows[0] == 0 and pi[states[0]] > 0
    for k in range(1, len(states)):
        assert np.isfinite(prices[states[k - 1], states[k]])
        lo = tau[rows[k] - 1] if rows[k] > 0 else 0.0
        hi = tau[rows[k]] if rows[k] < len(tau) else end
        assert lo < starts[k] <= hi
        assert starts[k] > starts[k - 1]
    shown = [states[np.searchsorted(rows, row, side="right") - 1] for row in range(len(tau))]
    assert row_states.tolist() == shown
    assert np.all(log_density[np.arange(len(tau)), row_states] > NEVER)


def full_cost(path, problem, prices):
    """Expected time in the wrong state plus prices, by the reference."""
    states, starts, _ = path
    return reference.wrong_time(states, starts, *problem) + sum(prices[jump] for jump in itertools.pairwise(states))


def random_problem(rng, M=None, L=None):
    """A process, and rows that are noisy or show some states; windows that may be wider than the rows."""
    M = int(rng.integers(2, 5)) if M is None else M
    L = int(rng.integers(1, 6)) if L is None else L
    Q = generator(rng.exponential(1.0, (M, M)) * 10.0 ** rng.uniform(-1, 0.5, (M, 1)))
    tau = np.cumsum(rng.exponential(10.0 ** rng.uniform(-1, 1), L))
    if rng.random() < 0.5:
        tau -= tau[0]
    end = float(tau[-1] + rng.choice([0.0, rng.exponential()])) or 1.0
    if rng.random() < 0.5:
        log_density = rng.normal(0.0, 2.0, (L, M))
    else:
        log_density = np.where(rng.random((L, M)) < 0.6, NEVER, 0.0)
        log_density[np.arange(L), rng.integers(0, M, L)] = 0.0
    log_density[rng.random(L) < 0.3] = 0.0
    return tau, end, log_density, rng.dirichlet(np.ones(M)), Q


# ------------------------------------------------------------------ references


@pytest.mark.parametrize("seed", range(24))
def test_no_path_over_a_grid_is_better(seed):
    """All paths that jump at a few edges in each gap, forbidden jumps and rows that show a state included."""
    rng = np.random.default_rng(seed)
    M = 2 + seed % 2
    problem = random_problem(rng, M, L=2)
    prices = jump_prices(problem[-1]) + rng.choice([0.0, 0.3])
    end = problem[1]
    edges = rng.uniform(0.0, end, 7 if M == 2 else 4)
    best = reference.least_error(*problem, prices, edges)
    path, cost, where = solve(*problem, prices)
    assert where == [-1, -1]
    found = full_cost(path, problem, prices)
    assert found <= best + 1e-5 * end
    assert cost == pytest.approx(found, abs=0.004 * end)


@given(seed=SEEDS)
@settings(max_examples=25)
def test_finer_grids_gain_nothing(seed):
    """Rows without a value cut the gaps 8 times as fine: the path costs the same."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    tau, end, log_density, pi, Q = problem
    prices = jump_prices(Q)
    extra = np.setdiff1d(
        np.concatenate([np.linspace(lo, hi, 9)[1:-1] for lo, hi in itertools.pairwise([0.0, *tau, end]) if hi > lo]),
        tau,
    )
    times = np.concatenate([tau, extra])
    order = np.argsort(times)
    fine_density = np.vstack([log_density, np.zeros((len(extra), len(pi)))])[order]
    path, cost, _ = solve(*problem)
    fine_path, fine_cost, _ = solve(times[order], end, fine_density, pi, Q)
    assert full_cost(path, problem, prices) == pytest.approx(full_cost(fine_path, problem, prices), abs=1e-5 * end)
    assert cost == pytest.approx(fine_cost, abs=0.004 * end)


@given(seed=SEEDS)
@settings(max_examples=25)
def test_jumps_are_where_the_probabilities_cross(seed):
    """Unless a row or another jump is in the way: the old and the new state are equally likely at a jump."""
    rng = np.random.default_rng(seed)
    tau, end, log_density, pi, Q = random_problem(rng, L=4)
    (states, starts, _), _, _ = solve(tau, end, log_density, pi, Q)
    for k in range(1, len(starts)):
        p = reference.chances(np.array([starts[k]]), tau, log_density, pi, Q)[0]
        if starts[k] not in tau:
            assert p[states[k]] == pytest.approx(p[states[k - 1]], abs=1e-6)


# --------------------------------------------------------------------- by hand


def test_half_way():
    """Two equal states, each seen once: the jump is half way, and the error 2 ∫ of what the other one has there."""
    Q = generator([[0, 1.0], [1.0, 0]])
    seen = [[0.0, NEVER], [NEVER, 0.0]]
    for gap in (1e-6, 1.0, 4.0):
        (states, starts, rows), cost, _ = solve([0.0, gap], gap, seen, [0.5, 0.5], Q)
        assert (states, rows) == ([0, 1], [0, 1])
        assert starts[1] == pytest.approx(0.5 * gap, rel=1e-9)
        # p_1(u) = sinh(u) cosh(g - u) / sinh(g), and its integral over the first half of the gap
        inside = (1 - math.cosh(gap) + gap * math.sinh(gap)) / (4 * math.sinh(gap)) if gap > 1e-3 else gap / 8
        assert cost == pytest.approx(2 * inside + PRICE, abs=0.004 * gap)


def test_the_price_against_flicker():
    """A glimpse of another state through noise is followed if jumps are free, not if the visit gains less than two."""
    Q = generator([[0, 1.0], [1.0, 0]])
    tau = np.arange(5) * 0.2
    noisy = np.zeros((5, 2))
    noisy[[0, 1, 3, 4], 1] = -3.0
    noisy[2, 0] = -4.5
    free = np.where(np.eye(2, dtype=bool), np.inf, 0.0)
    assert solve(tau, 0.8, noisy, [0.5, 0.5], Q, free)[0][0] == [0, 1, 0]
    assert solve(tau, 0.8, noisy, [0.5, 0.5], Q, free + 0.2)[0][0] == [0]
    # seen for certain, it is shown whatever the price
    noisy[[0, 4], 1] = noisy[2, 0] = NEVER
    assert solve(tau, 0.8, noisy, [0.5, 0.5], Q, free + 1e6)[0][0] == [0, 1, 0]


def test_a_visit_that_nobody_saw_is_made_where_moves_demand_it():
    """0 → 2 is forbidden: the path goes by way of 1, in one gap, however dear."""
    Q = generator([[0, 1.0, 0], [1.0, 0, 1.0], [0, 1.0, 0]])
    seen = [[0.0, NEVER, NEVER], [NEVER, NEVER, 0.0]]
    for gap in (1e-3, 1.0, 50.0):
        path, _, where = solve([0.0, gap], gap, seen, [1.0, 0, 0], Q)
        assert where == [-1, -1] and path[0] == [0, 1, 2]
    # twenty states in a row: as many cells as the way has jumps, and more
    Q = generator(np.diag(np.ones(19), 1))
    seen = np.full((2, 20), NEVER)
    seen[0, 0] = seen[1, 19] = 0.0
    path, _, _ = solve([0.0, 1.0], 1.0, seen, np.eye(20)[0], Q)
    assert path[0] == list(range(20))


def test_free_jumps_end_where_the_last_row_is_likeliest():
    """Planted: of states that cost the same by a free jump at the very end, the first one was taken."""
    Q = generator([[0, 1.0], [1.0, 0]])
    free = np.where(np.eye(2, dtype=bool), np.inf, 0.0)
    path, _, _ = solve([0.0, 1.0], 1.0, [[NEVER, 0.0], [0.0, 0.0]], [0.5, 0.5], Q, free)
    assert path == ([1], [0.0], [0])


# ------------------------------------------------------------------------ laws


@given(seed=SEEDS)
@settings(max_examples=40)
def test_the_unit_of_time_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    tau, end, log_density, pi, Q = random_problem(rng)
    (states, starts, rows), cost, _ = solve(tau, end, log_density, pi, Q)
    for unit in (1024.0, 2.0**-30):  # every bit
        again, its_cost, _ = solve(tau * unit, end * unit, log_density, pi, Q / unit)
        assert again == (states, [b * unit for b in starts], rows) and its_cost == cost * unit
    again, its_cost, _ = solve(tau * 365.25, end * 365.25, log_density, pi, Q / 365.25)
    assert its_cost == pytest.approx(365.25 * cost, rel=1e-9)
    if again[0] == states:
        np.testing.assert_allclose(again[1], np.array(starts) * 365.25, rtol=1e-6)


@given(seed=SEEDS)
@settings(max_examples=40)
def test_the_names_of_the_states_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    tau, end, log_density, pi, Q = random_problem(rng)
    order = rng.permutation(len(pi))
    path, cost, _ = solve(tau, end, log_density, pi, Q)
    other, its_cost, _ = solve(tau, end, log_density[:, order], pi[order], Q[np.ix_(order, order)])
    assert its_cost == pytest.approx(cost, rel=1e-9, abs=1e-12)
    if [int(order[s]) for s in other[0]] == path[0]:
        np.testing.assert_allclose(other[1], path[1], rtol=1e-6, atol=1e-9)


@given(seed=SEEDS)
@settings(max_examples=12)
def test_allowed_moves_and_direct_rows(seed):
    """Checked in `check_layout`, on processes that forbid most moves; rows simulated, so that there is a way."""
    rng = np.random.default_rng(seed)
    M = int(rng.integers(3, 7))
    P = np.diag(np.ones(M - 1), 1) + np.diag(rng.random(M - 1) < 0.5, -1) + (rng.random((M, M)) < 0.1)
    P[-1] = rng.random() < 0.5
    np.fill_diagonal(P, 0.0)
    rates = np.where(P.sum(axis=1) > 0, rng.gamma(1.0, 1.0, M) + 0.01, 0.0)
    P = P / np.maximum(P.sum(axis=1, keepdims=True), 1.0)
    process = jm.Process(rates, P)
    panel, truth = jm.simulate(process, 2, 6, mean_gap=10.0 ** rng.uniform(-2, 1.5), random_state=int(seed % 2**31))
    log_density = process.emission.log_density(panel.values)
    log_density[rng.random(len(log_density)) < 0.4] = 0.0
    for i in range(2):
        own = slice(panel.offsets[i], panel.offsets[i + 1])
        tau = panel.relative_times()[own]
        problem = tau, float(tau[-1]), log_density[own], process.initial_probs, process.rate_matrix
        path, _, where = solve(*problem)
        assert where == [-1, -1]
        # the truth is a path too
        mine = slice(truth.offsets[i], truth.offsets[i + 1])
        states, starts = truth.states[mine], truth.start_times[mine] - panel.start_times[i]
        prices = jump_prices(process.rate_matrix)
        assert full_cost(path, problem, prices) <= full_cost((states, starts, None), problem, prices) + 1e-5 * tau[-1]


def least_error(process, panel, scale=1.0):
    """Dwells of a panel."""
    block = Block.of(panel, process.emission.encode(panel))
    tables = Propagator.of(process, block.longest_gap).tables
    prices = jump_prices(process.rate_matrix)
    prices[np.isfinite(prices)] *= scale
    where, counts, states, starts, rows, _, _ = least_error_block(
        block.tau, block.row_kinds, block.offsets, block.ends, process.emission.unit_log_density(block.x),
        process.initial_probs, stacked([tables]), np.zeros(len(block.tau) + block.n_sequences, np.int64),
        prices, jumps_needed(np.isfinite(prices)),
    )  # fmt: skip
    assert where.tolist() == [-1, -1]
    return Dwells(np.concatenate([[0], np.cumsum(counts)]), states, starts, rows)


def test_never_worse_than_the_path_of_the_objective():
    """On a fitted panel: less error and prices than the trajectories of JUMP-means, every one of them."""
    truth = jm.Process([0.5, 1.0, 0.7], [[0, 0.5, 0.5], [0.9, 0, 0.1], [0.3, 0.7, 0]])
    panel = jm.hold_out(jm.simulate(truth, 12, 10, random_state=1)[0], 0.4, random_state=1)[0]
    model = jm.JumpMeans(emission="direct", states=[0, 1, 2]).fit(panel)
    process = model.process_
    prices = jump_prices(process.rate_matrix)
    found = publish_trajectories(panel, least_error(process, panel), model.states_)
    log_density = process.emission.log_density(process.emission.encode(panel))
    gained = 0.0
    for i in range(panel.n_sequences):
        own = slice(panel.offsets[i], panel.offsets[i + 1])
        tau = panel.relative_times()[own]
        problem = tau, float(tau[-1]), log_density[own], process.initial_probs, process.rate_matrix
        costs = []
        for paths in (found, model.trajectories_):
            mine = slice(paths.offsets[i], paths.offsets[i + 1])
            costs.append(full_cost((paths.states[mine], paths.start_times[mine], None), problem, prices))
        assert costs[0] <= costs[1] + 1e-5 * tau[-1]
        gained += costs[1] - costs[0]
    assert gained > 0.5


def test_sequences_of_a_block_are_independent(rng):
    process = jm.Process([0.5, 1.0], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 1], sds=1))
    panel, _ = jm.simulate(process, 12, 15, mean_gap=0.3, random_state=4)
    together = least_error(process, panel, scale=0.0)
    for i in range(12):
        alone = least_error(process, panel.select([i]), scale=0.0)
        mine = slice(together.offsets[i], together.offsets[i + 1])
        np.testing.assert_array_equal(together.states[mine], alone.states)
        np.testing.assert_allclose(together.starts[mine], alone.starts, rtol=1e-9)
        np.testing.assert_array_equal(together.rows[mine], alone.rows)


# -------------------------------------------------------------------- extremes


@pytest.mark.parametrize("gap", [1e-300, 1e-9, 1e3, 1e9, 1e20, 1e300])
def test_gaps_of_all_sizes(gap):
    """Next to nothing: one jump half way. Without end: back to the likeliest state for almost all of the time."""
    Q = generator([[0, 3.0], [1.0, 0]])
    seen = [[0.0, NEVER], [0.0, NEVER]]
    (states, starts, _), cost, where = solve([0.0, gap], gap, seen, [0.5, 0.5], Q)
    assert where == [-1, -1] and math.isfinite(cost)
    if gap < 1:
        assert states == [0]
    else:
        # p_0(u) = 1/4 + 3/4 e^{-4u} is down to 1/2 at ln(3)/4
        assert states == [0, 1, 0]
        assert starts[1] == pytest.approx(math.log(3) / 4, rel=1e-6)
        assert cost == pytest.approx(0.25 * gap, rel=0.05)


def test_rows_an_ulp_apart():
    Q = generator([[0, 1.0], [1.0, 0]])
    tau = [0.0, 1.0, np.nextafter(1.0, 2.0)]
    seen = [[0.0, NEVER], [0.0, NEVER], [NEVER, 0.0]]
    path, _, where = solve(tau, tau[-1], seen, [0.5, 0.5], Q)
    assert where == [-1, -1] and path == ([0, 1], [0.0, tau[2]], [0, 2])


@pytest.mark.parametrize("least", [8, 12, 100])
@pytest.mark.parametrize("z", [0.0, 1e-9, 0.5, 1.0, 3.0, 30.0, 1e5, 1e300, np.inf])
def test_cells(z, least):
    """Increasing edges, symmetric, enough and no more than there is room for; short beside the rows."""
    edges = np.full(count_cells(z, least) + 1, np.nan)
    n = cut_gap(0.0, 2.0, z, least, edges)
    edges = edges[: n + 1]
    widths = np.diff(edges)
    assert edges[0] == 0.0 and edges[-1] == 2.0 and np.all(widths > 0)
    assert widths.max() <= 2.0 / least * (1 + 1e-9) and n >= least
    if z < 1e15:
        np.testing.assert_allclose(widths, widths[::-1], rtol=1e-6, atol=1e-15)
        assert z * widths[0] / 2.0 <= 0.125 * (1 + 1e-9)
    assert cut_gap(1.0, np.nextafter(1.0, 2.0), z, least, np.empty(count_cells(z, least) + 1)) == 1


def test_impossible_rows_are_named():
    Q = generator([[0, 1.0], [0.0, 0]])
    seen = [[0.0, NEVER], [NEVER, 0.0], [0.0, NEVER]]
    assert solve([0.0, 1.0, 2.0], 2.0, seen, [0.5, 0.5], Q)[2] == [0, 2]


def test_states_that_cannot_be_left():
    """No jump, no price: a process that stands still has its likeliest state."""
    assert np.all(jump_prices(np.zeros((2, 2))) == np.inf)
    path, _, _ = solve([0.0, 1.0], 1.0, [[0.0, 0.5], [0.0, 0.5]], [0.5, 0.5], np.zeros((2, 2)))
    assert path == ([1], [0.0], [0])
    path, cost, _ = solve([0.0], 1.0, [[0.0]], [1.0], np.zeros((1, 1)))
    assert path == ([0], [0.0], [0]) and cost == 0.0
