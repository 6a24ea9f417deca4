"""Particle Markov chain Monte Carlo for the infinite model: the hierarchical gamma-exponential process.

The model (Saeedi and Bouchard-Côté 2011; section 4 of Huggins et al. 2015), with H_0 the prior of a state's emission:

    μ_0 ~ GammaP(α_0 H_0, γ_0),   μ_i | μ_0 ~ GammaP(μ_0, γ) for every state i and for the row of first states,
    next state ~ μ_i / ‖μ_i‖ after a time ~ Exp(‖μ_i‖),   first state ~ μ_start / ‖μ_start‖.

**What is kept.** Of the infinite measures: ω_j = μ_0 at the M states in use, and ω_*, the mass of all others; in each
row the masses μ_ij and what is left, μ_i*. A jump i → j after a time t has density μ_ij exp(-‖μ_i‖ t), so paths with
n_ij jumps and times T_i (running ones included) have Π μ_ij^n_ij exp(-‖μ_i‖ T_i). A jump from i to itself cannot be
seen: given the path, such jumps are a Poisson process of rate μ_ii whatever else is known, and summing over them takes
μ_ii out of the likelihood. So the diagonal is integrated out: part of the model, never of the state of the chain.
Below, i ≠ j throughout. One iteration:

1. **Paths** given the measures: conditional SMC with ancestor sampling, one sequence after the other (they are
   independent given the measures). A particle that jumps into what is left of row i finds a state never used so far.
   Given ω_* and μ_i* that state is a size-biased pick from DP(α_0 H_0): ω = b ω_*, b ~ Beta(1, α_0), emission ~ H_0;
   its share of μ_k* is Beta(ω, (1 - b) ω_*) in every row k, with 1 added to ω in the row that was left (the posterior
   given the pick); its own row is Gamma(ω_j, γ), Gamma((1 - b) ω_*, γ). This reveals one and the same set of infinite
   measures piece by piece, so the particles target the exact conditional of the path; nothing is truncated. States that
   no path uses go back into the rest.
2. **Base measure**, rows integrated out. Row i gives Π_j Γ(ω_j + n_ij)/Γ(ω_j) times (γ/(γ + T_i))^(κ_0 - ω_i), where
   κ_0 = ω_1 + … + ω_M + ω_*; the c_j first states in j of S sequences give Γ(κ_0)/Γ(κ_0 + S) Π_j Γ(ω_j + c_j)/Γ(ω_j).
   Table counts, m_ij ~ Σ_l Bernoulli(ω_j/(ω_j + l)) with l < n_ij (and likewise of c_j), turn the ratios of gammas into
   ω_j^m_ij, and η ~ Beta(κ_0, S) turns the quotient into η^κ_0. With Λ = Σ_i ln(1 + T_i/γ) - ln η and
   Λ_j = Λ - ln(1 + T_j/γ), the lacking diagonal, the gamma process then has

       α_0 ~ Gamma(a + M, b + ln(1 + Λ/γ_0)),   ω_j ~ Gamma(m_·j, γ_0 + Λ_j),   ω_* ~ Gamma(α_0, γ_0 + Λ).

3. **Rows**: μ_ij ~ Gamma(ω_j + n_ij, γ + T_i) and μ_i* ~ Gamma(ω_*, γ + T_i); first states Gamma(ω_j + c_j, 1) and
   Gamma(ω_*, 1), whose scale does not matter.
4. **γ** ~ Gamma(a + Σ_i (κ_0 - ω_i), b + Σ_i (Σ_j μ_ij + μ_i*)): without its diagonal ‖μ_i‖ is Gamma(κ_0 - ω_i, γ).
5. **Emissions** from their conjugate posterior.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..emissions import Categorical, Column, Gaussian, Record, family_names
from ..engines.base import Dwells, Sequences
from ..errors import PanelError
from ..estimators.base import as_panel
from ..estimators.publish import publish_trajectories
from ..estimators.setup import typical_gap
from ..kernels.particles import Measures, draw_tables, path_stats, sweep_paths
from ..panel import Panel
from ..params import Process
from ..progress import History, track
from .gibbs import NormalPrior, SampledReadOut, SymbolPrior, require_equal_weights, require_integers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# γ_0: only its product with the other masses matters once γ is drawn, so it stays 1.
BASE_RATE = 1.0
# α_0 ~ Gamma(1, 1).
CONCENTRATION_PRIOR = (1.0, 1.0)
# γ ~ Gamma(3, 3 / typical gap): mean one gap; with a shape of 1 the mean rate κ_0 / γ would be infinite.
TIME_SHAPE = 3.0
# States that measurements start with: equal shares of the values, in order.
STARTING_STATES = 4


class HyperPriors(NamedTuple):
    """α_0 and γ: a number, or None to draw it under its gamma prior (shape, rate)."""

    concentration: float | None
    prior_time: float | None
    concentration_prior: tuple[float, float]
    time_prior: tuple[float, float]


class InfiniteSample(NamedTuple):
    """What one iteration knows: M states in use, and all others together.

    base : (M + 1,) ω, the last entry ω_*; rates : (M, M + 1) μ_ij with zero diagonal, the last column μ_i*;
    first : (M + 1,) masses of the first states; emission : of the M states; concentration : α_0; prior_time : γ.
    """

    base: Floats
    rates: Floats
    first: Floats
    emission: Column
    concentration: float
    prior_time: float

    @property
    def n_states(self) -> int:
        """M, states in use."""
        return len(self.rates)

    def process(self, unseen: Column | None) -> Process:
        """The states in use as a process; with `unseen` (one state), all others follow as one more.

        From that state the process goes on at the mean rates ω_j / γ of a row never used.
        """
        M = self.n_states
        Q, first = self.rates[:, :M], self.first[:M]
        emission = self.emission
        if unseen is not None:
            Q = np.vstack([self.rates, np.append(self.base[:M] / self.prior_time, 0.0)])
            first = self.first
            emission = join_columns(self.emission, unseen)
        rates = Q.sum(axis=1)
        P = Q / np.where(rates > 0, rates, 1.0)[:, None]
        return Process(rates, P, first / first.sum(), Record([emission]))

    def permute(self, order: Ints) -> InfiniteSample:
        """The same sample with state order[i] in place i."""
        wide = np.append(order, self.n_states)
        return self._replace(
            base=self.base[wide],
            rates=self.rates[np.ix_(order, wide)],
            first=self.first[wide],
            emission=self.emission.permute(order),
        )


def join_columns(a: Column, b: Column) -> Column:
    """Emission of the states of a, then those of b."""
    if isinstance(a, Categorical) and isinstance(b, Categorical):
        return Categorical(np.vstack([a.probs, b.probs]), a.symbols)
    assert isinstance(a, Gaussian) and isinstance(b, Gaussian)
    return Gaussian(np.append(a.means, b.means), np.append(a.sds, b.sds))


@dataclass(eq=False)
class InfinitePaths:
    """Current paths of all sequences: dwells (S + 1,) offsets, states, starts, and what follows from them."""

    dwells: Ints
    states: NDArray[np.int32]
    starts: Floats
    rows: NDArray[np.int32]
    row_states: Ints
    jumps: Floats
    time: Floats
    first: Floats

    @classmethod
    def of(
        cls, sequences: Sequences, dwells: Ints, states: NDArray[np.int32], starts: Floats
    ) -> tuple[InfinitePaths, Ints]:
        """Paths with their states renumbered 0 .. M - 1, unused ones left out; and the old number of each."""
        kept = np.unique(states).astype(np.int64)
        codes = np.searchsorted(kept, states).astype(np.int32)
        M = len(kept)
        rows, row_states = np.zeros(len(codes), np.int32), np.zeros(len(sequences.tau), np.int64)
        jumps, time, first = np.zeros((M, M)), np.zeros(M), np.zeros(M)
        path_stats(
            sequences.tau, sequences.offsets, sequences.ends, dwells, codes, starts, row_states, rows,
            jumps, time, first,
        )  # fmt: skip
        return cls(dwells, codes, starts, rows, row_states, jumps, time, first), kept

    @classmethod
    def from_rows(cls, sequences: Sequences, row_states: Ints) -> InfinitePaths:
        """Paths that jump at the rows where the given states change."""
        opens = np.zeros(len(row_states), dtype=bool)
        opens[sequences.offsets[:-1]] = True
        change = opens | (np.diff(row_states, prepend=row_states[0]) != 0)
        sequence = np.repeat(np.arange(len(sequences.ends)), np.diff(sequences.offsets))
        counts = np.bincount(sequence[change], minlength=len(sequences.ends))
        starts = np.where(opens, 0.0, sequences.tau)[change]
        return cls.of(sequences, np.concatenate([[0], np.cumsum(counts)]), row_states[change].astype(np.int32), starts)[
            0
        ]

    def to_dwells(self) -> Dwells:
        """All paths in the layout of `publish_trajectories`."""
        return Dwells(
            self.dwells, self.states, self.starts, self.rows, np.diff(self.dwells), self.row_states.astype(np.int32)
        )  # fmt: skip


@dataclass(eq=False)
class ParticleChain:
    """The Markov chain of the infinite model on one panel of one column x (n,)."""

    sequences: Sequences
    x: Floats
    prior: SymbolPrior | NormalPrior
    hyper: HyperPriors
    n_particles: int
    paths: InfinitePaths
    sample: InfiniteSample
    rng: np.random.Generator

    def step(self) -> None:
        """New paths given the measures, then new measures given the paths."""
        self.draw_paths()
        self.draw_measures()

    def draw_paths(self) -> None:
        """Conditional SMC for every sequence; the sample is cut to the states in use."""
        family, numbers = (
            (0, np.ones(len(self.prior.symbols))) if isinstance(self.prior, SymbolPrior) else (1, np.array(self.prior))
        )
        m, dwells, states, starts = sweep_paths(
            to_measures(self.sample), self.sequences.tau, self.x, self.sequences.offsets, self.sequences.ends,
            self.paths.dwells, self.paths.states, self.paths.starts, self.n_particles, family, numbers, self.rng,
        )  # fmt: skip
        self.paths, kept = InfinitePaths.of(self.sequences, dwells, states, starts)
        self.sample = from_measures(m, kept, self.sample)

    def draw_measures(self) -> None:
        """Steps 2 to 5: base measure and its hyperparameter, rows, γ, emissions."""
        paths, rng, hyper = self.paths, self.rng, self.hyper
        M = len(paths.time)
        gamma = self.sample.prior_time
        base = self.sample.base
        tables = draw_tables(np.vstack([paths.first, paths.jumps]), base[:M], rng).sum(axis=0)
        log_eta = log_beta_draw(float(base.sum()), len(self.sequences.ends), rng)
        used = np.log1p(paths.time / gamma)
        total = used.sum() - log_eta
        alpha = self.sample.concentration
        if hyper.concentration is None:
            a, b = hyper.concentration_prior
            alpha = float(rng.standard_gamma(a + M) / (b + np.log1p(total / BASE_RATE)))
        base = np.append(
            rng.standard_gamma(tables) / (BASE_RATE + total - used),
            rng.standard_gamma(alpha) / (BASE_RATE + total),
        )
        shape = base + np.hstack([paths.jumps, np.zeros((M, 1))])
        np.fill_diagonal(shape, 0.0)
        rates = rng.standard_gamma(shape) / (gamma + paths.time)[:, None]
        first = rng.standard_gamma(base + np.append(paths.first, 0.0))
        if hyper.prior_time is None:
            a, b = hyper.time_prior
            gamma = float(rng.standard_gamma(a + (base.sum() - base[:M]).sum()) / (b + rates.sum()))
        emission = self.prior.draw(self.x, paths.row_states, M, rng)
        self.sample = InfiniteSample(base, rates, first, emission, alpha, gamma)

    def log_likelihood(self) -> float:
        """Log-density of paths and values given the measures and emissions."""
        paths, sample = self.paths, self.sample
        used, started = paths.jumps > 0, paths.first > 0
        M = sample.n_states
        log_density = sample.emission.log_density(self.x)[np.arange(len(self.x)), paths.row_states]
        return float(
            (paths.jumps[used] * np.log(sample.rates[:, :M][used])).sum()
            - sample.rates.sum(axis=1) @ paths.time
            + paths.first[started] @ np.log(sample.first[:M][started] / sample.first.sum())
            + log_density.sum()
        )


def log_beta_draw(a: float, b: float, rng: np.random.Generator) -> float:
    """Logarithm of a Beta(a, b) draw: exact also where a is so small that the draw itself would be 0."""
    x = np.log(rng.standard_gamma(a + 1.0)) + np.log1p(-rng.random()) / a
    return float(x - np.logaddexp(x, np.log(rng.standard_gamma(b))))


def to_measures(sample: InfiniteSample) -> Measures:
    """A sample in the layout of the kernels, with room for more states."""
    M = sample.n_states
    cap = 2 * M + 16
    if isinstance(sample.emission, Categorical):
        values = sample.emission.probs
    else:
        values = np.column_stack([sample.emission.means, sample.emission.sds])  # type: ignore[attr-defined]
    base, exits, left = np.zeros(cap), np.zeros(cap), np.zeros(cap + 1)
    rows, theta = np.zeros((cap + 1, cap)), np.zeros((cap, values.shape[1]))
    base[:M], exits[:M], theta[:M] = sample.base[:M], sample.rates.sum(axis=1), values
    rows[0, :M], rows[1 : M + 1, :M] = sample.first[:M], sample.rates[:, :M]
    left[0], left[1 : M + 1] = sample.first[M], sample.rates[:, M]
    scalars = np.array([sample.base[M], sample.concentration, sample.prior_time])
    return Measures(base, rows, left, exits, theta, scalars, np.array([M]))


def from_measures(m: Measures, kept: Ints, before: InfiniteSample) -> InfiniteSample:
    """The measures at the kept states; all others go back to what is left."""
    M = int(m.size[0])
    others = np.setdiff1d(np.arange(M), kept)
    base = np.append(m.base[kept], m.scalars[0] + m.base[others].sum())
    rows = np.hstack([m.rows[:, kept], (m.left + m.rows[:, others].sum(axis=1))[:, None]])
    values = m.theta[kept]
    emission: Column = (
        Categorical(values, before.emission.symbols)
        if isinstance(before.emission, Categorical)
        else Gaussian(values[:, 0], values[:, 1])
    )
    return before._replace(base=base, rates=rows[kept + 1], first=rows[0], emission=emission)


class ParticleGibbs(SampledReadOut):
    """Posterior samples of the infinite Markov jump process by particle Markov chain Monte Carlo.

    The number of states is not given: states are drawn from a hierarchical gamma-exponential process, born and
    dropped as the chain runs. Nothing is truncated.

    Parameters
    ----------
    emission : "categorical" or "gaussian"
        Family of the only value column.
    n_particles : int
        Particles of conditional SMC, the current path among them; at least 2.
    n_iter, burn_in : int
        Iterations, and how many of the first are not kept.
    concentration : float or "auto"
        α_0: how readily new states are born; auto: drawn under Gamma(1, 1).
    prior_time : float or "auto"
        γ: time added to each state before its rates are drawn, in the unit of the panel; auto: drawn under a gamma
        prior whose mean is the median gap, so that the unit of time does not matter.
    engine : "threads" or an engine such as `jumpmeans.engines.Threads(n_jobs=2)`
        For read-outs; the chain itself is sequential.
    random_state : int, Generator or None

    Attributes
    ----------
    samples_ : list of InfiniteSample
        Kept iterations: measures and emission of the states in use.
    n_states_history_ : (n_iter,)
        Number of states in use after each iteration.
    n_states_ : int
        The number most frequent among the kept iterations.
    process_, states_ : Process, (M,)
        States in use in the last iteration, in the order of their values: one posterior sample, not an average, since
        states of iterations that differ in number cannot be matched.
    trajectories_ : Trajectories
        Paths of the last iteration.
    history_ : History
        Log-density of paths and values given measures and emissions after each iteration, with times.
    n_iter_ : int

    Notes
    -----
    `predict_value` averages predictive distributions over the kept iterations: forward-backward under the measures of
    each, with all states not in use taken as one more that shows what the prior shows and moves on at the mean rates
    of a row never used. `predict`, `predict_proba` and `decode` speak of the states of the last iteration alone.

    The paper leaves the priors and hyperparameters of its sampler open; those here, and the derivation of every step,
    are in the docstring of the module. First states are drawn from a row of their own under μ_0. Values start in the
    state of their symbol (measurements in that of their quarter), with jumps at the observation times. A sequence
    cannot count more or less than once: weights are refused.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> panel = jm.datasets.load_icu_pressure("nih4").select(range(5))
    >>> model = jm.comparators.ParticleGibbs(n_particles=20, n_iter=20, burn_in=10).fit(panel)
    >>> len(model.samples_), model.n_states_history_.shape
    (10, (20,))
    """

    def __init__(
        self,
        *,
        emission: str = "categorical",
        n_particles: int = 100,
        n_iter: int = 300,
        burn_in: int = 100,
        concentration: float | str = "auto",
        prior_time: float | str = "auto",
        engine: Any = "threads",
        random_state: Any = 0,
    ) -> None:
        self.emission = emission
        self.n_particles = n_particles
        self.n_iter = n_iter
        self.burn_in = burn_in
        self.concentration = concentration
        self.prior_time = prior_time
        self.engine = engine
        self.random_state = random_state

    def fit(self, panel: Any, y: None = None) -> Self:
        """Sample the posterior given a panel, or a frame with columns id, time and value."""
        panel = as_panel(panel)
        self._check_options()
        require_equal_weights(panel, "ParticleGibbs")
        chain = self._start(panel)
        self._seed_ = int(chain.rng.integers(2**32))
        history = History()
        samples: list[InfiniteSample] = []
        sizes = np.zeros(self.n_iter, np.int64)
        for i in track(self.n_iter, "ParticleGibbs"):
            chain.step()
            sizes[i] = chain.sample.n_states
            history.add(chain.log_likelihood())
            if i >= self.burn_in:
                samples.append(chain.sample)
        self.samples_, self.n_states_history_ = samples, sizes
        self.n_states_ = Counter(sizes[self.burn_in :].tolist()).most_common(1)[0][0]
        self.history_, self.n_iter_ = history, self.n_iter
        self._prior_ = chain.prior
        last = samples[-1]
        order = Record([last.emission]).stable_order(chain.paths.time)
        self.process_ = last.permute(order).process(None)
        self.states_ = self.process_.states
        dwells = chain.paths.to_dwells()
        dwells.states[:] = np.argsort(order)[dwells.states]
        self.trajectories_ = publish_trajectories(panel, dwells, self.states_)
        return self

    def _start(self, panel: Panel) -> ParticleChain:
        """A chain whose states are the symbols, or quarters of the values."""
        if panel.n_columns != 1:
            raise PanelError(
                f"ParticleGibbs needs one value column, got {panel.n_columns}: {list(panel.columns)}; name one."
            )
        prior: SymbolPrior | NormalPrior
        if self.emission == "categorical":
            column: Column = Categorical.blank(panel, 0, 1, [0], 0.0)
            x = np.array(column.encode(panel, 0))
            prior = SymbolPrior(column.symbols)  # type: ignore[attr-defined]
            codes = x
        else:
            x = np.array(Gaussian.blank(panel, 0, 1, [0], 0.0).encode(panel, 0))
            if not np.isfinite(x).any():
                raise PanelError(
                    f"column {panel.columns[0]!r} must hold at least one value, got none; check the column."
                )
            prior = NormalPrior.of(x, panel)
            edges = np.quantile(x[np.isfinite(x)], np.arange(1, STARTING_STATES) / STARTING_STATES)
            codes = np.where(np.isnan(x), np.nan, np.searchsorted(edges, x))
        sequences = Sequences.from_panel(panel, x[:, None])
        paths = InfinitePaths.from_rows(sequences, carry_states(codes, sequences.offsets))
        gap = typical_gap(panel)
        hyper = HyperPriors(
            None if isinstance(self.concentration, str) else float(self.concentration),
            None if isinstance(self.prior_time, str) else float(self.prior_time),
            CONCENTRATION_PRIOR,
            (TIME_SHAPE, TIME_SHAPE / gap),
        )
        rng = np.random.default_rng(self.random_state)
        M = len(paths.time)
        start = InfiniteSample(
            np.full(M + 1, 1.0 / (M + 1)),
            np.zeros((M, M + 1)),
            np.ones(M + 1),
            prior.draw(x, paths.row_states, M, rng),
            1.0 if hyper.concentration is None else hyper.concentration,
            gap if hyper.prior_time is None else hyper.prior_time,
        )
        chain = ParticleChain(sequences, x, prior, hyper, self.n_particles, paths, start, rng)
        chain.draw_measures()
        return chain

    def _unseen(self) -> Column:
        """What a state never used shows: the prior's predictive law, as one state."""
        if isinstance(self._prior_, SymbolPrior):
            N = len(self._prior_.symbols)
            return Categorical(np.full((1, N), 1.0 / N), self._prior_.symbols)
        mean, size, shape, scale = self._prior_
        return Gaussian([mean], np.sqrt(scale / max(shape - 1.0, 0.5) * (1.0 + 1.0 / size)))

    def _processes(self) -> Iterator[Process]:
        unseen = self._unseen()
        return (sample.process(unseen) for sample in self.samples_)

    def _last_process(self) -> Process:
        return self.process_

    def _row_states(self, panel: Panel) -> NDArray[np.int32]:
        return self._posterior(panel).argmax(axis=1).astype(np.int32)

    def _check_options(self) -> None:
        if self.emission not in ("categorical", "gaussian"):
            family_names(self.emission, 1)
            raise ValueError(
                f"emission must be 'categorical' or 'gaussian' for ParticleGibbs, got {self.emission!r}; "
                "JumpMeans, EM and Gibbs know directly observed states."
            )
        require_integers(self, {"n_particles": 2, "n_iter": 1, "burn_in": 0})
        if self.burn_in >= self.n_iter:
            raise ValueError(f"burn_in must be below n_iter={self.n_iter}, got {self.burn_in}.")
        for name in ("concentration", "prior_time"):
            value = getattr(self, name)
            if value != "auto" and (isinstance(value, str) or not (np.isfinite(value) and value > 0)):
                raise ValueError(f"{name} must be 'auto' or a finite number > 0, got {value!r}.")


def carry_states(codes: Floats, offsets: Ints) -> Ints:
    """(n,) state of each row: its code, or that of the row before (else after) it in its sequence, or 0."""
    out = np.zeros(len(codes), np.int64)
    for a, b in pairwise(offsets.tolist()):
        present = np.flatnonzero(np.isfinite(codes[a:b]))
        if len(present):
            nearest = np.maximum(np.searchsorted(present, np.arange(b - a), side="right") - 1, 0)
            out[a:b] = codes[a + present[nearest]].astype(np.int64)
    return out
