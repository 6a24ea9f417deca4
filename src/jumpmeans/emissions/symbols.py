"""Labels: observed directly (the label is the state) or as noisy symbols of a hidden state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, totals
from ..arrays import Ints as Codes
from ..errors import PanelError, first_few
from .column import Column, Ints
from .parts import Part, Take
from .priors import ColumnPrior, ParticlePrior, draw_rows

if TYPE_CHECKING:
    from ..data.panel import Panel

# Default pseudo-count of a symbol, as a share of the mean count: hard assignment makes noisy symbols look certain.
EVEN_SHARE = 1.0
# Symbols that a column may have: the start of a fit has a coordinate for each.
MOST_SYMBOLS = 500
# Labels that are states: tables and time grow with the cube of their number; with so many a pass takes some seconds.
MOST_LABELS = 200
# A column of numbers that are not whole looks continuous if it has more distinct values than this, and few repeat.
MOST_ODD_NUMBERS = 20


class LabelColumn(Column):
    """A family whose values are labels, coded by their place among `symbols` (N,)."""

    is_symbolic = True
    has_labels = True
    symbols: NDArray[Any]

    def encode(self, panel: Panel, d: int) -> Floats:
        return encode_labels(panel, d, self.symbols)

    def named(self, x: Floats) -> NDArray[Any]:
        return np.asarray(self.symbols[x.astype(np.int64)])

    def features(self, x: Floats) -> Floats:
        return one_hot(x, len(self.symbols))

    def best_value(self, table: Floats) -> NDArray[Any]:
        return np.asarray(self.symbols[table.argmax(axis=1)])


class Direct(LabelColumn):
    """The label is the state: d is 0 for the state that was seen and infinite for all others."""

    name = "direct"
    params = ("labels",)
    shows_state = True
    is_conjugate = True
    n_free = 0

    def __init__(self, labels: Any) -> None:
        self.labels = distinct("labels", labels)

    def __repr__(self) -> str:
        return f"Direct(labels={first_few(self.labels.tolist())})"

    @property
    def symbols(self) -> NDArray[Any]:  # type: ignore[override]
        """(M,) the labels, which are the states."""
        return self.labels

    @classmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        return cls(labels)

    def averaged(self, others: Sequence[Self]) -> Self:
        return self

    def successions(self, x: Floats, panel: Panel) -> Floats:
        M = self.n_states
        seen = np.flatnonzero(np.isfinite(x))
        sequence = np.searchsorted(panel.offsets, seen, side="right") - 1
        pair = np.flatnonzero(sequence[1:] == sequence[:-1])
        code = x[seen].astype(np.int64)
        cell = code[pair] * M + code[pair + 1]
        return totals(cell, panel.weights[sequence[pair]], M * M).reshape(M, M)

    def cost(self, x: Floats) -> Floats:
        M = self.n_states
        table = np.full((M + 1, M), np.inf)
        np.fill_diagonal(table, 0.0)
        table[-1] = 0.0
        return table[with_missing(x, M)]

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

    def prior(self, x: Floats, panel: Panel) -> ColumnPrior:
        return DirectPrior(self)

    def state_values(self) -> NDArray[Any]:
        return self.labels

    def sort_key(self) -> Floats | None:
        return None

    def predictive(self, probs: Floats) -> Floats:
        return probs

    def noisy(self, x: Floats, rng: np.random.Generator) -> Self:
        return self


@dataclass(frozen=True)
class DirectPrior(ColumnPrior):
    """The label is the state: nothing to draw."""

    column: Direct

    def draw(self, x: Floats, states: Codes, n_states: int, rng: np.random.Generator) -> Direct:
        """The emission as it is."""
        return self.column


class SymbolCounts(NamedTuple):
    """(M, N) weighted number of times each state showed each symbol."""

    counts: Floats

    def __add__(self, other: SymbolCounts) -> SymbolCounts:  # type: ignore[override]
        return SymbolCounts(self.counts + other.counts)


class Categorical(LabelColumn):
    """ρ: d = -ln ρ of the symbol seen. `probs` (M, N); `symbols` (N,) their labels."""

    name = "categorical"
    params = ("probs",)
    is_conjugate = True
    has_particles = True

    def __init__(self, probs: Any, symbols: Any = None, pseudo_count: float = 0.0) -> None:
        self.probs = np.atleast_2d(np.asarray(probs, dtype=np.float64))
        sums = self.probs.sum(axis=-1)
        bad = ~(np.isclose(sums, 1.0, rtol=0.0, atol=1e-8) & (self.probs >= 0).all(axis=-1))
        if self.probs.ndim != 2 or self.probs.size == 0:
            raise ValueError(
                f"probs must be a table of states by symbols, got shape {self.probs.shape}; give one row per state."
            )
        if bad.any():
            s = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"rows of probs must be probabilities that sum to 1, got {first_few(self.probs[s].tolist())} with the "
                f"sum {sums[s]:g} for state {s}; divide each row by its sum."
            )
        N = self.probs.shape[1]
        self.symbols = np.arange(N) if symbols is None else distinct("symbols", symbols)
        if len(self.symbols) != N:
            raise ValueError(f"symbols must name the {N} columns of probs, got {len(self.symbols)}.")
        if not (np.isfinite(pseudo_count) and pseudo_count >= 0):
            raise ValueError(f"pseudo_count must be a finite number >= 0, got {pseudo_count!r}.")
        self.pseudo_count = float(pseudo_count)

    def __repr__(self) -> str:
        return (
            f"Categorical(probs={np.array2string(self.probs, precision=3)}, symbols={first_few(self.symbols.tolist())})"
        )

    @property
    def n_free(self) -> int:  # type: ignore[override]
        """Free parameters of one state."""
        return len(self.symbols) - 1

    @classmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        symbols = panel.labels(d)
        if len(symbols) == 0:
            raise PanelError(
                f"column {panel.columns[d]!r} must hold at least one symbol for emission 'categorical', got none; "
                "check that the right column was named."
            )
        check_labels(panel, d, symbols, cls.name, MOST_SYMBOLS)
        if pseudo_count is None:
            present = np.isfinite(panel.values[:, d])
            pseudo_count = (
                EVEN_SHARE * float(np.repeat(panel.weights, panel.lengths)[present].sum()) / (n_states * len(symbols))
            )
        return cls(np.full((n_states, len(symbols)), 1.0 / len(symbols)), symbols, pseudo_count)

    def _table(self) -> Floats:
        """(N + 1, M) cost of each symbol, and of a missing one, in each state."""
        with np.errstate(divide="ignore"):
            cost = -np.log(self.probs.T)
        return np.vstack([cost, np.zeros(self.n_states)])

    def cost(self, x: Floats) -> Floats:
        return self._table()[with_missing(x, len(self.symbols))]

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
        return self._copy(probs=np.where(total > 0, counts / np.where(total > 0, total, 1.0), self.probs))

    def total(self, stats: SymbolCounts) -> float:
        used = stats.counts > 0
        return float((stats.counts[used] * self._table()[:-1].T[used]).sum())

    def with_pseudo_count(self, count: float) -> Self:
        return self._copy(pseudo_count=count)

    def with_counts_of(self, other: Self, share: float) -> Self:
        return self._copy(pseudo_count=share * other.pseudo_count)

    def prior_cost(self) -> float:
        # relative to even symbols, so that a state that tells nothing costs nothing
        N = len(self.symbols)
        return float(self.pseudo_count * (self._table() - np.log(N))[:-1].sum()) if self.pseudo_count else 0.0

    def unit_log_density(self, x: Floats) -> Floats:
        return -self.cost(x)

    def parts(self, stats: SymbolCounts) -> list[Part]:
        weight = stats.counts.sum(axis=1, keepdims=True)
        return [Part(self.probs, np.broadcast_to(weight, self.probs.shape), True, 1, "chance")]

    def rebuild(self, take: Take, floor: float) -> Self:
        probs = take(*self.probs.shape) ** 2
        return self._copy(probs=probs / probs.sum(axis=1, keepdims=True))

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        edges = np.cumsum(self.probs, axis=1)
        drawn = (rng.random(len(states))[:, None] > edges[states]).sum(axis=1)
        return np.minimum(drawn, len(self.symbols) - 1).astype(np.float64)

    def prior(self, x: Floats, panel: Panel) -> SymbolPrior:
        return SymbolPrior(self.symbols)

    def state_values(self) -> NDArray[Any]:
        return np.asarray(self.symbols[self.probs.argmax(axis=1)])

    def sort_key(self) -> Floats | None:
        return self.probs.argmax(axis=1).astype(np.float64)

    def predictive(self, probs: Floats) -> Floats:
        return probs @ self.probs

    def noisy(self, x: Floats, rng: np.random.Generator) -> Self:
        probs = np.ones_like(self.probs) + 0.1 * rng.random(self.probs.shape)
        return self._copy(probs=probs / probs.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class SymbolPrior(ParticlePrior):
    """Rows ρ ~ Dirichlet(1) over the symbols."""

    kind = 0
    symbols: NDArray[Any]

    @property
    def numbers(self) -> Floats:
        return np.ones(len(self.symbols))

    def draw(self, x: Floats, states: Codes, n_states: int, rng: np.random.Generator) -> Categorical:
        """ρ ~ Dirichlet(1 + counts)."""
        present = np.isfinite(x)
        N = len(self.symbols)
        cell = states[present] * N + x[present].astype(np.int64)
        counts = np.bincount(cell, minlength=n_states * N).reshape(n_states, N).astype(np.float64)
        return self.column(draw_rows(1.0 + counts, rng))

    def table(self, column: Categorical) -> Floats:
        return column.probs

    def column(self, table: Floats) -> Categorical:
        return Categorical(table, self.symbols)

    def unseen(self) -> Categorical:
        N = len(self.symbols)
        return self.column(np.full((1, N), 1.0 / N))

    def start(self, x: Floats) -> Floats:
        return x


# ---------------------------------------------------------------------- labels


def distinct(name: str, labels: Any) -> NDArray[Any]:
    """(N,) labels of a constructor, none twice."""
    array = np.asarray(labels)
    if array.ndim != 1 or len(array) == 0:
        raise ValueError(f"{name} must be a list of at least one label, got {labels!r}.")
    twice = [label for label, n in Counter(array.tolist()).items() if n > 1]
    if twice:
        raise ValueError(f"{name} must be distinct, got {first_few(twice)} more than once.")
    return array


def check_labels(panel: Panel, d: int, labels: NDArray[Any], family: str, most: int, looks: bool = True) -> None:
    """Refuse more labels than can be handled and, if `looks`, a column that looks like measurements."""
    N = len(labels)
    hint = (
        "for measurements use emission='gaussian', 'student' or 'lognormal' (counts: 'poisson'), or cut them into "
        "bins; of labels, merge the rare ones"
    )
    if N > most:
        raise PanelError(
            f"column {panel.columns[d]!r} must hold at most {most} labels for emission {family!r}, got {N}: "
            f"{first_few(labels.tolist())}; {hint}."
        )
    if looks and N > MOST_ODD_NUMBERS and labels.dtype.kind == "f" and np.any(labels != np.floor(labels)):
        rows = int(np.isfinite(panel.values[:, d]).sum())
        if 2 * N > rows:
            raise PanelError(
                f"column {panel.columns[d]!r} must hold labels that repeat for emission {family!r}, got {N} different "
                f"numbers in {rows} rows: {first_few(labels.tolist())}; {hint}."
            )


def encode_labels(panel: Panel, d: int, known: NDArray[Any]) -> Floats:
    """Index of each value in the known labels, NaN where missing; unseen labels are refused by name."""
    x = panel.values[:, d]
    present = np.isfinite(x)
    if not present.any():
        return x
    index = {label: i for i, label in enumerate(known.tolist())}
    found = panel.labels(d)
    unseen = [label for label in found.tolist() if label not in index]
    categories = panel.categories[d]
    # the number by which the panel holds each label: itself, or its place among the categories
    held = found.astype(np.float64) if categories is None else np.arange(len(categories), dtype=np.float64)
    labels = found if categories is None else categories
    if unseen:
        new = set(unseen)
        row = int(np.flatnonzero(np.isin(x, held[[label in new for label in labels.tolist()]]))[0])
        raise PanelError(
            f"labels of column {panel.columns[d]!r} must be among the known ones {first_few(known.tolist())}, got "
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


def one_hot(x: Floats, n: int) -> Floats:
    """(rows, n) indicator of each code, NaN where missing."""
    table = np.vstack([np.eye(n), np.full(n, np.nan)])
    return table[with_missing(x, n)]
