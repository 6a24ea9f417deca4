"""What the samplers share: read-outs that average over kept samples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..engines import get_engine
from ..engines.base import Dwells, NoPathError, Sequences
from ..errors import InfeasibleError
from ..estimators.read_out import MarkovReadOut, as_panel
from ..fit.publish import publish_trajectories
from ..model.process import Process
from ..progress import track
from .uniformized import Paths, draw_paths

# Draws of the paths before `decode` takes one: enough to forget that they started at the rows.
DECODE_SWEEPS = 30


class SampledReadOut(MarkovReadOut):
    """Read-outs that average over kept samples; subclasses say which processes they are."""

    _seed_: int

    @abstractmethod
    def _processes(self) -> Iterator[Process]:
        """The process of each kept sample."""

    @abstractmethod
    def _last_process(self) -> Process:
        """The process that `decode` draws from, its states those of `states_`."""

    def _smoothed(self, panel: Panel) -> Iterator[tuple[Process, Floats]]:
        """Each kept sample with its posterior (n, M) of the rows."""
        engine = get_engine(self.engine)
        processes = list(self._processes())
        sequences = Sequences.from_panel(panel, processes[0].emission.encode(panel))
        for k in track(len(processes), f"{type(self).__name__} read-out"):
            try:
                yield processes[k], engine.smooth(sequences, processes[k])[0]
            except NoPathError as error:
                raise unexplained(panel, error, "the sampled process") from None

    def _predictive(self, panel: Panel) -> list[Floats]:
        """Mean predictive distribution of the rows for each column, in panel order."""
        total: list[Any] = [0.0] * len(self.process_.emission.columns)
        n = 0
        for process, posterior in self._smoothed(panel):
            for d, column in enumerate(process.emission.columns):
                total[d] = total[d] + column.predictive(posterior)
            n += 1
        return [table / n for table in total]

    def _row_states(self, panel: Panel) -> NDArray[np.int32]:
        return self._posterior(panel).argmax(axis=1).astype(np.int32)

    def predict_value(self, panel: Any, method: str = "posterior") -> NDArray[Any]:
        """The observation each row should show, in the caller's row order.

        Parameters
        ----------
        panel : Panel or frame
        method : "posterior"
            The only one here: predictive distributions averaged over the kept samples (the Bayes estimator), then
            the mean, or the most probable label or symbol. Labels of the states do not matter to it.

        Returns
        -------
        values : (n,), or (n, D) for D columns
        """
        self._check_fitted()
        if method != "posterior":
            raise ValueError(
                f"method must be 'posterior' for {type(self).__name__}, got {method!r}; "
                "a sampler has no best trajectory."
            )
        panel = as_panel(panel)
        columns = self.process_.emission.columns
        parts = [column.best_value(table) for column, table in zip(columns, self._predictive(panel), strict=True)]
        if len(parts) > 1 and any(part.dtype.kind not in "fiu" for part in parts):
            parts = [part.astype(object) for part in parts]
        return panel.to_caller_order(parts[0] if len(parts) == 1 else np.column_stack(parts))

    def predict_value_proba(self, panel: Any) -> Floats:
        """Chances of the labels or symbols at each row, averaged over the kept samples.

        Parameters
        ----------
        panel : Panel or frame
            Of one column of labels or symbols.

        Returns
        -------
        probs : (n, N)
            In the caller's row order; columns in the order of `process_.emission.columns[0].symbols`.
        """
        self._check_fitted()
        columns = self.process_.emission.columns
        if len(columns) > 1 or not columns[0].is_symbolic:
            raise ValueError(
                "predict_value_proba needs one column of labels or symbols, got "
                f"{[column.name for column in columns]}; use predict_value."
            )
        panel = as_panel(panel)
        return panel.to_caller_order(self._predictive(panel)[0])

    def decode(self, panel: Any) -> Trajectories:
        """One draw of the trajectories given the parameters of the last sample: a likely path, not the best one.

        The same for every call: it is drawn with `random_state`.
        """
        self._check_fitted()
        panel = as_panel(panel)
        process = self._last_process()
        sequences = Sequences.from_panel(panel, process.emission.encode(panel))
        paths = Paths.at_rows(sequences, process.transition_probs > 0)
        log_density = process.emission.log_density(sequences.x)
        engine = get_engine(self.engine)
        rngs = np.random.default_rng(self._seed_).spawn(sequences.n_blocks)
        try:
            for k in range(DECODE_SWEEPS):
                paths = draw_paths(engine, sequences, paths, process, log_density, rngs, fresh=k == 0)
        except NoPathError as error:
            raise unexplained(panel, error, "the fitted process") from None
        return publish_trajectories(panel, paths.to_dwells(), self.states_)


def unexplained(panel: Panel, error: NoPathError, why: str) -> InfeasibleError:
    """The error a user can act on, from the internal one."""
    row = min(int(panel.offsets[error.sequence]) + error.row, int(panel.offsets[error.sequence + 1]) - 1)
    return InfeasibleError(
        f"{why} must be able to explain every sequence, got none for {panel.locate(row)}; allow the move "
        "(Structure(allowed=...)) or correct the row."
    )


def copied(panel: Panel, name: str) -> tuple[Panel, NDArray[np.int64]]:
    """Every sequence as many times as it weighs, and where the first copy of each stands; fractions are refused."""
    odd = np.flatnonzero(panel.weights != np.rint(panel.weights))
    if len(odd):
        raise ValueError(
            f"weights must be whole numbers for {name}, got {panel.weights[odd[0]]:g} for "
            f"{panel.locate(int(panel.offsets[odd[0]]))}; no posterior knows a part of a sequence: round the weights, "
            "or use JumpMeans or EM."
        )
    copies = panel.weights.astype(np.int64)
    first = np.concatenate([[0], np.cumsum(copies)[:-1]])
    wide = panel if np.all(copies == 1) else panel.select(np.repeat(np.arange(len(copies)), copies))
    return replace(wide, weights=np.ones(wide.n_sequences)), first


def publish_first(panel: Panel, dwells: Dwells, first: NDArray[np.int64], labels: NDArray[Any]) -> Trajectories:
    """Trajectories of the panel from the paths of its copies: those of the first copy of each sequence."""
    slots = np.append(dwells.slots[first], dwells.slots[-1])
    return publish_trajectories(panel, replace(dwells, slots=slots, counts=dwells.counts[first]), labels)


def require_integers(model: Any, least: dict[str, int]) -> None:
    """Refuse options that are not integers of at least a given size."""
    for name, smallest in least.items():
        value = getattr(model, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < smallest:
            raise ValueError(f"{name} must be an integer of at least {smallest}, got {value!r}.")
