"""Expectation maximisation for the process: one step, shared by all that climb the likelihood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..arrays import Floats
from ..model.constraints import Constraints, split
from ..model.process import Process
from ..model.updates import transition_rows
from ..passes import Expected, Sequences
from ..progress import say
from .levels import step_levels
from .regression import regress

# In closing steps, a state's spread leans on that of the others as if it had so many more of their readings.
SHARED_READINGS = 300.0


def maximise(
    process: Process,
    expected: Expected,
    constraints: Constraints,
    pseudo_count: float = 0.0,
    shared: float = 0.0,
    floors: Floats | None = None,
) -> Process:
    """Process of highest expected log-likelihood (derivation, eq. 18); states without any time keep what they have.

    `pseudo_count` is added to every first state and allowed jump, with the time that so many jumps take at the common
    rate (and is in the emission already); `shared` is what the spread of a state leans on the others by,
    `floors` (D,) the least spread of each column (`Column.with_scale`).
    """
    moves = constraints.moves
    time = np.maximum(np.diag(expected.integrals), 0.0)
    jumps = np.maximum(process.rate_matrix * expected.integrals, 0.0)
    np.fill_diagonal(jumps, 0.0)
    exits = jumps.sum(axis=1)
    if exits.sum() > 0:
        extra = pseudo_count * moves.sum(axis=1)
        exits, time = exits + extra, time + extra * (time.sum() / exits.sum())
    rates = np.where(time > 0, exits / np.where(time > 0, time, 1.0), process.rates)
    rates = np.where(moves.any(axis=1), rates, 0.0)
    P = transition_rows(jumps, pseudo_count, moves, process.transition_probs)
    effects = process.effects
    if effects is not None and expected.depending is not None:
        Q, effects = regress(process, jumps, expected.depending, constraints, pseudo_count)
        rates, P = split(Q, P)
    elif constraints.binds:
        counts = np.where(moves, jumps + pseudo_count, 0.0)
        rates, P = split(constraints.most_likely(counts, time, process.rate_matrix), P)
    return Process(
        rates,
        P,
        constraints.initial_probs(expected.first + pseudo_count),
        process.emission.update(expected.emission).with_scales(expected.emission, shared, floors),
        process.states,
        effects,
    )


def em_steps(
    sequences: Sequences,
    process: Process,
    constraints: Constraints,
    n_steps: int,
    pseudo_count: float,
) -> tuple[Process, Sequences]:
    """The process after n closing steps, with `pseudo_count` more of all that is counted; and the levels then."""
    process = replace(process, emission=process.emission.with_pseudo_count(pseudo_count))
    for k in range(n_steps):
        say(f"{len(process.rates)} states, EM step {k + 1} of {n_steps}")
        levels, expected = step_levels(sequences.levels, sequences.expect(process), process)
        process = maximise(process, expected, constraints, pseudo_count, SHARED_READINGS)
        sequences = sequences.at(levels)
    return process, sequences


def steps_after_sample(
    sequences: Sequences, process: Process, constraints: Constraints, most: int, pseudo_count: float, least: float
) -> list[Process]:
    """The processes after each further step, on all rows, until one gains less than `least` for each row."""
    found, before = [process], -np.inf
    for k in range(most):
        say(f"{len(process.rates)} states, EM step {k + 1} on all rows")
        expected = sequences.expect(found[-1])
        log_lik = float(sequences.weights @ expected.log_lik)
        found.append(maximise(found[-1], expected, constraints, pseudo_count, SHARED_READINGS))
        if log_lik - before < least * sequences.row_weight:
            break
        before = log_lik
    return found
