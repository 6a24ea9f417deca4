"""Compiling ahead: a second process compiles what a fit needs after its sweep, while the first compiles the sweep.

numba compiles one kernel at a time in a process, so that a second core helps by a process of its own (`passes.ahead`),
which leaves its kernels on disk; here they are looked for once it has done with them. It is started where the sweep is
not on disk yet, and is no more than a help: where it cannot be had, or fails, this process compiles all by itself.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import Any

import numba
from numba.core import event
from numba.core.caching import FunctionCache

from .compiling import our_kernel, waiting

# The kernel whose compilation is the time to start, being the longest.
FIRST = "sweep_on"
# The helper sees the modules that this process sees, wherever they are.
CODE = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from jumpmeans.passes.ahead import main; main()"
# Seconds after which a kernel that does not come is compiled here.
PATIENCE = 120.0


class Helper:
    """The second process: it says a line for each kernel that is on disk, and ends with the pipe that it reads from."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE, json.dumps([str(folder) for folder in sys.path])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=os.environ | ({"NUMBA_CACHE_DIR": numba.config.CACHE_DIR} if numba.config.CACHE_DIR else {}),
            start_new_session=True,  # an interrupt of the keyboard is ours
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )  # fmt: skip
        self.owner = os.getpid()
        self.done: set[str] = set()
        self.over = False
        self.news = Condition()
        self.listener = Thread(target=self._listen, daemon=True)
        self.listener.start()
        atexit.register(self.end)

    def _listen(self) -> None:
        with self.process:  # waits for it and closes its pipes
            for line in self.process.stdout or ():
                with self.news:
                    self.done.add(line.strip())
                    self.news.notify_all()
        with self.news:
            self.over = True
            self.news.notify_all()

    def is_at(self, kernel: str) -> bool:
        """Whether a kernel may still come; never in a process that was forked off, which has no one to listen."""
        return os.getpid() == self.owner and kernel not in self.done and not self.over

    def wait_for(self, kernel: str) -> None:
        """Until the kernel is on disk, or will not come."""
        with self.news:
            self.news.wait_for(lambda: not self.is_at(kernel), PATIENCE)

    def end(self) -> None:
        """Leave nothing behind, neither a process nor its remains."""
        if os.getpid() == self.owner:
            self.process.kill()
            self.listener.join(1.0)


_helper: Helper | None = None
_starting = Lock()


def can_help() -> bool:
    """Whether a second process is of use, and ours to start: Python itself, and no worker of some pool."""
    from multiprocessing import parent_process  # which a process that compiles nothing need not load

    return (
        len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)) > 1
        and Path(sys.executable or "").name.lower().startswith("python")
        and not hasattr(sys, "frozen")
        and parent_process() is None
    )


def start() -> None:
    """Have the helper begin; once in a process."""
    global _helper
    with _starting:
        if _helper is None and can_help():
            try:
                _helper = Helper()
            except OSError:  # no memory or no right for another process
                return


class _Starter(event.Listener):  # type: ignore[misc]
    def on_start(self, event: Any) -> None:
        if our_kernel(event) == FIRST and is_kept(event.data["dispatcher"]):
            start()

    def on_end(self, event: Any) -> None:
        pass


class _Awaited(FunctionCache):  # type: ignore[misc]
    """The kernels on disk of a function that the helper compiles, looked into when it has done so."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        kernel = self._py_func.__name__
        if _helper is not None and _helper.is_at(kernel):
            with waiting(kernel):
                _helper.wait_for(kernel)
        return super().load_overload(sig, target_context)


def is_kept(kernel: Any) -> bool:
    """Whether a kernel is kept on disk, where another process finds it."""
    return isinstance(getattr(kernel, "_cache", None), FunctionCache)


def awaited(kernel: Any) -> Any:
    """A kernel that the helper compiles, to decorate with; `passes.ahead` has to call it."""
    if is_kept(kernel):
        kernel._cache = _Awaited(kernel.py_func)
    return kernel


event.register("numba:compile", _Starter())
