"""What is known of the process before any data: which moves are possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path


@dataclass(frozen=True, eq=False)
class Structure:
    """Constraints on the process.

    Parameters
    ----------
    allowed : (M, M) of bool, or {state: [states it may move to]}, optional
        Moves that may happen; all by default. The diagonal is ignored. A state left out of a mapping
        cannot be left.
    absorbing : list of states, optional
        States that cannot be left.
    initial, fixed : optional
        Distribution of the first state and fixed values. Not supported yet: giving them is an error when fitting.
    """

    allowed: Any = None
    absorbing: Sequence[Any] | None = None
    initial: Any = None
    fixed: Any = None

    def allowed_moves(self, states: NDArray[Any]) -> NDArray[np.bool_]:
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
                for target in targets:
                    moves[_index(source, labels), _index(target, labels)] = True
        else:
            table = np.array(self.allowed)
            if table.shape != (M, M):
                raise ValueError(
                    f"allowed must be a {(M, M)} table of moves between the states {labels}, got shape {table.shape}."
                )
            words = [x for x in table.ravel().tolist() if not isinstance(x, Real)]  # 'False' would pass for true
            if words:
                raise ValueError(f"allowed must hold True and False, or numbers, got {words[0]!r}; convert the table.")
            moves = table.astype(bool)
        np.fill_diagonal(moves, False)
        for state in () if self.absorbing is None else self.absorbing:
            moves[_index(state, labels)] = False
        return moves


def _index(state: Any, labels: list[Any]) -> int:
    if state not in labels:
        raise ValueError(f"structure must name states among {labels}, got {state!r}.")
    return labels.index(state)


def jumps_needed(moves: NDArray[np.bool_]) -> int:
    """Most jumps that the shortest allowed way between two states can take; at least 1."""
    steps = shortest_path(moves.astype(float), unweighted=True)
    finite = steps[np.isfinite(steps)]
    return max(1, int(finite.max()))
