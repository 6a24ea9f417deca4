"""What covariates cost EM: CPU time of one step with and without them, in turns, in one run.

Five states, all moves; `pairs`: 1,000 distinct pairs of gap and covariates. `rows`: every row has a gap and covariates
of its own. Run: python benchmarks/covariates.py [--write]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

import jumpmeans as jm
from jumpmeans.comparators import EM
from jumpmeans.engines import Threads
from jumpmeans.fit.ascent import Task, look
from jumpmeans.model.dependence import lay_out
from jumpmeans.passes import Sequences

STATES, ROUNDS = 5, 7
SIZES = {"pairs, 5,000 rows": (500, True), "pairs, 20,000 rows": (2000, True), "rows, 20,000 rows": (2000, False)}


def panel_of(n_sequences: int, grouped: bool) -> jm.Panel:
    """10 visits of each sequence, two covariates."""
    rng = np.random.default_rng(0)
    P = np.full((STATES, STATES), 1.0 / (STATES - 1)) - np.eye(STATES) / (STATES - 1)
    process = jm.Process(np.full(STATES, 0.4), P)
    gaps = rng.choice(np.arange(1, 101) / 32.0, (n_sequences, 9)) if grouped else rng.exponential(1.0, (n_sequences, 9))
    panel, _ = jm.simulate(process, n_sequences, 10, gaps=gaps, random_state=0)
    n = panel.n_observations
    z = rng.integers(10, size=n_sequences)[panel.sequence_index] if grouped else rng.normal(size=n)
    return panel.with_covariates(
        {"dose": z.astype(float), "sex": (z % 2 if grouped else rng.integers(2, size=n)).astype(float)}
    )


def measure(n_sequences: int, grouped: bool) -> dict[str, Any]:
    """Median CPU time of a step with and without covariates."""
    panel = panel_of(n_sequences, grouped)
    tasks, processes = [], []
    for structure in (jm.Structure(), jm.Structure(covariates="all")):
        model = EM(emission="direct", structure=structure, engine=Threads(1), tol=1e-3).fit(panel)
        process, constraints = model.process_, structure.constraints(model.states_)
        laid = lay_out(process.effects, panel)
        x = process.emission.encode(panel)
        sequences = Sequences.of(Threads(1), laid.panel, x, model.states_, laid.z)
        tasks.append(Task.of(sequences, constraints, process.emission, x, panel))
        processes.append(process)
    gaps = panel.gaps()[0]
    seconds: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for k, (task, process) in enumerate(zip(tasks, processes, strict=True)):
            began = time.process_time()
            look(task, process)
            seconds[k].append(time.process_time() - began)
    plain, own = (statistics.median(one) for one in seconds)
    before = np.delete(panel.covariates.values, panel.offsets[1:] - 1, axis=0)  # type: ignore[union-attr]
    distinct = len(np.unique(np.column_stack([gaps, before]), axis=0))
    return {
        "n_rows": panel.n_observations,
        "distinct_pairs": distinct,
        "plain": plain,
        "covariates": own,
        "ratio": own / plain,
    }


def markdown(found: dict[str, Any]) -> str:
    """What docs/covariates.md says of cost."""
    lines = ["| rows | distinct pairs | a step with covariates, times one without |", "| --- | --- | --- |"]
    lines += [
        f"| {own['n_rows']:,} | {own['distinct_pairs']:,} | {own['ratio']:.1f} |" for own in found["steps"].values()
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write results/covariates.json")
    options = parser.parse_args()
    found = {name: measure(*size) for name, size in SIZES.items()}
    for name, own in found.items():
        print(
            f"{name}: {own['distinct_pairs']} pairs, step {1e3 * own['plain']:.1f} ms without, "
            f"{1e3 * own['covariates']:.1f} ms with covariates, {own['ratio']:.2f} times"
        )
    if options.write:
        path = Path(__file__).parent / "results" / "covariates.json"
        path.write_text(json.dumps({"states": STATES, "steps": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
