"""What the core shows: JUMP-means on the synthetic sets and on ICU pressure, against limits and simple rivals.

Writes results/core.json and prints it as tables: `python experiments/core.py [--quick]`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from protocol import Known, paired_interval, percent_wrong, recovered, synthetic_1, synthetic_2

import jumpmeans as jm
from jumpmeans.comparators import CarriedForward, Interpolation, KernelSmoother, MostCommon

RESULTS = Path(__file__).parent / "results"


def directly_observed(seeds: range, gaps: str, mean_gap: float) -> dict[str, Any]:
    """Error (%) on Synthetic 1 and the relative error of the rates, weighted by time."""
    rows = []
    for seed in seeds:
        process, panel, truth = synthetic_1(seed, gaps, mean_gap)
        masked, held = jm.hold_out(panel, 0.3, random_state=seed)
        model = jm.JumpMeans(emission="direct", states=range(10)).fit(masked)
        plain = jm.JumpMeans(emission="direct", states=range(10), refine=0).fit(masked)
        time = truth.time_in_state().sum(axis=0)
        rows.append(
            {
                "most_common": percent_wrong(MostCommon(emission="direct").fit(masked).predict_value(masked), held),
                "trajectory": percent_wrong(model.predict_value(masked), held),
                "posterior": percent_wrong(model.predict_value(masked, "posterior"), held),
                "trajectory_refine_0": percent_wrong(plain.predict_value(masked), held),
                "posterior_refine_0": percent_wrong(plain.predict_value(masked, "posterior"), held),
                "bayes_limit": percent_wrong(Known(process).predict_value(masked, "posterior"), held),
                "rate_error": rate_error(model.process_.rates, process.rates, time),
            }
        )
    return summary(rows)


def rate_error(rates: Any, true: Any, time: Any) -> float:
    """Relative error (%) of the rates, weighted by the time spent in each state."""
    return 100.0 * float(time @ (np.abs(rates - true) / true) / time.sum())


def short_windows(seeds: range) -> dict[str, Any]:
    """Relative error (%) of the rates from 3,000 windows of one mean dwell, beside that of the true paths."""
    rows = []
    for seed in seeds:
        process, panel, truth = synthetic_1(seed, mean_gap=0.25, n_sequences=3000, n_observations=5)
        model = jm.JumpMeans(emission="direct", states=range(10)).fit(panel)
        time = truth.time_in_state().sum(axis=0)
        known = truth.jump_counts().sum(axis=1) / time
        guesses = {"rate_error": model.process_.rates, "true_paths": known, "rates_of_J": model.rates_}
        rows.append({name: rate_error(rates, process.rates, time) for name, rates in guesses.items()})
    return summary(rows)


def hidden(seeds: range) -> dict[str, Any]:
    """Error (%) on Synthetic 2 at mean gap 0.3, and the share of baseline → Bayes limit recovered."""
    rows = []
    for seed in seeds:
        process, panel, _ = synthetic_2(seed)
        masked, held = jm.hold_out(panel, 0.3, random_state=seed)
        model = jm.JumpMeans(5, emission="categorical").fit(masked)
        plain = jm.JumpMeans(5, emission="categorical", refine=0).fit(masked)
        rows.append(
            {
                "most_common": percent_wrong(MostCommon(emission="direct").fit(masked).predict_value(masked), held),
                "trajectory": percent_wrong(model.predict_value(masked), held),
                "posterior": percent_wrong(model.predict_value(masked, "posterior"), held),
                "trajectory_refine_0": percent_wrong(plain.predict_value(masked), held),
                "posterior_refine_0": percent_wrong(plain.predict_value(masked, "posterior"), held),
                "bayes_limit": percent_wrong(Known(process).predict_value(masked, "posterior"), held),
            }
        )
    out = summary(rows)
    mean = out["mean"]
    out["recovered"] = {
        key: recovered(mean["most_common"], mean[key], mean["bayes_limit"])
        for key in ("trajectory", "posterior", "trajectory_refine_0", "posterior_refine_0")
    }
    return out


def icu(splits: range) -> dict[str, Any]:
    """Category error (%) of systolic pressure, 6 states, a quarter held out."""
    panel, bins = jm.datasets.load_icu_pressure(), jm.datasets.PRESSURE_BINS
    rivals = {
        "most_common": MostCommon(bins=bins),
        "carried_forward": CarriedForward(),
        "interpolation": Interpolation(),
        "kernel_smoother": KernelSmoother(),
    }
    rows = []
    for split in splits:
        masked, held = jm.hold_out(panel, 0.25, random_state=split)
        row = {
            name: percent_wrong(rival.fit(masked).predict_value(masked), held, bins) for name, rival in rivals.items()
        }
        for suffix, model in (("", jm.JumpMeans(6)), ("_refine_0", jm.JumpMeans(6, refine=0))):
            model.fit(masked)
            for method in ("trajectory", "posterior"):
                row[method + suffix] = percent_wrong(model.predict_value(masked, method), held, bins)
        rows.append(row)
    out = summary(rows)
    column = lambda name: [row[name] for row in rows]  # noqa: E731
    out["posterior_minus_interpolation"] = paired_interval(column("posterior"), column("interpolation"))
    out["trajectory_minus_carried_forward"] = paired_interval(column("trajectory"), column("carried_forward"))
    return out


def summary(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Means over data sets, and every row."""
    return {"mean": {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 data sets and 10 splits; nothing is written")
    quick = parser.parse_args().quick
    seeds, splits = (range(2), range(10)) if quick else (range(6), range(50))
    results = {
        "synthetic_1_exponential": directly_observed(seeds, "exponential", 1.0),
        "synthetic_1_regular_5": directly_observed(seeds, "regular", 5.0),
        "short_windows": short_windows(seeds),
        "synthetic_2": hidden(seeds),
        "icu": icu(splits),
    }
    for name, result in results.items():
        print(f"\n{name} ({len(result['rows'])} sets)")
        for key, value in result["mean"].items():
            print(f"  {key:<22}{value:8.2f}")
        for key, value in result.items():
            if key not in ("mean", "rows"):
                print(f"  {key}: {value}")
    if not quick:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "core.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
