"""Kept draws of a process with a given number of states, and how their states are matched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ..arrays import Floats, Ints
from ..emissions import Record
from ..model.constraints import split
from ..model.process import Process
from ..stored import stored
from ..stored.kinds import require, require_floats


class Draw(NamedTuple):
    """One kept iteration of a chain: parameters, states of the rows that are looked at, log-density."""

    process: Process
    row_states: Ints
    log_density: float


@stored
@dataclass(frozen=True, eq=False)
class Samples:
    """Kept draws of the parameters, chain after chain, their states matched.

    Parameters
    ----------
    rates, transition_probs, initial_probs : (n, M), (n, M, M), (n, M)
    emissions : n records
    """

    rates: Floats
    transition_probs: Floats
    initial_probs: Floats
    emissions: tuple[Record, ...]

    def check_fields(self) -> None:
        """Refuse what are no samples, if they come from a file."""
        records = isinstance(self.emissions, tuple) and all(isinstance(x, Record) for x in self.emissions)
        require(records and self.emissions, "samples must have emissions")
        n, M = len(self.emissions), self.emissions[0].n_states
        families = [[column.name for column in emission.columns] for emission in self.emissions]
        require(all(names == families[0] for names in families), "samples must be of the same families")
        require(all(emission.n_states == M for emission in self.emissions), f"samples must be of {M} states")
        require_floats("rates", self.rates, (n, M), least=0.0)
        require_floats("transition_probs", self.transition_probs, (n, M, M), least=0.0)
        require_floats("initial_probs", self.initial_probs, (n, M), least=0.0)

    @classmethod
    def of(cls, processes: list[Process]) -> Samples:
        """Processes whose states are matched already."""
        return cls(
            np.array([process.rates for process in processes]),
            np.array([process.transition_probs for process in processes]),
            np.array([process.initial_probs for process in processes]),
            tuple(process.emission for process in processes),
        )

    def __len__(self) -> int:
        return len(self.rates)

    @property
    def probs(self) -> Floats:
        """(n, M, N) ρ of each draw, for symbols."""
        return np.stack([emission.probs for emission in self.emissions])

    @property
    def means(self) -> Floats:
        """(n, M) or (n, M, D) μ of each draw, for measurements."""
        return np.stack([emission.means for emission in self.emissions])

    @property
    def sds(self) -> Floats:
        """(n, M) or (n, M, D) σ of each draw, for measurements."""
        return np.stack([emission.sds for emission in self.emissions])

    def process(self, k: int, states: NDArray[Any]) -> Process:
        """Draw k as a process."""
        return Process(self.rates[k], self.transition_probs[k], self.initial_probs[k], self.emissions[k], states)

    def mean_process(self, states: NDArray[Any], by_move: bool = False) -> Process:
        """Means of all parameters: of λ and P, or of the rates of the moves, which keeps those that are known."""
        rates, P = self.rates.mean(axis=0), self.transition_probs.mean(axis=0)
        if by_move:
            rates, P = split((self.rates[:, :, None] * self.transition_probs).mean(axis=0), P)
        return Process(
            rates,
            P,
            self.initial_probs.mean(axis=0),
            self.emissions[0].averaged(self.emissions),
            states,
        )


def match_order(row_states: Ints, pivot: Ints, n_states: int) -> Ints:
    """(M,) order of the states of one sample so that most rows are in the states of the pivot."""
    together = np.bincount(pivot * n_states + row_states, minlength=n_states**2).reshape(n_states, n_states)
    return np.asarray(linear_sum_assignment(together, maximize=True)[1], dtype=np.int64)
