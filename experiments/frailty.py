"""Frailty: how well the variance of what multiplies the rates of people is found, and the level of the test.

Illness and death, 200 people seen 10 times about one unit of time apart, deaths known to the day.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from lab import ONE
from tasks import Task

import jumpmeans as jm
from jumpmeans.comparators import EM

RATES = {"well": {"ill": 0.3, "dead": 0.03}, "ill": {"well": 0.2, "dead": 0.15}}
MOVES = jm.Structure({state: list(to) for state, to in RATES.items()}, initial="given")
PEOPLE, LOOKS = 200, 10
VARIANCES = (0.0, 0.25, 1.0)
LEVEL = 0.05


def tasks(quick: bool) -> list[Task]:
    return [
        Task("frailty:find", {"variance": v, "seed": seed}, 4.0)
        for v in VARIANCES
        for seed in range(4 if quick else 100 if v == 0 else 40)
    ]


def find(variance: float, seed: int) -> dict[str, Any]:
    """Task: variance and rate of falling ill found with and without frailty, and the test of one against the other."""
    process = jm.Process.from_generator(RATES, initial_probs=[1, 0, 0])
    panel, _ = jm.simulate(
        process, PEOPLE, LOOKS, exact=["dead"], frailty_variance=variance, random_state=seed
    )  # fmt: skip
    options: dict[str, Any] = {"emission": "direct", "structure": MOVES, "engine": ONE}
    none = EM(**options).fit(panel)
    some = EM(**options, frailty="sequence").fit(panel)
    test = jm.likelihood_ratio(none, some, panel, first="given")
    se = None
    if variance > 0 and some.frailty_variance_ > 0:
        se = float(some.information(panel).standard_error(lambda m: m.frailty_variance_))
    return {
        "variance": some.frailty_variance_,
        "se": se,
        "p_value": test.p_value,
        "falls": float(min(np.diff(some.history_.values), default=0.0)),
        "rate": [model.generator()["well", "ill"] for model in (none, some)],
    }


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    out = {}
    for v in VARIANCES:
        own = [result for task, result in zip(work, found, strict=True) if task.settings["variance"] == v]
        estimates = np.array([one["variance"] for one in own])
        told = [one for one in own if one["se"] is not None]
        out[str(v)] = {
            "n": len(own),
            "mean": float(estimates.mean()),
            "spread": float(estimates.std(ddof=1)),
            "within_two": float(np.mean([abs(one["variance"] - v) <= 2 * one["se"] for one in told])) if told else None,
            "rejected": float(np.mean([one["p_value"] < LEVEL for one in own])),
            "rates": np.mean([one["rate"] for one in own], axis=0).tolist(),
            "largest_fall": float(min(one["falls"] for one in own)),
        }
    return {"people": PEOPLE, "looks": LOOKS, "level": LEVEL, "rate": RATES["well"]["ill"], "found": out}


def markdown(result: dict[str, Any]) -> str:
    """The table of docs/patients.md."""
    lines = [
        "| true variance | panels | mean of those found | spread | within 2 standard errors, % "
        "| none refused at 5 %, % | rate of falling ill (true 0.3), without | with |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for v, own in result["found"].items():
        within = "" if own["within_two"] is None else f"{100 * own['within_two']:.0f}"
        lines.append(
            f"| {float(v):g} | {own['n']} | {own['mean']:.3f} | {own['spread']:.3f} | {within} "
            f"| {100 * own['rejected']:.1f} | {own['rates'][0]:.3f} | {own['rates'][1]:.3f} |"
        )
    return "\n".join(lines)


def draw(result: dict[str, Any], folder: Path) -> None:
    """No picture."""
