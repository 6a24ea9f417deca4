"""`jumpmeans` on a table of a million rows: seconds and peak memory of each command, and of `--help`.

python benchmarks/cli.py [--rows N] prints it; with `--write` the numbers go to results/cli.json and into
docs/command-line.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jumpmeans as jm

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results/cli.json", HERE.parent / "docs/command-line.md"
START, END = "<!-- cli speed -->\n", "\n<!-- end of cli speed -->"
ROWS_EACH = 20


def write_table(path: Path, rows: int) -> None:
    """Simulated measurements of three states, as CSV."""
    import numpy as np

    P = (np.ones((3, 3)) - np.eye(3)) / 2
    process = jm.Process([0.2, 0.3, 0.1], P, emission=jm.emissions.Gaussian([0, 4, 9], sds=1))
    panel, _ = jm.simulate(process, rows // ROWS_EACH, ROWS_EACH, random_state=0)
    ids = panel.sequence_index
    with path.open("w") as file:
        file.write("patient,day,pressure\n")
        file.writelines(f"p{i},{t:.6f},{x:.3f}\n" for i, t, x in zip(ids, panel.times, panel.values[:, 0], strict=True))


def cost(*arguments: Any) -> dict[str, float]:
    """Seconds, those of all cores together, and most memory (MB) of one command, a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(Path(jm.__file__).parents[1])}
    begun = time.perf_counter()
    command = [sys.executable, "-m", "jumpmeans", *map(str, arguments)]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} must end with 0, got {process.returncode}.")
    return {
        "seconds": time.perf_counter() - begun,
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_mb": used.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10),
    }


def measure(rows: int) -> dict[str, Any]:
    """Fit, decode and the report of a table of so many rows; the quickest of five `--help`."""
    found: dict[str, Any] = {"rows": rows, "cores": os.cpu_count(), "commands": {}}
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder, "table.csv"), Path(folder, "out")
        # by another process, so that this one stays small: a child's peak counts what its parent had
        subprocess.run([sys.executable, __file__, "--rows", str(rows), "--table", table], check=True)
        found["table_mb"] = table.stat().st_size / 1e6
        commands = {
            "fit": ("fit", table, "--states", 3, "--out", out, "-q"),
            "decode": ("decode", out, table, "--out", Path(folder, "decoded.csv"), "-q"),
        }
        for name, arguments in commands.items():
            found["commands"][name] = cost(*arguments)
            print(name, found["commands"][name])
        found["parts"] = json.loads((out / "run.json").read_text())["seconds"]
        found["model_mb"] = (out / "model.jm").stat().st_size / 1e6
        found["report_mb"] = (out / "report.html").stat().st_size / 1e6
    found["help"] = min((cost("--help") for _ in range(5)), key=lambda used: used["seconds"])
    return found


def markdown(found: dict[str, Any]) -> str:
    """What the page on the command line says of it."""
    told = {
        name: f"{used['cpu_seconds']:.0f} seconds of CPU and {used['peak_mb']:.0f} MB of memory"
        for name, used in found["commands"].items()
    }
    return (
        f"A table of {found['rows']:,} rows ({found['table_mb']:.0f} MB of CSV, three hidden states) takes `fit`, with "
        f"its report, {told['fit']}, and `decode` {told['decode']}; `model.jm` has {found['model_mb']:.1f} MB, "
        f"`report.html` {found['report_mb']:.1f} MB. "
        f"`jumpmeans --help` takes {found['help']['cpu_seconds']:.2f} seconds of CPU."
    )


def main() -> None:
    """Print the numbers, and keep them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--table", type=Path, help="only write the table, into this file")
    parser.add_argument("--write", action="store_true", help="keep the numbers, and put them into the page")
    options = parser.parse_args()
    if options.table is not None:
        write_table(options.table, options.rows)
        return
    found = measure(options.rows)
    print(json.dumps(found, indent=1))
    if options.write:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        head, rest = PAGE.read_text().split(START)
        PAGE.write_text(f"{head}{START}{markdown(found)}{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
