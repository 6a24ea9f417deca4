"""Markov chain Monte Carlo for a given number of states: uniformization with blocked draws of the paths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Ints
from ..data.panel import Panel
from ..emissions import Column, Direct, Gaussian, Record
from ..emissions.bregman import NORMAL_DIFFERENCE
from ..emissions.column import noise_scale
from ..engines import get_engine
from ..engines.base import Engine, NoPathError, Sequences
from ..estimators.read_out import as_panel
from ..fit.setup import check_choice, check_count, states_and_emission, typical_gap
from ..fit.start import start_emission
from ..history import History
from ..model.process import Process
from ..model.structure import Structure
from ..model.updates import uniform_rows
from ..progress import track
from .conjugate import ColumnPrior, column_prior, draw_rows
from .diagnostics import bulk_ess, split_r_hat
from .sampled import SampledReadOut, copied, publish_first, require_integers, unexplained
from .samples import Draw, Samples, match_order
from .uniformized import Paths, draw_paths, log_joint

# Rows looked at when the states of two samples are matched.
MATCHED_ROWS = 20_000


class Gibbs(SampledReadOut):
    """Posterior samples of a Markov jump process with a given number of states, by uniformization.

    Alternates paths given parameters (Rao and Teh 2013: events left out are drawn anew, then the states at all
    events by forward filtering, backward sampling) and parameters given paths, each from its exact conditional.

    Parameters
    ----------
    n_states : int, optional
        M. May be left out when the states are observed directly: their labels decide.
    emission : str or list of str
        Family of each value column: "direct" (the label is the state), "categorical" or "gaussian".
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
    engine : "threads" or an engine such as `jumpmeans.engines.Threads(n_jobs=2)`
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
    differences.

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

    def __init__(
        self,
        n_states: int | None = None,
        *,
        emission: str | Sequence[str] = "categorical",
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
        panel = as_panel(panel)
        self._check_options()
        wide, copies = copied(panel, "Gibbs")
        labels, blank = states_and_emission(wide, self.emission, self.n_states, self.states, "auto")
        sequences = Sequences.from_panel(wide, blank.encode(wide))
        gap = typical_gap(wide)
        priors = Priors(
            gap if isinstance(self.prior_dwell_time, str) else float(self.prior_dwell_time),
            (self.structure or Structure()).allowed_moves(labels),
            tuple(column_prior(c, sequences.x[:, d], wide) for d, c in enumerate(blank.columns)),
        )
        rng = np.random.default_rng(self.random_state)
        chains = []
        for k, own in enumerate(rng.spawn(self.n_chains)):
            emission = first_emission(blank, sequences.x, wide, self.init, own, first=k == 0)
            chains.append(Chain.start(sequences, priors.moves, emission, labels, gap, own))
        self._seed_ = int(rng.integers(2**32))
        try:
            draws = self._run(get_engine(self.engine), sequences, priors, chains)
        except NoPathError as error:
            raise unexplained(wide, error, "the allowed moves") from None
        orders = self._publish_samples(draws, labels)
        dwells = chains[0].paths.to_dwells()
        dwells.states[:] = np.argsort(orders[self.n_samples - 1])[dwells.states]
        self.trajectories_ = publish_first(panel, dwells, copies, labels)
        return self

    def _run(self, engine: Engine, sequences: Sequences, priors: Priors, chains: list[Chain]) -> list[Draw]:
        """Kept draws, chain after chain."""
        self.n_iter_ = self.burn_in + self.n_samples * self.thin
        self.history_ = History()
        looked_at = np.unique(np.linspace(0, len(sequences.tau) - 1, MATCHED_ROWS).astype(np.int64))
        kept: list[list[Draw]] = [[] for _ in chains]
        for i in track(self.n_iter_, "Gibbs"):
            values = [chain.step(engine, sequences, priors, fresh=i == 0) for chain in chains]
            self.history_.add(float(np.mean(values)))
            if i >= self.burn_in and (i - self.burn_in + 1) % self.thin == 0:
                for chain, value, draws in zip(chains, values, kept, strict=True):
                    draws.append(Draw(chain.process, chain.paths.row_states[looked_at], value))
        return [draw for draws in kept for draw in draws]

    def _publish_samples(self, draws: list[Draw], labels: NDArray[Any]) -> list[Ints]:
        """Samples with their states matched, their means and diagnostics; returns the order of each draw's states."""
        M = len(labels)
        orders = [np.arange(M)] * len(draws)
        if self.structure is None and not draws[0].process.emission.is_direct:
            best = max(draws, key=lambda draw: draw.log_density)
            time = np.bincount(best.row_states, minlength=M).astype(np.float64)
            stable = best.process.emission.stable_order(time)
            orders = [match_order(draw.row_states, best.row_states, M)[stable] for draw in draws]
        samples = Samples.of([draw.process.permute(order) for draw, order in zip(draws, orders, strict=True)])
        self.samples_, self.states_ = samples, labels
        self.process_ = samples.mean_process(labels)
        with np.errstate(divide="ignore"):
            log_rates = np.log(samples.rates).reshape(self.n_chains, self.n_samples, M)
        self.ess_ = np.array([bulk_ess(log_rates[..., s]) for s in range(M)])
        self.r_hat_ = np.array([split_r_hat(log_rates[..., s]) for s in range(M)])
        return orders

    def _processes(self) -> Iterator[Process]:
        return (self.samples_.process(k, self.states_) for k in range(len(self.samples_)))

    def _last_process(self) -> Process:
        return self.samples_.process(self.n_samples - 1, self.states_)

    def _posterior(self, panel: Panel) -> Floats:
        total: Any = 0.0
        for _, posterior in self._smoothed(panel):
            total = total + posterior
        return np.asarray(total / len(self.samples_))

    def _check_options(self) -> None:
        check_count("n_states", self.n_states, 1)
        require_integers(self, {"n_samples": 1, "burn_in": 0, "thin": 1, "n_chains": 1})
        check_choice("init", self.init, ("data", "noise"))
        time = self.prior_dwell_time
        if time != "auto" and (isinstance(time, str) or not (np.isfinite(time) and time > 0)):
            raise ValueError(f"prior_dwell_time must be 'auto' or a finite number > 0, got {time!r}.")


class Priors(NamedTuple):
    """λ ~ Gamma(1, prior_time), rows of P ~ Dirichlet(1) over the allowed moves, π ~ Dirichlet(1), and the columns'."""

    prior_time: float
    moves: NDArray[np.bool_]
    columns: tuple[ColumnPrior, ...]

    def draw(self, paths: Paths, x: Floats, labels: NDArray[Any], rng: np.random.Generator) -> Process:
        """Parameters given the paths and the values."""
        M = len(self.moves)
        rates = rng.standard_gamma(1.0 + paths.jumps.sum(axis=1)) / (self.prior_time + paths.time)
        return Process(
            np.where(self.moves.any(axis=1), rates, 0.0),
            draw_rows(np.where(self.moves, 1.0 + paths.jumps, 0.0), rng),
            draw_rows(1.0 + paths.first[None], rng)[0],
            Record(
                prior.draw(x[:, d], paths.row_states, M, rng) for d, prior in enumerate(self.columns)
            ),
            labels,
        )  # fmt: skip


@dataclass(eq=False)
class Chain:
    """One Markov chain: its parameters, its paths, the log-density of the rows, and its random numbers."""

    process: Process
    paths: Paths
    log_density: Floats
    rng: np.random.Generator
    block_rngs: list[np.random.Generator]

    @classmethod
    def start(
        cls, sequences: Sequences, moves: NDArray[np.bool_], emission: Record, labels: NDArray[Any], gap: float,
        rng: np.random.Generator,
    ) -> Chain:  # fmt: skip
        """Rates of one jump a gap, all moves equally likely, possible jumps at the rows."""
        M = len(labels)
        rates = np.asarray(moves.any(axis=1) / gap)
        process = Process(rates, uniform_rows(moves), np.full(M, 1.0 / M), emission, labels)
        paths = Paths.at_rows(sequences, moves)
        return cls(process, paths, emission.log_density(sequences.x), rng, rng.spawn(sequences.n_blocks))

    def step(self, engine: Engine, sequences: Sequences, priors: Priors, fresh: bool = False) -> float:
        """Paths given parameters, then parameters given paths; returns the log-density of paths and values."""
        self.paths = draw_paths(
            engine, sequences, self.paths, self.process, self.log_density, self.block_rngs, fresh=fresh
        )
        self.process = priors.draw(self.paths, sequences.x, self.process.states, self.rng)
        emission = self.process.emission
        if not all(isinstance(column, Direct) for column in emission.columns):
            self.log_density = emission.log_density(sequences.x)
        return log_joint(self.paths, self.process, self.log_density)


def first_emission(blank: Record, x: Floats, panel: Panel, init: str, rng: np.random.Generator, first: bool) -> Record:
    """Emission that a chain starts with; measurements spread as their noise."""
    columns: list[Column] = list(start_emission(blank, x, panel, init, rng, first=first).columns)
    for d, column in enumerate(columns):
        if isinstance(column, Gaussian):
            columns[d] = Gaussian(column.means, noise_scale(x[:, d], panel, NORMAL_DIFFERENCE))
    return Record(columns)
