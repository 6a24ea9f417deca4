"""What every estimator shares: panels in, labels and probabilities out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ..arrays import Floats
from ..data.deriving import split_requests
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..engines import get_engine
from ..engines.base import NoPathError, Sequences
from ..errors import InfeasibleError, PanelError
from ..model.process import Process


def as_panel(data: Any) -> Panel:
    """A panel from itself or from a frame with columns id, time and value."""
    return data if isinstance(data, Panel) else Panel.from_frame(data)


def no_path(panel: Panel, error: NoPathError, why: str) -> InfeasibleError:
    """The error a user can act on, from the internal one."""
    first, last = panel.offsets[error.sequence], panel.offsets[error.sequence + 1]
    row = min(max(int(first) + error.row, int(first)), int(last) - 1)
    return InfeasibleError(
        f"{why} must be able to explain every sequence, got none for {panel.locate(row)}; allow the move "
        "(Structure(allowed=...)), raise jumps_per_gap, or correct the row."
    )


class MarkovReadOut(BaseEstimator):  # type: ignore[misc]
    """Read-outs of a fitted process; subclasses set process_, states_ and know how to decode."""

    process_: Process
    states_: NDArray[Any]
    engine: Any

    def _check_fitted(self) -> None:
        if not hasattr(self, "process_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} must be fitted first; call fit(panel).")

    def _panel(self, data: Any) -> Panel:
        """A panel in the model's unit of time: one of dates is in days, a model of plain numbers may be in any."""
        panel = as_panel(data)
        fitted = getattr(self, "trajectories_", None)
        if fitted is not None and fitted.clock is None and panel.clock is not None:
            raise PanelError(
                "times must be numbers, like those that the model was fitted to, got dates; fit the model to dates, or "
                "give the times as numbers in its unit."
            )
        return panel

    @abstractmethod
    def decode(self, panel: Any) -> Trajectories:
        """Best trajectory of every sequence."""

    @abstractmethod
    def _row_states(self, panel: Panel) -> NDArray[np.int32]:
        """(n,) state index of every row on the best trajectory, in panel order."""

    def _posterior(self, panel: Panel) -> Floats:
        """(n, M) posterior state probabilities of every row, in panel order."""
        sequences = Sequences.from_panel(panel, self.process_.emission.encode(panel))
        try:
            return get_engine(self.engine).smooth(sequences, self.process_)[0]
        except NoPathError as error:
            raise no_path(panel, error, "the fitted process") from None

    def predict(self, panel: Any) -> NDArray[Any]:
        """State label at every row, in the caller's row order; rows with a missing value included."""
        self._check_fitted()
        panel = self._panel(panel)
        return panel.to_caller_order(self.states_[self._row_states(panel)])

    def predict_proba(self, panel: Any, at: Any = None) -> Floats:
        """Posterior state probabilities under `process_`, by forward-backward over all observations.

        Parameters
        ----------
        panel : Panel or frame
        at : mapping {id: times} or pair (ids, times), optional
            Times to read at, within or beyond the window; by default every row of the panel.

        Returns
        -------
        probs : (n, M)
            In the caller's row order; with `at`, in the order asked for.
        """
        self._check_fitted()
        panel = self._panel(panel)
        if at is None:
            return panel.to_caller_order(self._posterior(panel))
        wide, index = panel.insert_times(*split_requests(at))
        return self._posterior(wide)[index]

    def predict_value(self, panel: Any, method: str = "trajectory") -> NDArray[Any]:
        """The observation each row should show: a label, a symbol or a mean, in the caller's row order.

        Parameters
        ----------
        panel : Panel or frame
        method : "trajectory" or "posterior"
            What the state on the best trajectory shows (what the paper scores), or what the posterior
            expects: the mean, or the most probable label or symbol.

        Returns
        -------
        values : (n,), or (n, D) for D columns
        """
        self._check_fitted()
        panel = self._panel(panel)
        if method == "trajectory":
            values = self._shown()[self._row_states(panel)]
        elif method == "posterior":
            values = self.process_.emission.expected(self._posterior(panel))
        else:
            raise ValueError(f"method must be 'trajectory' or 'posterior', got {method!r}.")
        return panel.to_caller_order(values)

    def _shown(self) -> NDArray[Any]:
        """(M,) or (M, D): what each state shows on a trajectory."""
        return self.process_.emission.state_values()
