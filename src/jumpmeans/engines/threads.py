"""Threads: the default engine. Kernels release the GIL, so blocks run side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
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
                with ThreadPoolExecutor(self.jobs) as pool:
                    done = list(pool.map(one, self.blocks, states))
        return [new for new, _ in done], [result for _, result in done]

    def fetch(self, state: Any) -> list[Any]:
        """States of all blocks: they are here."""
        return list(state)

    def put(self, states: list[Any]) -> list[Any]:
        """States of all blocks: they stay here."""
        return states

    def __len__(self) -> int:
        return len(self.blocks)
