"""Process: what it refuses, what it says of itself with labels, and rates from the literature."""

import numpy as np
import pytest

import jumpmeans as jm
from jumpmeans.model.params import Params

SWAP = [[0, 1], [1, 0]]
Gaussian = jm.emissions.Gaussian


@pytest.fixture
def illness():
    return jm.Process(
        [0.25, 0.4, 0.0], [[0, 0.8, 0.2], [0, 0, 1], [0, 0, 0]], [1, 0, 0], states=["well", "ill", "dead"]
    )


# ------------------------------------------------------------------------------------------------- tables


def test_the_generator_comes_with_labels(illness):
    table = illness.generator(time_unit="year")
    np.testing.assert_allclose(table.values, [[-0.25, 0.2, 0.05], [0, -0.4, 0.4], [0, 0, 0]], rtol=1e-15)
    np.testing.assert_array_equal(table.values, illness.rate_matrix)
    assert table["ill", "dead"] == 0.4 and table.unit == "1/year"
    assert (table.row_name, table.column_name) == ("from", "to")
    assert illness.generator().unit is None


def test_mean_dwells_and_next_states_come_with_labels(illness):
    dwells = illness.sojourn(time_unit="year")
    assert [dwells[state, "mean"] for state in dwells] == [4.0, 2.5, np.inf] and dwells.unit == "year"
    following = illness.next_state()
    assert following["well", "ill"] == 0.8 and following["dead"].tolist() == [0, 0, 0]
    # a state that is never left has no next one, whatever its row holds
    stuck = jm.Process([0.5, 0.0], SWAP, states=["a", "b"])
    assert stuck.next_state()["b"].tolist() == [0, 0]


def test_what_is_given_is_copied():
    rates = np.array([1.0, 0.5])
    process = jm.Process(rates, SWAP)
    rates[0] = 9.0
    assert process.rates.tolist() == [1.0, 0.5]


def test_permuting_keeps_every_number_with_its_label(illness):
    turned = illness.take(np.array([2, 0, 1]))
    for a in illness.states.tolist():
        for b in illness.states.tolist():
            assert turned.generator()[a, b] == illness.generator()[a, b]
    params = Params(illness.rates, illness.transition_probs, illness.emission, illness.initial_probs)
    assert params.take(np.array([2, 0, 1])).base_row.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(params.jump_chain(), illness.transition_probs)


# ------------------------------------------------------------------------------------------------- from rates


def test_a_rate_matrix_goes_in_and_comes_out():
    Q = np.array([[-0.7, 0.5, 0.2], [0.1, -0.1, 0], [0, 0, 0]])
    process = jm.Process.from_generator(Q, states=["a", "b", "c"])
    np.testing.assert_allclose(process.rate_matrix, Q, rtol=1e-15)
    assert process.rates.tolist() == [0.7, 0.1, 0.0] and Q[0, 0] == -0.7
    again = jm.Process.from_generator(process.generator())
    np.testing.assert_allclose(again.rate_matrix, Q, rtol=1e-15)
    assert again.states.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("diagonal", [0.0, np.nan, -0.30, -0.301])
def test_the_diagonal_may_be_left_out_or_rounded(diagonal):
    # caught: a diagonal taken at its word, which would give the rate .301
    process = jm.Process.from_generator([[diagonal, 0.2, 0.1], [0.4, -0.4, 0], [0, 0, 0]])
    np.testing.assert_allclose(process.rates, [0.3, 0.4, 0.0], rtol=1e-15)


def test_moves_by_name(illness):
    named = jm.Process.from_generator({"well": {"ill": 0.2, "dead": 0.05}, "ill": {"dead": 0.4}}, [1, 0, 0])
    assert named.states.tolist() == ["well", "ill", "dead"]
    np.testing.assert_allclose(named.rate_matrix, illness.rate_matrix, rtol=1e-15)


@pytest.mark.parametrize(
    ("generator", "options", "match"),
    [
        ([[0, 1, 2]], {}, r"square table of rates, a row for each state, got shape \(1, 3\)"),
        ([], {}, r"square table of rates, .* got shape \(0,\)"),
        (np.empty((0, 0)), {}, r"square table of rates, .* got shape \(0, 0\)"),
        ({}, {}, r"square table of rates, .* got shape \(0, 0\)"),
        ([[0, "x"], [1, 0]], {}, "generator must be numbers, in rows of one length"),
        ([[0, 1], [1]], {}, "generator must be numbers, in rows of one length"),
        ([[0, -1], [1, 0]], {"states": ["a", "b"]}, "rates of moves must be finite and >= 0, got -1 for 'a' to 'b'"),
        ([[0, np.nan], [1, 0]], {}, "rates of moves must be finite and >= 0, got nan for 0 to 1"),
        ([[0.9, 0.1], [0.2, 0.8]], {}, "minus the sum of the rest of its row, got 0.9 where the rest sums to 0.1 in"),
        ([[-0.5, 0.2], [0.2, -0.2]], {}, "got -0.5 where the rest sums to 0.2 in row 0; give rates, not probabilities"),
        ([[0, 1e308, 1e308], [1, 0, 0], [1, 0, 0]], {}, "rates must be finite and >= 0, got inf for 0"),
        ({"a": {"b": 1}}, {"states": ["x", "y"]}, "states must be left out where the generator names them"),
        ({"a": ["b"]}, {}, r"generator must be {state: {next state: rate}}, got \['b'\] for 'a'"),
        ({"a": {"b": "fast"}}, {}, "rates of moves must be a finite number >= 0"),
        ({"a": {"b": 1, "a": 3}}, {}, "minus the sum of the rest of its row, got 3"),
    ],
)
def test_rate_matrices_that_are_refused(generator, options, match):
    with pytest.raises(ValueError, match=match):
        jm.Process.from_generator(generator, **options)


# ------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (([],), "rates must hold one number for each state, got none; a process has at least one state"),
        (([], []), "rates must hold one number for each state, got none"),
        (([1, 2],), r"transition_probs must be given, a table of shape \(2, 2\) with zero diagonal, got None"),
        ((["fast", "slow"], SWAP), "rates must be numbers, in rows of one length, got"),
        ((SWAP, SWAP), r"one number for each state, got shape \(2, 2\); a rate matrix goes in by Process.from_gen"),
        (([1, np.nan], SWAP), "rates must be finite and >= 0, got nan for 1"),
        (([1, np.inf], SWAP), "rates must be finite and >= 0, got inf for 1"),
        (([10**400, 1], SWAP), "rates must be numbers, in rows of one length"),
        (([1, 1], SWAP, [1e308, 1e308]), "initial_probs must be 2 probabilities"),
        (([1, 1, 1], [[0, 1e308, 1e308], [1, 0, 0], [1, 0, 0]]), "got a row sum of inf for 0"),
        (([-1, 1], SWAP), "rates must be finite and >= 0, got -1 for 0"),
        (([1, 1], [[0, 1]]), r"transition_probs must have shape \(2, 2\) to match the rates, got \(1, 2\)"),
        (([1, 1], [[0, 1], [1]]), "transition_probs must be numbers, in rows of one length"),
        (([1, 1], [[0, 1], [2, -1]]), r"zero diagonal \(it is the jump chain, not the generator\), got -1 for 1 to 1"),
        (([1, 1], [[0, np.nan], [1, 0]]), "transition_probs must be >= 0 .* got nan for 0 to 1"),
        (([1, 1], [[0, 0.5], [1, 0]]), "must sum to 1 where the rate is positive, got a row sum of 0.5 for 0"),
        (([0, 1], [[0, 1.5], [1, 0]]), "got a row sum of 1.5 for 0"),
        (([1, 1], SWAP, [0.5, 0.6]), r"initial_probs must be 2 probabilities that sum to 1, got \[0.5, 0.6\]"),
        (([1, 1], SWAP, [np.nan, 1]), r"initial_probs must be 2 probabilities that sum to 1, got \[nan, 1.0\]"),
        (([1, 1], SWAP, [1]), "initial_probs must be 2 probabilities"),
        (([1, 1], SWAP, "even"), "initial_probs must be numbers"),
        (([1, 1], SWAP, None, "gaussian"), "emission must be one of jumpmeans.emissions .* got 'gaussian'"),
        (([1, 1], SWAP, None, Gaussian), "emission must be one of jumpmeans.emissions such as"),
        (([1, 1], SWAP, None, []), r"emission must be one of .*, or a list of them, got \[\]"),
        (([1, 1], SWAP, None, [Gaussian([0, 1], sds=1), 3]), "emission must be one of .*, or a list of them, got"),
        (([1, 1], SWAP, None, Gaussian([0, 1, 2], sds=1)), "emission must have 2 states to match the rates, got 3"),
        (([1, 1], SWAP, None, None, ["a"]), r"states must be a list of 2 labels to match the rates, got \['a'\]"),
        (([1, 1], SWAP, None, None, "ab"), "states must be a list of 2 labels to match the rates, got 'ab'"),
        (([1, 1], SWAP, None, None, [["a"], ["b", "c"]]), "states must be a list of 2 labels"),
        (([1, 1], SWAP, None, None, ["a", "a"]), "states must be distinct, got 'a' twice"),
        (([1, 1], SWAP, None, None, ["a", None]), r"states must not be missing, got \['a', None\]"),
        (([1, 1], SWAP, None, None, [0.0, np.nan]), "states must not be missing"),
    ],
)
def test_a_process_checks_all_it_is_given(arguments, match):
    with pytest.raises(ValueError, match=match):
        jm.Process(*arguments)


def test_messages_stay_short():
    # caught: the whole table in the message, 8,000 characters of 30 states
    M = 30
    for P, pi in ((-np.ones((M, M)), None), ((1 - np.eye(M)) / (M - 1), np.ones(M))):
        with pytest.raises(ValueError) as error:
            jm.Process(np.ones(M), P, pi)
        assert len(str(error.value)) < 200
