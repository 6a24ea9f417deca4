"""The table that a fitted model opens with: one row for each state."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import AnyArray, Floats
from ..data.frames import make_frame
from ..data.times import in_unit
from ..fit.advice import Drift
from ..model.process import Process
from ..stored import stored
from .answers import ModelAnswers
from .frail import Frailties
from .people import People


@stored
class Occupancy(NamedTuple):
    """How much a panel was in each state: time (M,), and number of visits (M,); and the kind of frame it came from."""

    time: Floats
    visits: Floats
    time_unit: str | None
    backend: str | None

    @classmethod
    def of(cls, panel: Any, time: Floats, visits: AnyArray) -> Occupancy:
        """Time and visits of a panel, with its unit of time if that is known."""
        unit = None if panel.clock is None else "days"
        return cls(time, visits.astype(np.float64), unit, panel.frame_backend)


class Summarised(ModelAnswers):
    """A fitted model that says of each state what it shows, how long it lasts, and what follows."""

    _people_: People
    _frailties_: Frailties
    _drift_: Drift

    def _occupancy(self) -> Occupancy | None:
        """How much the fitted panel was in each state, where it is known."""
        return None

    def _time_unit(self) -> str | None:
        occupancy, trajectories = self._occupancy(), getattr(self, "trajectories_", None)
        dates = getattr(trajectories, "clock", None) is not None
        return "days" if dates else None if occupancy is None else occupancy.time_unit

    def summary(self, time_unit: str | None = None) -> Any:
        """One row per state: what it shows, how long it lasts, how much there was of it, and what follows.

        Parameters
        ----------
        time_unit : str, optional
            Of the mean dwells, as in `sojourn`.

        Returns
        -------
        frame
            Columns state; shows; mean_dwell (1 / rate; mean_dwell_days for dates, or of the unit); time_share and
            visits of the fitted panel, where they are known; offset_sd: spread of the levels of people, where the
            model has levels; frailty_variance: that of what multiplies the rates of people, likewise; next: the states
            that follow, most probable first;
            note, where there is one: that the process predicts no better than the last value carried forward (first
            row), or that the rate of a state is far from its maximum of the likelihood.
        """
        occupancy = self._occupancy()
        return make_frame(self.summary_columns(time_unit), None if occupancy is None else occupancy.backend)

    def summary_columns(self, time_unit: str | None = None) -> dict[str, Any]:
        """The columns of `summary`, for those who have no library of frames."""
        process = self._fitted()
        columns: dict[str, Any] = {"state": process.states, "shows": process.emission.describe()}
        occupancy = self._occupancy()
        length, unit = in_unit(self._time_unit(), time_unit)
        with np.errstate(divide="ignore"):
            columns["mean_dwell" if unit is None else f"mean_dwell_{unit}"] = 1.0 / (length * process.rates)
        if occupancy is not None:
            columns["time_share"] = occupancy.time / max(float(occupancy.time.sum()), 1e-300)
            columns["visits"] = occupancy.visits
        people = vars(self).get("_people_")
        if people is not None:
            for d in np.flatnonzero(people.sds > 0).tolist():
                name = "offset_sd" if len(people.columns) == 1 else f"offset_sd_{people.columns[d]}"
                columns[name] = np.full(len(process.rates), people.sds[d])
        frail = vars(self).get("_frailties_")
        if frail is not None:
            columns["frailty_variance"] = np.full(len(process.rates), frail.variance)
        columns["next"] = [next_states(process, m) for m in range(len(process.rates))]
        notes: list[list[str]] = [[] for _ in process.rates]
        check, drift = self._last_value(), vars(self).get("_drift_")
        if check is not None and not check.better:
            notes[0].append(str(check))
        if drift is not None:
            notes[drift.state].append(
                f"the rate of state {process.states.tolist()[drift.state]} {drift}: closing steps end early, which may "
                "predict better; refine='converged' goes on to the maximum of the likelihood"
            )
        if any(notes):
            columns["note"] = ["; ".join(own) for own in notes]
        return columns


def next_states(process: Process, m: int, most: int = 3) -> str:
    """States that follow state m, most probable first, with their chances."""
    row = process.transition_probs[m]
    if process.rates[m] == 0:
        return "none"
    labels = process.states.tolist()
    order = [j for j in np.argsort(-row, kind="stable")[:most].tolist() if row[j] >= 0.005]  # the rest would be 0 %
    return ", ".join(f"{labels[j]} {100 * row[j]:.0f} %" for j in order)
