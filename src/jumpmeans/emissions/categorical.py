"""Noisy symbols of a hidden state, some of whose chances may be known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ..arrays import Floats, read_floats, totals
from ..arrays import Ints as Codes
from ..errors import PanelError, first_few, nearest
from ..forms import COUNTS, Formula, table_of
from ..options import number
from ..stored import stored
from .column import EntryRule, Ints
from .parts import Part, Take
from .priors import ParticlePrior, draw_rows
from .symbols import LabelColumn, check_labels, distinct, with_missing

if TYPE_CHECKING:
    from ..data.panel import Panel

# Default pseudo-count of a symbol, as a share of the mean count: hard assignment makes noisy symbols look certain.
EVEN_SHARE = 1.0
# What a state shows of its own symbol at the start, where there is one for each.
OWN_SYMBOL = 0.7
# Symbols that a column may have: the start of a fit has a coordinate for each.
MOST_SYMBOLS = 500


class SymbolCounts(NamedTuple):
    """(M, N) weighted number of times each state showed each symbol."""

    counts: Floats

    def __add__(self, other: SymbolCounts) -> SymbolCounts:  # type: ignore[override]
        return SymbolCounts(self.counts + other.counts)


class Categorical(LabelColumn):
    """ρ: d = -ln ρ of the symbol seen. `probs` (M, N); `symbols` (N,) their labels.

    `fixed` (M, N) holds the entries that no update changes, NaN elsewhere; None: there are none.
    """

    name = "categorical"
    params = ("probs",)
    is_conjugate = True
    has_particles = True
    has_entries = True
    fixed: Floats | None = None

    def __init__(self, probs: Any, symbols: Any = None, pseudo_count: float = 0.0) -> None:
        self.probs = np.atleast_2d(read_floats("probs", probs))
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
        number(least=0).check("pseudo_count", pseudo_count)
        self.pseudo_count = float(pseudo_count)

    def __repr__(self) -> str:
        return (
            f"Categorical(probs={np.array2string(self.probs, precision=3)}, symbols={first_few(self.symbols.tolist())})"
        )

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        new = cls(fields["probs"], fields["symbols"], fields["pseudo_count"])
        fixed = fields.get("fixed")
        if "fixed" not in fields:
            return new
        if fixed is not None and (fixed.shape != new.probs.shape or not np.all((fixed >= 0) | np.isnan(fixed))):
            raise ValueError("fixed entries must be probabilities in the shape of probs")
        return new._copy(fixed=fixed)

    @property
    def n_free(self) -> int:  # type: ignore[override]
        """Free parameters of one state."""
        return len(self.symbols) - 1

    @property
    def n_parameters(self) -> int:
        free = np.isnan(self._fixed_table()).sum(axis=1)
        return int(np.maximum(free - 1, 0).sum())

    def _fixed_table(self) -> Floats:
        return np.full(self.probs.shape, np.nan) if self.fixed is None else self.fixed

    def knows_entry(self, entry: Any) -> bool:
        return entry in self.symbols.tolist()

    def entry_rule(self, entry: Any) -> EntryRule:
        return "a probability from 0 to 1", lambda x: 0 <= x <= 1

    def with_fixed(self, entries: Mapping[tuple[int, Any], float]) -> Self:
        fixed = self._fixed_table().copy()
        known = self.symbols.tolist()
        for (s, label), value in entries.items():
            if label not in known:
                raise ValueError(
                    f"fixed must name labels among {first_few(known)}, got {label!r}{nearest(label, known)}; correct "
                    "it."
                )
            fixed[s, known.index(label)] = value
        free = np.isnan(fixed)
        sums = np.nansum(fixed, axis=1)
        fixed[free & (sums >= 1.0 - 1e-12)[:, None]] = 0.0  # nothing is left for the others
        bad = np.flatnonzero((sums > 1.0 + 1e-8) | (~free.any(axis=1) & (sums < 1.0 - 1e-8)))
        if len(bad):
            raise ValueError(
                f"fixed probabilities of a state must sum to at most 1, and to 1 if all labels have one, got the sum "
                f"{sums[bad[0]]:g} for state {bad[0]}; correct them, or leave one out."
            )
        return self._copy(fixed=fixed)._kept(self.probs)

    def without_fixed(self) -> Self:
        return self if self.fixed is None else self._copy(fixed=None)

    def with_fixed_of(self, other: Self) -> Self:
        return self if other.fixed is None else self._copy(fixed=other.fixed)._kept(self.probs)

    def misfit(self, other: Self) -> Floats:
        return np.asarray(np.nansum(np.abs(self._fixed_table()[:, None] - other.probs[None]), axis=2))

    def one_symbol_each(self) -> Self | None:
        """Each state mostly shows one symbol: that of its place, as near as the fixed entries allow."""
        M, N = self.probs.shape
        if M != N:
            return None
        barred = self._fixed_table() == 0.0
        states, symbols = linear_sum_assignment(np.where(barred, M + N, np.abs(np.arange(M)[:, None] - np.arange(N))))
        table = np.full((M, N), (1.0 - OWN_SYMBOL) / N)
        table[states, symbols] += OWN_SYMBOL
        return self._kept(table)

    def _kept(self, table: Floats) -> Self:
        """The emission with rows in the shares of a table (M, N), which leave fixed entries as they are.

        A row without any share keeps what it has.
        """
        if self.fixed is None:
            total = table.sum(axis=1, keepdims=True)
            return self._copy(probs=np.where(total > 0, table / np.where(total > 0, total, 1.0), self.probs))
        free = np.isnan(self.fixed)
        shares = even_rows(free)
        for better in (free * self.probs, free * table):
            total = better.sum(axis=1, keepdims=True)
            shares = np.where(total > 0, better / np.where(total > 0, total, 1.0), shares)
        return self._copy(probs=np.where(free, free_share(self.fixed) * shares, self.fixed))

    def take(self, index: Ints) -> Self:
        new = super().take(index)
        return new if self.fixed is None else new._copy(fixed=self.fixed[index])

    def join(self, other: Self) -> Self:
        new = super().join(other)
        if self.fixed is None and other.fixed is None:
            return new
        return new._copy(fixed=np.concatenate([self._fixed_table(), other._fixed_table()]))

    @classmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        symbols = panel.labels(d)
        if len(symbols) == 0:
            raise PanelError(
                f"column {panel.columns[d]!r} must hold at least one symbol for emission 'categorical', got none; "
                "check that the right column was named."
            )
        check_labels(panel, d, symbols, cls.name, MOST_SYMBOLS)
        found = symbols.tolist()
        if all(label in found for label in labels):  # symbols by the names of the states stand in their order
            rest = [label for label in found if label not in labels]
            symbols = symbols[[found.index(label) for label in [*labels, *rest]]]
        if pseudo_count is None:
            pseudo_count = EVEN_SHARE * panel.present_weight(d) / (n_states * len(symbols))
        return cls(np.full((n_states, len(symbols)), 1.0 / len(symbols)), symbols, pseudo_count)

    def _table(self) -> Floats:
        """(N + 1, M) cost of each symbol, and of a missing one, in each state."""
        table = np.zeros((len(self.symbols) + 1, self.n_states))
        with np.errstate(divide="ignore"):
            np.log(self.probs.T, out=table[:-1])
        return np.negative(table, out=table)

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
        n = len(self.symbols)
        cells = groups[:, None] * n + np.arange(n)
        return SymbolCounts(totals(cells.ravel(), stats.counts.ravel(), n_groups * n).reshape(n_groups, n))

    def update(self, stats: SymbolCounts) -> Self:
        return self._kept(stats.counts + self.pseudo_count)

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
        if not self.pseudo_count:
            return 0.0
        costs = (self._table() - np.log(N))[:-1]
        return float(self.pseudo_count * (costs if self.fixed is None else costs[np.isnan(self.fixed.T)]).sum())

    def unit_log_density(self, x: Floats) -> Floats:
        return (-self._table())[with_missing(x, len(self.symbols))]

    def own_unit_log_density(self, x: Floats, states: Ints) -> Floats:
        return np.asarray(-self._table()[with_missing(x, len(self.symbols)), states])

    def formula(self) -> Formula:
        return table_of(self, COUNTS)

    def read_sums(self, sums: Floats) -> SymbolCounts:
        return SymbolCounts(sums.reshape(self.n_states, -1))

    def parts(self, stats: SymbolCounts) -> list[Part]:
        if self.fixed is None:
            weight = stats.counts.sum(axis=1, keepdims=True)
            return [Part(self.probs, np.broadcast_to(weight, self.probs.shape), True, 1, "chance")]
        free, rest = np.isnan(self.fixed), free_share(self.fixed)
        weight = (free * stats.counts).sum(axis=1, keepdims=True) / np.where(rest > 0, rest, 1.0)
        return [Part(self.probs, free * weight, True, 1, "chance", ~free)]

    def rebuild(self, take: Take, floor: float) -> Self:
        return self._kept(take(*self.probs.shape) ** 2)

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        edges = np.cumsum(self.probs, axis=1)
        drawn = (rng.random(len(states))[:, None] > edges[states]).sum(axis=1)
        return np.minimum(drawn, len(self.symbols) - 1).astype(np.float64)

    def prior(self, x: Floats, panel: Panel) -> SymbolPrior:
        return SymbolPrior(self.symbols, self.fixed)

    def state_values(self) -> NDArray[Any]:
        return np.asarray(self.symbols[self.probs.argmax(axis=1)])

    def sort_key(self) -> Floats | None:
        return self.probs.argmax(axis=1).astype(np.float64)

    def predictive(self, probs: Floats) -> Floats:
        return probs @ self.probs

    def noisy(self, x: Floats, rng: np.random.Generator) -> Self:
        return self._kept(np.ones_like(self.probs) + 0.1 * rng.random(self.probs.shape))


@stored
@dataclass(frozen=True)
class SymbolPrior(ParticlePrior):
    """Rows ρ ~ Dirichlet(1) over the symbols; where some entries are fixed, over the others, in what is left."""

    kind = 0
    symbols: NDArray[Any]
    fixed: Floats | None = None

    @property
    def numbers(self) -> Floats:
        return np.ones(len(self.symbols))

    def draw(self, x: Floats, states: Codes, n_states: int, rng: np.random.Generator) -> Categorical:
        """ρ ~ Dirichlet(1 + counts)."""
        present = np.isfinite(x)
        N = len(self.symbols)
        cell = states[present] * N + x[present].astype(np.int64)
        counts = np.bincount(cell, minlength=n_states * N).reshape(n_states, N).astype(np.float64)
        if self.fixed is None:
            return self.column(draw_rows(1.0 + counts, rng))
        free = np.isnan(self.fixed)
        rows = draw_rows(np.where(free, 1.0 + counts, 0.0), rng)
        return self.column(np.where(free, free_share(self.fixed) * rows, self.fixed))._copy(fixed=self.fixed)

    def table(self, column: Categorical) -> Floats:
        return column.probs

    def column(self, table: Floats) -> Categorical:
        return Categorical.unchecked(probs=table, symbols=self.symbols, pseudo_count=0.0)

    def unseen(self) -> Categorical:
        N = len(self.symbols)
        return self.column(np.full((1, N), 1.0 / N))

    def start(self, x: Floats) -> Floats:
        return x


def free_share(fixed: Floats) -> Floats:
    """(M, 1) what fixed entries (M, N) leave to the others of each row."""
    return np.asarray(np.maximum(1.0 - np.nansum(fixed, axis=1, keepdims=True), 0.0))


def even_rows(free: NDArray[np.bool_]) -> Floats:
    """(M, N) even shares of the free entries of each row."""
    return free / np.maximum(free.sum(axis=1, keepdims=True), 1)
