"""Families whose divergence is a Bregman one: the best parameter of a state is the mean of its values.

Each class gives its divergence d(x, μ), the values it takes and its density; everything else is shared.
The cost of the values is kept under the means r that they were assigned by, so that the cost under other means follows
from Σ d(x, μ) = Σ d(x, r) + W (d(m, μ) - d(m, r)), m the mean of the values, without another pass over the data. Their
sum is kept relative to r, so that large readings of small spread keep their digits; in a family whose means are never
0 it is plain, so that small readings keep theirs beside large ones.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from ..arrays import Floats, power_of_two, totals
from ..errors import PanelError
from ..forms import EXPONENTIAL, MEAN, POISSON, Formula, rows, table_of
from .checks import numeric_values, per_state, require_values
from .column import Ints
from .entries import EntryColumn
from .parts import Part, Take
from .single import LARGEST

if TYPE_CHECKING:
    from ..data.panel import Panel
from ..kernels.stats import add_totals

# Default weight of the earlier values that keep a mean off the edge of its range.
SMALL_COUNT = 0.01


class MeanStats(NamedTuple):
    """Weight, sum from `origin` on, and cost under the means `reference`, of the values of each state; all (M,)."""

    weight: Floats
    shift: Floats
    cost: Floats
    reference: Floats
    origin: Floats

    def __add__(self, other: MeanStats) -> MeanStats:  # type: ignore[override]
        sums = self.weight + other.weight, self.shift + other.shift, self.cost + other.cost
        return MeanStats(*sums, self.reference, self.origin)


class MeanColumn(EntryColumn):
    """A Bregman family; `mu` is μ, shape (M,). `earlier` is (count, mean): earlier values in each state."""

    params: ClassVar[tuple[str, ...]] = ("mu",)
    entries: ClassVar[tuple[str, ...]] = ("mean",)
    mu: Floats
    earlier: tuple[float, float] = (0.0, 0.0)
    # Means lie in here; rounding must not carry them out.
    bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)

    def __init__(self, means: Any) -> None:
        self.mu = per_state("means", means, *self.bounds)

    @property
    def means(self) -> Floats:
        """μ, (M,)."""
        return self.mu

    def entry_bounds(self) -> tuple[float, float]:
        return self.bounds

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        new = super().from_fields(fields)
        if len(new.earlier) != 2 or new.earlier[0] < 0:
            raise ValueError(f"earlier must be a count and a mean, got {new.earlier!r}")
        return new

    @staticmethod
    @abstractmethod
    def divergence(x: Floats, mu: Floats) -> Floats:
        """d(x, μ), broadcast."""

    @classmethod
    def check(cls, panel: Panel, x: Floats) -> None:
        """Refuse values the family cannot take."""

    @classmethod
    def make_earlier(cls, mean: float, count: float) -> tuple[float, float]:
        """Earlier values that keep a mean off the edge of its range; none by default."""
        return (0.0, mean)

    @classmethod
    def read(cls, panel: Panel, d: int) -> Floats:
        """Column d of a panel as numbers that the family takes."""
        x = numeric_values(panel, d, cls.name)
        cls.check(panel, x)
        return x

    @classmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        x = cls.read(panel, d)
        present = np.isfinite(x)
        weights = np.repeat(panel.weights, panel.lengths)[present]
        mean = float(np.average(x[present], weights=weights)) if present.any() else 1.0
        new = cls(np.full(n_states, mean))
        return new._copy(earlier=cls.make_earlier(mean, SMALL_COUNT if pseudo_count is None else pseudo_count))

    def encode(self, panel: Panel, d: int) -> Floats:
        return self.read(panel, d)

    def cost(self, x: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            out = self.divergence(x[:, None], self.mu)
        out[np.isnan(x)] = 0.0
        return out

    @property
    def _origin(self) -> Floats:
        return np.zeros(self.n_states) if self.bounds[0] > 0 else self.mu

    def stats(self, x: Floats, states: Ints, weights: Floats) -> MeanStats:
        present = np.isfinite(x)
        if not present.all():
            x, states, weights = x[present], states[present], weights[present]
        origin, states = self._origin, states.astype(np.int32, copy=False)
        sums = np.zeros((3, self.n_states))
        add_totals(states, np.ascontiguousarray(weights), sums[0])
        add_totals(states, weights * (x - origin[states]), sums[1])
        add_totals(states, weights * self.divergence(x, self.mu[states]), sums[2])
        return MeanStats(sums[0], sums[1], sums[2], self.mu, origin)

    def soft_stats(self, x: Floats, probs: Floats) -> MeanStats:
        present = np.isfinite(x)
        if not present.all():
            x, probs = x[present], probs[present]
        origin = self._origin
        shift = (probs * (x[:, None] - origin)).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            cost = np.where(probs > 0, probs * self.divergence(x[:, None], self.mu), 0.0).sum(axis=0)
        return MeanStats(probs.sum(axis=0), shift, cost, self.mu, origin)

    def read_sums(self, sums: Floats) -> MeanStats:
        weight, shift, cost = sums.reshape(3, -1)
        return MeanStats(weight, shift, cost, self.mu, self._origin)

    def pool(self, stats: MeanStats, groups: Ints, n_groups: int) -> MeanStats:
        weight, shift, cost = (totals(groups, part, n_groups) for part in stats[:3])
        reference, origin = np.zeros((2, n_groups))
        reference[groups], origin[groups] = stats.reference, stats.origin
        return MeanStats(weight, shift, cost, reference, origin)

    def update(self, stats: MeanStats) -> Self:
        count, mean = self.earlier
        weight = stats.weight + count
        safe = np.where(weight > 0, weight, 1.0)
        moved = np.clip(stats.origin + (stats.shift + count * (mean - stats.origin)) / safe, *self.bounds)
        return self._copy(mu=np.where(weight > 0, moved, self.mu))

    def total(self, stats: MeanStats) -> float:
        used = stats.weight > 0
        w, r, mu = stats.weight[used], stats.reference[used], self.mu[used]
        mean = np.clip(stats.origin[used] + stats.shift[used] / w, *self.bounds)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = stats.cost[used] + w * (self.divergence(mean, mu) - self.divergence(mean, r))
        return float(np.maximum(total, 0.0).sum())

    def with_pseudo_count(self, count: float) -> Self:
        return self._copy(earlier=self.make_earlier(self.earlier[1], count))

    def prior_cost(self) -> float:
        count, mean = self.earlier
        return float(count * self.divergence(np.full_like(self.mu, mean), self.mu).sum()) if count else 0.0

    def state_values(self) -> NDArray[Any]:
        return self.means

    def noisy(self, x: Floats, rng: np.random.Generator) -> Self:
        mean = self.mu.mean()
        noise = 0.1 * rng.standard_normal(self.n_states)
        if self.bounds[0] < 0:
            spread = np.nanstd(x) if np.isfinite(x).any() else 1.0
            return self._copy(mu=mean + spread * noise)
        return self._copy(mu=np.minimum(mean * np.exp(noise), 0.99 * self.bounds[1]))


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
            require_values(
                panel,
                x,
                (x >= 0) & (x == np.floor(x)),
                "counts of emission 'poisson' must be 0, 1, 2, ...",
                hint,
            )

    @classmethod
    def make_earlier(cls, mean: float, count: float) -> tuple[float, float]:
        return (count, mean if mean > 0 else 1.0)

    def unit_log_density(self, x: Floats) -> Floats:
        out = xlogy(x[:, None], self.mu) - self.mu - gammaln(x + 1.0)[:, None]
        out[np.isnan(x)] = 0.0
        return out

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        return rng.poisson(self.mu[states]).astype(np.float64)

    def parts(self, stats: MeanStats) -> list[Part]:
        return [Part(self.mu, stats.weight, True, name="mean", known=self._known(0))]

    def rebuild(self, take: Take, floor: float) -> Self:
        return self._copy(mu=take(self.n_states) ** 2)

    def formula(self) -> Formula:
        with np.errstate(divide="ignore"):
            logs = np.log(self.mu)
        return Formula(
            POISSON,
            lambda price: rows(self.n_states, 0.0, 0.0, price, self.mu, logs, 0.0),
            lambda: rows(self.n_states, -self.mu, logs, 0.0, self.mu, 0.0, 1.0),
            MEAN,
            origin=self._origin,
        )


class Exponential(MeanColumn):
    """μ: d = x/μ - ln(x/μ) - 1, for positive readings whose spread grows with their mean."""

    name = "exponential"
    bounds = (1 / LARGEST, np.inf)

    def __init__(self, means: Any) -> None:
        self.mu = per_state("means", means, positive=True)

    @staticmethod
    def divergence(x: Floats, mu: Floats) -> Floats:
        z = x / mu
        return np.asarray(z - np.log(z) - 1.0)

    @classmethod
    def check(cls, panel: Panel, x: Floats) -> None:
        with np.errstate(invalid="ignore"):
            hint = "drop or blank such rows, or use emission='gaussian'"
            require_values(panel, x, x > 0, "readings of emission 'exponential' must be > 0", hint)
            rule = f"readings of emission 'exponential' must be at least {1 / LARGEST:g}"
            require_values(panel, x, x >= 1 / LARGEST, rule, "rescale the column")

    def unit_log_density(self, x: Floats) -> Floats:
        out = -x[:, None] / self.mu - np.log(self.mu / self.unit)
        out[np.isnan(x)] = 0.0
        return out

    @property
    def unit(self) -> float:
        return power_of_two(float(self.mu.max()))

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        return np.maximum(rng.exponential(self.mu[states]), np.finfo(float).tiny)

    def parts(self, stats: MeanStats) -> list[Part]:
        return [Part(self.mu, stats.weight / self.mu, True, name="mean", known=self._known(0))]

    def rebuild(self, take: Take, floor: float) -> Self:
        return self._copy(mu=take(self.n_states) ** 2)

    def formula(self) -> Formula:
        return Formula(
            EXPONENTIAL,
            lambda price: rows(self.n_states, -price, price, self.mu, -price),
            lambda: rows(self.n_states, -np.log(self.mu), -1.0, self.mu, 0.0),
            MEAN,
            origin=self._origin,
        )


class Bernoulli(MeanColumn):
    """ρ: d = KL of a 0/1 reading from the chance `means` (also `probs`) of a 1."""

    name = "bernoulli"
    is_symbolic = True
    bounds = (0.0, 1.0)

    @property
    def probs(self) -> Floats:
        """(M,) chance of a 1."""
        return self.mu

    @property
    def symbols(self) -> NDArray[Any]:
        """The two readings."""
        return np.array([0, 1])

    @staticmethod
    def divergence(x: Floats, mu: Floats) -> Floats:
        return np.asarray(xlogy(x, x) + xlogy(1 - x, 1 - x) - xlogy(x, mu) - xlogy(1 - x, 1 - mu))

    @classmethod
    def check(cls, panel: Panel, x: Floats) -> None:
        hint = "code the column as 0 and 1, or use emission='categorical'"
        require_values(panel, x, (x == 0) | (x == 1), "readings of emission 'bernoulli' must be 0 or 1", hint)

    @classmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        if not np.isfinite(panel.values[:, d]).any():
            raise PanelError(
                f"column {panel.columns[d]!r} must hold at least one reading for emission 'bernoulli', got none; "
                "check that the right column was named."
            )
        return super().blank(panel, d, n_states, labels, pseudo_count)

    @classmethod
    def make_earlier(cls, mean: float, count: float) -> tuple[float, float]:
        return (2.0 * count, 0.5)

    def unit_log_density(self, x: Floats) -> Floats:
        out = xlogy(x[:, None], self.mu) + xlogy(1 - x[:, None], 1 - self.mu)
        out[np.isnan(x)] = 0.0
        return out

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        return (rng.random(len(states)) < self.mu[states]).astype(np.float64)

    def parts(self, stats: MeanStats) -> list[Part]:
        chances = np.stack([self.mu, 1.0 - self.mu])
        known = None if self.fixed is None else np.broadcast_to(self._known(0), chances.shape)
        return [Part(chances, np.broadcast_to(stats.weight, chances.shape), True, 0, "chance", known)]

    def rebuild(self, take: Take, floor: float) -> Self:
        chances = take(2, self.n_states) ** 2
        return self._copy(mu=chances[0] / chances.sum(axis=0))

    def predictive(self, probs: Floats) -> Floats:
        one = probs @ self.mu
        return np.column_stack([1.0 - one, one])

    def best_value(self, table: Floats) -> Floats:
        return table[:, 1]

    def formula(self) -> Formula:
        return table_of(self, MEAN, self._origin)
