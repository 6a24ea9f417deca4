"""Faults that were planted once and noticed by no test: of the descent, of the search for states, of closing steps.

Each test names the fault that it catches; each has been seen to fail on it.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

import jumpmeans as jm
from all_families import ALL, COUNTED, EXAMPLES, HIDDEN, spec
from jumpmeans.emissions import Record
from jumpmeans.engines import Threads
from jumpmeans.errors import RiseWarning
from jumpmeans.estimators import infinite
from jumpmeans.estimators.infinite import every_move
from jumpmeans.fit import births, descent
from jumpmeans.fit.births import Rules, trials
from jumpmeans.fit.descent import Model, descend, minimise
from jumpmeans.fit.proposals import PROPOSALS, drops, merges, two_means
from jumpmeans.fit.setup import make_search, sample_panel, total_weight
from jumpmeans.model.constraints import Constraints
from jumpmeans.model.objective import evaluate
from jumpmeans.model.params import Params
from jumpmeans.model.updates import uniform_rows
from jumpmeans.passes import Block, Sequences
from test_infinite import APART, fit, gaussian_panel, scene_of
from test_laws import CHAIN, SEEDS, make_model, make_panel, prices_of

ONE = Threads(1)


# ------------------------------------------------------------------ rise of J


def now_and_then(right, wrong):
    """A function that is right at first, and wrong every second time."""
    calls = [0]

    def either(*args):
        calls[0] += 1
        return wrong(*args) if calls[0] % 2 == 0 else right(*args)

    return either


def fast_rates(patch):
    """Rates of 1.7 times what they should be, always."""
    right = descent.exact_rates
    patch.setattr(descent, "exact_rates", lambda *args: 1.7 * right(*args))


def even_rows(patch):
    """Now and then, rows half way to uniform ones."""
    for name in ("transition_rows", "shared_rows"):
        right = getattr(descent, name)

        def wrong(jumps, first, second, *rest, right=right, name=name):
            out = right(jumps, first, second, *rest)
            if name == "transition_rows":  # jumps, pseudo_count, moves
                return 0.5 * (out + uniform_rows(second))
            return 0.5 * (out[0] + 1.0 / len(jumps)), out[1]

        patch.setattr(descent, name, now_and_then(right, wrong))


def altered(emission, change):
    """The same emission with change(table) for the parameters (M,) or (M, N) that each column costs by."""
    tables = [(column, column.params[0], getattr(column, column.params[0])) for column in emission.columns]
    return Record(column._copy(**{name: change(table)}) for column, name, table in tables)


def blurred(table):
    """Every state half way to the average of all."""
    return 0.5 * (table + table.mean(axis=0))


def blurred_states(patch):
    """Now and then, states that show nearly the same."""
    right = Record.update
    patch.setattr(Record, "update", now_and_then(right, lambda self, stats: altered(right(self, stats), blurred)))


def hasty_decoder(patch):
    """Now and then, trajectories of a process five times as fast."""
    right = Sequences.sweep

    def wrong(self, dwells, params, *rest):
        return right(self, dwells, replace(params, rates=5.0 * params.rates), *rest)

    patch.setattr(Sequences, "sweep", now_and_then(right, wrong))


def careless_decoder(patch):
    """Now and then, trajectories for which a jump costs nothing."""
    right = Sequences.sweep

    def wrong(self, dwells, params, prices, search):
        return right(self, dwells, params, prices._replace(transition=0.0), search)

    patch.setattr(Sequences, "sweep", now_and_then(right, wrong))


def both_models(family):
    """Both models of three states, without closing steps."""
    states = ["a", "b", "c"] if family == "direct" else None
    yield make_model(family)
    yield jm.InfiniteJumpMeans(
        emission=spec(family), states=states, start_states=3, proposals=[], refine=0, max_iter=500
    )


FAULTS = [fast_rates, even_rows, blurred_states, hasty_decoder, careless_decoder]
# labels have no parameters to blur
CERTAIN = [family for family in ALL if EXAMPLES[family].column.n_free == 0]
CASES = [
    (family, fault) for family in COUNTED for fault in FAULTS if family not in CERTAIN or fault is not blurred_states
]


@pytest.mark.parametrize(("family", "fault"), CASES)
def test_a_rise_of_the_objective_is_told(family, fault, monkeypatch):
    """Caught: a guard that stops at a rise and calls it converged, whatever the fault behind it."""
    told = 0
    for seed in range(3):
        panel = make_panel(np.random.default_rng(seed), family)
        for model in both_models(family):
            with monkeypatch.context() as patch:
                fault(patch)
                try:
                    model.fit(panel)
                except RiseWarning as warning:
                    assert "no step may raise the objective, got a rise from" in str(warning)
                    told += 1
    assert told >= 5


def test_a_rise_within_a_sweep_is_told(monkeypatch):
    """Caught: only whole sweeps compared, so that a good decode hides parameters that make it dearer."""
    panel, moves = make_panel(np.random.default_rng(0), "gaussian", S=40), every_move(3).moves
    prices = prices_of(make_model("gaussian"), panel)
    known = Model(prices, Constraints.of(moves), make_search("auto", "exact", "complete", moves))
    sequences = Sequences.of(ONE, panel, panel.values)
    start = Params(np.full(3, 1.0), uniform_rows(moves), Record([jm.emissions.Gaussian([0.0, 4.0, 8.0])]))
    first, second = descend(sequences, start, known, 2, 0.0).history
    right = descent.exact_rates
    monkeypatch.setattr(descent, "exact_rates", now_and_then(right, lambda *args: 3.0 * right(*args)))
    with pytest.warns(RiseWarning, match="no step may raise the objective, got a rise from"):
        spoiled = descend(sequences, start, known, 2, 0.0).history
    assert second.total < spoiled[1].total < first.total == spoiled[0].total


@pytest.mark.parametrize("family", COUNTED)
@given(seed=SEEDS)
@settings(max_examples=3)
def test_without_a_fault_the_search_raises_nothing(family, seed):
    """A RiseWarning is an error here; `test_objective_never_rises` asks the same of a given number of states."""
    rng = np.random.default_rng(seed)
    panel = make_panel(rng, family, S=8, weights=rng.random() < 0.5)
    model = jm.InfiniteJumpMeans(
        emission=spec(family),
        states=["a", "b", "c"] if family == "direct" else None,
        max_states=3,
        start_states=int(rng.integers(1, 3)),
        check=bool(rng.random() < 0.5),
        first_dwell=str(rng.choice(["complete", "running"])),
        search=str(rng.choice(["exact", "beam"])),
        transition_weight=float(rng.choice([0.3, 1.0, 3.0])),
        refine=0,
        max_iter=500,
    ).fit(panel)
    assert np.all(np.diff(model.objective_history_) <= 1e-9 * model.cost_.size)


@pytest.mark.parametrize("family", COUNTED)
def test_no_parameters_nearby_do_better(family, rng):
    """Caught: rates times 1.7, rows mixed with uniform ones, shifted means in `minimise`, even if J never rises by it.

    A step that is always wrong in the same way settles where J no longer rises; but then something near is lower.
    """
    for shared in (False, True):
        panel = make_panel(rng, family, S=20, weights=True)
        model = list(both_models(family))[shared].fit(panel)
        moves = CHAIN.copy() if family == "direct" and not shared else every_move(3).moves
        prices = model._decoder_.prices if shared else prices_of(model, panel)
        best = Model(prices, Constraints.of(moves), make_search("auto", "exact", "complete", moves))
        sequences = Sequences.of(ONE, panel, model.emission_.encode(panel))
        start = replace(model.objective_params_)
        if not shared:
            start = replace(start, transition_probs=uniform_rows(moves))
        run = descend(sequences, start, best, 500, 1e-9)
        params = minimise(run.stats, run.params, best)
        least = evaluate(run.stats, params, prices)

        def no_better(**change):
            worse = evaluate(run.stats, replace(params, **change), prices)  # noqa: B023
            assert worse.total >= least.total - 1e-10 * least.size  # noqa: B023

        for _ in range(20):
            step = 10.0 ** rng.uniform(-4, -0.5)
            no_better(rates=params.rates * np.exp(step * rng.standard_normal(3)))
            other = rng.dirichlet(np.ones(3), 3) * (moves if params.base_row is None else 1.0)
            other /= other.sum(axis=1, keepdims=True)
            no_better(transition_probs=(1.0 - step) * params.transition_probs + step * other)
            if family not in CERTAIN:
                no_better(emission=altered(params.emission, partial(nudged, step=step, rng=rng)))


def nudged(table, step, rng):
    """Parameters of an emission a little off: shares stay shares, and a chance stays below 1."""
    if table.ndim == 2:
        return (1.0 - step) * table + step * rng.dirichlet(np.ones(table.shape[1]), len(table))
    off = table * np.exp(step * rng.standard_normal(len(table)))
    return np.where(table < 1.0, np.minimum(off, 1.0 - 1e-9), off)


# ------------------------------------------------------- the search for states


def test_the_best_of_all_moves_is_tried_first():
    """Caught: trials in the order in which they were proposed, so that the first move that helps is taken."""
    panel, _ = gaussian_panel([0.0, 3.0, 6.0, 9.0], [0.3] * 4, n=40)
    scene, _ = scene_of(panel, 2)
    sequences = Sequences.hold(ONE, scene.block)
    dwells, _ = sequences.decode(scene.params, scene.prices, scene.model(2).search)
    rules = Rules(tuple(PROPOSALS), 8, check=True, max_iter=100, tol=1e-9)
    found = [trial.run.cost.total for trial in trials(sequences, scene, dwells, rules)]
    proposed = []
    for proposal in births.screened(scene, rules.kinds, may_grow=True):
        params = proposal.make()
        run = descend(sequences, params, scene.model(len(params.rates)), births.TRIAL_SWEEPS, 0.0, dwells)
        proposed.append(run.cost.total)
    assert found == sorted(proposed)
    assert proposed[0] > min(proposed)  # else the first would be the best anyway


def test_rows_belong_to_the_nearer_of_two_means():
    """Caught: a threshold other than half way between the two centres, which shows where the heaps are uneven."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        F = np.concatenate([rng.normal(0.0, 1.0, (40, 2)), rng.normal(2.5, 0.5, (6, 2))]) * [1.0, 2.0]
        weights = rng.integers(1, 4, len(F)).astype(float)
        upper = two_means(F, weights)
        centres = [np.average(F[part], axis=0, weights=weights[part]) for part in (~upper, upper)]
        distance = np.array([((F - centre) ** 2).sum(axis=1) for centre in centres])
        np.testing.assert_array_equal(upper, distance[1] < distance[0])


def handed_over(scene, time, m, takers):
    """What the rows of state m cost more in the cheapest of other states, row by row."""
    more, x = 0.0, scene.block.x[:, 0]
    weight = time.weight[time.row_dwell]
    for i in np.flatnonzero(time.state[time.row_dwell] == m):
        costs = 0.5 * scene.prices.emission[0] * (x[i] - scene.params.emission.means) ** 2
        more += weight[i] * (min(costs[r] for r in takers) - costs[m])
    return more


def test_what_merging_and_dropping_are_expected_to_cost():
    """Caught: states to merge screened by what their rows cost elsewhere, not less what they cost where they are.

    Then the state of fewest rows is merged, however far it is from all others.
    """
    panel, _ = gaussian_panel([0.0, 1.0, 20.0], [0.3] * 3, n=30)
    panel = replace(panel, weights=np.random.default_rng(0).integers(1, 4, 30).astype(float))
    scene, time = scene_of(panel)
    now = evaluate(scene.stats, scene.params, scene.prices).total - scene.prices.state_cost
    pairs = [(m, r) for m in range(3) for r in range(3) if m != r]
    expected = [now + handed_over(scene, time, m, [r]) for m, r in pairs]
    np.testing.assert_allclose([proposal.expected for proposal in merges(scene, time)], expected, rtol=1e-9)
    expected = [now + handed_over(scene, time, m, [r for r in range(3) if r != m]) for m in range(3)]
    np.testing.assert_allclose([proposal.expected for proposal in drops(scene, time)], expected, rtol=1e-9)
    assert set(pairs[i] for i in np.argsort([p.expected for p in merges(scene, time)])[:2]) == {(0, 1), (1, 0)}


@pytest.mark.parametrize("price", ["auto", 30.0])
def test_a_sample_is_searched_at_its_share_of_the_price(price, monkeypatch):
    """Caught: ξ_1 of the whole panel asked of each state found in a sample of it."""
    asked = []

    def spy(sequences, scene, rules, n):
        asked.append((scene.prices.state_cost, n))
        return births.search_states(sequences, scene, rules, n)

    monkeypatch.setattr(infinite, "search_states", spy)
    monkeypatch.setattr(infinite, "SEARCH_ROWS", 300)
    model = fit(APART, state_cost=price)
    few = sample_panel(APART, 300)
    share = total_weight(few) / total_weight(APART)
    assert share == pytest.approx(0.25)
    whole = 0.015 * APART.n_observations if price == "auto" else price
    assert asked == [(pytest.approx(share * whole), total_weight(few))]
    assert model.cost_.states == pytest.approx(whole * model.n_states_)


def test_a_sample_at_the_price_of_the_whole_would_find_fewer_states(monkeypatch):
    """The same fault as it would be met: a quarter of the rows cannot pay for five states."""
    monkeypatch.setattr(infinite, "SEARCH_ROWS", 300)
    assert fit(APART, state_cost=1500.0).n_states_ == 5
    assert fit(sample_panel(APART, 300), state_cost=1500.0).n_states_ < 5


# ---------------------------------------------------------------- closing steps


def test_tables_reach_to_the_end_of_the_window():
    """Caught: a longest gap that leaves the tail of the window out.

    Where the generator has no eigenbasis, expected times come from tables of its powers, which must reach that far.
    """
    process = jm.Process([1.0, 1.0, 0.0], [[0, 1, 0], [0, 0, 1], [0, 0, 0]], [1.0, 0.0, 0.0], states=list("abc"))
    panel = jm.Panel.from_arrays([0.0, 0.1, 0.2], ["a", "a", "a"], [0, 0, 0], end_times=[9.2] * 3)
    block = Block.of(panel, process.emission.encode(panel))
    assert block.longest_gap == 9.0
    time = np.diag(Sequences.hold(ONE, block).expect(process).integrals)
    # from a at 0.2, each of two states is left at rate 1: by hand
    t = 9.0
    in_a, in_b = 1.0 - np.exp(-t), 1.0 - np.exp(-t) * (1.0 + t)
    np.testing.assert_allclose(time, [0.2 + in_a, in_b, t - in_a - in_b], rtol=1e-9)


def test_the_spreads_of_closing_steps_lean_on_each_other():
    """Caught: a state's spread taken from its own readings alone (`shared` of `maximise` left out)."""
    panel, _ = gaussian_panel([0.0, 15.0], [0.5, 0.3], sds=[0.2, 1.5], n=15)
    panel = replace(panel, weights=np.random.default_rng(0).integers(1, 4, 15).astype(float))
    before, after = (jm.JumpMeans(2, refine=steps).fit(panel).process_ for steps in (0, 1))
    x = panel.values[:, 0]
    probs = Sequences.of(ONE, panel, panel.values).smooth(before)[0] * np.repeat(panel.weights, panel.lengths)[:, None]
    means = x @ probs / probs.sum(axis=0)
    squares = (probs * (x[:, None] - means) ** 2).sum(axis=0)
    common = squares.sum() / probs.sum()
    np.testing.assert_allclose(after.emission.means, means, rtol=1e-9)
    np.testing.assert_allclose(after.emission.sds, np.sqrt((squares + 300 * common) / (probs.sum(axis=0) + 300)))
    own = np.sqrt(squares / probs.sum(axis=0))
    assert own[0] < 0.5 * after.emission.sds[0]  # it makes a difference here


@pytest.mark.parametrize("family", HIDDEN)
def test_what_is_trusted_where_a_trajectory_is_in_a_state_counts_weights(family, rng):
    """Caught: rows of all sequences taken as equal in what a state on a trajectory shows."""
    panel = make_panel(rng, family, weights=True)
    model = make_model(family, refine=2).fit(panel)
    sequences = Sequences.hold(ONE, Block.of(panel, model.emission_.encode(panel)))
    dwells, _ = model._decoder_.decode(sequences)
    trust, states, posterior = np.zeros((3, 3)), model.predict(panel), model.predict_proba(panel)
    for i, weight in zip(panel.rows, np.repeat(panel.weights, panel.lengths), strict=True):
        trust[states[i]] += weight * posterior[i]
    np.testing.assert_allclose(sequences.agreement(dwells, model.process_), trust, rtol=1e-9, atol=1e-12)
    assert len(np.unique(panel.weights)) > 1


def test_what_a_state_shows_is_what_heavy_sequences_say():
    """The same fault as it would be met: the symbol of many light sequences shown for that of a few heavy ones."""
    rng = np.random.default_rng(3)
    n, length = 30, 10
    heavy = np.arange(n) < 6
    # one long dwell each; the heavy ones show "x" most of the time, the light ones "y"
    chance = np.where(heavy, 0.8, 0.3)
    values = np.where(rng.random((n, length)) < chance[:, None], "x", "y").astype(object).ravel()
    ids = np.repeat(np.arange(n), length)
    weights = np.where(heavy, 50.0, 1.0)[ids]
    panel = jm.Panel.from_arrays(np.tile(np.arange(length) * 1.0, n), values, ids, weights=weights)
    model = jm.JumpMeans(1, emission="categorical").fit(panel)
    assert model.predict_value(panel, "trajectory").tolist() == ["x"] * len(ids)
    light = replace(panel, weights=np.ones(n))
    assert jm.JumpMeans(1, emission="categorical").fit(light).predict_value(light, "trajectory")[0] == "y"
