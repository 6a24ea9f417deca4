"""A family defined in the tests goes wherever the built-in ones go; Student and log-normal readings; fair starts."""

import math
import os
import subprocess
import sys
import threading
import warnings

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats as scipy_stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import jumpmeans as jm
from all_families import ALL, EXAMPLES, HIDDEN, Gamma, spec
from jumpmeans.comparators import EM, Gibbs, MLTrajectory, MostCommon, ParticleGibbs
from jumpmeans.emissions import FAMILIES, Bernoulli, Categorical, Gaussian, Record
from jumpmeans.emissions.symbols import MOST_LABELS
from jumpmeans.fit.start import cluster_emission, nearest_centres

ONE = jm.engines.Threads(1)
P3 = (1 - np.eye(3)) / 2
# As far as double precision goes.
TIGHT = {"tol": 1e-14, "max_iter": 3000, "engine": ONE}


def simulated(name, n_sequences=60, seed=0, emission=None):
    """Three states of mean dwell 5 gaps, 20 looks each; and the process."""
    process = jm.Process([0.2] * 3, P3, emission=EXAMPLES[name].column if emission is None else emission)
    return jm.simulate(process, n_sequences, 20, random_state=seed)[0], process


# ------------------------------------------------------- a family of our own


def test_a_family_defined_here_is_known_nowhere_else():
    assert "gamma" not in FAMILIES and Gamma not in FAMILIES.values()


def test_it_is_fitted_by_every_model():
    panel, process = simulated("gamma")
    means = process.emission.means
    for model in (
        jm.JumpMeans(3, emission=Gamma, engine=ONE),
        jm.InfiniteJumpMeans(emission=Gamma, engine=ONE),
        EM(3, emission=Gamma, engine=ONE),
    ):
        fitted = clone(model).fit(panel)
        assert len(fitted.states_) == 3
        np.testing.assert_allclose(fitted.process_.emission.means, means, rtol=0.15)
        np.testing.assert_allclose(fitted.process_.rates, process.rates, rtol=0.35)
        assert np.isfinite(fitted.predict_proba(panel)).all()
        assert fitted.predict_value(panel).shape == (panel.n_observations,)
    tuned = jm.tune(jm.JumpMeans(3, emission=Gamma, refine=0), panel, {"emission_weight": [1.0]}, folds=1, n_jobs=1)
    assert tuned.model.emission is Gamma
    best = MLTrajectory(EM(3, emission=Gamma).fit(panel).process_).fit(panel).trajectories_
    assert np.isfinite(best.log_density).all()
    assert MostCommon(emission=Gamma).fit(panel).predict_value(panel)[0] > 0


# A form of `jumpmeans.forms`, in plain words: what a value x says of state s by a table.
FORMS = {
    "quadratic": lambda t, x, s: t[0, s] + t[1, s] * (x - t[2, s]) ** 2 + t[3, s] * x,
    "table": lambda t, x, s: t[int(x), s],
    "poisson": lambda t, x, s: (
        t[0, s]
        + t[1, s] * x
        + t[2, s] * max((x * np.log(x) - x * t[4, s] if x > 0 else 0.0) - x + t[3, s], 0.0)
        - t[5, s] * math.lgamma(x + 1.0)
    ),
    "exponential": lambda t, x, s: t[0, s] + t[1, s] * x / t[2, s] + t[3, s] * np.log(x / t[2, s]),
}


@pytest.mark.parametrize("name", ALL)
def test_a_formula_is_its_family_without_the_class(name):
    """Caught: the sign of ln x in the density of a log-normal column, and a price that a table forgets."""
    column, values = EXAMPLES[name].column, EXAMPLES[name].values
    formula = column.formula()
    if formula is None:
        assert name in ("gamma", "student", "laplace")
        return
    say, M = FORMS[formula.form], column.n_states
    costs, densities = formula.cost(0.7), formula.density()
    cost = [[say(costs, x, s) for s in range(M)] for x in values]
    density = [[say(densities, x, s) for s in range(M)] for x in values]
    np.testing.assert_allclose(cost, 0.7 * column.cost(np.array(values)), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(density, column.log_density(np.array(values)), rtol=1e-12, atol=1e-12)
    # what is summed of the rows of each state makes the statistics
    x, states, weights = np.array(values), np.array([0, 2, 2]), np.array([1.0, 2.0, 0.5])
    origin = np.zeros(M) if formula.origin is None else formula.origin
    own = [
        (np.sum(weights[states == s]), weights[states == s] @ (x[states == s] - origin[s]),
         sum(w * say(formula.cost(1.0), y, s) for y, w in zip(x[states == s], weights[states == s], strict=True)))
        for s in range(M)
    ]  # fmt: skip
    counts = np.zeros((M, formula.n_codes))
    if formula.sums == "counts":
        np.add.at(counts, (states, x.astype(int)), weights)
    sums = {"mean": np.array(own).T.ravel(), "counts": counts.ravel(), "nothing": np.empty(0)}[formula.sums]
    for got, expected in zip(
        np.atleast_1d(column.read_sums(sums)), np.atleast_1d(column.stats(x, states, weights)), strict=True
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)


def test_a_subclass_does_not_inherit_the_formula():
    """Caught: a device that works out a subclass by the formula of its base, whatever it changed."""

    class Dull(Gaussian):
        name = "dull"

        def cost(self, x):
            return 2.0 * super().cost(x)

    assert Dull([0.0, 1.0]).formula() is None and Gaussian([0.0, 1.0]).formula() is not None


def test_it_stands_beside_other_columns():
    emission = [EXAMPLES["gamma"].column, Categorical([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]], ["x", "y"])]
    panel, _ = simulated("gamma", emission=emission)
    model = jm.JumpMeans(3, emission=[Gamma, "categorical"], engine=ONE).fit(panel)
    np.testing.assert_allclose(model.process_.emission.columns[0].means, [0.5, 5.0, 40.0], rtol=0.15)
    assert model.predict_value(panel, "posterior").shape == (panel.n_observations, 2)


def test_samplers_say_what_they_know():
    panel, _ = simulated("gamma", 3)
    with pytest.raises(ValueError, match=r"'gaussian' or 'lognormal' for Monte Carlo, got 'gamma'; JumpMeans and EM"):
        Gibbs(2, emission=Gamma).fit(panel)
    with pytest.raises(ValueError, match=r"be 'categorical', 'gaussian' or 'lognormal' for ParticleGibbs, got 'gamma'"):
        ParticleGibbs(emission=Gamma).fit(panel)


# Bernoulli readings with a panel: once AttributeError, no symbols.
@pytest.mark.parametrize("name", ALL)
def test_every_family_simulates_fits_and_plots(name):
    panel, process = simulated(name, 20)
    if name == "direct":
        process = jm.Process([0.2] * 3, P3, states=["a", "b", "c"])
        panel = jm.simulate(process, 20, 20)[0]
    model = jm.JumpMeans(None if name == "direct" else 3, emission=spec(name), engine=ONE, max_iter=1000).fit(panel)
    jm.plots.plot_trajectory(model.trajectories_, 0, panel=panel, model=model)
    jm.plots.plot_posterior(model, panel, 0)
    jm.plots.plot_states(model)
    plt.close("all")
    assert model.predict_value(panel).shape == (panel.n_observations,)


# ------------------------------------------------- Student and log-normal


@pytest.mark.parametrize("df", [4.0, 2.0])
def test_em_of_one_student_state_is_scipys_maximum(df, rng):
    x = 3.0 + 0.7 * rng.standard_t(df, 400)

    class Heavy(jm.emissions.Student):
        name = "heavy"

    Heavy.df = df
    panel = jm.Panel.from_arrays(np.tile(np.arange(20.0), 20), x, np.repeat(np.arange(20), 20))
    column = EM(1, emission=Heavy, **TIGHT).fit(panel).emission_.columns[0]
    _, centre, scale = scipy_stats.t.fit(x, f0=df, method="MLE")
    found = scipy_stats.t.logpdf(x, df, column.means[0], column.scales[0]).sum()
    assert found >= scipy_stats.t.logpdf(x, df, centre, scale).sum() - 1e-9
    assert column.means[0] == pytest.approx(centre, rel=1e-4)
    assert column.scales[0] == pytest.approx(scale, rel=1e-4)
    # the gradient is zero to rounding, which scipy's simplex does not reach
    z = (x - column.means[0]) / column.scales[0]
    pull = (df + 1) / (df + z * z)
    assert abs((pull * z).sum()) < 1e-5 and (pull * z * z).mean() == pytest.approx(1.0, rel=1e-6)


def test_em_of_one_lognormal_state_is_scipys_maximum(rng):
    x = np.exp(rng.normal(2.0, 0.8, 400))
    panel = jm.Panel.from_arrays(np.tile(np.arange(20.0), 20), x, np.repeat(np.arange(20), 20))
    model = EM(1, emission="lognormal", **TIGHT).fit(panel)
    sigma, _, scale = scipy_stats.lognorm.fit(x, floc=0)
    column = model.emission_.columns[0]
    assert column.log_means[0] == pytest.approx(np.log(scale), rel=1e-10)
    assert column.log_sds[0] == pytest.approx(sigma, rel=1e-10)
    expected = scipy_stats.lognorm.logpdf(x, sigma, scale=scale).sum()
    assert model.log_likelihood_ == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["student", "lognormal"])
def test_em_of_states_far_apart_is_scipys_maximum_in_each(name):
    """With no doubt about the state of any reading, each state has the maximum of its own readings."""
    column = jm.emissions.Student([0.0, 1e4, 3e4]) if name == "student" else jm.emissions.Lognormal([0, 20, 50], 0.5)
    panel, _ = simulated(name, 40, emission=column)
    model = EM(3, emission=name, **TIGHT).fit(panel)
    fitted = model.emission_.columns[0]
    x, states = panel.values[:, 0], model.predict(panel)
    for s in range(3):
        if name == "student":
            _, centre, scale = scipy_stats.t.fit(x[states == s], f0=4.0)
            assert fitted.means[s] == pytest.approx(centre, abs=1e-3)
            assert fitted.scales[s] == pytest.approx(scale, rel=1e-3)
        else:
            sigma, _, scale = scipy_stats.lognorm.fit(x[states == s], floc=0)
            assert fitted.log_means[s] == pytest.approx(np.log(scale), rel=1e-8)
            assert fitted.log_sds[s] == pytest.approx(sigma, rel=1e-8)


@pytest.mark.parametrize("name", HIDDEN)
def test_the_likelihood_of_em_never_falls(name):
    """Accelerated and plain, from two starts; and it is that of the densities by formula under one state."""
    panel, _ = simulated(name, 15, seed=3)
    for accelerate in (True, False):
        model = EM(3, emission=spec(name), accelerate=accelerate, max_iter=60, tol=0, n_init=2, engine=ONE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(panel)
        levels = np.asarray(model.history_.values)
        assert np.all(np.diff(levels) >= -1e-9 * np.abs(levels[1:])) and levels[-1] > levels[0]


def test_a_student_mean_stays_in_the_best_place():
    """The median is a good place to start from afar, but never at the price of a higher cost."""
    x = np.concatenate([np.zeros(45), np.full(30, 100.0), np.full(25, 200.0)]) + np.tile(np.arange(5) * 0.1, 20)
    column = jm.emissions.Student([0.2])
    stats = column.stats(x, np.zeros(100, int), np.ones(100))
    assert column.update(stats).means[0] == pytest.approx(0.2, abs=0.1)
    lost = jm.emissions.Student([1e6])
    assert lost.update(stats).means[0] == pytest.approx(100.2, abs=1.0)


def test_artefacts_do_not_move_a_student_state(rng):
    """One reading in twenty is far off: means and trajectories of t states stay, those of Gaussian ones do not."""
    process = jm.Process([0.1] * 2, [[0, 1], [1, 0]], emission=Gaussian([0.0, 10.0], sds=1.0))
    panel, truth = jm.simulate(process, 40, 20, random_state=5)
    values = panel.values[:, 0].copy()
    far = rng.random(len(values)) < 0.05
    values[far] = rng.uniform(500, 1000, far.sum())
    spoilt = panel.with_values(values[:, None])
    states = truth.at(panel.times, panel.ids[panel.sequence_index])
    model = jm.JumpMeans(2, emission="student", engine=ONE).fit(spoilt)
    np.testing.assert_allclose(model.process_.emission.means, [0.0, 10.0], atol=0.3)
    assert np.mean(model.predict(spoilt) == states) > 0.97
    assert jm.JumpMeans(2, engine=ONE).fit(spoilt).process_.emission.means[1] > 100


@pytest.mark.parametrize("name", ["student", "lognormal"])
def test_the_right_number_of_states(name):
    """Readings that a Gaussian column needs more states for: the right family finds the three that there are."""
    column = jm.emissions.Student([0, 6, 12], df=3) if name == "student" else jm.emissions.Lognormal([0, 1.5, 3], 0.4)
    panel, _ = simulated(name, 100, seed=1, emission=column)
    assert jm.InfiniteJumpMeans(emission=name, engine=ONE).fit(panel).n_states_ == 3
    assert jm.InfiniteJumpMeans(engine=ONE, max_states=6).fit(panel).n_states_ > 3


def test_lognormal_states_are_sampled_too():
    panel, _ = simulated("lognormal", 40)
    model = Gibbs(3, emission="lognormal", n_samples=10, burn_in=20, thin=1, engine=ONE).fit(panel)
    np.testing.assert_allclose(model.process_.emission.columns[0].log_means, [-1.0, 1.0, 3.0], atol=0.15)
    assert model.predict_value(panel).min() > 0
    infinite = ParticleGibbs(emission="lognormal", n_particles=10, n_iter=10, burn_in=5, engine=ONE).fit(panel)
    assert infinite.predict_value(panel).min() > 0


# ------------------------------------------------------------------- weights


def test_a_list_of_auto_weights_is_auto():
    """Each column by itself, in the closing decode too; once ["auto", "auto"] stood for [1, 1]."""
    emission = [Gaussian([0, 4, 8], sds=0.5), Gaussian([0, 400, 100], sds=50.0)]
    panel, _ = simulated("gaussian", 20, emission=emission)
    for make in (
        lambda weight: jm.JumpMeans(3, n_init=1, emission_weight=weight, engine=ONE),
        lambda weight: jm.InfiniteJumpMeans(emission_weight=weight, engine=ONE, max_states=4),
    ):
        one, each = make("auto").fit(panel), make(["auto", "auto"]).fit(panel)
        np.testing.assert_array_equal(one.objective_history_, each.objective_history_)
        np.testing.assert_array_equal(one.trajectories_.start_times, each.trajectories_.start_times)
        auto = one.hyperparameters(panel)["emission_weight"]
        assert auto == pytest.approx([8 / 0.5**2, 8 / 50.0**2], rel=0.5)
        assert make(["auto", 0.25]).hyperparameters(panel)["emission_weight"] == [auto[0], 0.25]
    # the closing decode: by the density where the weight was left to us, else as given
    model = jm.JumpMeans(3, n_init=1, emission_weight=["auto", 1e-4], engine=ONE).fit(panel)
    natural = model.process_.emission.natural_weights()
    assert model._decoder_.prices.emission == pytest.approx([natural[0], 1e-4], rel=1e-12)
    symbols, _ = simulated("categorical", 5, emission=[EXAMPLES["categorical"].column, Bernoulli([0.1, 0.5, 0.9])])
    mixed = jm.InfiniteJumpMeans(emission=["categorical", "bernoulli"], emission_weight=["auto", 1.0])
    assert mixed.hyperparameters(symbols)["emission_weight"] == [2.0, 1.0]
    with pytest.raises(ValueError, match=r"one number, or one for each of the 2 columns, got \['auto', 1.0, 2.0\]"):
        jm.JumpMeans(3, emission_weight=["auto", 1.0, 2.0]).fit(panel)
    with pytest.raises(
        ValueError,
        match=r"emission_weight must be 'auto' or 0 or a number from 1e-300 to 1e.300 or a list",
    ):
        jm.JumpMeans(3, emission_weight=["auto", "own"]).fit(panel)


def test_noisy_starts_of_signed_and_positive_families(rng):
    """A family of signed values starts about its mean by adding, whatever its name; once only 'gaussian' did."""

    class Shifted(Gaussian):
        name = "shifted"

    x = rng.normal(-5.0, 2.0, 500)
    for family in (Gaussian, Shifted):
        spread = family(np.full(200, -5.0)).noisy(x, np.random.default_rng(0)).means
        assert spread.std() == pytest.approx(0.2, rel=0.2)
    for name in ("poisson", "exponential", "bernoulli", "gamma"):
        column = EXAMPLES[name].column
        means = column.noisy(column.sample(rng.integers(0, 3, 100), rng), rng).means
        assert np.all(means > 0) and len(set(means.tolist())) > 1
        assert np.all(means < 1) or name != "bernoulli"


def test_most_labels_that_are_states():
    labels = np.arange(MOST_LABELS + 1)
    panel = jm.Panel.from_arrays(np.arange(2.0 * len(labels)), np.tile(labels, 2), np.zeros(2 * len(labels), int))
    with pytest.raises(jm.PanelError, match=rf"at most {MOST_LABELS} labels .*, got {MOST_LABELS + 1}: "):
        jm.InfiniteJumpMeans(emission="direct").fit(panel)
    with pytest.raises(jm.PanelError, match=rf"at most {MOST_LABELS} labels"):
        jm.JumpMeans(emission="direct", states=labels.tolist()).fit(panel.head(3))


# -------------------------------------------------------------------- starts

FORKED = """
import os
import numpy as np
import jumpmeans as jm

rng = np.random.default_rng(0)
panel = jm.Panel.from_arrays(np.tile(np.arange(100.0), 50), rng.integers(0, 5, 5000), np.repeat(np.arange(50), 100))
model = jm.JumpMeans(3, emission="categorical", n_init=1, refine=0, max_iter=2, tol=1.0, engine=jm.engines.Threads(1))
model.fit(panel)
child = os.fork()
if child == 0:
    model.fit(panel)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fit_after_a_fork():
    """k-means of scikit-learn left a pool of threads behind, for which a forked child waited for ever."""
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=300)
    assert out.stdout.strip() == "0", out.stderr


def test_fits_in_threads_leave_the_warning_filters_alone(rng):
    """Fewer distinct rows than states: filters set and reset by several threads stayed changed."""
    x = np.where(rng.random(60) < 0.5, "u", "v").astype(object)
    panel = jm.Panel.from_arrays(np.arange(60.0), x, np.zeros(60, int))
    blank = Record([Categorical(np.full((4, 2), 0.5), ["u", "v"])])
    codes = blank.encode(panel)
    before = list(warnings.filters)
    seen = []

    def start():
        for _ in range(20):
            cluster_emission(blank, codes, blank.features(codes), np.ones(60), np.random.default_rng(0))
            seen.append(list(warnings.filters) == before)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 120 and all(seen)


def test_clusters_are_those_of_lloyd(rng):
    """Three clouds apart, weighted: every row is nearest to the mean of its own cluster; an empty one stays."""
    F = np.concatenate([rng.normal(m, 0.3, (50, 2)) for m in (0.0, 5.0, 9.0)])
    weights = rng.choice([1.0, 4.0], 150)
    start = np.array([[1.0, 1.0], [4.0, 4.0], [8.0, 8.0], [100.0, 100.0]])
    states = nearest_centres(F, weights, start)
    assert states.tolist() == np.repeat([0, 1, 2], 50).tolist()
    # centres begin side by side: weights decide where they end
    states = nearest_centres(F, weights, F[[0, 1, 2]])
    means = np.array([np.average(F[states == s], axis=0, weights=weights[states == s]) for s in range(3)])
    assert (((F[:, None] - means) ** 2).sum(axis=2).argmin(axis=1) == states).all()
