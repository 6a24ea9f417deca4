"""One contract for every estimator and comparator: clone, refit, row order, unfitted use."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import jumpmeans as jm
from jumpmeans import comparators as co

SYMBOLS = jm.emissions.Categorical([[0.8, 0.2], [0.3, 0.7]], ["x", "y"])
PROCESS = jm.Process([1.0, 0.7], [[0, 1], [1, 0]], emission=SYMBOLS)
PANEL, _ = jm.simulate(PROCESS, 12, 8, mean_gap=0.5, random_state=5)
MASKED, TRUTH = jm.hold_out(PANEL, 0.2, random_state=0)

REGISTRY = {
    "JumpMeans": jm.JumpMeans(2, emission="categorical", n_init=1, refine=3),
    "InfiniteJumpMeans": jm.InfiniteJumpMeans(emission="categorical", start_states=2, proposals=[], refine=3),
    "EM": co.EM(2, emission="categorical", max_iter=500, tol=1e-4),
    "Gibbs": co.Gibbs(2, emission="categorical", n_samples=5, burn_in=2),
    "ParticleGibbs": co.ParticleGibbs(emission="categorical", n_particles=10, n_iter=6, burn_in=2),
    "MLTrajectory": co.MLTrajectory(PROCESS),
    "MostCommon": co.MostCommon(),
    "CarriedForward": co.CarriedForward(),
    "Interpolation": co.Interpolation(),
    "KernelSmoother": co.KernelSmoother(),
}
MARKOV = ("JumpMeans", "InfiniteJumpMeans", "EM", "Gibbs")


def test_the_registry_holds_every_comparator():
    public = {name for name in co.__all__ if hasattr(getattr(co, name), "fit")}
    assert public | {"JumpMeans", "InfiniteJumpMeans"} == set(REGISTRY)


@pytest.mark.parametrize("name", REGISTRY)
def test_contract(name):
    model = REGISTRY[name]
    before = {key: repr(value) for key, value in model.get_params(deep=False).items()}
    with pytest.raises((NotFittedError, ValueError), match="fit"):
        clone(model).predict_value(MASKED)
    first = clone(model).fit(MASKED)
    predicted = first.predict_value(MASKED)
    assert predicted.shape == (PANEL.n_observations,)
    assert set(predicted.tolist()) <= {"x", "y"}
    assert {key: repr(value) for key, value in model.get_params(deep=False).items()} == before
    again = clone(model).fit(MASKED)
    np.testing.assert_array_equal(again.predict_value(MASKED), predicted)
    refit = first.fit(MASKED)
    assert refit is first
    np.testing.assert_array_equal(refit.predict_value(MASKED), predicted)
    assert 0 <= jm.reconstruction_error(predicted, TRUTH) <= 1


# Where a refit is broken off: late, when most of it is done.
LATE = {
    "JumpMeans": "jumpmeans.estimators.jump_model.publish_trajectories",
    "InfiniteJumpMeans": "jumpmeans.estimators.jump_model.publish_trajectories",
    "EM": "jumpmeans.comparators.em.Occupancy.of",
    "Gibbs": "jumpmeans.comparators.gibbs.publish_first",
    "ParticleGibbs": "jumpmeans.comparators.particle_gibbs.publish_first",
    "MLTrajectory": "jumpmeans.comparators.ml_trajectory.publish",
    "MostCommon": "jumpmeans.comparators.by_hand.ByHand._learn",
    "CarriedForward": "jumpmeans.comparators.by_hand.ByHand._learn",
    "Interpolation": "jumpmeans.comparators.by_hand.ByHand._learn",
    "KernelSmoother": "jumpmeans.comparators.kernel_smoother.choose_bandwidth",
}


@pytest.mark.parametrize("error", [KeyboardInterrupt, jm.InfeasibleError])
@pytest.mark.parametrize("name", REGISTRY)
def test_a_refit_that_fails_leaves_a_fitted_model_as_it_was(name, error, monkeypatch):
    """Caught: attributes set one by one as a fit goes on, so that a model is half of one panel, half of another."""
    model = clone(REGISTRY[name]).fit(MASKED)
    before, values = dict(vars(model)), model.predict_value(MASKED)
    other, _ = jm.simulate(PROCESS, 9, 6, mean_gap=0.8, random_state=6)

    def fail(*_, **__):
        raise error("broken off")

    with monkeypatch.context() as patch:
        patch.setattr(LATE[name], fail)
        with pytest.raises(error, match="broken off"):
            model.fit(other)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[key] is value for key, value in before.items())
    np.testing.assert_array_equal(model.predict_value(MASKED), values)
    # and where nothing fails, the same refit does change it
    model.fit(other)
    assert any(vars(model)[key] is not value for key, value in before.items())


@pytest.mark.parametrize("name", REGISTRY)
def test_rows_come_back_in_the_callers_order(name):
    frame = MASKED.to_frame()
    frame.columns = ["id", "time", "value"]
    mixed = frame.sort_values("time", kind="stable")
    straight, shuffled = clone(REGISTRY[name]).fit(frame), None
    shuffled = straight.predict_value(mixed)
    np.testing.assert_array_equal(shuffled, straight.predict_value(frame)[mixed.index.to_numpy()])


@pytest.mark.parametrize("name", MARKOV)
def test_probabilities_and_process(name):
    model = clone(REGISTRY[name]).fit(MASKED)
    probs = model.predict_proba(MASKED)
    assert probs.shape == (PANEL.n_observations, 2)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_allclose(model.process_.rate_matrix.sum(axis=1), 0.0, atol=1e-9)
    assert len(model.history_) >= 1 and np.all(np.diff(model.history_.wall_times) >= 0)
    later = model.predict_proba(MASKED, at={MASKED.ids[0]: [0.0, 50.0]})
    assert later.shape == (2, 2)


def test_the_row_that_cannot_be_explained_is_named():
    """A label that the fitted process cannot reach: probabilities and trajectories name the same row."""
    chain = jm.Structure(allowed={0: [1], 1: [], 2: [0]})
    seen = jm.Panel.from_arrays([0.0, 1.0, 2.0, 0.0, 1.0], [0, 1, 1, 2, 0], ids=["a", "a", "a", "b", "b"])
    model = jm.JumpMeans(emission="direct", structure=chain).fit(seen)
    wrong = jm.Panel.from_arrays([0.0, 1.0, 2.0], [0, 1, 0], ids=["c", "c", "c"])
    with pytest.raises(jm.InfeasibleError) as decoded:
        model.decode(wrong)
    with pytest.raises(jm.InfeasibleError) as smoothed:
        model.predict_proba(wrong)
    assert wrong.locate(2) in str(decoded.value)
    assert wrong.locate(2) in str(smoothed.value)
