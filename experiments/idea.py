"""Figure 1 of the paper, the idea: three hidden states, two symbols, looks at irregular times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import figures
import numpy as np
from lab import ONE
from tasks import Task

import jumpmeans as jm
from jumpmeans import plots

RATES = [0.35, 0.5, 0.4]
P = [[0.0, 0.8, 0.2], [0.4, 0.0, 0.6], [0.3, 0.7, 0.0]]
RHO = [[0.95, 0.05], [0.5, 0.5], [0.05, 0.95]]


def simulated() -> tuple[jm.Panel, jm.Trajectories]:
    """200 sequences of the same process; the pictured one visits all states."""
    emission = jm.emissions.Categorical(np.array(RHO), ["a", "b"])
    process = jm.Process(RATES, P, emission=emission, states=[0, 1, 2])
    return jm.simulate(process, 200, 14, mean_gap=0.6, random_state=1)


def tasks(quick: bool) -> list[Task]:
    return [Task("idea:example", {}, 2.0)]


def example() -> dict[str, Any]:
    """Task: the true path of one sequence, and what JUMP-means makes of its symbols."""
    panel, truth = simulated()
    model = jm.JumpMeans(3, emission="categorical", engine=ONE).fit(panel)
    n_visited = (truth.time_in_state() > 1.0).sum(axis=1)
    i = int(np.argmax((n_visited == 3) & (np.diff(truth.offsets) == 4)))
    return {"id": int(panel.ids[i]), "truth": packed(truth), "found": packed(model.trajectories_)}


def packed(trajectories: jm.Trajectories) -> dict[str, Any]:
    """Trajectories as JSON."""
    return {
        "codes": trajectories.codes.tolist(),
        "start_times": trajectories.start_times.tolist(),
        "offsets": trajectories.offsets.tolist(),
        "labels": trajectories.labels.tolist(),
    }


def unpacked(kept: dict[str, Any], panel: jm.Panel) -> jm.Trajectories:
    """Trajectories from JSON, and the panel they belong to."""
    return jm.Trajectories(
        np.array(kept["codes"], np.int32), np.array(kept["start_times"], float), np.array(kept["offsets"]),
        panel.end_times, panel.ids, np.array(kept["labels"]),
    )  # fmt: skip


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    return found[0]


def draw(result: dict[str, Any], folder: Path) -> None:
    """Above, the true path and the symbols, which are all one sees; below, the path found from all 200 sequences."""
    panel, truth = simulated()
    found = unpacked(result["found"], panel)
    fig, axes = figures.figure(2, 1, (4.8, 5.2), sharex=True)
    for ax, paths, title in zip(axes[:, 0], (truth, found), ("true path", "JUMP-means"), strict=True):
        plots.plot_trajectory(paths, result["id"], panel, ax=ax, time_unit="unit of the rates")
        ax.set_title(title, loc="left")
        i = panel.ids.tolist().index(result["id"])
        own = slice(paths.offsets[i], paths.offsets[i + 1])
        starts = np.append(paths.start_times[own], panel.end_times[i])
        codes = paths.codes[own].tolist()
        names = [f"$t_{{{k}}}$" for k in range(len(codes) - 1)] + ["$y$"]
        for name, code, a, b in zip(names, codes, starts, starts[1:], strict=False):
            ax.annotate(name, ((a + b) / 2, code), (0, 4), textcoords="offset points", ha="center", size=8)
    axes[0, 0].set_xlabel("")
    figures.save(fig, folder, "idea")
