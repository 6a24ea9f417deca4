"""What each iteration of a fit came to, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .arrays import Floats
from .stored import Fields, stored


@stored
class History(Fields):
    """A number after each iteration, with the wall and CPU time (seconds, of this process) since the start."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        self._rows: list[tuple[float, float, float]] = []

    def to_fields(self) -> dict[str, Any]:
        """One row for each iteration."""
        return {"rows": np.array(self._rows, dtype=np.float64).reshape(-1, 3)}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> History:
        """The same iterations; the clock starts anew."""
        new = cls()
        new._rows = [(value, wall, cpu) for value, wall, cpu in fields["rows"].tolist()]
        return new

    def restarted(self) -> History:
        """No iterations yet, but the clock of this one."""
        new = History()
        new._wall, new._cpu = self._wall, self._cpu
        return new

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What is done in here does not count."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self._wall += time.perf_counter() - wall
        self._cpu += time.process_time() - cpu

    def add(self, value: float) -> None:
        """Note the value of one iteration."""
        now = (time.perf_counter() - self._wall, time.process_time() - self._cpu)
        self._rows.append((float(value), *now))

    def __len__(self) -> int:
        return len(self._rows)

    def _column(self, k: int) -> Floats:
        return np.array([row[k] for row in self._rows])

    @property
    def values(self) -> Floats:
        """(n_iter,) objective or log-likelihood after each iteration."""
        return self._column(0)

    @property
    def wall_times(self) -> Floats:
        """(n_iter,) seconds since the start."""
        return self._column(1)

    @property
    def cpu_times(self) -> Floats:
        """(n_iter,) CPU seconds since the start, all threads together."""
        return self._column(2)
