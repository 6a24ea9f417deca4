"""The infinite model, a hierarchical gamma-exponential process, and a Markov chain on its posterior.

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

from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Ints
from ..emissions import Column, Record
from ..emissions.priors import ParticlePrior
from ..interrupts import held_back
from ..kernels.particles import Measures, draw_tables, path_stats, sweep_paths
from ..model.process import Process
from ..passes import Block, Dwells, Held
from ..stored import stored
from ..stored.kinds import require, require_floats

# γ_0: only its product with the other masses matters once γ is drawn, so it stays 1.
BASE_RATE = 1.0


class HyperPriors(NamedTuple):
    """α_0 and γ: a number, or None to draw it under its gamma prior (shape, rate)."""

    concentration: float | None
    prior_time: float | None
    concentration_prior: tuple[float, float]
    time_prior: tuple[float, float]


@stored
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

    def check_fields(self) -> None:
        """Refuse what is no sample, if it comes from a file."""
        require(isinstance(self.emission, Column), "a sample must have an emission")
        M = self.emission.n_states
        require_floats("base", self.base, (M + 1,), least=0.0)
        require_floats("rates", self.rates, (M, M + 1), least=0.0)
        require_floats("first", self.first, (M + 1,), least=0.0)
        require_floats("numbers", np.array([self.concentration, self.prior_time], dtype=np.float64), (2,), least=0.0)

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
            emission = self.emission.join(unseen)
        return Process.from_generator(Q, first / first.sum(), Record([emission]))

    def reorder(self, order: Ints) -> InfiniteSample:
        """The same sample with state order[i] in place i."""
        wide = np.append(order, self.n_states)
        return self._replace(
            base=self.base[wide],
            rates=self.rates[np.ix_(order, wide)],
            first=self.first[wide],
            emission=self.emission.take(order),
        )


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
    def of(cls, block: Block, dwells: Ints, states: NDArray[np.int32], starts: Floats) -> tuple[InfinitePaths, Ints]:
        """Paths with their states renumbered 0 .. M - 1, unused ones left out; and the old number of each."""
        kept = np.unique(states).astype(np.int64)
        codes = np.searchsorted(kept, states).astype(np.int32)
        M = len(kept)
        rows, row_states = np.zeros(len(codes), np.int32), np.zeros(len(block.tau), np.int64)
        jumps, time, first = np.zeros((M, M)), np.zeros(M), np.zeros(M)
        path_stats(
            block.tau, block.offsets, block.ends, dwells, codes, starts, row_states, rows,
            jumps, time, first,
        )  # fmt: skip
        return cls(dwells, codes, starts, rows, row_states, jumps, time, first), kept

    @classmethod
    def from_rows(cls, block: Block, row_states: Ints) -> InfinitePaths:
        """Paths that jump at the rows where the given states change."""
        opens = np.zeros(len(row_states), dtype=bool)
        opens[block.offsets[:-1]] = True
        change = opens | (np.diff(row_states, prepend=row_states[0]) != 0)
        sequence = np.repeat(np.arange(len(block.ends)), np.diff(block.offsets))
        counts = np.bincount(sequence[change], minlength=len(block.ends))
        starts = np.where(opens, 0.0, block.tau)[change]
        dwells = np.concatenate([[0], np.cumsum(counts)])
        return cls.of(block, dwells, row_states[change].astype(np.int32), starts)[0]

    def to_dwells(self) -> Dwells:
        """All paths in the layout of `publish_trajectories`."""
        return Dwells(self.dwells, self.states, self.starts, self.rows)


def move_particles(
    block: Block, _: None, measures: Measures, paths: Dwells, n_particles: int, family: int, numbers: Floats,
    rng: np.random.Generator,
) -> tuple[None, tuple[Any, ...]]:  # fmt: skip
    """The pass of conditional SMC. Sequences come one after the other, for each may add states: there is one block."""
    rng = deepcopy(rng)
    found = sweep_paths(
        measures, block.tau, block.x[:, 0].copy(), block.offsets, block.ends,
        paths.offsets, paths.states, paths.starts, n_particles, family, numbers, rng,
    )  # fmt: skip
    return None, (*found, rng)


@dataclass(eq=False)
class ParticleChain:
    """The Markov chain of the infinite model on one panel of one column."""

    block: Block
    held: Held
    prior: ParticlePrior
    hyper: HyperPriors
    n_particles: int
    paths: InfinitePaths
    sample: InfiniteSample
    rng: np.random.Generator

    @property
    def x(self) -> Floats:
        """(n,) encoded values."""
        return self.block.x[:, 0]

    def step(self) -> None:
        """New paths given the measures, then new measures given the paths."""
        self.draw_paths()
        self.draw_measures()

    def draw_paths(self) -> None:
        """Conditional SMC for every sequence; the sample is cut to the states in use."""
        paths, prior = self.paths.to_dwells(), self.prior
        _, [(m, dwells, states, starts, self.rng)] = self.held.run(
            move_particles, None, to_measures(self.sample, prior), paths, self.n_particles, prior.kind, prior.numbers,
            self.rng,
        )  # fmt: skip
        self.paths, kept = InfinitePaths.of(self.block, dwells, states, starts)
        self.sample = from_measures(m, kept, self.sample, prior)

    def draw_measures(self) -> None:
        """Steps 2 to 5: base measure and its hyperparameter, rows, γ, emissions."""
        paths, rng, hyper = self.paths, self.rng, self.hyper
        M = len(paths.time)
        gamma = self.sample.prior_time
        base = self.sample.base
        with held_back():
            tables = draw_tables(np.vstack([paths.first, paths.jumps]), base[:M], rng).sum(axis=0)
        log_eta = log_beta_draw(float(base.sum()), len(self.block.ends), rng)
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


def to_measures(sample: InfiniteSample, prior: ParticlePrior) -> Measures:
    """A sample in the layout of the kernels, with room for more states."""
    M = sample.n_states
    cap = 2 * M + 16
    values = prior.table(sample.emission)
    base, exits, left = np.zeros(cap), np.zeros(cap), np.zeros(cap + 1)
    rows, theta = np.zeros((cap + 1, cap)), np.zeros((cap, values.shape[1]))
    base[:M], exits[:M], theta[:M] = sample.base[:M], sample.rates.sum(axis=1), values
    rows[0, :M], rows[1 : M + 1, :M] = sample.first[:M], sample.rates[:, :M]
    left[0], left[1 : M + 1] = sample.first[M], sample.rates[:, M]
    scalars = np.array([sample.base[M], sample.concentration, sample.prior_time])
    return Measures(base, rows, left, exits, theta, scalars, np.array([M]))


def from_measures(m: Measures, kept: Ints, before: InfiniteSample, prior: ParticlePrior) -> InfiniteSample:
    """The measures at the kept states; all others go back to what is left."""
    M = int(m.size[0])
    others = np.setdiff1d(np.arange(M), kept)
    base = np.append(m.base[kept], m.scalars[0] + m.base[others].sum())
    rows = np.hstack([m.rows[:, kept], (m.left + m.rows[:, others].sum(axis=1))[:, None]])
    return before._replace(base=base, rates=rows[kept + 1], first=rows[0], emission=prior.column(m.theta[kept]))


def carry_states(codes: Floats, offsets: Ints) -> Ints:
    """(n,) state of each row: its code, or that of the row before (else after) it in its sequence, or 0."""
    out = np.zeros(len(codes), np.int64)
    for a, b in pairwise(offsets.tolist()):
        present = np.flatnonzero(np.isfinite(codes[a:b]))
        if len(present):
            nearest = np.maximum(np.searchsorted(present, np.arange(b - a), side="right") - 1, 0)
            out[a:b] = codes[a + present[nearest]].astype(np.int64)
    return out
