"""Which rates depend on which covariates: from a structure and a panel to effects that are all 0."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..arrays import AnyArray, Floats, Ints
from ..data.breaks import TIME, Broken, edges_of, read_breaks, with_breaks
from ..data.panel import Panel
from ..errors import PanelError, first_few, nearest
from .constraints import Constraints
from .effects import Covariate, Effects
from .structure import Structure, find_state

WORDS = ("all", "shared")


class Laid(NamedTuple):
    """A panel as its rates are to be seen: with blank rows where they may change by breaks.

    rows (n,): where the rows of the panel itself are; effects and z (n', K), its centred columns at every row, where
    rates depend on anything.
    """

    panel: Panel
    rows: Ints
    effects: Effects | None = None
    z: Floats | None = None


def lay_out(effects: Effects | None, panel: Panel) -> Laid:
    """A panel as rates with these effects are to be seen in it."""
    if effects is None:
        return Laid(panel, np.arange(panel.n_observations))
    broken = _broken(effects.breaks, panel)
    return Laid(*broken, effects, effects.design(broken.panel.covariates))


def depend(
    structure: Structure | None, panel: Panel, states: AnyArray, constraints: Constraints, by: str = "move"
) -> Laid:
    """A panel with effects of the covariates that rates depend on by a structure, all of them 0.

    Coefficients go `by` "move": each move its own; or by "state": all moves out of a state share them. Moves that
    `equal` ties share theirs, known rates depend on nothing.
    """
    if structure is None or not structure.depends:
        return Laid(panel, np.arange(panel.n_observations))
    breaks = read_breaks(structure.breaks)
    broken = _broken(breaks, panel)
    wide = broken.panel
    if wide.covariates is None:
        raise PanelError(
            "a panel must have covariates for rates to depend on, got none; name their columns by covariates=[...] "
            "where the panel is made."
        )
    wanted = _wanted(structure.covariates, list(wide.covariates.names), list(breaks), states, constraints, by)
    used = [name for name in wide.covariates.names if name in wanted]
    covariates = [_covariate(name, wide, breaks, panel) for name in used]
    owner = [name for name, c in zip(used, covariates, strict=True) for _ in c.columns]
    M = len(states)
    number, n = np.full((len(owner), M, M), -1), 0
    for k, name in enumerate(owner):
        leaders = _leaders(wanted[name], constraints, structure.covariates == "shared", by)
        distinct, place = np.unique(leaders[leaders >= 0], return_inverse=True)
        number[k][leaders >= 0] = n + place
        n += len(distinct)
    blank = Effects(covariates, np.zeros(len(owner)), np.zeros((len(owner), M, M)), number.astype(np.int64))
    z = blank.design(wide.covariates)
    centres = _mean_over_time(z, wide)
    return Laid(*broken, Effects(covariates, centres, blank.coefs, blank.number), z - centres)


def _broken(breaks: Mapping[str, list[Any]], panel: Panel) -> Broken:
    return with_breaks(panel, breaks) if breaks else Broken(panel, np.arange(panel.n_observations))


def _covariate(name: str, broken: Panel, breaks: Mapping[str, list[Any]], panel: Panel) -> Covariate:
    covariates = broken.covariates
    assert covariates is not None
    c = covariates.index(name)
    if name in breaks:
        edges = edges_of(name, breaks[name], panel)
        if name == TIME and panel.clock is not None:  # of another panel, days may count from another day
            return Covariate(name, edges=np.datetime_as_string(panel.clock.decode(edges)).tolist())
        return Covariate(name, edges=edges.tolist())
    labels = covariates.categories[c]
    if labels is not None:
        if len(labels) < 2:
            raise PanelError(
                f"covariate {name!r} must have two categories or more, got {labels.tolist()}; leave it out."
            )
        return Covariate(name, labels=labels.tolist())
    x = covariates.values[:, c]
    if np.all(x == x[0]):
        raise PanelError(f"covariate {name!r} must vary for rates to depend on it, got {x[0]:g} alone; leave it out.")
    return Covariate(name)


def _mean_over_time(z: Floats, panel: Panel) -> Floats:
    """(K,) mean of the columns of a design (n, K): each row counts by how long it holds."""
    until = np.append(panel.times[1:], 0.0)
    until[panel.offsets[1:] - 1] = panel.end_times
    since = panel.times.copy()
    since[panel.offsets[:-1]] = panel.start_times
    lasts = (until - since) * panel.weights[panel.sequence_index]
    total = lasts.sum()
    if not 0 < total < np.inf:
        return np.asarray(z.mean(axis=0))
    return np.asarray((lasts / total) @ z)


def _wanted(
    given: Any, names: list[str], broken: list[str], states: AnyArray, constraints: Constraints, by: str
) -> dict[str, Any]:
    """(M, M) moves that depend on each covariate, by its name."""
    open_moves = constraints.moves & ~constraints.is_known
    if given is None:
        return {name: open_moves for name in broken}
    if isinstance(given, str):
        if given not in WORDS:
            raise ValueError(
                f"covariates must be 'all', 'shared' or {{state or (state, next state): [names]}}, got {given!r}."
            )
        return {name: open_moves for name in names}
    if not isinstance(given, Mapping):
        raise ValueError(
            "covariates must be 'all', 'shared' or {state or (state, next state): [names]}, got "
            f"{reprlib.repr(given)}."
        )
    labels = states.tolist()
    out: dict[str, Any] = {}
    given_names = {name for listed in given.values() for name in ([listed] if isinstance(listed, str) else listed)}
    for key, listed in given.items():
        chosen = np.zeros(open_moves.shape, dtype=bool)
        if isinstance(key, tuple) and key not in labels:
            if by == "state":
                raise ValueError(
                    f"covariates must be of states where the rate of leaving is what depends on them, got {key!r}; "
                    f"write {key[0]!r}, or use EM."
                )
            if len(key) != 2:
                raise ValueError(f"covariates must name moves as (state, next state), got {key!r}.")
            chosen[find_state(key[0], labels), find_state(key[1], labels)] = True
        else:
            chosen[find_state(key, labels)] = True
        if not (chosen & open_moves).any():
            raise ValueError(
                f"covariates must name moves of unknown rate that may happen, got {key!r}; leave it out, or allow it."
            )
        for name in [listed] if isinstance(listed, str) else listed:
            if name not in names:
                raise ValueError(
                    f"covariates must be among {first_few(names)}, got {name!r}{nearest(name, names)} for {key!r}."
                )
            out[name] = out.get(name, np.zeros(open_moves.shape, dtype=bool)) | (chosen & open_moves)
    out |= {name: open_moves for name in broken if name not in given_names}
    if not out:
        raise ValueError("covariates must name at least one, got an empty mapping; leave it out.")
    return out


def _leaders(chosen: Any, constraints: Constraints, shared: bool, by: str) -> Ints:
    """(M, M) what tells coefficients of one covariate apart, -1 for moves that have none."""
    M = len(chosen)
    if shared:
        return np.where(chosen, 0, -1)
    if by == "state":
        return np.where(chosen, np.arange(M)[:, None], -1)
    # moves that share a rate share what it depends on
    tied = np.isin(constraints.group, constraints.group[chosen]) & (constraints.group >= 0)
    if np.any(tied & ~chosen):
        raise ValueError(
            "moves of one rate (equal) must depend on the same covariates, got one of them without; name them all."
        )
    return np.where(chosen, constraints.group, -1)
