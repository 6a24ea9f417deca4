"""What a sampler asks of the prior of one column: conjugate, so that parameters given the states can be drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..arrays import Floats, Ints

if TYPE_CHECKING:
    from .column import Column


class ColumnPrior(ABC):
    """Prior of one column's emission."""

    @abstractmethod
    def draw(self, x: Floats, states: Ints, n_states: int, rng: np.random.Generator) -> Column:
        """Emission given the values x (n,), NaN where missing, and the state of each."""


class ParticlePrior(ColumnPrior):
    """A prior that the particle kernels can draw new states from: `kind` says how, by the numbers `numbers`.

    Kind 0: a row of chances ~ Dirichlet(numbers). Kind 1: a mean and a standard deviation from a
    normal-inverse-gamma law with the numbers mean, size, shape and scale.
    """

    kind: ClassVar[int]

    @property
    @abstractmethod
    def numbers(self) -> Floats:
        """Hyperparameters in the order of the kernels."""

    @abstractmethod
    def table(self, column: Any) -> Floats:
        """(M, k) parameters of the states in the layout of the kernels."""

    @abstractmethod
    def column(self, table: Floats) -> Column:
        """The emission with these parameters."""

    @abstractmethod
    def unseen(self) -> Column:
        """What a state never used shows, as one state: the prior's predictive law, or one of its mean and spread."""

    @abstractmethod
    def start(self, x: Floats) -> Floats:
        """(n,) number of the state that each value starts in, NaN where missing."""


def draw_rows(counts: Floats, rng: np.random.Generator) -> Floats:
    """Rows ~ Dirichlet(counts); an entry of count 0 is 0, and so is a row of nothing else."""
    rows = rng.standard_gamma(counts)
    total = rows.sum(axis=1, keepdims=True)
    return np.asarray(rows / np.where(total > 0, total, 1.0))
