"""Error against iterations and against CPU time: figure 2 of the paper and of its supplement.

Every point is a fit of its own, stopped after that many iterations and then read out, so that the time of a point is
what a user would wait for it. Samplers leave out the first third of their iterations. The search
for the number of states has no count of iterations to stop at: it is stopped at a number of states instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import figures
import numpy as np
from lab import SETS, by_hand, fit, load, mean_and_error, read_outs
from tasks import Task

STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 300)
STATES, QUICK_STATES = (1, 2, 3, 4, 5, 6, 8, 12), (1, 3, 6)
QUICK_STEPS = (1, 4, 16, 64)
METHODS = {
    "synthetic_1": ("plain", "em", "mcmc"),
    "synthetic_2_dense": ("plain", "em", "mcmc"),
    "ms": ("plain", "em", "mcmc"),
    "icu": ("plain", "em", "pmcmc"),
}
# EM needs a number of states; on ICU this one.
EM_STATES = 6
SHOWN = ("plain_trajectory", "plain_posterior", "em", "mcmc", "pmcmc")


def tasks(quick: bool) -> list[Task]:
    cost = {"ms": 0.5, "icu": 8.0}
    steps, states = (QUICK_STEPS, QUICK_STATES) if quick else (STEPS, STATES)
    return [
        Task(
            "curves:curve",
            {"set": name, "seed": seed, "method": method,
             "steps": list(states if (name, method) == ("icu", "plain") else steps)},
            cost.get(name, 10.0) * sum(steps) / sum(STEPS) * (1.5 if "mcmc" in method else 0.7),
        )
        for name, methods in METHODS.items()
        for method in methods
        for seed in range(2 if quick else 6)
    ]  # fmt: skip


def curve(set: str, seed: int, method: str, steps: list[int]) -> dict[str, Any]:
    """Task: errors (%) and CPU seconds of fits stopped after so many iterations (or states), and the baseline."""
    case = load(set, seed)
    infinite = (set, method) == ("icu", "plain")
    changes = {"n_states": EM_STATES} if (set, method) == ("icu", "em") else {}
    found: dict[str, list[float]] = {}
    seconds: dict[str, list[float]] = {}
    iterations: list[int] = []
    for n in steps:
        if infinite:
            model, spent = fit(method, case, max_states=n)
        else:
            model, spent = fit(method, case, n, **changes)
        iterations.append(int(model.n_iter_) if infinite else n)
        for key, (error, reading) in read_outs(method, case, model).items():
            found.setdefault(key, []).append(error)
            seconds.setdefault(key, []).append(spent + reading)
    return {"errors": found, "seconds": seconds, "iterations": iterations, "most_common": by_hand(case)["most_common"]}


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    sets: dict[str, Any] = {}
    for name in METHODS:
        own = [(t.settings, r) for t, r in zip(work, found, strict=True) if t.settings["set"] == name]
        lines: dict[str, Any] = {}
        for method in METHODS[name]:
            rows = [result for settings, result in own if settings["method"] == method]
            for key in rows[0]["errors"]:
                times = np.median([row["seconds"][key] for row in rows], axis=0).tolist()
                table = np.array([row["errors"][key] for row in rows])
                made = np.mean([row["iterations"] for row in rows], axis=0).tolist()
                lines[key] = {
                    "iterations": made,
                    "seconds": times,
                    "errors": [mean_and_error(column) for column in table.T],
                }
        baseline = {settings["seed"]: result["most_common"] for settings, result in own}
        sets[name] = {
            "title": SETS[name].title,
            "n": len(baseline),
            "most_common": float(np.mean(list(baseline.values()))),
            "lines": lines,
        }
    return {"steps": work[0].settings["steps"], "em_states_on_icu": EM_STATES, "sets": sets}


def draw(result: dict[str, Any], folder: Path) -> None:
    """Two pictures of four panels: over iterations, and over CPU seconds."""
    for name, label in (("iterations", "iterations"), ("seconds", "CPU time (s)")):
        fig, axes = figures.figure(2, 2, (4.8, 4.6))
        for ax, found in zip(axes.ravel(), result["sets"].values(), strict=True):
            for key in SHOWN:
                if key in found["lines"]:
                    line = found["lines"][key]
                    ax.plot(line[name], [point["mean"] for point in line["errors"]], **figures.STYLE[key])
            ax.axhline(found["most_common"], **figures.STYLE["most_common"])
            figures.decades(ax)
            ax.set_title(found["title"], loc="left")
            ax.grid(color="0.92")
        fig.supxlabel(label, size=9)
        fig.supylabel("error (%)", size=9)
        handles: dict[str, Any] = {}
        for ax in axes.ravel():
            for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
                handles.setdefault(text, handle)
        fig.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=3, handlelength=2.2)
        figures.save(fig, folder, f"curves_{name}")
