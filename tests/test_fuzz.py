"""Extreme but finite panels: a right answer or an error of ours, never a NaN, a raw error or a dead interpreter.

Times, gaps, readings and weights from 1e-300 to 1e300, 1 to 1,000 labels, sequences of one row and of many.
"""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import jumpmeans as jm
from jumpmeans.errors import InfeasibleError, StructureWarning

OURS = (jm.PanelError, InfeasibleError, ValueError)
# An error of numpy, scipy or numba that happens to be a ValueError does not speak as ours do.
WORDS = ("must", "needs", "cannot", "there is no", "too")


def magnitudes(draw, n, low=-300, high=300):
    """Positive numbers, spread over the exponents that a drawn range covers."""
    a, b = sorted((draw(st.integers(low, high)), draw(st.integers(low, high))))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return np.exp(rng.uniform(a, b, n) * np.log(10.0))


@st.composite
def panels(draw, kind):
    """Arguments of a panel: times, values, ids and maybe weights and a window."""
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=6))
    n = sum(lengths)
    gaps = magnitudes(draw, n)
    with np.errstate(over="ignore"):
        times = np.concatenate([np.cumsum(part) for part in np.split(gaps, np.cumsum(lengths)[:-1])])
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if kind == "labels":
        values = rng.integers(0, draw(st.sampled_from([1, 2, 5, 40, 1000])), n).astype(str).astype(object)
    elif kind == "gaussian":
        values = magnitudes(draw, n) * rng.choice([-1.0, 1.0], n)
    else:
        values = magnitudes(draw, n)
    values = np.where(rng.random(n) < draw(st.sampled_from([0.0, 0.3])), None, values)
    ids = np.repeat(np.arange(len(lengths)), lengths)
    options = {}
    if draw(st.booleans()):
        most = draw(st.sampled_from([100, 300]))  # beyond 1e100 they are refused
        options["weights"] = magnitudes(draw, len(lengths), -most, most)[ids]
    return times, values, ids, options


def sound(model, panel):
    """Everything a fitted model says is a number."""
    process = model.process_
    for part in (process.rates, process.transition_probs, process.initial_probs):
        assert np.isfinite(part).all()
    probabilities = model.predict_proba(panel)
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-6)
    if hasattr(model, "objective_"):
        assert np.isfinite(model.objective_history_).all()
        assert np.isfinite(model.trajectories_.start_times).all()


def try_all(arguments, models):
    times, values, ids, options = arguments
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in (ConvergenceWarning, StructureWarning):  # advice is welcome
            warnings.simplefilter("ignore", kind)
        try:
            panel = jm.Panel.from_arrays(times, values, ids, **options)
        except OURS as error:
            assert any(word in str(error) for word in WORDS), error
            return
        for model in models:
            try:
                model.fit(panel)
            except OURS as error:
                assert any(word in str(error) for word in WORDS), error
                assert len(str(error)) < 2000
            else:
                sound(model, panel)


@settings(max_examples=40)
@given(panels("labels"))
def test_labels(arguments):
    try_all(
        arguments, [jm.JumpMeans(emission="direct", max_iter=20), jm.comparators.EM(emission="direct", max_iter=20)]
    )


@settings(max_examples=40)
@given(panels("gaussian"))
def test_readings(arguments):
    try_all(arguments, [jm.JumpMeans(2, max_iter=20), jm.comparators.EM(2, max_iter=20)])


# a state of one value: its scale is the least there is, and squares overflowed
@example((np.array([1.0, 2.0]), np.array([362.3, 56535.1], dtype=object), np.array([0, 0]), {}), "student")
@settings(max_examples=20)
@given(panels("positive"), st.sampled_from(["lognormal", "exponential", "student", "laplace"]))
def test_positive_readings(arguments, family):
    try_all(arguments, [jm.JumpMeans(2, emission=family, max_iter=20)])


@settings(max_examples=15)
@given(panels("gaussian"))
def test_number_of_states(arguments):
    try_all(arguments, [jm.InfiniteJumpMeans(max_states=3, max_iter=20)])


NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True), st.integers(-(10**20), 10**20), st.none(), st.booleans(),
    st.text(max_size=5), st.lists(st.floats(), max_size=3),
)  # fmt: skip


@settings(max_examples=60)
@given(NUMBERS, NUMBERS, NUMBERS)
def test_processes(rates, P, pi):
    try:
        process = jm.Process(rates, P, pi)
    except OURS as error:
        assert any(word in str(error) for word in WORDS), error
    else:
        assert np.isfinite(process.rate_matrix).all()


OPTIONS = ("n_states", "max_iter", "tol", "refine", "n_init", "pseudo_count", "jumps_per_gap", "transition_weight",
           "emission_weight", "prior_dwell_count", "prior_dwell_time")  # fmt: skip


@settings(max_examples=40)
@given(st.sampled_from(OPTIONS), NUMBERS)
def test_options(name, value):
    """Any value of any option: a fit, or an error that names the option."""
    panel = jm.Panel.from_arrays([0, 1, 2, 3, 0, 1, 2], [0.0, 5, 0, 5, 1, 6, 1], [0, 0, 0, 0, 1, 1, 1])
    model = jm.JumpMeans(**{"n_states": 2, "max_iter": 5, "refine": 1, name: value})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(panel)
        except ValueError as error:
            assert name in str(error) or "objective" in str(error), error
        else:
            assert np.isfinite(model.objective_)


@pytest.mark.parametrize(
    ("n_states", "jumps"), [(10**18, "auto"), (2, 10**9), (10**5, "auto")]
)  # fmt: skip
def test_what_cannot_fit_is_refused_before_it_asks_for_memory(n_states, jumps):
    panel = jm.Panel.from_arrays(np.arange(20.0), np.arange(20.0), np.zeros(20))
    with pytest.raises(ValueError, match=r"(n_states|jumps_per_gap)"):
        jm.JumpMeans(n_states, jumps_per_gap=jumps).fit(panel)
