"""compare: all on the same hold-outs, errors as the library scores them, and a sentence that the numbers bear out."""

import numpy as np
import pytest
from scipy.special import logsumexp

import jumpmeans as jm
from jumpmeans.comparators import CarriedForward, MostCommon
from jumpmeans.emissions.guess import guess_families
from jumpmeans.evaluation.compare import _mean, usual_models
from jumpmeans.evaluation.folds import make_folds

PROCESS = jm.Process([0.4, 0.4], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 5], sds=[1, 2]))
PANEL, _ = jm.simulate(PROCESS, 30, 12, random_state=0)
MODELS = {"known": jm.JumpMeans(2, refine=2), "last": CarriedForward(), "common": MostCommon()}


def test_errors_and_scores_are_those_of_the_library():
    """Caught: predictions read in another order than the truth, or a density without its unit."""
    found = jm.compare(PANEL, MODELS, folds=2, fraction=0.3, n_jobs=1, random_state=4)
    rows = {row["name"]: row for row in found.rows}
    held = make_folds(PANEL, 0.3, 2, np.random.default_rng(4))
    model = jm.JumpMeans(2, refine=2)
    errors, scores = [], []
    for masked, truth in held:
        model.fit(masked)
        errors.append(jm.reconstruction_error(model.predict_value(masked), truth, measure="mae"))
        e = model.emission_
        probs = model.predict_proba(masked)[truth.rows]
        z = (truth.values[:, None] - e.means) / e.sds
        scores += (-logsumexp(np.log(probs) - 0.5 * z**2 - np.log(e.sds * np.sqrt(2 * np.pi)), axis=1)).tolist()
    np.testing.assert_allclose(rows["known, posterior"]["error"], np.mean(errors), rtol=1e-12)
    np.testing.assert_allclose(rows["known, posterior"]["log_score"], np.mean(scores), rtol=1e-9)
    assert np.isnan(rows["last"]["log_score"])
    assert rows["last"]["rule_of_thumb"] and not rows["known, trajectory"]["rule_of_thumb"]
    assert [row["error"] for row in found.rows] == sorted(row["error"] for row in found.rows)
    assert all(row["low"] <= row["error"] <= row["high"] and row["seconds"] >= 0 for row in found.rows)
    assert found.measure == "mean absolute error, held out"
    assert found.to_frame().shape[0] == 5 and found.plot().get_xlabel() == found.measure
    again = jm.compare(PANEL, MODELS, folds=2, fraction=0.3, n_jobs=2, random_state=4)
    assert [row["error"] for row in again.rows] == [row["error"] for row in found.rows]


def test_intervals_take_sequences_for_what_was_sampled():
    """Copies of the same values within a sequence add no certainty."""
    x, clusters = np.array([0.0, 1.0, 0.0, 1.0, 1.0]), np.arange(5)
    mean, se = _mean(x, clusters)
    np.testing.assert_allclose([mean, se], [x.mean(), x.std(ddof=1) / np.sqrt(5)], rtol=1e-12)
    np.testing.assert_allclose(_mean(np.repeat(x, 7), np.repeat(clusters, 7)), [mean, se], rtol=1e-12)
    assert np.isnan(_mean(x, np.zeros(5, int))[1])


def test_the_verdict_names_a_rule_of_thumb_unless_a_model_is_better():
    model = {"JumpMeans": jm.JumpMeans(2, refine=2)}
    won = jm.compare(PANEL, model | {"common": MostCommon()}, folds=1, n_jobs=1)
    assert str(won).startswith(f"Use {won.rows[0]['name']}: it errs less than common, the best rule")
    assert won.rows[0]["name"].startswith("JumpMeans")
    # values that hold for long: nothing beats the last one
    ids = np.repeat(np.arange(20), 10)
    slow = jm.Panel.from_arrays(np.tile(np.arange(10.0), 20), 3.7 * ids, ids)
    lost = jm.compare(slow, model | {"last": CarriedForward()}, folds=1, n_jobs=1)
    assert str(lost).startswith("To fill in values use last: JumpMeans")
    alone = jm.compare(PANEL, {"last": CarriedForward()}, folds=1, n_jobs=1)
    assert str(alone).startswith("Use last: it errs least")


def test_a_model_that_fails_is_no_reason_to_stop():
    found = jm.compare(PANEL, {"bad": jm.JumpMeans(2, tol=-1), "last": CarriedForward()}, folds=1, n_jobs=1)
    assert np.isnan(found.rows[-1]["error"]) and "tol must be" in found.rows[-1]["message"]
    only = jm.compare(PANEL, {"bad": jm.JumpMeans(2, tol=-1)}, folds=1, n_jobs=1)
    assert only.verdict.startswith("Nothing could be compared: tol must be")
    with pytest.raises(ValueError, match="models must name at least one model"):
        jm.compare(PANEL, {})


def test_what_is_compared_by_default():
    edss = jm.datasets.load_edss()
    names = {"JumpMeans", "EM", "last value carried forward", "interpolation", "kernel smoother", "most common value"}
    assert set(usual_models(edss, "auto", None)) == names
    assert set(usual_models(PANEL, "auto", 2)) == names | {"InfiniteJumpMeans"}
    assert usual_models(PANEL, "auto", 2)["EM"].n_states == 2


def test_families_are_guessed_by_the_values():
    def guess(values, n_states=None):
        n = len(values)
        panel = jm.Panel.from_arrays(np.arange(n), values, np.zeros(n, int))
        return [x.family for x in guess_families(panel, n_states)]

    assert guess(["a", "b"] * 5) == ["direct"] and guess(["a", "b"] * 5, 2) == ["direct"]
    assert guess(["a", "b"] * 5, 3) == ["categorical"]
    assert guess([1, 2] * 5) == ["direct"] and guess([1, 2, 3]) == ["gaussian"]
    assert guess([1.5, 2] * 5) == ["gaussian"] and guess(list(range(50))) == ["gaussian"]
    assert guess(np.array([["a", 1.5], ["b", 2.5]], dtype=object)) == ["categorical", "gaussian"]
