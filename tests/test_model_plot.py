"""model.plot(id): the picture of one sequence, of a fitted model alone."""

import pickle

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import jumpmeans as jm
from jumpmeans.plots import plot_trajectory
from test_contract import MASKED, REGISTRY

WITH_STATES = [name for name, model in REGISTRY.items() if hasattr(model, "plot")]


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def drawn(ax):
    """Lines and dots of a picture."""
    lines = [seg for c in ax.collections if hasattr(c, "get_segments") for seg in c.get_segments()]
    dots = [np.asarray(c.get_offsets()) for c in ax.collections if not hasattr(c, "get_segments")]
    return np.concatenate(lines), np.concatenate([d for d in dots if len(d)] or [np.zeros((0, 2))])


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(drawn(a), drawn(b), strict=True))


@pytest.mark.parametrize("name", WITH_STATES)
def test_a_model_draws_the_panel_it_was_fitted_to(name):
    """Caught: the panel of an earlier fit; readings left out; a path of another decode."""
    model = clone(REGISTRY[name]).fit(MASKED.select([0, 1]))
    model.fit(MASKED)
    id = MASKED.ids.tolist()[2]
    paths = getattr(model, "trajectories_", None)
    paths = model.decode(MASKED) if paths is None else paths
    assert same(model.plot(id), plot_trajectory(paths, id, MASKED, model))
    assert len(drawn(model.plot(id))[1]) >= MASKED.select([2]).observed.sum() > 0
    with pytest.raises(ValueError, match="id must be a sequence of the"):
        model.plot("nobody")


def test_another_panel_is_decoded():
    model = clone(REGISTRY["JumpMeans"]).fit(MASKED.select([0, 1, 2]))
    other = MASKED.select([5, 6])
    id = other.ids.tolist()[1]
    ax = plt.subplots()[1]
    assert model.plot(id, other, ax, time_unit="years") is ax
    assert ax.get_xlabel() == "time (years)"
    assert same(ax, plot_trajectory(model.decode(other), id, other, model))
    with pytest.raises(ValueError, match="id must be a sequence of the panel"):
        model.plot(MASKED.ids.tolist()[0], other)


def test_files_and_other_processes_get_no_panel(tmp_path):
    """Caught: a model file that grows with the data; a panel sent to every process."""
    model = clone(REGISTRY["JumpMeans"]).fit(MASKED)
    id = MASKED.ids.tolist()[0]
    model.save(tmp_path / "m.jm")
    for again in (jm.load(tmp_path / "m.jm"), pickle.loads(pickle.dumps(model))):
        path, dots = drawn(again.plot(id))
        assert np.array_equal(path, drawn(model.plot(id))[0]) and len(dots) == 0
        assert same(again.plot(id, MASKED), model.plot(id))
        assert not any(isinstance(x, jm.Panel) for x in vars(again).values())


def test_a_model_of_known_rates_needs_a_panel():
    process = jm.Process([0.1, 0.3], [[0, 1], [1, 0]], states=["well", "ill"])
    model = jm.JumpMeans.from_process(process)
    panel = jm.Panel.from_arrays([0.0, 2.0, 5.0], ["well", None, "ill"], ids=[7, 7, 7])
    with pytest.raises(ValueError, match=r"panel must be given to a JumpMeans that was not fitted here, got none"):
        model.plot(7)
    assert model.plot(7, panel).get_ylabel() == "state"
    with pytest.raises(NotFittedError, match="must be fitted first"):
        jm.JumpMeans().plot(7)


def test_refits_of_a_bootstrap_keep_no_panel():
    model = clone(REGISTRY["JumpMeans"]).fit(MASKED)
    sure = jm.bootstrap(model, MASKED, n=2, n_jobs=1)
    assert not any(isinstance(x, jm.Panel) for again in sure.replicates for x in vars(again).values())
