"""What a device must know of the columns of an emission: tables of numbers, and what its sums mean."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays import Floats
from ...emissions import Record
from ...forms import COUNTS, MEAN, NOTHING, QUADRATIC, Formula
from ...kernels.cuda.values import GIVEN


def formulas(emission: Record) -> list[Formula] | None:
    """How a device speaks of all columns; None if it does not speak of one of them."""
    found = [column.formula() for column in emission.columns]
    spoken = [formula for formula in found if formula is not None]
    return spoken if len(spoken) == len(found) else None


def is_spoken(emission: Record) -> bool:
    """Whether a device makes costs, densities and statistics of all columns."""
    return formulas(emission) is not None


def stack(tables: list[Floats]) -> Floats:
    """(D, K, M) tables of all columns, as long as the longest."""
    K = max(len(table) for table in tables)
    return np.stack([np.pad(table, ((0, K - len(table)), (0, 0))) for table in tables])


def cost_forms(emission: Record, prices: Floats) -> tuple[tuple[str, ...], Floats]:
    """Forms of all columns, and their tables for costs; a column of price 0 says nothing."""
    spoken, M = formulas(emission), emission.n_states
    if spoken is None:
        return (GIVEN,), np.zeros((1, 1, M))
    forms, tables = [], []
    for own, price in zip(spoken, prices.tolist(), strict=True):
        forms.append(own.form if price > 0 else QUADRATIC)
        tables.append(own.cost(price) if price > 0 else np.zeros((4, M)))
    return tuple(forms), stack(tables)


def density_forms(emission: Record) -> tuple[tuple[str, ...], Floats]:
    """The same for log-densities, per unit 1 of the values."""
    spoken = formulas(emission)
    if spoken is None:
        return (GIVEN,), np.zeros((1, 1, emission.n_states))
    return tuple(own.form for own in spoken), stack([own.density() for own in spoken])


class Kept(NamedTuple):
    """What sums of the columns are made with: their forms, tables at price 1 (D, K, M), and origins (D, M)."""

    columns: tuple[tuple[str, str, int], ...]
    theta: Floats
    origin: Floats


def kept(emission: Record) -> Kept:
    """The same of an emission; of columns that a device does not speak of, nothing is kept."""
    M, D = emission.n_states, len(emission.columns)
    spoken = formulas(emission)
    if spoken is None:
        return Kept(((QUADRATIC, NOTHING, 0),) * D, np.zeros((D, 4, M)), np.zeros((D, M)))
    columns = tuple((own.form, own.sums, own.n_codes if own.sums == COUNTS else 0) for own in spoken)
    tables = [own.cost(1.0) if own.sums == MEAN else np.zeros((1, M)) for own in spoken]
    origins = [np.zeros(M) if own.origin is None else own.origin for own in spoken]
    return Kept(columns, stack(tables), np.stack(origins))


def read_stats(emission: Record, sums: Floats, places: list[int]) -> tuple[Any, ...]:
    """Statistics of all columns, from sums that begin at `places`."""
    return tuple(column.read_sums(sums[places[d] : places[d + 1]]) for d, column in enumerate(emission.columns))
