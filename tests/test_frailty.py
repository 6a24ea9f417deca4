"""Frailty: what multiplies all rates of a person, integrated out. Each law names its planted fault."""

import dataclasses
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

import jumpmeans as jm
from jumpmeans.comparators import EM
from jumpmeans.model.frailty import Frailty

ILLNESS = jm.Process.from_generator(
    {"well": {"ill": 0.3, "dead": 0.03}, "ill": {"well": 0.2, "dead": 0.15}}, initial_probs=[1, 0, 0]
)
MOVES = jm.Structure({"well": ["ill", "dead"], "ill": ["well", "dead"]}, initial="given")
PAIR = jm.Process([0.8, 0.5], [[0, 1], [1, 0]])


def plain_sequence(panel, process, i, w, log_p):
    """Log-likelihood (n,) of one sequence at multipliers w (n,), by e^{Qt} of the eigenvectors of Q."""
    rows = slice(panel.offsets[i], panel.offsets[i + 1])
    Q = process.rate_matrix
    N = Q - np.diag(np.diag(Q))
    sizes, V = np.linalg.eig(Q)
    times = panel.times[rows]
    kinds = np.zeros(len(times)) if panel.kinds is None else panel.kinds[rows]
    v, last, total = np.tile(process.initial_probs, (len(w), 1)), panel.start_times[i], np.zeros(len(w))
    for k, (t, kind, row) in enumerate(zip(times, kinds, log_p[rows], strict=True)):
        kind = 0 if k == 0 and t == last else kind
        clock = w[:, None] * (t - last)
        v = v * np.exp(np.diag(Q) * clock) if kind == 1 else ((v @ V) * np.exp(sizes * clock)) @ np.linalg.inv(V)
        moved = w[:, None] * (v @ N)
        v = (v if kind == 0 else moved if kind == 2 else v + moved) * np.exp(row)
        total += np.log(v.sum(axis=1))
        v, last = v / v.sum(axis=1, keepdims=True), t
    return total


def plain_frailty(panel, process, variance, units=None, n=1000):
    """(U,) ln Z of all units, and their mean multipliers, by sums over a fine grid of ln w."""
    a = 1.0 / variance
    x = np.linspace(-30.0 / min(a, 10.0), np.log(1.0 + 40.0 / a), n)
    units = np.arange(panel.n_sequences) if units is None else units
    if process.emission.is_direct:
        labels = sorted(process.states.tolist())  # a column of text is coded in their order
        codes = np.array([process.states.tolist().index(labels[int(k)]) for k in panel.values[:, 0]])
        log_p = np.where(codes[:, None] == np.arange(len(process.rates)), 0.0, -np.inf)
    else:
        column = process.emission.columns[0]
        log_p = norm.logpdf(panel.values[:, 0][:, None].astype(float), column.mu, column.sigma)
    prior = a * np.log(a) - gammaln(a) + a * x - a * np.exp(x) + np.log(x[1] - x[0])
    joint = np.tile(prior, (units.max() + 1, 1))
    for i in range(panel.n_sequences):
        joint[units[i]] += plain_sequence(panel, process, i, np.exp(x), log_p)
    top = joint.max(axis=1, keepdims=True)
    p = np.exp(joint - top)
    return np.log(p.sum(axis=1)) + top[:, 0], p @ np.exp(x) / p.sum(axis=1)


def gaussian_pair():
    return dataclasses.replace(PAIR, emission=jm.emissions.Record([jm.emissions.Gaussian([0.0, 2.0], sds=1.0)]))


PANELS = {
    "looks": (PAIR, {"mean_gap": 1.0}),
    "rare looks": (PAIR, {"mean_gap": 8.0}),
    "deaths": (ILLNESS, {"exact": ["dead"]}),
    "all moves": (PAIR, {"exact": "all"}),
    "hidden": (gaussian_pair(), {"mean_gap": 1.0}),
}


@pytest.mark.parametrize("variance", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("case", PANELS)
def test_the_likelihood_is_the_integral(case, variance):
    """By plain sums and matrix exponentials, to 1e-7. Caught: jumps at rows not counted by w."""
    process, looks = PANELS[case]
    panel, _ = jm.simulate(process, 5, 6, frailty_variance=variance, random_state=4, **looks)
    expected, means = plain_frailty(panel, process, variance)
    sequences = held(panel, process).under(Frailty.of(np.arange(5), np.ones(5), np.ones(5), variance))
    frailty, weighed = sequences.weigh(process)
    np.testing.assert_allclose(weighed.log_lik, expected, atol=1e-7)
    np.testing.assert_allclose(frailty.means(weighed), means, rtol=1e-6)


def held(panel, process):
    from jumpmeans.engines import Threads
    from jumpmeans.passes import Sequences

    return Sequences.of(Threads(1), panel, process.emission.encode(panel), process.states)


def test_people_of_several_sequences_have_one_multiplier():
    """With weights. Caught: sequences of a group integrated one by one."""
    panel, _ = jm.simulate(PAIR, 6, 5, frailty_variance=1.0, random_state=2)
    groups = np.array([0, 0, 1, 2, 2, 2])
    panel = dataclasses.replace(panel, groups=groups)
    expected, means = plain_frailty(panel, PAIR, 0.7, groups)
    model = EM(start=PAIR, structure=fixed(), frailty="group", frailty_variance=0.7).fit(panel)
    assert model.log_likelihood_ == pytest.approx(expected.sum(), abs=1e-6)
    np.testing.assert_allclose(model.frailties_["frailty"], means, rtol=1e-6)
    assert model.frailties_["group"].tolist() == [0, 1, 2]
    twice = dataclasses.replace(panel, weights=np.array([1.0, 1, 2, 1, 1, 1]))
    doubled = panel.select([0, 1, 2, 2, 3, 4, 5])
    doubled = dataclasses.replace(doubled, ids=np.arange(7), groups=np.array([0, 0, 1, 1, 2, 2, 2]))
    one, two = (
        EM(start=PAIR, structure=fixed(), frailty="group", frailty_variance=0.7).fit(p) for p in (twice, doubled)
    )
    assert one.log_likelihood_ == pytest.approx(two.log_likelihood_, rel=1e-12)


def fixed():
    return jm.Structure({0: [1], 1: [0]}, fixed={"rates": {(0, 1): 0.8, (1, 0): 0.5}}, initial="uniform")


def exact_panel(seed, S=60, variance=0.8):
    return jm.simulate(PAIR, S, 8, exact="all", frailty_variance=variance, random_state=seed)


def seen_moves(panel, truth):
    """Jumps (S, 2, 2) and times (S, 2) of trajectories."""
    jumps, time = np.zeros((len(truth), 2, 2)), np.zeros((len(truth), 2))
    for i in range(len(truth)):
        own = slice(truth.offsets[i], truth.offsets[i + 1])
        codes, starts = truth.codes[own], np.append(truth.start_times[own], truth.end_times[i])
        np.add.at(time[i], codes, np.diff(starts))
        np.add.at(jumps[i], (codes[:-1], codes[1:]), 1.0)
    return jumps, time


@pytest.mark.parametrize("weighted", [False, True])
def test_where_all_moves_are_seen_it_is_conjugate(weighted):
    """Means (events + a) / (hazard + a); rates and v the maximum of the closed form. Caught: v of Σ without weights."""
    panel, truth = exact_panel(1)
    weights = np.random.default_rng(0).integers(1, 4, 60).astype(float) if weighted else np.ones(60)
    panel = dataclasses.replace(panel, weights=weights)
    model = EM(emission="direct", frailty="sequence", tol=1e-13).fit(panel)
    jumps, time = seen_moves(panel, truth)
    n, a = jumps.sum(axis=(1, 2)), 1.0 / model.frailty_variance_
    H = time @ model.rates_
    np.testing.assert_allclose(model.frailties_["frailty"], (n + a) / (H + a), rtol=1e-8)
    np.testing.assert_allclose(model.frailties_["sd"], np.sqrt(n + a) / (H + a), rtol=1e-7)

    def minus(x):
        q, a = np.exp(x[:2]), np.exp(-x[2])
        each = gammaln(a + n) - gammaln(a) + a * np.log(a) - (a + n) * np.log(a + time @ q)
        return -weights @ (each + jumps[:, 0, 1] * x[0] + jumps[:, 1, 0] * x[1])

    best = minimize(minus, np.zeros(3), method="BFGS", options={"gtol": 1e-7})
    found = np.log(np.append(model.rates_, model.frailty_variance_))
    np.testing.assert_allclose(found, best.x, atol=2e-4)
    pi = np.bincount(truth.codes[truth.offsets[:-1]], weights=weights) / weights.sum()
    first = weights.sum() * (pi @ np.log(pi))
    assert model.log_likelihood_ == pytest.approx(first - best.fun, abs=1e-6)
    if not weighted:  # standard errors, that of v included, from the closed form
        sure = model.information(panel)
        se = [float(sure.standard_error(ask)) for ask in (lambda m: m.rates_[0], lambda m: m.frailty_variance_)]
        curved = second_derivatives(minus, best.x)
        expected = np.sqrt(np.diag(np.linalg.inv(curved))) * np.exp(best.x)
        np.testing.assert_allclose(se, expected[[0, 2]], rtol=1e-3)


def second_derivatives(f, x, h=1e-3):
    k = len(x)
    e = h * np.eye(k)
    return np.array([[(f(x + a + b) - f(x + a - b) - f(x - a + b) + f(x - a - b)) / (4 * h * h) for a in e] for b in e])


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_likelihood_never_falls(seed, accelerate):
    """Caught: times that do not count by w."""
    rng = np.random.default_rng(seed)
    process = ILLNESS.with_effects({"x": {("well", "ill"): 0.7}}, at={"x": 0}) if seed == 2 else ILLNESS
    covariates = {"x": rng.normal(size=(60, 6))} if seed == 2 else None
    panel, _ = jm.simulate(
        process, 60, 6, exact=["dead"], frailty_variance=[0.2, 1.5, 0.7][seed], covariates=covariates, random_state=seed
    )
    panel = dataclasses.replace(panel, weights=rng.integers(1, 3, 60).astype(float), groups=np.arange(60) // 2)
    structure = dataclasses.replace(MOVES, covariates="all") if seed == 2 else MOVES
    by = "group" if seed == 1 else "sequence"
    model = EM(emission="direct", structure=structure, frailty=by, accelerate=accelerate, max_iter=40, tol=1e-11)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(panel)
    steps = np.diff(model.history_.values)
    assert steps.min() > -1e-9 * abs(model.log_likelihood_)
    assert model.log_likelihood_ > EM(emission="direct", structure=structure).fit(panel).log_likelihood_ - 1e-9


# ------------------------------------------------------------------------------------------------- laws


def test_no_variance_is_no_frailty_bit_for_bit():
    """Caught: multipliers of exactly 1 that go by quadrature."""
    panel, _ = jm.simulate(ILLNESS, 40, 6, exact=["dead"], random_state=1)
    none = EM(emission="direct", structure=MOVES).fit(panel)
    zero = EM(emission="direct", structure=MOVES, frailty="sequence", frailty_variance=0).fit(panel)
    np.testing.assert_array_equal(none.rates_, zero.rates_)
    assert none.log_likelihood_ == zero.log_likelihood_
    assert zero.frailty_variance_ == 0
    assert (zero.frailties_["frailty"] == 1).all()
    np.testing.assert_array_equal(none.predict_proba(panel), zero.predict_proba(panel))


def test_units_of_time_do_not_matter():
    """Caught: nodes that are laid out by times."""
    panel, _ = jm.simulate(ILLNESS, 80, 6, exact=["dead"], frailty_variance=0.8, random_state=2)
    slow = dataclasses.replace(
        panel, times=panel.times * 64, start_times=panel.start_times * 64, end_times=panel.end_times * 64
    )
    one, two = (EM(emission="direct", structure=MOVES, frailty="sequence").fit(p) for p in (panel, slow))
    np.testing.assert_allclose(two.rates_ * 64, one.rates_, rtol=1e-12)
    assert two.frailty_variance_ == pytest.approx(one.frailty_variance_, rel=1e-12)
    np.testing.assert_allclose(two.frailties_["frailty"], one.frailties_["frailty"], rtol=1e-12)


def test_the_order_of_sequences_does_not_matter():
    """Caught: multipliers of the first sequences given to those of every block."""
    panel, _ = jm.simulate(ILLNESS, 200, 12, frailty_variance=0.8, random_state=3)
    order = np.random.default_rng(0).permutation(200)
    one, two = (EM(emission="direct", structure=MOVES, frailty="sequence").fit(p) for p in (panel, panel.select(order)))
    assert two.frailty_variance_ == pytest.approx(one.frailty_variance_, rel=1e-6)
    np.testing.assert_allclose(two.frailties_["frailty"], one.frailties_["frailty"].to_numpy()[order], rtol=1e-6)
    assert two.frailties_["id"].tolist() == panel.ids[order].tolist()


def test_one_thread_and_many_agree_to_the_bit():
    """Blocks are added in their order."""
    from jumpmeans.engines import Threads

    panel, _ = jm.simulate(ILLNESS, 150, 10, frailty_variance=0.8, random_state=3)
    one, two = (
        EM(emission="direct", structure=MOVES, frailty="sequence", engine=Threads(n)).fit(panel) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.rates_, two.rates_)
    assert one.frailty_variance_ == two.frailty_variance_


# ------------------------------------------------------------------------------------------------- what it tells


def test_the_variance_is_found_and_the_test_tells():
    """And where there is none, it is small and the test silent."""
    structure = MOVES
    for variance in (0.0, 1.0):
        panel, _ = jm.simulate(ILLNESS, 300, 10, exact=["dead"], frailty_variance=variance, random_state=3)
        none = EM(emission="direct", structure=structure).fit(panel)
        model = EM(emission="direct", structure=structure, frailty="sequence").fit(panel)
        test = jm.likelihood_ratio(none, model, panel, first="given")
        assert test.df == 1
        if variance == 0:
            assert model.frailty_variance_ < 0.15
            assert test.p_value > 0.05
        else:
            se = float(model.information(panel).standard_error(lambda m: m.frailty_variance_))
            assert abs(model.frailty_variance_ - variance) < 3 * se
            assert test.p_value < 1e-4


def test_the_variance_at_its_edge_halves_the_chi_square():
    """Caught: χ² of one degree of freedom for a variance that cannot be negative."""
    from scipy.stats import chi2

    panel, _ = jm.simulate(ILLNESS, 150, 8, frailty_variance=0.5, random_state=5)
    none = EM(emission="direct", structure=MOVES).fit(panel)
    some = EM(emission="direct", structure=MOVES, frailty="sequence").fit(panel)
    test = jm.likelihood_ratio(none, some, panel, first="given")
    assert test.p_value == pytest.approx(0.5 * chi2.sf(test.statistic, 1), rel=1e-12)
    assert some.n_parameters_ == none.n_parameters_ + 1
    onward = jm.Structure({"well": ["ill"], "ill": ["well", "dead"]}, initial="given")
    few, _ = jm.simulate(
        jm.Process.from_generator({"well": {"ill": 0.3}, "ill": {"well": 0.2, "dead": 0.15}}, [1, 0, 0]),
        150, 8, frailty_variance=0.5, exact=["dead"], random_state=5,
    )  # fmt: skip
    small = EM(emission="direct", structure=onward).fit(few)
    large = EM(emission="direct", structure=MOVES, frailty="sequence", start=small).fit(few)
    both = jm.likelihood_ratio(small, large, few, first="given")
    assert both.df == 2
    assert both.p_value == pytest.approx(0.5 * (chi2.sf(both.statistic, 1) + chi2.sf(both.statistic, 2)), rel=1e-12)


def test_read_outs_go_by_the_person():
    """Posterior of a row is the mean over multipliers. Caught: read-outs at w = 1."""
    panel, _ = jm.simulate(gaussian_pair(), 4, 6, frailty_variance=1.0, random_state=6)
    structure = jm.Structure({0: [1], 1: [0]}, fixed={"rates": {(0, 1): 0.8, (1, 0): 0.5}}, initial="uniform")
    model = EM(start=gaussian_pair(), structure=structure, frailty="sequence", frailty_variance=1.0, max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(panel)
    process = model.process_
    Z, means = plain_frailty(panel, process, 1.0)
    assert model.log_likelihood(panel) == pytest.approx(Z.sum(), abs=1e-6)
    np.testing.assert_allclose(model.find_frailties(panel)["frailty"], means, rtol=1e-6)
    # a row known to be in state 0 has the share of the likelihood in which it is
    row = panel.offsets[2] + 3
    known = np.full(len(panel.times), None, dtype=object)
    known[row] = 0
    told = jm.Panel.from_arrays(
        panel.times, panel.values[:, 0], panel.ids[panel.sequence_index], true_states=known.tolist()
    )
    share = np.exp(model.log_likelihood(told) - model.log_likelihood(panel))
    assert model.predict_proba(panel)[row, 0] == pytest.approx(share, rel=1e-7)
    # ahead of all rows people are as they were; of whom nothing is seen, as all
    ahead = model.forecast(panel, horizon=[0.5]).probs
    assert ahead.shape == (4, 2)
    assert model.decode(panel).to_frame()["id"].nunique() == 4
    shares = model.prevalence(panel, [0.0, 1.0], initial=[1.0, 0.0]).expected.values[1]
    w = np.random.default_rng(0).gamma(1.0, 1.0, 40_000)
    expected = 0.5 / 1.3 + 0.8 / 1.3 * np.mean(np.exp(-1.3 * w))
    assert shares[0] == pytest.approx(expected, abs=0.01)
    assert model.summary()["time_share"].sum() == pytest.approx(1.0)
    assert model._occupancy().time.sum() == pytest.approx((panel.end_times - panel.start_times).sum(), rel=1e-9)


def test_drawn_people_differ_as_asked():
    """Mean 1 and variance v of the multipliers, from moves counted over long windows."""
    for effects in (None, {"x": 0.0}):
        process = PAIR if effects is None else PAIR.with_effects(effects, at={"x": 0})
        covariates = None if effects is None else {"x": 1.0}
        _, truth = jm.simulate(
            process, 2000, 2, gaps=np.full((2000, 1), 200.0), frailty_variance=0.5, covariates=covariates
        )
        w = (np.diff(truth.offsets) - 1) / (200.0 * 0.8 * 0.5 / 1.3 * 2)
        assert np.mean(w) == pytest.approx(1.0, abs=0.06)
        assert np.var(w) == pytest.approx(0.5, abs=0.1)
    one, two = (jm.simulate(PAIR, 20, 5, random_state=1, **more)[0] for more in ({}, {"frailty_variance": 0.0}))
    np.testing.assert_array_equal(one.values, two.values)


def test_files_keep_it(tmp_path):
    """And a file that was tampered with is refused."""
    panel, _ = jm.simulate(ILLNESS, 60, 6, frailty_variance=0.8, random_state=1)
    model = EM(emission="direct", structure=MOVES, frailty="sequence").fit(panel)
    model.save(tmp_path / "m.jm")
    same = jm.load(tmp_path / "m.jm")
    assert same.frailty_variance_ == model.frailty_variance_
    assert same.frailties_.equals(model.frailties_)
    assert same.log_likelihood(panel) == model.log_likelihood(panel) == model.log_likelihood(panel)
    np.testing.assert_array_equal(same.predict_proba(panel), model.predict_proba(panel))
    model._frailties_ = dataclasses.replace(model._frailties_, variance=-1.0)
    model.save(tmp_path / "bad.jm")
    with pytest.raises(jm.ModelFileError, match="variance of frailty"):
        jm.load(tmp_path / "bad.jm")


def test_what_is_not_there_is_refused():
    """By name, with what to do."""
    panel, _ = jm.simulate(ILLNESS, 30, 5, frailty_variance=0.8, random_state=1)
    with pytest.raises(ValueError, match="frailty must be None or one of"):
        EM(emission="direct", frailty="patient").fit(panel)
    with pytest.raises(ValueError, match="frailty_variance must be 'auto' or a number from 0 to 25"):
        EM(emission="direct", frailty="sequence", frailty_variance=-1).fit(panel)
    with pytest.raises(jm.PanelError, match="frailty='group' needs a panel with groups"):
        EM(emission="direct", frailty="group").fit(panel)
    hidden, _ = jm.simulate(gaussian_pair(), 10, 5, random_state=1)
    with pytest.raises(ValueError, match="offsets must be None with frailty='sequence'"):
        EM(2, frailty="sequence", offsets="sequence").fit(hidden)
    model = EM(emission="direct", structure=MOVES, frailty="sequence", frailty_variance=0.5).fit(panel)
    with pytest.raises(ValueError, match="must have people of the same rates, got a model with frailty"):
        jm.pearson_test(model, panel)
    with pytest.raises(ValueError, match="frailty must be None for a model to be decoded online"):
        jm.OnlineDecoder(model)
    with pytest.raises(AttributeError, match="fitted with frailty="):
        _ = EM(emission="direct", structure=MOVES).fit(panel).frailties_
    with pytest.raises(ValueError, match="frailty_variance must be 0 or a number"):
        jm.simulate(ILLNESS, 3, 3, frailty_variance=-1.0)
