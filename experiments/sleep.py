"""Sleep stages seen through a wearable: hidden states behind symbols, and the truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import figures
import numpy as np
from lab import NAMES, SETS, by_hand, compare, errors, fit, load, mean_and_error
from tasks import Task

import jumpmeans as jm
from jumpmeans.evaluation import match_labels

METHODS = ("by_hand", "em", "mcmc", "plain", "refined")


def tasks(quick: bool) -> list[Task]:
    return [
        Task("sleep:assess", {"seed": seed, "method": method}, 3.0 if method == "mcmc" else 1.0)
        for method in METHODS
        for seed in range(3 if quick else 20)
    ]


def assess(seed: int, method: str) -> dict[str, Any]:
    """Task: error (%) on held-out readings, and on the true stage of every epoch.

    States have no names: each is called by the stage it shares most epochs with, one to one.
    """
    case = load("sleep", seed)
    stages = jm.datasets.load_sleep("state").values[:, 0].astype(int)
    if method == "by_hand":
        device = case.panel.values[:, 0].astype(int)
        commonest = np.bincount(stages).argmax()
        stage = {"most_common": wrong(np.full_like(stages, commonest), stages), "device": wrong(device, stages)}
        return {"errors": by_hand(case), "stage": stage}
    model, seconds = fit(method, case)
    found = errors(method, case, model)
    stage = {}
    for name in found:
        if name.endswith("trajectory"):
            states = model.predict(case.masked)
        else:
            states = model.states_[model.predict_proba(case.masked).argmax(axis=1)]
        called = match_labels(states, stages)
        stage[name] = wrong(np.array([called[s] for s in states.tolist()]), stages)
    return {"errors": found, "stage": stage, "seconds": seconds}


def wrong(guess: Any, truth: Any) -> float:
    return 100.0 * float(np.mean(guess != truth))


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    columns: dict[str, dict[str, list[float]]] = {"errors": {}, "stage": {}}
    for result in found:
        for kind, column in columns.items():
            for key, value in result[kind].items():
                column.setdefault(key, []).append(value)
    order = ["device", *NAMES]
    columns = {kind: {key: column[key] for key in order if key in column} for kind, column in columns.items()}
    return {
        "held_out": SETS["sleep"].held_out,
        "n": len(columns["errors"]["em"]),
        "means": {kind: {k: mean_and_error(v) for k, v in column.items()} for kind, column in columns.items()},
        "paired": {kind: compare(column, "refined_posterior") for kind, column in columns.items()},
        **columns,
    }


def draw(result: dict[str, Any], folder: Path) -> None:
    fig, axes = figures.figure(1, 2, (4.8, 3.2), sharey=True)
    names = {"device": "the device's own reading", **NAMES}
    shown = {key: name for key, name in names.items() if any(key in means for means in result["means"].values())}
    for ax, (kind, label) in zip(axes[0], (("errors", "held-out reading"), ("stage", "true stage")), strict=True):
        figures.dots(ax, result["means"][kind], shown)
        ax.set_title(label, loc="left")
    figures.save(fig, folder, "sleep")
