"""Families whose divergence is a Bregman one: the best parameter of a state is the mean of its values.

Each class gives its divergence d(x, μ), the values it takes and its density; everything else is shared.
Statistics are kept relative to the means r they were made under, so that the cost under other means follows
from Σ d(x, μ) = Σ d(x, r) + W (d(m, μ) - d(m, r)), m the mean of the values, without another pass over the data.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import gammaln, xlogy

from ..arrays import Floats, power_of_two, totals
from .column import Column, Ints, noise_scale, numeric_values, require

if TYPE_CHECKING:
    from ..data.panel import Panel

# Median |difference| of two normal readings, per standard deviation.
NORMAL_DIFFERENCE = 0.6744897501960817 * np.sqrt(2.0)
# ζ of a Gaussian column, in units of 1/noise²: firm assignment spreads the states over the values; the decode that
# closes a fit weighs readings by the noise that is left (docs/choices.md).
NORMAL_WEIGHT = 8.0
# Default weight of the earlier values that keep a mean off the edge of its range.
SMALL_COUNT = 0.01
# A state's spread is never taken below this share of the column's: one repeated value is no certainty.
SCALE_FLOOR = 0.05


class MeanStats(NamedTuple):
    """Weight, sum of deviations and cost of the values of each state about the means `reference`, all (M,)."""

    weight: Floats
    shift: Floats
    cost: Floats
    reference: Floats

    def __add__(self, other: MeanStats) -> MeanStats:  # type: ignore[override]
        return MeanStats(self.weight + other.weight, self.shift + other.shift, self.cost + other.cost, self.reference)


class MeanColumn(Column):
    """A Bregman family; `means` is μ, shape (M,). `prior` is (count, mean): earlier values in each state."""

    means: Floats
    prior: tuple[float, float] = (0.0, 0.0)
    # Means lie in here; rounding must not carry them out.
    bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    def __init__(self, means: Any) -> None:
        self.means = np.atleast_1d(np.asarray(means, dtype=np.float64))
        self.n_states = len(self.means)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(means={np.array2string(self.means, precision=4)})"

    def _copy(self, **changes: Any) -> Self:
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        new.n_states = len(new.means)
        return new

    @staticmethod
    @abstractmethod
    def divergence(x: Floats, mu: Floats) -> Floats:
        """d(x, μ), broadcast."""

    @classmethod
    def check(cls, panel: Panel, x: Floats) -> None:
        """Refuse values the family cannot take."""

    @classmethod
    def make_prior(cls, mean: float, count: float) -> tuple[float, float]:
        """Earlier values that keep a mean off the edge of its range; none by default."""
        return (0.0, mean)

    @classmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        x = numeric_values(panel, d, cls.name)
        cls.check(panel, x)
        present = np.isfinite(x)
        weights = np.repeat(panel.weights, panel.lengths)[present]
        mean = float(np.average(x[present], weights=weights)) if present.any() else 1.0
        new = cls(np.full(n_states, mean))
        new.prior = cls.make_prior(mean, SMALL_COUNT if pseudo_count is None else pseudo_count)
        return new

    def encode(self, panel: Panel, d: int) -> Floats:
        x = numeric_values(panel, d, self.name)
        self.check(panel, x)
        return x

    def cost(self, x: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            out = self.divergence(x[:, None], self.means)
        out[np.isnan(x)] = 0.0
        return out

    def stats(self, x: Floats, states: Ints, weights: Floats) -> MeanStats:
        present = np.isfinite(x)
        if not present.all():
            x, states, weights = x[present], states[present], weights[present]
        M = self.n_states
        d = self.divergence(x, self.means[states])
        shift = totals(states, weights * (x - self.means[states]), M)
        return MeanStats(totals(states, weights, M), shift, totals(states, weights * d, M), self.means)

    def soft_stats(self, x: Floats, probs: Floats) -> MeanStats:
        present = np.isfinite(x)
        if not present.all():
            x, probs = x[present], probs[present]
        shift = (probs * (x[:, None] - self.means)).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            cost = np.where(probs > 0, probs * self.divergence(x[:, None], self.means), 0.0).sum(axis=0)
        return MeanStats(probs.sum(axis=0), shift, cost, self.means)

    def pool(self, stats: MeanStats, groups: Ints, n_groups: int) -> MeanStats:
        weight, shift, cost = (totals(groups, part, n_groups) for part in stats[:3])
        reference = np.zeros(n_groups)
        reference[groups] = stats.reference
        return MeanStats(weight, shift, cost, reference)

    def update(self, stats: MeanStats) -> Self:
        count, mean = self.prior
        weight = stats.weight + count
        safe = np.where(weight > 0, weight, 1.0)
        moved = np.clip(stats.reference + (stats.shift + count * (mean - stats.reference)) / safe, *self.bounds)
        return self._copy(means=np.where(weight > 0, moved, self.means))

    def total(self, stats: MeanStats) -> float:
        used = stats.weight > 0
        w, r, mu = stats.weight[used], stats.reference[used], self.means[used]
        mean = np.clip(r + stats.shift[used] / w, *self.bounds)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = stats.cost[used] + w * (self.divergence(mean, mu) - self.divergence(mean, r))
        return float(np.maximum(total, 0.0).sum())

    def with_pseudo_count(self, count: float) -> Self:
        return self._copy(prior=self.make_prior(self.prior[1], count))

    def prior_cost(self) -> float:
        count, mean = self.prior
        return float(count * self.divergence(np.full_like(self.means, mean), self.means).sum()) if count else 0.0

    def permute(self, order: Ints) -> Self:
        return self._copy(means=self.means[order])

    def sort_key(self) -> Floats | None:
        return self.means

    def state_values(self) -> Floats:
        return self.means

    def expected(self, probs: Floats) -> Floats:
        return probs @ self.means

    def features(self, x: Floats) -> Floats:
        return x[:, None]

    def noisy(self, x: Floats, rng: np.random.Generator) -> Self:
        mean = self.means.mean()
        spread = np.nanstd(x) if np.isfinite(x).any() else 1.0
        means = mean + 0.1 * spread * rng.standard_normal(self.n_states)
        if self.name != "gaussian":  # the others live on the positive side, or between 0 and 1
            means = mean * np.exp(0.1 * rng.standard_normal(self.n_states))
        return self._copy(means=np.minimum(means, 0.99) if self.name == "bernoulli" else means)


class Gaussian(MeanColumn):
    """μ: d = ½ (x - μ)². `sds` (M,) is the residual standard deviation of each state, for densities."""

    name = "gaussian"
    n_free = 2

    def __init__(self, means: Any, sds: Any = 1.0) -> None:
        super().__init__(means)
        self.sds = np.array(np.broadcast_to(np.asarray(sds, dtype=np.float64), self.means.shape))

    @staticmethod
    def divergence(x: Floats, mu: Floats) -> Floats:
        out = np.subtract(x, mu)
        out *= out
        out *= 0.5
        return out

    @property
    def unit(self) -> float:
        return power_of_two(float(self.sds.max()))

    def auto_weight(self, x: Floats, panel: Panel) -> float:
        noise = noise_scale(x, panel, NORMAL_DIFFERENCE)
        return NORMAL_WEIGHT / (noise * noise)

    def natural_weight(self) -> float:
        return 1.0 / float(np.mean(self.sds * self.sds))

    def _squares(self, stats: MeanStats) -> Floats:
        """(M,) Σ w (x - μ)²: about the reference, so that large readings of small spread keep their digits."""
        moved = self.means - stats.reference
        return np.maximum(2.0 * (stats.cost - moved * stats.shift) + stats.weight * moved**2, 0.0)

    def total(self, stats: MeanStats) -> float:
        return float(0.5 * self._squares(stats).sum())

    def with_scale(self, stats: MeanStats, shared: float = 1.0, floor: float | None = None) -> Self:
        squares = self._squares(stats)
        pooled = squares.sum() / max(stats.weight.sum(), 1e-300)
        own = np.sqrt((squares + shared * pooled) / np.maximum(stats.weight + shared, 1e-300))
        if floor is None:
            floor = SCALE_FLOOR * np.sqrt(pooled) or 1e-8 * max(1.0, float(np.abs(self.means).max()))
        return self._copy(sds=np.maximum(own, floor))

    def unit_log_density(self, x: Floats) -> Floats:
        z = (x[:, None] - self.means) / self.sds
        out = -0.5 * z * z - np.log(self.sds / self.unit) - 0.5 * np.log(2.0 * np.pi)
        out[np.isnan(x)] = 0.0
        return out

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        return self.means[states] + self.sds[states] * rng.standard_normal(len(states))

    def permute(self, order: Ints) -> Self:
        return self._copy(means=self.means[order], sds=self.sds[order])


class Poisson(MeanColumn):
    """μ: d = x ln(x/μ) - x + μ, for counts."""

    name = "poisson"
    bounds = (0.0, np.inf)

    @staticmethod
    def divergence(x: Floats, mu: Floats) -> Floats:
        return np.maximum(xlogy(x, x) - xlogy(x, mu) - x + mu, 0.0)

    @classmethod
    def check(cls, panel: Panel, x: Floats) -> None:
        hint = "use emission='gaussian' for measurements that are not counts"
        with np.errstate(invalid="ignore"):
            require(
                panel,
                x,
                (x >= 0) & (x == np.floor(x)),
                "counts of emission 'poisson' must be 0, 1, 2, ...",
                hint,
            )

    @classmethod
    def make_prior(cls, mean: float, count: float) -> tuple[float, float]:
        return (count, mean if mean > 0 else 1.0)

    def unit_log_density(self, x: Floats) -> Floats:
        out = xlogy(x[:, None], self.means) - self.means - gammaln(x + 1.0)[:, None]
        out[np.isnan(x)] = 0.0
        return out

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        return rng.poisson(self.means[states]).astype(np.float64)


class Exponential(MeanColumn):
    """μ: d = x/μ - ln(x/μ) - 1, for positive readings whose spread grows with their mean."""

    name = "exponential"

    @staticmethod
    def divergence(x: Floats, mu: Floats) -> Floats:
        z = x / mu
        return np.asarray(z - np.log(z) - 1.0)

    @classmethod
    def check(cls, panel: Panel, x: Floats) -> None:
        hint = "drop or blank such rows, or use emission='gaussian'"
        with np.errstate(invalid="ignore"):
            require(panel, x, x > 0, "readings of emission 'exponential' must be > 0", hint)

    def unit_log_density(self, x: Floats) -> Floats:
        out = -x[:, None] / self.means - np.log(self.means / self.unit)
        out[np.isnan(x)] = 0.0
        return out

    @property
    def unit(self) -> float:
        return power_of_two(float(self.means.max()))

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        return np.maximum(rng.exponential(self.means[states]), np.finfo(float).tiny)


class Bernoulli(MeanColumn):
    """ρ: d = KL of a 0/1 reading from the chance `means` (also `probs`) of a 1."""

    name = "bernoulli"
    is_symbolic = True
    bounds = (0.0, 1.0)

    @property
    def probs(self) -> Floats:
        """(M,) chance of a 1."""
        return self.means

    @staticmethod
    def divergence(x: Floats, mu: Floats) -> Floats:
        return np.asarray(xlogy(x, x) + xlogy(1 - x, 1 - x) - xlogy(x, mu) - xlogy(1 - x, 1 - mu))

    @classmethod
    def check(cls, panel: Panel, x: Floats) -> None:
        hint = "code the column as 0 and 1, or use emission='categorical'"
        require(panel, x, (x == 0) | (x == 1), "readings of emission 'bernoulli' must be 0 or 1", hint)

    @classmethod
    def make_prior(cls, mean: float, count: float) -> tuple[float, float]:
        return (2.0 * count, 0.5)

    def unit_log_density(self, x: Floats) -> Floats:
        out = xlogy(x[:, None], self.means) + xlogy(1 - x[:, None], 1 - self.means)
        out[np.isnan(x)] = 0.0
        return out

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        return (rng.random(len(states)) < self.means[states]).astype(np.float64)

    def expected(self, probs: Floats) -> Floats:
        return probs @ self.means
