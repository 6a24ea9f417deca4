"""Student's t: readings with heavy tails, which tell the less of their state the farther out they lie."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import gammaln
from scipy.stats import t as law_of_t

from ..arrays import Floats, totals
from .centred import AssignedValues, CentredColumn
from .checks import per_state, spreads
from .column import SCALE_FLOOR, Ints

if TYPE_CHECKING:
    from ..data.panel import Panel

# ζ of a Student column: on simulated panels 1 to 8 found the same states; at 2 the descent was shortest.
STUDENT_WEIGHT = 2.0
# Scales from a centre beyond which a square may overflow.
FAR = 1e150
# Steps of one update at most, and the move, in units of the scale, below which it ends.
MOST_STEPS, SMALL_STEP = 10, 1e-9


class Student(CentredColumn):
    """μ: d = ½ (ν + 1) ln(1 + (x - μ)² / (ν s²)), s being the same for all states: heavy tails.

    `means` (M,) are the centres μ; `scales` (M,) σ those of the densities (the standard deviation is
    σ √(ν / (ν - 2)) for ν > 2); s is their root mean square, in the objective the noise of the column. The degrees of
    freedom ν = `df` are known: 4, or those of a subclass of two lines, given as `emission=`:

    >>> import jumpmeans as jm
    >>> class Student2(jm.emissions.Student):
    ...     name, df = "student2", 2.0

    A mean has no closed form. Each step of an update weighs a value by (ν + 1) / (ν + z²), z its distance in scales,
    and takes the weighted mean: a majorisation of the cost, which therefore never rises. Scales likewise.
    """

    name = "student"
    df: float = 4.0

    def __init__(self, means: Any, scales: Any = 1.0, df: float | None = None) -> None:
        self.centres = per_state("means", means)
        self.scales = spreads("scales", scales, self.centres)
        if df is not None:
            self.df = float(per_state("df", df, positive=True)[0])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(means={np.array2string(self.centres, precision=4)}, df={self.df:g})"

    @classmethod
    def difference(cls) -> float:
        return median_difference(cls.df)

    def auto_weight(self, x: Floats, panel: Panel) -> float:
        return STUDENT_WEIGHT

    @property
    def width(self) -> float:
        """s, the scale that the cost counts in."""
        return float(np.sqrt(np.mean(self.scales * self.scales)))

    def _loss(self, z: Floats) -> Floats:
        far = np.abs(z) > FAR  # where squares leave the floats, 1 does not count
        near = np.where(far, 1.0, z)
        logs = np.log1p(near * near / self.df)
        if far.any():
            logs[far] = 2.0 * np.log(np.abs(z[far])) - np.log(self.df)
        return np.asarray(0.5 * (self.df + 1.0) * logs)

    def cost(self, x: Floats) -> Floats:
        out = self._loss((x[:, None] - self.centres) / self.width)
        out[np.isnan(x)] = 0.0
        return out

    def total(self, stats: AssignedValues) -> float:
        return float(stats.weights @ self._loss((stats.x - self.centres[stats.states]) / self.width))

    def update(self, stats: AssignedValues) -> Self:
        M, (x, states, weights) = self.n_states, stats
        scale = self.scales[states]

        def losses(centres: Floats) -> Floats:
            return totals(states, weights * self._loss((x - centres[states]) / scale), M)

        medians = self.medians_of(stats)  # from afar, steps could end beside a few stray values
        centres = np.where(losses(medians) < losses(self.centres), medians, self.centres)
        for _ in range(MOST_STEPS):
            off = x - centres[states]
            pull = weights / (self.df + (off / scale) ** 2)
            total = totals(states, pull, M)
            step = totals(states, pull * off, M) / np.where(total > 0, total, 1.0)
            centres = centres + step
            if np.all(np.abs(step) <= SMALL_STEP * self.scales):
                break
        return self._copy(centres=centres)

    def with_scale(self, stats: AssignedValues, shared: float = 1.0, floor: float | None = None) -> Self:
        x, states, weights = stats
        squares = (x - self.centres[states]) ** 2
        one = np.zeros_like(states)
        pooled = float(self._variances(squares, one, weights, np.array([self.width**2]), 0.0, 0.0, 0.0)[0])
        if floor is None:
            floor = SCALE_FLOOR * np.sqrt(pooled) or 1e-8 * max(1.0, float(np.abs(self.centres).max()))
        variances = self._variances(squares, states, weights, self.scales**2, shared, pooled, floor**2)
        return self._copy(scales=np.sqrt(variances))

    def _variances(
        self, squares: Floats, states: Ints, weights: Floats, start: Floats, shared: float, pooled: float, least: float
    ) -> Floats:
        """σ² of each state, nearer to their maximum of likelihood; `shared` more values have the variance `pooled`."""
        M = len(start)
        count = totals(states, weights, M) + shared
        least = max(least, 1e-300)
        variances = np.maximum(start, least)
        for _ in range(MOST_STEPS):
            share = (self.df + 1.0) * variances[states] / (self.df * variances[states] + squares)
            sums = totals(states, weights * share * squares, M) + shared * pooled
            moved = np.maximum(np.where(count > 0, sums / np.where(count > 0, count, 1.0), variances), least)
            done = np.all(np.abs(moved - variances) <= SMALL_STEP * variances)
            variances = moved
            if done:
                break
        return variances

    def unit_log_density(self, x: Floats) -> Floats:
        constant = gammaln(0.5 * (self.df + 1.0)) - gammaln(0.5 * self.df) - 0.5 * np.log(np.pi * self.df)
        out = constant - np.log(self.scales / self.unit) - self._loss((x[:, None] - self.centres) / self.scales)
        out[np.isnan(x)] = 0.0
        return np.asarray(out)

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        return self.centres[states] + self.scales[states] * rng.standard_t(self.df, len(states))


@cache
def median_difference(df: float) -> float:
    """Median absolute difference of two values of Student's t with `df` degrees of freedom."""
    law = law_of_t(df)

    def closer(d: float) -> float:
        """Chance that the second lies less than d above the first."""
        return float(quad(lambda x: law.pdf(x) * law.cdf(x + d), -np.inf, np.inf)[0])

    return float(brentq(lambda d: closer(d) - 0.75, 0.0, 10.0 + 100.0 / df))
