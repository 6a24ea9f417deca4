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
