"""How much the hyperparameters matter: histograms of the error over 48 and over 1,125 settings, as in the paper."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import figures
import numpy as np
from lab import MOST_STATES, by_hand, errors, fit, load
from tasks import Task

MS_GRID = {
    "transition_weight": (0.1, 0.5, 1.0, 2.0),
    "prior_dwell_count": (0.1, 0.5, 1.0, 2.0),
    "prior_dwell_time": (0.1, 0.5, 2.0),
}
FIVE = (5e-5, 5e-4, 5e-3, 5e-2, 5e-1)
ICU_GRID = {
    "emission_weight": FIVE,
    "transition_weight": FIVE,
    "shared_row_weight": FIVE,
    "prior_time": (0.5, 5.0, 50.0),
    "state_cost": (0.5, 5.0, 50.0),
}
QUICK_ICU_GRID = {name: values[1:4:2] if values == FIVE else values[1:2] for name, values in ICU_GRID.items()}
# A setting is as good as the best if its error is at most so many points above the least.
AS_GOOD = 1.0
# And near to it within so many.
NEAR = 2.0
# The weights of one setting are of different orders of magnitude if the largest is so many times the least.
FAR_APART, CLOSE = 1000.0, 10.0
ICU_SPLIT = 0


def tasks(quick: bool) -> list[Task]:
    splits = range(2 if quick else 20)
    ms = [
        Task("sensitivity:ms", {"settings": settings, "splits": list(splits)}, 0.02 * len(splits))
        for settings in grid(MS_GRID)
    ]
    icu_grid = QUICK_ICU_GRID if quick else ICU_GRID
    icu = [Task("sensitivity:icu", {"settings": settings, "split": ICU_SPLIT}, 1.0) for settings in grid(icu_grid)]
    return ms + icu


def grid(values: dict[str, tuple[float, ...]]) -> list[dict[str, float]]:
    return [dict(zip(values, setting, strict=True)) for setting in product(*values.values())]


def ms(settings: dict[str, float], splits: list[int]) -> dict[str, Any]:
    """Task: mean error (%) of the paper's algorithm on MS over some splits."""
    found = []
    for split in splits:
        case = load("ms", split)
        model, _ = fit("plain", case, pseudo_count=0.0, **settings)
        found.append([*errors("plain", case, model).values(), by_hand(case)["most_common"]])
    trajectory, posterior, most_common = np.mean(found, axis=0).tolist()
    return {"trajectory": trajectory, "posterior": posterior, "most_common": most_common}


def icu(settings: dict[str, float], split: int) -> dict[str, Any]:
    """Task: error (%) of the paper's algorithm on one split of the ICU readings, and the number of states."""
    case = load("icu", split)
    model, seconds = fit("printed", case, max_states=MOST_STATES, **settings)
    trajectory, posterior = errors("printed", case, model).values()
    return {
        "trajectory": trajectory, "posterior": posterior, "n_states": int(model.n_states_), "seconds": seconds,
        "most_common": by_hand(case)["most_common"],
    }  # fmt: skip


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    sets = {}
    for name in ("ms", "icu"):
        own = [
            (task.settings["settings"], result)
            for task, result in zip(work, found, strict=True)
            if task.work == f"sensitivity:{name}"
        ]
        x = np.array([result["trajectory"] for _, result in own])
        posterior = np.array([result["posterior"] for _, result in own])
        sets[name] = {
            "n_settings": len(own),
            "most_common": own[0][1]["most_common"],
            "least": float(x.min()),
            "median": float(np.median(x)),
            "largest": float(x.max()),
            "share_as_good": float(np.mean(x <= x.min() + AS_GOOD)),
            "share_near": float(np.mean(x <= x.min() + NEAR)),
            "posterior_least": float(posterior.min()),
            "posterior_share_near": float(np.mean(posterior <= posterior.min() + NEAR)),
            "share_below_most_common": float(np.mean(x < own[0][1]["most_common"])),
            "settings": {key: [settings[key] for settings, _ in own] for key in own[0][0]},
            "trajectory": x.tolist(),
            "posterior": posterior.tolist(),
        }
    sets["icu"]["n_states"] = [r["n_states"] for t, r in zip(work, found, strict=True) if t.work == "sensitivity:icu"]
    spread = orders_apart(sets["icu"]["settings"])
    x = np.array(sets["icu"]["trajectory"])
    sets["icu"]["mean_far_apart"] = mean_or_none(x[spread >= FAR_APART])
    sets["icu"]["mean_close"] = mean_or_none(x[spread <= CLOSE])
    names = {
        "as_good_within": AS_GOOD,
        "near_within": NEAR,
        "far_apart": FAR_APART,
        "close": CLOSE,
        "icu_split": ICU_SPLIT,
        "most_states": MOST_STATES,
    }
    return {**names, "ms_splits": len(work[0].settings["splits"]), "sets": sets}


def orders_apart(settings: dict[str, list[float]]) -> Any:
    """Largest over least of the weights of the observations, the jumps and the shared rows."""
    weights = np.array([settings[key] for key in ("emission_weight", "transition_weight", "shared_row_weight")])
    return weights.max(axis=0) / weights.min(axis=0) * (1 + 1e-9)


def mean_or_none(x: Any) -> float | None:
    return float(x.mean()) if len(x) else None


def draw(result: dict[str, Any], folder: Path) -> None:
    fig, axes = figures.figure(1, 2, (4.8, 2.6))
    for ax, (name, title) in zip(axes[0], (("ms", "MS"), ("icu", "ICU")), strict=True):
        found = result["sets"][name]
        x = found["trajectory"]
        low, high = np.floor(min(x)), np.ceil(max([*x, found["most_common"]])) + 1
        ax.hist(x, bins=np.arange(low, high + 0.5, 1.0 if high - low > 8 else 0.5), color=figures.BLUE)
        ax.axvline(found["most_common"], color=figures.ORANGE, linestyle="--", label="most common")
        ax.set_title(f"{title}, {found['n_settings']:,} settings", loc="left")
        ax.set_xlabel("error (%)")
    axes[0, 0].set_ylabel("number of settings")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center")
    figures.save(fig, folder, "sensitivity")
