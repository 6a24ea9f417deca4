"""From dwells and statistics to what a user sees: trajectories in the caller's time, and a Markov process."""

from __future__ import annotations

import numpy as np

from ..arrays import AnyArray
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..kinds import BARS, PINS, SNAPSHOT
from ..model.constraints import Constraints, split
from ..model.hazards import occurrence_hazards
from ..model.objective import Stats
from ..model.params import Params
from ..model.process import Process
from ..model.updates import transition_rows
from ..passes import Dwells


def publish_trajectories(panel: Panel, dwells: Dwells, labels: AnyArray) -> Trajectories:
    """Dwells in the caller's time, every jump after the row before it and not after the row behind it."""
    offsets, sequence = dwells.offsets, dwells.sequence
    starts = panel.start_times[sequence] + dwells.starts
    row = panel.offsets[sequence] + dwells.rows
    jump = np.ones(len(starts), dtype=bool)
    jump[offsets[:-1]] = False
    starts[offsets[:-1]] = panel.start_times
    has_before = row > panel.offsets[sequence]
    before = np.where(has_before, panel.times[np.maximum(row - 1, 0)], panel.start_times[sequence])
    has_after = row < panel.offsets[sequence + 1]
    after = np.where(has_after, panel.times[np.minimum(row, len(panel.times) - 1)], panel.end_times[sequence])
    if panel.kinds is not None:
        # the last jump before a row that pins it is at that row
        kinds = np.append(panel.kinds, SNAPSHOT)[np.where(has_after, row, len(panel.times))]
        last = np.append(row[1:] != row[:-1], True)
        at_row = jump & PINS[kinds] & (BARS[kinds] | last)
        starts[at_row] = panel.times[row[at_row]]
        before[at_row] = np.nextafter(starts[at_row], -np.inf)
    starts[jump] = np.clip(starts[jump], np.nextafter(before[jump], np.inf), after[jump])
    for k in np.flatnonzero(jump[1:] & (starts[1:] <= starts[:-1])) + 1:
        starts[k] = min(np.nextafter(starts[k - 1], np.inf), after[k])
    return Trajectories(
        dwells.states, starts, offsets, panel.end_times, panel.ids, labels, panel.clock,
        frame_backend=panel.frame_backend,
    )  # fmt: skip


def estimate_process(
    stats: Stats, params: Params, constraints: Constraints, pseudo_count: float, labels: AnyArray
) -> Process:
    """The Markov process behind trajectories: occurrences over exposure, running time included."""
    moves = constraints.moves
    time = stats.total_time
    exits = stats.jumps.sum(axis=1)
    leavable = moves.any(axis=1)
    # half a jump and the matching time from all states: a state never left has no rate of its own
    pooled = (exits.sum() + 0.5) / (time.sum() + 0.5 * (time.sum() or 1.0) / max(exits.sum(), 1.0))
    rates, effects = np.where(leavable, (exits + 0.5) / (time + 0.5 / pooled), 0.0), params.effects
    if effects is not None:
        rates, effects = occurrence_hazards(stats, effects, rates, 0.5, 0.5 / pooled)
    P = transition_rows(stats.jumps, pseudo_count, moves)
    if constraints.binds:
        Q, time = rates[:, None] * P, time + 0.5 / pooled
        rates, P = split(constraints.most_likely(Q * time[:, None], time, Q), P)
    return Process(
        rates,
        P,
        constraints.initial_probs(np.asarray(stats.first) + pseudo_count),
        params.emission.with_scales(stats.emission),
        labels,
        effects,
    )
