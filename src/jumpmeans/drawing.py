"""Paths of a process whose rates depend on covariates, drawn exactly: rates are constant over stretches of time."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .arrays import AnyArray, Floats, Ints
from .data.building import open_frame
from .data.panel import Panel
from .data.trajectories import Trajectories
from .model.dependence import lay_out
from .model.process import Process


class Stretches(NamedTuple):
    """Stretches of sequences, those of i are offsets[i]:offsets[i + 1], over which rates are constant.

    ends (n,): when each is over; place (n,): which of the rate matrices Q (G, M, M), zero diagonal, holds over it.
    """

    offsets: Ints
    ends: Floats
    place: Ints
    Q: Floats

    @classmethod
    def of(cls, process: Process, times: Floats, given: dict[str, AnyArray]) -> Stretches:
        """Those between the looks (S, L) of each sequence, cut at the breaks that the process knows."""
        S, L = times.shape
        if not given:
            assert process.effects is not None
            names = [c.name for c in process.effects.covariates if c.name != "time"]
            if names:
                raise ValueError(
                    f"covariates must be given for a process whose rates depend on {reprlib.repr(names)}, got none; "
                    "simulate process.at({...}) for one value of each."
                )
        ids = np.repeat(np.arange(S), L)
        looks = Panel.from_arrays(times.ravel(), np.zeros(S * L), ids, covariates=given or None)
        laid = lay_out(process.effects, looks)
        assert laid.z is not None
        distinct, place = np.unique(laid.z, axis=0, return_inverse=True)
        ends = np.append(laid.panel.times[1:], 0.0)
        ends[laid.panel.offsets[1:] - 1] = laid.panel.end_times
        Q = np.maximum(process.rate_matrices(distinct), 0.0)  # the diagonal, which is negative, is not used
        return cls(laid.panel.offsets, ends, place.reshape(-1), Q)

    def fastest(self, process: Process) -> Process:
        """A process that leaves each state at least as fast as any of these."""
        return replace(process, rates=self.Q.sum(axis=2).max(axis=0), effects=None)


def draw_stretches(
    process: Process, stretches: Stretches, paces: Floats, rng: np.random.Generator
) -> Trajectories:  # fmt: skip
    """One path for each sequence from time 0 on, all advanced together, from jump or end of a stretch to the next.

    A state is left once the rates that it went through, times the time under each, exceed an exponential number.
    paces (S,): what multiplies all rates of a sequence.
    """
    offsets, ends, place, Q = stretches
    S, rates, chain = len(offsets) - 1, Q.sum(axis=2), np.cumsum(Q, axis=2)
    first = np.cumsum(process.initial_probs)
    state = np.minimum(np.searchsorted(first, rng.random(S) * first[-1], side="right"), len(first) - 1)
    now, stretch, left = np.zeros(S), offsets[:-1].copy(), rng.standard_exponential(S)
    alive = np.arange(S)
    sequences, states, starts = [alive], [state.copy()], [now.copy()]
    while len(alive):
        own = rates[place[stretch[alive]], state[alive]] * paces[alive]
        over = own * (ends[stretch[alive]] - now[alive])
        stays = over <= left[alive]
        through = alive[stays]
        left[through] -= over[stays]
        now[through] = ends[stretch[through]]
        stretch[through] += 1
        moved = alive[~stays]
        now[moved] += left[moved] / own[~stays]
        row = chain[place[stretch[moved]], state[moved]]
        u = rng.random(len(moved))
        state[moved] = np.minimum((u[:, None] * row[:, -1:] >= row).sum(axis=1), len(first) - 1)
        left[moved] = rng.standard_exponential(len(moved))
        sequences.append(moved)
        states.append(state[moved])
        starts.append(now[moved])
        alive = alive[stretch[alive] < offsets[alive + 1]]
    sequence = np.concatenate(sequences)
    order = np.argsort(sequence, kind="stable")
    return Trajectories(
        np.concatenate(states)[order].astype(np.int32), np.concatenate(starts)[order],
        np.searchsorted(sequence[order], np.arange(S + 1)), ends[offsets[1:] - 1], np.arange(S), process.states,
    )  # fmt: skip


def read_given(given: Any, times: Floats) -> dict[str, AnyArray]:
    """{name: (S L,) values at the looks} of covariates as a user gives them."""
    if given is None:
        return {}
    S, L = times.shape
    if callable(given):
        given = given(times.copy())
    if not isinstance(given, Mapping):
        table, _ = open_frame(given)
        given = {str(name): table[name].to_list() for name in table.columns}
    out = {}
    for name, values in given.items():
        column = np.asarray(values)
        if column.shape not in ((), (S,), (S, L)):
            raise ValueError(
                f"covariates must be one value for all, one for each sequence {(S,)} or one for each look {(S, L)}, "
                f"got shape {column.shape} for {name!r}."
            )
        out[name] = np.broadcast_to(column.reshape(-1, 1) if column.ndim == 1 else column, (S, L)).ravel()
    return out
