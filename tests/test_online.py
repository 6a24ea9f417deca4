"""OnlineDecoder: at every row equal to the offline decode of the rows so far; kept, saved, refused as it should be."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jumpmeans as jm
import reference
from all_families import EXAMPLES

PAIR = jm.Process([0.1, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0.0, 5.0], sds=1.0))
CHAIN = jm.Process.from_generator({"well": {"ill": 0.3}, "ill": {"well": 0.1, "dead": 0.2}})


@st.composite
def scenes(draw, told=True):
    """A model and a panel, kinds of rows and known states: any number of candidates, gaps of all sizes, blanks, states
    seen or hidden; `told`: whether rows may be other than snapshots."""
    M = draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    P = rng.random((M, M)) * (rng.random((M, M)) < draw(st.sampled_from([0.6, 1.0])))
    np.fill_diagonal(P, 0.0)
    P[np.arange(M), (np.arange(M) + 1) % M] += 0.1
    P /= P.sum(axis=1, keepdims=True)
    rates = rng.exponential(1.0, M) * 10.0 ** rng.uniform(-1, 1, M)
    if draw(st.booleans()):
        last = draw(st.integers(0, M - 1))
        rates[last], P[last] = 0.0, 0.0
    seen = draw(st.booleans())
    emission = None if seen else jm.emissions.Gaussian(np.arange(M) * 1.5, sds=1.0)
    process = jm.Process(rates, P, emission=emission)
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=4))
    plain = not told or draw(st.booleans())
    times, ids, values, kinds, known = [], [], [], [], []
    for k, n in enumerate(lengths):
        x = rng.integers(0, M, n).astype(float) if seen else rng.normal(rng.integers(0, M, n) * 1.5, 1.0)
        x[rng.random(n) < 0.25] = np.nan
        own = np.array(["snapshot", "transition", "entry"])[rng.choice(3, n, p=[1, 0, 0] if plain else [0.6, 0.2, 0.2])]
        gaps = 10.0 ** rng.uniform(-2, 1, n)
        # moves on the day of the row before; two states are never entered at one instant
        same = (own != "snapshot") & (np.append("entry", own[:-1]) != "entry") & (rng.random(n) < 0.3)
        gaps[same] = 0.0
        times.append(100.0 * k + np.cumsum(gaps))
        ids.append(np.full(n, k))
        values.append(x)
        kinds += own.tolist()
        known += [
            None if plain or y == y or rng.random() < 0.5 else "low" if rng.random() < 0.5 else int(rng.integers(M))
            for y in x
        ]
    panel = jm.Panel.from_arrays(
        np.concatenate(times), np.concatenate(values), np.concatenate(ids), kinds=kinds, true_states=known,
        sets={"low": [0, 1]},
    )  # fmt: skip
    model = jm.JumpMeans.from_process(
        process,
        jumps_per_gap=draw(st.sampled_from(["auto", 1, 3])),
        first_dwell=draw(st.sampled_from(["complete", "running"])),
    )
    return model, panel, kinds, known


def prefix(panel, s, n):
    return panel.select([s]).head(n)


@given(scenes())
@settings(max_examples=200)
def test_equals_the_decode_of_the_rows_so_far(scene):
    """The law, with since and probabilities; seen to fail with the turn of a running dwell taken by h, with a row
    charged before the candidates of its gap, with two jumps where a gap has room for one, with a barred gap left open,
    with an entry that need not jump, and with a pinned row that has no candidate of its own."""
    model, panel, kinds, known = scene
    online = jm.OnlineDecoder(model, sets={"low": [0, 1]})
    for s in range(panel.n_sequences):
        for row in range(panel.offsets[s], panel.offsets[s + 1]):
            value, n = panel.values[row, 0], row + 1 - panel.offsets[s]
            told = refusal = None
            try:
                told = online.update(s, panel.times[row], value, kind=kinds[row], true_state=known[row])
            except jm.InfeasibleError as error:
                refusal = error
            part = prefix(panel, s, n)
            if refusal is not None:
                with pytest.raises(jm.InfeasibleError):
                    model.decode(part, criterion="online")
                break
            found = model.decode(part, criterion="online")
            if told.margin > 1e-9:  # at a tie either is right
                assert told.state == told.best == found.states[-1]
                assert told.since == pytest.approx(found.start_times[-1], rel=1e-12, abs=1e-12)
            try:
                np.testing.assert_allclose(told.probs, model.predict_proba(part)[-1], rtol=1e-9, atol=1e-13)
            except jm.InfeasibleError:  # a dwell of no length costs nothing if it runs, but has no density
                assert np.isnan(told.probs).all()
    assert online.lost == 0


@given(scenes(told=False))
@settings(max_examples=40)
def test_margin_equals_brute_force(scene):
    """Against the O(n²) decoder of reference.py, ended in each state by force; fails if the second best is the second
    in order, not in cost."""
    model, panel = scene[:2]
    params, prices, search, _ = model._decoder_
    lam, X = params.rates, np.full((len(params.rates),) * 2, np.inf)
    used = params.transition_probs > 0
    X[used] = -prices.transition * np.log(params.transition_probs[used])
    cost = params.emission.cost(params.emission.encode(panel), prices.emission)
    online = jm.OnlineDecoder(model)
    rows = slice(*panel.offsets[:2])
    try:
        told = online.update_many(np.zeros(rows.stop, int), panel.times[rows], panel.values[rows, 0])
    except jm.InfeasibleError:
        return
    tau = panel.times[rows] - panel.times[0]
    cand_time, cand_row = [], []
    for row in range(1, len(tau)):
        for f in range(1, search.base + 1):
            cand_time.append(tau[row - 1] + f * (tau[row] - tau[row - 1]) / (search.base + 1))
            cand_row.append(row)
    values = []
    for s in range(len(lam)):
        own = cost[rows].copy()
        own[-1, np.arange(len(lam)) != s] = np.inf
        best = reference.decode(own, tau[-1], lam, X, bool(search.first_running), cand_time, cand_row)
        values.append(best if isinstance(best, float) else best[0])
    # no jump lies behind the last row, so that the state there is the last one
    first, second = np.sort(values)[:2]
    expected = second - first if math.isfinite(second) else math.inf
    assert told.margin[-1] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_rows_of_all_at_once_and_one_by_one_are_the_same():
    panel, _ = jm.simulate(PAIR, 30, 20, random_state=1)
    together, apart = jm.OnlineDecoder(PAIR), jm.OnlineDecoder(PAIR)
    order = np.argsort(panel.times, kind="stable")
    ids = panel.sequence_index[order]
    told = together.update_many(ids, panel.times[order], panel.values[order, 0])
    for i, row in enumerate(order):
        one = apart.update(int(ids[i]), panel.times[row], panel.values[row, 0])
        assert (one.state, one.since, one.margin) == (told.state[i], told.since[i], told.margin[i])
    now = together.now()
    np.testing.assert_array_equal(now.state, apart.now(now.id.tolist()).state)
    assert list(told.to_frame().columns) == ["id", "time", "state", "since", "best", "margin", "changed"]


@given(scenes())
@settings(max_examples=40)
def test_kinds_of_all_at_once_and_one_by_one_are_the_same(scene):
    """Fails if the kind of the row before is that of another sequence."""
    model, panel, kinds, known = scene
    together, apart = (jm.OnlineDecoder(model, sets={"low": [0, 1]}) for _ in range(2))
    try:
        told = together.update_many(
            panel.sequence_index, panel.times, panel.values[:, 0], kinds=kinds, true_states=known
        )
    except jm.InfeasibleError:
        return
    for i, s in enumerate(panel.sequence_index.tolist()):
        one = apart.update(s, panel.times[i], panel.values[i, 0], kind=kinds[i], true_state=known[i])
        assert (one.state, one.since, one.margin) == (told.state[i], told.since[i], told.margin[i])
        np.testing.assert_array_equal(one.probs, told.probs[i])


def test_states_that_cannot_be_the_first():
    """Of a model whose first state is known, as the offline decode has it; fails if the first row is charged as any."""
    panel, _ = jm.simulate(PAIR, 30, 12, random_state=5)
    model = jm.JumpMeans(
        states=["calm", "high"], emission="gaussian", structure=jm.Structure(initial={"calm": 1.0})
    ).fit(panel)
    first = panel.values[panel.offsets[:-1], 0]
    high = np.flatnonzero(first > 4.0)
    assert len(high)
    online = jm.OnlineDecoder(model)
    for s in high.tolist():
        told = online.update(s, 0.0, first[s])
        assert told.state == "calm" == model.decode(panel.select([s]).head(1), criterion="online").states[-1]
        assert told.margin == np.inf


def test_a_death_on_the_day_of_the_last_visit():
    """By hand: well at 2, dead at 2, the move known to the instant; a visit then, or a second death, is refused."""
    decoder = jm.OnlineDecoder(CHAIN, sets={"alive": ["well", "ill"]})
    assert decoder.update("a", 0.0, "well").state == "well"
    assert decoder.update("a", 2.0, "alive").state in ("well", "ill")
    with pytest.raises(jm.PanelError, match=r"must increase strictly, got 2 after 2.*only a transition or an entry"):
        decoder.update("a", 2.0, "dead")
    died = decoder.update("a", 2.0, "dead", kind="entry")
    assert (died.state, died.since, died.margin) == ("dead", 2.0, np.inf)
    assert decoder.states.tolist() == ["well", "ill", "dead"]
    assert decoder.now().probs[0].tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(jm.PanelError, match="must increase strictly, got 2 after 2"):
        decoder.update("a", 2.0, "dead", kind=3)
    with pytest.raises(jm.InfeasibleError, match="got none for 'a' at 3"):
        decoder.update("a", 3.0, None, kind="transition", true_state="well")
    with pytest.raises(jm.PanelError, match="kinds must be 'snapshot', 'transition' or 'entry'"):
        decoder.update("a", 4.0, "dead", kind="death")
    with pytest.raises(jm.PanelError, match="ids and kinds must be of one length, got 2 and 1"):
        decoder.update_many(["a", "b"], [4.0, 0.0], ["dead", "well"], kinds=["entry"])
    with pytest.raises(ValueError, match=r"sets must be made of states, .*got 'Well' \(did you mean 'well'\?\)"):
        jm.OnlineDecoder(CHAIN, sets={"alive": ["Well", "ill"]})


@pytest.mark.parametrize("family", sorted(EXAMPLES))
def test_one_plain_row_and_a_table_of_one_are_the_same(family):
    """What is told of single values by their own way is told to the bit, of every family; fails with a reading of None
    taken for 0, and with a density per unit of the column left out."""
    chain = 0.5 * (np.ones((3, 3)) - np.eye(3))
    process = jm.Process([0.3, 0.6, 0.4], chain, emission=EXAMPLES[family].column)
    panel, _ = jm.simulate(process, 3, 30, random_state=2)
    quick, slow = jm.OnlineDecoder(process), jm.OnlineDecoder(process)
    values = panel.decode_values(panel.values[:, 0], 0).tolist()
    values[5], values[7] = None, np.nan if isinstance(values[7], float) else None
    for i, s in enumerate(panel.sequence_index.tolist()):
        one = quick.update(s, panel.times[i], values[i])
        table = slow.update_many([s], [panel.times[i]], [values[i]]).row(0)
        for name in ("state", "since", "best", "margin", "changed"):
            assert getattr(one, name) == getattr(table, name), name
            assert type(getattr(one, name)) is type(getattr(table, name))
        np.testing.assert_array_equal(one.probs, table.probs)


def test_kinds_and_sets_take_the_quick_way_too(monkeypatch):
    """Planted: the kind of a row kept for the next one; a set that allows all states."""
    told = []
    for quick in (True, False):
        decoder = jm.OnlineDecoder(CHAIN, sets={"alive": ["well", "ill"]})
        decoder.update("a", 0.0, "well")
        if quick:
            monkeypatch.setattr(decoder, "update_many", None)  # a table would be asked for here
        else:
            monkeypatch.setattr(decoder, "_update_one", lambda *row: None)
        rows = [("well", "snapshot"), ("alive", None), ("ill", "transition"), ("alive", "snapshot"), ("dead", "entry")]
        told.append([decoder.update("a", 1.0 + i, value, kind=kind) for i, (value, kind) in enumerate(rows)])
    for one, table in zip(*told, strict=True):
        assert (one.state, one.since, one.margin) == (table.state, table.since, table.margin)
        np.testing.assert_array_equal(one.probs, table.probs)
    assert [one.since for one in told[0]][2::2] == [3.0, 5.0]


def test_values_that_are_not_plain_are_read_with_care():
    with pytest.raises(jm.PanelError, match="must be numbers for emission 'gaussian', got 'x'"):
        jm.OnlineDecoder(PAIR).update("a", 0.0, "x")
    decoder = jm.OnlineDecoder(PAIR)
    decoder.update("a", 0.0, 0.0)
    for odd, match in (("x", "must be numbers"), (np.inf, "must be finite or missing"), (2**60 + 1, "below 2\\*\\*53")):
        with pytest.raises(jm.PanelError, match=match):
            decoder.update("a", 1.0, odd)
    with pytest.raises(jm.PanelError, match=r"ids must be integers or strings, got \[1\]"):
        decoder.update([1], 1.0, 0.0)


def test_room_grows_and_what_finds_none_is_counted():
    """Thousands of blank rows keep many starts; fails if a full queue overwrites its front."""
    times = 0.01 * np.arange(1, 400)
    roomy, tight = jm.OnlineDecoder(PAIR, most_starts=2**12), jm.OnlineDecoder(PAIR, most_starts=4)
    for decoder in (roomy, tight):
        decoder.update("a", 0.0, 0.1)
        before = decoder.nbytes
        decoder.update_many(["a"] * len(times), times, [None] * len(times))
    assert roomy.lost == 0 and roomy.nbytes > before
    assert tight.lost > 0
    assert roomy.update("a", 5.0, 5.2).state == tight.update("a", 5.0, 5.2).state == 1
    model = jm.JumpMeans.from_process(PAIR)
    values = [0.1, *[None] * len(times), 5.2]
    panel = jm.Panel.from_arrays(np.concatenate([[0.0], times, [5.0]]), values, np.zeros(len(values), int))
    assert roomy.now().since[0] == pytest.approx(model.decode(panel, criterion="online").start_times[-1])


def test_hysteresis():
    """By hand: the first high reading is not enough for a margin of 20, the second is; `hold` waits for 2 hours."""
    times, values = [0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 3.4, 4.0, 5.0]
    plain = jm.OnlineDecoder(PAIR).update_many(["a"] * 5, times, values)
    assert plain.state.tolist() == [0, 0, 1, 1, 1] and plain.changed.tolist() == [False, False, True, False, False]
    margins = plain.margin
    assert margins[2] < margins[3] < margins[4]
    slow = jm.OnlineDecoder(PAIR, least_margin=0.5 * (margins[2] + margins[3])).update_many(["a"] * 5, times, values)
    assert slow.state.tolist() == [0, 0, 0, 1, 1] and slow.best.tolist() == [0, 0, 1, 1, 1]
    assert slow.changed.tolist() == [False, False, False, True, False]
    held = jm.OnlineDecoder(PAIR, hold=2.0).update_many(["a"] * 5, times, values)
    assert held.state.tolist() == [0, 0, 0, 0, 1] and held.since[-1] == plain.since[-1]
    both = jm.OnlineDecoder(PAIR, hold=2.0, least_margin=0.5 * (margins[2] + margins[3]))
    assert both.update_many(["a"] * 5, times, values).state.tolist() == [0, 0, 0, 1, 1]


def test_goes_on_after_save_and_load(tmp_path):
    panel, _ = jm.simulate(PAIR, 10, 20, random_state=3)
    half = panel.offsets[:-1, None] + np.arange(10)
    whole, first = jm.OnlineDecoder(PAIR), jm.OnlineDecoder(PAIR)
    names = np.array([f"bed {k}" for k in range(10)])
    for decoder in (whole, first):
        decoder.update_many(np.repeat(names, 10), panel.times[half.ravel()], panel.values[half.ravel(), 0])
    first.save(tmp_path / "beds.npz")
    again = jm.OnlineDecoder.load(tmp_path / "beds.npz", PAIR)
    assert again.ids == names.tolist()
    rest = (half + 10).ravel()
    told = [d.update_many(np.repeat(names, 10), panel.times[rest], panel.values[rest, 0]) for d in (whole, again)]
    for name in ("state", "since", "margin", "probs"):
        np.testing.assert_array_equal(getattr(told[0], name), getattr(told[1], name))
    other = jm.Process([0.1, 0.3], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0.0, 5.0], sds=1.0))
    with pytest.raises(ValueError, match="model must be the one that the decoder was saved with"):
        jm.OnlineDecoder.load(tmp_path / "beds.npz", other)
    (tmp_path / "odd.npz").write_text("nothing")
    with pytest.raises(ValueError, match=r"a file written by OnlineDecoder\.save, got .*odd\.npz"):
        jm.OnlineDecoder.load(tmp_path / "odd.npz", PAIR)


def test_forget():
    decoder = jm.OnlineDecoder(PAIR)
    decoder.update_many(["a", "b", "c"], [0.0, 0.0, 0.0], [0.0, 5.0, 0.0])
    decoder.forget(["a"])
    assert decoder.ids == ["b", "c"] and decoder.now().state.tolist() == [1, 0]
    assert decoder.update("a", -3.0, 5.0).state == 1  # begins anew
    assert decoder.update("b", 1.0, 5.0).since == 0.0
    with pytest.raises(KeyError, match="there is no sequence 'z'"):
        decoder.now(["z"])


def test_refuses_rows():
    decoder = jm.OnlineDecoder(CHAIN)
    decoder.update("a", 1.0, "well")
    for late in (1.0, 0.5, np.nan):
        with pytest.raises(jm.PanelError, match=r"sequence 'a' must increase strictly, got .* after 1; no row"):
            decoder.update_many(["b", "a"], [0.0, late], ["well", "well"])
    assert decoder.ids == ["a"]
    with pytest.raises(jm.PanelError, match="must increase strictly, got 4 after 5"):
        decoder.update_many(["a", "a"], [5.0, 4.0], ["ill", "ill"])
    with pytest.raises(jm.PanelError, match=r"must be among the known ones.*got.*lost"):
        decoder.update("a", 2.0, "lost")
    with pytest.raises(jm.PanelError, match=r"ids must be integers or strings, got 2\.5"):
        decoder.update(2.5, 0.0, "well")
    with pytest.raises(jm.PanelError, match="ids and times must be of one length, got 2 and 1"):
        decoder.update_many(["a", "b"], [2.0], ["well", "well"])
    decoder.update("a", 2.0, "dead")
    with pytest.raises(jm.InfeasibleError, match="got none for 'a' at 3; these rows are left out and all others are"):
        decoder.update_many(["a", "c", "a"], [3.0, 0.0, 4.0], ["well", "ill", "dead"])
    assert decoder.now(["a", "c"]).state.tolist() == ["dead", "ill"]
    assert decoder.now(["a"]).time.tolist() == [4.0]
    lenient = jm.OnlineDecoder(CHAIN, unknown="missing")
    assert lenient.update("a", 0.0, "well").state == lenient.update("a", 0.1, "lost").state == "well"


def test_options_are_checked():
    with pytest.raises(ValueError, match="least_margin must be None or a finite number >= 0, got -1"):
        jm.OnlineDecoder(PAIR, least_margin=-1)
    with pytest.raises(ValueError, match="hold must be None or a finite number >= 0, got 'x'"):
        jm.OnlineDecoder(PAIR, hold="x")
    with pytest.raises(ValueError, match=r"unknown must be one of \('refuse', 'missing'\)"):
        jm.OnlineDecoder(PAIR, unknown="guess")
    with pytest.raises(ValueError, match="most_starts must be an integer from 2"):
        jm.OnlineDecoder(PAIR, most_starts=1)
    with pytest.raises(ValueError, match="model must be a Process or a fitted model with process_, got 3"):
        jm.OnlineDecoder(3)
    with pytest.raises(Exception, match="this JumpMeans must be fitted first"):
        jm.OnlineDecoder(jm.JumpMeans(2))


def test_dates_and_other_models():
    """A model of dates takes dates and tells them; EM decodes as from_process does."""
    frame = jm.simulate(PAIR, 10, 15, random_state=0)[0].to_frame()
    frame["time"] = np.datetime64("2026-01-01") + (frame["time"] * 86400e9).astype("timedelta64[ns]")
    model = jm.JumpMeans(2).fit(frame)
    told = jm.OnlineDecoder(model).update_many(["a", "a"], np.array(["2026-03-01", "2026-03-04"], "M8[ns]"), [0.1, 0.3])
    assert told.since[-1] == np.datetime64("2026-03-01")
    panel = jm.simulate(PAIR, 10, 15, random_state=0)[0]
    em = jm.comparators.EM(2).fit(panel)
    assert jm.OnlineDecoder(em).update("a", 0.0, 5.0).state == 1


# ------------------------------------------------------------------- alarms


def test_alarms_by_hand():
    """One episode caught two hours late, one missed, one alarm for nothing; in four days."""
    low, high = 0.0, 5.0
    values = [low, low, low, high, high, low, low, low, low, low, high, high, low]
    labels = [0, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0]
    panel = jm.Panel.from_arrays(np.arange(13.0), values, np.zeros(13, int))
    found = jm.alarm_rates(PAIR, panel, labels, [1])
    assert (found.alarms, found.false_alarms, found.episodes, found.caught) == (2, 1, 2, 1)
    assert found.delays.tolist() == [2.0] == [found.median_delay]
    assert found.time == 12.0 and found.rate == pytest.approx(2 / 12) and found.false_rate == pytest.approx(1 / 12)
    never = jm.alarm_rates(PAIR, panel, labels, [1], least_margin=1e6)
    assert never.alarms == never.caught == 0 and np.isnan(never.median_delay)
    named = jm.alarm_rates(PAIR, panel, np.array(["ok", "bad"])[labels], [1], ["bad"])
    assert named.delays.tolist() == [2.0]


def test_alarms_of_true_trajectories():
    """Labels at the rows and true trajectories agree on alarms; delays count from the true beginning."""
    panel, truth = jm.simulate(PAIR, 40, 30, random_state=5)
    found = jm.alarm_rates(PAIR, panel, truth, [1])
    labels = panel.to_caller_order(truth.at(panel.times, panel.ids[panel.sequence_index]))
    by_rows = jm.alarm_rates(PAIR, panel, labels, [1])
    assert (found.alarms, found.false_alarms) == (by_rows.alarms, by_rows.false_alarms)
    assert found.episodes >= by_rows.episodes and (found.delays >= 0).all()
    assert found.median_delay > by_rows.median_delay


def test_alarms_refuse():
    panel, truth = jm.simulate(PAIR, 4, 5, random_state=5)
    with pytest.raises(ValueError, match=r"states must be among \[0, 1\], got \[7\]"):
        jm.alarm_rates(PAIR, panel, truth, [7])
    with pytest.raises(ValueError, match=r"states must be a list of states, got 1; write \[1\]"):
        jm.alarm_rates(PAIR, panel, truth, 1)
    with pytest.raises(ValueError, match=r"Trajectories or a label for each of the 20 rows, got shape \(2,\)"):
        jm.alarm_rates(PAIR, panel, [0, 1], [1])
    with pytest.raises(ValueError, match="truth must be of the sequences of the panel"):
        jm.alarm_rates(PAIR, panel.select([0]), truth, [1])


def test_a_single_state_lasts():
    told = jm.OnlineDecoder(jm.Process([0.0], [[0.0]], states=["well"])).update("a", 0.0, "well")
    assert (told.state, told.since, told.margin) == ("well", 0.0, np.inf)
