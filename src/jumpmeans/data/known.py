"""What is known of a row besides its values: how it was seen, and which states it can be in."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import AnyArray, Bools, Ints
from ..errors import PanelError, first_few, nearest, shorten
from ..kinds import NAMES, SAID, SNAPSHOT
from .columns import read_column, read_values

if TYPE_CHECKING:
    from .panel import Panel
    from .rows import Rows

Kinds = npt.NDArray[np.int8]


class StateSet(NamedTuple):
    """States of which a row is in one: those that a label means, or the one that is known."""

    name: Any
    states: tuple[Any, ...]


# ---------------------------------------------------------------------------------------------------- kinds


def read_kinds(column: Any) -> Kinds:
    """(n,) code of each row: a name of `kinds.NAMES`, or 1, 2, 3 as msm counts them; missing or "": a snapshot."""
    known: dict[Any, int] = {name: code for code, name in enumerate(NAMES)}
    known |= {code + 1: code for code in range(3)} | {str(code + 1): code for code in range(3)} | {None: SNAPSHOT}
    items = [None if x != x or x == "" else x for x in read_column(column, "kinds").tolist()]
    for row, x in enumerate(items):
        if not isinstance(x, Hashable) or x not in known:
            raise PanelError(
                f"kinds must be {', '.join(map(repr, SAID[:-1]))} or {SAID[-1]!r} (or 1, 2, 3 as in msm), got "
                f"{shorten(repr(x))} at row {row}{nearest(x, SAID)}; correct it."
            )
    return np.fromiter(map(known.__getitem__, items), np.int8, len(items))


def tidy_kinds(panel: Rows) -> Kinds | None:
    """Kinds of a panel, read-only: a first row with nothing before it is a snapshot; None if nothing is told by them.

    Blank rows at the instant of another, which were told apart by their kind before they were blanked, keep it.
    """
    kinds = np.array(panel.kinds, dtype=np.int8)
    first = panel.offsets[:-1]
    kinds[first[panel.times[first] <= panel.start_times]] = SNAPSHOT
    if not np.any(kinds != SNAPSHOT) and not np.any(panel.times[1:] == panel.times[:-1]):
        return None
    kinds.flags.writeable = False
    return kinds


def snapshots_only(panel: Panel, who: str) -> None:
    """Refuse a panel whose rows tell more than their values, for a method that would not listen."""
    told = np.zeros(panel.n_observations, dtype=bool)
    told |= False if panel.kinds is None else panel.kinds != SNAPSHOT
    told |= False if panel.known is None else panel.known >= 0
    if told.any():
        raise PanelError(
            f"{who} takes rows as snapshots of what they show, got kinds or known states (kind, true_state, sets), "
            f"first at {panel.locate(int(np.flatnonzero(told)[0]))}; use JumpMeans, EM or Gibbs, or leave them out."
        )


# ----------------------------------------------------------------------------------------------------- sets


def check_sets(sets: Any) -> dict[Any, tuple[Any, ...]]:
    """Labels that mean one of several states, and these; none by default."""
    if sets is None:
        return {}
    if not isinstance(sets, Mapping):
        raise PanelError(f"sets must be {{label: [states]}}, got {shorten(repr(sets))}.")
    out: dict[Any, tuple[Any, ...]] = {}
    for name, states in sets.items():
        if isinstance(states, str | bytes) or not hasattr(states, "__iter__"):
            raise PanelError(
                f"sets must give each label a list of states, got {shorten(repr(states))} for {name!r}; "
                f"write {{{name!r}: [{shorten(repr(states))}]}}."
            )
        listed = tuple(np.asarray(states, dtype=object).ravel().tolist())
        if not listed:
            raise PanelError(f"sets must give each label at least one state, got none for {name!r}; name them.")
        nested = [x for x in listed if x in sets]
        if nested:
            raise PanelError(
                f"sets must be made of states, got {nested[0]!r} for {name!r}, which is a set itself; list its states."
            )
        out[name] = tuple(dict.fromkeys(listed))
    return out


def read_known(
    columns: Sequence[Any], true_states: Any, sets: Mapping[Any, tuple[Any, ...]]
) -> tuple[Ints | None, tuple[StateSet, ...]]:
    """(n,) index of the set of states that each row is known to be in, -1 for none; and the sets.

    `columns` are those of the values, in which the label of a set may stand; `true_states` a column of states or of
    labels of sets.
    """
    table: dict[Any, int] = {}
    found: list[StateSet] = []

    def code_of(name: Any, states: tuple[Any, ...]) -> int:
        if name not in table:
            table[name] = len(found)
            found.append(StateSet(name, states))
        return table[name]

    def named(column: Any, what: str) -> Ints:
        items = read_column(column, what).tolist()
        codes = (code_of(x, sets[x]) if isinstance(x, Hashable) and x in sets else -1 for x in items)
        return np.fromiter(codes, np.int64, len(items))

    codes: Ints | None = None
    for column in columns if sets else ():
        own = named(column, "values")
        codes = own if codes is None else _narrower(codes, own, found)
    if true_states is not None:
        own = named(true_states, "true_states")
        x, labels = read_values(true_states, "true_states", sets)
        for value in np.unique(x[~np.isnan(x)]).tolist():
            plain = int(value) if value == int(value) else value
            label = plain if labels is None else labels.tolist()[int(value)]
            own[x == value] = code_of(label, (label,))
        codes = own if codes is None else _narrower(codes, own, found)
    if codes is None or not np.any(codes >= 0):
        return None, ()
    return codes, tuple(found)


def _narrower(a: Ints, b: Ints, found: list[StateSet]) -> Ints:
    """Of two things known of each row the one that says more; they must not contradict each other."""
    out = np.where(a < 0, b, a)
    for row in np.flatnonzero((a >= 0) & (b >= 0) & (a != b)).tolist():
        one, other = found[a[row]], found[b[row]]
        if set(other.states) <= set(one.states):
            out[row] = b[row]
        elif not set(one.states) < set(other.states):
            raise PanelError(
                f"what is known of a row must agree, got {one.name!r} and {other.name!r} at row {row}; correct one."
            )
    return np.asarray(out)


def allowed_states(panel: Rows, labels: AnyArray) -> Bools | None:
    """(n, M) states of the given labels that each row can be in; None if nothing is known of any row."""
    if panel.known is None:
        return None
    index = {label: m for m, label in enumerate(labels.tolist())}
    table = np.ones((len(panel.state_sets) + 1, len(index)), dtype=bool)  # the last one: nothing is known
    for code in np.unique(panel.known[panel.known >= 0]).tolist():
        states = panel.state_sets[code].states
        unknown = [state for state in states if state not in index]
        if unknown:
            row = int(np.flatnonzero(panel.known == code)[0])
            raise PanelError(
                f"states that rows are known to be in must be states of the model, {first_few(index)}, got "
                f"{unknown[0]!r}{nearest(unknown[0], index)}, first at {panel.locate(row)}; correct it, or name every "
                "state by states=[...] when fitting."
            )
        table[code] = False
        table[code, [index[state] for state in states]] = True
    return table[panel.known]
