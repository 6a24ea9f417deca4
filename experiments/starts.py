"""How often a fit from its usual starts ends near the best that is known: states that take unequal shares of the time.

One start spreads the states evenly over the values, so that a state of many rows gets two and a rare one none. The
default tries three and takes one of them to its end; "3 starts" takes all three there.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from lab import ONE
from sklearn.metrics import adjusted_rand_score
from tasks import Task

import jumpmeans as jm
from jumpmeans.comparators import EM

PANELS, PEOPLE, ROWS, GAP = 50, 100, 20, 0.4
# Mean dwells of the five states, in an order of their own on each panel; means 3 to 6 sds apart.
DWELLS = (0.6, 2.0, 4.0, 6.0, 16.0)
# A log-likelihood this much below the best of all fits is another solution.
FAR = 10.0
FITS: dict[str, Any] = {
    "JumpMeans, 1 start": lambda: jm.JumpMeans(5, n_init=1, engine=ONE),
    "JumpMeans, default": lambda: jm.JumpMeans(5, engine=ONE),
    "JumpMeans, 3 starts": lambda: jm.JumpMeans(5, n_init=3, engine=ONE),
    "JumpMeans, 10 starts": lambda: jm.JumpMeans(5, n_init=10, engine=ONE),
    "EM, 1 start": lambda: EM(5, n_init=1, engine=ONE),
    "EM, default": lambda: EM(5, engine=ONE),
    "EM, 3 starts": lambda: EM(5, n_init=3, engine=ONE),
}


def tasks(quick: bool) -> list[Task]:
    return [Task("starts:one", {"seed": seed}, 5.0) for seed in range(8 if quick else PANELS)]


def one(seed: int) -> dict[str, Any]:
    """Task: adjusted Rand index, log-likelihood and CPU seconds of all fits of one panel, and from the truth."""
    rng = np.random.default_rng(seed)
    P = np.zeros((5, 5))
    for m in range(5):
        P[m, np.arange(5) != m] = rng.dirichlet(np.full(4, 2.0))
    emission = jm.emissions.Gaussian(np.cumsum(rng.uniform(3.0, 6.0, 5)), 1.0)
    process = jm.Process(1.0 / rng.permutation(DWELLS), P, emission=emission)
    panel, truth = jm.simulate(process, PEOPLE, ROWS, mean_gap=GAP, random_state=seed)
    states = truth.at(panel.times, panel.ids[panel.sequence_index])
    out: dict[str, Any] = {"truth": EM(start=process, engine=ONE).fit(panel).log_likelihood_}
    for name, make in FITS.items():
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make().fit(panel)
        seconds = time.process_time() - begun
        rand = float(adjusted_rand_score(states, model.predict(panel)))
        out[name] = {"rand": rand, "log_likelihood": float(model.log_likelihood(panel)), "seconds": seconds}
    return out


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    best = [max(r["truth"], *(r[name]["log_likelihood"] for name in FITS)) for r in found]
    return {
        "n_panels": len(found),
        "fits": {
            name: {
                "rand": float(np.mean([r[name]["rand"] for r in found])),
                "least_rand": float(np.min([r[name]["rand"] for r in found])),
                "far": int(sum(top - r[name]["log_likelihood"] > FAR for r, top in zip(found, best, strict=True))),
                "seconds": float(np.mean([r[name]["seconds"] for r in found])),
            }
            for name in FITS
        },
    }


def markdown(result: dict[str, Any]) -> str:
    """The table of docs/choices.md."""
    lines = ["| fit | adjusted Rand index | least | another solution | CPU s |", "| --- | --- | --- | --- | --- |"]
    for name, own in result["fits"].items():
        far = f"{own['far']} of {result['n_panels']}"
        lines.append(f"| {name} | {own['rand']:.3f} | {own['least_rand']:.2f} | {far} | {own['seconds']:.2f} |")
    return "\n".join(lines)


def draw(result: dict[str, Any], folder: Path) -> None:
    """The table."""
    print(markdown(result))
