"""What a cluster costs: bytes that go out and come back in a sweep, and its time beside threads.

`python benchmarks/cluster.py` writes benchmarks/results/cluster.json and the table of docs/cluster.md.
`python benchmarks/cluster.py larger ROWS GIGABYTES [FOLDER]` fits a panel of so many rows, out of core, on two workers
of so much memory each, and then the same rows in the memory of a process of its own; `larger 1e8 2` is the large one.
FOLDER keeps the files, of which so many are taken as make the rows. Its numbers go into both as well, and replace those
of as many rows. Fits are of few sweeps (FEW): what is asked is whether they fit, and whether they are equal.
"""

from __future__ import annotations

import json
import os
import pickle
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import distributed
import numpy as np

import jumpmeans as jm
from jumpmeans.model.objective import Prices
from jumpmeans.model.params import Params
from jumpmeans.passes import Search, Sequences
from jumpmeans.passes.sweep import sweep

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "cluster.json"
PAGE = ROOT / "docs" / "cluster.md"
BEGIN, END = "<!-- shipped -->\n", "<!-- end of shipped -->"
PRICES, SEARCH = Prices(1.0, np.ones(1), 1.0, 1.0, 0.01), Search(1, 1, 0, 0)
ROLES = {"id": "id", "time": "time", "value": "value"}
ROWS_OF_A_FILE = 1_000_000
FEW = {"max_iter": 2, "tol": 1.0, "refine": 0}


def process(M: int) -> jm.Process:
    return jm.Process(
        np.full(M, 0.3), (1 - np.eye(M)) / (M - 1), emission=jm.emissions.Gaussian(4.0 * np.arange(M), 1.0)
    )


def shipped(M: int, length: int, rows: int = 400_000) -> dict[str, Any]:
    """Bytes of one sweep: to each worker, from all of them, and of the rows themselves."""
    law = process(M)
    panel, _ = jm.simulate(law, rows // length, length, random_state=0)
    sequences = Sequences.of(jm.engines.Threads(1), panel, law.emission.encode(panel))
    params = Params(law.rates, law.transition_probs, law.emission)
    out = []

    class Watched:
        """What goes through a pass, as it would be pickled."""

        def run(self, work: Any, state: Any, *shared: Any) -> Any:
            done = sequences.held.run(work, state, *shared)
            if work is sweep:
                out.append((len(pickle.dumps((work, *shared), 5)), len(pickle.dumps(done[1], 5))))
            return done

    Sequences(Watched(), sequences.weights, sequences.longest_gap).decode(params, PRICES, SEARCH)  # type: ignore[arg-type]
    to_worker, back = out[-1]
    stats = sequences.decode(params, PRICES, SEARCH)[1]
    dwells = stats.run_state.nbytes + stats.run_time.nbytes + stats.weights.nbytes
    return {
        "states": M,
        "rows_of_a_sequence": length,
        "to_each_worker": to_worker,
        "back_for_a_row": back / rows,
        "of_these_running_dwells": dwells / back,
        "rows_bytes": (panel.times.nbytes + panel.values.nbytes) / rows,
        "blocks": len(sequences.held),
    }


def sweep_seconds(sequences: Sequences, law: jm.Process, repeats: int = 4) -> float:
    params = Params(law.rates, law.transition_probs, law.emission)
    dwells, times = sequences.no_jumps(), []
    for _ in range(repeats):
        begun = time.perf_counter()
        dwells, _ = sequences.sweep(dwells, params, PRICES, SEARCH)
        times.append(time.perf_counter() - begun)
    return min(times[1:])


def write_files(folder: Path, rows: int, length: int = 20) -> None:
    """A panel of 5 states in Parquet, a part at a time; ids go on from file to file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    law, done = process(5), 0
    for k in range(-(-rows // ROWS_OF_A_FILE)):
        n = min(ROWS_OF_A_FILE, rows - k * ROWS_OF_A_FILE) // length
        part, _ = jm.simulate(law, n, length, random_state=k)
        table = {"id": part.sequence_index + done, "time": part.times, "value": part.values[:, 0]}
        pq.write_table(pa.table(table), folder / f"visits-{k:05}.parquet")
        done += n


def beside_threads(rows: int = 400_000) -> dict[str, float]:
    """Wall seconds of a sweep on two workers and on two threads, in turns."""
    law = process(5)
    panel, _ = jm.simulate(law, rows // 20, 20, random_state=0)
    x = law.emission.encode(panel)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        engines = {"threads": jm.engines.Threads(2), "dask": jm.engines.Dask(client)}
        held = {name: Sequences.of(engine, panel, x) for name, engine in engines.items()}
        turns = [{name: sweep_seconds(held[name], law) for name in held} for _ in range(3)]
    return {f"seconds_{name}": min(turn[name] for turn in turns) for name in held}


def larger(rows: int, gigabytes: float, folder: Path | None = None) -> dict[str, Any]:
    """A fit on two workers of so much memory each and one in memory: what they took, and whether they are equal."""
    made = folder or Path(tempfile.mkdtemp(prefix="visits-"))
    if not any(made.glob("*.parquet")):
        write_files(made, rows)
    paths = sorted(made.glob("*.parquet"))[: -(-rows // ROWS_OF_A_FILE)]
    try:
        there = out_of_core(paths, gigabytes)
        print(json.dumps(there, indent=1), flush=True)
        here = json.loads(subprocess.check_output([sys.executable, __file__, "in-memory", *map(str, paths)], text=True))
    finally:
        if folder is None:
            shutil.rmtree(made)
    equal = all(there[name] == here[name] for name in ("rows", "sweeps", "objective", "rates"))
    return {"rows": here["rows"], "equal_bits": equal, "out_of_core": there, "in_memory": here}


def out_of_core(paths: list[Path], gigabytes: float) -> dict[str, Any]:
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, memory_limit=int(gigabytes * 2**30), dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        begun = time.perf_counter()
        panel = jm.scan_panel(paths, engine=jm.engines.Dask(client), **ROLES)
        read = time.perf_counter() - begun
        print(panel, f"scanned in {read:.0f} s", flush=True)
        model = jm.JumpMeans(5, **FEW).fit(panel)
        seconds = time.perf_counter() - begun - read
        peaks, cpu = client.run(peak_memory), client.run(time.process_time)
    return {
        "gigabytes_a_worker": gigabytes,
        **told(model, panel.n_observations, read, seconds),
        "cpu_seconds_of_workers": sum(cpu.values()),
        "peak_gigabytes_of_a_worker": max(peaks.values()) / 2**30,
        "peak_gigabytes_of_the_client": peak_memory() / 2**30,
    }


def in_memory(paths: list[str]) -> dict[str, Any]:
    """The same fit of the same rows, from arrays, in this process."""
    import pyarrow.parquet as pq

    begun = time.perf_counter()
    edges = np.cumsum([0, *(pq.read_metadata(path).num_rows for path in paths)])
    times, values, ids = np.empty(edges[-1]), np.empty(edges[-1]), np.empty(edges[-1], np.int64)
    for path, i, j in zip(paths, edges, edges[1:], strict=False):
        read = pq.read_table(path)
        times[i:j], values[i:j], ids[i:j] = (read[name].to_numpy() for name in ("time", "value", "id"))
    del read
    panel = jm.Panel.from_arrays(times, values, ids)
    del times, values, ids
    read = time.perf_counter() - begun
    model = jm.JumpMeans(5, engine=jm.engines.Threads(2), **FEW).fit(panel)
    seconds = time.perf_counter() - begun - read
    return told(model, panel.n_observations, read, seconds) | {
        "cpu_seconds": time.process_time(),
        "peak_gigabytes": peak_memory() / 2**30,
    }


def told(model: Any, rows: int, read: float, seconds: float) -> dict[str, Any]:
    """What both say of a fit."""
    return {
        "rows": rows,
        "read_seconds": read,
        "fit_seconds": seconds,
        "sweeps": model.n_iter_,
        "objective": model.objective_,
        "rates": model.rates_.tolist(),
    }


def peak_memory() -> int:
    """Most bytes that this process ever had in memory."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def table(found: dict[str, Any]) -> str:
    lines = [
        "| states | rows of a sequence | to each worker | back, a row | of these running dwells | the row itself |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {r['states']} | {r['rows_of_a_sequence']:,} | {r['to_each_worker'] / 1000:.1f} kB "
        f"| {r['back_for_a_row']:.2f} B "
        f"| {100 * r['of_these_running_dwells']:.0f} % | {r['rows_bytes']:.0f} B |"
        for r in found["shipped"]
    ]
    seconds = found["sweep"]
    lines += [
        "",
        f"A sweep of 400,000 rows of 5 states, in sequences of 20: {seconds['seconds_threads']:.2f} s on two threads "
        f"and {seconds['seconds_dask']:.2f} s on two workers of one machine.",
    ]
    if found.get("larger"):
        lines += ["", *table_of_larger(found["larger"])]
    return "\n".join(lines) + "\n\n"


def table_of_larger(found: list[dict[str, Any]]) -> list[str]:
    """Fits out of core beside the same in memory, by their rows."""
    lines = [
        f"Out of core: a fit of 5 states, of {FEW['max_iter']} sweeps at most and the last decode, on two workers of "
        "one machine, beside two threads with all rows in memory.",
        "",
        "| rows | limit of a worker | it took | the client | scan | fit | in memory, it took | fit | same bits |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for own in found:
        there, here = own["out_of_core"], own["in_memory"]
        lines.append(
            f"| {own['rows']:,} | {there['gigabytes_a_worker']:g} GB | {there['peak_gigabytes_of_a_worker']:.2f} GB "
            f"| {there['peak_gigabytes_of_the_client']:.2f} GB | {there['read_seconds']:.0f} s "
            f"| {there['fit_seconds']:.0f} s | {here['peak_gigabytes']:.2f} GB | {here['fit_seconds']:.0f} s "
            f"| {'yes' if own['equal_bits'] else 'no'} |"
        )
    return lines


def main() -> None:
    if sys.argv[1:2] == ["in-memory"]:
        print(json.dumps(in_memory(sys.argv[2:])))
        return
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if sys.argv[1:2] == ["larger"]:
        new = larger(int(float(sys.argv[2])), float(sys.argv[3]), Path(sys.argv[4]) if len(sys.argv) > 4 else None)
        others = [own for own in found.get("larger", []) if own["rows"] != new["rows"]]
        found["larger"] = sorted([*others, new], key=lambda own: own["rows"])
    else:
        found["shipped"] = [shipped(M, L) for M, L in ((5, 20), (5, 1000), (50, 20), (50, 1000))]
        found["sweep"] = beside_threads()
    print(table(found))
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    PAGE.write_text(head + BEGIN + table(found) + END + rest.partition(END)[2], encoding="utf-8")
    found["machine"] = {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "distributed": distributed.__version__,
    }
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
