"""Fits whose every number is kept: a change of the house must not change an answer.

`python tests/golden/fits.py` compares bit by bit with fits.npz (one machine); `--write` makes it anew, which is
right only where an answer was meant to change. tests/test_golden_fits.py compares to rounding, on any machine.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import jumpmeans as jm
from jumpmeans.comparators import EM, Gibbs, KernelSmoother, MLTrajectory, ParticleGibbs

FILE = Path(__file__).with_name("fits.npz")


def hidden(emission, seed, n=40, length=20):
    """A panel of three hidden states."""
    P = np.array([[0, 0.7, 0.3], [0.5, 0, 0.5], [0.4, 0.6, 0]])
    return jm.simulate(jm.Process([0.3, 0.2, 0.4], P, emission=emission), n, length, mean_gap=1.0, random_state=seed)[0]


def labelled(seed, n=60):
    """A panel of four states seen directly."""
    P = (np.ones((4, 4)) - np.eye(4)) / 3
    process = jm.Process([0.3, 0.5, 0.2, 0.4], P, states=["a", "b", "c", "d"])
    return jm.hold_out(jm.simulate(process, n, 15, random_state=seed)[0], 0.3, random_state=seed)[0]


def cases():
    """Name, model and panel of every golden fit."""
    E = jm.emissions
    edss, icu = jm.datasets.load_edss(), jm.datasets.load_icu_pressure()
    gauss = hidden(E.Gaussian([0, 4, 8], sds=1), 1)
    symbols = hidden(E.Categorical([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.1, 0.7]], ["x", "y", "z"]), 2)
    both = hidden([E.Gaussian([0, 4, 8], sds=1), E.Categorical([[0.8, 0.2], [0.5, 0.5], [0.1, 0.9]])], 3)
    weighted = jm.Panel.from_arrays(
        gauss.times,
        gauss.values[:, 0],
        gauss.ids[gauss.sequence_index],
        weights=1.0 + np.arange(gauss.n_sequences)[gauss.sequence_index] % 3,
    )
    loose = jm.Structure(allowed={"a": ["b"], "b": ["a", "c"], "c": ["b", "d"], "d": ["c"]})
    yield "edss", jm.JumpMeans(emission="direct"), edss
    yield "labels", jm.JumpMeans(emission="direct", max_iter=100), labelled(4)
    yield "labels_structure", jm.JumpMeans(emission="direct", structure=loose), labelled(5)
    yield "labels_paper", jm.JumpMeans(emission="direct", refine=0, prior_dwell_time=0.5), labelled(6)
    yield "icu", jm.JumpMeans(4, n_init=1), icu
    yield "gaussian_weighted", jm.JumpMeans(3, n_init=1), weighted
    yield "gaussian_beam", jm.JumpMeans(3, search="beam", refine=0, n_init=1), gauss
    yield "gaussian_running", jm.JumpMeans(3, first_dwell="running", jumps_per_gap=3, n_init=1), gauss
    yield "laplace", jm.JumpMeans(3, emission="laplace", n_init=1), hidden(E.Laplace([0, 5, 9], scales=1), 7)
    yield "poisson", jm.JumpMeans(3, emission="poisson", n_init=1), hidden(E.Poisson([1, 8, 30]), 8)
    yield "exponential", jm.JumpMeans(3, emission="exponential", n_init=1), hidden(E.Exponential([1, 30, 400]), 9)
    yield "bernoulli", jm.JumpMeans(2, emission="bernoulli"), hidden(E.Bernoulli([0.05, 0.5, 0.9]), 10)
    yield "categorical", jm.JumpMeans(3, emission="categorical", random_state=3), symbols
    yield "two_columns", jm.JumpMeans(3, emission=["gaussian", "categorical"]), both
    yield "infinite", jm.InfiniteJumpMeans(), gauss
    yield "infinite_printed", jm.InfiniteJumpMeans(objective="printed", refine=0, max_states=5), gauss
    yield "infinite_integrated", jm.InfiniteJumpMeans(objective="integrated"), gauss
    yield "infinite_symbols", jm.InfiniteJumpMeans(emission="categorical", max_states=4), symbols
    yield "infinite_labels", jm.InfiniteJumpMeans(emission="direct"), labelled(11)
    yield "em_labels", EM(emission="direct"), labelled(12)
    yield "em_gaussian", EM(3, n_init=1), gauss
    yield "em_symbols", EM(3, emission="categorical", max_iter=1000), symbols
    yield "gibbs_labels", Gibbs(emission="direct", n_samples=5, burn_in=5, thin=1), labelled(13)
    yield "gibbs_gaussian", Gibbs(3, emission="gaussian", n_samples=5, burn_in=5, thin=1), gauss
    yield "particles", ParticleGibbs(n_iter=8, burn_in=4, n_particles=20), symbols
    yield "ml", MLTrajectory(EM(emission="direct").fit(edss).process_), edss
    yield "kernel", KernelSmoother(), gauss


def numbers(model, panel):
    """Everything a fit says, by name."""
    out = {}
    if hasattr(model, "objective_history_"):
        out["history"] = np.asarray(model.objective_history_)
    if hasattr(model, "process_"):
        process = model.process_
        out["rates"], out["P"], out["pi"] = process.rates, process.transition_probs, process.initial_probs
        for d, column in enumerate(process.emission.columns):
            for name in ("means", "sds", "scales", "probs"):
                if hasattr(column, name):
                    out[f"{name}{d}"] = getattr(column, name)
        out["posterior"] = model.predict_proba(panel)[:200]
    if hasattr(model, "trajectories_"):
        out["codes"], out["starts"] = model.trajectories_.codes, model.trajectories_.start_times
    if not hasattr(model, "process_"):
        out["values"] = np.asarray(model.predict_value(panel), dtype=float)
    return out


def fit_all():
    """All golden numbers, by "case/name"."""
    return {
        f"{case}/{name}": np.asarray(x)
        for case, model, panel in cases()
        for name, x in numbers(model.fit(panel), panel).items()
    }


def main():
    """Write the numbers, or list those whose bits differ."""
    import warnings

    warnings.simplefilter("ignore")
    found = fit_all()
    if "--write" in sys.argv:
        np.savez_compressed(FILE, **found)
        return 0
    kept = np.load(FILE)
    odd = [key for key in kept.files if key not in found or not np.array_equal(kept[key], found[key])]
    for key in odd:
        same = key in found and kept[key].shape == found[key].shape
        print(key, np.abs(kept[key] - found[key]).max() if same else "another shape, or gone")
    print(f"{len(kept.files) - len(odd)} of {len(kept.files)} bit-identical")
    return len(odd) > 0


if __name__ == "__main__":
    sys.exit(main())
