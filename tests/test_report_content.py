"""What a report says, number by number, without a page."""

import json
import math

import numpy as np
import pytest
from scipy.linalg import expm

import jumpmeans as jm
from jumpmeans.comparators import EM, CarriedForward, Gibbs, Interpolation, MLTrajectory, MostCommon
from jumpmeans.data.interval import Interval
from jumpmeans.estimators.aalen_johansen import aalen_johansen
from jumpmeans.report.content import make_content
from jumpmeans.report.sequences import GRIDS, LETTERS, MOST_ROWS, browse

ILLNESS = jm.Process.from_generator(
    {"well": {"ill": 0.3, "dead": 0.05}, "ill": {"well": 0.2, "dead": 0.2}, "dead": {}}, initial_probs=[0.8, 0.2, 0.0]
)
LEVELS = jm.Process([0.2, 0.3], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 5], sds=1))


@pytest.fixture(scope="module")
def illness():
    panel, _ = jm.simulate(ILLNESS, 30, 8, random_state=1)
    weights = np.repeat(np.arange(1.0, 31.0), panel.lengths)
    values = panel.decode_values(panel.values[:, 0])
    panel = jm.Panel.from_arrays(panel.times, values, panel.ids[panel.sequence_index], weights=weights)
    return jm.JumpMeans.from_process(ILLNESS), panel


@pytest.fixture(scope="module")
def levels():
    panel, _ = jm.simulate(LEVELS, 25, 10, random_state=2)
    return jm.JumpMeans(2).fit(panel), panel


def decoded(content, record, name):
    return record["a"] + np.cumsum(record[name]) * content["sequences"]["tick"]


def test_states_are_those_of_the_process_and_the_paths(illness):
    model, panel = illness
    paths = model.decode(panel)
    states = make_content(model, panel)["states"]
    time = panel.weights @ paths.time_in_state()
    # caught: shares that forget the weights of the sequences
    assert [s["share"] for s in states] == pytest.approx(time / time.sum())
    assert [s["label"] for s in states] == ["well", "ill", "dead"]
    assert [s["dwell"] for s in states] == [pytest.approx(1 / 0.35), pytest.approx(2.5), None]
    assert [s["absorbing"] for s in states] == [False, False, True]
    assert states[2]["next"] == []
    assert states[0]["next"] == [[1, pytest.approx(6 / 7)], [2, pytest.approx(1 / 7)]]


def until_death(panel):
    """The same rows, but those after the first one of death."""
    states = panel.decode_values(panel.values[:, 0])
    first = np.r_[True, np.diff(panel.sequence_index) > 0]
    alive = first | (states != "dead") | np.r_[False, states[:-1] != "dead"]
    return jm.Panel.from_arrays(
        panel.times[alive], states[alive], panel.sequence_index[alive],
        weights=panel.weights[panel.sequence_index[alive]],
    )  # fmt: skip


def test_prevalence_counts_who_is_under_observation(illness):
    model, panel = illness
    found = make_content(model, panel)["prevalence"]
    frame = model.decode(panel).to_frame()
    assert found["ended"] is False
    # caught: the last moment of a window not counted; the dead dropped while they are still seen
    for k in (0, 7, 40, 100):
        t, weight = found["times"][k], dict.fromkeys(["well", "ill", "dead"], 0.0)
        for i, id in enumerate(panel.ids.tolist()):
            own = frame[frame["id"] == id]
            first, end = own["start"].iloc[0], own["end"].iloc[-1]
            if first + t <= end + 1e-4:
                weight[str(own[own["start"] <= first + t]["state"].iloc[-1])] += panel.weights[i]
        total = sum(weight.values())
        assert found["n"][k] == pytest.approx(total, rel=1e-4)
        assert found["shares"][k] == pytest.approx([w / total for w in weight.values()], abs=2e-3)
    expected = np.array([0.8, 0.2, 0.0]) @ expm(ILLNESS.rate_matrix * found["times"][40])
    assert found["expected"][40] == pytest.approx(expected, abs=2e-3)


def test_prevalence_where_death_ends_a_sequence(illness):
    """Shares by the product over the moves, each out of those of its state who are under observation just before."""
    model, panel = illness[0], until_death(illness[1])
    found = make_content(model, panel)["prevalence"]
    assert found["ended"] is True
    names = ["well", "ill", "dead"]
    dwells, moves = [], []
    for w, (_, own) in zip(panel.weights, model.decode(panel).to_frame().groupby("id", sort=False), strict=True):
        t, states = own["start"].to_numpy() - own["start"].iloc[0], [names.index(str(x)) for x in own["state"]]
        until = [*t[1:], own["end"].iloc[-1] - own["start"].iloc[0]]
        dwells += [(m, a, b, w) for m, a, b in zip(states, t, until, strict=True)]
        moves += [(when, m, n, w) for when, m, n in zip(t[1:], states, states[1:], strict=False)]
    start = np.array([sum(w for m, a, _, w in dwells if m == k and a == 0) for k in range(3)])
    # caught: who moves at a time not at risk just before it; those who came at that time at risk already
    for k in (7, 40, 80):
        p = start / start.sum()
        for when, m, n, w in sorted(moves):
            if when <= found["times"][k]:
                part = w / sum(weight for s, a, b, weight in dwells if s == m and a < when <= b)
                p[n] += p[m] * part
                p[m] -= p[m] * part
        assert found["shares"][k] == pytest.approx(p, abs=2e-3)
        alive = sum(w for s, a, b, w in dwells if s < 2 and a <= found["times"][k] < b)
        assert found["n"][k] == pytest.approx(alive, rel=1e-3)


def test_prevalence_of_those_who_leave_alive_is_not_forgotten():
    """Windows of random length: the shares are those of the process, for which nobody left.

    Caught: the dead counted on beside those still seen alive, who become fewer as windows end.
    """
    _, truth = jm.simulate(ILLNESS, 3000, 40, mean_gap=0.4, random_state=5)
    sequence = np.repeat(np.arange(3000), np.diff(truth.offsets))
    begin = truth.start_times[truth.offsets[:-1]]
    until = np.minimum(np.random.default_rng(0).uniform(1, 12, 3000), truth.end_times - begin)[sequence]
    start = truth.start_times - begin[sequence]
    kept = start <= until
    codes, start, until = truth.codes[kept], start[kept], until[kept]
    last = np.append(np.diff(sequence[kept]) > 0, True)
    end = np.where(last, until, np.append(start[1:], 0.0))
    t = np.array([0.0, 2.0, 5.0, 8.0])
    found = aalen_johansen(codes, start, end, last, np.ones(len(codes)), 3, t)
    expected = [np.array([0.8, 0.2, 0.0]) @ expm(ILLNESS.rate_matrix * x) for x in t]
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_a_record_holds_the_sequence(levels):
    model, panel = levels
    content = make_content(model, panel)
    sequences = content["sequences"]
    assert sequences["total"] == len(sequences["list"]) == 25 and sequences["cut"] == 0
    for i in (0, 11, 24):
        record, own = sequences["list"][i], slice(panel.offsets[i], panel.offsets[i + 1])
        assert decoded(content, record, "t") == pytest.approx(panel.times[own], abs=sequences["tick"])
        assert record["x"][0] == pytest.approx(panel.values[own, 0], rel=1e-5)
        paths, dwells = model.trajectories_, slice(*model.trajectories_.offsets[i : i + 2])
        assert record["s"] == paths.codes[dwells].tolist()
        assert decoded(content, record, "b") == pytest.approx(paths.start_times[dwells], abs=sequences["tick"])
        assert record["a"] + record["z"] * sequences["tick"] == pytest.approx(paths.end_times[i], abs=sequences["tick"])


def test_the_band_is_the_posterior(levels):
    model, panel = levels
    sequences = make_content(model, panel)["sequences"]
    place = {letter: k / 63 for k, letter in enumerate(LETTERS.tolist())}
    for i in (3, 20):
        one = panel.select([i])
        even = np.linspace(one.start_times[0], one.end_times[0], sequences["grid"] + 1)
        found = np.reshape([place[letter] for letter in sequences["list"][i]["p"]], (-1, 2))
        # caught: even times before the rows; another sequence's probabilities
        expected = np.vstack([model.predict_proba(one), model.predict_proba(one, at={one.ids[0]: even})])
        assert np.abs(found - expected).max() <= 0.5 / 63 + 1e-12


def test_misfit_is_minus_the_log_likelihood_a_row(levels):
    model, panel = levels
    blank = panel.blank(np.arange(panel.offsets[4], panel.offsets[5] - 1))  # one value left in the fifth
    blank = blank.blank(np.arange(panel.offsets[6], panel.offsets[7]))  # none in the seventh
    records = make_content(model, blank)["sequences"]["list"]
    for i, n in ((0, 10), (4, 1)):
        assert records[i]["m"] == pytest.approx(-model.log_likelihood(blank.select([i])) / n, rel=1e-3)
    assert records[6]["m"] is None
    assert records[6]["x"][0] == [None] * 10


def test_errors_stand_beside_the_simple_rules(levels):
    model, panel = levels
    bins = [2.5]
    errors = make_content(model, panel, held_out=0.3, bins=bins, random_state=4)["overview"]["errors"]
    masked, truth = jm.hold_out(panel, 0.3, random_state=4)
    rivals = [jm.JumpMeans(2), CarriedForward(), Interpolation(), MostCommon(bins=bins)]
    expected = [jm.reconstruction_error(r.fit(masked).predict_value(masked), truth, bins=bins) for r in rivals]
    assert [row["error"] for row in errors["tables"][0]["rows"]] == pytest.approx(expected)
    assert errors["tables"][0]["is_share"] is True and errors["rows"] == 75
    plain = make_content(model, panel, held_out=0.3, random_state=4)["overview"]["errors"]["tables"][0]
    guess = CarriedForward().fit(masked).predict_value(masked)
    assert plain["measure"] == "mean absolute error" and [row["own"] for row in plain["rows"]] == [True] + [False] * 3
    # caught: the model scored on rows that its fit had seen
    blind, told = (jm.JumpMeans(2).fit(seen).predict_value(masked) for seen in (masked, panel))
    scores = [jm.reconstruction_error(x, truth, measure="mae") for x in (blind, told)]
    assert plain["rows"][0]["error"] == pytest.approx(scores[0], rel=1e-9) and scores[0] != pytest.approx(scores[1])
    assert plain["rows"][1]["error"] == pytest.approx(jm.reconstruction_error(guess, truth, measure="mae"))
    off = np.abs(guess[truth.rows] - truth.values) - plain["rows"][1]["error"]
    clustered = math.sqrt(sum(off[truth.ids == id].sum() ** 2 for id in np.unique(truth.ids))) / len(off)
    assert plain["rows"][1]["half"] == pytest.approx(1.96 * clustered)


def test_verdict_names_the_simple_rule_that_wins(levels):
    model, panel = levels
    worse = {"JumpMeans": 0.3, "interpolation": 0.2}
    better = {"JumpMeans": 0.1, "interpolation": 0.2}
    verdicts = [
        make_content(model, panel, held_out=e)["overview"]["errors"]["tables"][0]["verdict"] for e in (worse, better)
    ]
    assert verdicts[0].startswith("A simple rule, interpolation, errs less")
    assert verdicts[1] == "The model errs less than the best simple rule, interpolation."


def test_what_compare_found_is_told_as_it_is(levels):
    """Caught: the posterior of the model taken for a simple rule beside its trajectory."""
    model, panel = levels
    found = jm.compare(panel, {"mine": jm.JumpMeans(2), "interpolation": Interpolation()}, folds=1, n_jobs=1)
    table = make_content(model, panel, held_out=found)["overview"]["errors"]["tables"][0]
    assert [row["name"] for row in table["rows"]] == [row["name"] for row in found.rows]
    assert [row["own"] for row in table["rows"]] == [row["name"].startswith("mine") for row in found.rows]
    assert [row["error"] + row["half"] for row in table["rows"]] == pytest.approx([row["high"] for row in found.rows])
    assert (table["verdict"], table["measure"]) == (found.verdict, found.measure)


def test_history_is_the_objective_by_term(levels):
    model, panel = levels
    history = make_content(model, panel)["overview"]["history"]
    values = {term["name"]: term["values"] for term in history["terms"]}
    assert values["objective"] == pytest.approx(model.objective_history_, rel=1e-6)
    assert values["observations"][-1] == pytest.approx(model.cost_.observations, rel=1e-6)
    assert len(model.cost_history_) == len(history["iterations"])


def test_few_sequences_are_kept_where_there_is_no_room(levels):
    model, panel = levels
    paths = model.decode(panel)
    sizes = []
    for room in (100_000, 8_000, 3_000):
        found = browse(model, panel, paths, room)
        sizes.append((found["grid"], len(found["list"])))
        assert len(json.dumps(found["list"], separators=(",", ":"))) <= room + 2
    # caught: sequences dropped before the band is made coarser
    assert sizes[0] == (GRIDS[0], 25)
    assert sizes[1][0] < GRIDS[0] and sizes[2][0] == GRIDS[-1] and 1 <= sizes[2][1] < 25


def test_of_a_long_sequence_the_beginning_is_kept():
    n = MOST_ROWS + 500
    panel = jm.Panel.from_arrays(np.arange(n), np.random.default_rng(0).normal(size=n), np.zeros(n, int))
    model = jm.JumpMeans.from_process(LEVELS)
    sequences = make_content(model, panel)["sequences"]
    record = sequences["list"][0]
    assert len(record["t"]) == MOST_ROWS and sequences["cut"] == 1
    assert record["z"] * sequences["tick"] == pytest.approx(MOST_ROWS - 1)


def test_dates_keep_minutes():
    times = np.array(["2024-03-01T08:30", "2024-03-05T23:59", "2024-04-01T00:01"], dtype="datetime64[ns]")
    panel = jm.Panel.from_arrays(times, ["a", "b", "a"], ids=[1, 1, 1])
    process = jm.Process([0.1, 0.1], [[0, 1], [1, 0]], states=["a", "b"])
    content = make_content(jm.JumpMeans.from_process(process), panel)
    record = content["sequences"]["list"][0]
    origin = np.datetime64(content["time"]["origin"], "ms")
    minutes = np.rint(decoded(content, record, "t") * 1440).astype(int)
    assert (origin + minutes.astype("timedelta64[m]")).astype("datetime64[m]").tolist() == (
        times.astype("datetime64[m]").tolist()
    )
    assert content["time"]["unit"] == "days"


def test_people_have_levels_of_their_own():
    """A sequence is drawn at the level of its person. Caught: the levels of all drawn beside readings of one."""
    process = jm.Process([0.5, 0.5], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0.0, 4.0], sds=1.0))
    panel, _ = jm.simulate(process, 12, 15, mean_gap=0.5, offsets=20.0, random_state=0)
    model = jm.JumpMeans(2, offsets="sequence").fit(panel)
    content = make_content(model, panel)
    for record, offset in zip(content["sequences"]["list"], model.offsets_["offset"], strict=True):
        np.testing.assert_allclose(record["l"][0], model.emission_.means + offset, rtol=1e-5, atol=1e-5)
    plain = make_content(jm.JumpMeans(2).fit(panel), panel)
    assert all("l" not in record for record in plain["sequences"]["list"])


def test_effects_of_covariates_have_a_table():
    process = jm.Process([0.5, 0.5], [[0, 1], [1, 0]], states=["a", "<b>"])
    process = process.with_effects({"x": {"a": 0.5, "<b>": -1.0}}, at={"x": 0.0})
    model = jm.JumpMeans.from_process(process)
    panel, _ = jm.simulate(process, 5, 6, covariates={"x": np.arange(5.0)})
    found = make_content(model, panel)["effects"]
    assert found["level"] is None and [row["ratio"] for row in found["rows"]] == pytest.approx(np.exp([0.5, -1.0]))
    coefs = process.effects.coefs
    bounds = Interval.of(coefs, coefs - 1.0, coefs + 1.0, 0.8)
    first = make_content(model, panel, effects_interval=bounds)["effects"]["rows"][0]
    assert first["interval"] == pytest.approx(np.exp([-0.5, 1.5]))
    with pytest.raises(ValueError, match="effects_interval must have low and high of all"):
        make_content(model, panel, effects_interval=(1, 2))


def test_samplers_have_intervals_and_others_take_them(levels):
    model, panel = levels
    gibbs = Gibbs(2, emission="gaussian", n_samples=20, burn_in=10, random_state=0).fit(panel.select(range(8)))
    content = make_content(gibbs, panel.select(range(8)))
    low, high = np.quantile(1 / gibbs.samples_.rates, [0.05, 0.95], axis=0)
    assert np.array([s["interval"] for s in content["states"]]) == pytest.approx(
        np.column_stack([low, high, [0.9, 0.9]])
    )

    class Bounds:
        low, high, level = model.process_.sojourn(), np.array([[10.0], [20.0]]), 0.8

    assert make_content(model, panel, dwell_interval=Bounds)["states"][1]["interval"][1:] == [20, 0.8]
    assert make_content(model, panel)["states"][1]["interval"] is None


@pytest.mark.parametrize(
    "make",
    [
        lambda panel: jm.InfiniteJumpMeans().fit(panel),
        lambda panel: EM(2, emission="gaussian").fit(panel),
        lambda panel: MLTrajectory(LEVELS, max_jumps_per_gap=1).fit(panel),
        lambda panel: jm.JumpMeans.from_process(LEVELS),
    ],
    ids=["infinite", "EM", "most likely", "given"],
)
def test_every_model_of_a_process_has_a_report(make, levels):
    panel = levels[1]
    model = make(panel)
    content = make_content(model, panel, held_out=0.3)
    json.dumps(content, allow_nan=False)
    assert len(content["sequences"]["list"]) == 25
    assert content["overview"]["errors"]["tables"][0]["rows"][0]["name"] == type(model).__name__
    assert sum(state["share"] for state in content["states"]) == pytest.approx(1)


def test_a_model_without_posterior_has_no_band(levels):
    model, panel = levels

    class Paths:
        process_, decode, get_params = model.process_, model.decode, model.get_params

    content = make_content(Paths(), panel)
    assert {record["p"] for record in content["sequences"]["list"]} == {None}


def test_several_columns_of_mixed_kinds():
    emission = [jm.emissions.Gaussian([0, 5], sds=1), jm.emissions.Categorical([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"])]
    process = jm.Process([0.2, 0.3], [[0, 1], [1, 0]], emission=emission)
    panel, _ = jm.simulate(process, 6, 5)
    number, symbol = make_content(jm.JumpMeans.from_process(process), panel)["columns"]
    assert number["levels"] == [0, 5] and number["ticks"] is None
    assert symbol["levels"] == [0, 1]
    assert [(key, name) for key, _, name in symbol["values"]] == [(0, "no"), (1, "yes")]
    assert all(height < 0 for _, height, _ in symbol["values"])  # symbols below the states


def test_warnings_are_passed_on_and_added(levels):
    panel = levels[1]
    process = jm.Process([0.2, 0.3, 0.1], np.ones((3, 3)) / 2 - np.eye(3) / 2, states=["a", "b", "c"])
    seen = jm.Panel.from_arrays([0, 1], ["a", "b"], ids=[1, 1])
    own = make_content(jm.JumpMeans.from_process(process), seen, warnings=["mind the gap"])["overview"]["warnings"]
    assert own == ["mind the gap", "No path visits 1 state: c."]
    with pytest.warns(UserWarning, match="still falls"):
        short = jm.JumpMeans(2, max_iter=1, refine=0).fit(panel)
    assert any("not converged" in warning for warning in make_content(short, panel)["overview"]["warnings"])


@pytest.mark.parametrize("model", [jm.JumpMeans(2), CarriedForward()])
def test_a_model_without_states_is_refused(model, levels):
    with pytest.raises(ValueError, match=r"model must be fitted and have a process_, got \w+; call fit"):
        make_content(model, levels[1])


@pytest.mark.parametrize("held_out", [0, 1.5, "half", {}, {"a": "b"}, True])
def test_wrong_hold_outs_are_refused(held_out, levels):
    with pytest.raises(ValueError, match=r"held_out must (be None, a share|give a number)"):
        make_content(*levels, held_out=held_out)


def test_wrong_intervals_are_refused(levels):
    with pytest.raises(ValueError, match=r"dwell_interval must have low and high for each of the 2 states"):
        make_content(*levels, dwell_interval=(1, 2))


def test_verdict_reckons_with_chance():
    from jumpmeans.report.rivals import _verdict

    rows = [{"name": "m", "error": 0.3}, {"name": "r", "error": 0.2}]
    own, rival = np.zeros(20), np.zeros(20)
    own[:6], rival[6:10] = 1.0, 1.0
    # caught: rows of one sequence taken for so many witnesses
    assert _verdict(rows, [own, rival], np.repeat(np.arange(4), 5)).startswith("The model and the best simple rule, r,")
    assert _verdict(rows, [np.full(20, 0.3), np.full(20, 0.2)], np.arange(20)).startswith("A simple rule, r, errs less")


def test_what_is_expected_starts_where_people_do_if_first_states_are_given():
    """Planted: the uniform π that a process shows which has none, a third of all dead as they come."""
    process = jm.Process.from_generator({"well": {"ill": 0.4, "dead": 0.05}, "ill": {"dead": 0.3}}, [0.7, 0.3, 0])
    panel, _ = jm.simulate(process, 40, 5, random_state=0)
    structure = jm.Structure(allowed={"well": ["ill", "dead"], "ill": ["dead"]}, initial="given")
    model = jm.comparators.EM(emission="direct", structure=structure).fit(panel)
    shares = make_content(model, panel)["prevalence"]
    assert shares["expected"][0] == shares["shares"][0]
