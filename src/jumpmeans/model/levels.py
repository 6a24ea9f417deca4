"""Levels of people: what is added to all measurements of one of them, x = μ_s + b + noise, b ~ N(0, τ²).

Offsets b are shared by the sequences of a unit (one sequence, or all of a group) and are relative to the encoded
values: of a log-normal column, to the logarithms. What is known of b is its mean m and variance v, normal as the
model has it: q(b) = N(m, v). Two objectives are climbed by the same algebra.

- J has a price ½ ζ ρ Σ_u W_u m_u², ρ readings of 0 for each offset, and no v: `settle` with precisions 1, ridge ρ.
- The likelihood is climbed by its lower bound (a mean field between paths and offsets)

      F = Σ_i w_i ln Z_i(m, v) - Σ_u W_u KL(N(m_u, v_u) ‖ N(0, τ²)),

  Z_i the likelihood of the process under densities whose logarithm is averaged over q(b): that of x - m less
  v / 2σ_s². Given the posterior of the paths, F is maximised over μ and m together, then over v, then over σ, then
  over τ, each exactly: it never falls. It is the likelihood itself where paths are sure, and where τ = 0.

Minimising over μ and m together is a linear system in μ, from which the offsets are eliminated. At its end
Σ_u W_u m_u = 0: a common shift of all offsets is a shift of μ, and costs less there. That identifies the two.

Weights: the offset of a sequence is its own, so that weight k is k copies with k offsets; the offset of a group is
one, and weight k within it is k copies of the readings behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..arrays import Floats, Ints, pooled
from ..emissions import Record


class Readings(NamedTuple):
    """Readings of each sequence in each state, unweighted: their number, and the sum of x - m - μ_s; (S, M, D)."""

    counts: Floats
    residuals: Floats

    @classmethod
    def joined(cls, parts: list[Readings]) -> Readings:
        """Of all blocks, in their order."""
        return cls(*(np.concatenate(part) for part in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class Levels:
    """What is known of the offsets of all units.

    units (S,): unit of each sequence; shares (S,): how often a sequence counts within its unit; weights (U,): how
    often a unit counts. means, variances (U, D): m and v; sds (D,): τ, 0 for a column without offsets; noises (D,):
    those of the columns. fixed : whether τ is given.
    """

    units: Ints
    shares: Floats
    weights: Floats
    means: Floats
    variances: Floats
    sds: Floats
    noises: Floats
    fixed: bool = False

    @property
    def columns(self) -> list[int]:
        """Columns that have offsets."""
        return np.flatnonzero(self.sds > 0).tolist()

    @property
    def of_sequences(self) -> tuple[Floats, Floats]:
        """(S, D) mean and variance of the offsets of each sequence."""
        return self.means[self.units], self.variances[self.units]

    @property
    def sequence_weights(self) -> Floats:
        """(S,) weight of each sequence."""
        return self.shares * self.weights[self.units]

    def pool(self, x: Floats) -> Floats:
        """Sums over the sequences of each unit, (S, ...) to (U, ...)."""
        return pooled(x, self.units, self.shares, len(self.weights))

    def squares(self) -> Floats:
        """(D,) Σ W m²."""
        return np.asarray(self.weights @ self.means**2)

    def divergences(self) -> Floats:
        """(U,) KL(N(m, v) ‖ N(0, τ²)) of each unit."""
        d = self.columns
        prior = self.sds[d] ** 2
        ratio = self.variances[:, d] / prior
        return np.asarray(0.5 * (self.means[:, d] ** 2 / prior + ratio - 1.0 - np.log(ratio)).sum(axis=1))

    def bounds(self, log_lik: Floats) -> Floats:
        """(U,) share of each unit in F, from the log-likelihoods (S,) of the sequences."""
        return self.pool(log_lik) - self.divergences()

    def bound(self, log_lik: Floats) -> float:
        """F: the lower bound of the log-likelihood."""
        return float(self.weights @ self.bounds(log_lik))

    def with_prior_variances(self) -> Levels:
        """The same means, and what is not known of an offset of which nothing was seen."""
        return replace(self, variances=np.broadcast_to(self.sds**2, self.means.shape).copy())


def settle(
    levels: Levels, readings: Readings, precisions: Floats, ridge: Floats, free: bool = True
) -> Levels:  # fmt: skip
    """The means m of least Σ ½ p_s (x - m - μ_s)² + ½ ρ m², given the states of the readings.

    precisions (M, D) p, ridge (D,) ρ. The means of the states are `free` and settled with them, or stay as they are.
    """
    means = levels.means.copy()
    for d in levels.columns:
        n = levels.pool(readings.counts[:, :, d] * precisions[:, d])
        r = levels.pool(readings.residuals[:, :, d] * precisions[:, d])
        total = n.sum(axis=1) + ridge[d]
        pull = r.sum(axis=1) - ridge[d] * means[:, d]
        shift = np.zeros(n.shape[1])
        if free:
            W = levels.weights[:, None]
            A = np.diag((W * n).sum(axis=0)) - (W * n / total[:, None]).T @ n
            shift = np.linalg.lstsq(A, (W * r).sum(axis=0) - (W * n).T @ (pull / total), rcond=None)[0]
        means[:, d] += (pull - n @ shift) / total
    return replace(levels, means=means)


def moved_stats(
    emission: Record, stats: tuple[Any, ...], readings: Readings, before: Levels, after: Levels, loose: bool
) -> tuple[Any, ...]:
    """Statistics of each column under other offsets than those that the readings were taken under.

    `loose` : add the variances of the offsets after, as the expected squares of an unsure offset have them.
    """
    weights = before.sequence_weights[:, None]
    by = (after.means - before.means)[before.units]
    spread = after.variances[after.units] if loose else np.zeros_like(by)
    out = list(stats)
    for d in before.columns:
        counts, residuals = weights * readings.counts[:, :, d], weights * readings.residuals[:, :, d]
        out[d] = emission.columns[d].moved(stats[d], counts, residuals, by[:, d], spread[:, d])
    return tuple(out)


def loosened(levels: Levels, readings: Readings, precisions: Floats) -> Levels:
    """The variances of most F: 1 / (Σ p + 1/τ²)."""
    variances = levels.variances.copy()
    for d in levels.columns:
        n = levels.pool(readings.counts[:, :, d] * precisions[:, d]).sum(axis=1)
        variances[:, d] = 1.0 / (n + 1.0 / levels.sds[d] ** 2)
    return replace(levels, variances=variances)


def respread(levels: Levels) -> Levels:
    """The spreads of most F: τ² is the mean of m² + v."""
    if levels.fixed:
        return levels
    spread = levels.weights @ (levels.means**2 + levels.variances) / max(float(levels.weights.sum()), 1e-300)
    return replace(levels, sds=np.where(levels.sds > 0, np.sqrt(spread), 0.0))


def precisions_of(emission: Record) -> Floats:
    """(M, D) 1/σ² of each state and column; 0 where a column cannot have offsets."""
    out = np.zeros((emission.n_states, len(emission.columns)))
    for d, column in enumerate(emission.columns):
        if column.has_levels:
            out[:, d] = column.precisions()
    return out


def expected_step(
    levels: Levels, readings: Readings, emission: Record, free: bool = True
) -> Levels:  # fmt: skip
    """Offsets of most F given the posterior of the paths behind `readings`, and the spreads of the readings."""
    p = precisions_of(emission)
    return loosened(settle(levels, readings, p, ridges(levels), free), readings, p)


def ridges(levels: Levels) -> Floats:
    """(D,) 1/τ², infinite in columns without offsets."""
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / levels.sds**2)
