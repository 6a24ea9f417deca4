"""What is known of the process before any data: which moves are possible."""

from __future__ import annotations

import reprlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

from ..arrays import AnyArray, Bools


@dataclass(frozen=True, eq=False)
class Structure:
    """Constraints on the process.

    Parameters
    ----------
    allowed : (M, M) of bool or numbers, or {state: [states it may move to]}, optional
        Moves that may happen, those that are True or above 0; all by default. The diagonal is ignored. A state left
        out of a mapping cannot be left.
    absorbing : list of states, optional
        States that cannot be left.
    initial, fixed : optional
        Distribution of the first state and fixed values. Not supported yet: giving them is an error when fitting.
    """

    allowed: Any = None
    absorbing: Sequence[Any] | None = None
    initial: Any = None
    fixed: Any = None

    def allowed_moves(self, states: AnyArray) -> Bools:
        """(M, M) moves that may happen between the given states, diagonal False."""
        for name in ("initial", "fixed"):
            if getattr(self, name) is not None:
                raise ValueError(f"Structure({name}=...) is not supported yet; leave it out.")
        labels = states.tolist()
        M = len(labels)
        if self.allowed is None:
            moves = np.ones((M, M), dtype=bool)
        elif isinstance(self.allowed, Mapping):
            moves = np.zeros((M, M), dtype=bool)
            for source, targets in self.allowed.items():
                for target in _listed("allowed", targets):
                    moves[_index(source, labels), _index(target, labels)] = True
        else:
            moves = _read_moves(self.allowed, labels)
        np.fill_diagonal(moves, False)
        for state in () if self.absorbing is None else _listed("absorbing", self.absorbing):
            moves[_index(state, labels)] = False
        return moves


def _read_moves(allowed: Any, labels: list[Any]) -> Bools:
    """(M, M) moves of a table of booleans or numbers, where what is not 0 may happen."""
    M = len(labels)
    try:
        table = np.array(allowed)
    except ValueError:  # of rows that differ in length
        table = np.empty(0)
    if table.shape != (M, M):
        raise ValueError(
            f"allowed must be a {(M, M)} table of moves between the states {reprlib.repr(labels)}, or a mapping, "
            f"got shape {table.shape}."
        )
    if table.dtype == object and all(isinstance(x, Real) for x in table.ravel().tolist()):
        table = table.astype(np.float64)
    if table.dtype.kind not in "biuf" or not np.all(table[~np.eye(M, dtype=bool)] >= 0):
        raise ValueError(
            f"allowed must hold True and False, or numbers >= 0, got {reprlib.repr(table.tolist())}; convert the table."
        )
    return table.astype(bool)


def _listed(name: str, states: Any) -> list[Any]:
    """States that were given as a list of them."""
    try:
        if not isinstance(states, str | bytes):
            return list(states)
    except TypeError:
        pass
    raise ValueError(f"{name} must list states, got {states!r}; write [{states!r}].")


def _index(state: Any, labels: list[Any]) -> int:
    if not isinstance(state, Hashable) or state not in labels:
        raise ValueError(f"structure must name states among {reprlib.repr(labels)}, got {state!r}.")
    return labels.index(state)


def jumps_needed(moves: Bools) -> int:
    """Most jumps that the shortest allowed way between two states can take; at least 1."""
    steps = shortest_path(moves.astype(float), unweighted=True)
    finite = steps[np.isfinite(steps)]
    return max(1, int(finite.max()))
