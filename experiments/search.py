"""How jumps are looked for: the exact search, the paper's beam variant, and 1, 2 or 4 candidates in every gap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import figures
import numpy as np
from lab import SETS, compare, errors, fit, load, mean_and_error
from tasks import Task

VARIANTS: dict[str, dict[str, Any]] = {
    "one": {"jumps_per_gap": 1},
    "beam": {"search": "beam"},
    "two": {"jumps_per_gap": 2},
    "four": {"jumps_per_gap": 4},
}
TITLES = {"one": "1 a gap", "beam": "beam", "two": "2 a gap", "four": "4 a gap"}
NAMES = ("synthetic_1", "synthetic_1_regular", "synthetic_2_dense", "ms")


def tasks(quick: bool) -> list[Task]:
    return [
        Task("search:variant", {"set": name, "seed": seed, "variant": variant}, 0.05 if name == "ms" else 0.8)
        for name in NAMES
        for variant in VARIANTS
        for seed in range(3 if quick else 50 if name == "ms" else 20)
    ]


def variant(set: str, seed: int, variant: str) -> dict[str, Any]:
    """Task: objective, errors (%) and CPU seconds of the paper's algorithm under one way to search."""
    case = load(set, seed)
    model, seconds = fit("plain", case, **VARIANTS[variant])
    trajectory, posterior = errors("plain", case, model).values()
    found = {"trajectory": trajectory, "posterior": posterior}
    return {"objective": float(model.objective_), "errors": found, "seconds": seconds}


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    sets = {}
    for name in NAMES:
        rows = {
            key: [
                r for t, r in zip(work, found, strict=True) if (t.settings["set"], t.settings["variant"]) == (name, key)
            ]
            for key in VARIANTS
        }
        J = {key: np.array([row["objective"] for row in own]) for key, own in rows.items()}
        error = {key: [row["errors"]["trajectory"] for row in own] for key, own in rows.items()}
        sets[name] = {
            "title": SETS[name].title,
            "n": len(rows["one"]),
            "objective_percent": {key: mean_and_error(100 * (J[key] / J["one"] - 1)) for key in VARIANTS},
            "trajectory": {key: mean_and_error(values) for key, values in error.items()},
            "posterior": {key: mean_and_error([r["errors"]["posterior"] for r in own]) for key, own in rows.items()},
            "less_one": {key: compare(error, key)["one"] for key in VARIANTS if key != "one"},
            "median_seconds": {key: float(np.median([row["seconds"] for row in own])) for key, own in rows.items()},
        }
    return {"sets": sets}


def draw(result: dict[str, Any], folder: Path) -> None:
    """Objective and error of every variant, less those of one candidate a gap."""
    fig, axes = figures.figure(1, 2, (4.8, 2.9))
    others = [key for key in VARIANTS if key != "one"]
    markers = zip(
        result["sets"].values(), (figures.BLUE, figures.SKY, figures.ORANGE, figures.GREEN), "os^D", strict=True
    )
    for k, (found, colour, marker) in enumerate(markers):
        x = np.arange(len(others)) + 0.14 * (k - 1.5)
        J = [found["objective_percent"][key] for key in others]
        style = {"fmt": marker, "color": colour, "capsize": 2, "label": found["title"], "markersize": 4}
        axes[0, 0].errorbar(x, [v["mean"] for v in J], yerr=[2 * v["se"] for v in J], **style)
        less = [found["less_one"][key] for key in others]
        axes[0, 1].errorbar(x, [v[0] for v in less], yerr=[v[1] for v in less], **style)
    for ax, label in zip(axes[0], ("objective, change (%)", "error, change (points)"), strict=True):
        ax.axhline(0.0, color="0.6", linewidth=0.8)
        ax.set_xticks(range(len(others)), [TITLES[key] for key in others])
        ax.set_ylabel(label)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    figures.save(fig, folder, "search")
