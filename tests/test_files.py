import datetime as dt
import gzip
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumpmeans.data import files
from jumpmeans.data.files import read_panel
from jumpmeans.errors import MissingExtraError, PanelError

VISITS = "id,time,value\nb,0,1.5\na,1,\nb,2,2.5\n"


@pytest.fixture
def write(tmp_path):
    """Write text or bytes into a file of that name and return its path."""

    def write(content, name="visits.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def check_visits(panel):
    assert panel.ids.tolist() == ["b", "a"]
    np.testing.assert_array_equal(panel.rows, [0, 2, 1])
    np.testing.assert_array_equal(panel.values.ravel(), [1.5, 2.5, np.nan])


# ----------------------------------------------------------------------------------------------- reading


def test_csv(write):
    check_visits(read_panel(write(VISITS)))
    check_visits(read_panel(str(write(VISITS, "upper.CSV"))))


def test_csv_with_a_byte_order_mark_and_windows_lines(write):
    check_visits(read_panel(write(b"\xef\xbb\xbf" + VISITS.replace("\n", "\r\n").encode())))


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_csv_with_other_marks_between_its_fields(write, mark):
    check_visits(read_panel(write(VISITS.replace(",", mark))))
    check_visits(read_panel(write(gzip.compress(VISITS.replace(",", mark).encode(), mtime=0), "visits.csv.gz")))


def test_decimal_commas_beside_semicolons(write):
    """Caught: 1,5 taken for a label; a comma in a label, or beside tabs, taken for a decimal one."""
    check_visits(read_panel(write("id;time;value\nb;0,0;1,5\na;1;\nb;2;2,5\n")))
    panel = read_panel(write("id;time;value\n1,5;0;1,5\n1,5;1;x\n"))
    assert panel.ids.tolist() == ["1,5"] and panel.labels().tolist() == ["1,5", "x"]
    assert read_panel(write("id\ttime\tvalue\n1\t0\t1,5\n")).labels().tolist() == ["1,5"]


def test_gzip(write):
    check_visits(read_panel(write(gzip.compress(VISITS.encode(), mtime=0), "visits.csv.gz")))


def test_parquet(tmp_path):
    path = tmp_path / "visits.parquet"
    pd.DataFrame({"id": ["b", "a", "b"], "time": [0, 1, 2], "value": [1.5, None, 2.5]}).to_parquet(path)
    check_visits(read_panel(path))


def test_named_columns(write):
    path = write("who,when,x,y,w,g,a,z\n1,0,5,low,2,8,-1,9\n1,3,6,high,2,8,-1,9\n")
    panel = read_panel(path, id="who", time="when", value=["x", "y"], weight="w", group="g", start="a", end="z")
    assert panel.columns == ("x", "y")
    assert panel.labels("y").tolist() == ["high", "low"]
    assert panel.ids.tolist() == [1]
    assert panel.groups.tolist() == [8]
    assert (panel.weights[0], panel.start_times[0], panel.end_times[0]) == (2, -1, 9)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["007", "7"], ["007", "7"]),
        (["10", "-2"], [10, -2]),
        (["0", "1"], [0, 1]),
        (["1", "a"], ["1", "a"]),
        (["1.0", "2.0"], ["1.0", "2.0"]),
        (["9" * 30, "1"], ["9" * 30, "1"]),
    ],
)
def test_ids_stay_as_they_were_written(write, written, read):
    text = "id,time,value\n" + "".join(f"{name},0,1\n" for name in written)
    assert read_panel(write(text)).ids.tolist() == read


@given(st.lists(st.text("0123456789abc", min_size=1, max_size=4), min_size=1, max_size=6, unique=True))
def test_ids_are_never_merged(tmp_path_factory, names):
    path = tmp_path_factory.mktemp("ids") / "x.csv"
    path.write_text("id,time,value\n" + "".join(f"{name},0,1\n" for name in names))
    assert [str(x) for x in read_panel(path).ids] == names


def test_tabs(write):
    check_visits(read_panel(write(VISITS.replace(",", "\t"), "visits.tsv")))
    check_visits(read_panel(write(gzip.compress(VISITS.replace(",", "\t").encode(), mtime=0), "visits.tsv.gz")))
    commas = read_panel(write("id\ttime\tvalue\n1\t0\ta, b\n", "words.tsv"))
    assert commas.labels().tolist() == ["a, b"]


def test_quotes_and_empty_lines(write):
    panel = read_panel(write('id,time,value\n\n1,0,"a, ""b"""\n\n1,1,c\n'))
    assert panel.labels().tolist() == ['a, "b"', "c"]
    assert panel.rows.tolist() == [0, 1]


def test_a_table_of_a_file_is_of_any_kind(write, tmp_path):
    path = tmp_path / "visits.parquet"
    pd.DataFrame({"id": [1], "time": [0], "value": [1]}).to_parquet(path)
    for panel in (read_panel(path), read_panel(write(VISITS))):
        assert panel.frame_backend is None
        assert isinstance(panel.to_frame(), pd.DataFrame)


# ------------------------------------------------------------------------------------- values, as written


def read_values(write, *fields, **options):
    """The values of a text file with these fields, as the caller knows them."""
    text = "id,time,value\n" + "".join(f"1,{t},{field}\n" for t, field in enumerate(fields))
    panel = read_panel(write(text), **options)
    return panel.decode_values(panel.values[:, 0]).tolist()


@pytest.mark.parametrize("word", ["None", "NA", "N/A", "null", "nan", "NaN", "<NA>", "NULL", "n/a", "#N/A", "-", " "])
def test_only_an_empty_field_is_missing(write, word):
    # caught: a reader that takes words for missing loses the state they name
    assert read_values(write, "Mild", word, "", "Severe", word) == ["Mild", word, None, "Severe", word]


def test_labels_stay_as_written(write):
    # caught: numbers read before labels merge 01, 1 and 001
    assert read_values(write, "01", "1", "001", "1") == ["01", "1", "001", "1"]
    assert read_values(write, "1.50", "low", "1.5") == ["1.50", "low", "1.5"]
    assert read_values(write, "1_000", "2_000") == ["1_000", "2_000"]


@pytest.mark.parametrize(
    ("fields", "values"),
    [
        (["1", "2", "-3"], [1, 2, -3]),
        (["0.5", "", "+1e3", ".25", "5."], [0.5, None, 1000.0, 0.25, 5.0]),
        (["0", "0.0", "-0.5"], [0.0, 0.0, -0.5]),
        (["1.5", "nan", "NaN"], [1.5, None, None]),
        ([" 1", "2 "], [1, 2]),
        (["9007199254740992", "0"], [2**53, 0]),
        (["True", "", "false"], [True, None, False]),
    ],
)
def test_numbers_and_booleans(write, fields, values):
    read = [None if x != x else x for x in read_values(write, *fields)]
    assert read == values
    assert [type(x) for x in read] == [type(x) for x in values]


def test_words_for_a_missing_number(write):
    assert read_values(write, "1.5", "NA", "2.5", missing=["NA"])[::2] == [1.5, 2.5]
    assert np.isnan(read_values(write, "1.5", "NA", "2.5", missing=["NA"])[1])
    assert read_values(write, "1", "None", "2", missing=[]) == ["1", "None", "2"]
    assert read_values(write, "Mild", "NA", missing=["NA"]) == ["Mild", None]


def test_numbers_are_read_to_the_last_digit(write, rng):
    numbers = rng.standard_normal(500) * 10.0 ** rng.integers(-300, 300, 500)
    assert read_values(write, *map(repr, numbers.tolist())) == numbers.tolist()


# ------------------------------------------------------------------------------------------------- dates


def test_dates(write):
    panel = read_panel(write("id,time,value\n1,2024-02-28,1\n1,2024-03-01T12:00,2\n"))
    assert panel.times.tolist() == [0.0, 2.5]
    assert panel.clock.zone is None
    assert panel.clock.origin == np.datetime64("2024-02-28")


def test_zoned_dates(write):
    panel = read_panel(write("id,time,value\n1,2024-03-01T00:00Z,1\n1,2024-03-01T14:00+02:00,2\n"))
    assert panel.times.tolist() == [0.0, 0.5]
    assert panel.clock.zone == "UTC"


def test_windows_of_dates(write):
    panel = read_panel(write("id,time,value,to\n1,2024-03-01,1,2024-03-05\n"), end="to")
    assert panel.end_times.tolist() == [4.0]


def test_dates_of_parquet(tmp_path):
    path = tmp_path / "visits.parquet"
    days = [dt.date(2024, 3, 1), dt.date(2024, 3, 2)]
    for time in (days, [str(day) for day in days], pd.to_datetime(days)):
        pd.DataFrame({"id": 1, "time": time, "value": 1}, index=[5, 3]).to_parquet(path)
        assert read_panel(path).times.tolist() == [0.0, 1.0]


def test_numbers_written_as_strings_in_parquet(tmp_path):
    path = tmp_path / "visits.parquet"
    pd.DataFrame({"id": 1, "time": ["0.5", "1.5"], "value": 1}).to_parquet(path)
    assert read_panel(path).times.tolist() == [0.5, 1.5]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (["2024-03-01T00:00Z", "2024-03-02"], r"all have a time zone or all have none.*row 0.*row 1"),
        (["2024-03-01", "spring"], r"numbers or ISO dates such as .*, got 'spring' at row 1"),
        (["01/03/2024", "02/03/2024"], r"ISO dates such as .*, got '01/03/2024' at row 0; write them so \(yyyy-mm-dd"),
        (["0.5", "soon"], r"all numbers or all ISO dates, got 'soon' at row 1"),
        (["0.5", "2024-03-01"], r"all numbers or all ISO dates, got '2024-03-01' at row 1"),
        (["2024-03-01", ""], r"times must be finite, got NaT at sequence 'a', row 1"),
        (["2024-03-02", "2024-03-01"], r"got 2024-03-01 after 2024-03-02 at sequence 'a', row 1; sort"),
    ],
)
def test_bad_dates(write, times, message):
    with pytest.raises(PanelError, match=message):
        read_panel(write("id,time,value\n" + "".join(f"a,{time},1\n" for time in times)))


# ------------------------------------------------------------------------------------------------ errors


def test_no_such_file(write, tmp_path):
    write(VISITS)
    with pytest.raises(FileNotFoundError, match=r"no file .*visit\.csv' \(did you mean 'visits.csv'\?\); check"):
        read_panel(tmp_path / "visit.csv")
    with pytest.raises(FileNotFoundError, match=r"no file .*x\.csv'; check the name"):
        read_panel(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(FileNotFoundError, match="no file"):
        read_panel(tmp_path)


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (VISITS, "visits.xlsx", r"must be a \.csv or \.tsv file \(or \.gz of one\), or a \.parquet file; save"),
        (VISITS, "visits.parquet", r"must be a Parquet file, but begins with b'id,t'"),
        (b"PAR1 and then nothing of the kind", "visits.parquet", r"whole Parquet file, but is damaged"),
        (b"", "visits.parquet", r"must be a Parquet file, but begins with b''"),
        (b"PAR1\x15\x04", "visits.csv", r"must be text, but holds binary data; save the table as CSV"),
        (gzip.compress(b"id,time,value\n", mtime=0), "visits.csv", r"must be text, but holds binary data"),
        (VISITS.encode("utf-16"), "visits.csv", r"must be text, but holds binary data.*UTF-8"),
        (VISITS, "visits.csv.gz", r"must be a whole gzip file, but is not"),
        (gzip.compress(VISITS.encode(), mtime=0)[:-9], "visits.csv.gz", r"must be a whole gzip file, but is not"),
        (b"\x1f\x8b\x08" + bytes(20), "visits.csv.gz", r"must be a whole gzip file, but is not"),
        (b"", "visits.csv", r"must have a header and at least one row, but the file is empty"),
        (b" \n\n", "visits.csv", r"but the file is empty"),
        (gzip.compress(b"", mtime=0), "visits.csv.gz", r"but the file is empty"),
        ("id,time,value\n", "visits.csv", r"at least one row below its header, got none"),
        (
            "id,time,value\nJörg,0,1\n".encode("latin-1"),
            "visits.csv",
            r"UTF-8, got byte 0xf6 at offset 15; save",
        ),
        ("id,time,value\n1,0,1,7\n", "visits.csv", r"as many fields as its header, 3, got 4 on line 2; mend"),
        ("id,time,value\n1,0,1\n\n1,1,1,7\n", "visits.csv", r"as many fields as its header, 3, got 4 on line 4"),
        ("id,time,value\n1,0,1\n1,1\n", "visits.csv", r"as many fields as its header, 3, got 2 on line 3"),
        ("id\ttime\tvalue\n1\t0\n", "visits.tsv", r"as many fields as its header, 3, got 2 on line 2"),
        ('id,time,value\n1,0,"a\n1,1,b\n', "visits.csv", r"closed quotes, but is not on line 3"),
        ("id,time,value,value\n1,0,1,2\n", "visits.csv", r"names must be distinct, got 'value' twice; rename"),
        ("id,time,value\n1,0,9007199254740993\n", "visits.csv", r"below 2\*\*53.*got 9007199254740993 at row 0"),
        ("id,time,value\n1,9007199254740993,1\n", "visits.csv", r"integers in times must be below 2\*\*53"),
        ("id,time,value\n1,0,1\n1,1,NA\n", "visits.csv", r"got 'NA' among numbers at row 1; say missing=\['NA'\]"),
        ("id,time,value\n1,0,1\n,1,1\n", "visits.csv", r"ids must not be missing, got none at row 1"),
        ("id,time,value\n1,,1\n", "visits.csv", r"times must be finite, got nan at sequence 1, row 0"),
        ("id:time:value\n1:0:1\n", "visits.csv", r"no column 'id'.*there are \['id:time:value'\]"),
        ("id;time,value\n1;0;1\n", "visits.csv", r"no column 'id'.*there are \['id;time', 'value'\]"),
        ("id,time,valeu\n1,0,1\n", "visits.csv", r"no column 'value' \(did you mean 'valeu'\?\)"),
        ("id,time,value\n,0,1\n", "visits.csv", r"ids must not be missing, got none at row 0"),
    ],
)
def test_bad_files(write, content, name, message):
    with pytest.raises(PanelError, match=message):
        read_panel(write(content, name))


def test_weights_that_are_words(write):
    with pytest.raises(PanelError, match=r"weights must be numbers, got 'heavy' at row 0; correct it"):
        read_panel(write("id,time,value,w\n1,0,1,heavy\n"), weight="w")


def test_missing_is_a_list(write):
    with pytest.raises(ValueError, match=r"missing must be a list of words, got 'NA'; write \['NA'\]"):
        read_panel(write(VISITS), missing="NA")


def test_a_gzip_file_that_unpacks_to_too_much(write, monkeypatch):
    monkeypatch.setattr(files, "LARGEST_UNPACKED", 500)
    whole = "id,time,value\n" + "".join(f"1,{t},1\n" for t in range(100))
    path = write(gzip.compress(whole.encode(), mtime=0), "visits.csv.gz")
    with pytest.raises(PanelError, match=r"unpack to at most 500 bytes, but holds more; if it is meant to, unpack"):
        read_panel(path)
    monkeypatch.setattr(files, "LARGEST_UNPACKED", len(whole))
    assert read_panel(path).n_observations == 100


def test_without_pyarrow(tmp_path, monkeypatch):
    path = tmp_path / "visits.parquet"
    pd.DataFrame({"id": [1], "time": [0], "value": [1]}).to_parquet(path)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"needs pyarrow: pip install 'jumpmeans\[frames\]'"):
        read_panel(path)
