"""What both JUMP-means models share once a descent is done: publishing, decoding, closing EM steps."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..arrays import Floats
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..emissions import Record
from ..engines import get_engine
from ..engines.base import MAX_ROUNDS, Dwells, NoPathError, Sequences
from ..fit.descent import Model, Run
from ..fit.em_steps import em_steps
from ..fit.publish import estimate_process, publish_trajectories, shown_on_trajectories
from ..fit.setup import PSEUDO_COUNT, check_choice, check_count
from ..history import History
from ..model.objective import Cost, Stats, Weights
from ..model.process import Params, Process
from ..model.updates import transition_rows
from .read_out import MarkovReadOut, as_panel, no_path

# Closing EM steps: as many as held-out error gains from (see docs/choices.md).
REFINE_DIRECT, REFINE_MEASURED, REFINE_SYMBOLS = 20, 10, 100
# What these steps add to every count of jumps and of symbols, for states hidden behind symbols.
SYMBOLS_PSEUDO_COUNT = 3.0
# ξ of the decode that follows them, under ζ = 1 in units of the noise that is left.
CLOSING_TRANSITION_WEIGHT = 2.0
# Of these, with directly observed states, the decoder uses so many.
DECODER_STEPS = 5


class JumpModel(MarkovReadOut):
    """A fitted JUMP-means model; subclasses know how to find its parameters."""

    structure: Any
    refine: Any
    emission_weight: Any
    transition_weight: Any
    max_iter: int
    trajectories_: Trajectories
    objective_: float
    objective_history_: Floats
    history_: History
    cost_: Cost
    rates_: Floats
    transition_probs_: Floats
    base_row_: Floats | None
    emission_: Record
    n_iter_: int
    converged_: bool
    _params_: Params

    def _check_options(self) -> None:
        params = self.get_params(deep=False)
        for name, choices in (
            ("init", ("data", "noise")),
            ("search", ("exact", "beam")),
            ("first_dwell", ("complete", "running")),
            ("objective", ("corrected", "printed", "integrated")),
        ):
            if name in params:
                check_choice(name, params[name], choices)
        for name, least in (
            ("n_states", 1), ("max_states", 1), ("start_states", 1), ("n_init", 1), ("max_iter", 1),
            ("jumps_per_gap", 1), ("refine", 0),
        ):  # fmt: skip
            if name in params:
                check_count(name, params[name], least)

    def _publish(self, panel: Panel, sequences: Sequences, run: Run, model: Model, labels: NDArray[Any]) -> None:
        """Set everything a user reads, from the end of the best descent."""
        if not run.converged:
            warnings.warn(
                f"the objective still falls after {self.max_iter} sweeps (now {run.cost.total:.6g}); "
                "raise max_iter, or tol if this is close enough.",
                ConvergenceWarning,
                stacklevel=3,
            )
        params, moves = run.params, model.moves
        rows = params.jump_chain()
        if model.weights.integrated:  # no rows in the objective: those of the counts
            rows = transition_rows(run.stats.jumps, PSEUDO_COUNT, moves)
        if self.structure is None:
            order = params.emission.stable_order(run.stats.total_time)
            params, rows = params.permute(order), rows[np.ix_(order, order)]
        self.states_ = labels
        self._params_ = params
        self.rates_, self.emission_ = params.rates, params.emission
        self.transition_probs_, self.base_row_ = rows, params.base_row
        self.cost_, self.objective_ = run.cost, run.cost.total
        self.objective_history_ = np.array([cost.total for cost in run.history])
        self.history_ = run.timing
        self.n_iter_, self.converged_ = len(run.history), run.converged

        self._model_ = model._replace(search=model.search._replace(rounds=MAX_ROUNDS))
        self._decoder_ = params
        dwells, stats = self._decode(panel, sequences)
        # rows drawn to a base row need no count of their own, the process does
        free = params.base_row is not None or model.weights.integrated
        count = PSEUDO_COUNT if free else model.weights.jump_pseudo_count
        process = estimate_process(panel, dwells, stats, params, moves, count, labels)
        self._shown_ = params.emission.state_values()
        steps = self._n_refine(params.emission)
        if steps:
            engine = get_engine(self.engine)
            del dwells, stats  # one set at a time: they are most of the memory of a fit
            # a single path follows every detour that EM comes to believe in: the decoder takes the first steps only
            first = min(steps, DECODER_STEPS) if params.emission.is_direct else steps
            pseudo_count = SYMBOLS_PSEUDO_COUNT if params.emission.hides_symbols else PSEUDO_COUNT
            process = em_steps(engine, sequences, process, moves, first, pseudo_count)
            self._decoder_ = Params(process.rates, process.transition_probs, process.emission)
            self._model_ = self._model_._replace(weights=self._closing_weights(process))
            dwells, stats = self._decode(panel, sequences)
            process = em_steps(engine, sequences, process, moves, steps - first, pseudo_count)
            if params.emission.hides_symbols:
                self._shown_ = shown_on_trajectories(engine, sequences, dwells.row_states, process)
            else:
                self._shown_ = self._decoder_.emission.state_values()
        self.process_ = process
        self.trajectories_ = publish_trajectories(panel, dwells, labels)

    def _closing_weights(self, process: Process) -> Weights:
        """Weights of the last decode after EM steps: what was left to us follows the densities of the process."""
        weights = self._model_.weights
        if isinstance(self.emission_weight, str):
            weights = weights._replace(emission=process.emission.natural_weights())
        if isinstance(self.transition_weight, str):
            weights = weights._replace(transition=CLOSING_TRANSITION_WEIGHT)
        return weights

    def _n_refine(self, emission: Record) -> int:
        if not isinstance(self.refine, str):
            return int(self.refine)
        if emission.is_direct:
            return REFINE_DIRECT
        return REFINE_SYMBOLS if emission.hides_symbols else REFINE_MEASURED

    def _decode(self, panel: Panel, sequences: Sequences) -> tuple[Dwells, Stats]:
        weights, _, search = self._model_
        dwells = Dwells.blank(sequences, search.per_gap)
        try:
            stats = get_engine(self.engine).sweep(sequences, dwells, self._decoder_, weights, search)
        except NoPathError as error:
            raise no_path(panel, error, "the allowed moves") from None
        return dwells, stats

    def _decode_panel(self, panel: Panel) -> Dwells:
        return self._decode(panel, Sequences.from_panel(panel, self.emission_.encode(panel)))[0]

    def decode(self, panel: Any) -> Trajectories:
        """Best trajectory of every sequence under the fitted parameters."""
        self._check_fitted()
        panel = as_panel(panel)
        return publish_trajectories(panel, self._decode_panel(panel), self.states_)

    def _row_states(self, panel: Panel) -> NDArray[np.int32]:
        return self._decode_panel(panel).row_states

    def _shown(self) -> NDArray[Any]:
        return self._shown_
