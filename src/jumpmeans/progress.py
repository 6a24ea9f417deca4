"""Progress of long work: a line on a terminal, nothing elsewhere; and what each iteration cost."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

LOGGER = logging.getLogger("jumpmeans")
# Work shorter than this (seconds) needs no bar.
PATIENCE = 1.0
WIDTH = 30
_quiet = ContextVar("quiet", default=False)
_speaker: ContextVar[tuple[str, _Line] | None] = ContextVar("speaker", default=None)


class _Line:
    """One line of a terminal, rewritten now and then; nothing if standard error is none, or for short work."""

    def __init__(self) -> None:
        self.shown = not _quiet.get() and sys.stderr is not None and sys.stderr.isatty()
        self.begun = self.last = time.monotonic()
        self.drawn = False

    def write(self, text: Callable[[float], str]) -> None:
        """Show text(seconds so far), unless it is too early or the last line is fresh."""
        now = time.monotonic()
        if self.shown and now - self.begun > PATIENCE and now - self.last > 0.1:
            self.last, self.drawn = now, True
            sys.stderr.write(f"\r{text(now - self.begun)}\x1b[K")
            sys.stderr.flush()

    def close(self, title: str) -> None:
        if self.drawn:
            sys.stderr.write("\r\x1b[K")
        LOGGER.info("%s: %.2f s", title, time.monotonic() - self.begun)


@contextmanager
def quiet() -> Iterator[None]:
    """No lines in here: whoever asked for the work draws one for all of it."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def track(n: int, title: str) -> Iterator[int]:
    """Count 0, 1, ..., n - 1 with a bar on standard error, if that is a terminal and the work takes a while."""
    line = _Line()

    def bar(seconds: float) -> str:
        left = seconds / (i + 1) * (n - i - 1)
        return f"{title} [{'█' * (WIDTH * (i + 1) // n):<{WIDTH}}] {i + 1}/{n}, {left:.0f} s left"

    try:
        for i in range(n):
            yield i
            line.write(bar)
    finally:
        line.close(title)


@contextmanager
def status(title: str) -> Iterator[None]:
    """Work of unknown length: what is told by `say` in here follows the title on the line."""
    line = _Line()
    token = _speaker.set((title, line))
    try:
        yield
    finally:
        _speaker.reset(token)
        line.close(title)


def say(text: str) -> None:
    """Tell how far the work has come, if anyone listens."""
    speaker = _speaker.get()
    if speaker is not None:
        title, line = speaker
        line.write(lambda seconds: f"{title}: {text}, {seconds:.0f} s")


class History:
    """A number after each iteration, with the wall and CPU time (seconds, of this process) since the start."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        self._rows: list[tuple[float, float, float]] = []

    def restarted(self) -> History:
        """No iterations yet, but the clock of this one."""
        new = History()
        new._wall, new._cpu = self._wall, self._cpu
        return new

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
