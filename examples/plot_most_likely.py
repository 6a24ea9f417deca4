"""
Why not the most likely trajectory?
===================================

Its dwells shrink to nothing; those of JUMP-means last. Patients of a disease with four stages are looked at every two
years: what happened, and what two decoders say of it.
"""

from __future__ import annotations

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np

import jumpmeans as jm
from jumpmeans import plots
from jumpmeans.comparators import MLTrajectory

# A disease with four stages, one step at a time, looked at too rarely to see every step.
LADDER = jm.Structure(allowed={0: [1], 1: [0, 2], 2: [1, 3], 3: [2]})
PROCESS = jm.Process([0.35, 0.7, 0.8, 0.3], [[0, 1, 0, 0], [0.4, 0, 0.6, 0], [0, 0.5, 0, 0.5], [0, 0, 1, 0]])


def complete_dwells(trajectories: jm.Trajectories, slowest: int) -> np.ndarray:
    """Lengths of the dwells that were seen to end, outside the slowest state."""
    return trajectories.dwell_times()[~trajectories.running & (trajectories.codes != slowest)]


def main(path: str | None = None) -> None:
    panel, truth = jm.simulate(PROCESS, 200, 9, gaps="regular", mean_gap=2.0, random_state=4)
    ours = jm.JumpMeans(emission="direct", structure=LADDER).fit(panel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # cycles may gain: the number of jumps a gap is then limited
        likely = MLTrajectory(start=ours, epsilon=1e-3).fit(panel).trajectories_
    paths = {
        "What happened": truth,
        "Most likely trajectory": likely,
        "JUMP-means trajectory": ours.trajectories_,
    }
    shown = panel.ids[np.argmax(np.add.reduceat(likely.degenerate, likely.offsets[:-1]))]
    fig, axes = plt.subplots(4, 1, figsize=(7, 9.5), height_ratios=[1, 1, 1, 1.1], layout="constrained")
    for ax, (title, trajectories) in zip(axes, paths.items(), strict=False):
        plots.plot_trajectory(trajectories, shown, panel=panel, model=ours, ax=ax, time_unit="years")
        if ax.get_legend():
            ax.get_legend().remove()
        marks = " (diamonds: states left at once)" if trajectories is likely else ""
        ax.set_title(title + marks, loc="left", fontsize=10)
        if ax is not axes[2]:
            ax.set_xlabel("")
    slowest = int(ours.process_.rates.argmin())
    edges = np.linspace(-3.2, 1.2, 45)
    for (title, trajectories), colour in zip(paths.items(), ("0.75", "#D55E00", "#0072B2"), strict=True):
        lengths = np.log10(np.maximum(complete_dwells(trajectories, slowest), 1e-3))
        filled = {"histtype": "stepfilled"} if title == "What happened" else {"histtype": "step", "linewidth": 1.8}
        axes[-1].hist(lengths, edges, color=colour, label=title, **filled)
    axes[-1].set_xticks(range(-3, 2), ["→ 0", "0.01", "0.1", "1", "10"])
    axes[-1].set_xlabel("length of a complete dwell outside the slowest state (years)")
    axes[-1].set_ylabel("number of dwells")
    axes[-1].set_title(f"All {len(panel.ids)} sequences", loc="left", fontsize=10)
    axes[-1].legend(frameon=False, fontsize=8, loc="upper center")
    axes[-1].spines[["top", "right"]].set_visible(False)
    for title, trajectories in paths.items():
        lengths = complete_dwells(trajectories, slowest)
        print(f"{title:<24}{len(lengths):5d} complete dwells outside the slowest state, "
              f"{np.mean(lengths < 0.02):4.0%} shorter than a week")  # fmt: skip
    plt.show() if path is None else fig.savefig(path, dpi=150)


if __name__ == "__main__":
    main(*sys.argv[1:2])
