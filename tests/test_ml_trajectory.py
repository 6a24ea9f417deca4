import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import jumpmeans as jm
from jumpmeans.comparators import MLTrajectory


def random_process(rng, M, fastest=1.0, sparse=False, emission=None):
    P = rng.dirichlet(np.ones(M - 1), M) if M > 1 else np.zeros((1, 0))
    P = np.array([np.insert(row, i, 0.0) for i, row in enumerate(P)])
    if sparse:
        P *= (rng.random((M, M)) < 0.6) | np.eye(M, k=1, dtype=bool) | np.eye(M, k=1 - M, dtype=bool)
        P /= P.sum(axis=1, keepdims=True)
    rates = rng.uniform(0.05, fastest, M) if M > 1 else np.zeros(1)
    return jm.Process(rates, P, rng.dirichlet(np.ones(M)), emission)


def log(x):
    return math.log(x) if x > 0 else -math.inf


# ----------------------------------------------------------------------------------------- plain enumeration


def best_by_enumeration(process, times, values, window, most):
    """Every state at every look, every chain of at most `most` jumps between two looks, and every visited state as
    the one that takes the gap."""
    M = len(process.rates)
    lam, P, pi = process.rates.tolist(), process.transition_probs.tolist(), process.initial_probs.tolist()
    looks = [(t, process.emission.columns[0].log_density(np.array([x]))[0]) for t, x in zip(times, values, strict=True)]
    if window[0] < times[0]:
        looks.insert(0, (window[0], np.zeros(M)))
    if window[1] > times[-1]:
        looks.append((window[1], np.zeros(M)))

    def gap_value(a, b, gap):
        best = -math.inf
        for k in range(most + 1):
            for inner in itertools.product(range(M), repeat=max(k - 1, 0)):
                chain = (a, *inner, b) if k else (a,)
                if chain[-1] != b:
                    continue
                jumps = sum(log(lam[i]) + log(P[i][j]) for i, j in itertools.pairwise(chain))
                best = max(best, max(jumps - lam[i] * gap for i in chain))
        return best

    between = [
        [[gap_value(a, b, later[0] - now[0]) for b in range(M)] for a in range(M)]
        for now, later in itertools.pairwise(looks)
    ]
    best = -math.inf
    for path in itertools.product(range(M), repeat=len(looks)):
        v = log(pi[path[0]]) + sum(look[1][s] for look, s in zip(looks, path, strict=True))
        v += sum(between[i][path[i]][path[i + 1]] for i in range(len(looks) - 1))
        best = max(best, v)
    return best


def log_density(process, trajectories, panel, i):
    """The paper's trajectory probability of a path with the lengths that it has, times that of the observations."""
    part = slice(trajectories.offsets[i], trajectories.offsets[i + 1])
    states, starts = trajectories.codes[part].tolist(), trajectories.start_times[part].tolist()
    ends = [*starts[1:], trajectories.end_times[i]]
    value = log(process.initial_probs[states[0]])
    for k, s in enumerate(states):
        value -= process.rates[s] * (ends[k] - starts[k])
        if k < len(states) - 1:
            value += log(process.rates[s]) + log(process.transition_probs[s, states[k + 1]])
    rows = slice(panel.offsets[i], panel.offsets[i + 1])
    at = np.searchsorted(starts, panel.times[rows], side="right") - 1
    density = process.emission.log_density(process.emission.encode(panel))[rows]
    return value + sum(density[row, states[k]] for row, k in enumerate(at))


def look_at(rng, process, n_sequences=3, n_rows=4, missing=0.3):
    """A panel from nowhere in particular: times, states or readings and windows drawn at random."""
    M = len(process.rates)
    direct = process.emission.is_direct
    times = np.cumsum(rng.exponential(1.5, (n_sequences, n_rows)), axis=1)
    values = (rng.integers(0, M, times.shape) if direct else rng.normal(size=times.shape)).astype(float)
    values[rng.random(times.shape) < missing] = np.nan
    ids = np.repeat(np.arange(n_sequences), n_rows)
    start, end = times[:, 0] - rng.integers(0, 2, n_sequences), times[:, -1] + rng.integers(0, 2, n_sequences)
    return jm.Panel.from_arrays(
        times.ravel(), values.ravel(), ids, start_times=start[ids], end_times=end[ids]
    )  # fmt: skip


@settings(max_examples=50)
@given(seed=st.integers(0, 10**6), M=st.integers(1, 3), most=st.integers(1, 4), fastest=st.sampled_from([1.0, 5.0]),
       hidden=st.booleans())  # fmt: skip
def test_equals_enumeration(seed, M, most, fastest, hidden):
    rng = np.random.default_rng(seed)
    emission = jm.emissions.Gaussian(rng.normal(size=M), 0.7) if hidden else None
    process = random_process(rng, M, fastest, emission=emission)
    panel = look_at(rng, process)
    best = MLTrajectory(process, max_jumps_per_gap=most, epsilon=1e-9).fit(panel).trajectories_
    for i in range(len(panel)):
        rows = slice(panel.offsets[i], panel.offsets[i + 1])
        window = panel.start_times[i], panel.end_times[i]
        expected = best_by_enumeration(process, panel.times[rows], panel.values[rows, 0], window, most)
        assert best.log_density[i] == pytest.approx(expected, rel=1e-11, abs=1e-11)
        # and the path that was drawn has that density
        assert log_density(process, best, panel, i) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@given(seed=st.integers(0, 10**6))
def test_forbidden_moves_take_detours(seed):
    rng = np.random.default_rng(seed)
    process = random_process(rng, 3, sparse=True)
    panel = look_at(rng, process, n_sequences=2, n_rows=3, missing=0.0)
    best = MLTrajectory(process, max_jumps_per_gap=3).fit(panel).trajectories_
    used = best.jump_counts() > 0
    assert (process.transition_probs[used] > 0).all()
    for i in range(2):
        rows = slice(panel.offsets[i], panel.offsets[i + 1])
        window = panel.start_times[i], panel.end_times[i]
        expected = best_by_enumeration(process, panel.times[rows], panel.values[rows, 0], window, 3)
        assert best.log_density[i] == pytest.approx(expected, rel=1e-11)


@given(seed=st.integers(0, 10**6))
def test_no_other_path_is_likelier(seed):
    """Paths that share time among the states of a chain, drawn at random, against the supremum."""
    rng = np.random.default_rng(seed)
    process = random_process(rng, 3)
    panel = look_at(rng, process, n_sequences=1, n_rows=2, missing=0.0)
    best = MLTrajectory(process, max_jumps_per_gap=6).fit(panel).trajectories_
    first, last = panel.values[:, 0].astype(int)
    for _ in range(50):
        inner = rng.integers(0, 3, rng.integers(0, 5)).tolist()
        chain = [first, *inner, last]
        chain = [s for k, s in enumerate(chain) if k == 0 or s != chain[k - 1]]
        cuts = np.sort(rng.uniform(panel.start_times[0], panel.times[1], len(chain) - 1))
        if len(cuts) and cuts[0] <= panel.times[0]:
            continue
        path = jm.Trajectories(
            np.array(chain, np.int32), np.append(panel.start_times[0], cuts), np.array([0, len(chain)]),
            panel.end_times, panel.ids, process.states,
        )  # fmt: skip
        assert log_density(process, path, panel, 0) <= best.log_density[0] + 1e-9


@given(seed=st.integers(0, 10**6), M=st.integers(2, 4))
def test_without_gaining_cycles_the_automatic_limit_is_no_limit(seed, M):
    rng = np.random.default_rng(seed)
    process = random_process(rng, M)
    panel = look_at(rng, process)
    auto = MLTrajectory(process).fit(panel)
    assert auto.cycle_gain_ <= 0.0
    more = MLTrajectory(process, max_jumps_per_gap=20).fit(panel).trajectories_
    np.testing.assert_allclose(auto.trajectories_.log_density, more.log_density, rtol=1e-12)
    # so that a blank row changes nothing
    middle = panel.times[panel.offsets[:-1]] + 0.4 * np.diff(panel.times)[panel.offsets[:-1]]
    wide, _ = panel.insert_times(panel.ids, middle)
    np.testing.assert_allclose(auto.decode(wide).log_density, auto.trajectories_.log_density, rtol=1e-11)


# ------------------------------------------------------------------------------------------------ the result


@given(seed=st.integers(0, 10**6), fastest=st.sampled_from([1.0, 8.0]), origin=st.sampled_from([0.0, -1e3, 1e9]),
       epsilon=st.sampled_from(["auto", 1e-12, 1e3]))  # fmt: skip
def test_paths_are_valid(seed, fastest, origin, epsilon):
    rng = np.random.default_rng(seed)
    process = random_process(rng, 4, fastest)
    panel, _ = jm.simulate(process, 5, 6, random_state=rng)
    frame = panel.to_frame()
    panel = jm.Panel.from_frame(frame.assign(time=frame["time"] + origin))
    model = MLTrajectory(process, max_jumps_per_gap=5, epsilon=epsilon).fit(panel)
    best = model.trajectories_
    inside = np.diff(best.start_times)[~best.running[:-1]]
    assert (inside > 0).all()
    np.testing.assert_array_equal(best.start_times[best.offsets[:-1]], panel.start_times)
    assert (best.start_times <= np.repeat(best.end_times, np.diff(best.offsets))).all()
    assert (np.diff(best.codes)[~best.running[:-1]] != 0).all()
    ids = panel.ids[panel.sequence_index]
    np.testing.assert_array_equal(best.at(panel.times, ids), panel.values[:, 0])
    np.testing.assert_array_equal(model.predict(panel), frame["value"])
    np.testing.assert_array_equal(model.predict_value(panel, "trajectory"), frame["value"])
    assert not best.degenerate[best.running].any()
    assert (best.dwell_times()[best.degenerate] <= 12 * max(model.epsilon_, 1e-6)).all()


def test_a_gap_too_narrow_for_a_chain_holds_one_jump():
    process = jm.Process([8.0, 9.0], [[0, 1], [1, 0]])
    times = [1.0, np.nextafter(1.0, 2.0), 2.0]
    panel = jm.Panel.from_arrays(times, [0, 1, 1], ids=[1, 1, 1])
    best = MLTrajectory(process, max_jumps_per_gap=4).fit(panel).trajectories_
    assert best.start_times[:2].tolist() == times[:2]
    np.testing.assert_array_equal(best.at(times), [0, 1, 1])
    assert (np.diff(best.start_times) > 0).all()


def test_worked_by_hand():
    """1 -> 2 -> 3 with 3 slowest: leave at once, wait in 3. 3 -> 2 -> 1: wait in 3, arrive at the last moment."""
    process = jm.Process([0.2, 1.0, 0.1], [[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]], states=[1, 2, 3])
    panel = jm.Panel.from_arrays([0, 4, 8], [1, 3, 1], ids=[1, 1, 1])
    best = MLTrajectory(process, epsilon=0.01).fit(panel).trajectories_
    assert best.states.tolist() == [1, 2, 3, 2, 1]
    np.testing.assert_allclose(best.start_times, [0, 0.01, 0.02, 7.99, 8], rtol=1e-12)
    assert best.degenerate.tolist() == [True, True, False, True, False]
    value = math.log(1 / 3) + math.log(0.2) + 2 * math.log(0.5) + math.log(0.1) - 0.1 * 8
    assert best.log_density[0] == pytest.approx(value, rel=1e-12)


def test_a_state_seen_in_passing_is_degenerate():
    """Seen once between two slower stays: entered and left at the very moment of the look."""
    process = jm.Process([0.1, 0.9], [[0, 1], [1, 0]])
    panel = jm.Panel.from_arrays([0, 1, 2], [0, 1, 0], ids=[1, 1, 1])
    best = MLTrajectory(process).fit(panel).trajectories_
    assert best.states.tolist() == [0, 1, 0]
    np.testing.assert_allclose(best.start_times, [0, 1, 1 + 1e-6], rtol=1e-12)
    assert best.degenerate.tolist() == [False, True, False]


def test_absorbing_state_is_entered_at_once():
    process = jm.Process([0.5, 0.0], [[0, 1], [0, 0]])
    panel = jm.Panel.from_arrays([0, 5], [0, 1], ids=[1, 1])
    best = MLTrajectory(process).fit(panel).trajectories_
    assert best.degenerate.tolist() == [True, False]
    assert best.log_density[0] == pytest.approx(math.log(0.5) + math.log(0.5))


@pytest.fixture(scope="module")
def seen_twice():
    """Four states, looked at twice with long gaps: the paper's complaint at its plainest."""
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(3), 4)
    P = np.array([np.insert(row, i, 0.0) for i, row in enumerate(P)])
    process = jm.Process([0.9, 0.3, 0.6, 0.15], P)
    return process, jm.simulate(process, 60, 2, gaps="regular", mean_gap=6.0, random_state=3)[0]


def test_between_two_looks_only_the_slowest_state_lasts(seen_twice):
    process, panel = seen_twice
    for epsilon in (1e-3, 1e-6):
        best = MLTrajectory(process, epsilon=epsilon).fit(panel).trajectories_
        assert best.degenerate.sum() > 20
        for i in range(len(best)):
            part = slice(best.offsets[i], best.offsets[i + 1])
            lengths, rates = best.dwell_times()[part], process.rates[best.codes[part]]
            others = rates > rates.min()
            assert lengths[others].sum() <= 4 * epsilon
            assert lengths[~others].sum() >= 6.0 - 4 * epsilon


def test_dwells_of_jump_means_do_not_shrink_to_nothing():
    """The paper's figure 3: with the same parameters the most likely path has dwells of length 0, ours has none."""
    P = np.array([[0, 0.7, 0.3], [0.5, 0, 0.5], [0.2, 0.8, 0]])
    process = jm.Process([0.5, 0.9, 0.2], P)
    panel, _ = jm.simulate(process, 100, 10, gaps="regular", mean_gap=1.5, random_state=1)
    ours = jm.JumpMeans(emission="direct").fit(panel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tiny = [MLTrajectory(start=ours, epsilon=e).fit(panel).trajectories_ for e in (1e-3, 1e-6)]
    slowest = ours.process_.rates.argmin()

    def complete(trajectories):
        chosen = ~trajectories.running & (trajectories.codes != slowest)
        return trajectories.dwell_times()[chosen]

    for best, epsilon in zip(tiny, (1e-3, 1e-6), strict=True):
        vanishing = complete(best) <= 3 * epsilon
        assert vanishing.mean() > 0.3
        # those that remain are pinned by two looks at the same state
        assert (complete(best)[~vanishing] > 0.9 * 1.5).all()
    assert complete(ours.trajectories_).min() > 0.1


# ------------------------------------------------------------------------------------------ cycles that gain


def test_cycles_that_gain_are_found_and_bounded():
    process = jm.Process([2.0, 3.0], [[0, 1], [1, 0]])
    panel = jm.Panel.from_arrays([0.0, 1.0], [0, 0], ids=[1, 1])
    with pytest.warns(UserWarning, match=r"no trajectory is the most likely one: a cycle of jumps gains 1.79"):
        model = MLTrajectory(process).fit(panel)
    assert model.cycle_gain_ == pytest.approx(math.log(6.0))
    assert model.max_jumps_per_gap_ == 2
    assert model.trajectories_.n_jumps == 2
    for most in (1, 2, 5, 6):
        bounded = MLTrajectory(process, max_jumps_per_gap=most).fit(panel).trajectories_
        assert bounded.n_jumps == 2 * (most // 2)
        expected = math.log(0.5) + bounded.n_jumps / 2 * math.log(6.0) - 2.0
        assert bounded.log_density[0] == pytest.approx(expected)


def test_a_cycle_that_gains_nothing_is_not_run_through():
    process = jm.Process([2.0, 0.5], [[0, 1], [1, 0]])
    panel = jm.Panel.from_arrays([0.0, 1.0, 1.5], [1, 1, 1], ids=[1, 1, 1])
    model = MLTrajectory(process).fit(panel)
    assert model.cycle_gain_ == pytest.approx(0.0, abs=1e-15)
    assert model.trajectories_.n_jumps == 0


def test_the_unit_of_time_matters_as_the_docstring_says():
    P = [[0, 1], [1, 0]]
    panel = jm.Panel.from_arrays([0.0, 1.0], [0, 0], ids=[1, 1])
    hours = MLTrajectory(jm.Process([0.5, 0.1], P)).fit(panel)
    day = jm.Panel.from_arrays([0.0, 1 / 24], [0, 0], ids=[1, 1])
    days = MLTrajectory(jm.Process([12.0, 2.4], P), max_jumps_per_gap=2).fit(day)
    assert (hours.trajectories_.n_jumps, days.trajectories_.n_jumps) == (0, 2)


# -------------------------------------------------------------------------------------------------- contract


def test_hidden_states_from_a_fitted_model():
    panel = jm.datasets.load_icu_pressure()
    masked, truth = jm.hold_out(panel, 0.25, 0)
    start = jm.JumpMeans(3).fit(masked)
    model = MLTrajectory(start=start).fit(masked)
    assert model.process_ is start.process_
    np.testing.assert_array_equal(model.states_, start.states_)
    np.testing.assert_array_equal(model.decode(masked).start_times, model.trajectories_.start_times)
    rows = model.predict(masked)
    ids = panel.ids[panel.sequence_index]
    np.testing.assert_array_equal(rows, masked.to_caller_order(model.trajectories_.at(masked.times, ids)))
    values = model.predict_value(masked, "trajectory")
    np.testing.assert_array_equal(values, start.process_.emission.state_values()[rows])
    np.testing.assert_allclose(model.predict_proba(masked), start.predict_proba(masked), rtol=1e-12)
    assert jm.reconstruction_error(values, truth, bins=jm.datasets.PRESSURE_BINS) < 0.4


def test_estimator_contract(seen_twice):
    process, panel = seen_twice
    before = panel.values.copy()
    model = MLTrajectory(process)
    with pytest.raises(NotFittedError, match="this MLTrajectory must be fitted first"):
        model.decode(panel)
    assert model.fit(panel) is model
    np.testing.assert_array_equal(before, panel.values)
    again = clone(model).fit(panel)
    np.testing.assert_array_equal(again.trajectories_.start_times, model.trajectories_.start_times)
    start = jm.JumpMeans(emission="direct").fit(panel)
    assert clone(MLTrajectory(start=start, max_jumps_per_gap=2)).fit(panel).process_ is start.process_


def test_more_sequences_change_no_path(seen_twice):
    process, panel = seen_twice
    model = MLTrajectory(process, epsilon=1e-6).fit(panel)
    few = model.decode(panel.select([4, 2]))
    for k, i in enumerate([4, 2]):
        one, all_ = slice(*few.offsets[k : k + 2]), slice(*model.trajectories_.offsets[i : i + 2])
        np.testing.assert_array_equal(few.codes[one], model.trajectories_.codes[all_])
        np.testing.assert_array_equal(few.start_times[one], model.trajectories_.start_times[all_])
        np.testing.assert_array_equal(few.degenerate[one], model.trajectories_.degenerate[all_])


def test_sequences_of_one_row_and_without_values():
    process = jm.Process([0.4, 0.2], [[0, 1], [1, 0]])
    panel = jm.Panel.from_arrays([0, 1, 2, 7], [None, None, None, 1], ids=["a", "a", "a", "b"])
    best = MLTrajectory(process).fit(panel).trajectories_
    assert best.states.tolist() == [1, 1]
    np.testing.assert_allclose(best.log_density, [math.log(0.5) - 0.4, math.log(0.5)])


TWO = jm.Process([0.5, 0.5], [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MLTrajectory(), "needs its parameters, and from one place: .* got neither"),
        (MLTrajectory(TWO, start=1), "needs its parameters, and from one place: .* got both"),
        (MLTrajectory(start=TWO), "start must be a fitted model with a process_, got Process; give it as process="),
        (MLTrajectory(start=jm.JumpMeans(2)), "start must be a fitted model with a process_, got JumpMeans; fit it"),
        (MLTrajectory(jm.JumpMeans(2)), "process must be a jumpmeans.Process, got JumpMeans"),
        (MLTrajectory(TWO, max_jumps_per_gap=0), "max_jumps_per_gap must be 'auto' or an integer .* got 0"),
        (MLTrajectory(TWO, max_jumps_per_gap=1.5), "max_jumps_per_gap must be .* got 1.5"),
        (MLTrajectory(TWO, epsilon=0.0), "epsilon must be 'auto' or a finite number > 0, got 0.0"),
        (MLTrajectory(TWO, epsilon="tiny"), "epsilon must be 'auto' .* got 'tiny'"),
        (MLTrajectory(TWO, epsilon=10**400), "epsilon must be 'auto' .* got 1000"),
        (MLTrajectory(TWO, epsilon=None), "epsilon must be 'auto' .* got None"),
        (MLTrajectory(TWO, max_jumps_per_gap=True), "max_jumps_per_gap must be .* got True"),
        (MLTrajectory(TWO, max_jumps_per_gap="many"), "max_jumps_per_gap must be .* got 'many'"),
        # was a MemoryError
        (
            MLTrajectory(TWO, max_jumps_per_gap=10**9),
            "max_jumps_per_gap must be .* from 1 to 1000, got 1000000000",
        ),
    ],
)
def test_messages(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(jm.Panel.from_arrays([0, 1], [0, 1], ids=[1, 1]))


def test_an_impossible_sequence_is_named():
    one_way = jm.Process([0.5, 0.0], [[0, 1], [0, 0]])
    panel = jm.Panel.from_arrays([0, 0, 1, 2], [0, 1, 1, 0], ids=["a", "b", "b", "b"])
    pair = r"sequence 'b', row 3 \(0 at time 2 after 1 at time 1 in row 2\)"
    with pytest.raises(jm.InfeasibleError, match=f"no path of at most 2 jumps a gap for {pair}; raise"):
        MLTrajectory(one_way).fit(panel)
    sure = jm.Process([0.5, 0.5], [[0, 1], [1, 0]], [1.0, 0.0])
    with pytest.raises(jm.InfeasibleError, match="sequence 'b', row 1"):
        MLTrajectory(sure).fit(panel)
