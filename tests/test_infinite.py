"""The number of states, learned: each move, the check of births, the laws, the variants of the objective."""

import dataclasses
import itertools

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import jumpmeans as jm
from jumpmeans.engines import Threads
from jumpmeans.estimators import infinite
from jumpmeans.estimators.infinite import every_move
from jumpmeans.fit import births, proposals
from jumpmeans.fit.descent import Model, minimise
from jumpmeans.fit.evidence import price
from jumpmeans.fit.proposals import Scene, class_stats, short_and_long, timeline, two_means
from jumpmeans.fit.setup import sample_panel
from jumpmeans.model.objective import Prices, evaluate
from jumpmeans.model.params import Params
from jumpmeans.passes import Block, Search, Sequences

ONE = Threads(1)
BIRTHS = ("pair", "emissions", "dwells")


def gaussian_panel(means, rates, P=None, n=100, length=20, seed=0, sds=1.0):
    M = len(means)
    P = (1.0 - np.eye(M)) / max(M - 1, 1) if P is None else np.array(P, dtype=float)
    process = jm.Process(rates, P, emission=jm.emissions.Gaussian(means, sds=sds))
    return jm.simulate(process, n, length, random_state=seed)


def fit(panel, **options):
    return jm.InfiniteJumpMeans(**{"engine": ONE, **options}).fit(panel)


APART, APART_TRUTH = gaussian_panel(4.0 * np.arange(5), [0.2] * 5, n=60)
NOISE, _ = gaussian_panel([0.0], [0.0], n=60)
# B is entered from A and left to C, or entered from C and left to A: only where it was entered from tells which.
ROUND, _ = gaussian_panel(
    [0.0, 6.0, 12.0, 6.0], [0.3] * 4, [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]], length=30
)
# One level that is left soon or late.
SOON_OR_LATE, _ = gaussian_panel(
    [0.0, 0.0, 6.0], [0.5, 0.03, 0.3], [[0, 0, 1], [0, 0, 1], [0.5, 0.5, 0]], n=100, length=60, seed=1
)


def true_states(panel, truth):
    return truth.at(panel.times, panel.ids[panel.sequence_index])


# --- recovery -----------------------------------------------------------------------------------------------------


def test_states_apart_are_found_and_told_apart():
    model = fit(APART)
    assert model.n_states_ == 5
    np.testing.assert_allclose(model.process_.emission.means, 4.0 * np.arange(5), atol=0.4)
    assert adjusted_rand_score(true_states(APART, APART_TRUTH), model.predict(APART)) > 0.87
    base_row = model.objective_params_.base_row
    assert base_row.shape == (5,) and base_row.sum() == pytest.approx(1.0)
    assert model.states_.tolist() == [0, 1, 2, 3, 4]
    assert model.predict_proba(APART).shape == (APART.n_observations, 5)


def test_noise_is_one_state_and_only_the_check_says_so():
    assert fit(NOISE).n_states_ == 1
    assert fit(NOISE, check=False, max_states=8).n_states_ > 1


def test_states_close_together():
    found = [fit(gaussian_panel(2.0 * np.arange(5), [0.2] * 5, n=200, seed=seed)[0]).n_states_ for seed in range(3)]
    assert found.count(5) >= 2


@pytest.mark.parametrize(
    ("emission", "n"),
    [
        (jm.emissions.Poisson([2, 8, 20]), 3),
        (jm.emissions.Exponential([1, 10, 100]), 3),
        (jm.emissions.Laplace([0, 8, 16], 1.0), 3),
        (jm.emissions.Categorical([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], list("abc")), 3),
        (jm.emissions.Bernoulli([0.1, 0.9]), 2),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_every_family(emission, n):
    P = (1.0 - np.eye(n)) / (n - 1)
    panel, _ = jm.simulate(jm.Process([0.2] * n, P, emission=emission), 60, 20, random_state=1)
    model = fit(panel, emission=emission.name)
    assert model.n_states_ == n
    falls(model)


def test_several_columns():
    emission = [jm.emissions.Gaussian([0, 0, 5], sds=1), jm.emissions.Poisson([2, 12, 2])]
    process = jm.Process([0.2] * 3, (1.0 - np.eye(3)) / 2, emission=emission)
    panel, _ = jm.simulate(process, 60, 20, random_state=2)
    assert fit(panel, emission=["gaussian", "poisson"]).n_states_ == 3


# --- moves --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("panel", "start", "right", "wanted", "others"),
    [
        (APART, 1, 5, "emissions", ("pair", "dwells", "merge", "drop")),
        (ROUND, 3, 4, "pair", ("emissions", "dwells", "merge", "drop")),
        (SOON_OR_LATE, 2, 3, "dwells", ("merge", "drop", "emissions")),
    ],
    ids=["emissions", "pair", "dwells"],
)
def test_one_kind_of_birth_leads_to_the_right_number(panel, start, right, wanted, others):
    model = fit(panel, proposals=[wanted], start_states=start)
    assert model.n_states_ == right
    assert {step.kind for step in model.path_} == {"start", wanted}
    assert fit(panel, proposals=others, start_states=start).n_states_ == start
    assert fit(panel).n_states_ == right


@pytest.mark.parametrize("kind", ["merge", "drop"])
def test_too_many_states_become_fewer(kind, monkeypatch):
    """And nothing is checked, which takes longer than the trials of a round: only births are.

    Planted: the evidence found after every move.
    """
    monkeypatch.setattr(births, "evidence", lambda *_: pytest.fail("checked"))
    panel, _ = gaussian_panel([0.0, 5.0, 10.0], [0.2] * 3)
    price = {"emission_weight": 0.7, "state_cost": 0.06 * panel.n_observations}
    model = fit(panel, proposals=[kind], start_states=6, **price)
    assert model.n_states_ == 3
    assert [step.n_states for step in model.path_] == [6, 5, 4, 3]
    assert fit(panel, proposals=[], start_states=6, **price).n_states_ == 6


def test_paper_moves_alone_are_blind_at_one_state():
    assert fit(APART, proposals="paper").n_states_ == 1
    assert fit(APART, proposals="paper", start_states=2).n_states_ > 2


def test_accepted_moves_lower_the_objective():
    model = fit(APART)
    values = [step.objective for step in model.path_]
    assert all(b < a for a, b in itertools.pairwise(values))
    assert model.path_[-1].objective == model.objective_ == model.cost_.total
    assert [step.n_states for step in model.path_] == [1, 2, 3, 4, 5]
    falls(model)


def falls(model):
    J = model.objective_history_
    assert np.all(np.diff(J) <= 1e-9 * np.abs(J[:-1]))


def scene_of(panel, M=3, objective="corrected"):
    """A scene after a few sweeps with M states, and its timeline."""
    model = jm.InfiniteJumpMeans(engine=ONE, proposals=[], start_states=M, refine=0, objective=objective).fit(panel)
    block = Block.of(panel, model.emission_.encode(panel))
    sequences = Sequences.hold(ONE, block)
    params, prices, search, _ = model._decoder_
    search = search._replace(rounds=1)
    dwells, stats = sequences.decode(params, prices, search)
    dwells = sequences.fetch(dwells)
    model_of = lambda n: Model(prices, every_move(n), search)
    features = params.emission.features(block.x)
    return Scene(block, dwells, params, features, 1.0, model_of, stats), timeline(block, dwells, False)


@pytest.mark.parametrize("split", ["pair", "short"])
def test_statistics_of_a_split_are_those_of_the_relabelled_trajectories(split):
    """What a proposal expects from pooled statistics equals counting dwells and rows one by one."""
    panel, _ = gaussian_panel([0.0, 5.0, 10.0], [0.3] * 3, n=40)
    panel = dataclasses.replace(panel, weights=np.random.default_rng(0).integers(1, 4, 40).astype(float))
    scene, time = scene_of(panel)
    M = 3
    if split == "pair":
        classes = time.state * (M + 1) + np.where(time.before < 0, M, time.before)
        parent = np.repeat(np.arange(M), M + 1)
        groups = parent.copy()
        groups[1 * (M + 1) + 2] = M
        new = np.where((time.state == 1) & (time.before == 2), M, time.state)
    else:
        short = time.complete & (time.length < 2.0)
        classes, parent = 2 * time.state + short, np.repeat(np.arange(M), 2)
        groups = parent.copy()
        groups[2 * 1 + 1] = M
        new = np.where((time.state == 1) & short, M, time.state)
    stats, params = class_stats(scene, time, classes, parent).regroup(scene, groups)

    exits, total, log_total, jumps = np.zeros(4), np.zeros(4), np.zeros(4), np.zeros((4, 4))
    for d in range(len(new)):
        w = time.weight[d]
        if time.before[d] >= 0:
            jumps[new[d - 1], new[d]] += w
        if time.complete[d]:
            exits[new[d]] += w
            total[new[d]] += w * time.length[d]
            log_total[new[d]] += w * np.log(time.length[d])
    np.testing.assert_array_equal(stats.exits, exits)
    np.testing.assert_allclose(stats.time, total, rtol=1e-12)
    np.testing.assert_allclose(stats.log_time, log_total, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(stats.jumps, jumps)
    x, rows, w = scene.block.x[:, 0], new[time.row_dwell], time.weight[time.row_dwell]
    means = np.array([np.average(x[rows == s], weights=w[rows == s]) for s in range(4)])
    np.testing.assert_allclose(params.emission.means, means, rtol=1e-12)
    squares = 0.5 * w @ (x - means[rows]) ** 2
    cost = evaluate(stats, params, scene.prices)
    assert cost.observations == pytest.approx(scene.prices.emission[0] * squares, rel=1e-9)
    last = np.append(time.first[1:], len(new)) - 1
    np.testing.assert_array_equal(stats.run_state[:, 1], new[last])
    np.testing.assert_allclose(stats.run_time[:, 1], time.length[last])


@pytest.mark.parametrize("objective", ["corrected", "printed", "integrated"])
@pytest.mark.parametrize("family", ["gaussian", "categorical"])
def test_of_many_pairs_the_short_list_has_the_best(family, objective, monkeypatch):
    """Looking at few of them closely is quick, and finds what looking at all of them does.

    Planted: the list sorted the wrong way round.
    """
    M = 9
    emission = jm.emissions.Gaussian(6.0 * np.arange(M), sds=1)
    if family == "categorical":
        emission = jm.emissions.Categorical(0.1 / M + 0.9 * np.eye(M), list("abcdefghi"))
    process = jm.Process(np.linspace(0.1, 0.4, M), (1.0 - np.eye(M)) / (M - 1), emission=emission)
    panel, _ = jm.simulate(process, 60, 20, random_state=0)
    found = {}

    def few_and_all(scene, kinds, may_grow):
        time = timeline(scene.block, scene.dwells, False)
        for most in (proposals.SHORTLIST, M * M):
            with monkeypatch.context() as patch:
                patch.setattr(proposals, "SHORTLIST", most)
                found[most] = sorted(one.expected for one in proposals.pair_moves(scene, time))
        return []

    monkeypatch.setattr(births, "screened", few_and_all)
    fit(panel, emission=family, objective=objective, start_states=M, refine=0)
    few, of_all = found.values()
    assert len(of_all) > 2 * len(few) == 2 * proposals.SHORTLIST
    assert few[: births.TRIALS["pair"]] == of_all[: births.TRIALS["pair"]]


def test_timeline_agrees_with_the_statistics_of_the_kernel():
    scene, time = scene_of(APART, 4)
    stats = class_stats(scene, time, time.state, np.arange(4)).regroup(scene, np.arange(4))[0]
    for name in ("exits", "time", "log_time", "jumps", "run_state", "run_time"):
        np.testing.assert_allclose(getattr(stats, name), getattr(scene.stats, name), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(time.state[time.row_dwell], scene.dwells.row_states(scene.block.offsets))


def test_short_and_long_is_the_best_division():
    rng = np.random.default_rng(0)
    for _ in range(50):
        t, w = rng.gamma(1.0, 1.0, 12), rng.integers(1, 4, 12).astype(float)

        def cost(bound, t=t, w=w):
            parts = [(w[own].sum(), (w * t)[own].sum()) for own in (t <= bound, t > bound)]
            return sum(n * np.log(total / n) for n, total in parts)

        best = min(np.sort(t)[:-1], key=cost)
        assert short_and_long(t, w) == pytest.approx(best)
    assert short_and_long(np.ones(3), np.ones(3)) == 1.0


def test_two_means_separates_two_heaps():
    rng = np.random.default_rng(1)
    F = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(8, 1, (50, 2))])
    F[3, 0] = np.nan
    upper = two_means(F, np.ones(100))
    assert upper[50:].all() and not upper[:50].any()


# --- check --------------------------------------------------------------------------------------------------------


def test_price_counts_parameters():
    process = jm.Process([1.0, 1.0], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 1], sds=1))
    assert price(process, 400.0) == pytest.approx(0.5 * np.log(400.0) * 2 * 4)
    symbols = jm.emissions.Categorical(np.full((2, 5), 0.2))
    assert price(jm.Process([1.0, 1.0], [[0, 1], [1, 0]], emission=symbols), 400.0) == pytest.approx(
        0.5 * np.log(400.0) * 2 * 6
    )


def test_likelihood_of_the_check_counts_weights():
    panel, _ = gaussian_panel([0.0, 4.0], [0.3, 0.3], n=5)
    process = fit(panel).process_
    twice = dataclasses.replace(panel, weights=2.0 * panel.weights)
    one, two = (Sequences.of(ONE, p, process.emission.encode(p)).log_likelihood(process) for p in (panel, twice))
    assert two == pytest.approx(2 * one, rel=1e-12)


# --- laws ---------------------------------------------------------------------------------------------------------

SMALL, _ = gaussian_panel([0.0, 4.0, 8.0], [0.2] * 3, n=30, seed=4)


def moved(panel, time=1.0, scale=1.0, shift=0.0):
    return dataclasses.replace(
        panel,
        times=panel.times * time,
        start_times=panel.start_times * time,
        end_times=panel.end_times * time,
        values=panel.values * scale + shift,
    )


@pytest.mark.parametrize("panel", [SMALL, APART, NOISE], ids=["small", "apart", "noise"])
@pytest.mark.parametrize(
    "units", [{"time": 60.0}, {"time": 1 / 365.25}, {"scale": 0.133, "shift": 7.0}, {"scale": -3.0}], ids=str
)
def test_units_do_not_matter(panel, units):
    before, after = fit(panel), fit(moved(panel, **units))
    assert after.n_states_ == before.n_states_
    assert after.objective_ == pytest.approx(before.objective_, rel=1e-9)
    a, b = before.predict(panel), after.predict(moved(panel, **units))
    if units.get("scale", 1.0) < 0:
        b = before.n_states_ - 1 - b
    assert np.mean(a != b) < 1e-3


def test_powers_of_two_change_no_bit():
    other = moved(SMALL, time=4.0, scale=0.5)
    before, after = fit(SMALL), fit(other)
    assert after.objective_ == before.objective_
    np.testing.assert_array_equal(after.predict(other), before.predict(SMALL))
    np.testing.assert_array_equal(after.rates_ * 4.0, before.rates_)


def test_units_of_several_columns_do_not_matter():
    emission = [jm.emissions.Gaussian([0, 4], sds=1), jm.emissions.Gaussian([0, 0], sds=1)]
    panel, _ = jm.simulate(jm.Process([0.2, 0.2], [[0, 1], [1, 0]], emission=emission), 40, 20, random_state=3)
    other = dataclasses.replace(panel, values=panel.values * [1.0, 1000.0])
    assert fit(other).objective_ == pytest.approx(fit(panel).objective_, rel=1e-9)


def test_weights_are_copies():
    heavy = dataclasses.replace(SMALL, weights=np.where(np.arange(30) < 10, 2.0, 1.0))
    copies = SMALL.select(np.concatenate([np.arange(30), np.arange(10)]))
    a, b = fit(heavy), fit(copies)
    assert a.n_states_ == b.n_states_
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-9)


def test_order_of_the_sequences_does_not_matter():
    order = np.random.default_rng(0).permutation(30)
    a, b = fit(SMALL), fit(SMALL.select(order))
    assert a.n_states_ == b.n_states_
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-9)


def test_threads_change_no_bit():
    a, b = fit(APART), fit(APART, engine=Threads(3))
    assert a.objective_ == b.objective_
    np.testing.assert_array_equal(a.process_.rates, b.process_.rates)


# --- objective ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["printed", "integrated"])
def test_other_objectives(objective):
    model = fit(APART, objective=objective)
    assert model.n_states_ == 5
    falls(model)
    if objective == "printed":
        assert model.cost_.running_dwells == 0.0
    else:
        reached = (model.transition_probs_ > 1e-3).sum(axis=1)
        assert model.cost_.shared_rows == pytest.approx((reached - 1).sum())
        assert model.cost_.transitions == 0.0 and model.objective_params_.base_row is None
    np.testing.assert_allclose(model.transition_probs_.sum(axis=1), 1.0)
    assert np.isfinite(fit(APART, objective=objective, refine=0).predict_value(APART)).all()


def test_printed_dwell_term_is_the_one_of_the_paper():
    """Σ_m K ln((γ + T)/K) - Σ ln t of the trajectories equals the dwell terms of the cost."""
    scene, time = scene_of(APART, 4, "printed")
    params = minimise(scene.stats, scene.params, scene.model(4))
    cost = evaluate(scene.stats, params, scene.prices)
    gamma, expected = scene.prices.prior_time, 0.0
    for m in range(4):
        t = time.length[(time.state == m) & time.complete]
        expected += len(t) * np.log((gamma + t.sum()) / len(t)) - np.log(t).sum() if len(t) else 0.0
    assert cost.dwells + cost.rate_prior == pytest.approx(expected, rel=1e-10)
    assert cost.running_dwells == 0.0


def test_a_free_end_is_decoded_and_placed_at_no_cost():
    """One jump between two readings, then a long run: as printed the run costs nothing, so the first dwell decides."""
    panel = jm.Panel.from_arrays([0.0, 4.0, 50.0], [0.0, 9.0, 9.0], ids=[0, 0, 0])
    emission = jm.emissions.Gaussian([0.0, 9.0])
    record = jm.Process([1.0, 1.0], [[0, 1], [1, 0]], emission=emission).emission
    sequences = Sequences.of(ONE, panel, panel.values)
    params = Params(np.array([0.5, 5.0]), np.array([[0.0, 1.0], [1.0, 0.0]]), record)
    prices = Prices(1.0, np.full(1, 100.0), 1.0, 1.0, 0.0)
    found = {}
    for free in (0, 1):
        dwells, _ = sequences.decode(params, prices, Search(1, 1, 0, 0, 50, free))
        found[free] = sequences.fetch(dwells).starts[1]
    assert found[1] == pytest.approx(2.0)  # 1/λ of the first state
    assert found[0] > 3.9  # every moment less of the run is worth more than a longer first dwell costs


# --- options ------------------------------------------------------------------------------------------------------


def test_direct_states_are_the_labels():
    panel = jm.datasets.load_edss()
    model = jm.InfiniteJumpMeans(emission="direct").fit(panel)
    assert model.states_.tolist() == [1, 2, 3] and model.n_states_ == 3
    assert model.objective_params_.base_row.shape == (3,) and len(model.path_) == 1
    falls(model)
    allowed = jm.Structure(allowed={1: [2], 2: [1, 3], 3: [2]})
    held = jm.InfiniteJumpMeans(emission="direct", structure=allowed).fit(panel)
    assert held.transition_probs_[0, 2] == 0.0 and held.process_.transition_probs[2, 0] == 0.0


def test_max_states_is_respected():
    assert fit(APART, max_states=3).n_states_ == 3
    assert fit(APART, max_states=2, start_states=6).n_states_ <= 2


def test_a_high_price_leaves_one_state():
    assert fit(APART, state_cost=1e9).n_states_ == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"proposals": "some"}, "proposals must be"),
        ({"proposals": ["split"]}, "'split'"),
        ({"objective": "other"}, "objective must be"),
        ({"state_cost": -1.0}, "state_cost must be"),
        ({"max_states": 0}, "max_states must be"),
        ({"structure": jm.Structure()}, "structure must be None"),
        ({"objective": "printed", "first_dwell": "running"}, "first_dwell must be 'complete'"),
        ({"start_states": 1000, "max_states": 1000}, "start_states=1000 must be at most"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_misuse_says_what_must_hold(options, said):
    with pytest.raises(ValueError, match=said):
        fit(SMALL, **options)


def test_no_setting_crashes():
    rng = np.random.default_rng(0)
    for _ in range(25):
        zeta, xi, pull = 10.0 ** rng.uniform(-4, 2, 3)
        gamma, xi_1 = 10.0 ** rng.uniform(-2, 2, 2)
        model = fit(
            SMALL, emission_weight=zeta, transition_weight=xi, shared_row_weight=pull, prior_time=gamma,
            state_cost=xi_1, max_states=6, check=bool(rng.random() < 0.5),
        )  # fmt: skip
        assert 1 <= model.n_states_ <= 6
        assert np.isfinite(model.predict_value(SMALL)).all()
        assert np.isfinite(model.predict_proba(SMALL)).all() and np.isfinite(model.objective_)


@pytest.mark.parametrize("value", [np.nan, 3.0], ids=["nothing", "constant"])
def test_panels_that_say_little(value):
    panel = jm.Panel.from_arrays(np.arange(6.0), np.full(6, value), ids=[0, 0, 0, 1, 1, 1])
    model = fit(panel)
    assert model.n_states_ == 1
    assert len(model.predict_value(panel)) == 6


def test_no_prior_time_is_no_obstacle():
    model = fit(APART, prior_time=0.0)
    assert model.n_states_ == 5 and np.isfinite(model.objective_)
    falls(model)


def test_truth_values_are_readings():
    rng = np.random.default_rng(0)
    panel = jm.Panel.from_arrays(np.tile(np.arange(20.0), 10), rng.random(200) < 0.5, ids=np.repeat(np.arange(10), 20))
    assert fit(panel, emission="bernoulli").n_states_ == 1


@pytest.mark.parametrize("family", ["gaussian", "categorical"])
def test_automatic_numbers_given_back_change_nothing(family):
    panel = SMALL
    if family == "categorical":
        process = jm.Process([0.2] * 3, (1.0 - np.eye(3)) / 2, emission=SYMBOLS)
        panel, _ = jm.simulate(process, 60, 20, random_state=0)
    model = fit(panel, emission=family, refine=0)
    again = fit(panel, emission=family, refine=0, **model.hyperparameters(panel))
    assert again.objective_ == pytest.approx(model.objective_, rel=1e-12)


def test_one_row():
    panel = jm.Panel.from_arrays([0.0], [1.5], ids=["a"])
    assert fit(panel).n_states_ == 1


# --- much data ----------------------------------------------------------------------------------------------------


def test_the_number_is_sought_on_a_sample_and_all_is_fitted(monkeypatch):
    monkeypatch.setattr(infinite, "SEARCH_ROWS", 900)
    model = fit(APART)
    assert model.n_states_ == 5
    assert len(model.trajectories_) == APART.n_sequences
    falls(model)
    order = np.random.default_rng(1).permutation(APART.n_sequences)
    assert fit(APART.select(order)).objective_ == pytest.approx(model.objective_, rel=1e-9)


SYMBOLS = jm.emissions.Categorical([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]], list("abc"))


def test_a_sample_of_symbols_keeps_their_states(monkeypatch):
    """Pseudo-counts and the pull to the base row grow with the data: on a sample they are as much smaller."""
    process = jm.Process([0.2] * 3, (1.0 - np.eye(3)) / 2, emission=SYMBOLS)
    panel, _ = jm.simulate(process, 1000, 20, gaps="regular", random_state=0)
    monkeypatch.setattr(infinite, "SEARCH_ROWS", 4000)
    model = fit(panel, emission="categorical", refine=5)
    assert model.n_states_ == 3
    # the history is that of the descent on all rows, the time of the search counts too
    np.testing.assert_array_equal(model.history_.values, model.objective_history_)
    assert len(model.history_) == model.n_iter_ and model.objective_ == model.objective_history_[-1]


def test_a_sample_does_not_depend_on_the_order_of_the_sequences():
    process = jm.Process([0.2] * 3, (1.0 - np.eye(3)) / 2, emission=SYMBOLS)
    panel, _ = jm.simulate(process, 1000, 20, gaps="regular", random_state=0)
    order = np.random.default_rng(0).permutation(1000)
    a, b = (set(sample_panel(p, 2000).ids.tolist()) for p in (panel, panel.select(order)))
    assert len(a & b) >= 99


def test_sample_of_a_panel():
    few = sample_panel(APART, 600)
    assert few.n_observations == 600 and len(set(few.ids.tolist())) == 30
    assert sample_panel(APART, 10_000) is APART
    long, _ = gaussian_panel([0.0, 4.0], [0.2, 0.2], n=2, length=500)
    cut = sample_panel(long, 400)
    assert cut.lengths.tolist() == [200, 200]
    assert cut.end_times[0] == cut.times[199] == long.times[199]
