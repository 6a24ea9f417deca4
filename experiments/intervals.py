"""How often intervals of 90 % hold the truth, on simulated panels: EM by its information and by the bootstrap, and
JUMP-means by the bootstrap, with the bias of what it estimates beside it.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from lab import ONE
from tasks import Task

import jumpmeans as jm
from jumpmeans.comparators import EM

LEVEL = 0.9
PANELS, REFITS = 200, 60
# Seen: three states, all moves. Hidden: two states behind noisy readings.
PROCESSES = {
    "seen": jm.Process([0.3, 0.5, 0.4], [[0, 0.6, 0.4], [0.5, 0, 0.5], [0.4, 0.6, 0]]),
    "hidden": jm.Process([0.2, 0.4], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0.0, 3.0], sds=1.0)),
}
SIZES = {"seen": (80, 10), "hidden": (40, 15)}
METHODS = {"seen": ("em", "jump_means"), "hidden": ("em", "jump_means")}


def tasks(quick: bool) -> list[Task]:
    panels, refits = (8, 20) if quick else (PANELS, REFITS)
    return [
        Task("intervals:one", {"kind": kind, "method": method, "seed": seed, "refits": refits}, 0.02 * refits)
        for kind, methods in METHODS.items()
        for method in methods
        for seed in range(panels)
    ]


def rates(model: Any) -> Any:
    """Rate of each move, one after the other."""
    Q = model.process_.rate_matrix
    return Q[~np.eye(len(Q), dtype=bool)]


def dwells(model: Any) -> Any:
    """Mean dwell of each state."""
    return 1.0 / model.process_.rates


QUESTIONS = {"rates": rates, "dwells": dwells}


def one(kind: str, method: str, seed: int, refits: int) -> dict[str, Any]:
    """Task: estimates on one panel, and the intervals of each way that hold the truth."""
    process = PROCESSES[kind]
    panel, _ = jm.simulate(process, *SIZES[kind], random_state=seed)
    options: dict[str, Any] = {"emission": "direct", "states": [0, 1, 2]} if kind == "seen" else {"n_states": 2}
    if method == "em":
        model = EM(**options, engine=ONE, tol=1e-10, max_iter=1000)
    else:
        model = jm.JumpMeans(**options, engine=ONE)
    out: dict[str, Any] = {"estimate": {}, "holds": {}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a rate at its edge now and then: its interval counts like any other
        model.fit(panel)
        ways = {"bootstrap": jm.bootstrap(model, panel, refits, n_jobs=1, random_state=seed)}
        if method == "em":
            ways["information"] = model.information(panel)
        for name, question in QUESTIONS.items():
            true = question(jm.JumpMeans.from_process(process))
            out["estimate"][name] = question(model).tolist()
            for way, sure in ways.items():
                low, high = sure.interval(question, LEVEL)
                out["holds"].setdefault(way, {})[name] = ((low <= true) & (true <= high)).tolist()
    if method == "jump_means":
        out["estimate"]["objective_rates"] = model.objective_params_.rates.tolist()
    out["failures"] = len(ways["bootstrap"].failures)
    return out


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    sets: dict[str, Any] = {}
    for kind, methods in METHODS.items():
        truth = jm.JumpMeans.from_process(PROCESSES[kind])
        for method in methods:
            own = [
                result
                for task, result in zip(work, found, strict=True)
                if (task.settings["kind"], task.settings["method"]) == (kind, method)
            ]
            entry: dict[str, Any] = {"n_panels": len(own), "coverage": {}, "bias": {}}
            entry["failed_refits"] = sum(result["failures"] for result in own)
            for way in own[0]["holds"]:
                entry["coverage"][way] = {
                    name: np.mean([result["holds"][way][name] for result in own], axis=0).tolist() for name in QUESTIONS
                }
            for name in own[0]["estimate"]:
                true = truth.process_.rates if name == "objective_rates" else QUESTIONS[name](truth)
                x = np.array([result["estimate"][name] for result in own]) / true
                # the median: a mean dwell of a state hardly ever left is as good as infinite
                entry["bias"][name] = (np.median(x, axis=0) - 1.0).tolist()
            sets.setdefault(kind, {})[method] = entry
    return {"level": LEVEL, "n_refits": work[0].settings["refits"], "sizes": SIZES, "sets": sets}


def markdown(found: dict[str, Any]) -> str:
    """The table of docs/intervals.md."""
    lines = ["| states | model | by | held the truth, % | bias of rates, % |", "| --- | --- | --- | --- | --- |"]
    names = {"em": "EM", "jump_means": "JumpMeans"}
    for kind, methods in found["sets"].items():
        for method, entry in methods.items():
            bias = [100 * x for x in entry["bias"]["rates"]]
            for way, coverage in entry["coverage"].items():
                shares = [100 * x for xs in coverage.values() for x in xs]
                lines.append(
                    f"| {kind} | {names[method]} | {way} | {min(shares):.0f} to {max(shares):.0f} | "
                    f"{min(bias):+.1f} to {max(bias):+.1f} |"
                )
    return "\n".join(lines)


def draw(found: dict[str, Any], folder: Path) -> None:
    """Nothing is drawn: the numbers are a small table, printed here."""
    for kind, methods in found["sets"].items():
        for method, entry in methods.items():
            for way, coverage in entry["coverage"].items():
                text = "; ".join(
                    f"{name} {' '.join(f'{100 * x:.0f}' for x in shares)}" for name, shares in coverage.items()
                )
                print(f"{kind}, {method}, {way}: covered in % of {entry['n_panels']} panels: {text}")
            bias = "; ".join(f"{n} {' '.join(f'{100 * x:+.0f}' for x in xs)}" for n, xs in entry["bias"].items())
            print(f"{kind}, {method}: bias in %: {bias}")
