"""Maximum likelihood of the process by expectation maximisation."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from ..arrays import Floats
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..emissions import Gaussian, Laplace, Record
from ..emissions.bregman import NORMAL_DIFFERENCE
from ..emissions.column import noise_scale
from ..emissions.laplace import LAPLACE_DIFFERENCE
from ..engines import get_engine
from ..estimators.read_out import Occupancy, ReadOut, all_at_once, as_panel, explained
from ..fit.setup import check_distinct, states_and_emission, typical_gap
from ..fit.start import start_emission
from ..model.process import Process
from ..model.structure import Structure
from ..model.updates import transition_rows, uniform_rows
from ..options import Rule, check_options, count, families, flag, instance, none, number, seed, state_labels
from ..passes import Sequences
from ..progress import History
from .ascent import Climb, Task, climb

# A state's spread is never taken below this share of the column's noise: a state of one reading would have none.
SCALE_FLOOR = 0.05
# EM cannot raise a zero: what a start rules out but the structure allows gets this share.
SMALLEST_SHARE = 1e-6
# A state left at this rate, in units of 1 / shortest gap, is seen twice in a row by a chance of e^-10 at most.
LARGEST_RATE = 10.0
# Here a climb ends, before anything overflows.
STOP_RATE = 1e4


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
        "laplace", "poisson", "exponential" or "bernoulli".
    states : list, optional
        Labels of directly observed states, when some may never have been seen; fixes their order.
    structure : Structure, optional
        Moves that may happen; all others keep a rate of exactly 0.
    start : Process or fitted model, optional
        Where to start: a process, or anything with `process_` such as a fitted `JumpMeans`. Families and labels are
        then its own. By default all moves are equally likely, rates are 1 / the median gap, and hidden states
        start from a clustering of the observations; every second further start, from nearly equal states.
    engine : "threads" or an engine such as `jumpmeans.engines.Threads(n_jobs=2)`
    n_init : int
        Number of starts, of which the highest likelihood wins; 1 is enough for directly observed states.
    max_iter, tol : int, float
        Steps at most, and the relative rise of the log-likelihood by an EM step below which a fit has converged.
    accelerate : bool
        Whether to leap ahead between EM steps (see Notes); without it a fit is plain EM.
    random_state : int, Generator or None

    Attributes
    ----------
    process_ : Process
        The most likely process.
    rates_, transition_probs_, emission_ : (M,), (M, M), Record
        Its parts.
    states_ : (M,)
        Labels of the states: those observed, or 0, 1, ... in the order of their values.
    log_likelihood_ : float
        Of the panel under `process_`, the first state's probability included; sequences count by their weights.
    history_ : History
        Log-likelihood after each step of the best start, with its wall and CPU times; never falls.
    n_iter_, converged_ : int, bool

    Notes
    -----
    EM has no trajectories: where other models read one (`predict`, `predict_value(method="trajectory")`), it takes
    the most probable state of each row by itself. Successive rows may then show a move that is not allowed.

    Leaps are quasi-Newton steps (Jamshidian and Jennrich 1997) that cost one pass over the data, as an EM step does.
    They are kept only if the likelihood does not fall, and need a tenth of the steps or fewer.

    Spreads (gaussian, laplace) are kept above 5 % of the column's noise, taken from successive differences: without
    a bound, a state that shrinks onto one reading has infinite likelihood.

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

    log_likelihood_: float
    history_: History
    n_iter_: int
    converged_: bool
    rules: ClassVar[dict[str, Rule]] = {
        "n_states": none | count(),
        "emission": families,
        "states": state_labels,
        "structure": none | instance(Structure),
        "n_init": count(),
        "max_iter": count(),
        "tol": number(least=0),
        "accelerate": flag,
        "random_state": seed,
    }

    def __init__(
        self,
        n_states: int | None = None,
        *,
        emission: str | Sequence[str] = "gaussian",
        states: Sequence[Any] | None = None,
        structure: Structure | None = None,
        start: Any = None,
        engine: Any = "threads",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-8,
        accelerate: bool = True,
        random_state: Any = 0,
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

    def __sklearn_clone__(self) -> Self:
        # the model to start from is data: a clone that forgot its fit would be of no use
        options = self.get_params(deep=False)
        start = options.pop("start")
        return type(self)(start=start, **{name: clone(value, safe=False) for name, value in options.items()})

    def fit(self, panel: Any, y: None = None) -> Self:
        """Fit to a panel, or to a frame with columns id, time and value."""
        check_options(self, self.rules)
        panel = as_panel(panel)
        rng = np.random.default_rng(self.random_state)
        given = None if self.start is None else self._given_start()
        if given is not None:
            labels, blank = given.states, given.emission.with_pseudo_count(0.0)
        else:
            labels, blank = states_and_emission(panel, self.emission, self.n_states, self.states, "auto")
        x = blank.encode(panel)
        if given is None:
            check_distinct(panel, blank, x)
        moves = (self.structure or Structure()).allowed_moves(labels)
        shortest = shortest_gap(panel)
        stop_rate = STOP_RATE / shortest if np.isfinite(shortest) else np.inf
        task = Task(Sequences.of(get_engine(self.engine), panel, x), moves, scale_floors(blank, x, panel))
        climbs = []
        for k in range(1 if given is not None or blank.is_direct else self.n_init):
            if given is not None:
                start = opened(given, moves, typical_gap(panel))
            else:
                emission = hidden_start(blank, x, panel, "noise" if k % 2 else "data", rng, first=k == 0)
                rates = moves.any(axis=1) / typical_gap(panel)
                start = Process(rates, uniform_rows(moves), None, emission, labels)  # type: ignore[arg-type]
            with explained(panel, "the allowed moves"):
                climbs.append(climb(task, start, self.max_iter, self.tol, stop_rate, self.accelerate))
        with all_at_once(self) as new:
            new._publish(panel, max(climbs, key=lambda run: run.end.log_lik), labels, shortest)
        return self

    def _given_start(self) -> Process:
        start = getattr(self.start, "process_", self.start)
        if not isinstance(start, Process):
            raise ValueError(f"start must be a Process or a fitted model with process_, got {self.start!r}.")
        if self.n_states is not None and self.n_states != len(start.rates):
            raise ValueError(
                f"n_states={self.n_states} must equal the number of states of start, got {len(start.rates)}; "
                "leave n_states out."
            )
        return start

    def _publish(self, panel: Panel, run: Climb, labels: NDArray[Any], shortest: float) -> None:
        process, expected = run.end.process, run.end.expected
        time, jumps = np.diag(expected.integrals), process.rate_matrix * expected.integrals
        visits = expected.first + jumps.sum(axis=0) - np.diag(jumps)
        if self.structure is None:
            order = process.emission.stable_order(time)
            process, time, visits = process.permute(order), time[order], visits[order]
            if np.array_equal(labels, np.arange(len(labels))):  # numbers, not names, go by the order
                process = replace(process, states=labels)
        self.process_, self.states_ = process, process.states
        self._occupancy_ = Occupancy.of(panel, time, visits)
        self.log_likelihood_, self.history_ = run.end.log_lik, run.history
        self.n_iter_, self.converged_ = len(run.history), run.converged
        endless = (process.rates * shortest > LARGEST_RATE) & np.isfinite(shortest)
        if endless.any():
            self.converged_ = False
            s = int(np.argmax(np.where(endless, process.rates, 0.0)))
            warnings.warn(
                f"the likelihood may have no maximum: the rate of state {process.states.tolist()[s]!r} has run up to "
                f"{process.rates[s]:.3g}, and with a shortest gap of {shortest:.3g} between observations the data "
                "cannot tell it from infinity; merge this state with another, forbid some of its moves "
                "(Structure(allowed=...)), or observe more often.",
                ConvergenceWarning,
                stacklevel=3,
            )
        elif not run.converged:
            warnings.warn(
                f"the log-likelihood still rises after {self.n_iter_} steps (now {self.log_likelihood_:.8g}); "
                "raise max_iter, or tol if this is close enough.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def decode(self, panel: Any) -> Trajectories:
        """EM has no trajectories; an error that says where they are."""
        raise NotImplementedError(
            "EM has no trajectories; use predict for the most probable state of each row, predict_proba(panel, at=...) "
            "between rows, or JumpMeans for trajectories."
        )

    def _occupancy(self) -> Occupancy | None:
        return self._occupancy_

    def _row_states(self, panel: Panel) -> NDArray[np.int32]:
        return self._posterior(panel).argmax(axis=1).astype(np.int32)


def shortest_gap(panel: Panel) -> float:
    """Least time between successive observations of a sequence; infinite if there are none."""
    rows = np.flatnonzero(panel.observed)
    same = np.diff(panel.sequence_index[rows]) == 0
    return float(np.diff(panel.times[rows])[same].min(initial=np.inf))


def scale_floors(blank: Record, x: Floats, panel: Panel) -> Floats:
    """(D,) least spread of a state in each column that has one, else 0."""
    per_noise = {Gaussian.name: NORMAL_DIFFERENCE, Laplace.name: LAPLACE_DIFFERENCE}
    return np.array(
        [
            SCALE_FLOOR * noise_scale(x[:, d], panel, per_noise[column.name]) if column.name in per_noise else 0.0
            for d, column in enumerate(blank.columns)
        ]
    )


def hidden_start(blank: Record, x: Floats, panel: Panel, init: str, rng: np.random.Generator, first: bool) -> Record:
    """First emission, with the spread of the values nearest to each state (of all values, if states hardly differ)."""
    emission = start_emission(blank, x, panel, init, rng, first)
    weights = np.repeat(panel.weights, panel.lengths)
    if init == "noise":
        stats = emission.soft_stats(x, np.repeat(weights[:, None] / emission.n_states, emission.n_states, axis=1))
    else:
        nearest = emission.cost(x, emission.auto_weights(x, panel)).argmin(axis=1)
        stats = emission.stats(x, nearest, weights)
    return emission.with_scales(stats).with_pseudo_count(0.0)


def opened(process: Process, moves: NDArray[np.bool_], gap: float) -> Process:
    """The process within the allowed moves, with a small chance of all that it rules out: EM cannot raise a zero."""
    P = transition_rows(process.transition_probs, 0.0, moves)
    rates = np.where(moves.any(axis=1), np.where(process.rates > 0, process.rates, SMALLEST_SHARE / gap), 0.0)
    pi = np.where(process.initial_probs > 0, process.initial_probs, SMALLEST_SHARE)
    return Process(
        rates,
        transition_rows(np.where(P > 0, P, SMALLEST_SHARE), 0.0, moves),
        pi / pi.sum(),
        process.emission.with_pseudo_count(0.0),
        process.states,
    )
