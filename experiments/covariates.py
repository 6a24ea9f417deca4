"""How well effects of covariates come back, by EM: simulated panels of people who differ in sex and grow older.

Paths are drawn here, piece by piece between visits, with nothing of the package.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from lab import ONE
from tasks import Task

import jumpmeans as jm
from jumpmeans.comparators import EM

PANELS, PEOPLE, VISITS, GAP = 200, 400, 8, 1.0
LEVEL = 0.95
Q = np.array([[0, 0.3, 0.05], [0.2, 0, 0.2], [0, 0, 0]])
# Log hazard ratios of sex, and of a year of age, of each move.
EFFECTS = {
    "sex": np.array([[0, 0.5, 0.3], [-0.4, 0, 0.6], [0, 0, 0]]),
    "age": np.array([[0, 0.03, 0.05], [-0.02, 0, 0.02], [0, 0, 0]]),
}
MOVES = np.argwhere(Q > 0)


def tasks(quick: bool) -> list[Task]:
    return [Task("covariates:one", {"seed": seed}, 1.0) for seed in range(8 if quick else PANELS)]


def draw_panel(seed: int) -> jm.Panel:
    """Visits at irregular times, age as it is at each of them; those who have died are not seen again."""
    rng = np.random.default_rng(seed)
    ids, times, states, sexes, ages = [], [], [], [], []
    for person in range(PEOPLE):
        sex, age, t, state = int(rng.integers(2)), rng.uniform(45.0, 75.0), 0.0, 0
        for _ in range(VISITS):
            ids.append(person)
            times.append(t)
            states.append(state)
            sexes.append(sex)
            ages.append(age + t)
            if state == 2:
                break
            rates = Q * np.exp(sex * EFFECTS["sex"] + (age + t - 60.0) * EFFECTS["age"])
            now, t = t, t + rng.exponential(GAP)
            while rates[state].sum() > 0:
                now += rng.exponential(1.0 / rates[state].sum())
                if now > t:
                    break
                state = int(rng.choice(3, p=rates[state] / rates[state].sum()))
    return jm.Panel.from_arrays(times, states, ids, covariates={"sex": sexes, "age": ages})


def one(seed: int) -> dict[str, Any]:
    """Task: estimates, standard errors and intervals on one panel."""
    panel = draw_panel(seed)
    structure = jm.Structure(allowed=Q > 0, initial="given", covariates="all")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EM(emission="direct", states=[0, 1, 2], structure=structure, engine=ONE, tol=1e-9, max_iter=1000)
        model.fit(panel)
        found = model.hazard_ratios(panel, LEVEL, backend="pandas")
    return {
        "estimate": np.log(found["hazard_ratio"]).tolist(),
        "se": found["se_log"].tolist(),
        "converged": bool(model.converged_),
        "steps": int(model.n_iter_),
    }


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    true = np.array([EFFECTS[name][r, s] for name in EFFECTS for r, s in MOVES])
    estimate, se = (np.array([result[name] for result in found]) for name in ("estimate", "se"))
    within = np.abs(estimate - true) <= 2.0 * se
    names = [f"{name} on {r} -> {s}" for name in EFFECTS for r, s in MOVES]
    return {
        "n_panels": len(found),
        "converged": sum(result["converged"] for result in found),
        "within_two_standard_errors": float(within.mean()),
        "effects": {
            name: {
                "true": float(true[i]),
                "bias": float(estimate[:, i].mean() - true[i]),
                "sd": float(estimate[:, i].std(ddof=1)),
                "mean_se": float(se[:, i].mean()),
                "within": float(within[:, i].mean()),
            }
            for i, name in enumerate(names)
        },
    }


def markdown(results: dict[str, Any]) -> str:
    """The table of docs/covariates.md."""
    lines = [
        "| effect of | true | mean bias | spread | within 2 standard errors, % |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, own in results["effects"].items():
        lines.append(
            f"| {name.replace('->', '→')} | {own['true']:+.2f} | {own['bias']:+.3f} | {own['sd']:.3f} | "
            f"{100 * own['within']:.0f} |"
        )
    share = 100 * results["within_two_standard_errors"]
    return "\n".join([*lines, f"| all, {results['n_panels']} panels | | | | {share:.1f} |"])


def draw(results: dict[str, Any], folder: Path) -> None:
    """The numbers, as docs/covariates.md has them."""
    print(f"within two standard errors: {100 * results['within_two_standard_errors']:.1f} %")
    for name, own in results["effects"].items():
        told = f"bias {own['bias']:+.4f}, sd {own['sd']:.3f}, within {100 * own['within']:.0f} %"
        print(f"{name}: {own['true']:+.2f}, {told}")
