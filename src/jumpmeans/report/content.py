"""What a report says, as a plain dictionary: numbers and text, no page."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from ..comparators.sampled import SampledReadOut
from ..data.panel import Panel
from ..data.times import in_unit
from ..data.trajectories import Trajectories
from ..estimators.read_out import as_panel
from ..model.process import Process
from ..plots.scale import make_scale
from .prevalence import prevalence
from .rivals import held_out_errors
from .sequences import browse

# More columns of values are not drawn, and more states have no table of moves.
MOST_COLUMNS, MOST_IN_TABLE = 8, 40
# Chains that differ by more than this have not found the same answer.
R_HAT = 1.05
# Iterations of a long history that are kept.
MOST_ITERATIONS = 400
# What the paths on the page are, by the criterion that made them.
PATHS = {
    "objective": "the path of least objective",
    "time": "the path of least expected time in the wrong state",
    "likelihood": "the most likely path",
}


def make_content(
    model: Any,
    panel: Any,
    *,
    held_out: Any = None,
    title: str | None = None,
    warnings: Any = (),
    time_unit: str | None = None,
    bins: Any = None,
    dwell_interval: Any = None,
    random_state: Any = 0,
    room: int = 2_300_000,
) -> dict[str, Any]:
    """All that the page shows; see `write_report` for the arguments, `room` is what sequences may take in bytes."""
    process = getattr(model, "process_", None)
    if process is None or not hasattr(model, "decode"):
        raise NotFittedError(
            f"model must be fitted and have a process_, got {type(model).__name__}; call fit(panel) first, on a model "
            "with states such as JumpMeans."
        )
    panel = as_panel(panel)
    criterion = "time" if isinstance(model, SampledReadOut) else _first_criterion(model)
    paths = model.decode(panel, criterion)
    length, unit = in_unit(None if panel.clock is None else "days", time_unit)
    D = min(panel.n_columns, MOST_COLUMNS)
    told = [str(warning) for warning in warnings]
    sequences = browse(model, panel, paths, room)
    shares = prevalence(process, panel, paths)
    shares["times"] = shares["times"] / length
    return {
        "title": str(title or f"{type(model).__name__}: {_n(len(process.rates), 'state')} of {_names(panel)}"),
        "overview": {
            "path": PATHS.get(criterion, criterion),
            "facts": _facts(model, panel, paths, criterion, length, unit),
            "settings": {name: repr(value) for name, value in model.get_params(deep=False).items()},
            "warnings": [*told, *_own_warnings(model, panel, paths)],
            "errors": held_out_errors(model, panel, held_out, bins, random_state),
            "history": _history(model),
        },
        "states": _states(model, process, panel, paths, dwell_interval, length),
        "time": {
            "unit": unit,
            "origin": None if panel.clock is None else str(np.datetime_as_string(panel.clock.origin, unit="ms")),
            "zone": panel.clock is not None and panel.clock.zone is not None,
        },
        "moves": {"probs": _rounded(process.next_state().values), "rates": _rounded(length * process.rate_matrix)},
        "prevalence": {name: _rounded(x, 3 if name in ("shares", "expected") else 5) for name, x in shares.items()},
        "columns": [_column(process, panel, paths, d) for d in range(D)],
        "more_columns": panel.n_columns - D,
        "sequences": sequences | {"list": [r | {"x": r["x"][:D]} for r in sequences["list"]]},
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------- overview


def _first_criterion(model: Any) -> str:
    """The criterion that a model decodes by when none is named."""
    return str(inspect.signature(model.decode).parameters["criterion"].default)


def _facts(
    model: Any, panel: Panel, paths: Trajectories, criterion: str, length: float, unit: str | None
) -> list[tuple[str, str]]:
    """What was fitted, and on what."""
    first, last = (_time(panel, t) for t in (panel.start_times.min(), panel.end_times.max()))
    windows = (panel.end_times - panel.start_times) / length
    units = f" {unit}" if unit else ""
    emissions = zip(panel.columns, model.process_.emission.columns, strict=True)
    families = ", ".join(f"{name} ({column.name})" for name, column in emissions)
    observed = int(panel.observed.sum())
    missing = panel.n_observations - observed
    blank = f", and {_n(missing, 'row')} without a value" if missing else ""
    facts = [
        ("Model", f"{type(model).__name__} with {_n(len(model.process_.rates), 'state')}"),
        ("Values", families),
        ("Sequences", f"{panel.n_sequences:,}"),
        ("Observations", f"{observed:,}{blank}"),
        ("Times", f"{first} to {last}" + ("" if panel.clock is not None else units)),
        ("Window of a sequence", f"{np.median(windows):.4g}{units} (median)"),
        ("Jumps", f"{paths.n_jumps:,}, {paths.n_jumps / max(len(paths), 1):.3g} a sequence"),
        ("Paths", PATHS.get(criterion, criterion)),
    ]
    for name, what in (("objective_", "Objective"), ("log_likelihood_", "Log-likelihood")):
        if hasattr(model, name):
            value = float(getattr(model, name))
            facts.append((what, f"{value:,.0f}" if 1e5 <= abs(value) < 1e12 else f"{value:,.6g}"))
    if hasattr(model, "n_iter_"):
        ends = {True: ", converged", False: ", not converged", None: ""}
        end = ends[getattr(model, "converged_", None)]
        facts.append(("Iterations", f"{model.n_iter_:,}{end}"))
    return facts


def _time(panel: Panel, t: float) -> str:
    """A time as a reader wants it: to six digits, or to the minute."""
    if panel.clock is None:
        return f"{t:.6g}" if abs(t) < 1e6 else f"{t:,.0f}"
    return str(np.datetime_as_string(panel.clock.decode(t), unit="m")).replace("T", " ").removesuffix(" 00:00")


def _own_warnings(model: Any, panel: Panel, paths: Trajectories) -> list[str]:
    """What a reader must know before trusting the rest."""
    summary: dict[str, Any] = model.summary_columns() if hasattr(model, "summary_columns") else {}
    found = [f"{note[0].upper()}{note[1:]}." for note in summary.get("note", ()) if note]
    if getattr(model, "converged_", True) is False:
        found.append("The fit had not converged when it was stopped; more iterations may change it.")
    r_hat = np.asarray(getattr(model, "r_hat_", 1.0), dtype=np.float64)
    if np.any(r_hat > R_HAT):
        found.append(f"The chains do not agree yet (largest R-hat {np.nanmax(r_hat):.3g}); draw more samples.")
    visits = np.bincount(paths.codes, minlength=len(paths.labels))
    idle = [str(label) for label, n in zip(paths.labels.tolist(), visits.tolist(), strict=True) if n == 0]
    if idle:
        named = ", ".join(idle[:5]) + (f" and {len(idle) - 5} more" if len(idle) > 5 else "")
        found.append(f"No path visits {_n(len(idle), 'state')}: {named}.")
    return found


def _history(model: Any) -> dict[str, Any] | None:
    """What the fit optimised after each iteration, by term where there are terms."""
    costs = getattr(model, "cost_history_", None)
    if costs:
        names = costs[0]._fields
        table = np.array(costs, dtype=np.float64)
        total = np.array([cost.total for cost in costs])
        # a term that is a thousandth of the objective at most would be a flat line
        kept = [k for k in range(len(names)) if np.abs(table[:, k]).max() > 1e-3 * np.abs(total).max()]
        terms = [("objective", total), *((names[k].replace("_", " "), table[:, k]) for k in kept)]
        what = "Objective J by term, after each sweep of the best start: the less the better."
    elif len(getattr(model, "history_", ())):
        terms = [("log-density", model.history_.values)]
        what = "Log-likelihood or log-density after each iteration: the more the better."
    else:
        return None
    n = len(terms[0][1])
    kept = np.unique(np.linspace(0, n - 1, min(n, MOST_ITERATIONS)).astype(int)).tolist()
    return {
        "what": what,
        "iterations": [k + 1 for k in kept],
        "terms": [{"name": name, "values": _rounded(values[kept], 7)} for name, values in terms],
    }


# --------------------------------------------------------------------------------------------------- states


def _states(
    model: Any, process: Process, panel: Panel, paths: Trajectories, given: Any, length: float
) -> list[dict[str, Any]]:
    """A row for each state: label, what it shows, dwell with its interval, share of the time, visits, what is next."""
    time = panel.weights @ paths.time_in_state()
    sequence = np.repeat(np.arange(len(paths)), np.diff(paths.offsets))
    visits = np.bincount(paths.codes, weights=panel.weights[sequence], minlength=len(process.rates))
    bounds, level = _dwell_interval(model, given, len(process.rates), length)
    rows = []
    shows = process.emission.describe()
    for m, label in enumerate(process.states.tolist()):
        row = process.transition_probs[m]
        order = [j for j in np.argsort(-row, kind="stable")[:3].tolist() if row[j] > 0 and process.rates[m] > 0]
        rows.append({
            "label": str(label),
            "shows": "" if shows[m] == str(label) else shows[m],
            "dwell": _finite(1.0 / (length * process.rates[m])) if process.rates[m] > 0 else None,
            "interval": None if bounds is None or process.rates[m] == 0 else [*bounds[m], level],
            "absorbing": bool(process.rates[m] == 0),
            "share": float(time[m] / time.sum()) if time.sum() > 0 else 0.0,
            "visits": float(visits[m]),
            "next": [[j, float(row[j])] for j in order],
        })  # fmt: skip
    return rows


def _dwell_interval(model: Any, given: Any, M: int, length: float) -> tuple[list[list[Any]] | None, float]:
    """Bounds of the mean dwell of each state, and their level: as given, or from the draws of a sampler."""
    if given is not None:
        try:
            low, high = (np.asarray(x, dtype=np.float64).reshape(M) for x in (given.low, given.high))
            level = float(given.level)
        except (AttributeError, TypeError, ValueError):
            raise ValueError(
                f"dwell_interval must have low and high for each of the {M} states, and level, as intervals of "
                f"process.sojourn() have, got {type(given).__name__}."
            ) from None
    else:
        rates = getattr(getattr(model, "samples_", None), "rates", None)
        if rates is None or np.shape(rates)[-1:] != (M,):
            return None, 0.0
        with np.errstate(divide="ignore"):
            low, high = np.quantile(1.0 / np.reshape(rates, (-1, M)), [0.05, 0.95], axis=0)
        level = 0.9
    return [[_finite(a), _finite(b)] for a, b in zip(low / length, high / length, strict=True)], level


# -------------------------------------------------------------------------------------------------- columns


def _column(process: Process, panel: Panel, paths: Trajectories, d: int) -> dict[str, Any]:
    """How a column is drawn: where states and values stand on its axis."""
    scale = make_scale(paths, panel, process, d, None, ())
    column: dict[str, Any] = {"name": panel.columns[d], "levels": _rounded(scale.levels, 6)}
    if scale.heights is None or scale.ticks is None:
        return column | {"ticks": None, "values": None}
    if panel.categories[d] is not None:
        # values on the page are indices of labels
        names = panel.categories[d].tolist()  # type: ignore[union-attr]
    else:
        names = panel.labels(d).tolist()
    places = [scale.heights.get(name) for name in names]
    keys = list(range(len(names))) if panel.categories[d] is not None else [_finite(name) for name in names]
    ticks = [[place, text] for text, place in scale.ticks.items()]
    return column | {"ticks": ticks, "values": [[k, y, str(n)] for k, y, n in zip(keys, places, names, strict=True)]}


# ------------------------------------------------------------------------------------------------- numbers


def _rounded(x: Any, digits: int = 5) -> Any:
    """Nested lists of numbers to so many digits; None for what is not finite."""
    if isinstance(x, bool):
        return x
    if np.ndim(x) > 0:
        return [_rounded(item, digits) for item in x]
    value = _finite(x)
    return None if value is None else float(f"{value:.{digits}g}")


def _finite(x: Any) -> Any:
    """A number as JSON has it; None for what is not finite."""
    value = float(x)
    if not math.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) < 1e15 else value


def _n(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def _names(panel: Panel) -> str:
    names = ", ".join(panel.columns[:3])
    return names if panel.n_columns <= 3 else f"{names} and {panel.n_columns - 3} more"
