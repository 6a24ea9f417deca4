"""Why some results differ from the paper's: read-outs and parameters told apart, MCMC scored twice, other gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import figures
import numpy as np
from lab import ONE, SETS, errors, fit, load, mean_and_error
from protocol import percent_wrong, recovered, synthetic_1
from tasks import Task

import jumpmeans as jm
from jumpmeans.comparators import MostCommon

MCMC_SETS = ("synthetic_1", "synthetic_2_dense", "ms")
PARAMETERS = {"printed": "JUMP-means as printed", "plain": "JUMP-means, our weights", "em": "EM", "true": "the truth"}
PLACES = ("between equal observations", "between different observations", "before the first or after the last")
WHERE_SETS = ("synthetic_1", "ms")
# Ways to find the number of states on ICU: what differs from JUMP-means as printed.
BIRTHS: dict[str, dict[str, Any]] = {
    "from one state, the paper's move": {"start_states": 1},
    "from two states, the paper's move": {},
    "from one state, all moves": {"start_states": 1, "proposals": "all"},
    "from one state, all moves, births checked": {"start_states": 1, "proposals": "all", "check": True},
}
GAPS = (0.3, 1.0, 3.0, 5.0, 10.0)


def tasks(quick: bool) -> list[Task]:
    seeds = range(3 if quick else 10)
    work = [Task("causes:parameters", {"seed": seed}, 4.0) for seed in seeds]
    work += [Task("causes:mcmc", {"set": name, "seed": seed}, 3.0) for name in MCMC_SETS for seed in seeds]
    work += [Task("causes:where", {"set": name, "seed": seed}, 2.0) for name in WHERE_SETS for seed in seeds]
    work += [Task("causes:births", {"split": split, "variant": key}, 1.5) for key in BIRTHS for split in seeds]
    gaps = GAPS[1::2] if quick else GAPS
    return work + [Task("causes:gap", {"gaps": gaps_kind, "mean_gap": gap, "seed": seed}, 1.0)
                   for gaps_kind in ("exponential", "regular") for gap in gaps for seed in seeds]  # fmt: skip


def parameters(seed: int) -> dict[str, Any]:
    """Task: Synthetic 2, parameters from four places, read out as the best trajectory and as the posterior."""
    case = load("synthetic_2_dense", seed)
    assert case.process is not None
    fitted = {key: fit(key, case)[0] for key in ("printed", "plain", "em")}
    processes = {**{key: model.process_ for key, model in fitted.items()}, "true": case.process}
    found: dict[str, Any] = {"most_common": percent_wrong(
        MostCommon(emission="direct").fit(case.masked).predict_value(case.masked), case.held
    )}  # fmt: skip
    for key, process in processes.items():
        known = jm.JumpMeans.from_process(process, engine=ONE)
        reader = fitted[key] if key in ("printed", "plain") else known
        found[f"{key}_trajectory"] = percent_wrong(reader.predict_value(case.masked, "trajectory"), case.held)
        found[f"{key}_posterior"] = percent_wrong(known.predict_value(case.masked), case.held)
        found[f"{key}_sharpness"] = 100.0 * float(process.emission.columns[0].probs.max(axis=1).mean())
    return found


def mcmc(set: str, seed: int) -> dict[str, Any]:
    """Task: MCMC scored by the Bayes estimator, and by a value drawn from the same predictive distribution."""
    case = load(set, seed)
    model, _ = fit("mcmc", case)
    column: Any = model.process_.emission.columns[0]
    labels = (column.labels if hasattr(column, "labels") else column.symbols).tolist()
    chances = model.predict_value_proba(case.masked)[case.held.rows]
    right = chances[np.arange(len(chances)), [labels.index(value) for value in case.held.values.tolist()]]
    best = percent_wrong(model.predict_value(case.masked), case.held)
    r_hat = model.r_hat_[np.isfinite(model.r_hat_)]
    return {"estimator": best, "draw": 100.0 * float(1.0 - right.mean()), "r_hat": float(np.median(r_hat))}


def births(split: int, variant: str) -> dict[str, Any]:
    """Task: states and errors (%) on ICU with the printed weights, by how states are born."""
    case = load("icu", split)
    model, _ = fit("printed", case, **BIRTHS[variant])
    trajectory, posterior = errors("printed", case, model).values()
    return {"n_states": int(model.n_states_), "trajectory": trajectory, "posterior": posterior}


def where(set: str, seed: int) -> dict[str, Any]:
    """Task: errors (%) by where the held-out row lies, and the rates of J beside those of the process."""
    case = load(set, seed)
    places = place(case.masked)[np.flatnonzero(np.isnan(case.masked.values[:, 0]))]
    plain, em = (fit(key, case)[0] for key in ("plain", "em"))
    guesses = {
        "trajectory": plain.predict_value(case.masked, "trajectory"),
        "posterior": plain.predict_value(case.masked, "posterior"),
        "em": em.predict_value(case.masked, "posterior"),
    }
    wrong = {key: values[case.held.rows] != case.held.values for key, values in guesses.items()}
    found: dict[str, Any] = {"rates_of_J": plain.objective_params_.rates.tolist(), "rates_of_em": em.rates_.tolist()}
    found["counts"] = [int((places == k).sum()) for k in range(len(PLACES))]
    for key, miss in wrong.items():
        found[key] = [int(miss[places == k].sum()) for k in range(len(PLACES))]
    return found


def place(masked: jm.Panel) -> Any:
    """(n,) index into PLACES of every row of a panel of labels."""
    out = np.full(masked.n_observations, 2)
    x = masked.values[:, 0]
    for a, b in zip(masked.offsets[:-1].tolist(), masked.offsets[1:].tolist(), strict=True):
        seen = np.flatnonzero(np.isfinite(x[a:b])) + a
        for row in range(a, b):
            before, after = seen[seen < row], seen[seen > row]
            if len(before) and len(after):
                out[row] = 0 if x[before[-1]] == x[after[0]] else 1
    return out


def gap(gaps: str, mean_gap: float, seed: int) -> dict[str, Any]:
    """Task: Synthetic 1 with other times between looks."""
    process, panel, _ = synthetic_1(seed, gaps, mean_gap)
    masked, held = jm.hold_out(panel, 0.3, random_state=seed)
    model = jm.JumpMeans(**SETS["synthetic_1"].options, engine=ONE, refine=0).fit(masked)
    return {
        "most_common": percent_wrong(MostCommon(emission="direct").fit(masked).predict_value(masked), held),
        "trajectory": percent_wrong(model.predict_value(masked, "trajectory"), held),
        "posterior": percent_wrong(model.predict_value(masked, "posterior"), held),
        "bayes_limit": percent_wrong(jm.JumpMeans.from_process(process).predict_value(masked, "posterior"), held),
    }


def collect(work: list[Task], found: list[dict[str, Any]]) -> dict[str, Any]:
    pairs = list(zip(work, found, strict=True))
    chosen = [result for task, result in pairs if task.work == "causes:parameters"]
    table = means(chosen)
    limit, baseline = table["true_posterior"]["mean"], table["most_common"]["mean"]
    share = {
        key: recovered(baseline, value["mean"], limit)
        for key, value in table.items()
        if key.endswith(("trajectory", "posterior"))
    }
    scored = {
        name: means([r for t, r in pairs if t.work == "causes:mcmc" and t.settings["set"] == name])
        for name in MCMC_SETS
    }
    settings = sorted({(t.settings["gaps"], t.settings["mean_gap"]) for t in work if t.work == "causes:gap"})
    rows = [
        {"gaps": kind, "mean_gap": gap,
         **means([r for t, r in pairs if (t.settings.get("gaps"), t.settings.get("mean_gap")) == (kind, gap)])}
        for kind, gap in settings
    ]  # fmt: skip
    places = {
        name: by_place([r for t, r in pairs if t.work == "causes:where" and t.settings["set"] == name])
        for name in WHERE_SETS
    }
    born = {
        key: means([r for t, r in pairs if t.work == "causes:births" and t.settings["variant"] == key])
        for key in BIRTHS
    }
    return {
        "births": born,
        "where": places,
        "n": len(chosen),
        "parameters": {"means": table, "recovered": share},
        "mcmc": scored,
        "gaps": rows,
    }


def by_place(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Pooled over splits: share of the rows and error (%) by place, and the ratio of the rates."""
    counts = np.sum([result["counts"] for result in results], axis=0)
    rows = [{"place": name, "share": 100.0 * float(n / counts.sum())} for name, n in zip(PLACES, counts, strict=True)]
    for key in ("trajectory", "posterior", "em"):
        for row, n, miss in zip(rows, counts, np.sum([result[key] for result in results], axis=0), strict=True):
            row[key] = 100.0 * float(miss / max(n, 1))
    ratio = [np.divide(result["rates_of_J"], result["rates_of_em"]) for result in results]
    return {"rows": rows, "median_rate_ratio": float(np.median(ratio))}


def means(results: list[dict[str, Any]]) -> dict[str, Any]:
    return {key: mean_and_error([result[key] for result in results]) for key in results[0] if key != "task_seconds"}


def draw(result: dict[str, Any], folder: Path) -> None:
    """Error over the mean gap: what can be known, and what is found."""
    fig, axes = figures.figure(1, 2, (4.8, 2.9), sharey=True)
    styles = {
        "most_common": figures.STYLE["most_common"],
        "trajectory": figures.STYLE["plain_trajectory"],
        "posterior": figures.STYLE["plain_posterior"],
        "bayes_limit": {"color": "black", "label": "limit"},
    }
    for ax, kind in zip(axes[0], ("exponential", "regular"), strict=True):
        rows = [row for row in result["gaps"] if row["gaps"] == kind]
        for key, style in styles.items():
            ax.plot([row["mean_gap"] for row in rows], [row[key]["mean"] for row in rows], **style)
        ax.set(xscale="log", xlabel="mean gap (1 / mean rate)", title=f"{kind} gaps")
        ax.set_xticks([row["mean_gap"] for row in rows], [f"{row['mean_gap']:g}" for row in rows])
        ax.minorticks_off()
    axes[0, 0].set_ylabel("error (%)")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    figures.save(fig, folder, "gaps")
