"""Covariates of a panel: read, completed, kept by whatever is derived from it; breaks; effects and what they mean."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import jumpmeans as jm
from jumpmeans.data.breaks import with_breaks
from jumpmeans.errors import PanelError
from jumpmeans.model.dependence import depend
from jumpmeans.model.effects import Covariate, Effects

ROWS = {
    "id": ["a", "a", "b", "b", "b"],
    "time": [0.0, 2, 0, 1, 9],
    "value": ["w", "i", "w", "w", "d"],
    "age": [50, None, 60, 61, None],
    "sex": ["M", "M", "F", None, "F"],
}
NAMES = ["age", "sex"]


def visits(**changes):
    return jm.Panel.from_frame(pd.DataFrame(ROWS | changes), covariates=NAMES)


def columns(panel):
    return {name: panel.to_caller_order(panel.covariates.column(name)).tolist() for name in panel.covariates.names}


def test_what_is_missing_is_carried_forward():
    assert columns(visits()) == {"age": [50, 50, 60, 61, 61], "sex": ["M", "M", "F", "F", "F"]}
    assert visits().covariates.categories[1].tolist() == ["F", "M"]  # the first is the reference


def test_it_is_carried_within_a_sequence_only():
    with pytest.raises(PanelError, match=r"'age' must be known at the first row .* sequence 'b', row 2; fill it in"):
        visits(age=[50, None, None, 61, None])
    with pytest.raises(PanelError, match="covariates must be finite"):
        visits(age=[50, np.inf, 60, 61, None])


def test_every_way_in_reads_the_same(tmp_path):
    expected = columns(visits())
    kept = {name: ROWS[name] for name in NAMES}
    assert columns(jm.Panel.from_arrays(ROWS["time"], ROWS["value"], ROWS["id"], covariates=kept)) == expected
    assert columns(jm.Panel.from_frame(pl.DataFrame(ROWS), covariates=NAMES)) == expected
    pd.DataFrame(ROWS).to_csv(tmp_path / "visits.csv", index=False)
    read = jm.read_panel(tmp_path / "visits.csv", covariates=NAMES)
    assert columns(read) == expected
    again = jm.Panel.from_frame(read.to_frame(), covariates=NAMES)
    assert columns(again) == expected
    ordered = pd.DataFrame(ROWS)
    ordered["sex"] = pd.Categorical(ordered["sex"], ["M", "F"], ordered=True)
    assert jm.Panel.from_frame(ordered, covariates="sex").covariates.categories[0].tolist() == ["M", "F"]


def test_names_are_columns():
    with pytest.raises(PanelError, match=r"no column 'agee' \(did you mean 'age'\?\)"):
        jm.Panel.from_frame(pd.DataFrame(ROWS), covariates=["agee"])
    with pytest.raises(PanelError, match="distinct names, got 'age'"):
        jm.Panel.from_frame(pd.DataFrame(ROWS), covariates=["age", "age"])
    with pytest.raises(PanelError, match="one entry per row, got 1 for 'age' and 5 rows"):
        jm.Panel.from_arrays(ROWS["time"], ROWS["value"], ROWS["id"], covariates={"age": [1]})


def test_derived_panels_keep_them():
    panel = visits()
    wide, rows = panel.insert_times(["b", "a", "b"], [5.0, 1.0, 0.5])
    assert columns(wide)["age"] == [50, 50, 60, 61, 61, 50, 60, 61]
    assert wide.covariates.values[rows, 0].tolist() == [61, 50, 60]
    assert columns(panel.select([1]))["sex"] == ["F"] * 3
    assert columns(panel.head(1)) == {"age": [50, 60], "sex": ["M", "F"]}
    assert columns(panel.blank([0, 3])) == columns(panel)
    assert columns(jm.hold_out(panel)[0]) == columns(panel)
    assert columns(pickle.loads(pickle.dumps(panel))) == columns(panel)
    early, row = jm.Panel.from_frame(
        pd.DataFrame(ROWS | {"from": [-1.0, -1, 0, 0, 0]}), start="from", covariates=NAMES
    ).insert_times(["a"], [-0.5])
    assert early.covariates.values[row, 0].tolist() == [50]  # ahead of the first row, its own
    with pytest.raises(ValueError, match="read-only"):
        panel.covariates.values[0] = 1.0


def test_covariates_put_in():
    panel = visits().with_covariates({"age": 70, "sex": "M", "dose": [1, 2, 3, 4, 5]})
    assert columns(panel) == {"age": [70] * 5, "sex": ["M"] * 5, "dose": [1, 2, 3, 4, 5]}
    assert panel.covariates.categories[1].tolist() == ["F", "M"]
    with pytest.raises(PanelError, match=r"'sex' must be among \['F', 'M'\], got 'X'"):
        panel.with_covariates({"sex": "X"})


# --------------------------------------------------------------------------------------------------- breaks


def test_breaks_cut_every_gap_where_rates_may_change():
    """By hand: pieces of time from 0 and 4, pieces of age from 51 and 65; b is 60 at time 0."""
    broken = with_breaks(visits(), {"time": [4.0], "age": [51.0, 65.0]})
    wide = broken.panel
    assert wide.times.tolist() == [0, 1, 2, 0, 1, 4, 5, 9]
    assert wide.covariates.names == ("sex", "time", "age")
    assert wide.covariates.values[:, 1].tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert wide.covariates.values[:, 2].tolist() == [0, 1, 1, 1, 1, 1, 2, 2]
    np.testing.assert_array_equal(wide.times[broken.rows], visits().times)


def test_rows_added_before_change_no_break():
    """A row that was asked for carries the age of the row before: the piece still goes by the caller's first row."""
    panel = visits().insert_times(["b"], [6.0])[0]
    wide = with_breaks(panel, {"age": [65.0]}).panel
    assert wide.covariates.values[wide.times >= 5, 1].tolist() == [1, 1, 1]


def test_a_break_ahead_of_the_first_row():
    panel = jm.Panel.from_arrays([3.0, 6.0], ["a", "b"], [1, 1], start_times=[0.0, 0.0])
    wide = with_breaks(panel, {"time": [2.0]}).panel
    assert wide.times.tolist() == [0, 2, 3, 6]
    assert wide.covariates.values[:, 0].tolist() == [0, 1, 1, 1]
    at_first = with_breaks(panel, {"time": [3.0]}).panel
    assert at_first.covariates.values[:, 0].tolist() == [0, 1, 1]


def test_what_breaks_must_be():
    with pytest.raises(ValueError, match=r"increase, got \[5, 2\] for 'time'"):
        effects_of(jm.Structure(breaks=[5, 2]), visits())
    with pytest.raises(ValueError, match="breaks must be a list of times"):
        effects_of(jm.Structure(breaks=5), visits())
    with pytest.raises(PanelError, match="grow by one in each unit of time, got categories for 'sex'"):
        effects_of(jm.Structure(breaks={"sex": [1]}), visits())
    with pytest.raises(PanelError, match="got 75 of 'age' at sequence 'b', row 3, 1 after 60"):
        effects_of(jm.Structure(breaks={"age": [55]}), visits(age=[50, 51, 60, 75, 76]))


# -------------------------------------------------------------------------------------------------- effects


def effects_of(structure, panel=None, by="move", states=("w", "i", "d")):
    panel = panel or visits()
    labels = np.array(states, dtype=object)
    return depend(structure, panel, labels, structure.constraints(labels), by).effects


def test_which_rates_depend_on_what():
    onward = {"w": ["i", "d"], "i": ["d"]}
    every = effects_of(jm.Structure(onward, covariates="all"))
    assert every.names == ["age", "sex[M]"] and every.n_free == 6
    assert np.all((every.number >= 0) == jm.Structure(onward).allowed_moves(np.array(["w", "i", "d"])))
    assert effects_of(jm.Structure(onward, covariates="shared")).n_free == 2
    chosen = effects_of(jm.Structure(onward, covariates={"w": ["age"], ("i", "d"): ["age", "sex"]}))
    assert chosen.n_free == 4 and (chosen.number[1] >= 0).sum() == 1
    by_state = effects_of(jm.Structure(onward, covariates="all"), by="state")
    assert by_state.n_free == 4 and by_state.number[0, 0, 1] == by_state.number[0, 0, 2]
    tied = jm.Structure(onward, equal=[[("w", "i"), ("i", "d")]], fixed={("w", "d"): 0.1}, covariates="all")
    assert effects_of(tied).n_free == 2  # a known rate depends on nothing
    pieces = effects_of(jm.Structure(onward, breaks=[4]))
    assert pieces.names == ["time[from 4]"] and pieces.n_free == 3
    assert effects_of(jm.Structure(onward)) is None


def test_what_may_be_named():
    for given, what in (
        ("some", "must be 'all', 'shared'"),
        ({"w": ["agee"]}, r"got 'agee' \(did you mean 'age'\?\)"),
        ({("w", "x"): ["age"]}, "states among"),
        ({("d", "w"): ["age"]}, "that may happen, got"),
    ):
        with pytest.raises(ValueError, match=what):
            effects_of(jm.Structure({"w": ["i", "d"], "i": ["d"]}, covariates=given))
    with pytest.raises(PanelError, match="must vary for rates to depend on it, got 50 alone"):
        effects_of(jm.Structure(covariates="all"), visits(age=[50] * 5))
    plain = jm.Panel.from_frame(pd.DataFrame(ROWS))
    with pytest.raises(PanelError, match="must have covariates for rates to depend on, got none"):
        effects_of(jm.Structure(covariates="all"), plain)


def test_centres_are_means_over_time_and_added_rows_do_not_move_them():
    panel = visits()
    centres = effects_of(jm.Structure(covariates="all"), panel).centres
    np.testing.assert_allclose(centres, [(2 * 50 + 60 + 8 * 61) / 11, 2 / 11])
    wide = panel.insert_times(["a", "b", "b"], [1.0, 0.5, 7.0])[0]
    np.testing.assert_allclose(effects_of(jm.Structure(covariates="all"), wide).centres, centres, rtol=1e-14)


def test_a_process_at_given_values():
    coefs = np.zeros((3, 2, 2))
    coefs[0, 0, 1], coefs[1, 0, 1], coefs[2, 1, 0] = 0.1, 0.7, -0.3
    parts = [Covariate("age"), Covariate("sex", labels=["F", "M"]), Covariate("time", edges=[5.0])]
    effects = Effects(parts, np.array([60.0, 0.25, 0.5]), coefs, np.arange(12).reshape(3, 2, 2))
    process = jm.Process([1.0, 0.5], [[0, 1], [1, 0]], effects=effects)
    assert process.at().effects is None and np.array_equal(process.at().rates, process.rates)
    found = process.at({"age": 62, "sex": "M", "time": 5.0})
    np.testing.assert_allclose(found.rates, [np.exp(0.2 + 0.7 * 0.75), 0.5 * np.exp(-0.15)])
    np.testing.assert_allclose(process.at({"time": 4.9}).rates, [1.0, 0.5 * np.exp(0.15)])
    np.testing.assert_allclose(process.take(np.array([1, 0])).at({"age": 70}).rates, [0.5, np.e])
    with pytest.raises(ValueError, match=r"at must name covariates among .*, got 'agee' \(did you mean 'age'\?\)"):
        process.at({"agee": 1})
    with pytest.raises(ValueError, match=r"'sex' must be one of \['F', 'M'\], got 'X'"):
        process.at({"sex": "X"})
    with pytest.raises(ValueError, match="at must be left out where rates depend on no covariates"):
        process.at().at({"age": 3})
    Q = process.rate_matrices(effects.at({"age": 62, "sex": "M", "time": 5.0})[None])[0]
    np.testing.assert_allclose(Q, found.rate_matrix)


def test_designs_go_by_labels():
    """A panel with other categories, or with them in another order, is read by what they are called."""
    effects = effects_of(jm.Structure(covariates="all"))
    z = effects.design(visits().covariates)
    only = visits(sex=["M", "M", "M", None, "M"])
    np.testing.assert_allclose(effects.design(only.covariates)[:, 1], np.full(5, z[0, 1]))
    with pytest.raises(ValueError, match=r"'sex' must be one of .*, got 'X'"):
        effects.design(visits(sex=["X", "M", "F", None, "F"]).covariates)
    with pytest.raises(PanelError, match="must have the covariates"):
        effects.design(None)


ILLNESS = {"well": {"ill": 0.2, "dead": 0.05}, "ill": {"well": 0.1, "dead": 0.4}}
HIGHER = {"sex[M]": {("well", "ill"): 0.7}, "age": {"ill": 0.03, ("well", "dead"): 0.1}, "smoker[True]": 0.5}
AT = {"sex": "F", "age": 60, "smoker": False}


def test_known_effects_are_on_the_moves_they_name():
    """Planted: the category that others are compared with comes last; a state's effect on the moves into it."""
    plain = jm.Process.from_generator(ILLNESS)
    process = plain.with_effects(HIGHER, at=AT)
    np.testing.assert_array_equal(process.at(AT).rate_matrix, plain.rate_matrix)
    np.testing.assert_array_equal(process.at().rate_matrix, plain.rate_matrix)
    ratios = process.at({"sex": "M", "age": 70, "smoker": True}).rate_matrix[:2] / plain.rate_matrix[:2]
    np.testing.assert_allclose(
        np.log(ratios)[[0, 0, 1, 1], [1, 2, 0, 2]], 0.5 + np.array([0.7, 1.0, 0.3, 0.3]), rtol=1e-12
    )
    names = "age", "sex[M]", "smoker[True]"
    assert sorted(process.effects.names) == sorted(names)
    assert process.effects.n_free == 4  # an effect of a state is one, whatever moves it is on


def test_known_effects_take_the_panels_of_fits():
    """What is drawn under them is fitted, decoded and judged: categories and booleans are the panel's own."""
    process = jm.Process.from_generator(ILLNESS).with_effects(HIGHER, at=AT)
    given = {"sex": ["F", "M"] * 50, "age": np.linspace(50, 70, 100), "smoker": [True, False, True, True] * 25}
    panel, _ = jm.simulate(process, 100, 6, exact=["dead"], covariates=given, random_state=0)
    ends = jm.Structure(absorbing=["dead"])
    model = jm.comparators.EM(emission="direct", start=process, structure=ends, max_iter=2, tol=1.0).fit(panel)
    assert np.isfinite(model.log_likelihood_)
    decoded = jm.JumpMeans.from_process(process).decode(panel)
    assert np.isfinite(decoded.dwell_times()).all() and decoded.n_jumps > 0


@pytest.mark.parametrize(
    ("effects", "at", "said"),
    [
        ({}, {}, r"coefficients must be \{column: effect\}, got \{\}"),
        ({"age": 0.1}, {}, "at must say at which 'age' the rates are as they stand"),
        ({"sex[M]": 0.1}, {"age": 60}, "at must say at which 'sex'"),
        ({"sex[F]": 0.1}, {"sex": "F"}, r"distinct categories other than 'F', or a number, got 'sex\[F\]'"),
        ({"age": np.nan}, AT, "effects must be finite log hazard ratios, got nan for 'age'"),
        ({"age": {"wel": 1.0}}, AT, r"'age' must be on states among .*, got 'wel' \(did you mean 'well'\?\)"),
        ({"age": {"dead": 1.0}}, AT, "effects must be on moves that may happen, got 'dead'"),
        ({"age": {"well": 1.0, ("well", "ill"): 2.0}}, AT, "must name each move once, got .'well', 'ill'. again"),
        ({3: 0.1}, AT, "coefficients must be by name"),
        ({"age": 0.1}, {"age": "old"}, "covariate 'age' must be a finite number, got 'old'"),
    ],
)  # fmt: skip
def test_known_effects_that_cannot_be(effects, at, said):
    with pytest.raises(ValueError, match=said):
        jm.Process.from_generator(ILLNESS).with_effects(effects, at)
