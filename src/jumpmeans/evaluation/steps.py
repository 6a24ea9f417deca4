"""Rows of a panel as steps, each predicted from the rows before it: what Pearson's test compares with what came.

A step begins at a row that tells of the state and ends at the next one. Deaths whose time is known end a gap that was
meant to be longer, so that their chance by the end of the gap says nothing. They are counted as events instead: what is
expected up to a time is the hazard added up over the time at risk, and states seen at the end of a gap are expected
given that one is alive there. Neither needs to know when the next visit would have been.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import AnyArray, Bools, Floats, Ints
from ..data.panel import Panel
from ..errors import PanelError
from ..kinds import ENTRY, SNAPSHOT
from ..model.passage import transition_matrices
from ..model.process import Process

# Parts that every gap is cut into where hazards are added up.
PARTS = 4


class Steps(NamedTuple):
    """k steps from a state that can be left, in the order of the panel.

    source : (k,) the state of the row before, or M and more: one of the sets in `names`
    before : (k,) where that was known by a set, the step that ended there; -1 elsewhere
    allowed : (k, M) states that the row at the end can be in
    died : (k,) whether it is an exact entry into one of the states `exact` (M,), whose entries are all exact
    gap, time, weight : (k,) length, time since the start of the window at the end, weight
    names : labels of the sources
    """

    source: Ints
    before: Ints
    allowed: Bools
    died: Bools
    gap: Floats
    time: Floats
    weight: Floats
    exact: Bools
    names: list[Any]


def read_steps(process: Process, panel: Panel) -> Steps:
    """The steps of a panel whose states are seen; rows before the first state seen of each sequence are left out."""
    if not process.emission.is_direct:
        raise ValueError("states must be seen for Pearson's test, got a model of hidden states; see `prevalence`.")
    M = len(process.rates)
    kinds = np.zeros(panel.n_observations, np.int8) if panel.kinds is None else panel.kinds
    allowed, code = _told(process, panel)
    exact = _exact_states(process, panel, kinds, allowed)
    rows = np.flatnonzero(~allowed.all(axis=1))
    sequence = panel.sequence_index[rows]
    begun = _since_first(sequence, code[rows] < M)
    rows, sequence = rows[begun], sequence[begun]
    pair = np.flatnonzero(sequence[1:] == sequence[:-1])
    start, end = rows[pair], rows[pair + 1]
    over = (code[start] < M) & (allowed[start] & (process.rates == 0)).any(axis=1)
    alive = ~_since_first(sequence[pair], over)
    start, end = start[alive], end[alive]
    if not len(end):
        raise PanelError("a panel must hold two successive rows with a state that can be left, got none.")
    _refuse_mixed(panel, process.states.tolist(), exact, kinds, allowed, end)
    ended_at = np.full(panel.n_observations, -1)
    ended_at[end] = np.arange(len(end))
    source, since = code[start], panel.relative_times()
    return Steps(
        source, np.where(source >= M, ended_at[start], -1), allowed[end], kinds[end] == ENTRY,
        since[end] - since[start], since[end], panel.weights[panel.sequence_index[end]], exact,
        [*process.states.tolist(), *(own.name for own in panel.state_sets)],
    )  # fmt: skip


def _told(process: Process, panel: Panel) -> tuple[Bools, Ints]:
    """(n, M) states that each row can be in, and (n,) the one, or M and the number of its set."""
    M, emission = len(process.rates), process.emission
    seen = emission.states_seen(emission.encode(panel))
    sets = panel.allowed_states(process.states)
    allowed = np.ones((len(seen), M), dtype=bool) if sets is None else sets.copy()
    there = np.isfinite(seen)
    allowed[there] = np.arange(M) == seen[there, None]
    known = np.full(len(seen), 0) if panel.known is None else panel.known
    return allowed, np.where(allowed.sum(axis=1) == 1, allowed.argmax(axis=1), M + known)


def _since_first(sequence: Ints, seen: Bools) -> Bools:
    """(k,) whether a state has been seen in the sequence of a row, there or before."""
    count = np.cumsum(seen)
    first = np.searchsorted(sequence, sequence)
    return np.asarray(count - (count - seen)[first] > 0)


def _exact_states(process: Process, panel: Panel, kinds: AnyArray, allowed: Bools) -> Bools:
    """(M,) states whose entries are seen when they happen: those that are never left."""
    odd = np.flatnonzero((kinds != SNAPSHOT) & (kinds != ENTRY))
    if len(odd):
        raise PanelError(
            "rows must be snapshots, or entries into states that are never left, for Pearson's test, got one of "
            f"another kind, first at {panel.locate(int(odd[0]))}; compare by prevalence(panel)."
        )
    entries = kinds == ENTRY
    exact = allowed[entries].any(axis=0) if entries.any() else np.zeros(len(process.rates), dtype=bool)
    if np.any(exact & (process.rates > 0)):
        row = int(np.flatnonzero(entries & (allowed & (process.rates > 0)).any(axis=1))[0])
        raise PanelError(
            "entries must be into states that are never left for Pearson's test, got one into another, first at "
            f"{panel.locate(row)}; say Structure(absorbing=...) when fitting, or compare by prevalence(panel)."
        )
    return exact


def _refuse_mixed(
    panel: Panel, labels: list[Any], exact: Bools, kinds: AnyArray, allowed: Bools, end: Ints
) -> None:  # fmt: skip
    """Refuse entries that are exact here and not there: nobody knows whether one would have been seen."""
    odd = end[(kinds[end] != ENTRY) & (allowed[end] & exact).any(axis=1)]
    if len(odd):
        raise PanelError(
            "entries into a state must be exact in all sequences or in none for Pearson's test, got a row that was not "
            f"seen as an entry and may be in {labels[int((allowed[odd[0]] & exact).argmax())]!r}, at "
            f"{panel.locate(int(odd[0]))}; say how it was seen, or compare by prevalence(panel)."
        )


# ------------------------------------------------------------------------------------------------- predictions


def predicted(Q: Floats, steps: Steps) -> tuple[Floats, Floats]:
    """(k, M) probability of each state where a step begins, and of each where it ends, given the rows before."""
    k, M = len(steps.gap), len(Q)
    gaps, index = np.unique(steps.gap, return_inverse=True)
    carried = transition_matrices(Q, gaps)
    start, end = np.zeros((k, M)), np.empty((k, M))
    now = np.flatnonzero(steps.before < 0)
    start[now, steps.source[now]] = 1.0
    follower = np.full(k, -1)
    later = np.flatnonzero(steps.before >= 0)
    follower[steps.before[later]] = later
    while len(now):  # a row of a set more in each round
        end[now] = np.einsum("km,kmn->kn", start[now], carried[index[now]])
        now = now[follower[now] >= 0]
        told = end[now] * (steps.allowed[now] & ~steps.exact)
        now = follower[now]
        start[now] = told / told.sum(axis=1, keepdims=True)
    return start, end


def visits(end: Floats, steps: Steps) -> Floats:
    """(k, M) probability of each state at a visit: given that none of the exact states was entered before."""
    alive = np.where(steps.exact, 0.0, end)
    return np.asarray(alive / alive.sum(axis=1, keepdims=True))


def cut(steps: Steps, at: Floats) -> Floats:
    """(k, J) times since the begin of each step, from 0 to its gap: equal parts, and where `at` (k, L) lies within."""
    parts = steps.gap[:, None] * np.linspace(0.0, 1.0, PARTS + 1)
    return np.sort(np.hstack([parts, np.clip(at, 0.0, steps.gap[:, None])]), axis=1)


def hazards(Q: Floats, start: Floats, exact: Bools, times: Floats) -> Floats:
    """(k, J - 1, M) expected entries into each exact state between successive times (k, J) of each step."""
    t, index = np.unique(times, return_inverse=True)
    columns = np.flatnonzero(exact)
    into = transition_matrices(Q, t)[:, :, columns]
    entered = np.einsum("km,kjmc->kjc", start, into[index.reshape(times.shape)])
    added = np.diff(-np.log1p(-np.minimum(entered.sum(axis=2), 1.0 - 1e-16)), axis=1)
    parts = np.maximum(np.diff(entered, axis=1), 0.0)
    whole = parts.sum(axis=2, keepdims=True)
    out = np.zeros((*added.shape, len(Q)))
    out[..., columns] = added[..., None] * np.divide(parts, whole, out=np.zeros_like(parts), where=whole > 0)
    return out
