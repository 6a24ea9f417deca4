"""Options: every wrong one is refused before anything is done, by a message that begins with its name."""

from fractions import Fraction

import numpy as np
import pytest

import jumpmeans as jm
from jumpmeans import comparators as co
from jumpmeans.options import choice, count, families, is_list, listed, number, seed, state_labels

PANEL = jm.Panel.from_arrays([0.0, 1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 5.0, 4.0, 0.0], [0, 0, 0, 1, 1])

MODELS = {
    "JumpMeans": lambda **options: jm.JumpMeans(**{"n_states": 2} | options),
    "InfiniteJumpMeans": jm.InfiniteJumpMeans,
    "EM": lambda **options: co.EM(**{"n_states": 2} | options),
    "Gibbs": lambda **options: co.Gibbs(**{"n_states": 2, "emission": "gaussian"} | options),
    "ParticleGibbs": lambda **options: co.ParticleGibbs(**{"emission": "gaussian"} | options),
    "MLTrajectory": lambda **options: co.MLTrajectory(jm.Process([1.0, 1.0], [[0, 1], [1, 0]]), **options),
}
NO_COUNTS = ["auto", True, 1.5, 0, -1, np.nan, "2", [2]]
# Beyond what products with the data can be held by floats; the least one made J infinite.
NO_PRICES = [5e-324, 1e308]
NO_NUMBERS = [np.nan, -1, np.inf, "x", None, True, 10**400, np.array(1.0), 1j]
# Of each option, what it must not be; a model is asked about those it has.
WRONG = {
    "n_states": NO_COUNTS,
    "max_states": [None, *NO_COUNTS],
    "start_states": [None, *NO_COUNTS],
    "max_iter": [None, *NO_COUNTS],
    "n_init": [None, True, 0, 1.5, "many"],
    "n_samples": [None, 10**400, *NO_COUNTS],
    "thin": [None, *NO_COUNTS],
    "n_chains": [None, 10**400, *NO_COUNTS],
    "n_iter": [None, 10**400, *NO_COUNTS],
    "n_particles": [None, 1, 10**400, *NO_COUNTS],
    "burn_in": [None, "auto", True, -1, 1.5],
    "jumps_per_gap": [None, True, 0, 1.5, "all"],
    "max_jumps_per_gap": [None, 10**400, True, 0, 1.5, "all"],
    "refine": [None, True, -1, 1.5, "all"],
    "tol": NO_NUMBERS,
    "transition_weight": [*NO_NUMBERS, *NO_PRICES],
    "emission_weight": [*NO_NUMBERS, *NO_PRICES, [], [1.0, -1.0], ["x"], [[1.0]], {1.0}],
    "pseudo_count": [*NO_NUMBERS, *NO_PRICES, (0.01, -5), (0.01, 1e308), [], [0.01], (1.0, 1.0, 1.0), {"jumps": 1.0}],
    "prior_dwell_count": [*NO_NUMBERS, *NO_PRICES],
    "prior_dwell_time": [*NO_NUMBERS, *NO_PRICES],
    "prior_time": [*NO_NUMBERS, *NO_PRICES],
    "state_cost": [*NO_NUMBERS, *NO_PRICES],
    "shared_row_weight": [*NO_NUMBERS, *NO_PRICES],
    "concentration": [0, *NO_NUMBERS],
    "epsilon": [0, *NO_NUMBERS],
    "emission": [None, 3, "normal", ["gaussian", None], [], {"x": "gaussian"}, True],
    "states": ["ab", 3, {"a", "b"}, {"a": 1}, [], [["a", "b"]], [{}], np.array("a")],
    "structure": [{}, {"a": ["b"]}, True, np.ones((2, 2))],
    "init": [None, "zero", True, ["data"]],
    "search": [None, "wide", True],
    "first_dwell": [None, "whole", True],
    "objective": [None, "other", True],
    "proposals": [None, "some", ["split"], True, {"pair"}],
    "check": [None, "yes", 1],
    "accelerate": [None, "yes", 1],
    "offsets": ["person", True, 1, ["sequence"]],
    "offset_sd": [None, "some", True, *NO_PRICES, -1, np.nan, ["auto", -1], []],
    "frailty": ["person", True, 1, ["sequence"]],
    "frailty_variance": [None, "some", True, -1, np.nan, np.inf, 1e9],
    "random_state": [-1, 1.5, "seed", True, [-1], np.random],
    "engine": [None, "gpu", 4],
}
CASES = [
    pytest.param(model, name, value, id=f"{model}-{name}-{k}")
    for model, make in MODELS.items()
    for name, values in WRONG.items()
    if name in make().get_params(deep=False)
    for k, value in enumerate(values)
]


@pytest.mark.parametrize(("model", "name", "value"), CASES)
def test_a_wrong_option_is_refused_by_its_name(model, name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be .*got "):
        MODELS[model](**{name: value}).fit(PANEL)


@pytest.mark.parametrize("model", MODELS)
def test_every_option_is_asked_about(model):
    """Each option of a class but those that are models themselves has its wrong values above, and a rule."""
    made = MODELS[model]()
    assert set(made.get_params(deep=False)) - {"start", "process"} <= set(WRONG)
    assert set(made.get_params(deep=False)) - {"start", "process", "engine"} == set(made.rules)


def test_a_wrong_option_is_refused_before_the_data_are_looked_at():
    for make in MODELS.values():
        option = "epsilon" if "epsilon" in make().get_params(deep=False) else "random_state"
        with pytest.raises(ValueError, match=f"^{option} must be"):
            make(**{option: -1}).fit("no panel at all")


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (count(2), [2, np.int8(5), 10**30], [1, 2.0, "2", np.True_, Fraction(4, 1) / 3]),
        (number(above=0), [1, 1e-300, np.float32(2), Fraction(1, 3)], [0, -1.0, np.inf, 10**400, "1", 1 + 0j, None]),
        (choice("a", "b"), ["a", np.str_("b")], ["c", ["a"], None, b"a"]),
        (listed(count(), "a list", 1, 2), [[1], (1, 2), np.array([3]), range(1, 3)], [[], [1, 2, 3], 1, "1", {1}]),
        (families, ["gaussian", ["gaussian", "poisson"], ("direct",)], [None, [], [1], {"gaussian"}]),
        (state_labels, [None, ["a"], range(3), np.arange(2), [None, 1, "x"]], ["a", [], [["a"]], {"a"}, 3]),
        (seed, [None, 0, [1, 2], np.random.default_rng(0), np.random.SeedSequence(1)], [-1, 1.0, "0", True]),
    ],
    ids=["count", "number", "choice", "listed", "families", "states", "seed"],
)
def test_rules(rule, good, bad):
    for value in good:
        rule.check("it", value)
    for value in bad:
        with pytest.raises(ValueError, match=r"^it must be"):
            rule.check("it", value)


def test_columns_of_frames_are_lists():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for column in (pd.Series(["a", "b"]), pl.Series(["a", "b"])):
        assert is_list(column)
        model = jm.JumpMeans(emission="direct", states=column, refine=0)
        assert model.fit(jm.Panel.from_arrays([0.0, 1.0], ["a", "b"], [0, 0])).states_.tolist() == ["a", "b"]


def test_a_long_value_is_shown_in_part():
    with pytest.raises(
        ValueError, match=r"^tol must be 'auto' or a finite number >= 0, got \[0, 0, .*\.\.\. \(list\)\.$"
    ) as error:
        jm.JumpMeans(2, tol=[0] * 10_000).fit(PANEL)
    assert len(str(error.value)) < 300
