"""What a family of observations must offer: one class per family, one instance per fitted column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from math import floor, log10
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, sum_in_order
from ..forms import Formula
from ..stored import Fields
from .parts import Part, Take
from .single import Single

if TYPE_CHECKING:
    from ..data.panel import Panel
    from .priors import ColumnPrior

Ints = NDArray[np.integer[Any]]
# What a fixed value must be, in words, and whether one is.
EntryRule = tuple[str, Callable[[float], bool]]

# A state's spread is never taken below this share of the column's: one repeated value is no certainty.
SCALE_FLOOR = 0.05


class Column(Single, Fields, ABC):
    """Emission of one column given the state: parameters θ, divergence d and density.

    Instances are immutable; an update makes a new one. In all methods x is (n,), the numbers that `encode` makes of
    the values, with NaN where nothing was observed; states is (n,), weights is (n,). Only the constructor, which
    users call, checks its arguments.
    """

    name: ClassVar[str]
    # Names of the arrays that hold the parameters, the state along their first axis.
    params: ClassVar[tuple[str, ...]]
    # Whether values are symbols: a state is then a mix of them, and may outnumber them.
    is_symbolic: ClassVar[bool] = False
    # Whether what a state is expected to show is one of the labels, not a number.
    has_labels: ClassVar[bool] = False
    # Whether a value is the state itself.
    shows_state: ClassVar[bool] = False
    # Whether a value may be the name of a state, so that states are told apart by it.
    marks_states: ClassVar[bool] = False
    # Whether there is a prior to sample under, and one that can give birth to states.
    is_conjugate: ClassVar[bool] = False
    has_particles: ClassVar[bool] = False
    # Whether single entries can be fixed (see `with_fixed`).
    has_entries: ClassVar[bool] = False
    # Whether readings may stand at a level of their sequence: x = μ + b + noise (see `jumpmeans.model.levels`).
    has_levels: ClassVar[bool] = False
    # Free parameters of one state.
    n_free: int = 1

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "formula" not in vars(cls):  # it may differ in anything: what is said of its base is not said of it
            cls.formula = Column.formula  # type: ignore[method-assign]

    def __repr__(self) -> str:
        name = next(iter(signature(type(self)).parameters))
        shown = np.asarray(getattr(self, name, self.state_values()))
        return f"{type(self).__name__}({name}={np.array2string(shown, precision=4)})"

    # ------------------------------------------------------------ parameters

    @property
    def n_states(self) -> int:
        """M, number of states."""
        return len(getattr(self, self.params[0]))

    @property
    def n_parameters(self) -> int:
        """Free parameters of all states."""
        return self.n_states * self.n_free

    def with_fixed(self, entries: Mapping[tuple[int, Any], float]) -> Self:
        """The same emission with entries {(state index, label): value} that no update changes."""
        raise ValueError(
            f"fixed emission entries must be of a column with probabilities or measurements, got {len(entries)} for "
            f"emission {self.name!r}; nothing of it can be fixed: leave them out."
        )

    def knows_entry(self, entry: Any) -> bool:
        """Whether states have an entry of this name, that can be fixed."""
        return False

    def entry_rule(self, entry: Any) -> EntryRule:
        """What a fixed value of the entry must be."""
        return "a finite number", np.isfinite

    def without_fixed(self) -> Self:
        """The same emission with all entries free."""
        return self

    def with_fixed_of(self, other: Self) -> Self:
        """The same emission with the entries that are fixed in another."""
        return self

    def one_symbol_each(self) -> Self | None:
        """The emission whose states mostly show one symbol each; None if there are not as many symbols as states."""
        return None

    def misfit(self, other: Self) -> Floats:
        """(M, M) how far each state of another emission (columns) is from what is fixed of each of this (rows)."""
        return np.zeros((self.n_states, self.n_states))

    @classmethod
    def unchecked(cls, **fields: Any) -> Self:
        """The emission with these fields, for parameters that are right by how they were made."""
        new = object.__new__(cls)
        new.__dict__.update(fields)
        return new

    def _copy(self, **changes: Any) -> Self:
        """The same emission with other parameters, unchecked."""
        return self.unchecked(**self.__dict__ | changes)

    def take(self, index: Ints) -> Self:
        """The emission whose state i is state index[i] of this one: in another order, fewer, or some of them twice."""
        return self._copy(**{name: getattr(self, name)[index] for name in self.params})

    def join(self, other: Self) -> Self:
        """The states of this emission, then those of another of the same family."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in self.params}
        return self._copy(**{name: np.concatenate(pair) for name, pair in pairs.items()})

    def averaged(self, others: Sequence[Self]) -> Self:
        """Emission whose parameters are the means of those of others (this one among them)."""
        return self._copy(**{name: np.mean([getattr(other, name) for other in others], axis=0) for name in self.params})

    # ------------------------------------------------------------------ files

    @classmethod
    def stored_name(cls) -> str:
        """The name in a model file."""
        return f"emission {cls.name}"

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """The emission of `vars` of one: a family whose constructor takes its `params` in order has nothing to add."""
        given = dict(fields)
        new = cls(*(given.pop(name) for name in cls.params))
        for name, value in given.items():
            plain = isinstance(value, int | float | tuple) and np.isfinite(value).all()
            if not plain or callable(getattr(cls, name, None)) or isinstance(getattr(cls, name, None), property):
                raise ValueError(f"a {cls.name} column must be made of {cls.params} and finite numbers, got {name!r}")
        return new._copy(**given)

    # ------------------------------------------------------------------ data

    @classmethod
    @abstractmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        """Emission that knows the column's support and noise but nothing of its states."""

    @abstractmethod
    def encode(self, panel: Panel, d: int) -> Floats:
        """Column d of a panel as the numbers this emission works on; refuses values outside its support."""

    def named(self, x: Floats) -> NDArray[Any]:
        """(n,) the values that the numbers x stand for."""
        return x

    def noise(self, x: Floats, panel: Panel) -> float:
        """Noise of the readings, in the unit of x; 0 for a family that has no spread of its own."""
        return 0.0

    def auto_weight(self, x: Floats, panel: Panel) -> float:
        """ζ that makes the cost free of units (1 where it has none)."""
        return 1.0

    def natural_weight(self) -> float:
        """ζ that makes the cost the negative logarithm of the density, up to constants."""
        return 1.0

    def features(self, x: Floats) -> Floats:
        """(n, F) the values as coordinates for a first clustering, NaN where nothing was observed."""
        return x[:, None]

    def successions(self, x: Floats, panel: Panel) -> Floats | None:
        """(M, M) weighted number of times that states were seen one after the other; None if states are not seen."""
        return None

    # ------------------------------------------------------------------ cost

    @abstractmethod
    def cost(self, x: Floats) -> Floats:
        """(n, M) divergence of each value from each state; 0 where nothing was observed."""

    @abstractmethod
    def stats(self, x: Floats, states: Ints, weights: Floats) -> Any:
        """Statistics of the assigned values; those of two sets of rows add up by +."""

    def soft_stats(self, x: Floats, probs: Floats) -> Any:
        """Statistics of values shared among the states by the weights (n, M)."""
        parts = [self.stats(x, np.full(len(x), s), probs[:, s]) for s in range(self.n_states)]
        return sum_in_order(parts)

    @abstractmethod
    def pool(self, stats: Any, groups: Ints, n_groups: int) -> Any:
        """Statistics of groups of states that had the same parameters; state s goes to group groups[s]."""

    @abstractmethod
    def update(self, stats: Any) -> Self:
        """Emission of less cost of the assigned values, the least if it can be had; a state without any keeps its own.

        Neither the cost may rise nor, under the spreads that this emission has, the likelihood fall.
        """

    @abstractmethod
    def total(self, stats: Any) -> float:
        """Σ w d(x, θ) of the assigned values."""

    def with_pseudo_count(self, count: float) -> Self:
        """The same emission with another pseudo-count for its updates."""
        return self

    def with_counts_of(self, other: Self, share: float) -> Self:
        """The same emission with a share of the pseudo-counts of another, as far as they grow with the data."""
        return self

    def prior_cost(self) -> float:
        """Cost of the pseudo-counts, if any."""
        return 0.0

    # ------------------------------------------------------------ without classes

    def formula(self) -> Formula | None:
        """The column as numbers alone, for kernels that make its costs, densities and statistics themselves.

        None: they are given tables of all rows and states. A subclass does not inherit it.
        """
        return None

    def read_sums(self, sums: Floats) -> Any:
        """Statistics, of the sums that the formula asks for."""
        raise NotImplementedError(f"{type(self).__name__} has no formula.")

    # --------------------------------------------------------------- density

    def with_scale(self, stats: Any, shared: float = 1.0, floor: float | None = None) -> Self:
        """The same emission with the spread that its density needs, from the assigned values.

        A state of few values leans on the others as if it had `shared` more values of the common spread.
        None goes below the floor: by default a share of the common spread, which moves with the fit.
        """
        return self

    @property
    def unit(self) -> float:
        """Unit of value that densities are per: a power of two, so that a change of unit changes no digit."""
        return 1.0

    @abstractmethod
    def unit_log_density(self, x: Floats) -> Floats:
        """(n, M) log-density per `unit` of each value under each state; 0 where nothing was observed."""

    def log_density(self, x: Floats) -> Floats:
        """(n, M) log-density of each value under each state; 0 where nothing was observed."""
        return self.unit_log_density(x) - (np.isfinite(x) * np.log(self.unit))[:, None]

    def own_unit_log_density(self, x: Floats, states: Ints) -> Floats:
        """(n,) log-density per `unit` of each value under one state each; 0 where nothing was observed."""
        return np.asarray(self.unit_log_density(x)[np.arange(len(x)), states])

    def parts(self, stats: Any) -> list[Part]:
        """What a leap up the likelihood moves, given the expected statistics; nothing: plain EM steps are made."""
        return []

    def rebuild(self, take: Take, floor: float) -> Self:
        """The emission at the coordinates of its `parts`, handed out by `take(*shape)`; spreads at least `floor`."""
        return self

    @abstractmethod
    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        """(n,) a value for each state of `states`, as `encode` would give it."""

    def prior(self, x: Floats, panel: Panel) -> ColumnPrior:
        """The prior of the samplers, for families that are conjugate."""
        raise NotImplementedError(f"{type(self).__name__} is not conjugate.")

    # ----------------------------------------------------------------- levels

    def precisions(self) -> Floats:
        """(M,) inverse variance of the encoded readings of each state."""
        raise NotImplementedError(f"{type(self).__name__} has no levels.")

    def centres_of_levels(self) -> Floats:
        """(M,) mean of the encoded readings of each state."""
        raise NotImplementedError(f"{type(self).__name__} has no levels.")

    def level_toll(self, means: Floats, variances: Floats) -> Floats:
        """(k, M) what offsets of these means and variances (k,) take from the log-density of a reading less its mean.

        The density is averaged, as a logarithm, over the offset, and is that of the reading itself.
        """
        raise NotImplementedError(f"{type(self).__name__} has no levels.")

    def moved(self, stats: Any, counts: Floats, residuals: Floats, by: Floats, spread: Floats) -> Any:
        """Statistics after the offsets of the sequences grew `by` (S,), their variances being `spread` (S,).

        counts, residuals (S, M): weighted number of readings, and the sum of what they are above their state.
        """
        raise NotImplementedError(f"{type(self).__name__} has no levels.")

    def at_level(self, values: Floats, offsets: Floats) -> Floats:
        """Expected observations at given offsets, from those of a person at level 0."""
        raise NotImplementedError(f"{type(self).__name__} has no levels.")

    # ---------------------------------------------------------------- answers

    @abstractmethod
    def state_values(self) -> NDArray[Any]:
        """(M,) the observation each state should show."""

    def sort_key(self) -> Floats | None:
        """(M,) numbers to order the states by; None if they are in order by nature."""
        return self.state_values()

    def predictive(self, probs: Floats) -> Floats:
        """(n, N) chances of the symbols, or (n, 1) the mean, under state probabilities (n, M)."""
        return (probs @ self.state_values())[:, None]

    def best_value(self, table: Floats) -> NDArray[Any]:
        """(n,) the observation to expect under predictive distributions (n, N)."""
        return table[:, 0]

    def describe(self) -> list[str]:
        """(M,) what each state shows, in a few words."""
        values = self.state_values().tolist()
        spreads = self.spread()
        if spreads is not None:
            return [_with_spread(value, spread) for value, spread in zip(values, spreads.tolist(), strict=True)]
        return [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]

    def spread(self) -> Floats | None:
        """(M,) standard deviation of what each state shows, where it has one of its own."""
        return None

    def expected(self, probs: Floats) -> NDArray[Any]:
        """(n,) the observation to expect under state probabilities (n, M)."""
        return self.best_value(self.predictive(probs))

    @abstractmethod
    def noisy(self, x: Floats, rng: np.random.Generator) -> Self:
        """Nearly equal states: the whole column's parameters with a little noise."""


def _with_spread(value: float, spread: float) -> str:
    """A value and its spread; of a value near 0 no digits that are far below the spread."""
    if 0.0 < abs(value) < spread < float("inf"):
        value = round(value, 3 - floor(log10(spread))) + 0.0
    return f"{value:.4g} ± {spread:.2g}"
