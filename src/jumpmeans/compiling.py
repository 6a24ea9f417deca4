"""Says that a kernel is being compiled before the wait begins, wherever that is.

numba tells of every compilation, and only of those that are real: kernels found on disk are loaded in silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from numba.core import event

from .progress import LOGGER, Bar


class _Compiling(event.Listener):  # type: ignore[misc]
    """One line for a kernel and all that it calls; numba's lock lets one thread compile at a time."""

    def __init__(self) -> None:
        self._depth, self._begun = 0, 0.0
        self._own: Bar | None = None

    def on_start(self, event: Any) -> None:
        """Tell it on the bar of the work that waits, or on a line of its own."""
        kernel = our_kernel(event)
        if kernel is not None:
            self.begin(kernel)

    def on_end(self, event: Any) -> None:
        """Take the line away."""
        kernel = our_kernel(event)
        if kernel is not None:
            self.end(kernel)

    def begin(self, kernel: str) -> None:
        """Of a kernel, or of one that it calls."""
        self._depth += 1
        if self._depth == 1:
            self._begun = monotonic()
            text = f"compiling {kernel}, once"
            LOGGER.info("%s", text)
            bar = Bar.in_front()
            if bar is None:
                bar = self._own = Bar("")
            bar.tell(text)

    def end(self, kernel: str) -> None:
        """Of what has begun last."""
        self._depth -= 1
        if self._depth == 0:
            LOGGER.info("compiled %s: %.2f s", kernel, monotonic() - self._begun)
            if self._own is not None:
                self._own.close()
                self._own = None


def our_kernel(event: Any) -> str | None:
    """Name of the function that is compiled, if it is one of this package."""
    function = event.data["dispatcher"].py_func
    package = __name__.partition(".")[0]
    return str(function.__name__) if function.__module__.partition(".")[0] == package else None


_compiling = _Compiling()


def announce() -> None:
    """Speak of every kernel of this package from now on."""
    event.register("numba:compile", _compiling)


@contextmanager
def waiting(kernel: str) -> Iterator[None]:
    """A wait, under numba's lock, for a kernel that another process compiles: it is said in the same words."""
    _compiling.begin(kernel)
    try:
        yield
    finally:
        _compiling.end(kernel)
