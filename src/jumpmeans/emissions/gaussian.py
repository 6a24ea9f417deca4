"""Measurements with normal noise, as they are or by their logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..arrays import Floats, power_of_two
from ..arrays import Ints as Codes
from ..forms import MEAN, QUADRATIC, Formula, rows
from ..stored import stored
from .bregman import MeanColumn, MeanStats
from .checks import numeric_values, per_state, require_values, spreads
from .column import SCALE_FLOOR, Ints
from .noise import noise_scale
from .parts import Part, Take
from .priors import ParticlePrior
from .single import Adder, Coder, Single, add_half_squares, add_normal, any_number, nothing_known

if TYPE_CHECKING:
    from ..data.panel import Panel

# Median |difference| of two normal readings, per standard deviation.
NORMAL_DIFFERENCE = 0.6744897501960817 * np.sqrt(2.0)
# ζ of a Gaussian column, in units of 1/noise²: firm assignment spreads the states over the values; the decode that
# closes a fit weighs readings by the noise that is left (docs/choices.md).
NORMAL_WEIGHT = 8.0
# States that a sampler of births starts with: equal shares of the values, in order.
STARTING_STATES = 4
# Means of a log-normal column go no higher: beyond, their sums would overflow.
HIGHEST_LOG = 690.0
HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)


class Gaussian(MeanColumn):
    """μ: d = ½ (x - μ)². `sds` (M,) is the residual standard deviation of each state, for densities."""

    name = "gaussian"
    params = ("mu", "sigma")
    entries = ("mean", "sd")
    positive = ("sigma",)
    n_free = 2
    is_conjugate = True
    has_particles = True
    has_levels = True

    def __init__(self, means: Any, sds: Any = 1.0) -> None:
        super().__init__(means)
        self.sigma = spreads("sds", sds, self.mu)

    @classmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        new = super().blank(panel, d, n_states, labels, pseudo_count)
        return new._copy(sigma=np.full(n_states, new.noise(new.encode(panel, d), panel)))

    @property
    def sds(self) -> Floats:
        """σ, (M,)."""
        return self.sigma

    @staticmethod
    def divergence(x: Floats, mu: Floats) -> Floats:
        out = np.subtract(x, mu)
        out *= out
        out *= 0.5
        return out

    @property
    def unit(self) -> float:
        return power_of_two(float(self.sigma.max()))

    def spread(self) -> Floats | None:
        return self.sds

    def noise(self, x: Floats, panel: Panel) -> float:
        return noise_scale(x, panel, NORMAL_DIFFERENCE)

    def auto_weight(self, x: Floats, panel: Panel) -> float:
        noise = self.noise(x, panel)
        return NORMAL_WEIGHT / (noise * noise)

    def natural_weight(self) -> float:
        return 1.0 / float(np.mean(self.sigma * self.sigma))

    def _squares(self, stats: MeanStats) -> Floats:
        """(M,) Σ w (x - μ)²: about the reference, so that large readings of small spread keep their digits."""
        moved = self.mu - stats.reference
        return np.maximum(2.0 * (stats.cost - moved * stats.shift) + stats.weight * moved**2, 0.0)

    def total(self, stats: MeanStats) -> float:
        return float(0.5 * self._squares(stats).sum())

    def with_scale(self, stats: MeanStats, shared: float = 1.0, floor: float | None = None) -> Self:
        squares = self._squares(stats)
        pooled = squares.sum() / max(stats.weight.sum(), 1e-300)
        own = np.sqrt((squares + shared * pooled) / np.maximum(stats.weight + shared, 1e-300))
        if floor is None:
            floor = SCALE_FLOOR * np.sqrt(pooled) or 1e-8 * max(1.0, float(np.abs(self.mu).max()))
        return self._copy(sigma=np.maximum(own, floor))

    def unit_log_density(self, x: Floats) -> Floats:
        return self._log_density(x[:, None], self.mu, self.sigma)

    def own_unit_log_density(self, x: Floats, states: Ints) -> Floats:
        return self._log_density(x, self.mu[states], self.sigma[states])

    def _log_density(self, x: Floats, mu: Floats, sigma: Floats) -> Floats:
        """Log-density per `unit` of values under means and spreads, broadcast; 0 where nothing was observed."""
        z = (x - mu) / sigma
        out = -0.5 * z
        out *= z
        out -= np.log(sigma / self.unit)
        out -= HALF_LOG_2PI
        np.copyto(out, 0.0, where=np.isnan(x))
        return out

    def coder(self) -> Coder:
        return any_number

    def cost_adder(self, weight: float) -> Adder:
        return lambda x, out: add_half_squares(x, self.mu, weight, out)

    def density_adder(self) -> Adder:
        log_sigma = np.log(self.sigma / self.unit)
        return lambda x, out: add_normal(x, self.mu, self.sigma, log_sigma, HALF_LOG_2PI, out)

    def formula(self) -> Formula:
        return self._quadratic(0.0)

    def _quadratic(self, slope: float) -> Formula:
        """A formula whose log-densities have `slope` times the value in them."""
        return Formula(
            QUADRATIC,
            lambda price: rows(self.n_states, 0.0, 0.5 * price, self.mu, 0.0),
            lambda: rows(self.n_states, -np.log(self.sigma) - HALF_LOG_2PI, -0.5 / self.sigma**2, self.mu, slope),
            MEAN,
            origin=self._origin,
        )

    def parts(self, stats: MeanStats) -> list[Part]:
        variances = self.sigma**2
        about_reference = variances + (self.mu - stats.reference) ** 2
        return [
            Part(self.mu, stats.weight / variances, False, name="mean", known=self._known(0)),
            Part(about_reference, stats.weight / (2.0 * variances), True, name="variance", known=self._known(1)),
        ]

    def rebuild(self, take: Take, floor: float) -> Self:
        return self._copy(mu=take(self.n_states), sigma=np.maximum(np.abs(take(self.n_states)), floor))

    def precisions(self) -> Floats:
        return 1.0 / (self.sigma * self.sigma)

    def centres_of_levels(self) -> Floats:
        return self.mu

    def level_toll(self, means: Floats, variances: Floats) -> Floats:
        return 0.5 * variances[:, None] * self.precisions()

    def moved(self, stats: MeanStats, counts: Floats, residuals: Floats, by: Floats, spread: Floats) -> MeanStats:
        cost = stats.cost - by @ residuals + 0.5 * (by * by + spread) @ counts
        return stats._replace(shift=stats.shift - by @ counts, cost=cost)

    def at_level(self, values: Floats, offsets: Floats) -> Floats:
        return values + offsets

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        return self.mu[states] + self.sigma[states] * rng.standard_normal(len(states))

    def prior(self, x: Floats, panel: Panel) -> NormalPrior:
        """Weakly informative, in the column's own units.

        σ² has a shape of 2 and the squared noise of successive differences as its mean; μ is spread as the column.
        """
        present = x[np.isfinite(x)]
        noise = self.noise(x, panel)
        mean = float(present.mean()) if len(present) else 0.0
        spread = max(float(present.std()) if len(present) else 1.0, noise)
        return NormalPrior(mean, (noise / spread) ** 2, 2.0, noise**2, type(self), self.fixed)


@stored
@dataclass(frozen=True)
class NormalPrior(ParticlePrior):
    """σ² ~ inverse gamma(shape, scale) and μ | σ² ~ N(mean, σ²/size) in each state, as if of `size` values.

    `fixed` (M, 2) holds μ and σ where they are known: the prior is then that of the other given the known one.
    """

    kind = 1
    mean: float
    size: float
    shape: float
    scale: float
    family: type[Gaussian] = Gaussian
    fixed: Floats | None = None

    def check_fields(self) -> None:
        """Refuse what is no prior, if it comes from a file."""
        good = np.isfinite(self.numbers).all() and min(self.size, self.shape, self.scale) > 0
        if not good or not issubclass(self.family, Gaussian):
            raise ValueError(f"a prior must have finite numbers > 0 and a Gaussian family, got {self}")

    @property
    def numbers(self) -> Floats:
        return np.array([self.mean, self.size, self.shape, self.scale])

    def draw(self, x: Floats, states: Codes, n_states: int, rng: np.random.Generator) -> Gaussian:
        """μ and σ from the conjugate posterior."""
        present = np.isfinite(x)
        x, states = x[present] - self.mean, states[present]
        n = np.bincount(states, minlength=n_states)
        average = np.bincount(states, weights=x, minlength=n_states) / np.maximum(n, 1)
        squares = np.bincount(states, weights=(x - average[states]) ** 2, minlength=n_states)
        size = self.size + n
        scale = self.scale + 0.5 * squares + 0.5 * self.size * n / size * average**2
        shape = self.shape + 0.5 * n
        known, spread = np.full((2, n_states), np.nan) if self.fixed is None else self.fixed.T
        at = np.isfinite(known)
        if at.any():  # about the known mean, not its own, which is integrated out
            off = known[at] - self.mean
            about = n[at] * (average[at] - off) ** 2 + self.size * off**2
            scale[at] = self.scale + 0.5 * squares[at] + 0.5 * about
            shape = shape + 0.5 * at
        variance = scale / rng.standard_gamma(shape)
        variance = np.where(np.isfinite(spread), spread**2, variance)
        means = self.mean + n / size * average + np.sqrt(variance / size) * rng.standard_normal(n_states)
        new = self.family.unchecked(mu=means, sigma=np.sqrt(variance))
        return new if self.fixed is None else new._copy(fixed=self.fixed)

    def table(self, column: Gaussian) -> Floats:
        return np.column_stack([column.mu, column.sigma])

    def column(self, table: Floats) -> Gaussian:
        return self.family.unchecked(mu=table[:, 0], sigma=table[:, 1])

    def unseen(self) -> Gaussian:
        variance = self.scale / max(self.shape - 1.0, 0.5) * (1.0 + 1.0 / self.size)
        return self.family([self.mean], np.sqrt(variance))

    def start(self, x: Floats) -> Floats:
        edges = np.quantile(x[np.isfinite(x)], np.arange(1, STARTING_STATES) / STARTING_STATES)
        return np.where(np.isnan(x), np.nan, np.searchsorted(edges, x))


class Lognormal(Gaussian):
    """Positive readings whose logarithms are Gaussian: d = ½ (ln x - μ)², for readings with a long right tail.

    Parameters are those of ln x: `log_means` μ and `log_sds` σ, both (M,). On the scale of x, `medians` are e^μ,
    `means` e^(μ + σ²/2), which is what a state should show, and `sds` the standard deviations about them. Costs,
    densities and samples are of ln x = `encode`; densities count per unit of x.
    """

    name = "lognormal"
    entries = ("log_mean", "log_sd")

    def __init__(self, log_means: Any, log_sds: Any = 1.0) -> None:
        self.mu = per_state("log_means", log_means)
        self.sigma = spreads("log_sds", log_sds, self.mu)

    @property
    def log_means(self) -> Floats:
        """μ, (M,): means of ln x."""
        return self.mu

    @property
    def log_sds(self) -> Floats:
        """σ, (M,): standard deviations of ln x."""
        return self.sigma

    @property
    def medians(self) -> Floats:
        """(M,) e^μ."""
        return np.exp(np.minimum(self.mu, HIGHEST_LOG))

    @property
    def means(self) -> Floats:
        """(M,) e^(μ + σ²/2), at most e^690."""
        return np.exp(np.minimum(self.mu + 0.5 * self.sigma**2, HIGHEST_LOG))

    @property
    def sds(self) -> Floats:
        """(M,) standard deviations of x, at most e^690."""
        spread = np.minimum(self.sigma**2, HIGHEST_LOG)
        log_variance = 2.0 * self.mu + spread + np.log(np.expm1(spread))
        return np.exp(np.minimum(0.5 * log_variance, HIGHEST_LOG))

    @classmethod
    def read(cls, panel: Panel, d: int) -> Floats:
        x = numeric_values(panel, d, cls.name)
        with np.errstate(invalid="ignore", divide="ignore"):
            hint = "drop or blank such rows, or use emission='gaussian'"
            require_values(panel, x, x > 0, "readings of emission 'lognormal' must be > 0", hint)
            return np.log(x)

    def named(self, x: Floats) -> Floats:
        return np.exp(x)

    @property
    def unit(self) -> float:
        return power_of_two(float(np.exp(np.clip(self.mu.mean(), -HIGHEST_LOG, HIGHEST_LOG))))

    def _log_density(self, x: Floats, mu: Floats, sigma: Floats) -> Floats:
        # dx = x d ln x
        z = (x - mu) / sigma
        jacobian = np.log(self.unit) - x
        out = -0.5 * z * z - np.log(sigma) - HALF_LOG_2PI + jacobian
        np.copyto(out, 0.0, where=np.isnan(x))
        return out

    def coder(self) -> Coder:
        return nothing_known

    def density_adder(self) -> Adder:
        return Single.density_adder(self)

    def formula(self) -> Formula:
        return self._quadratic(-1.0)  # dx = x d ln x

    def level_toll(self, means: Floats, variances: Floats) -> Floats:
        return super().level_toll(means, variances) + means[:, None]  # of dx = x d ln x, b of ln x is part

    def at_level(self, values: Floats, offsets: Floats) -> Floats:
        return values * np.exp(offsets)
