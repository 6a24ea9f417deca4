"""Every method beside JUMP-means on Synthetic 1: time per iteration on one core, and time to a good error.

`python benchmarks/comparators.py`: ratios within one run are what counts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
from protocol import percent_wrong, synthetic_1

import jumpmeans as jm
from jumpmeans.comparators import EM, Gibbs
from jumpmeans.engines import Threads

DIRECT: dict[str, Any] = {"emission": "direct", "states": range(10), "engine": Threads(1)}
PAPER = {"JUMP-means": 300.0, "EM": 1610.0, "Gibbs": 42_000.0}


def per_iteration(masked: jm.Panel) -> dict[str, float]:
    """Milliseconds of CPU per iteration on one core, compilation apart: other work on the machine counts less."""
    makers: dict[str, Callable[[int], Any]] = {
        "JUMP-means": lambda n: jm.JumpMeans(refine=0, max_iter=n, tol=1e-30, **DIRECT),
        "EM": lambda n: EM(max_iter=n, tol=1e-30, **DIRECT),
        "Gibbs": lambda n: Gibbs(n_samples=n, burn_in=0, **DIRECT),
    }
    out = {}
    for name, make in makers.items():
        make(2).fit(masked)
        history = make(20).fit(masked).history_
        out[name] = 1e3 * float(np.median(np.diff(history.cpu_times)))
    return out


def em_path(masked: jm.Panel, held: object, start: jm.Process | None, most: int) -> Iterator[tuple[float, float]]:
    """Seconds spent in EM and the error after each of its iterations."""
    spent = 0.0
    for _ in range(most):
        begun = time.perf_counter()
        model = EM(max_iter=1, tol=0.0, start=start, **DIRECT).fit(masked)
        spent += time.perf_counter() - begun
        start = model.process_
        yield spent, percent_wrong(model.predict_value(masked, "posterior"), held)


def main() -> None:
    import warnings

    warnings.simplefilter("ignore")  # one iteration at a time never converges
    _, panel, _ = synthetic_1(1)
    masked, held = jm.hold_out(panel, 0.3, random_state=1)
    print("Synthetic 1, milliseconds of CPU per iteration on one core (in brackets the paper's, Java and Python):")
    for name, ms in per_iteration(masked).items():
        print(f"  {name:<12}{ms:8.1f}   ({PAPER[name]:,.0f})")

    jm.JumpMeans(**DIRECT).fit(masked)
    begun = time.perf_counter()
    plain = jm.JumpMeans(refine=0, **DIRECT).fit(masked)
    alone = time.perf_counter() - begun
    plain_error = percent_wrong(plain.predict_value(masked, "posterior"), held)
    converged = EM(**DIRECT).fit(masked)
    target = percent_wrong(converged.predict_value(masked, "posterior"), held) + 0.2
    print(f"\nTime to within 0.2 points of EM's converged error (that is, to {target:.2f} %):")
    starts = {"EM from the usual start": (None, 0.0), "EM from JUMP-means": (plain.process_, alone)}
    for name, (start, before) in starts.items():
        for n, (spent, error) in enumerate(em_path(masked, held, start, 40), 1):
            if error <= target:
                print(f"  {name:<26}{before + spent:6.2f} s, {n} EM steps")
                break
        else:
            print(f"  {name:<26}not within 40 steps (error {error:.2f} %)")
    verdict = "reaches it" if plain_error <= target else "does not reach it"
    print(f"  {'JUMP-means alone':<26}{alone:6.2f} s, {verdict} (posterior error {plain_error:.2f} %)")


if __name__ == "__main__":
    main()
