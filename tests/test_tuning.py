"""Hyperparameters by held-out error, and the path of the number of states."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import jumpmeans as jm
from jumpmeans import comparators as co
from jumpmeans.evaluation.tune import FACTORS

GAUSSIAN = jm.Process(
    np.full(3, 0.3), (1 - np.eye(3)) / 2, emission=jm.emissions.Gaussian([0.0, 4.0, 8.0], sds=1.0)
)  # fmt: skip
SYMBOLS = jm.Process(
    [0.5, 0.3], [[0, 1], [1, 0]], emission=jm.emissions.Categorical([[0.9, 0.1], [0.1, 0.9]], ["x", "y"])
)
MEASURED, _ = jm.simulate(GAUSSIAN, 25, 12, random_state=1)
SYMBOLIC, _ = jm.simulate(SYMBOLS, 20, 12, random_state=1)
LABELLED, _ = jm.simulate(jm.Process([0.5, 0.3], [[0, 1], [1, 0]], states=["a", "b"]), 20, 10, random_state=1)
N_STATES = {"n_states": [2, 3, 4]}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def tuned():
    return jm.tune(jm.JumpMeans(1), MEASURED, N_STATES, folds=3, n_jobs=1)


@pytest.fixture(scope="module")
def path():
    return jm.state_path(MEASURED, folds=2, n_jobs=1)


def table(trials):
    return [{key: repr(value) for key, value in row.items()} for row in trials]


# ------------------------------------------------------------------------------------------------- tune


def test_the_best_setting_has_the_least_mean_error_and_is_fitted_to_all(tuned):
    errors = [row["error"] for row in tuned.trials]
    assert tuned.best_trial == int(np.argmin(errors))
    assert tuned.best == {"n_states": 3}
    assert tuned.model.n_states == 3 and tuned.model.engine == "threads"
    again = jm.JumpMeans(3).fit(MEASURED)
    assert tuned.model.objective_ == again.objective_
    assert len(tuned.model.trajectories_.ids) == MEASURED.n_sequences


def test_the_table_is_complete(tuned):
    columns = ["n_states", "error", "se", "change", "change_se", "states", "message"]
    assert [row["n_states"] for row in tuned.trials] == [1, 2, 3, 4]
    for row, own in zip(tuned.trials, tuned.fold_errors, strict=True):
        assert list(row) == columns
        np.testing.assert_allclose(row["error"], own.mean(), rtol=1e-12)
        np.testing.assert_allclose(row["se"], own.std(ddof=1) / np.sqrt(3), rtol=1e-12)
        difference = own - tuned.fold_errors[0]
        np.testing.assert_allclose(row["change"], difference.mean(), atol=1e-15)
        np.testing.assert_allclose(row["change_se"], difference.std(ddof=1) / np.sqrt(3), atol=1e-15)
    frame = tuned.to_frame()
    assert frame.columns.tolist() == columns and len(frame) == 4
    assert tuned.to_frame("polars")["n_states"].to_list() == [1, 2, 3, 4]


def test_the_error_is_that_of_the_same_hold_outs_for_all(tuned):
    """The folds again by hand: masks from the first of two spawned generators."""
    seeds = np.random.default_rng(0).spawn(2)[0].integers(2**31, size=3)
    for k, n in enumerate((1, 2, 3, 4)):
        for fold, seed in enumerate(seeds):
            masked, truth = jm.hold_out(MEASURED, 0.25, int(seed))
            guess = jm.JumpMeans(n).fit(masked).predict_value(masked, method="posterior")[truth.rows]
            np.testing.assert_allclose(tuned.fold_errors[k, fold], np.abs(guess - truth.values).mean(), rtol=1e-12)


def test_two_processes_find_the_same_as_one_and_the_second_time_as_the_first():
    model = jm.JumpMeans(2, emission="categorical", n_init=1, refine=3)
    one, again, two = (
        jm.tune(model, SYMBOLIC, budget=3, folds=2, n_jobs=n, random_state=5) for n in (1, 1, 2)
    )  # fmt: skip
    for other in (again, two):
        np.testing.assert_array_equal(one.fold_errors, other.fold_errors)
        assert table(one.trials) == table(other.trials)
        assert one.best == other.best and other.model.engine == "threads"
        assert one.model.objective_ == other.model.objective_


def test_without_a_grid_weights_move_around_their_automatic_numbers():
    model = jm.InfiniteJumpMeans(prior_time=1.0, refine=2)
    found = jm.tune(model, MEASURED, budget=8, folds=1, n_jobs=1)
    names = ["state_cost", "shared_row_weight", "emission_weight", "transition_weight"]
    auto = model.hyperparameters(MEASURED)
    assert len(found.trials) == 8 and len({repr(row) for row in table(found.trials)}) == 8
    assert all(found.trials[0][name] == "auto" for name in names if name in found.trials[0])
    assert "prior_time" not in found.trials[0]
    for row in found.trials[1:]:
        moved = {name: row[name] for name in names if name in row and row[name] != "auto"}
        assert moved
        for name, value in moved.items():
            assert np.isclose(value / auto[name], FACTORS, rtol=1e-9).any()
    assert found.trials[found.best_trial]["error"] <= found.trials[0]["error"]
    assert all(np.isnan(row["se"]) for row in found.trials)
    assert model.state_cost == "auto" and not hasattr(model, "process_")


def test_directly_observed_states_leave_weights_alone_that_do_nothing():
    found = jm.tune(jm.InfiniteJumpMeans(emission="direct", refine=2), LABELLED, budget=6, folds=1, n_jobs=1)
    assert not {"state_cost", "emission_weight"} & set(found.trials[0])
    assert found.measure == "share wrong, held out"


def test_a_budget_draws_from_a_larger_grid_in_its_order():
    grid = {"transition_weight": [0.5, 1.0, 2.0, 4.0], "refine": [0, 1, 2]}
    model = jm.JumpMeans(2, emission="categorical", n_init=1)
    found = jm.tune(model, SYMBOLIC, grid, 4, folds=1, n_jobs=1)
    drawn = [(row["transition_weight"], row["refine"]) for row in found.trials]
    assert drawn[0] == ("auto", "auto") and len(drawn) == 4
    assert drawn[1:] == sorted(set(drawn[1:]))
    other = jm.tune(model, SYMBOLIC, grid, 4, folds=1, n_jobs=1, random_state=1)
    assert drawn != [(row["transition_weight"], row["refine"]) for row in other.trials]


def test_the_model_as_given_is_tried_once_and_wins_ties():
    model = jm.JumpMeans(2, emission="categorical", n_init=1, refine=0)
    grid = [{"max_iter": 300}, {"max_iter": 299}, {"max_iter": 299}, {}]
    found = jm.tune(model, SYMBOLIC, grid, folds=1, n_jobs=1)
    assert [row["max_iter"] for row in found.trials] == [300, 299]
    assert found.trials[0]["error"] == found.trials[1]["error"]
    assert found.best_trial == 0 and found.best == {}


def test_a_setting_that_fails_is_a_row_of_the_table():
    grid = {"n_states": np.array([1000, 3])}
    found = jm.tune(jm.JumpMeans(), MEASURED, grid, folds=2, n_jobs=1)
    messages = [row["message"] for row in found.trials]
    assert "n_states must be given" in messages[0]
    assert "at most the number of distinct values" in messages[1] and messages[2] == ""
    assert np.isnan([row["error"] for row in found.trials]).tolist() == [True, True, False]
    assert found.best == {"n_states": 3}
    with pytest.raises(ValueError, match="at least one setting must fit the data, got none: n_states must be given"):
        jm.tune(jm.JumpMeans(), MEASURED, {"n_states": [1000]}, folds=1, n_jobs=1)


def test_an_infeasible_setting_does_not_stop_the_others():
    stuck = jm.Structure(absorbing=["a", "b"])
    model = jm.JumpMeans(emission="direct", refine=1)
    found = jm.tune(model, LABELLED, {"structure": [stuck]}, folds=1, n_jobs=1)
    assert "must be able to explain every sequence" in found.trials[1]["message"] and found.best == {}


class Moody(co.MostCommon):
    """A model that fails by another error in each mood."""

    def __init__(self, *, mood=None, bins=None, emission="auto"):
        super().__init__(bins=bins, emission=emission)
        self.mood = mood

    def fit(self, panel, y=None):
        if self.mood is not None:
            raise self.mood("no mood to fit")
        return super().fit(panel)


def test_no_failure_of_a_setting_stops_the_others():
    # caught: anything but a ValueError ended the search
    moods = [TypeError, ValueError, ZeroDivisionError, MemoryError, AttributeError]
    found = jm.tune(Moody(), MEASURED, {"mood": moods}, folds=2, n_jobs=1)
    assert [row["message"] for row in found.trials] == [
        "",
        "TypeError: no mood to fit",
        "no mood to fit",
        "ZeroDivisionError: no mood to fit",
        "MemoryError: no mood to fit",
        "AttributeError: no mood to fit",
    ]
    assert found.best == {} and np.isnan([row["error"] for row in found.trials[1:]]).all()
    with pytest.raises(ValueError, match="at least one setting must fit the data, got none: TypeError: no mood"):
        jm.tune(Moody(mood=TypeError), MEASURED, {"mood": [ValueError]}, folds=1, n_jobs=1)


class Interrupted(co.MostCommon):
    """A model during whose fit the user has had enough."""

    def fit(self, panel, y=None):
        raise KeyboardInterrupt


def test_the_user_can_stop_a_search():
    with pytest.raises(KeyboardInterrupt):
        jm.tune(Interrupted(), MEASURED, [{}], folds=1, n_jobs=1)


@pytest.mark.parametrize(
    "model",
    [
        co.Gibbs(2, n_samples=3, burn_in=2, thin=1),
        co.ParticleGibbs(n_iter=3, burn_in=1, n_particles=10),
        co.EM(2, emission="categorical", tol=1e-4),
        co.KernelSmoother(),
        co.MostCommon(),
        jm.JumpMeans(2, emission="categorical", n_init=1, refine=2),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("method", ["posterior", "trajectory"])
def test_every_model_is_scored_by_both_methods(model, method):
    # caught: samplers refused "trajectory"
    found = jm.tune(model, SYMBOLIC, [{}], folds=1, n_jobs=1, method=method)
    seed = int(np.random.default_rng(0).spawn(2)[0].integers(2**31, size=1)[0])
    masked, truth = jm.hold_out(SYMBOLIC, 0.25, seed)
    guess = clone(model).fit(masked).predict_value(masked, method=method)
    assert found.trials[0]["error"] == jm.reconstruction_error(guess, truth)


def test_warnings_of_a_trial_stand_in_the_table():
    found = jm.tune(jm.JumpMeans(3), MEASURED, [{"n_states": 2, "max_iter": 1}], folds=1, n_jobs=1)
    assert "the objective still falls after 1 sweeps" in found.trials[1]["message"]


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (co.EM(2, emission="categorical", tol=1e-4), {"n_states": [1]}),
        (co.KernelSmoother(), {"bandwidth": [0.5, 5.0]}),
        (co.Gibbs(2, n_samples=3, burn_in=2), {"thin": [1]}),
    ],
    ids=["EM", "KernelSmoother", "Gibbs"],
)
def test_comparators_can_be_tuned(model, grid):
    found = jm.tune(model, SYMBOLIC, grid, folds=1, n_jobs=1)
    assert type(found.model) is type(model) and 0 <= found.trials[found.best_trial]["error"] <= 0.5
    with pytest.raises(ValueError, match="grid must be given for"):
        jm.tune(clone(model), SYMBOLIC, budget=3)


def test_error_in_bins_and_by_trajectory():
    bins = [2.0, 6.0]
    found = jm.tune(jm.JumpMeans(3), MEASURED, [{}], folds=1, bins=bins, method="trajectory", n_jobs=1)
    masked, truth = jm.hold_out(MEASURED, 0.25, int(np.random.default_rng(0).spawn(2)[0].integers(2**31, size=1)[0]))
    guess = jm.JumpMeans(3).fit(masked).predict_value(masked, method="trajectory")
    assert found.trials[0]["error"] == jm.reconstruction_error(guess, truth, bins)


def test_several_columns_are_scored_in_their_own_spread(rng):
    """Labels by the share wrong, numbers by absolute error over mean absolute deviation; units do not matter."""
    n = 60
    x, y = rng.normal(size=n), rng.choice(["u", "v"], n)
    ids, times = np.repeat([0, 1, 2], 20), np.tile(np.arange(20), 3)
    panels = [
        jm.Panel.from_frame(pd.DataFrame({"id": ids, "time": times, "x": k * x, "y": y}), value=["x", "y"])
        for k in (1.0, 1000.0)
    ]
    model = co.MostCommon(emission=["gaussian", "categorical"])
    small, large = (jm.tune(model, panel, [{}], folds=2, n_jobs=1) for panel in panels)
    np.testing.assert_allclose(small.fold_errors, large.fold_errors, rtol=1e-12)
    seed = int(np.random.default_rng(0).spawn(2)[0].integers(2**31, size=2)[0])
    masked, truth = jm.hold_out(panels[0], 0.25, seed)
    guess = clone(model).fit(masked).predict_value(masked)[truth.rows]
    wrong = np.mean(guess[:, 1] != truth.values[:, 1])
    far = np.abs(guess[:, 0].astype(float) - truth.values[:, 0].astype(float)).mean()
    expected = 0.5 * (wrong + far / np.abs(x - np.median(x)).mean())
    np.testing.assert_allclose(small.fold_errors[0, 0], expected, rtol=1e-12)


def test_bins_of_one_column_leave_the_other_in_its_unit(rng):
    n = 40
    panel = jm.Panel.from_arrays(np.arange(n), rng.normal(size=(n, 2)), np.zeros(n, int), columns=["x", "y"])
    found = jm.tune(co.MostCommon(), panel, [{}], folds=1, n_jobs=1, bins={"y": [0.0]})
    seed = int(np.random.default_rng(0).spawn(2)[0].integers(2**31, size=1)[0])
    masked, truth = jm.hold_out(panel, 0.25, seed)
    guess = co.MostCommon().fit(masked).predict_value(masked)[truth.rows]
    x = panel.values[:, 0]
    far = np.abs(guess[:, 0] - truth.values[:, 0]).mean() / np.abs(x - np.median(x)).mean()
    wrong = np.mean((guess[:, 1] >= 0) != (truth.values[:, 1] >= 0))
    np.testing.assert_allclose(found.trials[0]["error"], 0.5 * (far + wrong), rtol=1e-12)
    assert found.measure == "error, held out"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "grid or budget must be given, got neither"),
        ({"grid": {"n_state": [2]}}, "must name parameters of JumpMeans: .* got 'n_state'; did you mean 'n_states'"),
        ({"grid": {"n_states": 2}}, r"grid\['n_states'\] must be a list of values to try, got 2"),
        ({"grid": {"init": "data"}}, r"grid\['init'\] must be a list of values to try, got 'data'"),
        ({"grid": {"n_states": []}}, r"grid\['n_states'\] must be a list of values to try, got \[\]"),
        ({"grid": 3}, "grid must be a dict of parameter to list of values, or a list of dicts, got 3"),
        ({"grid": N_STATES, "budget": 0}, "budget must be an integer of at least 1, got 0"),
        ({"grid": N_STATES, "fraction": 1.0}, "fraction must lie strictly between 0 and 1, got 1.0"),
        ({"grid": N_STATES, "folds": 0}, "folds must be an integer from 1 to 10000, got 0"),
        ({"grid": N_STATES, "budget": "auto"}, "budget must be an integer of at least 1, got 'auto'"),
        ({"grid": N_STATES, "random_state": "x"}, "random_state must be an integer >= 0, a Generator or None"),
        ({"grid": N_STATES, "bins": [2, 1]}, r"bins must be rising bounds such as .* got \[2, 1\]"),
        ({"grid": N_STATES, "n_jobs": "all"}, "n_jobs must be an integer of at least 1, got 'all'"),
        ({"grid": N_STATES, "folds": None}, "folds must be an integer from 1 to 10000, got None"),
        ({"grid": N_STATES, "method": "mode"}, "method must be one of .* got 'mode'"),
        ({"grid": N_STATES, "n_jobs": 0}, "n_jobs must be an integer of at least 1, got 0"),
    ],
)
def test_misuse_says_what_must_hold(options, match):
    with pytest.raises(ValueError, match=match):
        jm.tune(jm.JumpMeans(2), MEASURED, **options)


def test_a_budget_needs_a_weight_that_is_automatic():
    model = jm.JumpMeans(2, transition_weight=1, emission_weight=1, prior_dwell_count=1, prior_dwell_time=1)
    with pytest.raises(ValueError, match="needs a weight that is 'auto', got numbers for all; give a grid"):
        jm.tune(model, MEASURED, budget=3)


def test_hyperparameters_reproduce_the_automatic_objective():
    for model in (jm.JumpMeans(3, refine=0), jm.InfiniteJumpMeans(refine=0)):
        numbers = model.hyperparameters(MEASURED)
        explicit = clone(model).set_params(**numbers)
        assert explicit.hyperparameters(MEASURED) == numbers
        np.testing.assert_allclose(explicit.fit(MEASURED).objective_, model.fit(MEASURED).objective_, rtol=1e-12)


# ------------------------------------------------------------------------------------------------- the path


def test_states_fall_to_one_as_their_price_grows(path):
    assert len(path.state_cost) >= 17 and np.all(np.diff(path.state_cost) > 0)
    np.testing.assert_allclose(path.state_cost[4], path.auto_cost, rtol=1e-12)
    np.testing.assert_allclose(path.auto_cost, 0.015 * MEASURED.n_observations, rtol=1e-12)
    assert path.n_states[0] == 3 and path.n_states[-1] == 1
    assert np.all(np.diff(path.n_states) <= 0) and np.all(np.diff(path.fold_states) <= 0)
    assert path.error[-1] > 1.5 * path.error[0]


def test_the_path_is_started_from_the_fit_before(path):
    for k in range(1, len(path.models)):
        before, fitted = path.models[k - 1], path.models[k]
        assert fitted.path_[0][:2] == ("start", before.n_states_)
        assert {step.kind for step in fitted.path_[1:]} <= {"merge", "drop"}
    cold = [jm.InfiniteJumpMeans(state_cost=cost).fit(MEASURED).n_iter_ for cost in path.state_cost[1:5]]
    assert path.sweeps[1:5].sum() < 0.7 * sum(cold)


def test_the_table_of_the_path_is_that_of_its_models(path):
    frame = path.to_frame()
    names = ["state_cost", "n_states", "objective", "error", "error_se", "fold_states", "sweeps"]
    assert frame.columns.tolist() == names and len(frame) == len(path.models)
    for k, model in enumerate(path.models):
        assert (model.state_cost, model.n_states_, model.objective_) == tuple(frame.iloc[k, :3])
        assert model.proposals == "all" and model.check and model.engine == "threads"
    np.testing.assert_allclose(frame["error"], path.fold_errors.mean(axis=1), rtol=1e-12)


def test_a_path_of_symbols_is_the_same_in_two_processes():
    options = {"emission": "categorical", "folds": 1, "refine": 3}
    one, two = (jm.state_path(SYMBOLIC, [1e5, 1.0, 30.0], n_jobs=n, **options) for n in (1, 2))
    assert one.state_cost.tolist() == [1.0, 30.0, 1e5] and one.n_states.tolist()[-1] == 1
    assert np.all(np.diff(one.n_states) <= 0)
    for name in ("n_states", "objective", "fold_errors"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert np.isnan(two.error_se).all() and two.models[0].engine == "threads"


def test_hold_outs_have_the_same_price_per_observation():
    found = jm.state_path(MEASURED, [840.0], folds=1, refine=0, n_jobs=1)
    masked, truth = jm.hold_out(MEASURED, 0.25, int(np.random.default_rng(0).spawn(1)[0].integers(2**31, size=1)[0]))
    model = jm.InfiniteJumpMeans(state_cost=630.0, refine=0).fit(masked)
    guess = model.predict_value(masked, method="posterior")[truth.rows]
    np.testing.assert_allclose(found.error, np.abs(guess - truth.values).mean(), rtol=1e-12)
    assert found.fold_states.tolist() == [3.0] and model.set_params(state_cost=840.0).fit(masked).n_states_ == 2


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"state_costs": [1.0, -2.0]}, r"state_costs must be finite numbers > 0, at least one, got \[1.0, -2.0\]"),
        ({"state_costs": ["dear"]}, r"state_costs must be finite numbers > 0, at least one, got \['dear'\]"),
        ({"state_costs": []}, "state_costs must be finite numbers > 0, at least one"),
        ({"state_cost": 3.0}, "state_costs must hold the prices, got state_cost=3.0"),
        ({"emission": "direct"}, "emission must be of hidden states, got 'direct'"),
        ({"fraction": 0.0}, "fraction must lie strictly between 0 and 1, got 0.0"),
        ({"folds": 0}, "folds must be an integer from 1 to 10000, got 0"),
    ],
)
def test_misuse_of_the_path_says_what_must_hold(options, match):
    with pytest.raises(ValueError, match=match):
        jm.state_path(MEASURED, **options)


# ------------------------------------------------------------------------------------------------- the warm start


def test_a_warm_start_from_itself_stays_and_leaves_the_start_as_it_is():
    first = jm.InfiniteJumpMeans(refine=0).fit(MEASURED)
    before = first.objective_
    second = jm.InfiniteJumpMeans(refine=0).fit(MEASURED, start=first)
    assert second.n_states_ == first.n_states_ and second.path_[0].n_states == first.n_states_
    assert second.objective_ <= before + 1e-9 * abs(before) and first.objective_ == before
    assert second.n_iter_ < first.n_iter_


@pytest.mark.parametrize(
    ("model", "start", "match"),
    [
        (jm.InfiniteJumpMeans(), jm.InfiniteJumpMeans(), "start must be a fitted InfiniteJumpMeans"),
        (jm.InfiniteJumpMeans(), jm.JumpMeans(2), "start must be a fitted InfiniteJumpMeans"),
        (jm.InfiniteJumpMeans(emission="laplace"), None, "start must have the same emission, got 'gaussian'"),
        (jm.InfiniteJumpMeans(objective="printed"), None, "start must have the same objective, got 'corrected'"),
        (jm.InfiniteJumpMeans(max_states=2), None, "start must have at most max_states=2 states, got 3"),
    ],
)
def test_a_start_that_does_not_fit_is_refused(path, model, start, match):
    with pytest.raises(ValueError, match=match):
        model.fit(MEASURED, start=start or path.models[0])


def test_directly_observed_states_take_no_start(path):
    with pytest.raises(ValueError, match="start must be None for directly observed states"):
        jm.InfiniteJumpMeans(emission="direct").fit(LABELLED, start=path.models[0])


def test_chances_are_scored_as_measurements():
    """A mean of 0.9 for a reading of 1 is an error of 0.1, not a wrong label."""
    process = jm.Process([0.1, 0.1], [[0, 1], [1, 0]], emission=jm.emissions.Bernoulli([0.05, 0.95]))
    panel, _ = jm.simulate(process, 20, 20, random_state=0)
    tuned = jm.tune(jm.JumpMeans(2, emission="bernoulli"), panel, [{}], folds=2, n_jobs=1)
    assert np.all(tuned.fold_errors < 0.5)


# ------------------------------------------------------------------------------------------------- pictures


def test_picture_of_trials_over_the_one_parameter_varied(tuned):
    ax = tuned.plot()
    assert ax.get_xlabel() == "n_states" and ax.get_ylabel() == "mean absolute error, held out"
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["as given", "best: n_states 3"]
    best = ax.containers[1].lines[0]
    assert best.get_xdata().tolist() == [3.0] and best.get_ydata()[0] == tuned.trials[2]["error"]


def test_picture_of_trials_over_their_number_with_failures():
    grid = [{"n_states": 1000}, {"n_states": 3, "emission_weight": 2.0, "transition_weight": 0.1234567}]
    found = jm.tune(jm.JumpMeans(1, refine=0), MEASURED, grid, folds=2, n_jobs=1)
    ax = found.plot(plt.subplots()[1])
    assert ax.get_xlabel() == "trial (row of the table)"
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "failed" in names and any("transition_weight 0.123" in name for name in names)


def test_picture_of_the_path(path):
    ax = path.plot()
    left, right = ax.figure.axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("state_cost", "number of states")
    assert right.get_ylabel() == path.measure and ax.get_xscale() == "log"
    np.testing.assert_array_equal(left.lines[0].get_ydata(), path.n_states)
    np.testing.assert_array_equal(right.lines[0].get_ydata(), path.error)
