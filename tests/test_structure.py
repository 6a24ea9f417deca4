"""Structure: the moves that may happen, however they are said."""

import numpy as np
import pytest

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
        ({"initial": [1, 0, 0]}, r"Structure\(initial=...\) is not supported yet; leave it out"),
        ({"fixed": {}}, r"Structure\(fixed=...\) is not supported yet; leave it out"),
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
