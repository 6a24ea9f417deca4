"""`jumpmeans fit` on a table of a million rows: seconds and peak memory of the whole command, by part.

python benchmarks/cli.py [rows]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import jumpmeans as jm

ROWS_EACH = 20


def write_table(path: Path, rows: int) -> None:
    """Simulated measurements of three states, as CSV."""
    P = (np.ones((3, 3)) - np.eye(3)) / 2
    process = jm.Process([0.2, 0.3, 0.1], P, emission=jm.emissions.Gaussian([0, 4, 9], sds=1))
    panel, _ = jm.simulate(process, rows // ROWS_EACH, ROWS_EACH, random_state=0)
    ids = panel.sequence_index
    with path.open("w") as file:
        file.write("patient,day,pressure\n")
        file.writelines(f"p{i},{t:.6f},{x:.3f}\n" for i, t, x in zip(ids, panel.times, panel.values[:, 0], strict=True))


def main() -> None:
    """Print one line for each command."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    env = {**os.environ, "PYTHONPATH": str(Path(jm.__file__).parents[1])}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "table.csv")
        write_table(table, rows)
        print(f"{rows} rows, {table.stat().st_size / 1e6:.0f} MB of CSV, {os.cpu_count()} cores")
        out = Path(folder, "out")
        begun = time.perf_counter()
        command = [sys.executable, "-m", "jumpmeans", "fit", table, "--states", "3", "--out", out, "--no-report", "-q"]
        subprocess.run(list(map(str, command)), check=True, env=env)
        took = time.perf_counter() - begun
        record = json.loads((out / "run.json").read_text())
        parts = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in record["seconds"].items())
        print(f"fit: {took:.1f} s ({parts}), peak {record['peak_memory_mb']:.0f} MB")
        size = (out / "model.jm").stat().st_size
        begun = time.perf_counter()
        jm.load(out / "model.jm")
        print(f"model.jm: {size / 1e6:.1f} MB, read in {time.perf_counter() - begun:.2f} s")
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-m", "jumpmeans", "--help"], check=True, env=env, stdout=subprocess.DEVNULL)
        print(f"--help: {time.perf_counter() - begun:.2f} s")


if __name__ == "__main__":
    main()
