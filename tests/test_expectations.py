"""Expected times and jumps between rows, by both routes: against integrals, limits and one another."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad_vec
from scipy.linalg import expm

import jumpmeans as jm
import reference
from jumpmeans.kernels.expectations import gather_block
from jumpmeans.model.propagator import Propagator
from jumpmeans.passes import Block, Expected, NoPathError, Sequences
from jumpmeans.passes.smooth import expect as expect_pass

SEEDS = st.integers(0, 2**32 - 1)


def generator(off_diagonal):
    Q = np.array(off_diagonal, float)
    np.fill_diagonal(Q, 0.0)
    np.fill_diagonal(Q, -Q.sum(axis=1))
    return Q


def process_of(Q, pi=None, emission=None):
    rates = -np.diag(Q)
    P = Q / np.where(rates > 0, rates, 1.0)[:, None]
    np.fill_diagonal(P, 0.0)
    return jm.Process(rates, P, pi, emission)


def expect(process, panel, by_eigen=None):
    """Expected statistics of a panel; by the eigenbasis where it is sound, or never."""
    block = Block.of(panel, process.emission.encode(panel))
    propagator = Propagator.of(process, block.longest_gap)
    if by_eigen is not None:
        assert propagator.eigen[0] or not by_eigen
        propagator = replace(propagator, eigen=(by_eigen, *propagator.eigen[1:]))
    return Expected.join([expect_pass(part, None, propagator)[1] for part in block.cut()])


def integrals(process, panel):
    """The same by the reference, from the definition: times (M,), jumps (M, M) and first states (M,)."""
    Q = process.rate_matrix
    M = len(Q)
    times, jumps, first = np.zeros(M), np.zeros((M, M)), np.zeros(M)
    log_density = process.emission.log_density(process.emission.encode(panel))
    tau = panel.relative_times()
    for i in range(panel.n_sequences):
        own = slice(panel.offsets[i], panel.offsets[i + 1])
        end = panel.end_times[i] - panel.start_times[i]
        parts = reference.expected_statistics(tau[own], end, log_density[own], process.initial_probs, Q)
        for total, part in zip((times, jumps, first), parts, strict=True):
            total += panel.weights[i] * part
    return times, jumps, first


def check(process, panel, by_eigen=None, rtol=1e-8):
    found = expect(process, panel, by_eigen)
    times, jumps, first = integrals(process, panel)
    Q = process.rate_matrix
    atol = rtol * max(times.sum(), 1e-300)
    np.testing.assert_allclose(np.diag(found.integrals), times, rtol=rtol, atol=atol)
    got = np.where(np.eye(len(Q), dtype=bool), 0.0, Q * found.integrals)
    np.testing.assert_allclose(got, jumps, rtol=rtol, atol=rtol * max(jumps.sum(), 1.0))
    np.testing.assert_allclose(found.first, first, rtol=rtol, atol=rtol)


def noisy_panel(rng, M, n_sequences=3, mean_gap=1.0):
    """A few short sequences of readings, some missing, in windows wider than their rows."""
    lengths = rng.integers(1, 5, n_sequences)
    ids = np.repeat(np.arange(n_sequences), lengths)
    gaps = rng.exponential(mean_gap, len(ids)) + 1e-3 * mean_gap
    times = np.concatenate([np.cumsum(gaps[ids == i]) for i in range(n_sequences)])
    values = rng.normal(rng.integers(0, M, len(ids)), 1.0)
    values[rng.random(len(ids)) < 0.3] = np.nan
    start = np.where(rng.random(n_sequences) < 0.5, times[np.searchsorted(ids, np.arange(n_sequences))], 0.0)
    last = times[np.searchsorted(ids, np.arange(n_sequences), side="right") - 1]
    end = last + mean_gap * rng.choice([0.0, 0.7], n_sequences)
    weights = rng.choice([1.0, 2.5], n_sequences)
    return jm.Panel.from_arrays(times, values, ids, weights=weights[ids], start_times=start[ids], end_times=end[ids])


CHAIN = np.diag(np.ones(3), 1)
GENERATORS = {
    "reversible": generator([[0, 1.0, 0.5], [2.0, 0, 0.3], [1.0, 0.3, 0]]),
    "periodic": generator([[0, 1.0, 0], [0, 0, 1.0], [1.0, 0, 0]]),
    "non-reversible": generator([[0, 2.0, 0.1, 0], [0, 0, 1.5, 0.1], [0.2, 0, 0, 1.0], [3.0, 0, 0.1, 0]]),
    "near-defective": generator(CHAIN * [[1.0], [1.0 + 1e-7], [1.0 - 1e-7], [1.0]]),
    "defective": generator(CHAIN),
    "absorbing": generator([[0, 0.7, 0.2], [0.3, 0, 0.4], [0, 0, 0]]),
    "fast and slow": generator([[0, 300.0, 0.1], [200.0, 0, 0.01], [0.02, 0.01, 0]]),
    "equal rates": generator(np.ones((4, 4))),
    "still": np.zeros((2, 2)),
}
SOUND = [name for name in GENERATORS if "defective" not in name]


# -------------------------------------------------------------- the definition


def test_reference_is_the_integral():
    """The matrix exponentials of the reference against plain quadrature of the definition, one gap."""
    Q = GENERATORS["non-reversible"]
    a, b, t = np.array([0.4, 0.1, 0.3, 0.2]), np.array([0.1, 0.7, 0.2, 0.5]), 1.3
    R = quad_vec(lambda u: np.outer(a @ expm(Q * u), expm(Q * (t - u)) @ b), 0.0, t, epsabs=1e-13)[0]
    R /= a @ expm(Q * t) @ b
    times, jumps, _ = reference.expected_statistics(np.array([t]), t, np.log(b)[None], a, Q)
    np.testing.assert_allclose(times, np.diag(R), rtol=1e-11)
    np.testing.assert_allclose(jumps, np.where(np.eye(4), 0.0, Q * R), rtol=1e-11)


@pytest.mark.parametrize("by_eigen", [True, False])
@pytest.mark.parametrize("name", SOUND)
def test_both_routes_equal_the_integrals(name, by_eigen, rng):
    Q = GENERATORS[name]
    M = len(Q)
    process = process_of(Q, rng.dirichlet(np.ones(M)), jm.emissions.Gaussian(np.arange(M), 1.0))
    for mean_gap in (0.01, 1.0, 8.0):
        check(process, noisy_panel(rng, M, mean_gap=mean_gap), by_eigen)


@pytest.mark.parametrize("name", ["near-defective", "defective"])
def test_ill_conditioned_eigenvectors_are_left_alone(name, rng):
    process = process_of(GENERATORS[name], None, jm.emissions.Gaussian(np.arange(4), 1.0))
    panel = noisy_panel(rng, 4)
    assert not Propagator.of(process, 1.0).eigen[0]
    check(process, panel)


@settings(max_examples=25)
@given(seed=SEEDS)
def test_random_processes(seed):
    rng = np.random.default_rng(seed)
    M = int(rng.integers(1, 5))
    Q = generator(rng.gamma(0.5, 1.0, (M, M)) * 10.0 ** rng.integers(-2, 2, (M, 1)) * (rng.random((M, M)) < 0.7))
    if rng.random() < 0.3:
        Q[rng.integers(M)] = 0.0
    process = process_of(Q, rng.dirichlet(np.ones(M)), jm.emissions.Gaussian(2.0 * np.arange(M), 1.0))
    panel = noisy_panel(rng, M, mean_gap=10.0 ** rng.integers(-2, 2))
    check(process, panel)
    check(process, panel, by_eigen=False)


@pytest.mark.parametrize("by_eigen", [True, False])
def test_directly_observed_states(by_eigen, rng):
    """Certain rows: the short cuts for them change nothing."""
    process = process_of(GENERATORS["non-reversible"], [0.1, 0.2, 0.3, 0.4])
    panel, _ = jm.simulate(process, 6, 5, random_state=1)
    values = panel.values.copy()
    values[rng.random(len(values)) < 0.3] = np.nan
    check(process, panel.with_values(values), by_eigen)


# ---------------------------------------------------------------------- limits


@pytest.mark.parametrize("M", [2, 3, 5, 8])
@pytest.mark.parametrize("t", [1e-9, 1e-4, 3e-4])
def test_barely_possible_rows(M, t):
    """M - 1 jumps one after the other in next to no time: each state gets an equal share, each jump happens once."""
    process = process_of(generator(np.diag(np.ones(M - 1), 1)), np.eye(M)[0])
    panel = jm.Panel.from_arrays([0.0, t], [0, M - 1], [0, 0])
    found = expect(process, panel)
    np.testing.assert_allclose(np.diag(found.integrals), t / M, rtol=2 * t)
    jumps = (process.rate_matrix * found.integrals)[np.arange(M - 1), np.arange(1, M)]
    np.testing.assert_allclose(jumps, 1.0, rtol=1e-12)


def test_routes_agree_far_from_equilibrium():
    """Huge and tiny gaps of one process, all digits."""
    Q = GENERATORS["reversible"]
    process = process_of(Q, [0.2, 0.3, 0.5], jm.emissions.Gaussian(np.arange(3), 1.0))
    gaps = 10.0 ** np.arange(-8, 7)
    panel = jm.Panel.from_arrays(np.cumsum(gaps), np.arange(15) % 3, np.zeros(15, int))
    eigen, digits = expect(process, panel, True), expect(process, panel, False)
    np.testing.assert_allclose(eigen.integrals, digits.integrals, rtol=1e-10)
    stationary = np.linalg.svd(Q.T)[2][-1]
    share = np.diag(digits.integrals) / gaps[1:].sum()
    np.testing.assert_allclose(share, stationary / stationary.sum(), atol=1e-5)


@pytest.mark.parametrize("window", [1e13, 1e15, 1e20, 1e150, 1e300])
def test_windows_without_end(window):
    """Far beyond any table: time and jumps as the stationary law has them, and short stays keep their digits.

    Planted: clamped to 2^60, a digit more than the table has (out of bounds), and the time beyond the table lost.
    """
    Q = GENERATORS["non-reversible"]
    process = process_of(Q, np.eye(4)[0])
    share = np.linalg.solve(np.vstack([Q.T[:3], np.ones(4)]), np.eye(4)[3])
    for values in ([0, 2], [0, np.nan]):
        found = expect(process, jm.Panel.from_arrays([0.0, window], values, [0, 0]), False)
        np.testing.assert_allclose(np.diag(found.integrals), share * window, rtol=1e-9)
        np.testing.assert_allclose(np.where(Q > 0, found.integrals, 0.0), (Q > 0) * share[:, None] * window, rtol=1e-9)
        assert np.isfinite(found.log_lik).all()
    absorbing = process_of(generator([[0, 0.5, 0.5], [1.0, 0, 1.0], [0, 0, 0]]), np.eye(3)[0])
    panel = jm.Panel.from_arrays([0.0], [0], [0], end_times=[window])
    found = expect(absorbing, panel, False)
    # state 0 is entered 4/3 times for 1, state 1 2/3 times for 1/2
    np.testing.assert_allclose(np.diag(found.integrals), [4 / 3, 1 / 3, window], rtol=1e-9)


def test_slow_and_fast_states_in_one_window():
    """A state left once in 1e20 mean dwells of the others: its own time is right, too."""
    process = process_of(generator([[0, 1.0, 0], [2.0, 0, 1e-20], [0, 0, 0]]), np.eye(3)[0])
    found = expect(process, jm.Panel.from_arrays([0.0], [0], [0], end_times=[1e20]), False)
    leaving = 1e-20 / 3  # a third of the time is spent in state 1
    left = -np.expm1(-leaving * 1e20) / leaving
    np.testing.assert_allclose(np.diag(found.integrals), [2 / 3 * left, left / 3, 1e20 - left], rtol=1e-9)


def test_time_is_kept(rng):
    """Expected times add up to the windows, and jumps in less jumps out to last states less first ones."""
    process = process_of(GENERATORS["non-reversible"])
    panel, _ = jm.simulate(process, 40, 6, random_state=3)
    values = panel.values.copy()
    values[rng.random(len(values)) < 0.5] = np.nan
    values[panel.offsets[:-1]] = panel.values[panel.offsets[:-1]]
    values[panel.offsets[1:] - 1] = panel.values[panel.offsets[1:] - 1]
    found = expect(process, panel.with_values(values))
    assert np.trace(found.integrals) == pytest.approx((panel.end_times - panel.start_times).sum(), rel=1e-12)
    jumps = np.where(np.eye(4), 0.0, process.rate_matrix * found.integrals)
    first, last = panel.values[panel.offsets[:-1], 0], panel.values[panel.offsets[1:] - 1, 0]
    flow = np.bincount(last.astype(int), minlength=4) - np.bincount(first.astype(int), minlength=4)
    np.testing.assert_allclose(jumps.sum(axis=0) - jumps.sum(axis=1), flow, atol=1e-9)
    np.testing.assert_allclose(found.first, np.bincount(first.astype(int), minlength=4), atol=1e-12)


# ------------------------------------------------------------------------ laws


@pytest.mark.parametrize("by_eigen", [True, False])
def test_rows_without_a_value_change_nothing(by_eigen, rng):
    """The same windows with and without rows at which nothing was seen, some of them many tables long."""
    process = process_of(GENERATORS["reversible"], None, jm.emissions.Gaussian(np.arange(3), 1.0))
    times = np.sort(rng.uniform(0, 400.0, 300))
    ids = np.repeat([0, 1, 2], 100)
    values = rng.normal(1.0, 1.0, 300)
    values[rng.random(300) < 0.9] = np.nan
    values[ids == 1] = np.nan
    window = {"start_times": np.array([0.0, 0.0, 0.0])[ids], "end_times": np.full(300, 410.0)}
    wide = jm.Panel.from_arrays(times, values, ids, **window)
    keep = np.isfinite(values) | (np.arange(300) == 150)
    narrow = jm.Panel.from_arrays(
        times[keep], values[keep], ids[keep], **{name: column[keep] for name, column in window.items()}
    )
    found, expected = expect(process, wide, by_eigen), expect(process, narrow, by_eigen)
    np.testing.assert_allclose(found.integrals, expected.integrals, rtol=1e-10)
    np.testing.assert_allclose(found.first, expected.first, rtol=1e-10)
    np.testing.assert_allclose(found.log_lik, expected.log_lik, rtol=1e-12)
    assert found.log_lik[1] == 0.0
    for part, other in zip(found.emission[0][:3], expected.emission[0][:3], strict=True):
        np.testing.assert_allclose(part, other, rtol=1e-9, atol=1e-12)


def test_log_likelihood_and_soft_statistics_are_those_of_the_posterior(rng):
    process = process_of(GENERATORS["reversible"], None, jm.emissions.Gaussian(np.arange(3), 1.0))
    panel = noisy_panel(rng, 3, n_sequences=20)
    found = expect(process, panel)
    sequences = Sequences.of(jm.engines.Threads(1), panel, process.emission.encode(panel))
    posterior, log_lik = sequences.smooth(process)
    np.testing.assert_allclose(found.log_lik, log_lik, rtol=1e-12, atol=1e-12)
    seen = panel.observed
    weights = np.repeat(panel.weights, panel.lengths)[:, None] * posterior
    np.testing.assert_allclose(found.emission[0].weight, weights[seen].sum(axis=0), rtol=1e-11)


def test_weights_count_as_copies(rng):
    process = process_of(GENERATORS["reversible"])
    panel, _ = jm.simulate(process, 5, 6, random_state=2)
    times, labels = panel.times, panel.values[:, 0].astype(int)
    ids = panel.sequence_index
    double = expect(process, jm.Panel.from_arrays(times, labels, ids, weights=np.full(30, 2.0)))
    twice = expect(process, jm.Panel.from_arrays(np.tile(times, 2), np.tile(labels, 2), np.r_[ids, ids + 5]))
    np.testing.assert_allclose(double.integrals, twice.integrals, rtol=1e-12)
    np.testing.assert_allclose(double.first, twice.first, rtol=1e-12)


def test_impossible_rows_are_named():
    process = process_of(GENERATORS["absorbing"])
    panel = jm.Panel.from_arrays([0.0, 1.0, 2.0, 0.0, 1.0, 2.0], [0, 1, 1, 2, np.nan, 0], [0, 0, 0, 1, 1, 1])
    with pytest.raises(NoPathError) as error:
        expect(process, panel)
    assert (error.value.sequence, error.value.row) == (1, 2)


def test_one_compiled_kernel():
    process = process_of(GENERATORS["absorbing"])
    for seed in range(2):
        expect(process, jm.simulate(process, 3 + seed, 4, random_state=seed)[0])
    if hasattr(gather_block, "signatures"):
        assert len(gather_block.signatures) == 1
    assert math.isfinite(expect(process, jm.simulate(process, 3, 4)[0]).log_lik.sum())
