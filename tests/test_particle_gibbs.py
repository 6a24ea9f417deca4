"""The infinite model: particle Gibbs against matrix exponentials, laws of its measures and Geweke's test."""

import dataclasses

import numpy as np
import pytest
from scipy.linalg import expm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import jumpmeans as jm
from jumpmeans.comparators import ParticleGibbs
from jumpmeans.comparators.particle_chain import (
    HyperPriors,
    InfinitePaths,
    InfiniteSample,
    ParticleChain,
    carry_states,
    from_measures,
    log_beta_draw,
    to_measures,
)
from jumpmeans.emissions import Categorical, Gaussian
from jumpmeans.emissions.categorical import SymbolPrior
from jumpmeans.emissions.gaussian import NormalPrior
from jumpmeans.engines import Threads
from jumpmeans.kernels.particles import beta_draw, draw_ancestors, draw_tables, give_birth, sweep_paths
from jumpmeans.passes import Block, Sequences

ENGINE = Threads(1)


def batch_se(x, n_batches=40):
    """(k,) standard errors of the means of autocorrelated (n, k) draws, by the means of batches."""
    size = len(x) // n_batches
    means = x[: size * n_batches].reshape(n_batches, size, -1).mean(axis=1)
    return means.std(axis=0, ddof=1) / np.sqrt(n_batches)


# --------------------------------------------------------------------- kernel


def test_paths_have_the_exact_posterior(rng):
    """With nothing left outside the atoms the model is a finite process: rows as by matrix exponentials."""
    times, end, S, M = np.array([0.4, 1.0, 2.5]), 3.0, 4000, 3
    Q = np.array([[0, 1.4, 0.6], [0.1, 0, 0.4], [1.0, 0, 0]])
    pi, rho = np.array([0.2, 0.5, 0.3]), np.array([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]])
    sample = InfiniteSample(
        np.array([1.0, 1.0, 1.0, 0.0]), np.hstack([Q, np.zeros((M, 1))]), np.append(pi, 0.0), Categorical(rho), 1.0, 1.0
    )
    x = np.array([0.0, np.nan, 1.0])
    ids = np.repeat(np.arange(S), 3)
    panel = jm.Panel.from_arrays(
        np.tile(times, S), np.tile(x, S), ids, start_times=np.zeros(3 * S), end_times=np.full(3 * S, end)
    )
    sequences = Block.of(panel, panel.values)
    dwells, states, starts = np.arange(S + 1), np.zeros(S, np.int32), np.zeros(S)
    for _ in range(12):
        m, dwells, states, starts = sweep_paths(
            to_measures(sample, SymbolPrior(np.arange(2))), sequences.tau, np.tile(x, S), sequences.offsets,
            sequences.ends, dwells, states, starts, 4, 0, np.ones(2), rng,
        )  # fmt: skip
    assert m.size[0] == M
    G = Q - np.diag(Q.sum(axis=1))
    lik = np.array([rho[:, 0], np.ones(M), rho[:, 1]])
    ahead, back = [pi @ expm(G * 0.4)], [np.ones(M)]
    for k in (1, 2):
        ahead.append((ahead[-1] * lik[k - 1]) @ expm(G * (times[k] - times[k - 1])))
    for k in (2, 1):
        back.insert(0, expm(G * (times[k] - times[k - 1])) @ (lik[k] * back[0]))
    posterior = np.array([a * b * c for a, b, c in zip(ahead, lik, back, strict=True)])
    posterior /= posterior.sum(axis=1, keepdims=True)
    at_end = (posterior[2] @ expm(G * (end - times[2]))).ravel()
    read = np.array([*times, end])
    found = np.array(
        [
            states[dwells[i] + np.searchsorted(starts[dwells[i] : dwells[i + 1]], read, side="right") - 1]
            for i in range(S)
        ]
    )
    seen = np.array([np.bincount(found[:, k], minlength=M) / S for k in range(4)])
    np.testing.assert_allclose(seen, np.vstack([posterior, at_end]), atol=4 * 0.5 / np.sqrt(S))
    assert np.all(states[1:] != states[:-1], where=np.isin(np.arange(1, len(states)), dwells, invert=True))


def test_ancestors_are_drawn_by_weight(rng):
    """Frequencies of the ancestors; the current path goes on from a particle in its own state, if only from itself."""
    w, state = np.array([1.0, 0.0, 3.0, 4.0]), np.array([7, 7, 5, 7])
    drawn, ancestor = [], np.empty(4, np.int64)
    for _ in range(4000):
        draw_ancestors(w, 4, state, np.empty(4), ancestor, rng)
        drawn.append(ancestor.copy())
    drawn = np.array(drawn)
    free = np.bincount(drawn[:, :3].ravel(), minlength=4) / 12_000
    np.testing.assert_allclose(free, w / 8, atol=4 * 0.5 / np.sqrt(12_000))
    np.testing.assert_allclose(np.bincount(drawn[:, 3], minlength=4) / 4000, [0.2, 0, 0, 0.8], atol=0.03)
    # a value so far off that its likelihood is 0 in floating point
    draw_ancestors(np.array([0.0, 1.0, 0.0]), 3, np.array([1, 2, 1]), np.empty(3), ancestor[:3], rng)
    assert ancestor[:3].tolist() == [1, 1, 2]


def test_births_split_what_is_left(rng):
    """A new state takes its mass from the rest of every row; the law of its share of ω_* is Beta(1, α_0)."""
    alpha, shares, own = 3.0, [], []
    for _ in range(4000):
        m = to_measures(
            InfiniteSample(
                np.array([0.5, 2.0]),
                np.array([[0.0, 0.7]]),
                np.array([1.0, 0.4]),
                Categorical([[0.5, 0.5]]),
                alpha,
                2.0,
            ),
            SymbolPrior(np.arange(2)),
        )
        before = m.rows.sum(axis=1) + m.left
        m = give_birth(m, 1, 0, np.ones(2), rng)
        assert m.size[0] == 2
        np.testing.assert_allclose((m.rows.sum(axis=1) + m.left)[:2], before[:2])
        np.testing.assert_allclose(m.base[1] + m.scalars[0], 2.0)
        shares.append(m.base[1] / 2.0)
        own.append([m.rows[1, 1] / 0.7, m.rows[0, 1] / 0.4, m.rows[2, 0], m.left[2]])
    b, own = np.array(shares), np.array(own)
    assert abs(b.mean() - 1 / (1 + alpha)) < 4 * b.std() / np.sqrt(len(b))
    # E of Beta(2b + 1, 2(1 - b)) in the row that was left, of Beta(2b, 2(1 - b)) in the other; Gamma(ω, γ) in its own
    for k, exact in enumerate([(2 * b + 1) / 3, b, np.full(len(b), 0.25), (1 - b)]):
        assert abs((own[:, k] - exact).mean()) < 4 * own[:, k].std() / np.sqrt(len(b))


def test_room_for_any_number_of_states(rng):
    """A concentration so high that nearly every jump finds a new state: the arrays grow, masses stay."""
    n, one = 40, SymbolPrior(np.arange(1))
    panel = jm.Panel.from_arrays(np.arange(n, dtype=float), np.zeros(n), np.zeros(n, int))
    sequences = Block.of(panel, np.zeros((n, 1)))
    sample = InfiniteSample(
        np.array([0.1, 900.0]), np.array([[0.0, 20.0]]), np.array([1.0, 1.0]), Categorical([[1.0]]), 900.0, 30.0
    )
    paths = InfinitePaths.from_rows(sequences, np.zeros(n, np.int64))
    m, dwells, states, starts = sweep_paths(
        to_measures(sample, one), sequences.tau, np.zeros(n), sequences.offsets, sequences.ends, paths.dwells,
        paths.states, paths.starts, 3, 0, np.ones(1), rng,
    )  # fmt: skip
    M = m.size[0]
    assert M > 300 and states.max() < M
    np.testing.assert_allclose(m.rows[1].sum() + m.left[1], 20.0)
    np.testing.assert_allclose(m.rows[1 : M + 1].sum(axis=1) + m.left[1 : M + 1], m.exits[:M])
    np.testing.assert_allclose(m.base.sum() + m.scalars[0], 900.1)
    _, kept = InfinitePaths.of(sequences, dwells, states, starts)
    cut = from_measures(m, kept, sample, one)
    assert cut.n_states == len(np.unique(states)) < M
    np.testing.assert_allclose(cut.base.sum(), 900.1)
    np.testing.assert_allclose(cut.rates.sum(axis=1), m.exits[kept])


def test_small_draws(rng):
    """Betas and tables whose parameters are far below what a gamma draw can show."""
    for a, b in ((0.3, 2.0), (1e-3, 2e-3), (1e-320, 2e-320)):
        draws = np.array([beta_draw(a, b, rng) for _ in range(4000)])
        assert np.isfinite(draws).all()
        assert abs(draws.mean() - a / (a + b)) < 4 * 0.5 / np.sqrt(4000)
    assert beta_draw(0.0, 1.0, rng) == 0.0 and beta_draw(1.0, 0.0, rng) == 1.0
    logs = np.array([log_beta_draw(2.0, 3, rng) for _ in range(4000)])
    assert abs(np.exp(logs).mean() - 0.4) < 0.02
    assert np.isfinite([log_beta_draw(1e-6, 3, rng) for _ in range(100)]).all()
    tables = np.array(
        [draw_tables(np.array([[5.0, 0.0], [1.0, 40.0]]), np.array([0.7, 2.0]), rng) for _ in range(4000)]
    )
    exact = [[sum(0.7 / (0.7 + k) for k in range(5)), 0.0], [1.0, sum(2.0 / (2.0 + k) for k in range(40))]]
    np.testing.assert_allclose(tables.mean(axis=0), exact, atol=0.12)


# --------------------------------------------------------------------- Geweke

TIMES, ENDS = [np.array([0.0, 0.5, 1.4]), np.array([0.3, 1.0, 1.1, 2.0])], [1.7, 2.0]
SEEN = np.array([True, False, True, True, True, True, True])
HYPER = HyperPriors(None, None, (4.0, 2.0), (4.0, 4.0))
N_ATOMS = 100  # of the model itself; what is beyond has a share of some 1e-15


def small_panel():
    return jm.Panel.from_arrays(
        np.concatenate(TIMES), np.zeros(7), [0, 0, 0, 1, 1, 1, 1], start_times=np.zeros(7),
        end_times=np.repeat(ENDS, [3, 4]),
    )  # fmt: skip


def prior_draw(prior, rng):
    """Measures, paths and row states from the model itself, by stick-breaking, in plain Python."""
    alpha = rng.gamma(HYPER.concentration_prior[0]) / HYPER.concentration_prior[1]
    gamma = rng.gamma(HYPER.time_prior[0]) / HYPER.time_prior[1]
    sticks = rng.beta(1.0, alpha, N_ATOMS)
    omega = rng.gamma(alpha) * sticks * np.cumprod(np.append(1.0, 1.0 - sticks[:-1]))
    log_first = np.log(rng.gamma(omega + 1.0)) + np.log(rng.random(N_ATOMS)) / np.maximum(omega, 1e-300)
    first = np.exp(log_first - log_first.max())  # only its shares matter, and it may be too small for a number
    rows, theta = {}, {}

    def draw(masses):
        return min(np.searchsorted(np.cumsum(masses), rng.random() * masses.sum(), side="right"), N_ATOMS - 1)

    def visit(s):
        if s not in rows:
            rows[s] = rng.gamma(omega) / gamma
            rows[s][s] = 0.0  # a jump to itself cannot be seen
            if isinstance(prior, SymbolPrior):
                theta[s] = rng.dirichlet(np.ones(len(prior.symbols)))
            else:
                variance = prior.scale / rng.gamma(prior.shape)
                theta[s] = np.array([rng.normal(prior.mean, np.sqrt(variance / prior.size)), np.sqrt(variance)])
        return rows[s]

    dwells, states, starts = [0], [], []
    for end in ENDS:
        s, t = draw(first), 0.0
        while t < end:
            states.append(s)
            starts.append(t)
            rate = visit(s).sum()
            t += rng.exponential() / rate if rate > 1e-290 else np.inf
            if t < end:
                s = draw(rows[s])
        dwells.append(len(states))
    used, codes = np.unique(states, return_inverse=True)
    rest = np.setdiff1d(np.arange(N_ATOMS), used)
    table = np.array([theta[s] for s in used])
    sample = InfiniteSample(
        np.append(omega[used], omega[rest].sum()),
        np.array([np.append(rows[s][used], rows[s][rest].sum()) for s in used]),
        np.append(first[used], first[rest].sum()),
        Categorical(table) if isinstance(prior, SymbolPrior) else Gaussian(table[:, 0], table[:, 1]),
        alpha,
        gamma,
    )
    return sample, (np.array(dwells), codes.astype(np.int32), np.array(starts))


def draw_values(sample, row_states, rng):
    x = sample.emission.sample(row_states, rng)
    x[~SEEN] = np.nan
    return x


def functions(sample, paths, x):
    """Test functions that do not depend on the labels of the states."""
    rows, M = paths.row_states, sample.n_states
    if isinstance(sample.emission, Categorical):
        rho = sample.emission.probs
        fit = np.array([rho[r, int(v)] if v == v else np.nan for r, v in zip(rows, x, strict=True)])
        own = [x[3] == x[4], x[4] == x[6], (rho[rows] ** 2).sum(axis=1).mean()]
    else:
        mu, sd = sample.emission.means, sample.emission.sds
        fit = np.minimum(((x - mu[rows]) / sd[rows]) ** 2, 9.0)
        own = [np.tanh(x[3]), min(abs(x[3] - x[4]), 3.0), np.tanh(mu[rows[0]]), np.minimum(sd, 3.0).mean()]
    own += [np.nanmean(fit), fit[2], fit[6], rows[3] == rows[4]]
    rate = sample.rates.sum(axis=1)
    return np.array(
        [
            M, M**2, np.log1p(paths.jumps.sum()), np.log1p((paths.jumps**2).sum()), paths.jumps.sum() == 0,
            sample.base.sum(), np.sqrt(sample.base[-1]), sample.concentration, sample.prior_time,
            np.log1p(rate[rows[0]]), np.log1p(rate @ paths.time), rows[0] == rows[3], rows[3] == rows[6],
            sample.first[-1] / sample.first.sum(), np.sqrt(sample.rates[rows[0], -1]), (paths.time**2).sum(), *own,
        ],
        dtype=float,
    )  # fmt: skip


def geweke(prior, n, seed, n_particles=3):
    """z-scores of the successive-conditional against the marginal-conditional simulation."""
    rng = np.random.default_rng(seed)
    block = Block.of(small_panel(), np.zeros((7, 1)))
    independent, successive = [], []
    for _ in range(n):
        sample, path = prior_draw(prior, rng)
        paths, _ = InfinitePaths.of(block, *path)
        x = draw_values(sample, paths.row_states, rng)
        independent.append(functions(sample, paths, x))
    chain = ParticleChain(block, None, prior, HYPER, n_particles, paths, sample, rng)
    for _ in range(n):
        chain.block = dataclasses.replace(block, x=x[:, None])
        chain.held = ENGINE.hold([chain.block])
        chain.step()
        # looked at before the values are drawn anew: afterwards they would fit any path
        successive.append(functions(chain.sample, chain.paths, x))
        x = draw_values(chain.sample, chain.paths.row_states, chain.rng)
    independent, successive = np.array(independent), np.array(successive)
    error = np.hypot(independent.std(axis=0) / np.sqrt(n), batch_se(successive))
    return (successive.mean(axis=0) - independent.mean(axis=0)) / error


PRIORS = {"symbols": SymbolPrior(np.arange(3)), "normal": NormalPrior(0.5, 0.2, 4.0, 3.0)}


@pytest.mark.parametrize("family", list(PRIORS))
def test_geweke(family):
    """All steps together, with three particles only, so that a wrong step cannot hide behind many.

    Errors planted in a copy, and the largest |z| that this test gave them (symbols / normal): nothing left in the rows,
    so that no state is born, 67 / 67; η forgotten 24 / 21; diagonal kept in the shape of γ 21 / 16, in the Λ_j of ω_j
    15 / 14; a waiting time used whole by every particle 17 / 15; counts in place of tables 13 / 12; shape a + M - 1 for
    α_0 9 / 11; weights ignored in the last draw 3 / 7; current path never kept 3 / 6. Too weak for it and caught by the
    tests above: ancestors of any state (exact posterior); Beta(1, α_0 + 1), no 1 added in the row that was left, γ
    forgotten in a new row (births).
    """
    assert np.abs(geweke(PRIORS[family], 6000, seed=5)).max() < 4


@pytest.mark.slow
@pytest.mark.parametrize("family", list(PRIORS))
def test_geweke_at_length(family):
    assert np.abs(geweke(PRIORS[family], 80_000, seed=6)).max() < 4


# ------------------------------------------------------------------ estimator


@pytest.fixture(scope="module")
def easy():
    """Three hidden states, each with a symbol of its own most of the time, and slow jumps."""
    process = jm.Process(
        [0.15, 0.2, 0.25], [[0, 0.8, 0.2], [0.5, 0, 0.5], [0.9, 0.1, 0]],
        emission=Categorical([[0.94, 0.03, 0.03], [0.03, 0.94, 0.03], [0.03, 0.03, 0.94]], ["a", "b", "c"]),
    )  # fmt: skip
    panel, truth = jm.simulate(process, 40, 20, mean_gap=0.7, random_state=2)
    masked, held = jm.hold_out(panel, 0.25, random_state=1)
    return process, panel, truth, masked, held


@pytest.fixture(scope="module")
def fitted(easy):
    return ParticleGibbs(n_particles=50, n_iter=80, burn_in=40, engine=ENGINE).fit(easy[3])


def test_recovers_an_easy_process(easy, fitted):
    process, panel, truth, masked, held = easy
    sequences = Sequences.of(ENGINE, masked, process.emission.encode(masked))
    best = process.emission.expected(sequences.smooth(process)[0])
    limit = jm.reconstruction_error(masked.to_caller_order(best), held)
    assert jm.reconstruction_error(fitted.predict_value(masked), held) < limit + 0.03
    assert 3 <= fitted.n_states_ <= 5
    assert fitted.n_states_history_.shape == (80,) and len(fitted.samples_) == 40
    assert fitted.n_states_history_[-1] == len(fitted.states_) == fitted.samples_[-1].n_states
    true_states = truth.at(panel.times, panel.ids[panel.sequence_index])
    drawn = fitted.trajectories_.at(panel.times, panel.ids[panel.sequence_index])
    assert np.mean(fitted.process_.emission.state_values()[drawn] == np.array(["a", "b", "c"])[true_states]) > 0.9
    assert len(fitted.history_) == fitted.n_iter_ == 80 and np.isfinite(fitted.history_.values).all()


def test_readouts(easy, fitted):
    masked = easy[3]
    chances = fitted.predict_value_proba(masked)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    # by hand, sample by sample: the states in use and one more for all others
    tables = []
    sequences = Sequences.of(ENGINE, masked, fitted.process_.emission.encode(masked))
    for sample in fitted.samples_:
        M = sample.n_states
        Q = np.zeros((M + 1, M + 1))
        Q[:M], Q[M, :M] = sample.rates, sample.base[:M] / sample.prior_time
        rho = np.vstack([sample.emission.probs, np.full(3, 1 / 3)])
        rates = Q.sum(axis=1)
        first = sample.first / sample.first.sum()
        one = jm.Process(rates, Q / rates[:, None], first, Categorical(rho, ["a", "b", "c"]))
        tables.append(sequences.smooth(one)[0] @ rho)
    np.testing.assert_allclose(chances, masked.to_caller_order(np.mean(tables, axis=0)), rtol=1e-9)
    np.testing.assert_array_equal(
        fitted.predict_value(masked), np.array(["a", "b", "c"], object)[chances.argmax(axis=1)]
    )
    probs = fitted.predict_proba(masked)
    assert probs.shape == (masked.n_observations, len(fitted.states_))
    np.testing.assert_array_equal(fitted.predict(masked), probs.argmax(axis=1))
    assert (
        np.mean(fitted.decode(masked).at(masked.times, masked.ids[masked.sequence_index]) == fitted.predict(masked))
        > 0.9
    )


def test_same_seed_same_draws(easy):
    masked = easy[3]
    a, b, c = (
        ParticleGibbs(n_particles=10, n_iter=6, burn_in=3, random_state=seed, engine=ENGINE).fit(masked)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(a.history_.values, b.history_.values)
    np.testing.assert_array_equal(a.trajectories_.start_times, b.trajectories_.start_times)
    assert not np.array_equal(a.history_.values, c.history_.values)


def test_unit_of_time_does_not_matter(easy):
    masked = easy[3]
    other = dataclasses.replace(
        masked, times=masked.times * 64, start_times=masked.start_times * 64, end_times=masked.end_times * 64
    )
    a, b = (ParticleGibbs(n_particles=10, n_iter=5, burn_in=3, engine=ENGINE).fit(p) for p in (masked, other))
    np.testing.assert_array_equal(a.n_states_history_, b.n_states_history_)
    np.testing.assert_allclose(b.process_.rates * 64, a.process_.rates, rtol=1e-9)


def test_a_weight_stands_for_copies(easy):
    panel = easy[3].select(range(3))
    heavy = dataclasses.replace(panel, weights=np.array([1.0, 3.0, 2.0]))
    a, b = (
        ParticleGibbs(n_particles=10, n_iter=5, burn_in=3, engine=ENGINE).fit(p)
        for p in (heavy, panel.select([0, 1, 1, 1, 2, 2]))
    )
    np.testing.assert_array_equal(a.history_.values, b.history_.values)
    np.testing.assert_array_equal(a.trajectories_.time_in_state(), b.trajectories_.time_in_state()[[0, 1, 4]])


def test_measurements_and_odd_panels(rng):
    """Gaussian values, a sequence without any, one of a single row, wide windows, fixed hyperparameters."""
    x = np.array([0.0, 0.3, 9.8, 10.1, np.nan, np.nan, np.nan, 5.0])
    panel = jm.Panel.from_arrays(
        [0.5, 1, 2, 3, 4, 0, 1, 2], x, [0, 0, 0, 0, 0, 1, 1, 2], start_times=[0] * 8, end_times=[5] * 5 + [1, 1, 2]
    )
    model = ParticleGibbs(
        emission="gaussian", n_particles=10, n_iter=30, burn_in=10, concentration=1.5, prior_time=2.0, engine=ENGINE
    ).fit(panel)
    assert {s.concentration for s in model.samples_} == {1.5} and {s.prior_time for s in model.samples_} == {2.0}
    values = model.predict_value(panel)
    assert np.isfinite(values).all() and values[0] < 5 < values[3]
    assert model.trajectories_.end_times.tolist() == [5, 1, 2]
    np.testing.assert_array_equal(model.process_.emission.means, np.sort(model.process_.emission.means))
    with pytest.raises(ValueError, match="predict_value_proba needs one column of labels"):
        model.predict_value_proba(panel)
    np.testing.assert_array_equal(
        carry_states(np.array([np.nan, 1, np.nan, 2, np.nan]), np.array([0, 3, 4, 5])), [1, 1, 1, 2, 0]
    )


def test_kernels_are_compiled_once(easy):
    for emission in ("categorical", "gaussian"):
        panel = jm.Panel.from_arrays([0.0, 1, 2], [0, 1, 1], [0, 0, 0])
        ParticleGibbs(emission=emission, n_particles=3, n_iter=2, burn_in=0, engine=ENGINE).fit(panel)
    assert len(sweep_paths.signatures) == 1


def test_refusals(easy):
    masked = easy[3]
    heavy = dataclasses.replace(masked, weights=np.full(40, 0.5))
    wide = jm.Panel.from_arrays([0, 1.0], [[1, 2], [3, 4]], [0, 0])
    nothing = jm.Panel.from_arrays([0, 1.0], [np.nan, np.nan], [0, 0])
    for options, data, message in (
        ({}, heavy, "weights must be whole numbers for ParticleGibbs, got 0.5 for sequence 0, row 0"),
        ({}, wide, "ParticleGibbs needs one value column, got 2"),
        ({}, nothing, "must hold at least one symbol"),
        ({"emission": "gaussian"}, nothing, "must hold at least one value, got none"),
        (
            {"emission": "direct"},
            masked,
            "emission must be 'categorical', 'gaussian' or 'lognormal' for ParticleGibbs, got 'direct'",
        ),
        ({"emission": "wrong"}, masked, "emission must be one of"),
        ({"n_particles": 1}, masked, "n_particles must be an integer from 2 to 1000000, got 1"),
        ({"n_iter": 0}, masked, "n_iter must be an integer from 1 to 1000000000, got 0"),
        ({"burn_in": 300}, masked, "burn_in must be below n_iter=300, got 300"),
        ({"concentration": -1.0}, masked, "concentration must be 'auto' or a finite number > 0, got -1.0"),
        # was 49 s, then a MemoryError
        ({"concentration": 1e6}, masked, "concentration must be at most 1000, got 1000000.0: it would ask for more"),
        ({"prior_time": "long"}, masked, "prior_time must be 'auto' or a number from .*, got 'long'"),
    ):
        with pytest.raises(ValueError, match=message):
            ParticleGibbs(**{"engine": ENGINE, **options}).fit(data)
    with pytest.raises(NotFittedError, match="this ParticleGibbs must be fitted first"):
        ParticleGibbs().predict_value(masked)
    assert clone(ParticleGibbs(n_particles=7)).get_params()["n_particles"] == 7
