"""What a family of observations must offer: one class per family, one instance per fitted column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, sum_in_order, weighted_median
from ..errors import PanelError

if TYPE_CHECKING:
    from ..data.panel import Panel

Ints = NDArray[np.integer[Any]]


class Column(ABC):
    """Emission of one column given the state: parameters θ, divergence d and density.

    Instances are immutable; an update makes a new one. In all methods x is (n,) with NaN where
    nothing was observed (symbols are coded by their index), states is (n,), weights is (n,).
    """

    name: ClassVar[str]
    # Whether values are symbols: a state is then a mix of them, and may outnumber them.
    is_symbolic: ClassVar[bool] = False
    # Free parameters of one state.
    n_free: int = 1
    n_states: int

    @classmethod
    @abstractmethod
    def blank(cls, panel: Panel, d: int, n_states: int, labels: Sequence[Any], pseudo_count: float | None) -> Self:
        """Emission that knows the column's support but nothing of its states."""

    @abstractmethod
    def encode(self, panel: Panel, d: int) -> Floats:
        """Column d of a panel as the numbers this emission works on; refuses values outside its support."""

    def auto_weight(self, x: Floats, panel: Panel) -> float:
        """ζ that makes the cost free of units (1 where it has none)."""
        return 1.0

    def natural_weight(self) -> float:
        """ζ that makes the cost the negative logarithm of the density, up to constants."""
        return 1.0

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
        """Emission that minimises the cost of the assigned values; a state without any keeps its own."""

    @abstractmethod
    def total(self, stats: Any) -> float:
        """Σ w d(x, θ) of the assigned values."""

    def with_pseudo_count(self, count: float) -> Self:
        """The same emission with another pseudo-count for its updates."""
        return self

    def prior_cost(self) -> float:
        """Cost of the pseudo-counts, if any."""
        return 0.0

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

    @abstractmethod
    def sample(self, states: Ints, rng: np.random.Generator) -> Floats:
        """(n,) a value for each state of `states`."""

    @abstractmethod
    def permute(self, order: Ints) -> Self:
        """The same emission with state order[i] in place i."""

    @abstractmethod
    def sort_key(self) -> Floats | None:
        """(M,) numbers to order the states by; None if they are in order by nature."""

    @abstractmethod
    def state_values(self) -> NDArray[Any]:
        """(M,) the observation each state should show."""

    def describe(self) -> list[str]:
        """(M,) what each state shows, in a few words."""
        return [f"{value:.4g}" if isinstance(value, float) else str(value) for value in self.state_values().tolist()]

    @abstractmethod
    def expected(self, probs: Floats) -> NDArray[Any]:
        """(n,) the observation to expect under state probabilities (n, M)."""

    @abstractmethod
    def features(self, x: Floats) -> Floats:
        """(n, F) the values as coordinates for a first clustering, NaN where nothing was observed."""

    @abstractmethod
    def noisy(self, x: Floats, rng: np.random.Generator) -> Self:
        """Nearly equal states: the whole column's parameters with a little noise."""


def numeric_values(panel: Panel, d: int, family: str) -> Floats:
    """Column d of a panel, refused if it holds anything but numbers."""
    labels = panel.categories[d]
    x = panel.values[:, d]
    if labels is not None and all(isinstance(label, bool | np.bool_) for label in labels.tolist()):
        present = np.isfinite(x)
        x, labels = np.where(present, labels.astype(np.float64)[np.where(present, x, 0).astype(np.int64)], np.nan), None
    if labels is not None and np.isfinite(x).any():
        row = int(np.flatnonzero(np.isfinite(x))[0])
        for i in np.flatnonzero(np.isfinite(x)):
            if not _is_number(labels[int(x[i])]):
                row = int(i)
                break
        raise PanelError(
            f"values of column {panel.columns[d]!r} must be numbers for emission {family!r}, got "
            f"{labels[int(x[row])]!r} at {panel.locate(row)}; convert the column, or use "
            "emission='categorical' (hidden states) or 'direct' (the labels are the states)."
        )
    return x


def _is_number(label: Any) -> bool:
    try:
        float(label)
    except (TypeError, ValueError):
        return False
    return True


def require(panel: Panel, x: Floats, good: NDArray[np.bool_], rule: str, hint: str) -> None:
    """Refuse the first present value that breaks a rule, naming its place."""
    bad = ~good & np.isfinite(x)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise PanelError(f"{rule}, got {x[row]:g} at {panel.locate(row)}; {hint}.")


def successive_differences(x: Floats, panel: Panel) -> tuple[Floats, Floats]:
    """|difference| of successive present values of the same sequence, and the weight of each."""
    present = np.flatnonzero(np.isfinite(x))
    sequence = np.searchsorted(panel.offsets, present, side="right") - 1
    same = sequence[1:] == sequence[:-1]
    return np.abs(np.diff(x[present]))[same], panel.weights[sequence[1:]][same]


def noise_scale(x: Floats, panel: Panel, median_of_noise: float) -> float:
    """Noise of a column from its successive differences, whose median is `median_of_noise` per unit of noise.

    Coarsely rounded data can have a median difference of 0: then the mean difference, then the
    spread of the whole column, then 1.
    """
    steps, weights = successive_differences(x, panel)
    if len(steps):
        median = weighted_median(steps, weights)
        if median > 0:
            return median / median_of_noise
        mean = float(np.average(steps, weights=weights))
        if mean > 0:
            return mean / median_of_noise
    present = np.isfinite(x)
    if present.any():
        weights = np.repeat(panel.weights, panel.lengths)[present]
        center = float(np.average(x[present], weights=weights))
        spread = float(np.sqrt(np.average((x[present] - center) ** 2, weights=weights)))
        if spread > 1e-12 * abs(center):
            return spread
    return 1.0
