"""JUMP-means fitted to panels whose rates depend on covariates: read-outs, laws, what is refused."""

import numpy as np
import pytest

import jumpmeans as jm
from jumpmeans.comparators import EM
from jumpmeans.emissions import Gaussian
from jumpmeans.model.effects import Covariate, Effects

ALL = jm.Structure(covariates="all")


def truth(emission=None):
    """Two states; rates go up with age, and are twice as high for M."""
    coefs = np.zeros((2, 2, 2))
    coefs[0], coefs[1] = [[0, 0.05], [-0.03, 0]], [[0, 0.7], [0.7, 0]]
    effects = Effects(
        [Covariate("age"), Covariate("sex", labels=["F", "M"])], np.array([60.0, 0.5]), coefs,
        np.where(coefs != 0, np.arange(4).reshape(2, 2, 1), -1),
    )  # fmt: skip
    states = None if emission else ["ill", "well"]
    return jm.Process([0.5, 0.4], [[0, 1], [1, 0]], emission=emission, states=states, effects=effects)


def drawn(S=60, L=12, emission=None, seed=0):
    rng = np.random.default_rng(seed)
    covariates = {"age": rng.normal(60, 8, S), "sex": rng.choice(["F", "M"], S)}
    return jm.simulate(truth(emission), S, L, mean_gap=0.5, covariates=covariates, random_state=seed)[0]


@pytest.fixture(scope="module")
def panel():
    return drawn()


@pytest.mark.parametrize("refine", [0, "auto"])
@pytest.mark.parametrize(
    "structure", [ALL, jm.Structure(covariates="all", breaks=[1.0, 3.0]), jm.Structure(covariates={"well": ["age"]})]
)
def test_decode_gives_the_trajectories_of_the_fit(panel, structure, refine):
    model = jm.JumpMeans(emission="direct", structure=structure, refine=refine).fit(panel)
    again = model.decode(panel)
    np.testing.assert_array_equal(again.codes, model.trajectories_.codes)
    np.testing.assert_array_equal(again.start_times, model.trajectories_.start_times)
    assert np.all(np.diff(model.objective_history_) <= 1e-9 * abs(model.objective_))
    assert model.predict(panel).tolist() == panel.decode_values(panel.values[:, 0], 0).tolist()
    assert model.predict_proba(panel).shape == (panel.n_observations, 2)


def test_converged_is_em_where_each_state_has_one_move(panel):
    model = jm.JumpMeans(emission="direct", structure=ALL, refine="converged").fit(panel)
    other = EM(emission="direct", structure=ALL, tol=1e-12).fit(panel)
    np.testing.assert_allclose(model.process_.effects.coefs, other.process_.effects.coefs, atol=2e-3)
    np.testing.assert_allclose(model.rates_, other.rates_, rtol=2e-3)


def test_the_nonparametric_model_with_labels(panel):
    model = jm.InfiniteJumpMeans(emission="direct", structure=ALL).fit(panel)
    other = EM(emission="direct", structure=ALL).fit(panel)
    np.testing.assert_allclose(model.process_.effects.of_states(), other.process_.effects.of_states(), atol=0.05)
    np.testing.assert_array_equal(model.decode(panel).codes, model.trajectories_.codes)


def test_hidden_states():
    panel = drawn(emission=Gaussian([0, 6], sds=1), S=80)
    model = jm.JumpMeans(2, structure=ALL).fit(panel)
    assert np.all(model.process_.effects.of_states()[1] > 0.2)
    np.testing.assert_array_equal(model.decode(panel).codes, model.trajectories_.codes)


def scaled(panel, age, time):
    frame = panel.to_frame()
    frame["age"], frame["time"] = frame["age"] * age, frame["time"] * time
    return jm.Panel.from_frame(frame, covariates=["age", "sex"])


@pytest.mark.parametrize("make", [jm.JumpMeans, jm.comparators.EM])
def test_hidden_states_stand_in_the_order_of_their_values(make):
    """As without covariates: a structure that names no state gives none a meaning. Effects go with their states."""
    emission = jm.emissions.Gaussian([9.0, 0.0, 5.0], sds=1.0)
    process = jm.Process([1.5, 0.4, 0.4], (1 - np.eye(3)) / 2, emission=emission)
    process = process.with_effects({"x": {0: 1.0, 1: -1.0}}, at={"x": 0.5})
    x = np.arange(80.0) % 2
    panel, _ = jm.simulate(process, 80, 25, mean_gap=0.4, covariates={"x": x}, random_state=0)
    model = make(3, structure=jm.Structure(covariates="all")).fit(panel)
    assert np.all(np.diff(model.emission_.means) > 3)
    effects = model.process_.at({"x": 1}).rates / model.process_.at({"x": 0}).rates
    assert effects[0] < 0.8 < 1.5 < effects[2]
    model.process_ = model.process_.take(np.array([2, 1, 0]))
    assert np.all(np.diff(model._refitted(panel, {}).emission_.means) < -3)  # those of a bootstrap stay where they are
    named = make(3, structure=jm.Structure(covariates={0: ["x"]}), start=process).fit(panel)
    assert named.emission_.means.argmax() == 0


def test_units_do_not_matter(panel):
    """Ages in days, times in another unit."""
    base = jm.JumpMeans(emission="direct", structure=ALL).fit(panel)
    other = jm.JumpMeans(emission="direct", structure=ALL).fit(scaled(panel, 365.25, 1 / 64))
    assert other.objective_ == pytest.approx(base.objective_, rel=1e-6)
    np.testing.assert_array_equal(other.trajectories_.codes, base.trajectories_.codes)
    np.testing.assert_allclose(other.rates_ / 64, base.rates_, rtol=1e-3)
    unit = np.array([365.25, 1.0])[:, None]
    own, its = (model.process_.effects.of_states() for model in (base, other))
    np.testing.assert_allclose(its * unit, own, atol=2e-3 * np.abs(own).max())


def test_a_process_with_effects_of_moves_decodes(panel):
    known = jm.JumpMeans.from_process(truth())
    paths = known.decode(panel)
    assert paths.at(panel.times, panel.ids[panel.sequence_index]).tolist() == known.predict(panel).tolist()


def test_kept_in_a_file(panel, tmp_path):
    model = jm.JumpMeans(emission="direct", structure=ALL).fit(panel)
    model.save(tmp_path / "m.jm")
    again = jm.load(tmp_path / "m.jm")
    np.testing.assert_array_equal(again.decode(panel).start_times, model.trajectories_.start_times)
    np.testing.assert_array_equal(again.process_.effects.coefs, model.process_.effects.coefs)


def test_what_is_refused(panel):
    model = jm.JumpMeans(emission="direct", structure=ALL).fit(panel)
    with pytest.raises(ValueError, match="criterion='online' must have rates that depend on nothing"):
        model.decode(panel, "online")
    assert model.decode(panel, "time").jump_counts().sum() > 0
    with pytest.raises(ValueError, match="an OnlineDecoder must have rates that depend on nothing"):
        jm.OnlineDecoder(model)
    known = jm.Structure(covariates="all", fixed={("well", "ill"): 0.3})
    with pytest.raises(ValueError, match="neither fixed nor equal rates beside covariates"):
        jm.JumpMeans(emission="direct", structure=known).fit(panel)
    with pytest.raises(ValueError, match="covariates must be of states"):
        jm.JumpMeans(emission="direct", structure=jm.Structure(covariates={("well", "ill"): ["age"]})).fit(panel)
