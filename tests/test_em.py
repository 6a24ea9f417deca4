"""EM: against R's msm, plain numerical maximisation and its own gradient; the likelihood never falls."""

import csv
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import jumpmeans as jm
from jumpmeans.comparators import EM
from jumpmeans.engines import Threads
from jumpmeans.fit.ascent import SCALE_FLOOR, Task, Terrain, look, rebuild
from jumpmeans.model.constraints import Constraints
from jumpmeans.passes import Sequences

GOLDEN = Path(__file__).parent / "golden"
# As far as double precision goes.
TIGHT = {"tol": 1e-13, "max_iter": 3000, "engine": Threads(1)}
HIDDEN = {
    "categorical": jm.emissions.Categorical([[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.1, 0.2, 0.7]]),
    "gaussian": jm.emissions.Gaussian([0.0, 3.0, 6.0], [1.0, 0.5, 1.5]),
    "laplace": jm.emissions.Laplace([0.0, 3.0, 6.0], [1.0, 0.5, 1.0]),
    "poisson": jm.emissions.Poisson([0.5, 4.0, 12.0]),
    "exponential": jm.emissions.Exponential([0.1, 1.0, 10.0]),
    "bernoulli": jm.emissions.Bernoulli([0.05, 0.6, 0.95]),
}
P3 = [[0, 0.7, 0.3], [0.5, 0, 0.5], [0.6, 0.4, 0]]


def read_golden(name):
    with open(GOLDEN / f"em_{name}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return jm.Panel.from_arrays(
        [float(row["time"]) for row in rows], [int(row["state"]) for row in rows], [row["id"] for row in rows]
    )


def panel_of(family, n_sequences=40, n_rows=10, seed=0, missing=0.2):
    emission = None if family == "direct" else HIDDEN[family]
    process = jm.Process([0.4, 0.6, 0.5], P3, emission=emission)
    panel, _ = jm.simulate(process, n_sequences, n_rows, random_state=seed)
    values = panel.values.copy()
    values[np.random.default_rng(seed).random(len(values)) < missing] = np.nan
    return panel.with_values(values)


def log_likelihood(process, panel):
    return Sequences.of(Threads(1), panel, process.emission.encode(panel)).log_likelihood(process)


def first_states(panel):
    """Log-likelihood of the first labels at their own frequencies: msm leaves it out."""
    _, counts = np.unique(panel.values[panel.offsets[:-1], 0], return_counts=True)
    return float(counts @ np.log(counts / counts.sum()))


def process_like(process, Q):
    rates = -np.diag(Q)
    P = Q / np.where(rates > 0, rates, 1.0)[:, None]
    np.fill_diagonal(P, 0.0)
    return jm.Process(rates, P, process.initial_probs, process.emission, process.states)


def slope_in_log_rates(process, panel, h=1e-4):
    """Gradient of the log-likelihood in the logarithm of every positive rate, by central differences."""
    Q = process.rate_matrix
    slopes = []
    for i, j in zip(*np.nonzero(np.where(np.eye(len(Q)), 0.0, Q)), strict=True):
        sides = []
        for step in (h, -h):
            moved = Q.copy()
            moved[i, j] *= np.exp(step)
            moved[i, i] -= moved[i, j] - Q[i, j]
            sides.append(log_likelihood(process_like(process, moved), panel))
        slopes.append((sides[0] - sides[1]) / (2 * h))
    return np.array(slopes)


# ------------------------------------------------------------ against others


@pytest.mark.parametrize("name", ["direct", "illness_death", "misclassified"])
def test_equals_msm(name):
    """Rates and likelihood of msm 1.7; golden/msm_em.R holds the R lines and how the panels were drawn."""
    golden = json.loads((GOLDEN / "em_msm.json").read_text())[name]
    assert golden["converged"]
    panel = read_golden(name)
    hidden = name == "misclassified"
    allowed = {"illness_death": {1: [2, 3], 2: [3]}, "misclassified": {0: [1], 1: [0, 2], 2: [1]}}.get(name)
    structure = None if allowed is None else jm.Structure(allowed=allowed)
    model = EM(3 if hidden else None, emission="categorical" if hidden else "direct", structure=structure, **TIGHT).fit(
        panel
    )
    ours = -2 * (model.log_likelihood_ - (0.0 if hidden else first_states(panel)))
    assert ours < golden["minus2loglik"] + 1e-6
    assert ours == pytest.approx(golden["minus2loglik"], abs=1e-6)
    process = model.process_
    if hidden:  # hidden states have no names: by the symbol they show most
        process = process.take(np.argsort(model.emission_.probs.argmax(axis=1)))
        np.testing.assert_allclose(process.emission.probs, golden["emission"], atol=1e-4)
        np.testing.assert_allclose(process.initial_probs, golden["initial"][0], atol=1e-4)
    np.testing.assert_allclose(process.rate_matrix, golden["generator"], rtol=1e-4, atol=1e-12)
    assert np.abs(slope_in_log_rates(model.process_, panel)).max() < 1e-4


@pytest.mark.parametrize("family", ["direct", "gaussian"])
def test_equals_numerical_maximisation(family):
    """All parameters of a tiny panel by a general optimiser and matrix exponentials."""
    panel = panel_of(family, n_sequences=6, n_rows=5, seed=4, missing=0.1)
    hidden = family != "direct"
    structure = jm.Structure(allowed=[[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    model = EM(3 if hidden else None, emission=family, structure=structure, **TIGHT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(panel)
    x = model.emission_.encode(panel)[:, 0]
    gaps = np.maximum(np.diff(panel.times, prepend=0.0), 0.0)
    free = [(0, 1), (1, 0), (1, 2), (2, 1)]

    def density(values, theta):
        if not hidden:
            return np.where(np.isnan(values)[:, None], 1.0, values[:, None] == np.arange(3))
        means, sds = theta[6:9], np.exp(theta[9:12])
        out = np.exp(-0.5 * ((values[:, None] - means) / sds) ** 2) / (sds * np.sqrt(2 * np.pi))
        return np.where(np.isnan(values)[:, None], 1.0, out)

    def cost(theta):
        Q = np.zeros((3, 3))
        for (i, j), log_rate in zip(free, theta[:4], strict=True):
            Q[i, j] = np.exp(log_rate)
        np.fill_diagonal(Q, -Q.sum(axis=1))
        start = np.exp(np.r_[0.0, theta[4:6]])
        total = 0.0
        f = density(x, theta)
        steps = expm(Q * gaps[:, None, None])
        for i in range(panel.n_sequences):
            own = range(panel.offsets[i], panel.offsets[i + 1])
            v = start / start.sum() * f[own[0]]
            for row in own[1:]:
                v = v @ steps[row] * f[row]
            total -= np.log(v.sum())
        return total

    p = model.process_
    Q = p.rate_matrix
    with np.errstate(divide="ignore"):
        ours = np.log(np.maximum([Q[cell] for cell in free], 1e-12))
        start = np.log(np.maximum(p.initial_probs, 1e-12))
    theta = np.concatenate([ours, start[1:] - start[0]])
    if hidden:
        theta = np.concatenate([theta, p.emission.means, np.log(p.emission.sds)])
    assert cost(theta) == pytest.approx(-model.log_likelihood_, abs=1e-8)
    floor = np.log(SCALE_FLOOR * model.emission_.noises(x[:, None], panel)[0]) if hidden else 0.0
    bounds = [(-30.0, 5.0)] * 4 + [(-30.0, 30.0)] * 2 + [(None, None)] * 3 + [(floor, None)] * 3
    best = minimize(
        cost,
        theta + 0.05 * np.random.default_rng(0).standard_normal(len(theta)) if hidden else np.zeros(len(theta)),
        method="L-BFGS-B",
        bounds=bounds[: len(theta)],
        options={"maxiter": 2000, "ftol": 1e-13, "gtol": 1e-7},
    )
    assert best.fun == pytest.approx(-model.log_likelihood_, abs=1e-5)


def test_finds_the_truth():
    process = jm.Process([0.4, 0.6, 0.5], P3, emission=HIDDEN["gaussian"])
    panel, _ = jm.simulate(process, 1000, 20, random_state=0)
    model = EM(3, emission="gaussian").fit(panel)
    assert model.converged_
    np.testing.assert_allclose(model.rates_, process.rates, rtol=0.08)
    np.testing.assert_allclose(model.transition_probs_, process.transition_probs, atol=0.05)
    np.testing.assert_allclose(model.emission_.means, process.emission.means, atol=0.05)
    np.testing.assert_allclose(model.emission_.sds, process.emission.sds, rtol=0.05)
    assert model.log_likelihood_ > log_likelihood(process, panel)


# ------------------------------------------------------------------ the climb


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("family", ["direct", *HIDDEN, "mixed"])
def test_likelihood_never_falls(family, accelerate):
    if family == "mixed":
        parts = [panel_of(name) for name in ("gaussian", "categorical", "poisson")]
        values = np.column_stack([part.values[:, 0] for part in parts])
        panel = jm.Panel.from_arrays(parts[0].times, values, parts[0].sequence_index)
        model = EM(3, emission=["gaussian", "categorical", "poisson"], accelerate=accelerate, max_iter=60, n_init=2)
    else:
        panel = panel_of(family)
        n_states = None if family == "direct" else 3
        model = EM(n_states, emission=family, accelerate=accelerate, max_iter=60, n_init=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(panel)
    values = model.history_.values
    assert len(values) == model.n_iter_ > 3
    assert (np.diff(values) >= -1e-9 * np.abs(values[1:])).all()
    assert values[-1] > values[0]
    assert values[-1] == model.log_likelihood_ == pytest.approx(log_likelihood(model.process_, panel), rel=1e-11)
    assert (np.diff(model.history_.wall_times) >= 0).all() and (np.diff(model.history_.cpu_times) >= 0).all()


@pytest.mark.parametrize("family", ["direct", "categorical", "gaussian", "poisson", "exponential", "bernoulli"])
def test_slope_is_the_gradient(family):
    """What a leap takes for the gradient, in its own coordinates, against differences of the likelihood."""
    panel = panel_of(family, n_sequences=10)
    emission = None if family == "direct" else HIDDEN[family]
    process = jm.Process([0.5, 0.9, 0.2], P3, [0.2, 0.3, 0.5], emission)
    sequences = Sequences.of(Threads(1), panel, process.emission.encode(panel))
    moves = ~np.eye(3, dtype=bool)
    constraints = Constraints.of(moves)
    task = Task(sequences, constraints, np.zeros(1))
    here = look(task, process)
    terrain = Terrain.at(here, constraints)
    np.testing.assert_allclose(rebuild(terrain.u, here.image, task).rate_matrix, process.rate_matrix, rtol=1e-13)
    slope = np.empty(len(terrain.u))
    for k in range(len(terrain.u)):
        h = 1e-5 * np.eye(len(terrain.u))[k]
        sides = [log_likelihood(rebuild(terrain.u + step, here.image, task), panel) for step in (h, -h)]
        slope[k] = (sides[0] - sides[1]) / 2e-5
    np.testing.assert_allclose(terrain.slope, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


def test_leaps_reach_the_same_maximum_sooner():
    panel = panel_of("direct", n_sequences=100)
    fast, plain = (EM(emission="direct", accelerate=a, tol=1e-11, max_iter=5000).fit(panel) for a in (True, False))
    assert fast.log_likelihood_ >= plain.log_likelihood_ - 1e-6
    np.testing.assert_allclose(fast.process_.rate_matrix, plain.process_.rate_matrix, atol=1e-3)
    assert fast.n_iter_ < plain.n_iter_ / 2


def test_a_maximum_is_a_fixed_point():
    panel = panel_of("gaussian", n_sequences=100)
    model = EM(3, emission="gaussian", **TIGHT).fit(panel)
    again = EM(start=model, **TIGHT).fit(panel)
    assert again.n_iter_ <= 3
    assert again.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-12)
    np.testing.assert_allclose(again.process_.rate_matrix, model.process_.rate_matrix, atol=1e-5)


# ----------------------------------------------------------------------- laws


def test_weight_counts_as_copies():
    panel = panel_of("gaussian")
    weights = np.random.default_rng(1).integers(1, 4, panel.n_sequences)
    ids = panel.sequence_index
    heavy = jm.Panel.from_arrays(panel.times, panel.values[:, 0], ids, weights=weights[ids].astype(float))
    rows = np.concatenate([np.flatnonzero(ids == i) for i in np.repeat(np.arange(panel.n_sequences), weights)])
    number = np.repeat(np.arange(weights.sum()), np.repeat(panel.lengths, weights))
    copies = jm.Panel.from_arrays(panel.times[rows], panel.values[rows, 0], number)
    one, other = (EM(3, emission="gaussian", **TIGHT).fit(data) for data in (heavy, copies))
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, rel=1e-11)
    np.testing.assert_allclose(one.process_.rate_matrix, other.process_.rate_matrix, atol=1e-5)
    np.testing.assert_allclose(one.emission_.sds, other.emission_.sds, rtol=1e-5)


def test_nothing_seen_says_nothing():
    """Rows without a value, and windows that begin before or end after the rows, change no maximum."""
    panel = panel_of("direct", n_sequences=60, missing=0.4)
    seen = panel.observed & np.isin(panel.sequence_index, np.flatnonzero(panel.observed[panel.offsets[:-1]]))
    ids = panel.sequence_index
    keep = np.isin(ids, ids[seen])
    labels = np.where(np.isfinite(panel.values[:, 0]), panel.values[:, 0], np.nan)
    wide = jm.Panel.from_arrays(panel.times[keep], labels[keep], ids[keep], end_times=panel.end_times[ids[keep]] + 3.0)
    bare = jm.Panel.from_arrays(panel.times[seen], labels[seen], ids[seen])
    one, other = (EM(emission="direct", **TIGHT).fit(data) for data in (wide, bare))
    assert one.log_likelihood_ == pytest.approx(other.log_likelihood_, abs=1e-9)
    np.testing.assert_allclose(one.process_.rate_matrix, other.process_.rate_matrix, atol=1e-4)


@pytest.mark.parametrize("family", ["direct", "gaussian"])
def test_unit_of_time(family):
    panel = panel_of(family)
    n_states = None if family == "direct" else 3
    x = panel.values[:, 0]
    hours, days = (
        EM(n_states, emission=family, **TIGHT).fit(jm.Panel.from_arrays(t, x, panel.sequence_index))
        for t in (24.0 * panel.times, panel.times)
    )
    assert hours.log_likelihood_ == pytest.approx(days.log_likelihood_, rel=1e-10)
    np.testing.assert_allclose(24.0 * hours.process_.rate_matrix, days.process_.rate_matrix, atol=1e-5)


def test_threads_change_no_bit():
    panel = panel_of("gaussian", n_sequences=200)
    one, two = (EM(3, emission="gaussian", engine=Threads(n), tol=1e-4, n_init=2).fit(panel) for n in (1, 2))
    assert np.array_equal(one.history_.values, two.history_.values)
    assert np.array_equal(one.process_.rate_matrix, two.process_.rate_matrix)


# ---------------------------------------------------------- starts and masks


def test_start_from_jump_means():
    panel = panel_of("gaussian", n_sequences=100)
    fitted = jm.JumpMeans(3, emission="gaussian", refine=0).fit(panel)
    model = EM(start=fitted, **TIGHT).fit(panel)
    assert model.history_.values[0] > log_likelihood(fitted.process_, panel)
    scratch = EM(3, emission="gaussian", **TIGHT).fit(panel)
    assert model.log_likelihood_ == pytest.approx(scratch.log_likelihood_, rel=1e-9)
    np.testing.assert_allclose(model.emission_.means, scratch.emission_.means, atol=1e-4)


def test_a_clone_keeps_its_start():
    panel = panel_of("gaussian", n_sequences=30)
    fitted = jm.JumpMeans(3, emission="gaussian", refine=0).fit(panel)
    rng = np.random.default_rng(0)
    model = EM(start=fitted, max_iter=500, engine=Threads(1), random_state=rng)
    again = clone(model)
    assert again.start is fitted and again.random_state is not rng and not hasattr(again, "process_")
    assert again.fit(panel).log_likelihood_ == model.fit(panel).log_likelihood_


@pytest.mark.parametrize("tol", ["auto", -1.0, np.nan])
def test_tol_must_be_a_number(tol):
    with pytest.raises(ValueError, match=f"tol must be a finite number >= 0, got {tol!r}"):
        EM(2, tol=tol).fit(panel_of("gaussian", n_sequences=3))


def test_start_from_a_process_with_zeros():
    """A start cannot forbid what the structure allows."""
    panel = panel_of("direct", n_sequences=100)
    closed = jm.Process([1.0, 1.0, 0.0], [[0, 1, 0], [1, 0, 0], [0, 0, 0]], [1, 0, 0])
    model = EM(start=closed, **TIGHT).fit(panel)
    scratch = EM(emission="direct", **TIGHT).fit(panel)
    np.testing.assert_allclose(model.process_.rate_matrix, scratch.process_.rate_matrix, atol=1e-4)


def test_named_states_keep_their_names():
    process = jm.Process(
        [0.5, 0.5], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([5.0, 0.0], 1.0), states=["high", "low"]
    )
    panel, _ = jm.simulate(process, 50, 10, random_state=0)
    model = EM(start=process).fit(panel)
    assert model.states_.tolist() == ["low", "high"]
    assert model.emission_.means[0] < model.emission_.means[1]
    assert set(model.predict(panel)) == {"low", "high"}


@pytest.mark.parametrize("family", ["direct", "gaussian"])
def test_forbidden_moves_stay_forbidden(family):
    process = jm.Process(
        [0.4, 0.6, 0.0], [[0, 1, 0], [0, 0, 1], [0, 0, 0]], [1, 0, 0],
        None if family == "direct" else HIDDEN["gaussian"],
    )  # fmt: skip
    panel, _ = jm.simulate(process, 100, 8, random_state=5)
    structure = jm.Structure(allowed={0: [1], 1: [2]}, absorbing=[2])
    n_states = None if family == "direct" else 3
    model = EM(n_states, emission=family, structure=structure).fit(panel)
    Q = model.process_.rate_matrix
    assert np.array_equal(Q != 0, [[True, True, False], [False, True, True], [False, False, False]])
    np.testing.assert_allclose(model.rates_, [0.4, 0.6, 0.0], rtol=0.25)
    assert not np.isnan(model.transition_probs_).any()


def test_allowed_moves_must_explain_the_rows():
    panel = jm.Panel.from_arrays([0.0, 1.0, 2.0], ["a", "b", "a"], [7, 7, 7])
    with pytest.raises(jm.InfeasibleError, match="sequence 7"):
        EM(emission="direct", structure=jm.Structure(allowed={"a": ["b"]})).fit(panel)


def test_more_starts_never_hurt():
    panel = panel_of("categorical", n_sequences=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = [EM(3, emission="categorical", n_init=n).fit(panel).log_likelihood_ for n in (1, 4)]
    assert found[1] >= found[0]


# ---------------------------------------------------------- where no maximum is


def test_rates_that_run_away_are_named():
    """Seen at regular times, this chain changes state more often than any process could: no maximum."""
    labels = np.tile(["a", "b"], 30)
    labels[7] = labels[40] = "a"
    panel = jm.Panel.from_arrays(np.arange(60.0), labels, np.zeros(60, int))
    with pytest.warns(ConvergenceWarning, match="no maximum: the rate of state '[ab]' has run up to"):
        model = EM(emission="direct", tol=0.0, max_iter=2000).fit(panel)
    assert not model.converged_
    assert np.isfinite(model.process_.rate_matrix).all() and model.rates_.min() > 10
    share = np.mean(labels[1:] == "b")
    limit = log_likelihood(
        jm.Process([1e4 * share, 1e4 * (1 - share)], [[0, 1], [1, 0]], [1, 0], None, ["a", "b"]), panel
    )
    assert model.log_likelihood_ == pytest.approx(limit, abs=0.05)


def test_states_never_left_have_rate_zero():
    panel = jm.Panel.from_arrays([0, 1, 2, 0, 1, 2], ["a", "a", "b", "b", "b", "b"], [1, 1, 1, 2, 2, 2])
    model = EM(emission="direct", tol=1e-12).fit(panel)
    assert model.rates_[1] < 1e-6 and model.rates_[0] > 0.1
    assert not np.isnan(model.process_.rate_matrix).any()
    still = EM(emission="direct").fit(jm.Panel.from_arrays([0, 1, 0, 1], ["a", "a", "b", "b"], [1, 1, 2, 2]))
    assert (still.rates_ < 1e-3).all()


def test_a_state_cannot_shrink_onto_one_reading():
    panel = panel_of("gaussian", n_sequences=20, missing=0.0)
    values = panel.values.copy()
    values[33] = 100.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = EM(4, emission="gaussian", n_init=2).fit(panel.with_values(values))
    floor = SCALE_FLOOR * model.emission_.noises(values, panel)[0]
    assert model.emission_.sds.min() >= floor > 0.01
    assert np.isfinite(model.log_likelihood_)


def test_not_converged_is_said():
    with pytest.warns(ConvergenceWarning, match="still rises after 2 steps"):
        model = EM(emission="direct", max_iter=2).fit(panel_of("direct"))
    assert not model.converged_ and model.n_iter_ == 2


def test_shortest_gap():
    panel = jm.Panel.from_arrays([0, 1, 1.25, 5, 0, 3], ["a", "b", None, "a", "a", "b"], [1, 1, 1, 1, 2, 2])
    assert panel.shortest_gap == 1.0
    assert jm.Panel.from_arrays([0.0], ["a"], [1]).shortest_gap == np.inf


# ---------------------------------------------------------------- the contract


def test_read_outs():
    process = jm.Process([0.3, 0.4], [[0, 1], [1, 0]], states=["well", "ill"])
    panel, _ = jm.simulate(process, 60, 10, random_state=0)
    masked, truth = jm.hold_out(panel, 0.3)
    model = EM(emission="direct").fit(masked)
    probs = model.predict_proba(masked)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    mode = model.states_[probs.argmax(axis=1)]
    assert np.array_equal(model.predict(masked), mode)
    assert np.array_equal(model.predict_value(masked), mode)
    assert np.array_equal(model.predict_value(masked, method="posterior"), mode)
    assert jm.reconstruction_error(mode, truth) < 0.3
    between = model.predict_proba(panel, at={0: [0.5 * panel.times[1]]})
    assert between.shape == (1, 2)
    # the trajectories that err least: at the rows they show about what the posterior does, and no flicker
    path = model.decode(panel)
    shown = path.at(panel.times, panel.ids[panel.sequence_index])
    assert np.mean(shown == model.predict(panel)) > 0.95 and path.n_jumps <= np.sum(
        model.predict(panel)[1:] != model.predict(panel)[:-1]
    )
    with pytest.raises(ValueError, match="criterion must be 'time', got 'objective'"):
        model.decode(panel, criterion="objective")


def test_estimator_contract():
    model = EM(3, emission="gaussian", n_init=2)
    assert clone(model).get_params() == model.get_params()
    panel = panel_of("gaussian")
    with pytest.raises(NotFittedError, match="this EM must be fitted first"):
        model.predict(panel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = model.fit(panel).process_
        assert model.n_states == 3 and model.get_params()["n_init"] == 2
        again = model.fit(panel).process_
    assert np.array_equal(first.rate_matrix, again.rate_matrix)
    assert model.states_.tolist() == [0, 1, 2]
    assert (np.diff(model.emission_.means) > 0).all()


def test_rows_without_neighbours():
    """Nothing is known of the rates: they stay where they started, without a word."""
    model = EM(emission="direct").fit(jm.Panel.from_arrays([0.0, 1.0, 2.0], ["a", "b", "a"], [1, 2, 3]))
    assert model.converged_ and np.isfinite(model.rates_).all()
    np.testing.assert_allclose(model.process_.initial_probs, [2 / 3, 1 / 3])


def test_unseen_labels_and_labels_beside_readings(rng):
    panel = panel_of("direct", missing=0.0)
    model = EM(emission="direct", states=[0, 1, 2, 3]).fit(panel)
    assert model.process_.initial_probs[3] == 0.0 and np.isfinite(model.rates_).all()
    readings = np.where(rng.random(400) < 0.2, np.nan, 3.0 * panel.values[:, 0] + rng.normal(size=400))
    labels = np.where(rng.random(400) < 0.4, np.nan, panel.values[:, 0])
    both = jm.Panel.from_arrays(panel.times, np.column_stack([labels, readings]), panel.sequence_index)
    model = EM(emission=["direct", "gaussian"]).fit(both)
    np.testing.assert_allclose(np.ravel(model.emission_.means), [0.0, 3.0, 6.0], atol=0.5)
    assert np.mean(model.predict(both) == panel.values[:, 0]) > 0.9


def test_one_state():
    panel = panel_of("gaussian")
    model = EM(1, emission="gaussian").fit(panel)
    x = panel.values[np.isfinite(panel.values)]
    assert model.rates_.tolist() == [0.0]
    assert model.emission_.means[0] == pytest.approx(x.mean())
    assert model.emission_.sds[0] == pytest.approx(x.std())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_states": 0}, "n_states must be None or an integer from 1 to 1000, got 0"),
        ({"n_states": 3, "n_init": 0}, "n_init must be 'auto' or an integer of at least 1"),
        ({"n_states": 3, "max_iter": 0}, "max_iter must be an integer of at least 1"),
        ({"n_states": 3, "tol": -1.0}, "tol must be a finite number >= 0, got -1.0"),
        ({}, "n_states must be given for hidden states"),
        ({"start": 5}, "start must be a Process or a fitted model with process_, got 5"),
        ({"start": jm.Process([0.0], [[0.0]]), "n_states": 2}, "n_states=2 must equal the number of states of start"),
        ({"n_states": 3, "engine": "abacus"}, "engine"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=message):
        EM(**options).fit(panel_of("gaussian", n_sequences=3))
