import copy
import datetime as dt
import pickle
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumpmeans.data.clock import Clock
from jumpmeans.data.panel import Panel
from jumpmeans.errors import PanelError

MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
INTERLEAVED = {"id": ["b", "a", "b", "a"], "time": [0.0, 1.0, 2.0, 3.0], "value": [5.5, None, 7.5, 8.0]}


@pytest.fixture(params=MAKERS)
def table(request):
    return MAKERS[request.param]


@pytest.fixture
def panel():
    return Panel.from_arrays([0.0, 1.0, 2.0, 3.0], [5.5, np.nan, 7.5, 8.0], ["b", "a", "b", "a"])


@st.composite
def frames(draw):
    """Long tables whose ids are interleaved at random, times rising within each id."""
    ids = draw(st.lists(st.integers(-3, 3), min_size=1, max_size=30))
    values = draw(st.lists(st.none() | st.floats(-1e6, 1e6), min_size=len(ids), max_size=len(ids)))
    return pd.DataFrame({"id": ids, "time": np.arange(len(ids)) / 4, "value": np.array(values, dtype=np.float64)})


# ------------------------------------------------------------------------------------------------ layout


def test_layout_of_interleaved_rows(table):
    panel = Panel.from_frame(table(INTERLEAVED))
    assert panel.ids.tolist() == ["b", "a"]
    np.testing.assert_array_equal(panel.offsets, [0, 2, 4])
    np.testing.assert_array_equal(panel.rows, [0, 2, 1, 3])
    np.testing.assert_array_equal(panel.times, [0, 2, 1, 3])
    np.testing.assert_array_equal(panel.values, [[5.5], [7.5], [np.nan], [8.0]])
    np.testing.assert_array_equal(panel.start_times, [0, 1])
    np.testing.assert_array_equal(panel.end_times, [2, 3])
    np.testing.assert_array_equal(panel.weights, [1, 1])
    np.testing.assert_array_equal(panel.observed, [True, True, False, True])
    np.testing.assert_array_equal(panel.sequence_index, [0, 0, 1, 1])
    np.testing.assert_array_equal(panel.relative_times(), [0, 2, 0, 2])
    np.testing.assert_array_equal(panel.lengths, [2, 2])
    assert (len(panel), panel.n_sequences, panel.n_observations, panel.n_columns) == (2, 2, 4, 1)
    assert panel.columns == ("value",)
    assert (panel.groups, panel.clock, panel.categories, panel.integer) == (None, None, (None,), (False,))


def test_frame_is_not_changed(table):
    frame = table(INTERLEAVED)
    before = copy.deepcopy(frame)
    Panel.from_frame(frame)
    assert frame.equals(before)


def test_arrays_of_the_caller_stay_writeable_and_apart():
    times, values = np.array([0.0, 1.0]), np.array([[1.0], [2.0]])
    panel = Panel.from_arrays(times, values, [1, 1])
    times[0], values[0] = -9, -9
    assert panel.times[0] == 0
    assert panel.values[0, 0] == 1


def test_all_arrays_are_read_only(panel):
    panel = Panel.from_arrays([0, 1], ["x", "y"], [1, 1], groups=["g", "g"])
    for changed in (panel, pickle.loads(pickle.dumps(panel)), panel.select([0]), copy.deepcopy(panel)):
        arrays = [x for x in vars(changed).values() if isinstance(x, np.ndarray)] + list(changed.categories)
        assert len(arrays) == 10
        for array in arrays:
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[0]
    with pytest.raises(AttributeError, match="cannot assign"):
        panel.times = panel.times


def test_optional_columns_constant_within_an_id(table):
    frame = table(
        INTERLEAVED | {"w": [2, 3, 2, 3], "g": ["x", "y", "x", "y"], "from": [-1, 0, -1, 0], "to": [9, 3, 9, 3]}
    )
    panel = Panel.from_frame(frame, weight="w", group="g", start="from", end="to")
    np.testing.assert_array_equal(panel.weights, [2, 3])
    assert panel.groups.tolist() == ["x", "y"]
    np.testing.assert_array_equal(panel.start_times, [-1, 0])
    np.testing.assert_array_equal(panel.end_times, [9, 3])
    np.testing.assert_array_equal(panel.relative_times(), [1, 3, 1, 3])


def test_gaps_with_the_weight_of_their_sequence():
    panel = Panel.from_arrays([0, 1, 5, 9, 11], np.zeros(5), [1, 1, 1, 2, 2], weights=[1, 1, 1, 4, 4])
    lengths, weights = panel.gaps()
    np.testing.assert_array_equal(lengths, [1, 4, 2])
    np.testing.assert_array_equal(weights, [1, 1, 4])


def test_one_row_and_no_value_are_allowed():
    panel = Panel.from_arrays([3.0, 0.0, 1.0], [1.0, None, None], ["one", "none", "none"])
    np.testing.assert_array_equal(panel.lengths, [1, 2])
    np.testing.assert_array_equal(panel.observed, [True, False, False])
    assert panel.gaps()[0].tolist() == [1.0]


@pytest.mark.parametrize(
    ("ids", "dtype"),
    [
        ([3, 3, 1], np.int64),
        (np.array([3, 3, 1], np.uint64), None),
        ([3.0, 3.0, 1.0], np.int64),
        (list("aab"), object),
    ],
)
def test_types_of_ids(ids, dtype):
    panel = Panel.from_arrays([0, 1, 0], [1, 2, 3], ids)
    assert panel.ids.tolist() == [ids[0], ids[2]]
    assert dtype is None or panel.ids.dtype == dtype


@pytest.mark.parametrize("column", [pd.Categorical(["p", "p", "q"]), pd.array([1, 1, 2], dtype="Int64")])
def test_ids_of_pandas_extension_types(column):
    frame = pd.DataFrame({"id": column, "time": [0, 1, 0], "value": 1.0})
    assert Panel.from_frame(frame).ids.tolist() == [column[0], column[2]]


def test_times_of_python_numbers():
    times = pd.Series([Decimal("0.5"), 2], dtype=object)
    assert Panel.from_arrays(times, [1, 2], [1, 1]).times.tolist() == [0.5, 2.0]


def test_repr():
    panel = Panel.from_arrays([0.0, 2.5], [1.0, None], [1, 1])
    assert repr(panel) == "Panel(1 sequence, 2 rows, times 0 to 2.5, values of 'value', 1 row without a value)"


# ------------------------------------------------------------------------------------------------ values


def test_labels_of_strings(table):
    panel = Panel.from_frame(table({"id": [1, 1, 1], "time": [0, 1, 2], "value": ["severe", None, "mild"]}))
    np.testing.assert_array_equal(panel.values.ravel(), [1, np.nan, 0])
    assert panel.labels().tolist() == ["mild", "severe"]
    assert panel.labels("value").tolist() == ["mild", "severe"]
    assert panel.decode_values([0, np.nan]).tolist() == ["mild", None]


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame, pa.table])
def test_labels_of_booleans_are_false_and_true(frame):
    for values in ([True, True, None], [True, True, True]):
        panel = Panel.from_frame(frame({"id": [1, 1, 1], "time": [0, 1, 2], "value": values}))
        assert panel.labels().tolist() == [False, True]
        assert panel.values[0, 0] == 1
        assert np.isnan(panel.values[2, 0]) == (values[2] is None)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["y", None, "x"], dtype="category"),
        pl.Series(["y", None, "x"], dtype=pl.Categorical),
        pa.chunked_array([["y", None, "x"]]).dictionary_encode(),
    ],
    ids=["pandas", "polars", "pyarrow"],
)
def test_categoricals_keep_the_labels_that_occur(column):
    panel = Panel.from_arrays([0, 1, 2], column, [1, 1, 1])
    assert panel.labels().tolist() == ["x", "y"]
    np.testing.assert_array_equal(panel.values.ravel(), [1, np.nan, 0])


def test_numbers_and_strings_mixed_become_labels():
    panel = Panel.from_arrays([0, 1, 2], [10, "n/a", None], [1, 1, 1])
    assert panel.labels().tolist() == ["10", "n/a"]
    assert panel.categories[0][int(panel.values[1, 0])] == "n/a"


@pytest.mark.parametrize(
    ("values", "integer"),
    [([1, 2, 2], True), ([1.0, 2.0, None], True), ([1.0, 2.5, 2.5], False), ([1e300, 0, 0], False)],
)
def test_whole_numbers_are_shown_as_integers(values, integer):
    panel = Panel.from_arrays([0, 1, 2], values, [1, 1, 1])
    assert panel.integer == (integer,)
    assert panel.labels().dtype == (np.int64 if integer else np.float64)
    assert panel.labels().tolist() == sorted({x for x in values if x is not None})


def test_columns_of_several_kinds(table):
    data = {"id": [1, 1], "time": [0, 1], "mood": ["low", "high"], "pulse": [61, 75], "temp": [36.5, None]}
    panel = Panel.from_frame(table(data), value=["mood", "pulse", "temp"])
    assert panel.columns == ("mood", "pulse", "temp")
    assert panel.integer == (False, True, False)
    assert [c is None for c in panel.categories] == [False, True, True]
    np.testing.assert_array_equal(panel.values, [[1, 61, 36.5], [0, 75, np.nan]])
    assert panel.observed.all()


def test_columns_of_arrays_are_named():
    assert Panel.from_arrays([0], [[1, 2]], [1]).columns == ("value_0", "value_1")
    assert Panel.from_arrays([0], [[1, 2]], [1], columns=["x", "y"]).columns == ("x", "y")


def test_with_values(panel):
    changed = panel.with_values(panel.values * 2)
    np.testing.assert_array_equal(changed.values, panel.values * 2)
    assert changed.times is not None
    assert changed.ids.tolist() == panel.ids.tolist()
    whole = Panel.from_arrays([0, 1], [1, 2], [1, 1])
    assert whole.with_values([[np.nan], [2.0]]).integer == (True,)
    assert whole.with_values([[1.5], [2.0]]).integer == (False,)


# ------------------------------------------------------------------------------------------------- dates


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_dates_become_days_and_come_back(table, zone):
    tz = None if zone is None else dt.timezone(dt.timedelta(hours=1))
    times = [dt.datetime(2024, 3, 2, 12, tzinfo=tz), dt.datetime(2024, 3, 1, tzinfo=tz)]
    column = pd.Series(times)
    if zone:
        column = column.dt.tz_convert(zone)
    frame = table({"id": [1, 2], "time": pa.array(column) if table is pa.table else column, "value": [1, 2]})
    panel = Panel.from_frame(frame)
    np.testing.assert_array_equal(panel.times, [1.5, 0.0])
    assert panel.clock.zone == zone
    np.testing.assert_array_equal(panel.encode_times(panel.decode_times(panel.times)), panel.times)
    assert panel.encode_times(times).tolist() == [1.5, 0.0]
    back = nw.from_native(panel.to_frame())["time"]
    assert back.dtype.time_zone == zone
    assert [t.timestamp() for t in back] == [t.timestamp() for t in column]


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table])
def test_dates_without_a_time(table):
    days = [dt.date(2024, 2, 28), dt.date(2024, 3, 1)]
    panel = Panel.from_frame(table({"id": [1, 1], "time": days, "value": [1, 2]}))
    assert panel.times.tolist() == [0.0, 2.0]
    assert repr(panel) == "Panel(1 sequence, 2 rows, times 2024-02-28 to 2024-03-01, values of 'value')"


def test_python_datetimes_of_several_zones_are_utc():
    east = dt.timezone(dt.timedelta(hours=2))
    panel = Panel.from_arrays(
        [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, 14, tzinfo=east)], [1, 2], [1, 1]
    )
    assert panel.times.tolist() == [0.0, 0.5]
    assert panel.clock.zone == "UTC"


def test_encode_times_takes_dates_strings_days_and_scalars():
    panel = Panel.from_arrays(np.array(["2024-03-01", "2024-03-02"], "M8[D]"), [1, 2], [1, 1])
    assert panel.encode_times("2024-03-01T18:00") == 0.75
    assert panel.encode_times(["2024-03-03", dt.date(2024, 3, 4)]).tolist() == [2.0, 3.0]
    assert panel.encode_times(np.datetime64("2024-03-03")) == 2.0
    assert panel.encode_times(pd.Timestamp("2024-03-03")) == 2.0
    assert panel.encode_times([0.25]).tolist() == [0.25]
    assert Panel.from_arrays([0], [1], [1]).encode_times(3) == 3.0
    assert Panel.from_arrays([0], [1], [1]).decode_times([3.0]).tolist() == [3.0]


@given(st.lists(st.datetimes(dt.datetime(1960, 1, 1), dt.datetime(2020, 1, 1)), min_size=1, max_size=5))
def test_clock_is_exact_to_the_microsecond(dates):
    clock = Clock(np.datetime64("1990-01-01", "ns"))
    assert clock.decode(clock.encode(dates)).astype("M8[us]").tolist() == dates


def test_missing_dates_of_pandas_in_lists():
    with pytest.raises(PanelError, match="times must be finite, got NaT at sequence 1, row 1"):
        Panel.from_arrays([pd.Timestamp("2024-01-01"), pd.NaT], [1, 2], [1, 1])


def test_clock_decodes_nan_as_missing():
    assert np.isnat(Clock(np.datetime64("2020-01-01", "ns")).decode([np.nan])).all()


def test_windows_of_dates():
    frame = pd.DataFrame({"id": [1, 1], "time": pd.to_datetime(["2024-03-01", "2024-03-02"]), "value": 1})
    frame["from"] = pd.Timestamp("2024-02-28")
    panel = Panel.from_frame(frame, start="from")
    assert panel.start_times.tolist() == [-2.0]
    assert (panel.to_frame()["start"] == frame["from"]).all()


# ---------------------------------------------------------------------------------------------- deriving


@given(frames())
def test_rows_lead_back_to_the_caller(frame):
    panel = Panel.from_frame(frame)
    np.testing.assert_array_equal(np.sort(panel.rows), np.arange(len(frame)))
    np.testing.assert_array_equal(panel.to_caller_order(panel.values)[:, 0], frame["value"])
    np.testing.assert_array_equal(panel.to_caller_order(panel.ids[panel.sequence_index]), frame["id"])
    pd.testing.assert_frame_equal(panel.to_frame(), frame, check_dtype=False)


@given(frames(), st.randoms())
def test_order_of_ids_only_orders_the_sequences(frame, random):
    names = frame["id"].unique().tolist()
    random.shuffle(names)
    moved = pd.concat([frame[frame["id"] == name] for name in names])
    a, b = Panel.from_frame(frame), Panel.from_frame(moved)
    c = b.select([names.index(x) for x in a.ids])
    np.testing.assert_array_equal(a.ids, c.ids)
    np.testing.assert_array_equal(a.times, c.times)
    np.testing.assert_array_equal(a.values, c.values)


@given(frames(), st.lists(st.tuples(st.integers(0, 99), st.integers(-4, 34)), max_size=8))
def test_insert_times(frame, requests):
    panel = Panel.from_frame(frame)
    ids = [panel.ids[i % len(panel)] for i, _ in requests]
    times = np.array([t / 4 for _, t in requests], dtype=np.float64)
    more, index = panel.insert_times(ids, times)
    np.testing.assert_array_equal(more.times[index], times)
    np.testing.assert_array_equal(more.ids[more.sequence_index[index]], ids)
    expected = set(zip(frame["id"], frame["time"], strict=True)) | set(zip(ids, times, strict=True))
    assert set(zip(more.ids[more.sequence_index], more.times, strict=True)) == expected
    assert more.n_observations == len(expected)
    np.testing.assert_array_equal(np.sort(more.rows), np.arange(len(expected)))
    np.testing.assert_array_equal(more.to_caller_order(more.values)[: len(frame), 0], frame["value"])
    assert np.isnan(more.to_caller_order(more.values)[len(frame) :]).all()
    assert (more.start_times <= panel.start_times).all()
    assert (more.end_times >= panel.end_times).all()


def test_insert_times_by_hand(panel):
    more, index = panel.insert_times(["b", "a", "b", "b"], [0.5, 4.0, 2.0, 0.5])
    np.testing.assert_array_equal(more.times, [0, 0.5, 2, 1, 3, 4])
    np.testing.assert_array_equal(index, [1, 5, 2, 1])
    np.testing.assert_array_equal(more.rows, [0, 4, 2, 1, 3, 5])
    np.testing.assert_array_equal(more.end_times, [2, 4])
    np.testing.assert_array_equal(more.observed, [True, False, True, False, True, False])


def test_times_that_are_one_since_the_start_are_asked_for_once():
    """Decimals far from 0: a neighbouring float of a row's time is as far from the start as the row itself."""
    rows = np.array([4.98, 16.31, 49.98])
    panel = Panel.from_arrays(rows, ["a", "b", "a"], ids=[1, 1, 1])
    near = np.concatenate([np.nextafter(rows, -np.inf)[1:], np.nextafter(rows, np.inf)])
    more, index = panel.insert_times([1] * 5, near)
    since = more.relative_times()
    assert np.all(np.diff(since) > 0) and more.start_times[0] == 4.98
    np.testing.assert_array_equal(since[index], near - 4.98)
    assert panel.insert_times([1], [np.nextafter(49.98, 50)])[0].n_observations == 3  # was refused as no later


def test_select_with_repeats(panel):
    twice = panel.select([1, 1, 0])
    assert twice.ids.tolist() == ["a", "a", "b"]
    np.testing.assert_array_equal(twice.times, [1, 3, 1, 3, 0, 2])
    np.testing.assert_array_equal(twice.rows, np.arange(6))
    assert panel.select([False, True]).ids.tolist() == ["a"]


def test_insert_times_into_copies_means_the_first(panel):
    more, index = panel.select([1, 1]).insert_times(["a"], [2.0])
    np.testing.assert_array_equal(more.times, [1, 2, 3, 1, 3])
    np.testing.assert_array_equal(index, [1])


def test_select_keeps_weights_groups_and_windows():
    panel = Panel.from_arrays(
        [1, 1], [1, 2], ["a", "b"], weights=[1, 2], groups=[7, 8], start_times=[0, -1], end_times=[2, 3]
    )
    b = panel.select([1])
    assert (b.weights[0], b.groups[0], b.start_times[0], b.end_times[0]) == (2, 8, -1, 3)


def test_frame_round_trip_with_everything():
    frame = pd.DataFrame(
        {
            "id": ["q", "p", "q"],
            "time": [0.0, 0.5, 2.0],
            "grade": ["B", None, "A"],
            "count": [1, 2, 3],
            "flag": [True, False, True],
            "weight": [2.0, 1.0, 2.0],
            "group": ["x", "y", "x"],
            "start": [-1.0, 0.5, -1.0],
            "end": [2.0, 4.0, 2.0],
        }
    )
    panel = Panel.from_frame(
        frame, value=["grade", "count", "flag"], weight="weight", group="group", start="start", end="end"
    )
    back = panel.to_frame()
    assert back.columns.tolist() == frame.columns.tolist()
    pd.testing.assert_frame_equal(back, frame, check_dtype=False)
    assert back["count"].dtype == np.int64
    assert back["flag"].dtype == bool


def test_locate_names_the_sequence_and_the_row_of_the_caller(panel):
    assert panel.locate(1) == "sequence 'b', row 2"
    assert Panel.from_arrays([0, 1], [1, 2], [17, 17]).locate(1) == "sequence 17, row 1"


# ------------------------------------------------------------------------------------------------ errors

ROWS = {"id": ["p", "p", "q"], "time": [0.0, 1.0, 0.0], "value": [1.0, 2.0, 3.0]}
NAN, INF = float("nan"), float("inf")
AWARE, NAIVE = dt.datetime(2024, 1, 2, tzinfo=dt.UTC), dt.datetime(2024, 1, 1)

BAD_ROWS = [
    ({"time": [2.0, 1.0, 0.0]}, r"increase strictly.*got 1 after 2 at sequence 'p', row 1; sort the rows"),
    ({"time": [1.0, 1.0, 0.0]}, r"increase strictly.*got 1 twice at sequence 'p', row 1; keep one"),
    ({"time": [0.0, NAN, 0.0]}, r"times must be finite, got nan at sequence 'p', row 1; fill in"),
    ({"time": [0.0, None, 0.0]}, r"times must be finite, got nan at sequence 'p', row 1"),
    ({"time": [0.0, INF, 0.0]}, r"times must be finite, got inf at sequence 'p', row 1"),
    ({"time": [NAIVE, None, NAIVE]}, r"times must be finite, got NaT at sequence 'p', row 1"),
    ({"time": [NAIVE, NAIVE, NAIVE]}, r"got 2024-01-01 twice at sequence 'p', row 1"),
    ({"time": ["2024-01-01"] * 3}, r"got 2024-01-01 twice at sequence 'p', row 1"),
    ({"time": ["2024-01-01", "May", "June"]}, r"numbers or ISO dates such as .*, got 'May' at row 1"),
    ({"time": ["0.5", "2024-01-01", "1"]}, r"all numbers or all ISO dates, got '2024-01-01' at row 1"),
    ({"time": [True, False, True]}, r"times must be numbers, dates or durations, got bool; convert"),
    ({"time": [dt.timedelta(1)] * 3}, r"got 1 twice at sequence 'p', row 1"),
    ({"time": [dt.timedelta(1), None, dt.timedelta(1)]}, r"times must be finite, got nan at sequence 'p', row 1"),
    (
        {"value": [1.0, -INF, 3.0]},
        r"finite or missing, got -inf in column 'value' at sequence 'p', row 1; put NaN",
    ),
    ({"value": [NAIVE] * 3}, r"values must be numbers or labels, got dates or durations in column 'value'"),
    ({"value": [2**53 + 2, 0, 0]}, r"integers in column 'value' must be below 2\*\*53"),
    ({"id": ["p", None, "q"]}, r"ids must not be missing, got none at row 1; fill it in"),
    ({"id": [1.0, NAN, 2.0]}, r"ids must not be missing, got none at row 1"),
    (
        {"id": [1.5, 1.5, 2.0]},
        r"ids must be all integers or all strings, got 1.5 at row 0 and 2 at row 2; convert",
    ),
    ({"id": [True, True, False]}, r"ids must be all integers or all strings, got True at row 0"),
    ({"id": [INF, INF, 0.0]}, r"ids must be all integers or all strings, got inf at row 0 and 0 at row 2"),
]


@pytest.mark.parametrize(("change", "message"), BAD_ROWS)
def test_bad_rows(table, change, message):
    with pytest.raises(PanelError, match=message):
        Panel.from_frame(table(ROWS | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"id": [1, "1", 2]},
            r"ids must be all integers or all strings, got 1 at row 0 and '1' at row 1; convert",
        ),
        (
            {"time": [NAIVE, AWARE, NAIVE]},
            r"all have a time zone or all have none.*zone at row 1.*without at row 0",
        ),
        ({"time": [dt.date(2024, 1, 1), AWARE, AWARE]}, r"all have a time zone or all have none"),
        ({"time": [0.5, NAIVE, NAIVE]}, r"times must be all dates or all numbers, got both"),
        ({"time": [dt.date(3000, 1, 1)] * 3}, r"dates must lie in the years 1678 to 2261, got 3000-01-01"),
        ({"time": [dt.timedelta(1), NAIVE, NAIVE]}, r"times must be all dates or all durations, got both"),
        ({"time": [0, "2024-01-01", 1]}, r"times must be all dates or all numbers, got both"),
        ({"time": [{}, 1, 2]}, r"numbers, dates or durations, got \{\} at row 0; convert the column"),
    ],
)
def test_bad_rows_of_python_objects(change, message):
    frame = pd.DataFrame(ROWS | {name: pd.Series(x, dtype=object) for name, x in change.items()})
    with pytest.raises(PanelError, match=message):
        Panel.from_frame(frame)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (
            {"weights": [1, 2, 1]},
            r"weights must be constant within an id.*sequence 'p', row 1; give every row",
        ),
        (
            {"weights": [1, 1, 0]},
            r"weights must be positive and at most 1e\+100, got 0.0 at sequence 'q', row 2; drop",
        ),
        ({"weights": [1, 1, -2]}, r"weights must be positive and at most 1e\+100, got -2.0"),
        ({"weights": [NAN, NAN, 1]}, r"weights must be positive and at most 1e\+100, got nan at sequence 'p', row 0;"),
        ({"weights": [1, 1, INF]}, r"weights must be positive and at most 1e\+100, got inf"),
        ({"weights": ["1", "1", "x"]}, r"weights must be numbers, got object values such as '1'"),
        ({"groups": ["g", "h", "g"]}, r"groups must be constant within an id.*sequence 'p', row 1"),
        ({"groups": ["g", None, "g"]}, r"groups must not be missing, got none at row 1"),
        (
            {"start_times": [0.5, 0.5, 0]},
            r"start at or before its first time, got 0.5 at sequence 'p', row 0; widen",
        ),
        ({"start_times": [NAN, NAN, 0]}, r"start at or before its first time, got nan"),
        ({"start_times": [-INF, -INF, 0]}, r"start at or before its first time, got -inf"),
        (
            {"end_times": [0.5, 0.5, 0]},
            r"end at or after its last time, got 0.5 at sequence 'p', row 0; widen",
        ),
        ({"end_times": [1, 2, 0]}, r"end_times must be constant within an id"),
        ({"end_times": [INF, INF, 0]}, r"end at or after its last time, got inf"),
        ({"end_times": [NAIVE] * 3}, r"times must be numbers, as in the panel, got dates such as 2024"),
        (
            {"start_times": [-1e17] * 3},
            r"increase in floating point.*at sequence 'p', row 1; move the origin",
        ),
        ({"start_times": [-1.8e308] * 3}, r"start at or before its first time, got -inf"),
        ({"weights": [1, 1]}, r"all columns must have one entry per row, got lengths \[2, 3\]"),
        ({"columns": ["x", "y"]}, r"columns must name the 1 columns of values, got 2 names"),
    ],
)
def test_bad_sequences(extra, message):
    with pytest.raises(PanelError, match=message):
        Panel.from_arrays(ROWS["time"], ROWS["value"], ROWS["id"], **extra)


def test_times_that_meet_when_counted_from_the_start():
    with pytest.raises(
        PanelError,
        match=r"floating point, got 1.25 less -1e\+17, too far apart, at sequence 1, row 2; move the origin",
    ):
        Panel.from_arrays([-1e17, 1.0, 1.25], [1, 2, 3], [1, 1, 1])
    with pytest.raises(PanelError, match="increase in floating point"):
        Panel.from_arrays([-1.7e308, 1.7e308], [1, 2], [1, 1])


def test_only_the_first_five_places_are_named():
    with pytest.raises(PanelError, match=r"row 0; .*row 4 and 3 more; put NaN"):
        Panel.from_arrays(range(8), [INF] * 8, [1] * 8)


def test_empty(table):
    with pytest.raises(PanelError, match="at least one row, got none"):
        Panel.from_frame(table({"id": [], "time": [], "value": []}))
    with pytest.raises(PanelError, match="at least one sequence, got none"):
        Panel.from_arrays([0], [1], [1]).select([])


@pytest.mark.parametrize("role", ["id", "time", "value", "weight", "group", "start", "end"])
def test_column_that_does_not_exist(table, role):
    with pytest.raises(PanelError, match=r"'vale' \(did you mean 'value'\?\); there are \['id', 'time', 'value'\]"):
        Panel.from_frame(table(ROWS), **{role: "vale"})
    with pytest.raises(PanelError, match=r"no column 'xyzzy'; there are \['id', 'time', 'value'\]"):
        Panel.from_frame(table(ROWS), **{role: "xyzzy"})


@pytest.mark.parametrize("frame", [[1, 2], pl.LazyFrame(ROWS), None])
def test_not_a_table(frame):
    with pytest.raises(PanelError, match="pandas, polars or pyarrow table in memory, got"):
        Panel.from_frame(frame)


def test_wrong_shapes(panel):
    with pytest.raises(PanelError, match="at least one column, got an empty list"):
        Panel.from_frame(pd.DataFrame(ROWS), value=[])
    with pytest.raises(PanelError, match=r"shape \(n,\) or \(n, D\), got \(1, 1, 1\)"):
        Panel.from_arrays([0], [[[1]]], [1])
    with pytest.raises(PanelError, match=r"shape \(4, 1\), got \(4,\)"):
        panel.with_values(np.zeros(4))
    with pytest.raises(PanelError, match="column 'value' must hold indices into its 2 labels"):
        Panel.from_arrays([0, 1], ["x", "y"], [1, 1]).with_values([[0], [2]])


@pytest.mark.parametrize(
    ("ids", "times", "message"),
    [
        (["patient_1"], [0], r"no sequence 'patient_1' \(did you mean 'patient_12'\?\)"),
        (["patient_12"], [NAN], "times must be finite, got nan"),
        (["patient_12"], [0, 1], "of one length, got 1 and 2"),
        (["patient_12"], ["2024-01-01"], "times must be numbers, as in the panel, got dates such as 2024-01-01"),
        ([12], [0], r"no sequence 12; there are \['patient_12'\]"),
    ],
)
def test_insert_times_errors(ids, times, message):
    with pytest.raises(PanelError, match=message):
        Panel.from_arrays([0], [1], ["patient_12"]).insert_times(ids, times)


def test_dates_unlike_those_of_the_panel():
    naive, zoned = Panel.from_arrays([NAIVE], [1], [1]), Panel.from_arrays([AWARE], [1], [1])
    with pytest.raises(PanelError, match="must be without a time zone"):
        naive.encode_times([AWARE])
    with pytest.raises(PanelError, match=r"must be with a time zone \(such as UTC\)"):
        zoned.encode_times(["2024-01-01"])
    with pytest.raises(PanelError, match=r"numbers or ISO dates such as .*, got 'May' at row 0"):
        naive.encode_times("May")
    with pytest.raises(PanelError, match="must be dates, like those of the panel"):
        Panel.from_arrays([NAIVE], [1], [1], start_times=[-1.0])


def test_to_frame_needs_its_own_columns():
    with pytest.raises(PanelError, match="another column 'time'; rename"):
        Panel.from_arrays([0], [1], [1], columns=["time"]).to_frame()
