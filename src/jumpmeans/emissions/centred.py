"""Symmetric families of a centre and a scale whose statistics are the values themselves: those with heavy tails."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, power_of_two, weighted_median
from .checks import numeric_values, per_state, spreads
from .column import Ints
from .entries import EntryColumn
from .noise import noise_scale
from .single import Coder, any_number

if TYPE_CHECKING:
    from ..data.panel import Panel


class AssignedValues(NamedTuple):
    """The values themselves: a median has no shorter summary."""

    x: Floats
    states: Ints
    weights: Floats

    def __add__(self, other: AssignedValues) -> AssignedValues:  # type: ignore[override]
        return AssignedValues(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))


class CentredColumn(EntryColumn):
    """A symmetric family: `centres` (M,) and, for densities, `scales` (M,)."""

    params: ClassVar[tuple[str, ...]] = ("centres", "scales")
    entries: ClassVar[tuple[str, ...]] = ("centre", "scale")
    positive: ClassVar[tuple[str, ...]] = ("scales",)
    n_free = 2
    centres: Floats
    scales: Floats

    def __init__(self, centres: Any, scales: Any = 1.0) -> None:
        self.centres = per_state("centres", centres)
        self.scales = spreads("scales", scales, self.centres)

    @property
    def means(self) -> Floats:
        """(M,) the centres, which are the means of a symmetric density."""
        return self.centres

    @classmethod
    @abstractmethod
    def difference(cls) -> float:
        """Median absolute difference of two readings, per unit of their scale."""

    @classmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        x = numeric_values(panel, d, cls.name)
        present = np.isfinite(x)
        weights = np.repeat(panel.weights, panel.lengths)[present]
        centre = weighted_median(x[present], weights) if present.any() else 0.0
        return cls(np.full(n_states, centre), noise_scale(x, panel, cls.difference()))

    def coder(self) -> Coder:
        return any_number

    def encode(self, panel: Panel, d: int) -> Floats:
        return numeric_values(panel, d, self.name)

    @property
    def unit(self) -> float:
        return power_of_two(float(self.scales.max()))

    def spread(self) -> Floats | None:
        return self.scales

    def noise(self, x: Floats, panel: Panel) -> float:
        return noise_scale(x, panel, self.difference())

    def stats(self, x: Floats, states: Ints, weights: Floats) -> AssignedValues:
        used = np.isfinite(x) & (weights > 0)
        return AssignedValues(x[used], states[used], weights[used])

    def pool(self, stats: AssignedValues, groups: Ints, n_groups: int) -> AssignedValues:
        return stats._replace(states=groups[stats.states])

    def medians_of(self, stats: AssignedValues) -> Floats:
        """(M,) median of the values of each state; a state without any keeps its centre."""
        order = np.argsort(stats.states, kind="stable")
        edges = np.searchsorted(stats.states[order], np.arange(self.n_states + 1))
        medians = self.centres.copy()
        for s in range(self.n_states):
            own = order[edges[s] : edges[s + 1]]
            if len(own):
                medians[s] = weighted_median(stats.x[own], stats.weights[own])
        return medians

    def state_values(self) -> NDArray[Any]:
        return self.centres

    def noisy(self, x: Floats, rng: np.random.Generator) -> Self:
        spread = np.nanstd(x) if np.isfinite(x).any() else 1.0
        return self._copy(centres=self.centres + 0.1 * spread * rng.standard_normal(self.n_states))
