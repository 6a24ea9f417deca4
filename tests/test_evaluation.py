import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumpmeans.data.panel import Panel
from jumpmeans.evaluation import Truth, hold_out, match_labels, reconstruction_error


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
    # labels and measurements have no common error, unless bins make labels of all
    with pytest.raises(ValueError, match=r"got both: {'value_0': 'wrong', 'value_1': 'mae'}; give bins"):
        reconstruction_error([["x", 1.5], ["x", 9.0]], truth)
    assert reconstruction_error([["x", 1.7], ["x", 9.0]], truth, bins={"value_1": [2.0]}) == pytest.approx(1 / 3)


def test_hold_out_takes_any_source_of_chance(panel):
    # caught: a Generator was refused
    first, second = (hold_out(panel, random_state=np.random.default_rng(3))[1].rows for _ in range(2))
    np.testing.assert_array_equal(first, second)
    rng = np.random.default_rng(3)
    assert hold_out(panel, random_state=rng)[1].rows.tolist() != hold_out(panel, random_state=rng)[1].rows.tolist()
    assert len(hold_out(panel, random_state=None)[1].rows) == len(first)


def test_hold_out_takes_a_frame(panel):
    # caught: an AttributeError
    masked, truth = hold_out(panel.to_frame())
    np.testing.assert_array_equal(truth.rows, hold_out(panel)[1].rows)
    np.testing.assert_array_equal(np.isnan(masked.values), np.isnan(hold_out(panel)[0].values))


def test_the_rows_of_a_seed_never_change():
    """Golden: hold-outs that published numbers stand on."""
    panel = Panel.from_arrays(np.arange(20.0), np.arange(20.0), np.zeros(20, int))
    assert hold_out(panel, 0.3, 7)[1].rows.tolist() == [0, 1, 2, 5, 11, 17]


@given(st.integers(0, 10**6), st.sampled_from([0.2, 0.5, 0.8]), st.sampled_from(["sequences", "last"]))
def test_what_is_held_out_of_whom(seed, fraction, what):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random(60) < 0.2, np.nan, rng.normal(size=60))
    ids = rng.integers(0, 8, size=60)
    panel = Panel.from_arrays(np.arange(60.0), values, ids)
    masked, truth = hold_out(panel, fraction, seed, what=what)
    held = np.isin(np.arange(60), truth.rows)
    assert not np.isnan(values[held]).any() and (np.diff(truth.rows) > 0).all()
    np.testing.assert_array_equal(truth.values, values[held])
    np.testing.assert_array_equal(np.isnan(masked.to_caller_order(masked.values)[:, 0]), np.isnan(values) | held)
    seen = {key: np.flatnonzero((ids == key) & ~np.isnan(values)) for key in np.unique(ids)}
    if what == "sequences":
        # all rows of a sequence or none, as many sequences as their share
        shares = [held[rows].mean() for rows in seen.values() if len(rows)]
        assert set(shares) <= {0.0, 1.0} and sum(shares) == round(fraction * len(shares))
    else:
        # the last ones of every sequence, never all
        for rows in seen.values():
            k = min(round(fraction * len(rows)), max(len(rows) - 1, 0))
            np.testing.assert_array_equal(held[rows], np.arange(len(rows)) >= len(rows) - k)


@pytest.mark.parametrize(
    ("data", "options", "match"),
    [
        (None, {"what": "columns"}, "what must be one of .* got 'columns'"),
        (None, {"fraction": "half"}, "fraction must lie strictly between 0 and 1, got 'half'"),
        (None, {"random_state": "x"}, "random_state must be an integer from 0 .* a Generator, .* got 'x'"),
        (None, {"random_state": -1}, "random_state must be an integer from 0 .* got -1"),
        (None, {"fraction": 0.05, "what": "sequences"}, "fraction=0.05 of 5 sequences with a value is none; take a la"),
        (None, {"fraction": 0.95, "what": "sequences"}, "of 5 sequences with a value is all of them; take a smaller"),
        (Panel.from_arrays([0, 1], [1, 2], [1, 2]), {"what": "last"}, "of 1 observed rows, the most of a sequence, is"),
        ([1.0, 2.0], {}, "frame must be a pandas, polars or pyarrow table in memory, got list"),
    ],
)
def test_misuse_of_hold_out_says_what_must_hold(panel, data, options, match):
    with pytest.raises(ValueError, match=match):
        hold_out(panel if data is None else data, **options)


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


def test_measurements_have_distances():
    # caught: 1.0, every measurement wrong
    truth = some_truth([1.5, 2.0, 4.0])
    assert reconstruction_error([1.0, 2.5, 4.0], truth) == pytest.approx(1 / 3)
    assert reconstruction_error([1.0, 2.5, 4.0], truth, measure="mae") == pytest.approx(1 / 3)
    assert reconstruction_error([1.0, 2.5, 4.0], truth, measure="rmse") == pytest.approx(np.sqrt(0.5 / 3))
    assert reconstruction_error([1.0, 2.5, 4.0], truth, measure="wrong") == pytest.approx(2 / 3)
    assert reconstruction_error([1.5, 2.0, 4.0], truth, measure="rmse") == 0
    far = some_truth([1e200, -1e200])
    np.testing.assert_allclose(reconstruction_error([0.0, 0.0], far, measure="rmse"), 1e200, rtol=1e-15)


def test_whole_numbers_are_labels_until_the_caller_says_otherwise():
    truth = some_truth([1, 2, 4])
    assert reconstruction_error([1, 2, 3], truth) == pytest.approx(1 / 3)
    assert reconstruction_error([1, 2, 3], truth, measure="mae") == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match=r"measure must be given where whole numbers are predicted by others"):
        reconstruction_error([1, 2, 3.5], truth)
    assert reconstruction_error([1, 2, 3.5], truth, measure="mae") == pytest.approx(0.5 / 3)
    assert reconstruction_error([True, False], some_truth([True, True])) == 0.5


def test_errors_of_several_columns():
    truth = some_truth([[1.5, 10.0], [2.5, np.nan]])
    guess = [[1.0, 13.0], [2.0, 0.0]]
    assert reconstruction_error(guess, truth, measure="mae") == pytest.approx((0.5 + 3.0) / 2)
    assert reconstruction_error(guess, truth, bins={"value_0": [1.2], "value_1": [5.0]}) == pytest.approx(1 / 3)
    named = truth._replace(columns=("low", "high"))
    assert reconstruction_error(guess, named, bins={"low": [1.2], "high": [11.0]}) == pytest.approx(2 / 3)
    assert reconstruction_error(guess, truth, bins=[1.2, 5.0, 11.0]) == pytest.approx(2 / 3)


def test_log_score_of_chances_and_densities():
    truth = some_truth(np.array(["x", "y", None], dtype=object))
    table = [[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]]
    expected = -(np.log(0.5) + np.log(0.1)) / 2
    score = reconstruction_error(table, truth, measure="log_score", labels=["x", "y"])
    assert score == pytest.approx(expected)
    assert reconstruction_error([0.5, 0.1, 7.0], truth, measure="log_score") == pytest.approx(expected)
    # of all rows of the table
    whole = np.full((9, 2), 0.25)
    whole[truth.rows] = table
    assert reconstruction_error(whole, truth, measure="log_score", labels=["x", "y"]) == pytest.approx(expected)
    assert reconstruction_error([0.5, 0.0, 1.0], truth, measure="log_score") == np.inf
    densities = reconstruction_error([[2.0, 0.1]], some_truth([[1.5, 2.5]]), measure="log_score")
    assert densities == pytest.approx(-np.log(0.2) / 2)


def test_predictions_of_another_table_are_refused(panel):
    # caught: any table long enough was taken for the caller's
    _, truth = hold_out(panel)
    assert truth.n_rows == 40 and truth.columns == ("value",)
    for n in (39, 41, 400):
        with pytest.raises(ValueError, match=rf"shape \(40,\) or \({len(truth.rows)},\), got \({n},\)"):
            reconstruction_error(np.zeros(n), truth)


@pytest.mark.parametrize(
    ("predicted", "values", "options", "message"),
    [
        ([], [], {}, "truth must hold at least one value, got none; hold out observed rows"),
        ([1.0], [np.nan], {}, "truth must hold at least one value, got none"),
        ([0.5], [1.5], {"measure": "mse"}, "measure must be one of .* got 'mse'"),
        ([0.5], [1.5], {"measure": "mae", "bins": [1]}, "bins make categories, which measure 'mae' does not know"),
        (["x"], ["y"], {"measure": "rmse"}, "distances are for numbers, got values such as 'x'; use measure='wrong'"),
        ([0.5], [1.5], {"labels": [1.5]}, "labels must be given for measure 'log_score' only, got them for 'auto'"),
        ([-0.5], [1.5], {"measure": "log_score"}, "probabilities and densities must be >= 0, got -0.5"),
        ([np.nan], [1.5], {"measure": "log_score"}, "probabilities and densities must be >= 0, got nan"),
        (["p"], ["y"], {"measure": "log_score"}, "probabilities and densities must be numbers, got values such as 'p'"),
        ([[0.5, 0.5]], ["z"], {"measure": "log_score", "labels": ["x", "y"]}, "every held-out value, .* without 'z'"),
        ([[50.0, 50.0]], ["x"], {"measure": "log_score", "labels": ["x", "y"]}, "must be at most 1, got 50"),
        ([[0.5]], ["x"], {"measure": "log_score", "labels": ["x", "y"]}, r"\(1, 2\), got \(1, 1\)"),
        ([[0.5, 0.5]], [[1, 2]], {"measure": "log_score", "labels": [1, 2]}, "labels are for a truth of one column"),
        ([[0.5]], ["x"], {"measure": "log_score", "labels": "x"}, "labels must list what the columns .* got 'x'"),
        ([[0.5]], ["x"], {"measure": "log_score", "labels": 3}, "labels must list what the columns .* got 3"),
        ([[1], [2, 3]], [1, 2], {}, "got rows that differ in length"),
        ([1.5, 2.5], [1.5, 2.5], {"bins": {"x": [1]}}, r"bins must name columns among \['value'\], got \['x'\]"),
        ([1.5, 2.5], [1.5, 2.5], {"bins": [1.0, np.nan]}, "bins must be rising bounds"),
        ([1.5, 2.5], [1.5, 2.5], {"bins": [[1.0, 2.0]]}, "bins must be rising bounds"),
        ([1.5, 2.5], [1.5, 2.5], {"bins": [2.0, 2.0]}, "bins must be rising bounds"),
    ],
)
def test_misuse_of_measures_says_what_must_hold(predicted, values, options, message):
    with pytest.raises(ValueError, match=message):
        reconstruction_error(predicted, some_truth(values), **options)


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
        ([1.0, 2.0], [1.0, 2.0], [3.0, 1.0, 2.0], r"bins must be rising bounds such as .* got \[3.0, 1.0, 2.0\]"),
        # caught: numpy takes falling bounds as well
        ([1.0, 2.0], [1.0, 2.0], [3.0, 2.0, 1.0], r"bins must be rising bounds such as"),
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


def test_a_truth_comes_from_hold_out():
    with pytest.raises(ValueError, match="truth must be what hold_out gives, got list"):
        reconstruction_error([1], [1])


def test_missing_labels_cannot_be_matched():
    with pytest.raises(ValueError, match="a and b must each hold numbers or strings, got both, or missing ones"):
        match_labels(["x", None], ["x", "y"])


def test_match_of_different_lengths():
    with pytest.raises(ValueError, match=r"of one length, got shapes \(2,\) and \(3,\)"):
        match_labels([1, 2], [1, 2, 3])
