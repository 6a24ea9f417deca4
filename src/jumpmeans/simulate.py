"""Simulation: panels from a process, with the true trajectories."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Floats
from .data.panel import Panel
from .data.trajectories import Trajectories
from .model.process import Process


def simulate(
    process: Process, n_sequences: int = 500, n_observations: int = 20, *, gaps: Any = "exponential",
    mean_gap: float = 1.0, random_state: Any = 0,
) -> tuple[Panel, Trajectories]:  # fmt: skip
    """Draw trajectories of a process and look at them at irregular times.

    Parameters
    ----------
    process : Process
    n_sequences, n_observations : int
        S sequences of L observations each, the first at time 0.
    gaps : "exponential", "regular" or (S, L - 1) array
        Times between looks; drawn with mean `mean_gap`, all equal to it, or given.
    mean_gap : float
    random_state : int, Generator or None

    Returns
    -------
    panel : Panel
        Labels where the state itself is seen, else what the emission shows.
    trajectories : Trajectories
        The truth.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> process = jm.Process([1.0, 0.5], [[0, 1], [1, 0]], states=["well", "ill"])
    >>> panel, truth = jm.simulate(process, n_sequences=3, n_observations=5, random_state=1)
    >>> panel.n_observations
    15
    """
    rng = np.random.default_rng(random_state)
    S, L = n_sequences, n_observations
    if S < 1 or L < 1:
        raise ValueError(f"n_sequences and n_observations must be at least 1, got {S} and {L}.")
    if isinstance(gaps, str):
        if gaps == "exponential":
            steps = rng.exponential(mean_gap, (S, L - 1))
        elif gaps == "regular":
            steps = np.full((S, L - 1), float(mean_gap))
        else:
            raise ValueError(f"gaps must be 'exponential', 'regular' or an array of shape {(S, L - 1)}, got {gaps!r}.")
    else:
        steps = np.broadcast_to(np.asarray(gaps, dtype=np.float64), (S, L - 1))
    times = np.concatenate([np.zeros((S, 1)), np.cumsum(steps, axis=1)], axis=1)
    truth = _draw_paths(process, times[:, -1], rng)
    ids = np.repeat(np.arange(S), L)
    row_states = truth.at(times.ravel(), ids)
    code = {label: i for i, label in enumerate(process.states.tolist())}
    codes = np.array([code[label] for label in row_states.tolist()], dtype=np.int64)
    drawn = process.emission.sample(codes, rng)
    values = process.emission.named(drawn)
    table = values[0] if len(values) == 1 else np.column_stack([v.astype(object) for v in values])
    return Panel.from_arrays(times.ravel(), table, ids), truth


def _draw_paths(process: Process, ends: Floats, rng: np.random.Generator) -> Trajectories:
    """One path for each window [0, end], all sequences advanced together, jump by jump."""
    S = len(ends)
    chain = np.cumsum(process.transition_probs, axis=1)
    start = np.cumsum(process.initial_probs)
    state = np.minimum(np.searchsorted(start, rng.random(S) * start[-1], side="right"), len(start) - 1)
    now = np.zeros(S)
    alive = np.arange(S)
    sequences, states, starts = [alive], [state], [now]
    while len(alive):
        rates = process.rates[state]
        with np.errstate(divide="ignore"):
            now = now + np.where(rates > 0, rng.standard_exponential(len(alive)) / rates, np.inf)
        inside = now < ends[alive]
        alive, now, state = alive[inside], now[inside], state[inside]
        u = rng.random(len(alive))
        state = np.minimum((u[:, None] * chain[state][:, -1:] >= chain[state]).sum(axis=1), len(start) - 1)
        sequences.append(alive)
        states.append(state)
        starts.append(now)
    sequence = np.concatenate(sequences)
    order = np.argsort(sequence, kind="stable")
    offsets = np.searchsorted(sequence[order], np.arange(S + 1))
    return Trajectories(
        np.concatenate(states)[order].astype(np.int32), np.concatenate(starts)[order], offsets, ends,
        np.arange(S), process.states,
    )  # fmt: skip
