"""JUMP-means for a given number of states."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from ..arrays import AnyArray, Bools, Floats
from ..data.panel import Panel
from ..emissions import Family, Record
from ..engines.scanned import ScannedPanel
from ..fit.advice import warn_of_looks
from ..fit.ascent import opened
from ..fit.descent import Descent, Model, descend, descend_with_spread, sweeps
from ..fit.evidence import likelihood_behind
from ..fit.levels import at_own_level, begin_levels, find_levels, level_starts, refuse_scanned
from ..fit.refine import Decoder, closing_prices
from ..fit.setup import (
    TOL,
    TOL_AFTER_SAMPLE,
    Data,
    are_auto,
    are_distinct,
    barred_first,
    check_distinct,
    constrain,
    counted,
    depend_by_state,
    emission_weights,
    even_jumps,
    make_search,
    measured_panel,
    one_or_list,
    or_auto,
    share_of,
    start_panel,
    states_and_emission,
    typical_gap,
)
from ..fit.start import given_process, named_emission, start_emission, start_rows, with_effects
from ..fit.trials import STARTS, SWEEPS, best_of, trial
from ..model.constraints import Constraints
from ..model.dependence import Laid, lay_out
from ..model.levels import Levels
from ..model.objective import Prices
from ..model.params import Params
from ..model.process import Process
from ..model.structure import Structure
from ..options import Rule, auto, check_options, choice, count, instance, listed, none, price
from ..passes import NoPathError, Sequences
from ..progress import status
from ..stored import stored
from .explained import explained
from .jump_model import MOST_STATES, REMEDY, SHARED, WHY, JumpModel, check_first, weight
from .read_out import as_data, hold

# What a model of known parameters still has to be told.
PROCESS_OPTIONS = {"transition_weight", "emission_weight", "jumps_per_gap", "search", "first_dwell", "engine"}


@stored
class JumpMeans(JumpModel):
    """Trajectories of a Markov jump process with a given number of states, from irregular looks at it.

    Minimises the JUMP-means objective (Huggins et al. 2015): costs of observations, jumps and dwells whose
    least value is at the mean dwell time, so that trajectories do not degenerate as those of
    maximum likelihood do.

    Parameters
    ----------
    n_states : int, optional
        M. May be left out when the states are observed directly: their labels decide.
    emission : str or list of str
        Family of each value column: "direct" (the label is the state), "marker" (the label names some states),
        "categorical", "gaussian", "student", "lognormal", "laplace", "poisson", "exponential" or "bernoulli"; or a
        class of `jumpmeans.emissions`.
    states : list, optional
        Labels of directly observed states, when some may never have been seen; fixes their order. Names of hidden
        states, which go to them in the order of their values, unless a "marker" or fixed entries tell them apart.
    transition_weight : float or "auto"
        ξ, weight of -ln p of each jump; auto: 1.
    emission_weight : float, list of float or "auto"
        ζ of each column, some of which may be "auto"; auto: 1 for labels, counts, exponential and 0/1 readings,
        8/noise² for gaussian columns (for lognormal ones by their logarithms), 1/noise for laplace and 2 for student
        columns, whose cost is in units of the noise; the noise is taken from successive differences.
    prior_dwell_count, prior_dwell_time : float or "auto"
        ξ_λ and μ_λ: each state starts as if it had shown so many dwells of this length; auto: 1 of the median gap.
    pseudo_count : float, pair of floats or "auto"
        α and α_e, added to the count of every allowed jump and of every symbol (a pair sets them apart); auto: 0.01,
        but for states hidden behind symbols half and all of the mean count, without which hard assignment
        makes noisy symbols look certain. Closing EM steps always use 0.01, or 3 where symbols hide the states.
    structure : Structure, optional
        What is known: moves that may happen, rates and emission entries, the first state.
    start : Process or fitted model, optional
        Where to start: a process, or anything with `process_` such as a fitted `EM`. Families and labels are then its
        own, and there is one start.
    engine : "threads", "dask", "cuda" or an engine such as `jumpmeans.engines.Threads(n_jobs=2)`
    n_init : int or "auto"
        Number of starts, each followed to its end, of which the least objective wins; auto: 1 for directly observed
        states, else 3, of which only the lowest after 5 sweeps goes on. A single measured column starts at its
        quantiles first, then from clusterings of its values.
    init : "data" or "noise"
        Start from a clustering of the observations, or from nearly equal states as in the paper.
    max_iter, tol : int, float or "auto"
        Sweeps at most, and the relative fall of the objective below which a fit has converged; auto: 1e-9, but 1e-6 on
        panels of more than 100,000 rows, which start on a sample.
    random_state : int, Generator or None
    jumps_per_gap : int or "auto"
        Candidate jumps between two successive rows; auto: as many as the longest allowed detour needs.
    search : "exact" or "beam"
        The exact decoder, or the paper's variant that creates and removes candidates between sweeps.
    first_dwell : "complete" or "running"
        Whether the first dwell is costed as complete, as in the paper, or as one whose start was not seen.
    refine : int, "auto" or "converged"
        Closing EM steps, from the fitted parameters, for `process_`; the last decode then uses its rates, jumps and
        emission, and behind symbols a state shows what is expected where trajectories are in it. 0 is the algorithm of
        the paper; auto: 20 for directly observed states, 10 for measurements, 100 for symbols; "converged" goes on to
        the maximum of the likelihood.
    offsets : "sequence", "group" or None
        Whether people differ in level: x = μ_s + b + noise, an offset b in every gaussian (and, by its logarithms,
        lognormal) column for each sequence, or for each of `panel.groups`. States are then relative to the person.
    offset_sd : float, list of float or "auto"
        τ, standard deviation of the offsets of each column; auto: estimated.

    Attributes
    ----------
    trajectories_ : Trajectories
        Best trajectories under the fitted parameters (those of `process_` after closing EM steps, else those of
        the objective); `decode` of the same panel gives the same.
    objective_, objective_history_ : float, (sweeps,)
        J at the end and after each sweep; never rises.
    cost_, cost_history_ : Cost, list of Cost
        J by its named terms, at the end and after each sweep.
    process_ : Process
        The Markov process that everything speaks of, the objective apart.
    rates_, transition_probs_, emission_ : (M,), (M, M), Record
        Its λ, P and θ.
    objective_params_ : Params
        λ, P and θ of the objective.
    states_ : (M,)
        Labels of the states: those observed, or 0, 1, ... in the order of their values.
    n_iter_, converged_ : int, bool
        Sweeps of the best start, and whether the objective came to rest. This says nothing of `process_`: its closing
        steps are so many as `refine` says.
    history_ : History
        J after each sweep of the best start with the wall and CPU time it took.

    Notes
    -----
    With `Structure(covariates=...)` the rate of leaving a state is λ exp(β · z), and P is the same for all. A dwell
    costs h of the time that it took by the clock of its state, ∫ λ exp(β · z(u)) du; the decoder is as exact as ever,
    and J never rises. λ and its prior are those at the mean of the covariates. Closing EM steps go on from there.

    A sequence with one row has no jump and adds to the emission alone. One without any value follows the
    cheapest path through its window and adds its dwells like any other.

    Panels of more than 100,000 rows are started on a sample of 25,000, and so are the closing steps; sweeps and steps
    over all rows follow. A weight of k is then close to k copies of a sequence, but no longer the same.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> panel = jm.datasets.load_edss()
    >>> model = jm.JumpMeans(emission="direct").fit(panel)
    >>> model.states_
    array([1, 2, 3])
    """

    rules: ClassVar[dict[str, Rule]] = SHARED | {
        "n_states": none | count(most=MOST_STATES),
        "prior_dwell_count": weight,
        "prior_dwell_time": weight,
        "pseudo_count": weight | listed(price(), "a pair of them", 2, 2),
        "structure": none | instance(Structure),
        "n_init": auto | count(),
        "init": choice("data", "noise"),
    }

    def __init__(
        self,
        n_states: int | None = None,
        *,
        emission: Family | Sequence[Family] = "gaussian",
        states: Sequence[Any] | None = None,
        transition_weight: float | str = "auto",
        emission_weight: float | Sequence[float] | str = "auto",
        prior_dwell_count: float | str = "auto",
        prior_dwell_time: float | str = "auto",
        pseudo_count: float | str = "auto",
        structure: Structure | None = None,
        start: Any = None,
        engine: Any = "threads",
        n_init: int | str = "auto",
        init: str = "data",
        max_iter: int = 300,
        tol: float | str = "auto",
        random_state: Any = 0,
        jumps_per_gap: int | str = "auto",
        search: str = "exact",
        first_dwell: str = "complete",
        refine: int | str = "auto",
        offsets: str | None = None,
        offset_sd: float | Sequence[float] | str = "auto",
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
        self.start = start
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
        self.offsets = offsets
        self.offset_sd = offset_sd

    @classmethod
    def from_process(cls, process: Process, **options: Any) -> Self:
        """A model of known parameters: decodes, predicts and plots without a fit.

        Parameters
        ----------
        process : Process
            Rates from the literature, the truth of a simulation, the process of another model.
        options : `transition_weight`, `emission_weight`, `jumps_per_gap`, `search`, `first_dwell`, `engine`
            As of a fit; prices left to us are those that a fit decodes with after its closing steps.

        Examples
        --------
        >>> import jumpmeans as jm
        >>> process = jm.Process([0.1, 0.3], [[0, 1], [1, 0]], states=["well", "ill"])
        >>> model = jm.JumpMeans.from_process(process)
        >>> panel = jm.Panel.from_arrays([0.0, 2.0, 5.0], ["well", None, "ill"], ids=[7, 7, 7])
        >>> model.decode(panel).states
        array(['well', 'ill'], dtype='<U4')
        """
        if not isinstance(process, Process):
            raise ValueError(f"process must be a jumpmeans.Process, got {type(process).__name__}.")
        odd = set(options) - PROCESS_OPTIONS
        if odd:
            raise ValueError(f"options of from_process must be among {sorted(PROCESS_OPTIONS)}, got {sorted(odd)}.")
        families = [type(column) for column in process.emission.columns]
        named = process.emission.names_states
        model = cls(
            None if named else len(process.rates),
            emission=families[0] if len(families) == 1 else families,
            states=process.states.tolist() if named else None,
            **options,
        )
        check_options(model, model.rules)
        given = model.emission_weight
        are_auto(given, len(families))  # refuses a list of another length
        prices = Prices(
            or_auto(model.transition_weight, 1.0),
            np.ones(len(families))
            if isinstance(given, str)
            else np.array(np.broadcast_to(given, len(families)), float),
            prior_count=0.0,
            prior_time=0.0,
            jump_pseudo_count=0.0,
        )
        prices = closing_prices(prices, process.emission, model.transition_weight, given)
        search = make_search(model.jumps_per_gap, model.search, model.first_dwell, process.transition_probs > 0)
        model.process_, model.states_ = process, process.states
        model._decoder_ = Decoder.of(process, prices, search)
        return model

    def fit(self, panel: Any, y: None = None) -> Self:
        """Fit to a panel, or to a frame with columns id, time and value."""
        check_options(self, self.rules)
        panel = counted(as_data(panel))
        refuse_scanned(panel, self.offsets)
        given = None if self.start is None else given_process(self.start, self.n_states)
        labels, blank = self._blank(panel, given)
        constraints, blank = constrain(self.structure, labels, blank, panel, depends=True)
        search = make_search(self.jumps_per_gap, self.search, self.first_dwell, constraints.moves)
        laid = depend_by_state(self.structure, panel, labels, constraints)
        sequences = hold(self.engine, laid.panel, blank, labels, laid.z)
        prices = self._prices(panel, blank)._replace(first=barred_first(constraints))
        check_first(panel, prices.first)
        model = Model(prices, constraints, search)
        warn_of_looks(panel, blank, labels, constraints.moves)
        few = start_panel(panel, constraints) if given is None and self.offsets is None else panel
        run = sample = None
        if few is not panel and are_distinct(blank, blank.encode(few)):
            share = share_of(few, panel)
            seen = lay_out(laid.effects, few)
            sample = hold(self.engine, seen.panel, blank, labels, seen.z)
            less = model._replace(prices=prices._replace(jump_pseudo_count=self._even_jumps(panel, blank, share)))
            # what the sample does not show may be impossible under what it says: then all rows are started from, which
            # also tells of a row that nothing explains
            with status("all rows"), suppress(NoPathError):
                found = self._best_start(few, seen, sample, None, blank.with_counts_of(blank, share), less, labels)
                params = replace(found.params, emission=found.params.emission.with_counts_of(blank, 1.0))
                run = descend(
                    sequences, params, model, self.max_iter, or_auto(self.tol, TOL_AFTER_SAMPLE),
                    timing=found.timing.restarted(),
                )  # fmt: skip
        if run is None:
            with explained(laid.panel, WHY, REMEDY):
                sample, run = None, self._best_start(panel, laid, sequences, given, blank, model, labels)
        model = model.at(run.levels)
        with status("closing steps"):
            self._publish(panel, laid, sequences.at(run.levels), run, model, labels, sample)
        return self

    def _best_start(
        self, data: Data, laid: Laid, sequences: Sequences, given: Process | None, blank: Record, model: Model,
        labels: AnyArray,
    ) -> Descent:  # fmt: skip
        """The descent that ends lowest, of those from all starts; of several spreads of offsets, the likeliest."""
        panel = measured_panel(data) if isinstance(data, ScannedPanel) else data
        x = blank.encode(panel)
        groups = level_starts(begin_levels(panel, x, blank, self.offsets, self.offset_sd))
        if given is not None and self.offsets is not None:
            groups = [[find_levels(sequences.at(own[-1]), given).levels] for own in groups]
        found = [self._best_at(own, panel, laid, sequences, given, blank, x, model, labels) for own in groups]
        if len(found) == 1:
            return found[0]
        return max(found, key=lambda run: likelihood_behind(sequences, run, model.constraints)[0])

    def _best_at(
        self, levels: list[Levels | None], panel: Panel, laid: Laid, sequences: Sequences, given: Process | None,
        blank: Record, x: Floats, model: Model, labels: AnyArray,
    ) -> Descent:  # fmt: skip
        """The descent that ends lowest, of those from all starts under offsets of one spread."""
        model, tol = model.at(levels[0]), or_auto(self.tol, TOL)
        runs = []
        for own in levels:
            at = sequences.at(own)
            if given is None:
                starts = self._starts(panel, laid, blank, x, own, model.constraints.moves, labels)
            else:
                known = with_effects(given, laid.effects, given.emission)
                starts = [self._given_params(known, panel, laid, blank, model.constraints, at)]
            descents = [sweeps(at, start, model, self.max_iter, tol) for start in starts]
            runs.append(best_of(descents, lambda run: run.cost.total, trial(self.n_init, SWEEPS)))
        best = min(runs, key=lambda run: run.cost.total)
        return descend_with_spread(sequences, best, model, self.max_iter, tol)[0]

    def _starts(
        self, panel: Panel, laid: Laid, blank: Record, x: Floats, levels: Levels | None, moves: Bools, labels: AnyArray
    ) -> list[Params]:
        """Parameters to start from, all people at these levels."""
        check_distinct(panel, blank, x)
        rng, x = np.random.default_rng(self.random_state), at_own_level(panel, x, levels)
        rates, rows = np.asarray(moves.any(axis=1)) / typical_gap(panel), start_rows(blank, x, panel, moves, self.init)
        found = []
        for k in range(self._n_starts(blank)):
            emission = start_emission(blank, x, panel, self.init, rng, k == 0, self.states is not None)
            found.append(Params(rates, rows, named_emission(emission, x, panel, labels), effects=laid.effects))
        return found

    def _refitted(self, panel: Panel, options: dict[str, Any]) -> Self:
        new = self._again(options | {"start": self.process_})
        new._keeps_order = True
        return new.fit(panel)

    def _blank(self, panel: Data, given: Process | None) -> tuple[AnyArray, Record]:
        """Labels of the states, and an emission that knows nothing of them yet."""
        if given is None:
            return states_and_emission(panel, self.emission, self.n_states, self.states, self.pseudo_count)
        families = [type(column) for column in given.emission.columns]
        states = given.states.tolist() if given.emission.names_states else None
        blank = states_and_emission(panel, families, len(given.rates), states, self.pseudo_count)[1]
        return given.states, blank

    def _given_params(
        self, given: Process, panel: Panel, laid: Laid, blank: Record, constraints: Constraints, sequences: Sequences
    ) -> Params:
        """Parameters to start from: those given, with the emission that their trajectories have under our priors."""
        given = opened(given, constraints, typical_gap(panel))
        known = JumpMeans.from_process(given, engine=self.engine, jumps_per_gap=self.jumps_per_gap)
        check_first(panel, known._decoder_.prices.first)
        with explained(laid.panel, WHY, REMEDY):
            stats = known._decoder_.decode(sequences)[1]
        return Params(given.rates, given.transition_probs, blank.update(stats.emission), effects=given.effects)

    def hyperparameters(self, panel: Any) -> dict[str, Any]:
        """The prices of the objective on a panel, by name: numbers as given, and what "auto" comes to."""
        check_options(self, self.rules)
        panel = counted(as_data(panel))
        _, blank = self._blank(panel, None if self.start is None else given_process(self.start, self.n_states))
        prices = self._prices(panel, blank)
        return {
            "transition_weight": prices.transition,
            "emission_weight": one_or_list(prices.emission),
            "prior_dwell_count": prices.prior_count,
            "prior_dwell_time": or_auto(self.prior_dwell_time, typical_gap(measured_panel(panel))),
        }

    def _even_jumps(self, panel: Data, blank: Record, share: float = 1.0) -> float:
        """Pseudo-count of each jump, for a `share` of the panel."""
        pseudo_count = self.pseudo_count if isinstance(self.pseudo_count, str) else np.ravel(self.pseudo_count)[0]
        return or_auto(pseudo_count, even_jumps(panel, blank, share))

    def _prices(self, panel: Data, blank: Record) -> Prices:
        """Hyperparameters as numbers; "auto" ones follow the data's own units."""
        few = measured_panel(panel)
        dwells = or_auto(self.prior_dwell_count, 1.0)
        return Prices(
            transition=or_auto(self.transition_weight, 1.0),
            emission=emission_weights(self.emission_weight, blank, blank.encode(few), few),
            prior_count=dwells,
            prior_time=dwells * or_auto(self.prior_dwell_time, typical_gap(few)),
            jump_pseudo_count=self._even_jumps(panel, blank),
        )

    def _n_starts(self, blank: Record) -> int:
        if not isinstance(self.n_init, str):
            return int(self.n_init)
        return 1 if blank.is_direct or blank.n_states == 1 else STARTS
