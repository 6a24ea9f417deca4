"""People at different levels: how many states are found with and without offsets, where the number is known."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import figures
import numpy as np
from lab import ONE
from tasks import Task

import jumpmeans as jm

# Means of the states in standard deviations of the noise; all of 40 people at levels that differ by a spread of 5.
PANELS = {"three": (0.0, 4.0, 8.0), "noise": (0.0,)}
TITLES = {"three": "3 states, 4 sds apart", "noise": "noise alone"}
PEOPLE, ROWS, GAP, RATE, SPREAD = 40, 30, 0.3, 0.7, 5.0
# Beyond these no number of states is looked for without offsets.
MOST_STATES = 30
WAYS: dict[str, dict[str, Any]] = {"with": {"offsets": "sequence"}, "without": {"max_states": MOST_STATES}}
HELD_OUT = 0.25


def simulated(kind: str, seed: int) -> tuple[jm.Panel, np.ndarray]:
    """A panel of people who differ in level, and the true state of every row."""
    means = np.array(PANELS[kind])
    M = len(means)
    emission = jm.emissions.Gaussian(means, sds=1.0)
    process = jm.Process(np.full(M, RATE if M > 1 else 0.0), (1.0 - np.eye(M)) / max(M - 1, 1), emission=emission)
    panel, truth = jm.simulate(process, PEOPLE, ROWS, mean_gap=GAP, offsets=SPREAD, random_state=seed)
    return panel, truth.at(panel.times, panel.ids[panel.sequence_index])


def tasks(quick: bool) -> list[Task]:
    n = 2 if quick else 20
    return [
        Task("levels:count", {"kind": kind, "way": way, "seed": seed}, 5.0)
        for kind in PANELS
        for way in WAYS
        for seed in range(n)
    ] + [
        Task("levels:fill_in", {"n_states": M, "way": way, "seed": seed}, 1.0)
        for M in (2, 3, 6)
        for way in WAYS
        for seed in range(n)
    ]


def count(kind: str, way: str, seed: int) -> dict[str, Any]:
    """Task: number of states found, share of rows in the right one where it is the true number, CPU seconds."""
    panel, truth = simulated(kind, seed)
    begun = time.process_time()
    model = jm.InfiniteJumpMeans(engine=ONE, **WAYS[way]).fit(panel)
    seconds = time.process_time() - begun
    right = float(np.mean(model.predict(panel) == truth)) if model.n_states_ == len(PANELS[kind]) else None
    spread = float(model.offset_sd_[0]) if way == "with" else None
    return {"n_states": model.n_states_, "right": right, "spread": spread, "seconds": seconds}


def fill_in(n_states: int, way: str, seed: int) -> dict[str, Any]:
    """Task: root mean squared error of values held out, of JUMP-means with a given number of states."""
    panel, _ = simulated("three", seed)
    masked, held = jm.evaluation.hold_out(panel, HELD_OUT, random_state=seed)
    offsets = WAYS[way].get("offsets")
    model = jm.JumpMeans(n_states, offsets=offsets, engine=ONE).fit(masked)
    errors = model.predict_value(masked)[held.rows] - held.values
    return {"rmse": float(np.sqrt(np.mean(errors**2)))}


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    counted: dict[str, Any] = {}
    filled: dict[str, Any] = {}
    for task, result in zip(work, found, strict=True):
        s = task.settings
        if task.work == "levels:fill_in":
            filled.setdefault(str(s["n_states"]), {}).setdefault(s["way"], []).append(result["rmse"])
        else:
            counted.setdefault(s["kind"], {}).setdefault(s["way"], []).append(result)
    for kind, ways in counted.items():
        counted[kind] = {way: summary(rows, len(PANELS[kind])) for way, rows in ways.items()}
    means = {M: {way: float(np.mean(x)) for way, x in ways.items()} for M, ways in filled.items()}
    return {
        "people": PEOPLE, "rows": ROWS, "spread": SPREAD, "most": MOST_STATES, "held_out": HELD_OUT,
        "counted": counted, "rmse": means,
    }  # fmt: skip


def summary(rows: list[dict[str, Any]], truth: int) -> dict[str, Any]:
    numbers = [row["n_states"] for row in rows]
    right = [row["right"] for row in rows if row["right"] is not None]
    return {
        "n": len(rows),
        "numbers": numbers,
        "right": numbers.count(truth),
        "rows_right": float(np.mean(right)) if right else None,
        "seconds": float(np.mean([row["seconds"] for row in rows])),
    }


def markdown(found: dict[str, Any]) -> str:
    """The tables of docs/patients.md."""
    lines = ["| panels | offsets | states found (panels) | right number |", "| --- | --- | --- | --- |"]
    for kind, ways in found["counted"].items():
        for way, entry in ways.items():
            numbers = sorted(set(entry["numbers"]))
            counts = ", ".join(f"{k} ({entry['numbers'].count(k)})" for k in numbers)
            lines.append(f"| {TITLES[kind]} | {way} | {counts} | {entry['right']} of {entry['n']} |")
    lines += ["", "| states asked for | with offsets | without |", "| --- | --- | --- |"]
    lines += [f"| {M} | {ways['with']:.2f} | {ways['without']:.2f} |" for M, ways in found["rmse"].items()]
    return "\n".join(lines)


def draw(result: dict[str, Any], folder: Path) -> None:
    """How many states were found in each panel, with and without offsets."""
    fig, axes = figures.figure(1, len(PANELS), (6.4, 2.4))
    for ax, (kind, ways) in zip(axes[0], result["counted"].items(), strict=True):
        for (way, entry), colour in zip(ways.items(), (figures.BLUE, figures.ORANGE), strict=True):
            numbers = np.bincount(entry["numbers"], minlength=result["most"] + 1)[1:]
            ax.bar(np.arange(1, len(numbers) + 1), numbers, color=colour, label=f"{way} offsets", alpha=0.8)
        ax.axvline(len(PANELS[kind]), color="0.6", linewidth=0.8, zorder=0)
        ax.set_title(TITLES[kind])
        ax.set_xlabel("states found")
    axes[0, 0].set_ylabel("panels")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    figures.save(fig, folder, "levels")
