"""Rows a second of a whole sweep of a fit, on one thread and on two, beside what two threads gain at all.

    python benchmarks/sweeps.py              # writes results/sweeps.json and the table of docs/speed.md
    python benchmarks/sweeps.py --dry        # prints, writes nothing

A sweep is all that a fit repeats: decode, jump times, statistics, new parameters, objective. Two cores may be two
threads of one: a loop of logarithms, which shares nothing, tells what the machine gives. All is measured in turns, and
the least of several rounds counts; on a machine with other work the gains are those of what was left of it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from growth import arrays_of, process_of
from numba import njit

import jumpmeans as jm
from jumpmeans.engines import Threads
from jumpmeans.fit.descent import Descent, Model, descend
from jumpmeans.model.constraints import Constraints
from jumpmeans.model.objective import Prices
from jumpmeans.model.params import Params
from jumpmeans.passes import Search, Sequences

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "sweeps.json"
STATES, LENGTH, ROWS = 5, 20, (200_000, 2_000_000)
THREADS = (1, 2)
# Rounds of all measurements, and sweeps in each.
ROUNDS, SWEEPS = 7, 4
LOGS = 30_000_000


@njit(nogil=True, error_model="numpy")
def plain(n: int) -> float:
    """A sum of logarithms: arithmetic without memory."""
    total = 0.0
    for i in range(n):
        total += np.log(1.0 + i)
    return total


def plain_loops(threads: int) -> None:
    """The same work for every thread, side by side."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(plain, [LOGS] * threads))


def sweeps(rows: int, threads: int) -> Callable[[], Any]:
    """Some sweeps of a fit, from trajectories that are there."""
    process = process_of(STATES)
    panel = jm.Panel.from_arrays(*arrays_of(STATES, LENGTH, rows))
    sequences = Sequences.of(Threads(threads), panel, process.emission.encode(panel))
    moves = Constraints.of(~np.eye(STATES, dtype=bool))
    model = Model(Prices(1.0, np.ones(1), 1.0, 1.0, 0.01), moves, Search(1, 1, 0, 0))
    start = Params(process.rates, process.transition_probs, process.emission)
    begun = descend(sequences, start, model, 2, 0.0)

    def work() -> Descent:
        end = descend(sequences, begun.params, model, SWEEPS, -np.inf, begun.dwells)
        assert len(end.history) == SWEEPS
        return end

    return work


def measure() -> dict[str, Any]:
    """Least wall and CPU seconds of each, on one thread and on two."""
    jobs: dict[tuple[str, int], Callable[[], Any]] = {}
    for threads in THREADS:
        jobs["plain", threads] = lambda threads=threads: plain_loops(threads)
        for rows in ROWS:
            jobs[f"{rows}", threads] = sweeps(rows, threads)
    wall = dict.fromkeys(jobs, np.inf)
    cpu = dict.fromkeys(jobs, np.inf)
    plain(1)
    for _ in range(ROUNDS):
        for job, work in jobs.items():
            begun, spent = time.perf_counter(), time.process_time()
            work()
            wall[job] = min(wall[job], time.perf_counter() - begun)
            cpu[job] = min(cpu[job], time.process_time() - spent)
    names = dict.fromkeys(name for name, _ in jobs)
    return {
        "sweeps": SWEEPS,
        "wall": {name: [wall[name, threads] for threads in THREADS] for name in names},
        "cpu_seconds": {name: [cpu[name, threads] for threads in THREADS] for name in names},
    }


def gain(found: dict[str, Any], name: str) -> float:
    """How many times as much two threads do in the same time."""
    one, two = found["wall"][name]
    return float((2.0 if name == "plain" else 1.0) * one / two)  # of loops, each thread has one


def markdown(found: dict[str, Any]) -> str:
    """The table of docs/speed.md."""
    most = gain(found, "plain")
    lines = [
        "| a sweep, 5 states, 20 rows each | M rows a CPU second, one thread | M rows a second, two | two threads do | "
        "share of what two can |",
        "|---|---|---|---|---|",
    ]
    for rows in ROWS:
        name, millions = f"{rows}", rows * found["sweeps"] / 1e6
        one, two = found["cpu_seconds"][name][0], found["wall"][name][1]
        times = gain(found, name)
        lines.append(
            f"| {rows:,} rows | {millions / one:.1f} | {millions / two:.1f} | {times:.2f} times as much | "
            f"{100 * times / most:.0f} % |"
        )
    return "\n".join([*lines, f"| loops of logarithms | | | {most:.2f} times as much | 100 % |"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    parser.add_argument("--write", action="store_true", help="measure nothing: write docs/speed.md of what is there")
    asked = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if asked.write else measure()
    print(markdown(found))
    if asked.dry:
        return
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    page = ROOT / "docs" / "speed.md"
    before, rest = page.read_text().split("<!-- sweeps -->\n")
    after = rest.split("\n<!-- end of sweeps -->")[1]
    page.write_text(f"{before}<!-- sweeps -->\n{markdown(found)}\n<!-- end of sweeps -->{after}")


if __name__ == "__main__":
    main()
