"""Threads: the default engine. Kernels release the GIL, so blocks run side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from ..interrupts import held_back
from ..options import count, none
from ..passes.block import Block
from ..passes.engine import Held


class Threads:
    """Run passes on `n_jobs` threads of this machine; all cores by default."""

    def __init__(self, n_jobs: int | None = None) -> None:
        (none | count()).check("n_jobs", n_jobs)
        self.n_jobs = n_jobs

    def __repr__(self) -> str:
        return f"Threads(n_jobs={self.n_jobs})"

    def hold(self, blocks: Sequence[Block]) -> Held:
        """Keep the blocks in this process."""
        return HeldHere(blocks, min(len(blocks), self.n_jobs or os.cpu_count() or 1))


class HeldHere:
    """Blocks in the memory of this process; states are lists beside them."""

    def __init__(self, blocks: Sequence[Block], jobs: int) -> None:
        self.blocks, self.jobs = blocks, jobs
        self._pool: tuple[int, ThreadPoolExecutor] | None = None

    def _threads(self) -> ThreadPoolExecutor:
        """Threads that are kept for the next pass: to start them would take longer than a pass over a small panel."""
        if self._pool is None or self._pool[0] != os.getpid():  # a process that was forked off has none of them
            self._pool = os.getpid(), ThreadPoolExecutor(self.jobs)
        return self._pool[1]

    def run(self, work: Callable[..., tuple[Any, Any]], state: Any, *shared: Any) -> tuple[list[Any], list[Any]]:
        """Run a pass over all blocks; see `jumpmeans.passes.engine.Held`."""
        states = [None] * len(self.blocks) if state is None else state

        def one(block: Block, own: Any) -> tuple[Any, Any]:
            return work(block, own, *shared)

        with held_back() as take:
            if self.jobs == 1:
                done = []
                for block, own in zip(self.blocks, states, strict=True):
                    done.append(one(block, own))
                    take()
            else:
                pool = self._threads()
                waiting = [pool.submit(one, block, own) for block, own in zip(self.blocks, states, strict=True)]
                try:
                    done = [future.result() for future in waiting]
                finally:  # after an error nothing goes on
                    for future in waiting:
                        future.cancel()
                    wait(waiting)
        return [new for new, _ in done], [result for _, result in done]

    def fetch(self, state: Any) -> list[Any]:
        """States of all blocks: they are here."""
        return list(state)

    def put(self, states: list[Any]) -> list[Any]:
        """States of all blocks: they stay here."""
        return states

    def __len__(self) -> int:
        return len(self.blocks)
