"""JumpMeans as its users meet it: labels, options, edge cases, messages, and what it must show on known data."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from protocol import percent_wrong, recovered, synthetic_1, synthetic_2
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import jumpmeans as jm
from jumpmeans.comparators import MostCommon


def frame(*rows):
    return pd.DataFrame(rows, columns=["id", "time", "value"])


@pytest.fixture(scope="module")
def gaussian():
    process = jm.Process([1.0, 0.5], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0.0, 5.0], 1.0))
    return jm.simulate(process, 60, 15, mean_gap=0.3, random_state=3)


def detour_panel():
    """Dense sequences go a, c, b; sparse ones show only a and, two dwells later, b."""
    dense = [(f"d{i}", 0.25 * k, "acb"[k // 4 % 3]) for i in range(40) for k in range(13)]
    sparse = [(f"s{i}", t, v) for i in range(40) for t, v in ((0.0, "a"), (0.5, "a"), (2.5, "b"), (3.0, "b"))]
    return frame(*dense, *sparse)


def test_more_candidates_or_the_beam_find_the_detour(capsys):
    fit = {
        name: jm.JumpMeans(emission="direct", refine=0, **options).fit(detour_panel()).objective_
        for name, options in {
            "one per gap": {},
            "four per gap": {"jumps_per_gap": 4},
            "beam": {"search": "beam"},
        }.items()
    }
    print(", ".join(f"{name}: {value:.2f}" for name, value in fit.items()))
    assert "beam" in capsys.readouterr().out
    assert fit["four per gap"] < fit["one per gap"] - 10
    assert fit["beam"] < fit["one per gap"] - 10


def test_labels_may_be_strings_and_named_beyond_those_seen():
    data = frame(("x", 0, "well"), ("x", 1, "ill"), ("x", 2, "ill"))
    assert jm.JumpMeans(emission="direct").fit(data).states_.tolist() == ["ill", "well"]
    model = jm.JumpMeans(emission="direct", states=["well", "ill", "dead"]).fit(data)
    assert model.states_.tolist() == ["well", "ill", "dead"]
    assert model.rates_.shape == (3,) and np.isfinite(model.objective_)
    assert model.predict(data).tolist() == ["well", "ill", "ill"]


def test_hidden_states_come_in_order_of_their_values(gaussian):
    panel, _ = gaussian
    model = jm.JumpMeans(2).fit(panel)
    assert np.all(np.diff(model.emission_.means) > 0)
    np.testing.assert_allclose(model.process_.emission.means, [0.0, 5.0], atol=0.4)
    np.testing.assert_allclose(model.process_.rates, [1.0, 0.5], rtol=0.3)


def test_a_mask_is_honoured_exactly():
    panel, _ = jm.simulate(
        jm.Process([1.0, 1.0, 1.0], [[0, 1, 0], [0, 0, 1], [1, 0, 0]]), 50, 10, mean_gap=1.0, random_state=0
    )
    structure = jm.Structure(allowed={0: [1], 1: [2], 2: [0]})
    model = jm.JumpMeans(emission="direct", structure=structure).fit(panel)
    allowed = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)
    assert model.trajectories_.jump_counts()[~allowed].sum() == 0
    assert np.all(model.transition_probs_[~allowed] == 0) and np.all(model.process_.transition_probs[~allowed] == 0)
    with pytest.raises(
        jm.InfeasibleError, match=r"explain every sequence, got none for sequence .*raise jumps_per_gap"
    ):
        jm.JumpMeans(emission="direct", structure=structure, jumps_per_gap=1).fit(panel)


def test_absorbing_states_are_never_left():
    data = frame(("x", 0, "a"), ("x", 1, "b"), ("x", 2, "dead"), ("x", 9, "dead"), ("y", 0, "a"), ("y", 3, "a"))
    model = jm.JumpMeans(emission="direct", structure=jm.Structure(absorbing=["dead"])).fit(data)
    dead = model.states_.tolist().index("dead")
    assert model.rates_[dead] == 0 and model.process_.rates[dead] == 0
    assert np.isfinite(model.objective_)
    assert model.predict_proba(data)[3, dead] == 1.0


def test_single_observations_and_empty_sequences_are_carried_along():
    data = frame(
        ("one", 0, 1.0), ("none", 0, np.nan), ("none", 2, np.nan), *(("x", t, 5.0 * (t > 4)) for t in range(9))
    )
    model = jm.JumpMeans(2).fit(data)
    frame_out = model.trajectories_.to_frame()
    assert set(frame_out["id"]) == {"one", "none", "x"}
    assert frame_out[frame_out.id == "one"].shape[0] == 1
    assert np.isfinite(model.predict_proba(data)).all()


def test_frames_of_any_kind_and_rows_in_any_order(gaussian):
    panel, _ = gaussian
    table = panel.to_frame()
    table.columns = ["id", "time", "value"][: len(table.columns)]
    shuffled = table.sample(frac=1, random_state=0).sort_values("time", kind="stable")
    straight = jm.JumpMeans(2).fit(table)
    mixed = jm.JumpMeans(2).fit(pl.from_pandas(shuffled))
    assert mixed.objective_ == pytest.approx(straight.objective_, rel=1e-9)
    order = shuffled.index.to_numpy()
    np.testing.assert_array_equal(mixed.predict(shuffled), straight.predict(table)[order])


def test_read_outs_have_the_callers_shape(gaussian):
    panel, _ = gaussian
    model = jm.JumpMeans(2).fit(panel)
    assert model.predict(panel).shape == (panel.n_observations,)
    probs = model.predict_proba(panel)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=1e-12)
    some = panel.ids[5]
    at = model.predict_proba(panel, at={some: [0.0, 0.01, 100.0]})
    np.testing.assert_allclose(at[0], probs[panel.offsets[5]], rtol=1e-9)
    stationary = 1 / model.process_.rates / (1 / model.process_.rates).sum()
    np.testing.assert_allclose(at[2], stationary, rtol=1e-6)
    shown = model.predict_value(panel, "trajectory")
    assert set(np.round(shown, 6)) <= set(np.round(model.process_.emission.means, 6))
    with pytest.raises(ValueError, match=r"method must be one of \('posterior', 'trajectory'\), got 'mode'"):
        model.predict_value(panel, method="mode")


def test_records_of_mixed_columns():
    rng = np.random.default_rng(0)
    state = np.repeat([0, 1, 0, 1], 10)
    table = pd.DataFrame(
        {
            "id": "x",
            "time": np.arange(40.0),
            "level": 4.0 * state + rng.normal(0, 1, 40),
            "count": rng.poisson(1 + 6 * state),
            "flag": np.where(rng.random(40) < 0.1 + 0.8 * state, "yes", "no"),
        }
    )
    table.loc[3, "level"] = np.nan
    table["flag"] = table["flag"].astype(object)
    table.loc[7, "flag"] = None
    panel = jm.Panel.from_frame(table, value=["level", "count", "flag"])
    model = jm.JumpMeans(2, emission=["gaussian", "poisson", "categorical"]).fit(panel)
    assert (model.predict(panel) == state).mean() > 0.9
    assert model.predict_value(panel).shape == (40, 3)
    with pytest.raises(ValueError, match="one family for each of the 3 value columns, got 2"):
        jm.JumpMeans(2, emission=["gaussian", "poisson"]).fit(panel)


def test_distinct_values_are_counted_beyond_the_first_rows():
    """Caught: a count of the first rows alone, which are all alike here."""
    panel = jm.Panel.from_arrays(np.arange(60), np.r_[np.zeros(50), np.arange(10) % 3], np.zeros(60, int))
    assert len(jm.JumpMeans(3).fit(panel).states_) == 3
    with pytest.raises(ValueError, match=r"n_states=4 must be at most the number of distinct values, got 3"):
        jm.JumpMeans(4).fit(panel)


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({"n_states": 2, "emission": "normal"}, [1.0, 2.0], "emission must be one of .*got 'normal'"),
        ({"emission": "gaussian"}, [1.0, 2.0], "n_states must be given for hidden states"),
        ({"n_states": 5}, [1.0, 2.0, 1.0], r"n_states=5 must be at most the number of distinct values, got 2"),
        ({"n_states": 4, "emission": "direct"}, [1, 2], r"n_states=4 must equal the number of labels, got 2: \[1, 2\]"),
        ({"n_states": 2, "states": ["a"]}, [1.0, 2.0], r"n_states=2 must equal the number of names, got 1: \['a'\]"),
        ({"emission": "direct", "states": ["a", "a"]}, ["a", "a"], "states must be distinct"),
        ({"emission": "direct", "states": ["b"]}, ["a", "a"], r"must be among the known ones \['b'\], got \['a'\]"),
        ({"n_states": 2}, ["a", "b"], "must be numbers for emission 'gaussian', got 'a' at sequence 'x', row 0"),
        ({"n_states": 2, "emission": "poisson"}, [1, -2, 3], r"must be 0, 1, 2, ..., got -2 at sequence 'x', row 1"),
        ({"n_states": 2, "emission": "exponential"}, [1.0, 0.0], r"must be > 0, got 0 at sequence 'x', row 1"),
        ({"n_states": 2, "emission": "bernoulli"}, [1, 3], r"must be 0 or 1, got 3 at sequence 'x', row 1"),
        ({"n_states": 1, "search": "wide"}, [1.0, 2.0], r"search must be one of \('exact', 'beam'\), got 'wide'"),
        ({"n_states": 1, "max_iter": 0}, [1.0, 2.0], "max_iter must be an integer of at least 1, got 0"),
        (
            {"n_states": 1, "transition_weight": -1},
            [1.0, 2.0],
            "transition_weight must be 'auto' or 0 or a number",
        ),
        ({"n_states": 1, "engine": "gpu"}, [1.0, 2.0], "engine must be one of .* or an engine object"),
        ({"n_states": 2, "structure": jm.Structure(allowed=[[0]])}, [1.0, 2.0], r"allowed must be a \(2, 2\) table"),
        ({"n_states": 2, "structure": jm.Structure(initial="given")}, [1.0, 2.0], "for hidden states, got 'given'"),
    ],
)
def test_messages(options, data, message):
    with pytest.raises(ValueError, match=message):
        jm.JumpMeans(**options).fit(frame(*(("x", t, v) for t, v in enumerate(data))))


def test_unseen_labels_are_listed_when_predicting():
    model = jm.JumpMeans(emission="direct").fit(frame(("x", 0, "a"), ("x", 1, "b")))
    with pytest.raises(jm.PanelError, match=r"got \['c', 'd'\], first at sequence 'y', row 1"):
        model.predict(frame(("y", 0, "a"), ("y", 1, "d"), ("y", 2, "c")))


def test_the_estimator_contract():
    model = jm.JumpMeans(2, transition_weight=2.0)
    with pytest.raises(NotFittedError, match=r"must be fitted first; call fit\(panel\)"):
        model.predict(frame(("x", 0, 1.0)))
    assert clone(model).get_params()["transition_weight"] == 2.0
    data = frame(*(("x", t, float(t % 7)) for t in range(50)))
    with pytest.warns(ConvergenceWarning, match="the objective still falls after 1 sweeps"):
        jm.JumpMeans(2, max_iter=1).fit(data)


def test_explicit_numbers_reproduce_the_papers_update():
    """λ = (ξ_λ + K) / (ξ_λ μ_λ + T), the running dwell counted once it outlasts its mean."""
    data = frame(*(("x", t, v) for t, v in ((0.0, "a"), (1.0, "b"), (2.0, "a"), (3.0, "b"))))
    model = jm.JumpMeans(
        emission="direct", transition_weight=1, prior_dwell_count=1, prior_dwell_time=0.5, pseudo_count=0, refine=0
    ).fit(data)
    time, exits = np.zeros(2), np.zeros(2)
    table = model.decode(data).to_frame()
    for row in table[~table.running].itertuples():
        s = model.states_.tolist().index(row.state)
        time[s] += row.end - row.start
        exits[s] += 1
    last = table[table.running].iloc[0]
    s = model.states_.tolist().index(last.state)
    if model.objective_params_.rates[s] * (last.end - last.start) >= 1:
        time[s] += last.end - last.start
        exits[s] += 1
    np.testing.assert_allclose(model.objective_params_.rates, (1 + exits) / (0.5 + time), rtol=1e-5)


def test_little_data_sets_show_what_the_big_ones_do():
    """Synthetic 1 and 2 on one data set each; the full figures are in experiments/core.py and the slow tests."""
    process, panel, _ = synthetic_1(1)
    masked, held = jm.hold_out(panel, 0.3, random_state=1)
    model = jm.JumpMeans(emission="direct", states=range(10)).fit(masked)
    limit = percent_wrong(jm.JumpMeans.from_process(process).predict_value(masked, "posterior"), held)
    assert percent_wrong(model.predict_value(masked, "trajectory"), held) < limit + 7
    assert percent_wrong(model.predict_value(masked, "posterior"), held) < limit + 0.6

    process, panel, _ = synthetic_2(3)
    masked, held = jm.hold_out(panel, 0.3, random_state=3)
    model = jm.JumpMeans(5, emission="categorical").fit(masked)
    limit = percent_wrong(jm.JumpMeans.from_process(process).predict_value(masked, "posterior"), held)
    baseline = percent_wrong(MostCommon(emission="direct").fit(masked).predict_value(masked), held)
    assert recovered(baseline, percent_wrong(model.predict_value(masked, "posterior"), held), limit) > 80


@pytest.mark.slow
def test_closing_steps_recover_hidden_states():
    """Six data sets of Synthetic 2 at mean gap 0.3: share of most common → limit that each read-out recovers."""
    errors = []
    for seed in range(6):
        process, panel, _ = synthetic_2(seed)
        masked, held = jm.hold_out(panel, 0.3, random_state=seed)
        model = jm.JumpMeans(5, emission="categorical").fit(masked)
        read_outs = (
            MostCommon(emission="direct").fit(masked).predict_value(masked),
            model.predict_value(masked, "trajectory"),
            model.predict_value(masked, "posterior"),
            jm.JumpMeans.from_process(process).predict_value(masked, "posterior"),
        )
        errors.append([percent_wrong(values, held) for values in read_outs])
    baseline, trajectory, posterior, limit = np.mean(errors, axis=0)
    print(f"posterior {recovered(baseline, posterior, limit):.0f} %, ", end="")
    print(f"trajectory {recovered(baseline, trajectory, limit):.0f} %")
    assert recovered(baseline, posterior, limit) >= 95
    assert recovered(baseline, trajectory, limit) >= 65


def symbols_panel():
    rho = [[0.5, 0.3, 0.2], [0.1, 0.3, 0.6], [0.3, 0.4, 0.3]]
    process = jm.Process(
        [0.5, 1.0, 3.0], [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.9, 0.1, 0]], emission=jm.emissions.Categorical(rho)
    )
    panel, _ = jm.simulate(process, 80, 12, mean_gap=0.4, random_state=1)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 2.0], panel.n_sequences)
    masked, _ = jm.hold_out(replace(panel, weights=weights), 0.2, random_state=0)
    return masked


def test_a_trajectory_shows_what_is_expected_where_it_is_in_a_state():
    panel = symbols_panel()
    model = jm.JumpMeans(3, emission="categorical", refine=5, n_init=1).fit(panel)
    states, posterior = model.predict(panel), model.predict_proba(panel)
    values, weights = model.predict_value(panel, "trajectory"), np.repeat(panel.weights, panel.lengths)
    for m in np.unique(states):
        own = states == m
        chances = weights[own] @ posterior[own] @ model.process_.emission.probs
        assert np.all(values[own] == model.process_.emission.columns[0].symbols[chances.argmax()])


def test_without_closing_steps_a_state_shows_its_own_symbol():
    panel = symbols_panel()
    model = jm.JumpMeans(3, emission="categorical", refine=0, n_init=1).fit(panel)
    np.testing.assert_array_equal(
        model.predict_value(panel, "trajectory"), model.emission_.columns[0].state_values()[model.predict(panel)]
    )
