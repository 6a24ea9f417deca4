"""Nothing is lost when a column is read: gaps, masks, order, digits, kinds of times."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jumpmeans as jm
from jumpmeans import Panel, PanelError
from jumpmeans.emissions.symbols import encode_labels
from jumpmeans.errors import first_few, nearest

MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
NAN = float("nan")


@pytest.fixture(params=MAKERS)
def table(request):
    return MAKERS[request.param]


def panel_of(values, **options):
    return Panel.from_arrays(np.arange(float(len(values))), values, np.zeros(len(values), int), **options)


def read(values):
    """The values as the caller knows them, None where missing."""
    panel = panel_of(values)
    out = panel.decode_values(panel.values[:, 0]).tolist()
    return [None if x != x else x for x in out]


# -------------------------------------------------------------------------------------------------- missing


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pd.Series(["a", None, "b"], dtype="string").to_numpy(), ["a", None, "b"]),
        (pd.Series(["a", pd.NA, "b"], dtype="string").tolist(), ["a", None, "b"]),
        (pd.array([1, None, 2], dtype="Int64").tolist(), [1.0, None, 2.0]),
        (pd.array([1, None, 2], dtype="Int64"), [1.0, None, 2.0]),
        (pd.Series([True, None], dtype="boolean").tolist(), [True, None]),
        (np.array([np.float32(1), np.float32("nan")], dtype=object), [1.0, None]),
        (np.array(["a", np.float32("nan")], dtype=object), ["a", None]),
        (["a", np.float64("nan"), pd.NaT], ["a", None, None]),
        ([Decimal("1.5"), Decimal("NaN"), Decimal("sNaN")], [1.5, None, None]),
        (np.array(["a", np.datetime64("NaT")], dtype=object), ["a", None]),
        (pd.Series([1.5, pd.NA], dtype=object), [1.5, None]),
        (pl.Series([1.5, NAN, None], dtype=pl.Object), [1.5, None, None]),
    ],
)
def test_what_stands_for_nothing_is_missing(values, expected):
    # caught: NA and NaN of other types as labels called '<NA>' and 'nan', and numbers beside them as labels
    assert read(values) == expected


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="this polars has no integers of 128 bits")
def test_integers_of_128_bits():
    assert read(pl.Series([3, None], dtype=pl.Int128)) == [3.0, None]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.ma.array([1.0, -999.0], mask=[0, 1]), [1.0, None]),
        (np.ma.array([1, -999], mask=[0, 1]), [1.0, None]),
        (np.ma.array(["a", "-999"], mask=[0, 1]), ["a", None]),
        (np.ma.array([True, False], mask=[0, 1]), [True, None]),
        (np.ma.array([1, 2], mask=False), [1, 2]),
        ([1.0, np.ma.masked], [1.0, None]),
        (["a", np.ma.masked], ["a", None]),
    ],
)
def test_masked_entries_are_missing(values, expected):
    # caught: a mask that is dropped, so that the filler is read
    assert read(values) == expected


def test_masked_tables():
    rows = np.ma.array([[1.0, -999.0], [-999.0, 4.0]], mask=[[0, 1], [1, 0]])
    for values in (rows, list(rows)):
        np.testing.assert_array_equal(panel_of(values).values, [[1.0, NAN], [NAN, 4.0]])
    panel = panel_of(np.zeros((2, 2)))
    np.testing.assert_array_equal(panel.with_values(rows).values, [[1.0, NAN], [NAN, 4.0]])


def test_masked_times_ids_and_weights_are_refused():
    with pytest.raises(PanelError, match=r"times must be finite, got nan at sequence 1, row 1"):
        Panel.from_arrays(np.ma.array([0.0, 1.0], mask=[0, 1]), [1, 2], [1, 1])
    with pytest.raises(PanelError, match=r"times must be finite, got NaT at sequence 1, row 1"):
        Panel.from_arrays(np.ma.array(["2024-01-01", "2024-01-02"], mask=[0, 1], dtype="M8[D]"), [1, 2], [1, 1])
    with pytest.raises(PanelError, match=r"ids must not be missing, got none at row 1"):
        Panel.from_arrays([0, 1], [1, 2], np.ma.array([1, 1], mask=[0, 1]))
    with pytest.raises(PanelError, match=r"weights must be positive and at most 1e\+100, got nan"):
        Panel.from_arrays([0, 1], [1, 2], [1, 1], weights=np.ma.array([1.0, 1.0], mask=True))


# ---------------------------------------------------------------------------------------------------- order

SEVERITY = ["none", "mild", "severe", "dead"]


def ordered(codes, categories):
    """The same ordered column of each kind of frame."""
    items = [None if k is None else categories[k] for k in codes]
    arrow = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(categories), ordered=True)
    return {
        "pandas": pd.Series(pd.Categorical(items, categories, ordered=True)),
        "categorical": pd.Categorical(items, categories, ordered=True),
        "polars": pl.Series(items, dtype=pl.Enum(categories)),
        "pyarrow": pa.chunked_array([arrow[:1], arrow[1:]]),
    }


@pytest.mark.parametrize("kind", ["pandas", "categorical", "polars", "pyarrow"])
def test_ordered_categories_keep_their_order(kind):
    # caught: sorted labels (dead, mild, none, severe)
    column = ordered([2, None, 0, 1, 2], SEVERITY)[kind]
    panel = panel_of(column)
    assert panel.labels().tolist() == ["none", "mild", "severe"]  # those that occur
    np.testing.assert_array_equal(panel.values[:, 0], [2, NAN, 0, 1, 2])
    assert panel.decode_values(panel.values[:, 0]).tolist() == ["severe", None, "none", "mild", "severe"]


@pytest.mark.parametrize("kind", MAKERS)
def test_ordered_categories_of_frames(kind):
    column = ordered([2, None, 0, 1, 2], SEVERITY)[kind]
    frame = MAKERS[kind]({"id": [1] * 5, "time": range(5), "value": column})
    panel = Panel.from_frame(frame)
    assert panel.labels().tolist() == ["none", "mild", "severe"]
    states = jm.JumpMeans(emission="direct").fit(panel).states_
    assert states.tolist() == ["none", "mild", "severe"]


def test_ordered_categories_of_a_file(tmp_path):
    path = tmp_path / "x.parquet"
    column = ordered([1, 0], SEVERITY)["pandas"]
    pd.DataFrame({"id": 1, "time": [0, 1], "value": column}).to_parquet(path)
    assert jm.read_panel(path).labels().tolist() == ["none", "mild"]


def test_ordered_numbers():
    """Rising ones are numbers; in any other order they are labels, or the order would be lost."""
    rising = panel_of(pd.Categorical([3, 1, 2], [1, 2, 3], ordered=True))
    assert (rising.categories, rising.values[:, 0].tolist()) == ((None,), [3, 1, 2])
    grades = panel_of(pd.Categorical([3, 1, 2, None], [3, 2, 1], ordered=True))
    assert grades.labels().tolist() == [3, 2, 1]
    np.testing.assert_array_equal(grades.values[:, 0], [0, 2, 1, NAN])
    answers = panel_of(pd.Categorical([True, False], [True, False], ordered=True))
    assert answers.labels().tolist() == [True, False]


def test_ordered_categories_without_a_value():
    panel = panel_of(pd.Categorical([None, None], ["b", "a"], ordered=True))
    assert (panel.categories, panel.observed.any()) == ((None,), False)


def test_intervals_stand_in_order():
    bins = pd.cut([3.0, 7.0, 30.0], [0, 5, 10, 100])
    assert panel_of(bins).labels().tolist() == ["(0, 5]", "(5, 10]", "(10, 100]"]


def test_categories_without_order_are_sorted():
    assert panel_of(pd.Categorical(["b", "a"], ["b", "a"])).labels().tolist() == ["a", "b"]


def test_missing_categories_of_numbers_in_pyarrow():
    # caught: the array that pyarrow makes of them holds some other category where one is missing
    column = pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), pa.array([10, 20]))])
    assert read(column) == [10.0, None, 20.0]


# --------------------------------------------------------------------------------------------------- digits

LARGE = 2**53 + 1


@pytest.mark.parametrize(
    "values",
    [
        [LARGE, 0],
        np.array([LARGE, 0]),
        np.array([2**63 + 1, 0], np.uint64),
        [LARGE, None],
        [LARGE, 0.5, None],
        [10**400, 0],
        [-(10**400), None],
        pd.array([LARGE, None], dtype="Int64"),
        pl.Series([LARGE, None]),
        pa.chunked_array([[LARGE, None]]),
    ],
    ids=["list", "int64", "uint64", "missing", "mixed", "huge", "negative", "pandas", "polars", "pyarrow"],
)
def test_integers_that_would_be_rounded_are_refused(values):
    column = values if not isinstance(values, list) else pd.Series(values, dtype=object)
    with pytest.raises(PanelError, match=r"integers in column 'value' must be below 2\*\*53.*at row 0"):
        panel_of(column)
    if not isinstance(values, list) or None not in values:
        with pytest.raises(PanelError, match=r"integers in times must be below 2\*\*53.*at row 0; take a larger unit"):
            Panel.from_arrays(column, [1, 2], [1, 2])
        with pytest.raises(PanelError, match=r"integers in weights must be below 2\*\*53"):
            Panel.from_arrays([0, 0], [1, 2], [1, 2], weights=column)


def test_integers_that_float64_holds_pass():
    """Nanoseconds of whole seconds are multiples of 512; the largest of the exact ones is 2**53."""
    seconds = np.array([1_700_000_000, 1_700_000_060]) * 10**9
    assert Panel.from_arrays(seconds, [1, 2], [1, 1]).times.tolist() == seconds.tolist()
    assert read([2**53, -(2**53)]) == [2**53, -(2**53)]
    assert read([1e300, 0.0]) == [1e300, 0.0]


def test_ids_of_any_size_stay_apart():
    # caught: integers that only float64 holds together become one
    ids = [2**63, -1, 2**63 + 1, 2**70]
    assert Panel.from_arrays([0] * 4, [1] * 4, ids).ids.tolist() == ids
    assert Panel.from_arrays([0] * 3, [1] * 3, ids[:3]).ids.tolist() == ids[:3]


# ---------------------------------------------------------------------------------------------------- times


def test_iso_strings(table):
    data = {"id": [1, 1], "time": ["2024-03-01", "2024-03-02T12:00"], "value": [1, 2]}
    panel = Panel.from_frame(table(data | {"end": ["2024-03-05"] * 2}), end="end")
    assert panel.times.tolist() == [0.0, 1.5]
    assert panel.end_times.tolist() == [4.0]
    assert panel.clock.origin == np.datetime64("2024-03-01")
    zoned = Panel.from_arrays(["2024-03-01T00:00Z", "2024-03-01T14:00+02:00"], [1, 2], [1, 1])
    assert (zoned.times.tolist(), zoned.clock.zone) == ([0.0, 0.5], "UTC")
    assert Panel.from_arrays(["0.5", "1e1"], [1, 2], [1, 1]).times.tolist() == [0.5, 10.0]


def test_durations_are_days(table):
    steps = [dt.timedelta(hours=12), dt.timedelta(days=2)]
    panel = Panel.from_frame(
        table({"id": [1, 1], "time": steps, "value": [1, 2], "start": [dt.timedelta(0)] * 2}), start="start"
    )
    assert (panel.times.tolist(), panel.start_times.tolist(), panel.clock) == ([0.5, 2.0], [0.0], None)
    assert panel.encode_times(steps).tolist() == [0.5, 2.0]
    assert panel.encode_times(dt.timedelta(days=3)) == 3.0


@pytest.mark.parametrize(
    "times",
    [
        [dt.timedelta(hours=12), dt.timedelta(days=2)],
        pd.to_timedelta(["12h", "2D"]),
        np.array([12, 48], "m8[h]"),
        np.array([np.timedelta64(12, "h"), dt.timedelta(days=2)], dtype=object),
    ],
)
def test_durations_in_arrays(times):
    assert Panel.from_arrays(times, [1, 2], [1, 1]).times.tolist() == [0.5, 2.0]


def test_durations_without_a_fixed_length():
    for unit in ("m8[M]", "m8"):
        with pytest.raises(PanelError, match=r"a unit of fixed length, got timedelta64.*; convert them to days"):
            Panel.from_arrays(np.array([1, 2], unit), [1, 2], [1, 1])


WEST = dt.timezone(dt.timedelta(hours=-5))


@pytest.mark.parametrize(
    "time",
    [
        dt.datetime(9999, 12, 31, 23, tzinfo=WEST),
        dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5))),
        "9999-12-31T23:00-05:00",
        pl.Series([dt.datetime(9999, 12, 31, 23, tzinfo=WEST)]),
        np.datetime64("9999-12-31"),
    ],
)
def test_years_out_of_range(time):
    # caught: a zoned date of the last hours of the calendar overflows on its way to UTC
    times = time if isinstance(time, pl.Series) else [time]
    with pytest.raises(PanelError, match=r"dates must lie in the years 1678 to 2261, got .* at row 0; correct them"):
        Panel.from_arrays(times, [1], [1])


def test_dates_too_far_apart():
    # caught: a difference that overflows, told as rows out of order
    with pytest.raises(
        PanelError, match=r"within 292 years of the first, got 1700-01-01 and 2100-01-01 at row 1; .* as numbers"
    ):
        Panel.from_arrays(["1700-01-01", "2100-01-01"], [1, 2], [1, 1])
    panel = Panel.from_arrays(["2200-01-01", "2200-01-02"], [1, 2], [1, 1])
    with pytest.raises(PanelError, match=r"within 292 years of the first"):
        panel.encode_times(["1700-01-01"])
    assert np.isnat(panel.clock.decode([1e9, -1e300, np.inf, 365.0 * 100])).all()
    assert not np.isnat(panel.clock.decode([-365.0 * 291])).any()


def test_a_model_of_numbers_refuses_dates():
    labels = ["a", "a", "b", "b"]
    numbers = Panel.from_arrays([0.0, 1, 2, 3], labels, [1] * 4)
    dated = Panel.from_arrays(["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"], labels, [1] * 4)
    model = jm.JumpMeans(emission="direct").fit(numbers)
    for ask in (model.decode, model.predict, model.predict_proba, model.predict_value):
        with pytest.raises(PanelError, match=r"must be numbers, like those that the model was fitted to, got dates"):
            ask(dated)
    model.fit(dated).predict(numbers)  # the unit of dates is known: days


# --------------------------------------------------------------------------------------------------- shapes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0], [1]], [1, 2], [1, 1]), r"times must be one-dimensional.*got shape \(2, 1\); flatten"),
        ((np.zeros((2, 3)), [1, 2], [1, 1]), r"times must be one-dimensional.*got shape \(2, 3\)"),
        (([0, 1], [1, 2], [["a"], ["b"]]), r"ids must be one-dimensional.*got shape \(2, 1\)"),
        (([0, 1], [1, 2], pd.Series([["a"], ["b"]])), r"ids must be all integers or all strings, got \['a'\] at row 0"),
        (([0, 1], [1, 2], pl.Series([["a"], ["b", "c"]])), r"ids must be all integers or all strings, got"),
        ((5.0, [1, 2], [1, 1]), r"times must be a sequence with one entry per row, got 5\.0"),
        ((np.array(5.0), [1, 2], [1, 1]), r"times must be a sequence with one entry per row, got array\(5\.\)"),
        (([0, 1], np.zeros((2, 0)), [1, 1]), r"values must have at least one column, got shape \(2, 0\)"),
        (([0, 1], [[1], [1, 2]], [1, 1]), r"values must have rows of equal length, got a ragged list"),
        (([0, 1], None, [1, 1]), r"values must have shape \(n,\) or \(n, D\), got \(\)"),
        (([0, 1], [1, 2], [np.timedelta64(1, "D"), 1]), r"ids must be all integers or all strings, got"),
        (([0, 1], 3.0, [1, 1]), r"values must have shape \(n,\) or \(n, D\), got \(\)"),
    ],
)
def test_wrong_shapes_of_arrays(arguments, message):
    with pytest.raises(PanelError, match=message):
        Panel.from_arrays(*arguments)


def test_weights_of_two_dimensions():
    with pytest.raises(PanelError, match=r"weights must be one-dimensional.*got shape \(2, 1\)"):
        Panel.from_arrays([0, 1], [1, 2], [1, 1], weights=[[1], [1]])
    with pytest.raises(PanelError, match=r"weights must be numbers, got object values such as 'heavy'"):
        Panel.from_arrays([0, 1], [1, 2], [1, 1], weights=["heavy", 10**400])
    with pytest.raises(PanelError, match=r"times must have rows of equal length, got a ragged list"):
        Panel.from_arrays([0, 1], [1, 2], [1, 1], start_times=[0, [0, 1]])
    with pytest.raises(PanelError, match=r"weights must be numbers, got datetime64\[D\] values"):
        Panel.from_arrays([0, 1], [1, 2], [1, 1], weights=np.array(["2024-01-01"] * 2, "M8[D]"))


def test_names_that_are_not_strings():
    frame = pd.DataFrame([[1, 0.0, 5]])
    with pytest.raises(PanelError, match=r"id must be the name of a column, a string, got 0; rename the column"):
        Panel.from_frame(frame, id=0, time="1", value="2")
    with pytest.raises(PanelError, match=r"value must be the name of a column or a list of names, got 2"):
        Panel.from_frame(frame, value=2)
    with pytest.raises(PanelError, match=r"value must be the name of a column or a list of names, got \['a', 2\]"):
        Panel.from_frame(frame, value=["a", 2])
    with pytest.raises(PanelError, match=r"there is no column 'id'; there are \[0, 1, 2\]"):
        Panel.from_frame(frame)


def test_columns_of_one_name():
    frame = pd.DataFrame([[1, 0.0, 5, 6]], columns=["id", "time", "value", "value"])
    with pytest.raises(PanelError, match=r"distinct names"):
        Panel.from_frame(frame)


def test_unknown_column_of_a_panel():
    with pytest.raises(PanelError, match=r"no column 'valeu' \(did you mean 'value'\?\); there are \['value'\]"):
        panel_of([1, 2]).labels("valeu")


@pytest.mark.parametrize("chosen", [[9], ["a"], [True, False, True], [0.5]])
def test_select_what_is_not_there(chosen):
    with pytest.raises(PanelError, match=r"positions of the 2 sequences, or a boolean for each"):
        Panel.from_arrays([0, 0], [1, 2], ["a", "b"]).select(chosen)


def test_requests_for_nothing():
    panel = Panel.from_arrays([0.0, 1, 2, 3], ["a", "a", "b", "b"], [1] * 4)
    model = jm.JumpMeans(emission="direct").fit(panel)
    with pytest.raises(PanelError, match=r"at must ask for at least one time, got none"):
        model.predict_proba(panel, at={})
    with pytest.raises(PanelError, match=r"at must give each id one list of times, got a table"):
        model.predict_proba(panel, at={1: [[0.5]]})
    with pytest.raises(PanelError, match=r"at must be \{id: times\} or a pair \(ids, times\), got"):
        model.predict_proba(panel, at=0.5)
    assert model.predict_proba(panel, at=([], [])).shape == (0, 2)
    assert model.predict_proba(panel, at=(1, 0.5)).shape == (1, 2)


def test_a_table_of_moves_written_as_words():
    # caught: 'False' is a true value
    with pytest.raises(ValueError, match=r"allowed must hold True and False, or numbers >= 0, got .*'False'"):
        jm.Structure(allowed=[["False", "True"], ["True", "False"]]).allowed_moves(np.array([0, 1]))
    moves = jm.Structure(allowed=np.array([[0, 0.3], [True, 0]], dtype=object)).allowed_moves(np.array([0, 1]))
    assert moves.tolist() == [[False, True], [True, False]]


# ------------------------------------------------------------------------------------------------- messages


def test_lists_in_messages_are_short():
    assert first_few([1, 2]) == "[1, 2]"
    assert first_few(range(7)) == "[0, 1, 2, 3, 4] and 2 more"
    assert len(first_few(["x" * 10_000] * 10_000)) < 400
    assert nearest("visit", ["visits", "x"]) == " (did you mean 'visits'?)"


def test_messages_about_thousands_of_labels_are_short():
    many = panel_of([f"label {i}" for i in range(5000)])
    known = np.array([f"other {i}" for i in range(5000)], dtype=object)
    with pytest.raises(
        PanelError, match=r"known ones \['other 0'.*\] and 4995 more, got \['label 0'.*\] and 4995 more"
    ) as e:
        encode_labels(many, 0, known)
    assert len(str(e.value)) < 500
    ids = np.arange(5000)
    with pytest.raises(PanelError, match=r"no sequence -1.* and 4995 more") as e:
        Panel.from_arrays(np.zeros(5000), ids, ids).insert_times([-1], [0.0])
    assert len(str(e.value)) < 200
    wide = pd.DataFrame({f"column {i}": [1] for i in range(5000)})
    with pytest.raises(PanelError, match=r"no column 'id'.* and 4995 more") as e:
        Panel.from_frame(wide)
    assert len(str(e.value)) < 200
