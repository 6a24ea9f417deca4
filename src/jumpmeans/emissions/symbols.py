"""Labels: observed directly (the label is the state) or as noisy symbols of a hidden state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from ..errors import PanelError, first_few
from .column import Column, Ints

if TYPE_CHECKING:
    from ..data.panel import Panel


def encode_labels(panel: Panel, d: int, known: NDArray[Any]) -> Floats:
    """Index of each value in the known labels, NaN where missing; unseen labels are refused by name."""
    x = panel.values[:, d]
    present = np.isfinite(x)
    if not present.any():
        return x
    index = {label: i for i, label in enumerate(known.tolist())}
    found = panel.labels(d)
    unseen = {label: None for label in found.tolist() if label not in index}  # in order, and quick to look up
    categories = panel.categories[d]
    # the number by which the panel holds each label: itself, or its place among the categories
    held = found.astype(np.float64) if categories is None else np.arange(len(categories), dtype=np.float64)
    labels = found if categories is None else categories
    if unseen:
        row = int(np.flatnonzero(np.isin(x, held[[label in unseen for label in labels.tolist()]]))[0])
        raise PanelError(
            f"labels of column {panel.columns[d]!r} must be among the known ones {first_few(index)}, got "
            f"{first_few(unseen)}, first at {panel.locate(row)}; correct them, or name every label that may "
            "occur by states=[...] (direct) when fitting."
        )
    code_of = np.array([index.get(label, -1) for label in labels.tolist()], dtype=np.float64)
    out = np.full(len(x), np.nan)
    out[present] = code_of[np.searchsorted(held, x[present])]
    return out


def with_missing(x: Floats, missing: int) -> NDArray[np.int64]:
    """Codes as integers, missing values as the code `missing`."""
    return np.where(np.isnan(x), missing, x).astype(np.int64)


class Direct(Column):
    """The label is the state: d is 0 for the state that was seen and infinite for all others."""

    name = "direct"
    is_symbolic = True

    def __init__(self, labels: Any) -> None:
        self.labels = np.asarray(labels)
        self.n_states = len(self.labels)
        table = np.full((self.n_states + 1, self.n_states), np.inf)
        np.fill_diagonal(table, 0.0)
        table[-1] = 0.0
        self._table = table

    def __repr__(self) -> str:
        return f"Direct(labels={self.labels.tolist()})"

    @classmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        return cls(labels)

    def encode(self, panel: Panel, d: int) -> Floats:
        return encode_labels(panel, d, self.labels)

    def cost(self, x: Floats) -> Floats:
        return self._table[with_missing(x, self.n_states)]

    def stats(self, x: Floats, states: Ints, weights: Floats) -> int:
        return 0

    def soft_stats(self, x: Floats, probs: Floats) -> int:
        return 0

    def pool(self, stats: int, groups: Ints, n_groups: int) -> int:
        return stats

    def update(self, stats: int) -> Self:
        return self

    def total(self, stats: int) -> float:
        return 0.0

    def unit_log_density(self, x: Floats) -> Floats:
        return -self.cost(x)

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        return np.asarray(states, dtype=np.float64)

    def permute(self, order: Ints) -> Self:
        return type(self)(self.labels[order])

    def sort_key(self) -> Floats | None:
        return None

    def state_values(self) -> NDArray[Any]:
        return self.labels

    def expected(self, probs: Floats) -> NDArray[Any]:
        return np.asarray(self.labels[probs.argmax(axis=1)])

    def features(self, x: Floats) -> Floats:
        return one_hot(x, self.n_states)

    def noisy(self, x: Floats, rng: np.random.Generator) -> Self:
        return self


# Default pseudo-count of a symbol, as a share of the mean count: hard assignment makes noisy symbols look certain.
EVEN_SHARE = 1.0


class SymbolCounts(NamedTuple):
    """(M, N) weighted number of times each state showed each symbol."""

    counts: Floats

    def __add__(self, other: SymbolCounts) -> SymbolCounts:  # type: ignore[override]
        return SymbolCounts(self.counts + other.counts)


class Categorical(Column):
    """ρ: d = -ln ρ of the symbol seen. `probs` (M, N); `symbols` (N,) their labels."""

    name = "categorical"
    is_symbolic = True

    def __init__(self, probs: Any, symbols: Any = None, pseudo_count: float = 0.0) -> None:
        self.probs = np.atleast_2d(np.asarray(probs, dtype=np.float64))
        self.n_states = len(self.probs)
        self.symbols = np.arange(self.probs.shape[1]) if symbols is None else np.asarray(symbols)
        self.pseudo_count = pseudo_count
        self.n_free = len(self.symbols) - 1
        with np.errstate(divide="ignore"):
            cost = -np.log(self.probs.T)
        self._table = np.vstack([cost, np.zeros(self.n_states)])

    def __repr__(self) -> str:
        return f"Categorical(probs={np.array2string(self.probs, precision=3)}, symbols={self.symbols.tolist()})"

    def _with(self, probs: Floats) -> Self:
        return type(self)(probs, self.symbols, self.pseudo_count)

    @classmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        symbols = panel.labels(d)
        if len(symbols) == 0:
            raise PanelError(
                f"column {panel.columns[d]!r} must hold at least one symbol for emission 'categorical', got none; "
                "check that the right column was named."
            )
        if pseudo_count is None:
            present = np.isfinite(panel.values[:, d])
            pseudo_count = (
                EVEN_SHARE * float(np.repeat(panel.weights, panel.lengths)[present].sum()) / (n_states * len(symbols))
            )
        return cls(np.full((n_states, len(symbols)), 1.0 / len(symbols)), symbols, pseudo_count)

    def encode(self, panel: Panel, d: int) -> Floats:
        return encode_labels(panel, d, self.symbols)

    def cost(self, x: Floats) -> Floats:
        return self._table[with_missing(x, len(self.symbols))]

    def stats(self, x: Floats, states: Ints, weights: Floats) -> SymbolCounts:
        present = np.isfinite(x)
        N = len(self.symbols)
        cell = states[present] * N + x[present].astype(np.int64)
        counts = np.bincount(cell, weights=weights[present], minlength=self.n_states * N).astype(np.float64)
        return SymbolCounts(counts.reshape(self.n_states, N))

    def soft_stats(self, x: Floats, probs: Floats) -> SymbolCounts:
        present = np.isfinite(x)
        return SymbolCounts(probs[present].T @ np.eye(len(self.symbols))[x[present].astype(np.int64)])

    def pool(self, stats: SymbolCounts, groups: Ints, n_groups: int) -> SymbolCounts:
        counts = np.zeros((n_groups, len(self.symbols)))
        np.add.at(counts, groups, stats.counts)
        return SymbolCounts(counts)

    def update(self, stats: SymbolCounts) -> Self:
        counts = stats.counts + self.pseudo_count
        total = counts.sum(axis=1, keepdims=True)
        return self._with(np.where(total > 0, counts / np.where(total > 0, total, 1.0), self.probs))

    def total(self, stats: SymbolCounts) -> float:
        used = stats.counts > 0
        return float((stats.counts[used] * self._table[:-1].T[used]).sum())

    def with_pseudo_count(self, count: float) -> Self:
        return type(self)(self.probs, self.symbols, count)

    def prior_cost(self) -> float:
        # relative to even symbols, so that a state that tells nothing costs nothing
        N = len(self.symbols)
        return float(self.pseudo_count * (self._table - np.log(N))[:-1].sum()) if self.pseudo_count else 0.0

    def unit_log_density(self, x: Floats) -> Floats:
        return -self.cost(x)

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        edges = np.cumsum(self.probs, axis=1)
        drawn = (rng.random(len(states))[:, None] > edges[states]).sum(axis=1)
        return np.minimum(drawn, len(self.symbols) - 1).astype(np.float64)

    def permute(self, order: Ints) -> Self:
        return self._with(self.probs[order])

    def sort_key(self) -> Floats | None:
        return self.probs.argmax(axis=1).astype(np.float64)

    def state_values(self) -> NDArray[Any]:
        return np.asarray(self.symbols[self.probs.argmax(axis=1)])

    def expected(self, probs: Floats) -> NDArray[Any]:
        return np.asarray(self.symbols[(probs @ self.probs).argmax(axis=1)])

    def features(self, x: Floats) -> Floats:
        return one_hot(x, len(self.symbols))

    def noisy(self, x: Floats, rng: np.random.Generator) -> Self:
        probs = np.ones_like(self.probs) + 0.1 * rng.random(self.probs.shape)
        return self._with(probs / probs.sum(axis=1, keepdims=True))


def one_hot(x: Floats, n: int) -> Floats:
    """(rows, n) indicator of each code, NaN where missing."""
    table = np.vstack([np.eye(n), np.full(n, np.nan)])
    return table[with_missing(x, n)]
