"""What the helper of `jumpmeans.ahead` does: call kernels on a panel of two rows, so that they are compiled and kept.

They are called by the passes that a fit runs, or with arrays as it has them: so they have the types that it asks for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from threading import Thread

import numpy as np

from ..emissions import Gaussian, as_record
from ..kernels.bounds import make_bounds
from ..kernels.decode import QUEUE, best_path, make_room
from ..kernels.jump_times import WORK, place_jumps
from ..model.process import Process
from ..model.propagator import Propagator
from .block import Block
from .smooth import expect, weigh

BLOCK = Block(np.array([0.0, 1.0]), np.array([0, 2]), np.array([1.0]), np.array([1.0]), np.array([[0.0], [1.0]]))


def _places() -> None:
    states, rows = np.array([0, 1], np.int32), np.array([0, 1], np.int32)
    place_jumps(
        states, np.array([0.0, 0.5]), rows, 2, BLOCK.tau, BLOCK.holds, BLOCK.row_kinds, 1.0, np.ones(2), None, False,
        np.empty((WORK, 2)), False,
    )  # fmt: skip


def _paths() -> None:
    into = np.zeros((1, 2, 2))
    best_path(
        np.zeros((2, 2)), BLOCK.row_kinds, 1.0, np.ones(2), into, None, False, False, False, 0, make_room(1, 2, QUEUE),
        make_bounds(2, into), np.inf,
    )  # fmt: skip


def _propagator() -> Propagator:
    law = Process(np.ones(2), np.array([[0.0, 1.0], [1.0, 0.0]]), emission=as_record(Gaussian([0.0, 1.0], 1.0)))
    return Propagator.of(law, BLOCK.longest_gap)


# In the order in which a fit asks for them: the first ones while the sweep is still being compiled.
JOBS: dict[str, Callable[[], object]] = {
    "best_path": _paths,
    "place_jumps": _places,
    "gather_block": lambda: expect(BLOCK, None, _propagator()),
    "smooth_block": lambda: weigh(BLOCK, None, _propagator()),
}


def main() -> None:
    """Do the jobs, and tell of each; end at once when the process that asked for it has ended."""

    def watch() -> None:
        sys.stdin.read()
        os._exit(0)

    Thread(target=watch, daemon=True).start()
    for kernel, job in JOBS.items():
        job()
        print(kernel, flush=True)
