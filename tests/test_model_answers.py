"""What fitted models answer: forecasts, prevalence, likelihoods, criteria, tests of fit; and cross-validation."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import expm
from scipy.stats import chi2, kstest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, train_test_split

import jumpmeans as jm
from jumpmeans.errors import StructureWarning
from jumpmeans.evaluation.pearson import weighted_chi2_sf

STATES = ["dead", "ill", "well"]
PROCESS = jm.Process.from_generator(
    {"dead": {}, "ill": {"well": 0.3, "dead": 0.2}, "well": {"ill": 0.4, "dead": 0.05}}, [0, 0.3, 0.7]
)
PANEL, _ = jm.simulate(PROCESS, 60, 6, random_state=2)
MODEL = jm.JumpMeans.from_process(PROCESS)
HIDDEN = jm.JumpMeans.from_process(
    jm.Process([0.5, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0.0, 4.0], sds=1.0))
)
READINGS, _ = jm.simulate(HIDDEN.process_, 20, 6, random_state=3)


def em(**options):
    return jm.comparators.EM(emission="direct", states=STATES, **options)


# ------------------------------------------------------------------------------------------------- of the process


def test_models_answer_as_their_process_does_in_the_unit_of_the_panel():
    dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(PANEL.times, unit="D")
    values = PANEL.decode_values(PANEL.values[:, 0])
    dated = jm.Panel.from_arrays(dates, values, PANEL.ids[PANEL.sequence_index])
    model = em(structure=jm.Structure(absorbing=["dead"])).fit(dated)
    process = model.process_
    for ask in (
        lambda m: m.generator(), lambda m: m.sojourn(), lambda m: m.next_state(), lambda m: m.transition_matrix(2),
        lambda m: m.total_time(3, "ill"), lambda m: m.first_passage("dead"), lambda m: m.survival("dead", [1, 2]),
        lambda m: m.stationary(),
    ):  # fmt: skip
        np.testing.assert_array_equal(ask(model).values, ask(process).values)
    assert model.sojourn().unit == "days" and model.generator().unit == "1/day"
    assert model.total_time(3).unit == "days" and model.sojourn(time_unit="d").unit == "d"
    assert model.survival("dead", [1]).row_name == "time (days)"
    assert MODEL.sojourn().unit is None
    with pytest.raises(NotFittedError, match="must be fitted first"):
        em().survival("dead", [1])


@pytest.mark.parametrize(("word", "days"), [("years", 365.25), ("week", 7.0), ("h", 1 / 24), ("days", 1.0)])
def test_answers_of_dates_are_converted_to_the_unit_asked_for(word, days):
    dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(30 * PANEL.times, unit="D")
    dated = jm.Panel.from_arrays(dates, PANEL.decode_values(PANEL.values[:, 0]), PANEL.ids[PANEL.sequence_index])
    model = em(structure=jm.Structure(absorbing=["dead"])).fit(dated)
    in_days = model.process_

    def same(table, values):
        np.testing.assert_allclose(table.values, values, rtol=1e-9, atol=1e-12)

    same(model.generator(word), days * in_days.rate_matrix)
    same(model.sojourn(word), in_days.sojourn().values / days)
    same(model.transition_matrix(2, word), in_days.transition_matrix(2 * days).values)
    same(model.total_time(3, time_unit=word), in_days.total_time(3 * days).values / days)
    passage = in_days.first_passage("dead").values / [1, days, days]
    same(model.first_passage("dead", word), passage)
    same(model.survival("dead", [1, 2], time_unit=word), in_days.survival("dead", [days, 2 * days]).values)
    dwells = model.summary(word)[f"mean_dwell_{word}"]
    np.testing.assert_allclose(dwells, model.sojourn(word).values.ravel())
    errors = model.information(dated)
    same(errors.standard_errors(word), days * errors.standard_errors().values)
    assert errors.standard_errors(word).unit == f"1/{word if word != 'days' else 'day'}"
    with pytest.raises(ValueError, match=r"one of seconds, .* where times are dates, got 'fortnights'"):
        model.sojourn("fortnights")


def test_a_unit_of_numbers_is_only_a_name():
    np.testing.assert_array_equal(MODEL.sojourn("years").values, MODEL.sojourn().values)
    assert MODEL.summary("years")["mean_dwell_years"].tolist() == MODEL.summary()["mean_dwell"].tolist()


# ------------------------------------------------------------------------------------------------- forecast


def test_a_forecast_is_what_expm_says_of_the_last_state():
    ahead = MODEL.forecast(PANEL, horizon=[1.0, 2.5])
    assert len(ahead) == 120 and ahead.ids[:2].tolist() == [0, 0] and ahead.horizons[:2] == pytest.approx([1.0, 2.5])
    last = PANEL.values[PANEL.offsets[1:] - 1, 0].astype(int)
    for k, h in enumerate((1.0, 2.5)):
        np.testing.assert_allclose(ahead.probs[k::2], expm(PROCESS.rate_matrix * h)[last], rtol=1e-10, atol=1e-13)
    assert ahead.values.tolist() == [STATES[m] for m in ahead.probs.argmax(axis=1)]
    frame = ahead.to_frame()
    assert list(frame.columns) == ["id", "time", "horizon", "value", "P(dead)", "P(ill)", "P(well)"]


def test_times_to_forecast_by_id_or_for_all():
    late = float(PANEL.end_times.max()) + 1.0
    every = MODEL.forecast(PANEL, [late, late + 1])
    assert len(every) == 120
    own = MODEL.forecast(PANEL, {5: [late]})
    pair = MODEL.forecast(PANEL, ([5], [late]))
    for one in (own, pair):
        np.testing.assert_allclose(one.probs[0], every.probs[10], rtol=1e-12)
    # caught: copies of a sequence, which share an id, all answered by the first
    twice = PANEL.select([3, 3])
    assert MODEL.forecast(twice, horizon=1).ids.tolist() == [3, 3]
    np.testing.assert_array_equal(*MODEL.forecast(twice, horizon=1).probs)


def test_forecasts_of_readings_are_means_and_dates_stay_dates():
    ahead = HIDDEN.forecast(READINGS, horizon=2.0)
    np.testing.assert_allclose(ahead.values, ahead.probs @ [0.0, 4.0], rtol=1e-12)
    start = pd.Timestamp("2024-01-01")
    dated = jm.Panel.from_arrays([start, start + pd.Timedelta(days=1)], [0.1, 3.9], ids=["a", "a"])
    days = HIDDEN.forecast(dated, horizon=pd.Timedelta(hours=12))
    assert days.times.tolist() == [pd.Timestamp("2024-01-02T12:00").value] and days.horizons.tolist() == [0.5]
    assert HIDDEN.forecast(dated, ["2024-01-03"]).horizons.tolist() == [1.0]
    assert str(days.to_frame()["time"][0]) == "2024-01-02 12:00:00"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "forecast needs times: give at= or horizon=, got neither"),
        ({"at": [9], "horizon": 1}, "got both"),
        ({"horizon": -1}, "horizon must be finite numbers >= 0, or durations, got -1"),
        ({"horizon": "soon"}, "horizon must be finite numbers >= 0"),
        (
            {"at": [0.0]},
            "not lie before the last row of their sequence, got 0 before .* for sequence 0; predict_pr",
        ),
        ({"at": {"x": [1]}}, "there is no sequence 'x'"),
        ({"at": []}, "times to forecast must be finite, and at least one"),
        ({"at": ([1, 2], [99.0])}, "ids and times must be of one length, got 2 and 1"),
    ],
)
def test_forecasts_that_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        MODEL.forecast(PANEL, **options)


# ------------------------------------------------------------------------------------------------- prevalence


def test_prevalence_by_hand():
    panel = jm.Panel.from_arrays(
        [0, 2, 4, 10, 11, 12],
        ["well", "ill", "dead", "well", None, "well"],
        ids=[1, 1, 1, 2, 2, 2],
        weights=[1, 1, 1, 3, 3, 3],
    )
    got = MODEL.prevalence(panel, [0, 2, 3, 5])
    # sequence 2 begins at 10 and ends two units later; sequence 1 is dead for ever
    assert got.n.tolist() == [4, 4, 1, 1]
    np.testing.assert_allclose(got.observed.values, [[0, 0, 1], [0, 0.25, 0.75], [0, 1, 0], [1, 0, 0]])
    # caught: expected from the state observed first where π is asked for
    np.testing.assert_allclose(got.expected.values[1], [0, 0.3, 0.7] @ expm(PROCESS.rate_matrix * 2), rtol=1e-11)
    seen = MODEL.prevalence(panel, [0, 2, 3, 5], carry=False)
    assert seen.n.tolist() == [4, 4, 1, 0] and np.isnan(seen.observed.values[3]).all()
    start = MODEL.prevalence(panel, [1], initial=[0, 1, 0]).expected.values[0]
    np.testing.assert_allclose(start, expm(PROCESS.rate_matrix)[1], rtol=1e-11)
    assert list(got.to_frame().columns) == ["time", "state", "n", "observed", "expected"] and len(got.to_frame()) == 12
    assert len(MODEL.prevalence(panel).times) == 11
    assert HIDDEN.prevalence(READINGS, [0.0]).n.tolist() == [20]
    with pytest.raises(ValueError, match="initial must be 3 probabilities that sum to 1, or 'observed', got"):
        MODEL.prevalence(panel, initial=[1, 1, 1])
    with pytest.raises(ValueError, match="carry must be True or False or 'estimated'"):
        MODEL.prevalence(panel, carry="yes")
    with pytest.raises(ValueError, match="times must be finite numbers >= 0"):
        MODEL.prevalence(panel, [-1])


def test_prevalence_where_some_windows_end_with_death_and_some_before():
    """Caught: the dead counted on beside ever fewer who are alive, as msm has it: at the end nearly all seem dead."""
    panel = ward(0, n=1500, unclear=0.0)
    found = {carry: MODEL.prevalence(panel, [0, 4, 8], carry=carry) for carry in (True, False, "estimated")}
    dead = {carry: shares.observed.values[:, 0] for carry, shares in found.items()}
    truth = found[True].expected.values[:, 0]
    np.testing.assert_allclose(dead["estimated"], truth, atol=0.04)
    assert dead[True][2] > truth[2] + 0.1 and dead[False][2] < truth[2] - 0.1
    np.testing.assert_allclose(found["estimated"].observed.values.sum(axis=1), 1.0, rtol=1e-12)
    late = MODEL.prevalence(panel, [0, 40], carry="estimated")
    assert np.isnan(late.observed.values[1]).all() and late.n[1] == 0


# ------------------------------------------------------------------------------------------------- likelihoods


def test_the_first_row_given_by_hand():
    # rows before the first that tells anything are left out, and so is a window that begins before it
    panel = jm.Panel.from_arrays(
        [0, 1, 3, 4, 0, 0], [None, "well", None, "ill", "ill", None], ids=[1, 1, 1, 1, 2, 3],
        start_times=[-2] * 4 + [0, 0], weights=[2] * 4 + [1, 5],
    )  # fmt: skip
    expected = 2 * np.log(expm(PROCESS.rate_matrix * 3)[2, 1])
    assert MODEL.log_likelihood(panel, first="given") == pytest.approx(expected, rel=1e-12)
    pi = np.array([0, 0.3, 0.7])
    with_pi = expected + 2 * np.log((pi @ expm(PROCESS.rate_matrix * 3))[2]) + np.log(0.3)
    assert MODEL.log_likelihood(panel) == pytest.approx(with_pi, rel=1e-12)
    with pytest.raises(ValueError, match="first must be 'estimated' where states are hidden, got 'given'"):
        HIDDEN.log_likelihood(READINGS, first="given")
    with pytest.raises(ValueError, match=r"first must be one of \('estimated', 'given'\) or None, got 'last'"):
        MODEL.log_likelihood(panel, first="last")


def test_a_first_row_known_by_a_set_adds_up_as_in_msm():
    """In R: msm(state ~ time, subject = id, qmatrix = Q, fixedpars = TRUE, censor = 99, censor.states = c(1, 2),
    data = data.frame(id = 1, time = c(0, 1, 3), state = c(99, 2, 3))), -minus2loglik / 2 = -1.19161."""
    Q = np.array([[-0.3, 0.2, 0.1], [0.15, -0.4, 0.25], [0, 0, 0]])
    process = jm.Process.from_generator(Q, states=["well", "ill", "dead"])
    panel = jm.Panel.from_arrays([0, 1, 3], ["alive", "ill", "dead"], [1, 1, 1], sets={"alive": ["well", "ill"]})
    got = jm.JumpMeans.from_process(process).log_likelihood(panel, first="given")
    assert got == pytest.approx(np.log(expm(Q)[:2, 1].sum() * expm(2 * Q)[1, 2]), rel=1e-12)
    assert got == pytest.approx(-1.19161, abs=1e-5)


def test_answers_know_how_rows_were_seen():
    panel = jm.Panel.from_arrays(
        [0, 2, 2, 0, 3, 5], ["well", "ill", "dead", "well", "alive", "alive"], [1, 1, 1, 2, 2, 2],
        kinds=["snapshot", "snapshot", "entry"] + ["snapshot"] * 3, sets={"alive": ["well", "ill"]},
    )  # fmt: skip
    # caught: the first of two rows of one instant carried on
    assert MODEL.prevalence(panel, [1, 2]).observed.values.tolist() == [[0, 0, 1], [0.5, 0, 0.5]]
    # caught: what is known of later rows left in where an earlier one is predicted
    known = jm.Panel.from_arrays([0, 3, 4], ["well", "ill", "not well"], [1] * 3, sets={"not well": ["dead", "ill"]})
    unknown = jm.Panel.from_arrays([0, 3], ["well", "ill"], [1] * 2)
    assert MODEL.against_last_value(known) == MODEL.against_last_value(unknown)
    ahead = MODEL.forecast(panel, horizon=1.0).probs
    assert ahead[0].tolist() == [1, 0, 0] and 0 < ahead[1, 0] < 0.5


def test_a_model_that_takes_first_states_as_given_has_no_pi():
    """Caught: prevalence that starts from the uniform π that such a process shows, a third of all dead at time 0;
    a likelihood, a score and criteria with that π in them."""
    structure = jm.Structure(absorbing=["dead"], initial="given")
    model = em(structure=structure).fit(PANEL)
    assert model.log_likelihood(PANEL) == model.log_likelihood(PANEL, first="given")
    assert model.log_likelihood(PANEL) == pytest.approx(model.log_likelihood_, rel=1e-12)
    assert model.score(PANEL) == pytest.approx(model.log_likelihood_ / 360)
    assert model.n_parameters_ == 4 and model.aic(PANEL) == pytest.approx(2 * 4 - 2 * model.log_likelihood_)
    with_pi = model.log_likelihood(PANEL, first="estimated")
    assert with_pi == pytest.approx(model.log_likelihood_ - PANEL.n_sequences * np.log(3), rel=1e-12)
    shares = model.prevalence(PANEL, [0, 3])
    np.testing.assert_allclose(shares.expected.values[0], shares.observed.values[0], rtol=1e-12)
    assert model.prevalence(PANEL, [0], initial=[0.2, 0.3, 0.5]).expected.values[0].tolist() == [0.2, 0.3, 0.5]
    onward = jm.Structure(allowed={"well": ["ill"], "ill": ["well", "dead"]}, initial="given")
    small = em(structure=onward).fit(PANEL)
    # the same whether one of the two estimates π or both leave it out
    alone = jm.likelihood_ratio(small, model, PANEL)
    mixed = jm.likelihood_ratio(small, em(structure=jm.Structure(absorbing=["dead"])).fit(PANEL), PANEL)
    assert (alone.df, mixed.df) == (1, 1) and alone.statistic == pytest.approx(mixed.statistic, rel=1e-6)
    late = PANEL.insert_times(PANEL.ids, PANEL.start_times - 1.0)[0]
    with pytest.raises(jm.PanelError, match="initial must be probabilities where no state is observed at time 0"):
        model.prevalence(late, [0, 1])


def test_parameters_are_counted_and_priced():
    model = em(structure=jm.Structure(absorbing=["dead"])).fit(PANEL)
    assert model.n_parameters_ == 4 + 2
    log_lik = model.log_likelihood_
    assert model.aic(PANEL) == pytest.approx(2 * 6 - 2 * log_lik)
    assert model.bic(PANEL) == pytest.approx(6 * np.log(360) - 2 * log_lik)
    assert model.score(PANEL) == pytest.approx(log_lik / 360)
    given = model.log_likelihood(PANEL, first="given")
    assert model.aic(PANEL, first="given") == pytest.approx(2 * 4 - 2 * given)
    assert HIDDEN.n_parameters_ == 2 + 1 + 2 * 2
    assert jm.JumpMeans.from_process(PROCESS).n_parameters_ == 6 + 2  # all moves, where nothing says otherwise


def test_likelihood_ratios_are_chi_square_and_refuse_what_is_not_nested():
    small, large = em(structure=jm.Structure(absorbing=["dead"])), em()
    with pytest.warns(StructureWarning, match="rows that follow state 'dead' show it again"):
        large.fit(PANEL)
    small.fit(PANEL)
    got = jm.likelihood_ratio(small, large, PANEL)
    assert got.df == 2 and got.statistic == pytest.approx(0, abs=1e-3) and got.p_value == pytest.approx(1, abs=1e-3)
    with pytest.raises(ValueError, match="large must have more parameters than small, got 6 and 8; swap them"):
        jm.likelihood_ratio(large, small, PANEL)
    with pytest.raises(ValueError, match=r"large must be at least as likely as small, .* got log-likelihoods"):
        jm.likelihood_ratio(small, MODEL, PANEL)
    with pytest.raises(ValueError, match="small must be a fitted model of a process, got Process"):
        jm.likelihood_ratio(PROCESS, large, PANEL)


# ------------------------------------------------------------------------------------------------- scikit-learn


def test_cross_validation_of_a_panel_and_of_a_long_frame():
    model = em(structure=jm.Structure(absorbing=["dead"]))
    scores = cross_val_score(model, PANEL, cv=3)
    # by hand: caught: rows of one sequence on both sides of a split
    train, test = np.arange(20, 60), np.arange(20)
    assert scores[0] == pytest.approx(model.fit(PANEL.select(train)).score(PANEL.select(test)), rel=1e-9)
    frame = PANEL.to_frame()
    rows = cross_val_score(model, frame, groups=frame["id"], cv=GroupKFold(3))
    assert rows.shape == (3,) and np.all(np.isfinite(rows)) and np.all(rows < 0)
    grouped = jm.Panel.from_frame(frame.assign(ward=frame["id"] // 20), group="ward")
    by_ward = cross_val_score(model, grouped, groups=grouped.groups, cv=GroupKFold(3))
    assert sorted(by_ward) == pytest.approx(sorted(scores), rel=1e-9)


def test_a_grid_search_finds_the_number_of_states():
    search = GridSearchCV(jm.comparators.EM(emission="gaussian"), {"n_states": [1, 2]}, cv=2).fit(READINGS)
    assert search.best_params_ == {"n_states": 2}
    assert search.best_estimator_.score(READINGS) == pytest.approx(search.score(READINGS))


def test_panels_are_indexed_by_sequence():
    assert PANEL.shape == (60,)
    assert PANEL[3].ids.tolist() == [3] and PANEL[-1].ids.tolist() == [59] and PANEL[:2].ids.tolist() == [0, 1]
    assert PANEL[[4, 4]].ids.tolist() == [4, 4] and PANEL[np.arange(60) > 57].ids.tolist() == [58, 59]
    assert [one.n_sequences for one in PANEL] == [1] * 60
    train, test = train_test_split(PANEL, test_size=0.25, random_state=0)
    assert sorted([*train.ids, *test.ids]) == list(range(60)) and len(test) == 15
    with pytest.raises(jm.PanelError, match="positions of the 60 sequences, or a boolean for each"):
        PANEL[60]
    with pytest.raises(TypeError, match="a panel is no array of numbers"):
        np.asarray(PANEL)


def test_state_tables():
    panel = jm.Panel.from_arrays([0, 1, 2, 0, 1], [2, None, 5, 5, 5], ids=[1, 1, 1, 2, 2], weights=[1, 1, 1, 3, 3])
    table = panel.state_table("value")
    assert table.rows.tolist() == [2, 5] and table.values.tolist() == [[0, 1], [0, 3]]
    with pytest.raises(jm.PanelError, match="must be labels or whole numbers to be counted, got other numbers in"):
        READINGS.state_table()


# ------------------------------------------------------------------------------------------------- tests of fit


def test_p_values_are_uniform_under_the_model():
    """Caught: the plain χ² of df (msm's upper bound), whose p-values are too large, mean 0.68 here."""
    process = jm.Process.from_generator([[0, 0.5, 0.1], [0.3, 0, 0.2], [0, 0.1, 0]], [0.6, 0.3, 0.1])
    moves = jm.Structure(allowed=[[0, 1, 1], [1, 0, 1], [0, 1, 0]])
    known, fitted = [], []
    for seed in range(40):
        panel, _ = jm.simulate(process, 80, 6, random_state=seed)
        model = jm.comparators.EM(emission="direct", structure=moves, tol=1e-6).fit(panel)
        fitted.append(jm.pearson_test(model, panel, time_groups=2, gap_groups=2).p_value)
        truth = jm.JumpMeans.from_process(process)
        known.append(jm.pearson_test(truth, panel, time_groups=2, gap_groups=2, fitted=False).p_value)
    assert kstest(known, "uniform").pvalue > 0.02 and kstest(fitted, "uniform").pvalue > 0.02
    assert 0.35 < np.mean(fitted) < 0.62


def test_rates_that_are_known_or_shared_are_not_counted_as_fitted():
    equal = jm.Structure(absorbing=["dead"], fixed={("well", "dead"): 0.05}, equal=[[("ill", "well"), ("ill", "dead")]])
    model = em(structure=equal).fit(PANEL)
    test = jm.pearson_test(model, PANEL)
    assert test.p_lower == pytest.approx(chi2.sf(test.statistic, test.df - 2))
    free = em(structure=jm.Structure(absorbing=["dead"])).fit(PANEL)
    assert jm.likelihood_ratio(model, free, PANEL).df == 2
    given = em(structure=jm.Structure(absorbing=["dead"], initial="given")).fit(PANEL)
    # caught: π counted in one of two models and the likelihood given the first state in both
    with pytest.raises(ValueError, match="large must have more parameters than small, got 4 and 4"):
        jm.likelihood_ratio(given, free, PANEL, first="given")


def test_a_process_that_ages_is_found_out():
    process = jm.Process.from_generator([[0, 0.6], [0.6, 0]])
    panel, _ = jm.simulate(process, 200, 8, random_state=1)
    aged = jm.Panel.from_arrays(np.sqrt(panel.times), panel.values[:, 0].astype(int), panel.ids[panel.sequence_index])
    direct = jm.comparators.EM(emission="direct")
    assert jm.pearson_test(direct.fit(aged), aged).p_value < 1e-4
    assert jm.pearson_test(direct.fit(panel), panel).p_value > 0.01


def test_cells_hold_all_moves_and_few_expectations_are_merged():
    test = jm.pearson_test(MODEL, PANEL, fitted=False, least=5)
    cells = test.to_frame()
    moves = PANEL.state_table().values[1:].sum()  # those from death aside
    assert cells["observed"].sum() == moves and cells["expected"].sum() == pytest.approx(moves)
    groups = cells.groupby(["time_group", "gap_group", "source"])
    assert all(len(g) == 1 or g["expected"].min() >= 5 for _, g in groups)
    assert test.df == len(cells) - groups.ngroups
    assert "PearsonTest(statistic=" in repr(test)
    with pytest.raises(ValueError, match="states must be seen for Pearson's test, got a model of hidden states"):
        jm.pearson_test(HIDDEN, READINGS)
    with pytest.raises(jm.PanelError, match="two successive rows with a state that can be left, got none"):
        jm.pearson_test(MODEL, PANEL.head(1))
    with pytest.raises(ValueError, match="time_groups must be an integer of at least 1"):
        jm.pearson_test(MODEL, PANEL, time_groups=0)
    with pytest.raises(ValueError, match="model must be a fitted model of a process"):
        jm.pearson_test(PROCESS, PANEL)


def ward(seed, n=80, dead="entry", unclear=0.25, clock=1.0):
    """Visits until a death whose time is known, or the end of follow-up, where one is alive; some rows say no more."""
    rng = np.random.default_rng(seed)
    _, truth = jm.simulate(PROCESS, n, 2, gaps="regular", mean_gap=12.0, exact=["dead"], random_state=seed)
    rows = []
    for i in range(n):
        own = slice(truth.offsets[i], truth.offsets[i + 1])
        begins, states = truth.start_times[own] - truth.start_times[own][0], truth.states[own]
        over = rng.uniform(2.0, 9.0)
        died = begins[-1] if states[-1] == "dead" and begins[-1] < over else np.inf
        times = np.append(0.0, np.cumsum(0.1 + rng.exponential(1.2, 100)))
        for t in times[times < (min(died, over) if dead == "entry" else over)]:
            state = states[np.searchsorted(begins, t, side="right") - 1]
            hides = t > 0 and state != "dead" and rng.random() < unclear
            rows.append((i, t, "alive" if hides else state, "snapshot"))
        if dead == "entry":
            rows.append((i, died, "dead", "entry") if died < over else (i, over, "alive", "snapshot"))
    ids, times, values, kinds = (list(column) for column in zip(*rows, strict=True))
    return jm.Panel.from_arrays(
        np.power(times, clock), values, ids, kinds=kinds, sets={"alive": ["well", "ill"]}
    )  # fmt: skip


@pytest.mark.parametrize("dead", ["entry", "snapshot"])
def test_p_values_with_exact_deaths_and_sets_are_uniform(dead):
    """Caught: deaths taken as states at the ends of gaps that were planned so; rows of a set passed over, after which
    the dead are too few."""
    moves = jm.Structure(allowed=PROCESS.rate_matrix > 0, initial="given")
    known, fitted = [], []
    for seed in range(40):
        panel = ward(seed, dead=dead)
        model = em(structure=moves, tol=1e-6).fit(panel)
        fitted.append(jm.pearson_test(model, panel, time_groups=2, gap_groups=2).p_value)
        known.append(jm.pearson_test(MODEL, panel, time_groups=2, gap_groups=2, fitted=False).p_value)
    assert kstest(known, "uniform").pvalue > 0.02 and kstest(fitted, "uniform").pvalue > 0.02
    assert 0.35 < np.mean(fitted) < 0.65
    aged = ward(0, n=300, dead=dead, clock=0.6)
    assert jm.pearson_test(em(structure=moves).fit(aged), aged).p_value < 1e-3


def test_exact_deaths_are_counted_against_the_hazard_by_hand():
    panel = jm.Panel.from_arrays(
        [0, 2, 3.5, 0, 4, 0, 1], ["well", "alive", "dead", "well", "ill", "ill", "dead"], [1, 1, 1, 2, 2, 3, 3],
        kinds=["snapshot", "snapshot", "entry", "snapshot", "snapshot", "snapshot", "entry"],
        sets={"alive": ["well", "ill"]}, weights=[1, 1, 1, 2, 2, 1, 1],
    )  # fmt: skip
    Q = PROCESS.rate_matrix
    test = jm.pearson_test(MODEL, panel, time_groups=1, gap_groups=1, least=0, fitted=False)
    cells = test.to_frame().set_index(["source", "targets"])
    after = [expm(Q * t) for t in (2.0, 4.0)]
    alive = after[0][2, 1:] / after[0][2, 1:].sum()
    hazard = {
        "well": sum(-w * np.log(1 - P[2, 0]) for w, P in zip((1, 2), after, strict=True)),
        "ill": -np.log(1 - expm(Q)[1, 0]),
        "alive": -np.log(1 - alive @ expm(Q * 1.5)[1:, 0]),
    }
    for source, observed in (("well", 0), ("ill", 1), ("alive", 1)):
        assert cells.loc[(source, "dead"), "expected"] == pytest.approx(hazard[source], rel=1e-12)
        assert cells.loc[(source, "dead"), "observed"] == observed
    ill = np.array([P[2, 1] / P[2, 1:].sum() for P in after])
    assert cells.loc[("well", "ill"), "expected"] == pytest.approx(ill @ [1, 2], rel=1e-12)
    assert cells.loc[("well", "ill"), "observed"] == pytest.approx(ill[0] + 2, rel=1e-12)  # the set is shared out
    assert test.df == 5 - 1


@pytest.mark.parametrize(("values", "kinds", "match"), [
    (["well", "ill", "dead"], ["snapshot", "transition", "snapshot"], "states that are never left, .*row 1"),
    (["well", "ill", "dead"], ["snapshot", "entry", "snapshot"], "got one into another, first at .*row 1"),
    (["well", "alive", "dead", "well", "dead"], ["snapshot"] * 2 + ["entry"] + ["snapshot"] * 2, "in all .* row 4"),
])  # fmt: skip
def test_rows_that_pearson_cannot_count(values, kinds, match):
    ids = [1] * 3 + [2] * (len(values) - 3)
    times = [0, 1, 2, 0, 1][: len(values)]
    panel = jm.Panel.from_arrays(times, values, ids, kinds=kinds, sets={"alive": ["well", "ill"]})
    with pytest.raises(jm.PanelError, match=match):
        jm.pearson_test(MODEL, panel)


def test_sums_of_weighted_chi_squares():
    for n in (1, 2, 7, 30):
        for p in (0.9, 0.5, 0.01):
            assert weighted_chi2_sf(chi2.isf(p, n), np.ones(n)) == pytest.approx(p, abs=1e-9)
    rng = np.random.default_rng(0)
    w = np.array([1.0, 0.5, 0.25, 2.0, 0.7, 0.7])
    drawn = rng.chisquare(1, (200_000, 6)) @ w
    for x in (2.0, 5.0, 15.0):
        assert weighted_chi2_sf(x, w) == pytest.approx(np.mean(drawn > x), abs=5e-3)
    assert weighted_chi2_sf(1.0, np.zeros(3)) == 1.0


# ------------------------------------------------------------------------------------------------- the last value


def test_a_process_is_compared_with_the_last_value_by_hand():
    # well is left fast and for long: the last value is a bad guess one unit later
    quick = jm.JumpMeans.from_process(jm.Process.from_generator({"well": {"ill": 3.0}, "ill": {"well": 0.1}}))
    panel = jm.Panel.from_arrays(
        [0, 1, 0, 2, 0, 1, 0], ["well", "ill", "ill", "well", "ill", "ill", "ill"], ids=[1, 1, 2, 2, 3, 3, 4]
    )
    got = quick.against_last_value(panel)
    assert got.n == 3 and got.model == pytest.approx(1 / 3) and got.carried == pytest.approx(2 / 3)
    assert got.better and got.measure == "share wrong" and "better than the last value" in str(got)
    readings = HIDDEN.against_last_value(READINGS)
    assert readings.measure == "mean absolute error" and readings.n == 20


def test_summary_says_where_closing_steps_end_far_from_the_maximum(tmp_path):
    """A dense noisy signal: ten steps leave rates several times too high, and nothing said so."""
    truth = jm.Process([20.0, 5.0], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0.2, 0.8], sds=0.4))
    panel, _ = jm.simulate(truth, 1, 6000, mean_gap=0.003, random_state=0)
    model = jm.JumpMeans(2).fit(panel)
    assert model.rates_.max() > 3 * 20.0
    model.save(tmp_path / "m.jm")
    for known in (model, jm.load(tmp_path / "m.jm")):
        note = "; ".join(known.summary()["note"])
        assert "still falls by" in note and "refine='converged' goes on to the maximum of the likelihood" in note
    model.set_params(refine="converged").fit(panel)
    np.testing.assert_allclose(model.rates_, truth.rates, rtol=0.5)
    assert "still" not in "".join(model.summary().get("note", ""))


def test_summary_says_where_the_last_value_does_as_well(tmp_path):
    """Caught: a check that looks at the rows it predicts, and so always does better; one lost with the fitted panel."""
    slow, _ = jm.simulate(jm.Process.from_generator([[0, 0.05], [0.05, 0]]), 80, 5, random_state=4)
    model = jm.comparators.EM(emission="direct").fit(slow)
    note = model.summary()["note"]
    assert "no better than the last value carried forward (share wrong" in note[0] and note[1] == ""
    again = jm.comparators.EM(emission="direct").fit(slow)  # asked for only where the panel is gone
    assert pickle.loads(pickle.dumps(again)).summary()["note"][0] == note[0]
    sampled = jm.comparators.Gibbs(emission="direct", burn_in=20, n_samples=20).fit(slow)
    assert "no better than the last value carried forward" in sampled.summary()["note"][0]
    again.fit(slow).save(tmp_path / "slow.jm")
    assert jm.load(tmp_path / "slow.jm").summary()["note"][0] == note[0]
    restless, _ = jm.simulate(jm.Process.from_generator({"well": {"ill": 3.0}, "ill": {"well": 0.1}}), 80, 5)
    assert "note" not in again.fit(restless).summary().columns
    fast, _ = jm.simulate(HIDDEN.process_, 200, 6, random_state=5)
    for good in (jm.JumpMeans(2), jm.comparators.EM(2)):
        assert "note" not in good.fit(fast).summary().columns
    # one row each: nothing to predict, nothing to say
    assert jm.JumpMeans(emission="direct").fit(jm.Panel.from_arrays([0, 0], ["a", "b"], [1, 2])).against_last_value(
        jm.Panel.from_arrays([0, 0], ["a", "b"], [1, 2])
    ).n == 0  # fmt: skip


def test_a_fit_forgets_what_an_earlier_one_had():
    """Levels of people of the fit before were told beside the states of the next one."""
    panel, _ = jm.simulate(HIDDEN.process_, 20, 10, offsets=3.0, random_state=5)
    model = jm.JumpMeans(2, offsets="sequence").fit(panel)
    assert "offset_sd" in model.summary().columns
    assert "offset_sd" not in model.set_params(offsets=None).fit(panel).summary().columns
