"""Speed of the core: sweeps and observations per second, growth with length, compile time apart.

`make bench` prints the tables; ratios within one run are what counts, times depend on the machine.
"""

from __future__ import annotations

import os
import time
import tracemalloc

import numpy as np

import jumpmeans as jm
from jumpmeans.engines import Threads
from jumpmeans.model.objective import Prices
from jumpmeans.model.params import Params
from jumpmeans.passes import Search, Sequences


def random_process(M: int, emission: object = None, seed: int = 0) -> jm.Process:
    rng = np.random.default_rng(seed)
    P = np.zeros((M, M))
    for m in range(M):
        P[m, np.arange(M) != m] = rng.dirichlet(np.ones(M - 1))
    return jm.Process(rng.gamma(1, 1, M), P, emission=emission)


def gaussian_process(M: int) -> jm.Process:
    return random_process(M, jm.emissions.Gaussian(4.0 * np.arange(M), 1.0))


def sweep_seconds(process: jm.Process, panel: jm.Panel, n_jobs: int, repeats: int = 5) -> float:
    """Least time of one sweep under the true parameters, from a decoded state of affairs."""
    sequences = Sequences.of(Threads(n_jobs), panel, process.emission.encode(panel))
    params = Params(process.rates, process.transition_probs, process.emission)
    prices = Prices(1.0, np.ones(1), 1.0, 1.0, 0.01)
    dwells, search = sequences.no_jumps(), Search(1, 1, 0, 0)
    times = []
    for _ in range(repeats + 1):
        begun = time.perf_counter()
        dwells, _ = sequences.sweep(dwells, params, prices, search)
        times.append(time.perf_counter() - begun)
    return min(times[1:])


def main() -> None:
    begun = time.perf_counter()
    panel, _ = jm.simulate(gaussian_process(3), 20, 10)
    jm.JumpMeans(3).fit(panel).predict_proba(panel)
    print(f"first fit and posterior, compilation (or its cache) included: {time.perf_counter() - begun:.1f} s\n")

    print("one sweep = decode, jump times and statistics of every sequence; Gaussian observations")
    print(f"{'M':>3} {'L':>9} {'rows':>9} {'sweeps/s':>9} {'M rows/s/core':>14}")
    per_row: dict[tuple[int, int], float] = {}
    for M in (5, 10, 20):
        process = gaussian_process(M)
        for L in (20, 10**3, 10**6):
            rows = 10**6 if L == 10**6 else 200_000
            panel, _ = jm.simulate(process, rows // L, L, mean_gap=0.5)
            seconds = sweep_seconds(process, panel, 1, repeats=2)
            per_row[M, L] = seconds / rows
            print(f"{M:>3} {L:>9,} {rows:>9,} {1 / seconds:>9.2f} {rows / seconds / 1e6:>14.2f}")
    for M in (5, 10, 20):
        growth = per_row[M, 10**6] / per_row[M, 10**3]
        print(f"M = {M}: time per row at L = 10^6 over that at L = 10^3: {growth:.2f} (1 = linear)")

    process = random_process(10)
    panel, _ = jm.simulate(process, 500, 20)
    masked, _ = jm.hold_out(panel, 0.3)
    one, all_cores = (sweep_seconds(process, masked, n, repeats=50) for n in (1, os.cpu_count() or 1))
    print("\nSynthetic 1 (10 states observed directly, 10,000 rows), one sweep:")
    print(f"{1e3 * one:.1f} ms on 1 core, {1e3 * all_cores:.1f} ms on {os.cpu_count()}; the paper's Java took 300 ms")

    process = gaussian_process(5)
    panel, _ = jm.simulate(process, 50_000, 20, mean_gap=0.5)
    tracemalloc.start()
    jm.JumpMeans(5, max_iter=2, tol=1.0, refine=0).fit(panel)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"\npeak memory of a fit beyond the panel, 10^6 rows, 5 states: {peak / 1e6:.0f} bytes per row")


if __name__ == "__main__":
    main()
