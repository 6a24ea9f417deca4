"""What the samplers share: read-outs that average over kept samples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import AnyArray, Floats, Ints
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..engines import get_engine
from ..estimators.explained import explained
from ..estimators.read_out import ReadOut, as_panel
from ..fit.publish import publish_trajectories
from ..model.process import Process
from ..model.structure import jumps_needed
from ..options import Rule, choice
from ..passes import Dwells, Sequences
from ..progress import track
from ..stored.kinds import require

# Draws of the paths before `decode` takes one: enough to forget that they started at the rows.
DECODE_SWEEPS = 30


class SampledReadOut(ReadOut):
    """Read-outs that average over kept samples; subclasses say which processes they are."""

    criteria: ClassVar[Rule] = choice("draw", "time")
    no_refit: ClassVar[str] = "it has a posterior: the spread of its samples_ says how sure it is"
    _seed_: int

    def check_fields(self) -> None:
        """Refuse parts that do not fit together, if they come from a file."""
        super().check_fields()
        require(type(vars(self).get("_seed_")) is int and self._seed_ >= 0, "a sampler must have a seed")

    @abstractmethod
    def _processes(self) -> Iterator[Process]:
        """The process of each kept sample."""

    @abstractmethod
    def _last_process(self) -> Process:
        """The process that `decode` draws from, its states those of `states_`."""

    def _smoothed(self, panel: Panel) -> Iterator[tuple[Process, Floats]]:
        """Each kept sample with its posterior (n, M) of the rows."""
        processes = list(self._processes())
        sequences = Sequences.of(get_engine(self.engine), panel, processes[0].emission.encode(panel), self.states_)
        for k in track(len(processes), f"{type(self).__name__} read-out"):
            with explained(panel, "the sampled process"):
                posterior = sequences.smooth(processes[k])[0]
            yield processes[k], posterior

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

    def _expected_values(self, panel: Panel) -> AnyArray:
        # predictive distributions averaged over the kept samples: the labels of the states do not matter
        return self.process_.emission.best_values(self._predictive(panel))

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
        self._fitted()
        columns = self.process_.emission.columns
        if len(columns) > 1 or not columns[0].is_symbolic:
            raise ValueError(
                "predict_value_proba needs one column of labels or symbols, got "
                f"{[column.name for column in columns]}; use predict_value."
            )
        panel = as_panel(panel)
        return panel.to_caller_order(self._predictive(panel)[0])

    def decode(self, panel: Any, criterion: str = "draw") -> Trajectories:
        """Trajectory of every sequence.

        Parameters
        ----------
        panel : Panel or frame
        criterion : "draw" or "time"
            One draw of the trajectories given the parameters of the last sample: a likely path, not the best one, and
            the same for every call; or the path of least expected time in the wrong state under `process_`.
        """
        return super().decode(panel, criterion)

    def _dwells(self, panel: Panel, criterion: str) -> Dwells:
        if criterion == "time":
            return super()._dwells(panel, criterion)
        process = self._last_process()
        sequences = Sequences.of(get_engine(self.engine), panel, process.emission.encode(panel), self.states_)
        paths = sequences.begin_paths(np.random.default_rng(self._seed_), jumps_needed(process.transition_probs > 0))
        with explained(panel, "the fitted process"):
            for k in range(DECODE_SWEEPS):
                paths, _ = sequences.draw(paths, process, fresh=k == 0)
        return sequences.fetch_paths(paths)


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


def publish_first(panel: Panel, dwells: Dwells, first: Ints, labels: AnyArray) -> Trajectories:
    """Trajectories of the panel from the paths of its copies: those of the first copy of each sequence."""
    counts = np.diff(dwells.offsets)[first]
    offsets = np.concatenate([[0], np.cumsum(counts)])
    kept = np.repeat(dwells.offsets[first] - offsets[:-1], counts) + np.arange(offsets[-1])
    return publish_trajectories(panel, Dwells(offsets, *(part[kept] for part in dwells[1:])), labels)
