"""Interrupts that wait until they can be taken."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def held_back() -> Iterator[None]:
    """Ctrl-C comes at the end of the block, not within it.

    Numba is not ready for an exception while it takes a generator in (the interpreter dies) or hands several arrays out
    (a SystemError), and a pool of threads not while it locks (it may wait for ever).
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    came: list[tuple[Any, ...]] = []
    signal.signal(signal.SIGINT, lambda *args: came.append(args))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            before(*came[-1])
