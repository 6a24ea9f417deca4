import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumpmeans.data.panel import Panel
from jumpmeans.evaluation.scores import Truth, hold_out, match_labels, reconstruction_error


@pytest.fixture
def panel():
    rng = np.random.default_rng(0)
    values = rng.normal(size=40)
    values[::8] = np.nan
    return Panel.from_arrays(np.arange(40.0), values, rng.integers(0, 5, size=40))


def some_truth(values):
    k = len(values)
    return Truth(np.zeros(k), np.arange(k), 2 * np.arange(k), np.asarray(values))


# ---------------------------------------------------------------------------------------------- hold_out


@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.5, 0.99])
def test_hold_out_blanks_that_many_observed_rows(panel, fraction):
    masked, truth = hold_out(panel, fraction=fraction)
    assert len(truth.rows) == round(fraction * panel.observed.sum())
    assert panel.observed.sum() - masked.observed.sum() == len(truth.rows)
    assert (np.diff(truth.rows) > 0).all()


def test_hold_out_speaks_in_the_rows_of_the_caller(panel):
    masked, truth = hold_out(panel)
    given = panel.to_caller_order(panel.values)[:, 0]
    left = masked.to_caller_order(masked.values)[:, 0]
    np.testing.assert_array_equal(given[truth.rows], truth.values)
    assert np.isnan(left[truth.rows]).all()
    others = np.setdiff1d(np.arange(40), truth.rows)
    np.testing.assert_array_equal(left[others], given[others])
    np.testing.assert_array_equal(truth.times, truth.rows)
    frame = panel.to_frame()
    np.testing.assert_array_equal(truth.ids, frame["id"][truth.rows])


def test_hold_out_depends_on_the_seed_only(panel):
    first, second, other = (hold_out(panel, random_state=seed)[1].rows for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert first.tolist() != other.tolist()
    state = np.random.RandomState(0)
    np.testing.assert_array_equal(hold_out(panel, random_state=state)[1].rows, first)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["x", "y", "x"], object),
        ([1, 2, 3], np.int64),
        ([1.5, 2.0, 3.0], np.float64),
        ([True, False, True], bool),
    ],
)
def test_truth_is_what_the_caller_gave(values, dtype):
    masked, truth = hold_out(Panel.from_arrays([0, 1, 2], values, [1, 1, 1]), fraction=0.7)
    assert truth.values.tolist() == [values[row] for row in truth.rows]
    assert truth.values.dtype == dtype
    assert masked.integer == (dtype == np.int64,)


def test_truth_of_several_columns_and_dates():
    times = np.array(["2024-01-01", "2024-01-02"], "M8[D]")
    panel = Panel.from_arrays(times, np.array([["x", 1.5], ["y", None]], dtype=object), [1, 1])
    masked, truth = hold_out(panel, fraction=0.9)
    assert truth.values[:, 0].tolist() == ["x", "y"]
    np.testing.assert_array_equal(truth.values[:, 1].astype(float), [1.5, np.nan])
    np.testing.assert_array_equal(truth.times, times)
    assert not masked.observed.any()
    assert reconstruction_error([["x", 1.5], ["x", 9.0]], truth) == pytest.approx(1 / 3)


@pytest.mark.parametrize("fraction", [0, 1, -0.2, 1.5, float("nan")])
def test_hold_out_fraction(panel, fraction):
    with pytest.raises(ValueError, match="strictly between 0 and 1, got"):
        hold_out(panel, fraction=fraction)


def test_hold_out_of_nothing():
    with pytest.raises(ValueError, match=r"fraction=0.3 of 1 observed rows is none; take a larger one"):
        hold_out(Panel.from_arrays([0, 1], [1, None], [1, 1]))


# ---------------------------------------------------------------------------------- reconstruction_error


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.data())
def test_error_is_the_share_wrong(values, data):
    truth = some_truth(values)
    guess = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(values), max_size=len(values))))
    wrong = np.mean(guess != truth.values)
    assert reconstruction_error(guess, truth) == wrong
    whole = np.full(2 * len(values) + 5, 9)
    whole[truth.rows] = guess
    assert reconstruction_error(whole, truth) == wrong


def test_error_of_the_truth_itself_is_zero(panel):
    _, truth = hold_out(panel)
    assert reconstruction_error(panel.to_caller_order(panel.values)[:, 0], truth) == 0
    assert reconstruction_error(truth.values, truth) == 0


def test_error_by_bins():
    truth = some_truth([119.0, 120.0, 170.0])
    assert reconstruction_error([100.0, 139.9, 160.0], truth, bins=[120, 140, 160]) == 0
    assert reconstruction_error([120.0, 119.0, 159.0], truth, bins=[120, 140, 160]) == 1


def test_labels_may_be_whole_floats_or_plain_strings():
    assert reconstruction_error([1.0, 2.0], some_truth([1, 3])) == 0.5
    assert reconstruction_error(["x", "y"], some_truth(np.array(["x", "y"], dtype=object))) == 0


@pytest.mark.parametrize(
    ("predicted", "values", "bins", "message"),
    [
        ([1, 2], [1, 2, 3], None, r"one entry per row of the table, or one per held-out row: .*got \(2,\)"),
        ([1, 2, 3, 4], [1, 2, 3], None, r"one per held-out row: shape .* or \(3,\), got \(4,\)"),
        (1, [1, 2, 3], None, r"got \(\)"),
        ([[1], [2], [3]], [1, 2, 3], None, r"got \(3, 1\)"),
        ([1.0, np.nan], [1.0, 2.0], None, r"a value for every held-out row, got missing ones"),
        (["x", None], ["x", "y"], None, r"a value for every held-out row, got missing ones"),
        (["1", "2"], [1, 2], None, r"of the kind of the truth, got '1' for 1"),
        (["x", "y"], ["x", "y"], [1.0], r"bins are for numbers, got values such as 'x'; leave them out"),
        ([1.0, 2.0], [1.0, 2.0], [3.0, 1.0, 2.0], r"bins must be monotonically"),
    ],
)
def test_error_of_bad_predictions(predicted, values, bins, message):
    with pytest.raises(ValueError, match=message):
        reconstruction_error(predicted, some_truth(values), bins=bins)


# ------------------------------------------------------------------------------------------ match_labels


@given(st.permutations(range(5)), st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_a_permutation_is_found(order, labels):
    truth = np.array(labels)
    mapping = match_labels(np.array(order)[truth], truth)
    assert mapping == {order[k]: k for k in sorted(set(labels), key=lambda k: order[k])}


def test_match_by_hand():
    assert match_labels([0, 0, 0, 1, 1, 2], ["x", "x", "y", "y", "y", "y"]) == {0: "x", 1: "y"}
    assert match_labels([0, 0], ["x", "y"]) in ({0: "x"}, {0: "y"})


def test_match_of_different_lengths():
    with pytest.raises(ValueError, match=r"of one length, got shapes \(2,\) and \(3,\)"):
        match_labels([1, 2], [1, 2, 3])
