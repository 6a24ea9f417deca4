"""What is kept of each sequence that is open: a slot in each of a few arrays, which grow."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from ..arrays import Floats, Ints
from ..kernels.online import CLOCKS, LAST, NOTES, SHOWN, WAITS


@dataclass
class Beds:
    """Arrays with a slot for each sequence, as `kernels.online.update_rows` keeps them.

    queues : (n, 2, M, K, 3); rings : (n, 2, 2, M); costs : (n, 3, M); clocks : (n, CLOCKS); notes : (n, NOTES).
    """

    queues: Floats
    rings: Ints
    costs: Floats
    clocks: Floats
    notes: Ints

    @classmethod
    def empty(cls, n: int, M: int, K: int) -> Self:
        """Room for n sequences of M states, K starts in each queue."""
        new = cls(
            np.zeros((n, 2, M, K, 3)), np.zeros((n, 2, 2, M), np.int64), np.zeros((n, 3, M)),
            np.zeros((n, CLOCKS)), np.zeros((n, NOTES), np.int64),
        )  # fmt: skip
        new._clear(0)
        return new

    def arrays(self) -> dict[str, Any]:
        """All arrays by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __len__(self) -> int:
        return len(self.clocks)

    @property
    def starts(self) -> int:
        """K, room for starts in each queue: a power of two."""
        return int(self.queues.shape[3])

    @property
    def nbytes(self) -> int:
        """Memory of all arrays."""
        return sum(array.nbytes for array in self.arrays().values())

    def _clear(self, first: int) -> None:
        """Empties the slots from `first` on."""
        for array in self.arrays().values():
            array[first:] = 0
        self.clocks[first:, LAST] = -1.0
        self.notes[first:, [SHOWN, WAITS]] = -1

    def keep(self, slots: list[int]) -> None:
        """Only these slots, moved to the front."""
        for array in self.arrays().values():
            array[: len(slots)] = array[slots]
        self._clear(len(slots))

    def first(self, n: int) -> dict[str, Any]:
        """The first n slots of all arrays, by name."""
        return {name: array[:n] for name, array in self.arrays().items()}

    def grown(self, n: int, K: int) -> Self:
        """The same with room for n sequences and K starts."""
        m, k = len(self), self.starts
        new = self.empty(n, self.queues.shape[2], K)
        for name, array in self.arrays().items():
            if name != "queues":
                getattr(new, name)[:m] = array
        # queues begin at their heads: unrolled, they begin at 0
        order = (self.rings[:, 0, :, :, None] + np.arange(k)) & (k - 1)
        new.queues[:m, :, :, :k] = np.take_along_axis(self.queues, order[..., None], axis=3)
        new.rings[:, 0] = 0
        return new
