"""Progress of long work: a line on a terminal, nothing elsewhere; and what each iteration cost."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

LOGGER = logging.getLogger("jumpmeans")
# Work shorter than this (seconds) needs no bar.
PATIENCE = 1.0
WIDTH = 30
_quiet = ContextVar("quiet", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    """No bars in here: whoever asked for the work draws one for all of it."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def track(n: int, title: str) -> Iterator[int]:
    """Count 0, 1, ..., n - 1 with a bar on standard error, if that is a terminal and the work takes a while."""
    shown = not _quiet.get() and sys.stderr is not None and sys.stderr.isatty()
    begun = last = time.monotonic()
    drawn = False
    try:
        for i in range(n):
            yield i
            now = time.monotonic()
            if shown and now - begun > PATIENCE and now - last > 0.1:
                last, drawn = now, True
                done = i + 1
                left = (now - begun) / done * (n - done)
                bar = "█" * (WIDTH * done // n)
                sys.stderr.write(f"\r{title} [{bar:<{WIDTH}}] {done}/{n}, {left:.0f} s left \x1b[K")
                sys.stderr.flush()
    finally:
        if drawn:
            sys.stderr.write("\r\x1b[K")
        LOGGER.info("%s: %.2f s", title, time.monotonic() - begun)


class History:
    """A number after each iteration, with the wall and CPU time (seconds, of this process) since the start."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        self._rows: list[tuple[float, float, float]] = []

    def add(self, value: float) -> None:
        """Note the value of one iteration."""
        now = (time.perf_counter() - self._wall, time.process_time() - self._cpu)
        self._rows.append((float(value), *now))

    def __len__(self) -> int:
        return len(self._rows)

    def _column(self, k: int) -> NDArray[np.float64]:
        return np.array([row[k] for row in self._rows])

    @property
    def values(self) -> NDArray[np.float64]:
        """(n_iter,) objective or log-likelihood after each iteration."""
        return self._column(0)

    @property
    def wall_times(self) -> NDArray[np.float64]:
        """(n_iter,) seconds since the start."""
        return self._column(1)

    @property
    def cpu_times(self) -> NDArray[np.float64]:
        """(n_iter,) CPU seconds since the start, all threads together."""
        return self._column(2)
