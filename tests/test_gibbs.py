"""The Gibbs sampler against enumeration, numerical integration and Geweke's joint-distribution test."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import jumpmeans as jm
from jumpmeans.comparators import Gibbs
from jumpmeans.comparators.diagnostics import bulk_ess, effective_size, split_r_hat
from jumpmeans.comparators.gibbs import Chain, Priors
from jumpmeans.comparators.samples import match_order
from jumpmeans.emissions import Categorical, Gaussian, Record
from jumpmeans.emissions.categorical import SymbolPrior
from jumpmeans.emissions.gaussian import NormalPrior
from jumpmeans.engines import Threads
from jumpmeans.kernels.uniformization import events_at_rows, sample_block
from jumpmeans.model.constraints import Constraints
from jumpmeans.passes import Block, Dwells, Sequences
from jumpmeans.passes.draw import Numbers, Paths

ENGINE = Threads(1)


def copies(times, n, end, values=0.0):
    """A panel of n equal sequences over [0, end]."""
    L = len(times)
    return jm.Panel.from_arrays(
        np.tile(times, n), np.tile(np.broadcast_to(values, L), n), np.repeat(np.arange(n), L),
        start_times=np.zeros(n * L), end_times=np.full(n * L, end),
    )  # fmt: skip


def batch_se(x, n_batches=40):
    """(k,) standard errors of the means of autocorrelated (n, k) draws, by the means of batches."""
    size = len(x) // n_batches
    means = x[: size * n_batches].reshape(n_batches, size, -1).mean(axis=1)
    return means.std(axis=0, ddof=1) / np.sqrt(n_batches)


# --------------------------------------------------------------------- kernel


def test_backward_samples_equal_enumeration(rng):
    """Chains at given events: frequencies of all M^n of them, one draw for each of many equal sequences."""
    M, n, S = 3, 4, 20_000
    tau, events = np.array([0.1, 0.4, 1.3, 2.0]), np.array([0.0, 0.3, 1.0, 1.7])
    lik = rng.uniform(0.1, 1.0, (4, M))
    lik[2, 1] = 0.0
    pi, B = rng.dirichlet(np.ones(M)), rng.dirichlet(np.ones(M), M)
    chains = np.array(list(itertools.product(range(M), repeat=n)))  # row k lies after event k
    probs = pi[chains[:, 0]] * B[chains[:, :-1], chains[:, 1:]].prod(axis=1) * lik[np.arange(n), chains].prod(axis=1)
    probs /= probs.sum()
    row_states, jumps, time, first = np.zeros(4 * S, np.int64), np.zeros((M, M)), np.zeros(M), np.zeros(M)
    dwells, states, starts, rows, where = sample_block(
        np.tile(tau, S), np.zeros(4 * S, np.int8), np.ones(4 * S, bool), np.arange(S + 1) * 4, np.full(S, 2.5),
        np.tile(lik, (S, 1)), pi, np.ones(M), B.T[None].copy(), 0.0,
        np.arange(S + 1) * n, np.zeros(n * S, np.int32), np.tile(events, S), np.zeros(n * S, np.int32), rng,
        row_states, jumps, time, first,
    )  # fmt: skip
    assert where[0] == -1
    drawn = row_states.reshape(S, 4) @ M ** np.arange(4)[::-1]
    counts = np.bincount(drawn, minlength=M**n)
    assert counts[probs == 0].sum() == 0
    expected = S * probs[probs > 0]
    statistic = ((counts[probs > 0] - expected) ** 2 / expected).sum()
    assert statistic < chi2.ppf(1 - 1e-4, (probs > 0).sum() - 1)
    # what the kernel says of its own paths
    assert first.sum() == S
    np.testing.assert_allclose(time.sum(), 2.5 * S)
    assert jumps.sum() == len(states) - S and np.all(np.diag(jumps) == 0)
    for i in range(50):
        path = slice(dwells[i], dwells[i + 1])
        found = np.searchsorted(starts[path], tau, side="right") - 1
        np.testing.assert_array_equal(states[path][found], row_states[4 * i : 4 * i + 4])
        np.testing.assert_array_equal(rows[path], np.searchsorted(tau, starts[path]))


def test_first_events_lie_at_the_rows():
    """Two sequences, of rows at 0, 2, 3 and at 1: the opening, then two events to each gap."""
    dwells, event = events_at_rows(np.array([0.0, 2.0, 3.0, 1.0]), np.zeros(4, np.int8), np.array([0, 3, 4]), 2)
    assert dwells.tolist() == [0, 5, 8]
    assert event.tolist() == [0.0, 1.0, 2.0, 2.5, 3.0, 0.0, 0.5, 1.0]


def exact_statistics(process, times, end, lik):
    """Posterior of the rows (L, M), and expected jumps and times in each state given all rows, by matrix exponentials.

    Jumps and times in a gap come from the integral of e^{Qu} e_i e_j' e^{Q(t-u)} (Van Loan's block matrix).
    """
    Q, M, L = process.rate_matrix, len(process.rates), len(times)
    gaps = np.diff(np.concatenate([[0.0], times, [end]]))
    ahead = [process.initial_probs @ expm(Q * gaps[0])]
    for k in range(1, L):
        ahead.append((ahead[-1] * lik[k - 1]) @ expm(Q * gaps[k]))
    back = [np.ones(M)]
    for k in range(L - 1, 0, -1):
        back.insert(0, expm(Q * gaps[k]) @ (back[0] * lik[k]))
    posterior = np.array([a * x * b for a, x, b in zip(ahead, lik, back, strict=True)])
    total = posterior[0].sum()
    jumps, time = np.zeros((M, M)), np.zeros(M)
    for k in range(L + 1):
        left = process.initial_probs if k == 0 else ahead[k - 1] * lik[k - 1]
        right = np.ones(M) if k == L else lik[k] * back[k]
        for i, j in itertools.product(range(M), repeat=2):
            E = np.zeros((M, M))
            E[i, j] = 1.0
            block = np.block([[Q, E], [np.zeros((M, M)), Q]])
            value = left @ expm(block * gaps[k])[:M, M:] @ right / total
            if i == j:
                time[i] += value
            else:
                jumps[i, j] += Q[i, j] * value
    return posterior / posterior.sum(axis=1, keepdims=True), jumps, time


def test_paths_have_the_exact_posterior(rng):
    """Many equal sequences under fixed parameters: rows, jumps and times as by matrix exponentials."""
    times, end, S = np.array([0.4, 1.0, 2.5]), 3.0, 6000
    process = jm.Process(
        [2.0, 0.5, 1.0], [[0, 0.7, 0.3], [0.2, 0, 0.8], [1.0, 0, 0]], [0.2, 0.5, 0.3],
        Categorical([[0.7, 0.3], [0.2, 0.8], [0.5, 0.5]]),
    )  # fmt: skip
    panel = copies(times, S, end, [0, 1, 1])
    block = Block.of(panel, process.emission.encode(panel))
    sequences = Sequences.hold(ENGINE, block)
    log_density = process.emission.log_density(block.x)
    handle = sequences.begin_paths(rng, 1)
    for k in range(25):
        handle, paths = sequences.draw(handle, process, fresh=k == 0)
    posterior, jumps, time = exact_statistics(process, times, end, np.exp(log_density[:3]))
    seen = np.array([np.bincount(paths.row_states[k::3], minlength=3) / S for k in range(3)])
    np.testing.assert_allclose(seen, posterior, atol=4 * 0.5 / np.sqrt(S))
    np.testing.assert_allclose(paths.time / S, time, atol=4 * 1.5 / np.sqrt(S))
    np.testing.assert_allclose(paths.jumps / S, jumps, atol=4 * 1.5 / np.sqrt(S))


# --------------------------------------------------------------------- Geweke

TIMES, END = np.array([0.2, 0.9, 1.5, 2.2]), 2.6
PROPOSALS = np.array([[0, 1, 1], [1, 0, 1], [0, 1, 0]], dtype=bool)
MISSING = 2  # of the rows of the first sequence
S_GEWEKE = 2


def prior_draw(priors, rng):
    """Parameters, paths and values from the model itself, in plain Python."""
    M = len(PROPOSALS)
    rates = rng.exponential(size=M) / priors.prior_time
    P = np.array([rng.dirichlet(np.where(row, 1.0, 1e-300)) * row for row in PROPOSALS])
    pi = rng.dirichlet(np.ones(M))
    prior = priors.columns[0]
    if isinstance(prior, NormalPrior):
        variance = prior.scale / rng.gamma(prior.shape, size=M)
        emission = Gaussian(prior.mean + rng.normal(size=M) * np.sqrt(variance / prior.size), np.sqrt(variance))
    else:
        emission = Categorical(rng.dirichlet(np.ones(2), M))
    process = jm.Process(rates, P / P.sum(axis=1, keepdims=True), pi, emission)
    dwells, states, starts = [0], [], []
    for _ in range(S_GEWEKE):
        s, t = rng.choice(M, p=pi), 0.0
        while t < END:
            states.append(s)
            starts.append(t)
            t += rng.exponential() / rates[s]
            s = rng.choice(M, p=process.transition_probs[s])
        dwells.append(len(states))
    states = np.array(states, np.int32)
    return process, Dwells(np.array(dwells), states, np.array(starts), np.zeros_like(states))


def describe(block):
    """Jumps, times and row states of explicit paths, in plain Python."""
    dwells, states, starts, _ = block
    jumps, time, row_states = np.zeros((3, 3)), np.zeros(3), []
    for i in range(S_GEWEKE):
        s, t = states[dwells[i] : dwells[i + 1]], starts[dwells[i] : dwells[i + 1]]
        np.add.at(jumps, (s[:-1], s[1:]), 1)
        np.add.at(time, s, np.diff(np.append(t, END)))
        row_states.extend(s[np.searchsorted(t, TIMES, side="right") - 1])
    return jumps, time, np.array(row_states)


def draw_values(process, row_states, rng):
    x = process.emission.sample(row_states, rng)
    x[MISSING] = np.nan
    return x


def functions(process, block, x):
    """Test functions: moments of parameters, paths and data, and how they hang together."""
    jumps, time, row_states = describe(block)
    column = process.emission.columns[0]
    if isinstance(column, Gaussian):
        own = np.tanh(column.means), np.minimum(column.sds, 3.0)
        data = [np.tanh(x[0, 0]), min(abs(x[0, 0] - x[1, 0]), 4.0), np.tanh(x[1, 0] * x[4, 0])]
    else:
        own = column.probs[:, 0], column.probs[:, 0] ** 2
        data = [float(x[0, 0] == x[1, 0]), float(x[4, 0] == x[7, 0]), column.probs[row_states[3], int(x[3, 0])]]
    return np.concatenate(
        [
            process.rates, process.rates**2, process.transition_probs[0, 1:], process.transition_probs[1, :1],
            process.transition_probs[[0, 1], [1, 0]] ** 2, process.initial_probs[:2] ** 2,
            process.initial_probs[:2], *own, np.log1p(jumps[PROPOSALS]), time, process.rates * time,
            [np.log1p(jumps.sum()), float(row_states[0] == row_states[1]), float(row_states[0] == row_states[4])], data,
        ]
    )  # fmt: skip


def geweke(prior, n, seed):
    """z-scores of the successive-conditional against the marginal-conditional simulation."""
    rng = np.random.default_rng(seed)
    priors = Priors(1.0, Constraints.of(PROPOSALS), (prior,))
    panel = copies(TIMES, S_GEWEKE, END)
    laid_out = Block.of(panel, np.zeros((len(TIMES) * S_GEWEKE, 1)))
    independent = []
    for _ in range(n):
        process, block = prior_draw(priors, rng)
        x = draw_values(process, describe(block)[2], rng)
        independent.append(functions(process, block, x))
    chain = Chain(None, None, process, [Paths(block, Numbers.of(rng.spawn(1)[0]))], rng)
    successive = []
    for _ in range(n):
        chain.sequences, chain.x = Sequences.hold(ENGINE, dataclasses.replace(laid_out, x=x)), x
        chain.step(priors)
        # looked at before the values are drawn anew: afterwards they would fit any path
        successive.append(functions(chain.process, chain.paths[0].dwells, x))
        x = draw_values(chain.process, chain.drawn.row_states, rng)
    independent, successive = np.array(independent), np.array(successive)
    error = np.hypot(independent.std(axis=0) / np.sqrt(n), batch_se(successive))
    return (successive.mean(axis=0) - independent.mean(axis=0)) / error


PRIORS = {"symbols": SymbolPrior(np.arange(2)), "normal": NormalPrior(0.5, 0.5, 4.0, 3.0)}


@pytest.mark.parametrize("family", list(PRIORS))
def test_geweke(family):
    """All steps together.

    Errors planted in a copy, and the largest |z| that this test gave them (symbols / normal): events left out at rate
    Ω - λ/2 9 / 9; events at rate 1.1 Ω under B = I + Q/Ω 8 / 11 (at 1.5 Ω the chain never came back); backward draws by
    rows of B 41 / 41; running dwell not counted 28 / 35; rates of shape 2 + jumps 35 / 34; rows of P ~ Dirichlet(2)
    7 / 7; first states uniform in the filter 11 / 11; shape + n for shape + n/2 of σ² - / 18.
    """
    assert np.abs(geweke(PRIORS[family], 6000, seed=11)).max() < 4


@pytest.mark.slow
@pytest.mark.parametrize("family", list(PRIORS))
def test_geweke_at_length(family):
    assert np.abs(geweke(PRIORS[family], 80_000, seed=12)).max() < 4


# ------------------------------------------------------------------ posterior


def test_posterior_equals_numerical_integration():
    """Two directly observed states: the posterior of both rates on a grid, by the closed form of e^{Qt}."""
    times, codes = np.array([0.0, 0.7, 1.5, 4.0, 4.3]), np.array([0, 0, 1, 1, 0])
    panel = jm.Panel.from_arrays(np.tile(times, 2), np.tile(codes, 2), np.repeat([0, 1], 5))
    a = np.exp(np.linspace(np.log(1e-4), np.log(60.0), 700))
    u, v = np.meshgrid(a, a, indexing="ij")
    log_post = -1.0 * (u + v) + np.log(u) + np.log(v)  # Gamma(1, 1) priors, and the grid is even in the logarithm
    for k in range(4):
        s = u + v
        decay = np.exp(-s * (times[k + 1] - times[k]))
        here, there = (u, v) if codes[k] == 0 else (v, u)
        stay = (there + here * decay) / s
        log_post += 2 * np.log(stay if codes[k] == codes[k + 1] else 1 - stay)
    weight = np.exp(log_post - log_post.max())
    weight /= weight.sum()
    exact = np.array([(weight * f).sum() for f in (u, v, np.log(u), np.log(v), np.log(u) * np.log(v))])
    model = Gibbs(emission="direct", n_samples=6000, thin=1, burn_in=100, prior_dwell_time=1.0, engine=ENGINE).fit(
        panel
    )
    r = model.samples_.rates
    drawn = np.column_stack([r, np.log(r), np.log(r[:, 0]) * np.log(r[:, 1])])
    z = (drawn.mean(axis=0) - exact) / batch_se(drawn)
    assert np.abs(z).max() < 4
    # the first state was 0 twice: π ~ Dirichlet(3, 1)
    assert abs(model.process_.initial_probs[0] - 0.75) < 0.02


def test_normal_draws_are_conjugate(rng):
    """μ and σ² given values: moments of the normal-inverse-gamma posterior worked out by hand."""
    prior = NormalPrior(1.0, 2.0, 3.0, 4.0)
    x = np.array([2.0, 3.0, np.nan, 4.0])
    # n = 3, mean 3, squares 2: count 5, mean (2·1 + 3·3)/5 = 2.2, shape 4.5, scale 4 + 1 + ½·2·3/5·(3 - 1)² = 7.4
    draws = [prior.draw(x, np.zeros(4, np.int64), 1, rng) for _ in range(20_000)]
    means, variances = np.array([d.means[0] for d in draws]), np.array([d.sds[0] ** 2 for d in draws])
    assert abs(means.mean() - 2.2) < 0.02
    np.testing.assert_allclose(variances.mean(), 7.4 / 3.5, rtol=0.03)
    np.testing.assert_allclose(means.var(), 7.4 / 3.5 / 5, rtol=0.05)


# ----------------------------------------------------------------- estimator


@pytest.fixture(scope="module")
def hidden():
    """A panel that is easy to read: three levels, far apart, slow jumps; and its truth."""
    process = jm.Process(
        [0.3, 0.2, 0.4], [[0, 0.8, 0.2], [0.5, 0, 0.5], [0.9, 0.1, 0]], emission=Gaussian([0.0, 5.0, 10.0], sds=1.0)
    )
    panel, truth = jm.simulate(process, 80, 30, mean_gap=0.4, random_state=3)
    return process, panel, truth


@pytest.fixture(scope="module")
def fitted(hidden):
    return Gibbs(3, emission="gaussian", n_samples=60, thin=1, burn_in=40, n_chains=2, engine=ENGINE).fit(hidden[1])


def test_recovers_an_easy_process(hidden, fitted):
    process, panel, truth = hidden
    np.testing.assert_allclose(fitted.process_.emission.means, process.emission.means, atol=0.2)
    np.testing.assert_allclose(fitted.process_.emission.sds, process.emission.sds, rtol=0.1)
    np.testing.assert_allclose(fitted.process_.rates, process.rates, rtol=0.35)
    np.testing.assert_allclose(fitted.process_.transition_probs, process.transition_probs, atol=0.15)
    true_states = truth.at(panel.times, panel.ids[panel.sequence_index])
    assert np.mean(fitted.predict(panel) == true_states) > 0.97
    drawn = fitted.trajectories_.at(panel.times, panel.ids[panel.sequence_index])
    assert np.mean(drawn == true_states) > 0.95
    assert len(fitted.samples_) == 120 and fitted.samples_.means.shape == (120, 3) and fitted.n_iter_ == 100
    assert fitted.samples_.sds.shape == (120, 3)
    assert len(fitted.history_) == 100 and np.all(np.diff(fitted.history_.cpu_times) >= 0)
    assert np.all(fitted.r_hat_ < 1.1) and np.all(fitted.ess_ > 20)


def test_readouts_agree(hidden, fitted):
    panel = hidden[1]
    probs = fitted.predict_proba(panel)
    assert probs.shape == (panel.n_observations, 3)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    np.testing.assert_array_equal(fitted.predict(panel), probs.argmax(axis=1))
    np.testing.assert_allclose(fitted.predict_proba(panel, at=([0, 1], [0.5, 1.0])).sum(axis=1), 1.0)
    values = fitted.predict_value(panel)
    assert np.mean(np.abs(values - panel.to_caller_order(panel.values[:, 0])) < 4) > 0.99
    path = fitted.decode(panel)
    assert (
        np.mean(path.at(panel.times, panel.ids[panel.sequence_index]) == panel.to_caller_order(fitted.predict(panel)))
        > 0.95
    )
    np.testing.assert_array_equal(path.start_times, fitted.decode(panel).start_times)
    with pytest.raises(ValueError, match="predict_value_proba needs one column of labels"):
        fitted.predict_value_proba(panel)
    # the other way to read a value: what the most probable state shows
    shown = fitted.process_.emission.means[fitted.predict(panel)]
    np.testing.assert_array_equal(fitted.predict_value(panel, method="trajectory"), shown)
    for method in ("posterior", "trajectory"):
        rows = ([1, 0], [panel.times[panel.offsets[1]], panel.times[2]])
        asked = fitted.predict_value(panel, method, at=rows)
        np.testing.assert_allclose(asked, fitted.predict_value(panel, method)[[panel.offsets[1], 2]], rtol=1e-9)
    with pytest.raises(ValueError, match=r"method must be one of .* got 'mode'"):
        fitted.predict_value(panel, method="mode")


def test_predictions_average_over_samples():
    """Chances of symbols: mean over the samples of posterior @ ρ, each by forward-backward of its own process."""
    process = jm.Process([1.0, 0.4], [[0, 1], [1, 0]], emission=Categorical([[0.8, 0.2], [0.1, 0.9]], ["a", "b"]))
    panel, _ = jm.simulate(process, 30, 8, random_state=5)
    masked, _ = jm.hold_out(panel, 0.3)
    model = Gibbs(2, n_samples=5, thin=1, burn_in=30, engine=ENGINE).fit(masked)
    sequences = Sequences.of(ENGINE, masked, model.process_.emission.encode(masked))
    tables, posteriors = [], []
    for k in range(5):
        one = model.samples_.process(k, model.states_)
        posterior, _ = sequences.smooth(one)
        posteriors.append(posterior)
        tables.append(posterior @ one.emission.probs)
    expected = masked.to_caller_order(np.mean(tables, axis=0))
    np.testing.assert_allclose(model.predict_value_proba(masked), expected, rtol=1e-12)
    np.testing.assert_array_equal(model.predict_value(masked), np.array(["a", "b"], object)[expected.argmax(axis=1)])
    np.testing.assert_allclose(
        model.predict_proba(masked), masked.to_caller_order(np.mean(posteriors, axis=0)), rtol=1e-12
    )
    assert model.samples_.probs.shape == (5, 2, 2)
    np.testing.assert_allclose(model.process_.emission.probs, model.samples_.probs.mean(axis=0))


def test_same_seed_same_draws_whatever_the_threads(hidden):
    panel = hidden[1]
    a, b, c = (
        Gibbs(3, emission="gaussian", n_samples=4, thin=1, burn_in=3, random_state=seed, engine=Threads(jobs)).fit(
            panel
        )
        for seed, jobs in ((1, 1), (1, 3), (2, 1))
    )
    np.testing.assert_array_equal(a.samples_.rates, b.samples_.rates)
    np.testing.assert_array_equal(a.trajectories_.start_times, b.trajectories_.start_times)
    np.testing.assert_array_equal(a.history_.values, b.history_.values)
    assert not np.array_equal(a.samples_.rates, c.samples_.rates)


def test_unit_of_time_does_not_matter(hidden):
    panel = hidden[1]
    hours = dataclasses.replace(
        panel, times=panel.times * 64, start_times=panel.start_times * 64, end_times=panel.end_times * 64
    )
    a, b = (Gibbs(3, emission="gaussian", n_samples=5, thin=1, burn_in=5, engine=ENGINE).fit(p) for p in (panel, hours))
    np.testing.assert_allclose(b.samples_.rates * 64, a.samples_.rates, rtol=1e-9)
    raw = Gibbs(3, emission="gaussian", n_samples=5, thin=1, burn_in=5, prior_dwell_time=1.0, engine=ENGINE).fit(hours)
    assert not np.allclose(raw.samples_.rates * 64, a.samples_.rates)


def test_direct_states_with_a_structure():
    """A chain 0 -> 1 -> 2 with 2 absorbing: two jumps in one gap, forbidden moves never drawn, unseen label kept."""
    panel = jm.Panel.from_arrays([0, 1, 2, 0, 1, 3.0], [0, 2, 2, 0, 1, 1], [0, 0, 0, 1, 1, 1])
    structure = jm.Structure(allowed={0: [1], 1: [2]})
    model = Gibbs(emission="direct", structure=structure, n_samples=50, thin=1, burn_in=10, engine=ENGINE).fit(panel)
    assert np.all(model.samples_.rates[:, 2] == 0) and np.isnan(model.ess_[2]) and np.isnan(model.r_hat_[2])
    P = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(model.samples_.transition_probs, np.broadcast_to(P, (50, 3, 3)))
    np.testing.assert_array_equal(model.trajectories_.states[:3], [0, 1, 2])
    assert np.isfinite(model.history_.values).all()
    wide = Gibbs(emission="direct", states=[0, 1, 2, 9], n_samples=5, thin=1, burn_in=0, engine=ENGINE).fit(panel)
    assert wide.states_.tolist() == [0, 1, 2, 9]
    back = jm.Panel.from_arrays([0, 1.0], [2, 0], ["p", "p"])
    with pytest.raises(jm.InfeasibleError, match=r"the allowed moves must be able to explain.*sequence 'p', row 1"):
        Gibbs(emission="direct", states=[0, 1, 2], structure=structure, engine=ENGINE).fit(back)
    with pytest.raises(jm.InfeasibleError, match="the sampled process must be able to explain"):
        model.predict_proba(back)
    with pytest.raises(jm.InfeasibleError, match="the fitted process must be able to explain"):
        model.decode(back)


def test_a_weight_stands_for_copies(hidden):
    panel = hidden[1].select(range(12))
    weights = np.array([1, 3, 2, 1] * 3)
    heavy = dataclasses.replace(panel, weights=weights.astype(float))
    wide = panel.select(np.repeat(np.arange(12), weights))
    a, b = (Gibbs(3, emission="gaussian", n_samples=5, thin=1, burn_in=5, engine=ENGINE).fit(p) for p in (heavy, wide))
    np.testing.assert_array_equal(a.samples_.rates, b.samples_.rates)
    assert len(a.trajectories_) == 12 and len(b.trajectories_) == weights.sum()
    first = np.concatenate([[0], np.cumsum(weights)[:-1]])
    np.testing.assert_array_equal(a.trajectories_.time_in_state(), b.trajectories_.time_in_state()[first])


def test_odd_panels():
    """One row, no values, windows wider than the rows, one state, several columns."""
    panel = jm.Panel.from_arrays(
        [0.5, 1.0, 2.0, 1.0, 0.0], [[1, 2.0], [np.nan, 3.0], [2, np.nan], [np.nan, np.nan], [1, 9.0]],
        [0, 0, 0, 1, 2], start_times=[0, 0, 0, 0.5, 0], end_times=[3, 3, 3, 2, 0.0],
    )  # fmt: skip
    model = Gibbs(2, emission=["categorical", "gaussian"], n_samples=5, thin=1, burn_in=5, engine=ENGINE).fit(panel)
    assert model.predict_value(panel).shape == (5, 2)
    assert model.trajectories_.end_times.tolist() == [3, 2, 0]
    assert np.all(model.trajectories_.dwell_times() >= 0)
    one = Gibbs(1, emission=["categorical", "gaussian"], n_samples=5, thin=1, burn_in=5, engine=ENGINE).fit(panel)
    assert one.trajectories_.n_jumps == 0


def test_states_are_matched_before_averaging(rng):
    pivot = rng.integers(0, 3, 500)
    swapped = np.array([2, 0, 1])[pivot]
    order = match_order(swapped, pivot, 3)
    np.testing.assert_array_equal(order, [2, 0, 1])  # its state 2 is the pivot's 0
    mixed = Record([Gaussian([10.0, 20.0, 0.0])]).take(order)
    np.testing.assert_array_equal(mixed.means, [0.0, 10.0, 20.0])


def test_kernels_are_compiled_once(hidden):
    direct = jm.Panel.from_arrays([0.0, 1, 2], [0, 1, 1], [0, 0, 0])
    compiled = []
    for model, panel in ((Gibbs(2, emission="gaussian"), hidden[1]), (Gibbs(emission="direct"), direct)):
        model.set_params(n_samples=2, thin=1, burn_in=0, engine=ENGINE).fit(panel).decode(panel)
        compiled.append(len(sample_block.signatures))
    assert compiled[0] == compiled[1]


def test_refusals(hidden):
    panel = hidden[1]
    heavy = dataclasses.replace(panel, weights=np.where(np.arange(80) == 4, 1.5, 1.0))
    for options, data, message in (
        ({}, heavy, "weights must be whole numbers for Gibbs, got 1.5 for sequence 4, row 120"),
        (
            {"emission": "poisson"},
            panel.with_values(np.abs(np.rint(panel.values))),
            "'gaussian' or 'lognormal' for Monte Carlo, got 'poisson'",
        ),
        ({"n_states": None}, panel, "n_states must be given for hidden states"),
        ({"n_samples": 0}, panel, "n_samples must be an integer from 1 to 1000000000, got 0"),
        ({"burn_in": -1}, panel, "burn_in must be an integer from 0 to 1000000000, got -1"),
        ({"thin": 1.5}, panel, "thin must be an integer from 1 to 1000000000, got 1.5"),
        ({"n_chains": None}, panel, "n_chains must be an integer from 1 to .*, got None"),
        ({"init": "zero"}, panel, "init must be one of"),
        ({"prior_dwell_time": 0.0}, panel, "prior_dwell_time must be 'auto' or a number from .*, got 0.0"),
    ):
        with pytest.raises(ValueError, match=message):
            Gibbs(**{"n_states": 3, "emission": "gaussian", "engine": ENGINE, **options}).fit(data)
    with pytest.raises(NotFittedError, match="this Gibbs must be fitted first"):
        Gibbs(3).predict(panel)
    assert clone(Gibbs(3, thin=2)).get_params()["thin"] == 2


# --------------------------------------------------------------- diagnostics


def autoregression(rng, phi, shape):
    x = np.empty(shape)
    x[:, 0] = rng.standard_normal(shape[0]) / np.sqrt(1 - phi**2)
    for k in range(1, shape[1]):
        x[:, k] = phi * x[:, k - 1] + rng.standard_normal(shape[0])
    return x


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.3, 0.8])
def test_effective_size_of_an_autoregression(rng, phi):
    """An AR(1) series of n values is worth n (1 - φ) / (1 + φ)."""
    x = autoregression(rng, phi, (4, 20_000))
    exact = x.size * (1 - phi) / (1 + phi)
    np.testing.assert_allclose(effective_size(x), exact, rtol=0.1)
    np.testing.assert_allclose(bulk_ess(x), exact, rtol=0.1)
    assert split_r_hat(x) < 1.005


def test_r_hat_tells_chains_apart(rng):
    x = rng.standard_normal((2, 4000))
    assert split_r_hat(x) < 1.01
    # two chains with means 0 and d: √(1 + between / within) with between = d²/3 over four halves; ranks keep the order
    shifted = x + np.array([[0.0], [1.0]])
    assert 1.10 < split_r_hat(shifted) < np.sqrt(1 + 1 / 3) + 0.01
    # equal means, unequal spread: only the folded ranks see it
    assert split_r_hat(x * np.array([[1.0], [4.0]])) > 1.1
    # a drift within one chain: the halves disagree
    assert split_r_hat(x[:1] + np.linspace(0, 3, 4000)) > 1.3
    assert np.isnan(split_r_hat(np.ones((2, 50)))) and np.isnan(bulk_ess(np.ones((1, 50))))
    assert np.isnan(split_r_hat([[1.0, 2.0]])) and np.isnan(bulk_ess([[np.nan, 1.0, 2.0, 3.0]]))
