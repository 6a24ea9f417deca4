"""What both JUMP-means models share: from the end of a descent to one published model, and its decoder."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..arrays import AnyArray, Codes, Floats
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..engines.scanned import ScannedPanel
from ..errors import PanelError
from ..fit.ascent import most_likely
from ..fit.descent import Descent, Model
from ..fit.levels import OFFSET_SD, OFFSETS
from ..fit.publish import publish_trajectories
from ..fit.refine import Decoder, close, closing_prices
from ..fit.setup import Data, measured_panel
from ..history import History
from ..model.dependence import Laid
from ..model.objective import Cost
from ..model.params import Params
from ..options import Rule, auto, choice, count, families, listed, number, price, seed, state_labels
from ..passes import Dwells, Sequences
from ..stored.kinds import require, require_types
from .explained import explained
from .last_value import check_fitted
from .people import People
from .read_out import ReadOut, all_at_once, own_rows, require_constant
from .summary import Occupancy

weight = auto | price()
# ζ goes with the square of the unit of its column.
zeta = auto | price(1e300)
# Beyond these, tables of states and candidates for jumps would ask for more memory than there is.
MOST_STATES, MOST_JUMPS = 1000, 1000
# Rules of the options that both models have.
SHARED: dict[str, Rule] = {
    "emission": families,
    "states": state_labels,
    "transition_weight": weight,
    "emission_weight": zeta | listed(zeta, "a list of them, one for each column"),
    "max_iter": count(),
    "tol": auto | number(least=0),
    "jumps_per_gap": auto | count(most=MOST_JUMPS),
    "search": choice("exact", "beam"),
    "first_dwell": choice("complete", "running"),
    "refine": auto | choice("converged") | count(0),
    "random_state": seed,
    "offsets": OFFSETS,
    "offset_sd": OFFSET_SD,
}
WHY, REMEDY = "the allowed moves", "raise jumps_per_gap, "


class JumpModel(ReadOut):
    """A fitted JUMP-means model; subclasses know how to find its parameters."""

    no_refit: ClassVar[str] = ""
    rules: ClassVar[dict[str, Rule]]
    criteria: ClassVar[Rule] = choice("objective", "time", "online")
    structure: Any
    refine: Any
    emission_weight: Any
    transition_weight: Any
    offsets: str | None
    offset_sd: Any
    max_iter: int
    trajectories_: Trajectories
    objective_params_: Params
    objective_: float
    objective_history_: Floats
    history_: History
    cost_: Cost
    cost_history_: list[Cost]
    n_iter_: int
    converged_: bool
    _decoder_: Decoder

    def _publish(
        self, panel: Data, laid: Laid, sequences: Sequences, run: Descent, model: Model, labels: AnyArray,
        sample: Sequences | None, **more: Any,
    ) -> None:  # fmt: skip
        """Set everything a user reads, all at once, from the end of the best descent.

        `laid` is the panel as the engine holds it; `sample` as of `close`.
        """
        if not run.converged:
            warnings.warn(
                f"the objective still falls after {self.max_iter} sweeps (now {run.cost.total:.6g}); "
                "raise max_iter, or tol if this is close enough.",
                ConvergenceWarning,
                stacklevel=3,
            )
        # states with names of their own keep their order
        sorts = self._may_sort(panel) and np.array_equal(labels, np.arange(len(labels)))
        if sorts:
            order = run.params.emission.stable_order(run.stats.total_time)
            run = run._replace(params=run.params.take(order))
        with explained(laid.panel, WHY, REMEDY):
            process, decoder, dwells, levels, drift = close(
                sequences, sample, run, model, labels, self.refine,
                lambda emission: closing_prices(
                    model.prices, emission, self.transition_weight, self.emission_weight
                ),
                lambda process, at_end: most_likely(
                    at_end, process, model.constraints, measured_panel(panel), panel.shortest_gap
                ),
            )  # fmt: skip
        sequences = sequences.at(levels)
        params = run.params
        trajectories, time, visits = published(laid.panel, sequences, dwells, labels)
        if sorts:  # closing steps may have moved the states past each other
            order = process.emission.stable_order(time)
            process, params = replace(process.take(order), states=labels), params.take(order)
            decoder = decoder._replace(params=decoder.params.take(order), shown=decoder.shown[order])
            drift = None if drift is None else drift.after(order)
            if np.any(np.diff(order) < 0):  # of two equal paths a decoder takes the first, and now another comes first
                dwells, _ = decoder.decode(sequences)
                trajectories, time, visits = published(laid.panel, sequences, dwells, labels)
        here: dict[str, Any] = {} if trajectories is None else {"trajectories_": trajectories, "_seen_": panel}
        with all_at_once(self) as new:
            new.__dict__.update(
                process_=process,
                states_=labels,
                objective_params_=params,
                objective_=run.cost.total,
                objective_history_=np.array([cost.total for cost in run.history]),
                cost_=run.cost,
                cost_history_=run.history,
                history_=run.timing,
                n_iter_=len(run.history),
                converged_=run.converged,
                _decoder_=decoder,
                _occupancy_=Occupancy.of(panel, time, visits),
                **here,
                **more,
            )
            new.__dict__.pop("_people_", None), new.__dict__.pop("_drift_", None)
            if drift is not None:
                new._drift_ = drift
            if levels is not None and self.offsets is not None and isinstance(panel, Panel):
                new._people_ = People.of(panel, levels, self.offsets)
            if trajectories is None:  # of an earlier fit
                new.__dict__.pop("trajectories_", None), new.__dict__.pop("_seen_", None)
            new._last_value_ = check_fitted(new, measured_panel(panel)) if isinstance(panel, ScannedPanel) else None

    def check_fields(self) -> None:
        """Refuse parts that do not fit together, if they come from a file."""
        super().check_fields()
        require(isinstance(vars(self).get("_decoder_"), Decoder), "a model must have a decoder")
        mine, its = self.process_.emission, self._decoder_.params.emission
        require(len(mine.columns) == len(its.columns), "the decoder must have the columns of the process")
        require(mine.n_states == its.n_states, "the decoder must have the states of the process")
        require_types(self, {"objective_params_": Params, "cost_": Cost, "objective_history_": np.ndarray})

    def _occupancy(self) -> Occupancy | None:
        return vars(self).get("_occupancy_")

    def decode(self, panel: Any, criterion: str = "objective") -> Trajectories:
        """Best trajectory of every sequence.

        Parameters
        ----------
        panel : Panel or frame
        criterion : "objective", "time" or "online"
            Least objective of JUMP-means under `process_`, as `trajectories_` are; or least expected time in the wrong
            state, given all observations, with a small price per jump against flicker, which errs less. "online": least
            objective with jumps in the middle of a gap only (spread evenly over it, for more than one a gap): what
            `OnlineDecoder` tells of a sequence, row by row, is how this decode of the rows so far ends.

        Notes
        -----
        The search for the least objective is exact over its candidates: jump times are placed by an exact step and
        then decoded again, from several sets of candidates, and the best is kept.
        """
        return super().decode(panel, criterion)

    def _dwells(self, panel: Panel, criterion: str) -> Dwells:
        if criterion == "time":
            return super()._dwells(panel, criterion)
        check_first(panel, self._decoder_.prices.first)
        laid, sequences = self._held_sequences(panel)
        if criterion == "online":
            require_constant(self.process_, "criterion='online'")
            with explained(panel, WHY, REMEDY):
                return sequences.fetch(sequences.decode_online(*self._decoder_[:3]))
        with explained(laid.panel, WHY, REMEDY):
            return own_rows(sequences.fetch(self._decoder_.decode(sequences)[0]), laid, panel)

    def _row_states(self, panel: Panel) -> Codes:
        return self._dwells(panel, "objective").row_states(panel.offsets)

    def _shown(self) -> AnyArray:
        return self._decoder_.shown


def published(
    panel: Data, sequences: Sequences, dwells: Any, labels: AnyArray
) -> tuple[Trajectories | None, Floats, AnyArray]:
    """Trajectories, and time and visits of each state; trajectories of a panel on a cluster stay there."""
    if isinstance(panel, ScannedPanel):
        return None, *sequences.occupancy(dwells, len(labels))
    found = publish_trajectories(panel, sequences.fetch(dwells), labels)
    return found, found.time_in_state().sum(axis=0), np.bincount(found.codes, minlength=len(labels))


def check_first(panel: Data, first: Floats | None) -> None:
    """Refuse windows that begin before their first row where some states cannot be the first (first: (M,) costs)."""
    if first is not None and panel.early is not None:
        raise PanelError(
            "windows must begin with their first row where Structure(initial=...) rules out states, got one that "
            f"begins before {panel.early}; add a row there without a value."
        )
