"""How a row was seen, and which states it may be in: read, refused, derived and written again."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest

import jumpmeans as jm
from jumpmeans.kinds import ENTRY, HELD, SNAPSHOT, TRANSITION
from jumpmeans.passes import Block

SETS = {"alive": ["well", "ill"]}


def visits(**more):
    """A dies on the day of a visit; B is last known to be alive; C is followed exactly."""
    table = {
        "id": ["a"] * 4 + ["b"] * 3 + ["c"] * 3,
        "time": [0.0, 1.0, 2.0, 2.0, 0.0, 1.5, 4.0, 1.0, 2.0, 5.0],
        "value": ["well", "ill", "ill", "dead", "well", "ill", "alive", "well", "ill", "dead"],
        "how": ["snapshot", None, "snapshot", "entry", 1, 1, "1", "transition", 2, "transition"],
        "start": [0.0] * 7 + [0.5] * 3,
    }
    return pd.DataFrame(table | more)


def read(frame=None, **more):
    return jm.Panel.from_frame(visits() if frame is None else frame, **{"kind": "how", "sets": SETS} | more)


def test_kinds_and_sets_are_read():
    panel = read(start="start")
    assert panel.kinds.tolist() == [0, 0, 0, ENTRY, 0, 0, 0, TRANSITION, TRANSITION, TRANSITION]
    assert panel.kinds.dtype == np.int8
    assert panel.labels().tolist() == ["dead", "ill", "well"]  # the label of a set is no label of the panel
    assert np.flatnonzero(panel.known >= 0).tolist() == [6]
    assert np.isnan(panel.values[6, 0])
    assert panel.sets == {"alive": ("well", "ill")}
    block = Block.of(panel, panel.values, panel.labels())
    assert np.array_equal(block.kinds, panel.kinds)
    assert block.allowed[6].tolist() == [False, True, True]
    assert block.allowed[:6].all()


def test_a_kind_that_is_not_said_is_a_snapshot():
    said = jm.Panel.from_arrays([0, 1, 2, 3], list("abab"), [0] * 4, kinds=["", "entry", None, np.nan])
    assert said.kinds.tolist() == [SNAPSHOT, ENTRY, SNAPSHOT, SNAPSHOT]


def test_the_first_row_of_a_window_tells_of_nothing():
    assert read().kinds[7] == SNAPSHOT
    early = jm.Panel.from_arrays([1.0, 2.0], ["a", "b"], [0, 0], kinds=[3, 1])
    assert early.kinds is None  # all snapshots: nothing to carry


def test_without_kinds_nothing_is_carried():
    panel = jm.Panel.from_arrays([0.0, 1.0], ["a", "b"], [0, 0], kinds=["snapshot", 1], sets=SETS)
    assert panel.kinds is None
    assert panel.known is None
    assert Block.of(panel, panel.values, panel.labels()).allowed is None


def test_numbers_may_stand_for_sets_too():
    panel = jm.Panel.from_arrays([0, 1, 2], [1, 99, 3], [0, 0, 0], sets={99: [1, 2]})
    assert panel.labels().tolist() == [1, 3]
    assert panel.allowed_states(np.array([1, 2, 3])).tolist() == [[True] * 3, [True, True, False], [True] * 3]


def test_true_states_are_sets_of_one_and_may_name_a_set():
    panel = jm.Panel.from_arrays([0, 1, 2], [0.1, 0.2, 0.3], [0, 0, 0], true_states=[None, "ill", "alive"], sets=SETS)
    allowed = panel.allowed_states(np.array(["well", "ill", "dead"]))
    assert allowed.tolist() == [[True] * 3, [False, True, False], [True, True, False]]
    assert panel.values.ravel().tolist() == [0.1, 0.2, 0.3]
    numbered = jm.Panel.from_arrays([0, 1], [0.1, 0.2], [0, 0], true_states=[np.nan, 1.0])
    assert numbered.allowed_states(np.arange(2)).tolist() == [[True, True], [False, True]]


def test_the_narrower_of_two_things_known_counts():
    panel = jm.Panel.from_arrays([0, 1], ["well", "alive"], [0, 0], true_states=[None, "ill"], sets=SETS)
    assert panel.allowed_states(np.array(["well", "ill"])).tolist() == [[True, True], [False, True]]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_hold_them_as_frames_do(tmp_path, suffix):
    path = tmp_path / f"visits{suffix}"
    frame = visits(how=["1", None, "1", "3", "1", "1", "1", "2", "2", "2"])
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    panel, same = jm.read_panel(path, kind="how", sets=SETS, start="start"), read(start="start")
    assert np.array_equal(panel.kinds, same.kinds)
    assert np.array_equal(panel.known, same.known)
    assert panel.state_sets == same.state_sets


def test_the_label_of_a_set_leaves_numbers_numbers(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("id,time,value\n1,0,1\n1,1,alive\n1,2,2\n")
    panel = jm.read_panel(path, sets={"alive": [1, 2]})
    assert panel.labels().tolist() == [1, 2]  # not '1' and '2'
    assert panel.allowed_states(np.array([1, 2, 3]))[1].tolist() == [True, True, False]


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_round_trip_through_a_frame(backend):
    panel = dataclasses.replace(read(start="start"), frame_backend=backend)
    again = jm.Panel.from_frame(panel.to_frame(), kind="kind", true_state="true_state", sets=panel.sets, start="start")
    for name in ("times", "values", "kinds", "known"):
        assert np.array_equal(getattr(again, name), getattr(panel, name), equal_nan=True), name
    assert again.state_sets == panel.state_sets


def test_pickled_panels_keep_them():
    panel = pickle.loads(pickle.dumps(read()))
    assert np.array_equal(panel.kinds, read().kinds)
    assert panel.state_sets == read().state_sets


# ------------------------------------------------------------------------------------------------ deriving


def test_selected_rows_keep_their_kinds_and_sets():
    panel = read(start="start")
    some = panel.select([2, 1])
    assert some.kinds.tolist() == [1, 1, 1, 0, 0, 0]
    assert some.known.tolist() == [-1] * 5 + [0]
    assert panel.select([1]).kinds is None
    assert panel.head(2).kinds.tolist() == [0, 0, 0, 0, 1, 1]


def test_inserted_times_hold_where_a_gap_is_barred():
    panel = read(start="start")
    wide, index = panel.insert_times(["c", "c", "c", "a", "b"], [0.7, 3.0, 7.0, 1.5, 4.0])
    assert wide.kinds[index].tolist() == [HELD, HELD, SNAPSHOT, SNAPSHOT, SNAPSHOT]
    assert wide.kinds[wide.rows < 10].tolist() == panel.kinds.tolist()
    assert wide.known[index[-1]] == 0  # the row that was there


def test_a_time_asked_for_twice_is_that_of_the_later_row():
    """Would fail if rows at one instant were merged, or the visit answered for the death."""
    wide, index = read().insert_times(["a"], [2.0])
    assert wide.n_observations == 10
    assert wide.labels()[int(wide.values[index[0], 0])] == "dead"


def test_a_window_that_begins_earlier_does_not_bar_what_was_before():
    panel = read(start="start")
    wide, _ = panel.insert_times(["c"], [0.2])
    first = int(wide.offsets[2])
    assert wide.kinds[first : first + 2].tolist() == [SNAPSHOT, SNAPSHOT]


def test_held_out_rows_tell_nothing():
    """Would fail if a blank row still told that something happened at its time, or which state it was in."""
    panel = read(start="start", true_state="value")
    masked = panel.blank([3, 8])
    assert masked.kinds.tolist() == [0, 0, 0, 0, 0, 0, 0, TRANSITION, 0, TRANSITION]
    assert masked.known[[3, 8]].tolist() == [-1, -1]
    assert np.isnan(masked.values[[3, 8]]).all()
    assert panel.kinds[3] == ENTRY
    held, truth = jm.evaluation.hold_out(panel, 0.9)
    assert not np.any(held.kinds[np.isin(held.rows, truth.rows)])


def test_gaps_are_between_instants():
    assert 0.0 not in read().gaps()[0]


# -------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("wrong", ["entri", 4, 2.5, []])
def test_unknown_kinds_are_refused_with_their_row(wrong):
    with pytest.raises(jm.PanelError, match=r"kinds must be 'snapshot', 'transition' or 'entry'.*at row 1"):
        jm.Panel.from_arrays([0, 1], ["a", "b"], [0, 0], kinds=np.array(["snapshot", wrong], dtype=object))


def test_two_rows_at_one_time_need_a_kind():
    with pytest.raises(jm.PanelError, match=r"2 twice at sequence 'a', row 3; .*kind="):
        jm.Panel.from_frame(visits())
    with pytest.raises(jm.PanelError, match="1 twice"):
        jm.Panel.from_arrays([0, 1, 1, 2], [0, 1, 2, 3], [0] * 4, kinds=[1, 3, 1, 1])


def test_two_states_cannot_be_entered_at_one_instant():
    with pytest.raises(jm.PanelError, match="two states must not be entered at one instant, got 1 twice"):
        jm.Panel.from_arrays([0, 1, 1], [0, 1, 2], [0] * 3, kinds=[1, 3, 3])


@pytest.mark.parametrize(
    ("sets", "match"),
    [
        (["alive"], "sets must be {label: \\[states\\]}"),
        ({"alive": "well"}, "a list of states, got 'well' for 'alive'"),
        ({"alive": []}, "at least one state, got none for 'alive'"),
        ({"alive": ["well", "ill"], "any": ["alive"]}, "which is a set itself"),
    ],
)
def test_sets_that_are_none_are_refused(sets, match):
    with pytest.raises(jm.PanelError, match=match):
        read(sets=sets)


def test_states_that_the_model_lacks_are_refused_by_name():
    panel = read(sets={"alive": ["well", "il"]})
    with pytest.raises(jm.PanelError, match="'il' \\(did you mean 'ill'\\?\\), first at sequence 'b', row 6"):
        panel.allowed_states(panel.labels())


def test_contradictions_are_refused():
    with pytest.raises(jm.PanelError, match="must agree, got 'alive' and 'dead' at row 1"):
        jm.Panel.from_arrays([0, 1], ["well", "alive"], [0, 0], true_states=[None, "dead"], sets=SETS)


def test_kinds_need_one_entry_per_row():
    with pytest.raises(jm.PanelError, match="one entry per row"):
        jm.Panel.from_arrays([0, 1], ["a", "b"], [0, 0], kinds=["entry"])
