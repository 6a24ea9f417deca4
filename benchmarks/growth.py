"""How time and memory grow: with rows, with states, with the length of a sequence; each point in a process of its own.

    python benchmarks/growth.py              # to 10^7 rows; --most 1e8 for all; writes results/growth.json
    python benchmarks/growth.py --write      # measures nothing: writes docs/speed.md of what is there

A fit is of Gaussian readings of hidden states, their number given, on one core. Times are CPU seconds, compilation
apart; memory is the most that the process had, its data included, from arrays to trajectories. By states, EM_STEPS
iterations of EM stand beside the fit, from the true process.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from scipy.optimize import nnls

import jumpmeans as jm
from jumpmeans.comparators import EM
from jumpmeans.engines import Threads

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "growth.json"
ONE_CORE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
# Rows that are simulated; larger panels are these, again and again, under other ids.
DRAWN = 1_000_000
EM_STEPS = 20
# Of many states, fewer iterations are run, and their time is scaled: each takes as long as any other.
MANY_STATES, FEW_STEPS = 50, 2
# What each row of points varies: (states, length, rows).
POINTS = {
    "rows": [(5, 20, 10**k) for k in (4, 5, 6, 7, 8)],
    "states": [(M, 20, 200_000) for M in (2, 5, 10, 20, 50, 100)],
    "length": [(5, 10**k, max(10**k, 10**6)) for k in (2, 3, 4, 5, 6, 7)],
}


def process_of(M: int) -> jm.Process:
    """M states four sds apart that stay about five gaps each."""
    rng = np.random.default_rng(0)
    P = np.zeros((M, M))
    for m in range(M):
        P[m, np.arange(M) != m] = rng.dirichlet(np.ones(M - 1))
    return jm.Process(rng.gamma(5.0, 0.04, M), P, emission=jm.emissions.Gaussian(4.0 * np.arange(M), 1.0))


def arrays_of(M: int, length: int, rows: int) -> tuple[Any, Any, Any]:
    """Times, readings and ids of a panel, as a user has them."""
    drawn = max(min(rows, DRAWN) // length, 1)
    panel, _ = jm.simulate(process_of(M), drawn, min(length, DRAWN), random_state=1)
    if length > DRAWN:  # one sequence of these rows, again and again
        again, lasts = length // DRAWN, panel.times[-1] + 1.0
        times = (panel.times + lasts * np.arange(again)[:, None]).ravel()
        return times, np.tile(panel.values[:, 0], again), np.zeros(again * DRAWN, np.int64)
    copies = max(rows // (drawn * length), 1)
    ids = np.repeat(np.arange(copies * drawn), length)
    return np.tile(panel.times, copies), np.tile(panel.values[:, 0], copies), ids


def peak() -> float:
    """Most memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def limits() -> dict[str, float]:
    """What the machine can do at most, seconds each: a byte read and written, a logarithm, an addition compared."""
    n = 20_000_000
    a, b = np.random.default_rng(0).random((2, n)) + 0.5

    @njit(error_model="numpy")
    def logs(x: Any) -> float:
        total = 0.0
        for v in x:
            total += np.log(v)
        return total

    @njit(error_model="numpy")
    def least(x: Any) -> float:
        best = np.inf
        for v in x:
            best = min(best, v + 1.5)
        return best

    def seconds(work: Callable[[], Any]) -> float:
        work()
        times = []
        for _ in range(5):
            begun = time.process_time()
            work()
            times.append(time.process_time() - begun)
        return min(times)

    small = a[:100_000]
    return {
        "byte": seconds(lambda: np.copyto(b, a)) / (16 * n),
        "log": seconds(lambda: [logs(small) for _ in range(20)]) / (20 * len(small)),
        "least": seconds(lambda: [least(small) for _ in range(20)]) / (20 * len(small)),
    }


def steps_of_em(M: int, panel: jm.Panel) -> float:
    """CPU seconds of EM_STEPS iterations of EM."""
    steps = FEW_STEPS if M >= MANY_STATES else EM_STEPS
    options = {"emission": "gaussian", "tol": 0.0, "accelerate": False, "engine": Threads(1), "start": process_of(M)}
    EM(M, max_iter=1, **options).fit(panel.select(np.arange(20)))
    model = EM(M, max_iter=steps, **options)
    begun = time.process_time()
    model.fit(panel)
    return (time.process_time() - begun) * EM_STEPS / steps


def point(M: int, length: int, rows: int, with_em: bool) -> dict[str, Any]:
    """Time and memory of one fit and one decode, and of steps of EM if asked for."""
    model = jm.JumpMeans(M, emission="gaussian", engine=Threads(1))
    small = jm.simulate(process_of(M), 20, 20, random_state=0)[0]
    known = jm.JumpMeans.from_process(process_of(M), engine=Threads(1))
    model.fit(small), known.decode(small, criterion="online")
    arrays = arrays_of(M, length, rows)
    begun = time.process_time()
    panel = jm.Panel.from_arrays(*arrays)
    read = time.process_time() - begun
    del arrays
    begun = time.process_time()
    known.decode(panel, criterion="online")
    decode = time.process_time() - begun
    begun = time.process_time()
    model.fit(panel)
    fit = time.process_time() - begun
    most = peak()
    seconds = {"panel": read, "decode": decode, "fit": fit}
    if with_em:
        seconds["em"] = steps_of_em(M, panel)
    return {
        "states": M, "length": length, "rows": panel.n_observations, "sweeps": model.n_iter_,
        "seconds": seconds, "bytes": most,
    }  # fmt: skip


def slope(points: list[dict[str, Any]], by: str, of: str) -> float:
    """Exponent of growth: the slope of log time (or memory) over log size, for the larger half of the points.

    By states and by length, those of as many rows.
    """
    if by != "rows":
        points = [p for p in points if p["rows"] == points[0]["rows"]]
    half = points[len(points) // 2 - 1 :]
    x = np.log([p[by] for p in half])
    y = np.log([p["bytes"] if of == "bytes" else p["seconds"][of] for p in half])
    return float(np.polyfit(x, y, 1)[0])


def markdown(found: dict[str, Any]) -> str:
    """The tables of docs/speed.md."""
    lines = []
    for by, points in found["points"].items():
        beside = "em" in points[0]["seconds"]
        more = f" {EM_STEPS} iterations of EM, s | fit / those |" if beside else ""
        lines += [f"| {by} | decode, s | fit, s | sweeps of the fit | memory, GB |{more}"]
        lines += ["|---|---|---|---|---|" + 2 * beside * "---|"]
        for p in points:
            times = p["seconds"]
            line = (
                f"| {p[by]:,} | {times['decode']:.3g} | {times['fit']:.3g} | {p['sweeps']} | {p['bytes'] / 1e9:.2f} |"
            )
            lines.append(line + (f" {times['em']:.3g} | {times['fit'] / times['em']:.2f} |" if beside else ""))
        if len(points) > 2:
            grows = [slope(points, by, of) for of in ("decode", "fit", "bytes")]
            lines.append(f"| exponent | {grows[0]:.2f} | {grows[1]:.2f} | | {grows[2]:.2f} |" + 2 * beside * " |")
        others = {
            "rows": "5 states, 20 rows each",
            "states": "200,000 rows, 20 each",
            "length": "5 states, 10^6 rows; a longer sequence has its own, and is no part of the exponent",
        }
        lines += ["", f"({others[by]}.)", ""]
    return "\n".join(lines).rstrip()


def cost_model(found: dict[str, Any]) -> dict[str, float]:
    """Seconds of one sweep for each row: constant, per state and per pair of states, none below 0; and bytes a row."""
    points = found["points"]["states"]
    M = np.array([p["states"] for p in points], float)
    seconds = np.array([p["seconds"]["decode"] / p["rows"] for p in points])
    terms = np.stack([np.ones_like(M), M, M**2], axis=1)
    share, _ = nnls(terms / seconds[:, None], np.ones_like(seconds))  # relative errors count alike
    small, *_, large = found["points"]["rows"][-3:]
    each = (large["bytes"] - small["bytes"]) / (large["rows"] - small["rows"])
    worst = float(np.abs(terms @ share / seconds - 1.0).max())
    return {"row": share[0], "state": share[1], "pair": share[2], "worst": worst, "bytes": each}


def costs(found: dict[str, Any]) -> str:
    """What the model says, and what it comes to for 10^12 rows."""
    model = cost_model(found)
    M, rows, sweeps = 5, 1e12, 15
    sweep = (model["row"] + model["state"] * M + model["pair"] * M**2) * rows
    core_hours = sweep * sweeps / 3600.0
    memory = model["bytes"] * rows
    machines = np.ceil(memory / 256e9)
    return (
        f"A sweep takes {1e9 * model['row']:.3g} ns a row, {1e9 * model['state']:.3g} ns more for each state and "
        f"{1e9 * model['pair']:.3g} ns for each pair of states (fitted to the table by states; off by at most "
        f"{100 * model['worst']:.0f} %). A fit holds about {model['bytes']:.0f} bytes a row. So 10^12 rows of {M} "
        f"states ask for {core_hours / sweeps:,.0f} core-hours a sweep, {core_hours:,.0f} for {sweeps} sweeps, and for "
        f"{memory / 1e12:.0f} TB of memory over all machines: {machines:,.0f} machines of 256 GB and 64 cores would "
        f"need {core_hours / (64 * machines):.2g} hours, if they share the work evenly and what travels costs nothing. "
        "Fewer machines work out of core."
    )


def bounds(found: dict[str, Any]) -> str:
    """A decode of 5 states beside what its bytes and its operations take at least on this machine."""
    limit, M = found["limits"], 5
    p = max((p for p in found["points"]["rows"]), key=lambda p: p["rows"] if p["rows"] <= 10**7 else 0)
    measured = p["seconds"]["decode"] / p["rows"]
    # read: time, value, kind, whether seen; written: costs, and read again three times; states and dwells
    touched = 8 + 8 + 2 + 4 * 8 * M + 16
    # each candidate: a logarithm a state, all moves between states; each row: forward and backward bounds
    rows = [
        (f"{touched} bytes read or written", touched * limit["byte"]),
        (f"{M} logarithms", M * limit["log"]),
        (f"{M * M + 8 * M} additions compared", (M * M + 8 * M) * limit["least"]),
    ]
    lines = [f"| a row, {M} states | at least, ns | share of a decode |", "|---|---|---|"]
    lines += [f"| {name} | {1e9 * least:.1f} | {100 * least / measured:.0f} % |" for name, least in rows]
    return "\n".join([*lines, f"| a decode, measured | {1e9 * measured:.0f} | |"])


def write(found: dict[str, Any]) -> None:
    """Put the tables into the page on speed."""
    page = ROOT / "docs" / "speed.md"
    text = page.read_text()
    for name, block in (("growth table", markdown(found)), ("limits", bounds(found)), ("cost model", costs(found))):
        start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, rest = text.split(start)
        text = before + start + block + end + rest.split(end)[1]
    page.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, default=1e7, help="leave out points of more rows")
    parser.add_argument("--only", nargs="*", choices=POINTS, help="these; the others stay as they are written")
    parser.add_argument("--dry", action="store_true", help="print, write nothing")
    parser.add_argument("--write", action="store_true", help="measure nothing: write docs/speed.md of what is there")
    parser.add_argument("--point", nargs=3, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--em", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.point:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(json.dumps(point(*asked.point, with_em=asked.em)))
        return
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"points": {}}
    if asked.write:
        write(found)
        return
    if not asked.dry:
        found["limits"] = limits()
    for by in asked.only or POINTS:
        done = []
        for one in (p for p in POINTS[by] if p[2] <= asked.most):
            command = [sys.executable, __file__, "--point", *map(str, one), *(["--em"] if by == "states" else [])]
            run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ONE_CORE})
            if run.returncode:
                raise SystemExit(f"{one}: ended with {run.returncode}\n{run.stderr[-2000:]}")
            done.append(json.loads(run.stdout.splitlines()[-1]))
            print(
                by, one, {k: round(v, 3) for k, v in done[-1]["seconds"].items()}, f"{done[-1]['bytes'] / 1e9:.2f} GB"
            )
        if not asked.dry:
            found["points"][by] = done
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
