"""Laplace: absolute deviations and the median, for readings with artefacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ..arrays import Floats, power_of_two, weighted_median
from .column import Column, Ints, noise_scale, numeric_values

if TYPE_CHECKING:
    from ..data.panel import Panel

# Median |difference| of two Laplace readings, per unit of their scale: (1 + z/2) e^-z = 1/2.
LAPLACE_DIFFERENCE = 1.1461932206205825
SCALE_FLOOR = 0.05


class AssignedValues(NamedTuple):
    """The values themselves: a median has no shorter summary."""

    x: Floats
    states: Ints
    weights: Floats

    def __add__(self, other: AssignedValues) -> AssignedValues:  # type: ignore[override]
        return AssignedValues(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


class Laplace(Column):
    """m: d = |x - m|. `medians` (M,) and, for densities, `scales` (M,), the mean absolute deviation."""

    name = "laplace"
    n_free = 2

    def __init__(self, medians: Any, scales: Any = 1.0) -> None:
        self.medians = np.atleast_1d(np.asarray(medians, dtype=np.float64))
        self.n_states = len(self.medians)
        self.scales = np.array(np.broadcast_to(np.asarray(scales, dtype=np.float64), self.medians.shape))

    def __repr__(self) -> str:
        return f"Laplace(medians={np.array2string(self.medians, precision=4)})"

    @property
    def means(self) -> Floats:
        """(M,) the medians, which are the means of a symmetric density."""
        return self.medians

    @classmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        x = numeric_values(panel, d, cls.name)
        present = np.isfinite(x)
        weights = np.repeat(panel.weights, panel.lengths)[present]
        return cls(np.full(n_states, weighted_median(x[present], weights) if present.any() else 0.0))

    def encode(self, panel: Panel, d: int) -> Floats:
        return numeric_values(panel, d, self.name)

    @property
    def unit(self) -> float:
        return power_of_two(float(self.scales.max()))

    def auto_weight(self, x: Floats, panel: Panel) -> float:
        return 1.0 / noise_scale(x, panel, LAPLACE_DIFFERENCE)

    def natural_weight(self) -> float:
        return 1.0 / float(np.mean(self.scales))

    def cost(self, x: Floats) -> Floats:
        out = np.abs(x[:, None] - self.medians)
        out[np.isnan(x)] = 0.0
        return out

    def stats(self, x: Floats, states: Ints, weights: Floats) -> AssignedValues:
        present = np.isfinite(x)
        return AssignedValues(x[present], states[present], weights[present])

    def pool(self, stats: AssignedValues, groups: Ints, n_groups: int) -> AssignedValues:
        return stats._replace(states=groups[stats.states])

    def update(self, stats: AssignedValues) -> Self:
        medians = self.medians.copy()
        for s in range(self.n_states):
            own = stats.states == s
            if own.any():
                medians[s] = weighted_median(stats.x[own], stats.weights[own])
        return type(self)(medians, self.scales)

    def total(self, stats: AssignedValues) -> float:
        return float(stats.weights @ np.abs(stats.x - self.medians[stats.states]))

    def with_scale(self, stats: AssignedValues, shared: float = 1.0, floor: float | None = None) -> Self:
        deviation = stats.weights * np.abs(stats.x - self.medians[stats.states])
        count = np.bincount(stats.states, weights=stats.weights, minlength=self.n_states)
        sums = np.bincount(stats.states, weights=deviation, minlength=self.n_states)
        pooled = float(sums.sum() / max(count.sum(), 1e-300))
        if floor is None:
            floor = SCALE_FLOOR * pooled if pooled > 0 else 1e-8 * max(1.0, float(np.abs(self.medians).max()))
        return type(self)(
            self.medians, np.maximum((sums + shared * pooled) / np.maximum(count + shared, 1e-300), floor)
        )

    def unit_log_density(self, x: Floats) -> Floats:
        out = -np.abs(x[:, None] - self.medians) / self.scales - np.log(2.0 * self.scales / self.unit)
        out[np.isnan(x)] = 0.0
        return out

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        return rng.laplace(self.medians[states], self.scales[states])

    def permute(self, order: Ints) -> Self:
        return type(self)(self.medians[order], self.scales[order])

    def sort_key(self) -> Floats | None:
        return self.medians

    def state_values(self) -> Floats:
        return self.medians

    def expected(self, probs: Floats) -> Floats:
        return probs @ self.medians

    def features(self, x: Floats) -> Floats:
        return x[:, None]

    def noisy(self, x: Floats, rng: np.random.Generator) -> Self:
        spread = np.nanstd(x) if np.isfinite(x).any() else 1.0
        return type(self)(self.medians + 0.1 * spread * rng.standard_normal(self.n_states), self.scales)
