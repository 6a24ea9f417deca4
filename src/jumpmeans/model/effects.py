"""Effects of covariates on rates: q_rs exp(β_rs · z), z centred so that the baseline is the process at the mean."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from ..arrays import Bools, Floats, Ints
from ..data.covariates import Covariates
from ..errors import PanelError, first_few, nearest
from ..options import is_finite
from ..stored import stored
from ..stored.kinds import require, require_floats

# Beyond e^±this a rate is 0 or infinite for all purposes.
LARGEST_LOG = 300.0


@stored
class Covariate(NamedTuple):
    """What a covariate means: numbers, categories (`labels`, the first of them the reference), or pieces of a number.

    Pieces (0, 1, ...) lie between `edges`; a value at an edge belongs to the piece above it.
    """

    name: str
    labels: list[Any] | None = None
    edges: list[Any] | None = None

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the design that it takes."""
        if self.labels is not None:
            return [f"{self.name}[{label}]" for label in self.labels[1:]]
        if self.edges is None:
            return [self.name]
        ends = [*self.edges[1:], None]
        return [
            f"{self.name}[from {_short(low)}]" if high is None else f"{self.name}[{_short(low)} to {_short(high)}]"
            for low, high in zip(self.edges, ends, strict=True)
        ]

    def design(self, x: Floats) -> Floats:
        """(n, k) columns for numbers, or for indices of categories or pieces (n,)."""
        if self.labels is None and self.edges is None:
            return np.asarray(x[:, None])
        levels = 1 + np.arange(len(self.columns))
        return np.asarray(x[:, None] == levels, dtype=np.float64)

    def encode(self, value: Any) -> float:
        """A value that a user gave, as `design` takes it."""
        if self.labels is not None:
            if value not in self.labels:
                raise ValueError(
                    f"covariate {self.name!r} must be one of {first_few(self.labels)}, got {value!r}"
                    f"{nearest(value, self.labels)}."
                )
            return float(self.labels.index(value))
        if self.edges is not None and isinstance(self.edges[0], str):
            try:
                return float(np.searchsorted(np.array(self.edges, "M8[ns]"), np.datetime64(value), side="right"))
            except (TypeError, ValueError):
                raise ValueError(f"{self.name!r} must be a date such as '2024-03-01', got {value!r}.") from None
        if not is_finite(value):
            raise ValueError(f"covariate {self.name!r} must be a finite number, got {value!r}.")
        if self.edges is not None:
            return float(np.searchsorted(self.edges, value, side="right"))
        return float(value)


def _split(column: Any) -> tuple[str, str | None]:
    """Covariate and category of a column's name: "sex[M]" is ("sex", "M"), "age" is ("age", None)."""
    if not isinstance(column, str):
        raise ValueError(f"coefficients must be by name, such as 'age' or 'sex[M]', got {column!r}.")
    name, bracket, label = column.partition("[")
    return (name, label[:-1]) if bracket and label.endswith("]") else (column, None)


def _on_moves(column: str, effect: Any, states: list[Any], moves: Bools) -> tuple[Floats, Ints]:
    """Coefficients (M, M) of a column and which of them are one, from a number or one for each state or move."""
    coefs, group = np.zeros(moves.shape), np.full(moves.shape, -1)
    given = effect if isinstance(effect, Mapping) else {None: effect}
    for k, (place, beta) in enumerate(given.items()):
        if not is_finite(beta):
            raise ValueError(f"effects must be finite log hazard ratios, got {beta!r} for {column!r}.")
        on = np.zeros(moves.shape, dtype=bool)
        if place is None:
            on[:] = moves
        elif isinstance(place, tuple) and len(place) == 2 and place not in states:
            on[_index(place[0], states, column), _index(place[1], states, column)] = True
        else:
            on[_index(place, states, column)] = True
        if not (on & moves).any():
            raise ValueError(f"effects must be on moves that may happen, got {place!r} for {column!r}.")
        if (group[on & moves] >= 0).any():
            raise ValueError(f"effects must name each move once, got {place!r} again for {column!r}.")
        coefs[on & moves], group[on & moves] = beta, k
    return coefs, group


def _index(state: Any, states: list[Any], column: str) -> int:
    if state not in states:
        raise ValueError(
            f"effects of {column!r} must be on states among {first_few(states)}, got {state!r}{nearest(state, states)}."
        )
    return states.index(state)


def _short(edge: Any) -> str:
    return edge.removesuffix("T00:00:00.000000000") if isinstance(edge, str) else f"{edge:g}"


@stored
@dataclass(frozen=True, eq=False)
class Effects:
    """What covariates do to the rates of a process: the rate of r → s at z is q_rs exp(Σ_k β_krs (z_k - centre_k)).

    Parameters
    ----------
    covariates : list of Covariate
        What the columns z_k of the design are made of: numbers as they are; of categories and pieces an indicator for
        each but the first.
    centres : (K,)
        Means of the columns over the time under observation of the panel fitted to, by weight. At these q is the rate.
    coefs : (K, M, M)
        β, log hazard ratios; 0 where a rate does not depend on a column.
    number : (K, M, M) of int
        Which free coefficient each is: those of one number are one and the same; -1 for none.
    """

    covariates: list[Covariate]
    centres: Floats
    coefs: Floats
    number: Ints

    @classmethod
    def of(cls, coefficients: Mapping[str, Any], at: Mapping[str, Any], states: list[Any], moves: Bools) -> Self:
        """Known effects, as `Process.with_effects` takes them, on the moves (M, M) that may happen."""
        if not isinstance(coefficients, Mapping) or not coefficients:
            raise ValueError(f"coefficients must be {{column: effect}}, got {reprlib.repr(coefficients)}.")
        labels: dict[str, list[Any]] = {}
        for column in coefficients:
            name, label = _split(column)
            if not isinstance(at, Mapping) or name not in at:
                raise ValueError(
                    f"at must say at which {name!r} the rates are as they stand, such as at={{{name!r}: 60}}, or the "
                    f"category that others are compared with, got {reprlib.repr(at)}."
                )
            if label is not None:
                flags: dict[str, Any] = {"True": True, "False": False} if isinstance(at[name], bool) else {}
                labels.setdefault(name, [at[name]]).append(flags.get(label, label))
            if len(set(labels.get(name, []))) < len(labels.get(name, [])) or (label is None and name in labels):
                raise ValueError(
                    f"columns must be of distinct categories other than {at[name]!r}, or a number, got {column!r}."
                )
        names = list(dict.fromkeys(_split(column)[0] for column in coefficients))
        covariates = [Covariate(name, labels.get(name)) for name in names]
        M = len(states)
        centres, coefs, number = [], np.zeros((0, M, M)), np.zeros((0, M, M), np.int64)
        for covariate in covariates:
            centres += covariate.design(np.array([covariate.encode(at[covariate.name])]))[0].tolist()
            for column in covariate.columns:
                own, group = _on_moves(column, coefficients[column], states, moves)
                group[group >= 0] += number.max(initial=-1) + 1
                coefs, number = np.concatenate([coefs, own[None]]), np.concatenate([number, group[None]])
        return cls(covariates, np.array(centres), coefs, number)

    def check_fields(self) -> None:
        """Refuse parts that do not fit together, if they come from a file."""
        require(isinstance(self.covariates, list), "covariates must be a list")
        require(all(isinstance(c, Covariate) for c in self.covariates), "covariates must be a list of them")
        K = len(self.names)
        require(self.coefs.ndim == 3 and self.coefs.shape[1] == self.coefs.shape[2], "effects must be of moves")
        require_floats("centres of covariates", self.centres, (K,))
        require_floats("effects of covariates", self.coefs, (K, *self.coefs.shape[1:]))
        require(self.number.shape == self.coefs.shape and self.number.dtype == np.int64, "effects must be numbered")

    @cached_property
    def names(self) -> list[str]:
        """(K,) names of the columns of the design."""
        return [name for covariate in self.covariates for name in covariate.columns]

    @property
    def breaks(self) -> dict[str, list[Any]]:
        """Edges of the pieces of each covariate, or of time, that has any."""
        return {covariate.name: covariate.edges for covariate in self.covariates if covariate.edges is not None}

    @cached_property
    def n_free(self) -> int:
        """Number of free coefficients."""
        return int(self.number.max(initial=-1)) + 1

    @property
    def free(self) -> Floats:
        """(n_free,) the free coefficients."""
        out = np.zeros(self.n_free)
        out[self.number[self.number >= 0]] = self.coefs[self.number >= 0]
        return out

    def with_free(self, free: Floats) -> Self:
        """The same with other coefficients (n_free,)."""
        return replace(self, coefs=np.where(self.number >= 0, free[self.number], 0.0) if len(free) else self.coefs)

    def take(self, order: Ints) -> Self:
        """The same with state order[i] in place i."""
        own = np.ix_(np.arange(len(self.centres)), order, order)
        return replace(self, coefs=self.coefs[own], number=self.number[own])

    def design(self, covariates: Covariates | None) -> Floats:
        """(n, K) centred columns z - centre of a panel's covariates."""
        if covariates is None:
            raise PanelError(
                f"a panel must have the covariates {first_few(c.name for c in self.covariates)} that rates depend on, "
                "got none; name them by covariates=[...], or give all rows one value by panel.with_covariates({...})."
            )
        columns = []
        for own in self.covariates:
            c = covariates.index(own.name)
            x, labels = covariates.values[:, c], covariates.categories[c]
            if (labels is None) != (own.labels is None):
                raise PanelError(
                    f"covariate {own.name!r} must be {'numbers' if own.labels is None else 'categories'}, as in the "
                    f"panel fitted to, got {'numbers' if labels is None else 'categories'}."
                )
            if labels is not None:
                known = np.array([own.encode(label) for label in labels.tolist()])
                x = known[x.astype(np.int64)]
            columns.append(own.design(x))
        return np.column_stack(columns) - self.centres

    def at(self, values: Mapping[str, Any]) -> Floats:
        """(K,) centred columns at given values; covariates left out are at their mean."""
        known = [c.name for c in self.covariates]
        if not isinstance(values, Mapping):
            raise ValueError(f"at must be {{covariate: value}}, got {reprlib.repr(values)}.")
        for name in values:
            if name not in known:
                raise ValueError(
                    f"at must name covariates among {first_few(known)}, got {name!r}{nearest(name, known)}."
                )
        z = np.zeros(len(self.centres))
        k = 0
        for own in self.covariates:
            columns = slice(k, k + len(own.columns))
            if own.name in values:
                z[columns] = own.design(np.array([own.encode(values[own.name])]))[0] - self.centres[columns]
            k = columns.stop
        return z

    def log_ratios(self, z: Floats) -> Floats:
        """(G, M, M) what the rate of each move has more in logarithms than the baseline, for z (G, K)."""
        return np.asarray(np.clip(np.tensordot(z, self.coefs, axes=1), -LARGEST_LOG, LARGEST_LOG))

    def of_states(self) -> Floats:
        """(K, M) effects on the exit rates, where all moves out of a state have the same."""
        M = self.coefs.shape[1]
        largest = np.abs(self.coefs).argmax(axis=2)
        return (
            np.asarray(np.take_along_axis(self.coefs, largest[:, :, None], axis=2)[..., 0]) if M else self.coefs[..., 0]
        )
