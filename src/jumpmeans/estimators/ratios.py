"""Hazard ratios of a fitted model, in labelled frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..data.frames import make_frame
from ..data.interval import Interval
from ..errors import first_few, nearest
from ..model.effects import Effects
from ..model.process import Process
from ..options import number


def require_effects(process: Process) -> Effects:
    """The effects of a process, or the error of one whose rates depend on nothing."""
    if process.effects is None:
        raise ValueError(
            "rates must depend on covariates to have hazard ratios, got a process without; fit with "
            "structure=Structure(covariates='all') to a panel with covariates."
        )
    return process.effects


def _places(process: Process) -> tuple[Any, dict[str, Any]]:
    """Where in (K, M, M) each effect of a move that happens is, and columns that say what it is."""
    effects = require_effects(process)
    happens = (effects.number >= 0) & (process.transition_probs > 0)
    places = tuple(np.nonzero(happens))
    names = np.array(effects.names, dtype=object)
    about = {"covariate": names[places[0]], "from": process.states[places[1]], "to": process.states[places[2]]}
    return places, about


def coefficients(process: Process, backend: str | None) -> Any:
    """A frame with columns covariate, from, to and coefficient, the log hazard ratio of each move."""
    places, about = _places(process)
    return make_frame(about | {"coefficient": require_effects(process).coefs[places]}, backend)


def ratio_columns(process: Process, found: Interval | None) -> dict[str, Any]:
    """Columns covariate, from, to and hazard_ratio; and low and high, by an interval of the coefficients (K, M, M)."""
    places, about = _places(process)
    columns = about | {"hazard_ratio": np.exp(require_effects(process).coefs[places])}
    if found is not None:
        with np.errstate(over="ignore"):
            columns |= {name: np.exp(getattr(found, name)[places]) for name in ("low", "high")}
    return columns


def hazard_ratios(
    process: Process, found: Interval, se: Any, per: Mapping[str, Any] | None, backend: str | None
) -> Any:
    """A frame of hazard ratios, from an interval of the coefficients (K, M, M) and their standard errors."""
    effects = require_effects(process)
    places, about = _places(process)
    steps = np.ones(len(effects.names))
    for name, step in ({} if per is None else per).items():
        if name not in effects.names:
            raise ValueError(
                f"per must name columns {first_few(effects.names)}, got {name!r}{nearest(name, effects.names)}."
            )
        number(above=0).check("per", step)
        steps[effects.names.index(name)] = float(step)
    step = steps[places[0]]
    told = se[places] > 0  # what the data do not tell at all was held where it is
    with np.errstate(over="ignore"):
        low, high = (np.exp(step * x[places]) for x in (found.low, found.high))
        columns = about | {
            "hazard_ratio": np.exp(step * found.estimate[places]),
            "se_log": np.where(told, step * se[places], np.inf),
            "low": np.where(told, low, 0.0),
            "high": np.where(told, high, np.inf),
        }
    return make_frame(columns, backend)
