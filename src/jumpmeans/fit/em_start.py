"""Where EM begins: an emission with spreads, and a process found on a sample that rules nothing out for all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..arrays import Floats
from ..data.panel import Panel
from ..emissions import Record
from ..model.process import Process
from .ascent import Point, Task
from .start import start_emission

# Of what a sample says of the emission, so much is given to all states alike before other rows are looked at.
DOUBT = 1e-3


def hidden_start(
    blank: Record, x: Floats, panel: Panel, init: str, rng: np.random.Generator, first: bool, in_order: bool
) -> Record:
    """First emission, with the spread of the values nearest to each state (of all values, if states hardly differ)."""
    emission = start_emission(blank, x, panel, init, rng, first, in_order)
    weights = np.repeat(panel.weights, panel.lengths)
    if init == "noise":
        stats = emission.soft_stats(x, np.repeat(weights[:, None] / emission.n_states, emission.n_states, axis=1))
    else:
        nearest = emission.cost(x, emission.auto_weights(x, panel)).argmin(axis=1)
        stats = emission.stats(x, nearest, weights)
    return emission.with_scales(stats).with_pseudo_count(0.0)


def doubted(point: Point, task: Task, x: Floats, panel: Panel) -> Process:
    """The process that a sample led to, with an emission that rules nothing out: EM cannot raise a zero."""
    process = point.process
    posterior = (1.0 - DOUBT) * task.sequences.smooth(process)[0] + DOUBT / len(process.rates)
    stats = process.emission.soft_stats(x, posterior * np.repeat(panel.weights, panel.lengths)[:, None])
    return replace(process, emission=process.emission.update(stats).with_scales(stats, 0.0, task.floors))
