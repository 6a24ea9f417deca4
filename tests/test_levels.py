"""Levels of people: offsets in the objective, in the likelihood, in read out. Each law names its planted fault."""

import dataclasses
import warnings

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.stats import multivariate_normal, norm
from sklearn.exceptions import ConvergenceWarning

import jumpmeans as jm
from jumpmeans.comparators import EM
from jumpmeans.emissions import Gaussian, Lognormal
from jumpmeans.engines import Threads
from jumpmeans.fit.levels import begin_levels, find_levels, settled
from jumpmeans.model.levels import Levels, Readings, settle
from jumpmeans.passes import Sequences

# not evenly spaced: who is only ever in two states is known by their distance
MEANS = np.array([0.0, 4.0, 10.0])
PROCESS = jm.Process([0.7] * 3, (1 - np.eye(3)) / 2, emission=Gaussian(MEANS, sds=1.0))


def people(seed, S=20, L=20, sd=5.0, process=PROCESS, gap=0.3):
    """Sequences that differ in level, what they are relative to their person, and the truth."""
    flat, truth = jm.simulate(process, S, L, mean_gap=gap, random_state=seed)
    b = np.random.default_rng(seed + 1000).normal(0.0, sd, S)
    return with_values(flat, flat.values[:, 0] + np.repeat(b, L)), truth, b


def with_values(panel, values, **changes):
    return dataclasses.replace(panel, values=np.asarray(values, float).reshape(len(panel.times), -1), **changes)


def offsets_of(model):
    return np.asarray(model._people_.means[:, 0])


# ------------------------------------------------------------------------------------------------- the algebra


@pytest.mark.parametrize("grouped", [False, True])
def test_offsets_and_means_of_the_states_are_settled_together(rng, grouped):
    """Against one dense least-squares problem of all readings. Caught: the pull of the ridge left out."""
    S, M = 7, 3
    lengths = rng.integers(1, 6, S)
    sequence = np.repeat(np.arange(S), lengths)
    x, states = rng.normal(size=len(sequence)), rng.integers(0, M, len(sequence))
    w = rng.integers(1, 4, S).astype(float)
    units = np.array([0, 0, 1, 2, 2, 2, 3]) if grouped else np.arange(S)
    U = units.max() + 1
    shares, weights = (w, np.ones(U)) if grouped else (np.ones(S), w)
    p, ridge, mu = np.array([1.0, 4.0, 0.25]), 0.7, np.array([-1.0, 0.0, 2.0])
    before = rng.normal(size=(U, 1))
    off = x - before[units[sequence], 0] - mu[states]
    readings = Readings(np.zeros((S, M, 1)), np.zeros((S, M, 1)))
    np.add.at(readings.counts, (sequence, states, 0), 1.0)
    np.add.at(readings.residuals, (sequence, states, 0), off)
    levels = Levels(units, shares, weights, before, np.zeros((U, 1)), np.ones(1), np.ones(1))
    found = settle(levels, readings, p[:, None], np.array([ridge])).means[:, 0]

    design = np.zeros((len(x), M + U))
    design[np.arange(len(x)), states] = 1.0
    design[np.arange(len(x)), M + units[sequence]] = 1.0
    scale = np.sqrt(w[sequence] * p[states])
    pull = np.hstack([np.zeros((U, M)), np.diag(np.sqrt(ridge * weights))])
    full = np.vstack([scale[:, None] * design, pull])
    expected = np.linalg.lstsq(full, np.append(scale * x, np.zeros(U)), rcond=None)[0]
    np.testing.assert_allclose(found, expected[M:], rtol=1e-9, atol=1e-10)
    assert abs(weights @ found) < 1e-9 * np.abs(found).sum()  # a common shift is a shift of the states


def plain_bound(panel, process, m, v, tau):
    """F as sums over rows: forward recursion with matrix exponentials, densities averaged over N(m, v)."""
    mu, sigma = process.emission.columns[0].mu, process.emission.columns[0].sigma
    total = 0.0
    for i in range(panel.n_sequences):
        rows = slice(panel.offsets[i], panel.offsets[i + 1])
        t, x = panel.times[rows], panel.values[rows, 0]
        log_p = norm.logpdf(x[:, None], mu + m[i], sigma) - v[i] / (2 * sigma**2)
        log_p[np.isnan(x)] = 0.0
        alpha, log_lik = process.initial_probs.copy(), 0.0
        for k in range(len(t)):
            if k:
                alpha = alpha @ expm(process.rate_matrix * (t[k] - t[k - 1]))
            alpha = alpha * np.exp(log_p[k] - log_p[k].max())
            log_lik += np.log(alpha.sum()) + log_p[k].max()
            alpha = alpha / alpha.sum()
        kl = 0.5 * (m[i] ** 2 / tau**2 + v[i] / tau**2 - 1 - np.log(v[i] / tau**2))
        total += panel.weights[i] * (log_lik - kl)
    return total


def plain_likelihood(panel, process, tau, nodes=400):
    """The likelihood itself, the offset of each sequence integrated out on a fine grid."""
    grid = np.linspace(-8 * tau, 8 * tau, nodes)
    step = grid[1] - grid[0]
    total = 0.0
    for i in range(panel.n_sequences):
        one = panel.select([i])
        zero = np.zeros(1)
        paid = 0.5 * (1 - grid**2 + np.log(1e-300))  # KL, taken out again
        given = np.array([plain_bound(one, process, zero + b, zero + 1e-300, 1.0) for b in grid]) / one.weights - paid
        log_f = given + norm.logpdf(grid, 0, tau)
        total += one.weights[0] * (np.log(np.exp(log_f - log_f.max()).sum() * step) + log_f.max())
    return total


def test_the_bound_is_the_one_that_is_written_down():
    """F by plain loops; and the likelihood, by quadrature, is above it and near. Caught: KL without the logarithm."""
    panel, _, _ = people(1, S=4, L=8)
    values = panel.values[:, 0].copy()
    values[5] = np.nan
    panel = with_values(panel, values, weights=np.array([1.0, 2.0, 1.0, 0.5]))
    model = EM(start=PROCESS, offsets="sequence", max_iter=300, tol=1e-6).fit(panel)
    process, found = model.process_, model._people_
    F = plain_bound(panel, process, found.means[:, 0], found.errors[:, 0] ** 2, found.sds[0])
    assert model.log_likelihood_ == pytest.approx(F, rel=1e-9)
    assert model.log_likelihood(panel) == pytest.approx(F, rel=1e-9)
    exact = plain_likelihood(panel, process, found.sds[0])
    assert F <= exact + 1e-9
    assert exact - F < 2.0  # states are some, but not all of what is unsure


def test_one_state_is_the_random_intercept_model():
    """No path is unsure, so that F is the likelihood and its maximum that of the linear mixed model."""
    rng = np.random.default_rng(5)
    S, L = 30, 6
    b, e = rng.normal(0, 2.0, S), rng.normal(0, 1.0, (S, L))
    x = 3.0 + b[:, None] + e
    panel = jm.Panel.from_arrays(np.tile(np.arange(L), S).astype(float), x.ravel(), np.repeat(np.arange(S), L))
    model = EM(1, offsets="sequence", tol=1e-14, max_iter=2000, accelerate=False).fit(panel)
    within = x - x.mean(axis=1, keepdims=True)
    s2 = (within**2).sum() / (S * (L - 1))
    t2 = ((x.mean(axis=1) - x.mean()) ** 2).mean() - s2 / L
    assert model.emission_.means[0] == pytest.approx(x.mean(), rel=1e-8)
    assert model.emission_.sds[0] ** 2 == pytest.approx(s2, rel=1e-4)
    assert model.offset_sd_[0] ** 2 == pytest.approx(t2, rel=1e-4)
    law = multivariate_normal(np.full(L, x.mean()), s2 * np.eye(L) + t2)
    assert model.log_likelihood_ == pytest.approx(law.logpdf(x).sum(), rel=1e-9)
    shrunk = (x.mean(axis=1) - x.mean()) * L * t2 / (L * t2 + s2)
    np.testing.assert_allclose(offsets_of(model), shrunk, atol=1e-4)


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_never_falls(seed, accelerate):
    """Caught: spreads of readings updated without the variances of the offsets."""
    rng = np.random.default_rng(seed)
    panel, _, _ = people(seed, S=12, L=9, sd=[0.3, 1.0, 3.0, 10.0][seed])
    values = np.where(rng.random(len(panel.times)) < 0.2, np.nan, panel.values[:, 0])
    changes = {"groups": np.arange(12) // 2} if seed % 2 else {}
    panel = with_values(panel, values, weights=rng.integers(1, 4, 12).astype(float), **changes)
    by = "group" if seed % 2 else "sequence"
    model = EM(3, offsets=by, accelerate=accelerate, max_iter=60, tol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(panel)
    steps = np.diff(model.history_.values)
    assert steps.min() > -1e-9 * abs(model.log_likelihood_)


# ------------------------------------------------------------------------------------------------- the objective


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_never_rises(seed):
    """A rise is a warning, and so an error here. Caught: offsets moved, the statistics of the readings not."""
    panel, _, _ = people(seed, S=15, L=12)
    weights = np.random.default_rng(seed).integers(1, 4, 15).astype(float)
    panel = dataclasses.replace(panel, weights=weights, groups=np.arange(15) // 3)
    for by in ("sequence", "group"):
        for sd in ("auto", 0.5, 50.0):
            model = jm.JumpMeans(3, offsets=by, offset_sd=sd, refine=0).fit(panel)
            history = model.objective_history_
            assert np.all(np.diff(history) <= 1e-9 * np.abs(history[1:]))


def test_its_terms_are_the_plain_ones():
    """½ ζ Σ w (x - b - μ)² and ½ ζ ρ Σ w b² after a sweep and a settling. Caught: a ridge without weights."""
    panel, _, _ = people(1, S=9, L=10)
    panel = dataclasses.replace(panel, weights=np.arange(1.0, 10.0))
    from jumpmeans.fit.descent import Model, descend
    from jumpmeans.fit.setup import make_search, states_and_emission
    from jumpmeans.model.constraints import Constraints
    from jumpmeans.model.objective import Prices
    from jumpmeans.model.params import Params

    _, blank = states_and_emission(panel, "gaussian", 3, None, "auto")
    x = blank.encode(panel)
    levels = begin_levels(panel, x, blank, "sequence", 3.0)
    moves = ~np.eye(3, dtype=bool)
    prices = Prices(1.0, np.array([2.5]), 1.0, 1.0, 0.01)
    model = Model(prices, Constraints.of(moves), make_search("auto", "exact", "complete", moves))
    model = model.at(levels)
    start = Params(np.full(3, 0.7), PROCESS.transition_probs, jm.emissions.Record([Gaussian(MEANS, 1.0)]))
    sequences = Sequences.of(Threads(1), panel, x).at(levels)
    run = descend(sequences, start, model, 6, 0.0)
    dwells, b = sequences.fetch(run.dwells), run.levels.means[:, 0]
    states = dwells.row_states(panel.offsets)
    w = np.repeat(panel.weights, panel.lengths)
    off = x[:, 0] - b[panel.sequence_index] - run.params.emission.means[states]
    rho = (blank.noises(x, panel)[0] / 3.0) ** 2
    assert run.cost.observations == pytest.approx(0.5 * 2.5 * (w * off**2).sum(), rel=1e-9)
    assert run.cost.offsets == pytest.approx(0.5 * 2.5 * rho * (panel.weights * b**2).sum(), rel=1e-9)
    # nothing lowers it but other paths: the gradient in each offset is nothing
    slope = np.bincount(panel.sequence_index, weights=w * off) - rho * panel.weights * b
    np.testing.assert_allclose(slope, 0.0, atol=1e-8)
    again, _ = settled(run.levels, run.stats, run.params, model.prices)
    np.testing.assert_allclose(again.means[:, 0], b, atol=1e-9)


# ------------------------------------------------------------------------------------------------- laws


def test_no_spread_is_no_offsets_bit_for_bit():
    """Caught: offsets subtracted where τ is 0, from the means of people."""
    panel, _, _ = people(2, S=12, L=15, sd=1.0)
    for make in (lambda **kw: jm.JumpMeans(3, **kw), lambda **kw: EM(3, **kw), jm.InfiniteJumpMeans):
        with_none, with_zero = make().fit(panel), make(offsets="sequence", offset_sd=0.0).fit(panel)
        np.testing.assert_array_equal(with_none.rates_, with_zero.rates_)
        np.testing.assert_array_equal(with_none.emission_.means, with_zero.emission_.means)
        np.testing.assert_array_equal(with_none.predict_value(panel), with_zero.predict_value(panel))
        assert not offsets_of(with_zero).any()


def test_a_shift_of_one_person_moves_the_offset_alone():
    """Under a weak ridge. Caught: `predict` on values that offsets were not taken from."""
    panel, _, _ = people(4, S=15, L=20, sd=2.0)
    moved = with_values(panel, panel.values[:, 0] + 7.0 * (panel.sequence_index == 3))
    for make in (
        lambda: jm.JumpMeans(3, offsets="sequence", offset_sd=1e4),
        lambda: EM(3, offsets="sequence", offset_sd=1e4, tol=1e-12),
    ):
        one, two = make().fit(panel), make().fit(moved)
        np.testing.assert_array_equal(one.predict(panel), two.predict(moved))
        change = offsets_of(two) - offsets_of(one)
        np.testing.assert_allclose(change - change[0], 7.0 * (np.arange(15) == 3), atol=0.05)
    shrunk = jm.JumpMeans(3, offsets="sequence").fit(moved)
    away = offsets_of(shrunk)[3] - offsets_of(jm.JumpMeans(3, offsets="sequence").fit(panel))[3]
    assert 5.5 < away < 7.0


def test_units_do_not_matter():
    """Powers of two change no bit of the states, and offsets go with the unit. Caught: τ held at a number."""
    panel, _, _ = people(5, S=12, L=15)
    scaled = with_values(panel, 64.0 * panel.values[:, 0])
    one, two = (jm.JumpMeans(3, offsets="sequence").fit(p) for p in (panel, scaled))
    np.testing.assert_array_equal(one.trajectories_.start_times, two.trajectories_.start_times)
    np.testing.assert_allclose(offsets_of(two), 64.0 * offsets_of(one), rtol=1e-9)
    assert two.objective_ == pytest.approx(one.objective_, rel=1e-9)
    shifted = with_values(panel, panel.values[:, 0] - 1000.0)
    three = jm.JumpMeans(3, offsets="sequence").fit(shifted)
    np.testing.assert_array_equal(one.predict(panel), three.predict(shifted))
    np.testing.assert_allclose(offsets_of(three), offsets_of(one), atol=1e-6)


def test_the_order_of_people_does_not_matter():
    panel, _, _ = people(6, S=12, L=15)
    order = np.random.default_rng(0).permutation(12)
    one, two = (jm.JumpMeans(3, offsets="sequence").fit(p) for p in (panel, panel.select(order)))
    np.testing.assert_allclose(offsets_of(two), offsets_of(one)[order], rtol=1e-8)
    assert two.objective_ == pytest.approx(one.objective_, rel=1e-10)


def test_weights_count_copies():
    """Of a person with the offset: k persons alike. Of the readings of a group: one offset for all.

    Caught: τ² as a mean over people that are not weighted.
    """
    panel, _, _ = people(7, S=8, L=15)
    weights = np.array([1.0, 3.0, 2.0, 1.0, 1.0, 2.0, 1.0, 1.0])
    copies = np.repeat(np.arange(8), weights.astype(int))
    heavy, many = dataclasses.replace(panel, weights=weights), panel.select(copies)
    for make in (
        lambda: jm.JumpMeans(3, offsets="sequence"),
        lambda: EM(3, offsets="sequence", accelerate=False, tol=1e-6),
    ):
        one, two = make().fit(heavy), make().fit(many)
        np.testing.assert_allclose(offsets_of(two), offsets_of(one)[copies], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(two.offset_sd_, one.offset_sd_, rtol=1e-7)
    groups = np.arange(8) // 2
    heavy, many = dataclasses.replace(heavy, groups=groups), dataclasses.replace(many, groups=groups[copies])
    one, two = (jm.JumpMeans(3, offsets="group").fit(p) for p in (heavy, many))
    np.testing.assert_allclose(offsets_of(two), offsets_of(one), rtol=1e-6, atol=1e-9)


def test_logarithms_have_levels_too():
    """A log-normal column is a Gaussian one of its logarithms. Caught: a density without the offset in its Jacobian."""
    panel, _, _ = people(8, S=12, L=15, sd=2.0)
    rescaled = panel.values[:, 0] / 8.0
    plain, logs = with_values(panel, rescaled), with_values(panel, np.exp(rescaled))
    one = EM(3, offsets="sequence").fit(plain)
    two = EM(3, offsets="sequence", emission="lognormal").fit(logs)
    np.testing.assert_allclose(two.emission_.columns[0].log_means, one.emission_.means, rtol=1e-6)
    np.testing.assert_allclose(offsets_of(two), offsets_of(one), rtol=1e-5, atol=1e-6)
    assert two.log_likelihood_ == pytest.approx(one.log_likelihood_ - rescaled.sum(), rel=1e-8)
    assert isinstance(two.emission_.columns[0], Lognormal)
    ratio = two.predict_value(logs, method="trajectory") / np.exp(offsets_of(two))[panel.sequence_index]
    assert len(np.unique(np.round(ratio, 9))) == 3


# ------------------------------------------------------------------------------------------------- what is read out


@pytest.fixture(scope="module")
def fitted():
    panel, truth, b = people(11, S=30, L=30)
    return panel, truth, b, jm.JumpMeans(3, offsets="sequence").fit(panel)


def test_levels_are_found(fitted):
    panel, truth, b, model = fitted
    np.testing.assert_allclose(np.diff(model.emission_.means), np.diff(MEANS), atol=0.4)
    assert model.offset_sd_[0] == pytest.approx(b.std(), rel=0.15)
    frame = model.offsets_
    assert list(frame.columns) == ["id", "column", "offset", "standard_error"]
    # who is in one state all the time may be at another level in another
    assert np.mean(np.abs(frame["offset"] - (b - b.mean())) < 1.6) > 0.9
    assert abs(frame["offset"].mean()) < 0.3
    true = truth.at(panel.times, panel.ids[panel.sequence_index])
    assert np.mean(model.predict(panel) == true) > 0.9
    assert np.mean(jm.JumpMeans(3).fit(panel).predict(panel) == true) < 0.7
    assert model.summary()["offset_sd"].tolist() == [model.offset_sd_[0]] * 3


def test_read_outs_are_those_of_the_fit(fitted):
    """The same panel again gives the same paths and offsets; values are those of the very person."""
    panel, _, _, model = fitted
    again = model.decode(panel)
    np.testing.assert_array_equal(again.start_times, model.trajectories_.start_times)
    np.testing.assert_array_equal(model.find_offsets(panel)["offset"], model.offsets_["offset"])
    path = model.predict_value(panel, method="trajectory")
    state = np.searchsorted(model.states_, model.predict(panel))
    np.testing.assert_allclose(path, model.emission_.means[state] + offsets_of(model)[panel.sequence_index])
    rmse = np.sqrt(np.mean((model.predict_value(panel) - panel.values[:, 0]) ** 2))
    assert rmse < 1.2


def test_new_people_are_read_from_their_own_rows(fitted):
    _, _, _, model = fitted
    panel, _, b = people(12, S=6, L=30)
    blank = with_values(panel, np.where(panel.sequence_index == 2, np.nan, panel.values[:, 0]))
    found = model.find_offsets(blank)
    assert found["offset"][2] == 0.0
    assert found["standard_error"][2] == pytest.approx(model.offset_sd_[0])
    alone = model.find_offsets(blank.select([4]))
    assert alone["offset"][0] == pytest.approx(found["offset"][4], rel=1e-9)
    seen = np.delete(np.arange(6), 2)
    centre = model.emission_.means.mean() - MEANS.mean()
    np.testing.assert_allclose(found["offset"][seen], (b - centre)[seen], atol=1.6)
    outlook = model.forecast(blank, horizon=[0.1])
    assert abs(outlook.values[0] - panel.values[29, 0]) < 6.0


def test_values_held_out_are_nearer_with_levels(fitted):
    panel, _, _, _ = fitted
    masked, truth = jm.evaluation.hold_out(panel, 0.25, random_state=1)
    errors = []
    for offsets in ("sequence", None):
        model = jm.JumpMeans(3, offsets=offsets).fit(masked)
        errors.append(np.sqrt(np.mean((model.predict_value(masked)[truth.rows] - truth.values) ** 2)))
    assert errors[0] < 0.75 * errors[1]


def test_a_start_far_off_is_mended():
    """Offsets are looked for from several starts. Caught: one start at 0, which takes level 8 for a state."""
    panel = jm.Panel.from_arrays(np.arange(12.0), [8, 8, 8, 12, 12, 12, 18, 18, 18, 12, 12, 8.0], np.zeros(12, int))
    held = Sequences.of(Threads(1), panel, panel.values)
    one = np.ones(1)
    levels = Levels(np.arange(1), one, one, np.zeros((1, 1)), np.full((1, 1), 25.0), 5.0 * one, one, True)
    slow = jm.Process([0.3] * 3, PROCESS.transition_probs, emission=Gaussian(MEANS, sds=0.5))
    found = find_levels(held.at(levels), slow).levels
    assert found.means[0, 0] == pytest.approx(8.0, abs=0.1)


def test_states_not_people_are_counted():
    """Three states at levels that differ; and noise at such levels is one state. See experiments/levels.py for more."""
    panel, _, _ = people(0, S=25, L=25)
    assert jm.InfiniteJumpMeans(offsets="sequence").fit(panel).n_states_ == 3
    assert jm.InfiniteJumpMeans(max_states=6).fit(panel).n_states_ > 3
    rng = np.random.default_rng(0)
    noise = with_values(panel, rng.normal(size=625) + np.repeat(rng.normal(0, 5, 25), 25))
    assert jm.InfiniteJumpMeans(offsets="sequence").fit(noise).n_states_ == 1


@pytest.mark.parametrize("family", ["JumpMeans", "InfiniteJumpMeans", "EM"])
def test_those_who_stay_in_a_state_are_not_at_another_level(family):
    """Means of people are as far apart as the states. Caught: the wide spread alone to start from."""
    process = jm.Process(
        [0.05, 0.08, 0.05], [[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]], emission=Gaussian([0.0, 6.0, 12.0], sds=1.0)
    )  # fmt: skip
    panel, truth = jm.simulate(process, 80, 15, mean_gap=0.5, offsets=0.5, random_state=2)
    maker = {"JumpMeans": jm.JumpMeans, "InfiniteJumpMeans": jm.InfiniteJumpMeans, "EM": EM}[family]
    options = {} if family == "InfiniteJumpMeans" else {"n_states": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model, plain = (maker(**options, offsets=offsets).fit(panel) for offsets in ("sequence", None))
    assert model.offset_sd_[0] < 1.0
    assert model.log_likelihood(panel) > plain.log_likelihood(panel)
    np.testing.assert_allclose(np.diff(model.emission_.means), [6.0, 6.0], atol=0.5)
    assert np.mean(model.predict(panel) == truth.at(panel.times, panel.ids[panel.sequence_index])) > 0.97


def test_levels_live_in_model_files(fitted, tmp_path):
    panel, _, _, model = fitted
    model.save(tmp_path / "levels.jm")
    again = jm.load(tmp_path / "levels.jm")
    np.testing.assert_array_equal(again.predict_value(panel), model.predict_value(panel))
    np.testing.assert_array_equal(again.offsets_["offset"], model.offsets_["offset"])


@pytest.mark.parametrize(("spread", "seed"), [(0.0, 2), (0.15, 4), (2.0, 2)])
def test_spreads_are_parameters_and_are_tested_at_their_edge(spread, seed):
    """One for each column that has levels, none if it is given; where none is as likely, it is 0 and the fit at rest.

    Caught: a spread that EM steps shrink without end, less likely than none.
    """
    process = jm.Process([0.6, 0.6], [[0, 1], [1, 0]], emission=Gaussian([0.0, 4.0], sds=1.0))
    panel, _ = jm.simulate(process, 25, 20, mean_gap=0.4, offsets=spread, random_state=seed)
    none, some = EM(2).fit(panel), EM(2, offsets="sequence").fit(panel)
    test = jm.likelihood_ratio(none, some, panel)
    assert some.converged_ and test.df == 1 == some.n_parameters_ - none.n_parameters_
    if spread < 1:
        assert some.offset_sd_[0] == 0 and test.p_value == 1.0 and len(some.offsets_) == 0
        np.testing.assert_allclose(some.log_likelihood_, none.log_likelihood_, atol=1e-5)
    else:
        assert test.p_value < 1e-6
        given = EM(2, offsets="sequence", offset_sd=spread).fit(panel)
        assert given.n_parameters_ == none.n_parameters_
    assert some.aic(panel) == 2 * some.n_parameters_ - 2 * some.log_likelihood(panel)


def test_people_can_be_simulated():
    """The levels come last: without them, the same panel to the bit."""
    flat, truth = jm.simulate(PROCESS, 2000, 3, random_state=3)
    panel, same = jm.simulate(PROCESS, 2000, 3, offsets=5.0, random_state=3)
    np.testing.assert_array_equal(truth.start_times, same.start_times)
    b = (panel.values - flat.values).reshape(2000, 3)
    np.testing.assert_allclose(b, b[:, :1] * np.ones(3), atol=1e-12)
    assert b[:, 0].std() == pytest.approx(5.0, rel=0.06)
    direct = jm.Process([1.0, 1.0], [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="offsets must be 0 for columns other than gaussian and lognormal, got one"):
        jm.simulate(direct, 3, 3, offsets=1.0)


def test_several_columns():
    """A column with levels beside one without."""
    panel, truth, b = people(13, S=15, L=20)
    codes = np.searchsorted(PROCESS.states, truth.at(panel.times, panel.ids[panel.sequence_index]))
    counts = np.random.default_rng(0).poisson(np.array([2.0, 8.0, 20.0])[codes])
    both = jm.Panel.from_arrays(panel.times, np.column_stack([counts, panel.values[:, 0]]), panel.sequence_index)
    model = jm.JumpMeans(3, emission=["poisson", "gaussian"], offsets="sequence").fit(both)
    assert model.offset_sd_[0] == 0.0
    assert model.offset_sd_[1] == pytest.approx(b.std(), rel=0.3)
    assert set(model.offsets_["column"]) == {both.columns[1]}
    assert model.predict_value(both).shape == (300, 2)


# ------------------------------------------------------------------------------------------------- what is refused


def test_what_cannot_have_levels_is_refused(fitted):
    panel, _, _, model = fitted
    with pytest.raises(ValueError, match="only 'gaussian' and 'lognormal' columns have offsets"):
        jm.JumpMeans(3, emission="laplace", offsets="sequence").fit(panel)
    with pytest.raises(ValueError, match="offset_sd must be one number, or one for each of the 1 columns, got"):
        jm.JumpMeans(3, offsets="sequence", offset_sd=[1.0, 2.0]).fit(panel)
    with pytest.raises(jm.PanelError, match="offsets='group' needs a panel with groups, got none"):
        jm.JumpMeans(3, offsets="group").fit(panel)
    with pytest.raises(AttributeError, match="must be fitted with offsets='sequence' or 'group'"):
        _ = jm.JumpMeans(3).fit(panel).offsets_
    with pytest.raises(ValueError, match="offsets must be None for a model to be decoded online"):
        jm.OnlineDecoder(model)
    em = EM(3, offsets="sequence", max_iter=500).fit(panel)
    # caught: an EM whose levels were lost on the way to the decoder
    with pytest.raises(ValueError, match="offsets must be None for a model to be decoded online"):
        jm.OnlineDecoder(em)
    with pytest.raises(ValueError, match="offsets must be None for information"):
        em.information(panel)
