"""Whatever a fitted model says, it says of one and the same process: parts, order, trajectories, summaries.

Each test names the planted fault that it catches; each has been seen to fail on it.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

import jumpmeans as jm
from all_families import ALL, COUNTED, spec
from jumpmeans.engines import Threads
from jumpmeans.estimators import infinite, jump_model
from jumpmeans.fit.em_steps import em_steps
from jumpmeans.fit.publish import publish_trajectories
from jumpmeans.fit.setup import PSEUDO_COUNT, make_search
from jumpmeans.model.constraints import Constraints
from jumpmeans.model.objective import Prices
from jumpmeans.model.params import Params
from jumpmeans.passes import Sequences
from test_infinite import APART
from test_laws import SEEDS, make_panel, same_bits

ONE = Threads(1)
# States that overlap, so that every weight matters to the trajectories.
CLOSE = {
    "direct": None,
    "categorical": jm.emissions.Categorical([[0.75, 0.15, 0.1], [0.1, 0.8, 0.1], [0.15, 0.1, 0.75]], list("uvw")),
    "poisson": jm.emissions.Poisson([1.0, 4.0, 10.0]),
    "gaussian": jm.emissions.Gaussian([0.0, 2.5, 5.0], sds=1.0),
    "laplace": jm.emissions.Laplace([0.0, 3.0, 6.0], 1.0),
}
# What a fit is decoded with, by hand: ζ that makes a cost -ln of a density, where it is simple enough.
NATURAL = {
    "direct": lambda column: 1.0,
    "categorical": lambda column: 1.0,
    "poisson": lambda column: 1.0,
    "gaussian": lambda column: 1.0 / np.mean(column.sds**2),
    "laplace": lambda column: 1.0 / np.mean(column.scales),
}


def close_panel(family, n=40):
    """A panel of three states that overlap, half of it without values if they are seen directly."""
    rows = [[0, 0.7, 0.3], [0.5, 0, 0.5], [0.4, 0.6, 0]]
    states = list("abc") if family == "direct" else None
    process = jm.Process([0.4, 0.3, 0.5], rows, emission=CLOSE[family], states=states)
    panel, _ = jm.simulate(process, n, 15, random_state=1)
    return jm.hold_out(panel, 0.5 if family == "direct" else 0.1, random_state=1)[0]


def model_of(family, infinite_too=False, **options):
    """A model of about three states."""
    states = ["a", "b", "c"] if family == "direct" else None
    options = {"engine": ONE, "max_iter": 500} | options
    if infinite_too:
        return jm.InfiniteJumpMeans(emission=spec(family), states=states, max_states=3, **options)
    n_states = None if family == "direct" else 3
    return jm.JumpMeans(n_states, emission=spec(family), states=states, **{"n_init": 1} | options)


def speaks_of_one_model(model, panel):
    """All that a fitted model shows agrees with its process, and all of its objective with each other."""
    process, M = model.process_, len(model.states_)
    assert model.rates_ is process.rates
    assert model.transition_probs_ is process.transition_probs
    assert model.emission_ is process.emission
    assert process.states.tolist() == model.states_.tolist() == model.trajectories_.labels.tolist()
    if not process.emission.is_direct and hasattr(process.emission, "means"):
        assert np.all(np.diff(process.emission.means) >= 0)
    assert model.objective_params_.rates.shape == (M,)

    assert model.n_iter_ == len(model.objective_history_) == len(model.history_)
    np.testing.assert_array_equal(model.history_.values, model.objective_history_)
    assert model.objective_ == model.objective_history_[-1] == model.cost_.total

    same_bits(model.decode(panel), model.trajectories_)
    table = model.summary()
    share = model.trajectories_.time_in_state().sum(axis=0)
    np.testing.assert_allclose(table["time_share"], share / share.sum(), rtol=1e-12)
    np.testing.assert_array_equal(table["visits"], np.bincount(model.trajectories_.codes, minlength=M))
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(table["mean_dwell"], 1.0 / process.rates)
    known = jm.JumpMeans.from_process(process, engine=ONE)
    np.testing.assert_array_equal(model.predict_proba(panel), known.predict_proba(panel))
    same_bits(known.decode(panel), model.trajectories_)


BOTH = [(family, False) for family in ALL] + [(family, True) for family in COUNTED]


@pytest.mark.parametrize(("family", "infinite_too"), BOTH)
@given(seed=SEEDS)
@settings(max_examples=2)
def test_everything_speaks_of_one_model(family, infinite_too, seed):
    """Caught: rates of J beside the emission of the process; an iteration that is not in the history."""
    panel = make_panel(np.random.default_rng(seed), family, weights=True)
    model = model_of(family, infinite_too, refine=3).fit(panel)
    speaks_of_one_model(model, panel)


def test_a_model_found_on_a_sample_speaks_of_the_whole(monkeypatch):
    """Caught: the history of the search on the sample, or its objective, beside the trajectories of all rows."""
    monkeypatch.setattr(infinite, "SEARCH_ROWS", 300)
    model = jm.InfiniteJumpMeans(engine=ONE).fit(APART)
    speaks_of_one_model(model, APART)
    assert len(model.trajectories_) == APART.n_sequences
    assert model.path_[-1].objective < 0.5 * model.objective_  # that of a quarter of the rows


@pytest.mark.parametrize(("family", "seeds"), [("exponential", (0, 6, 10)), ("poisson", (22, 27))])
def test_states_are_in_the_order_of_the_process(family, seeds, monkeypatch):
    """Caught: states sorted by the means of J alone, so that those of the process read 29, 25, 34."""
    crossed, right, ends = 0, jump_model.close, []

    def spy(sequences, sample, run, *rest):
        nonlocal crossed
        end = right(sequences, sample, run, *rest)
        crossed += bool(np.any(np.diff(end.process.emission.means) < 0))
        ends.append((run.params, end.process))
        return end

    monkeypatch.setattr(jump_model, "close", spy)
    for seed in seeds:
        panel = make_panel(np.random.default_rng(seed), family)
        model = jm.JumpMeans(5, emission=family, n_init=1, max_iter=500, engine=ONE).fit(panel)
        speaks_of_one_model(model, panel)
        shown = model.predict_value(panel, "trajectory")
        np.testing.assert_array_equal(shown, model.process_.emission.means[model.predict(panel)])
        # caught: parameters of J left in the order that they had before, or those of the process in their place
        params, process = ends[-1]
        order = np.array([process.rates.tolist().index(rate) for rate in model.rates_])
        own = model.objective_params_
        np.testing.assert_array_equal(own.rates, params.rates[order])
        np.testing.assert_array_equal(own.transition_probs, params.transition_probs[np.ix_(order, order)])
        np.testing.assert_array_equal(own.emission.means, params.emission.means[order])
    assert crossed >= 2  # closing steps did move states past each other here


def test_of_equal_states_the_same_is_taken_again():
    """Caught: trajectories relabelled to the order of the states, where a decode takes the first of two equal ones."""
    panel = make_panel(np.random.default_rng(0), "bernoulli")
    model = jm.JumpMeans(5, emission="bernoulli", n_init=1, max_iter=500, engine=ONE).fit(panel)
    assert np.isclose(model.emission_.means[0], model.emission_.means[1], rtol=1e-12)
    speaks_of_one_model(model, panel)


# ------------------------------------------------------------ the closing decode


def decoded(model, panel, xi, zeta):
    """Trajectories under the process of a model with weights given by hand, decoded until nothing changes.

    Caught, where these must be those of the model: a decode that stops after one round or two.
    """
    process = model.process_
    sequences = Sequences.of(ONE, panel, process.emission.encode(panel))
    search = make_search("auto", "exact", "complete", process.transition_probs > 0)._replace(rounds=1000)
    params = Params(process.rates, process.transition_probs, process.emission)
    dwells, _ = sequences.decode(params, Prices(xi, np.atleast_1d(zeta), 0.0, 0.0, 0.0), search)
    return publish_trajectories(panel, sequences.fetch(dwells), model.states_)


def differ(a, b):
    return a.codes.tolist() != b.codes.tolist() or not np.allclose(a.start_times, b.start_times)


@pytest.mark.parametrize("family", NATURAL)
def test_weights_left_to_us_follow_the_densities_of_the_process(family):
    """Caught: the closing decode with ξ = 1, or with the ζ of the descent."""
    panel = close_panel(family)
    model = model_of(family).fit(panel)
    zeta = NATURAL[family](model.emission_.columns[0])
    same_bits(decoded(model, panel, 2.0, zeta), model.trajectories_)
    assert differ(decoded(model, panel, 1.0, zeta), model.trajectories_)
    if family != "direct":  # a label costs nothing or everything
        assert differ(decoded(model, panel, 2.0, 0.3 * zeta), model.trajectories_)


@pytest.mark.parametrize("family", NATURAL)
def test_weights_that_were_given_are_kept_to_the_end(family):
    """Caught: a closing decode that takes its own ξ and ζ whatever was asked for."""
    panel = close_panel(family)
    for xi, zeta in ((0.4, "auto"), ("auto", 0.05), (0.4, 0.05)):
        model = model_of(family, transition_weight=xi, emission_weight=zeta).fit(panel)
        natural = NATURAL[family](model.emission_.columns[0])
        used = (2.0 if xi == "auto" else xi), (natural if zeta == "auto" else zeta)
        same_bits(decoded(model, panel, *used), model.trajectories_)
        if family != "direct" or xi != "auto":
            assert differ(decoded(model, panel, 2.0, natural), model.trajectories_)


@pytest.mark.parametrize("family", ALL)
def test_trajectories_are_those_of_the_process(family, rng):
    """Caught: trajectories decoded under a process of some steps before, as those of labels once were."""
    panel = make_panel(rng, family, S=30, weights=True)
    model = model_of(family).fit(panel)
    known = jm.JumpMeans.from_process(model.process_, engine=ONE)
    same_bits(known.decode(panel), model.trajectories_)
    earlier = model_of(family, refine=2).fit(panel)
    assert differ(jm.JumpMeans.from_process(earlier.process_, engine=ONE).decode(panel), model.trajectories_)


def two_columns(rng):
    """Labels, symbols and readings of the same rows."""
    panel = make_panel(rng, "gaussian", S=12, missing=0.0)
    state = np.digitize(panel.values[:, 0], [2.5, 8.5])
    symbols = np.where(rng.random(len(state)) < 0.8, state, 0)
    return panel, state, symbols


@pytest.mark.parametrize(
    ("emission", "steps"),
    [
        ("direct", 20),
        ("gaussian", 10),
        ("poisson", 10),
        ("categorical", 100),
        (["gaussian", "categorical"], 100),
        (["direct", "gaussian"], 20),
    ],
    ids=str,
)
def test_number_of_closing_steps(emission, steps, rng):
    """Caught: another number of EM steps before the process is published."""
    families = [emission] if isinstance(emission, str) else emission
    base, state, symbols = two_columns(rng)
    columns = {
        "direct": state,
        "categorical": symbols,
        "gaussian": base.values[:, 0],
        "poisson": rng.poisson(np.array([1.0, 6.0, 20.0])[state]),
    }
    values = np.column_stack([columns[family].astype(float) for family in families])
    panel = jm.Panel.from_arrays(base.times, values, base.sequence_index)
    n_states = None if "direct" in families else 3

    def process(refine):
        model = jm.JumpMeans(n_states, emission=emission, n_init=1, refine=refine, max_iter=500, engine=ONE)
        return model.fit(panel).process_.generator()

    np.testing.assert_array_equal(process("auto"), process(steps))
    for other in (steps - 1, steps + 1):
        assert not np.array_equal(process("auto"), process(other))


def test_each_closing_step_is_one_step_of_em(rng):
    """Caught: one step more than asked for, whether by number or by default."""
    panel = make_panel(rng, "gaussian", S=12)
    processes = [model_of("gaussian", refine=k).fit(panel).process_ for k in range(5)]
    sequences, free = Sequences.of(ONE, panel, panel.values), Constraints.of(~np.eye(3, dtype=bool))
    for before, after in pairwise(processes):
        step, _ = em_steps(sequences, before, free, 1, PSEUDO_COUNT)
        np.testing.assert_allclose(after.rates, step.rates, rtol=1e-12)
        np.testing.assert_allclose(after.emission.means, step.emission.means, rtol=1e-12)
        assert not np.allclose(after.rates, before.rates, rtol=1e-9)
