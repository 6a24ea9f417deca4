"""What a process means: every answer against a plain one (scipy's expm, linear equations, simulation)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

import jumpmeans as jm

MOVES = {"well": {"ill": 0.2, "dead": 0.05}, "ill": {"well": 0.1, "dead": 0.4}}


@pytest.fixture
def illness():
    return jm.Process.from_generator(MOVES, [0.5, 0.5, 0])


@st.composite
def generators(draw):
    """Small rate matrices, some moves of which cannot happen."""
    M = draw(st.integers(1, 5))
    cells = draw(st.lists(st.sampled_from([0.0, 0.0, 0.03, 0.4, 1.0, 7.0]), min_size=M * M, max_size=M * M))
    Q = np.array(cells).reshape(M, M)
    np.fill_diagonal(Q, 0.0)
    np.fill_diagonal(Q, -Q.sum(axis=1))
    return Q


# ------------------------------------------------------------------------------------------------- plain answers


@given(generators(), st.sampled_from([0.0, 1e-6, 0.3, 4.0, 50.0]))
def test_probabilities_and_times_are_those_of_expm(Q, t):
    # caught: doublings that forget the second half; a Poisson series that begins one event late
    process = jm.Process.from_generator(Q)
    np.testing.assert_allclose(process.transition_matrix(t).values, expm(Q * t), rtol=1e-9, atol=1e-13)
    M = len(Q)
    block = np.zeros((2 * M, 2 * M))
    block[:M, :M], block[:M, M:] = Q, np.eye(M)
    times = expm(block * t)[:M, M:]  # the integral of e^{Qs}
    np.testing.assert_allclose(process.total_time(t).values, times, rtol=1e-8, atol=1e-12)


@given(generators())
def test_passages_are_those_of_linear_equations(Q):
    # caught: states that may get lost on the way taken for sure, and the other way round
    M = len(Q)
    process = jm.Process.from_generator(Q)
    ended = Q.copy()
    ended[0] = 0.0
    ever = expm(ended * 1e7)[:, 0]  # far beyond all that may happen
    table = process.first_passage(0)
    np.testing.assert_allclose([table[s, "probability"] for s in range(M)], ever, atol=1e-8)
    sure = np.flatnonzero((ever > 1 - 1e-9) & (np.arange(M) > 0))
    mean = np.where(np.arange(M) == 0, 0.0, np.inf)
    if len(sure):
        mean[sure] = np.linalg.solve(-Q[np.ix_(sure, sure)], np.ones(len(sure)))
    np.testing.assert_allclose([table[s, "mean"] for s in range(M)], mean, rtol=1e-9)
    for s in range(M):
        median = table[s, "median"]
        if 0 < median < np.inf:
            assert process.survival(0, [median], start=s).values[0, 0] == pytest.approx(0.5, abs=1e-9)
        else:
            assert median == 0 if s == 0 else ever[s] <= 0.5 + 1e-8
    t = np.array([0.0, 0.2, 3.0])
    alive = [expm(ended * x)[:, 1:].sum(axis=1) * (np.arange(M) > 0) for x in t]
    np.testing.assert_allclose(process.survival(0, t).values, alive, rtol=1e-9, atol=1e-12)


@given(generators())
def test_the_long_run(Q):
    # caught: a closed class whose states are weighed by rates out instead of by GTH
    M = len(Q)
    process = jm.Process.from_generator(Q)
    limit = expm(Q * 1e7)
    np.testing.assert_allclose(process.transition_matrix(np.inf).values, limit, atol=1e-8)
    for s in range(M):
        np.testing.assert_allclose(process.stationary(start=s).values[:, 0], limit[s], atol=1e-8)
    forever = process.total_time(np.inf).values
    leaves = limit.max(axis=0) < 1e-9  # nobody is left there in the end
    expected = np.zeros((M, int(leaves.sum())))
    if leaves.any():
        expected[leaves] = np.linalg.inv(-Q[np.ix_(leaves, leaves)])
    np.testing.assert_allclose(forever[:, leaves], expected, rtol=1e-9, atol=1e-12)
    assert np.all(np.isinf(forever[:, ~leaves]) == (expm(Q)[:, ~leaves] > 0))


def test_passage_times_are_those_of_simulated_paths(illness):
    """Caught: a target counted as reached only if the process is there at the end, when it may come back."""
    panel, truth = jm.simulate(illness, 4000, 2, gaps=[[6.0]], random_state=0)
    del panel
    first, ever_ill = truth.states[truth.offsets[:-1]], np.zeros(len(truth), dtype=bool)
    ever_ill[np.repeat(np.arange(len(truth)), np.diff(truth.offsets))[truth.states == "ill"]] = True
    expected = illness.survival("ill", [6.0], start="well").values[0, 0]
    assert 1 - ever_ill[first == "well"].mean() == pytest.approx(expected, abs=0.03)


# ------------------------------------------------------------------------------------------------- extremes


@pytest.mark.parametrize("ratio", [1e-300, 1e-12, 1.0, 1e12, 1e300])
def test_rates_far_apart(ratio):
    """Two states that change places at rate 1, the second of which leaks into a third at a very different rate."""
    process = jm.Process.from_generator([[0, 1, 0], [1, 0, ratio], [0, 0, 0]])
    # by hand: m0 = 1 + m1, m1 = (1 + m0) / (1 + ratio)
    m1 = 2.0 / ratio
    table = process.first_passage(2)
    assert table[1, "mean"] == pytest.approx(m1, rel=1e-12)
    assert table[0, "mean"] == pytest.approx(1.0 + m1, rel=1e-12)
    assert table[0, "probability"] == 1.0
    assert np.isfinite(table[0, "median"]) and table[0, "median"] > 0
    np.testing.assert_allclose(process.total_time().values[0, :2], [1 + 1 / ratio, 1 / ratio], rtol=1e-12)
    if ratio < 1e-10:  # a slow leak out of an even mix: exponential
        assert table[0, "median"] == pytest.approx(2 * np.log(2) / ratio, rel=1e-9)
        assert process.transition_matrix(1e3)[0, 2] == pytest.approx(500 * ratio, rel=5e-3)


def test_shares_of_states_that_hardly_move():
    # caught: elimination in plain floats, where 1e-300 * 1e-300 is lost
    process = jm.Process.from_generator([[0, 1e-300, 0], [1e300, 0, 1e-300], [0, 1e300, 0]])
    with np.errstate(under="ignore"):
        share = process.stationary().values[:, 0]
    assert share[0] == 1.0 and share[1] == 0.0  # 1e-600 is no float
    wide = jm.Process.from_generator([[0, 1e-100, 0], [1e50, 0, 1e-100], [0, 1e50, 0]]).stationary()
    assert [wide[s, "share"] for s in range(3)] == pytest.approx([1.0, 1e-150, 1e-300], rel=1e-12)
    assert jm.Process.from_generator([[0, 1e300], [1e-300, 0]]).total_time(1e300)[0, 1] == pytest.approx(1e300)


def test_one_state():
    process = jm.Process([0.0], [[0.0]], states=["only"])
    assert process.transition_matrix(3).values.tolist() == [[1.0]]
    assert process.total_time(3)["only", "only"] == 3.0 and process.total_time()["only", "only"] == np.inf
    assert process.first_passage("only").values.tolist() == [[1.0, 0.0, 0.0]]
    assert process.survival("only", [0, 1]).values.tolist() == [[0.0], [0.0]]
    assert process.stationary()["only", "share"] == 1.0


def test_targets_that_cannot_be_reached(illness):
    table = illness.first_passage("well")
    assert table["dead"].tolist() == [0.0, np.inf, np.inf]
    assert illness.survival("well", [0, 5, np.inf])[5.0][2] == 1.0
    assert table["ill", "probability"] == pytest.approx(0.2) and table["ill", "mean"] == np.inf


# ------------------------------------------------------------------------------------------------- labels


def test_answers_come_with_labels_and_units(illness):
    for table, unit in (
        (illness.total_time(2, time_unit="years"), "years"),
        (illness.first_passage("dead", time_unit="years"), "years"),
    ):
        assert table.unit == unit and table.row_name == "start" and table.rows.tolist() == ["well", "ill", "dead"]
        assert len(table.to_frame()) == 3
    assert illness.transition_matrix(2, time_unit="years").name == "probability of each state after 2 years"
    survival = illness.survival(["dead"], [1, 2], start="ill", time_unit="years")
    assert survival.row_name == "time (years)" and survival.columns.tolist() == ["ill"]
    assert illness.first_passage(np.array(["ill", "dead"])).name == "time until ill or dead"


def test_a_mix_of_starts_is_the_mean_of_starts(illness):
    pi = illness.initial_probs
    np.testing.assert_allclose(
        illness.survival("dead", [1.0], pi).values[0], illness.survival("dead", [1.0]).values @ pi
    )
    # caught: 0 times infinity where a start has no weight
    absorbed = jm.Process.from_generator({"a": {"b": 1.0}, "c": {"d": 2.0}})
    assert absorbed.total_time(np.inf, [0.5, 0.5, 0, 0]).values[0].tolist() == [0.5, 0.25, np.inf, np.inf]
    assert absorbed.total_time(np.inf, [1.0, 0, 0, 0]).values[0].tolist() == [1.0, 0.0, np.inf, 0.0]


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (lambda p: p.transition_matrix(-1), "t must be numbers >= 0 in the unit of the rates, got -1"),
        (lambda p: p.transition_matrix([1, 2]), r"t must be one number >= 0, got \[1, 2\]; ask for one time"),
        (lambda p: p.total_time(np.nan), "t must be numbers >= 0"),
        (lambda p: p.survival("dead", ["soon"]), "times must be numbers >= 0 in the unit of the rates, got"),
        (lambda p: p.survival("dead", []), "times must be numbers >= 0"),
        (lambda p: p.survival("deed", [1]), r"target must be a state, got 'deed' \(did you mean 'dead'\?\); there are"),
        (lambda p: p.first_passage([]), "target must name at least one state, got none"),
        (lambda p: p.total_time(1, start="wel"), r"start must be a state, got 'wel' \(did you mean 'well'\?\)"),
        (lambda p: p.total_time(1, start=[0.5, 0.4, 0]), "start must be a state or 3 probabilities that sum to 1, got"),
        (lambda p: p.total_time(1, start=["well"]), "start must be a state or 3 probabilities"),
        (
            lambda p: jm.Process.from_generator({"a": {"b": 1, "c": 1}}).stationary(),
            r"must not depend on the start, got 2 sets that are never left, \[\['b'\], \['c'\]\]; give start=",
        ),
    ],
)
def test_questions_that_are_refused(illness, ask, match):
    with pytest.raises(ValueError, match=match):
        ask(illness)
