"""Maximum likelihood of the process by expectation maximisation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..arrays import Floats
from ..data.panel import Panel
from ..emissions import Family, Record
from ..engines.scanned import ScannedPanel
from ..estimators.explained import explained
from ..estimators.frail import Frailties
from ..estimators.jump_model import MOST_STATES
from ..estimators.last_value import check_fitted
from ..estimators.people import People
from ..estimators.ratios import hazard_ratios, require_effects
from ..estimators.read_out import ReadOut, all_at_once, as_data, hold
from ..estimators.summary import Occupancy
from ..fit.advice import warn_of_looks
from ..fit.ascent import Climb, Task, opened, steps, warn_if_endless, warn_if_unbounded, with_best_levels
from ..fit.em_start import doubted, hidden_start
from ..fit.frailty import climb_with_frailty
from ..fit.information import observed_information
from ..fit.levels import OFFSET_SD, OFFSETS, at_own_level, begin_levels, level_starts, refuse_scanned, units_of
from ..fit.setup import (
    Data,
    are_distinct,
    check_distinct,
    constrain,
    measured_panel,
    or_auto,
    start_panel,
    states_and_emission,
    typical_gap,
)
from ..fit.spreads import climb_without_spreads
from ..fit.start import given_process, named_emission, with_effects
from ..fit.trials import STARTS, STEPS, best_of, trial
from ..history import History
from ..model.constraints import Constraints, split
from ..model.dependence import Laid, depend, lay_out
from ..model.effects import Effects
from ..model.frailty import MOST_VARIANCE, Frailty
from ..model.levels import Levels
from ..model.process import Process
from ..model.structure import Structure
from ..model.updates import uniform_rows
from ..options import (
    Rule,
    auto,
    check_options,
    count,
    families,
    flag,
    instance,
    is_finite,
    none,
    number,
    seed,
    state_labels,
)
from ..passes import NoPathError
from ..stored import stored
from .sureness import Sureness

WHY = "the allowed moves"
FRAILTY_VARIANCE = auto | Rule(
    f"a number from 0 to {MOST_VARIANCE:g}", lambda value: is_finite(value) and 0 <= value <= MOST_VARIANCE
)


@stored
class EM(ReadOut):
    """Maximum likelihood of a Markov jump process from irregular looks at it, its states seen or hidden.

    Expectation maximisation: expected times and jumps between the rows, given all of them, then the process that
    makes these most likely. Steps are accelerated; the likelihood never falls.

    Parameters
    ----------
    n_states : int, optional
        M. May be left out when the states are observed directly, or with `start`.
    emission : str or list of str
        Family of each value column: "direct" (the label is the state), "categorical", "gaussian",
        "student", "lognormal", "laplace", "poisson", "exponential" or "bernoulli"; or a class of `jumpmeans.emissions`.
    states : list, optional
        Labels of directly observed states, when some may never have been seen; fixes their order. Names of hidden
        states, which go to them in the order of their values, unless a "marker" or fixed entries tell them apart.
    structure : Structure, optional
        What is known: moves that may happen (all others keep a rate of exactly 0), rates, emission entries, the first
        state.
    start : Process or fitted model, optional
        Where to start: a process, or anything with `process_` such as a fitted `JumpMeans`. Families and labels are
        then its own. By default all moves are equally likely, rates are 1 / the median gap, and hidden states
        start from a clustering of the observations; behind symbols every second further start, from nearly equal
        states.
    engine : "threads", "dask", "cuda" or an engine such as `jumpmeans.engines.Threads(n_jobs=2)`
    n_init : int or "auto"
        Number of starts, each followed to its end, of which the highest likelihood wins; auto: 1 for directly observed
        states and for those behind symbols; for measurements 3, of which only the likeliest after 10 steps goes on.
    max_iter, tol : int, float
        Steps at most, and the relative rise of the log-likelihood by an EM step below which a fit has converged.
    accelerate : bool
        Whether to leap ahead between EM steps (see Notes); without it a fit is plain EM.
    random_state : int, Generator or None
    offsets : "sequence", "group" or None
        Whether people differ in level: x = μ_s + b + noise, a random intercept b in every gaussian (and, by its
        logarithms, lognormal) column for each sequence, or for each of `panel.groups`. States are then relative to the
        person.
    offset_sd : float, list of float or "auto"
        τ, standard deviation of the offsets of each column; auto: estimated, and 0 where none is as likely as any.
    frailty : "sequence", "group" or None
        Whether people differ in how fast they move: all rates of each sequence, or of each of `panel.groups`, are
        multiplied by a gamma variable of mean 1. The likelihood is integrated over it by quadrature. Not with offsets.
    frailty_variance : float or "auto"
        v, variance of these multipliers; auto: estimated, 0 included.

    Attributes
    ----------
    process_ : Process
        The most likely process.
    rates_, transition_probs_, emission_ : (M,), (M, M), Record
        Its parts.
    states_ : (M,)
        Labels of the states: those observed, or 0, 1, ... in the order of their values.
    log_likelihood_ : float
        Of the panel under `process_`, the first state's probability included (with Structure(initial="given") it is
        that given the first state); sequences count by their weights.
    history_ : History
        Log-likelihood after each step of the best start, with its wall and CPU times; never falls. With frailty, of
        the steps from the best fit without.
    frailties_, frailty_variance_ : frame, float
        Posterior mean and standard deviation of the multiplier of each person, and v.
    n_iter_, converged_ : int, bool

    Notes
    -----
    EM has no trajectories of its own: `predict` and `predict_value(method="trajectory")` take the most probable state
    of each row by itself, so that successive rows may show a move that is not allowed; `decode` gives the trajectories
    that err least, which do not.

    Leaps are quasi-Newton steps (Jamshidian and Jennrich 1997) that cost one pass over the data, as an EM step does.
    They are kept only if the likelihood does not fall, and need a tenth of the steps or fewer.

    Spreads are kept above 5 % of the column's noise, taken from successive differences: without
    a bound, a state that shrinks onto one reading has infinite likelihood.

    Panels of more than 100,000 rows are started on a sample of 25,000; all steps that count go over all rows.

    The likelihood may rise without end with a rate: a state never seen twice in a row may be left at any
    speed. The fit then ends with a warning that names the state.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> panel = jm.datasets.load_edss()
    >>> model = jm.comparators.EM(emission="direct").fit(panel)
    >>> model.states_
    array([1, 2, 3])
    """

    no_refit: ClassVar[str] = ""
    log_likelihood_: float
    history_: History
    n_iter_: int
    converged_: bool
    rules: ClassVar[dict[str, Rule]] = {
        "n_states": none | count(most=MOST_STATES),
        "emission": families,
        "states": state_labels,
        "structure": none | instance(Structure),
        "n_init": auto | count(),
        "max_iter": count(),
        "tol": number(least=0),
        "accelerate": flag,
        "random_state": seed,
        "offsets": OFFSETS,
        "offset_sd": OFFSET_SD,
        "frailty": OFFSETS,
        "frailty_variance": FRAILTY_VARIANCE,
    }

    def __init__(
        self,
        n_states: int | None = None,
        *,
        emission: Family | Sequence[Family] = "gaussian",
        states: Sequence[Any] | None = None,
        structure: Structure | None = None,
        start: Any = None,
        engine: Any = "threads",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-8,
        accelerate: bool = True,
        random_state: Any = 0,
        offsets: str | None = None,
        offset_sd: float | Sequence[float] | str = "auto",
        frailty: str | None = None,
        frailty_variance: float | str = "auto",
    ) -> None:
        self.n_states = n_states
        self.emission = emission
        self.states = states
        self.structure = structure
        self.start = start
        self.engine = engine
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate
        self.random_state = random_state
        self.offsets = offsets
        self.offset_sd = offset_sd
        self.frailty = frailty
        self.frailty_variance = frailty_variance

    def fit(self, panel: Any, y: None = None) -> Self:
        """Fit to a panel, or to a frame with columns id, time and value."""
        check_options(self, self.rules)
        panel = as_data(panel)
        given = None if self.start is None else given_process(self.start, self.n_states)
        if given is not None:
            labels, blank = given.states, given.emission.with_pseudo_count(0.0)
        else:
            labels, blank = states_and_emission(panel, self.emission, self.n_states, self.states, "auto")
        constraints, blank = constrain(self.structure, labels, blank, panel, depends=True)
        warn_of_looks(panel, blank, labels, constraints.moves)
        refuse_scanned(panel, self.offsets)
        refuse_scanned(panel, self.frailty, "frailty")
        if self.frailty is not None and self.offsets is not None:
            raise ValueError(
                f"offsets must be None with frailty={self.frailty!r}, got {self.offsets!r}; people may differ in level "
                "or in rates."
            )
        units = None if self.frailty is None else units_of(panel, self.frailty, "frailty")
        measured = measured_panel(panel)
        if isinstance(panel, ScannedPanel):
            panel.refuse_dependence(self.structure)
            laid, here = Laid(panel, np.empty(0, np.int64)), measured  # type: ignore[arg-type]
        else:
            laid, here = depend(self.structure, panel, labels, constraints), panel
        effects = laid.effects
        task = self._task(laid, constraints, blank, measured, labels)._replace(shortest_gap=panel.shortest_gap)
        few = start_panel(panel, constraints) if given is None and self.offsets is None else panel
        begun = begin_levels(here, blank.encode(here), blank, self.offsets, self.offset_sd)
        levels = [own[0] for own in level_starts(begun)]
        run = None
        if given is not None:
            start = opened(with_effects(given, effects, blank), constraints, typical_gap(measured))
            starts = [([start], own) for own in levels]
        elif few is panel or not are_distinct(blank, blank.encode(few)):
            starts = [(self._starts(here, blank, constraints, labels, effects, own), own) for own in levels]
        else:
            seen = lay_out(effects, few)
            sample = self._task(seen, constraints, blank, few, labels)
            # what the sample does not show may be impossible under what it says: then all rows are started from, which
            # also tells of a row that nothing explains
            with suppress(NoPathError):
                found = self._best_climb(sample, [(self._starts(few, blank, constraints, labels, effects), None)]).end
                loose = doubted(found, sample, blank.encode(seen.panel), seen.panel)
                run = self._best_climb(task, [([opened(loose, constraints, typical_gap(few))], None)])
            starts = [] if run else [(self._starts(here, blank, constraints, labels, effects), None)]
        with explained(laid.panel, WHY):
            run = run or self._best_climb(task, starts)
            run = climb_without_spreads(task, run, self.max_iter, self.tol, self.accelerate)
            if units is not None and self.frailty_variance != 0:
                given_v = None if self.frailty_variance == "auto" else float(self.frailty_variance)
                law = Frailty.of(*units, 1.0 if given_v is None else given_v, fixed=given_v is not None)
                run = climb_with_frailty(task, run, law, self.max_iter, self.tol, self.accelerate)
        with all_at_once(self) as new:
            new._publish(panel, run, labels, task, laid.z)
        return self

    def _starts(
        self,
        panel: Panel,
        blank: Record,
        constraints: Constraints,
        labels: NDArray[Any],
        effects: Effects | None,
        levels: Levels | None = None,
    ) -> list[Process]:
        """Processes to start from, all people at these levels."""
        x = at_own_level(panel, blank.encode(panel), levels)
        check_distinct(panel, blank, x)
        rng = np.random.default_rng(self.random_state)
        moves = constraints.moves
        rates, P = np.asarray(moves.any(axis=1) / typical_gap(panel)), uniform_rows(moves)
        if constraints.binds:
            rates, P = split(constraints.imposed(rates[:, None] * P), P)
        found = []
        for k in range(1 if blank.is_direct else int(or_auto(self.n_init, 1 if blank.hides_symbols else STARTS))):
            init = "noise" if k % 2 and blank.hides_symbols else "data"
            emission = hidden_start(blank, x, panel, init, rng, k == 0, self.states is not None)
            emission = named_emission(emission, x, panel, labels)
            found.append(Process(rates, P, constraints.initial, emission, labels, effects))  # type: ignore[arg-type]
        return found

    def _best_climb(self, task: Task, starts: list[tuple[list[Process], Levels | None]]) -> Climb:
        """The climb that ends highest; from each levels of people goes the best of their starts."""
        options, rounds = (self.max_iter, self.tol, self.accelerate), trial(self.n_init, STEPS)
        climbs = []
        for processes, levels in starts:
            run = best_of([steps(task, own, *options, levels) for own in processes], lambda at: -at.end.log_lik, rounds)
            climbs.append(with_best_levels(task, run, *options))
        return max(climbs, key=lambda run: run.end.log_lik)

    def _publish(self, panel: Data, run: Climb, labels: NDArray[Any], task: Task, z: Floats | None) -> None:
        process, expected = run.end.process, run.end.expected
        time, jumps = np.diag(expected.integrals), process.rate_matrix * expected.integrals
        visits = expected.first + jumps.sum(axis=0) - np.diag(jumps)
        if run.end.frailty is not None:
            time = task.sequences.under(run.end.frailty).time_in_states(process)
        if self._may_sort(panel) and self.states is None:
            order = process.emission.stable_order(time)
            process, time, visits = process.take(order), time[order], visits[order]
            if np.array_equal(labels, np.arange(len(labels))):  # numbers, not names, go by the order
                process = replace(process, states=labels)
        self.process_, self.states_ = process, process.states
        self.__dict__.pop("_seen_", None), self.__dict__.pop("_people_", None)
        self.__dict__.pop("_frailties_", None)
        if run.end.levels is not None and self.offsets is not None and isinstance(panel, Panel):
            self._people_ = People.of(panel, run.end.levels, self.offsets)
        if self.frailty is not None and isinstance(panel, Panel):
            free = self.frailty_variance == "auto"
            self._frailties_ = Frailties.of(panel, self.frailty, expected.people, free)
        if not isinstance(panel, ScannedPanel):
            self._seen_ = panel
        self._occupancy_ = Occupancy.of(panel, time, visits)
        self._last_value_ = check_fitted(self, measured_panel(panel)) if isinstance(panel, ScannedPanel) else None
        self.log_likelihood_, self.history_ = run.end.log_lik, run.history
        self.n_iter_, self.converged_ = len(run.history), run.converged
        if warn_if_endless(process, task.shortest_gap) or warn_if_unbounded(process, z):
            self.converged_ = False
        elif not run.converged:
            warnings.warn(
                f"the log-likelihood still rises after {self.n_iter_} steps (now {self.log_likelihood_:.8g}); "
                "raise max_iter, or tol if this is close enough.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def information(self, panel: Any) -> Sureness:
        """How sure the fit is: observed information, standard errors, intervals of any answer by the delta method.

        Parameters
        ----------
        panel : Panel or frame
            The one that the model was fitted to.

        Returns
        -------
        Sureness
            Ask it for `standard_errors()`, `intervals()` of the rates, or the `interval` of any answer.

        Notes
        -----
        All that is estimated is part of the information: rates, first states, emission and the variance of frailty
        (``.interval(lambda m: m.frailty_variance_)``). It takes two passes over the
        data for each parameter. A parameter at the edge of its range (a rate of 0) is taken as known, and a warning
        names it.

        Examples
        --------
        >>> import jumpmeans as jm
        >>> panel = jm.datasets.load_edss()
        >>> sure = jm.comparators.EM(emission="direct", tol=1e-12).fit(panel).information(panel)
        >>> low, high = sure.interval(lambda m: m.process_.sojourn())
        """
        process, panel = self._fitted(), self._panel(panel)
        if self.offsets is not None:
            raise ValueError(
                "offsets must be None for information, got "
                f"{self.offsets!r}: a likelihood with levels of people is known by a lower bound only; ask `bootstrap`."
            )
        emission = process.emission.with_pseudo_count(0.0)
        constraints = (self.structure or Structure()).constraints(process.states)
        laid = lay_out(process.effects, panel)
        task = self._task(laid, constraints, emission, panel, process.states)
        with explained(laid.panel, "the fitted process"):
            found = observed_information(task, replace(process, emission=emission), self._law(panel))
        return Sureness(self, found)

    def hazard_ratios(
        self, panel: Any = None, level: float = 0.95, per: Mapping[str, float] | None = None, backend: str | None = None
    ) -> Any:
        """What covariates do to the rates: hazard ratios with intervals, from the observed information.

        Parameters
        ----------
        panel : Panel or frame, optional
            The one that the model was fitted to; it may be left out until the model is saved and read again.
        level : float
        per : {covariate: step}, optional
            Steps that ratios are for, ``{"age": 10}``; 1 by default. For categories, against the first of them.
        backend : "pandas", "polars" or "pyarrow", optional
            As in `Table.to_frame`.

        Returns
        -------
        frame
            Columns covariate, from, to, hazard_ratio, se_log (standard error of its logarithm), low and high; 0 and
            infinity where too few moves tell of it.

        Notes
        -----
        `jm.bootstrap` gives intervals that lean on no theory:
        ``jm.bootstrap(model, panel).interval(lambda m: np.exp(m.process_.effects.coefs))``.
        """
        process = self._fitted()
        require_effects(process)
        panel = vars(self).get("_seen_") if panel is None else panel
        if panel is None:
            raise ValueError("panel must be given to a model that was read from a file, got None.")
        sure = self.information(panel)

        def coefs(model: Any) -> Floats:
            return np.asarray(model.process_.effects.coefs)

        found, se = sure.interval(coefs, level, scale="plain"), sure.standard_error(coefs)
        return hazard_ratios(process, found, se, per, backend or self._occupancy_.backend)

    def _law(self, panel: Panel) -> Frailty | None:
        """The law of frailty that was found, for the people of a panel; None where there is none."""
        own = vars(self).get("_frailties_")
        if own is None or own.variance == 0:
            return None
        return Frailty.of(*units_of(panel, own.by, "frailty"), own.variance, fixed=not own.free)

    def _task(self, laid: Laid, constraints: Constraints, blank: Record, panel: Panel, labels: NDArray[Any]) -> Task:
        """The likelihood of a panel as its rates are to be seen; `panel` tells of the noise of its readings."""
        sequences = hold(self.engine, laid.panel, blank, labels, laid.z)
        return Task.of(sequences, constraints, blank, blank.encode(panel), panel)

    def _refitted(self, panel: Panel, options: dict[str, Any]) -> Self:
        new = self._again(options | {"start": self.process_})
        new._keeps_order = True
        return new.fit(panel)

    def _occupancy(self) -> Occupancy | None:
        return self._occupancy_

    def _row_states(self, panel: Panel) -> NDArray[np.int32]:
        return self._posterior(panel).argmax(axis=1).astype(np.int32)
