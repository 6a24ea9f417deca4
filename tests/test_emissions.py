"""Observation families: costs and densities by formula, what is refused, order of states, drawn values."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

import jumpmeans as jm
from all_families import ALL, EXAMPLES, HIDDEN, LEARNED, MEASURED, spec
from jumpmeans.arrays import weighted_median
from jumpmeans.emissions import (
    FAMILIES,
    Bernoulli,
    Categorical,
    Direct,
    Exponential,
    Gaussian,
    Laplace,
    Lognormal,
    Poisson,
    Record,
    Student,
    as_record,
    find_families,
    power_of_two,
)
from jumpmeans.emissions.gaussian import NORMAL_WEIGHT
from jumpmeans.emissions.student import median_difference
from jumpmeans.errors import StructureWarning


def panel_of(values, ids=None, times=None, **options):
    n = len(values)
    ids = np.zeros(n, int) if ids is None else ids
    return jm.Panel.from_arrays(np.arange(n) * 1.0 if times is None else times, values, ids, **options)


# ---------------------------------------------------------- costs and densities


def test_every_family_has_an_example():
    """The laws below, and those of test_laws.py, hold for all of them: a new family needs a line in all_families.py."""
    assert set(FAMILIES) <= set(EXAMPLES)
    for name, example in EXAMPLES.items():
        assert example.column.name == name and example.column.n_states == 3


@pytest.mark.parametrize("name", ALL)
def test_cost_is_the_divergence(name):
    column, values, divergence, _ = EXAMPLES[name]
    cost = column.cost(np.array(values))
    expected = [[divergence(x, column, s) for s in range(3)] for x in values]
    np.testing.assert_allclose(cost, expected, rtol=1e-12, atol=1e-15)
    assert cost.min() >= 0.0


@pytest.mark.parametrize("name", ALL)
def test_density(name):
    column, values, _, log_density = EXAMPLES[name]
    got = column.log_density(np.array(values))
    expected = [[log_density(x, column, s) for s in range(3)] for x in values]
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-13)


def test_density_with_own_scales():
    x = np.array([0.3, -2.0])
    gaussian = Gaussian([0.0, 1.0], sds=[0.5, 3.0]).log_density(x)
    laplace = Laplace([0.0, 1.0], scales=[0.5, 3.0]).log_density(x)
    student = Student([0.0, 1.0], scales=[0.5, 3.0], df=7).log_density(x)
    for i, value in enumerate(x):
        for s, (m, scale) in enumerate(((0.0, 0.5), (1.0, 3.0))):
            assert gaussian[i, s] == pytest.approx(scipy_stats.norm.logpdf(value, m, scale), rel=1e-13)
            assert laplace[i, s] == pytest.approx(scipy_stats.laplace.logpdf(value, m, scale), rel=1e-13)
            assert student[i, s] == pytest.approx(scipy_stats.t.logpdf(value, 7, m, scale), rel=1e-12)


@pytest.mark.parametrize("name", ["poisson", "bernoulli"])
def test_costs_of_extreme_means(name):
    """The edge of each range: a value that a state can never show costs infinity, never NaN."""
    edge = {"poisson": [0.0], "bernoulli": [0.0, 1.0]}[name]
    column = FAMILIES[name](edge)
    for table in (column.cost(np.array([0.0, 1.0])), -column.log_density(np.array([0.0, 1.0]))):
        assert not np.isnan(table).any()
        np.testing.assert_array_equal(table[:, 0], [0.0, np.inf])
        if name == "bernoulli":
            np.testing.assert_array_equal(table[:, 1], [np.inf, 0.0])


def test_symbols_and_labels():
    probs = np.array([[0.7, 0.3, 0.0], [0.1, 0.2, 0.7]])
    column = Categorical(probs, ["a", "b", "c"])
    x = np.array([2.0, 0.0, np.nan])
    with np.errstate(divide="ignore"):
        expected = np.vstack([-np.log(probs[:, [2, 0]].T), [0.0, 0.0]])
    np.testing.assert_allclose(column.cost(x), expected, rtol=1e-15)
    np.testing.assert_allclose(column.log_density(x), -expected, rtol=1e-15)
    seen = Direct(["u", "v"])
    np.testing.assert_array_equal(seen.cost(np.array([1.0, np.nan])), [[np.inf, 0.0], [0.0, 0.0]])
    np.testing.assert_array_equal(seen.log_density(np.array([1.0, np.nan])), [[-np.inf, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize("name", ALL)
def test_missing_costs_nothing(name):
    column = EXAMPLES[name].column
    x = np.array([np.nan, 1.0, np.nan])
    assert np.all(column.cost(x)[[0, 2]] == 0.0)
    assert np.all(column.log_density(x)[[0, 2]] == 0.0)
    blank = column.stats(x[[0, 2]], np.zeros(2, int), np.ones(2))
    assert column.total(blank) == 0.0


@pytest.mark.parametrize("name", ALL)
def test_density_under_one_state_each(name, rng):
    # planted: a symbol read in the state before; a reading with the spread of the state before
    column = EXAMPLES[name].column
    x = column.sample(np.arange(60) % 3, rng)
    x[::7] = np.nan
    states = rng.integers(3, size=60)
    every = np.arange(60)
    np.testing.assert_array_equal(column.own_unit_log_density(x, states), column.unit_log_density(x)[every, states])
    both = Record([column, Gaussian([0.0, 1.0, 2.0], [0.3, 0.5, 0.7])])
    rows = np.column_stack([x, rng.normal(size=60)])
    np.testing.assert_array_equal(both.own_log_density(rows, states), both.log_density(rows)[every, states])


def test_columns_add_up_with_their_weights(rng):
    record = Record([Gaussian([0.0, 5.0]), Poisson([1.0, 4.0]), Direct(["a", "b"])])
    x = np.column_stack([rng.normal(size=6), rng.poisson(2.0, 6), [0, 1, 0, np.nan, 1, 1]]).astype(float)
    x[0, 0] = np.nan
    zeta = np.array([0.5, 2.0, 1.0])
    expected = sum(z * column.cost(x[:, d]) for d, (z, column) in enumerate(zip(zeta, record.columns, strict=True)))
    np.testing.assert_allclose(record.cost(x, zeta), expected, rtol=1e-15)
    density = sum(column.log_density(x[:, d]) for d, column in enumerate(record.columns))
    np.testing.assert_allclose(record.log_density(x), density, rtol=1e-15)
    # a column of weight 0 is left out, infinite costs and all
    assert np.isfinite(record.cost(x, np.array([1.0, 1.0, 0.0]))).all()


def test_long_tables_are_filled_in_pieces(rng):
    column = Gaussian([0.0, 2.0])
    x = rng.normal(size=(70_000, 1))
    np.testing.assert_array_equal(Record([column]).cost(x, np.ones(1)), column.cost(x[:, 0]))
    np.testing.assert_array_equal(Record([column]).log_density(x), column.log_density(x[:, 0]))


# ------------------------------------------------------------------ updates


def assigned(name, rng, n=60):
    """Values of three states, their weights, some of them 0, and an assignment that is partly wrong."""
    column = EXAMPLES[name].column
    states = rng.integers(0, 3, n)
    x = column.sample(states, rng)
    x[rng.random(n) < 0.1] = np.nan
    taken = np.where(rng.random(n) < 0.8, states, rng.integers(0, 3, n))
    return column, x, taken, rng.choice([0.0, 0.5, 1.0, 3.0], n)


@pytest.mark.parametrize("name", LEARNED)
def test_updates_lower_the_cost_of_what_is_assigned(name, rng):
    """The total is the plain sum over the values, before and after; no update raises it."""
    divergence = EXAMPLES[name].divergence
    for _ in range(20):
        column, x, states, weights = assigned(name, rng)
        column = column.noisy(x, rng)
        stats = column.stats(x, states, weights)
        before = column.total(stats)
        for emission in (column, column.update(stats), column.update(stats).update(stats)):
            used = [i for i in range(len(x)) if weights[i] > 0 and not np.isnan(x[i])]
            plain = math.fsum(weights[i] * divergence(x[i], emission, states[i]) for i in used)
            assert emission.total(stats) == pytest.approx(plain, rel=1e-10, abs=1e-12)
            assert emission.total(stats) <= before * (1 + 1e-12)
            before = emission.total(stats)


@pytest.mark.parametrize("name", HIDDEN)
def test_a_state_of_no_weight_does_not_move(name, rng):
    """Nor do values of no weight count. Laplace moved, to a median of values that weigh nothing."""
    column, x, states, _ = assigned(name, rng)
    for weights in (np.where(states == 1, 0.0, 1.0), np.zeros(len(x))):
        stats = column.stats(x, states, weights)
        moved = column.update(stats)
        still = np.array([not weights[states == s].any() for s in range(3)])
        for parameter in column.params:
            np.testing.assert_array_equal(getattr(moved, parameter)[still], getattr(column, parameter)[still])
    weights = np.where(states == 1, 0.0, 1.0)
    some = weights > 0
    whole, part = (
        column.update(column.stats(*rows)) for rows in ((x, states, weights), (x[some], states[some], weights[some]))
    )
    np.testing.assert_array_equal(whole.state_values(), part.state_values())


def test_a_median_leaves_out_what_weighs_nothing():
    """By the cumulative weight alone, [1, 2, 3] with weights [1, 0, 1] had the median 1.5."""
    assert weighted_median(np.array([1.0, 2.0, 3.0]), np.array([1.0, 0.0, 1.0])) == 2.0
    assert weighted_median(np.array([9.0, 1.0, 5.0]), np.array([0.0, 1.0, 1.0])) == 3.0
    assert weighted_median(np.array([4.0, 1.0]), np.array([1.0, 0.0])) == 4.0
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 10, 11):  # without a sort where all weights are 1: numpy's median, and that of other weights
        x = rng.integers(0, 5, n) + rng.choice([0.0, 0.1, 1e9], n)
        assert weighted_median(x, np.ones(n)) == np.median(x) == weighted_median(x, np.full(n, 2.0))


@pytest.mark.parametrize("name", HIDDEN)
def test_statistics_add_up_and_pool(name, rng):
    """Of two parts of the rows, by +; of states with the same parameters, by `pool`; shared rows of certain states."""
    column, x, states, weights = assigned(name, rng)
    whole = column.stats(x, states, weights)
    parts = column.stats(x[:25], states[:25], weights[:25]) + column.stats(x[25:], states[25:], weights[25:])
    soft = column.soft_stats(x, weights[:, None] * np.eye(3)[states])
    for other in (parts, soft):
        assert column.total(other) == pytest.approx(column.total(whole), rel=1e-12)
        np.testing.assert_allclose(column.update(other).cost(x), column.update(whole).cost(x), rtol=1e-9, atol=1e-12)
    one = column.take(np.array([1]))
    fine = one.take(np.zeros(3, int))
    pooled = one.pool(fine.stats(x, states, weights), np.zeros(3, int), 1)
    direct = one.stats(x, np.zeros(len(x), int), weights)
    assert one.total(pooled) == pytest.approx(one.total(direct), rel=1e-12)
    np.testing.assert_allclose(one.update(pooled).cost(x), one.update(direct).cost(x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", LEARNED)
def test_an_em_step_never_lowers_the_likelihood_of_a_mixture(name, rng):
    """Update and spread, given the shares of the states: Σ p ln density rises, for every family."""
    column = EXAMPLES[name].column
    for _ in range(10):
        x = column.sample(rng.integers(0, 3, 80), rng)
        p = rng.dirichlet(np.ones(3), 80) * rng.choice([0.5, 1.0, 2.0], (80, 1))
        here = column.noisy(x, rng).with_pseudo_count(0.0)
        here = here.with_scale(here.soft_stats(x, p))
        levels = []
        for _ in range(6):
            levels.append((p * here.log_density(x)).sum())
            stats = here.soft_stats(x, p)
            here = here.update(stats).with_scale(stats, shared=0.0, floor=0.0)
        assert np.all(np.diff(levels) >= -1e-10 * np.abs(levels[0]))
        assert levels[-1] > levels[0]


# ------------------------------------------------------------------- scales


def test_spread_of_each_state(rng):
    """Residual spread, with `shared` readings of the common spread lent to each state."""
    x = np.concatenate([rng.normal(0, 1, 400), rng.normal(10, 3, 300)])
    states = np.repeat([0, 1], [400, 300])
    weights = rng.choice([1.0, 2.0], 700)
    for family, power in ((Gaussian, 2), (Laplace, 1)):
        column = family([0.3, 9.0, 5.0])
        stats = column.stats(x, states, weights)
        column = column.update(stats)
        deviation = weights * np.abs(x - column.means[states]) ** power
        pooled = deviation.sum() / weights.sum()
        scaled = column.with_scale(stats, 1.0)
        for s in range(3):
            own = states == s
            expected = (deviation[own].sum() + pooled) / (weights[own].sum() + 1.0)
            got = scaled.sds[s] if power == 2 else scaled.scales[s]
            assert got**power == pytest.approx(expected, rel=1e-10)


def test_spread_has_a_floor():
    """Repeated values are no certainty: the spread stays positive, for a state and for a whole column."""
    x = np.array([1.0, 1.0, 1.0, 5.0, 9.0])
    states = np.array([0, 0, 0, 1, 1])
    for family in (Gaussian, Laplace, Student):
        column = family([0.0, 0.0])
        stats = column.stats(x, states, 1e6 * np.ones(5))
        column = column.update(stats).with_scale(stats)
        for _ in range(30):  # a Student column comes nearer to its scale from step to step
            column = column.update(stats).with_scale(stats)
        scale = column.sds if family is Gaussian else column.scales
        assert 0.01 < scale[0] < 0.2 * scale[1]
        same = family([0.0, 0.0])
        stats = same.stats(np.ones(5), states, np.ones(5))
        same = same.update(stats).with_scale(stats)
        assert np.all((same.sds if family is Gaussian else same.scales) > 0)


@pytest.mark.parametrize("family", [Gaussian, Laplace])
def test_auto_weight_follows_the_noise(family, rng):
    """A constant over noise² (noise for Laplace); units cancel; rounded and constant columns have one too."""
    n = 20_000
    level = np.repeat(rng.normal(0, 50, n // 500), 500)
    noise = rng.normal(0, 2.0, n) if family is Gaussian else rng.laplace(0, 2.0, n)
    x = level + noise
    panel = panel_of(x)
    power = 2 if family is Gaussian else 1
    weight = family([0.0]).auto_weight(x, panel)
    constant = NORMAL_WEIGHT if family is Gaussian else 1.0
    assert weight == pytest.approx(constant / 2.0**power, rel=0.06)
    scaled = family([0.0]).auto_weight(7.5 * x - 40, panel)
    assert scaled * 7.5**power == pytest.approx(weight, rel=1e-12)
    coarse = np.where(rng.random(n) < 0.7, 120.0, 130.0)  # most differences are 0
    assert 0 < family([0.0]).auto_weight(coarse, panel) < np.inf
    for flat in (5.0, np.nan):
        assert family([0.0]).auto_weight(np.full(n, flat), panel) == constant


@pytest.mark.parametrize("df", [1.0, 4.0, 30.0])
def test_noise_of_heavy_tails(df, rng):
    """The scale of t noise about slow levels; by hand for ν = 1, where a difference is Cauchy of twice the scale."""

    class Heavy(Student):
        name = "heavy"

    Heavy.df = df
    n = 40_000
    x = np.repeat(rng.normal(0, 50, n // 500), 500) + 2.0 * rng.standard_t(df, n)
    assert Heavy([0.0]).noise(x, panel_of(x)) == pytest.approx(2.0, rel=0.04)
    assert median_difference(1.0) == pytest.approx(2.0, rel=1e-8)
    assert median_difference(1e4) == pytest.approx(0.6744897501960817 * math.sqrt(2), rel=1e-3)


def test_a_blank_knows_the_noise(rng):
    """Before any state is known, the spread is the noise of the column, in its unit, not 1."""
    x = 1e3 * rng.normal(size=4000)
    panel = panel_of(x)
    for family in (Gaussian, Student, Laplace):
        blank = family.blank(panel, 0, 2, [0, 1], None)
        spread = blank.sds if family is Gaussian else blank.scales
        np.testing.assert_array_equal(spread, blank.noise(x, panel))
        assert spread[0] == pytest.approx(1e3, rel=0.5)
    assert jm.JumpMeans(1, refine=0).fit(panel).emission_.sds[0] == pytest.approx(1e3, rel=0.1)


def test_lognormal_on_the_scale_of_the_readings(rng):
    column = Lognormal([0.0, 2.0], log_sds=[0.5, 1.0])
    np.testing.assert_allclose(column.medians, np.exp([0, 2]), rtol=1e-15)
    for s, (m, sd) in enumerate(((0.0, 0.5), (2.0, 1.0))):
        law = scipy_stats.lognorm(sd, scale=math.exp(m))
        assert column.means[s] == pytest.approx(law.mean(), rel=1e-12)
        assert column.sds[s] == pytest.approx(law.std(), rel=1e-12)
    np.testing.assert_array_equal(column.state_values(), column.means)
    # spreads of ln x in the thousands: what cannot be held is cut, not infinite
    wide = Lognormal([0.0, 3.0], log_sds=[100.0, 1.0])
    assert np.isfinite([*wide.means, *wide.sds, *wide.expected(np.full((1, 2), 0.5))]).all()
    x = np.exp(rng.normal(3.0, 0.3, 2000))
    model = jm.JumpMeans(1, emission="lognormal").fit(panel_of(x))
    assert model.predict_value(panel_of(x))[0] == pytest.approx(np.mean(x), rel=0.02)
    assert model.process_.emission.columns[0].log_means[0] == pytest.approx(np.mean(np.log(x)), rel=1e-10)


def test_noise_is_weighted_and_within_sequences(rng):
    x = rng.normal(size=30)
    ids = np.repeat([0, 1, 2], 10)
    k = np.array([1.0, 3.0, 2.0])
    weighted = Gaussian([0.0]).auto_weight(x, panel_of(x, ids, weights=k[ids]))
    copies = np.concatenate([np.repeat([i], int(k[i])) for i in range(3)])
    rows = np.concatenate([np.arange(10) + 10 * i for i in copies])
    copied = panel_of(x[rows], np.repeat(np.arange(6), 10))
    assert weighted == pytest.approx(Gaussian([0.0]).auto_weight(x[rows], copied), rel=1e-14)


# ------------------------------------------------------------------ bad values


def test_words_for_numbers():
    panel = panel_of(["1.5", "high", "2"], ids=["p", "p", "p"])
    for name in [*MEASURED, "bernoulli"]:
        with pytest.raises(
            jm.PanelError,
            match=rf"'value' must be numbers for emission '{name}', got 'high' at sequence 'p', row 1; convert",
        ):
            jm.JumpMeans(2, emission=spec(name)).fit(panel)


def test_counts_must_be_counts():
    for bad in (-1.0, 2.5):
        panel = panel_of([0.0, 1.0, bad, 3.0])
        with pytest.raises(
            jm.PanelError,
            match=rf"'poisson' must be 0, 1, 2, \.\.\., got {bad:g} at sequence 0, row 2; use emission='gaussian'",
        ):
            jm.JumpMeans(2, emission="poisson").fit(panel)


@pytest.mark.parametrize("name", ["exponential", "lognormal", "gamma"])
def test_positive_readings_must_be_positive(name):
    for bad in (0.0, -2.0):
        panel = panel_of([1.0, bad, 3.0])
        with pytest.raises(jm.PanelError, match=rf"'{name}' must be > 0, got {bad:g} at sequence 0, row 1; drop"):
            jm.JumpMeans(2, emission=spec(name)).fit(panel)


def test_bernoulli_readings_must_be_0_or_1():
    with pytest.raises(jm.PanelError, match=r"'bernoulli' must be 0 or 1, got 2 at sequence 0, row 2; code the"):
        jm.JumpMeans(2, emission="bernoulli").fit(panel_of([0.0, 1.0, 2.0]))


@pytest.mark.parametrize("name", ["poisson", "exponential", "bernoulli"])
def test_bad_values_at_prediction_too(name):
    panel = panel_of([1.0, 0.0, 1.0, 1.0] if name != "exponential" else [1.0, 2.0, 9.0, 8.0])
    model = jm.JumpMeans(2, emission=name, n_init=1).fit(panel)
    with pytest.raises(jm.PanelError, match=r"got -1 at sequence 0, row 1"):
        model.predict(panel_of([1.0, -1.0]))


@pytest.mark.parametrize("name", ["direct", "categorical"])
def test_unseen_labels_are_listed(name):
    panel = panel_of(list("aabbab"))
    model = jm.JumpMeans(2, emission=name, n_init=1).fit(panel)
    new = panel_of(list("aaxbz"), ids=[5] * 5)
    with pytest.raises(
        jm.PanelError, match=r"among the known ones \['a', 'b'\], got \['x', 'z'\], first at sequence 5, row 2"
    ):
        model.predict(new)
    many = panel_of(list("abcdefghij"))
    with pytest.raises(jm.PanelError, match=r"got \['c', 'd', 'e', 'f', 'g'\] and 3 more"):
        model.decode(many)
    numbers = panel_of([1, 2, 1, 2, 3])
    model = jm.JumpMeans(3, emission=name, n_init=1).fit(numbers)
    with pytest.raises(jm.PanelError, match=r"among the known ones \[1, 2, 3\], got \[7\], first at sequence 0, row 1"):
        model.predict(panel_of([1, 7]))


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("factor", [1e155, 1e-300])
def test_readings_whose_squares_cannot_be_held(name, factor, rng):
    """Once J = NaN after hundreds of warnings; now the value, its place and what to do, or a fit without any NaN."""
    x = factor * np.concatenate([rng.uniform(9, 11, 40), rng.uniform(49, 51, 40)])
    panel = panel_of(np.floor(x) if name == "poisson" else x, np.repeat(np.arange(8), 10), np.tile(np.arange(10.0), 8))
    models = (
        jm.JumpMeans(2, emission=spec(name)),
        jm.InfiniteJumpMeans(emission=spec(name), max_states=3),
        jm.comparators.EM(2, emission=spec(name)),
    )
    for model in models:
        if name == "lognormal" and factor < 1:  # logarithms know no scale
            model.fit(panel)
            assert np.isfinite(model.process_.emission.columns[0].log_means).all()
            continue
        if name == "poisson" and factor < 1:
            continue  # all counts are 0
        with pytest.raises(
            jm.PanelError, match=r"got .*e[+-]\d+ at sequence \d, row \d+; (rescale the column|drop such)"
        ):
            model.fit(panel)
    if factor > 1:  # at prediction too, and for the rules of thumb
        small = panel_of(np.array([3.0, 4.0, 9.0, 8.0]))
        fitted = jm.JumpMeans(2, emission=spec(name), n_init=1).fit(small)
        with pytest.raises(jm.PanelError, match=r"at most 1e\+140 in size, got 1e\+300 at sequence 0, row 1; rescale"):
            fitted.predict(panel_of([3.0, 1e300]))


@pytest.mark.parametrize("name", ["gaussian", "student", "laplace"])
def test_noise_too_small_for_the_readings(name, rng):
    """Noise far below what a double can hold beside the largest reading: costs would overflow."""
    x = np.where(np.arange(40) < 30, 1e-100 * rng.normal(size=40), 1e100)
    with pytest.raises(
        jm.PanelError, match=r"noise of readings must be at least 1e-140, .* at sequence 0, row \d+; resc"
    ):
        jm.JumpMeans(2, emission=name).fit(panel_of(x))


@pytest.mark.parametrize("name", ["exponential", "gamma"])
def test_positive_readings_of_all_sizes(name, rng):
    """A mean taken relative to one 1e200 times larger comes out as 0: it must not be divided by."""
    x = np.where(np.arange(200) < 100, 1e-100, 1e100) * rng.uniform(1, 2, 200)
    panel = panel_of(x, np.repeat(np.arange(20), 10), np.tile(np.arange(10.0), 20))
    model = jm.JumpMeans(2, emission=spec(name)).fit(panel)
    np.testing.assert_allclose(model.process_.emission.means, [np.mean(x[:100]), np.mean(x[100:])], rtol=1e-3)
    assert np.isfinite(model.objective_)


@pytest.mark.parametrize("name", ["bernoulli", "categorical"])
def test_columns_without_any_value(name):
    with pytest.raises(
        jm.PanelError, match=rf"'value' must hold at least one .* for emission '{name}', got none; check"
    ):
        jm.JumpMeans(2, emission=name).fit(panel_of(np.full(6, np.nan)))


@pytest.mark.parametrize("name", ["direct", "categorical"])
@pytest.mark.parametrize("model", [jm.JumpMeans, jm.comparators.EM])
def test_measurements_taken_for_labels(name, model, rng):
    """Refused before any table is made, without a list of all values: once minutes, gigabytes, or a crash."""
    x = rng.normal(size=200)
    n_states = None if name == "direct" else 2
    with pytest.raises(
        jm.PanelError, match=rf"labels that repeat for emission '{name}', got 200 different .*'gaussian'"
    ) as e:
        model(n_states, emission=name).fit(panel_of(x))
    assert len(str(e.value)) < 500
    many = np.repeat(np.arange(5000), 3)
    with pytest.raises(
        jm.PanelError, match=rf"at most \d+ labels for emission '{name}', got 5000: \[0, 1, .* more; "
    ) as e:
        model(n_states, emission=name).fit(panel_of(many))
    assert len(str(e.value)) < 500
    # labels that are numbers, and few measurements, are welcome
    halves = panel_of(np.tile(np.arange(30) / 2, 3), np.repeat(np.arange(3), 30), np.tile(np.arange(30.0), 3))
    with pytest.warns(StructureWarning, match="only 0 of 87 rows show the state of the row before"):
        found = jm.JumpMeans(emission="direct", refine=0).fit(halves)
    assert found.states_.tolist() == (np.arange(30) / 2).tolist()


def test_messages_do_not_list_every_label():
    labels = [f"label {k}" for k in range(100)]
    panel = panel_of(labels * 2)
    model = jm.JumpMeans(emission="direct", refine=0, max_iter=2000).fit(panel_of(list("abcabc")))
    with pytest.raises(jm.PanelError, match=r"known ones \['a', 'b', 'c'\], got \['label 0', .* and 95 more, first at"):
        model.predict(panel)
    with pytest.raises(ValueError, match=r"n_states=3 must equal the number of labels, got 100: .* and 95 more; leave"):
        jm.JumpMeans(3, emission="direct").fit(panel)
    with pytest.raises(ValueError, match=r"states must be distinct, got .* and 195 more"):
        jm.JumpMeans(emission="direct", states=labels * 2).fit(panel)
    assert len(repr(Direct(labels))) < 500


def test_labels_keep_their_kind():
    for labels in (["low", "high"], [10, 20], [False, True]):
        panel = panel_of([labels[i] for i in (0, 0, 1, 1, 0)])
        model = jm.JumpMeans(emission="direct").fit(panel)
        assert model.states_.tolist() == sorted(labels)
        assert model.predict(panel).tolist() == [labels[i] for i in (0, 0, 1, 1, 0)]


def test_families_by_name_and_by_class():
    assert find_families("gaussian", 3) == [Gaussian] * 3
    assert find_families(["direct", Poisson], 2) == [Direct, Poisson]
    assert find_families(Student, 2) == [Student] * 2
    for odd in ("gausian", None, 3, int, Gaussian([0, 1])):
        with pytest.raises(
            ValueError, match=r"one of \['bernoulli', .*\] or a subclass of jumpmeans.emissions.Column .*, got "
        ):
            find_families(odd, 1)
    with pytest.raises(ValueError, match=r"each of the 3 value columns, got 2: \['direct', 'poisson'\]"):
        find_families(["direct", "poisson"], 3)
    with pytest.raises(ValueError, match=r"'direct' must stand for one column only"):
        find_families("direct", 2)


def test_records_of_unequal_states():
    with pytest.raises(ValueError, match=r"same number of states, got \[2, 3\]"):
        Record([Gaussian([0, 1]), Poisson([1, 2, 3])])
    assert as_record(Gaussian([0, 1])).n_states == 2
    record = as_record([Gaussian([0, 1])])
    assert as_record(record) is record


def test_wrong_number_of_columns():
    model = jm.JumpMeans(2, n_init=1).fit(panel_of([0.0, 1.0, 5.0, 6.0]))
    with pytest.raises(jm.PanelError, match=r"1 value columns as when fitted, got 2"):
        model.predict(panel_of(np.ones((4, 2))))


def test_parameters_by_name():
    record = Record([Gaussian([0, 1], sds=[1, 2]), Laplace([2, 3]), Categorical([[1, 0], [0.5, 0.5]])])
    np.testing.assert_array_equal(record.means, [[0, 2], [1, 3]])
    np.testing.assert_array_equal(record.probs, [[1, 0], [0.5, 0.5]])
    np.testing.assert_array_equal(Record([Gaussian([0, 1], sds=[1, 2])]).sds, [1, 2])
    with pytest.raises(AttributeError, match=r"emission of \['direct'\] has no 'means'"):
        _ = Record([Direct(["a"])]).means


def test_probs_of_columns_of_different_shapes():
    """Chances of symbols and of a 1 cannot be put side by side: once a raw error of numpy."""
    record = Record([Categorical([[0.5, 0.5], [0.9, 0.1]]), Bernoulli([0.2, 0.7])])
    with pytest.raises(
        AttributeError, match=r"one shape to be put side by side, got \[\(2, 2\), \(2,\)\]; read them col"
    ):
        _ = record.probs
    np.testing.assert_array_equal(record.means, [[0.2], [0.7]])
    alike = Record([Bernoulli([0.1, 0.3]), Bernoulli([0.2, 0.7])])
    np.testing.assert_array_equal(alike.probs, [[0.1, 0.2], [0.3, 0.7]])


REFUSED = {
    "a spread of -1": (
        lambda: Gaussian([0, 1], sds=-1),
        r"sds must be finite numbers > 0, one for each state, got \[-1",
    ),
    "a spread of 0": (
        lambda: Laplace([0, 1], scales=[1, 0]),
        r"scales must be finite numbers > 0, .* got \[1.0, 0.0\]",
    ),
    "three spreads": (lambda: Gaussian([0, 1], sds=[1, 2, 3]), r"sds must be one number or one for each of the 2 st"),
    "an infinite mean": (
        lambda: Gaussian([0, np.inf]),
        r"means must be finite numbers, one for each state, got \[0.0, inf",
    ),
    "no mean": (lambda: Gaussian([]), r"means must be finite numbers, one for each state, got \[\]"),
    "a table of means": (lambda: Gaussian([[0, 1]]), r"means must be finite numbers, one for each state, got \[\[0"),
    "a missing median": (lambda: Laplace([0, np.nan]), r"medians must be finite numbers, one for each state, got"),
    "a log mean": (lambda: Lognormal([np.inf]), r"log_means must be finite numbers"),
    "a log spread": (lambda: Lognormal([0.0], log_sds=0), r"log_sds must be finite numbers > 0"),
    "no freedom": (lambda: Student([0], df=0), r"df must be finite numbers > 0"),
    "a t spread": (lambda: Student([0], scales=np.nan), r"scales must be finite numbers > 0"),
    "a negative count": (
        lambda: Poisson([1, -2]),
        r"means must be finite numbers >= 0, one for each state, got \[1.0, -2",
    ),
    "a mean of 0": (lambda: Exponential([1, 0]), r"means must be finite numbers > 0, one for each state, got \[1.0, 0"),
    "a chance of 2": (lambda: Bernoulli([2, 0.5]), r"means must be finite numbers >= 0 and <= 1, .* got \[2.0, 0.5\]"),
    "chances": (
        lambda: Categorical([[0.5, 0.5], [0.5, 0.6]]),
        r"sum to 1, got \[0.5, 0.6\] with the sum 1.1 for state 1",
    ),
    "a chance < 0": (lambda: Categorical([[1.5, -0.5]]), r"probabilities that sum to 1, got \[1.5, -0.5\]"),
    "a chance NaN": (lambda: Categorical([[np.nan, 1.0]]), r"probabilities that sum to 1, got \[nan, 1.0\]"),
    "an empty table": (lambda: Categorical([[]]), r"probs must be a table of states by symbols, got shape \(1, 0\)"),
    "a cube": (
        lambda: Categorical(np.ones((2, 2, 1))),
        r"probs must be a table of states by symbols, got shape \(2, 2, 1",
    ),
    "symbols": (lambda: Categorical([[0.5, 0.5]], ["a"]), r"symbols must name the 2 columns of probs, got 1"),
    "same symbols": (lambda: Categorical([[0.5, 0.5]], ["a", "a"]), r"symbols must be distinct, got \['a'\] more than"),
    "a count": (lambda: Categorical([[1.0]], pseudo_count=-1), r"pseudo_count must be a finite number >= 0, got -1"),
    "same labels": (lambda: Direct(["a", "b", "a"]), r"labels must be distinct, got \['a'\] more than once"),
    "no labels": (lambda: Direct([]), r"labels must be a list of at least one label"),
    "one label": (lambda: Direct("a"), r"labels must be a list of at least one label, got 'a'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_constructors_check_their_arguments(case):
    make, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        make()


# --------------------------------------------------------------------- order


def test_states_come_in_order_of_value():
    time = np.zeros(3)
    assert Record([Gaussian([3, 1, 2])]).stable_order(time).tolist() == [1, 2, 0]
    assert Record([Laplace([3, 1, 2])]).stable_order(time).tolist() == [1, 2, 0]
    assert Record([Direct(["c", "a", "b"])]).stable_order(time).tolist() == [0, 1, 2]
    two = Record([Gaussian([1, 1, 0]), Gaussian([5, 4, 9])])
    assert two.stable_order(time).tolist() == [2, 1, 0]


def test_states_of_symbols_come_in_order_of_symbol_then_time():
    probs = [[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    record = Record([Categorical(probs)])
    assert record.stable_order(np.array([1.0, 2.0, 5.0, 9.0])).tolist() == [3, 1, 2, 0]
    mixed = Record([Categorical(probs), Gaussian([4, 3, 2, 1])])
    assert mixed.stable_order(np.zeros(4)).tolist() == [3, 2, 1, 0]


def test_order_of_a_direct_column_rules():
    mixed = Record([Gaussian([3, 1, 2]), Direct(["c", "a", "b"])])
    assert mixed.stable_order(np.zeros(3)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ALL)
def test_take_and_join(name):
    """States in another order, some of them twice, some left out; and the states of two emissions in a row."""
    column, values, *_ = EXAMPLES[name]
    x = np.array([*values, np.nan])
    for index in (np.array([2, 0, 1]), np.array([1, 1]), np.array([0])):
        taken = column.take(index)
        assert taken.n_states == len(index)
        if not column.shows_state:  # there a value is a place among the labels, and these are fewer now
            np.testing.assert_array_equal(taken.cost(x), column.cost(x)[:, index])
            np.testing.assert_allclose(taken.log_density(x), column.log_density(x)[:, index], rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(taken.state_values(), column.state_values()[index])
    whole = column.take(np.array([0])).join(column.take(np.array([1, 2])))
    for table in ("cost", "log_density"):
        np.testing.assert_array_equal(getattr(whole, table)(x), getattr(column, table)(x))
    np.testing.assert_array_equal(whole.state_values(), column.state_values())


def test_spreads_go_with_their_states():
    index = np.array([2, 0, 1])
    np.testing.assert_array_equal(Gaussian([1, 2, 3], sds=[4, 5, 6]).take(index).sds, [6, 4, 5])
    np.testing.assert_array_equal(Student([1, 2, 3], scales=[4, 5, 6], df=9).take(index).scales, [6, 4, 5])
    assert Student([1, 2, 3], df=9).take(index).df == 9.0
    assert Direct(["a", "b", "c"]).take(index).labels.tolist() == ["c", "a", "b"]


@pytest.mark.parametrize("name", LEARNED)
def test_mean_of_several_emissions(name):
    """Parameters of the mean lie half way; the mean of one is itself."""
    column = EXAMPLES[name].column
    other = column.take(np.array([1, 2, 0]))
    half = column.averaged([column, other])
    for parameter in column.params:
        a, b = getattr(column, parameter), getattr(other, parameter)
        np.testing.assert_allclose(getattr(half, parameter), (a + b) / 2, rtol=1e-15)
    np.testing.assert_array_equal(column.averaged([column]).state_values(), column.state_values())


@pytest.mark.parametrize("name", ALL)
def test_predictive_distributions(name, rng):
    """What to expect is the best value of the predictive table; under certainty, what the state shows."""
    column = EXAMPLES[name].column
    probs = rng.dirichlet(np.ones(3), 50)
    table = column.predictive(probs)
    assert table.shape == (50, len(column.symbols) if column.is_symbolic else 1)
    if column.is_symbolic:
        np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(column.expected(probs), column.best_value(table))
    np.testing.assert_array_equal(column.expected(np.eye(3)), column.state_values())


def test_what_a_row_should_show():
    probs = np.array([[0.9, 0.1], [0.4, 0.6]])
    np.testing.assert_allclose(Gaussian([0.0, 10.0]).expected(probs), [1.0, 6.0], rtol=1e-15)
    assert Direct(["a", "b"]).expected(probs).tolist() == ["a", "b"]
    # 0.9 of a state that mostly says u, and 0.6 of one that always says v
    column = Categorical([[0.6, 0.4], [0.0, 1.0]], ["u", "v"])
    assert column.expected(probs).tolist() == ["u", "v"]
    assert column.state_values().tolist() == ["u", "v"]
    mixed = Record([Gaussian([0.0, 10.0]), Direct(["a", "b"])])
    assert mixed.expected(probs).tolist() == [[1.0, "a"], [6.0, "b"]]
    assert mixed.state_values().tolist() == [[0.0, "a"], [10.0, "b"]]


# -------------------------------------------------------------------- drawing


@pytest.mark.parametrize("name", [*MEASURED, "bernoulli"])
def test_drawn_values_have_the_mean(name, rng):
    column = EXAMPLES[name].column
    n = 40_000
    for s, mean in enumerate(column.means):
        x = column.named(column.sample(np.full(n, s), rng))
        variance = {
            "gaussian": 1.0, "laplace": 2.0, "poisson": mean, "exponential": mean**2, "bernoulli": mean * (1 - mean),
            "student": 2 * 0.5**2, "lognormal": mean**2 * math.expm1(0.4**2), "gamma": mean**2 / 4,
        }  # fmt: skip
        spread = math.sqrt(variance[name])
        assert x.mean() == pytest.approx(mean, abs=5 * spread / math.sqrt(n))
        assert x.std() == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize("name", ALL)
def test_drawn_values_are_in_the_support(name, rng):
    """Named as a panel would hold them, and coded again: the same numbers."""
    column = EXAMPLES[name].column
    x = column.sample(rng.integers(0, 3, 200), rng)
    np.testing.assert_allclose(column.encode(panel_of(column.named(x)), 0), x, rtol=1e-12, atol=1e-14)
    again = column.sample(np.array([0, 1, 1, 2]), np.random.default_rng(1))
    np.testing.assert_array_equal(again, column.sample(np.array([0, 1, 1, 2]), np.random.default_rng(1)))


def test_drawn_symbols_have_their_chances(rng):
    probs = np.array([[0.7, 0.3, 0.0], [0.0, 0.05, 0.95]])
    column = Categorical(probs, list("abc"))
    n = 40_000
    for s in range(2):
        share = np.bincount(column.sample(np.full(n, s), rng).astype(int), minlength=3) / n
        np.testing.assert_allclose(share, probs[s], atol=5 * 0.5 / math.sqrt(n))
        assert np.all(share[probs[s] == 0] == 0)
    assert Direct(["x", "y"]).sample(np.array([1, 0]), rng).tolist() == [1.0, 0.0]


# -------------------------------------------------------------- the whole data


def test_pseudo_counts_keep_means_off_the_edge():
    """All counts 0, all readings 1: the costs stay finite, and so does the objective."""
    model = jm.JumpMeans(2, emission="poisson", n_init=1).fit(panel_of([0, 0, 0, 0, 3, 4, 3, 5]))
    assert np.all(model.emission_.means > 0) and np.isfinite(model.objective_)
    model = jm.JumpMeans(2, emission="bernoulli", n_init=1).fit(panel_of([0, 0, 0, 0, 1, 1, 1, 1]))
    assert np.all((model.emission_.means > 0) & (model.emission_.means < 1)) and np.isfinite(model.objective_)


@pytest.mark.parametrize("name", ["poisson", "bernoulli", "categorical"])
def test_without_pseudo_counts(name):
    """A state may then show one value only: infinite costs for others, a finite objective all the same."""
    model = jm.JumpMeans(2, emission=name, n_init=1, pseudo_count=0).fit(panel_of([0, 0, 0, 0, 1, 1, 1, 1]))
    assert np.isfinite(model.objective_)
    assert np.all(np.diff(model.objective_history_) <= 1e-9 * np.abs(model.objective_history_[1:]) + 1e-12)


@pytest.mark.parametrize("unit", [5e-324, 2.0**-1074, 1e-300, 0.3, 1.0, 8.0, np.nextafter(8.0, 0.0), 1e300])
def test_a_unit_is_the_largest_power_of_two(unit):
    """Caught: log2 of a number just below a power of two, which rounds up to it."""
    found = power_of_two(unit)
    assert found <= unit and unit / found < 2
    assert math.frexp(found)[0] == 0.5


@pytest.mark.parametrize("other", [0.0, -1.0, np.inf, np.nan])
def test_a_unit_of_nothing_is_one(other):
    assert power_of_two(other) == 1.0


def test_a_mean_is_told_as_finely_as_its_spread_allows():
    """Caught: a mean of 0 as -0.0001977 ± 1."""
    shows = jm.emissions.Gaussian(
        [-0.0001977, 0.02111, 85.523, 0.0, 1e-20], sds=[1.0, 1.0, 10.0, 1.0, 1e-19]
    ).describe()
    assert shows == ["0 ± 1", "0.021 ± 1", "85.52 ± 10", "0 ± 1", "1e-20 ± 1e-19"]
