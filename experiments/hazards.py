"""Bias of the effects of covariates by JUMP-means, before and after closing steps, beside EM: two states, so that an
effect on leaving a state is one on its only move.
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

PANELS, PEOPLE, LOOKS = 40, 200, 15
# Mean time between looks, beside mean dwells of 2 and 2.5.
GAPS = {"dense": 0.25, "sparse": 1.0}
TRUE = {"sex": (0.5, -0.4), "age": (0.03, -0.02)}
METHODS = ("objective", "refined", "em")


def process() -> jm.Process:
    """The truth: log hazard ratios of leaving each state."""
    effects = {name: dict(enumerate(own)) for name, own in TRUE.items()}
    return jm.Process([0.5, 0.4], [[0, 1], [1, 0]]).with_effects(effects, at={"sex": 0.5, "age": 60.0})


def tasks(quick: bool) -> list[Task]:
    return [Task("hazards:one", {"seed": s, "gaps": gaps}, 0.5) for gaps in GAPS for s in range(8 if quick else PANELS)]


def one(seed: int, gaps: str) -> dict[str, Any]:
    """Task: estimates of all methods on one panel, in the order of `TRUE`."""
    rng = np.random.default_rng(seed)
    covariates = {"sex": rng.integers(0, 2, PEOPLE), "age": rng.uniform(45.0, 75.0, PEOPLE)}
    panel, _ = jm.simulate(
        process(), PEOPLE, LOOKS, mean_gap=GAPS[gaps], covariates=covariates, random_state=seed
    )  # fmt: skip
    options: dict[str, Any] = {
        "emission": "direct", "states": [0, 1], "structure": jm.Structure(covariates="all"), "engine": ONE,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = jm.JumpMeans(**options).fit(panel)
        em = EM(**options, tol=1e-9, max_iter=1000).fit(panel)
    found = {"objective": model.objective_params_, "refined": model.process_, "em": em.process_}
    return {name: own.effects.of_states().ravel().tolist() for name, own in found.items()}


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    true = np.array([x for own in TRUE.values() for x in own])
    names = [f"{name} on leaving {s}" for name in TRUE for s in range(2)]
    out: dict[str, Any] = {}
    for gaps in GAPS:
        here = [result for task, result in zip(work, found, strict=True) if task.settings["gaps"] == gaps]
        out[gaps] = {"n_panels": len(here)}
        for method in METHODS:
            estimate = np.array([result[method] for result in here])
            out[gaps][method] = {
                name: {
                    "true": float(true[i]),
                    "bias": float(estimate[:, i].mean() - true[i]),
                    "sd": float(estimate[:, i].std(ddof=1)),
                }
                for i, name in enumerate(names)
            }
    return out


TITLES = {"objective": "JumpMeans, of the objective", "refined": "JumpMeans, after closing steps", "em": "EM"}


def markdown(results: dict[str, Any]) -> str:
    """The table of docs/covariates.md."""
    names = list(results["dense"]["em"])
    heads = [f"{name} (true {results['dense']['em'][name]['true']:+.2f})" for name in names]
    lines = [
        f"| gaps | effects of | {' | '.join(heads)} |",
        f"| --- | --- | {' | '.join('---' for _ in names)} |",
    ]
    for gaps, mean in GAPS.items():
        for method in METHODS:
            own = results[gaps][method]
            cells = " | ".join(f"{own[n]['bias']:+.3f} ± {own[n]['sd']:.3f}" for n in names)
            lines.append(f"| {mean:g} | {TITLES[method]} | {cells} |")
    return "\n".join(lines)


def draw(results: dict[str, Any], folder: Path) -> None:
    """The numbers, one line for each gap, method and effect."""
    for gaps in GAPS:
        for method in METHODS:
            for name, own in results[gaps][method].items():
                print(f"{gaps}, {method}, {name}: {own['true']:+.2f}, bias {own['bias']:+.4f}, sd {own['sd']:.3f}")
