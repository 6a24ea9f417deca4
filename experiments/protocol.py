"""The experiments' protocol: data sets, read-outs and scores shared by all scripts (and by the slow tests)."""

from __future__ import annotations

from typing import Any

import numpy as np

import jumpmeans as jm


def random_process(rng: np.random.Generator, M: int, emission: Any = None) -> jm.Process:
    """Rows of P ~ Dirichlet(1) over the other states, rates ~ Gamma(1, 1), first state uniform."""
    P = np.zeros((M, M))
    for m in range(M):
        P[m, np.arange(M) != m] = rng.dirichlet(np.ones(M - 1))
    return jm.Process(rng.gamma(1.0, 1.0, M), P, emission=emission)


def synthetic_1(
    seed: int, gaps: str = "exponential", mean_gap: float = 1.0, n_sequences: int = 500, n_observations: int = 20
) -> tuple[jm.Process, jm.Panel, jm.Trajectories]:
    """Ten states, observed directly."""
    process = random_process(np.random.default_rng(seed), 10)
    panel, truth = jm.simulate(
        process, n_sequences, n_observations, gaps=gaps, mean_gap=mean_gap, random_state=10_000 + seed
    )
    return process, panel, truth


def synthetic_2(seed: int, mean_gap: float = 0.3) -> tuple[jm.Process, jm.Panel, jm.Trajectories]:
    """Five hidden states seen through five symbols, emission rows ~ Dirichlet(1)."""
    rng = np.random.default_rng(seed)
    rho = rng.dirichlet(np.ones(5), 5)
    process = random_process(rng, 5, jm.emissions.Categorical(rho))
    panel, truth = jm.simulate(process, 500, 20, mean_gap=mean_gap, random_state=10_000 + seed)
    return process, panel, truth


def percent_wrong(predicted: Any, truth: Any, bins: Any = None) -> float:
    """Reconstruction error in percent."""
    return 100.0 * jm.reconstruction_error(predicted, truth, bins=bins)


def recovered(baseline: float, method: float, limit: float) -> float:
    """Share (%) of the distance from the baseline to the limit that a method covers."""
    return 100.0 * (baseline - method) / (baseline - limit)


def paired_interval(a: Any, b: Any) -> tuple[float, float]:
    """Mean of a - b over splits, and the half width of its 95 % interval."""
    d = np.asarray(a) - np.asarray(b)
    return float(d.mean()), float(1.96 * d.std(ddof=1) / np.sqrt(len(d)))
