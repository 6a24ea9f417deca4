"""What every model of a process shares: panels in, labels, probabilities and summaries out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ..arrays import AnyArray, Codes, Floats, Ints
from ..data.deriving import split_requests
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..emissions import Record
from ..engines import get_engine
from ..engines.scanned import ScannedPanel
from ..errors import PanelError
from ..fit import setup
from ..fit.advice import Drift
from ..fit.levels import find_levels, units_at_zero, units_of
from ..fit.publish import publish_trajectories
from ..history import History
from ..memory import of_a_fit, require_room
from ..model.dependence import Laid, lay_out
from ..model.frailty import Frailty
from ..model.process import Process
from ..options import Rule, choice
from ..passes import Dwells, Sequences
from ..stored.kinds import require, require_floats, require_types
from .explained import explained
from .frail import Frail, Frailties
from .people import Levelled, People
from .pictures import Pictured
from .ratios import coefficients
from .summary import Occupancy, Summarised
from .written import Written

Fitting = TypeVar("Fitting")
METHODS = choice("posterior", "trajectory")


def as_panel(data: Any) -> Panel:
    """A panel from itself or from a frame with columns id, time and value."""
    if isinstance(data, ScannedPanel):
        raise PanelError(
            "panel must be one in memory here, got one on a cluster; decode_to and predict_proba_to write what they "
            "read out of it, and panel.gather() or panel.sample(rows) brings it, or a part of it, here."
        )
    return data if isinstance(data, Panel) else Panel.from_frame(data)


def as_data(data: Any) -> Any:
    """A panel, a panel on a cluster, or a frame with columns id, time and value as a panel.

    A panel on a cluster of no more rows than a fit looks at anyway is brought here. One in memory must leave room for
    the fit.
    """
    if not isinstance(data, ScannedPanel):
        panel = as_panel(data)
        n = panel.n_observations
        require_room(
            f"a fit of {n:,} rows",
            of_a_fit(n, panel.n_columns, panel.n_sequences),
            "fit some of the sequences (panel[:1000]), or leave the rows in Parquet files and fit jm.scan_panel(...), "
            "whose workers put on disk what they have no room for",
        )
        return panel
    return data.gather() if data.n_observations <= setup.MANY_ROWS else data


def hold(engine: Any, panel: Any, record: Record, labels: AnyArray | None = None, z: Floats | None = None) -> Sequences:
    """The sequences of a panel as an engine holds them; those of a panel on a cluster are there already."""
    if isinstance(panel, ScannedPanel):
        return panel.hold(record, labels)
    return Sequences.of(get_engine(engine), panel, record.encode(panel), labels, z)


@contextmanager
def all_at_once(model: Fitting) -> Iterator[Fitting]:
    """A copy to be fitted, which the model becomes at the end: a fit that fails leaves a fitted model as it was."""
    new = object.__new__(type(model))  # no copy by way of a pickle, which works out what is only asked for later
    vars(new).update(vars(model))
    yield new
    for name in vars(model).keys() - vars(new).keys():
        delattr(model, name)
    vars(model).update(vars(new))


class ReadOut(Pictured, Written, Summarised, Levelled, Frail):
    """Read-outs of one fitted process; subclasses set process_ and states_, and know what a row's state is."""

    # what a trajectory may be asked to be best by
    criteria: ClassVar[Rule] = choice("time")
    # why it cannot be refitted from its own parameters; "" if it can
    no_refit: ClassVar[str] = "it cannot go on from its own parameters"
    process_: Process
    states_: AnyArray
    engine: Any
    _people_: People
    # whether hidden states stay in the order in which a fit found them: that of what it started from
    _keeps_order: bool = False

    @property
    def rates_(self) -> Floats:
        """λ of `process_`."""
        return self._fitted().rates

    @property
    def transition_probs_(self) -> Floats:
        """P of `process_`."""
        return self._fitted().transition_probs

    @property
    def emission_(self) -> Record:
        """Emission of `process_`."""
        return self._fitted().emission

    @property
    def coefficients_(self) -> Any:
        """Log hazard ratios, where rates depend on covariates: a frame with covariate, from, to and coefficient."""
        process, occupancy = self._fitted(), self._occupancy()
        if process.effects is None:  # as an attribute that is not there
            raise AttributeError("rates of this model depend on no covariates; see Structure(covariates=...).")
        return coefficients(process, None if occupancy is None else occupancy.backend)

    def __sklearn_clone__(self) -> Self:
        # a process or model to start from is data: a clone that forgot its fit would be of no use
        options = self.get_params(deep=False)
        kept = {name: options.pop(name) for name in ("start", "process") if name in options}
        return type(self)(**kept, **{name: clone(value, safe=False) for name, value in options.items()})

    def _fitted(self) -> Process:
        """The process, or the error of a model that has none yet."""
        if "process_" not in vars(self):
            raise NotFittedError(f"this {type(self).__name__} must be fitted first; call fit(panel).")
        return self.process_

    def require_fitted(self) -> None:
        """Refuse a model that has nothing to tell yet."""
        self._fitted()

    def __getstate__(self) -> dict[str, Any]:
        self._last_value()  # while the fitted panel is at hand
        return super().__getstate__()

    def to_fields(self) -> dict[str, Any]:
        """Options and what was fitted."""
        self._last_value()
        return super().to_fields()

    def check_fields(self) -> None:
        """Refuse parts that do not fit together, if they come from a file."""
        require("process_" in vars(self), "a model must be fitted")
        types: dict[str, type] = {
            "process_": Process, "trajectories_": Trajectories, "history_": History, "_occupancy_": Occupancy,
            "states_": np.ndarray, "_people_": People, "_frailties_": Frailties, "_drift_": Drift,
        }  # fmt: skip
        require_types(self, types)
        M = len(self.process_.rates)
        require(self.states_.shape == (M,), f"there must be labels of {M} states")
        drift, occupancy = vars(self).get("_drift_"), vars(self).get("_occupancy_")
        require(drift is None or drift.state in range(M), f"a drift must be of one of {M} states")
        if occupancy is not None:
            require_floats("time of the states", occupancy.time, (M,))
            require_floats("visits of the states", occupancy.visits, (M,))

    def _refitted(self, panel: Panel, options: dict[str, Any]) -> Self:
        """The same model refitted to another panel from its own parameters, its states in the same order.

        `options` may be any of the constructor's; those that a model does not have are left out.
        """
        raise NotImplementedError(self.no_refit)

    def _again(self, options: dict[str, Any]) -> Self:
        """An unfitted copy with other options."""
        new = clone(self)
        return new.set_params(**{name: value for name, value in options.items() if name in new.get_params(deep=False)})

    def _may_sort(self, panel: Any) -> bool:
        """Whether hidden states may be put into the order of their values: nothing is said of certain ones."""
        structure = getattr(self, "structure", None)
        named = structure is not None and structure.names_states
        return not named and not self._keeps_order and panel.known is None

    def _panel(self, data: Any) -> Panel:
        """A panel in the model's unit of time: one of dates is in days, a model of plain numbers may be in any."""
        panel = as_panel(data)
        fitted, occupancy = getattr(self, "trajectories_", None), self._occupancy()
        in_numbers = fitted is not None and fitted.clock is None
        in_numbers |= occupancy is not None and occupancy.time_unit is None
        if in_numbers and panel.clock is not None:
            raise PanelError(
                "times must be numbers, like those that the model was fitted to, got dates; fit the model to dates, or "
                "give the times as numbers in its unit."
            )
        return panel

    def decode(self, panel: Any, criterion: str = "time") -> Trajectories:
        """Trajectory of every sequence.

        Parameters
        ----------
        panel : Panel or frame
        criterion : "time"
            The trajectory of least expected time in the wrong state under `process_`, given all observations, with a
            small price per jump against flicker; moves that cannot happen are never made.
        """
        self._fitted()
        self.criteria.check("criterion", criterion)
        panel = self._panel(panel)
        return publish_trajectories(panel, self._dwells(panel, criterion), self.states_)

    def _dwells(self, panel: Panel, criterion: str) -> Dwells:
        """Trajectories of a panel by a criterion."""
        laid, sequences = self._held_sequences(panel)
        with explained(laid.panel, "the fitted process"):
            return own_rows(sequences.fetch(sequences.err_least(self.process_)), laid, panel)

    @abstractmethod
    def _row_states(self, panel: Panel) -> Codes:
        """(n,) state index of every row, in panel order, where no criterion is asked for."""

    def _states_by(self, panel: Panel, criterion: str | None) -> Codes:
        if criterion is None:
            return self._row_states(panel)
        self.criteria.check("criterion", criterion)
        return self._dwells(panel, criterion).row_states(panel.offsets)

    def _held_sequences(self, panel: Panel) -> tuple[Laid, Sequences]:
        """A panel as the rates of the process are to be seen in it, and as the engine holds it."""
        laid, process = lay_out(self.process_.effects, panel), self.process_
        x = process.emission.encode(laid.panel)
        sequences = Sequences.of(get_engine(self.engine), laid.panel, x, process.states, laid.z)
        people = vars(self).get("_people_")
        if people is not None:
            with explained(laid.panel, "the fitted process"):
                sequences = find_levels(sequences.at(units_at_zero(panel, people.by, people.sds)), process)
        if self._is_frail:
            frail = self._frailties_
            sequences = sequences.under(Frailty.of(*units_of(panel, frail.by, "frailty"), frail.variance))
        return laid, sequences

    def _sequences(self, panel: Panel) -> Sequences:
        """A panel as the engine holds it, at the levels of its people if the model knows levels."""
        return self._held_sequences(panel)[1]

    def _posterior(self, panel: Panel) -> Floats:
        """(n, M) posterior state probabilities of every row, in panel order."""
        n, M = panel.n_observations, len(self.states_)
        require_room(
            f"probabilities of {M} states at {n:,} rows",
            16.0 * (M + 1) * n,  # those of the blocks, and all together
            "ask for some of the sequences (panel[:1000]) or at some times (at=...), or have workers write them to "
            "files: predict_proba_to(jm.scan_panel(...), folder)",
        )
        laid, sequences = self._held_sequences(panel)
        with explained(laid.panel, "the fitted process"):
            posterior = sequences.smooth(self.process_)[0]
        return posterior if laid.panel is panel else posterior[laid.rows]

    def _unseen(self, panel: Panel, pi: Floats) -> Floats:
        """(n, M) state probabilities of every row of a panel that tells nothing, from those of the first state."""
        laid, sequences = self._held_sequences(panel)
        return np.asarray(sequences.smooth(replace(self.process_, initial_probs=pi))[0][laid.rows])

    def _log_likelihood(self, panel: Panel, process: Process) -> float:
        laid, sequences = self._held_sequences(panel)
        with explained(laid.panel, "the fitted process"):
            return sequences.log_likelihood(process)

    def predict(self, panel: Any, criterion: str | None = None) -> AnyArray:
        """State label at every row, in the caller's row order; rows with a missing value included.

        Parameters
        ----------
        panel : Panel or frame
        criterion : str, optional
            Read the trajectories of `decode(panel, criterion)`; by default the model's own choice.
        """
        self._fitted()
        panel = self._panel(panel)
        return panel.to_caller_order(self.states_[self._states_by(panel, criterion)])

    def predict_proba(self, panel: Any, at: Any = None) -> Floats:
        """Posterior state probabilities under `process_`, by forward-backward over all observations.

        Parameters
        ----------
        panel : Panel or frame
        at : mapping {id: times} or pair (ids, times), optional
            Times to read at, from the start of each window to as far beyond its end as one likes; by default every
            row of the panel. Before its window a process is not defined. At the very time of a move that is known
            (a row seen as a transition or an entry) the new state is there already.

        Returns
        -------
        probs : (n, M)
            In the caller's row order; with `at`, in the order asked for.
        """
        self._fitted()
        return self._read(panel, at, self._posterior)

    def predict_value(
        self, panel: Any, method: str = "posterior", at: Any = None, criterion: str | None = None
    ) -> AnyArray:
        """The observation each row should show: a label, a symbol or a mean.

        Parameters
        ----------
        panel : Panel or frame
        method : "posterior" or "trajectory"
            What the posterior expects: the mean, or the most probable label or symbol, which errs least; or what the
            state of the row shows, which is what the paper scores.
        at : mapping {id: times} or pair (ids, times), optional
            As in `predict_proba`.
        criterion : str, optional
            Of the trajectory, as in `predict`.

        Returns
        -------
        values : (n,), or (n, D) for D columns
            In the caller's row order; with `at`, in the order asked for.
        """
        self._fitted()
        METHODS.check("method", method)
        if method == "posterior":
            return self._read(panel, at, self._expected_values)
        return self._read(panel, at, lambda wide: self._shown_values(wide, criterion))

    def _expected_values(self, panel: Panel) -> AnyArray:
        if "_people_" not in vars(self):
            return self.process_.emission.expected(self._posterior(panel))
        laid, sequences = self._held_sequences(panel)
        with explained(laid.panel, "the fitted process"):
            posterior = sequences.smooth(self.process_)[0]
        rows = posterior if laid.panel is panel else posterior[laid.rows]
        return self._at_levels(panel, sequences, self.process_.emission.expected(rows))

    def _shown_values(self, panel: Panel, criterion: str | None) -> AnyArray:
        """(n,) or (n, D): what the state of each row shows of its person."""
        values = self._shown()[self._states_by(panel, criterion)]
        return self._at_levels(panel, self._sequences(panel), values) if "_people_" in vars(self) else values

    def _shown(self) -> AnyArray:
        """(M,) or (M, D): what each state shows."""
        return self.process_.emission.state_values()

    def _read(self, panel: Any, at: Any, read_out: Any) -> Any:
        """What a read-out says of every row, or of the times asked for."""
        panel = self._panel(panel)
        if at is None:
            return panel.to_caller_order(read_out(panel))
        wide, index = with_times(panel, at)
        return read_out(wide)[index]


def require_constant(process: Process, what: str) -> None:
    """Refuse rates that depend on covariates where a decoder knows one rate for each state."""
    if process.effects is not None:
        raise ValueError(
            f"{what} must have rates that depend on nothing, got a process with effects of covariates; take "
            "process_.at({...}), or decode by criterion='time' (a JumpMeans by 'objective')."
        )


def own_rows(dwells: Dwells, laid: Laid, panel: Panel) -> Dwells:
    """Dwells of a panel with blank rows added, by the rows of the panel itself."""
    if laid.panel is panel:
        return dwells
    sequence = dwells.sequence
    first = laid.panel.offsets[sequence] + dwells.rows
    rows = np.searchsorted(laid.rows, first) - panel.offsets[sequence]
    return dwells._replace(rows=rows.astype(np.int32))


def with_times(panel: Panel, at: Any) -> tuple[Panel, Ints]:
    """The panel with rows at the times asked for, and which row answers each."""
    wide, index = panel.insert_times(*split_requests(at))
    early = np.flatnonzero(wide.start_times < panel.start_times)
    if len(early):
        s = int(early[0])
        raise PanelError(
            f"times to read at must not lie before the window of their sequence, got "
            f"{wide.decode_times(wide.start_times[s : s + 1])[0]} before "
            f"{panel.decode_times(panel.start_times[s : s + 1])[0]} for sequence {panel.ids.tolist()[s]!r}; a process "
            "is not defined there: give the panel an earlier start if it began earlier."
        )
    return wide, index
