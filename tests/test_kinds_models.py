"""Exact times in models: what comes out of them, what is warned of, who refuses them, and how they are simulated."""

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import jumpmeans as jm
from jumpmeans.comparators import EM, Gibbs, Interpolation, MLTrajectory, MostCommon, ParticleGibbs
from jumpmeans.emissions import Direct, Record
from jumpmeans.errors import StructureWarning
from jumpmeans.fit.advice import Looks, warn_of_times
from jumpmeans.kinds import ENTRY, SNAPSHOT, TRANSITION
from jumpmeans.passes import Block

STATES = ["well", "ill", "dead"]
Q = np.array([[-0.5, 0.4, 0.1], [0.3, -0.7, 0.4], [0, 0, 0]])
PROCESS = jm.Process.from_generator(Q, [0.8, 0.2, 0], states=STATES)
ABSORBING = jm.Structure(absorbing=["dead"])


def events_over_exposure(truth):
    """(M, M) rates of trajectories that are known."""
    M = len(truth.labels)
    counts, time = np.zeros((M, M)), np.zeros(M)
    for i in range(len(truth)):
        own = slice(truth.offsets[i], truth.offsets[i + 1])
        codes, bounds = truth.codes[own], np.append(truth.start_times[own], truth.end_times[i])
        for k, s in enumerate(codes):
            time[s] += bounds[k + 1] - bounds[k]
            if k:
                counts[codes[k - 1], s] += 1
    return counts / np.maximum(time, 1e-300)[:, None]


@pytest.mark.parametrize("model", [jm.JumpMeans, jm.InfiniteJumpMeans, EM])
def test_exact_transitions_give_events_over_exposure(model):
    """Planted: pseudo-counts of 0.01 in the closing steps, which are felt in the third digit."""
    panel, truth = jm.simulate(PROCESS, 100, 5, exact="all", random_state=1)
    fitted = model(emission="direct", structure=ABSORBING, states=STATES).fit(panel)
    moves = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(
        fitted.process_.rate_matrix[moves], events_over_exposure(truth)[moves], rtol=1e-6, atol=1e-8
    )


def test_not_all_exact_is_not_taken_for_it():
    panel, _ = jm.simulate(PROCESS, 30, 5, exact="all", random_state=1)
    assert Block.of(panel, panel.values).is_exact
    assert not Block.of(panel.blank([3]), panel.blank([3]).values).is_exact
    longer = jm.Panel.from_arrays([0.0, 1.0], ["a", "b"], [0, 0], kinds=[1, 2], end_times=[2.0, 2.0])
    assert not Block.of(longer, longer.values).is_exact


# ---------------------------------------------------------------------------------------------- simulated


def test_simulated_deaths_are_entries_and_the_last_rows():
    panel, truth = jm.simulate(PROCESS, 50, 8, exact=["dead"], random_state=2)
    died = panel.kinds == ENTRY
    assert 20 < died.sum() <= 50
    assert set(np.flatnonzero(died)) <= set(panel.offsets[1:] - 1)
    assert panel.labels()[panel.values[died, 0].astype(int)].tolist() == ["dead"] * died.sum()
    assert np.array_equal(
        truth.at(panel.times, panel.ids[panel.sequence_index]), panel.decode_values(panel.values[:, 0])
    )
    assert np.array_equal(truth.end_times, panel.end_times)
    dead = truth.states == "dead"
    assert np.array_equal(truth.start_times[dead], panel.times[died])


def test_simulated_entries_into_states_that_are_left_stand_among_the_looks():
    panel, truth = jm.simulate(PROCESS, 30, 8, exact=["ill"], random_state=2)
    entered = (truth.states == "ill") & (truth.start_times > 0)
    assert (panel.kinds == ENTRY).sum() == entered.sum() > 10
    assert np.all(panel.lengths >= 8)


def test_simulated_panels_are_the_same_without_exact_times():
    one, two = (jm.simulate(PROCESS, 10, 5, exact=exact, random_state=0)[0] for exact in (None, []))
    assert np.array_equal(one.times, two.times)
    assert one.kinds is None and two.kinds is None


def test_simulated_deaths_are_known_where_states_are_hidden():
    hidden = jm.Process.from_generator(Q, [0.8, 0.2, 0], jm.emissions.Gaussian([0, 3, 6], 1.0), STATES)
    panel, _ = jm.simulate(hidden, 30, 5, exact=["dead"], random_state=2)
    assert np.array_equal(panel.known >= 0, panel.kinds == ENTRY)
    assert [known.states for known in panel.state_sets] == [("dead",)]
    every, _ = jm.simulate(hidden, 30, 5, exact="all", random_state=2)
    assert every.known is None
    assert set(np.delete(every.kinds, every.offsets[:-1])) == {TRANSITION}
    assert set(every.kinds[every.offsets[:-1]]) == {SNAPSHOT}


@pytest.mark.parametrize(("exact", "match"), [("dead", r"a list of states or 'all', got 'dead'"), (["ded"], "'ded'")])
def test_wrong_exact_states_are_refused(exact, match):
    with pytest.raises(ValueError, match=match):
        jm.simulate(PROCESS, 2, 2, exact=exact)


# ------------------------------------------------------------------------------------------------- advice


def entry_times(kinds=None, seed=0):
    """One row for each move, as a registry would have it."""
    process = jm.Process.from_generator([[-0.22, 0.22], [0.3, -0.3]], states=["a", "b"])
    _, truth = jm.simulate(process, 30, 2, mean_gap=15.0, exact="all", random_state=seed)
    sequence = np.repeat(np.arange(30), np.diff(truth.offsets))
    return jm.Panel.from_arrays(truth.start_times, truth.states, sequence, kinds=kinds)


@pytest.mark.parametrize("model", [
    jm.JumpMeans(emission="direct", refine=0), jm.InfiniteJumpMeans(emission="direct", refine=0),
    EM(emission="direct", max_iter=20), Gibbs(emission="direct", n_samples=2, burn_in=0),
], ids=lambda model: type(model).__name__)  # fmt: skip
def test_entry_times_that_are_not_declared_are_asked_about(model):
    """Planted: no warning at all, or one for rows that are declared."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(entry_times())
    told = [one for one in said if one.category is StructureWarning]
    assert len(told) == 1 and told[0].filename == __file__
    assert re.match(r"only 0 of \d+ rows .* are these the times .* kind=", str(told[0].message))
    n = entry_times().n_observations
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(entry_times(np.full(n, "transition")))


def test_looks_are_not_taken_for_entry_times():
    """The data sets that ship, and Synthetic 1 at its widest gaps."""
    rng = np.random.default_rng(0)
    P = np.zeros((10, 10))
    for m in range(10):
        P[m, np.arange(10) != m] = rng.dirichlet(np.ones(9))
    wide, _ = jm.simulate(jm.Process(rng.gamma(1, 1, 10), P), 100, 20, gaps="regular", mean_gap=5.0, random_state=0)
    for panel in (wide, jm.datasets.load_edss(), jm.datasets.load_icu_pressure("nih4")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warn_of_times(Looks.of(panel, Record([Direct(panel.labels())])))


# --------------------------------------------------------------------------------------------- who cannot


def told_panels():
    yield jm.simulate(PROCESS, 10, 4, exact=["dead"], random_state=0)[0]
    yield jm.Panel.from_arrays([0, 1, 2], ["well", "alive", "dead"], [0] * 3, sets={"alive": ["well", "ill"]})


def test_methods_that_would_not_listen_refuse():
    for panel in told_panels():
        with pytest.raises(jm.PanelError, match=r"MLTrajectory takes rows as snapshots .*use JumpMeans, EM or Gibbs"):
            MLTrajectory(PROCESS).fit(panel)
        with pytest.raises(jm.PanelError, match="ParticleGibbs takes rows as snapshots"):
            ParticleGibbs(emission="categorical").fit(panel)


def test_rules_of_thumb_take_rows_as_snapshots():
    panel = jm.Panel.from_arrays(
        [0, 1, 1, 1, 2], [1.0, 2.0, None, 4.0, None], [0] * 5, kinds=[1, 1, 2, 3, 1], columns=["x"]
    )
    for rule in (MostCommon(), Interpolation()):
        assert np.isfinite(rule.fit(panel).predict_value(panel)).all()
