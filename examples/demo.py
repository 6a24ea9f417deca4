"""The demo: two data sets fitted, described, scored, drawn. Run by `make demo`; writes into the folder it is given."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import jumpmeans as jm
from jumpmeans import plots
from jumpmeans.comparators import Interpolation, MostCommon


class Waiting:
    """A line that counts the seconds while something first has to be compiled."""

    def __init__(self, text: str) -> None:
        self.text, self.done = text, threading.Event()

    def __enter__(self) -> None:
        self.begun = time.monotonic()
        self.thread = threading.Thread(target=self._count, daemon=True)
        self.thread.start()

    def _count(self) -> None:
        live = sys.stderr.isatty()
        if not live:
            print(f"{self.text} ...", file=sys.stderr, flush=True)
        while not self.done.wait(0.5):
            if live:
                print(f"\r{self.text} ... {time.monotonic() - self.begun:.0f} s", end="", file=sys.stderr, flush=True)
        if live:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()


def describe(model: jm.JumpMeans, unit: str, value: str | None) -> None:
    """States, mean values, mean dwell times and transition probabilities as a table."""
    process = model.process_
    shown = [str(s) for s in model.states_.tolist()]
    mean = process.emission.means if value else None
    header = f"  {'state':>6}" + (f" {value:>12}" if value else "") + f" {'mean dwell (' + unit + ')':>20}   moves to"
    print(header)
    for m in np.arange(len(shown)) if mean is None else np.argsort(mean):
        name = shown[m]
        row = f"  {name:>6}" + (f" {mean[m]:>12.1f}" if mean is not None else "")
        moves = np.argsort(-process.transition_probs[m])
        listed = ", ".join(f"{shown[j]} {process.transition_probs[m, j]:.0%}" for j in moves[:4]
                           if process.transition_probs[m, j] >= 0.005)  # fmt: skip
        print(f"{row} {1 / process.rates[m]:>20.2f}   {listed}")


def score(panel: jm.Panel, model: jm.JumpMeans, fraction: float, bins: Any, splits: int) -> None:
    """Held-out error beside the most common observation and linear interpolation, over some splits."""
    kind = "direct" if model.emission == "direct" else "auto"
    rows = []
    for split in range(splits):
        masked, truth = jm.hold_out(panel, fraction, random_state=split)
        fitted = jm.JumpMeans(**model.get_params()).fit(masked)
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
    with Waiting("compiling the kernels (once; cached afterwards)"):
        panel = jm.datasets.load_edss()
        edss = jm.JumpMeans(emission="direct").fit(panel)
        edss.predict_proba(panel)
    print("EDSS sample data set distributed with MSoutcomes: disability states, observed directly")
    print(f"  {panel}")
    describe(edss, "years", None)
    score(panel, edss, 0.5, None, 10)
    edss.trajectories_.to_frame().to_csv(out / "edss_trajectories.csv", index=False)
    busiest = panel.ids[np.argmax(np.diff(edss.trajectories_.offsets))]
    fig, axes = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained")
    plots.plot_trajectory(edss.trajectories_, busiest, panel=panel, model=edss, time_unit="years", ax=axes[0])
    plots.plot_posterior(edss, panel, busiest, time_unit="years", ax=axes[1])
    fig.savefig(out / "edss.png", dpi=150)

    panel = jm.datasets.load_icu_pressure()
    icu = jm.JumpMeans(6, emission="gaussian").fit(panel)
    print("\nSystolic pressure of 69 ICU stays (PhysioNet/CinC Challenge 2012): hidden states, Gaussian readings")
    print(f"  {panel}")
    describe(icu, "hours", "mean (mmHg)")
    score(panel, icu, 0.25, jm.datasets.PRESSURE_BINS, 10)
    icu.trajectories_.to_frame().to_csv(out / "icu_trajectories.csv", index=False)
    stay = panel.ids[0]
    fig, axes = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained")
    units = {"time_unit": "hours", "ax": axes[0]}
    plots.plot_trajectory(icu.trajectories_, stay, panel=panel, model=icu, value_unit="mmHg", **units)
    plots.plot_posterior(icu, panel, stay, time_unit="hours", ax=axes[1])
    fig.savefig(out / "icu.png", dpi=150)
    fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    plots.plot_states(icu, time_unit="hours", ax=ax)
    fig.savefig(out / "icu_states.png", dpi=150)

    print(f"\nTrajectories and pictures in {out}/ ({time.monotonic() - begun:.0f} s):")
    for path in sorted(out.iterdir()):
        print(f"  {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
