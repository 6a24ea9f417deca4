"""Markov chain Monte Carlo for a given number of states: uniformization with blocked draws of the paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln

from ..emissions import Categorical, Column, Direct, Gaussian, MeanColumn, Record
from ..emissions.bregman import NORMAL_DIFFERENCE
from ..emissions.column import noise_scale
from ..engines import get_engine
from ..engines.base import Dwells, Engine, NoPathError, Sequences
from ..errors import InfeasibleError
from ..estimators.base import MarkovReadOut, as_panel
from ..estimators.publish import publish_trajectories
from ..estimators.setup import check_choice, check_count, states_and_emission, typical_gap
from ..estimators.start import start_emission
from ..estimators.updates import uniform_rows
from ..kernels.uniformization import sample_block
from ..panel import Panel
from ..params import Process
from ..progress import History, track
from ..structure import Structure, jumps_needed
from ..trajectories import Trajectories
from .diagnostics import bulk_ess, split_r_hat

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
T = TypeVar("T")

# Ω over the largest rate: as many events left out as kept in the fastest state (Rao and Teh's choice).
UNIFORMIZATION = 2.0
# Rows looked at when the states of two samples are matched.
MATCHED_ROWS = 20_000
# Draws of the paths before `decode` takes one: enough to forget that they started at the rows.
DECODE_SWEEPS = 30


# --------------------------------------------------------------------- priors


class ColumnPrior(Protocol):
    """Prior of one column's emission: conjugate, so that parameters given the states of the rows can be drawn."""

    def draw(self, x: Floats, states: Ints, n_states: int, rng: np.random.Generator) -> Column:
        """Emission given the values x (n,), NaN where missing, and the state of each."""

    def log_density(self, column: Any) -> float:
        """Log-density of the parameters of an emission."""


class DirectPrior(NamedTuple):
    """The label is the state: nothing to draw."""

    column: Direct

    def draw(self, x: Floats, states: Ints, n_states: int, rng: np.random.Generator) -> Column:
        """The emission as it is."""
        return self.column

    def log_density(self, column: Any) -> float:
        """0: there is nothing to learn."""
        return 0.0


class SymbolPrior(NamedTuple):
    """Rows ρ ~ Dirichlet(1) over the symbols."""

    symbols: NDArray[Any]

    def draw(self, x: Floats, states: Ints, n_states: int, rng: np.random.Generator) -> Column:
        """ρ ~ Dirichlet(1 + counts)."""
        present = np.isfinite(x)
        N = len(self.symbols)
        cell = states[present] * N + x[present].astype(np.int64)
        counts = np.bincount(cell, minlength=n_states * N).reshape(n_states, N).astype(np.float64)
        return Categorical(draw_rows(1.0 + counts, rng), self.symbols)

    def log_density(self, column: Any) -> float:
        """Constant: the prior is uniform."""
        return float(column.n_states * gammaln(len(self.symbols)))


class NormalPrior(NamedTuple):
    """σ² ~ inverse gamma(shape, scale) and μ | σ² ~ N(mean, σ²/size) in each state, as if of `size` values."""

    mean: float
    size: float
    shape: float
    scale: float

    @classmethod
    def of(cls, x: Floats, panel: Panel) -> NormalPrior:
        """Weakly informative, in the column's own units.

        σ² has the squared noise of successive differences as its mean and a shape of 2 (one earlier value in each
        direction tells hardly anything); μ is spread as the whole column.
        """
        present = x[np.isfinite(x)]
        noise = noise_scale(x, panel, NORMAL_DIFFERENCE)
        mean = float(present.mean()) if len(present) else 0.0
        spread = max(float(present.std()) if len(present) else 1.0, noise)
        return cls(mean, (noise / spread) ** 2, 2.0, noise**2)

    def draw(self, x: Floats, states: Ints, n_states: int, rng: np.random.Generator) -> Column:
        """μ and σ from the conjugate posterior."""
        present = np.isfinite(x)
        x, states = x[present] - self.mean, states[present]
        n = np.bincount(states, minlength=n_states)
        average = np.bincount(states, weights=x, minlength=n_states) / np.maximum(n, 1)
        squares = np.bincount(states, weights=(x - average[states]) ** 2, minlength=n_states)
        size = self.size + n
        scale = self.scale + 0.5 * squares + 0.5 * self.size * n / size * average**2
        variance = scale / rng.standard_gamma(self.shape + 0.5 * n)
        means = self.mean + n / size * average + np.sqrt(variance / size) * rng.standard_normal(n_states)
        return Gaussian(means, np.sqrt(variance))

    def log_density(self, column: Any) -> float:
        """Density of (μ, σ²)."""
        a, b = self.shape, self.scale
        variance = column.sds**2
        z = (column.means - self.mean) ** 2 * self.size / variance
        return float(
            (a * np.log(b) - gammaln(a) - (a + 1.0) * np.log(variance) - b / variance).sum()
            + 0.5 * (np.log(self.size / (2.0 * np.pi * variance)) - z).sum()
        )


def column_prior(column: Column, x: Floats, panel: Panel) -> ColumnPrior:
    """The prior of a column by its family."""
    if isinstance(column, Direct):
        return DirectPrior(column)
    if isinstance(column, Categorical):
        return SymbolPrior(column.symbols)
    if isinstance(column, Gaussian):
        return NormalPrior.of(x, panel)
    raise ValueError(
        f"emission must be 'direct', 'categorical' or 'gaussian' for Monte Carlo, got {column.name!r}; "
        "JumpMeans and EM know the other families."
    )


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

    def log_density(self, process: Process) -> float:
        """Log-density of the parameters."""
        rates = process.rates[self.moves.any(axis=1)]
        ways = self.moves.sum(axis=1)
        return float(
            len(rates) * np.log(self.prior_time)
            - self.prior_time * rates.sum()
            + gammaln(np.maximum(ways, 1)).sum()
            + gammaln(len(self.moves))
            + sum(p.log_density(c) for p, c in zip(self.columns, process.emission.columns, strict=True))
        )


def draw_rows(counts: Floats, rng: np.random.Generator) -> Floats:
    """Rows ~ Dirichlet(counts); an entry of count 0 is 0, and so is a row of nothing else."""
    rows = rng.standard_gamma(counts)
    total = rows.sum(axis=1, keepdims=True)
    return np.asarray(rows / np.where(total > 0, total, 1.0))


# ---------------------------------------------------------------------- paths


@dataclass(eq=False)
class Paths:
    """Current paths of all sequences, block by block, and their statistics.

    blocks : (dwells, states, starts, rows) of each block; jumps (M, M), time (M,), first (M,) sums; row_states (n,).
    """

    blocks: list[tuple[Any, ...]]
    jumps: Floats
    time: Floats
    first: Floats
    row_states: Ints

    @classmethod
    def at_rows(cls, sequences: Sequences, n_states: int, per_gap: int) -> Paths:
        """Possible jumps at the rows (and, where `per_gap` > 1, evenly between them); states not drawn yet."""
        n = len(sequences.tau)
        zero = np.zeros((n_states, n_states))
        paths = cls([], zero, zero[0], zero[0], np.zeros(n, np.int64))
        shares = np.arange(1, per_gap + 1) / per_gap
        for b in range(sequences.n_blocks):
            own, lines = sequences.block(b)
            tau, offsets = sequences.tau[lines], sequences.offsets[own.start : own.stop + 1] - lines.start
            opens = np.zeros(len(tau), dtype=bool)
            opens[offsets[:-1]] = True
            before = np.where(opens, 0.0, np.concatenate([[0.0], tau[:-1]]))
            starts = before[:, None] + (tau - before)[:, None] * shares
            starts[:, -1] = tau
            # every sequence opens at 0, then come the events of its rows but for a row at 0 itself
            sequence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
            later = tau > 0
            which = np.concatenate([np.arange(len(offsets) - 1), np.repeat(sequence[later], per_gap)])
            flat = np.concatenate([np.zeros(len(offsets) - 1), starts[later].ravel()])
            order = np.argsort(which, kind="stable")
            dwells = np.concatenate([[0], np.cumsum(np.bincount(which, minlength=len(offsets) - 1))])
            paths.blocks.append((dwells, np.zeros(len(flat), np.int32), flat[order], None))
        return paths

    def dwells(self) -> Dwells:
        """All paths in the layout of `publish_trajectories`."""
        counts = np.concatenate([np.diff(block[0]) for block in self.blocks])
        states, starts, rows = (np.concatenate([block[k] for block in self.blocks]) for k in (1, 2, 3))
        slots = np.concatenate([[0], np.cumsum(counts)])
        return Dwells(slots, states, starts, rows, counts, self.row_states.astype(np.int32))


def map_blocks(engine: Engine, work: Callable[[int], T], n: int) -> list[T]:
    """Work on every block where the engine runs them, else one after the other."""
    run = getattr(engine, "_map", None)
    return [work(b) for b in range(n)] if run is None else run(work, n)


def draw_paths(
    engine: Engine,
    sequences: Sequences,
    paths: Paths,
    process: Process,
    log_density: Floats,
    rngs: Sequence[np.random.Generator],
    *,
    fresh: bool = False,
) -> Paths:
    """New paths given the parameters, block by block; `fresh` ones jump only where the current ones may."""
    M = len(process.rates)
    rate = UNIFORMIZATION * float(process.rates.max())
    B = np.eye(M) + (process.generator() / rate if rate > 0 else 0.0)
    both = np.stack([B, B.T])
    seen = np.asarray(np.isfinite(sequences.x).any(axis=1))
    lik = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    row_states = np.zeros(len(sequences.tau), np.int64)

    def work(b: int) -> tuple[Any, ...]:
        own, lines = sequences.block(b)
        offsets = sequences.offsets[own.start : own.stop + 1]
        jumps, time, first = np.zeros((M, M)), np.zeros(M), np.zeros(M)
        dwells, states, starts, _ = paths.blocks[b]
        *block, where = sample_block(
            sequences.tau[lines], seen[lines], offsets - offsets[0], sequences.ends[own], lik[lines],
            process.initial_probs, process.rates, both, 0.0 if fresh else rate, dwells, states, starts, rngs[b],
            row_states[lines], jumps, time, first,
        )  # fmt: skip
        if where[0] >= 0:
            raise NoPathError(int(own.start + where[0]), int(where[1]))
        return tuple(block), jumps, time, first

    blocks, jumps, time, first = zip(*map_blocks(engine, work, sequences.n_blocks), strict=True)
    return Paths(list(blocks), sum(jumps), sum(time), sum(first), row_states)


def log_joint(paths: Paths, process: Process, log_density: Floats) -> float:
    """Log-density of paths and values given the parameters."""
    rates = process.rates[:, None] * process.transition_probs
    used = paths.jumps > 0
    started = paths.first > 0
    return float(
        (paths.jumps[used] * np.log(rates[used])).sum()
        - process.rates @ paths.time
        + paths.first[started] @ np.log(process.initial_probs[started])
        + log_density[np.arange(len(log_density)), paths.row_states].sum()
    )


# --------------------------------------------------------------------- chains


@dataclass(eq=False)
class Chain:
    """One Markov chain: its parameters, its paths, the log-density of the rows, and its random numbers."""

    process: Process
    paths: Paths
    log_density: Floats
    rng: np.random.Generator
    block_rngs: list[np.random.Generator]

    def step(self, engine: Engine, sequences: Sequences, priors: Priors, fresh: bool = False) -> float:
        """Paths given parameters, then parameters given paths; returns the log-density of everything."""
        self.paths = draw_paths(
            engine, sequences, self.paths, self.process, self.log_density, self.block_rngs, fresh=fresh
        )
        self.process = priors.draw(self.paths, sequences.x, self.process.states, self.rng)
        emission = self.process.emission
        if not all(isinstance(column, Direct) for column in emission.columns):
            self.log_density = emission.log_density(sequences.x)
        return priors.log_density(self.process) + log_joint(self.paths, self.process, self.log_density)


@dataclass(frozen=True, eq=False)
class Samples:
    """Kept draws of the parameters, chain after chain, their states matched.

    Parameters
    ----------
    rates, transition_probs, initial_probs : (n, M), (n, M, M), (n, M)
    emissions : n records
    """

    rates: Floats
    transition_probs: Floats
    initial_probs: Floats
    emissions: tuple[Record, ...]

    def __len__(self) -> int:
        return len(self.rates)

    @property
    def probs(self) -> Floats:
        """(n, M, N) ρ of each draw, for symbols."""
        return np.stack([emission.probs for emission in self.emissions])

    @property
    def means(self) -> Floats:
        """(n, M) or (n, M, D) μ of each draw, for measurements."""
        return np.stack([emission.means for emission in self.emissions])

    @property
    def sds(self) -> Floats:
        """(n, M) or (n, M, D) σ of each draw, for measurements."""
        return np.stack([emission.sds for emission in self.emissions])

    def process(self, k: int, states: NDArray[Any]) -> Process:
        """Draw k as a process."""
        return Process(self.rates[k], self.transition_probs[k], self.initial_probs[k], self.emissions[k], states)


def match_order(row_states: Ints, pivot: Ints, n_states: int) -> Ints:
    """(M,) order of the states of one sample so that most rows are in the states of the pivot."""
    together = np.bincount(pivot * n_states + row_states, minlength=n_states**2).reshape(n_states, n_states)
    return np.asarray(linear_sum_assignment(together, maximize=True)[1], dtype=np.int64)


def mean_record(records: Sequence[Record]) -> Record:
    """Emission whose parameters are the means of those given."""
    columns: list[Column] = []
    for parts in zip(*(record.columns for record in records), strict=True):
        first: Any = parts[0]
        if isinstance(first, Categorical):
            columns.append(Categorical(np.mean([p.probs for p in parts], axis=0), first.symbols))  # type: ignore[attr-defined]
        elif isinstance(first, Gaussian):
            means, sds = (np.mean([getattr(p, name) for p in parts], axis=0) for name in ("means", "sds"))
            columns.append(Gaussian(means, sds))
        else:
            columns.append(first)
    return Record(columns)


def predictive(column: Column, posterior: Floats) -> Floats:
    """(n, N) chances of the symbols of a column, or (n, 1) its mean, under state probabilities (n, M)."""
    if isinstance(column, Direct):
        return posterior
    if isinstance(column, Categorical):
        return posterior @ column.probs
    return (posterior @ column.means)[:, None] if isinstance(column, MeanColumn) else posterior


def best_value(column: Column, table: Floats) -> NDArray[Any]:
    """(n,) most probable symbol, or the mean, of predictive distributions."""
    if isinstance(column, Direct):
        return np.asarray(column.labels[table.argmax(axis=1)])
    if isinstance(column, Categorical):
        return np.asarray(column.symbols[table.argmax(axis=1)])
    return table[:, 0]


def require_equal_weights(panel: Panel, name: str) -> None:
    """Refuse weights: a posterior has no sequence that counts half."""
    odd = np.flatnonzero(panel.weights != 1)
    if len(odd):
        raise ValueError(
            f"weights must all be 1 for {name}, got {panel.weights[odd[0]]:g} for "
            f"{panel.locate(int(panel.offsets[odd[0]]))}; drop the weights, repeat the sequences by "
            "panel.select(...), or use JumpMeans or EM."
        )


def require_integers(model: Any, least: dict[str, int]) -> None:
    """Refuse options that are not integers of at least a given size."""
    for name, smallest in least.items():
        value = getattr(model, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < smallest:
            raise ValueError(f"{name} must be an integer of at least {smallest}, got {value!r}.")


class SampledReadOut(MarkovReadOut):
    """Read-outs that average over kept samples; subclasses say which processes they are."""

    def _processes(self) -> Iterator[Process]:
        """The process of each kept sample."""
        raise NotImplementedError

    def _smoothed(self, panel: Panel) -> Iterator[tuple[Process, Floats]]:
        """Each kept sample with its posterior (n, M) of the rows."""
        engine = get_engine(self.engine)
        processes = list(self._processes())
        sequences = Sequences.from_panel(panel, processes[0].emission.encode(panel))
        for k in track(len(processes), f"{type(self).__name__} read-out"):
            try:
                yield processes[k], engine.smooth(sequences, processes[k])[0]
            except NoPathError as error:
                raise unexplained(panel, error, "the sampled process") from None

    def _predictive(self, panel: Panel) -> list[Floats]:
        """Mean predictive distribution of the rows for each column, in panel order."""
        total: list[Floats] = []
        n = 0
        for process, posterior in self._smoothed(panel):
            tables = [predictive(column, posterior) for column in process.emission.columns]
            total = [a + b for a, b in zip(total, tables, strict=True)] if total else tables
            n += 1
        return [table / n for table in total]

    def predict_value(self, panel: Any, method: str = "posterior") -> NDArray[Any]:
        """The observation each row should show, in the caller's row order.

        Parameters
        ----------
        panel : Panel or frame
        method : "posterior"
            The only one here: predictive distributions averaged over the kept samples (the Bayes estimator), then
            the mean, or the most probable label or symbol. Labels of the states do not matter to it.

        Returns
        -------
        values : (n,), or (n, D) for D columns
        """
        self._check_fitted()
        if method != "posterior":
            raise ValueError(
                f"method must be 'posterior' for {type(self).__name__}, got {method!r}; "
                "a sampler has no best trajectory."
            )
        panel = as_panel(panel)
        columns = self.process_.emission.columns
        parts = [best_value(c, t) for c, t in zip(columns, self._predictive(panel), strict=True)]
        if len(parts) > 1 and any(part.dtype.kind not in "fiu" for part in parts):
            parts = [part.astype(object) for part in parts]
        return panel.to_caller_order(parts[0] if len(parts) == 1 else np.column_stack(parts))

    def predict_value_proba(self, panel: Any) -> Floats:
        """Chances of the labels or symbols at each row, averaged over the kept samples.

        Parameters
        ----------
        panel : Panel or frame
            Of one column of labels or symbols.

        Returns
        -------
        probs : (n, N)
            In the caller's row order; columns in the order of `process_.emission.columns[0].symbols` (or `.labels`).
        """
        self._check_fitted()
        columns = self.process_.emission.columns
        if len(columns) > 1 or not isinstance(columns[0], Categorical | Direct):
            raise ValueError(
                "predict_value_proba needs one column of labels or symbols, got "
                f"{[column.name for column in columns]}; use predict_value."
            )
        panel = as_panel(panel)
        return panel.to_caller_order(self._predictive(panel)[0])

    def decode(self, panel: Any) -> Trajectories:
        """One draw of the trajectories given the parameters of the last sample: a likely path, not the best one.

        The same for every call: it is drawn with `random_state`.
        """
        self._check_fitted()
        panel = as_panel(panel)
        process = self._last_process()
        sequences = Sequences.from_panel(panel, process.emission.encode(panel))
        paths = Paths.at_rows(sequences, len(process.rates), jumps_needed(process.transition_probs > 0))
        log_density = process.emission.log_density(sequences.x)
        engine = get_engine(self.engine)
        rngs = np.random.default_rng(self._seed()).spawn(sequences.n_blocks)
        try:
            for k in range(DECODE_SWEEPS):
                paths = draw_paths(engine, sequences, paths, process, log_density, rngs, fresh=k == 0)
        except NoPathError as error:
            raise unexplained(panel, error, "the fitted process") from None
        return publish_trajectories(panel, paths.dwells(), self.states_)

    def _last_process(self) -> Process:
        raise NotImplementedError

    def _seed(self) -> int:
        return self._seed_

    _seed_: int


def unexplained(panel: Panel, error: NoPathError, why: str) -> InfeasibleError:
    """The error a user can act on, from the internal one."""
    row = min(int(panel.offsets[error.sequence]) + error.row, int(panel.offsets[error.sequence + 1]) - 1)
    return InfeasibleError(
        f"{why} must be able to explain every sequence, got none for {panel.locate(row)}; allow the move "
        "(Structure(allowed=...)) or correct the row."
    )


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
        Draws kept of each chain, iterations before the first, and iterations for each.
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
        Log-density of parameters, paths and values after each iteration (mean over chains), with times.
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
    Predicted observations need no matching. A sequence cannot count more or less than once: weights are refused.

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
        n_samples: int = 300,
        burn_in: int = 100,
        thin: int = 1,
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
        engine = get_engine(self.engine)
        self._check_options()
        require_equal_weights(panel, "Gibbs")
        labels, blank = states_and_emission(panel, self.emission, self.n_states, self.states, "auto")
        x = blank.encode(panel)
        moves = (self.structure or Structure()).allowed_moves(labels)
        sequences = Sequences.from_panel(panel, x)
        gap = typical_gap(panel)
        prior_time = gap if isinstance(self.prior_dwell_time, str) else float(self.prior_dwell_time)
        priors = Priors(prior_time, moves, tuple(column_prior(c, x[:, d], panel) for d, c in enumerate(blank.columns)))
        rng = np.random.default_rng(self.random_state)
        chains = [
            self._start(panel, sequences, blank, moves, labels, gap, own, first=k == 0)
            for k, own in enumerate(rng.spawn(self.n_chains))
        ]
        self._seed_ = int(rng.integers(2**32))
        self._run(panel, engine, sequences, priors, chains)
        return self

    def _start(
        self, panel: Panel, sequences: Sequences, blank: Record, moves: NDArray[np.bool_], labels: NDArray[Any],
        gap: float, rng: np.random.Generator, first: bool,
    ) -> Chain:  # fmt: skip
        emission = start_emission(blank, sequences.x, panel, self.init, rng, first=first)
        columns = [
            Gaussian(column.means, noise_scale(sequences.x[:, d], panel, NORMAL_DIFFERENCE))
            if isinstance(column, Gaussian)
            else column
            for d, column in enumerate(emission.columns)
        ]
        M = len(labels)
        rates = np.asarray(moves.any(axis=1) / gap)
        process = Process(rates, uniform_rows(moves), np.full(M, 1.0 / M), Record(columns), labels)
        paths = Paths.at_rows(sequences, M, jumps_needed(moves))
        log_density = process.emission.log_density(sequences.x)
        return Chain(process, paths, log_density, rng, rng.spawn(sequences.n_blocks))

    def _run(self, panel: Panel, engine: Engine, sequences: Sequences, priors: Priors, chains: list[Chain]) -> None:
        n_iter = self.burn_in + self.n_samples * self.thin
        looked_at = np.unique(np.linspace(0, len(sequences.tau) - 1, MATCHED_ROWS).astype(np.int64))
        history = History()
        kept: list[list[tuple[Process, Ints, float]]] = [[] for _ in chains]
        for i in track(n_iter, "Gibbs"):
            try:
                values = [chain.step(engine, sequences, priors, fresh=i == 0) for chain in chains]
            except NoPathError as error:
                raise unexplained(panel, error, "the allowed moves") from None
            history.add(float(np.mean(values)))
            if i >= self.burn_in and (i - self.burn_in + 1) % self.thin == 0:
                for chain, value, draws in zip(chains, values, kept, strict=True):
                    draws.append((chain.process, chain.paths.row_states[looked_at], value))
        self.history_, self.n_iter_ = history, n_iter
        self._publish(panel, chains, [draw for draws in kept for draw in draws])

    def _publish(self, panel: Panel, chains: list[Chain], kept: list[tuple[Process, Ints, float]]) -> None:
        labels = chains[0].process.states
        M = len(labels)
        orders = [np.arange(M)] * len(kept)
        if self.structure is None and not kept[0][0].emission.is_direct:
            process, pivot, _ = max(kept, key=lambda draw: draw[2])
            stable = process.emission.stable_order(np.bincount(pivot, minlength=M).astype(np.float64))
            orders = [match_order(row_states, pivot, M)[stable] for _, row_states, _ in kept]
        matched = [draw[0].permute(order) for draw, order in zip(kept, orders, strict=True)]
        self.states_ = labels
        self.samples_ = Samples(
            np.array([process.rates for process in matched]),
            np.array([process.transition_probs for process in matched]),
            np.array([process.initial_probs for process in matched]),
            tuple(process.emission for process in matched),
        )
        self.process_ = Process(
            self.samples_.rates.mean(axis=0),
            self.samples_.transition_probs.mean(axis=0),
            self.samples_.initial_probs.mean(axis=0),
            mean_record(self.samples_.emissions),
            labels,
        )
        with np.errstate(divide="ignore"):
            log_rates = np.log(self.samples_.rates).reshape(len(chains), self.n_samples, M)
        self.ess_ = np.array([bulk_ess(log_rates[..., s]) for s in range(M)])
        self.r_hat_ = np.array([split_r_hat(log_rates[..., s]) for s in range(M)])
        dwells = chains[0].paths.dwells()
        place = np.argsort(orders[self.n_samples - 1])
        dwells.states[:] = place[dwells.states]
        self.trajectories_ = publish_trajectories(panel, dwells, labels)

    def _processes(self) -> Iterator[Process]:
        return (self.samples_.process(k, self.states_) for k in range(len(self.samples_)))

    def _last_process(self) -> Process:
        return self.samples_.process(self.n_samples - 1, self.states_)

    def _posterior(self, panel: Panel) -> Floats:
        total: Any = 0.0
        for _, posterior in self._smoothed(panel):
            total = total + posterior
        return np.asarray(total / len(self.samples_))

    def _row_states(self, panel: Panel) -> NDArray[np.int32]:
        return self._posterior(panel).argmax(axis=1).astype(np.int32)

    def _check_options(self) -> None:
        check_count("n_states", self.n_states, 1)
        require_integers(self, {"n_samples": 1, "burn_in": 0, "thin": 1, "n_chains": 1})
        check_choice("init", self.init, ("data", "noise"))
        time = self.prior_dwell_time
        if time != "auto" and (isinstance(time, str) or not (np.isfinite(time) and time > 0)):
            raise ValueError(f"prior_dwell_time must be 'auto' or a finite number > 0, got {time!r}.")
