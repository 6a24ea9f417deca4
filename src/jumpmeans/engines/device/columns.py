"""What a device must know of the columns of an emission: tables of numbers, and what its sums mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Floats
from ...emissions import Column, Record
from ...emissions.bregman import Bernoulli, Exponential, MeanColumn, MeanStats, Poisson
from ...emissions.categorical import Categorical, SymbolCounts
from ...emissions.gaussian import Gaussian, Lognormal
from ...emissions.symbols import CertainColumn, Direct, Marker
from ...kernels.cuda.sums import COUNTS, MEAN, NOTHING
from ...kernels.cuda.values import EXPONENTIAL, GIVEN, POISSON, QUADRATIC, TABLE

HALF_LOG = 0.5 * np.log(2.0 * np.pi)


class Spoken(NamedTuple):
    """One family as a device speaks of it: form, rows of its table for costs (of ζ) and densities, what is kept."""

    form: str
    cost: Callable[[Any, float], Floats]
    density: Callable[[Any], Floats]
    kept: str
    fields: frozenset[str]


def _rows(column: Column, *rows: Any) -> Floats:
    return np.stack([np.broadcast_to(np.asarray(row, np.float64), (column.n_states,)) for row in rows])


def _codes(column: Any) -> Floats:
    return np.arange(2.0 if isinstance(column, Bernoulli) else len(column.symbols))


def _table_cost(column: Any, price: float) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(price * column.cost(_codes(column)))


def _table_density(column: Any) -> Floats:
    return np.asarray(column.unit_log_density(_codes(column)))


def _logs(mu: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(mu)


_normal_cost: Callable[[Any, float], Floats] = lambda c, price: _rows(c, 0.0, 0.5 * price, c.mu, 0.0)  # noqa: E731
_MEAN_FIELDS, _NORMAL_FIELDS = frozenset({"mu", "earlier"}), frozenset({"mu", "sigma", "earlier"})
# Families that a device speaks of, each by its very class: a subclass may differ in anything. `fields` are what makes
# an instance: one with more is not spoken of.
FAMILIES: dict[type[Column], Spoken] = {
    Gaussian: Spoken(
        QUADRATIC, _normal_cost, lambda c: _rows(c, -np.log(c.sigma) - HALF_LOG, -0.5 / c.sigma**2, c.mu, 0.0), MEAN,
        _NORMAL_FIELDS,
    ),
    Lognormal: Spoken(
        QUADRATIC, _normal_cost, lambda c: _rows(c, -np.log(c.sigma) - HALF_LOG, -0.5 / c.sigma**2, c.mu, -1.0), MEAN,
        _NORMAL_FIELDS,
    ),
    Poisson: Spoken(
        POISSON, lambda c, price: _rows(c, 0.0, 0.0, price, c.mu, _logs(c.mu), 0.0),
        lambda c: _rows(c, -c.mu, _logs(c.mu), 0.0, c.mu, 0.0, 1.0), MEAN, _MEAN_FIELDS,
    ),
    Exponential: Spoken(
        EXPONENTIAL, lambda c, price: _rows(c, -price, price, c.mu, -price),
        lambda c: _rows(c, -np.log(c.mu), -1.0, c.mu, 0.0), MEAN, _MEAN_FIELDS,
    ),
    Bernoulli: Spoken(TABLE, _table_cost, _table_density, MEAN, _MEAN_FIELDS),
    Categorical: Spoken(
        TABLE, _table_cost, _table_density, COUNTS, frozenset({"probs", "symbols", "pseudo_count", "fixed"})
    ),
    Direct: Spoken(TABLE, _table_cost, _table_density, NOTHING, frozenset({"labels"})),
    Marker: Spoken(TABLE, _table_cost, _table_density, NOTHING, frozenset({"_shown", "symbols"})),
}  # fmt: skip


def spoken(column: Column) -> Spoken | None:
    """How a device speaks of a column; None if it does not."""
    found = FAMILIES.get(type(column))
    return found if found is not None and set(vars(column)) <= found.fields else None


def is_spoken(emission: Record) -> bool:
    """Whether a device makes costs, densities and statistics of all columns."""
    return type(emission) is Record and all(spoken(column) is not None for column in emission.columns)


def stack(tables: list[Floats]) -> Floats:
    """(D, K, M) tables of all columns, as long as the longest."""
    K = max(len(table) for table in tables)
    return np.stack([np.pad(table, ((0, K - len(table)), (0, 0))) for table in tables])


def cost_forms(emission: Record, prices: Floats) -> tuple[tuple[str, ...], Floats]:
    """Forms of all columns, and their tables for costs; a column of price 0 says nothing."""
    if not is_spoken(emission):
        return (GIVEN,), np.zeros((1, 1, emission.n_states))
    forms, tables = [], []
    for column, price in zip(emission.columns, prices.tolist(), strict=True):
        own = spoken(column)
        assert own is not None
        forms.append(own.form if price > 0 else QUADRATIC)
        tables.append(own.cost(column, price) if price > 0 else np.zeros((4, emission.n_states)))
    return tuple(forms), stack(tables)


def density_forms(emission: Record) -> tuple[tuple[str, ...], Floats]:
    """The same for log-densities, per unit 1 of the values."""
    if not is_spoken(emission):
        return (GIVEN,), np.zeros((1, 1, emission.n_states))
    own = [spoken(column) for column in emission.columns]
    tables = [one.density(column) for one, column in zip(own, emission.columns, strict=True) if one is not None]
    return tuple(one.form for one in own if one is not None), stack(tables)


class Kept(NamedTuple):
    """What sums of the columns are made with: their forms, tables at price 1 (D, K, M), and origins (D, M)."""

    columns: tuple[tuple[str, str, int], ...]
    theta: Floats
    origin: Floats


def kept(emission: Record) -> Kept:
    """The same of an emission; of columns that a device does not speak of, nothing is kept."""
    M, D = emission.n_states, len(emission.columns)
    if not is_spoken(emission):
        return Kept(((QUADRATIC, NOTHING, 0),) * D, np.zeros((D, 4, M)), np.zeros((D, M)))
    columns, tables, origin = [], [], np.zeros((D, M))
    for d, column in enumerate(emission.columns):
        own = spoken(column)
        assert own is not None
        columns.append((own.form, own.kept, len(_codes(column)) if own.kept == COUNTS else 0))
        tables.append(own.cost(column, 1.0) if own.kept == MEAN else np.zeros((1, M)))
        if isinstance(column, MeanColumn):
            origin[d] = column._origin
    return Kept(tuple(columns), stack(tables), origin)


def read_stats(emission: Record, sums: Floats, places: list[int]) -> tuple[Any, ...]:
    """Statistics of all columns, from sums that begin at `places`."""
    found: list[Any] = []
    for d, column in enumerate(emission.columns):
        own = sums[places[d] : places[d + 1]]
        if isinstance(column, MeanColumn):
            weight, shift, cost = own.reshape(3, -1)
            found.append(MeanStats(weight, shift, cost, column.mu, column._origin))
        elif isinstance(column, Categorical):
            found.append(SymbolCounts(own.reshape(emission.n_states, -1)))
        else:
            assert isinstance(column, CertainColumn)
            found.append(0)
    return tuple(found)
