"""Run time and error against the size of the data: the paper's figure of scaling, and on to 10^6 sequences."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import figures
import numpy as np
from lab import ONE, mean_and_error
from protocol import percent_wrong, random_process
from tasks import Task

import jumpmeans as jm

N_STATES, N_OBSERVATIONS, MEAN_GAP, SEED = 5, 20, 0.3, 2015
HELD_OUT = 0.3
MEANS = [0.0, 3.0, 6.0, 9.0, 12.0]
BINS = [1.5, 4.5, 7.5, 10.5]
MODELS = {"infinite": "number of states found", "given": "five states given"}
# Sizes, and data sets of each.
SIZES = {10**2: 10, 10**3: 10, 10**4: 3, 10**5: 1, 10**6: 1}
QUICK_SIZES = {10**2: 3, 10**3: 3, 10**4: 1}
LARGEST = {"infinite": 10**6, "given": 10**5}
SECONDS_PER_SEQUENCE = {"infinite": 5e-4, "given": 1e-3}


def tasks(quick: bool) -> list[Task]:
    return [
        Task("scaling:timed", {"n": n, "seed": seed, "model": model}, 2.0 + SECONDS_PER_SEQUENCE[model] * n)
        for n, n_sets in (QUICK_SIZES if quick else SIZES).items()
        for model in MODELS
        for seed in range(n_sets)
        if n <= LARGEST[model]
    ]


def timed(n: int, seed: int, model: str) -> dict[str, Any]:
    """Task: seconds of a fit on one core, its error (%) and its number of states."""
    make(model).fit(simulated(50, 0)[0])  # kernels loaded
    masked, held = simulated(n, seed)
    wall, cpu = time.perf_counter(), time.process_time()
    fitted = make(model).fit(masked)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    error = percent_wrong(fitted.predict_value(masked, "trajectory"), held, BINS)
    return {"error": error, "seconds": cpu, "wall": wall, "n_states": len(fitted.states_), "sweeps": fitted.n_iter_}


def make(model: str) -> Any:
    return jm.JumpMeans(N_STATES, engine=ONE) if model == "given" else jm.InfiniteJumpMeans(engine=ONE)


def simulated(n: int, seed: int) -> tuple[jm.Panel, Any]:
    """Sequences of one process for all sizes, 30 % held out."""
    process = random_process(np.random.default_rng(SEED), N_STATES, jm.emissions.Gaussian(MEANS, 1.0))
    panel, _ = jm.simulate(process, n, N_OBSERVATIONS, mean_gap=MEAN_GAP, random_state=1000 * seed + 1)
    return jm.hold_out(panel, HELD_OUT, random_state=seed)


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    lines: dict[str, Any] = {}
    for model in MODELS:
        rows = []
        for n in sorted({task.settings["n"] for task in work if task.settings["model"] == model}):
            own = [r for t, r in zip(work, found, strict=True) if (t.settings["n"], t.settings["model"]) == (n, model)]
            rows.append(
                {
                    "n": n,
                    "n_sets": len(own),
                    "seconds": mean_and_error([result["seconds"] for result in own]),
                    "error": mean_and_error([result["error"] for result in own]),
                    "n_states": [result["n_states"] for result in own],
                    "sweeps": [result["sweeps"] for result in own],
                }
            )
        x, y = np.log10([row["n"] for row in rows]), np.log10([row["seconds"]["mean"] for row in rows])
        large = x >= 3
        slope = float(np.polyfit(x[large], y[large], 1)[0]) if large.sum() > 1 else None
        lines[model] = {"rows": rows, "slope": slope}
    about = {"n_states": N_STATES, "n_observations": N_OBSERVATIONS, "mean_gap": MEAN_GAP, "means": MEANS, "bins": BINS}
    return {**about, "held_out": round(100 * HELD_OUT), "lines": lines}


def draw(result: dict[str, Any], folder: Path) -> None:
    fig, axes = figures.figure(1, 2, (4.8, 2.9))
    time_ax, error_ax = axes[0]
    styles = {"infinite": (figures.BLUE, "o"), "given": (figures.ORANGE, "^")}
    for model, (colour, marker) in styles.items():
        rows = result["lines"][model]["rows"]
        n = [row["n"] for row in rows]
        time_ax.plot(
            n, [row["seconds"]["mean"] for row in rows], color=colour, marker=marker, label=MODELS[model]
        )  # fmt: skip
        error_ax.errorbar(
            n, [row["error"]["mean"] for row in rows], yerr=[2 * row["error"]["se"] for row in rows], color=colour,
            marker=marker, capsize=2,
        )  # fmt: skip
    last = result["lines"]["infinite"]["rows"][-1]
    ends = np.array([rows[0]["n"], last["n"]])
    time_ax.plot(ends, last["seconds"]["mean"] / last["n"] * ends, color="black", linestyle=":", label="linear")
    time_ax.set(xlabel="sequences", ylabel="CPU time of a fit (s)", yscale="log")
    error_ax.set(xlabel="sequences", ylabel="error (%)")
    for ax in (time_ax, error_ax):
        figures.decades(ax)
    fig.legend(*time_ax.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    figures.save(fig, folder, "scaling")
