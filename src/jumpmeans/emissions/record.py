"""A record of columns, each with its own family; costs, statistics and densities add up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from ..errors import PanelError
from ..stored import Fields, stored
from .bregman import Bernoulli, Exponential, Poisson
from .categorical import Categorical
from .column import Column, Ints
from .gaussian import Gaussian, Lognormal
from .laplace import Laplace
from .priors import ColumnPrior
from .student import Student
from .symbols import Direct, Marker

if TYPE_CHECKING:
    from ..data.panel import Panel

FAMILIES: dict[str, type[Column]] = {
    family.name: family
    for family in (Direct, Marker, Categorical, Gaussian, Lognormal, Student, Laplace, Poisson, Exponential, Bernoulli)
}
for _family in FAMILIES.values():
    stored(_family)
# A family as a user gives it: its name here, or its class.
Family = str | type[Column]
# Costs are filled in pieces so that temporaries stay small however long a sequence is.
PIECE = 1 << 15


def find_family(family: Family) -> type[Column]:
    """The class of a family given by name or by itself."""
    if isinstance(family, type) and issubclass(family, Column):
        return family
    if not isinstance(family, str) or family not in FAMILIES:
        raise ValueError(
            f"emission must be one of {sorted(FAMILIES)} or a subclass of jumpmeans.emissions.Column "
            f"(or a list of them), got {family!r}."
        )
    return FAMILIES[family]


def find_families(emission: Family | Sequence[Family], n_columns: int) -> list[type[Column]]:
    """One family for each column."""
    families = [find_family(family) for family in _listed(emission, n_columns)]
    if len(families) != n_columns:
        raise ValueError(
            f"emission must name one family for each of the {n_columns} value columns, got {len(families)}: "
            f"{[family.name for family in families]}; give a single name for all columns or a list of the right length."
        )
    seen = [family.name for family in families if family.shows_state]
    marks = [family.name for family in families if family.marks_states]
    if len(marks) > 1 or (marks and seen):
        raise ValueError(
            f"emission {marks[0]!r} must stand for one column only, where none is 'direct', got {[*marks, *seen]}; "
            "use 'categorical' for the others."
        )
    if len(seen) > 1:
        raise ValueError(f"emission {seen[0]!r} must stand for one column only; use 'categorical' for the others.")
    return families


def shows_states(emission: Family | Sequence[Family]) -> bool:
    """Whether one of the families shows the state itself."""
    return any(find_family(family).shows_state for family in _listed(emission, 1))


def marks_states(emission: Family | Sequence[Family]) -> bool:
    """Whether one of the families names states."""
    return any(find_family(family).marks_states for family in _listed(emission, 1))


def _listed(emission: Family | Sequence[Family], n: int) -> list[Family]:
    """One for each column, or the same for n."""
    return list(emission) if isinstance(emission, list | tuple | np.ndarray) else [emission] * n  # type: ignore[list-item]


def _quoted(names: list[str]) -> str:
    """Names in a sentence: 'a', 'b' or 'c'."""
    *first, last = [repr(name) for name in names]
    return f"{', '.join(first)} or {last}" if first else last


def require_particles(family: type[Column]) -> None:
    """Refuse a family whose states cannot be born by particles."""
    if not family.has_particles:
        known = [name for name, other in FAMILIES.items() if other.has_particles]
        raise ValueError(
            f"emission must be {_quoted(known)} for ParticleGibbs, got {family.name!r}; "
            "JumpMeans, EM and Gibbs know directly observed states."
        )


@stored
class Record(Fields):
    """Emission of all columns given the state; `columns` holds one family instance each."""

    def __init__(self, columns: Iterable[Column]) -> None:
        self.columns = tuple(columns)
        self.n_states = self.columns[0].n_states
        if any(column.n_states != self.n_states for column in self.columns):
            raise ValueError(
                "all columns of an emission must have the same number of states, got "
                f"{[column.n_states for column in self.columns]}."
            )

    def to_fields(self) -> dict[str, Any]:
        """The columns."""
        return {"columns": self.columns}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Record:
        """A record of columns."""
        columns = fields["columns"]
        if not columns or not all(isinstance(column, Column) for column in columns):
            raise ValueError("a record must be made of emissions, at least one")
        return cls(columns)

    def __repr__(self) -> str:
        return f"Record({', '.join(map(repr, self.columns))})"

    def _stack(self, name: str) -> Any:
        parts = [getattr(column, name) for column in self.columns if hasattr(column, name)]
        if not parts:
            raise AttributeError(
                f"an emission of {[column.name for column in self.columns]} has no {name!r}; "
                "see `.columns` for the parameters of each column."
            )
        if len(self.columns) == 1:
            return parts[0]
        shapes = [part.shape for part in parts]
        if len(set(shapes)) > 1:
            raise AttributeError(
                f"the {name} of {[column.name for column in self.columns]} must have one shape to be put side by side, "
                f"got {shapes}; read them column by column, as `.columns[0].{name}`."
            )
        return np.stack(parts, axis=-1)

    @property
    def means(self) -> Floats:
        """μ, (M,) for one column, (M, D) for the D columns that have means."""
        return self._stack("means")  # type: ignore[no-any-return]

    @property
    def sds(self) -> Floats:
        """Residual standard deviations, shaped as `means`."""
        return self._stack("sds")  # type: ignore[no-any-return]

    @property
    def probs(self) -> Floats:
        """ρ, (M, N) of a categorical column; of several, see `.columns`."""
        parts = [column.probs for column in self.columns if hasattr(column, "probs")]
        return parts[0] if len(parts) == 1 else self._stack("probs")  # type: ignore[no-any-return]

    @property
    def is_direct(self) -> bool:
        """Whether a column shows the state itself."""
        return any(column.shows_state for column in self.columns)

    @property
    def names_states(self) -> bool:
        """Whether a column tells states apart by their names."""
        return any(column.shows_state or column.marks_states for column in self.columns)

    @property
    def tells_apart(self) -> bool:
        """Whether states are told apart before any data, by their names or by entries that are fixed."""
        return self.names_states or any(column.without_fixed() is not column for column in self.columns)

    @property
    def free_columns(self) -> list[int]:
        """Columns that have parameters."""
        return [d for d, column in enumerate(self.columns) if column.n_free > 0]

    @property
    def hides_symbols(self) -> bool:
        """Whether states are hidden behind symbols, alone or among other columns."""
        return not self.is_direct and any(self.columns[d].is_symbolic for d in self.free_columns)

    @property
    def only_symbols(self) -> bool:
        """Whether all that is seen of hidden states are symbols."""
        return self.hides_symbols and all(self.columns[d].is_symbolic for d in self.free_columns)

    def encode(self, panel: Panel) -> Floats:
        """(n, D) values as numbers and codes, checked against each column's support."""
        if panel.n_columns != len(self.columns):
            raise PanelError(
                f"the panel must have {len(self.columns)} value columns as when fitted, got {panel.n_columns}: "
                f"{list(panel.columns)}."
            )
        coded = [column.encode(panel, d) for d, column in enumerate(self.columns)]
        if len(coded) == 1:
            return coded[0].reshape(-1, 1)
        return np.column_stack(coded)

    def states_seen(self, x: Floats) -> Floats:
        """(n,) the state of each row where it was seen, NaN where it was not."""
        for d, column in enumerate(self.columns):
            if column.shows_state:
                return x[:, d]
        return np.full(len(x), np.nan)

    def auto_weights(self, x: Floats, panel: Panel) -> Floats:
        """(D,) ζ of each column that makes costs free of units."""
        return np.array([column.auto_weight(x[:, d], panel) for d, column in enumerate(self.columns)])

    def natural_weights(self) -> Floats:
        """(D,) ζ that makes each column's cost the negative logarithm of its density."""
        return np.array([column.natural_weight() for column in self.columns])

    def cost(self, x: Floats, weights: Floats) -> Floats:
        """(n, M) observation costs Σ_d ζ_d d(x_d, θ), 0 where nothing was observed; infinite beyond floats."""
        told = [d for d in range(len(self.columns)) if weights[d] > 0]
        out = np.empty((len(x), self.n_states)) if told else np.zeros((len(x), self.n_states))
        with np.errstate(over="ignore"):
            for a in range(0, len(x), PIECE):
                piece, own = x[a : a + PIECE], out[a : a + PIECE]
                for d in told:
                    if d == told[0]:
                        np.multiply(weights[d], self.columns[d].cost(piece[:, d]), out=own)
                    else:
                        own += weights[d] * self.columns[d].cost(piece[:, d])
        return out

    def unit_log_density(self, x: Floats) -> Floats:
        """(n, M) log-density of each row under each state, per `unit` of each column."""
        out = np.zeros((len(x), self.n_states))
        for a in range(0, len(x), PIECE):
            piece = x[a : a + PIECE]
            for d, column in enumerate(self.columns):
                out[a : a + PIECE] += column.unit_log_density(piece[:, d])
        return out

    def log_units(self, x: Floats) -> Floats:
        """(n,) logarithm of the units of the values present in each row."""
        units = [column.unit for column in self.columns]
        if all(unit == 1.0 for unit in units):
            return np.zeros(len(x))
        return np.isfinite(x).astype(np.float64) @ np.log(units)

    def log_density(self, x: Floats) -> Floats:
        """(n, M) log-density of each row under each state."""
        return self.unit_log_density(x) - self.log_units(x)[:, None]

    def own_log_density(self, x: Floats, states: Ints) -> Floats:
        """(n,) log-density of each row under one state each."""
        own = np.zeros(len(x))
        for d, column in enumerate(self.columns):
            own += column.own_unit_log_density(x[:, d], states)
        return own - self.log_units(x)

    def stats(self, x: Floats, states: Ints, weights: Floats) -> tuple[Any, ...]:
        """Statistics of each column for rows assigned to states."""
        return tuple(column.stats(x[:, d], states, weights) for d, column in enumerate(self.columns))

    def soft_stats(self, x: Floats, probs: Floats) -> tuple[Any, ...]:
        """Statistics of each column for rows shared among the states by the weights (n, M)."""
        return tuple(column.soft_stats(x[:, d], probs) for d, column in enumerate(self.columns))

    def pool(self, stats: tuple[Any, ...], groups: Ints, n_groups: int) -> tuple[Any, ...]:
        """Statistics of groups of states that had the same parameters; state s goes to group groups[s]."""
        return tuple(column.pool(s, groups, n_groups) for column, s in zip(self.columns, stats, strict=True))

    @property
    def n_free(self) -> int:
        """Free parameters of one state."""
        return sum(column.n_free for column in self.columns)

    @property
    def n_parameters(self) -> int:
        """Free parameters of all states."""
        return sum(column.n_parameters for column in self.columns)

    def update(self, stats: tuple[Any, ...]) -> Record:
        """Emission that minimises the cost of the assigned rows."""
        return Record(column.update(s) for column, s in zip(self.columns, stats, strict=True))

    def with_scales(self, stats: tuple[Any, ...], shared: float = 1.0, floors: Floats | None = None) -> Record:
        """The same emission with the spreads that densities need; see `Column.with_scale`."""
        least = [None] * len(self.columns) if floors is None else floors.tolist()
        return Record(
            column.with_scale(s, shared, floor) for column, s, floor in zip(self.columns, stats, least, strict=True)
        )

    def with_pseudo_count(self, count: float) -> Record:
        """The same emission with another pseudo-count for its updates."""
        return Record(column.with_pseudo_count(count) for column in self.columns)

    def totals(self, stats: tuple[Any, ...]) -> Floats:
        """(D,) unweighted observation cost of each column."""
        return np.array([column.total(s) for column, s in zip(self.columns, stats, strict=True)])

    def prior_costs(self) -> Floats:
        """(D,) unweighted cost of each column's pseudo-counts."""
        return np.array([column.prior_cost() for column in self.columns])

    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        """(n, D) a record for each state."""
        return np.column_stack([column.sample(states, rng) for column in self.columns])

    def named(self, x: Floats) -> list[NDArray[Any]]:
        """The values that the numbers x (n, D) stand for, column by column."""
        return [column.named(x[:, d]) for d, column in enumerate(self.columns)]

    def take(self, index: Ints) -> Record:
        """The emission whose state i is state index[i] of this one: in another order, fewer, or some of them twice."""
        return Record(column.take(index) for column in self.columns)

    def join(self, other: Record) -> Record:
        """The states of this emission, then those of another of the same families."""
        return Record(column.join(theirs) for column, theirs in zip(self.columns, other.columns, strict=True))

    def averaged(self, others: Sequence[Record]) -> Record:
        """Emission whose parameters are the means of those of others (this one among them)."""
        return Record(column.averaged([other.columns[d] for other in others]) for d, column in enumerate(self.columns))

    def with_counts_of(self, other: Record, share: float) -> Record:
        """The same emission with a share of the pseudo-counts of another, as far as they grow with the data."""
        return Record(
            column.with_counts_of(theirs, share) for column, theirs in zip(self.columns, other.columns, strict=True)
        )

    def noises(self, x: Floats, panel: Panel) -> Floats:
        """(D,) noise of each column, 0 where the family has no spread."""
        return np.array([column.noise(x[:, d], panel) for d, column in enumerate(self.columns)])

    def priors(self, x: Floats, panel: Panel) -> tuple[ColumnPrior, ...]:
        """Conjugate priors of all columns; a family that has none is refused."""
        for column in self.columns:
            if not column.is_conjugate:
                known = [name for name, family in FAMILIES.items() if family.is_conjugate]
                raise ValueError(
                    f"emission must be {_quoted(known)} for Monte Carlo, got {column.name!r}; "
                    "JumpMeans and EM know the other families."
                )
        return tuple(column.prior(x[:, d], panel) for d, column in enumerate(self.columns))

    def stable_order(self, time_in_state: Floats) -> NDArray[np.int64]:
        """Order of the states that two fits agree on: by value, then by most probable symbol and frequency.

        States that a column names keep the order of their labels.
        """
        if self.names_states:
            return np.arange(self.n_states)
        numeric_first = sorted(self.columns, key=lambda column: column.has_labels)
        keys = [key for column in reversed(numeric_first) if (key := column.sort_key()) is not None]
        return np.lexsort([-time_in_state, *keys])

    def state_values(self) -> NDArray[Any]:
        """(M,) or (M, D): the observation each state should show."""
        return _join([column.state_values() for column in self.columns])

    def describe(self) -> list[str]:
        """(M,) what each state shows, in a few words: the columns one after the other."""
        return [", ".join(parts) for parts in zip(*(column.describe() for column in self.columns), strict=True)]

    def expected(self, probs: Floats) -> NDArray[Any]:
        """(n,) or (n, D): the observation to expect under state probabilities (n, M)."""
        return _join([column.expected(probs) for column in self.columns])

    def at_levels(self, values: NDArray[Any], offsets: Floats) -> NDArray[Any]:
        """(n,) or (n, D): what to expect of people at given offsets (n, D), from that of people at level 0."""
        columns = values.reshape(len(values), -1)
        moved = [
            column.at_level(columns[:, d].astype(np.float64), offsets[:, d]) if column.has_levels else columns[:, d]
            for d, column in enumerate(self.columns)
        ]
        return _join(moved)

    def best_values(self, tables: Sequence[Floats]) -> NDArray[Any]:
        """(n,) or (n, D): the observation to expect under predictive distributions of each column."""
        return _join([column.best_value(table) for column, table in zip(self.columns, tables, strict=True)])

    def noisy(self, x: Floats, rng: np.random.Generator) -> Record:
        """Nearly equal states, as the paper starts."""
        return Record(column.noisy(x[:, d], rng) for d, column in enumerate(self.columns))

    def features(self, x: Floats) -> Floats:
        """(n, F) coordinates of each row for a first clustering, NaN where missing."""
        return np.column_stack([column.features(x[:, d]) for d, column in enumerate(self.columns)])


def _join(parts: list[NDArray[Any]]) -> NDArray[Any]:
    if len(parts) == 1:
        return parts[0]
    if any(part.dtype.kind not in "fiu" for part in parts):
        parts = [part.astype(object) for part in parts]
    return np.column_stack(parts)


def as_record(emission: Record | Column | Iterable[Column]) -> Record:
    """A record of what was given: itself, one column, or several."""
    if isinstance(emission, Record):
        return emission
    return Record([emission] if isinstance(emission, Column) else emission)
