"""Process: the Markov jump process behind everything that speaks of probability."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..arrays import AnyArray, Bools, Floats, Ints, read_floats
from ..data.table import Table
from ..emissions import Column, Direct, Record, as_record
from ..options import number
from ..stored import stored
from .answers import Answers
from .effects import Effects

# A diagonal of a rate matrix in print may differ from minus the sum of its row by so much of it.
ROUNDING_IN_PRINT = 0.01
# Probabilities may sum to 1 within this.
ROUNDED = 1.001e-5


@stored
@dataclass(frozen=True, eq=False)
class Process(Answers):
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
    effects : Effects, optional
        What covariates do to the rates, as fits find it and `with_effects` says it. All answers are then those at the
        mean of the covariates, the centres of the effects; `at` gives the process at any other values.

    See Also
    --------
    Process.from_generator : of a rate matrix, as the literature gives it.
    Process.with_effects : with hazard ratios, as the literature gives them.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> process = jm.Process([1.0, 0.5], [[0, 1], [1, 0]], states=["well", "ill"])
    >>> process.generator(time_unit="year")
    rate of each move (1/year)
    from / to  well   ill
    well         -1     1
    ill         0.5  -0.5
    >>> process.sojourn()["ill", "mean"]
    2.0
    """

    rates: Floats
    transition_probs: Floats = None  # type: ignore[assignment]
    initial_probs: Floats = None  # type: ignore[assignment]
    emission: Record = None  # type: ignore[assignment]
    states: AnyArray = None  # type: ignore[assignment]
    effects: Effects | None = None

    def __post_init__(self) -> None:
        rates = np.atleast_1d(read_floats("rates", self.rates))
        if rates.ndim > 1:
            raise ValueError(
                f"rates must be one number for each state, got shape {rates.shape}; "
                "a rate matrix goes in by Process.from_generator(Q)."
            )
        M = len(rates)
        if M == 0:
            raise ValueError("rates must hold one number for each state, got none; a process has at least one state.")
        states = _labels(self.states, M)
        _require(rates, np.isfinite(rates) & (rates >= 0), "rates must be finite and >= 0", states)
        if self.transition_probs is None:
            raise ValueError(f"transition_probs must be given, a table of shape {(M, M)} with zero diagonal, got None.")
        P = read_floats("transition_probs", self.transition_probs)
        _check_chain(P, rates, states)
        pi = np.full(M, 1.0 / M) if self.initial_probs is None else read_floats("initial_probs", self.initial_probs)
        if pi.shape != (M,) or not np.all((pi >= 0) & (pi < 2)) or not abs(pi.sum() - 1.0) <= ROUNDED:
            raise ValueError(f"initial_probs must be {M} probabilities that sum to 1, got {reprlib.repr(pi.tolist())}.")
        record = _record(self.emission, states)
        if self.effects is not None and self.effects.coefs.shape[1] != M:
            raise ValueError(f"effects must be of {M} states to match the rates, got {self.effects.coefs.shape[1]}.")
        for name, value in (
            ("rates", rates), ("transition_probs", P), ("initial_probs", pi), ("emission", record), ("states", states),
        ):  # fmt: skip
            object.__setattr__(self, name, value)

    @classmethod
    def from_generator(
        cls,
        generator: Any,
        initial_probs: Any = None,
        emission: Any = None,
        states: Any = None,
    ) -> Self:
        """The process of a rate matrix Q, for example one from the literature.

        Parameters
        ----------
        generator : (M, M), Table, or {state: {next state: rate}}
            Rate of each move in 1/time. What stands on the diagonal is not used: it must be minus the sum of the rest
            of its row, to 1 % since printed tables are rounded, or else 0 or NaN. In a mapping, a move left out
            does not happen, and the states stand in the order in which they are first named.
        initial_probs, emission, states
            As in `Process`; a table and a mapping name their states themselves.

        Examples
        --------
        >>> import jumpmeans as jm
        >>> process = jm.Process.from_generator({"well": {"ill": 0.2, "dead": 0.05}, "ill": {"dead": 0.4}})
        >>> process.states.tolist(), process.rates
        (['well', 'ill', 'dead'], array([0.25, 0.4 , 0.  ]))
        """
        if isinstance(generator, Mapping):
            named, Q = _read_moves(generator)
        elif isinstance(generator, Table):
            named, Q = generator.rows, generator.values.copy()
        else:
            named, Q = None, read_floats("generator", generator)
        if named is not None and states is not None:
            raise ValueError(
                f"states must be left out where the generator names them, got {reprlib.repr(states)} beside "
                f"{reprlib.repr(named.tolist())}."
            )
        labels = states if named is None else named
        if Q.ndim != 2 or Q.shape[0] != Q.shape[1] or not len(Q):
            raise ValueError(f"generator must be a square table of rates, a row for each state, got shape {Q.shape}.")
        diagonal = np.diag(Q).copy()
        np.fill_diagonal(Q, 0.0)
        _require(Q, np.isfinite(Q) & (Q >= 0), "rates of moves must be finite and >= 0", _labels(labels, len(Q)))
        with np.errstate(over="ignore"):
            rates = Q.sum(axis=1)
        given = ~np.isnan(diagonal) & (diagonal != 0)
        wrong = np.flatnonzero(given & (np.abs(diagonal + rates) > ROUNDING_IN_PRINT * rates))
        if len(wrong):
            raise ValueError(
                f"the diagonal of a generator must be minus the sum of the rest of its row, got {diagonal[wrong[0]]:g} "
                f"where the rest sums to {rates[wrong[0]]:g} in row {wrong[0]}; give rates, not probabilities over a "
                "time, or leave the diagonal 0."
            )
        P = Q / np.where(rates > 0, rates, 1.0)[:, None]
        return cls(rates, P, initial_probs, emission, labels)

    def with_effects(self, coefficients: Mapping[str, Any], at: Mapping[str, Any]) -> Process:
        """The same process with known effects of covariates on its rates, for example from the literature.

        Parameters
        ----------
        coefficients : {column: effect}
            Logarithms of hazard ratios. A column is a number, "age", or a category beside the one that it is compared
            with, "sex[M]", as `coefficients_` of a fit names them. An effect is one number for all moves, or {state:
            number} on all moves out of it, or {(from, to): number}; what is left out depends on nothing.
        at : {covariate: value}
            Where the rates are those of this process: a value of each number, the reference of each category.

        Examples
        --------
        >>> import numpy as np
        >>> plain = Process.from_generator({"well": {"ill": 0.2, "dead": 0.05}, "ill": {"dead": 0.4}})
        >>> sooner = {"sex[M]": {("well", "ill"): np.log(1.5)}, "age": {"ill": np.log(2) / 10}}
        >>> process = plain.with_effects(sooner, at={"sex": "F", "age": 60})
        >>> process.at({"sex": "M", "age": 70}).generator()
        rate of each move
        from / to  well    ill  dead
        well      -0.35    0.3  0.05
        ill           0   -0.8   0.8
        dead          0      0     0
        """
        moves = np.asarray((self.transition_probs > 0) & (self.rates[:, None] > 0))
        return replace(self, effects=Effects.of(coefficients, at, self.states.tolist(), moves))

    def take(self, order: Ints) -> Process:
        """The same process with state order[i] in place i."""
        return Process(
            self.rates[order],
            self.transition_probs[np.ix_(order, order)],
            self.initial_probs[order],
            self.emission.take(order),
            self.states[order],
            None if self.effects is None else self.effects.take(order),
        )

    def at(self, values: Mapping[str, Any] | None = None) -> Process:
        """The process at given covariates, on which it then no longer depends.

        Parameters
        ----------
        values : {covariate: value}, optional
            Those left out are at their mean over the time under observation (of a category: between its labels).

        Examples
        --------
        >>> import numpy as np
        >>> aged = Process([1.0, 0.5], [[0, 1], [1, 0]]).with_effects({"age": np.log(2) / 10}, at={"age": 60})
        >>> aged.at({"age": 70}).rates
        array([2., 1.])
        """
        if self.effects is None:
            if values:
                raise ValueError(
                    f"at must be left out where rates depend on no covariates, got {reprlib.repr(values)}; fit with "
                    "structure=Structure(covariates='all')."
                )
            return self
        if not values:
            return replace(self, effects=None)
        z = self.effects.at(values)
        Q = self.rates[:, None] * self.transition_probs * np.exp(self.effects.log_ratios(z[None])[0])
        rates = Q.sum(axis=1)
        P = np.where(rates[:, None] > 0, Q / np.where(rates > 0, rates, 1.0)[:, None], self.transition_probs)
        return replace(self, rates=rates, transition_probs=P, effects=None)

    def rate_matrices(self, z: Floats) -> Floats:
        """(G, M, M) rates at centred columns z (G, K) of the design, rows summing to 0."""
        Q = np.broadcast_to(self.rates[:, None] * self.transition_probs, (len(z), *self.transition_probs.shape))
        Q = Q * np.exp(self.effects.log_ratios(z)) if self.effects is not None else Q.copy()
        index = np.arange(len(self.rates))
        Q[:, index, index] = 0.0
        Q[:, index, index] = 0.0 - Q.sum(axis=2)
        return Q


# ------------------------------------------------------------------------------------------------- checks


def _labels(states: Any, M: int) -> AnyArray:
    """(M,) labels of the states."""
    if states is None:
        return np.arange(M)
    try:
        labels = np.asarray(states)
    except ValueError:  # of rows that differ in length
        labels = np.empty((0, 0))
    if labels.shape != (M,):
        raise ValueError(f"states must be a list of {M} labels to match the rates, got {reprlib.repr(states)}.")
    known = labels.tolist()
    if any(label is None or label != label for label in known):
        raise ValueError(f"states must not be missing, got {reprlib.repr(known)}.")
    if len(set(known)) < M:
        twice = next(label for i, label in enumerate(known) if label in known[:i])
        raise ValueError(f"states must be distinct, got {twice!r} twice.")
    return labels


def _require(x: Floats, good: Bools, rule: str, states: AnyArray) -> None:
    """Refuse the first number of a state, or of a pair of states, that breaks a rule."""
    if not good.all():
        place = tuple(np.argwhere(~good)[0])
        where = " to ".join(repr(states.tolist()[i]) for i in place)
        raise ValueError(f"{rule}, got {x[place]:g} for {where}.")


def _check_chain(P: Floats, rates: Floats, states: AnyArray) -> None:
    """Refuse what is no jump chain of states with these rates."""
    M = len(rates)
    if P.shape != (M, M):
        raise ValueError(f"transition_probs must have shape {(M, M)} to match the rates, got {P.shape}.")
    chain = "transition_probs must be >= 0 with a zero diagonal (it is the jump chain, not the generator)"
    good = P >= 0
    good.flat[:: M + 1] = P.diagonal() == 0
    _require(P, good, chain, states)
    with np.errstate(over="ignore"):
        sums = P.sum(axis=1)
    bad = np.flatnonzero(((rates > 0) & ~(sums >= 1 - ROUNDED)) | (sums > 1 + 1e-8))
    if len(bad):
        raise ValueError(
            "transition_probs rows must sum to 1 where the rate is positive, got a row sum of "
            f"{sums[bad[0]]:.10g} for {states.tolist()[bad[0]]!r}."
        )


def _record(emission: Any, states: AnyArray) -> Record:
    """What the states show, as a record of columns."""
    if emission is None:
        emission = Direct(states)
    columns = emission if isinstance(emission, list | tuple) else [emission]
    if not isinstance(emission, Record) and not (columns and all(isinstance(c, Column) for c in columns)):
        raise ValueError(
            "emission must be one of jumpmeans.emissions such as Gaussian([0, 4], sds=1), or a list of them, got "
            f"{reprlib.repr(emission)}."
        )
    record = as_record(emission)
    if record.n_states != len(states):
        raise ValueError(f"emission must have {len(states)} states to match the rates, got {record.n_states}.")
    return record


def _read_moves(moves: Mapping[Any, Any]) -> tuple[AnyArray, Floats]:
    """States and rates (M, M) of {state: {next state: rate}}."""
    for source, targets in moves.items():
        if not isinstance(targets, Mapping):
            raise ValueError(
                f"generator must be {{state: {{next state: rate}}}}, got {reprlib.repr(targets)} for {source!r}."
            )
    named = list(dict.fromkeys([*moves, *(target for targets in moves.values() for target in targets)]))
    Q = np.zeros((len(named), len(named)))
    for source, targets in moves.items():
        for target, rate in targets.items():
            number(least=0).check("rates of moves", rate)
            Q[named.index(source), named.index(target)] = rate
    return np.array(named), Q
