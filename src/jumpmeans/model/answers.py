"""What a process means, in labelled tables: how long, where to, how soon, and in the end."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from ..arrays import AnyArray, Bools, Floats
from ..data.table import Table
from ..errors import first_few, nearest
from . import passage


class Answers:
    """Answers of a process; subclasses have `rates`, `transition_probs`, `rate_matrix` and `states`.

    Times are in the unit of the rates; `time_unit` names it in what is printed. A `start` is a state or (M,)
    probabilities of the states; left out, there is a row (or column) for each state to start from.
    """

    rates: Floats
    transition_probs: Floats
    states: AnyArray

    @property
    def rate_matrix(self) -> Floats:
        """Q, (M, M): exit rates times jump probabilities, rows summing to 0."""
        Q = self.rates[:, None] * self.transition_probs
        np.fill_diagonal(Q, 0.0 - Q.sum(axis=1))  # 0, not -0, for an absorbing state
        return Q

    def generator(self, time_unit: str | None = None) -> Table:
        """Q with its labels: the rate of each move, and minus the exit rate on the diagonal.

        Parameters
        ----------
        time_unit : str, optional
            Unit of time to show, such as "year".
        """
        unit = None if time_unit is None else f"1/{time_unit}"
        return Table(self.rate_matrix, self.states, self.states, "from", "to", "rate of each move", unit)

    def sojourn(self, time_unit: str | None = None) -> Table:
        """Mean dwell of each state, 1/λ: how long a visit lasts; infinite for an absorbing state.

        Parameters
        ----------
        time_unit : str, optional
            Unit of time to show, such as "year".
        """
        with np.errstate(divide="ignore", over="ignore"):
            mean = 1.0 / self.rates
        return Table(
            mean[:, None], self.states, np.array(["mean"]), "state", "dwell", "time in a state, each visit", time_unit
        )

    def next_state(self) -> Table:
        """P with its labels: where a jump leads. A row of an absorbing state is 0."""
        P = np.where(self.rates[:, None] > 0, self.transition_probs, 0.0)
        return Table(P, self.states, self.states, "from", "to", "probability of the next state")

    def transition_matrix(self, t: float, time_unit: str | None = None) -> Table:
        """e^{Qt} with its labels: probability of each state a time t later.

        Parameters
        ----------
        t : float
            At least 0; infinite for the limit.
        time_unit : str, optional
            Unit of time to show, such as "year".
        """
        t = _time("t", t)
        P = passage.transition_matrices(self.rate_matrix, np.array([t]))[0] if t < np.inf else self._limits()
        after = f"{t:g}" if time_unit is None else f"{t:g} {time_unit}"
        return Table(P, self.states, self.states, "from", "to", f"probability of each state after {after}")

    def total_time(self, t: float = np.inf, start: Any = None, time_unit: str | None = None) -> Table:
        """Expected time spent in each state from 0 to t, all visits together.

        Parameters
        ----------
        t : float
            At least 0; infinite, the default, for ever: then a state from which one returns for ever has an infinite
            time, one that is left for good a finite one.
        start : state or (M,) probabilities, optional
        time_unit : str, optional
            Unit of time to show, such as "year".
        """
        t = _time("t", t)
        times = passage.total_times(self.rate_matrix, t)
        rows, times = self._by_start(start, times)
        until = "for ever" if t == np.inf else f"until {t:g}"
        return Table(times, rows, self.states, "start", "state", f"expected time in each state {until}", time_unit)

    def first_passage(self, target: Any, time_unit: str | None = None) -> Table:
        """How soon a target is first reached, by the state at the start; `survival` gives the whole distribution.

        Parameters
        ----------
        target : state or list of states
        time_unit : str, optional
            Unit of time to show, such as "year".

        Returns
        -------
        Table
            Columns probability (of ever being there), mean (of the time until then, infinite where the target may never
            be reached) and median (infinite where it is reached with less than probability 1/2). All of
            them are of no wait for a start in the target.
        """
        Q, chosen = self.rate_matrix, self._target(target)
        columns = {
            "probability": passage.hitting_probs(Q, chosen),
            "mean": passage.mean_passages(Q, chosen),
            "median": passage.median_passages(Q, chosen),
        }
        name = f"time until {_named(self.states[chosen])}"
        return Table(np.stack(list(columns.values()), 1), self.states, list(columns), "start", "time", name, time_unit)  # type: ignore[arg-type]

    def survival(self, target: Any, times: Any, start: Any = None, time_unit: str | None = None) -> Table:
        """Probability of not having been in the target up to each time.

        Parameters
        ----------
        target : state or list of states
        times : (K,)
            Distinct times since the start, at least 0; infinite: ever.
        start : state or (M,) probabilities, optional
        time_unit : str, optional
            Unit of time to show, such as "year".

        Returns
        -------
        Table
            A row for each time, a column for each state to start from (or one for the given start).
        """
        chosen = self._target(target)
        t = _times("times", times)
        alive = np.empty((len(t), len(self.rates)))
        ever = np.isinf(t)
        alive[~ever] = passage.survivals(self.rate_matrix, chosen, t[~ever])
        if ever.any():
            alive[ever] = 1.0 - passage.hitting_probs(self.rate_matrix, chosen)
        columns, alive = self._by_start(start, alive.T)
        row_name = "time" if time_unit is None else f"time ({time_unit})"
        return Table(alive.T, t, columns, row_name, "start", f"probability of not yet {_named(self.states[chosen])}")

    def stationary(self, start: Any = None) -> Table:
        """Share of the time spent in each state in the long run.

        Parameters
        ----------
        start : state or (M,) probabilities, optional
            Needed where the long run depends on it: where several sets of states are never left.

        Returns
        -------
        Table
            One column, share. States that are left for good have 0.
        """
        L = self._limits()
        if start is None:
            classes = passage.closed_classes(self.rate_matrix)
            if len(classes) > 1:
                raise ValueError(
                    f"the long run must not depend on the start, got {len(classes)} sets that are never left, "
                    f"{first_few(self.states[states].tolist() for states in classes)}; give start=, or read "
                    "transition_matrix(inf), which has the limit by each start."
                )
            start = self.states.tolist()[int(classes[0][0])]
        share = self._by_start(start, L)[1][0]
        return Table(share[:, None], self.states, np.array(["share"]), "state", "time", "share of time in the long run")

    # ------------------------------------------------------------------------------------- what was asked for

    def _limits(self) -> Floats:
        return passage.limits(self.rate_matrix)

    def _index(self, name: str, state: Any) -> int:
        known = self.states.tolist()
        try:
            if state in known:
                return known.index(state)
        except (TypeError, ValueError):  # of arrays
            pass
        raise ValueError(f"{name} must be a state, got {state!r}{nearest(state, known)}; there are {known[:10]}.")

    def _target(self, target: Any) -> Bools:
        """(M,) which states are meant."""
        chosen = np.zeros(len(self.rates), dtype=bool)
        listed = target.tolist() if isinstance(target, np.ndarray) else target
        for state in listed if isinstance(listed, list | tuple | set | frozenset) else [listed]:
            chosen[self._index("target", state)] = True
        if not chosen.any():
            raise ValueError("target must name at least one state, got none.")
        return chosen

    def _by_start(self, start: Any, x: Floats) -> tuple[AnyArray, Floats]:
        """Labels of the rows of x (M, C), one for each start, and these; of one start alone if it is given."""
        if start is None:
            return self.states, x
        if not isinstance(start, list | tuple | np.ndarray):
            i = self._index("start", start)
            return self.states[i : i + 1], x[i : i + 1]
        M = len(self.rates)
        try:
            probs = np.asarray(start, dtype=np.float64)
        except (TypeError, ValueError):
            probs = np.empty(0)
        if probs.shape != (M,) or not np.all(probs >= 0) or not np.isclose(probs.sum(), 1.0):
            raise ValueError(
                f"start must be a state or {M} probabilities that sum to 1, got {reprlib.repr(start)}; the states are "
                f"{self.states.tolist()[:10]}."
            )
        used = probs > 0  # nothing of an infinite time
        return np.array(["given"]), (probs[used] @ x[used])[None]


def _named(states: AnyArray) -> str:
    """States in words."""
    return " or ".join(map(str, states.tolist()[:4])) + (" or others" if len(states) > 4 else "")


def _times(name: str, times: Any) -> Floats:
    """(K,) times from 0 to infinity."""
    try:
        t = np.atleast_1d(np.array(times, dtype=np.float64))
    except (TypeError, ValueError):
        t = np.array([np.nan])
    if t.ndim > 1 or not len(t) or not np.all(t >= 0):
        raise ValueError(f"{name} must be numbers >= 0 in the unit of the rates, got {reprlib.repr(times)}.")
    return t


def _time(name: str, t: Any) -> float:
    if np.ndim(t) > 0:
        raise ValueError(f"{name} must be one number >= 0, got {reprlib.repr(t)}; ask for one time after the other.")
    return float(_times(name, t)[0])
