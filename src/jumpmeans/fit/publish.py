"""From the dwells of the kernels to what a user sees: trajectories in the caller's time, and a Markov process."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..engines.base import Dwells, Engine, Sequences
from ..model.objective import Stats
from ..model.process import Params, Process
from ..model.updates import transition_rows

# The posterior is looked at so many blocks of rows at a time: all of it would be most of the memory of a fit.
BLOCKS_AT_ONCE = 8


def publish_trajectories(panel: Panel, dwells: Dwells, labels: NDArray[Any]) -> Trajectories:
    """Dwells in the caller's time, every jump after the row before it and not after the row behind it."""
    offsets = np.concatenate([[0], np.cumsum(dwells.counts)])
    index = np.repeat(dwells.slots[:-1] - offsets[:-1], dwells.counts) + np.arange(offsets[-1])
    sequence = np.repeat(np.arange(len(dwells.counts)), dwells.counts)
    starts = panel.start_times[sequence] + dwells.starts[index]
    row = panel.offsets[sequence] + dwells.rows[index]
    jump = np.ones(len(index), dtype=bool)
    jump[offsets[:-1]] = False
    starts[offsets[:-1]] = panel.start_times
    has_before = row > panel.offsets[sequence]
    before = np.where(has_before, panel.times[np.maximum(row - 1, 0)], panel.start_times[sequence])
    has_after = row < panel.offsets[sequence + 1]
    after = np.where(has_after, panel.times[np.minimum(row, len(panel.times) - 1)], panel.end_times[sequence])
    starts[jump] = np.clip(starts[jump], np.nextafter(before[jump], np.inf), after[jump])
    for k in np.flatnonzero(jump[1:] & (starts[1:] <= starts[:-1])) + 1:
        starts[k] = min(np.nextafter(starts[k - 1], np.inf), after[k])
    return Trajectories(
        dwells.states[index], starts, offsets, panel.end_times, panel.ids, labels, panel.clock,
        frame_backend=panel.frame_backend,
    )  # fmt: skip


def estimate_process(
    panel: Panel, dwells: Dwells, stats: Stats, params: Params, moves: NDArray[np.bool_], pseudo_count: float,
    labels: NDArray[Any],
) -> Process:  # fmt: skip
    """The Markov process behind trajectories: occurrences over exposure, running time included."""
    time = stats.total_time
    exits = stats.jumps.sum(axis=1)
    leavable = moves.any(axis=1)
    # half a jump and the matching time from all states: a state never left has no rate of its own
    pooled = (exits.sum() + 0.5) / (time.sum() + 0.5 * max(time.sum(), 1e-300) / max(exits.sum(), 1.0))
    rates = np.where(leavable, (exits + 0.5) / (time + 0.5 / pooled), 0.0)
    first = dwells.states[dwells.slots[:-1]]
    initial = np.bincount(first, weights=panel.weights, minlength=len(labels)) + pseudo_count
    return Process(
        rates,
        transition_rows(stats.jumps, pseudo_count, moves),
        initial / initial.sum(),
        params.emission.with_scales(stats.emission),
        labels,
    )


def shown_on_trajectories(engine: Engine, sequences: Sequences, row_states: NDArray[np.int32], process: Process) -> Any:
    """(M,) or (M, D): the observation to expect where a trajectory is in each state.

    A trajectory is one path of many: where it is in state m, the process may hold others possible as well. What to
    expect there is the mean of the posteriors of all rows that trajectories give to m.
    """
    M = len(process.rates)
    trust = np.zeros((M, M))
    for first in range(0, sequences.n_blocks, BLOCKS_AT_ONCE):
        last = min(first + BLOCKS_AT_ONCE, sequences.n_blocks)
        part = sequences.part(first, last)
        states = row_states[sequences.offsets[sequences.blocks[first]] : sequences.offsets[sequences.blocks[last]]]
        posterior = engine.smooth(part, process)[0]
        posterior *= np.repeat(part.weights, np.diff(part.offsets))[:, None]
        for m in range(M):
            trust[m] += posterior[states == m].sum(axis=0)
    total = trust.sum(axis=1, keepdims=True)
    return process.emission.expected(np.where(total > 0, trust / np.where(total > 0, total, 1.0), np.eye(M)))
