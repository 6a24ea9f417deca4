"""The number of states, learned: time of a fit with defaults on all cores, and how it grows with the data.

`python benchmarks/infinite.py`: compilation apart; the last column should fall towards a constant.
"""

from __future__ import annotations

import time

import numpy as np

import jumpmeans as jm

SHAPES = ((500, 20), (5_000, 20), (50_000, 20), (1, 1_000_000))


def seconds(panel: jm.Panel) -> tuple[float, int]:
    """Wall time of a fit, and the number of states found."""
    begun = time.perf_counter()
    model = jm.InfiniteJumpMeans().fit(panel)
    return time.perf_counter() - begun, model.n_states_


def main() -> None:
    icu = jm.datasets.load_icu_pressure()
    jm.InfiniteJumpMeans().fit(icu)
    spent, M = seconds(icu)
    print(f"ICU pressure, {icu.n_sequences} x 32: {M} states in {spent:.2f} s (the paper: 50 iterations of 0.17 s)\n")
    process = jm.Process(
        np.full(5, 0.2), (1.0 - np.eye(5)) / 4, emission=jm.emissions.Gaussian(4.0 * np.arange(5), 1.0)
    )
    print("Gaussian readings of 5 states, 4 standard deviations apart:")
    print(f"{'sequences':>10}{'rows each':>11}{'states':>8}{'seconds':>9}{'microseconds a row':>20}")
    for n, length in SHAPES:
        panel, _ = jm.simulate(process, n, length, random_state=0)
        spent, M = seconds(panel)
        print(f"{n:>10,}{length:>11,}{M:>8}{spent:>9.1f}{1e6 * spent / (n * length):>20.1f}")


if __name__ == "__main__":
    main()
