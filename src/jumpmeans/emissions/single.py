"""Single values, as they come in a stream: their numbers, costs and densities without a panel around them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from ..arrays import Floats
from ..jit import LEAF

# Makes of a value the number that `encode` makes of it, None where that must have a look at it.
Coder = Callable[[Any], float | None]
# Adds to (M,) what one number has in each state, in place; nothing for NaN.
Adder = Callable[[float, Floats], None]

# Readings are at most so large, so that sums of their squares are finite; noise is no less than the inverse of it.
LARGEST = 1e140
# Integers beyond are refused where they are read: float64 would round them.
LARGEST_INTEGER = 2**53


def any_number(value: Any) -> float | None:
    """The coder of families that take every reading as it is."""
    if isinstance(value, float):
        return float(value) if -LARGEST <= value <= LARGEST or value != value else None
    if value is None:
        return np.nan
    return float(value) if type(value) is int and -LARGEST_INTEGER < value < LARGEST_INTEGER else None


def nothing_known(value: Any) -> None:
    """The coder of families that must see a column to read it."""
    return None


class Single:
    """What a family offers a stream; made once, and then called for every value."""

    if TYPE_CHECKING:

        def cost(self, x: Floats) -> Floats:
            """As of `Column`."""

        def unit_log_density(self, x: Floats) -> Floats:
            """As of `Column`."""

    def coder(self) -> Coder:
        """Values to numbers; by default all have to be read as a column."""
        return nothing_known

    def cost_adder(self, weight: float) -> Adder:
        """Weight times what `cost` says of one number, bit for bit."""

        def add(x: float, out: Floats) -> None:
            out += weight * self.cost(np.array([x]))[0]

        return add

    def density_adder(self) -> Adder:
        """What `unit_log_density` says of one number, bit for bit."""

        def add(x: float, out: Floats) -> None:
            out += self.unit_log_density(np.array([x]))[0]

        return add


def label_coder(labels: list[Any]) -> Coder:
    """The coder of labels; numbers of another type, and labels not among these, must be looked at."""
    index = {label: float(k) for k, label in enumerate(labels)} | {None: np.nan}
    kinds = frozenset(map(type, index))
    return lambda value: index.get(value) if type(value) in kinds else None


@njit(**LEAF)  # type: ignore[untyped-decorator]
def add_half_squares(x: float, mu: Floats, weight: float, out: Floats) -> None:
    """Adds weight ½ (x - μ)² to (M,), operation by operation as arrays do."""
    if x == x:
        for s in range(mu.shape[0]):
            z = x - mu[s]
            out[s] += weight * (z * z * 0.5)


@njit(**LEAF)  # type: ignore[untyped-decorator]
def add_normal(x: float, mu: Floats, sigma: Floats, log_sigma: Floats, constant: float, out: Floats) -> None:
    """Adds the logarithm of the normal density to (M,), operation by operation as arrays do."""
    if x == x:
        for s in range(mu.shape[0]):
            z = (x - mu[s]) / sigma[s]
            out[s] += -0.5 * z * z - log_sigma[s] - constant
