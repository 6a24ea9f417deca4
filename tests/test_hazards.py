"""Rates that depend on covariates in JUMP-means: the objective, its updates, and what must hold of every descent."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import jumpmeans as jm
import reference
from jumpmeans.emissions import Gaussian
from jumpmeans.engines import Threads
from jumpmeans.fit.descent import Model, descend, minimise
from jumpmeans.model.constraints import Constraints
from jumpmeans.model.effects import Covariate, Effects
from jumpmeans.model.objective import Prices, evaluate
from jumpmeans.model.params import Params
from jumpmeans.passes import Block, Search, Sequences

SEEDS = st.integers(0, 2**32 - 1)
PROCESS = jm.Process(
    [0.3, 0.2, 0.4], [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]], emission=Gaussian([0, 4, 8], sds=1)
)  # fmt: skip
MOVES = ~np.eye(3, dtype=bool)


class Scene(NamedTuple):
    """A panel laid out with covariates, parameters to start from, and what is minimised."""

    panel: Any
    sequences: Sequences
    z: np.ndarray
    params: Params
    model: Model


def effects_of(K, M=3, shared=False):
    """Effects of K covariates on all states, all 0: each its own, or one for all states."""
    number = np.arange(K * M).reshape(K, M, 1) if not shared else np.arange(K).reshape(K, 1, 1)
    return Effects(
        [Covariate(f"c{k}") for k in range(K)], np.zeros(K), np.zeros((K, M, M)),
        np.broadcast_to(number, (K, M, M)).astype(np.int64).copy(),
    )  # fmt: skip


def scene(seed=0, vary=False, S=30, L=12, K=2, shared=False, running=False, per_gap=1, z=None, panel=None, gap=1.0):
    rng = np.random.default_rng(seed)
    if panel is None:
        panel, _ = jm.simulate(PROCESS, S, L, mean_gap=1.0, random_state=seed)
    if z is None:
        z = rng.normal(size=(panel.n_observations, K))
        if vary:  # some rows hold no value, and no jump but where covariates change
            panel = panel.blank(rng.random(panel.n_observations) < 0.2)
            stays = rng.random(len(z)) < 0.5
            for row in range(1, len(z)):
                if stays[row]:
                    z[row] = z[row - 1]
        else:
            z = z[: panel.n_sequences][panel.sequence_index]
    params = Params(np.full(3, 1.0 / gap), PROCESS.transition_probs, PROCESS.emission, None, effects_of(K, 3, shared))
    prices = Prices(1.0, np.ones(1), 1.0, gap, 0.01)
    model = Model(prices, Constraints.of(MOVES), Search(per_gap, per_gap, 0, int(running)))
    sequences = Sequences.of(Threads(1), panel, PROCESS.emission.encode(panel), None, z)
    return Scene(panel, sequences, z, params, model)


def plain_dwells(s, dwells, rates, beta, first_running):
    """Costs of all dwells by the reference, complete and running."""
    total = np.zeros(2)
    block = Block.of(s.panel, PROCESS.emission.encode(s.panel), None, s.z)
    for i in range(s.panel.n_sequences):
        a, b = dwells.offsets[i], dwells.offsets[i + 1]
        own = slice(block.offsets[i], block.offsets[i + 1])
        costs = reference.varying_costs(
            dwells.states[a:b].tolist(), dwells.starts[a:b].tolist(), block.ends[i], block.tau[own],
            rates * np.exp(s.z[own] @ beta), first_running,
        )  # fmt: skip
        total += [sum(costs[0]), sum(costs[1])]
    return total


CASES = [(False, False), (True, False), (False, True), (True, True)]


@pytest.mark.parametrize("vary, running", CASES)
def test_the_objective_is_that_of_the_reference(vary, running, rng):
    s = scene(1, vary, running=running)
    effects = s.params.effects.with_free(rng.normal(0, 0.5, 6))
    params = Params(np.array([0.3, 0.1, 0.6]), s.params.transition_probs, s.params.emission, None, effects)
    dwells, stats = s.sequences.sweep(s.sequences.no_jumps(), params, s.model.prices, s.model.search)
    cost = evaluate(stats, params, s.model.prices)
    expected = plain_dwells(s, s.sequences.fetch(dwells), params.rates, effects.of_states(), running)
    np.testing.assert_allclose([cost.dwells, cost.running_dwells], expected, rtol=1e-11)


@pytest.mark.parametrize("vary, running", CASES)
@pytest.mark.parametrize("shared", [False, True])
def test_updates_are_the_minimum(vary, running, shared):
    """Against a general minimiser of the plain objective. Planted: the prior left out of the slope."""
    s = scene(2, vary, S=10, running=running, shared=shared)
    prices = s.model.prices
    dwells, stats = s.sequences.sweep(s.sequences.no_jumps(), s.params, prices, s.model.search)
    dwells = s.sequences.fetch(dwells)
    found = minimise(stats, s.params, s.model)
    n = s.params.effects.n_free

    def plain(x):
        rates, effects = np.exp(x[:3]), s.params.effects.with_free(x[3:])
        prior = prices.prior_time * rates - prices.prior_count * np.log(rates)
        return plain_dwells(s, dwells, rates, effects.of_states(), running).sum() + prior.sum()

    here = np.concatenate([np.log(found.rates), found.effects.free])
    best = minimize(plain, np.concatenate([np.log(s.params.rates), np.zeros(n)]), method="BFGS", options={"gtol": 1e-7})
    assert plain(here) <= best.fun + 1e-8
    np.testing.assert_allclose(here, best.x, atol=2e-4)


@given(seed=SEEDS, vary=st.booleans(), running=st.booleans(), per_gap=st.integers(1, 2))
@settings(max_examples=15)
def test_j_never_rises(seed, vary, running, per_gap):
    """A rise is a warning, and warnings are errors. Planted: baseline rates in the decoder."""
    s = scene(seed % 1000, vary, S=12, running=running, per_gap=per_gap)
    run = descend(s.sequences, s.params, s.model, 100, 1e-10)
    totals = [cost.total for cost in run.history]
    assert np.all(np.diff(totals) <= 1e-9 * run.cost.size)


@pytest.mark.parametrize("vary", [False, True])
def test_every_step_lowers_j(vary):
    """Step by step: the decoder, then the updates, each against the same objective."""
    s = scene(5, vary)
    params, dwells, before = s.params, s.sequences.no_jumps(), np.inf
    for _ in range(8):
        dwells, stats = s.sequences.sweep(dwells, params, s.model.prices, s.model.search)
        decoded = evaluate(stats, params, s.model.prices).total
        assert decoded <= before + 1e-9
        params = minimise(stats, params, s.model)
        before = evaluate(stats, params, s.model.prices).total
        assert before <= decoded + 1e-9


@pytest.mark.parametrize("vary", [False, True])
def test_no_effects_change_no_bit(vary):
    """Covariates whose effects are 0 give the trajectories of none."""
    s = scene(3, vary)
    none = Sequences.of(Threads(1), s.panel, PROCESS.emission.encode(s.panel))
    bare = Params(s.params.rates, s.params.transition_probs, s.params.emission)
    expected = descend(none, bare, s.model, 100, 1e-9)
    stays = Effects(s.params.effects.covariates, np.zeros(2), np.zeros((2, 3, 3)), np.full((2, 3, 3), -1))
    start = Params(bare.rates, bare.transition_probs, bare.emission, None, stays)
    found = descend(s.sequences, start, s.model, 100, 1e-9)
    assert [cost.total for cost in found.history] == [cost.total for cost in expected.history]
    for a, b in zip(s.sequences.fetch(found.dwells), none.fetch(expected.dwells), strict=True):
        np.testing.assert_array_equal(a, b)


@given(seed=SEEDS, vary=st.booleans())
@settings(max_examples=6)
def test_units_of_covariates_do_not_matter(seed, vary):
    s = scene(seed % 1000, vary, S=12)
    units = np.array([1e6, 1e-4])
    scaled = scene(seed % 1000, z=s.z * units, panel=s.panel)
    one = descend(s.sequences, s.params, s.model, 200, 1e-12)
    other = descend(scaled.sequences, scaled.params, scaled.model, 200, 1e-12)
    assert other.cost.total == pytest.approx(one.cost.total, rel=1e-8)
    scale = np.abs(one.params.effects.coefs).max()
    np.testing.assert_allclose(
        other.params.effects.coefs * units[:, None, None], one.params.effects.coefs, atol=1e-3 * scale
    )  # fmt: skip


@pytest.mark.parametrize("vary", [False, True])
def test_unit_of_time_does_not_matter(vary):
    s = scene(4, vary)
    panel = jm.Panel.from_arrays(
        s.panel.times * 1024.0, s.panel.values[:, 0], s.panel.sequence_index, end_times=None
    )  # fmt: skip
    slow = scene(4, z=s.z, panel=panel, gap=1024.0)
    one, other = (descend(x.sequences, x.params, x.model, 200, 1e-10) for x in (s, slow))
    assert other.cost.total == pytest.approx(one.cost.total, rel=1e-9)
    np.testing.assert_array_equal(s.sequences.fetch(one.dwells).states, slow.sequences.fetch(other.dwells).states)
    np.testing.assert_allclose(other.params.rates * 1024.0, one.params.rates, rtol=1e-4)


def test_order_of_sequences_does_not_matter():
    s = scene(6, True)
    order = np.random.default_rng(0).permutation(s.panel.n_sequences)
    panel = s.panel.select(order)
    rows = np.concatenate([np.arange(s.panel.offsets[i], s.panel.offsets[i + 1]) for i in order])
    turned = scene(6, z=s.z[rows], panel=panel)
    one, other = (descend(x.sequences, x.params, x.model, 200, 1e-12) for x in (s, turned))
    assert other.cost.total == pytest.approx(one.cost.total, rel=1e-9)


def test_engines_of_any_size_give_the_same_bits():
    s = scene(7, True, S=120, L=15)
    block = Block.of(s.panel, PROCESS.emission.encode(s.panel), None, s.z)
    two = Sequences.hold(Threads(2), block)
    one, other = (descend(x, s.params, s.model, 30, 1e-9) for x in (s.sequences, two))
    assert one.cost.total == other.cost.total
    np.testing.assert_array_equal(one.params.effects.coefs, other.params.effects.coefs)


@pytest.mark.parametrize("vary", [False, True])
def test_costs_of_jumps_that_depend_on_covariates(vary):
    """A process with effects of moves, decoded: no path that was tried costs less."""
    s = scene(8, vary, S=15)
    rng = np.random.default_rng(1)
    number = np.arange(18).reshape(2, 3, 3)
    effects = Effects(s.params.effects.covariates, np.zeros(2), rng.normal(0, 0.7, (2, 3, 3)), number)
    params = Params(np.array([0.3, 0.2, 0.4]), s.params.transition_probs, s.params.emission, None, effects)
    dwells, _ = s.sequences.sweep(s.sequences.no_jumps(), params, s.model.prices, s.model.search._replace(rounds=100))
    found = s.sequences.fetch(dwells)
    block = Block.of(s.panel, PROCESS.emission.encode(s.panel), None, s.z)
    cost = PROCESS.emission.cost(block.x, np.ones(1))
    for i in range(s.panel.n_sequences):
        own = slice(block.offsets[i], block.offsets[i + 1])
        Q = params.rates[:, None] * params.transition_probs * np.exp(np.tensordot(s.z[own], effects.coefs, axes=1))
        rates = Q.sum(axis=2)
        X = -np.log(np.where(MOVES, Q / rates[:, :, None], 1e-300))
        X[:, ~MOVES] = np.inf
        a, b = found.offsets[i], found.offsets[i + 1]
        path = found.states[a:b].tolist(), found.starts[a:b].tolist(), found.rows[a:b].tolist()
        value = reference.varying_path_cost(*path, cost[own], block.ends[i], block.tau[own], rates, X)
        gaps = np.arange(1, len(rates))
        middles = block.tau[own][:-1] + 0.5 * np.diff(block.tau[own])
        best = reference.varying_decode(cost[own], block.ends[i], block.tau[own], rates, X, False, middles, gaps)
        assert value <= best + 1e-9
