"""Rating grades of issuers of debt: states observed directly, a few looks at each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import figures
import table1
from lab import ITERATIONS, NAMES
from tasks import Task

METHODS = ("by_hand", "em", "mcmc", "plain", "refined")


def tasks(quick: bool) -> list[Task]:
    return [
        Task("lab:assess", {"set": "credit", "seed": seed, "method": method}, 2.0 if method == "mcmc" else 0.4)
        for method in METHODS
        for seed in range(3 if quick else 20)
    ]


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    own = [(task.settings, result) for task, result in zip(work, found, strict=True)]
    return {"iterations": ITERATIONS, **table1.summarise("credit", own)}


def draw(result: dict[str, Any], folder: Path) -> None:
    fig, axes = figures.figure(size=(4.8, 3.0))
    figures.dots(axes[0, 0], result["means"], {key: name for key, name in NAMES.items() if key in result["means"]})
    figures.save(fig, folder, "credit")
