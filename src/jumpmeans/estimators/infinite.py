"""JUMP-means for a number of states that is learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from ..arrays import AnyArray, Floats
from ..data.panel import Panel
from ..emissions import Family, Record, marks_states, shows_states
from ..engines import get_engine
from ..errors import PanelError
from ..fit.advice import warn_of_looks
from ..fit.births import Rules, Step, search_states
from ..fit.descent import Descent, Model, descend, descend_with_spread
from ..fit.evidence import evidence, process_behind
from ..fit.levels import at_own_level, begin_levels, find_levels, level_starts, refuse_scanned, units_at_zero
from ..fit.proposals import PROPOSALS, Scene
from ..fit.setup import (
    TOL,
    TOL_AFTER_SAMPLE,
    Data,
    are_auto,
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
    sample_panel,
    start_panel,
    states_and_emission,
    total_weight,
    typical_gap,
)
from ..fit.start import feature_units, row_features, start_emission, start_rows
from ..model.constraints import Constraints
from ..model.dependence import Laid, lay_out
from ..model.levels import Levels
from ..model.objective import Prices
from ..model.params import Params
from ..model.structure import Structure
from ..options import Rule, check_options, choice, count, flag, instance, listed, none
from ..passes import Block, Dwells, Sequences
from ..progress import status
from ..stored import stored
from .explained import explained
from .jump_model import MOST_STATES, REMEDY, SHARED, WHY, JumpModel, check_first, weight
from .read_out import as_data, hold

# ξ_1 per observation. Small: that a birth is no noise is for the check to say.
STATE_COST = 0.015
# ζ of hidden symbols. Between two states a jump is free, among three it is not: at 1, noisy symbols stay at two.
SYMBOL_WEIGHT = 2.0
# Pseudo-counts of symbols are those of so many states, however many there will be.
USUAL_STATES = 20
# The number of states is looked for on no more rows than this; the last descent sees them all.
SEARCH_ROWS = 25_000


@stored
class InfiniteJumpMeans(JumpModel):
    """Trajectories of a Markov jump process whose number of states is learned, from irregular looks at it.

    Minimises the nonparametric objective of JUMP-means (Huggins et al. 2015), in which every state has its price and
    the rows of jump probabilities are drawn to a shared base row. States are born, merged and dropped as long as that
    lowers the objective; a birth must also pass a check that does not reward noise: the log-likelihood of the Markov
    process, after some EM steps, must rise by more than half the logarithm of the number of observations for every
    parameter that the new state adds.

    Parameters
    ----------
    emission : str or list of str
        Family of each value column: "direct" (the label is the state), "categorical", "gaussian",
        "student", "lognormal", "laplace", "poisson", "exponential" or "bernoulli"; or a class of `jumpmeans.emissions`.
    max_states : int
        Most hidden states there can be.
    states : list, optional
        Labels of directly observed states, when some may never have been seen; fixes their order.
    state_cost : float or "auto"
        ξ_1, price of a state; auto: 0.015 for every observation.
    shared_row_weight : float or "auto"
        ξ_2, pull of every row of jump probabilities to the base row; auto: 1, but for states hidden behind symbols a
        fortieth of the observations, for the reason given at `JumpMeans.pseudo_count`.
    prior_time : float or "auto"
        γ, time that each state is taken to have been seen for before; auto: the median gap.
    emission_weight, transition_weight : float or "auto"
        ζ (one for each column) and ξ, as in `JumpMeans`; auto for states hidden behind symbols: ζ = 2.
    objective : "corrected", "printed" or "integrated"
        The objective with the term (K + ξ_2) ln((γ + T) / (K + ξ_2)) and a cost of running dwells (derivation, eq. 11);
        as printed in the paper, with K in place of K + ξ_2 and running dwells free (derivation, eq. 10); or the
        supplement's one with the rows integrated out, in which a state pays ξ_2 for every further state that it is
        followed by (ξ has no part in it).
    proposals : "all", "paper", or a list from "pair", "emissions", "dwells", "merge", "drop"
        Changes of the number of states that are tried: what is entered from one state by a jump to another, the rows
        of a state in two clusters, its short dwells, two states as one, a state given up. "paper" is the first alone.
    check : bool
        Whether births are checked; False is the algorithm of the paper.
    start_states : int
        Number of states to start from.
    structure : Structure, optional
        Moves that may happen, for directly observed states.
    engine, max_iter, tol, random_state, jumps_per_gap, search, first_dwell, refine
        As in `JumpMeans`.
    offsets : "sequence", "group" or None
        Whether people differ in level: x = μ_s + b + noise, an offset b in every gaussian (and, by its logarithms,
        lognormal) column for each sequence, or for each of `panel.groups`. States are then relative to the person.
    offset_sd : float, list of float or "auto"
        τ, standard deviation of the offsets of each column; auto: estimated.

    Attributes
    ----------
    n_states_ : int
        Number of states found.
    objective_params_ : Params
        λ, P and θ of the objective, and π_0, the row that all rows are drawn to, as `base_row`; None for the integrated
        objective.
    path_ : list of Step
        Kind, number of states and objective after the start and after each accepted move.
    trajectories_, objective_, objective_history_, cost_, cost_history_, rates_, transition_probs_, emission_, \
process_, states_, n_iter_, converged_, history_
        As in `JumpMeans`. The objective never rises over the sweeps of the accepted descents.

    Notes
    -----
    The labels of directly observed states are the states: none is born, and what this model adds is the base row and
    γ. The part of the rows for states not yet seen tends to 0 at the fixed point of rows and base row, and is left
    out. Of more than 25,000 rows, the number of states is looked for on some of the sequences (of long ones, on their
    beginning), spread evenly; `path_` then speaks of these, one last descent sees all, and a weight of k need not equal
    k copies.

    The check knows no noise but that of the family it was told: skewed or heavy-tailed readings taken for Gaussian
    ones, or counts taken for measurements, get more states than there are.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> process = jm.Process([0.2, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 4], sds=1))
    >>> panel, _ = jm.simulate(process, 50, 20, random_state=0)
    >>> jm.InfiniteJumpMeans().fit(panel).n_states_
    2
    """

    rules: ClassVar[dict[str, Rule]] = SHARED | {
        "max_states": count(most=MOST_STATES),
        "state_cost": weight,
        "shared_row_weight": weight,
        "prior_time": weight,
        "objective": choice("corrected", "printed", "integrated"),
        "proposals": choice("all", "paper") | listed(choice(*PROPOSALS), f"a list from {list(PROPOSALS)}", least=0),
        "check": flag,
        "start_states": count(most=MOST_STATES),
        "structure": none | instance(Structure),
    }
    n_states_: int
    path_: list[Step]

    def __init__(
        self,
        *,
        emission: Family | Sequence[Family] = "gaussian",
        max_states: int = 64,
        states: Sequence[Any] | None = None,
        state_cost: float | str = "auto",
        shared_row_weight: float | str = "auto",
        prior_time: float | str = "auto",
        emission_weight: float | Sequence[float] | str = "auto",
        transition_weight: float | str = "auto",
        objective: str = "corrected",
        proposals: str | Sequence[str] = "all",
        check: bool = True,
        start_states: int = 1,
        structure: Structure | None = None,
        engine: Any = "threads",
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
        self.emission = emission
        self.max_states = max_states
        self.states = states
        self.state_cost = state_cost
        self.shared_row_weight = shared_row_weight
        self.prior_time = prior_time
        self.emission_weight = emission_weight
        self.transition_weight = transition_weight
        self.objective = objective
        self.proposals = proposals
        self.check = check
        self.start_states = start_states
        self.structure = structure
        self.engine = engine
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.jumps_per_gap = jumps_per_gap
        self.search = search
        self.first_dwell = first_dwell
        self.refine = refine
        self.offsets = offsets
        self.offset_sd = offset_sd

    def fit(self, panel: Any, y: None = None, *, start: InfiniteJumpMeans | None = None) -> Self:
        """Fit to a panel, or to a frame with columns id, time and value.

        Parameters
        ----------
        panel : Panel or frame
        start : fitted InfiniteJumpMeans, optional
            Warm start: the search goes on from the states and parameters of this model, of the same emission and
            objective, instead of from `start_states`; its hyperparameters may be others, and it is left as it is.
        """
        check_options(self, self.rules)
        panel = counted(as_data(panel))
        refuse_scanned(panel, self.offsets)
        if self.objective == "printed" and self.first_dwell == "running":
            raise ValueError(
                "first_dwell must be 'complete' with objective='printed', in which a running dwell costs nothing, "
                "got 'running'."
            )
        labels, blank = self._blank(panel)
        known = self.structure if blank.is_direct else None
        constraints, blank = constrain(known, labels, blank, panel, depends=True)
        laid = depend_by_state(known, panel, labels, constraints)
        prices = self._prices(panel, blank)._replace(first=barred_first(constraints))
        check_first(panel, prices.first)
        if start is not None:
            self._check_start(start)
        warn_of_looks(panel, blank, labels, constraints.moves)
        with status("looking for states"):
            if blank.is_direct:
                run, model, path = self._fit_labels(panel, laid, blank, prices, constraints, labels)
            else:
                run, model, path = self._fit_hidden(panel, blank, prices, start)
        M = len(run.params.rates)
        names = labels if blank.is_direct else np.arange(M)
        sequences, few = self._hold(laid, run.params.emission, names), start_panel(panel, model.constraints)
        sample = None
        if few is not panel and run.levels is None:
            sample = self._hold(lay_out(laid.effects, few), run.params.emission, names)
        with status("closing steps"):
            self._publish(panel, laid, sequences.at(run.levels), run, model, names, sample, n_states_=M, path_=path)
        return self

    def _refitted(self, panel: Panel, options: dict[str, Any]) -> Self:
        if not self._is_hidden():
            return self._again(options | {"states": self.states_.tolist()}).fit(panel)
        # births alone may be proposed, and there is no room for any: the number of states stays
        new = self._again(options | {"max_states": self.n_states_, "proposals": ["pair"], "check": False})
        new._keeps_order = True
        new.fit(panel, start=self)
        return new

    def hyperparameters(self, panel: Any) -> dict[str, Any]:
        """The prices of the objective on a panel, by name: numbers as given, and what "auto" comes to."""
        check_options(self, self.rules)
        panel = counted(as_data(panel))
        _, blank = self._blank(panel)
        prices = self._prices(panel, blank)
        return {
            "state_cost": prices.state_cost,
            "shared_row_weight": prices.shared_row,
            "prior_time": prices.prior_time,
            "emission_weight": one_or_list(prices.emission),
            "transition_weight": prices.transition,
        }

    def _blank(self, panel: Data) -> tuple[AnyArray, Record]:
        usual = USUAL_STATES if self._is_hidden() else None
        if usual is not None and (self.states is not None or marks_states(self.emission)):
            raise ValueError(
                "states must be given only for emission 'direct', nor can a 'marker' name them: hidden states whose "
                "number is learned are numbered; use JumpMeans or EM."
            )
        return states_and_emission(panel, self.emission, usual, self.states, "auto")

    def _check_start(self, start: InfiniteJumpMeans) -> None:
        if not isinstance(start, InfiniteJumpMeans) or not hasattr(start, "objective_params_"):
            raise ValueError(f"start must be a fitted InfiniteJumpMeans, got {start!r}; call its fit first.")
        if not self._is_hidden():
            raise ValueError("start must be None for directly observed states, whose number is known; leave it out.")
        for name in ("emission", "objective"):
            mine, its = getattr(self, name), getattr(start, name)
            if mine != its:
                raise ValueError(f"start must have the same {name}, got {its!r} for {mine!r}.")
        if start.n_states_ > self.max_states:
            raise ValueError(f"start must have at most max_states={self.max_states} states, got {start.n_states_}.")

    def _is_hidden(self) -> bool:
        return not shows_states(self.emission)

    def _hold(self, laid: Laid, emission: Record, labels: AnyArray | None = None) -> Sequences:
        return hold(self.engine, laid.panel, emission, labels, laid.z)

    def _model(self, prices: Prices, constraints: Constraints) -> Model:
        search = make_search(self.jumps_per_gap, self.search, self.first_dwell, constraints.moves)
        return Model(prices, constraints, search._replace(free_end=int(not prices.running)))

    def _fit_labels(
        self, panel: Data, laid: Laid, blank: Record, prices: Prices, constraints: Constraints, labels: AnyArray
    ) -> tuple[Descent, Model, list[Step]]:
        """Directly observed states: nothing is born."""
        moves = constraints.moves
        model = self._model(prices, constraints)
        M = len(moves)
        few = measured_panel(panel)
        start = Params(
            np.asarray(moves.any(axis=1)) / typical_gap(few),
            start_rows(blank, blank.encode(few), few, moves, "data"),
            blank,
            np.full(M, 1.0 / M),
            laid.effects,
        )
        with explained(laid.panel, WHY, REMEDY):
            run = descend(self._hold(laid, blank, labels), start, model, self.max_iter, or_auto(self.tol, TOL))
        return run, model, [Step("start", M, run.cost.total)]

    def _fit_hidden(
        self, panel: Data, blank: Record, prices: Prices, start: InfiniteJumpMeans | None
    ) -> tuple[Descent, Model, list[Step]]:
        """Hidden states: look for their number, on a sample if there is much, then descend on all."""
        if self.structure is not None:
            raise ValueError(
                "structure must be None for hidden states, whose number is not known before; use JumpMeans(n_states, "
                "structure=...), or emission='direct'."
            )
        if panel.known is not None:
            raise PanelError(
                "states of rows must not be known (true_state, sets) where hidden states are looked for, which have no "
                "names yet; use JumpMeans(n_states, states=[...])."
            )
        few = sample_panel(panel, SEARCH_ROWS)
        share = total_weight(few) / max(total_weight(panel), 1e-300)
        # what grows with the data is, on a sample, as much smaller
        pull = share if isinstance(self.shared_row_weight, str) and blank.only_symbols else 1.0
        less = prices._replace(state_cost=share * prices.state_cost, shared_row=pull * prices.shared_row)
        params = self._first_params(few, blank, prices) if start is None else start.objective_params_
        params = replace(params, emission=params.emission.with_counts_of(blank, share))
        with explained(few, WHY, REMEDY):
            run, path = self._search(few, params, less)
        model = self._model(prices, every_move(len(run.params.rates)))
        if few is panel and run.levels is None:
            return run, model, path
        params = replace(run.params, emission=run.params.emission.with_counts_of(blank, 1.0))
        sequences, timing = hold(self.engine, panel, params.emission), run.timing.restarted()
        levels = run.levels
        if self.offsets is not None and levels is not None and few is not panel and isinstance(panel, Panel):
            own = replace(units_at_zero(panel, self.offsets, levels.sds), noises=levels.noises, fixed=levels.fixed)
            levels = find_levels(sequences.at(own), process_behind(run, model.constraints)).levels
        model, sequences = model.at(levels), sequences.at(levels)
        with explained(panel, WHY, REMEDY):
            if few is not panel:
                tol = or_auto(self.tol, TOL_AFTER_SAMPLE)
                run = descend(sequences, params, model, self.max_iter, tol, timing=timing)
            run, model = descend_with_spread(sequences, run, model, self.max_iter, or_auto(self.tol, TOL))
        return run, model, path

    def _first_params(self, panel: Panel, blank: Record, prices: Prices) -> Params:
        """`start_states` states to start from, found in the observations."""
        M = min(self.start_states, self.max_states)
        blank = blank.take(np.zeros(M, np.int64))
        x = blank.encode(panel)
        check_distinct(panel, blank, x, "start_states")
        return Params(
            np.full(M, 1.0 / typical_gap(panel)) if M > 1 else np.zeros(1),
            np.ones((M, M)) if prices.integrated else np.full((M, M), 1.0 / M),
            start_emission(blank, x, panel, "data", np.random.default_rng(self.random_state), first=True),
            None if prices.integrated else np.full(M, 1.0 / M),
        )

    def _search(self, panel: Panel, params: Params, prices: Prices) -> tuple[Descent, list[Step]]:
        x = params.emission.encode(panel)
        block = Block.of(panel, x)
        groups = level_starts(begin_levels(panel, x, params.emission, self.offsets, self.offset_sd))
        held, n = Sequences.hold(get_engine(self.engine), block), total_weight(panel)
        rules = Rules(self._kinds(), self.max_states, self.check, self.max_iter, or_auto(self.tol, TOL))

        def seen(own: Levels | None) -> tuple[Block, Floats]:
            y = at_own_level(panel, x, own)
            features = row_features(params.emission, y, panel) / feature_units(params.emission, y, panel)
            return replace(block, x=y), features

        def search(levels: Levels | None) -> tuple[Descent, list[Step]]:
            model = self._model(prices, every_move(len(params.rates))).at(levels)
            scene = Scene(
                block,
                Dwells.blank(block),
                params,
                np.zeros((0, 0)),  # of the levels that the search begins with
                1.0 / typical_gap(panel),
                lambda n: model._replace(constraints=every_move(n)),
                seen=seen,
            )
            return search_states(held.at(levels), scene, rules, n)

        found = [search(own[0]) for own in groups]
        if len(found) == 1:
            return found[0]
        return max(found, key=lambda one: evidence(held, one[0], every_move(len(one[0].params.rates)), n))

    def _kinds(self) -> tuple[str, ...]:
        if isinstance(self.proposals, str):
            return tuple(PROPOSALS) if self.proposals == "all" else ("pair",)
        return tuple(self.proposals)

    def _prices(self, panel: Data, blank: Record) -> Prices:
        """Hyperparameters as numbers; "auto" ones follow the data's own units."""
        few = measured_panel(panel)
        symbols = blank.only_symbols
        pull = even_jumps(panel, blank) * (blank.n_states - 1) if symbols else 1.0
        shared = or_auto(self.shared_row_weight, pull)
        emission = emission_weights(self.emission_weight, blank, blank.encode(few), few)
        if symbols:
            emission = np.where(are_auto(self.emission_weight, len(emission)), SYMBOL_WEIGHT * emission, emission)
        printed, integrated = self.objective == "printed", self.objective == "integrated"
        xi = or_auto(self.transition_weight, 1.0)
        # behind symbols the pull stands for even counts, and is no number of earlier dwells
        count = 1.0 if symbols else shared
        return Prices(
            transition=1.0 if integrated else xi,
            emission=emission,
            prior_count=0.0 if printed else count,
            prior_time=or_auto(self.prior_time, typical_gap(few)),
            jump_pseudo_count=0.0,
            state_cost=or_auto(self.state_cost, STATE_COST * total_weight(panel)),
            shared_row=shared,
            running=not printed,
            integrated=integrated,
        )


def every_move(n: int) -> Constraints:
    """Every move between n states, none of them known."""
    return Constraints.of(~np.eye(n, dtype=bool))
