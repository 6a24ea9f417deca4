"""Labels: what all columns of labels share, and those observed directly (the label is the state)."""

from __future__ import annotations

import reprlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, totals
from ..arrays import Ints as Codes
from ..errors import PanelError, first_few
from ..forms import NOTHING, Formula, table_of
from .column import Column, Ints
from .priors import ColumnPrior
from .single import Coder, label_coder

if TYPE_CHECKING:
    from ..data.panel import Panel

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

    def coder(self) -> Coder:
        return label_coder(self.symbols.tolist())

    def named(self, x: Floats) -> NDArray[Any]:
        return np.asarray(self.symbols[x.astype(np.int64)])

    def features(self, x: Floats) -> Floats:
        return one_hot(x, len(self.symbols))

    def best_value(self, table: Floats) -> NDArray[Any]:
        return np.asarray(self.symbols[table.argmax(axis=1)])


class CertainColumn(LabelColumn):
    """A family without parameters: what a state shows is certain, d is 0 for it and infinite for all else."""

    is_conjugate = True
    n_free = 0

    @property
    @abstractmethod
    def shown(self) -> Ints:
        """(M,) code of the label that each state shows."""

    def averaged(self, others: Sequence[Self]) -> Self:
        return self

    def cost(self, x: Floats) -> Floats:
        N = len(self.symbols)
        table = np.zeros((N + 1, self.n_states))
        table[:-1][np.arange(N)[:, None] != self.shown] = np.inf
        return table[with_missing(x, N)]

    def stats(self, x: Floats, states: Ints, weights: Floats) -> int:
        return 0

    def soft_stats(self, x: Floats, probs: Floats) -> int:
        return 0

    def read_sums(self, sums: Floats) -> int:
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
        return self.shown[states].astype(np.float64)

    def prior(self, x: Floats, panel: Panel) -> ColumnPrior:
        return CertainPrior(self)

    def state_values(self) -> NDArray[Any]:
        return np.asarray(self.symbols[self.shown])

    def sort_key(self) -> Floats | None:
        return None

    def predictive(self, probs: Floats) -> Floats:
        return probs @ np.eye(len(self.symbols))[self.shown]

    def noisy(self, x: Floats, rng: np.random.Generator) -> Self:
        return self


class Direct(CertainColumn):
    """The label is the state: d is 0 for the state that was seen and infinite for all others."""

    name = "direct"
    params = ("labels",)
    shows_state = True

    def __init__(self, labels: Any) -> None:
        self.labels = distinct("labels", labels)

    def __repr__(self) -> str:
        return f"Direct(labels={first_few(self.labels.tolist())})"

    @property
    def symbols(self) -> NDArray[Any]:  # type: ignore[override]
        """(M,) the labels, which are the states."""
        return self.labels

    @property
    def shown(self) -> Ints:
        return np.arange(self.n_states)

    @classmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        return cls(labels)

    def formula(self) -> Formula:
        return table_of(self, NOTHING)

    def successions(self, x: Floats, panel: Panel) -> Floats:
        M = self.n_states
        seen = np.flatnonzero(np.isfinite(x))
        sequence = np.searchsorted(panel.offsets, seen, side="right") - 1
        pair = np.flatnonzero(sequence[1:] == sequence[:-1])
        code = x[seen].astype(np.int64)
        cell = code[pair] * M + code[pair + 1]
        return totals(cell, panel.weights[sequence[pair]], M * M).reshape(M, M)

    def predictive(self, probs: Floats) -> Floats:
        return probs


class Marker(CertainColumn):
    """The label names the state, but only for some states: all others show one label that is no state's name.

    So of states "mild", "severe" and "dead", two are hidden and one is seen where a column says "alive" or "dead".
    An empty value says nothing. `shows` (M,) is the label that each state shows.
    """

    name = "marker"
    params = ("_shown",)
    marks_states = True

    def __init__(self, shows: Any) -> None:
        labels = np.asarray(shows)
        if labels.ndim != 1 or len(labels) == 0:
            raise ValueError(f"shows must be the label that each state shows, got {shows!r}.")
        place = {label: k for k, label in enumerate(dict.fromkeys(labels.tolist()))}
        self._shown = np.array([place[label] for label in labels.tolist()])
        self.symbols = labels[np.unique(self._shown, return_index=True)[1]]

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        shown, symbols = fields["_shown"], distinct("symbols", fields["symbols"])
        if not set(cls(symbols[shown]).symbols.tolist()) <= set(symbols.tolist()) or shown.min() < 0:
            raise ValueError("a marker must show its labels")
        return cls(symbols)._copy(_shown=shown, symbols=symbols)

    def __repr__(self) -> str:
        return f"Marker(shows={first_few(self.state_values().tolist())})"

    @property
    def shown(self) -> Ints:
        return self._shown

    @classmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        found = panel.labels(d)
        named = [label for label in found.tolist() if label in labels]
        others = [label for label in found.tolist() if label not in labels]
        hidden = [label for label in labels if label not in named]
        if not named or len(others) > 1 or (hidden and not others):
            raise PanelError(
                f"column {panel.columns[d]!r} must hold names of states and one more label, for rows in none of these "
                f"states, for emission 'marker', got {first_few(found.tolist())} and the states "
                f"{first_few(labels)}; name the states by states=[...], and fill in rows such as 'alive'."
            )
        return cls([label if label in named else others[0] for label in labels])

    def formula(self) -> Formula:
        return table_of(self, NOTHING)

    def features(self, x: Floats) -> Floats:
        return np.empty((len(x), 0))  # what it says is exact, and no distance


@dataclass(frozen=True)
class CertainPrior(ColumnPrior):
    """What a state shows is certain: nothing to draw."""

    column: CertainColumn

    def draw(self, x: Floats, states: Codes, n_states: int, rng: np.random.Generator) -> CertainColumn:
        """The emission as it is."""
        return self.column


# ---------------------------------------------------------------------- labels


def distinct(name: str, labels: Any) -> NDArray[Any]:
    """(N,) labels of a constructor, none twice."""
    try:
        array = np.asarray(labels)
    except ValueError:  # of lists that differ in length
        array = np.empty((0, 0))
    if array.ndim != 1 or len(array) == 0 or not all(isinstance(label, Hashable) for label in array.tolist()):
        raise ValueError(f"{name} must be a list of at least one label, got {reprlib.repr(labels)}.")
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
        rows = panel.n_present(d)
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
