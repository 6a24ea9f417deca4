"""A structure in numbers: which rates are free, which are one and the same, which are known; and what follows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from ..arrays import Bools, Floats, Ints, totals


@dataclass(frozen=True, eq=False)
class Constraints:
    """What every estimate of a process must keep to.

    Parameters
    ----------
    moves : (M, M)
        Moves that may happen, diagonal False.
    fixed : (M, M)
        Rates that are known, NaN elsewhere.
    group : (M, M)
        Number of the free rate of each move: moves of one number share it; -1 for moves that have none.
    initial : (M,) or None
        π where it is known; None where it is to be estimated.
    given : bool
        Whether the first state is conditioned on: the likelihood then has no term for it.
    """

    moves: Bools
    fixed: Floats
    group: Ints
    initial: Floats | None = None
    given: bool = False

    @classmethod
    def of(cls, moves: Bools) -> Self:
        """No more than which moves may happen."""
        group = np.full(moves.shape, -1)
        group[moves] = np.arange(moves.sum())
        return cls(moves, np.full(moves.shape, np.nan), group)

    @cached_property
    def n_rates(self) -> int:
        """Number of free rates."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def binds(self) -> bool:
        """Whether any rate is known or shared."""
        return self.n_rates < int(self.moves.sum())

    @property
    def is_known(self) -> Bools:
        """(M, M) moves of a known rate."""
        return np.isfinite(self.fixed)

    @property
    def n_free(self) -> int:
        """Free parameters of rates and first states."""
        return self.n_rates + (len(self.moves) - 1 if self.initial is None else 0)

    @cached_property
    def alone(self) -> Bools:
        """(M,) states none of whose rates is known or shared."""
        free = self.group >= 0
        sizes = np.bincount(self.group[free], minlength=self.n_rates)
        shared = free & (sizes[np.where(free, self.group, 0)] > 1) if self.n_rates else free
        return np.asarray(~(shared | self.is_known).any(axis=1))

    def pool(self, table: Floats) -> Floats:
        """(n_rates,) sum of a table (M, M) over the moves of each free rate."""
        free = self.group >= 0
        return totals(self.group[free], table[free], self.n_rates)

    def pool_rows(self, row: Floats) -> Floats:
        """(n_rates,) sum of what the states (M,) have, over the moves of each free rate."""
        return self.pool(np.broadcast_to(row[:, None], self.moves.shape))

    def rates(self, free: Floats) -> Floats:
        """(M, M) rates of all moves, the free ones (n_rates,) given; 0 for those that cannot happen."""
        Q = np.where(self.is_known, self.fixed, 0.0)
        Q[self.group >= 0] = free[self.group[self.group >= 0]]
        return Q

    def free_rates(self, Q: Floats) -> Floats:
        """(n_rates,) the free ones of rates that keep to this."""
        free = np.zeros(self.n_rates)
        free[self.group[self.group >= 0]] = Q[self.group >= 0]
        return free

    def imposed(self, Q: Floats) -> Floats:
        """(M, M) the same rates made to keep to this: known ones put in, shared ones averaged."""
        sizes = np.maximum(self.pool(np.ones(self.moves.shape)), 1.0)
        return self.rates(self.pool(Q) / sizes)

    def most_likely(self, counts: Floats, time: Floats, before: Floats) -> Floats:
        """(M, M) rates of highest likelihood: pooled moves over pooled time; without any time, those before."""
        events, exposure = self.pool(counts), self.pool_rows(time)
        some = exposure > 0
        return self.rates(np.where(some, events / np.where(some, exposure, 1.0), self.free_rates(before)))

    def initial_probs(self, counts: Floats) -> Floats:
        """π (M,): what is known of it, or the shares of the counts."""
        return counts / counts.sum() if self.initial is None else self.initial


def split(Q: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """λ (M,) and P (M, M) of rates (M, M) with a zero diagonal; a state never left gets its row of P from `rows`."""
    rates = Q.sum(axis=1)
    P = np.where(rates[:, None] > 0, Q / np.where(rates > 0, rates, 1.0)[:, None], rows)
    return rates, P
