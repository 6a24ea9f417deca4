"""Model files of past releases, which must always be read.

`python tests/golden/models.py --write` adds those of this release; files that are there already stay as they are.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import jumpmeans as jm
from jumpmeans.comparators import EM, Gibbs

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.jm"))


def panel(hidden):
    """A small panel of two states, seen or hidden, its times in numbers."""
    emission = jm.emissions.Gaussian([0.0, 4.0], sds=[1.0, 0.5]) if hidden else None
    process = jm.Process([0.4, 0.7], [[0, 1], [1, 0]], emission=emission, states=None if hidden else ["ill", "well"])
    return jm.simulate(process, 6, 8, random_state=5)[0]


def models():
    """The models of a release."""
    yield jm.JumpMeans(2).fit(panel(True))
    yield jm.InfiniteJumpMeans(max_states=3).fit(panel(True))
    allowed = jm.Structure(allowed={"ill": ["well"], "well": ["ill"]})
    yield EM(emission="direct", structure=allowed).fit(panel(False))
    yield Gibbs(emission="direct", n_samples=4, burn_in=2, thin=1).fit(panel(False))


def answers(model):
    """What a model says, by name; the parameters exactly."""
    seen = panel(hidden=not model.process_.emission.is_direct)
    path = model.decode(seen)
    return {
        "exact rates": model.process_.rates,
        "exact transition_probs": model.process_.transition_probs,
        "exact initial_probs": model.process_.initial_probs,
        "exact history": model.history_.values,
        "states": path.states.astype(str),
        "start_times": path.start_times,
        "proba": model.predict_proba(seen),
        "log_likelihood": np.array(model.log_likelihood(seen)),
    }


if __name__ == "__main__" and "--write" in sys.argv:
    for model in models():
        path = FOLDER / f"{type(model).__name__}-{jm.__version__}.jm"
        if not path.exists():
            model.save(path)
            np.savez(path.with_suffix(".npz"), **answers(jm.load(path)))
