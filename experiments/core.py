"""What the core shows: JUMP-means on the synthetic sets and on ICU pressure, against limits and simple rivals.

Writes results/core.json and prints it as tables: `python experiments/core.py [--quick]`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from protocol import paired_interval, percent_wrong, recovered, synthetic_1, synthetic_2

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
                **both_criteria(model, masked, held),
                "posterior": percent_wrong(model.predict_value(masked, "posterior"), held),
                "trajectory_refine_0": percent_wrong(plain.predict_value(masked, "trajectory"), held),
                "posterior_refine_0": percent_wrong(plain.predict_value(masked, "posterior"), held),
                "bayes_limit": percent_wrong(jm.JumpMeans.from_process(process).predict_value(masked), held),
                "rate_error": rate_error(model.process_.rates, process.rates, time),
            }
        )
    return summary(rows)


def both_criteria(model: Any, masked: jm.Panel, held: Any, bins: Any = None) -> dict[str, float]:
    """Error (%) of the trajectory of least objective and of the one that errs least, and jumps a sequence of each."""
    least = model.decode(masked, criterion="time")
    return {
        "trajectory": percent_wrong(model.predict_value(masked, "trajectory"), held, bins),
        "trajectory_time": percent_wrong(model.predict_value(masked, "trajectory", criterion="time"), held, bins),
        "jumps": model.trajectories_.n_jumps / masked.n_sequences,
        "jumps_time": least.n_jumps / masked.n_sequences,
    }


def ms(splits: range) -> dict[str, Any]:
    """Error (%) on the EDSS windows, three states, half held out."""
    rows = []
    for split in splits:
        masked, held = jm.hold_out(jm.datasets.load_edss(), 0.5, random_state=split)
        model = jm.JumpMeans(emission="direct").fit(masked)
        plain = jm.JumpMeans(emission="direct", refine=0).fit(masked)
        rows.append(
            {
                "most_common": percent_wrong(MostCommon(emission="direct").fit(masked).predict_value(masked), held),
                "carried_forward": percent_wrong(
                    CarriedForward(emission="direct").fit(masked).predict_value(masked), held
                ),
                **both_criteria(model, masked, held),
                "posterior": percent_wrong(model.predict_value(masked), held),
                "trajectory_refine_0": percent_wrong(plain.predict_value(masked, "trajectory"), held),
                "posterior_refine_0": percent_wrong(plain.predict_value(masked), held),
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
        guesses = {"rate_error": model.process_.rates, "true_paths": known, "rates_of_J": model.objective_params_.rates}
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
                **both_criteria(model, masked, held),
                "posterior": percent_wrong(model.predict_value(masked, "posterior"), held),
                "trajectory_refine_0": percent_wrong(plain.predict_value(masked, "trajectory"), held),
                "posterior_refine_0": percent_wrong(plain.predict_value(masked, "posterior"), held),
                "bayes_limit": percent_wrong(jm.JumpMeans.from_process(process).predict_value(masked), held),
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
            if not suffix:
                row |= both_criteria(model, masked, held, bins)
        rows.append(row)
    out = summary(rows)
    column = lambda name: [row[name] for row in rows]  # noqa: E731
    out["posterior_minus_interpolation"] = paired_interval(column("posterior"), column("interpolation"))
    out["trajectory_minus_carried_forward"] = paired_interval(column("trajectory"), column("carried_forward"))
    return out


SETS = {
    "synthetic_1_exponential": "Synthetic 1, gaps ~ Exp(1)",
    "synthetic_1_regular_5": "Synthetic 1, gaps of 5",
    "synthetic_2": "Synthetic 2, gaps ~ Exp(0.3)",
    "ms": "EDSS, 3 states",
    "icu": "ICU pressure, 6 states",
}


NAMES = {
    "most_common": "most common observation",
    "carried_forward": "last value carried forward",
    "interpolation": "linear interpolation",
    "kernel_smoother": "kernel smoother",
    "trajectory_refine_0": "trajectory, `refine=0` (the paper)",
    "posterior_refine_0": "posterior, `refine=0`",
    "trajectory": "**trajectory** (least objective)",
    "trajectory_time": '**trajectory that errs least** (`criterion="time"`)',
    "posterior": "**posterior**",
    "bayes_limit": "posterior, true parameters (the limit)",
    "jumps": "jumps a sequence, least objective",
    "jumps_time": "jumps a sequence, errs least",
}
# Rows of the table that README has room for.
SHORT = (
    "most_common",
    "carried_forward",
    "interpolation",
    "kernel_smoother",
    "trajectory_time",
    "posterior",
    "bayes_limit",
)


def markdown(results: dict[str, Any], keys: Iterable[str] = NAMES) -> str:
    """The table of docs, or some rows of it."""
    lines = ["| | " + " | ".join(SETS.values()) + " |", "|---" * (len(SETS) + 1) + "|"]
    for key in keys:
        cells = [f"{results[s]['mean'][key]:.1f}" if key in results[s]["mean"] else "" for s in SETS]
        lines.append(f"| {NAMES[key]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def facts(results: dict[str, Any]) -> str:
    """The other numbers of the docs page."""
    share = results["synthetic_2"]["recovered"]
    post, half = results["icu"]["posterior_minus_interpolation"]
    path, width = results["icu"]["trajectory_minus_carried_forward"]
    short = results["short_windows"]["mean"]
    return "\n".join(
        [
            f"- Synthetic 2, share of most common → limit recovered: posterior {share['posterior']:.0f} %, trajectory "
            f"{share['trajectory']:.0f} %; with `refine=0` {share['posterior_refine_0']:.0f} % and "
            f"{share['trajectory_refine_0']:.0f} %.",
            f"- ICU, paired over {len(results['icu']['rows'])} splits, 95 % intervals in points: posterior less "
            f"interpolation {post:+.2f} ± {half:.2f}; trajectory less carried forward {path:+.2f} ± {width:.2f}.",
            "- Relative error of `process_.rates`, weighted by time: "
            f"{results['synthetic_1_exponential']['mean']['rate_error']:.1f} % on Synthetic 1 with exponential gaps; "
            f"{short['rate_error']:.1f} % from 3,000 windows of one mean dwell, where the true paths themselves give "
            f"{short['true_paths']:.1f} % and λ of the objective {short['rates_of_J']:.0f} %.",
        ]
    )


# What a trial of the most probable state at each row had reached (%), and how near the trajectory should come.
AIMS, NEAR = {"synthetic_1_exponential": 18.8, "synthetic_2": 59.1, "ms": 14.9, "icu": 28.7}, 0.3


def aims(results: dict[str, Any]) -> str:
    """What the trajectory that errs least was meant to reach, and where it does not."""
    met, missed = [], []
    for name, aim in AIMS.items():
        got = results[name]["mean"]["trajectory_time"]
        text = f"{SETS[name]} {got:.1f} (aim {aim:.1f})"
        (met if got <= aim + NEAR else missed).append(text)
    more = [
        f"{SETS[name]} ({results[name]['mean']['jumps_time']:.2f} for {results[name]['mean']['jumps']:.2f})"
        for name in SETS
        if results[name]["mean"]["jumps_time"] > results[name]["mean"]["jumps"]
    ]
    return (
        f"The trajectory that errs least was to come within {NEAR} points of what the most probable state at each row "
        f"had reached in a trial. It does so on {', '.join(met) or 'no set'}. It misses on "
        f"{', '.join(missed) or 'no set'}. It jumps more often than that of least objective on "
        f"{', '.join(more) or 'no set'}."
    )


def write_block(path: Path, name: str, text: str) -> None:
    """Put text between the marks of a page."""
    page = path.read_text()
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    head, rest = page.split(begin)
    path.write_text(head + begin + "\n" + text + "\n" + end + rest.split(end)[1])


def write_pages(results: dict[str, Any]) -> None:
    """README and docs/choices.md, from the results alone."""
    root = Path(__file__).parents[1]
    write_block(root / "README.md", "core table", markdown(results, SHORT))
    for name, text in (("core table", markdown(results)), ("core aims", aims(results)), ("core facts", facts(results))):
        write_block(root / "docs/choices.md", name, text)


def summary(rows: list[dict[str, float]]) -> dict[str, Any]:
    """Means over data sets, and every row."""
    return {"mean": {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2 data sets and 10 splits; nothing is written")
    parser.add_argument("--tables", action="store_true", help="only write the pages again from results/core.json")
    options = parser.parse_args()
    if options.tables:
        write_pages(json.loads((RESULTS / "core.json").read_text()))
        return
    quick = options.quick
    seeds, splits = (range(2), range(10)) if quick else (range(6), range(50))
    results = {
        "synthetic_1_exponential": directly_observed(seeds, "exponential", 1.0),
        "synthetic_1_regular_5": directly_observed(seeds, "regular", 5.0),
        "short_windows": short_windows(seeds),
        "synthetic_2": hidden(seeds),
        "ms": ms(splits),
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
        write_pages(results)


if __name__ == "__main__":
    main()
