"""Posterior of the process: against all hidden paths, the matrix exponential, and decimal arithmetic."""

import math
import signal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

import jumpmeans as jm
import reference
from jumpmeans.kernels.forward_backward import carry, power_tables, smooth_block
from jumpmeans.passes import Sequences

SEEDS = st.integers(0, 2**32 - 1)


def generator(off_diagonal):
    Q = np.array(off_diagonal, float)
    np.fill_diagonal(Q, 0.0)
    np.fill_diagonal(Q, -Q.sum(axis=1))
    return Q


def transition(Q, t, side):
    """e^{Qt} row by row (side 0) or column by column (side 1), as the kernel carries vectors."""
    rate, B, table, *_ = power_tables(Q, float(t))
    M = len(Q)
    out, work = np.empty((M, M)), np.empty((2, M))
    for s in range(M):
        carry(np.eye(M)[s].copy(), float(t), rate, B, table, side, out[s], work)
    return out if side == 0 else out.T


def smooth(tau, log_density, pi, Q, offsets=None):
    n, M = log_density.shape
    offsets = np.array([0, n]) if offsets is None else offsets
    posterior, log_lik = np.full((n, M), np.nan), np.zeros(len(offsets) - 1)
    longest = float(np.max(np.abs(np.diff(tau, prepend=0.0))))
    where = smooth_block(
        tau, np.zeros(n, np.int8), offsets, np.ones(len(offsets) - 1), log_density, pi, power_tables(Q, longest),
        posterior, log_lik,
    )  # fmt: skip
    return posterior, log_lik, where.tolist()


CHAIN = np.diag(np.ones(7), 1)
GENERATORS = {
    "dense": generator([[0, 1.0, 0.2, 0.4], [0.5, 0, 2.0, 0.1], [0.3, 0.3, 0, 0.3], [1.0, 0.01, 0.1, 0]]),
    "all sizes": generator([[0, 1e-6, 3e2, 1e-3], [5e5, 0, 1e-5, 0.1], [3.0, 2e-4, 0, 1e6], [1e-6, 7.0, 8e3, 0]]),
    "fast and slow": generator([[0, 1e-6], [1e6, 0]]),
    "defective": generator(CHAIN),
    "birth and death": generator(CHAIN + 2 * CHAIN.T),
    "absorbing": generator([[0, 1, 0.5], [0.2, 0, 0.3], [0, 0, 0]]),
    "reducible": generator([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 3], [0, 0, 1e-3, 0]]),
    "periodic": generator([[0, 1, 0], [0, 0, 1], [1, 0, 0]]),
    "still": np.zeros((3, 3)),
    "single": np.zeros((1, 1)),
}


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("name", GENERATORS)
def test_every_entry_keeps_its_digits(name, side):
    """Also the tiniest: a chain's far end is many jumps away, yet not impossible."""
    Q = GENERATORS[name]
    rate = -Q.diagonal().min() or 1.0
    # 1/4096 is the first entry of the table, by itself
    for t in [*(10.0 ** np.arange(-6, 7) / rate), 1 / (4096 * rate), 0.3 / rate, 17.77 / rate, 1.0, 1e6]:
        exact = reference.exact_expm(Q, t)
        got = transition(Q, t, side)
        known = exact > 1e-280
        np.testing.assert_allclose(got[known], exact[known], rtol=1e-11)
        assert np.all(got[~known] <= 1e-279)
        np.testing.assert_array_equal(got[exact == 0.0], 0.0)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("n_digits", [1, 2, 3])
def test_the_last_piece_of_a_digit(n_digits, side):
    """A gap just short of one digit more. Planted: clamped to 16^n - 1, which cut up to 1/16 of the longest gap off."""
    Q = GENERATORS["dense"]
    for part in (0.001, 0.5, 0.999):
        t = (16.0**n_digits - part) / (4096.0 * -Q.diagonal().min())
        np.testing.assert_allclose(transition(Q, t, side), reference.exact_expm(Q, t), rtol=1e-11)


SLOW = generator([[0, 1.0, 0], [2.0, 0, 1e-20], [3e-21, 0, 0]])


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("name", [*GENERATORS, "slow"])
def test_gaps_without_end(name, side):
    """1e15 mean dwells and more: the limit, whether all states recur, some are left for good, or some hardly ever.

    Planted: clamped to 2^60, which is a digit more than the table has (reads out of bounds; NaN at 1e20).
    """
    Q = {**GENERATORS, "slow": SLOW}[name]
    rate = -Q.diagonal().min() or 1.0
    for t in 10.0 ** np.array([12.5, 14.4, 14.5, 15, 18, 20, 24]) / rate:
        got = transition(Q, t, side)
        np.testing.assert_allclose(got, reference.exact_expm(Q, t), rtol=1e-9, atol=1e-280)
    limit = reference.exact_expm(Q, 1e40 / rate)
    for t in (1e40 / rate, 1e200, 1e300, 1.7e308):
        np.testing.assert_allclose(transition(Q, t, side), limit, rtol=1e-9, atol=1e-280)


@pytest.mark.parametrize("side", [0, 1])
def test_far_states_are_reached(side):
    """60 states in a row, crossed in next to no time. Planted: a series of a fixed number of terms, or one that stops
    as soon as what it adds is small beside the largest entry."""
    Q = generator(np.diag(np.ones(59), 1))
    jumps = np.arange(59)
    for t in (2e-4, 3e-4, 1e-2):
        poisson = np.exp(jumps * np.log(t) - t - np.array([math.lgamma(k + 1.0) for k in jumps]))
        np.testing.assert_allclose(transition(Q, t, side)[0, :59], poisson, rtol=1e-11)


def test_tables_too_large_are_refused_before_they_are_made():
    Q = generator(np.ones((1000, 1000)))
    with pytest.raises(ValueError, match=r"must fit into 0.5 GiB, got .* GiB for 1000 states; use fewer states"):
        power_tables(Q, 100.0)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_an_interrupt_comes_through():
    """Planted: products of matrices inside a compiled function, which turn an interrupt into a SystemError."""

    class InterruptError(Exception):
        pass

    def stop(*_):
        raise InterruptError

    Q = generator(np.ones((300, 300)))
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(InterruptError):
            for _ in range(1000):
                power_tables(Q, 1.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_reference_exponential():
    """The judge itself: equal to scipy where scipy is good, and to known values where it is not."""
    Q = GENERATORS["dense"]
    for t in (1e-3, 1.0, 30.0):
        np.testing.assert_allclose(reference.exact_expm(Q, t), expm(Q * t), rtol=1e-11)
    chain = reference.exact_expm(GENERATORS["defective"], 1e-6)
    assert chain[0, 6] == pytest.approx(1e-36 / 720 * np.exp(-1e-6), rel=1e-14)


def random_problem(rng, L=None, M=None):
    L = int(rng.integers(1, 6)) if L is None else L
    M = int(rng.integers(1, 4)) if M is None else M
    Q = generator(rng.exponential(1.0, (M, M)) * (rng.random((M, M)) < 0.8) * 10.0 ** rng.uniform(-1, 1))
    tau = np.cumsum(rng.exponential(1.0, L) * 10.0 ** rng.uniform(-2, 1))
    if rng.random() < 0.5:
        tau -= tau[0]
    log_density = rng.normal(0.0, 2.0, (L, M))
    log_density[rng.random(L) < 0.3] = 0.0  # missing
    pi = rng.dirichlet(np.ones(M))
    return tau, log_density, pi, Q


@given(seed=SEEDS)
@settings(max_examples=40)
def test_equals_all_paths(seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        tau, log_density, pi, Q = random_problem(rng)
        if rng.random() < 0.3:  # direct observations
            log_density[rng.random(log_density.shape) < 0.4] = -np.inf
        expected, log_lik = reference.enumerate_posterior(tau, log_density, pi, Q)
        got, got_lik, where = smooth(tau, log_density, pi, Q)
        if log_lik < -300:
            continue  # impossible, or only by the rounding of the judge's exponential
        assert where == [-1, -1]
        np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-13)
        assert got_lik[0] == pytest.approx(log_lik, rel=1e-11, abs=1e-11)


def test_sequences_of_a_block_are_independent(rng):
    problems = [random_problem(rng, M=3) for _ in range(5)]
    Q, pi = problems[0][3], problems[0][2]
    tau = np.concatenate([p[0] for p in problems])
    log_density = np.concatenate([p[1] for p in problems])
    offsets = np.cumsum([0] + [len(p[0]) for p in problems])
    got, log_lik, _ = smooth(tau, log_density, pi, Q, offsets)
    for i, p in enumerate(problems):
        alone, alone_lik, _ = smooth(p[0], p[1], pi, Q)
        np.testing.assert_allclose(got[offsets[i] : offsets[i + 1]], alone, rtol=1e-13)
        assert log_lik[i] == pytest.approx(alone_lik[0], rel=1e-13)


def test_long_sequence_equals_textbook(rng):
    tau, log_density, pi, Q = random_problem(rng, L=400, M=4)
    steps = [expm(Q * t) for t in np.diff(tau, prepend=0.0)]
    expected, log_lik = reference.forward_backward(tau, log_density, pi, steps)
    got, got_lik, _ = smooth(tau, log_density, pi, Q)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
    assert got_lik[0] == pytest.approx(log_lik, rel=1e-11)


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("exponent", [-6, -3, 0, 3, 6])
def test_gaps_of_all_sizes(name, exponent):
    """Gaps of 1e-6 to 1e6 dwell times, unlikely moves included, against decimal exponentials."""
    Q = GENERATORS[name]
    M = len(Q)
    rng = np.random.default_rng(5)
    gap = 10.0**exponent / (-Q.diagonal().min() or 1.0)
    tau = gap * np.array([0.0, 1.0, 1.5, 3.5, 4.0])
    log_density = rng.normal(0.0, 3.0, (5, M))
    log_density[2] = 0.0
    pi = rng.dirichlet(np.ones(M))
    steps = [reference.exact_expm(Q, t) for t in np.diff(tau, prepend=0.0)]
    expected, log_lik = reference.forward_backward(tau, log_density, pi, steps)
    got, got_lik, where = smooth(tau, log_density, pi, Q)
    assert where == [-1, -1]
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-280)
    np.testing.assert_allclose(got.sum(axis=1), 1.0, rtol=1e-13)
    assert got_lik[0] == pytest.approx(log_lik, rel=1e-10, abs=1e-10)


def test_far_apart_rows_forget_each_other():
    """After 1e6 dwell times the state is stationary, whatever was seen: worked by hand for two states."""
    Q = generator([[0, 3.0], [1.0, 0]])
    log_density = np.array([[0.0, -np.inf], [0.0, 0.0], [-np.inf, 0.0]])
    got, log_lik, _ = smooth(np.array([0.0, 1e6, 2e6]), log_density, np.array([0.5, 0.5]), Q)
    np.testing.assert_allclose(got, [[1, 0], [0.25, 0.75], [0, 1]], rtol=1e-12)
    assert log_lik[0] == pytest.approx(np.log(0.5 * 0.75), rel=1e-12)


def test_near_rows_share_a_state():
    """In between two looks 2e-6 dwell times apart that differ, either state is equally likely half way."""
    Q = generator([[0, 1.0], [1.0, 0]])
    log_density = np.array([[0.0, -np.inf], [0.0, 0.0], [-np.inf, 0.0]])
    got, log_lik, _ = smooth(np.array([0.0, 1e-6, 2e-6]), log_density, np.array([0.5, 0.5]), Q)
    np.testing.assert_allclose(got[1], [0.5, 0.5], rtol=1e-12)
    assert log_lik[0] == pytest.approx(np.log(0.5 * 2e-6) - 2e-6, rel=1e-9)


def test_extreme_densities_do_not_overflow(rng):
    Q = generator([[0, 1.0], [2.0, 0]])
    log_density = np.array([[-1e6, -1.1e6], [-5e5, -800.0], [900.0, 0.0], [0.0, -1e300]])
    got, log_lik, where = smooth(np.arange(4) * 1e-3, log_density, np.array([0.5, 0.5]), Q)
    assert where == [-1, -1]
    assert np.all(np.isfinite(got)) and np.isfinite(log_lik[0])
    np.testing.assert_allclose(got, [[1, 0], [0, 1], [1, 0], [1, 0]], rtol=1e-9, atol=1e-9)


def test_impossible_rows_are_named():
    Q = generator([[0, 1.0], [0.0, 0]])  # state 1 cannot be left
    never = -np.inf
    seen = np.array([[0, never], [never, 0], [0, never], [0, 0]])
    tau = np.array([0.0, 1.0, 2.0, 3.0])
    pi = np.array([0.5, 0.5])
    assert smooth(tau, seen.astype(float), pi, Q)[2] == [0, 2]
    two = np.concatenate([np.zeros((4, 2)), seen])
    assert smooth(np.concatenate([tau, tau]), two, pi, Q, np.array([0, 4, 8]))[2] == [1, 2]
    assert smooth(tau, np.full((4, 2), never), pi, Q)[2] == [0, 0]
    blank, log_lik, where = smooth(tau, np.zeros((4, 2)), np.array([0.0, 1.0]), Q)
    assert where == [-1, -1] and log_lik[0] == 0.0
    np.testing.assert_array_equal(blank, [[0, 1]] * 4)


# -------------------------------------------------------------- through engines


def test_posterior_through_the_engine(rng):
    """Windows that begin before the first row, several columns, missing values: all as by enumeration."""
    process = jm.Process(
        [1.0, 0.4, 2.0],
        [[0, 0.3, 0.7], [1, 0, 0], [0.5, 0.5, 0]],
        [0.2, 0.5, 0.3],
        [jm.emissions.Gaussian([0, 1, 3], sds=[1, 0.5, 2]), jm.emissions.Bernoulli([0.1, 0.5, 0.9])],
    )
    times = np.array([0.5, 1.0, 2.5, 4.0, 0.0, 0.1])
    values = np.column_stack([rng.normal(1.0, 1.0, 6), [0, 1, 1, 0, 1, 0]]).astype(float)
    values[1, 0] = values[2, 1] = np.nan
    values[3] = np.nan
    panel = jm.Panel.from_arrays(
        times, values, [7, 7, 7, 7, 8, 8], start_times=[0, 0, 0, 0, -1, -1.0], end_times=[9, 9, 9, 9, 1, 1.0]
    )
    sequences = Sequences.of(jm.engines.Threads(1), panel, process.emission.encode(panel))
    posterior, log_lik = sequences.smooth(process)
    Q = process.rate_matrix
    for i, (rows, start) in enumerate(((slice(0, 4), 0.0), (slice(4, 6), -1.0))):
        log_density = process.emission.log_density(values[rows])
        expected, expected_lik = reference.enumerate_posterior(
            times[rows] - start, log_density, process.initial_probs, Q
        )
        np.testing.assert_allclose(posterior[rows], expected, rtol=1e-11)
        assert log_lik[i] == pytest.approx(expected_lik, rel=1e-12)


def test_times_long_after_the_last_row():
    """Read at 1e14 and far beyond: the stationary law, and rows asked for along with it keep theirs."""
    process = jm.Process([1.0, 3.0], [[0, 1], [1, 0]], [0.5, 0.5])
    tau = np.array([0.0, 1.0, 1e14, 1e15, 1e20, 1e300])
    log_density = np.zeros((6, 2))
    log_density[1, 1] = -np.inf
    got, log_lik, where = smooth(tau, log_density, process.initial_probs, process.rate_matrix)
    assert where == [-1, -1]
    np.testing.assert_allclose(got[1], [1.0, 0.0], rtol=1e-12)
    np.testing.assert_allclose(got[2:], [[0.75, 0.25]] * 4, rtol=1e-11)
    assert log_lik[0] == pytest.approx(np.log(0.75 - 0.25 * np.exp(-4.0)), rel=1e-12)


@pytest.mark.parametrize("where", ["before", "between", "after"])
def test_the_longest_gap_may_be_anywhere(where):
    """Before the first row, between two, or after the last one, of the second sequence: tables must reach it."""
    process = jm.Process([1.0, 0.4], [[0, 1], [1, 0]], [0.9, 0.1], jm.emissions.Gaussian([0, 3]))
    first = np.arange(11) * 0.1  # ends at 1.0, so that the differences of all times taken together stay short
    last, end = {"before": ([1.9, 2.0], 2.0), "between": ([0.1, 2.0], 2.0), "after": ([0.1, 0.2], 2.1)}[where]
    panel = jm.Panel.from_arrays(
        [*first, *last], [*np.zeros(11), 2.0, 0.5], [0] * 11 + [1] * 2, start_times=np.zeros(13),
        end_times=[1.0] * 11 + [end] * 2,
    )  # fmt: skip
    sequences = Sequences.of(jm.engines.Threads(1), panel, process.emission.encode(panel))
    posterior, log_lik = sequences.smooth(process)
    log_density, Q = process.emission.log_density(panel.values[11:]), process.rate_matrix
    expected, expected_lik = reference.enumerate_posterior(np.array(last), log_density, process.initial_probs, Q)
    np.testing.assert_allclose(posterior[11:], expected, rtol=1e-10)
    assert log_lik[1] == pytest.approx(expected_lik, rel=1e-11)
    both, alone = (
        Sequences.of(jm.engines.Threads(1), part, part.values).expect(process).integrals
        for part in (panel, panel.select([0]))
    )
    time, _, _ = reference.expected_statistics(np.array(last), end, log_density, process.initial_probs, Q)
    np.testing.assert_allclose(np.diag(both - alone), time, rtol=1e-9)


@pytest.mark.parametrize("name", ["dense", "absorbing", "periodic", "defective"])
def test_expected_statistics(name, rng):
    """Expected times, jumps and first states of EM, in the eigenbasis or (defective) by doubling."""
    Q = GENERATORS[name]
    M = len(Q)
    rates = -Q.diagonal()
    P = np.where(np.eye(M, dtype=bool), 0.0, Q) / np.where(rates > 0, rates, 1.0)[:, None]
    emission = jm.emissions.Gaussian(np.arange(M) * 1.0, sds=1.5)
    process = jm.Process(rates, P, rng.dirichlet(np.ones(M)), emission)
    lengths = [4, 1, 3]
    ids = np.repeat(np.arange(3), lengths)
    times = np.concatenate([np.cumsum(rng.exponential(1.0, n)) for n in lengths])
    values = rng.normal(M / 2, 1.5, len(times))
    values[2] = np.nan
    weights = np.array([1.0, 2.0, 0.5])
    panel = jm.Panel.from_arrays(
        times, values, ids, start_times=np.zeros(len(times)),
        end_times=np.repeat([times[3], times[4] + 2.0, times[-1] + 0.7], lengths), weights=weights[ids],
    )  # fmt: skip
    got = Sequences.of(jm.engines.Threads(1), panel, process.emission.encode(panel)).expect(process)
    time, jumps, first = np.zeros(M), np.zeros((M, M)), np.zeros(M)
    for i in range(3):
        rows = slice(panel.offsets[i], panel.offsets[i + 1])
        log_density = process.emission.log_density(values[rows, None])
        parts = reference.expected_statistics(times[rows], panel.end_times[i], log_density, process.initial_probs, Q)
        for total, part in zip((time, jumps, first), parts, strict=True):
            total += weights[i] * part
    np.testing.assert_allclose(np.diag(got.integrals), time, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.where(Q > 0, Q * got.integrals, 0.0), jumps, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(got.first, first, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(time.sum(), weights @ panel.end_times, rtol=1e-9)
