"""Sweeps, posteriors, expected statistics and a fit of 5 Gaussian states on a GPU, beside threads.

python benchmarks/gpu.py [rows] [--no-threads]
python benchmarks/gpu.py --table    prints what docs/gpu.md has of the last run

First panels of 10^5 and 2 · 10^6 rows are fitted by threads and by the GPU, in 64 and in 32 bits, and the answers are
compared. Then `rows` rows (10^9) in sequences of 20 are simulated on the device, and each pass is timed: the median of
some runs, with the device waited for, after one that compiles. Written to benchmarks/results/cuda.json.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numba import cuda

import jumpmeans as jm
from jumpmeans.emissions import Record
from jumpmeans.engines.cuda import HeldOnDevice
from jumpmeans.engines.device.layout import Layout, blocks_of, places
from jumpmeans.engines.device.smooth import run
from jumpmeans.fit.descent import Model, descend, minimise
from jumpmeans.fit.em_steps import em_steps
from jumpmeans.kernels.cuda.arithmetic import LANES, THREADS, cos, log, sqrt
from jumpmeans.kernels.cuda.smooth import POSTERIOR
from jumpmeans.model.objective import Prices, evaluate
from jumpmeans.model.params import Params
from jumpmeans.model.propagator import Propagator
from jumpmeans.passes import Block, Search, Sequences

M, LENGTH, RATE, SPACING, NOISE = 5, 20, 0.3, 4.0, 1.0
SMALL, LARGER, RUNS, SWEEPS = 100_000, 2_000_000, 3, 10
# Of the rows whose posteriors are timed, since they take 8 bytes for each state.
SHARE = 5
OUT = Path(__file__).parent / "results" / "cuda.json"

PROCESS = jm.Process(
    np.full(M, RATE), (1 - np.eye(M)) / (M - 1), emission=jm.emissions.Gaussian(SPACING * np.arange(M), sds=NOISE)
)
PRICES = Prices(1.0, np.full(1, 8.0), 1.0, 1.0 / RATE, 0.01)
SEARCH = Search(1, 1, 0, 0)


def start() -> Params:
    """Parameters that a fit may begin with."""
    means = SPACING * np.arange(M) + np.linspace(-0.8, 0.8, M)
    return Params(np.full(M, 0.6), PROCESS.transition_probs, Record([jm.emissions.Gaussian(means, sds=NOISE)]))


def model() -> Model:
    """What is minimised."""
    return Model(PRICES, jm.Structure().constraints(PROCESS.states), SEARCH)


# ------------------------------------------------------------------------------------------------- a small panel


def compare() -> dict[str, Any]:
    """The GPU beside threads on one panel: the same parameters, then whole fits."""
    panel, _ = jm.simulate(PROCESS, SMALL // LENGTH, LENGTH, random_state=0)
    engines = {"float64": jm.engines.Cuda(), "float32": jm.engines.Cuda("float32")}
    plain = answers(jm.engines.Threads(), panel)
    report: dict[str, Any] = {"rows": panel.n_observations}
    for name, engine in engines.items():
        mine = answers(engine, panel)
        again = answers(engine, panel)
        report[name] = {
            "rows in another state": int((mine["states"] != plain["states"]).sum()),
            "objective of a sweep, relative": relative(mine["sweep"], plain["sweep"]),
            f"objective after {SWEEPS} sweeps, relative": relative(mine["objective"], plain["objective"]),
            "posterior, largest difference": float(np.abs(mine["posterior"] - plain["posterior"]).max()),
            "log-likelihood, relative": relative(mine["log_lik"], plain["log_lik"]),
            "expected time, relative": float(np.abs(mine["time"] / plain["time"] - 1).max()),
            "two runs agree to the bit": all(np.array_equal(mine[key], again[key]) for key in mine),
        }
        print(name, json.dumps(report[name], indent=1), flush=True)
    report["fits"] = [compare_fits(SMALL), compare_fits(LARGER)]
    return report


def compare_fits(rows: int) -> dict[str, Any]:
    """Whole fits of JumpMeans by threads and by the GPU: objectives, and seconds of the second one."""
    panel, _ = jm.simulate(PROCESS, rows // LENGTH, LENGTH, random_state=1)
    found: dict[str, Any] = {"rows": panel.n_observations}
    for engine in (jm.engines.Threads(), jm.engines.Cuda(), jm.engines.Cuda("float32")):
        for _ in range(2):
            begun = time.perf_counter()
            fitted = jm.JumpMeans(M, n_init=1, engine=engine, random_state=0).fit(panel)
            took = time.perf_counter() - begun
            found.setdefault(f"{engine!r}, first", took)
        found[repr(engine)] = {"seconds": took, "objective": fitted.objective_}
    plain = found[repr(jm.engines.Threads())]["objective"]
    for engine in (jm.engines.Cuda(), jm.engines.Cuda("float32")):
        found[repr(engine)]["relative"] = relative(found[repr(engine)]["objective"], plain)
    print(json.dumps(found, indent=1), flush=True)
    return found


def relative(x: float, y: float) -> float:
    """|x - y| / |y|."""
    return abs(x - y) / abs(y)


def answers(engine: Any, panel: Any) -> dict[str, Any]:
    """What an engine says of a panel under the parameters of `start`."""
    sequences = Sequences.of(engine, panel, panel.values)
    dwells, stats = sequences.sweep(sequences.no_jumps(), start(), PRICES, SEARCH)
    expected = sequences.expect(PROCESS)
    return {
        "states": sequences.fetch(dwells).row_states(panel.offsets),
        "sweep": evaluate(stats, start(), PRICES).total,
        "objective": descend(sequences, start(), model(), SWEEPS, 0.0).cost.total,
        "posterior": sequences.smooth(PROCESS)[0],
        "log_lik": sequences.log_likelihood(PROCESS),
        "time": np.diag(expected.integrals),
    }


# ------------------------------------------------------------------------------------------------- many sequences


def make_simulator(real: Any) -> Any:
    """A kernel that draws sequences of the process above: rows at the jumps of a Poisson process of rate 1."""

    @cuda.jit(device=True)
    def uniform(i, k):
        # SplitMix64 of a counter, in (0, 1)
        z = np.uint64(i) * np.uint64(4096) + np.uint64(k)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        return (np.float64(z >> np.uint64(11)) + 0.5) / 9007199254740992.0

    @cuda.jit
    def simulate(at, tau, x, ends):
        i = cuda.grid(1)
        if i < at.shape[0]:
            k = 0
            state = int(uniform(i, k) * M)
            k += 1
            jump = -log(uniform(i, k)) / RATE
            time = 0.0
            for row in range(LENGTH):
                if row > 0:
                    k += 1
                    time -= log(uniform(i, k))
                while jump < time:
                    k += 2
                    state = (state + 1 + int(uniform(i, k - 1) * (M - 1))) % M
                    jump -= log(uniform(i, k)) / RATE
                k += 2
                normal = sqrt(-2.0 * log(uniform(i, k - 1))) * cos(6.283185307179586 * uniform(i, k))
                tau[at[i] + LANES * row] = real(time)
                x[0, at[i] + LANES * row] = real(SPACING * state + NOISE * normal)
            ends[i] = real(time)

    return simulate


class Resident(HeldOnDevice):
    """Sequences that are on the device alone."""

    def sequences(self, numbers: Any) -> Block:
        """Some of them, brought here."""
        tau, x, ends = self.layout.tau, self.layout.x[0], self.layout.sequences[3]
        at = [int(i) // LANES * LANES * LENGTH + int(i) % LANES for i in numbers]
        rows = [slice(a, a + LANES * (LENGTH - 1) + 1) for a in at]
        return Block(
            np.concatenate([tau[own].copy_to_host()[::LANES] for own in rows]).astype(float),
            LENGTH * np.arange(len(at) + 1),
            np.array([ends[int(i)] for i in numbers], float),
            np.ones(len(at)),
            np.concatenate([x[own].copy_to_host()[::LANES] for own in rows]).astype(float)[:, None],
        )


def many(rows: int, real: Any) -> Sequences:
    """`rows` rows on the device, which have never been here."""
    S = rows // LENGTH
    lengths = np.full(S, LENGTH)
    at, size = places(lengths, lambda length: length)
    there = cuda.to_device(at)
    tau, x, ends = cuda.device_array(size, real), cuda.device_array((1, size), real), cuda.device_array(S, real)
    make_simulator(real)[blocks_of(S), THREADS](there, tau, x, ends)
    numbers = np.arange(S)
    weights = np.broadcast_to(np.ones(1), S)
    one = cuda.to_device(np.ones(S))
    layout = Layout(
        real=real,
        sequences=(there, cuda.to_device(numbers * LENGTH), cuda.to_device(lengths.astype(np.int32)), ends,
                   cuda.to_device(numbers)),
        weights=one, by_number=one, tau=tau, x=x, seen=cuda.to_device(np.ones(size, np.bool_)),
        kinds=cuda.to_device(np.zeros(1, np.int8)), mask=cuda.to_device(np.zeros(1, np.uint64)), has_kinds=False,
        is_masked=False, n_sequences=S, n_rows=S * LENGTH, longest=LENGTH, lengths=lengths,
    )  # fmt: skip
    return Sequences(Resident(layout, weights, ()), weights, float(ends.copy_to_host().max()))


def timed(work: Callable[[], Any], runs: int = RUNS) -> list[float]:
    """Seconds of each run after the first."""
    seconds = []
    for _ in range(runs + 1):
        cuda.synchronize()
        begun = time.perf_counter()
        work()
        cuda.synchronize()
        seconds.append(time.perf_counter() - begun)
    return seconds[1:]


def posteriors(rows: int, real: Any) -> list[float]:
    """Seconds of the posteriors of so many rows, without the way back."""
    sequences = many(rows, real)
    propagator = Propagator.of(PROCESS, sequences.longest_gap)
    return timed(lambda: run(sequences.held, propagator, POSTERIOR), 2)


def measure(rows: int, name: str) -> dict[str, Any]:
    """Seconds of each pass over `rows` rows."""
    real = np.dtype(name).type
    begun = time.perf_counter()
    sequences = many(rows, real)
    print(f"{name}: {rows:,} rows in place after {time.perf_counter() - begun:.1f} s", flush=True)
    seconds: dict[str, list[float]] = {}
    params, state = start(), sequences.no_jumps()
    fitted: dict[str, Any] = {"dwells": state, "params": params}

    def sweep() -> None:
        fitted["dwells"], fitted["stats"] = sequences.sweep(fitted["dwells"], fitted["params"], PRICES, SEARCH)

    def fit_sweep() -> None:
        sweep()
        better = minimise(fitted["stats"], fitted["params"], model())
        fitted["cost"] = evaluate(fitted["stats"], better, PRICES).total
        evaluate(fitted["stats"], fitted["params"], PRICES)
        fitted["params"] = better

    def show(what: str, runs: list[float]) -> None:
        seconds[what] = runs
        print(
            f"  {what}: {statistics.median(runs):.3f} s, {rows / statistics.median(runs) / 1e9:.2f} G rows/s",
            flush=True,
        )

    show("sweep", timed(sweep))
    show("sweep of a fit, with new parameters and objective", timed(fit_sweep, SWEEPS))
    print(f"  rates {fitted['params'].rates.round(4)}, means {fitted['params'].emission.means.round(4)}", flush=True)
    fitted.clear()
    begun = time.perf_counter()
    descent = descend(sequences, start(), model(), SWEEPS, 0.0)
    cuda.synchronize()
    show(f"fit of {len(descent.history)} sweeps, each", [(time.perf_counter() - begun) / len(descent.history)])
    del descent
    show("log-likelihood", timed(lambda: sequences.log_likelihood(PROCESS), 2))
    show("expected statistics", timed(lambda: sequences.expect(PROCESS), 2))
    seconds[f"posteriors of 1/{SHARE} of the rows, which stay there"] = posteriors(rows // SHARE, real)
    process, _ = em_steps(sequences, PROCESS, model().constraints, 1, 0.01)
    print(f"  after an EM step: rates {process.rates.round(5)}", flush=True)
    free, whole = cuda.current_context().get_memory_info()
    return {"seconds": seconds, "bytes on the device at the end": whole - free}


def table(report: dict[str, Any]) -> str:
    """The measurements as docs/gpu.md has them."""
    lines = ["| pass | float64 | float32 |", "| --- | --- | --- |"]
    for what in report["float64"]["seconds"]:
        rows = report["rows"] // (SHARE if what.startswith("posteriors") else 1)
        cells = []
        for name in ("float64", "float32"):
            seconds = statistics.median(report[name]["seconds"][what])
            cells.append(f"{seconds:.2f} s, {rows / seconds / 1e9:.2f} G rows/s")
        lines.append(f"| {what} | {cells[0]} | {cells[1]} |")
    lines += ["", "| beside threads, 10^5 rows | float64 | float32 |", "| --- | --- | --- |"]
    for what in report["beside threads"]["float64"]:
        cells = [report["beside threads"][name][what] for name in ("float64", "float32")]
        shown = ["yes" if cell is True else f"{cell:.1g}" if isinstance(cell, float) else str(cell) for cell in cells]
        lines.append(f"| {what} | {shown[0]} | {shown[1]} |")
    lines += [
        "",
        "| whole fits of `JumpMeans(5)`, seconds | 16 cores | float64 | float32 |",
        "| --- | --- | --- | --- |",
    ]
    for fit in report["beside threads"]["fits"]:
        names = ["Threads(n_jobs=None)", *(f"Cuda(dtype='{name}', device=None)" for name in ("float64", "float32"))]
        for which, cells in {
            "the first of a process": [fit[f"{name}, first"] for name in names],
            "a later one": [fit[name]["seconds"] for name in names],
        }.items():
            lines.append(f"| {fit['rows']:,} rows, {which} | {' | '.join(f'{cell:.2f}' for cell in cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Compare, measure and write."""
    if "--table" in sys.argv:
        print(table(json.loads(OUT.read_text())))
        return
    arguments = [a for a in sys.argv[1:] if not a.startswith("-")]
    rows = int(float(arguments[0])) if arguments else 10**9
    warnings.simplefilter("ignore")
    report: dict[str, Any] = {
        "card": str(cuda.get_current_device().name),
        "versions": {name: version(name) for name in ("numba", "numba-cuda", "numpy")},
        "cores": os.cpu_count(),
        "rows": rows, "states": M, "rows of a sequence": LENGTH,
    }  # fmt: skip
    print(report, flush=True)
    if "--no-threads" not in sys.argv:
        report["beside threads"] = compare()
    for name in ("float64", "float32"):
        report[name] = measure(rows, name)
    OUT.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
