"""The number of states, learned: time of a fit with defaults on all cores, and how it grows with the data.

`python benchmarks/infinite.py`: compilation apart; the last column should fall towards a constant.
"""

from __future__ import annotations

import time

import numpy as np

import jumpmeans as jm

# A panel of many states, and how many of them a fit is started with.
MANY, FIRST = 38, 34
SHAPES = ((500, 20), (5_000, 20), (50_000, 20), (1, 1_000_000))


def seconds(panel: jm.Panel) -> tuple[float, int]:
    """Wall time of a fit, and the number of states found."""
    begun = time.perf_counter()
    model = jm.InfiniteJumpMeans().fit(panel)
    return time.perf_counter() - begun, model.n_states_


def seconds_a_round(symbols: bool) -> tuple[float, int, int]:
    """CPU seconds of a round of proposals among many states, one thread; the rounds, and the states found.

    What the fit takes without any proposal is no part of it.
    """
    means, probs = 6.0 * np.arange(MANY), 0.05 / MANY + 0.95 * np.eye(MANY)
    family = jm.emissions.Categorical(probs, list(range(MANY))) if symbols else jm.emissions.Gaussian(means, 1.0)
    rng = np.random.default_rng(0)
    P = np.zeros((MANY, MANY))
    P[~np.eye(MANY, dtype=bool)] = np.concatenate([rng.dirichlet(np.ones(MANY - 1)) for _ in range(MANY)])
    process = jm.Process(rng.gamma(5.0, 0.04, MANY), P, emission=family)
    panel, _ = jm.simulate(process, 1_000, 20, random_state=1)
    spent = []
    for proposals in ([], "all"):
        model = jm.InfiniteJumpMeans(
            emission="categorical" if symbols else "gaussian", start_states=FIRST, proposals=proposals,
            engine=jm.engines.Threads(1),
        )  # fmt: skip
        begun = time.process_time()
        model.fit(panel)
        spent.append(time.process_time() - begun)
    rounds = len(model.path_)  # one for each move, and one that finds none
    return (spent[1] - spent[0]) / rounds, rounds, model.n_states_


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

    print(f"\nProposals, their trials and checks among {FIRST} to {MANY} states, 1,000 x 20 rows, one thread:")
    for symbols in (False, True):
        spent, rounds, M = seconds_a_round(symbols)
        kind = "symbols" if symbols else "Gaussian readings"
        print(f"{kind:>20}: {spent:.1f} CPU s a round, {rounds} rounds, {M} states found")


if __name__ == "__main__":
    main()
