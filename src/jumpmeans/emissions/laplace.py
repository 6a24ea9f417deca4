"""Laplace: absolute deviations and the median, for readings with artefacts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..arrays import Floats, totals
from .centred import AssignedValues, CentredColumn
from .checks import per_state, spreads
from .column import SCALE_FLOOR, Ints

if TYPE_CHECKING:
    from ..data.panel import Panel

# Median |difference| of two Laplace readings, per unit of their scale: (1 + z/2) e^-z = 1/2.
LAPLACE_DIFFERENCE = 1.1461932206205825


class Laplace(CentredColumn):
    """m: d = `|x - m|`. `medians` (M,) and, for densities, `scales` (M,), the mean absolute deviation."""

    name = "laplace"

    def __init__(self, medians: Any, scales: Any = 1.0) -> None:
        self.centres = per_state("medians", medians)
        self.scales = spreads("scales", scales, self.centres)

    @property
    def medians(self) -> Floats:
        """m, (M,)."""
        return self.centres

    @classmethod
    def difference(cls) -> float:
        return LAPLACE_DIFFERENCE

    def auto_weight(self, x: Floats, panel: Panel) -> float:
        return 1.0 / self.noise(x, panel)

    def natural_weight(self) -> float:
        return 1.0 / float(np.mean(self.scales))

    def cost(self, x: Floats) -> Floats:
        out = np.abs(x[:, None] - self.centres)
        out[np.isnan(x)] = 0.0
        return out

    def update(self, stats: AssignedValues) -> Self:
        return self._copy(centres=self.medians_of(stats))

    def total(self, stats: AssignedValues) -> float:
        return float(stats.weights @ np.abs(stats.x - self.centres[stats.states]))

    def with_scale(self, stats: AssignedValues, shared: float = 1.0, floor: float | None = None) -> Self:
        deviation = stats.weights * np.abs(stats.x - self.centres[stats.states])
        count = totals(stats.states, stats.weights, self.n_states)
        sums = totals(stats.states, deviation, self.n_states)
        pooled = float(sums.sum() / max(count.sum(), 1e-300))
        if floor is None:
            floor = SCALE_FLOOR * pooled if pooled > 0 else 1e-8 * max(1.0, float(np.abs(self.centres).max()))
        return self._copy(scales=np.maximum((sums + shared * pooled) / np.maximum(count + shared, 1e-300), floor))

    def unit_log_density(self, x: Floats) -> Floats:
        out = -np.abs(x[:, None] - self.centres) / self.scales - np.log(2.0 * self.scales / self.unit)
        out[np.isnan(x)] = 0.0
        return out

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        return rng.laplace(self.centres[states], self.scales[states])
