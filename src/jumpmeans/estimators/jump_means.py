"""JUMP-means for a given number of states."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..emissions import FAMILIES, Record, family_names
from ..engines import get_engine
from ..engines.base import BEAM_PER_GAP, MAX_ROUNDS, Dwells, Engine, NoPathError, Search, Sequences
from ..objective import Cost, Stats, Weights, evaluate
from ..panel import Panel
from ..params import Params, Process
from ..progress import History, track
from ..structure import Structure, jumps_needed
from ..trajectories import Trajectories
from ..weighted import weighted_median
from .base import Floats, MarkovReadOut, as_panel, no_path
from .em_steps import em_steps
from .start import start_emission
from .updates import exact_rates, transition_rows, uniform_rows

# α: what a jump never seen is worth; enough that it can return, too little to be felt.
PSEUDO_COUNT = 0.01
# Closing EM steps: as many as held-out error gains from (see docs/choices.md).
REFINE_DIRECT, REFINE_MEASURED, REFINE_SYMBOLS = 20, 10, 100
# The same for states hidden behind symbols, as a share of the mean count.
EVEN_SHARE = 0.5


class Run(NamedTuple):
    """One descent from one start."""

    params: Params
    stats: Stats
    history: list[Cost]
    timing: History
    converged: bool

    @property
    def cost(self) -> Cost:
        """The objective at the end, by term."""
        return self.history[-1]


def descend(
    engine: Engine, sequences: Sequences, params: Params, weights: Weights, search: Search,
    moves: NDArray[np.bool_], max_iter: int, tol: float,
) -> Run:  # fmt: skip
    """Alternate trajectories and parameters until the objective stops falling; every step is exact."""
    dwells = Dwells.blank(sequences, search.per_gap)
    leavable = np.asarray(moves.any(axis=1))
    history: list[Cost] = []
    timing = History()
    for _ in range(max_iter):
        stats = engine.sweep(sequences, dwells, params, weights, search)
        params = Params(
            exact_rates(stats, weights, leavable),
            transition_rows(stats.jumps, weights.jump_pseudo_count, moves, params.transition_probs),
            params.emission.update(stats.emission),
        )
        history.append(evaluate(stats, params.rates, params.transition_probs, params.emission, weights))
        timing.add(history[-1].total)
        if len(history) > 1 and history[-2].total - history[-1].total <= tol * abs(history[-1].total):
            return Run(params, stats, history, timing, True)
    return Run(params, stats, history, timing, False)


class JumpMeans(MarkovReadOut):
    """Trajectories of a Markov jump process with a given number of states, from irregular looks at it.

    Minimises the JUMP-means objective (Huggins et al. 2015): costs of observations, jumps and dwells whose
    least value is at the mean dwell time, so that trajectories do not degenerate as those of
    maximum likelihood do.

    Parameters
    ----------
    n_states : int, optional
        M. May be left out when the states are observed directly: their labels decide.
    emission : str or list of str
        Family of each value column: "direct" (the label is the state), "categorical", "gaussian",
        "laplace", "poisson", "exponential" or "bernoulli".
    states : list, optional
        Labels of directly observed states, when some may never have been seen; fixes their order.
    transition_weight : float or "auto"
        ξ, weight of -ln p of each jump; auto: 1.
    emission_weight : float, list of float or "auto"
        ζ of each column; auto: 1 for labels, counts, exponential and 0/1 readings, 1/noise² for gaussian and
        1/noise for laplace columns, the noise taken from successive differences.
    prior_dwell_count, prior_dwell_time : float or "auto"
        ξ_λ and μ_λ: each state starts as if it had shown so many dwells of this length; auto: 1 of the median gap.
    pseudo_count : float, pair of floats or "auto"
        α and α_e, added to the count of every allowed jump and of every symbol (a pair sets them apart); auto: 0.01,
        but for states hidden behind symbols half and all of the mean count, without which hard assignment
        makes noisy symbols look certain. Closing EM steps always use 0.01.
    structure : Structure, optional
        Moves that may happen.
    engine : "threads" or an engine such as `jumpmeans.engines.Threads(n_jobs=2)`
    n_init : int or "auto"
        Number of starts, of which the least objective wins; auto: 1 for directly observed states, else 5.
    init : "data" or "noise"
        Start from a clustering of the observations, or from nearly equal states as in the paper.
    max_iter, tol : int, float
        Sweeps at most, and the relative fall of the objective below which a fit has converged.
    random_state : int, Generator or None
    jumps_per_gap : int or "auto"
        Candidate jumps between two successive rows; auto: as many as the longest allowed detour needs.
    search : "exact" or "beam"
        The exact decoder, or the paper's variant that creates and removes candidates between sweeps.
    first_dwell : "complete" or "running"
        Whether the first dwell is costed as complete, as in the paper, or as one whose start was not seen.
    refine : int or "auto"
        Closing EM steps, from the fitted parameters, for `process_`; the last decode then uses its rates, jumps and
        emission. 0 is the algorithm of the paper; auto: 20 for directly observed states, 10 for measurements,
        100 for symbols.

    Attributes
    ----------
    trajectories_ : Trajectories
        Best trajectories under the fitted parameters (those of `process_` after closing EM steps, else those of
        the objective); `decode` of the same panel gives the same.
    objective_, objective_history_ : float, (n_iter_,)
        J at the end and after each sweep; never rises.
    cost_ : Cost
        J by its named terms.
    rates_, transition_probs_, emission_ : (M,), (M, M), Record
        λ, P and θ of the objective.
    process_ : Process
        The Markov process for everything that speaks of probability.
    states_ : (M,)
        Labels of the states: those observed, or 0, 1, ... in the order of their values.
    n_iter_, converged_ : int, bool
    history_ : History
        J after each sweep of the best start with the wall and CPU time it took.

    Notes
    -----
    A sequence with one row has no jump and adds to the emission alone. One without any value follows the
    cheapest path through its window and adds its dwells like any other.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> panel = jm.datasets.load_edss()
    >>> model = jm.JumpMeans(emission="direct").fit(panel)
    >>> model.states_
    array([1, 2, 3])
    """

    def __init__(
        self,
        n_states: int | None = None,
        *,
        emission: str | Sequence[str] = "gaussian",
        states: Sequence[Any] | None = None,
        transition_weight: float | str = "auto",
        emission_weight: float | Sequence[float] | str = "auto",
        prior_dwell_count: float | str = "auto",
        prior_dwell_time: float | str = "auto",
        pseudo_count: float | str = "auto",
        structure: Structure | None = None,
        engine: Any = "threads",
        n_init: int | str = "auto",
        init: str = "data",
        max_iter: int = 300,
        tol: float = 1e-9,
        random_state: Any = 0,
        jumps_per_gap: int | str = "auto",
        search: str = "exact",
        first_dwell: str = "complete",
        refine: int | str = "auto",
    ) -> None:
        self.n_states = n_states
        self.emission = emission
        self.states = states
        self.transition_weight = transition_weight
        self.emission_weight = emission_weight
        self.prior_dwell_count = prior_dwell_count
        self.prior_dwell_time = prior_dwell_time
        self.pseudo_count = pseudo_count
        self.structure = structure
        self.engine = engine
        self.n_init = n_init
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.jumps_per_gap = jumps_per_gap
        self.search = search
        self.first_dwell = first_dwell
        self.refine = refine

    def fit(self, panel: Any, y: None = None) -> Self:
        """Fit to a panel, or to a frame with columns id, time and value."""
        panel = as_panel(panel)
        engine = get_engine(self.engine)
        self._check_options()
        blank, labels = self._blank_emission(panel)
        x = blank.encode(panel)
        self._check_distinct(panel, blank, x)
        moves = (self.structure or Structure()).allowed_moves(labels)
        sequences = Sequences.from_panel(panel, x)
        weights = self._weights(panel, blank, x)
        search = self._search(moves)

        rng = np.random.default_rng(self.random_state)
        runs = []
        for k in track(self._n_starts(blank), "fitting"):
            start = Params(
                np.asarray(moves.any(axis=1)) / typical_gap(panel),
                uniform_rows(moves),
                start_emission(blank, x, panel, self.init, rng, first=k == 0),
            )
            try:
                runs.append(descend(engine, sequences, start, weights, search, moves, self.max_iter, self.tol))
            except NoPathError as error:
                raise no_path(panel, error, "the allowed moves") from None
        best = min(runs, key=lambda run: run.cost.total)
        if not best.converged:
            warnings.warn(
                f"the objective still falls after {self.max_iter} sweeps (now {best.cost.total:.6g}); "
                "raise max_iter, or tol if this is close enough.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._publish(panel, sequences, best, weights, search, moves, labels)
        return self

    def _publish(
        self, panel: Panel, sequences: Sequences, run: Run, weights: Weights, search: Search,
        moves: NDArray[np.bool_], labels: NDArray[Any],
    ) -> None:  # fmt: skip
        params = run.params
        if self.structure is None:
            params = params.permute(params.emission.stable_order(run.stats.total_time))
        self.states_ = labels
        self.rates_, self.transition_probs_, self.emission_ = (
            params.rates,
            params.transition_probs,
            params.emission,
        )
        self.cost_, self.objective_ = run.cost, run.cost.total
        self.objective_history_ = np.array([cost.total for cost in run.history])
        self.history_ = run.timing
        self.n_iter_, self.converged_ = len(run.history), run.converged

        self._weights_, self._search_, self._decoder_ = weights, search._replace(rounds=MAX_ROUNDS), params
        dwells, stats = self._decode(panel, sequences)
        process = estimate_process(panel, dwells, stats, params, moves, weights.jump_pseudo_count, labels)
        steps = self._n_refine(params.emission)
        if steps:
            engine = get_engine(self.engine)
            process = em_steps(engine, sequences, process, moves, steps, PSEUDO_COUNT)
            self._decoder_ = Params(process.rates, process.transition_probs, process.emission)
            dwells, stats = self._decode(panel, sequences)
        self.process_ = process
        self.trajectories_ = publish_trajectories(panel, dwells, labels)

    def _n_refine(self, emission: Record) -> int:
        if not isinstance(self.refine, str):
            return int(self.refine)
        if emission.is_direct:
            return REFINE_DIRECT
        return REFINE_SYMBOLS if any(column.is_symbolic for column in emission.columns) else REFINE_MEASURED

    def _decode(self, panel: Panel, sequences: Sequences) -> tuple[Dwells, Stats]:
        dwells = Dwells.blank(sequences, self._search_.per_gap)
        try:
            stats = get_engine(self.engine).sweep(sequences, dwells, self._decoder_, self._weights_, self._search_)
        except NoPathError as error:
            raise no_path(panel, error, "the allowed moves") from None
        return dwells, stats

    def _decode_panel(self, panel: Panel) -> Dwells:
        return self._decode(panel, Sequences.from_panel(panel, self.emission_.encode(panel)))[0]

    def decode(self, panel: Any) -> Trajectories:
        """Best trajectory of every sequence under the fitted parameters of the objective."""
        self._check_fitted()
        panel = as_panel(panel)
        return publish_trajectories(panel, self._decode_panel(panel), self.states_)

    def _row_states(self, panel: Panel) -> NDArray[np.int32]:
        return self._decode_panel(panel).row_states

    def _shown(self) -> NDArray[Any]:
        return self._decoder_.emission.state_values()

    def _check_options(self) -> None:
        for name, choices in (
            ("init", ("data", "noise")), ("search", ("exact", "beam")), ("first_dwell", ("complete", "running")),
        ):  # fmt: skip
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {choices}, got {getattr(self, name)!r}.")
        for name, least in (
            ("n_states", 1),
            ("n_init", 1),
            ("max_iter", 1),
            ("jumps_per_gap", 1),
            ("refine", 0),
        ):
            value = getattr(self, name)
            if value is not None and value != "auto" and (not isinstance(value, int | np.integer) or value < least):
                raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}.")

    def _blank_emission(self, panel: Panel) -> tuple[Record, NDArray[Any]]:
        """Emission that knows each column's support, and the labels of the states."""
        names = family_names(self.emission, panel.n_columns)
        if "direct" in names:
            labels = self._direct_labels(panel, names.index("direct"))
        elif self.states is not None:
            raise ValueError("states must be given only for emission 'direct'; hidden states are numbered.")
        elif self.n_states is None:
            raise ValueError(f"n_states must be given for hidden states (emission={self.emission!r}), got None.")
        else:
            labels = np.arange(self.n_states)
        symbols = None if isinstance(self.pseudo_count, str) else np.ravel(self.pseudo_count)[-1]
        return Record(
            FAMILIES[name].blank(panel, d, len(labels), labels.tolist(), symbols) for d, name in enumerate(names)
        ), labels

    def _direct_labels(self, panel: Panel, d: int) -> NDArray[Any]:
        seen = panel.labels(d)
        if self.states is not None:
            labels = np.asarray(self.states)
            if len(set(labels.tolist())) != len(labels):
                raise ValueError(f"states must be distinct, got {labels.tolist()}.")
        else:
            labels = seen
        if len(labels) == 0:
            raise ValueError(
                f"column {panel.columns[d]!r} must hold at least one label for emission 'direct', got none; "
                "check the column, or name the labels by states=[...]."
            )
        if self.n_states is not None and self.n_states != len(labels):
            raise ValueError(
                f"n_states={self.n_states} must equal the number of labels, got {len(labels)}: {labels.tolist()}; "
                "leave n_states out, or name labels that were never seen by states=[...]."
            )
        return labels

    def _check_distinct(self, panel: Panel, blank: Record, x: Floats) -> None:
        """Measurements need a distinct value for every state (symbols do not: a state is a mix of them)."""
        if blank.n_states == 1 or any(column.is_symbolic for column in blank.columns):
            return
        rows = x[np.isfinite(x).all(axis=1)]
        distinct = len(np.unique(rows, axis=0)) if len(rows) else len(np.unique(x[np.isfinite(x)]))
        if distinct < blank.n_states:
            raise ValueError(
                f"n_states={blank.n_states} must be at most the number of distinct values, got {distinct} in "
                f"columns {list(panel.columns)}; ask for fewer states."
            )

    def _weights(self, panel: Panel, blank: Record, x: Floats) -> Weights:
        """Hyperparameters as numbers; "auto" ones follow the data's own units."""
        if isinstance(self.emission_weight, str):
            emission = blank.auto_weights(x, panel)
        else:
            emission = np.array(np.broadcast_to(np.asarray(self.emission_weight, np.float64), len(blank.columns)))
        auto = {
            "transition_weight": 1.0, "prior_dwell_count": 1.0, "prior_dwell_time": typical_gap(panel),
            "pseudo_count": even_jumps(panel, blank),
        }  # fmt: skip
        value = {
            name: default if isinstance(getattr(self, name), str) else float(np.ravel(getattr(self, name))[0])
            for name, default in auto.items()
        }
        for name, number in [*value.items(), *(("emission_weight", z) for z in emission)]:
            if not (np.isfinite(number) and number >= 0):
                raise ValueError(f"{name} must be 'auto' or a finite number >= 0, got {number!r}.")
        count = value["prior_dwell_count"]
        return Weights(
            value["transition_weight"],
            emission,
            count,
            count * value["prior_dwell_time"],
            value["pseudo_count"],
        )

    def _search(self, moves: NDArray[np.bool_]) -> Search:
        jumps = jumps_needed(moves) if self.jumps_per_gap == "auto" else int(self.jumps_per_gap)
        running = int(self.first_dwell == "running")
        if self.search == "beam":
            base = max(2, jumps)
            return Search(base, max(BEAM_PER_GAP, 2 * base), 1, running)
        return Search(jumps, jumps, 0, running)

    def _n_starts(self, blank: Record) -> int:
        if self.n_init != "auto":
            return int(self.n_init)
        one_measure = len(blank.columns) == 1 and not blank.columns[0].is_symbolic
        return 1 if blank.is_direct or one_measure or blank.n_states == 1 else 3


def typical_gap(panel: Panel) -> float:
    """Median time between successive rows; 1 if there are none."""
    gaps, weights = panel.gaps()
    return weighted_median(gaps, weights) if len(gaps) else 1.0


def even_jumps(panel: Panel, blank: Record) -> float:
    """Pseudo-count α of each jump: hardly any, but a share of the observations for states hidden behind symbols.

    Hard assignment of noisy symbols feeds on itself: it finds certain symbols and favourite jumps where there are
    none. Even counts, here and in the emission, keep it from doing so.
    """
    M = blank.n_states
    if M == 1 or blank.is_direct or not all(column.is_symbolic for column in blank.columns):
        return PSEUDO_COUNT
    seen = panel.observed
    return EVEN_SHARE * float(np.repeat(panel.weights, panel.lengths)[seen].sum()) / (M * (M - 1))


def publish_trajectories(panel: Panel, dwells: Dwells, labels: NDArray[Any]) -> Trajectories:
    """Dwells in the caller's time, every jump after the row before it and not after the row behind it."""
    offsets = np.concatenate([[0], np.cumsum(dwells.counts)])
    index = np.repeat(dwells.slots[:-1] - offsets[:-1], dwells.counts) + np.arange(offsets[-1])
    sequence = np.repeat(np.arange(len(dwells.counts)), dwells.counts)
    starts = panel.start_times[sequence] + dwells.starts[index]
    row = panel.offsets[sequence] + dwells.rows[index]
    jump = np.ones(len(index), dtype=bool)
    jump[offsets[:-1]] = False
    starts[offsets[:-1]] = panel.start_times
    has_before = row > panel.offsets[sequence]
    before = np.where(has_before, panel.times[np.maximum(row - 1, 0)], panel.start_times[sequence])
    has_after = row < panel.offsets[sequence + 1]
    after = np.where(has_after, panel.times[np.minimum(row, len(panel.times) - 1)], panel.end_times[sequence])
    starts[jump] = np.clip(starts[jump], np.nextafter(before[jump], np.inf), after[jump])
    for k in np.flatnonzero(jump[1:] & (starts[1:] <= starts[:-1])) + 1:
        starts[k] = min(np.nextafter(starts[k - 1], np.inf), after[k])
    return Trajectories(dwells.states[index], starts, offsets, panel.end_times, panel.ids, labels, panel.clock)


def estimate_process(
    panel: Panel, dwells: Dwells, stats: Stats, params: Params, moves: NDArray[np.bool_], pseudo_count: float,
    labels: NDArray[Any],
) -> Process:  # fmt: skip
    """The Markov process behind trajectories: occurrences over exposure, running time included."""
    time = stats.total_time
    exits = stats.jumps.sum(axis=1)
    leavable = moves.any(axis=1)
    # half a jump and the matching time from all states: a state never left has no rate of its own
    pooled = (exits.sum() + 0.5) / (time.sum() + 0.5 * max(time.sum(), 1e-300) / max(exits.sum(), 1.0))
    rates = np.where(leavable, (exits + 0.5) / (time + 0.5 / pooled), 0.0)
    first = dwells.states[dwells.slots[:-1]]
    initial = np.bincount(first, weights=panel.weights, minlength=len(labels)) + pseudo_count
    return Process(
        rates,
        transition_rows(stats.jumps, pseudo_count, moves),
        initial / initial.sum(),
        params.emission.with_scales(stats.emission),
        labels,
    )
