"""Simulation: what is refused before it would hang, and what is drawn."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import expm

import jumpmeans as jm
from jumpmeans.model.effects import Covariate, Effects
from jumpmeans.model.process import Process
from jumpmeans.simulation import _expected_jumps

SWAP = [[0, 1], [1, 0]]
TWO = jm.Process([1.0, 0.5], SWAP)


@pytest.mark.parametrize(
    ("arguments", "options", "match"),
    [
        (([[-1, 1], [1, -1]],), {}, "process must be a jumpmeans.Process, got list; Process.from_generator"),
        ((np.eye(2),), {}, "process must be a jumpmeans.Process, got ndarray"),
        ((TWO, 0), {}, "n_sequences must be an integer from 1 to 500000000, got 0"),
        ((TWO, 2.5), {}, "n_sequences must be an integer from 1 to 500000000, got 2.5"),
        ((TWO, 2, True), {}, "n_observations must be an integer from 1 to 500000000, got True"),
        ((TWO, 2, 3), {"gaps": "random"}, r"gaps must be 'exponential', 'regular' or an array of shape \(2, 2\)"),
        ((TWO, 2, 3), {"gaps": np.ones((3, 3))}, r"gaps must be .* numbers of shape \(2, 2\), got array"),
        ((TWO, 2, 3), {"gaps": None}, r"gaps must be finite and above 0, got nan after look 0 of sequence 0"),
        ((TWO, 2, 3), {"gaps": [["x"]]}, r"numbers of shape \(2, 2\), got \[\['x'\]\]"),
        ((TWO, 2, 3), {"gaps": [[1, 1], [1, -2]]}, "finite and above 0, got -2 after look 1 of sequence 1"),
        ((TWO, 2, 3), {"gaps": 0.0}, "finite and above 0, got 0 after look 0 of sequence 0"),
        # the next two did not stop
        ((TWO, 2, 3), {"gaps": np.inf}, "gaps must be finite and above 0, got inf"),
        ((TWO, 2, 3), {"mean_gap": np.inf}, "mean_gap must be a finite number > 0, got inf"),
        ((TWO, 2, 3), {"mean_gap": np.nan}, "mean_gap must be a finite number > 0, got nan"),
        ((TWO, 2, 3), {"mean_gap": -1, "gaps": "regular"}, "mean_gap must be a finite number > 0, got -1"),
        ((TWO, 2, 3), {"mean_gap": "day"}, "mean_gap must be a finite number > 0, got 'day'"),
        ((TWO, 2, 3), {"gaps": [[10**400]]}, r"numbers of shape \(2, 2\), got"),
        ((TWO, 2, 3), {"random_state": "x"}, "random_state must be an integer >= 0, a Generator or None, got 'x'"),
        ((TWO, 2, 3), {"gaps": 1e308}, "gaps must sum to a finite time, got 1e.308 as the longest; change the unit"),
    ],
)  # fmt: skip
def test_misuse_says_what_must_hold(arguments, options, match):
    with pytest.raises(ValueError, match=match):
        jm.simulate(*arguments, **options)


class Lost(jm.emissions.Gaussian):
    """Readings that are lost in one state."""

    def sample(self, states, rng):
        return np.where(np.asarray(states) == 1, np.nan, 0.0)


def test_an_emission_must_show_numbers():
    process = jm.Process([1.0, 0.5], SWAP, [0, 1], Lost([0, 1], sds=1), states=["a", "b"])
    with pytest.raises(ValueError, match=r"emission must show finite values, got \[nan\] in state 'b'; check"):
        jm.simulate(process, 2, 3)


# ------------------------------------------------------------------------------------------------- how many jumps


@pytest.mark.parametrize(
    ("process", "options"),
    [
        (jm.Process([1e12, 1.0], SWAP), {"mean_gap": 1e8}),
        (jm.Process([1e12, 1e12], SWAP), {}),
        (TWO, {"mean_gap": 1e200}),
        (TWO, {"mean_gap": 1e7}),
        (TWO, {"gaps": 4e307}),
        # a fast state between slow ones: to all digits it is left at once, yet the others go on
        (jm.Process([1e18, 1.0, 1.0], [[0, 0.5, 0.5], [1, 0, 0], [1, 0, 0]]), {"mean_gap": 1e8}),
    ],
)
def test_too_many_jumps_are_refused_before_they_are_drawn(process, options):
    with pytest.raises(ValueError, match=r"at most 1e\+06 jumps in a sequence .* shorten the gaps or slow the process"):
        jm.simulate(process, 2, 5, **options)


def test_many_sequences_count_together():
    with pytest.raises(ValueError, match=r"and 5e\+08 in all can be drawn, got up to .*e\+05 and .*e\+09 to be"):
        jm.simulate(jm.Process([1e4, 1e4], SWAP), 2000, 21, gaps="regular")


def test_a_fast_state_on_the_way_to_a_lasting_one_is_no_hindrance():
    # caught: a bound by the largest rate times the window, 1e12 jumps
    process = jm.Process([1e12, 1.0, 0.0], [[0, 1, 0], [0, 0, 1], [0, 0, 0]], [1, 0, 0])
    _, truth = jm.simulate(process, 50, 10, mean_gap=10.0)
    assert truth.n_jumps == 100


@pytest.mark.parametrize("rates", [(1.0, 0.5), (30.0, 2.0), (5.0, 0.0)])
def test_the_bound_holds_and_is_near(rates):
    """Mean jumps of 4,000 windows of length 3 lie below the bound, and above a sixth of it."""
    process: Process = jm.Process(rates, SWAP)
    _, truth = jm.simulate(process, 4000, 2, gaps=3.0)
    bound = _expected_jumps(process, 3.0)
    assert bound / 6 < truth.n_jumps / 4000 < bound


# ------------------------------------------------------------------------------------------------- what is drawn


def test_one_look_and_one_state():
    panel, truth = jm.simulate(TWO, 4, 1)
    assert panel.n_observations == 4 and truth.n_jumps == 0
    panel, truth = jm.simulate(jm.Process([0.0], [[0]]), 3, 5)
    assert truth.n_jumps == 0 and panel.labels(0).tolist() == [0]


def test_gaps_given_are_kept_and_the_panel_shows_the_truth():
    gaps = np.array([[1.0, 2.0, 4.0], [0.5, 0.5, 9.0]])
    panel, truth = jm.simulate(TWO, 2, 4, gaps=gaps)
    np.testing.assert_allclose(panel.times, [0, 1, 3, 7, 0, 0.5, 1, 10])
    np.testing.assert_array_equal(panel.values[:, 0], truth.at(panel.times, np.repeat([0, 1], 4)))
    np.testing.assert_allclose(jm.simulate(TWO, 2, 4, gaps=2.0)[0].gaps()[0], 2.0)


def test_rates_chain_and_first_states_are_those_of_the_process():
    P = np.array([[0, 0.7, 0.3], [0.2, 0, 0.8], [0.5, 0.5, 0]])
    process = jm.Process([0.5, 1.0, 2.0], P, [0.6, 0.3, 0.1])
    _, truth = jm.simulate(process, 4000, 11, random_state=3)
    counts, time = truth.jump_counts(), truth.time_in_state().sum(axis=0)
    # about five standard errors
    np.testing.assert_allclose(counts.sum(axis=1) / time, process.rates, rtol=0.05)
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), P, atol=0.02)
    first = np.bincount(truth.codes[truth.offsets[:-1]], minlength=3) / 4000
    np.testing.assert_allclose(first, process.initial_probs, atol=0.04)


def depending(breaks=False):
    """Three states in a ring; the first covariate acts on all rates, the second on those of the first state."""
    coefs = np.zeros((2, 3, 3))
    coefs[0], coefs[1, 0] = 0.8, -0.5
    columns = [Covariate("dose"), Covariate("sex", labels=["F", "M"])]
    if breaks:
        columns = [Covariate("dose"), Covariate("time", edges=[2.5])]
    effects = Effects(columns, np.array([1.0, 0.5]), coefs, np.where(coefs != 0, 0, -1))
    P = [[0, 0.7, 0.3], [0.4, 0, 0.6], [0.5, 0.5, 0]]
    return jm.Process([0.5, 1.0, 0.8], P, [1.0, 0, 0], effects=effects)


def test_states_under_covariates_that_change():
    """Shares of the states at the looks are products of exponentials of the rates of each gap; the second gap is cut at
    the break.
    """
    S = 20_000
    for process, second in ((depending(), {"sex": ["F", "M", "F"]}), (depending(breaks=True), {})):
        given = {"dose": np.tile([0.0, 1.5, 0.5], (S, 1))}
        given |= {name: np.tile(values, (S, 1)) for name, values in second.items()}
        panel, truth = jm.simulate(process, S, 3, gaps=[[1.5, 2.0]], covariates=given, random_state=2)
        pieces = [(1.5, {"dose": 0.0, "sex": "F"}), (2.0, {"dose": 1.5, "sex": "M"})]
        if not second:
            pieces = [(1.5, {"dose": 0.0, "time": 0}), (1.0, {"dose": 1.5, "time": 0}), (1.0, {"dose": 1.5, "time": 3})]
        row, shares = np.array([1.0, 0.0, 0.0]), []
        for length, values in pieces:
            own = process.at(values)
            row = row @ expm((own.rates[:, None] * (own.transition_probs - np.eye(3))) * length)
            shares.append(row)
        for time, expected in ((1.5, shares[0]), (3.5, shares[-1])):
            found = np.bincount(truth.at(np.full(S, time), np.arange(S)), minlength=3) / S
            np.testing.assert_allclose(found, expected, atol=4 * np.sqrt(0.25 / S))
        assert panel.covariates.column("dose").tolist()[:3] == [0, 1.5, 0.5]


def test_ways_to_give_covariates():
    process, S, L = depending(), 4, 3
    by_name = {"dose": np.array([0.0, 1.0, 2.0, 3.0]), "sex": ["F", "M", "M", "F"]}
    expected = jm.simulate(process, S, L, covariates=by_name)
    wide = {
        "dose": np.repeat(by_name["dose"][:, None], L, axis=1),
        "sex": np.repeat([["F"], ["M"], ["M"], ["F"]], L, 1),
    }
    for given in (pd.DataFrame(by_name), wide, lambda times: wide):
        panel, truth = jm.simulate(process, S, L, covariates=given)
        np.testing.assert_array_equal(truth.start_times, expected[1].start_times)
        assert panel.covariates.column("sex").tolist() == expected[0].covariates.column("sex").tolist()
    moves, _ = jm.simulate(process, S, L, exact="all", covariates=by_name)
    assert moves.covariates.column("dose").tolist() == by_name["dose"][moves.sequence_index].tolist()
    with pytest.raises(ValueError, match="covariates must be given for a process whose rates depend on"):
        jm.simulate(process, S, L)
    with pytest.raises(ValueError, match=r"one for each look \(4, 3\), got shape \(2,\) for 'dose'"):
        jm.simulate(process, S, L, covariates={"dose": [1.0, 2.0], "sex": "F"})


def test_effects_of_0_draw_what_covariates_do_not_touch():
    process = depending()
    still = replace(process, effects=replace(process.effects, coefs=np.zeros((2, 3, 3))))
    _, truth = jm.simulate(still, 3000, 5, covariates={"dose": 1.0, "sex": "M"}, random_state=1)
    _, plain = jm.simulate(replace(process, effects=None), 3000, 5, random_state=1)
    np.testing.assert_allclose(truth.time_in_state().mean(axis=0), plain.time_in_state().mean(axis=0), rtol=0.05)
