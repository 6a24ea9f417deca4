"""Observation families: costs and densities by formula, what is refused, order of states, drawn values."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

import jumpmeans as jm
import reference
from jumpmeans.emissions import (
    FAMILIES,
    Bernoulli,
    Categorical,
    Direct,
    Exponential,
    Gaussian,
    Laplace,
    Poisson,
    Record,
    as_record,
    family_names,
)
from jumpmeans.emissions.bregman import NORMAL_WEIGHT

THETA = {
    "gaussian": [-1.0, 0.5, 7.0],
    "laplace": [-1.0, 0.5, 7.0],
    "poisson": [0.2, 3.0, 40.0],
    "exponential": [0.1, 1.0, 30.0],
    "bernoulli": [0.05, 0.5, 0.99],
}
VALUES = {
    "gaussian": [-3.0, 0.0, 7.5],
    "laplace": [-3.0, 0.5, 7.5],
    "poisson": [0.0, 1.0, 55.0],
    "exponential": [1e-3, 1.0, 200.0],
    "bernoulli": [0.0, 1.0, 1.0],
}
LOG_DENSITY = {
    "gaussian": lambda x, m: scipy_stats.norm.logpdf(x, m, 1.0),
    "laplace": lambda x, m: scipy_stats.laplace.logpdf(x, m, 1.0),
    "poisson": lambda x, m: scipy_stats.poisson.logpmf(x, m),
    "exponential": lambda x, m: scipy_stats.expon.logpdf(x, scale=m),
    "bernoulli": lambda x, m: scipy_stats.bernoulli.logpmf(x, m),
}


def panel_of(values, ids=None, times=None, **options):
    n = len(values)
    ids = np.zeros(n, int) if ids is None else ids
    return jm.Panel.from_arrays(np.arange(n) * 1.0 if times is None else times, values, ids, **options)


# ---------------------------------------------------------- costs and densities


@pytest.mark.parametrize("name", THETA)
def test_cost_is_the_divergence(name):
    column = FAMILIES[name](THETA[name])
    cost = column.cost(np.array(VALUES[name]))
    expected = [[reference.DIVERGENCE[name](x, m) for m in THETA[name]] for x in VALUES[name]]
    np.testing.assert_allclose(cost, expected, rtol=1e-12, atol=1e-15)
    assert cost.min() >= 0.0


@pytest.mark.parametrize("name", THETA)
def test_density(name):
    column = FAMILIES[name](THETA[name])
    got = column.log_density(np.array(VALUES[name]))
    expected = [[LOG_DENSITY[name](x, m) for m in THETA[name]] for x in VALUES[name]]
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


def test_density_with_own_scales():
    x = np.array([0.3, -2.0])
    gaussian = Gaussian([0.0, 1.0], sds=[0.5, 3.0]).log_density(x)
    laplace = Laplace([0.0, 1.0], scales=[0.5, 3.0]).log_density(x)
    for i, value in enumerate(x):
        for s, (m, scale) in enumerate(((0.0, 0.5), (1.0, 3.0))):
            assert gaussian[i, s] == pytest.approx(scipy_stats.norm.logpdf(value, m, scale), rel=1e-13)
            assert laplace[i, s] == pytest.approx(scipy_stats.laplace.logpdf(value, m, scale), rel=1e-13)


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


@pytest.mark.parametrize("name", [*THETA, "categorical", "direct"])
def test_missing_costs_nothing(name):
    if name == "categorical":
        column = Categorical([[0.5, 0.5], [0.9, 0.1]])
    else:
        column = Direct([0, 1]) if name == "direct" else FAMILIES[name](THETA[name])
    x = np.array([np.nan, 1.0, np.nan])
    assert np.all(column.cost(x)[[0, 2]] == 0.0)
    assert np.all(column.log_density(x)[[0, 2]] == 0.0)
    blank = column.stats(x[[0, 2]], np.zeros(2, int), np.ones(2))
    assert column.total(blank) == 0.0


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
    for family in (Gaussian, Laplace):
        column = family([0.0, 0.0])
        stats = column.stats(x, states, 1e6 * np.ones(5))
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
    for name in ("gaussian", "laplace", "poisson", "exponential", "bernoulli"):
        with pytest.raises(
            jm.PanelError,
            match=rf"'value' must be numbers for emission '{name}', got 'high' at sequence 'p', row 1; convert",
        ):
            jm.JumpMeans(2, emission=name).fit(panel)


def test_counts_must_be_counts():
    for bad in (-1.0, 2.5):
        panel = panel_of([0.0, 1.0, bad, 3.0])
        with pytest.raises(
            jm.PanelError,
            match=rf"'poisson' must be 0, 1, 2, \.\.\., got {bad:g} at sequence 0, row 2; use emission='gaussian'",
        ):
            jm.JumpMeans(2, emission="poisson").fit(panel)


def test_exponential_readings_must_be_positive():
    for bad in (0.0, -2.0):
        panel = panel_of([1.0, bad, 3.0])
        with pytest.raises(
            jm.PanelError, match=rf"'exponential' must be > 0, got {bad:g} at sequence 0, row 1; drop or blank"
        ):
            jm.JumpMeans(2, emission="exponential").fit(panel)


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


def test_labels_keep_their_kind():
    for labels in (["low", "high"], [10, 20], [False, True]):
        panel = panel_of([labels[i] for i in (0, 0, 1, 1, 0)])
        model = jm.JumpMeans(emission="direct").fit(panel)
        assert model.states_.tolist() == sorted(labels)
        assert model.predict(panel).tolist() == [labels[i] for i in (0, 0, 1, 1, 0)]


def test_family_names():
    assert family_names("gaussian", 3) == ["gaussian"] * 3
    assert family_names(["direct", "poisson"], 2) == ["direct", "poisson"]
    with pytest.raises(ValueError, match=r"one of \['bernoulli', .*\] \(or a list of them\), got 'gausian'"):
        family_names("gausian", 1)
    with pytest.raises(ValueError, match=r"each of the 3 value columns, got 2: \['direct', 'poisson'\]"):
        family_names(["direct", "poisson"], 3)
    with pytest.raises(ValueError, match=r"'direct' must stand for one column only"):
        family_names("direct", 2)


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


@pytest.mark.parametrize("name", [*THETA, "categorical"])
def test_permute(name):
    order = np.array([2, 0, 1])
    if name == "categorical":
        column = Categorical([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]], ["a", "b"])
    else:
        column = FAMILIES[name](THETA[name])
    x = np.array([1.0, 0.0, np.nan]) if name != "exponential" else np.array([1.0, 2.0, np.nan])
    permuted = column.take(order)
    np.testing.assert_array_equal(permuted.cost(x), column.cost(x)[:, order])
    np.testing.assert_array_equal(permuted.log_density(x), column.log_density(x)[:, order])
    np.testing.assert_array_equal(permuted.state_values(), column.state_values()[order])
    gaussian = Gaussian([1, 2, 3], sds=[4, 5, 6]).take(order)
    np.testing.assert_array_equal(gaussian.sds, [6, 4, 5])
    assert Direct(["a", "b", "c"]).take(order).labels.tolist() == ["c", "a", "b"]


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


@pytest.mark.parametrize("name", THETA)
def test_drawn_values_have_the_mean(name, rng):
    column = FAMILIES[name](THETA[name])
    n = 40_000
    for s, mean in enumerate(THETA[name]):
        x = column.sample(np.full(n, s), rng)
        variance = {"gaussian": 1.0, "laplace": 2.0, "poisson": mean, "exponential": mean**2}
        spread = math.sqrt(variance.get(name, mean * (1 - mean)))
        assert x.mean() == pytest.approx(mean, abs=5 * spread / math.sqrt(n))
        assert x.std() == pytest.approx(spread, rel=0.1)
        assert np.array_equal(column.encode(panel_of(x), 0), x)  # its own support takes them


def test_drawn_symbols_have_their_chances(rng):
    probs = np.array([[0.7, 0.3, 0.0], [0.0, 0.05, 0.95]])
    column = Categorical(probs, list("abc"))
    n = 40_000
    for s in range(2):
        share = np.bincount(column.sample(np.full(n, s), rng).astype(int), minlength=3) / n
        np.testing.assert_allclose(share, probs[s], atol=5 * 0.5 / math.sqrt(n))
        assert np.all(share[probs[s] == 0] == 0)
    assert Direct(["x", "y"]).sample(np.array([1, 0]), rng).tolist() == [1.0, 0.0]


def test_drawing_repeats_with_the_seed():
    for column in (Gaussian([0, 5]), Laplace([0, 5]), Poisson([1, 5]), Exponential([1, 5]), Bernoulli([0.2, 0.7])):
        states = np.array([0, 1, 1, 0])
        a = column.sample(states, np.random.default_rng(1))
        np.testing.assert_array_equal(a, column.sample(states, np.random.default_rng(1)))


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
