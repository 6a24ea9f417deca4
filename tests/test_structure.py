"""Structure: the moves that may happen, however they are said."""

import numpy as np
import pytest

import jumpmeans as jm
from jumpmeans import Structure
from jumpmeans.model.structure import jumps_needed

STATES = np.array(["well", "ill", "dead"])
ONWARD = [[False, True, True], [False, False, True], [False, False, False]]


@pytest.mark.parametrize(
    "structure",
    [
        Structure(allowed=ONWARD),
        Structure(allowed=np.array(ONWARD, dtype=int)),
        Structure(allowed=[[-0.3, 0.2, 0.1], [0, -0.4, 0.4], [0, 0, 0]]),
        Structure(allowed={"well": ["ill", "dead"], "ill": ["dead"]}),
        Structure(allowed={"well": np.array(["ill", "dead"]), "ill": {"dead"}}),
        Structure(allowed=np.triu(np.ones((3, 3))), absorbing=["dead"]),
    ],
)
def test_the_same_moves_said_in_many_ways(structure):
    np.testing.assert_array_equal(structure.allowed_moves(STATES), ONWARD)


def test_nothing_said_allows_all_but_staying():
    np.testing.assert_array_equal(Structure().allowed_moves(STATES), ~np.eye(3, dtype=bool))
    assert jumps_needed(Structure().allowed_moves(STATES)) == 1
    chain = Structure(allowed={"well": ["ill"], "ill": ["dead"]}).allowed_moves(STATES)
    assert jumps_needed(chain) == 2


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"allowed": [["False", "True"] * 2]}, r"allowed must be a \(3, 3\) table of moves .* got shape \(1, 4\)"),
        # was taken as True, every entry
        ({"allowed": np.full((3, 3), "False")}, r"allowed must hold True and False, or numbers >= 0, got \[\['False'"),
        ({"allowed": np.full((3, 3), np.nan)}, "allowed must hold True and False, or numbers >= 0"),
        ({"allowed": -np.ones((3, 3))}, "allowed must hold True and False, or numbers >= 0"),
        ({"allowed": [[1], [1, 0], [0]]}, r"allowed must be a \(3, 3\) table of moves .* got shape \(0,\)"),
        ({"allowed": {"well": "ill"}}, r"allowed must list states, got 'ill'; write \['ill'\]"),
        ({"allowed": {"well": None}}, "allowed must list states, got None"),
        ({"allowed": {"fine": ["ill"]}}, "structure must name states among .* got 'fine'"),
        ({"absorbing": "dead"}, r"absorbing must list states, got 'dead'; write \['dead'\]"),
        ({"absorbing": 3}, "absorbing must list states, got 3"),
        ({"absorbing": np.array("dead")}, "absorbing must list states, got array"),
        ({"absorbing": ["gone"]}, "structure must name states among .* got 'gone'"),
    ],
)
def test_misuse_says_what_must_hold(options, match):
    with pytest.raises(ValueError, match=match):
        Structure(**options).allowed_moves(STATES)


def test_messages_of_many_states_stay_short():
    # caught: every label in the message
    with pytest.raises(ValueError, match="structure must name states among") as error:
        Structure(absorbing=["x"]).allowed_moves(np.arange(5000))
    assert len(str(error.value)) < 200


# ------------------------------------------------------------ free parameters


def test_free_parameters_are_counted_once():
    """Rates: shared ones once, known ones never; π unless it is known; the emission's own."""
    P = (np.ones((3, 3)) - np.eye(3)) / 2
    process = jm.Process([1.0, 1.0, 1.0], P, states=STATES)
    assert Structure().n_free(process) == 6 + 2
    assert Structure(initial="uniform").n_free(process) == 6
    assert Structure(initial="given").n_free(process) == 6
    assert Structure(absorbing=["dead"]).n_free(process) == 4 + 2
    fixed = {("well", "dead"): 0.1, ("dead", "ill"): 0.0}
    assert Structure(fixed=fixed, initial={"well": 1.0}).n_free(process) == 4
    equal = [[("well", "ill"), ("ill", "well"), ("dead", "well")]]
    assert Structure(fixed=fixed, equal=equal, initial=[0.5, 0.5, 0]).n_free(process) == 2
    hidden = jm.Process([1.0] * 3, P, emission=jm.emissions.Gaussian([0.0, 1.0, 2.0]), states=STATES)
    assert Structure(initial="uniform").n_free(hidden) == 6 + 6
    symbols = jm.emissions.Categorical(np.full((3, 4), 0.25), list("abcd"))
    assert symbols.n_parameters == 9
    # one entry known, two known, all but one known (which then is known too)
    known = {(0, "a"): 0.5, (1, "a"): 0.0, (1, "b"): 0.1, (2, "a"): 0.0, (2, "b"): 0.0, (2, "c"): 0.2}
    assert symbols.with_fixed(known).n_parameters == 2 + 1 + 0


# -------------------------------------------------------- known and shared values

WELL_ILL, ILL_WELL = ("well", "ill"), ("ill", "well")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (
            {"initial": "given first"},
            r"initial must be one of \('estimated', 'uniform', 'given'\), or probabilities, got",
        ),
        ({"initial": "well"}, r"got 'well'; one state alone is \{'well': 1.0\}"),
        ({"initial": [0.5, 0.5]}, "initial must be a probability for each of the 3 states that sum to 1"),
        ({"initial": [0.5, 0.6, 0.0]}, "initial must be a probability for each .* divide them by their sum"),
        ({"initial": [1.5, -0.5, 0.0]}, "initial must be a probability for each"),
        ({"initial": [np.nan, 1.0, 0.0]}, "initial must be a probability for each"),
        ({"initial": ["a", "b", "c"]}, "initial must be a probability for each"),
        ({"initial": {"fine": 1.0}}, "structure must name states among .* got 'fine'"),
        ({"fixed": 3}, r"fixed must be \{\(state, next state\): rate\} or \{'rates': .* got 3"),
        ({"fixed": {"rate": {WELL_ILL: 1.0}}}, r"fixed must be .* got \{'rate'"),
        ({"fixed": {"rates": [1.0]}}, r"fixed must be .* got \{'rates'"),
        ({"fixed": {7: 1.0}}, r"fixed must name moves as \(state, next state\), got 7"),
        ({"fixed": {("well", "gone"): 1.0}}, "structure must name states among .* got 'gone'"),
        ({"fixed": {("well", "well"): 1.0}}, "between two states, got .*; staying has no rate"),
        (
            {"fixed": {WELL_ILL: -1.0}},
            r"must hold a finite rate >= 0, got -1.0 for \('well', 'ill'\); correct it",
        ),
        ({"fixed": {WELL_ILL: np.nan}}, "fixed must hold a finite rate >= 0, got nan"),
        ({"fixed": {WELL_ILL: np.inf}}, "fixed must hold a finite rate >= 0, got inf"),
        ({"fixed": {WELL_ILL: "fast"}}, "fixed must hold a finite rate >= 0, got 'fast'"),
        ({"fixed": {WELL_ILL: 1.0}, "absorbing": ["well"]}, "fixed must name moves that may happen, got the rate 1.0"),
        ({"equal": [[WELL_ILL, ILL_WELL]], "absorbing": ["ill"]}, "equal must name moves that may happen"),
        ({"equal": [[WELL_ILL, ILL_WELL]], "fixed": {WELL_ILL: 0.0}}, "a fixed rate of 0 rules out"),
        ({"equal": [[WELL_ILL, ILL_WELL]], "fixed": {WELL_ILL: 2.0}}, "whose rate is fixed at 2; fix the rates of all"),
        ({"equal": [WELL_ILL, ILL_WELL]}, r"equal must name moves as \(state, next state\), got 'well'"),
        ({"equal": [[WELL_ILL]]}, r"each list of equal must hold two moves or more, got \[\('well', 'ill'\)\]"),
        ({"equal": [[WELL_ILL, WELL_ILL]]}, "equal must name each move once, got .* twice in one list"),
        ({"equal": [[WELL_ILL, ILL_WELL], [WELL_ILL, ("ill", "dead")]]}, "got .* in two lists; join the lists"),
        ({"equal": 5}, "equal must list states, got 5"),
    ],
)
def test_contradictions_say_what_to_do(options, match):
    with pytest.raises(ValueError, match=match):
        Structure(**options).constraints(STATES)


@pytest.mark.parametrize(
    ("entries", "match"),
    [
        ({"well": 0.0}, r"must be \(state, label\) or \(state, column, label\), got 'well'"),
        ({("well", "v"): 1.5}, "fixed must hold a probability from 0 to 1, got 1.5"),
        ({("well", "q"): 0.5}, r"fixed must name labels among \['u', 'v'\], got 'q'"),
        ({("fine", "u"): 0.5}, "structure must name states among .* got 'fine'"),
        ({("well", "elsewhere", "u"): 0.5}, "fixed must name a column among .* got 'elsewhere'"),
        ({("well", "u"): 0.7, ("well", "v"): 0.7}, "must sum to at most 1, .* got the sum 1.4 for state 0"),
        ({("well", "u"): 0.7, ("well", "v"): 0.2}, "and to 1 if all labels have one, got the sum 0.9"),
        ({("well", "b", "u"): 0.7}, r"must name entries among \['mean', 'sd'\] for emission 'gaussian', got 'u'"),
        ({("well", "means"): 0.5}, r"fixed must name labels among \['u', 'v'\], got 'means'"),
        ({("well", "b", "Mean"): 0.5}, r"got 'Mean' \(did you mean 'mean'\?\)"),
        ({("well", "sd"): 0.0}, "fixed must hold a finite number > 0, got 0.0"),
        ({("well", "mean"): np.inf}, "fixed must hold a finite number, got inf"),
    ],
)
def test_emission_entries_that_cannot_be(entries, match):
    record = jm.emissions.Record(
        [jm.emissions.Categorical(np.full((3, 2), 0.5), ["u", "v"]), jm.emissions.Gaussian([0, 1, 2])]
    )
    with pytest.raises(ValueError, match=match):
        Structure(fixed={"emission": entries}).fix_emission(record, STATES, ["a", "b"])


def test_entries_of_no_symbols_and_of_several_columns():
    columns = [jm.emissions.Categorical(np.full((3, 2), 0.5), ["u", "v"])] * 2
    with pytest.raises(ValueError, match=r"must be of one column, got .*, which 2 columns may have; name the column"):
        Structure(fixed={"emission": {("well", "u"): 0.1}}).fix_emission(jm.emissions.Record(columns), STATES, "ab")
    with pytest.raises(ValueError, match="which 0 columns may have"):
        seen = jm.emissions.Record([jm.emissions.Direct(["u", "v", "w"])])
        Structure(fixed={"emission": {("well", "u"): 0.1}}).fix_emission(seen, STATES, "a")
    with pytest.raises(
        ValueError, match=r"must be of a column with probabilities or measurements, got 1 for .*'direct'"
    ):
        Structure(fixed={"emission": {("well", "a", "u"): 0.1}}).fix_emission(seen, STATES, "a")
    with pytest.raises(ValueError, match="fixed must hold a finite number from 0 to 1, got 2"):
        ill = jm.emissions.Record([jm.emissions.Bernoulli([0.1, 0.5, 0.9])])
        Structure(fixed={"emission": {("well", "mean"): 2}}).fix_emission(ill, STATES, "a")
    both = Structure(fixed={"emission": {("well", "b", "u"): 0.1, ("ill", "a", "v"): 0.0}})
    first, second = both.fix_emission(jm.emissions.Record(columns), STATES, "ab").columns
    np.testing.assert_allclose(second.probs, [[0.1, 0.9], [0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(first.probs, [[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]])


def test_fixed_entries_go_with_their_states():
    column = jm.emissions.Categorical(np.full((3, 2), 0.5), ["u", "v"]).with_fixed({(0, "u"): 0.1})
    turned = column.take(np.array([2, 0]))
    assert turned.probs.tolist() == [[0.5, 0.5], [0.1, 0.9]] and turned.n_parameters == 1
    joined = turned.join(column)
    assert joined.probs[[1, 2], 0].tolist() == [0.1, 0.1] and joined.n_parameters == 3
    assert column.noisy(np.zeros(2), np.random.default_rng(0)).probs[0].tolist() == [0.1, 0.9]
