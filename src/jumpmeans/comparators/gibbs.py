"""Markov chain Monte Carlo for a given number of states: uniformization with blocked draws of the paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import AnyArray, Floats, Ints
from ..data.panel import Panel
from ..emissions import Family, Record
from ..emissions.priors import ColumnPrior, draw_rows
from ..engines import get_engine
from ..estimators.explained import explained
from ..estimators.jump_model import MOST_STATES
from ..estimators.read_out import all_at_once, as_panel
from ..fit.advice import warn_of_looks
from ..fit.setup import constrain, states_and_emission, typical_gap
from ..fit.start import named_emission, start_emission
from ..history import History
from ..model.constraints import Constraints, split
from ..model.process import Process
from ..model.structure import Structure, jumps_needed
from ..model.updates import uniform_rows
from ..options import Rule, auto, check_options, choice, count, families, instance, none, scale, seed, state_labels
from ..passes import Block, Sequences
from ..passes.draw import Drawn
from ..progress import track
from ..stored import stored
from ..stored.kinds import require
from .diagnostics import bulk_ess, split_r_hat
from .sampled import SampledReadOut, copied, publish_first
from .samples import Draw, Samples, match_order

# Rows looked at when the states of two samples are matched.
MATCHED_ROWS = 20_000
# More would not end, or not fit into memory.
MOST_DRAWS, MOST_CHAINS = 10**9, 1000


@stored
class Gibbs(SampledReadOut):
    """Posterior samples of a Markov jump process with a given number of states, by uniformization.

    Alternates paths given parameters (Rao and Teh 2013: events left out are drawn anew, then the states at all
    events by forward filtering, backward sampling) and parameters given paths, each from its exact conditional.

    Parameters
    ----------
    n_states : int, optional
        M. May be left out when the states are observed directly: their labels decide.
    emission : str or list of str
        Family of each value column: "direct" (the label is the state), "categorical", "gaussian" or "lognormal".
    states : list, optional
        Labels of directly observed states, when some may never have been seen; fixes their order.
    structure : Structure, optional
        Moves that may happen.
    n_samples, burn_in, thin : int
        Draws kept of each chain, iterations before the first, and iterations for each. An iteration costs less than
        what a kept draw costs every read-out, and successive ones are much alike: few draws far apart tell more.
    n_chains : int
        Chains run side by side from different starts; R̂ can tell more from two than from the halves of one.
    prior_dwell_time : float or "auto"
        λ ~ Gamma(1, prior_dwell_time), shape and rate: one earlier dwell of this length in each state; auto: the median
        gap, so that the unit of time does not matter. 1 gives the paper's Gamma(1, 1) in the unit of the panel.
    init : "data" or "noise"
        Emission at the start: from a clustering of the observations, or nearly equal states. The rates start at
        one jump per typical gap, P and π uniform, and possible jumps at the observation times.
    engine : "threads", "dask", "cuda" or an engine such as `jumpmeans.engines.Threads(n_jobs=2)`
        The number of threads never changes a draw.
    random_state : int, Generator or None

    Attributes
    ----------
    samples_ : Samples
        Kept draws: rates (n, M), transition_probs (n, M, M), initial_probs (n, M), emissions; chain after chain.
    process_ : Process
        Posterior means of the parameters. Read-outs average over the samples instead.
    states_ : (M,)
        Labels of the states: those observed, or 0, 1, ... in the order of their values.
    trajectories_ : Trajectories
        The last paths drawn for the panel (of the first chain).
    history_ : History
        Log-density of paths and values given the parameters after each iteration (mean over chains), with times.
    ess_, r_hat_ : (M,)
        Bulk effective sample size and split R̂ of the log-rates; NaN for states that cannot be left.
    n_iter_ : int
        Iterations of each chain.

    Notes
    -----
    Priors: rows of P ~ Dirichlet(1) over the allowed moves, λ ~ Gamma(1, 1) in units of the typical gap,
    π ~ Dirichlet(1) (the paper fixes nothing about it), rows of ρ ~ Dirichlet(1); for gaussian columns
    σ² ~ inverse gamma(2, noise²) and μ | σ² ~ N(mean of the column, σ² spread²/noise²), the noise taken from successive
    differences. A state some of whose rates are fixed or shared has no λ and P of its own: each of its free rates has
    the prior of a λ, and one that is shared sees the jumps and the time of all its moves.

    Hidden states have no names, so a chain may swap them. Before states are averaged, those of each sample are matched
    to the sample of highest log-density so that most rows agree (not under a `structure`, which tells states apart).
    Predicted observations need no matching. A sequence of weight k stands for k copies of it; k must be whole.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> panel = jm.datasets.load_edss()
    >>> model = jm.comparators.Gibbs(emission="direct", n_samples=50, burn_in=20).fit(panel)
    >>> model.samples_.rates.shape
    (50, 3)
    """

    rules: ClassVar[dict[str, Rule]] = {
        "n_states": none | count(most=MOST_STATES),
        "emission": families,
        "states": state_labels,
        "structure": none | instance(Structure),
        "n_samples": count(most=MOST_DRAWS),
        "burn_in": count(0, MOST_DRAWS),
        "thin": count(most=MOST_DRAWS),
        "n_chains": count(most=MOST_CHAINS),
        "init": choice("data", "noise"),
        "prior_dwell_time": auto | scale(),
        "random_state": seed,
    }

    def __init__(
        self,
        n_states: int | None = None,
        *,
        emission: Family | Sequence[Family] = "categorical",
        states: Sequence[Any] | None = None,
        structure: Structure | None = None,
        n_samples: int = 100,
        burn_in: int = 300,
        thin: int = 5,
        n_chains: int = 1,
        prior_dwell_time: float | str = "auto",
        init: str = "data",
        engine: Any = "threads",
        random_state: Any = 0,
    ) -> None:
        self.n_states = n_states
        self.emission = emission
        self.states = states
        self.structure = structure
        self.n_samples = n_samples
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.prior_dwell_time = prior_dwell_time
        self.init = init
        self.engine = engine
        self.random_state = random_state

    def fit(self, panel: Any, y: None = None) -> Self:
        """Sample the posterior given a panel, or a frame with columns id, time and value."""
        check_options(self, self.rules)
        panel = as_panel(panel)
        wide, copies = copied(panel, "Gibbs")
        labels, blank = states_and_emission(wide, self.emission, self.n_states, self.states, "auto")
        constraints, blank = constrain(self.structure, labels, blank, wide)
        block = Block.of(wide, blank.encode(wide), labels)
        warn_of_looks(wide, blank, labels, constraints.moves)
        sequences = Sequences.hold(get_engine(self.engine), block)
        gap = typical_gap(wide)
        priors = Priors(
            gap if isinstance(self.prior_dwell_time, str) else float(self.prior_dwell_time),
            constraints,
            blank.priors(block.x, wide),
        )
        rng = np.random.default_rng(self.random_state)
        chains = []
        for k, own in enumerate(rng.spawn(self.n_chains)):
            emission = start_emission(
                blank, block.x, wide, self.init, own, first=k == 0, in_order=self.states is not None
            )
            emission = named_emission(emission, block.x, wide, labels)
            chains.append(Chain.start(sequences, block.x, constraints, emission, labels, gap, own))
        with all_at_once(self) as new:
            new._seed_ = int(rng.integers(2**32))
            with explained(wide, "the allowed moves"):
                draws = new._run(priors, chains)
            orders = new._publish_samples(draws, labels, constraints.binds, panel.known is not None)
            dwells = sequences.fetch_paths(chains[0].paths)
            dwells = dwells._replace(states=np.argsort(orders[self.n_samples - 1]).astype(np.int32)[dwells.states])
            new.trajectories_, new._seen_ = publish_first(panel, dwells, copies, labels), panel
            new._last_value_ = None
        return self

    def _run(self, priors: Priors, chains: list[Chain]) -> list[Draw]:
        """Kept draws, chain after chain."""
        self.n_iter_ = self.burn_in + self.n_samples * self.thin
        self.history_ = History()
        looked_at = np.unique(np.linspace(0, len(chains[0].x) - 1, MATCHED_ROWS).astype(np.int64))
        kept: list[list[Draw]] = [[] for _ in chains]
        for i in track(self.n_iter_, "Gibbs"):
            values = [chain.step(priors, fresh=i == 0) for chain in chains]
            self.history_.add(float(np.mean(values)))
            if i >= self.burn_in and (i - self.burn_in + 1) % self.thin == 0:
                for chain, value, draws in zip(chains, values, kept, strict=True):
                    draws.append(Draw(chain.process, chain.drawn.row_states[looked_at], value))
        return [draw for draws in kept for draw in draws]

    def _publish_samples(self, draws: list[Draw], labels: NDArray[Any], bound: bool, named: bool) -> list[Ints]:
        """Samples with their states matched, their means and diagnostics; returns the order of each draw's states.

        States that are `named` need no match: some rows tell which is which.
        """
        M = len(labels)
        orders = [np.arange(M)] * len(draws)
        named = named or self.structure is not None or self.states is not None
        if not named and not draws[0].process.emission.names_states:
            best = max(draws, key=lambda draw: draw.log_density)
            time = np.bincount(best.row_states, minlength=M).astype(np.float64)
            stable = best.process.emission.stable_order(time)
            orders = [match_order(draw.row_states, best.row_states, M)[stable] for draw in draws]
        samples = Samples.of([draw.process.take(order) for draw, order in zip(draws, orders, strict=True)])
        self.samples_, self.states_ = samples, labels
        self.process_ = samples.mean_process(labels, by_move=bound)
        with np.errstate(divide="ignore"):
            log_rates = np.log(samples.rates).reshape(self.n_chains, self.n_samples, M)
        self.ess_ = np.array([bulk_ess(log_rates[..., s]) for s in range(M)])
        self.r_hat_ = np.array([split_r_hat(log_rates[..., s]) for s in range(M)])
        return orders

    def check_fields(self) -> None:
        """Refuse parts that do not fit together, if they come from a file."""
        super().check_fields()
        require(isinstance(vars(self).get("samples_"), Samples), "a sampler must have samples")
        require(len(self.samples_) >= self.n_samples, f"there must be {self.n_samples} samples")
        require(self.samples_.rates.shape[1] == len(self.states_), "samples must be of the states of the model")

    def _processes(self) -> Iterator[Process]:
        return (self.samples_.process(k, self.states_) for k in range(len(self.samples_)))

    def _last_process(self) -> Process:
        return self.samples_.process(self.n_samples - 1, self.states_)

    def _posterior(self, panel: Panel) -> Floats:
        total: Any = 0.0
        for _, posterior in self._smoothed(panel):
            total = total + posterior
        return np.asarray(total / len(self.samples_))


class Priors(NamedTuple):
    """λ ~ Gamma(1, prior_time), rows of P ~ Dirichlet(1) over the allowed moves, π ~ Dirichlet(1), and the columns'."""

    prior_time: float
    constraints: Constraints
    columns: tuple[ColumnPrior, ...]

    def draw(self, paths: Drawn, x: Floats, labels: NDArray[Any], rng: np.random.Generator) -> Process:
        """Parameters given the paths and the values."""
        moves, initial = self.constraints.moves, self.constraints.initial
        M = len(moves)
        rates = rng.standard_gamma(1.0 + paths.jumps.sum(axis=1)) / (self.prior_time + paths.time)
        rates = np.where(moves.any(axis=1), rates, 0.0)
        P = draw_rows(np.where(moves, 1.0 + paths.jumps, 0.0), rng)
        if self.constraints.binds:
            rates, P = split(self._draw_bound(paths, rates[:, None] * P, rng), P)
        return Process(
            rates,
            P,
            draw_rows(1.0 + paths.first[None], rng)[0] if initial is None else initial,
            Record(
                prior.draw(x[:, d], paths.row_states, M, rng) for d, prior in enumerate(self.columns)
            ),
            labels,
        )  # fmt: skip

    def _draw_bound(self, paths: Drawn, Q: Floats, rng: np.random.Generator) -> Floats:
        """(M, M) rates: in rows with known or shared ones each free rate ~ Gamma(1, prior_time), else those drawn."""
        known, own = self.constraints, self.constraints.alone
        events, time = known.pool(paths.jumps), known.pool_rows(paths.time)
        drawn = rng.standard_gamma(1.0 + events) / (self.prior_time + time)
        return np.where(own[:, None], Q, known.rates(drawn))


@dataclass(eq=False)
class Chain:
    """One Markov chain: its parameters, its paths (beside the blocks of the sequences), and its random numbers."""

    sequences: Sequences
    x: Floats
    process: Process
    paths: Any
    rng: np.random.Generator
    drawn: Drawn = None  # type: ignore[assignment]

    @classmethod
    def start(
        cls, sequences: Sequences, x: Floats, constraints: Constraints, emission: Record, labels: AnyArray, gap: float,
        rng: np.random.Generator,
    ) -> Chain:  # fmt: skip
        """Rates of one jump a gap, all moves equally likely, possible jumps at the rows."""
        M, moves = len(labels), constraints.moves
        rates, P = np.asarray(moves.any(axis=1) / gap), uniform_rows(moves)
        if constraints.binds:
            rates, P = split(constraints.imposed(rates[:, None] * P), P)
        initial = np.full(M, 1.0 / M) if constraints.initial is None else constraints.initial
        process = Process(rates, P, initial, emission, labels)
        return cls(sequences, x, process, sequences.begin_paths(rng, jumps_needed(moves)), rng)

    def step(self, priors: Priors, fresh: bool = False) -> float:
        """Paths given parameters, then parameters given paths; returns the log-density of paths and values."""
        self.paths, self.drawn = self.sequences.draw(self.paths, self.process, fresh=fresh)
        self.process = priors.draw(self.drawn, self.x, self.process.states, self.rng)
        return log_joint(self.drawn, self.process, self.x)


def log_joint(paths: Drawn, process: Process, x: Floats) -> float:
    """Log-density of paths and values given the parameters."""
    rates = process.rates[:, None] * process.transition_probs
    used = paths.jumps > 0
    started = paths.first > 0
    seen = process.emission.own_log_density(x, paths.row_states).sum() if process.emission.n_free else 0.0
    return float(
        (paths.jumps[used] * np.log(rates[used])).sum()
        - process.rates @ paths.time
        + paths.first[started] @ np.log(process.initial_probs[started])
        + seen
    )
