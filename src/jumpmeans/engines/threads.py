"""Threads: the default engine. Kernels release the GIL, so blocks run side by side."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from ..arrays import Floats
from ..model.objective import Stats, Weights, join_stats, jump_costs
from ..model.params import Params
from ..model.process import Process
from .base import (
    Dwells,
    Expected,
    Propagator,
    Search,
    Sequences,
    expect_one,
    join_expected,
    run_block,
    smooth_one,
)

T = TypeVar("T")


class Threads:
    """Run blocks on `n_jobs` threads of this machine; all cores by default."""

    def __init__(self, n_jobs: int | None = None) -> None:
        if n_jobs is not None and n_jobs < 1:
            raise ValueError(f"n_jobs must be at least 1 (or None for all cores), got {n_jobs}.")
        self.n_jobs = n_jobs

    def __repr__(self) -> str:
        return f"Threads(n_jobs={self.n_jobs})"

    def _map(self, work: Callable[[int], T], n: int) -> list[T]:
        jobs = min(n, self.n_jobs or os.cpu_count() or 1)
        if jobs == 1:
            return [work(b) for b in range(n)]
        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(work, range(n)))

    def sweep(self, sequences: Sequences, dwells: Dwells, params: Params, weights: Weights, search: Search) -> Stats:
        """Decode all blocks into `dwells`; statistics joined in sequence order."""
        costs = jump_costs(params.transition_probs, weights.transition)
        return join_stats(
            self._map(lambda b: run_block(sequences, dwells, b, params, costs, weights, search), sequences.n_blocks)
        )

    def smooth(self, sequences: Sequences, process: Process) -> tuple[Floats, Floats]:
        """Posterior (n, M) of every row, and log-likelihood (S,) of every sequence."""
        posterior = np.empty((len(sequences.tau), len(process.rates)))
        log_lik = np.zeros(len(sequences.ends))
        propagator = Propagator.of(process, sequences.longest_gap)
        self._map(lambda b: smooth_one(sequences, b, propagator, posterior, log_lik), sequences.n_blocks)
        return posterior, log_lik

    def expect(self, sequences: Sequences, process: Process) -> Expected:
        """Expected statistics of all blocks, joined in sequence order."""
        propagator = Propagator.of(process, sequences.longest_gap)
        return join_expected(self._map(lambda b: expect_one(sequences, b, propagator), sequences.n_blocks))
