"""Maximum likelihood with covariates: against matrix exponentials over pieces, R's msm, and laws.

The likelihood and its slopes are judged by `brute`, which forms e^{Qt} by scipy over every piece of every gap.
Planted faults that these tests were seen to catch: rates of a gap by the row at its end (brute force, msm), the sums of
covariates over jumps halved (msm), centres left out of a process at given values (msm's rates).
"""

import json
import os
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm

import jumpmeans as jm
from jumpmeans.comparators import EM
from jumpmeans.engines import Threads
from jumpmeans.fit.ascent import Task, look, parts_of, targets
from jumpmeans.kernels.least_error import jump_prices
from jumpmeans.kernels.pairs import integrate_pairs, transitions_of_pairs
from jumpmeans.model.dependence import lay_out
from jumpmeans.model.propagator import Propagator
from jumpmeans.passes import Block, Sequences
from jumpmeans.passes.least_error import err_least
from jumpmeans.passes.varying import Varying

pd = pytest.importorskip("pandas")
GOLDEN = Path(__file__).parent / "golden"
MSM = json.loads((GOLDEN / "msm_covariates.json").read_text())
MOVES = {1: [2, 3], 2: [1, 3]}
STRUCTURES = {
    "all": {"covariates": "all"},
    "shared": {"covariates": "shared"},
    "chosen": {"covariates": {(1, 2): ["age"], (2, 3): ["sex", "age"]}},
    "breaks": {"covariates": {1: ["sex"], 2: ["sex"]}, "breaks": [3, 6]},
}
AT = {"breaks": {"sex": 1, "time": 4.0}}


@pytest.fixture(scope="module")
def panel():
    frame = pd.read_csv(GOLDEN / "msm_covariates.csv")
    return jm.Panel.from_frame(frame, value="state", kind="obstype", covariates=["sex", "age"])


def structure(**more):
    return jm.Structure(**({"allowed": MOVES, "initial": "given"} | more))


def fit(panel, more, **options):
    return EM(**({"emission": "direct", "structure": structure(**more), "tol": 1e-12, "max_iter": 3000} | options)).fit(
        panel
    )


@pytest.fixture(scope="module")
def fitted(panel):
    return {name: fit(panel, more) for name, more in STRUCTURES.items()}


def brute(panel, process, breaks=(), with_age=True):
    """Log-likelihood given the first state, by e^{Qt} over pieces: covariates of the row before, time since 0."""
    total = 0.0
    sex, age = panel.covariates.column("sex"), panel.covariates.column("age")
    state = panel.values[:, 0].astype(int) - 1
    for i in range(panel.n_sequences):
        for row in range(panel.offsets[i] + 1, panel.offsets[i + 1]):
            at = {"sex": sex[row - 1]} | ({"age": age[row - 1]} if with_age else {})
            P, lo, hi = np.eye(3), panel.times[row - 1], panel.times[row]
            edges = [lo, *(b for b in breaks if lo < b < hi), hi]
            for a, b in pairwise(edges):
                if breaks:
                    at["time"] = a
                Q = process.at(at).rate_matrix
                P = P @ expm(Q * (b - a))
            if panel.kinds is not None and panel.kinds[row] == 2:
                P = P @ (Q - np.diag(np.diag(Q)))
            total += panel.weights[i] * np.log(P[state[panel.offsets[i] : row][-1], state[row]])
    return total


# ------------------------------------------------------------------------------------------------------- R's msm


@pytest.mark.parametrize("name", list(STRUCTURES))
def test_hazard_ratios_are_those_of_msm(name, fitted, panel):
    model, told = fitted[name], MSM[name]
    assert -2 * model.log_likelihood(panel, first="given") <= told["minus2loglik"] + 1e-4
    found = model.hazard_ratios(level=0.95)
    names = {"time[3 to 6]": "timeperiod[3,6)", "time[from 6]": "timeperiod[6,Inf)"}
    for row in found.itertuples(index=False):
        name = names.get(row.covariate, row.covariate)
        place = told["moves"].index(f"State {row[1]} - State {row[2]}")
        np.testing.assert_allclose(
            np.log([row.hazard_ratio, row.low, row.high]), np.log(told["ratios"][name][place]), atol=2e-3
        )


@pytest.mark.parametrize("name", list(STRUCTURES))
def test_the_process_at_given_values_is_that_of_msm(name, fitted):
    process = fitted[name].process_.at(AT.get(name, {"sex": 1, "age": 70}))
    np.testing.assert_allclose(process.rate_matrix, MSM[name]["generator"], atol=1e-3)
    table = fitted[name].generator(at=AT.get(name, {"sex": 1, "age": 70}))
    np.testing.assert_array_equal(table.values, process.rate_matrix)


R_CAV = """
library(msm)
cav$start <- ave(cav$age, cav$PTNUM, FUN = function(x) x[1])
write.csv(cav[, c("PTNUM", "years", "sex", "start", "state")], "cav.csv", row.names = FALSE)
Q <- rbind(c(0, .25, 0, .25), c(.166, 0, .166, .166), c(0, .25, 0, .25), c(0, 0, 0, 0))
model <- msm(state ~ years, subject = PTNUM, data = cav, qmatrix = Q, deathexact = 4, method = "BFGS",
  covariates = list("1-2" = ~ sex + start, "1-4" = ~ start), control = list(fnscale = 4000, maxit = 500, reltol = 1e-9))
ratios <- hazard.msm(model)
cat(format(c(model$minus2loglik, ratios$sex[1, 1], ratios$start[1:2, 1]), digits = 12), sep = "\\n")
"""


@pytest.mark.slow
def test_the_transplants_of_msm(tmp_path):
    """The data set cav that comes with msm, where R is: never a copy of it here, as its licence is another."""
    if shutil.which("Rscript") is None:
        return
    (tmp_path / "cav.R").write_text(R_CAV)
    run = subprocess.run(
        ["Rscript", "cav.R"], cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"}
    )
    if "there is no package" in run.stderr:
        return
    told = [float(x) for x in run.stdout.split()]
    frame = pd.read_csv(tmp_path / "cav.csv")
    frame["kind"] = np.where(frame["state"] == 4, "entry", "snapshot")
    panel = jm.Panel.from_frame(
        frame, id="PTNUM", time="years", value="state", kind="kind", covariates=["sex", "start"]
    )  # fmt: skip
    more = {
        "allowed": {1: [2, 4], 2: [1, 3, 4], 3: [2, 4]},
        "covariates": {(1, 2): ["sex", "start"], (1, 4): ["start"]},
    }
    model = fit(panel, more)
    assert -2 * model.log_likelihood(panel, first="given") <= told[0] + 1e-2
    coefs = model.process_.effects.coefs
    found = np.exp([coefs[0, 0, 1], coefs[1, 0, 1], coefs[1, 0, 3]])
    np.testing.assert_allclose(found, told[1:], atol=1e-2)


# --------------------------------------------------------------------------------------------------- brute force


@pytest.mark.parametrize("name", ["all", "breaks"])
def test_likelihood_by_matrix_exponentials_over_pieces(name, fitted, panel):
    """Age changes from row to row; rates change within gaps, where breaks are."""
    few = panel.select(np.arange(0, 200, 4))
    breaks = (3, 6) if name == "breaks" else ()
    model = fitted[name]
    expected = brute(few, model.process_, breaks, with_age=name == "all")
    np.testing.assert_allclose(model.log_likelihood(few, first="given"), expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", list(STRUCTURES))
def test_slopes_are_those_of_brute_force(name, fitted, panel):
    """Away from the maximum: the gradient of EM's own numbers against differences of the likelihood."""
    few = panel.select(np.arange(0, 200, 8))
    process = fitted[name].process_
    rng = np.random.default_rng(0)
    effects = process.effects.with_free(process.effects.free + 0.1 * rng.normal(size=process.effects.n_free))
    process = replace(process, effects=effects)
    laid = lay_out(effects, few)
    x = process.emission.encode(laid.panel)
    sequences = Sequences.of(Threads(1), laid.panel, x, process.states, laid.z)
    constraints = structure(**STRUCTURES[name]).constraints(process.states)
    task = Task.of(sequences, constraints, process.emission, process.emission.encode(few), few)
    point = look(task, process)
    here = parts_of(process, point.expected, constraints)[1]
    slope = here.weights * (targets(point, constraints)[1].values - here.values)
    breaks, with_age = ((3, 6), False) if name == "breaks" else ((), True)
    for i in range(effects.n_free):
        step = np.zeros(effects.n_free)
        step[i] = 1e-4
        ends = [
            brute(few, replace(process, effects=effects.with_free(effects.free + s * step)), breaks, with_age)
            for s in (1, -1)
        ]
        np.testing.assert_allclose(slope[i], (ends[0] - ends[1]) / 2e-4, rtol=1e-5, atol=1e-5)


def test_pairs_against_matrix_exponentials():
    """e^{Qt} and its integrals, from tiny gaps to gaps of 10⁶ mean dwells, for rates far apart and absorbing states."""
    rng = np.random.default_rng(1)
    for M in (1, 2, 5):
        Q = 10 ** rng.uniform(-3, 2, (4, M, M)) * (rng.random((4, M, M)) < 0.7)
        Q[:, -1] = 0.0
        index = np.arange(M)
        Q[:, index, index] = 0.0
        Q[:, index, index] = -Q.sum(axis=2)
        lengths = np.array([1e-9, 0.03, 1.7, 1e4])
        W, P, R = rng.random((4, M, M)), np.empty((4, M, M)), np.zeros((4, M, M))
        transitions_of_pairs(Q, np.arange(4), lengths, P)
        integrate_pairs(Q, np.arange(4), lengths, W, R)
        for k in range(4):
            np.testing.assert_allclose(P[k], expm(Q[k] * lengths[k]), rtol=1e-9, atol=1e-12)
            if lengths[k] < 10:  # the block matrix of Van Loan
                block = np.zeros((2 * M, 2 * M))
                block[:M, :M] = block[M:, M:] = Q[k].T
                block[:M, M:] = W[k]
                np.testing.assert_allclose(R[k], expm(block * lengths[k])[:M, M:], rtol=1e-8, atol=1e-14)


# ---------------------------------------------------------------------------------------------------------- laws


def test_the_likelihood_never_falls_and_leaps_change_nothing_but_the_time(panel):
    plain = fit(panel, STRUCTURES["all"], accelerate=False, tol=1e-10)
    fast = fit(panel, STRUCTURES["all"], tol=1e-10)
    for model in (plain, fast):
        assert np.all(np.diff(model.history_.values) >= -1e-9)
    assert fast.n_iter_ < plain.n_iter_
    np.testing.assert_allclose(fast.log_likelihood_, plain.log_likelihood_, atol=1e-5)
    np.testing.assert_allclose(fast.process_.effects.coefs, plain.process_.effects.coefs, atol=2e-3)


def test_units_of_covariates_do_not_matter(panel, fitted):
    age = panel.to_caller_order(panel.covariates.column("age"))
    moved = panel.with_covariates({"age": 365.25 * age - 1e4})
    model = fit(moved, STRUCTURES["all"])
    own = fitted["all"].process_.effects.coefs
    np.testing.assert_allclose(model.process_.effects.coefs[0], own[0], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(365.25 * model.process_.effects.coefs[1], own[1], rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(model.process_.rates, fitted["all"].process_.rates, rtol=1e-5)


def test_intervals_of_a_covariate_in_large_units(panel, fitted):
    """Such as a dose in kilograms: its effect moves by millions. Caught: the exponential of such a step."""
    age = panel.to_caller_order(panel.covariates.column("age"))
    model = fit(panel.with_covariates({"age": 1e-8 * age}), {"covariates": {(1, 2): ["age"]}})
    own = fit(panel, {"covariates": {(1, 2): ["age"]}}).hazard_ratios(per={"age": 10.0})
    found = model.hazard_ratios(per={"age": 1e-7})
    np.testing.assert_allclose(found["hazard_ratio"], own["hazard_ratio"], rtol=1e-4)
    np.testing.assert_allclose(found[["se_log", "low", "high"]], own[["se_log", "low", "high"]], rtol=1e-3)


def test_no_effects_are_no_covariates(panel):
    """With all effects 0, what goes by pairs is what goes by one table for all gaps."""
    plain = EM(emission="direct", structure=structure()).fit(panel)
    effects = fit(panel, STRUCTURES["all"], tol=1e-3).process_.effects
    process = replace(plain.process_, effects=effects.with_free(np.zeros(effects.n_free)))
    model = jm.JumpMeans.from_process(plain.process_)
    model.process_ = process
    np.testing.assert_allclose(model.log_likelihood(panel, "given"), plain.log_likelihood(panel), rtol=1e-12)
    blank = panel.blank(np.arange(1, panel.n_observations, 3))
    np.testing.assert_allclose(model.predict_proba(blank), plain.predict_proba(blank), atol=1e-11)
    np.testing.assert_allclose(
        model.prevalence(panel, [0, 1, 4], initial="observed").expected.values,
        plain.prevalence(panel, [0, 1, 4]).expected.values,
        atol=1e-12,
    )
    mine, own = model.decode(blank, "time"), plain.decode(blank)
    np.testing.assert_array_equal(mine.codes, own.codes)
    np.testing.assert_allclose(mine.start_times, own.start_times, atol=1e-6)
    expected, other = (
        Sequences.of(
            Threads(1), panel, process.emission.encode(panel), process.states,
            lay_out(p.effects, panel).z,
        ).expect(p)
        for p in (process, plain.process_)
    )  # fmt: skip
    moves = plain.process_.rate_matrix != 0
    np.testing.assert_allclose(expected.integrals[moves], other.integrals[moves], rtol=1e-9)


def test_a_group_of_its_own_is_a_process_of_its_own(panel, fitted):
    """Rates by sex alone: posterior and least error of each sex are those of its own process, to the same prices."""
    model = fit(panel, {"covariates": {1: ["sex"], 2: ["sex"]}}, tol=1e-6)
    blank = panel.blank(np.arange(1, panel.n_observations, 2))
    sex = panel.covariates.column("sex")[panel.offsets[:-1]]
    prices = jump_prices(model.process_.rate_matrix)
    for s in (0, 1):
        few, own = blank.select(sex == s), model.process_.at({"sex": s})
        alone = jm.JumpMeans.from_process(own)
        np.testing.assert_allclose(model.predict_proba(few), alone.predict_proba(few), atol=1e-11)
        x = own.emission.encode(few)
        found = err_least(
            Block.of(few, x, z=lay_out(model.process_.effects, few).z), None, Varying(model.process_), prices, 2
        )[0]
        block = Block.of(few, x)
        told = err_least(block, None, Propagator.of(own, block.longest_gap), prices, 2)[0]
        np.testing.assert_array_equal(found.states, told.states)
        np.testing.assert_allclose(found.starts, told.starts, atol=1e-6)


def test_rows_added_between_change_nothing(panel, fitted):
    model = fitted["breaks"]
    wide, rows = panel.insert_times(panel.ids, panel.start_times + 0.01)
    np.testing.assert_allclose(model.log_likelihood(wide), model.log_likelihood(panel), rtol=1e-12)
    at = {panel.ids[0]: [0.5, 3.0, 40.0]}
    np.testing.assert_allclose(model.predict_proba(panel, at=at).sum(axis=1), 1.0)
    assert len(model.predict_proba(panel)) == panel.n_observations
    decoded = model.decode(panel)
    np.testing.assert_array_equal(
        decoded.states_at({panel.ids[0]: [0.0]}) if hasattr(decoded, "states_at") else [1], [1]
    )
    assert len(rows) == panel.n_sequences


def test_constraints_hold(panel):
    more = {"equal": [[(1, 3), (2, 3)]], "fixed": {(2, 1): 0.2}, "covariates": "all"}
    process = fit(panel, more).process_
    Q = process.at({"sex": 1, "age": 70}).rate_matrix
    assert Q[1, 0] == 0.2 and np.isclose(Q[0, 2], Q[1, 2], rtol=1e-14)
    assert not np.isclose(Q[0, 2], process.at({"sex": 0, "age": 70}).rate_matrix[0, 2])
    assert jm.Structure(**({"allowed": MOVES, "initial": "given"} | more)).n_free(process) == 2 + 4


# ------------------------------------------------------------------------------------------------- what is answered


def test_effects_are_counted_and_tested(panel, fitted):
    small = fit(panel, {})
    large = fitted["all"]
    assert large.n_parameters_ - small.n_parameters_ == 8
    test = jm.likelihood_ratio(small, large, panel, first="given")
    assert test.df == 8
    np.testing.assert_allclose(
        test.statistic, 2 * (large.log_likelihood(panel, "given") - small.log_likelihood(panel, "given"))
    )
    assert jm.likelihood_ratio(fitted["shared"], large, panel).df == 6
    change = large.aic(panel, "given") - small.aic(panel, "given")
    np.testing.assert_allclose(change, 2 * 8 - test.statistic)


def test_frames_of_effects(fitted):
    model = fitted["all"]
    frame = model.coefficients_
    assert list(frame.columns) == ["covariate", "from", "to", "coefficient"] and len(frame) == 8
    ratios = model.hazard_ratios(per={"age": 10})
    ten = ratios[ratios["covariate"] == "age"]["hazard_ratio"].to_numpy()
    own = frame[frame["covariate"] == "age"]["coefficient"].to_numpy()
    np.testing.assert_allclose(ten, np.exp(10 * own))
    with pytest.raises(ValueError, match=r"per must name columns .*, got 'agee' \(did you mean 'age'\?\)"):
        model.hazard_ratios(per={"agee": 10})


def test_answers_at_given_values(fitted):
    model, at = fitted["all"], {"sex": 1, "age": 70}
    process = model.process_.at(at)
    for ask in (
        lambda m, **k: m.sojourn(**k),
        lambda m, **k: m.next_state(**k),
        lambda m, **k: m.transition_matrix(2.0, **k),
        lambda m, **k: m.total_time(5.0, **k),
        lambda m, **k: m.first_passage(3, **k),
        lambda m, **k: m.survival(3, [1, 5], **k),
        lambda m, **k: m.stationary(start=1, **k),
    ):
        np.testing.assert_array_equal(ask(model, at=at).values, ask(process).values)
    with pytest.raises(ValueError, match="at must be left out where rates depend on no covariates"):
        jm.JumpMeans.from_process(process).sojourn(at=at)


def test_forecasts_at_other_values_from_now_on(fitted, panel):
    """The last state stays as known as it was, then e^{Qt} at these values. Caught: values put into the past, too."""
    model = fitted["all"]
    alive = [i for i in range(40) if panel.values[panel.offsets[i + 1] - 1, 0] < 3]
    few = panel.select(alive[:6])
    values = few.values.copy()
    values[few.offsets[1:] - 1] = np.nan
    few = few.with_values(values)
    found = model.forecast(few, horizon=1.5, covariates={"sex": 1, "age": 70}).probs
    now = model.predict_proba(few)[few.offsets[1:] - 1]
    P = expm(model.process_.at({"sex": 1, "age": 70}).rate_matrix * 1.5)
    np.testing.assert_allclose(found, now @ P, atol=1e-10)
    stay = model.forecast(few, horizon=1.5)
    assert np.abs(stay.probs - found).max() > 1e-3
    one = few.covariates.column("age")[few.offsets[1:] - 1]
    same = model.forecast(few.select([0]), horizon=1.5, covariates={"age": float(one[0])})
    np.testing.assert_allclose(same.probs[0], stay.probs[0], atol=1e-12)

    # an only row in a window that began before: what is said of the future is not said of its past
    lone = jm.Panel.from_arrays([2.0], [np.nan], [0], start_times=[0.0], covariates={"sex": [0], "age": [50.0]})
    late = model.forecast(lone, horizon=1.0, covariates={"age": 500.0})
    before, after = (expm(model.process_.at({"sex": 0, "age": a}).rate_matrix * t) for a, t in ((50, 2), (500, 1)))
    np.testing.assert_allclose(late.probs[0], model.process_.initial_probs @ before @ after, atol=1e-10)
    assert late.times.tolist() == [3.0]
    pieces = fitted["breaks"]
    for ask, given, said in (
        (model, {"agee": 3}, r"covariates must be among .*'agee' \(did you mean 'age'\?\)"),
        (model, 3, "covariates must be {name: value}"),
        (pieces, {"time": 3}, "covariates must not be those with breaks"),
        (jm.JumpMeans.from_process(model.process_.at({})), {"age": 3}, "none here"),
    ):
        with pytest.raises(ValueError, match=said):
            ask.forecast(few, horizon=1, covariates=given)


def test_prevalence_is_the_mean_over_the_panel(fitted, panel):
    """By hand: each person's own e^{Qt} over the pieces between visits, their covariates held after the last."""
    model = fitted["all"]
    few = panel.select([0, 1, 2])
    found = model.prevalence(few, [2.5, 30.0], initial=[1.0, 0.0, 0.0]).expected.values
    sex, age = few.covariates.column("sex"), few.covariates.column("age")
    expected = np.zeros((2, 3))
    for i in range(3):
        for k, t in enumerate((2.5, 30.0)):
            p = np.array([1.0, 0, 0])
            for row in range(few.offsets[i], few.offsets[i + 1]):
                until = few.times[row + 1] if row + 1 < few.offsets[i + 1] else np.inf
                lasts = min(t, until) - few.times[row]
                if lasts > 0:
                    p = p @ expm(model.process_.at({"sex": sex[row], "age": age[row]}).rate_matrix * lasts)
            expected[k] += p / 3
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_bootstrap_and_files(panel, tmp_path):
    model = fit(panel, STRUCTURES["chosen"], tol=1e-7)
    found = jm.bootstrap(model, panel, 3, n_jobs=1, random_state=0).interval(lambda m: m.process_.effects.coefs)
    assert found.low.shape == (2, 3, 3) and np.all(found.low <= found.high)
    model.save(tmp_path / "model.jm")
    again = jm.load(tmp_path / "model.jm")
    np.testing.assert_array_equal(again.predict_proba(panel), model.predict_proba(panel))
    assert again.process_.effects.names == model.process_.effects.names
    with pytest.raises(ValueError, match="panel must be given to a model that was read"):
        again.hazard_ratios()
    assert len(again.hazard_ratios(panel)) == 3


def test_hidden_states():
    """States behind readings, with an effect on one rate: found again, and the likelihood is that of both groups."""
    rng = np.random.default_rng(5)
    panels = []
    for sex in (0, 1):
        process = jm.Process(
            [0.3 * np.exp(1.2 * sex), 0.5], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 5], sds=1)
        )
        panels.append(jm.simulate(process, 60, 12, random_state=int(rng.integers(100)))[0])
    ids = np.concatenate([p.sequence_index + 60 * k for k, p in enumerate(panels)])
    sexes = np.repeat(["M", "F"], [p.n_observations for p in panels])
    panel = jm.Panel.from_arrays(
        np.concatenate([p.times for p in panels]),
        np.concatenate([p.values for p in panels]),
        ids,
        covariates={"sex": sexes},
    )
    model = EM(2, structure=jm.Structure(covariates={0: ["sex"]}), tol=1e-10).fit(panel)
    effect = model.process_.effects.coefs[0, 0, 1]  # of M against F
    assert model.process_.effects.names == ["sex[M]"] and abs(effect + 1.2) < 0.5
    alone = sum(
        jm.JumpMeans.from_process(model.process_.at({"sex": s})).log_likelihood(p)
        for s, p in zip("MF", panels, strict=True)
    )
    np.testing.assert_allclose(model.log_likelihood(panel), alone, rtol=1e-10)


def test_an_effect_without_end_is_named():
    """No woman ever falls ill: her rate has no lower bound."""
    frame = pd.DataFrame(
        [(i, t, "ill" if i % 2 and t > i % 5 else "well", "M" if i % 2 else "F") for i in range(20) for t in range(5)],
        columns=["id", "time", "value", "sex"],
    )
    panel = jm.Panel.from_frame(frame, covariates=["sex"])
    only = jm.Structure(allowed={"well": ["ill"]}, covariates="all")
    with pytest.warns(UserWarning, match=r"effect of 'sex\[M\]' on 'well' → 'ill' has run to"):
        model = EM(emission="direct", structure=only).fit(panel)
    assert not model.converged_


def test_models_that_cannot_say_so(panel, fitted):
    with pytest.raises(ValueError, match="rates must be the same for all sequences"):
        jm.pearson_test(fitted["all"], panel)
    with pytest.raises(ValueError, match="neither covariates nor breaks"):
        jm.comparators.Gibbs(emission="direct", structure=structure(covariates="all")).fit(panel)
    plain = jm.Panel.from_frame(pd.read_csv(GOLDEN / "msm_covariates.csv"), value="state", kind="obstype")
    with pytest.raises(ValueError, match="must have the covariates"):
        fitted["all"].predict(plain)
    assert not hasattr(fit(panel, {}), "coefficients_")
