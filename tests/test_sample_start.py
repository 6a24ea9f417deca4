"""Large panels start on a sample: as good an end as from all rows, whatever the sample does not show."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import jumpmeans as jm
from jumpmeans.comparators import EM
from jumpmeans.data.deriving import pieces
from jumpmeans.estimators import jump_means
from jumpmeans.fit import setup

ONE = jm.engines.Threads(1)
EVEN = (1.0 - np.eye(3)) / 2


@pytest.fixture
def small_samples(monkeypatch):
    monkeypatch.setattr(setup, "MANY_ROWS", 2000)
    monkeypatch.setattr(setup, "START_ROWS", 1000)


def whole(monkeypatch):
    monkeypatch.setattr(setup, "MANY_ROWS", 10**9)


def panel_of(emission, n=400, length=20, rates=(0.2, 0.3, 0.4), seed=0, **options):
    process = jm.Process(list(rates), EVEN, emission=emission)
    return jm.simulate(process, n, length, random_state=seed, **options)[0]


GAUSSIAN = panel_of(jm.emissions.Gaussian([0.0, 4.0, 8.0], 1.0))
SYMBOLS = panel_of(jm.emissions.Categorical(0.7 * np.eye(3) + 0.1, list("abc")), gaps="regular")
DIRECT = panel_of(None)


def calls(monkeypatch, module):
    """Rows of what every descent of a fit goes over."""
    seen = []

    def watched(descent):
        def begin(sequences, *args, **options):
            seen.append(sum(len(block.tau) for block in sequences.held.blocks))
            return descent(sequences, *args, **options)

        return begin

    for name in {"descend", "sweeps"} & vars(module).keys():
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    return seen


@pytest.mark.parametrize(
    ("panel", "options"),
    [
        (GAUSSIAN, {"n_states": 3}),
        (SYMBOLS, {"n_states": 3, "emission": "categorical"}),
        (DIRECT, {"emission": "direct"}),
    ],
)
def test_the_end_is_as_good_as_from_all_rows(panel, options, monkeypatch, small_samples):
    """Planted: without a descent on all rows after that on the sample, closing steps on the sample alone."""
    rows = calls(monkeypatch, jump_means)
    model = jm.JumpMeans(**options, engine=ONE).fit(panel)
    assert rows[-1] == panel.n_observations and max(rows[:-1]) <= 1100
    whole(monkeypatch)
    full = jm.JumpMeans(**options, engine=ONE).fit(panel)
    assert model.objective_ <= full.objective_ * (1 + 1e-4)
    # the closing steps went over all rows too
    assert model.log_likelihood(panel) >= full.log_likelihood(panel) - 1e-3 * abs(full.log_likelihood(panel))
    np.testing.assert_allclose(model.rates_, full.rates_, rtol=0.05)
    assert model.hyperparameters(panel) == full.hyperparameters(panel)


def test_em_ends_as_high_as_from_all_rows(monkeypatch, small_samples):
    model = EM(3, engine=ONE).fit(GAUSSIAN)
    whole(monkeypatch)
    full = EM(3, engine=ONE).fit(GAUSSIAN)
    assert model.log_likelihood(GAUSSIAN) >= full.log_likelihood(GAUSSIAN) - 1e-5 * abs(full.log_likelihood(GAUSSIAN))


def test_a_label_that_the_sample_does_not_show(small_samples):
    """Impossible under what the sample says, both go on all the same. Planted: no doubt, and no second try."""
    codes = SYMBOLS.values.copy()
    few = setup.sample_panel(SYMBOLS, 1000)
    others = np.flatnonzero(~np.isin(SYMBOLS.ids[SYMBOLS.sequence_index], few.ids))
    labels = np.array(list("abc"), dtype=object)[codes[:, 0].astype(int)]
    labels[others[5]] = "d"
    panel = jm.Panel.from_arrays(SYMBOLS.times, list(labels), SYMBOLS.ids[SYMBOLS.sequence_index])
    for make in (jm.JumpMeans, EM):
        model = make(3, emission="categorical", engine=ONE, max_iter=400)
        model.fit(panel)
        assert np.isfinite(model.log_likelihood(panel))


def test_columns_and_values_that_the_sample_does_not_show(small_samples):
    """A sensor that came at the end, and values that hardly differ: started from all rows. Planted: no look."""
    late = GAUSSIAN.values.copy()
    late[GAUSSIAN.sequence_index < 399] = np.nan
    both = jm.Panel.from_arrays(
        GAUSSIAN.times, np.column_stack([GAUSSIAN.values, late]), GAUSSIAN.ids[GAUSSIAN.sequence_index]
    )
    free = jm.Structure().constraints(np.arange(3))
    assert setup.start_panel(both, free) is both
    assert setup.start_panel(GAUSSIAN, free).n_observations == 1000
    flat = np.zeros(GAUSSIAN.n_observations)
    flat[-3:] = [1.0, 2.0, 3.0]
    panel = jm.Panel.from_arrays(GAUSSIAN.times, flat, GAUSSIAN.ids[GAUSSIAN.sequence_index])
    assert jm.JumpMeans(3, engine=ONE).fit(panel).objective_ < np.inf


def test_pieces_of_a_long_sequence_come_from_all_of_it(small_samples):
    """The last third is in a state of its own. Planted: the head of the sequence alone."""
    rng = np.random.default_rng(0)
    n = 6000
    levels = np.repeat([0.0, 4.0, 8.0], n // 3)
    panel = jm.Panel.from_arrays(np.arange(n, dtype=float), levels + rng.normal(size=n), np.zeros(n, int))
    model = jm.JumpMeans(3, engine=ONE).fit(panel)
    np.testing.assert_allclose(model.process_.emission.means, [0.0, 4.0, 8.0], atol=0.1)


def test_pieces():
    panel = GAUSSIAN.select([3, 7])
    cut = pieces(panel, 8)
    assert cut.lengths.tolist() == [8, 8, 4] * 2
    np.testing.assert_array_equal(cut.times, panel.times)
    np.testing.assert_array_equal(cut.values, panel.values)
    assert cut.ids.tolist() == np.repeat(panel.ids, 3).tolist()
    own = panel.times[:20]
    np.testing.assert_array_equal(cut.start_times[:3], [panel.start_times[0], own[8], own[16]])
    np.testing.assert_array_equal(cut.end_times[:3], [own[7], own[15], panel.end_times[0]])
    assert pieces(panel, 20).lengths.tolist() == [20, 20]


@pytest.mark.parametrize(
    ("panel", "options"),
    [
        (
            panel_of(jm.emissions.Gaussian([0.0, 4.0, 8.0], 1.0), n=60, offsets=2.0),
            {"n_states": 3, "offsets": "sequence"},
        ),
        (panel_of(None, n=60), {"emission": "direct", "frailty": "sequence"}),
    ],
    ids=["offsets", "frailty"],
)
def test_people_of_large_panels_are_all_in_it(panel, options, monkeypatch):
    """Planted: people of a sample, whose number is another."""
    few = EM(**options, n_init=1, max_iter=4, engine=ONE)
    with pytest.warns(ConvergenceWarning):
        plain = few.fit(panel).log_likelihood_
    monkeypatch.setattr(setup, "MANY_ROWS", 500)
    monkeypatch.setattr(setup, "START_ROWS", 300)
    with pytest.warns(ConvergenceWarning):
        large = few.fit(panel)
    assert len(large.offsets_ if "offsets" in options else large.frailties_) == panel.n_sequences
    np.testing.assert_allclose(large.log_likelihood_, plain, rtol=0.01)
