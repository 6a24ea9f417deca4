"""Conjugate priors of the samplers: emissions drawn from their posterior given the states of the rows."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Ints
from ..data.panel import Panel
from ..emissions import Categorical, Column, Direct, Gaussian
from ..emissions.bregman import NORMAL_DIFFERENCE
from ..emissions.column import noise_scale


class ColumnPrior(Protocol):
    """Prior of one column's emission: conjugate, so that parameters given the states of the rows can be drawn."""

    def draw(self, x: Floats, states: Ints, n_states: int, rng: np.random.Generator) -> Column:
        """Emission given the values x (n,), NaN where missing, and the state of each."""


class DirectPrior(NamedTuple):
    """The label is the state: nothing to draw."""

    column: Direct

    def draw(self, x: Floats, states: Ints, n_states: int, rng: np.random.Generator) -> Column:
        """The emission as it is."""
        return self.column


class SymbolPrior(NamedTuple):
    """Rows ρ ~ Dirichlet(1) over the symbols."""

    symbols: NDArray[Any]

    def draw(self, x: Floats, states: Ints, n_states: int, rng: np.random.Generator) -> Column:
        """ρ ~ Dirichlet(1 + counts)."""
        present = np.isfinite(x)
        N = len(self.symbols)
        cell = states[present] * N + x[present].astype(np.int64)
        counts = np.bincount(cell, minlength=n_states * N).reshape(n_states, N).astype(np.float64)
        return Categorical(draw_rows(1.0 + counts, rng), self.symbols)


class NormalPrior(NamedTuple):
    """σ² ~ inverse gamma(shape, scale) and μ | σ² ~ N(mean, σ²/size) in each state, as if of `size` values."""

    mean: float
    size: float
    shape: float
    scale: float

    @classmethod
    def of(cls, x: Floats, panel: Panel) -> NormalPrior:
        """Weakly informative, in the column's own units.

        σ² has a shape of 2 and the squared noise of successive differences as its mean; μ is spread as the column.
        """
        present = x[np.isfinite(x)]
        noise = noise_scale(x, panel, NORMAL_DIFFERENCE)
        mean = float(present.mean()) if len(present) else 0.0
        spread = max(float(present.std()) if len(present) else 1.0, noise)
        return cls(mean, (noise / spread) ** 2, 2.0, noise**2)

    def draw(self, x: Floats, states: Ints, n_states: int, rng: np.random.Generator) -> Column:
        """μ and σ from the conjugate posterior."""
        present = np.isfinite(x)
        x, states = x[present] - self.mean, states[present]
        n = np.bincount(states, minlength=n_states)
        average = np.bincount(states, weights=x, minlength=n_states) / np.maximum(n, 1)
        squares = np.bincount(states, weights=(x - average[states]) ** 2, minlength=n_states)
        size = self.size + n
        scale = self.scale + 0.5 * squares + 0.5 * self.size * n / size * average**2
        variance = scale / rng.standard_gamma(self.shape + 0.5 * n)
        means = self.mean + n / size * average + np.sqrt(variance / size) * rng.standard_normal(n_states)
        return Gaussian(means, np.sqrt(variance))


def column_prior(column: Column, x: Floats, panel: Panel) -> ColumnPrior:
    """The prior of a column by its family."""
    if isinstance(column, Direct):
        return DirectPrior(column)
    if isinstance(column, Categorical):
        return SymbolPrior(column.symbols)
    if isinstance(column, Gaussian):
        return NormalPrior.of(x, panel)
    raise ValueError(
        f"emission must be 'direct', 'categorical' or 'gaussian' for Monte Carlo, got {column.name!r}; "
        "JumpMeans and EM know the other families."
    )


def draw_rows(counts: Floats, rng: np.random.Generator) -> Floats:
    """Rows ~ Dirichlet(counts); an entry of count 0 is 0, and so is a row of nothing else."""
    rows = rng.standard_gamma(counts)
    total = rows.sum(axis=1, keepdims=True)
    return np.asarray(rows / np.where(total > 0, total, 1.0))
