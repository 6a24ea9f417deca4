"""The questions that R's msm answers, on panels of our own: its numbers are in golden/msm_multistate.json.

Made by golden/msm_multistate.R from the panels of golden/msm_panels.py; here no R is needed.
"""

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest

import jumpmeans as jm
from jumpmeans.comparators import EM

pd = pytest.importorskip("pandas")
GOLDEN = Path(__file__).parent / "golden"
NUMBERS = json.loads((GOLDEN / "msm_multistate.json").read_text())
MOVES = {1: [2, 4], 2: [1, 3, 4], 3: [2, 4]}
CONSTRAINTS = {
    "equal": {"equal": [[(1, 4), (2, 4)]]},
    "fixed": {"fixed": {(2, 1): 0.2}},
    "misread": {"fixed": {"emission": {(1, 3): 0.0, (3, 1): 0.0}}, "initial": {1: 1.0}},
}
LABELS = [name for name in NUMBERS if name not in ("made_by", "misread")]


def panel_of(name):
    """The panel, with every row as R was told that it was seen."""
    file = name if name not in CONSTRAINTS else "misread" if name == "misread" else "deaths"
    frame = pd.read_csv(GOLDEN / f"msm_{file}.csv")
    about = {"kind": "obstype"} if "obstype" in frame else {}
    if name == "exact":
        frame, about = frame.assign(how="transition"), {"kind": "how"}
    if name == "censored":
        about["sets"] = {99: [1, 2, 3]}
    if name == "misread":  # where the state is known, the test says nothing; elsewhere the person is alive
        known = frame["known"] == 1
        frame = frame.assign(true=frame["state"].where(known, 99), state=frame["state"].mask(known))
        about |= {"true_state": "true", "sets": {99: [1, 2, 3]}}
    return jm.Panel.from_frame(frame, value="state", **about)


@pytest.fixture(scope="module")
def fitted():
    """Maximum likelihood for every panel; the first state is given, as msm has it."""
    models = {}
    for name in [*LABELS, "misread"]:
        structure = jm.Structure(allowed=MOVES, **{"initial": "given", **CONSTRAINTS.get(name, {})})
        emission = "categorical" if name == "misread" else "direct"
        model = EM(emission=emission, states=[1, 2, 3, 4], structure=structure, tol=1e-12, max_iter=5000)
        models[name] = model.fit(panel_of(name))
    return models


@pytest.mark.parametrize("name", [*LABELS, "misread"])
def test_likelihood_and_rates(name, fitted):
    model, told = fitted[name], NUMBERS[name]
    first = "estimated" if name == "misread" else "given"
    assert -2 * model.log_likelihood(panel_of(name), first=first) <= told["minus2loglik"] + 1e-3
    tolerance = 5e-3 if name == "misread" else 1e-3  # msm's own search ends that far from the maximum
    np.testing.assert_allclose(model.process_.rate_matrix, told["generator"], atol=tolerance)
    if name == "misread":
        shown = np.array(told["emission"])[:3, :3]
        np.testing.assert_allclose(model.process_.emission.probs[:3], shown, atol=tolerance)


@pytest.mark.parametrize("name", LABELS)
def test_what_follows_from_the_rates(name, fitted):
    process, told = fitted[name].process_, NUMBERS[name]
    np.testing.assert_allclose(process.transition_matrix(10.0).values, told["p10"], atol=1e-3)
    np.testing.assert_allclose(process.sojourn().values.ravel()[:3], told["sojourn"], rtol=1e-3)
    np.testing.assert_allclose(process.total_time(20.0, start=1).values.ravel(), told["total_time"], rtol=1e-3)
    np.testing.assert_allclose(process.first_passage(4).values[:, 1], told["first_passage"], rtol=1e-3)


@pytest.mark.parametrize("name", [*LABELS, "misread"])
def test_standard_errors(name, fitted):
    """Those of the rates that are free, within 2 %; of a rate at 0, as one of "misread", there is none."""
    model, told = fitted[name], np.array(NUMBERS[name]["standard_errors"])
    off = (model.process_.rate_matrix > 1e-4) & (told > 0)
    told_of = pytest.warns(UserWarning, match="rate 3 → 2") if name == "misread" else contextlib.nullcontext()
    with told_of:
        ours = model.information(panel_of(name)).standard_errors().values
    np.testing.assert_allclose(ours[off], told[off], rtol=0.02)


def test_exact_times_are_events_over_exposure(fitted):
    """In EM and in what JUMP-means publishes."""
    frame = pd.read_csv(GOLDEN / "msm_exact.csv")
    events, exposure = np.zeros((4, 4)), np.zeros(4)
    for _, own in frame.groupby("id"):
        states, times = own["state"].to_numpy() - 1, own["time"].to_numpy()
        np.add.at(exposure, states[:-1], np.diff(times))
        np.add.at(events, (states[:-1], states[1:]), states[:-1] != states[1:])
    rates = events / np.where(exposure > 0, exposure, 1.0)[:, None]
    model = jm.JumpMeans(emission="direct", states=[1, 2, 3, 4], structure=jm.Structure(allowed=MOVES))
    for process in (fitted["exact"].process_, model.fit(panel_of("exact")).process_):
        Q = np.where(np.eye(4, dtype=bool), 0.0, process.rate_matrix)
        np.testing.assert_allclose(Q, rates, rtol=1e-6, atol=1e-12)
