"""What alarms of an online decoder would be like: how often, how many for nothing, how late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import Bools, Floats
from ..data.trajectories import Trajectories
from ..errors import first_few
from ..estimators.read_out import as_panel
from ..online import OnlineDecoder


@dataclass(frozen=True, eq=False)
class AlarmRates:
    """What `alarm_rates` found.

    Attributes
    ----------
    time : float
        Time that all sequences were watched, in the unit of the panel (days for dates).
    alarms, false_alarms : int
        Alarms, and those given while no episode was on.
    rate, false_rate : float
        The same per unit of time: alarms per patient-day, if times are dates.
    episodes, caught : int
        True episodes, and those during which the alarm was on at some row.
    delays : (caught,)
        Time from the beginning of each episode caught to the first row in it with the alarm on.
    """

    time: float
    alarms: int
    false_alarms: int
    episodes: int
    caught: int
    delays: Floats

    @property
    def rate(self) -> float:
        """Alarms per unit of time."""
        return self.alarms / self.time if self.time > 0 else np.nan

    @property
    def false_rate(self) -> float:
        """False alarms per unit of time."""
        return self.false_alarms / self.time if self.time > 0 else np.nan

    @property
    def median_delay(self) -> float:
        """Median of the delays; NaN if no episode was caught."""
        return float(np.median(self.delays)) if len(self.delays) else np.nan


def alarm_rates(model: Any, panel: Any, truth: Any, states: Any, true_states: Any = None, **options: Any) -> AlarmRates:
    """Alarms that an `OnlineDecoder` would have given on a panel whose true states are known.

    Parameters
    ----------
    model : fitted model or Process
    panel : Panel or frame
    truth : Trajectories, or (n,) labels in the caller's order of rows
        The true states. Of labels, an episode begins and ends with its first and last row.
    states : list
        States of the model that mean an alarm. It is given when the state told becomes one of them.
    true_states : list, optional
        Labels of the truth that mean an episode; by default `states`.
    options : `least_margin`, `hold`, `unknown`, `most_starts`
        As of `OnlineDecoder`: its hysteresis is what is to be judged.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> process = jm.Process([0.1, 0.5], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 3], sds=1))
    >>> panel, truth = jm.simulate(process, 50, 40, random_state=0)
    >>> at_once = jm.alarm_rates(process, panel, truth, [1])
    >>> slower = jm.alarm_rates(process, panel, truth, [1], least_margin=3.0, hold=2.0)
    >>> slower.false_rate < at_once.false_rate, slower.median_delay >= at_once.median_delay
    (True, True)
    """
    panel = as_panel(panel)
    true_sets = {own.name: list(own.states) for own in panel.state_sets if own.states != (own.name,)}
    decoder = OnlineDecoder(model, sets=true_sets, **options)
    wanted = _listed("states", states)
    odd = [state for state in wanted if state not in decoder.states.tolist()]
    if odd:
        raise ValueError(f"states must be among {first_few(decoder.states.tolist())}, got {first_few(odd)}.")
    times, offsets = panel.times, panel.offsets
    values = np.column_stack([panel.decode_values(panel.values[:, d], d) for d in range(panel.n_columns)])
    names = np.array([*(own.name for own in panel.state_sets), None], dtype=object)
    told = decoder.update_many(
        panel.sequence_index, panel.decode_times(times), values[:, 0] if panel.n_columns == 1 else values,
        kinds=panel.kinds, true_states=None if panel.known is None else names[panel.known].tolist(),
    )  # fmt: skip
    on = np.isin(told.state, wanted)
    first = np.zeros(len(times), dtype=bool)
    first[offsets[:-1]] = True
    episode, begins = _episodes(panel, truth, wanted if true_states is None else _listed("true_states", true_states))
    inside = episode >= 0
    given = _rises(on, first)
    hits = np.flatnonzero(on & inside)
    caught, earliest = np.unique(episode[hits], return_index=True)
    return AlarmRates(
        time=float((panel.end_times - panel.start_times).sum()),
        alarms=int(given.sum()),
        false_alarms=int((given & ~inside).sum()),
        episodes=len(begins),
        caught=len(caught),
        delays=times[hits[earliest]] - begins[caught],
    )


def _rises(on: Bools, first: Bools) -> Bools:
    """Rows at which something is on that was not at the row before of the same sequence."""
    before = np.append(False, on[:-1]) & ~first
    return on & ~before


def _episodes(panel: Any, truth: Any, wanted: list[Any]) -> tuple[Any, Floats]:
    """(n,) the true episode of each row, -1 for none; and (k,) when each began."""
    n, sequence = panel.n_observations, panel.sequence_index
    if isinstance(truth, Trajectories):
        if not np.array_equal(truth.ids, panel.ids):
            raise ValueError("truth must be of the sequences of the panel, in their order, got others.")
        on = np.isin(truth.states, wanted)
        opens = np.zeros(len(on), dtype=bool)
        opens[truth.offsets[:-1]] = True
        rises = _rises(on, opens)
        number = np.where(on, np.cumsum(rises) - 1, -1)
        own = np.repeat(np.arange(len(truth)), np.diff(truth.offsets))
        # the dwell of each row: both are sorted by sequence and time
        kinds = np.repeat([0, 1], [len(own), n])
        order = np.lexsort((kinds, np.append(truth.start_times, panel.times), np.append(own, sequence)))
        dwell = np.empty(n, dtype=np.int64)
        is_row = order >= len(own)
        dwell[order[is_row] - len(own)] = np.cumsum(~is_row)[is_row] - 1
        return number[dwell], truth.start_times[rises]
    labels = np.asarray(truth)
    if labels.shape != (n,):
        raise ValueError(f"truth must be Trajectories or a label for each of the {n} rows, got shape {labels.shape}.")
    on = np.isin(labels[panel.rows], wanted)
    first = np.zeros(n, dtype=bool)
    first[panel.offsets[:-1]] = True
    rises = _rises(on, first)
    return np.where(on, np.cumsum(rises) - 1, -1), panel.times[rises]


def _listed(name: str, states: Any) -> list[Any]:
    if isinstance(states, str) or not hasattr(states, "__iter__"):
        raise ValueError(f"{name} must be a list of states, got {states!r}; write [{states!r}].")
    return list(states)
