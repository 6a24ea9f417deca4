"""Answers of a fitted model: those of its process, in the panel's unit of time, and how likely a panel is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..arrays import AnyArray, Floats
from ..data.deriving import from_first_seen
from ..data.panel import Panel
from ..data.table import Table
from ..data.times import in_unit
from ..model.process import Process
from ..model.structure import Structure
from ..options import choice, none
from . import outlook
from .last_value import LastValue, check_fitted, compare_last_values

FIRST = choice("estimated", "given") | none
# Values of covariates that an answer is meant for.
At = Mapping[str, Any] | None


class ModelAnswers(BaseEstimator):  # type: ignore[misc]
    """What every fitted model of a process answers; `Process` has the details of those that need no panel.

    Times are in days for dates, or in the `time_unit` asked for: transition_matrix(5, time_unit="years"). Of times that
    are numbers a `time_unit` is only the name: they are in the unit of the panel. Where rates depend on covariates,
    `at={"age": 60}` says for which values an answer is meant; those left out are at their mean.
    """

    process_: Process
    states_: AnyArray
    # for the panel fitted to; None until it is asked for
    _last_value_: LastValue | None

    # ------------------------------------------------------------------------------------- of the process

    def generator(self, time_unit: str | None = None, *, at: At = None) -> Table:
        """Rate of each move; see `Process.generator`."""
        process, unit = self._told(at, time_unit)
        return process.generator("day" if unit == "days" else unit)

    def sojourn(self, time_unit: str | None = None, *, at: At = None) -> Table:
        """Mean dwell of each state; see `Process.sojourn`."""
        process, unit = self._told(at, time_unit)
        return process.sojourn(unit)

    def next_state(self, *, at: At = None) -> Table:
        """Where a jump leads; see `Process.next_state`."""
        return self._at(at).next_state()

    def transition_matrix(self, t: float, time_unit: str | None = None, *, at: At = None) -> Table:
        """Probability of each state a time t later; see `Process.transition_matrix`."""
        process, unit = self._told(at, time_unit)
        return process.transition_matrix(t, unit)

    def total_time(self, t: float = np.inf, start: Any = None, time_unit: str | None = None, *, at: At = None) -> Table:
        """Expected time in each state from 0 to t; see `Process.total_time`."""
        process, unit = self._told(at, time_unit)
        return process.total_time(t, start, unit)

    def first_passage(self, target: Any, time_unit: str | None = None, *, at: At = None) -> Table:
        """How soon a target is first reached; see `Process.first_passage`."""
        process, unit = self._told(at, time_unit)
        return process.first_passage(target, unit)

    def survival(
        self, target: Any, times: Any, start: Any = None, time_unit: str | None = None, *, at: At = None
    ) -> Table:
        """Probability of not having been in the target; see `Process.survival`."""
        process, unit = self._told(at, time_unit)
        return process.survival(target, times, start, unit)

    def stationary(self, start: Any = None, *, at: At = None) -> Table:
        """Share of the time in each state in the long run; see `Process.stationary`."""
        return self._at(at).stationary(start)

    # ------------------------------------------------------------------------------------- of a panel

    def forecast(
        self, panel: Any, at: Any = None, *, horizon: Any = None, covariates: At = None
    ) -> outlook.Forecast:  # fmt: skip
        """State probabilities, and what to expect to see, at times after the last row of each sequence.

        Parameters
        ----------
        panel : Panel or frame
        at : (K,) times, {id: times} or pair (ids, times), optional
            Times of the panel, dates if it has dates: the same for every sequence, or for each its own. None may lie
            before the last row of its sequence; `predict_proba` reads there.
        horizon : float or (K,), optional
            Times since the last row of each sequence, instead of `at`: `horizon=[1, 2]`. For dates in days,
            or durations.
        covariates : {name: value}, optional
            Where rates depend on covariates, what holds from the last row on: ``{"dose": 2}`` for what happens if all
            are treated from now on. By default they stay what they are at the last row; of the past they stay.

        Returns
        -------
        Forecast
            ids, times, horizons, probs and values, one entry for each time asked for; `to_frame()`.
        """
        self._fitted()
        return outlook.forecast(self, self._panel(panel), at, horizon, covariates)

    def prevalence(
        self, panel: Any, times: Any = None, *, initial: Any = None, carry: bool | str = True
    ) -> outlook.Prevalence:  # fmt: skip
        """Share of the sequences in each state over time: as observed, and as the process expects it.

        Parameters
        ----------
        panel : Panel or frame
        times : (K,), optional
            Times since the start of each window; by default eleven from 0 to the longest.
        initial : (M,) probabilities or "observed", optional
            Where sequences start. "observed": the states observed at time 0, as R's msm has it. By default π of the
            process, but "observed" for a model that takes first states as given, which has no π.
        carry : True, False or "estimated"
            Whether a sequence that has reached an absorbing state stays counted after the end of its window, as msm has
            it: right where windows end with death and would have gone on for long. False counts only those under
            observation: right where windows end for reasons of their own. "estimated" is right where some end with
            death and others before it: those who leave are taken to fare as those who stay (Aalen and Johansen).

        Returns
        -------
        Prevalence
            observed and expected: tables of shares; n: sequences under observation at each time, by weight.

        Notes
        -----
        A sequence is under observation from its first observed state to the end of its window. The state that it is
        counted in is the last one observed. For hidden states it is the most probable one of a row given all rows: a
        check of how long states last, not of what they are. Where rates depend on covariates, what is expected is the
        mean over the sequences of the panel, each with its own; after its last row they stay what they are there. With
        frailty it is the mean over what multiplies the rates of people.
        """
        self._fitted()
        return outlook.prevalence(self, self._panel(panel), times, initial, carry)

    def log_likelihood(self, panel: Any, first: str | None = None) -> float:
        """Log-likelihood of a panel under `process_`; sequences count by their weights.

        Parameters
        ----------
        panel : Panel or frame
        first : "estimated" or "given", optional
            With the probability of the first state, π; or conditional on the first state seen, as R's msm has it. By
            default as the model was fitted: "given" with ``Structure(initial="given")``, else "estimated".

        Notes
        -----
        "given" is for states that are seen. Rows before the first that tells anything are left out. Where that row is
        known only to be in one of a set of states, the likelihoods of the rest given each of them are added up, as msm
        does, which is no probability. For hidden states msm's likelihood has its `initprobs` in it, also where the
        first state is known: that is "estimated", with π fixed where msm's is (its default: all in the first state).
        """
        self._fitted()
        panel = self._panel(panel)
        if not self._takes_first_as_given(first):
            return self._log_likelihood(panel, self.process_)
        if not self.process_.emission.is_direct:
            raise ValueError(
                "first must be 'estimated' where states are hidden, got 'given': no row shows the state to condition "
                "on; log_likelihood(panel) has π in it, as R's msm has its initprobs."
            )
        M = len(self.process_.rates)
        panel, seen = from_first_seen(panel)
        # each state alike, and with weight 1
        alike = replace(self.process_, initial_probs=np.full(M, 1.0 / M))
        return self._log_likelihood(panel, alike) + float(panel.weights @ seen) * float(np.log(M))

    @property
    def n_parameters_(self) -> int:
        """Free parameters: rates (shared ones once, known ones not at all), π if it is estimated, the emission's.

        The variance of frailty is one more, and that of levels of people one for each column that has them.
        """
        return self._n_counted(None)

    def aic(self, panel: Any, first: str | None = None) -> float:
        """Akaike's criterion, 2 k - 2 log L; the less the better.

        Parameters
        ----------
        panel : Panel or frame
            The one fitted to, or the number of parameters is no price.
        first : "estimated" or "given", optional
            As in `log_likelihood`; "given" does not count π.
        """
        return 2.0 * self._n_counted(first) - 2.0 * self.log_likelihood(panel, first)

    def bic(self, panel: Any, first: str | None = None) -> float:
        """Schwarz's criterion, k ln n - 2 log L, n the number of rows with a value, by weight; the less the better.

        Parameters
        ----------
        panel : Panel or frame
            The one fitted to.
        first : "estimated" or "given", optional
            As in `aic`.
        """
        n = max(rows_seen(self._panel(panel)), 1.0)
        return self._n_counted(first) * float(np.log(n)) - 2.0 * self.log_likelihood(panel, first)

    def score(self, panel: Any, y: None = None) -> float:
        """Log-likelihood per row with a value: the more the better, on panels of any size.

        Parameters
        ----------
        panel : Panel or frame
        y : None
            As scikit-learn calls it.
        """
        return self.log_likelihood(panel) / max(rows_seen(self._panel(panel)), 1.0)

    def against_last_value(self, panel: Any) -> LastValue:
        """Whether the process predicts the last rows of sequences better than the last value carried forward does.

        Parameters
        ----------
        panel : Panel or frame
            The last fifth of the observed rows of each sequence is predicted from the rows before, nothing is fitted
            again.

        Returns
        -------
        LastValue
            model, carried: errors of both; n: number of values predicted; measure; `better`.
        """
        self._fitted()
        return compare_last_values(self, self._panel(panel))

    def _last_value(self) -> LastValue | None:
        """The same for the panel fitted to, worked out when it is first asked for; None where it is not known."""
        known = vars(self)
        if "_last_value_" not in known:
            return None
        if self._last_value_ is None and "_seen_" in known:
            self._last_value_ = check_fitted(self, known["_seen_"])
        return self._last_value_

    # ------------------------------------------------------------------------------------- what these need

    def _fitted(self) -> Process:
        """The process, or the error of a model that has none yet."""
        raise NotImplementedError

    def _at(self, values: At) -> Process:
        """The process at given covariates."""
        return self._fitted().at(values)

    def _told(self, at: At, time_unit: str | None) -> tuple[Process, str | None]:
        """The process at given covariates in the unit of time asked for, and the name of the unit."""
        process = self._at(at)
        length, unit = in_unit(self._time_unit(), time_unit)
        return process if length == 1.0 else replace(process, rates=length * process.rates), unit

    def _panel(self, data: Any) -> Panel:
        """A panel in the model's unit of time."""
        raise NotImplementedError

    def _log_likelihood(self, panel: Panel, process: Process) -> float:
        """Weighted log-likelihood of a panel under a process."""
        raise NotImplementedError

    def _time_unit(self) -> str | None:
        """Unit of time of the fitted panel, if it is known."""
        raise NotImplementedError

    def _posterior(self, panel: Panel) -> Floats:
        """(n, M) posterior state probabilities of every row, in panel order."""
        raise NotImplementedError

    def _unseen(self, panel: Panel, pi: Floats) -> Floats:
        """(n, M) state probabilities of every row of a panel that tells nothing, from those of the first state."""
        raise NotImplementedError

    def _expected_values(self, panel: Panel) -> AnyArray:
        """(n,) or (n, D): the observation to expect at every row, in panel order."""
        raise NotImplementedError

    @property
    def _n_variances(self) -> int:
        """Variances among people that are free: of frailty, and of levels."""
        return self._n_frailty + self._n_levels

    @property
    def _n_frailty(self) -> int:
        """Parameters of the frailty that are free."""
        return 0

    @property
    def _n_levels(self) -> int:
        """Spreads of levels of people that are free."""
        return 0

    @property
    def _is_frail(self) -> bool:
        """Whether people differ in how fast they move."""
        return False

    @property
    def _structure(self) -> Structure:
        """What the model was told may happen."""
        return getattr(self, "structure", None) or Structure()

    def _takes_first_as_given(self, first: str | None = None) -> bool:
        """Whether a likelihood is conditional on the first state: as asked for, else as the model was fitted."""
        FIRST.check("first", first)
        return first == "given" or (first is None and self._structure.takes_first_as_given)

    def _n_counted(self, first: str | None) -> int:
        """Free parameters that a likelihood depends on."""
        process, structure = self._fitted(), self._structure
        if self._takes_first_as_given(first):
            structure = replace(structure, initial="given")
        return structure.n_free(process) + self._n_variances


def rows_seen(panel: Panel) -> float:
    """Weighted number of rows with a value."""
    return float(panel.weights[panel.sequence_index] @ panel.observed)
