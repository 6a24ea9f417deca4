"""Interrupts that wait until they can be taken."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def held_back() -> Iterator[Callable[[], None]]:
    """Ctrl-C comes at the end of the block, or where what this gives is called: there it can be taken.

    Numba is not ready for an exception while it takes a generator in (the interpreter dies) or hands several arrays out
    (a SystemError), and a pool of threads not while it locks (it may wait for ever).
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield lambda: None
        return
    came: list[tuple[Any, ...]] = []

    def take() -> None:
        if came:
            last = came.pop()
            came.clear()
            before(*last)

    signal.signal(signal.SIGINT, lambda *args: came.append(args))
    try:
        yield take
    finally:
        signal.signal(signal.SIGINT, before)
        take()
