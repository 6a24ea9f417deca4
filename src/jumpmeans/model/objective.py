"""The objective of JUMP-means: the one place where it is written (derivation, eq. 1).

J = Σ_i w_i { ζ Σ d(x, θ) + ξ Σ -ln p + Σ h(λ t) + g(λ y) } + Σ_m (b λ - a ln λ) - ξ α Σ ln p - ζ α_e Σ ln ρ

with h(z) = z - ln z - 1 for complete dwells and g(z) = h(max(z, 1)) for running ones. Where rates depend on covariates
z, λ t is Σ λ e^{β · z} t over the pieces of a dwell (`Exposure`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..arrays import Floats, sum_in_order
from ..jit import JIT
from ..stored import stored
from ..stored.kinds import require_floats
from .exposure import Exposure


@njit(forceinline=True, **JIT)  # type: ignore[untyped-decorator]
def complete_cost(z: float) -> float:
    """h(z): cost of a dwell of z mean dwell times, seen from start to end; 0 at its mean (derivation, eq. 2)."""
    if z <= 0.0:
        return np.inf
    return z - np.log(z) - 1.0


@njit(forceinline=True, **JIT)  # type: ignore[untyped-decorator]
def running_cost(z: float) -> float:
    """g(z): a dwell still running is free until it outlasts its mean, then costs h (derivation, eq. 4)."""
    if z < 1.0:
        return 0.0
    return z - np.log(z) - 1.0


@stored
class Prices(NamedTuple):
    """The hyperparameters as numbers, in the data's own units.

    transition : ξ; emission : ζ of each column; prior_count : a, prior_time : b of b λ - a ln λ;
    jump_pseudo_count : α of the rows of P; state_cost : ξ_1; shared_row : ξ_2, pull of each row to the base row.
    running : whether running dwells cost g; integrated : whether the rows are integrated out, so that a state pays ξ_2
    for every further state that it is followed by. first : (M,) cost of the first state, 0 or infinite; None: nothing.
    ridge : (D,) ρ, number of readings at 0 that hold each offset of a person; None: there are no offsets.
    """

    transition: float
    emission: Floats
    prior_count: float
    prior_time: float
    jump_pseudo_count: float
    state_cost: float = 0.0
    shared_row: float = 0.0
    running: bool = True
    integrated: bool = False
    first: Floats | None = None
    ridge: Floats | None = None

    def check_fields(self) -> None:
        """Refuse what are no prices, if they come from a file."""
        numbers = [x for name, x in self._asdict().items() if name not in ("emission", "first", "ridge")]
        require_floats("prices", np.array(numbers, dtype=np.float64), (len(numbers),), least=0.0)
        require_floats("prices of columns", self.emission, (len(self.emission),), least=0.0)
        if self.first is not None:
            require_floats("costs of the first state", self.first, (len(self.first),), least=0.0, finite=False)
        if self.ridge is not None:
            require_floats("ridges of the offsets", self.ridge, (len(self.emission),), least=0.0, finite=False)


class Stats(NamedTuple):
    """Sufficient statistics of a set of trajectories; those of disjoint sets join in sequence order.

    exits, time, log_time : (M,) weighted number, total and total logarithm of complete dwells.
    jumps : (M, M) weighted jump counts.
    run_state, run_time : (S, 2) running dwells: the first (if it counts as such) and the last; state -1 for none.
    weights : (S,) sequence weights.
    emission : statistics of each column, made and read by its family.
    first : (M,) weighted number of sequences that begin in each state, where it is known.
    readings : what the offsets of people are settled by (`model.levels`), where there are any; offsets : (D,) their
        weighted sums of squares.
    exposure : dwells by the covariates that they were spent under, where rates depend on some.
    """

    exits: Floats
    time: Floats
    log_time: Floats
    jumps: Floats
    run_state: NDArray[np.int32]
    run_time: Floats
    weights: Floats
    emission: tuple[Any, ...]
    first: Floats | None = None
    exposure: Exposure | None = None
    readings: Any = None
    offsets: Floats | None = None

    @property
    def is_apart(self) -> bool:
        """Whether running dwells lie elsewhere (on a GPU): sums of them, `outlasted`, are nearer than they are."""
        return False

    def outlasted(self, rates: Floats) -> tuple[Floats, Floats, Floats]:
        """(M,) sums of w, w y and w ln y over the running dwells y with λ y >= 1, by state, if they are apart."""
        raise NotImplementedError

    def running_cost(self, rates: Floats) -> float:
        """Σ w g(λ y) of the running dwells."""
        if self.is_apart:
            number, time, log_time = self.outlasted(rates)
            lam = np.where(number > 0, rates, 1.0)
            return float((lam * time - log_time - number * (np.log(lam) + 1.0)).sum())
        running = self.run_state >= 0
        z = np.maximum(rates[self.run_state[running]] * self.run_time[running], 1.0)
        weights = np.broadcast_to(self.weights[:, None], running.shape)[running]
        return float((weights * (z - np.log(z) - 1.0)).sum())

    @property
    def total_time(self) -> Floats:
        """(M,) weighted time in each state, running dwells included."""
        if self.is_apart:
            return self.time + self.outlasted(np.full(len(self.time), np.inf))[1]
        running = self.run_state >= 0
        weights = np.broadcast_to(self.weights[:, None], running.shape)[running]
        return self.time + np.bincount(
            self.run_state[running], weights=weights * self.run_time[running], minlength=len(self.time)
        )


def join_stats(parts: list[Stats]) -> Stats:
    """Statistics of all parts, added in their order so that every engine gives the same bits."""
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part.emission for part in parts), strict=True)
    exposures: list[Any] = [part.exposure for part in parts]
    return Stats(
        exits=sum_in_order([part.exits for part in parts]),
        time=sum_in_order([part.time for part in parts]),
        log_time=sum_in_order([part.log_time for part in parts]),
        jumps=sum_in_order([part.jumps for part in parts]),
        run_state=np.concatenate([part.run_state for part in parts]),
        run_time=np.concatenate([part.run_time for part in parts]),
        weights=np.concatenate([part.weights for part in parts]),
        emission=tuple(sum_in_order(list(column)) for column in columns),
        first=sum_in_order([part.first for part in parts]),
        readings=None if parts[0].readings is None else parts[0].readings.joined([part.readings for part in parts]),
        exposure=None if exposures[0] is None else Exposure.join(exposures),
    )


@stored
class Cost(NamedTuple):
    """The objective by its named terms."""

    observations: float
    transitions: float
    dwells: float
    running_dwells: float
    rate_prior: float
    transition_prior: float
    emission_prior: float
    states: float = 0.0
    shared_rows: float = 0.0
    offsets: float = 0.0

    @property
    def total(self) -> float:
        """The objective J."""
        return float(sum(self))

    @property
    def size(self) -> float:
        """Sum of the sizes of the terms: what rounding is relative to."""
        return float(sum(map(abs, self)))


def jump_costs(transition_probs: Floats, weight: float) -> Floats:
    """(..., M, M) cost -ξ ln p of each jump, infinite where p = 0 and on the diagonal."""
    with np.errstate(divide="ignore", invalid="ignore"):
        costs = np.ascontiguousarray(-weight * np.log(transition_probs))
    costs[transition_probs == 0] = np.inf  # also when ξ = 0
    index = np.arange(costs.shape[-1])
    costs[..., index, index] = np.inf
    return costs


def prior_cost(rates: Floats, prices: Prices) -> float:
    """Prior on the rates of states that can be left, Σ a h(b λ / a): bλ - a ln λ made free of units (if b > 0)."""
    rates = rates[rates > 0]
    a, b = prices.prior_count, prices.prior_time
    if a == 0:
        return float(b * rates.sum())
    if b == 0:
        return float(-a * np.log(rates).sum())
    z = b * rates / a
    return float(a * (z - np.log(z) - 1.0).sum())


def shared_row_cost(transition_probs: Floats, base_row: Floats) -> float:
    """Σ_m KL(π_0 ‖ π_m), each over the states that row m can reach (derivation, eq. 12)."""
    m, j = np.nonzero(transition_probs)
    return float((base_row[j] * (np.log(base_row[j]) - np.log(transition_probs[m, j]))).sum())


def row_prior(stats: Stats, params: Any, prices: Prices) -> float:
    """What ξ_2 multiplies: the pull to the base row, or the states reached beyond the first."""
    if prices.integrated:
        reached = (stats.jumps > 0).sum(axis=1)
        return float(np.maximum(reached - 1, 0).sum())
    return 0.0 if params.base_row is None else shared_row_cost(params.transition_probs, params.base_row)


def evaluate(stats: Any, params: Any, prices: Prices) -> Cost:
    """Objective of the trajectories behind `stats` under the given parameters, by term."""
    rates, rows, emission = params.rates, params.transition_probs, params.emission
    left = stats.exits > 0
    used = stats.jumps > 0
    free = (rows > 0) & ~np.eye(len(rows), dtype=bool)
    lam = rates[left]
    dwells = (lam * stats.time[left] - stats.log_time[left] - stats.exits[left] * (np.log(lam) + 1.0)).sum()
    still = stats.running_cost(rates) if prices.running else 0.0
    if params.effects is not None and params.effects.coefs.any():
        dwells, still = stats.exposure.costs(rates, params.effects.of_states(), prices.running)
    # a rate without any dwell and without prior is not part of the objective
    prior_rates = rates if prices.prior_count > 0 else rates[left]
    return Cost(
        observations=float(prices.emission @ emission.totals(stats.emission)),
        transitions=float(-prices.transition * (stats.jumps[used] * np.log(rows[used])).sum()),
        dwells=float(dwells),
        running_dwells=float(still),
        rate_prior=prior_cost(prior_rates, prices),
        transition_prior=float(-prices.transition * prices.jump_pseudo_count * np.log(rows[free]).sum()),
        emission_prior=float(prices.emission @ emission.prior_costs()),
        states=prices.state_cost * len(rates),
        shared_rows=prices.shared_row * row_prior(stats, params, prices) if prices.shared_row > 0 else 0.0,
        offsets=offset_cost(stats.offsets, prices),
    )


def offset_cost(squares: Floats | None, prices: Prices) -> float:
    """Ridge on the offsets of people, ½ ζ ρ Σ b², from their sums of squares (D,); no offset, no cost."""
    if squares is None or prices.ridge is None:
        return 0.0
    paid = squares > 0
    return float(0.5 * (prices.emission[paid] * prices.ridge[paid] * squares[paid]).sum())
