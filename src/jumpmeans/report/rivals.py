"""How well a model fills in what it has not seen, beside what people do by hand."""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from ..arrays import AnyArray, Floats, Ints
from ..comparators import CarriedForward, Interpolation, MostCommon
from ..data.bins import bins_by_column
from ..data.panel import Panel
from ..evaluation.compare import Comparison
from ..evaluation.hold_out import Truth, hold_out
from ..evaluation.scores import differences, held_out_rows, present_pairs
from ..options import is_finite

# Half the width of a 95 % interval, in standard errors.
NORMAL_95 = 1.96


def held_out_errors(model: Any, panel: Panel, held_out: Any, bins: Any, random_state: Any) -> dict[str, Any] | None:
    """Errors of the model and of its rivals; None where nothing is held out.

    held_out : None, the share of observations to hold out, what `compare` found, or errors that are known:
        {name: error}.
    """
    if held_out is None:
        return None
    if isinstance(held_out, Comparison):
        return _compared(held_out)
    if isinstance(held_out, Mapping):
        return _given(held_out)
    if not is_finite(held_out) or not 0 < held_out < 1:
        raise ValueError(
            "held_out must be None, a share between 0 and 1, what compare() found, or errors such as "
            "{'JumpMeans': 0.12}, got "
            f"{reprlib.repr(held_out)}."
        )
    masked, truth = hold_out(panel, held_out, random_state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit to all data has said them
        # a model of given parameters has nothing to learn again
        fitted = clone(model).fit(masked) if hasattr(model, "history_") else model
    columns = model.process_.emission.columns
    families: Any = [type(column) for column in columns]
    guesses = {
        type(model).__name__: fitted.predict_value(masked),
        "last value carried forward": CarriedForward(emission=families).fit(masked).predict_value(masked),
        "interpolation": Interpolation(emission=families).fit(masked).predict_value(masked),
        "most common value": MostCommon(emission=families, bins=bins).fit(masked).predict_value(masked),
    }
    tables = []
    for d, (name, bounds) in enumerate(zip(panel.columns, bins_by_column(bins, panel.columns), strict=True)):
        wrong = columns[d].is_symbolic or bounds is not None
        errors = {who: _errors(guess, truth, d, bounds, wrong) for who, guess in guesses.items()}
        sequence = _sequences(truth, d)
        rows = [{"name": who, "own": not k, **_mean(error, sequence)} for k, (who, error) in enumerate(errors.items())]
        verdict = _verdict(rows, list(errors.values()), sequence)
        measure = "share predicted wrongly" if wrong else "mean absolute error"
        tables.append({"column": name, "measure": measure, "is_share": wrong, "rows": rows, "verdict": verdict})
    return {"share": float(held_out), "rows": len(truth.rows), "tables": tables}


def _given(errors: Mapping[Any, Any]) -> dict[str, Any]:
    """Errors that the caller knows, in the form of our own."""
    if not errors or not all(is_finite(error) for error in errors.values()):
        raise ValueError(f"held_out must give a number for each name, at least one, got {reprlib.repr(errors)}.")
    rows = [
        {"name": str(name), "own": not k, "error": float(error), "half": None}
        for k, (name, error) in enumerate(errors.items())
    ]
    table = {"column": None, "measure": "error", "is_share": False, "rows": rows, "verdict": _verdict(rows)}
    return {"share": None, "rows": None, "tables": [table]}


def _compared(found: Comparison) -> dict[str, Any]:
    """What `compare` found, in the form of our own; its models stand out from its rules of thumb."""
    rows = [
        {
            "name": str(row["name"]),
            "own": not row["rule_of_thumb"],
            "error": _known(row["error"]),
            "half": _known(row["high"] - row["error"]),
        }
        for row in found.rows
    ]
    is_share = found.measure.startswith("share")
    table = {"column": None, "measure": found.measure, "is_share": is_share, "rows": rows, "verdict": found.verdict}
    return {"share": None, "rows": None, "tables": [table]}


def _known(x: float) -> float | None:
    """A number; None for one of a model that failed, or of too few sequences to have an interval."""
    return float(x) if is_finite(x) else None


def _errors(guess: AnyArray, truth: Truth, d: int, bounds: Floats | None, wrong: bool) -> Floats:
    """(k,) errors of a column where there was a value: whether wrong, or how far off."""
    true = np.asarray(truth.values)
    found = held_out_rows(guess, truth, true.shape[1:])
    return np.abs(differences(*present_pairs(found, true, d), bounds, wrong).astype(np.float64))


def _sequences(truth: Truth, d: int) -> Ints:
    """(k,) sequence of each held-out value of a column."""
    column = np.asarray(truth.values).reshape(len(truth.rows), -1)[:, d]
    seen = np.array([x is not None and x == x for x in column.tolist()], dtype=bool)
    return np.unique(truth.ids[seen].astype(str), return_inverse=True)[1]


def _mean(error: Floats, sequence: Ints) -> dict[str, Any]:
    """Mean error and half a 95 % interval; what is of one sequence errs together."""
    if not len(error):
        return {"error": None, "half": None}
    mean = float(error.mean())
    off = np.bincount(sequence, weights=error - mean)
    return {"error": mean, "half": NORMAL_95 * float(np.sqrt(np.sum(off**2))) / len(error) if len(off) > 1 else None}


def _verdict(rows: list[dict[str, Any]], errors: list[Floats] | None = None, sequence: Ints | None = None) -> str:
    """What to make of it, in a sentence; with errors of each row, chance is reckoned with."""
    if len(rows) < 2 or any(row["error"] is None for row in rows):
        return ""
    best = min(range(1, len(rows)), key=lambda k: rows[k]["error"])
    name = rows[best]["name"]
    if errors is not None and sequence is not None:
        apart = _mean(errors[0] - errors[best], sequence)
        if apart["half"] is None or abs(apart["error"]) <= apart["half"]:
            return f"The model and the best simple rule, {name}, cannot be told apart by these values."
    if rows[best]["error"] < rows[0]["error"]:
        return f"A simple rule, {name}, errs less here: to fill in values alone, it is enough."
    return f"The model errs less than the best simple rule, {name}."
