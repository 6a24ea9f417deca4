"""Means and spreads that are known: kept by every estimator, and the others at their best beside them."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import invgamma, kstest, norm
from sklearn.exceptions import ConvergenceWarning

import jumpmeans as jm
import reference
from all_families import EXAMPLES
from jumpmeans.comparators import EM, Gibbs
from jumpmeans.emissions.entries import EntryColumn

LABELS = ["calm", "high"]
PAIR = jm.Process(
    [0.3, 0.5], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0.0, 3.0], sds=[1.0, 1.5]), states=LABELS
)
KNOWN = {("calm", "mean"): 0.2, ("high", "sd"): 1.2}
PANEL, _ = jm.simulate(PAIR, 40, 15, random_state=1)


def structure(known):
    return jm.Structure(fixed={"emission": known})


@pytest.mark.parametrize("name", [name for name, own in EXAMPLES.items() if isinstance(own.column, EntryColumn)])
def test_every_family_keeps_what_is_fixed_of_it(name):
    """Whatever an update says; fails if any of them writes a parameter past `_copy`."""
    column = EXAMPLES[name].column
    known = {
        (0, entry): 1.5 * float(getattr(column, own)[0]) or 0.5
        for entry, own in zip(column.entries, column.params, strict=True)
    }
    known = {key: min(value, 0.9) if name == "bernoulli" else value for key, value in known.items()}
    fixed = column.with_fixed(known)
    assert fixed.n_parameters == column.n_parameters - len(known)
    rng = np.random.default_rng(0)
    states = rng.integers(0, 3, 200)
    x = column.sample(states, rng)
    stats = fixed.stats(x, states, np.ones(200))
    panel = jm.Panel.from_arrays(np.arange(200.0), column.named(x), np.zeros(200, int))
    for new in (
        fixed.update(stats),
        fixed.update(stats).with_scale(stats),
        fixed.noisy(x, rng),
        fixed.averaged([fixed, column]),
        fixed.join(column).take(np.array([0, 4, 5])),
        column.with_fixed_of(fixed),
        fixed.with_pseudo_count(0.3),
    ):
        for (_, entry), value in known.items():
            assert getattr(new, column.params[column.entries.index(entry)])[0] == value
    free = fixed.update(stats).without_fixed()
    assert getattr(free.update(stats), column.params[0])[0] != known[0, column.entries[0]]
    names = [f"state {s}" for s in range(3)]
    known = {(names[0], entry): value for (_, entry), value in known.items()}
    family = name if name in jm.emissions.FAMILIES else type(column)
    model = EM(states=names, emission=family, structure=structure(known), max_iter=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(panel)
    for (_, entry), value in known.items():
        assert getattr(model.emission_.columns[0], column.params[column.entries.index(entry)])[0] == value


def test_models_keep_to_them():
    """EM, JUMP-means and every draw of Gibbs; states that are found take the places that what is fixed gives them."""
    far = {("calm", "mean"): 3.1, ("high", "sd"): 1.2}  # calm is now the upper one
    for known, upper in ((KNOWN, "high"), (far, "calm")):
        for model in (
            EM(states=LABELS, emission="gaussian", structure=structure(known)),
            jm.JumpMeans(states=LABELS, emission="gaussian", structure=structure(known)),
            Gibbs(states=LABELS, emission="gaussian", structure=structure(known), n_samples=20, burn_in=20),
        ):
            model.fit(PANEL)
            assert model.emission_.means[0] == known["calm", "mean"]
            assert model.emission_.sds[1] == known["high", "sd"]
            assert LABELS[int(np.argmax(model.emission_.means))] == upper
            if not isinstance(model, Gibbs):
                assert model.n_parameters_ == 2 + 1 + 2
    assert set(model.samples_.means[:, 0].tolist()) == {3.1}
    assert set(model.samples_.sds[:, 1].tolist()) == {1.2}


def test_maximum_of_a_general_optimiser():
    """All that is free, by L-BFGS on a likelihood that knows nothing of the package; fails if a spread is taken about
    the mean of the readings instead of the known one."""
    panel = PANEL.head(6).select(list(range(12)))
    model = EM(states=LABELS, emission="gaussian", structure=structure(KNOWN), tol=1e-12, max_iter=5000).fit(panel)

    def cost(theta):
        rates, start = np.exp(theta[:2]), 1.0 / (1.0 + np.exp(theta[2]))
        Q = np.array([[-rates[0], rates[0]], [rates[1], -rates[1]]])
        means, sds = [0.2, theta[3]], [np.exp(theta[4]), 1.2]
        total = 0.0
        for i in range(panel.n_sequences):
            own = slice(panel.offsets[i], panel.offsets[i + 1])
            f = norm.pdf(panel.values[own], means, sds)
            tau = panel.times[own] - panel.times[own][0]
            pi = [1.0 - start, start]
            total -= np.log(reference.likelihood_by_kind(tau, np.zeros(len(tau), int), tau[-1], f, pi, Q))
        return total

    emission = model.emission_
    here = np.r_[
        np.log(model.rates_), np.log(model.process_.initial_probs[0] / model.process_.initial_probs[1]),
        emission.means[1], np.log(emission.sds[0]),
    ]  # fmt: skip
    assert cost(here) == pytest.approx(-model.log_likelihood_, abs=1e-8)
    best = minimize(cost, here + 0.1, method="L-BFGS-B", options={"ftol": 1e-14, "gtol": 1e-8, "maxiter": 500})
    assert best.fun == pytest.approx(-model.log_likelihood_, abs=1e-6)
    sure = model.information(panel)
    assert not any("mean of calm" in name or "variance of high" in name for name in sure.names)


def test_draws_given_a_known_mean_and_a_known_spread():
    """Against scipy's conjugate laws; fails if the scale is that of an unknown mean."""
    rng = np.random.default_rng(3)
    x, states = rng.normal(1.0, 2.0, 30), np.repeat([0, 1], 15)
    column = jm.emissions.Gaussian([0.0, 0.0]).with_fixed({(0, "mean"): 0.7, (1, "sd"): 1.5})
    panel = jm.Panel.from_arrays(np.arange(30.0), x, np.zeros(30, int))
    prior = column.prior(x, panel)
    draws = [prior.draw(x, states, 2, rng) for _ in range(4000)]
    assert {float(d.mu[0]) for d in draws} == {0.7} and {float(d.sigma[1]) for d in draws} == {1.5}
    own = x[:15]
    scale = prior.scale + 0.5 * ((own - 0.7) ** 2).sum() + 0.5 * prior.size * (0.7 - prior.mean) ** 2
    law = invgamma(prior.shape + 0.5 * 15 + 0.5, scale=scale)
    assert kstest([d.sigma[0] ** 2 for d in draws], law.cdf).pvalue > 1e-3
    n, other = prior.size + 15, x[15:]
    centre = (prior.size * prior.mean + other.sum()) / n
    assert kstest([d.mu[1] for d in draws], norm(centre, 1.5 / np.sqrt(n)).cdf).pvalue > 1e-3


def test_a_file_keeps_what_is_fixed(tmp_path):
    model = EM(states=LABELS, emission="gaussian", structure=structure(KNOWN)).fit(PANEL)
    model.save(tmp_path / "m.jm")
    again = jm.load(tmp_path / "m.jm")
    assert again.emission_.columns[0].n_parameters == 2
    np.testing.assert_array_equal(again.emission_.columns[0].fixed, model.emission_.columns[0].fixed)
    assert again.aic(PANEL) == model.aic(PANEL)
