import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import jumpmeans as jm
from jumpmeans.comparators import CarriedForward, Interpolation, KernelSmoother, MostCommon

NAN = np.nan
ALL = [MostCommon, CarriedForward, Interpolation, KernelSmoother]


def one(times, values):
    return jm.Panel.from_arrays(times, values, ids=[1] * len(times))


def ragged(rng, n_sequences=12, labels=False, missing=0.3):
    """Sequences of 1 to 9 rows, irregular times, some values missing, rows of the sequences interleaved."""
    lengths = rng.integers(1, 10, n_sequences)
    ids = np.repeat(np.arange(n_sequences), lengths)
    times = np.concatenate([np.cumsum(rng.exponential(size=n)) for n in lengths])
    values = rng.choice(["a", "b", "c"], len(ids)).astype(object) if labels else rng.normal(size=len(ids))
    values[rng.random(len(ids)) < missing] = None if labels else NAN
    order = np.argsort(rng.random(n_sequences)[ids] + 1e-9 * np.arange(len(ids)), kind="stable")
    order = order[np.argsort(times[order], kind="stable")]
    return jm.Panel.from_arrays(times[order], values[order], ids[order])


# ------------------------------------------------------------------------------------------- what they predict


def test_most_common_label_is_weighted_and_the_first_of_equals():
    panel = jm.Panel.from_arrays([0, 1, 2, 0], ["a", "a", None, "b"], ids=[1, 1, 1, 2], weights=[1, 1, 1, 3])
    assert MostCommon().fit(panel).predict_value(panel).tolist() == ["b"] * 4
    assert MostCommon().fit(one([0, 1], ["b", "a"])).most_common_ == ("a",)


def test_most_common_number_is_the_median_of_the_most_common_bin():
    x = [100.0, 104.0, 130.0, 131.0, 150.0, NAN]
    panel = one(range(6), x)
    assert MostCommon().fit(panel).most_common_ == (130.0,)
    assert MostCommon(bins=[120, 128, 140]).fit(panel).most_common_ == (102.0,)
    assert MostCommon(bins=[120, 140]).fit(one(range(3), [125.0, 139.0, 141.0])).most_common_ == (132.0,)


def test_bins_by_column():
    panel = jm.Panel.from_arrays([0, 1, 2], np.array([[1.0, 1.0], [2.0, 2.0], [9.0, 9.0]]), [1, 1, 1])
    model = MostCommon(bins={"value_1": [5.0]}).fit(panel)
    assert model.most_common_ == (2.0, 1.5)


def test_carried_forward_and_backward_within_a_sequence_only():
    panel = jm.Panel.from_arrays([0, 1, 2, 0, 1, 0], [NAN, 3.0, NAN, NAN, 8.0, NAN], ids=["x", "x", "x", "y", "y", "z"])
    out = CarriedForward().fit(panel).predict_value(panel)
    np.testing.assert_array_equal(out, [3, 3, 3, 8, 8, 5.5])  # z has no value: the median


def test_carried_forward_label():
    panel = one([0, 1, 2, 3], [None, "b", None, "a"])
    assert CarriedForward().fit(panel).predict_value(panel).tolist() == ["b", "b", "b", "a"]


def test_interpolation_of_numbers_is_a_line_and_flat_outside():
    panel = one([0, 1, 2, 5, 9], [NAN, 10.0, NAN, 22.0, NAN])
    np.testing.assert_allclose(Interpolation().fit(panel).predict_value(panel), [10, 10, 13, 22, 22], rtol=1e-15)


def test_interpolation_of_labels_is_the_nearest_and_the_earlier_of_equals():
    panel = one([0, 1, 2, 3, 4, 6], ["a", None, None, None, "b", None])
    assert Interpolation().fit(panel).predict_value(panel).tolist() == ["a", "a", "a", "b", "b", "b"]


def plain_smoother(t, x, at, width):
    w = np.exp(-0.5 * ((at[:, None] - t[None, :]) / width) ** 2)
    return (w @ x) / w.sum(axis=1)


@pytest.mark.parametrize("width", [0.4, 1.0, 7.0, np.inf])
def test_kernel_smoother_is_the_plain_formula(rng, width):
    t = np.cumsum(rng.exponential(size=30))
    x = rng.normal(size=30)
    x[rng.random(30) < 0.3] = NAN
    seen = np.isfinite(x)
    panel = one(t, x)
    out = KernelSmoother(bandwidth=width).fit(panel).predict_value(panel)
    np.testing.assert_allclose(out, plain_smoother(t[seen], x[seen], t, width), rtol=1e-12)


def test_kernel_smoother_of_labels_is_a_weighted_vote(rng):
    panel = ragged(rng, labels=True)
    model = KernelSmoother(bandwidth=0.8).fit(panel)
    probs = model.predict_proba(panel)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=1e-12)
    labels = model.labels_[0]
    np.testing.assert_array_equal(labels[probs.argmax(axis=1)], model.predict_value(panel))
    for k, label in enumerate(labels):
        i = 3
        part = slice(panel.offsets[i], panel.offsets[i + 1])
        x = panel.decode_values(panel.values[part, 0])
        seen = np.array([v is not None for v in x])
        hit = (x[seen] == label).astype(float)
        t = panel.times[part]
        expected = plain_smoother(t[seen], hit, t, 0.8)
        np.testing.assert_allclose(probs[panel.rows[part], k], expected, rtol=1e-12, atol=1e-15)


def test_kernel_smoother_far_from_all_values_shows_the_nearest():
    panel = one([0.0, 1.0, 500.0, 998.0, 1000.0], [1.0, 3.0, NAN, NAN, 7.0])
    out = KernelSmoother(bandwidth=0.5).fit(panel).predict_value(panel)
    np.testing.assert_allclose(out[2:], [3.0, 7.0, 7.0], rtol=1e-12)


@pytest.mark.parametrize("labels", [False, True])
def test_bandwidth_has_the_least_leave_one_out_error(rng, labels):
    panel = ragged(rng, labels=labels)
    model = KernelSmoother().fit(panel)
    widths, errors = model.leave_one_out_[0]
    gap = np.median(panel.gaps()[0])
    np.testing.assert_allclose(widths[:-1], gap * np.sqrt(2.0) ** np.arange(-4, 11), rtol=1e-12)
    expected, count = np.zeros(len(widths)), 0
    for i in range(len(panel)):
        part = slice(panel.offsets[i], panel.offsets[i + 1])
        x, t = panel.values[part, 0], panel.times[part]
        x, t = x[np.isfinite(x)], t[np.isfinite(x)]
        y = np.eye(3)[x.astype(int)] if labels else x[:, None]
        for j in range(len(t)) if len(t) > 1 else ():
            rest = np.arange(len(t)) != j
            for g, width in enumerate(widths):
                away = (t[rest] - t[j]) ** 2
                w = np.exp(-0.5 * (away - away.min()) / width**2)
                expected[g] += (((w @ y[rest]) / w.sum() - y[j]) ** 2).sum()
            count += 1
    np.testing.assert_allclose(errors, expected / count, rtol=1e-9)
    assert model.bandwidths_.tolist() == [widths[errors.argmin()]]


def test_slow_signals_get_wide_kernels_and_fast_ones_narrow(rng):
    t = np.cumsum(rng.exponential(size=400))
    noise = rng.normal(size=400)
    chosen = [
        KernelSmoother().fit(one(t, values)).bandwidths_[0]
        for values in (np.sin(t) + 0.01 * noise, np.sin(t / 20) + 0.5 * noise, noise)
    ]
    assert chosen[0] < 0.5 < 2.0 < chosen[1] < 20 < chosen[2] == np.inf


def test_values_and_times_beyond_the_square_root_of_floats(rng):
    """In units of 1e300 the same answers as in units of 1; was an OverflowError from 1e154 on."""
    t, x = np.cumsum(rng.exponential(size=30)), rng.normal(size=30)
    x[::4] = NAN
    plain = KernelSmoother().fit(one(t, x))
    for time_unit, value_unit in ((1.0, 1e155), (1.0, 1e300), (2.0**990, 1.0), (2.0**-990, 1e300)):
        model = KernelSmoother().fit(one(t * time_unit, x * value_unit))
        np.testing.assert_allclose(model.bandwidths_, plain.bandwidths_ * time_unit, rtol=1e-12)
        expected = plain.predict_value(one(t, x)) * value_unit
        np.testing.assert_allclose(model.predict_value(one(t * time_unit, x * value_unit)), expected, rtol=1e-12)
        assert not np.isnan(model.leave_one_out_[0][1]).any()


def test_gaps_of_all_sizes_give_finite_answers():
    # caught: the difference of two infinite squares, which is no number
    panel = one([0, 1e-300, 2e-300, 1.0, 2.0, 1e300, 1.1e300], [1.0, NAN, 2.0, 3.0, NAN, 4.0, NAN])
    for width in ("auto", 1e-300, 1.0, 1e300, np.inf):
        out = KernelSmoother(bandwidth=width).fit(panel).predict_value(panel)
        assert np.all((out >= 1) & (out <= 4))
    np.testing.assert_array_equal(KernelSmoother(bandwidth=1.0).fit(panel).predict_value(panel)[5:], [4, 4])


# ------------------------------------------------------------------------------------- one contract of reading


def test_values_at_any_time():
    panel = jm.Panel.from_arrays([0, 4, 0, 2], [1.0, 3.0, 8.0, NAN], ids=["a", "a", "b", "b"])
    at = {"b": [5.0, -1.0], "a": [1.0, 4.0]}
    expected = {
        MostCommon: [3, 3, 3, 3],
        CarriedForward: [8, 8, 1, 3],
        Interpolation: [8, 8, 1.5, 3],
    }
    for method, values in expected.items():
        model = method().fit(panel)
        np.testing.assert_allclose(model.predict_value(panel, at=at), values, rtol=1e-15)
        assert model.predict_value(panel, at=("a", 4.0)).tolist() == [values[3]]
        pair = model.predict_value(panel, at=(["a", "b"], [4.0, 5.0]))
        np.testing.assert_allclose(pair, [values[3], values[0]], rtol=1e-15)
    smooth = KernelSmoother(bandwidth=1.0).fit(panel)
    by_hand = plain_smoother(np.array([0.0, 4.0]), np.array([1.0, 3.0]), np.array([1.0, 4.0]), 1.0)
    np.testing.assert_allclose(smooth.predict_value(panel, at=at), [8, 8, *by_hand], rtol=1e-12)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("labels", [False, True])
def test_asking_at_the_rows_is_asking_for_the_rows(method, labels, rng):
    panel = ragged(rng, labels=labels)
    model = method().fit(panel)
    frame = panel.to_frame()
    asked = model.predict_value(panel, at=(frame["id"], frame["time"]))
    np.testing.assert_array_equal(asked, model.predict_value(panel))
    np.testing.assert_array_equal(model.predict_value(panel, "trajectory"), model.predict_value(panel, "posterior"))


# ---------------------------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("method", ALL)
@given(seed=st.integers(0, 10**6), labels=st.booleans())
def test_weight_k_is_k_copies(method, seed, labels):
    rng = np.random.default_rng(seed)
    panel = ragged(rng, labels=labels)
    if not panel.observed.any():
        return
    counts = rng.integers(1, 4, len(panel))
    frame = panel.to_frame()
    weighted = jm.Panel.from_frame(frame.assign(weight=counts[panel.sequence_index][np.argsort(panel.rows)]),
                                   weight="weight")  # fmt: skip
    copies = panel.select(np.repeat(np.arange(len(panel)), counts))
    once, often = method().fit(weighted), method().fit(copies)
    assert once.most_common_ == often.most_common_
    assert getattr(once, "bandwidths_", 0) == getattr(often, "bandwidths_", 0)
    if method is KernelSmoother:
        np.testing.assert_allclose(once.leave_one_out_[0], often.leave_one_out_[0], rtol=1e-10)
    np.testing.assert_array_equal(once.predict_value(panel), often.predict_value(panel))


@pytest.mark.parametrize("method", ALL)
@given(seed=st.integers(0, 10**6), power=st.integers(-20, 20), labels=st.booleans())
def test_the_unit_of_time_changes_nothing(method, seed, power, labels):
    panel = ragged(np.random.default_rng(seed), labels=labels)
    if not panel.observed.any():
        return
    frame = panel.to_frame()
    other = jm.Panel.from_frame(frame.assign(time=frame["time"] * 2.0**power))
    np.testing.assert_array_equal(method().fit(panel).predict_value(panel), method().fit(other).predict_value(other))


@pytest.mark.parametrize("method", [CarriedForward, Interpolation])
@given(seed=st.integers(0, 10**6), labels=st.booleans())
def test_a_row_with_a_value_shows_it(method, seed, labels):
    panel = ragged(np.random.default_rng(seed), labels=labels)
    if not panel.observed.any():
        return
    out = method().fit(panel).predict_value(panel)
    given_values = panel.to_frame()["value"]
    seen = given_values.notna().to_numpy()
    np.testing.assert_array_equal(out[seen], given_values[seen])


@pytest.mark.parametrize("method", ALL)
def test_answers_come_in_the_order_of_the_rows_asked(method, rng):
    panel = ragged(rng)
    frame = panel.to_frame()
    by_sequence = frame.sort_values("id", kind="stable")
    model = method().fit(frame)
    out = pd.Series(model.predict_value(frame), index=frame.index)
    np.testing.assert_allclose(model.predict_value(by_sequence), out[by_sequence.index], rtol=1e-13)


@pytest.mark.parametrize("method", ALL)
def test_several_columns_each_on_its_own(method, rng):
    numbers, labels = ragged(rng), ragged(np.random.default_rng(20150706), labels=True)
    frame = numbers.to_frame().rename(columns={"value": "x"})
    frame["y"] = labels.to_frame()["value"].to_numpy()[: len(frame)]
    both = jm.Panel.from_frame(frame, value=["x", "y"])
    out = method().fit(both).predict_value(both)
    assert out.shape == (len(frame), 2)
    for d, name in enumerate(["x", "y"]):
        alone = jm.Panel.from_frame(frame, value=name)
        np.testing.assert_array_equal(out[:, d], method().fit(alone).predict_value(alone))


@pytest.mark.parametrize("method", ALL)
def test_estimator_contract(method, rng):
    panel = ragged(rng)
    before = panel.values.copy()
    model = method()
    with pytest.raises(NotFittedError, match=f"this {method.__name__} must be fitted first"):
        model.predict_value(panel)
    assert model.fit(panel) is model
    first = model.predict_value(panel)
    again = clone(model).fit(panel)
    np.testing.assert_array_equal(first, again.predict_value(panel))
    np.testing.assert_array_equal(first, model.fit(panel).predict_value(panel))
    np.testing.assert_array_equal(before, panel.values)
    assert clone(model).get_params() == model.get_params()


# ---------------------------------------------------------------------------------- labels, kinds and messages


def test_whole_numbers_are_labels_if_the_emission_says_so():
    panel = one([0, 1, 2, 3], [1, 3, 3, None])
    assert MostCommon().fit(panel).most_common_ == (3.0,)
    for method in ALL:
        out = method(emission="direct").fit(panel).predict_value(panel)
        assert out.dtype == np.int64
        assert out[3] == 3
    half = one([0, 1], [1, 2])
    assert MostCommon().fit(half).most_common_ == (1.5,)
    assert MostCommon(emission="categorical").fit(half).most_common_ == (1,)


@pytest.mark.parametrize("method", [CarriedForward, Interpolation, KernelSmoother])
def test_labels_that_were_not_there_when_fitted(method):
    model = method().fit(one([0, 1], ["a", "b"]))
    panel = jm.Panel.from_arrays([0, 1, 0], ["c", None, None], ids=[1, 1, 2])
    assert model.predict_value(panel).tolist() == ["c", "c", "a"]


def test_booleans_stay_booleans():
    panel = one([0, 1, 2], [True, None, True])
    assert CarriedForward().fit(panel).predict_value(panel).tolist() == [True, True, True]


def test_predict_proba_of_a_sequence_without_values_is_the_most_common_label():
    panel = jm.Panel.from_arrays([0, 1, 0], ["a", "b", None], ids=[1, 1, 2])
    probs = KernelSmoother(bandwidth=1.0).fit(panel).predict_proba(panel)
    assert probs[2].tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: KernelSmoother(bandwidth=0.0).fit(p), "bandwidth must be 'auto' or a positive number, got 0.0"),
        (lambda p: KernelSmoother(bandwidth=None).fit(p), "bandwidth must be 'auto' .* got None"),
        (lambda p: KernelSmoother(bandwidth=10**400).fit(p), "bandwidth must be 'auto' .* got 1000"),
        (lambda p: KernelSmoother(bandwidth="wide").fit(p), "bandwidth must be 'auto' .* got 'wide'"),
        (lambda p: MostCommon(bins=[3, 1]).fit(p), r"bins must be rising bounds .* got \[3, 1\]"),
        (lambda p: MostCommon(bins=[]).fit(p), r"bins must be rising bounds .* got \[\]"),
        (lambda p: MostCommon(bins=["low"]).fit(p), r"bins must be rising bounds .* got \['low'\]"),
        (lambda p: MostCommon().fit(p).predict_value(p, "mode"), "method must be one of .* got 'mode'"),
        (lambda p: MostCommon().fit(p).predict_value(p, at={}), "at must ask for at least one time, got none"),
        (lambda p: MostCommon().fit(p).predict_value(p, at={1: []}), "at must ask for at least one time, got none"),
        (lambda p: MostCommon().fit(p).predict_value(p, at=3), r"at must be {id: times} or a pair .* got int"),
        (lambda p: MostCommon(bins={"sys": [1]}).fit(p), r"bins must name columns among \['value'\], got \['sys'\]"),
        (lambda p: MostCommon(emission="normal").fit(p), "emission must be one of"),
        (lambda p: KernelSmoother().fit(p).predict_proba(p), "predict_proba needs a single column of labels"),
        (lambda p: MostCommon().fit(p.with_values(p.values * NAN)), "column 'value' must hold at least one value"),
        (lambda p: MostCommon().fit(p).predict_value(one([0], ["a"])), "must be numbers .* got 'a' at sequence 1"),
        (
            lambda p: MostCommon().fit(p).predict_value(jm.Panel.from_arrays([0], np.ones((1, 2)), [1])),
            "the panel must have 1 value columns as when fitted, got 2",
        ),
    ],
)  # fmt: skip
def test_messages(make, message):
    with pytest.raises(ValueError, match=message):
        make(one([0, 1], [1.0, 2.0]))


# ------------------------------------------------------------------------------------------------- real data


def test_order_of_the_methods_on_blood_pressure():
    """Golden: `hold_out(panel, 0.25, seed)` for seeds 0 to 9, error in the categories of `PRESSURE_BINS`.

    Most common, carried forward and interpolation agree with pandas (ffill().bfill(), np.interp) on the same splits.
    """
    panel, bins = jm.datasets.load_icu_pressure(), jm.datasets.PRESSURE_BINS
    methods = [MostCommon(bins=bins), CarriedForward(), Interpolation(), KernelSmoother()]
    errors = np.zeros(4)
    for seed in range(10):
        masked, truth = jm.hold_out(panel, 0.25, seed)
        errors += [
            10 * jm.reconstruction_error(model.fit(masked).predict_value(masked), truth, bins=bins) for model in methods
        ]
        series = [
            pd.Series(masked.values[a:b, 0], masked.times[a:b])
            for a, b in zip(masked.offsets, masked.offsets[1:], strict=False)
        ]
        carried = np.concatenate([s.ffill().bfill() for s in series])
        line = np.concatenate([np.interp(s.index, s.dropna().index, s.dropna()) for s in series])
        np.testing.assert_array_equal(masked.to_caller_order(carried), methods[1].predict_value(masked))
        np.testing.assert_allclose(masked.to_caller_order(line), methods[2].predict_value(masked), rtol=1e-12)
    np.testing.assert_allclose(errors, [37.8623, 32.7717, 28.8043, 28.7319], rtol=1e-5)
