"""Readings that are not Gaussian: how many states are found with the family they have, and with others.

`python experiments/families.py [seeds]` writes results/families.json; some minutes on one core.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from lab import ONE
from tasks import versions, write_json

import jumpmeans as jm

# Three states each: t noise of 3 degrees of freedom at 6 scales, log-normal readings at 3.75 standard deviations.
PANELS: dict[str, jm.emissions.Column] = {
    "t": jm.emissions.Student([0.0, 6.0, 12.0], scales=1.0, df=3.0),
    "lognormal": jm.emissions.Lognormal([0.0, 1.5, 3.0], log_sds=0.4),
}
# The right family first; "student" has 4 degrees of freedom and is not told that there are 3.
EMISSIONS = {"t": ("student", "laplace", "gaussian"), "lognormal": ("lognormal", "laplace", "gaussian")}
MOST_STATES = 8
SEEDS = 20


def simulated(kind: str, seed: int) -> jm.Panel:
    """100 sequences of 20 looks, mean dwell 5 gaps."""
    P = [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]]
    return jm.simulate(jm.Process([0.2] * 3, P, emission=PANELS[kind]), 100, 20, random_state=seed)[0]


def found(kind: str, emission: str, seeds: int) -> dict[str, Any]:
    """Numbers of states over the seeds, and CPU seconds of a fit."""
    begun = time.process_time()
    models = (jm.InfiniteJumpMeans(emission=emission, max_states=MOST_STATES, engine=ONE) for _ in range(seeds))
    numbers = [model.fit(simulated(kind, seed)).n_states_ for seed, model in enumerate(models)]
    return {
        "right": numbers.count(3),
        "n": seeds,
        "numbers": {str(n): count for n, count in sorted(Counter(numbers).items())},
        "seconds": (time.process_time() - begun) / seeds,
    }


def main() -> None:
    """Print and write how often the three states are found."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    table: dict[str, dict[str, Any]] = {}
    for kind, emissions in EMISSIONS.items():
        for emission in emissions:
            cell = table.setdefault(kind, {})[emission] = found(kind, emission, seeds)
            print(f"{kind:<10} as {emission:<10} {cell['right']:>2} of {seeds}: {cell['numbers']}", flush=True)
    result = {"versions": versions(), "true_states": 3, "most_states": MOST_STATES, "panels": table}
    write_json(Path(__file__).parent / "results" / "families.json", result)


if __name__ == "__main__":
    main()
