"""Params: what the objective is a function of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Floats, Ints
from ..emissions import Record
from ..stored import stored
from ..stored.kinds import require, require_floats
from .effects import Effects


@stored
@dataclass(frozen=True, eq=False)
class Params:
    """λ, P and θ of the objective.

    rates (M,); transition_probs (M, M); emission. In the nonparametric model the rows are π, whose diagonal no
    trajectory uses, and base_row (M,) is π_0; else the diagonal is zero and base_row is None. effects: what covariates
    do to the rates, which are then those at their centre.
    """

    rates: Floats
    transition_probs: Floats
    emission: Record
    base_row: Floats | None = None
    effects: Effects | None = None

    def check_fields(self) -> None:
        """Refuse what are no parameters, if they come from a file."""
        require(isinstance(self.emission, Record), "emission must be a record of columns")
        M = self.emission.n_states
        require_floats("rates", self.rates, (M,), least=0.0)
        require_floats("transition_probs", self.transition_probs, (M, M), least=0.0)
        if self.base_row is not None:
            require_floats("base_row", self.base_row, (M,), least=0.0)
        if self.effects is not None:
            require(isinstance(self.effects, Effects), "effects must be effects")
            require(self.effects.coefs.shape[1] == M, f"effects must be of {M} states")

    def take(self, order: Ints) -> Params:
        """The same parameters with state order[i] in place i."""
        return Params(
            self.rates[order],
            self.transition_probs[np.ix_(order, order)],
            self.emission.take(order),
            None if self.base_row is None else self.base_row[order],
            None if self.effects is None else self.effects.take(order),
        )

    def jump_chain(self) -> Floats:
        """P, (M, M): the rows with zero diagonal, renormalised."""
        P = self.transition_probs.copy()
        np.fill_diagonal(P, 0.0)
        total = P.sum(axis=1, keepdims=True)
        return P / np.where(total > 0, total, 1.0)
