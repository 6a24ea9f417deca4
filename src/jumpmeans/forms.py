"""What the values of a column say of each state, as numbers alone: for kernels that know no classes.

A column is spoken of by a form and a table of numbers, `theta`, states along its last axis:

QUADRATIC  c + k (x - m)² + l x : rows c, k, m, l. Costs and densities of Gaussian columns
TABLE      one row for each code. All columns of labels
POISSON    c + l x + p (x ln x - x ln m - x + m)₊ : rows c, l, p, m, ln m, g, where g ln Γ(x + 1) is taken off
EXPONENTIAL  c + k x / m + l ln(x / m) : rows c, k, m, l

An empty value says 0 of every state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .arrays import Floats

QUADRATIC, TABLE, POISSON, EXPONENTIAL = "quadratic", "table", "poisson", "exponential"
# What is summed of the rows of each state: nothing; weight, sum from an origin on and cost; or the weight of each code.
NOTHING, MEAN, COUNTS = "nothing", "mean", "counts"


class Formula(NamedTuple):
    """A column without its class.

    cost : the table (K, M) at a price ζ; density : that of the log-density, per 1 of the values as encoded
    sums : what is summed; n_codes : of a TABLE; origin : (M,) where a MEAN is summed from
    """

    form: str
    cost: Callable[[float], Floats]
    density: Callable[[], Floats]
    sums: str
    n_codes: int = 0
    origin: Floats | None = None


def rows(n_states: int, *parts: Any) -> Floats:
    """(K, M) a table of rows that are the same for all states, or not."""
    return np.stack([np.broadcast_to(np.asarray(part, np.float64), (n_states,)) for part in parts])


def table_of(column: Any, sums: str, origin: Floats | None = None) -> Formula:
    """The formula of a column of so few values that each has a row."""
    codes = np.arange(float(len(column.symbols)))

    def cost(price: float) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(price * column.cost(codes))

    return Formula(TABLE, cost, lambda: np.asarray(column.unit_log_density(codes)), sums, len(codes), origin)
