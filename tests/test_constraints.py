"""Known and shared values: against R's msm, plain likelihoods and general optimisers; kept exactly by every model."""

import json
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

import jumpmeans as jm
from jumpmeans.comparators import EM, Gibbs, MLTrajectory
from jumpmeans.comparators.gibbs import Priors
from jumpmeans.engines import Threads
from jumpmeans.errors import StructureWarning
from jumpmeans.fit.ascent import Task, Terrain, look, rebuild
from jumpmeans.fit.setup import constrain
from jumpmeans.model.constraints import Constraints, split
from jumpmeans.model.objective import Prices, Stats, evaluate
from jumpmeans.model.params import Params
from jumpmeans.model.updates import bound_rates, exact_rates, transition_rows
from jumpmeans.passes import Sequences
from jumpmeans.passes.draw import Drawn
from test_em import read_golden

GOLDEN = json.loads((Path(__file__).parent / "golden" / "known_msm.json").read_text())
ONE = Threads(1)
# As far as double precision goes.
TIGHT = {"tol": 1e-13, "max_iter": 3000, "engine": ONE}
STATES = ["well", "ill", "dead"]
MOVES = {"well": ["ill", "dead"], "ill": ["well", "dead"]}
KNOWN = {("well", "dead"): 0.02}
SHARED = [[("well", "ill"), ("ill", "well")]]
TRUTH = jm.Process.from_generator(
    {"well": {"ill": 0.3, "dead": 0.02}, "ill": {"well": 0.3, "dead": 0.2}}, [0.8, 0.2, 0]
)


@pytest.fixture(autouse=True)
def no_advice():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (ConvergenceWarning, StructureWarning))
        yield


def labels(n=60, n_rows=6, seed=0):
    gaps = np.random.default_rng(seed).choice([0.3, 0.9, 2.0], (n, n_rows - 1))
    panel, _ = jm.simulate(TRUTH, n, n_rows, gaps=gaps, random_state=seed)
    values = panel.values.copy()
    blank = np.random.default_rng(seed).random(len(values)) < 0.1
    blank[panel.offsets[:-1]] = False
    values[blank] = np.nan
    return panel.with_values(values)


def every_model(structure, emission="direct", **more):
    """One of each model that takes a structure, unfitted."""
    options = {"emission": emission, "states": STATES, "structure": structure, "engine": ONE} | more
    models = [
        jm.JumpMeans(**options),
        jm.JumpMeans(refine=0, **options),
        jm.JumpMeans(refine="converged", transition_weight=2.5, **options),
        EM(**options),
        Gibbs(n_samples=15, burn_in=10, thin=1, **options),
    ]
    return models + ([jm.InfiniteJumpMeans(**options)] if emission == "direct" else [])


# ------------------------------------------------------------------ against msm

MSM = {
    "bound": jm.Structure(
        fixed={(2, 3): 0.25}, equal=[[(1, 2), (3, 2)], [(1, 3), (2, 1), (3, 1)]], initial="given"
    ),
    "fixed": jm.Structure(allowed={1: [2, 3], 2: [3]}, fixed={(1, 3): 0.1}, initial="given"),
    "equal": jm.Structure(allowed={1: [2, 3], 2: [3]}, equal=[[(1, 2), (2, 3)]], initial="given"),
    "neighbours": jm.Structure(
        allowed={1: [2], 2: [1, 3], 3: [2]}, initial=[0.5, 0.3, 0.2], fixed={"emission": {(1, 3): 0.0, (3, 1): 0.0}}
    ),
    "first": jm.Structure(
        allowed={1: [2], 2: [1, 3], 3: [2]}, initial={1: 0.5, 2: 0.5}, fixed={"emission": {(1, 3): 0.0, (3, 1): 0.0}}
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(MSM))
def test_equals_msm(name):
    """Golden/msm_known.R holds the R lines: fixedpars, qconstraint, ematrix with zeros, initprobs."""
    golden = GOLDEN[name]
    panel_of = {"bound": "direct", "fixed": "illness_death", "equal": "illness_death"}
    emission = "direct" if name in panel_of else "categorical"
    model = EM(emission=emission, states=[1, 2, 3], structure=MSM[name], **TIGHT)
    model.fit(read_golden(panel_of.get(name, "misclassified")))
    assert -2 * model.log_likelihood_ == pytest.approx(golden["minus2loglik"], abs=1e-6)
    np.testing.assert_allclose(model.process_.rate_matrix, golden["generator"], rtol=1e-4, atol=1e-12)
    if "emission" in golden:
        np.testing.assert_allclose(model.emission_.probs, golden["emission"], atol=1e-4)
        assert model.emission_.probs[0, 2] == model.emission_.probs[2, 0] == 0.0


# ------------------------------------------------------- against plain formulas


def plain_rates(theta):
    """Rates of the structure by hand: one shared, one known, one free."""
    Q = np.zeros((3, 3))
    Q[0, 1] = Q[1, 0] = np.exp(theta[0])
    Q[0, 2], Q[1, 2] = 0.02, np.exp(theta[1])
    return Q - np.diag(Q.sum(axis=1))


def likelihoods(panel, Q, pi, seen):
    """Plain likelihood of each sequence."""
    gaps = np.maximum(np.diff(panel.times, prepend=panel.times[0]), 0.0).round(9)
    few, which = np.unique(gaps, return_inverse=True)
    steps = expm(Q * few[:, None, None])[which]
    out = []
    for a, b in pairwise(panel.offsets.tolist()):
        v = pi * seen[a]
        for row in range(a + 1, b):
            v = v @ steps[row] * seen[row]
        out.append(v.sum())
    return np.array(out)


def seen_states(panel):
    codes = TRUTH.emission.encode(panel)[:, 0]
    return np.where(np.isnan(codes)[:, None], 1.0, codes[:, None] == np.arange(3))


INITIAL = {"estimated": None, "uniform": np.full(3, 1 / 3), "given": np.ones(3), "values": np.array([0.7, 0.3, 0.0])}


@pytest.mark.parametrize("initial", list(INITIAL))
def test_em_is_the_maximum_of_a_general_optimiser(initial):
    """And its likelihood and posterior are those of plain sums. Planted: one jump too many in the pooled rate."""
    panel = labels(12, 5, seed=3)
    values = {"well": 0.7, "ill": 0.3} if initial == "values" else initial
    structure = jm.Structure(MOVES, initial=values, fixed=KNOWN, equal=SHARED)
    model = EM(emission="direct", states=STATES, structure=structure, **TIGHT).fit(panel)
    seen = seen_states(panel)

    def cost(theta):
        pi = INITIAL[initial]
        if pi is None:  # nobody begins dead
            pi = np.append(np.exp([0.0, theta[2]]) / (1 + np.exp(theta[2])), 0.0)
        return -np.log(likelihoods(panel, plain_rates(theta), pi, seen)).sum()

    start = np.log([0.2, 0.2]) if INITIAL[initial] is not None else np.log([0.2, 0.2, 0.5])
    best = minimize(cost, start, method="BFGS", options={"gtol": 1e-5})
    assert model.log_likelihood_ == pytest.approx(-best.fun, abs=1e-5)
    assert model.log_likelihood_ >= -best.fun - 1e-9
    np.testing.assert_allclose(model.process_.rate_matrix, plain_rates(best.x), rtol=2e-3, atol=1e-9)
    theta = np.log([model.process_.rate_matrix[0, 1], model.process_.rate_matrix[1, 2]])
    if INITIAL[initial] is not None:
        assert cost(theta) == pytest.approx(-model.log_likelihood_, rel=1e-10)
        pi = INITIAL[initial] / INITIAL[initial].sum()
        np.testing.assert_array_equal(model.process_.initial_probs, pi)
    # posterior by brute force over the states of the other rows
    Q, pi = model.process_.rate_matrix, model.process_.initial_probs
    posterior = model.predict_proba(panel)
    whole = likelihoods(panel, Q, pi, seen)
    for k in range(5):  # row k of every sequence at once
        rows = panel.offsets[:-1] + k
        for s in range(3):
            only = seen.copy()
            only[rows] *= np.arange(3) == s
            np.testing.assert_allclose(posterior[rows, s], likelihoods(panel, Q, pi, only) / whole, atol=1e-9)


def test_emission_entries_at_the_maximum_of_a_general_optimiser():
    column = jm.emissions.Categorical([[0.8, 0.2, 0.0], [0.3, 0.5, 0.2], [0.1, 0.1, 0.8]], ["u", "v", "w"])
    process = jm.Process([0.3, 0.5, 0.4], [[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]], emission=column)
    panel, _ = jm.simulate(process, 30, 6, gaps=np.tile([0.3, 0.9, 2.0, 0.9, 0.3], (30, 1)), random_state=2)
    structure = jm.Structure(
        allowed=process.transition_probs, initial="uniform", equal=[[(0, 1), (1, 0), (1, 2), (2, 1)]],
        fixed={"emission": {(0, "w"): 0.0, (1, "w"): 0.2, (2, "u"): 0.1, (2, "v"): 0.1, (2, "w"): 0.8}},
    )  # fmt: skip
    model = EM(3, emission="categorical", structure=structure, **TIGHT).fit(panel)
    codes = column.encode(panel, 0).astype(int)

    def cost(theta):
        a, b = 1 / (1 + np.exp(-theta[1:]))
        probs = np.array([[a, 1 - a, 0], [0.8 * b, 0.8 * (1 - b), 0.2], [0.1, 0.1, 0.8]])
        Q = np.exp(theta[0]) * np.array([[-1, 1, 0], [1, -2, 1], [0, 1, -1.0]])
        return -np.log(likelihoods(panel, Q, np.full(3, 1 / 3), probs[:, codes].T)).sum()

    best = minimize(cost, [-1.0, 1.0, 0.0], method="BFGS", options={"gtol": 1e-5})
    assert model.log_likelihood_ == pytest.approx(-best.fun, abs=1e-6)
    probs = model.emission_.probs
    assert probs[0, 2] == 0.0 and probs[1, 2] == 0.2 and probs[2].tolist() == [0.1, 0.1, 0.8]
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=1e-14)
    assert np.diff(model.history_.values).min() >= -1e-9
    assert structure.n_free(model.process_) == 1 + 0 + 2


# ---------------------------------------------------------- the objective's rates


@st.composite
def bound_problems(draw):
    """Statistics of some trajectories, prices, and moves some of whose rates are known or shared."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    M, S = draw(st.integers(2, 4)), 12
    moves = (rng.random((M, M)) < 0.8) & ~np.eye(M, dtype=bool)
    moves[0, 1] = moves[1, 0] = True
    places = np.argwhere(moves)
    kind = rng.integers(0, 3, len(places))  # free, known, or one of a group
    kind[0], fixed, group = 2, np.full((M, M), np.nan), np.full((M, M), -1)
    for k, (place, own) in enumerate(zip(map(tuple, places), kind, strict=True)):
        if own == 1:
            fixed[place] = rng.gamma(2.0)
        else:
            group[place] = 0 if own == 2 else k + 1
    group[group >= 0] = np.unique(group[group >= 0], return_inverse=True)[1]
    jumps = np.where(moves, rng.poisson(draw(st.sampled_from([0.0, 0.5, 20.0])), (M, M)), 0.0)
    exits = jumps.sum(axis=1)
    time = np.where(exits > 0, rng.gamma(2.0, 3.0, M), 0.0)
    stats = Stats(
        exits, time, np.zeros(M), jumps, rng.integers(-1, M, (S, 2)).astype(np.int32), rng.gamma(1.0, 2.0, (S, 2)),
        rng.choice([0.5, 1.0, 3.0], S), (0,), np.ones(M),
    )  # fmt: skip
    xi = draw(st.sampled_from([0.3, 1.0, 3.0]))
    prices = Prices(xi, np.ones(1), draw(st.sampled_from([0.2, 1.0])), 1.5, draw(st.sampled_from([0.0, 0.01, 2.0])))
    return Constraints(moves, fixed, group), stats, prices, rng


def objective(Q, stats, prices):
    rates, P = split(Q, np.zeros_like(Q))
    return evaluate(stats, Params(rates, P, jm.Process([1.0] * len(Q), 1 - np.eye(len(Q))
        if len(Q) == 2 else (1 - np.eye(len(Q))) / (len(Q) - 1)).emission), prices).total  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(bound_problems())
def test_bound_rates_never_raise_the_objective_and_settle_at_its_minimum(problem):
    """Planted: the tangent of the concave part left out; running dwells left out."""
    constraints, stats, prices, rng = problem
    before = constraints.rates(rng.gamma(1.0, 1.0, constraints.n_rates) + 1e-3)
    after = bound_rates(stats, prices, constraints, before)
    size = abs(objective(before, stats, prices)) + 1.0
    assert objective(after, stats, prices) <= objective(before, stats, prices) + 1e-10 * size
    known = np.isfinite(constraints.fixed)
    np.testing.assert_array_equal(after[known], constraints.fixed[known])
    for k in range(constraints.n_rates):
        assert np.ptp(after[constraints.group == k]) == 0.0
    assert np.all(after[~constraints.moves] == 0)
    if prices.transition > 1 or prices.jump_pseudo_count == 0:
        return
    # convex: no step in any direction is better
    q = constraints.free_rates(after)
    for k in range(len(q)):
        for factor in (0.98, 1.02):
            other = q.copy()
            other[k] *= factor
            assert objective(constraints.rates(other), stats, prices) >= objective(after, stats, prices) - 1e-9 * size


def test_without_anything_bound_the_minimum_is_the_closed_form():
    """One shared rate that nothing shares with: the same rates as by exact_rates and transition_rows."""
    rng = np.random.default_rng(0)
    moves = ~np.eye(3, dtype=bool)
    stats = Stats(
        np.array([9.0, 4.0, 6.0]), np.array([5.0, 3.0, 8.0]), np.zeros(3),
        np.array([[0, 6, 3], [1, 0, 3], [2, 4, 0.0]]), rng.integers(0, 3, (9, 2)).astype(np.int32),
        rng.gamma(1.0, 2.0, (9, 2)), np.ones(9), (0,), np.ones(3),
    )  # fmt: skip
    prices = Prices(1.0, np.ones(1), 1.0, 0.5, 0.01)
    expected = exact_rates(stats, prices, moves.any(axis=1))[:, None] * transition_rows(stats.jumps, 0.01, moves)
    found = bound_rates(stats, prices, Constraints.of(moves), np.where(moves, 0.3, 0.0))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


# -------------------------------------------------------------- by every model


def check_rates(Q):
    assert Q[0, 2] == pytest.approx(0.02, rel=1e-12)
    assert Q[0, 1] == pytest.approx(Q[1, 0], rel=1e-12)
    assert np.all(Q[2] == 0)


def test_every_model_keeps_to_what_is_known():
    panel = labels()
    structure = jm.Structure(MOVES, initial={"well": 0.7, "ill": 0.3}, fixed=KNOWN, equal=SHARED)
    for model in every_model(structure):
        model.fit(panel)
        check_rates(model.process_.rate_matrix)
        np.testing.assert_allclose(model.process_.initial_probs, [0.7, 0.3, 0.0], rtol=1e-12)
        if isinstance(model, jm.JumpMeans):
            params = model.objective_params_
            check_rates(params.rates[:, None] * params.transition_probs)
            assert np.all(np.diff(model.objective_history_) <= 1e-9 * abs(model.objective_))
        if isinstance(model, Gibbs):
            for k in range(len(model.samples_)):
                sample = model.samples_.process(k, model.states_)
                check_rates(sample.rate_matrix)
                assert sample.initial_probs.tolist() == [0.7, 0.3, 0.0]
        if isinstance(model, EM):
            assert np.diff(model.history_.values).min() >= -1e-9
        assert structure.n_free(model.process_) == 2


@pytest.mark.parametrize("emission", ["direct", "categorical"])
def test_what_cannot_happen_never_does(emission):
    """No forbidden move on a trajectory, no chance of a state that cannot be reached or be the first."""
    panel = labels(40)
    fixed = {("well", "dead"): 0.0}
    if emission == "categorical":
        fixed = {"rates": fixed, "emission": {("dead", "dead"): 1.0, ("well", "dead"): 0.0, ("ill", "dead"): 0.0}}
    structure = jm.Structure({"well": ["ill", "dead"], "ill": ["dead"]}, initial={"well": 1.0}, fixed=fixed)
    # of directly observed states, only some sequences can be explained
    if emission == "direct":
        codes = TRUTH.emission.encode(panel)[:, 0]
        own = [codes[a:b][np.isfinite(codes[a:b])] for a, b in pairwise(panel.offsets.tolist())]
        panel = panel.select([i for i, x in enumerate(own) if len(x) and x[0] == 0 and np.all(np.diff(x) >= 0)])
        assert panel.n_sequences > 10
    allowed = np.array([[False, True, False], [False, False, True], [False, False, False]])
    models = [model.fit(panel) for model in every_model(structure, emission)]
    models.append(MLTrajectory(start=models[3]).fit(panel))
    for model in models:
        assert np.all((model.process_.rate_matrix > 0) <= allowed)
        for criterion in (None, "time"):
            found = model.decode(panel) if criterion is None else model.decode(panel, criterion)
            assert np.all(found.jump_counts()[~allowed] == 0)
            assert np.all(found.codes[found.offsets[:-1]] == 0)
        posterior = model.predict_proba(panel)
        np.testing.assert_array_equal(posterior[panel.offsets[:-1]], np.tile([1.0, 0.0, 0.0], (panel.n_sequences, 1)))
        _, truth = jm.simulate(model.process_, 50, 6, random_state=1)
        assert np.all(truth.jump_counts()[~allowed] == 0)
        assert np.all(truth.codes[truth.offsets[:-1]] == 0)
    dead = panel.values[:, 0] == panel.categories[0].tolist().index("dead")
    after = model.predict_proba(panel, at={panel.ids[panel.sequence_index[dead][0]]: [panel.times[dead][0] + 9.0]})
    np.testing.assert_array_equal(after, [[0.0, 0.0, 1.0]])


def test_the_first_pair_that_nothing_explains_is_named_alike():
    """Planted: the row behind it; the blank row between taken for the first of the pair."""
    panel = jm.Panel.from_arrays(
        [0, 1, 2, 3, 0, 1, 2, 4, 5.0],
        ["well", "ill", "dead", "dead", "well", "dead", None, "ill", "well"],
        ["a"] * 4 + ["b"] * 5,
    )
    structure = jm.Structure({"well": ["ill"], "ill": ["well", "dead"]})
    pair = r"sequence 'b', row 7 \('ill' at time 4 after 'dead' at time 1 in row 5\)"
    models = every_model(structure)
    models.append(MLTrajectory(jm.Process.from_generator({"well": {"ill": 1}, "ill": {"well": 1, "dead": 1}})))
    for model in models:
        with pytest.raises(jm.InfeasibleError, match=rf"every sequence, got .* for {pair}; .*correct the row"):
            model.fit(panel)
    first = jm.Structure(initial={"ill": 1.0})
    where = r"sequence 'a', row 0 \('well' at time 0, the first to show anything\)"
    for model in every_model(first):
        with pytest.raises(
            jm.InfeasibleError, match=rf"for {where}; allow it to be first \(Structure\(initial=...\)\)"
        ):
            model.fit(panel)


def test_a_given_first_state_is_no_part_of_the_likelihood():
    """Rates are those of any other π that is known; nothing is estimated of it."""
    panel = jm.simulate(TRUTH, 60, 6, random_state=5)[0]
    fits = {
        initial: EM(emission="direct", states=STATES, structure=jm.Structure(MOVES, initial=initial), **TIGHT).fit(
            panel
        )
        for initial in ("given", "uniform", "estimated")
    }
    for other in ("uniform", "estimated"):
        np.testing.assert_allclose(fits["given"].rates_, fits[other].rates_, rtol=1e-5)
    assert fits["given"].log_likelihood_ - fits["uniform"].log_likelihood_ == pytest.approx(60 * np.log(3), rel=1e-9)
    np.testing.assert_array_equal(fits["given"].process_.initial_probs, np.full(3, 1 / 3))


def test_windows_before_the_first_row_are_refused_where_a_first_state_is_ruled_out():
    panel = jm.Panel.from_arrays([1.0, 2.0], ["well", "ill"], ["a", "a"], start_times=[0.0, 0.0])
    model = jm.JumpMeans(emission="direct", states=STATES, structure=jm.Structure(initial={"well": 1.0}), engine=ONE)
    with pytest.raises(jm.PanelError, match=r"windows must begin with their first row .* before sequence 'a', row 0"):
        model.fit(panel)


def test_draws_of_shared_rates_pool_events_and_time(rng):
    """Mean and variance of Gamma(1 + n, τ + T); planted: the time of one of the two moves alone."""
    structure = jm.Structure(MOVES, fixed=KNOWN, equal=SHARED, initial="uniform")
    constraints = structure.constraints(np.array(STATES))
    jumps = np.array([[0, 7, 1], [4, 0, 5], [0, 0, 0.0]])
    paths = Drawn(jumps, np.array([9.0, 6.0, 3.0]), np.ones(3), np.zeros(0, np.int64))
    priors = Priors(0.5, constraints, (TRUTH.emission.columns[0].prior(None, None),))
    Q = np.array([priors.draw(paths, np.zeros((0, 1)), np.array(STATES), rng).rate_matrix for _ in range(4000)])
    np.testing.assert_allclose(Q[:, 0, 1], Q[:, 1, 0], rtol=1e-15)
    np.testing.assert_allclose(Q[:, 0, 2], 0.02, rtol=1e-12)
    for place, n, time in (((0, 1), 11, 15.0), ((1, 2), 5, 6.0)):
        draws = Q[:, place[0], place[1]]
        mean = (1 + n) / (0.5 + time)
        assert draws.mean() == pytest.approx(mean, abs=5 * np.sqrt((1 + n) / 4000) / (0.5 + time))
        assert draws.var() == pytest.approx(mean / (0.5 + time), rel=0.15)


# ---------------------------------------------------------------- names and marks


def marked_panel(n=120, seed=1):
    """Two hidden states by a reading, which the dead have not, and a column that says who is alive."""
    process = jm.Process.from_generator(
        {"severe": {"mild": 0.1, "dead": 0.3}, "mild": {"severe": 0.2, "dead": 0.02}}, [0.0, 1.0, 0.0]
    )
    emission = [jm.emissions.Gaussian([1.5, 3.0, 0.0], 0.4), jm.emissions.Marker(["alive", "alive", "dead"])]
    order = [process.states.tolist().index(name) for name in ("severe", "mild", "dead")]
    Q = process.rate_matrix[np.ix_(order, order)]
    process = jm.Process.from_generator(Q, [0.0, 1.0, 0.0], emission, ["severe", "mild", "dead"])
    panel, _ = jm.simulate(process, n, 10, random_state=seed)
    values = panel.values.copy()
    dead = values[:, 1] == panel.categories[1].tolist().index("dead")
    values[dead, 0] = np.nan
    return panel.with_values(values), process, dead


def test_hidden_states_with_a_death_state():
    """One line: rates come out, the dead are dead, and nobody else may be."""
    panel, process, dead = marked_panel(300)
    states = ["severe", "mild", "dead"]
    options = {"emission": ["gaussian", "marker"], "states": states, "engine": ONE}
    for model in every_model(jm.Structure(absorbing=["dead"]), **{"emission": options["emission"], "states": states}):
        model.fit(panel)
        assert model.states_.tolist() == states
        np.testing.assert_allclose(model.emission_.columns[0].means[:2], [1.5, 3.0], atol=0.1)
        if getattr(model, "refine", "auto") != 0:
            np.testing.assert_allclose(model.process_.rate_matrix[:2], process.rate_matrix[:2], rtol=0.4, atol=0.04)
        posterior = model.predict_proba(panel)
        assert np.all(posterior[dead] == [0.0, 0.0, 1.0]) and np.all(posterior[~dead, 2] == 0.0)
        # a row that shows nothing may be anyone's: not "alive" because it is empty
        ahead = model.predict_proba(panel, at={panel.ids[0]: [panel.end_times[0] + 3.0]})
        assert 0.01 < ahead[0, 2] <= 1.0
    # without a structure names stay where the marks are
    free = jm.JumpMeans(**options).fit(panel)
    assert free.emission_.columns[1].state_values().tolist() == ["alive", "alive", "dead"]
    assert free.predict_value(panel).shape == (panel.n_observations, 2)


def test_a_marker_alone_and_beside_symbols():
    """Alone it is a chain of hidden phases; beside symbols these are learned from the rows of the living."""
    panel, _, _ = marked_panel(60)
    marks = panel.categories[1][panel.values[:, 1].astype(int)]
    ids, options = panel.ids[panel.sequence_index], {"states": ["severe", "mild", "dead"], "engine": ONE}
    structure = jm.Structure(absorbing=["dead"])
    alone = jm.Panel.from_arrays(panel.times, marks, ids)
    model = EM(emission="marker", structure=structure, **options).fit(alone)
    assert model.process_.emission.n_parameters == 0 and model.process_.rates[2] == 0
    symbols = np.where(marks == "dead", None, np.where(panel.values[:, 0] > 2.2, "fit", "weak"))
    both = jm.Panel.from_arrays(panel.times, np.column_stack([symbols, marks]), ids)
    model = jm.JumpMeans(emission=["categorical", "marker"], structure=structure, **options).fit(both)
    probs = model.emission_.columns[0].probs
    assert sorted(probs[:2].argmax(axis=1).tolist()) == [0, 1]


@pytest.mark.parametrize(
    ("values", "states", "match"),
    [
        (["dead", "dead"], STATES, r"must hold names of states and one more label, .* got \['dead'\] and the states"),
        (["alive", "alive"], STATES, "name the states by states="),
        (["alive", "ok", "dead"], STATES, r"got \['alive', 'dead', 'ok'\]"),
        (["alive", "dead"], None, "name the states by states="),
    ],
)
def test_marks_that_name_nothing_are_refused(values, states, match):
    panel = jm.Panel.from_arrays(np.arange(len(values)), values, ["a"] * len(values))
    n_states = 3 if states is None else None
    with pytest.raises(jm.PanelError, match=match):
        EM(n_states, emission="marker", states=states).fit(panel)


def test_marker_misuse():
    panel, _, _ = marked_panel(4)
    with pytest.raises(ValueError, match=r"'marker' must stand for one column only, .* got \['marker', 'direct'\]"):
        EM(emission=["direct", "marker"]).fit(panel)
    with pytest.raises(
        ValueError, match="states must be given only for emission 'direct', nor can a 'marker' name them"
    ):
        jm.InfiniteJumpMeans(emission=["gaussian", "marker"]).fit(panel)
    with pytest.raises(ValueError, match="shows must be the label that each state shows, got 3"):
        jm.emissions.Marker(3)


def test_names_of_hidden_states_go_by_their_values():
    """Planted: names in the order in which a clustering found the states."""
    column = jm.emissions.Gaussian([0.0, 5.0, 10.0]), jm.emissions.Gaussian([1.0, -6.0, 8.0])
    process = jm.Process([0.3] * 3, (1 - np.eye(3)) / 2, emission=list(column))
    panel, _ = jm.simulate(process, 40, 12, random_state=0)
    for model in (
        EM(emission="gaussian", states=["low", "middle", "high"], engine=ONE),
        jm.JumpMeans(emission="gaussian", states=["low", "middle", "high"], engine=ONE),
        Gibbs(emission="gaussian", states=["low", "middle", "high"], n_samples=10, burn_in=20, thin=1, engine=ONE),
    ):
        model.fit(panel)
        assert model.states_.tolist() == ["low", "middle", "high"] == model.process_.states.tolist()
        np.testing.assert_allclose(model.emission_.columns[0].means, [0.0, 5.0, 10.0], atol=0.5)


def test_symbols_by_the_names_of_states_start_in_their_order():
    """Planted: symbols in alphabetical order, so that "dead" began as "well"."""
    states = ["well", "ill", "gone"]
    column = jm.emissions.Categorical([[0.8, 0.2, 0.0], [0.2, 0.6, 0.2], [0.0, 0.2, 0.8]], states)
    process = jm.Process([0.2] * 3, [[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]], None, column, states)
    panel, _ = jm.simulate(process, 150, 10, random_state=0)
    structure = jm.Structure(
        {"well": ["ill"], "ill": ["well", "gone"], "gone": ["ill"]},
        fixed={"emission": {("well", "gone"): 0.0, ("gone", "well"): 0.0}},
    )
    model = EM(emission="categorical", states=states, structure=structure, engine=ONE).fit(panel)
    assert model.emission_.columns[0].symbols.tolist() == states
    np.testing.assert_allclose(model.emission_.probs, column.probs, atol=0.1)


def test_standard_errors_of_shared_and_known_rates():
    """Those of the curvature of the plain likelihood; none of what is known. Planted: a coordinate for each move."""
    panel = labels(40, 6, seed=2)
    structure = jm.Structure(MOVES, initial="uniform", fixed=KNOWN, equal=SHARED)
    model = EM(emission="direct", states=STATES, structure=structure, **TIGHT).fit(panel)
    sure = model.information(panel)
    assert sure.names == ["rate well → ill = ill → well", "rate ill → dead"] and sure.held == []
    seen, Q = seen_states(panel), model.process_.rate_matrix
    centre, h = np.log([Q[0, 1], Q[1, 2]]), 1e-3

    def at(a, b):
        theta = centre + np.array([a * h, b * h])
        return np.log(likelihoods(panel, plain_rates(theta), np.full(3, 1 / 3), seen)).sum()

    curvature = -np.array([
        [at(1, 0) - 2 * at(0, 0) + at(-1, 0), (at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / 4],
        [(at(1, 1) - at(1, -1) - at(-1, 1) + at(-1, -1)) / 4, at(0, 1) - 2 * at(0, 0) + at(0, -1)],
    ]) / h**2  # fmt: skip
    np.testing.assert_allclose(sure.matrix, curvature, rtol=1e-3)
    table = sure.intervals()
    spread = np.sqrt(np.diag(np.linalg.inv(curvature))) * np.exp(centre)
    np.testing.assert_allclose(table["se"], [spread[0], 0.0, spread[0], spread[1]], rtol=1e-3, atol=1e-12)
    assert table["note"].tolist() == ["", "known", "", ""]
    assert model.n_parameters_ == 2


def test_fixed_entries_have_no_standard_error():
    column = jm.emissions.Categorical([[0.8, 0.2, 0.0], [0.2, 0.6, 0.2], [0.0, 0.2, 0.8]], [1, 2, 3])
    process = jm.Process([0.2] * 3, [[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]], None, column, [1, 2, 3])
    panel, _ = jm.simulate(process, 120, 8, random_state=0)
    structure = jm.Structure(
        process.transition_probs, initial="uniform", fixed={"emission": {(1, 3): 0.0, (2, 2): 0.6, (3, 1): 0.0}}
    )
    model = EM(emission="categorical", states=[1, 2, 3], structure=structure, **TIGHT).fit(panel)
    sure = model.information(panel)
    assert sure.held == [] and len(sure.names) == 4 + 3 == model.n_parameters_
    assert sure.interval(lambda m: m.emission_.probs).high[1, 1] == pytest.approx(0.6, rel=1e-12)


def test_slope_under_constraints_is_the_gradient():
    """As of test_em, where rates are known or shared and entries fixed. Planted: weights as of free rows."""
    column = jm.emissions.Categorical([[0.7, 0.3, 0.0], [0.3, 0.5, 0.2], [0.1, 0.1, 0.8]], ["u", "v", "w"])
    process = jm.Process([0.5, 0.9, 0.4], [[0, 0.8, 0.2], [0.5, 0, 0.5], [0.5, 0.5, 0]], [0.2, 0.3, 0.5], column)
    panel, _ = jm.simulate(process, 12, 6, random_state=2)
    structure = jm.Structure(
        fixed={"rates": {(1, 0): 0.45}, "emission": {(0, "w"): 0.0, (1, "w"): 0.2}}, equal=[[(2, 0), (2, 1)]]
    )
    constraints, record = constrain(structure, process.states, process.emission, panel)
    process = replace(process, emission=record)
    task = Task(Sequences.of(ONE, panel, record.encode(panel)), constraints, np.zeros(1))
    here = look(task, process)
    terrain = Terrain.at(here, constraints)
    slope = np.empty(len(terrain.u))
    for k in range(len(terrain.u)):
        step = 1e-5 * np.eye(len(terrain.u))[k]
        up, down = (look(task, rebuild(terrain.u + sign * step, here.image, task)).log_lik for sign in (1, -1))
        slope[k] = (up - down) / 2e-5
    np.testing.assert_allclose(terrain.slope, slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())
