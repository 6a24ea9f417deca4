"""The first time: seconds to import the package, of the first fit ever (it compiles), and of the second process.

`python benchmarks/cold.py` prints them; with `--write` the numbers go to results/cold.json and into docs/speed.md.
Every fit is a process of its own, from its start to its end; the first one finds an empty folder of compiled kernels,
and on two cores or more has a helper (`jumpmeans.ahead`), whose CPU seconds are counted with its own.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "benchmarks/results/cold.json", ROOT / "docs/speed.md"
START, END = "<!-- cold start -->\n", "\n<!-- end of cold start -->"
FAMILIES = ("gaussian", "categorical")
REPEATS = 5


def run(code: str, folder: str | None = None) -> tuple[dict[str, float], str]:
    """Seconds of a process of its own, those of all its cores together, and what it printed."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "benchmarks")])}
    if folder is not None:
        env["NUMBA_CACHE_DIR"] = folder
    begun = time.perf_counter()
    with subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"python -c {code!r} must end with 0, got {process.returncode}.")
    return {"seconds": time.perf_counter() - begun, "cpu_seconds": used.ru_utime + used.ru_stime}, said


def quickest(code: str, folder: str | None = None) -> dict[str, float]:
    """The one of several runs that took the least time of processors."""
    return min((run(code, folder)[0] for _ in range(REPEATS)), key=lambda one: one["cpu_seconds"])


def fit(family: str) -> None:
    """A small fit of 3 states; prints what was said, a list of lines."""
    import jumpmeans as jm

    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("jumpmeans")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    P = [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]
    measured, symbols = (
        jm.emissions.Gaussian([0, 4, 9], sds=1),
        jm.emissions.Categorical([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], ["x", "y", "z"]),
    )
    law = jm.Process([0.2, 0.3, 0.1], P, emission=measured if family == "gaussian" else symbols)
    panel, _ = jm.simulate(law, 100, 20, random_state=0)
    said.clear()  # of the simulation, which compiles nothing of a fit
    jm.JumpMeans(3, emission=family).fit(panel)
    print(json.dumps(said))


def measure() -> dict[str, Any]:
    """All of it, one family after the other."""
    run("import jumpmeans")  # compiles its bytecode, as an installer does
    found: dict[str, Any] = {"cores": os.cpu_count(), "import": quickest("import jumpmeans"), "fits": {}}
    for family in FAMILIES:
        code = f"import cold; cold.fit({family!r})"
        with tempfile.TemporaryDirectory() as folder:
            first, said = run(code, folder)
            second = quickest(code, folder)
        lines = json.loads(said)
        found["fits"][family] = {"first": first, "second": second, "said": lines}
    return found


def markdown(found: dict[str, Any]) -> str:
    """The table of docs/speed.md."""

    def row(name: str, one: dict[str, float], aim: str) -> str:
        return f"| {name} | {one['seconds']:.2f} | {one['cpu_seconds']:.2f} | {aim} |"

    lines = ["| a process of its own | seconds | CPU seconds | aim |", "|---|---:|---:|---:|"]
    lines.append(row("`import jumpmeans`", found["import"], "0.5"))
    for family, own in found["fits"].items():
        lines.append(row(f"first fit ever, {family}, 3 states", own["first"], "20"))
        lines.append(row(f"the same, second process, {family}", own["second"], "2"))
    said = next(line for line in found["fits"][FAMILIES[0]]["said"] if line.startswith("compiling"))
    return "\n".join([*lines, "", f"While it waits, the first fit says such as `{said}`."])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="keep the numbers, and write them into docs/speed.md")
    arguments = parser.parse_args()
    found = measure()
    print(markdown(found))
    for family, own in found["fits"].items():
        print(family, *own["said"], sep="\n  ")
    if arguments.write:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        head, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
        PAGE.write_text(head + START + markdown(found) + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
