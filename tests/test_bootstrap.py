"""Bootstrap: copies equal weights, states keep their places, the same numbers whoever works, failures told."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

import jumpmeans as jm
from jumpmeans.comparators import EM, Gibbs
from jumpmeans.data.chosen import resampled
from jumpmeans.engines import Threads
from jumpmeans.evaluation.bootstrap import _units

ONE = Threads(1)
PAIR = jm.Process([0.3, 0.5], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0.0, 3.0], sds=1.0))
RATES = lambda m: m.process_.rate_matrix


@pytest.fixture(scope="module")
def panel():
    return jm.simulate(PAIR, 15, 12, random_state=0)[0]


MODELS = {
    "EM": EM(2, engine=ONE),
    "JumpMeans": jm.JumpMeans(2, engine=ONE),
    "InfiniteJumpMeans": jm.InfiniteJumpMeans(engine=ONE),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_refit_is_one_of_the_drawn_copies(name, panel):
    """Multiplicities as weights give what copied rows give; fails if weights are added instead of multiplied."""
    panel = replace(panel, weights=1.0 + np.arange(15) % 2)
    model = clone(MODELS[name]).fit(panel)
    times = np.random.default_rng(1).multinomial(15, np.full(15, 1 / 15))
    assert times.max() > 1
    copies = panel.select(np.repeat(np.arange(15), times))
    drawn = resampled(panel, times)
    assert drawn.n_sequences == np.count_nonzero(times)
    found, wanted = (RATES(model._refitted(data, {})) for data in (drawn, copies))
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_jobs_change_nothing(name, panel):
    model = clone(MODELS[name]).fit(panel)
    one, two = (jm.bootstrap(model, panel, n=4, n_jobs=jobs, random_state=3).values(RATES) for jobs in (1, 2))
    np.testing.assert_array_equal(one, two)
    other = jm.bootstrap(model, panel, n=4, n_jobs=1, random_state=4).values(RATES)
    assert not np.array_equal(one, other)


def test_refits_run_where_they_are_told(panel):
    """Planted: `engine` dropped on the way, so that the counting engine is never asked."""

    class Counted(Threads):
        held = 0

        def hold(self, blocks):
            Counted.held += 1
            return super().hold(blocks)

    model = EM(2, engine=ONE).fit(panel)
    plain, there = (jm.bootstrap(model, panel, n=3, n_jobs=1, engine=engine) for engine in (None, Counted(1)))
    assert Counted.held >= 3
    np.testing.assert_array_equal(plain.values(RATES), there.values(RATES))
    with pytest.raises(ValueError, match=r"engine must be one of .* got 'cloud'"):
        jm.bootstrap(model, panel, n=3, engine="cloud")


@pytest.mark.parametrize("name", MODELS)
def test_states_keep_their_places(name):
    """Two states that hardly differ in their means but much in their rates: sorted anew, their rates would be swapped
    in some refits. Fails without `Structure()` in JumpMeans and EM, or without `_keeps_order` in InfiniteJumpMeans."""
    emission = [jm.emissions.Gaussian([0.0, 0.0], sds=0.5), jm.emissions.Gaussian([0.0, 5.0], sds=0.5)]
    process = jm.Process([0.1, 1.0], [[0, 1], [1, 0]], emission=emission)
    panel, _ = jm.simulate(process, 20, 15, mean_gap=0.3, random_state=10)
    model = clone(MODELS[name]).set_params(emission=["gaussian", "gaussian"]).fit(panel)
    assert len(model.states_) == 2
    sure = jm.bootstrap(model, panel, n=12, n_jobs=1)
    first = sure.values(lambda m: m.process_.emission.means[:, 0])
    assert (np.diff(first, axis=1) < 0).any()  # in some refits the means of the first column change places
    second = sure.values(lambda m: m.process_.emission.means[:, 1])
    apart = np.diff(second, axis=1)[:, 0] * np.diff(model.emission_.means[:, 1])[0]
    assert (apart > 0).all()


def test_a_group_is_drawn_as_a_whole(panel):
    frame = panel.to_frame()
    frame["ward"] = frame["id"] % 4
    grouped = jm.Panel.from_frame(frame, group="ward")
    np.testing.assert_array_equal(_units(grouped, None), np.arange(15) % 4)
    np.testing.assert_array_equal(_units(grouped, False), np.arange(15))
    np.testing.assert_array_equal(_units(panel, np.arange(15) // 5), np.arange(15) // 5)
    model = EM(2, engine=ONE).fit(grouped)
    wards = jm.bootstrap(model, grouped, n=3, n_jobs=1).values(RATES)
    own = jm.bootstrap(model, grouped, n=3, n_jobs=1, groups=False).values(RATES)
    assert not np.allclose(wards, own)


def test_intervals_are_percentiles_with_labels(panel):
    """By hand: of 20 answers the 90 % bounds are the lowest and the highest; fails if a quantile interpolates."""
    model = EM(2, engine=ONE).fit(panel)
    sure = jm.bootstrap(model, panel, n=20, n_jobs=1)
    assert len(sure.replicates) == 20 and sure.failures == []
    dwells = sure.interval(lambda m: m.process_.sojourn("day"))
    by_hand = np.sort(1 / sure.values(lambda m: m.process_.rates), axis=0)
    np.testing.assert_allclose(dwells.low.values[:, 0], by_hand[0])
    np.testing.assert_allclose(dwells.high.values[:, 0], by_hand[-1])
    assert dwells.low.unit == "day" and dwells.low.rows.tolist() == [0, 1]
    frame = dwells.to_frame()
    assert list(frame.columns) == ["state", "dwell", "estimate", "low", "high"] and len(frame) == 2
    assert isinstance(sure.interval(lambda m: m.process_.rates[0]).high, float)
    low, high = sure.interval(lambda m: m.process_.rates)
    assert low.shape == (2,) and (low < high).all()
    assert list(sure.interval(lambda m: m.process_.rates).to_frame().columns) == ["axis_0", "estimate", "low", "high"]
    endless = sure.interval(lambda m: np.inf if m is sure.replicates[0] else 1.0)
    assert endless.high == np.inf and endless.low == 1.0
    assert "90 % interval" in repr(dwells)


def test_the_interval_narrows_with_the_data():
    """Four times the sequences: half the width. Fails if sequences are not drawn by themselves."""
    widths = []
    for n in (25, 100):
        panel, _ = jm.simulate(PAIR, n, 12, random_state=1)
        low, high = jm.bootstrap(EM(2, engine=ONE).fit(panel), panel, n=40, n_jobs=1).interval(lambda m: m.rates_)
        widths.append(np.log(high / low))
    assert 1.4 < np.mean(widths[0] / widths[1]) < 2.9


class Fails(EM):
    """Refits of panels without the first sequence fail."""

    def _refitted(self, panel, options):
        if 0 not in panel.ids.tolist():
            raise ValueError("the first sequence must be there")
        return super()._refitted(panel, options)


class Never(EM):
    def _refitted(self, panel, options):
        raise ValueError("not today")


def test_failures_are_told(panel):
    model = Fails(2, engine=ONE).fit(panel)
    with pytest.warns(UserWarning, match=r"of 10 refits failed and are left out.*the first sequence must be there"):
        sure = jm.bootstrap(model, panel, n=10, n_jobs=1)
    assert len(sure.failures) + len(sure.replicates) == 10 and len(sure.failures) > 0
    with pytest.raises(ValueError, match="at least one refit must succeed, got none of 3: not today"):
        jm.bootstrap(Never(2, engine=ONE).fit(panel), panel, n=3, n_jobs=1)


def test_warnings_of_refits_are_counted(panel):
    model = EM(2, engine=ONE).fit(panel).set_params(max_iter=1)
    assert jm.bootstrap(model, panel, n=3, n_jobs=1).warned == {"ConvergenceWarning": 3}


def test_refuses(panel):
    model = EM(2, engine=ONE).fit(panel)
    with pytest.raises(ValueError, match="an EM, got Gibbs: it has a posterior: the spread of its samples_"):
        jm.bootstrap(Gibbs(2), panel)
    with pytest.raises(ValueError, match="got ParticleGibbs: it has a posterior"):
        jm.bootstrap(jm.comparators.ParticleGibbs(), panel)
    with pytest.raises(ValueError, match="must be a fitted model of a process, got MostCommon"):
        jm.bootstrap(jm.comparators.MostCommon(), panel)
    with pytest.raises(Exception, match="this EM must be fitted first"):
        jm.bootstrap(EM(2), panel)
    with pytest.raises(ValueError, match="n must be an integer of at least 1, got 0"):
        jm.bootstrap(model, panel, n=0)
    with pytest.raises(ValueError, match=r"a label for each of the 15 sequences, or False, got shape \(3,\)"):
        jm.bootstrap(model, panel, groups=[1, 2, 3])
    with pytest.raises(ValueError, match=r"at least two sequences .* got one"):
        jm.bootstrap(model, panel.select([0]))
    sure = jm.bootstrap(model, panel, n=2, n_jobs=1)
    with pytest.raises(ValueError, match=r"one shape for all refits, got \(2,\) of the model and \(1,\) of a refit"):
        sure.interval(lambda m: m.rates_ if m is model else m.rates_[:1])
    with pytest.raises(ValueError, match="level must be a number between 0 and 1, got 90"):
        sure.interval(RATES, level=90)
