"""The demo: two data sets fitted, described, scored, drawn. Run by `make demo`; writes into the folder it is given."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

import jumpmeans as jm
from jumpmeans import plots
from jumpmeans.comparators import Interpolation, MostCommon


def describe(process: jm.Process, unit: str, value: str | None = None) -> None:
    """States, mean values, mean dwell times and transition probabilities as a table."""
    names = [str(state) for state in process.states.tolist()]
    means = process.emission.means if value else np.arange(len(names))
    print(f"  {'state':>6}" + (f" {value:>12}" if value else "") + f" {f'mean dwell ({unit})':>20}   moves to")
    for m in np.argsort(means):
        P = process.transition_probs[m]
        moves = ", ".join(f"{names[j]} {P[j]:.0%}" for j in np.argsort(-P)[:4] if P[j] >= 0.005)
        mean = f" {means[m]:>12.1f}" if value else ""
        print(f"  {names[m]:>6}{mean} {1 / process.rates[m]:>20.2f}   {moves}")


def draw(path: Path, model: jm.JumpMeans, panel: jm.Panel, id: Any, **units: str) -> None:
    """One sequence: its trajectory, and below it the probabilities of the states."""
    fig, axes = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained")
    plots.plot_trajectory(model.trajectories_, id, panel, model, axes[0], **units)
    plots.plot_posterior(model, panel, id, axes[1], **units)
    axes[0].label_outer()
    fig.savefig(path, dpi=150)


def score(panel: jm.Panel, model: jm.JumpMeans, fraction: float, bins: Any, splits: int) -> None:
    """Held-out error beside the most common observation and linear interpolation, over some splits."""
    kind = "direct" if model.emission == "direct" else "auto"
    rows = []
    for split in range(splits):
        masked, truth = jm.hold_out(panel, fraction, random_state=split)
        with warnings.catch_warnings():  # what is held out may hide the few moves out of a state
            warnings.simplefilter("ignore", jm.StructureWarning)
            fitted = clone(model).fit(masked)
        guesses = [
            MostCommon(bins=bins, emission=kind).fit(masked).predict_value(masked),
            Interpolation(emission=kind).fit(masked).predict_value(masked),
            fitted.predict_value(masked, "trajectory"),
            fitted.predict_value(masked, "posterior"),
        ]
        rows.append([100 * jm.reconstruction_error(guess, truth, bins=bins) for guess in guesses])
    names = ("most common", "interpolation", "JUMP-means trajectory", "JUMP-means posterior")
    print(f"  error when {fraction:.0%} of the observations are held out (mean of {splits} splits):")
    for name, error in zip(names, np.mean(rows, axis=0), strict=True):
        print(f"    {name:<24}{error:5.1f} %")


def main(folder: str = "demo") -> None:
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    panel = jm.datasets.load_edss()
    edss = jm.JumpMeans(emission="direct").fit(panel)
    print("EDSS sample data set distributed with MSoutcomes: disability states, observed directly")
    print(f"  {panel}")
    describe(edss.process_, "years")
    score(panel, edss, 0.5, None, 10)
    edss.trajectories_.to_frame().to_csv(out / "edss_trajectories.csv", index=False)
    busiest = panel.ids[np.argmax(np.diff(edss.trajectories_.offsets))]
    draw(out / "edss.png", edss, panel, busiest, time_unit="years")

    panel = jm.datasets.load_icu_pressure()
    icu = jm.JumpMeans(6, emission="gaussian").fit(panel)
    print("\nSystolic pressure of 69 ICU stays (PhysioNet/CinC Challenge 2012): hidden states, Gaussian readings")
    print(f"  {panel}")
    describe(icu.process_, "hours", "mean (mmHg)")
    score(panel, icu, 0.25, jm.datasets.PRESSURE_BINS, 10)
    icu.trajectories_.to_frame().to_csv(out / "icu_trajectories.csv", index=False)
    units = {"time_unit": "hours", "value_unit": "mmHg"}
    draw(out / "icu.png", icu, panel, panel.ids[0], **units)
    fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    plots.plot_states(icu, ax, **units)
    fig.savefig(out / "icu_states.png", dpi=150)

    sure = jm.bootstrap(icu, panel, 100).interval(lambda model: model.process_.sojourn())
    report = jm.write_report(
        icu, panel, out / "report.html", held_out=0.25, dwell_interval=sure,
        bins=jm.datasets.PRESSURE_BINS, time_unit="hours", title="Systolic pressure of 69 stays in intensive care",
    )  # fmt: skip

    print(f"\nTrajectories, pictures and a report in {out}/ ({time.monotonic() - begun:.0f} s):")
    for path in sorted(out.iterdir()):
        print(f"  {path}")
    print(f"\nOpen {report} in a browser: what was found, and the course of every stay.")


if __name__ == "__main__":
    main(*sys.argv[1:2])
