"""Parameters: those of the objective, and the Markov process behind everything that speaks of probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from ..emissions import Direct, Record, as_record


@dataclass(frozen=True, eq=False)
class Params:
    """λ, P and θ of the objective.

    rates (M,); transition_probs (M, M); emission. In the nonparametric model the rows are π, whose diagonal no
    trajectory uses, and base_row (M,) is π_0; else the diagonal is zero and base_row is None.
    """

    rates: Floats
    transition_probs: Floats
    emission: Record
    base_row: Floats | None = None

    def take(self, index: NDArray[np.int64]) -> Params:
        """Parameters whose state i is state index[i] of these: in another order, fewer, or some of them twice."""
        return Params(
            self.rates[index],
            self.transition_probs[np.ix_(index, index)],
            self.emission.take(index),
            None if self.base_row is None else self.base_row[index],
        )

    def jump_chain(self) -> Floats:
        """P, (M, M): the rows with zero diagonal, renormalised."""
        P = self.transition_probs.copy()
        np.fill_diagonal(P, 0.0)
        total = P.sum(axis=1, keepdims=True)
        return P / np.where(total > 0, total, 1.0)


@dataclass(frozen=True, eq=False)
class Process:
    """A Markov jump process with observations.

    Parameters
    ----------
    rates : (M,)
        λ, exit rate of each state in 1/time; 0 for an absorbing state.
    transition_probs : (M, M)
        P, jump chain with zero diagonal; rows sum to 1 (to 0 for an absorbing state).
    initial_probs : (M,), optional
        π, probabilities of the first state; uniform if left out.
    emission : emission of one column, or a list of them, optional
        What a state shows (see `jumpmeans.emissions`); the state itself if left out.
    states : (M,), optional
        Labels of the states; 0, 1, ... if left out.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> process = jm.Process([1.0, 0.5], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 4], sds=1))
    >>> process.generator()
    array([[-1. ,  1. ],
           [ 0.5, -0.5]])
    """

    rates: Floats
    transition_probs: Floats
    initial_probs: Floats = None  # type: ignore[assignment]
    emission: Record = None  # type: ignore[assignment]
    states: NDArray[Any] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        rates = np.atleast_1d(np.asarray(self.rates, dtype=np.float64))
        M = len(rates)
        P = np.asarray(self.transition_probs, dtype=np.float64)
        pi = np.full(M, 1.0 / M) if self.initial_probs is None else np.asarray(self.initial_probs, dtype=np.float64)
        states = np.arange(M) if self.states is None else np.asarray(self.states)
        if P.shape != (M, M):
            raise ValueError(f"transition_probs must have shape {(M, M)} to match the rates, got {P.shape}.")
        if not np.all(np.isfinite(rates)) or np.any(rates < 0):
            raise ValueError(f"rates must be finite and >= 0, got {rates}.")
        if np.any(P < 0) or np.any(np.diag(P) != 0):
            raise ValueError(
                "transition_probs must be >= 0 with a zero diagonal (it is the jump chain, not the generator), "
                f"got {P}."
            )
        sums = P.sum(axis=1)
        bad = ~np.isclose(sums, np.where(rates > 0, 1.0, sums)) | (sums > 1 + 1e-8)
        if bad.any():
            raise ValueError(f"transition_probs rows must sum to 1 where the rate is positive, got row sums of {sums}.")
        if pi.shape != (M,) or np.any(pi < 0) or not np.isclose(pi.sum(), 1.0):
            raise ValueError(f"initial_probs must be {M} probabilities that sum to 1, got {pi}.")
        if len(states) != M:
            raise ValueError(f"states must name {M} states to match the rates, got {len(states)}.")
        emission = Direct(states) if self.emission is None else self.emission
        record = as_record(emission)
        if record.n_states != M:
            raise ValueError(f"emission must have {M} states to match the rates, got {record.n_states}.")
        for name, value in zip(
            ("rates", "transition_probs", "initial_probs", "emission", "states"),
            (rates, P, pi, record, states),
            strict=True,
        ):
            object.__setattr__(self, name, value)

    def generator(self) -> Floats:
        """Q, (M, M): exit rates times jump probabilities, rows summing to 0."""
        Q = self.rates[:, None] * self.transition_probs
        np.fill_diagonal(Q, -Q.sum(axis=1))
        return Q

    def take(self, order: NDArray[np.int64]) -> Process:
        """The same process with state order[i] in place i."""
        return Process(
            self.rates[order],
            self.transition_probs[np.ix_(order, order)],
            self.initial_probs[order],
            self.emission.take(order),
            self.states[order],
        )
