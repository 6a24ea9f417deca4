"""Labelled matrices: read by label, printed for people, turned into frames."""

import numpy as np
import pytest

from jumpmeans.data.table import SHOWN_COLUMNS, SHOWN_ROWS, Table


@pytest.fixture
def table():
    return Table([[1.0, 2.5], [3.0, np.inf], [0.0, -4.0]], ["a", "b", "c"], [10, 20], "state", "day", "cost", "euro")


def test_a_table_is_read_by_label(table):
    assert table["b", 10] == 3.0 and isinstance(table["b", 10], float)
    np.testing.assert_array_equal(table["c"], [0.0, -4.0])
    assert list(table) == ["a", "b", "c"] and len(table) == 3
    # labels, not places: rows counted backwards are found by their own numbers
    assert Table([[5.0], [6.0]], [1, 0], ["x"], "i", "j", "n")[1, "x"] == 5.0


def test_a_table_is_an_array_to_numpy(table):
    np.testing.assert_array_equal(np.asarray(table), table.values)
    assert np.asarray(table, dtype=np.float32).dtype == np.float32
    own = np.array(table)
    own[0, 0] = 99.0  # a copy: the table cannot change
    assert table["a", 10] == 1.0


def test_a_table_cannot_be_changed():
    values = np.ones((2, 2))
    table = Table(values, [0, 1], [0, 1], "from", "to", "n")
    values[0, 0] = 7.0
    assert table[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        table.values[0, 0] = 7.0
    with pytest.raises(AttributeError):
        table.unit = "hour"


def test_text_lines_up(table):
    assert repr(table).splitlines() == [
        "cost (euro)",
        "state / day  10   20",
        "a             1  2.5",
        "b             3  inf",
        "c             0   -4",
    ]


def test_text_of_a_large_table_is_short():
    n = 300
    table = Table(np.zeros((n, n)), np.arange(n), np.arange(n), "from", "to", "n")
    lines = repr(table).splitlines()
    assert len(lines) == SHOWN_ROWS + 3 and lines[-1] == "... 300 rows and 300 columns in all"
    assert lines[1].split()[3:] == [str(i) for i in range(SHOWN_COLUMNS)]


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_frame_of_each_kind(table, backend):
    pytest.importorskip(backend)
    frame = table.to_frame(backend)
    assert type(frame).__module__.split(".")[0] == backend
    columns = {name: np.asarray(frame[name]).tolist() for name in ("state", "10", "20")}
    assert columns == {"state": ["a", "b", "c"], "10": [1.0, 3.0, 0.0], "20": [2.5, np.inf, -4.0]}


@pytest.mark.parametrize(
    ("use", "error", "match"),
    [
        (lambda t: t["d", 10], KeyError, r"there is no row 'd'; there are \['a', 'b', 'c'\]"),
        (lambda t: t["a", "10"], KeyError, r"there is no column '10'; there are \[10, 20\]"),
        (lambda t: t["a", 10, 20], KeyError, r"table\[row, column\] or table\[row\], got 3 labels"),
        (lambda t: Table([1.0, 2.0], ["a"], ["b"], "i", "j", "n"), ValueError, r"1 row labels .* got shape \(2,\)"),
        (lambda t: Table(np.eye(2), ["a", "a"], [1, 2], "i", "j", "n"), ValueError, "labels of rows must be distinct"),
        (
            lambda t: Table(np.eye(2), ["from", "to"], ["from", "to"], "from", "to", "n").to_frame(),
            ValueError,
            "distinct names, got 'from' twice; rename it",
        ),
    ],
)
def test_misuse_says_what_must_hold(table, use, error, match):
    with pytest.raises(error, match=match):
        use(table)
