"""What covariates cost: CPU time of one step of EM and of one sweep of JUMP-means with and without them, in turns.

Five states, all moves. Steps: `pairs` has 1,000 distinct pairs of gap and covariates, in `rows` every row has a gap and
covariates of its own. Sweeps (trajectories and what they tell; then parameters, too): `people` has covariates that stay
within each sequence, in `rows` they change from row to row. One thread. Run: python benchmarks/covariates.py [--write]
"""

from __future__ import annotations

import os

# before numpy is there: threads that wait for each other are CPU time, too
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

import argparse
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jumpmeans as jm
from jumpmeans.comparators import EM
from jumpmeans.engines import Threads
from jumpmeans.fit.ascent import Task, look
from jumpmeans.fit.descent import Model, descend
from jumpmeans.model.dependence import lay_out
from jumpmeans.passes import Sequences

STATES, ROUNDS = 5, 7
STEPS = {"pairs, 5,000 rows": (500, True), "pairs, 20,000 rows": (2000, True), "rows, 20,000 rows": (2000, False)}
SWEEPS = {"people, 5,000 rows": (500, True), "people, 20,000 rows": (2000, True), "rows, 20,000 rows": (2000, False)}
STRUCTURES = (jm.Structure(), jm.Structure(covariates="all"))


def panel_of(n_sequences: int, grouped: bool) -> jm.Panel:
    """10 visits of each sequence, two covariates; `grouped`: gaps and covariates that many rows share."""
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


def in_turns(plain: Callable[[], Any], own: Callable[[], Any]) -> dict[str, float]:
    """Median CPU time without and with covariates."""
    seconds: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for k, work in enumerate((plain, own)):
            began = time.process_time()
            work()
            seconds[k].append(time.process_time() - began)
    without, with_them = (statistics.median(one) for one in seconds)
    return {"plain": without, "covariates": with_them, "ratio": with_them / without}


def measure_step(n_sequences: int, grouped: bool) -> dict[str, Any]:
    """A step of EM at its fit."""
    panel = panel_of(n_sequences, grouped)
    works = []
    for structure in STRUCTURES:
        model = EM(emission="direct", structure=structure, engine=Threads(1), tol=1e-3).fit(panel)
        process, constraints = model.process_, structure.constraints(model.states_)
        laid = lay_out(process.effects, panel)
        x = process.emission.encode(panel)
        sequences = Sequences.of(Threads(1), laid.panel, x, model.states_, laid.z)
        task = Task.of(sequences, constraints, process.emission, x, panel)
        works.append(partial(look, task, process))
    gaps = panel.gaps()[0]
    before = np.delete(panel.covariates.values, panel.offsets[1:] - 1, axis=0)  # type: ignore[union-attr]
    distinct = len(np.unique(np.column_stack([gaps, before]), axis=0))
    return {"n_rows": panel.n_observations, "distinct_pairs": distinct, **in_turns(*works)}


def measure_sweep(n_sequences: int, grouped: bool) -> dict[str, Any]:
    """A sweep of JUMP-means from the trajectories and parameters of its fit."""
    panel = panel_of(n_sequences, grouped)
    sweeps, iterations = [], []
    for structure in STRUCTURES:
        fitted = jm.JumpMeans(emission="direct", structure=structure, engine=Threads(1), refine=0).fit(panel)
        params, prices, search, _ = fitted._decoder_
        search = search._replace(rounds=1)
        model = Model(prices, structure.constraints(fitted.states_), search)
        laid = lay_out(params.effects, panel)
        x = params.emission.encode(panel)
        sequences = Sequences.of(Threads(1), laid.panel, x, fitted.states_, laid.z)
        end = descend(sequences, params, model, 2, 0.0)
        sweeps.append(partial(sequences.sweep, end.dwells, end.params, prices, search))
        iterations.append(partial(descend, sequences, end.params, model, 1, 0.0, end.dwells))
    return {"n_rows": panel.n_observations, **in_turns(*sweeps), "and_parameters": in_turns(*iterations)}


def markdown(found: dict[str, Any]) -> str:
    """What docs/covariates.md says of cost."""
    lines = ["| rows | distinct pairs | a step of EM with covariates, times one without |", "| --- | --- | --- |"]
    lines += [
        f"| {own['n_rows']:,} | {own['distinct_pairs']:,} | {own['ratio']:.1f} |" for own in found["steps"].values()
    ]
    lines += [
        "",
        "| rows | covariates | a sweep of JumpMeans with them, times one without | and the parameters after it |",
        "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| {own['n_rows']:,} | {'stay within each sequence' if name.startswith('people') else 'change at every row'} "
        f"| {own['ratio']:.2f} | {own['and_parameters']['ratio']:.2f} |"
        for name, own in found["sweeps"].items()
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write results/covariates.json")
    options = parser.parse_args()
    found = {
        "steps": {name: measure_step(*size) for name, size in STEPS.items()},
        "sweeps": {name: measure_sweep(*size) for name, size in SWEEPS.items()},
    }
    print(markdown(found))
    if options.write:
        path = Path(__file__).parent / "results" / "covariates.json"
        path.write_text(json.dumps({"states": STATES, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
