"""Progress of long work: a bar of tqdm on a terminal or in a notebook, else lines if asked for; in the log always."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any, ClassVar

LOGGER = logging.getLogger("jumpmeans")
# Work shorter than this (seconds) needs no bar.
PATIENCE = 1.0
# Seconds between two drawings, and between two plain lines.
INTERVAL, LINES = 0.1, 10.0
# Work of unknown length has no bar to fill: what it does, and for how long.
LINE = "{desc} [{elapsed}]"


def _watched() -> bool:
    """Whether somebody can see a bar: standard error is a terminal, or this is a notebook."""
    try:
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython is not None else None
        return hasattr(shell, "kernel") or sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is no standard error, or it is closed
        return False


class Bar:
    """One piece of work. The first to come has the screen until it is closed; work inside it draws nothing."""

    _front: ClassVar[Bar | None] = None
    _last_line: ClassVar[float | None] = None  # when a plain line was written; None where none is asked for

    def __init__(self, title: str, total: int | None = None, *, silent: bool = False) -> None:
        self.title, self.total, self.n = title, total, 0
        self.begun = monotonic()
        self._line: Any = None
        if Bar._front is None:
            Bar._front = self
        self._draws = Bar._front is self and not silent and _watched()
        self._writes = Bar._front is self and not silent and Bar._last_line is not None and not self._draws

    @classmethod
    def in_front(cls) -> Bar | None:
        """The one that has the screen, if any. Of the process, since engines work in threads of their own."""
        return cls._front

    def step(self, text: str = "") -> None:
        """One more thing is done; drawn now and then."""
        self.n += 1
        if self._draws and (self._line is not None or monotonic() - self.begun > PATIENCE):
            self._draw(text)
        elif self._writes:
            # work of unknown length tells by its text how far it has come
            count = f"{self.n} of {self.total}" if self.total is not None else "" if text else str(self.n)
            self._write(text, count)

    @classmethod
    @contextmanager
    def in_lines(cls) -> Iterator[None]:
        """In here plain lines, now and then, take the place of a bar that nobody would see."""
        before, Bar._last_line = Bar._last_line, monotonic()
        try:
            yield
        finally:
            Bar._last_line = before

    def tell(self, text: str) -> None:
        """Something that must be read at once, for a wait begins."""
        if self._draws:
            self._draw(text, at_once=True)

    def _write(self, *texts: str) -> None:
        if Bar._last_line is not None and monotonic() - Bar._last_line > LINES:
            Bar._last_line = monotonic()
            print(": ".join(filter(None, (self.title, *texts))), file=sys.stderr, flush=True)

    def _draw(self, text: str, at_once: bool = False) -> None:
        told = ": ".join(filter(None, (self.title, text)))
        if self._line is None:  # made late: short work loads nothing
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a notebook without widgets has a plain bar, which is no fault
                from tqdm.auto import tqdm

            self._line = tqdm(
                desc=told, total=self.total, initial=self.n, leave=False, mininterval=INTERVAL, miniters=1,
                dynamic_ncols=True, bar_format=LINE if self.total is None else None,
            )  # fmt: skip
            return
        self._line.set_description_str(told, refresh=at_once)
        self._line.update(self.n - self._line.n)

    def close(self) -> None:
        """Leave the screen as it was."""
        if Bar._front is self:
            Bar._front = None
        if self._line is not None:
            self._line.total = self._line.n  # work that needs fewer steps than allowed has not failed
            self._line.close()


@contextmanager
def _bar(title: str, total: int | None = None) -> Iterator[Bar]:
    bar = Bar(title, total)
    try:
        yield bar
    finally:
        bar.close()
        LOGGER.info("%s: %.2f s", title, monotonic() - bar.begun)


@contextmanager
def quiet() -> Iterator[None]:
    """No bars in here: whoever asked for the work draws one for all of it."""
    nothing = Bar("", silent=True)
    try:
        yield
    finally:
        nothing.close()


def track(n: int, title: str) -> Iterator[int]:
    """Count 0, 1, ..., n - 1 with a bar, if the work takes a while and somebody can see it."""
    with _bar(title, n) as bar:
        for i in range(n):
            yield i
            bar.step()


_speaker: ContextVar[Bar | None] = ContextVar("speaker", default=None)


@contextmanager
def status(title: str) -> Iterator[None]:
    """Work of unknown length: what is told by `say` in here follows the title."""
    with _bar(title) as bar:
        token = _speaker.set(bar)
        try:
            yield
        finally:
            _speaker.reset(token)


def say(text: str) -> None:
    """Tell how far the work has come, if anyone listens."""
    bar = _speaker.get()
    if bar is not None:
        bar.step(text)
