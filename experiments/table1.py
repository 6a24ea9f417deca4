"""Table 1 of the paper: reconstruction error of every method on its four kinds of data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import figures
import numpy as np
from lab import ITERATIONS, JUMP_MEANS, NAMES, SETS, compare, mean_and_error
from protocol import recovered
from tasks import Task

METHODS = {
    "synthetic_1": ("by_hand", "em", "mcmc", *JUMP_MEANS),
    "synthetic_1_regular": ("by_hand", "em", "mcmc", *JUMP_MEANS),
    "synthetic_2": ("by_hand", "em", "mcmc", *JUMP_MEANS),
    "synthetic_2_dense": ("by_hand", "em", "mcmc", *JUMP_MEANS),
    "ms": ("by_hand", "em", "mcmc", *JUMP_MEANS),
    "icu": ("by_hand", "em_numbers", "pmcmc", "pmcmc_gaussian", *JUMP_MEANS),
}
# Rough CPU seconds of a task.
COST = {
    "by_hand": 0.05, "em": 2.0, "mcmc": 3.3, "em_numbers": 7.0, "pmcmc": 2.5, "pmcmc_gaussian": 3.6, "printed": 0.3,
    "plain": 0.6, "refined": 1.3,
}  # fmt: skip


def tasks(quick: bool) -> list[Task]:
    return [
        Task(
            "lab:assess", {"set": name, "seed": seed, "method": method},
            (0.03 if name == "ms" else 1.0) * COST[method],
        )
        for name, methods in METHODS.items()
        for method in methods
        for seed in range(n_sets(name, quick))
    ]  # fmt: skip


def n_sets(name: str, quick: bool) -> int:
    """Data sets of a synthetic kind, splits of a real one."""
    return 5 if quick else 50 if name == "icu" else 100


def collect(work: list[Task], found: list[dict[str, Any]], before: dict[str, Any] | None = None) -> dict[str, Any]:
    """Results of all tasks; of methods that no task is about, those of an earlier run stay."""
    sets = {}
    for name in METHODS:
        own = [
            (task.settings, result) for task, result in zip(work, found, strict=True) if task.settings["set"] == name
        ]
        sets[name] = summarise(name, own, None if before is None else before["sets"][name])
    return {"iterations": ITERATIONS, "sets": sets}


def summarise(
    name: str, own: list[tuple[dict[str, Any], dict[str, Any]]], before: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Errors of one kind of data by method, their means, the gap recovered, and paired intervals."""
    errors: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    per_iteration: dict[str, list[float]] = {}
    n_states: dict[str, list[int]] = {}
    out: dict[str, Any] = {"title": SETS[name].title, "held_out": SETS[name].held_out}
    medians: tuple[dict[str, float], ...] = ({}, {})
    states_before: dict[str, list[int]] = {}
    if before is not None:
        errors |= {key: values for key, values in before["errors"].items() if not began(key, own)}
        medians = (before["median_seconds"], before["median_seconds_per_iteration"])
        states_before = before["n_states"]
    for settings, result in own:
        method = settings["method"]
        for key, value in result["errors"].items():
            errors.setdefault(key, []).append(value)
        if "seconds" in result:
            seconds.setdefault(method, []).append(result["seconds"])
        if "per_iteration" in result:
            per_iteration.setdefault(method, []).append(result["per_iteration"])
        if "n_states" in result:
            n_states.setdefault(method, []).append(result["n_states"])
    if name == "icu" and before is not None and not began("em_numbers", own):
        out["em_numbers"] = before["em_numbers"]
    elif name == "icu":
        out["em_numbers"] = numbers_of_states(
            [result for settings, result in own if settings["method"] == "em_numbers"]
        )
        errors["em"] = out["em_numbers"].pop("errors")
    errors = {key: errors[key] for key in NAMES if key in errors}
    means = {key: mean_and_error(values) for key, values in errors.items()}
    baseline, limit = means["most_common"]["mean"], means["em"]["mean"]
    mine = [key for key in errors if key.split("_")[0] in JUMP_MEANS]
    return {
        **out,
        "n": len(errors["most_common"]),
        "means": means,
        "recovered": {key: recovered(baseline, means[key]["mean"], limit) for key in mine if baseline != limit},
        "paired": {key: compare(errors, key) for key in mine},
        "median_seconds": medians[0] | {key: float(np.median(values)) for key, values in seconds.items()},
        "median_seconds_per_iteration": medians[1]
        | {key: float(np.median(values)) for key, values in per_iteration.items()},
        "n_states": states_before | n_states,
        "errors": errors,
    }


def began(key: str, own: list[tuple[dict[str, Any], dict[str, Any]]]) -> bool:
    """Whether a result is of a method that was run now."""
    methods = {settings["method"] for settings, _ in own}
    return key in methods or key.split("_")[0] in methods & set(JUMP_MEANS)


def numbers_of_states(found: list[dict[str, Any]]) -> dict[str, Any]:
    """EM by its number of states: mean errors, the best and the second best, and what BIC picks."""
    table = np.array([result["em"] for result in found])
    numbers = found[0]["numbers"]
    order = np.argsort(table.mean(axis=0), kind="stable")
    return {
        "numbers": numbers,
        "means": [mean_and_error(column) for column in table.T],
        "means_by_state": [mean_and_error(column) for column in np.array([r["em_by_state"] for r in found]).T],
        "best": numbers[order[0]],
        "second_best": numbers[order[1]],
        "picked_by_bic": [result["picked"] for result in found],
        "errors": table[:, order[0]].tolist(),
    }


def draw(result: dict[str, Any], folder: Path) -> None:
    """Error of every method: three pictures of two kinds of data."""
    names = list(result["sets"])
    for k, title in enumerate(("synthetic_1", "synthetic_2", "real")):
        pair = [result["sets"][name] for name in names[2 * k : 2 * k + 2]]
        shown = {key: name for key, name in NAMES.items() if any(key in one["means"] for one in pair)}
        fig, axes = figures.figure(1, 2, (4.8, 0.9 + 0.19 * len(shown)), sharey=True)
        for ax, one in zip(axes[0], pair, strict=True):
            figures.dots(ax, one["means"], shown)
            ax.set_title(one["title"].replace(", ", "\n"), loc="left")
        figures.save(fig, folder, f"table1_{title}")
