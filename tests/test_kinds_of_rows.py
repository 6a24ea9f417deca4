"""How a row was seen, in all that speaks of probabilities: against products of matrix exponentials, row by row."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import jumpmeans as jm
import reference
from jumpmeans.emissions import Gaussian
from jumpmeans.fit.ascent import Task, climb
from jumpmeans.fit.em_steps import maximise
from jumpmeans.kernels.least_error import jump_prices
from jumpmeans.kinds import ENTRY, HELD, SNAPSHOT, TRANSITION
from jumpmeans.model.propagator import Propagator
from jumpmeans.passes import Block, NoPathError, Sequences
from jumpmeans.passes.smooth import expect as expect_pass

SEEDS = st.integers(0, 2**32 - 1)
ENGINE = jm.engines.Threads(1)
ALL = (SNAPSHOT, TRANSITION, ENTRY, HELD)


def process_of(Q, pi=None, emission=None):
    Q = np.array(Q, float)
    np.fill_diagonal(Q, 0.0)
    return jm.Process.from_generator(Q, pi, emission)


def one_sequence(tau, kinds, end, x, allowed=None, weight=1.0):
    n = len(tau)
    return Block(
        np.array(tau, float), np.array([0, n]), np.array([float(end)]), np.array([weight]),
        np.array(x, float).reshape(n, -1), 0, np.array(kinds, np.int8), None if allowed is None else np.array(allowed),
    )  # fmt: skip


def joined(blocks):
    """One block of the sequences of several."""
    lengths = [len(block.tau) for block in blocks]
    return Block(
        np.concatenate([block.tau for block in blocks]),
        np.concatenate([[0], np.cumsum(lengths)]),
        *(np.concatenate([getattr(block, name) for block in blocks]) for name in ("ends", "weights", "x")),
        0,
        *(np.concatenate([getattr(block, name) for block in blocks]) for name in ("kinds", "allowed")),
    )


def random_problem(rng, kinds=ALL, moves=0.8, zero_gaps=True):
    """A process with some moves missing, hidden behind noise, and one window drawn so that some path explains it."""
    M, L = int(rng.integers(2, 5)), int(rng.integers(1, 7))
    Q = rng.exponential(1.0, (M, M)) * 10.0 ** rng.uniform(-1, 1, (M, 1)) * (rng.random((M, M)) < moves)
    pi = rng.dirichlet(np.ones(M))
    process = process_of(Q, pi, Gaussian(np.arange(M), sds=0.7))
    how = rng.choice(kinds, L).astype(np.int8)
    gaps = rng.exponential(10.0 ** rng.uniform(-1, 0.5), L)
    pinned = np.isin(how, [TRANSITION, ENTRY])
    if zero_gaps:
        gaps[pinned & (rng.random(L) < 0.2)] = 0.0
    if rng.random() < 0.5:
        gaps[0] = 0.0
    tau = np.cumsum(gaps)
    x = np.where(rng.random(L) < 0.4, np.nan, rng.normal(rng.integers(0, M, L), 1.0))
    allowed = rng.random((L, M)) < 0.7
    allowed[rng.random(L) < 0.5] = True
    end = tau[-1] + rng.choice([0.0, rng.exponential()])
    return process, one_sequence(tau, how, end, x, allowed, rng.choice([1.0, 2.5]))


def likelihood(process, block):
    """(L, M) of the rows, states that are not allowed ruled out."""
    return np.exp(process.emission.log_density(block.x)) * block.allowed


def expected(process, block, by_eigen=None):
    propagator = Propagator.of(process, block.longest_gap)
    if by_eigen is not None:
        propagator = replace(propagator, eigen=(by_eigen and propagator.eigen[0], *propagator.eigen[1:]))
    return expect_pass(block, None, propagator)[1]


# ------------------------------------------------- likelihood and posterior


@settings(max_examples=120)
@given(SEEDS)
def test_posterior_and_likelihood_are_products_over_rows(seed):
    """Hidden values, missing ones, sets, windows, gaps of 0, all kinds at random.

    Planted, one at a time: N with its diagonal, I + N for an entry, a first row at 0 that is entered, a barred gap
    taken for open, the mask left out.
    """
    process, block = random_problem(np.random.default_rng(seed))
    Q, pi, lik = process.rate_matrix, process.initial_probs, likelihood(process, block)
    exact = reference.likelihood_by_kind(block.tau, block.kinds, block.ends[0], lik, pi, Q)
    sequences = Sequences.hold(ENGINE, block)
    if exact == 0.0:
        for ask in (sequences.smooth, sequences.expect, sequences.err_least):
            with pytest.raises(NoPathError):
                ask(process)
        return
    posterior, log_lik = sequences.smooth(process)
    with np.errstate(divide="ignore"):
        steps = reference.steps_by_kind(block.tau, block.kinds, Q)
        told, again = reference.forward_backward(block.tau, np.log(lik), pi, steps)
    np.testing.assert_allclose(log_lik[0], math.log(exact), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(again, math.log(exact), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(posterior, told, atol=1e-9)
    np.testing.assert_allclose(
        sequences.log_likelihood(process), block.weights[0] * math.log(exact), rtol=1e-9, atol=1e-8
    )


@settings(max_examples=100)
@given(SEEDS, st.booleans())
def test_expected_times_and_jumps_are_derivatives_of_the_likelihood(seed, by_eigen):
    """By both routes, the eigenbasis and the digits. Planted: the jump at a row not counted, its gap taken for open,
    the future not brought to just before the row, a blank row before a barred gap passed over, an entry at the window's
    start that a blank row there precedes taken for a snapshot."""
    process, block = random_problem(np.random.default_rng(seed))
    Q, pi, lik = process.rate_matrix, process.initial_probs, likelihood(process, block)
    problem = (block.tau, block.kinds, block.ends[0], lik, pi, Q)
    if reference.likelihood_by_kind(*problem) == 0.0:
        return
    R, first = reference.integrals_by_kind(*problem)
    found = expected(process, block, by_eigen)
    w = block.weights[0]
    np.testing.assert_allclose(np.diag(found.integrals), w * np.diag(R), rtol=1e-7, atol=1e-8)
    off = ~np.eye(len(Q), dtype=bool)
    np.testing.assert_allclose((Q * found.integrals)[off], w * (Q * R)[off], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found.first, w * first, atol=1e-9)
    np.testing.assert_allclose(np.diag(found.integrals).sum(), w * block.ends[0], rtol=1e-9, atol=1e-9)


def test_long_holds_and_fast_states_do_not_underflow():
    """A state held for 2000 mean dwells beside one that cannot be left, then a jump; an entry at rates of 1e-200.

    Planted: e^{-λt} of each state as it is, which is 0; the backward pass scaled by a state that is none there.
    """
    process = process_of([[0, 3.0, 1.0], [0, 0, 2.0], [0, 0, 0]], [1, 0, 0])
    tau, kinds = [0.0, 500.0, 1500.0], [SNAPSHOT, TRANSITION, TRANSITION]
    block = one_sequence(tau, kinds, 1500.0, [0, 1, 2])
    posterior, log_lik = Sequences.hold(ENGINE, block).smooth(process)
    assert log_lik[0] == pytest.approx(-4.0 * 500 + math.log(3.0) - 2.0 * 1000 + math.log(2.0), rel=1e-13)
    np.testing.assert_array_equal(posterior, np.eye(3))
    got = expected(process, block)
    np.testing.assert_allclose(np.diag(got.integrals), [500.0, 1000.0, 0.0], rtol=1e-13)
    jumps = process.rate_matrix * got.integrals
    np.testing.assert_allclose([jumps[0, 1], jumps[1, 2], jumps[0, 2]], [1.0, 1.0, 0.0], rtol=1e-13)
    drawn = Sequences.hold(ENGINE, block)
    paths = drawn.begin_paths(np.random.default_rng(0), 2)
    for k in range(3):
        paths, now = drawn.draw(paths, process, fresh=k == 0)
        assert now.time.tolist() == [500.0, 1000.0, 0.0]
    slow = process_of([[0, 1e-200], [1e-200, 0]], [0.5, 0.5])
    entry = one_sequence([0.0, 1.0], [SNAPSHOT, ENTRY], 1.0, [np.nan, 1.0])
    assert Sequences.hold(ENGINE, entry).smooth(slow)[1][0] == pytest.approx(math.log(0.5e-200), rel=1e-13)


@settings(max_examples=60)
@given(SEEDS)
def test_rows_put_into_gaps_change_nothing(seed):
    """Held ones before a transition, blank ones before an entry; likelihood, posterior and expectations stay."""
    rng = np.random.default_rng(seed)
    process, block = random_problem(rng, kinds=(SNAPSHOT, TRANSITION, ENTRY))
    pieces = []
    for row, (time, kind) in enumerate(zip(block.tau, block.row_kinds, strict=True)):
        before = block.tau[row - 1] if row else 0.0
        if time > before and rng.random() < 0.7:
            inside = HELD if kind == TRANSITION else SNAPSHOT
            pieces.append((before + rng.random() * (time - before), inside, np.nan, np.ones(len(process.rates), bool)))
        pieces.append((time, kind, block.x[row, 0], block.allowed[row]))
    tau, kinds, x, allowed = zip(*pieces, strict=True)
    wide = one_sequence(tau, kinds, block.ends[0], x, allowed, block.weights[0])
    old = np.isin(wide.tau, block.tau)
    try:
        posterior, log_lik = Sequences.hold(ENGINE, block).smooth(process)
    except NoPathError:
        return
    p, again = Sequences.hold(ENGINE, wide).smooth(process)
    np.testing.assert_allclose(again, log_lik, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(p[old], posterior, atol=1e-10)
    np.testing.assert_allclose(
        expected(process, wide).integrals, expected(process, block).integrals, rtol=1e-7, atol=1e-9
    )
    told = reference.chances_by_kind(
        wide.tau[~old], block.tau, block.kinds, np.log(np.maximum(likelihood(process, block), 1e-300)),
        process.initial_probs, process.rate_matrix,
    ) if (~old).any() else p[~old]  # fmt: skip
    np.testing.assert_allclose(p[~old], told, atol=1e-8)


# --------------------------------------------------------------------- draws


@pytest.mark.parametrize("seed", range(6))
def test_drawn_paths_have_the_exact_posterior(seed):
    """Many equal windows under fixed parameters: rows, jumps (those of rows included) and times.

    Planted: B in place of N or I + N, events left in barred gaps, e^{-λt} of a barred gap left out.
    """
    rng = np.random.default_rng(seed)
    while True:
        process, block = random_problem(rng, moves=1.0)
        M, L = len(process.rates), len(block.tau)
        lik = likelihood(process, block)
        problem = (block.tau, block.kinds, block.ends[0], lik, process.initial_probs, process.rate_matrix)
        exciting = len(set(block.row_kinds.tolist())) > 2 and process.rates.max() * block.ends[0] < 30
        if exciting and reference.likelihood_by_kind(*problem) > 0:
            break
    S = 4000
    sequences = Sequences.hold(ENGINE, joined([block] * S))
    handle = sequences.begin_paths(rng, M)
    for k in range(40):
        handle, drawn = sequences.draw(handle, process, fresh=k == 0)
    dwells = sequences.fetch_paths(handle)
    for i in range(50):
        own = slice(dwells.offsets[i], dwells.offsets[i + 1])
        parts = (dwells.states[own], dwells.starts[own], dwells.rows[own])
        assert reference.breaks_kind(*parts, block.tau, block.kinds) is None
    R, first = reference.integrals_by_kind(*problem)
    jumps = np.where(np.eye(M, dtype=bool), 0.0, process.rate_matrix * R)
    posterior, _ = Sequences.hold(ENGINE, block).smooth(process)
    seen = np.array([np.bincount(drawn.row_states[k::L], minlength=M) / S for k in range(L)])
    np.testing.assert_allclose(seen, posterior, atol=4 * 0.5 / np.sqrt(S))
    np.testing.assert_allclose(drawn.first / S, first, atol=4 * 0.5 / np.sqrt(S))
    counts = np.sqrt(np.maximum(jumps, 0.1) * (1.0 + jumps))  # no fewer than the spread of a count
    assert np.all(np.abs(drawn.jumps / S - jumps) < 4.5 * counts / np.sqrt(S))
    assert np.all(np.abs(drawn.time / S - np.diag(R)) < 4 * 0.5 * block.ends[0] / np.sqrt(S) + 1e-12)
    np.testing.assert_allclose(drawn.time.sum(), S * block.ends[0])


# --------------------------------------------------------------- least error


def decoded(process, block):
    sequences = Sequences.hold(ENGINE, block)
    dwells = sequences.fetch(sequences.err_least(process))
    return dwells.states, dwells.starts, dwells.rows


@settings(max_examples=40)
@given(SEEDS)
def test_least_error_obeys_the_rows_and_no_coarse_path_is_better(seed):
    """Planted: jumps inside barred gaps, an entry that may stay, its jump moved to a crossing."""
    rng = np.random.default_rng(seed)
    process, block = random_problem(rng, zero_gaps=False)
    Q, pi, L, M = process.rate_matrix, process.initial_probs, len(block.tau), len(process.rates)
    with np.errstate(divide="ignore"):
        log_density = np.log(likelihood(process, block))
    try:
        states, starts, rows = decoded(process, block)
    except NoPathError:
        return
    assert reference.breaks_kind(states, starts, rows, block.tau, block.kinds) is None
    assert all(Q[a, b] > 0 for a, b in itertools.pairwise(states))
    shown = states[np.searchsorted(rows, np.arange(L), side="right") - 1]
    assert np.all(np.isfinite(log_density[np.arange(L), shown])) and pi[states[0]] > 0
    if M ** (L + 3) > 3000:
        return
    prices = jump_prices(Q)
    problem = (block.tau, block.kinds)
    edges = np.unique(np.concatenate([starts, block.tau, [0.0, block.ends[0]]]))
    right = reference.times_by_kind(edges, *problem, log_density, pi, Q)
    state = states[np.searchsorted(starts, edges[:-1], side="right") - 1]
    cost = block.ends[0] - right[np.arange(len(state)), state].sum()
    cost += sum(prices[jump] for jump in itertools.pairwise(states))
    coarse = rng.uniform(0.0, block.ends[0], 1)
    best = reference.least_error_by_kind(*problem, block.ends[0], log_density, pi, Q, prices, coarse)
    assert cost <= best + 2e-3 * block.ends[0]


def test_entries_on_the_day_of_a_visit():
    """Gaps of 0: a visit and a death at one time, in the path, the draws and the expectations."""
    process = process_of([[0, 1.0, 0.2], [0.5, 0, 1.0], [0, 0, 0]], [0.6, 0.4, 0])
    block = one_sequence([0.0, 2.0, 2.0], [SNAPSHOT, SNAPSHOT, ENTRY], 2.0, [0, 1, 2])
    for ask in (lambda: decoded(process, block), lambda: drawn_once(process, block)):
        states, starts, rows = ask()
        assert states[0] == 0 and states[-1] == 2 and states[-2] == 1
        assert starts[-1] == 2.0 and rows[-1] == 2 and rows[-2] <= 1
        assert reference.breaks_kind(states, starts, rows, block.tau, block.kinds) is None
    assert np.all(np.diff(decoded(process, block)[1]) > 0)
    # planted: the jump of a row kept as an event of its own too, which then stands before the visit of that instant
    sequences = Sequences.hold(ENGINE, joined([replace(block, allowed=np.ones((3, 3), bool))] * 200))
    handle = sequences.begin_paths(np.random.default_rng(0), 2)
    for k in range(40):
        handle, _ = sequences.draw(handle, process, fresh=k == 0)
    dwells = sequences.fetch_paths(handle)
    assert np.all(np.diff(dwells.starts)[np.diff(dwells.sequence) == 0] > 0)
    jumps = process.rate_matrix * expected(process, block).integrals
    assert jumps[1, 2] == pytest.approx(1.0, rel=1e-12) and jumps[0, 2] == pytest.approx(0.0, abs=1e-12)
    at_once = one_sequence([0.0, 0.0], [SNAPSHOT, ENTRY], 1.0, [1, 2])
    states, starts, rows = decoded(process, at_once)
    assert (states.tolist(), starts.tolist(), rows.tolist()) == ([1, 2], [0.0, 0.0], [0, 1])


def drawn_once(process, block):
    sequences = Sequences.hold(ENGINE, block)
    handle = sequences.begin_paths(np.random.default_rng(0), 2)
    for k in range(10):
        handle, _ = sequences.draw(handle, process, fresh=k == 0)
    dwells = sequences.fetch_paths(handle)
    return dwells.states, dwells.starts, dwells.rows


# ------------------------------------------------------------------------ EM


def simulated(rng, process, n, end):
    """Paths of a process: states and times of the jumps of each."""
    Q, M = process.rate_matrix, len(process.rates)
    for _ in range(n):
        s, t = int(rng.choice(M, p=process.initial_probs)), 0.0
        states, times = [s], [0.0]
        while process.rates[s] > 0 and (t := t + rng.exponential() / process.rates[s]) < end:
            s = int(rng.choice(M, p=process.transition_probs[s]))
            states.append(s)
            times.append(t)
        yield np.array(states), np.array(times)
        assert Q.shape == (M, M)


ILL = process_of([[0, 0.5, 0.1], [0.3, 0, 0.4], [0, 0, 0]], [0.7, 0.3, 0.0])
MOVES = np.array([[False, True, True], [True, False, True], [False, False, False]])
FREE = jm.Structure(allowed=MOVES).constraints(np.arange(3))
START = process_of([[0, 1.0, 1.0], [1.0, 0, 1.0], [0, 0, 0]], [1 / 3] * 3)


def test_exact_times_give_events_over_exposure(rng):
    """One step of EM from anywhere, and where it ends."""
    end, blocks, events, exposure = 6.0, [], np.zeros((3, 3)), np.zeros(3)
    for states, times in simulated(rng, ILL, 60, end):
        last = [*times, end] if states[-1] < 2 else times  # a last row says that the state held on
        shown = [*states, states[-1]] if states[-1] < 2 else states
        kinds = [SNAPSHOT, *[TRANSITION] * (len(last) - 1)]
        blocks.append(one_sequence(last, kinds, last[-1], shown, np.ones((len(last), 3), bool)))
        np.add.at(events, (states[:-1], states[1:]), 1.0)
        np.add.at(exposure, shown[:-1], np.diff(last))
    sequences = Sequences.hold(ENGINE, joined(blocks))
    exact = events[MOVES] / np.repeat(exposure, MOVES.sum(axis=1))
    step = maximise(START, sequences.expect(START), FREE)
    np.testing.assert_allclose(step.rate_matrix[MOVES], exact, rtol=1e-12)
    task = Task(sequences, FREE, np.array([0.0]))
    for accelerate in (True, False):
        run = climb(task, START, 50, 1e-10, accelerate)
        assert run.converged and len(run.history) < 6
        np.testing.assert_allclose(run.end.process.rate_matrix[MOVES], exact, rtol=1e-6)


def test_deaths_by_em_and_by_plain_maximisation(rng):
    """Visits, and deaths known to the day; EM against Nelder and Mead on the product of exponentials."""
    blocks, end = [], 5.0
    for states, times in simulated(rng, ILL, 15, end):
        visits = np.arange(0.0, end + 1.0)
        dead = times[-1] if states[-1] == 2 else np.inf
        visits = visits[visits < dead]
        shown = states[np.searchsorted(times, visits, side="right") - 1]
        kinds = [SNAPSHOT] * len(visits)
        if np.isfinite(dead):
            visits, shown, kinds = [*visits, dead], [*shown, 2], [*kinds, ENTRY]
        allowed = np.ones((len(visits), 3), bool)
        values = np.array(shown, float)
        if len(values) > 2:  # one visit of which only this is known: alive
            values[1], allowed[1] = np.nan, [True, True, False]
        blocks.append(one_sequence(visits, kinds, visits[-1], values, allowed))

    def loss(log_rates):
        Q = np.zeros((3, 3))
        Q[MOVES] = np.exp(log_rates)
        np.fill_diagonal(Q, -Q.sum(axis=1))
        total = 0.0
        for block in blocks:
            shown = np.where(np.isnan(block.x), 1.0, block.x == np.arange(3)) * block.allowed
            total -= math.log(
                reference.likelihood_by_kind(block.tau, block.kinds, block.ends[0], shown, np.full(3, 1 / 3), Q)
            )
        return total

    sequences = Sequences.hold(ENGINE, joined(blocks))
    run = climb(Task(sequences, FREE, np.array([0.0])), START, 300, 1e-12)
    log_liks = np.array(run.history.values)
    assert np.all(np.diff(log_liks) >= -1e-9 * np.abs(log_liks[1:]))
    plain = climb(Task(sequences, FREE, np.array([0.0])), START, 100, 0.0, accelerate=False)
    log_liks = np.array(plain.history.values)
    assert np.all(np.diff(log_liks) >= -1e-12 * np.abs(log_liks[1:]))
    told = minimize(loss, np.log([0.5, 0.1, 0.3, 0.4]), method="L-BFGS-B", options={"ftol": 1e-12})
    found = run.end.process.rate_matrix[MOVES]
    assert loss(np.log(found)) <= told.fun + 1e-6
    np.testing.assert_allclose(found, np.exp(told.x), rtol=2e-3)


# ---------------------------------------------------------------- from a panel


def seen_panel(rng, n=40, end=6.0, how="transition"):
    """Paths of ILL as one would write them down: every move with its time, or visits and the times of deaths."""
    ids, at, shown, kinds, windows = [], [], [], [], []
    for i, (states, times) in enumerate(simulated(rng, ILL, n, end)):
        dead = times[-1] if states[-1] == 2 else np.inf
        if how == "transition":
            rows = [(t, s, "transition") for s, t in zip(states, times, strict=True)]
            if states[-1] < 2:
                rows.append((end, states[-1], "transition"))
        else:
            visits = np.arange(0.0, min(end, dead), 0.9)
            rows = [(t, states[np.searchsorted(times, t, side="right") - 1], "snapshot") for t in visits]
            if dead < np.inf:
                rows.append((dead, 2, "entry"))
        for time, state, kind in rows:
            ids.append(i)
            at.append(time)
            shown.append(("well", "ill", "dead")[state])
            kinds.append(kind)
            windows.append(rows[-1][0])
    return jm.Panel.from_arrays(at, shown, ids, kinds=kinds, end_times=windows)


STAGES = jm.Structure(allowed={"well": ["ill", "dead"], "ill": ["well", "dead"], "dead": []})
LABELS = ["well", "ill", "dead"]


def test_a_panel_of_exact_times_through_em_and_gibbs(rng):
    """Events over exposure, to 1e-6; and the gamma posterior that these make, in closed form."""
    panel = seen_panel(rng)
    states = panel.values[:, 0].astype(int)
    names = panel.categories[0].tolist()
    state = np.array([LABELS.index(names[s]) for s in states])
    events, exposure = np.zeros((3, 3)), np.zeros(3)
    for k in range(panel.n_observations - 1):
        if panel.sequence_index[k] == panel.sequence_index[k + 1]:
            events[state[k], state[k + 1]] += state[k] != state[k + 1]
            exposure[state[k]] += panel.times[k + 1] - panel.times[k]
    model = jm.comparators.EM(emission="direct", states=LABELS, structure=STAGES).fit(panel)
    assert model.converged_
    exact = events[MOVES] / np.repeat(exposure, MOVES.sum(axis=1))
    np.testing.assert_allclose(model.process_.rate_matrix[MOVES], exact, rtol=1e-6)
    sampler = jm.comparators.Gibbs(
        emission="direct", states=LABELS, structure=STAGES, n_samples=800, burn_in=2, thin=1, prior_dwell_time=1.0
    ).fit(panel)
    shape, rate = 1.0 + events.sum(axis=1)[:2], 1.0 + exposure[:2]
    draws = sampler.samples_.rates[:, :2]
    error = (np.sqrt(shape) / rate).max() / math.sqrt(800)
    np.testing.assert_allclose(draws.mean(axis=0), shape / rate, atol=4.5 * error)
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt(shape) / rate, rtol=0.15)
    assert set(sampler.trajectories_.start_times.tolist()) <= set(panel.times.tolist())


def test_gibbs_and_em_agree_on_deaths(rng):
    """A long panel: the posterior lies around the maximum of the likelihood."""
    panel = seen_panel(rng, n=300, how="entry")
    model = jm.comparators.EM(emission="direct", states=LABELS, structure=STAGES).fit(panel)
    sampler = jm.comparators.Gibbs(
        emission="direct", states=LABELS, structure=STAGES, n_samples=150, burn_in=50, thin=2
    ).fit(panel)
    Q = sampler.samples_.rates[:, :, None] * sampler.samples_.transition_probs
    z = (Q.mean(axis=0) - model.process_.rate_matrix)[MOVES] / Q.std(axis=0)[MOVES]
    assert np.all(np.abs(z) < 1.0)  # planted: forced jumps not counted, |z| of 70 and more for deaths


def test_read_outs_between_rows_and_at_them():
    """Inside a barred gap nothing changes; at a pinned row the new state is there already, just before it the old one.

    Planted: rows put into a barred gap as snapshots, a request for the time of two rows answered by the first.
    """
    process = jm.Process.from_generator(
        {"well": {"ill": 0.5, "dead": 0.1}, "ill": {"well": 0.3, "dead": 0.4}}, [0.7, 0.3, 0.0]
    )
    panel = jm.Panel.from_arrays(
        [0.0, 2.0, 5.0, 5.0], ["well", "ill", "ill", "dead"], ["p"] * 4,
        kinds=["snapshot", "transition", "snapshot", "entry"],
    )  # fmt: skip
    model = jm.JumpMeans.from_process(process)
    probs = model.predict_proba(panel, at={"p": [0.0, 0.7, 1.999, 2.0, 4.999999, 5.0]})
    well, ill, dead = np.eye(3)
    np.testing.assert_allclose(probs[[0, 1, 2, 3]], [well, well, well, ill], atol=1e-12)
    np.testing.assert_allclose(probs[4], ill, atol=1e-5)
    np.testing.assert_allclose(probs[5], dead, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(panel), [well, ill, ill, dead], atol=1e-12)
    Q = process.rate_matrix
    exact = reference.likelihood_by_kind(
        np.array([0.0, 2.0, 5.0, 5.0]), [0, 1, 0, 2], 5.0, np.eye(3)[[0, 1, 1, 2]], [0.7, 0.3, 0.0], Q
    )
    assert model.log_likelihood(panel) == pytest.approx(math.log(exact), rel=1e-12)
    path = model.decode(panel, criterion="time")
    assert path.start_times.tolist() == [0.0, 2.0, 5.0]
    assert path.states.tolist() == ["well", "ill", "dead"]


def test_sets_and_known_states_of_a_hidden_panel():
    """A row known to be in one of two states, one known outright, beside noisy values; against the products."""
    process = jm.Process(
        [1.0, 0.5, 2.0], [[0, 0.6, 0.4], [0.5, 0, 0.5], [0.1, 0.9, 0]], [0.2, 0.3, 0.5], Gaussian([0, 1, 2], sds=0.8)
    )
    times, x = np.array([0.3, 1.0, 1.4, 3.0]), np.array([0.2, np.nan, 1.4, 0.4])
    panel = jm.Panel.from_arrays(
        times, x, np.zeros(4, int), true_states=[None, "low", None, 2], sets={"low": [0, 1]},
        kinds=["snapshot", "snapshot", "entry", "transition"], start_times=np.zeros(4), end_times=np.full(4, 3.5),
    )  # fmt: skip
    lik = np.exp(process.emission.log_density(x[:, None]))
    lik[1, 2] = lik[3, 0] = lik[3, 1] = 0.0
    pi, Q = process.initial_probs, process.rate_matrix
    exact = reference.likelihood_by_kind(times, [0, 0, 2, 1], 3.5, lik, pi, Q)
    model = jm.JumpMeans.from_process(process)
    assert model.log_likelihood(panel) == pytest.approx(math.log(exact), rel=1e-12)
    probs = model.predict_proba(panel)
    assert probs[1, 2] == 0.0 and probs[3].tolist() == [0.0, 0.0, 1.0]
