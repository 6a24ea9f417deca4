"""Is this tree slower than an earlier one? `python benchmarks/against.py a711b95` fits the same panels with both.

CPU time on one thread, the least of several rounds, compilation apart; only what is public in both trees is used, and
both make as many starts, but where a task says "by default". The earlier tree is checked out into a temporary folder,
where its kernels are compiled: minutes. `--only TEXT` takes the tasks whose names hold a text. With `--write` the
numbers go to results/against.json and the table of CONTRIBUTING.md.
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

ROOT = Path(__file__).parents[1]
# What sweeps alone take is the difference of two fits.
FEW, MANY = 2, 12
SMALL, LARGE = "500 x 15 rows, 3 states", "5,000 x 20 rows, 5 states"
RESULTS = ROOT / "benchmarks/results/against.json"
PAGE, MARK, END = ROOT / "CONTRIBUTING.md", "<!-- against -->", "<!-- end of against -->"


def tasks():
    """Name → what is timed."""
    import numpy as np

    import jumpmeans as jm
    from jumpmeans.comparators import EM, Gibbs

    thread = {"engine": jm.engines.Threads(1)}
    one = thread | {"n_init": 1}

    def process(M, emission=None, rate=0.3):
        chain = (np.ones((M, M)) - np.eye(M)) / (M - 1)
        return jm.Process(np.full(M, rate), chain, emission=emission)

    def simulated(M, emission, sequences, rows):
        return jm.simulate(process(M, emission), sequences, rows, random_state=0)[0]

    normal = simulated(3, jm.emissions.Gaussian([0.0, 3.0, 6.0], 1.0), 100, 20)
    symbols = simulated(3, jm.emissions.Categorical(0.7 * np.eye(3) + 0.1), 100, 20)
    small = simulated(3, jm.emissions.Gaussian([0.0, 4.0, 8.0], 1.0), 500, 15)
    large = simulated(5, jm.emissions.Gaussian(4.0 * np.arange(5), 1.0), 5000, 20)
    labels = simulated(10, None, 500, 20)
    icu, edss = jm.datasets.load_icu_pressure(), jm.datasets.load_edss()

    def sweeps(panel, M, n):
        return lambda: jm.JumpMeans(M, max_iter=n, tol=1e-300, refine=0, **one).fit(panel)

    return {
        "Gibbs, 2,000 readings": lambda: Gibbs(3, emission="gaussian", **thread).fit(normal),
        "Gibbs, 2,000 symbols": lambda: Gibbs(3, emission="categorical", **thread).fit(symbols),
        f"{FEW} sweeps and the rest of a fit, {SMALL}": sweeps(small, 3, FEW),
        f"{MANY} sweeps and the rest of a fit, {SMALL}": sweeps(small, 3, MANY),
        f"{FEW} sweeps and the rest of a fit, {LARGE}": sweeps(large, 5, FEW),
        f"{MANY} sweeps and the rest of a fit, {LARGE}": sweeps(large, 5, MANY),
        "JumpMeans, 10 labels, 500 x 20 rows": lambda: jm.JumpMeans(emission="direct", **one).fit(labels),
        "JumpMeans, ICU, 6 states": lambda: jm.JumpMeans(6, **one).fit(icu),
        "JumpMeans, ICU, 6 states, by default": lambda: jm.JumpMeans(6, **thread).fit(icu),
        "InfiniteJumpMeans, ICU": lambda: jm.InfiniteJumpMeans(**thread).fit(icu),
        "EM, EDSS": lambda: EM(emission="direct", **one).fit(edss),
        "EM, ICU, 6 states": lambda: EM(6, emission="gaussian", **one).fit(icu),
        "EM, ICU, 6 states, by default": lambda: EM(6, emission="gaussian", **thread).fit(icu),
    }  # fmt: skip


def serve() -> None:
    """Time the task named on each line that comes in, once it has run before."""
    import warnings

    warnings.simplefilter("ignore")
    known, warm = tasks(), set()
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        name = line.strip()
        if name not in warm:
            known[name]()
            warm.add(name)
        begun = time.process_time()
        known[name]()
        print(time.process_time() - begun, flush=True)


def start(tree: Path) -> subprocess.Popen[str]:
    """A process that serves one tree."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
    return subprocess.Popen(
        [sys.executable, __file__, "--serve"], env=os.environ | threads | {"PYTHONPATH": str(tree / "src")},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def ratio(name: str, before: float, after: float) -> dict[str, float]:
    """A row of the table, which is printed too."""
    print(f"{name:<60}{before:>9.3f}{after:>9.3f}{after / before:>7.2f}", flush=True)
    return {"before": before, "after": after, "ratio": after / before}


def table(results: dict[str, Any]) -> str:
    """The numbers as Markdown."""
    lines = ["| CPU seconds | before | now | ratio |", "| --- | --- | --- | --- |"]
    for name, row in results["cpu_seconds"].items():
        lines.append(f"| {name} | {row['before']:.3f} | {row['after']:.3f} | {row['ratio']:.2f} |")
    return "\n".join(lines)


def compare(earlier: Path, rounds: int, only: str) -> dict[str, dict[str, float]]:
    """Least CPU seconds of each task in the earlier tree and in this one, in turns."""
    trees = {"before": start(earlier), "after": start(ROOT)}
    names, _ = (json.loads(tree.stdout.readline()) for tree in trees.values())
    found: dict[str, dict[str, float]] = {}
    for name in (name for name in names if only in name):
        took: dict[str, list[float]] = {which: [] for which in trees}
        for _ in range(rounds):
            for which, tree in trees.items():
                tree.stdin.write(f"{name}\n")
                tree.stdin.flush()
                took[which].append(float(tree.stdout.readline()))
        found[name] = ratio(name, *(min(took[which]) for which in trees))
    for size in (SMALL, LARGE) if not only else ():
        few, many = (found[f"{n} sweeps and the rest of a fit, {size}"] for n in (FEW, MANY))
        name = f"{MANY - FEW} sweeps alone, {size}"
        found[name] = ratio(name, *(many[which] - few[which] for which in trees))
    for tree in trees.values():
        tree.stdin.close()
        tree.wait()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("earlier", nargs="?", default="a711b95", help="a revision, or the folder of an earlier tree")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="text that the names of tasks must hold")
    parser.add_argument("--write", action="store_true", help="keep the numbers, and the table of them")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    if options.write and options.only:
        parser.error("--write must be of all tasks, got --only; leave it out.")
    git = ["git", "-C", str(ROOT)]
    print(f"{'CPU seconds':<60}{'before':>9}{'after':>9}{'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(options.earlier)
        if checked_out := not (tree / "src").is_dir():
            tree = Path(folder) / "earlier"
            subprocess.run([*git, "worktree", "add", "-q", "--detach", str(tree), options.earlier], check=True)
        try:
            found = compare(tree, options.rounds, options.only)
        finally:
            if checked_out:
                subprocess.run([*git, "worktree", "remove", "--force", str(tree)], check=False)
    if options.write:
        head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True).stdout
        about = {"before": options.earlier, "after": head.strip(), "rounds": options.rounds}
        results = about | {"cpu_seconds": found}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        text = PAGE.read_text()
        before, after = text.split(MARK)[0], text.split(END)[1]
        PAGE.write_text(f"{before}{MARK}\n{table(results)}\n{END}{after}")


if __name__ == "__main__":
    main()
