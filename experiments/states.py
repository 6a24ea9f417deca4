"""The number of states, learned: simulated panels where it is known, defaults only."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import figures
import numpy as np
from lab import ONE
from sklearn.metrics import adjusted_rand_score
from tasks import Task

import jumpmeans as jm

# Number of states and their distance in standard deviations of the noise.
PANELS = {"apart": (5, 4.0), "close": (5, 2.0), "noise": (1, 0.0)}
TITLES = {"apart": "5 states, 4 sds apart", "close": "5 states, 2 sds apart", "noise": "noise alone"}
SIZES = (50, 200, 2000)
MOST_UNCHECKED = 12
GAIN_STEPS = 40
# With everything, without the check of births, and the paper's moves alone from 1 and from 2 states.
WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "unchecked": {"check": False, "max_states": MOST_UNCHECKED},
    "paper": {"proposals": "paper", "check": False},
    "paper_from_2": {"proposals": "paper", "check": False, "start_states": 2, "max_states": MOST_UNCHECKED},
}


def simulated(kind: str, n_sequences: int, seed: int) -> tuple[jm.Process, jm.Panel, np.ndarray]:
    """A panel of 20 observations a sequence, mean dwell 5 gaps; its process and the true state of every row."""
    M, distance = PANELS[kind]
    P = (1.0 - np.eye(M)) / max(M - 1, 1)
    emission = jm.emissions.Gaussian(distance * np.arange(M), sds=1.0)
    process = jm.Process(np.full(M, 0.2 if M > 1 else 0.0), P, emission=emission)
    panel, truth = jm.simulate(process, n_sequences, 20, random_state=seed)
    return process, panel, truth.at(panel.times, panel.ids[panel.sequence_index])


def tasks(quick: bool) -> list[Task]:
    n = 2 if quick else 20
    work = [
        Task("states:recover", {"kind": kind, "n_sequences": size, "seed": seed, "way": "default"}, size / 60)
        for size in (SIZES[:2] if quick else SIZES)
        for kind in PANELS
        for seed in range(n)
    ]
    others = [
        Task("states:recover", {"kind": kind, "n_sequences": 200, "seed": seed, "way": way}, 5.0)
        for way in WAYS
        if way != "default"
        for kind in PANELS
        for seed in range(n // 2)
    ]
    gained = [
        Task("states:gains", {"kind": kind, "n_sequences": size, "seed": seed}, size / 40)
        for size in SIZES[:2]
        for kind in PANELS
        for seed in range(n // 2)
    ]
    return work + others + gained


def recover(kind: str, n_sequences: int, seed: int, way: str) -> dict[str, Any]:
    """Task: number of states found, how well rows are told apart beside the limit, and CPU seconds."""
    process, panel, truth = simulated(kind, n_sequences, seed)
    begun = time.process_time()
    model = jm.InfiniteJumpMeans(engine=ONE, **WAYS[way]).fit(panel)
    seconds = time.process_time() - begun
    return {
        "n_states": model.n_states_,
        "index": float(adjusted_rand_score(truth, model.predict(panel))),
        "posterior_index": float(adjusted_rand_score(truth, model.predict_proba(panel).argmax(axis=1))),
        "limit": float(
            adjusted_rand_score(truth, jm.JumpMeans.from_process(process).predict_proba(panel).argmax(axis=1))
        ),
        "seconds": seconds,
        "moves": [step.kind for step in model.path_],
    }


def gains(kind: str, n_sequences: int, seed: int) -> dict[str, Any]:
    """Task: what one state more adds to the log-likelihood, up to one too many, and what the check asks of it."""
    _, panel, _ = simulated(kind, n_sequences, seed)
    levels, prices = [], []
    for M in range(1, PANELS[kind][0] + 2):
        process = jm.JumpMeans(M, refine=GAIN_STEPS, engine=ONE).fit(panel).process_
        levels.append(jm.JumpMeans.from_process(process, engine=ONE).log_likelihood(panel))
        # half the logarithm of the number of observations for every emission parameter, rate and share of the base row
        n_parameters = len(process.rates) * (process.emission.n_free + 2)
        prices.append(0.5 * np.log(panel.n_observations) * n_parameters)
    return {"gains": np.diff(levels).tolist(), "price": prices[1] - prices[0]}


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    gained: dict[str, Any] = {}
    for task, result in zip(work, found, strict=True):
        s = task.settings
        if task.work == "states:gains":
            gained.setdefault(s["kind"], {}).setdefault(str(s["n_sequences"]), []).append(result)
            continue
        cells.setdefault(s["way"], {}).setdefault(s["kind"], {}).setdefault(str(s["n_sequences"]), []).append(result)
    for kinds in cells.values():
        for kind, sizes in kinds.items():
            kinds[kind] = {size: summary(rows, PANELS[kind][0]) for size, rows in sizes.items()}
    return {
        "titles": TITLES, "most_unchecked": MOST_UNCHECKED, "ways": cells, "gain_steps": GAIN_STEPS,
        "gains": {kind: {size: extremes(rows) for size, rows in sizes.items()} for kind, sizes in gained.items()},
    }  # fmt: skip


def extremes(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The least gain of a state that is there, and the largest of one too many."""
    true = [gain for row in rows for gain in row["gains"][:-1]]
    least = float(min(true)) if true else None
    return {
        "n": len(rows),
        "least": least,
        "largest": float(max(r["gains"][-1] for r in rows)),
        "price": rows[0]["price"],
    }


def summary(rows: list[dict[str, Any]], truth: int) -> dict[str, Any]:
    numbers = [row["n_states"] for row in rows]
    keys = ("index", "posterior_index", "limit", "seconds")
    means = {key: float(np.mean([row[key] for row in rows])) for key in keys}
    return {"n": len(rows), "right": numbers.count(truth), "numbers": numbers, **means}


def draw(result: dict[str, Any], folder: Path) -> None:
    """How often each number of states was found."""
    fig, axes = figures.figure(1, 3, (6.4, 2.4))
    for ax, kind in zip(axes[0], PANELS, strict=True):
        found = result["ways"]["default"][kind]
        sizes = list(found)
        most = 7
        for k, (size, colour) in enumerate(zip(sizes, (figures.SKY, figures.BLUE, figures.ORANGE), strict=False)):
            share = np.bincount(np.minimum(found[size]["numbers"], most), minlength=most + 1)[1:] / found[size]["n"]
            ax.bar(np.arange(1, most + 1) + 0.28 * (k - 1), 100 * share, 0.26, color=colour, label=f"{size} sequences")
        ax.axvline(PANELS[kind][0], color="0.6", linewidth=0.8, zorder=0)
        ax.set_title(TITLES[kind])
        ax.set_xlabel("states found")
    axes[0, 0].set_ylabel("panels (%)")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    figures.save(fig, folder, "states")
