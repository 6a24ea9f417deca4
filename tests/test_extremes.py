"""Numbers at the edge of what floats hold: a right answer, or an error that names the value, the row or the option."""

import warnings

import numpy as np
import pytest

import jumpmeans as jm
from jumpmeans.data.table import Table
from jumpmeans.engines import Threads
from jumpmeans.fit import descent
from jumpmeans.model.objective import Cost

X = np.random.default_rng(0).normal(size=40) + 5.0 * (np.arange(40) % 10 < 5)


def panel_of(x, **options):
    return jm.Panel.from_arrays(np.tile(np.arange(10.0), 4), x, np.repeat(range(4), 10), **options)


@pytest.mark.parametrize("model", [jm.JumpMeans(2, emission_weight=1e300), jm.InfiniteJumpMeans(emission_weight=1e300)])
def test_a_reading_whose_cost_overflows_is_named(model):
    """Planted: the moves are blamed, which have nothing to do with it."""
    with pytest.raises(jm.InfeasibleError, match=r"got none for 5\d+\.\d+ at sequence 0, row 0; .* lower emission_w"):
        model.fit(panel_of(X * 1e10))


def test_a_symbol_that_no_state_shows_is_named():
    """By the decoder, by forward-backward, by the trajectory that errs least; a missing move is still blamed."""
    symbols = jm.emissions.Categorical([[0.5, 0.5, 0.0], [0.1, 0.9, 0.0]], ["x", "y", "z"])
    model = jm.JumpMeans.from_process(jm.Process([1.0, 1.0], [[0, 1], [1, 0]], emission=symbols))
    panel = jm.Panel.from_arrays([0.0, 1.0, 2.0, 3.0], ["x", "y", "z", "x"], ["a"] * 4)
    for ask in (model.decode, model.predict_proba, model.log_likelihood, lambda p: model.decode(p, "time")):
        with pytest.raises(jm.InfeasibleError, match=r"some state must .*got none for 'z' at sequence 'a', row 2"):
            ask(panel)
    one_way = jm.JumpMeans.from_process(jm.Process([1.0, 0.0], [[0, 1], [0, 0]], states=["a", "b"]))
    back = jm.Panel.from_arrays([0.0, 1.0], ["b", "a"], [1, 1])
    with pytest.raises(jm.InfeasibleError, match="the allowed moves must be able to explain every sequence"):
        one_way.decode(back)


def test_an_objective_that_floats_cannot_hold_is_refused_by_its_term():
    """Planted: J = inf is published. An error, and no warning of numpy on the way."""
    with pytest.raises(
        ValueError, match=r"term of the objective must be finite, got observations = inf;.*emission_weig"
    ):
        jm.JumpMeans(2, emission_weight=1e250).fit(panel_of(X, weights=np.full(40, 1e100)))
    assert set(descent.BEHIND) == set(Cost._fields)


def test_a_far_reading_spoils_no_other():
    """Planted: a J from which digits were lost, taken for one that was reached, so that the right one is a rise."""
    least = jm.JumpMeans(2, refine=0).fit(panel_of(np.where(np.arange(40) == 7, 1e3, X))).objective_
    for far in (1e9, 1e30, 1e60, 1e139):
        model = jm.JumpMeans(2, refine=0).fit(panel_of(np.where(np.arange(40) == 7, far, X)))
        assert model.objective_ == pytest.approx(least, rel=1e-4)


@pytest.mark.parametrize("model", [jm.JumpMeans, jm.InfiniteJumpMeans])
def test_dwells_of_one_length_cost_nothing_and_raise_nothing(model):
    """Planted: rounding taken relative to J alone, which is 0 here: a warning of a rise from -2e-15 to 0."""
    panel = jm.Panel.from_arrays(np.tile(np.arange(10.0), 2), np.array(list("ab" * 10)), np.repeat(["p", "q"], 10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model(emission="direct", refine=1).fit(panel)
    assert found.cost_.dwells == pytest.approx(0.0, abs=1e-9)


def test_weights_count_copies():
    with pytest.raises(jm.PanelError, match=r"weights must be positive and at most 1e\+100, got 1e\+308 at sequence 0"):
        panel_of(X, weights=np.full(40, 1e308))
    light, heavy = (jm.JumpMeans(2).fit(panel_of(X, weights=np.full(40, w))) for w in (1e-300, 1e100))
    np.testing.assert_allclose(light.emission_.means, heavy.emission_.means, rtol=1e-3)


def test_a_model_of_numbers_refuses_the_likelihood_of_dates():
    model = jm.JumpMeans(emission="direct").fit(jm.Panel.from_arrays([0.0, 1.0, 3.0], ["a", "b", "a"], [0, 0, 0]))
    dated = jm.Panel.from_arrays(np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"), ["a", "b"], [0, 0])
    with pytest.raises(jm.PanelError, match="times must be numbers, like those that the model was fitted to"):
        model.log_likelihood(dated)


PROCESS = jm.Process([1.0, 0.5], [[0, 1], [1, 0]], states=["a", "b"])
MODEL = jm.JumpMeans.from_process(PROCESS)
LABELS = jm.Panel.from_arrays([0.0, 1.0, 2.0], ["a", "b", "a"], [0, 0, 0])


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: MODEL.predict_proba(LABELS, at={0: 10**400}), r"integers in times must be below 2\*\*53"),
        (lambda: MODEL.predict_proba(LABELS, at={0: [[1], [1, 2]]}), "at must give each id one list of times"),
        (lambda: Threads(10**400) and Threads("x"), "n_jobs must be None or an integer of at least 1, got 'x'"),
        (lambda: Table({}, [], [], "from", "to", "rates"), "values must be numbers, in rows of one length, got {}"),
        (lambda: Table([[1.0]], [[1, 2]], ["a"], "from", "to", "x"), "labels of rows must be words or numbers"),
        (lambda: PROCESS.generator().to_frame(0), "backend must be None or one of .* got 0"),
        (lambda: jm.emissions.Gaussian(["a"]), r"means must be numbers, in rows of one length, got \['a'\]"),
        (lambda: jm.emissions.Gaussian([10**400]), "means must be numbers"),
        (lambda: jm.emissions.Categorical("x"), "probs must be numbers"),
        (lambda: jm.emissions.Categorical([[1.0]], pseudo_count=None), "pseudo_count must be a finite number >= 0"),
        (lambda: jm.emissions.Direct([[1, 2], [3]]), "labels must be a list of at least one label"),
        (lambda: jm.Process.from_generator({"a": {"b": []}}), r"rates of moves must be a finite number >= 0, got \[\]"),
        (lambda: jm.JumpMeans.from_process(PROCESS, emission_weight=[1, 2]), "emission_weight must be one number, or"),
        (lambda: jm.Structure(absorbing=np.ones((2, 2))).allowed_moves(PROCESS.states), "structure must name states"),
        (lambda: jm.simulate(PROCESS, 10**400), "n_sequences must be an integer from 1 to"),
        (lambda: jm.simulate(PROCESS, mean_gap=10**400), "mean_gap must be a finite number > 0"),
        (lambda: LABELS.head(1.5), "n must be an integer of at least 1, got 1.5"),
        (lambda: LABELS.with_values("x"), "values must be numbers"),
        (lambda: LABELS.select([[1, 2], [3]]), "sequence_indices must be positions"),
        (lambda: MODEL.decode(LABELS).at([0], [0], outside=np.ones(2)), "outside must be one of"),
        (lambda: jm.tune(MODEL, LABELS, {"tol": [1.0]}, folds=10**400), "folds must be an integer from 1 to"),
    ],
)
def test_no_raw_error(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_as_many_jobs_as_one_likes():
    jm.tune(jm.JumpMeans(emission="direct", refine=0), LABELS, {"tol": [1e-3]}, n_jobs=1, folds=1)
    assert jm.JumpMeans(emission="direct", refine=0, engine=Threads(10**400)).fit(LABELS).states_.tolist() == ["a", "b"]
