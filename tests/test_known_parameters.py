"""One model in front: what a fitted model says of itself comes from one process; known parameters; good advice."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import jumpmeans as jm
from jumpmeans.errors import PanelError, StructureWarning

PROCESS = jm.Process(
    [0.3, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0.0, 5.0], sds=1.0)
)  # fmt: skip
HIDDEN, TRUTH = jm.simulate(PROCESS, 60, 15, random_state=0)


# --- summary ----------------------------------------------------------------------------------------------------------


def test_summary_of_hidden_states():
    model = jm.JumpMeans(2).fit(HIDDEN)
    table = model.summary()
    assert list(table.columns) == ["state", "shows", "mean_dwell", "time_share", "visits", "next"]
    assert table["state"].tolist() == [0, 1] and table["next"].tolist() == ["1 100 %", "0 100 %"]
    np.testing.assert_allclose(table["mean_dwell"], 1 / model.process_.rates)
    found = model.trajectories_
    np.testing.assert_allclose(table["time_share"], found.time_in_state().sum(axis=0) / found.time_in_state().sum())
    np.testing.assert_array_equal(table["visits"], np.bincount(found.codes))
    mean, sd = model.process_.emission.means[1], model.process_.emission.sds[1]
    assert table["shows"][1] == f"{mean:.4g} ± {sd:.2g}"


def test_summary_names_the_unit_of_dates_and_comes_as_the_frame_that_went_in():
    pl = pytest.importorskip("polars")
    from datetime import date, timedelta

    days = [date(2026, 1, 1) + timedelta(days=int(d)) for d in (0, 40, 90, 0, 30, 100)]
    frame = pl.DataFrame(
        {"id": [1, 1, 1, 2, 2, 2], "time": days, "value": ["well", "ill", "ill", "well", "well", "ill"]}
    )
    model = jm.JumpMeans(emission="direct").fit(jm.Panel.from_frame(frame))
    table = model.summary()
    assert isinstance(table, pl.DataFrame) and "mean_dwell_days" in table.columns
    assert table["shows"].to_list() == ["ill", "well"]
    assert isinstance(model.trajectories_.to_frame(), pl.DataFrame)


def test_summary_of_em_counts_what_is_expected():
    model = jm.comparators.EM(2).fit(HIDDEN)
    table = model.summary()
    truth = TRUTH.time_in_state().sum(axis=0)
    np.testing.assert_allclose(table["time_share"], truth / truth.sum(), atol=0.03)
    np.testing.assert_allclose(table["visits"].sum(), len(TRUTH.codes), rtol=0.15)


def test_an_absorbing_state_lasts_and_leads_nowhere():
    panel = jm.Panel.from_arrays([0, 1, 2, 0, 1, 2], list("aabaab"), [0, 0, 0, 1, 1, 1])
    model = jm.JumpMeans(emission="direct", structure=jm.Structure(absorbing=["b"])).fit(panel)
    table = model.summary()
    assert table["mean_dwell"][1] == np.inf and table["next"].tolist() == ["b 100 %", "none"]


# --- known parameters -------------------------------------------------------------------------------------------------


def test_from_process_reads_out_without_a_fit():
    model = jm.JumpMeans.from_process(PROCESS)
    assert model.process_ is PROCESS and not hasattr(model, "objective_")
    states = TRUTH.at(HIDDEN.times, HIDDEN.ids[HIDDEN.sequence_index])
    assert np.mean(model.predict(HIDDEN) == states) > 0.97
    assert 0.5 * TRUTH.n_jumps < model.decode(HIDDEN).n_jumps <= TRUTH.n_jumps
    np.testing.assert_allclose(
        model.predict_value(HIDDEN), model.predict_proba(HIDDEN) @ PROCESS.emission.means, rtol=1e-12
    )
    assert list(model.summary().columns) == ["state", "shows", "mean_dwell", "next"]
    assert model.log_likelihood(HIDDEN) == pytest.approx(jm.comparators.EM(2).fit(HIDDEN).log_likelihood_, rel=0.02)
    pytest.importorskip("matplotlib")
    ax = jm.plots.plot_trajectory(model.decode(HIDDEN), 0, HIDDEN, model)
    assert ax.get_xlabel() == "time"


def test_from_process_decodes_as_the_fit_that_found_it():
    """The process of a fit, given by itself, gives its trajectories: nothing else goes into them."""
    for panel, options in ((HIDDEN, {"n_states": 2}), (jm.datasets.load_edss(), {"emission": "direct"})):
        model = jm.JumpMeans(**options).fit(panel)
        again = jm.JumpMeans.from_process(model.process_).decode(panel)
        np.testing.assert_array_equal(again.codes, model.trajectories_.codes)
        np.testing.assert_array_equal(again.start_times, model.trajectories_.start_times)


def test_from_process_shows_its_own_symbols():
    """Decoding under given parameters must show what these say, not what some fit did."""
    rho = [[0.9, 0.1], [0.2, 0.8]]
    process = jm.Process([0.2, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Categorical(rho, ["x", "y"]))
    panel, _ = jm.simulate(process, 20, 12, random_state=1)
    for names in (["x", "y"], ["y", "x"]):
        told = jm.Process([0.2, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Categorical(rho, names))
        model = jm.JumpMeans.from_process(told)
        shown = np.array(names, dtype=object)[model.predict(panel)]
        np.testing.assert_array_equal(model.predict_value(panel, "trajectory"), shown)


def test_from_process_refuses_what_it_cannot_use():
    with pytest.raises(ValueError, match=r"process must be a jumpmeans.Process, got ndarray"):
        jm.JumpMeans.from_process(np.eye(2))
    with pytest.raises(ValueError, match=r"options of from_process must be among .* got \['refine'\]"):
        jm.JumpMeans.from_process(PROCESS, refine=3)
    with pytest.raises(ValueError, match=r"transition_weight must be 'auto' or 0 or a number .* got -1"):
        jm.JumpMeans.from_process(PROCESS, transition_weight=-1)


# --- start ------------------------------------------------------------------------------------------------------------


def test_start_from_a_model_or_a_process():
    scratch = jm.JumpMeans(2).fit(HIDDEN)
    for start in (scratch, PROCESS, jm.comparators.EM(2).fit(HIDDEN)):
        model = jm.JumpMeans(start=start).fit(HIDDEN)
        assert model.objective_ == pytest.approx(scratch.objective_, rel=1e-3)
        assert model.n_iter_ <= scratch.n_iter_ + 2
        again = clone(model)
        assert again.start is start and again.fit(HIDDEN).objective_ == model.objective_
    with pytest.raises(ValueError, match="n_states=3 must equal the number of states of start, got 2"):
        jm.JumpMeans(3, start=PROCESS).fit(HIDDEN)
    with pytest.raises(ValueError, match="start must be a Process or a fitted model with process_, got 5"):
        jm.JumpMeans(2, start=5).fit(HIDDEN)


def test_states_named_by_a_start_keep_their_names():
    named = jm.Process(
        [0.2, 0.3], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([5.0, 0.0], sds=1.0), states=["high", "low"]
    )
    model = jm.JumpMeans(start=named).fit(HIDDEN)
    assert model.states_.tolist() == ["high", "low"] and np.all(np.diff(model.emission_.means) < 0)


# --- times to read at -------------------------------------------------------------------------------------------------


def test_an_early_request_changes_no_later_answer():
    """Asking also for an early time moved the window, and with it where the initial distribution holds."""
    panel = jm.Panel.from_arrays([2.0, 3.0, 5.0], ["a", None, "b"], [7, 7, 7])
    model = jm.JumpMeans.from_process(jm.Process([1.0, 0.2], [[0, 1], [1, 0]], [0.9, 0.1], states=["a", "b"]))
    late = model.predict_proba(panel, at={7: [3.5, 9.0]})
    both = model.predict_proba(panel, at={7: [2.0, 3.5, 4.0, 9.0]})
    np.testing.assert_allclose(both[[1, 3]], late, rtol=1e-12)
    with pytest.raises(PanelError, match=r"must not lie before the window of their sequence, got 1.0 before 2.0 for"):
        model.predict_proba(panel, at={7: [1.0, 3.5]})
    with pytest.raises(PanelError, match="must not lie before the window"):
        model.predict_value(panel, at=([7], [0.5]))


def test_values_can_be_asked_for_at_any_time():
    model = jm.JumpMeans(2).fit(HIDDEN)
    at = ([0, 3], HIDDEN.times[[1, HIDDEN.offsets[3] + 2]])
    rows = [1, HIDDEN.offsets[3] + 2]
    for method in ("posterior", "trajectory"):
        np.testing.assert_allclose(
            model.predict_value(HIDDEN, method, at=at), model.predict_value(HIDDEN, method)[rows], rtol=1e-9
        )


def test_a_model_of_numbers_reads_no_dates():
    """Days would be taken for whatever unit the numbers were in; EM, which has no trajectories, knows it too."""
    dates = np.array(["2026-01-01", "2026-01-05", "2026-02-01"], dtype="datetime64[D]")
    dated = jm.Panel.from_arrays(dates, [0.0, 5.0, 5.0], [1, 1, 1])
    for model in (jm.JumpMeans(2), jm.comparators.EM(2)):
        with pytest.raises(
            PanelError, match="times must be numbers, like those that the model was fitted to, got dates"
        ):
            model.fit(HIDDEN).predict_proba(dated)


# --- advice -----------------------------------------------------------------------------------------------------------


def entries(n=100, rate=0.22):
    """Rows at the instants of the moves: never the same state twice in a row."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n):
        now, s = 0.0, 0
        for _ in range(7):
            rows.append((i, now, "abc"[s]))
            now, s = now + rng.exponential(1 / rate), (s + rng.integers(1, 3)) % 3
    ids, times, values = zip(*rows, strict=True)
    return jm.Panel.from_arrays(times, values, ids)


def test_rates_that_run_away_are_told():
    told = pytest.warns(ConvergenceWarning, match="rate of state '[abc]' is .* and still rises by .*refine='converged'")
    with told, pytest.warns(StructureWarning, match="only 0 of 600 rows show the state of the row before them"):
        jm.JumpMeans(emission="direct").fit(entries())


def test_no_word_where_closing_steps_have_settled():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jm.JumpMeans(emission="direct").fit(jm.datasets.load_edss())


def test_refine_converged_is_maximum_likelihood():
    """A long window after the last look: twenty steps are not enough, and say so; the maximum is that of EM."""
    process = jm.Process([0.1, 0.15], [[0, 1], [1, 0]], states=["a", "b"])
    panel, _ = jm.simulate(process, 50, 10, random_state=0)
    frame = panel.to_frame()
    wide = jm.Panel.from_arrays(
        frame["time"], frame["value"], frame["id"], end_times=50.0 * panel.end_times[panel.sequence_index]
    )
    with pytest.warns(ConvergenceWarning, match="process_ is not at the maximum of the likelihood"):
        jm.JumpMeans(emission="direct").fit(wide)
    model = jm.JumpMeans(emission="direct", refine="converged").fit(wide)
    best = jm.comparators.EM(emission="direct").fit(wide)
    np.testing.assert_allclose(model.rates_, best.rates_, rtol=1e-4)
    assert model.log_likelihood(wide) == pytest.approx(best.log_likelihood_, rel=1e-8)


def test_sequences_that_last_no_time_tell_nothing_of_rates():
    panel = jm.Panel.from_arrays(np.zeros(6), list("ababab"), np.arange(6))
    for model in (jm.JumpMeans(emission="direct"), jm.comparators.EM(emission="direct")):
        np.testing.assert_allclose(model.fit(panel).rates_, 1.0)  # a dwell of 1e-300 was told


def test_a_state_that_no_row_follows_is_named():
    process = jm.Process(
        [0.3, 0.3, 0.0], [[0, 0.6, 0.4], [0.5, 0, 0.5], [0, 0, 0]], [1, 0, 0], states=["a", "b", "dead"]
    )
    panel, _ = jm.simulate(process, 30, 8, random_state=3)
    # nobody is seen again after death
    rows = panel.to_frame()
    dead = rows["value"] == "dead"
    rows = rows[~dead.groupby(rows["id"]).shift(fill_value=False)]
    panel = jm.Panel.from_frame(rows)
    ended = int((rows["value"] == "dead").sum())
    with pytest.warns(StructureWarning, match=rf"no row ever follows state 'dead', in which {ended} sequences end"):
        jm.JumpMeans(emission="direct", refine=0).fit(panel)
    short = {"n_samples": 2, "burn_in": 0}
    for model in (jm.InfiniteJumpMeans(refine=0), jm.comparators.EM(), jm.comparators.Gibbs(**short)):
        with pytest.warns(StructureWarning, match=r"Structure\(absorbing=\['dead'\]\)"):
            model.set_params(emission="direct").fit(panel)
    with pytest.warns(StructureWarning, match=r"as 'alive' may, say sets=\{label: \[states\]\} in Panel.from_frame"):
        jm.JumpMeans(emission="direct", refine=0).fit(panel)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = jm.JumpMeans(emission="direct", structure=jm.Structure(absorbing=["dead"])).fit(panel)
    alive = model.predict_proba(panel, at={int(panel.ids[0]): [1e6]})
    assert alive[0, 2] == pytest.approx(1.0)


def test_a_state_that_is_never_left_is_named():
    """The dead who stay on the list; but not a state that is hardly looked at again. Planted: those without any row
    after them alone; any state that was not left."""
    process = jm.Process(
        [0.3, 0.3, 0.0], [[0, 0.6, 0.4], [0.5, 0, 0.5], [0, 0, 0]], [1, 0, 0], states=["a", "b", "dead"]
    )
    panel, _ = jm.simulate(process, 30, 8, random_state=3)
    counts = panel.state_table()
    n = int(counts["dead", "dead"])
    for model in (jm.JumpMeans(refine=0), jm.comparators.EM(), jm.comparators.Gibbs(n_samples=2, burn_in=0)):
        with pytest.warns(StructureWarning, match=rf"all {n} rows that follow state 'dead' show it again.*absorbing="):
            model.set_params(emission="direct").fit(panel)
    rows = [["a", "a", "a", "a", "b"]] * 4 + [["a", "a", "a", "b", "b"]] * 6
    few = jm.Panel.from_arrays(np.tile(np.arange(5.0), 10), np.ravel(rows), np.repeat(np.arange(10), 5))
    assert few.state_table()["b", "a"] == 0 and few.state_table()["b", "b"] == 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jm.JumpMeans(emission="direct", refine=0).fit(few)


# --- weights ----------------------------------------------------------------------------------------------------------


def test_weights_that_are_shares():
    """Weights that sum to 1 or less are shares of the sequences: rates do not run off with the scale."""
    process = jm.Process([0.2, 0.3], [[0, 1], [1, 0]], states=["a", "b"])
    panel, _ = jm.simulate(process, 100, 10, random_state=0)
    frame = panel.to_frame()
    plain = jm.JumpMeans(emission="direct").fit(panel)
    for scale in (1e-18, 1e-3):
        shares = jm.Panel.from_arrays(frame["time"], frame["value"], frame["id"], weights=np.full(1000, scale))
        model = jm.JumpMeans(emission="direct").fit(shares)
        np.testing.assert_allclose(model.rates_, plain.rates_, rtol=1e-9)
        assert model.objective_ == pytest.approx(plain.objective_, rel=1e-9)
