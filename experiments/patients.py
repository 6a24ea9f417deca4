"""Trajectories of one MS and one ICU patient by JUMP-means and by maximum likelihood: figure 3 of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import figures
import numpy as np
from idea import packed, unpacked
from lab import ONE, SETS
from tasks import Task

import jumpmeans as jm
from jumpmeans import plots
from jumpmeans.comparators import EM, MLTrajectories, MLTrajectory

UNITS = {"ms": ("years", None), "icu": ("hours", "mmHg")}
# Dwells shorter than this share of the median gap count as infinitesimal.
INFINITESIMAL = 1e-3


def tasks(quick: bool) -> list[Task]:
    return [Task("patients:paths", {"set": name}, cost) for name, cost in (("ms", 1.0), ("icu", 10.0))]


def panel_of(name: str) -> jm.Panel:
    return jm.datasets.load_edss() if name == "ms" else jm.datasets.load_icu_pressure()


def paths(set: str) -> dict[str, Any]:
    """Task: paths of all patients by both methods, how many are degenerate, and the one to draw."""
    panel = panel_of(set)
    options = dict(SETS[set].options, engine=ONE)
    mine: Any = (jm.JumpMeans if set == "ms" else jm.InfiniteJumpMeans)(**options, refine=0).fit(panel)
    # both draw the same states: maximum likelihood starts its own climb from them
    likely = MLTrajectory(start=EM(start=mine.process_, engine=ONE).fit(panel)).fit(panel).trajectories_
    gap = float(np.median(np.concatenate([np.diff(panel.times[a:b]) for a, b in windows(panel)])))
    visits = np.diff(mine.trajectories_.offsets)
    zero_dwells = np.add.reduceat(likely.degenerate.astype(int), likely.offsets[:-1])
    # the most infinitesimal dwells, and among equals the most jumps of JUMP-means
    chosen = int(np.lexsort((visits, zero_dwells))[-1]) if set == "ms" else int(np.argsort(visits, kind="stable")[-1])
    return {
        "id": panel.ids.tolist()[chosen],
        "n_states": len(mine.states_),
        "median_gap": gap,
        "jump_means": {**packed(mine.trajectories_), **dwell_facts(mine.trajectories_, gap)},
        "ml": {
            **packed(likely), "degenerate": likely.degenerate.astype(int).tolist(), **dwell_facts(likely, gap),
            "in_the_picture": int(zero_dwells[chosen]),
        },
    }  # fmt: skip


def windows(panel: jm.Panel) -> list[tuple[int, int]]:
    return list(zip(panel.offsets[:-1].tolist(), panel.offsets[1:].tolist(), strict=True))


def dwell_facts(found: jm.Trajectories, gap: float) -> dict[str, Any]:
    """How many complete dwells are next to nothing, in how many sequences, and the shortest in median gaps."""
    dwells = np.where(found.running, np.inf, found.dwell_times()) / gap
    tiny = dwells < INFINITESIMAL
    return {
        "n_complete": int((~found.running).sum()),
        "n_infinitesimal": int(tiny.sum()),
        "sequences_with_infinitesimal": int((np.add.reduceat(tiny.astype(int), found.offsets[:-1]) > 0).sum()),
        "n_sequences": len(found),
        "shortest_in_gaps": float(dwells.min()),
    }


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    results = {task.settings["set"]: result for task, result in zip(work, found, strict=True)}
    return {"infinitesimal_in_gaps": INFINITESIMAL, "sets": results}


def draw(result: dict[str, Any], folder: Path) -> None:
    for name, found in result["sets"].items():
        panel = panel_of(name)
        time_unit, value_unit = UNITS[name]
        fig, axes = figures.figure(2, 1, (4.8, 4.8), sharex=True, sharey=True)
        mine = unpacked(found["jump_means"], panel)
        base = unpacked(found["ml"], panel)
        degenerate = np.array(found["ml"]["degenerate"], bool)
        likely = MLTrajectories(
            base.codes, base.start_times, base.offsets, base.end_times, base.ids, base.labels, None, degenerate
        )
        for ax, paths, title in zip(axes[:, 0], (mine, likely), ("JUMP-means", "maximum likelihood"), strict=True):
            plots.plot_trajectory(paths, found["id"], panel, ax=ax, time_unit=time_unit, value_unit=value_unit)
            legend = ax.get_legend()
            if legend is None:
                ax.set_title(title, loc="left")
            else:
                legend.set_title(title if name == "ms" else f"{title}, state (mean)")
        axes[0, 0].set_xlabel("")
        figures.save(fig, folder, f"patient_{name}")
