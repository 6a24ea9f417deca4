"""What is known of the process before any data: which moves are possible, which values are known or shared."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse.csgraph import shortest_path

from ..arrays import AnyArray, Bools, Floats, Ints
from ..emissions import Record
from ..options import is_finite
from ..stored import stored
from .constraints import Constraints

if TYPE_CHECKING:
    from .process import Process

INITIAL = ("estimated", "uniform", "given")


@stored
@dataclass(frozen=True, eq=False)
class Structure:
    """Constraints on the process, honoured exactly by every model that takes a structure.

    Parameters
    ----------
    allowed : (M, M) of bool or numbers, or {state: [states it may move to]}, optional
        Moves that may happen, those that are True or above 0; all by default. The diagonal is ignored. A state left
        out of a mapping cannot be left.
    absorbing : list of states, optional
        States that cannot be left.
    initial : "estimated", "uniform", "given", (M,) or {state: probability}
        Distribution of the first state. "given" conditions on the first state, as R's msm does: it is never estimated
        and the likelihood of `EM` has no term for it (`process_` then shows it as uniform); states must be seen.
        Numbers are kept as they are; a state left out of a mapping has probability 0.
    fixed : {(state, next state): rate} or {"rates": {...}, "emission": {...}}, optional
        Known values. A rate of 0 forbids the move. Emission entries are {(state, label): probability} of a
        categorical column, whose other labels share the rest, or {(state, "mean" or "sd"): value} of a measured one
        ("log_mean", "log_sd" of lognormal, "centre", "scale" of student and laplace, "mean" of the others);
        {(state, column, entry): value} where more than one column has such an entry.
    equal : list of lists of moves (state, next state), optional
        The moves of each list share one rate.
    covariates : "all", "shared" or {state or (state, next state): [names]}, optional
        Which rates depend on the covariates of the panel: every move with effects of its own, all moves with the same
        ones, or those named, each with its own on the covariates listed. None, the default: no rate depends on any.
        Moves that share a rate share its effects; known rates depend on nothing.
    breaks : list of times, or {"time" or a covariate: [values]}, optional
        Rates are constant between breaks, and differ from piece to piece by a factor: that of the piece against the
        first one, an effect like that of a category. Times are those of the panel. A covariate with breaks, such as
        age, is one that grows by one in each unit of time, from its value at the first row of a sequence. All moves
        depend on the pieces, but where `covariates` names them (time as "time") for some.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> structure = jm.Structure(
    ...     allowed={"well": ["ill", "dead"], "ill": ["well", "dead"]},
    ...     initial={"well": 1.0},
    ...     fixed={("well", "dead"): 0.01},
    ...     equal=[[("well", "ill"), ("ill", "well")]],
    ... )
    >>> structure.n_free(jm.Process.from_generator({"well": {"ill": 1, "dead": 0.01}, "ill": {"well": 1, "dead": 0.5}}))
    2
    """

    allowed: Any = None
    absorbing: Sequence[Any] | None = None
    initial: Any = "estimated"
    fixed: Any = None
    equal: Any = None
    covariates: Any = None
    breaks: Any = None

    @property
    def depends(self) -> bool:
        """Whether any rate depends on covariates or on time."""
        return self.covariates is not None or self.breaks is not None

    @property
    def names_states(self) -> bool:
        """Whether anything is said of certain states, so that they have a meaning of their own."""
        said = self.allowed, self.absorbing, self.fixed, self.equal
        words = self.initial is None or isinstance(self.initial, str)
        return any(x is not None for x in said) or not words or isinstance(self.covariates, Mapping)

    @property
    def takes_first_as_given(self) -> bool:
        """Whether nothing is said of first states: likelihoods are conditional on them."""
        return isinstance(self.initial, str) and self.initial == "given"

    def allowed_moves(self, states: AnyArray) -> Bools:
        """(M, M) moves that may happen between the given states, diagonal False."""
        return self.constraints(states).moves

    def constraints(self, states: AnyArray) -> Constraints:
        """All of it but the emission, as numbers for the given states."""
        labels = states.tolist()
        moves = self._moves(labels)
        fixed = np.full(moves.shape, np.nan)
        for key, rate in self._fixed("rates").items():
            place = _move("fixed", key, labels)
            _check_value(key, rate, "a finite rate >= 0", lambda x: x >= 0)
            if not moves[place] and rate > 0:
                raise ValueError(
                    f"fixed must name moves that may happen, got the rate {rate!r} for {key!r}, which allowed or "
                    "absorbing rules out; leave one of the two out."
                )
            fixed[place] = rate if moves[place] and rate > 0 else np.nan
            moves[place] &= rate > 0
        initial, given = self._initial(labels)
        return Constraints(moves, fixed, self._groups(moves, fixed, labels), initial, given)

    def fix_emission(self, emission: Record, states: AnyArray, columns: Sequence[Any]) -> Record:
        """The emission with the entries that are known; `columns` are the names of its columns."""
        labels, names = states.tolist(), list(columns)
        entries: dict[int, dict[tuple[int, Any], float]] = {}
        for key, value in self._fixed("emission").items():
            parts = key if isinstance(key, tuple) else ()
            if len(parts) not in (2, 3):
                raise ValueError(
                    f"fixed emission entries must be (state, label) or (state, column, label), got {key!r}."
                )
            if len(parts) == 3 and parts[1] not in names:
                raise ValueError(f"fixed must name a column among {reprlib.repr(names)}, got {parts[1]!r} in {key!r}.")
            d = names.index(parts[1]) if len(parts) == 3 else _column_of(key, emission)
            _check_value(key, value, *emission.columns[d].entry_rule(parts[-1]))
            entries.setdefault(d, {})[find_state(parts[0], labels), parts[-1]] = float(value)
        return Record(
            column.with_fixed(entries[d]) if d in entries else column for d, column in enumerate(emission.columns)
        )

    def n_free(self, process: Process) -> int:
        """Number of free parameters of a process: rates (shared ones once, known ones not), effects, π, emission.

        The emission of a fitted process carries with it what is fixed of it.
        """
        effects = 0 if process.effects is None else process.effects.n_free
        return self.constraints(process.states).n_free + process.emission.n_parameters + effects

    # ----------------------------------------------------------- as it was given

    def _moves(self, labels: list[Any]) -> Bools:
        M = len(labels)
        if self.allowed is None:
            moves = np.ones((M, M), dtype=bool)
        elif isinstance(self.allowed, Mapping):
            moves = np.zeros((M, M), dtype=bool)
            for source, targets in self.allowed.items():
                for target in _listed("allowed", targets):
                    moves[find_state(source, labels), find_state(target, labels)] = True
        else:
            moves = _read_moves(self.allowed, labels)
        np.fill_diagonal(moves, False)
        for state in () if self.absorbing is None else _listed("absorbing", self.absorbing):
            moves[find_state(state, labels)] = False
        return moves

    def _fixed(self, part: str) -> Mapping[Any, Any]:
        """Known values of one part, "rates" or "emission"."""
        fixed = {} if self.fixed is None else self.fixed
        form = "fixed must be {(state, next state): rate} or {'rates': {...}, 'emission': {...}}"
        if not isinstance(fixed, Mapping):
            raise ValueError(f"{form}, got {reprlib.repr(fixed)}.")
        if not any(isinstance(key, str) for key in fixed):
            fixed = {"rates": fixed}
        if set(fixed) - {"rates", "emission"} or not all(isinstance(own, Mapping) for own in fixed.values()):
            raise ValueError(f"{form}, got {reprlib.repr(fixed)}.")
        return fixed.get(part, {})  # type: ignore[no-any-return]

    def _initial(self, labels: list[Any]) -> tuple[Floats | None, bool]:
        """π where it is known, and whether the first state is given."""
        M = len(labels)
        if isinstance(self.initial, str):
            if self.initial not in INITIAL:
                raise ValueError(
                    f"initial must be one of {INITIAL}, or probabilities, got {self.initial!r}; one state alone is "
                    f"{{{self.initial!r}: 1.0}}."
                )
            return (None, False) if self.initial == "estimated" else (np.full(M, 1.0 / M), self.initial == "given")
        if self.initial is None:
            return None, False
        values = self.initial
        if isinstance(values, Mapping):
            known = {find_state(state, labels): p for state, p in values.items()}
            values = [known.get(s, 0.0) for s in range(M)]
        try:
            pi = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            pi = np.empty(0)
        if pi.shape != (M,) or not np.all(pi >= 0) or not math.isclose(pi.sum(), 1.0, abs_tol=1e-8):
            raise ValueError(
                f"initial must be a probability for each of the {M} states that sum to 1, or one of {INITIAL}, got "
                f"{reprlib.repr(self.initial)}; divide them by their sum."
            )
        return pi / pi.sum(), False

    def _groups(self, moves: Bools, fixed: Floats, labels: list[Any]) -> Ints:
        """(M, M) number of the free rate of each move, -1 for moves that have none."""
        leader = np.arange(moves.size).reshape(moves.shape)
        taken: dict[tuple[int, int], int] = {}
        for k, listed in enumerate(() if self.equal is None else _listed("equal", self.equal)):
            places = [_move("equal", key, labels) for key in _listed("equal", listed)]
            if len(places) < 2:
                raise ValueError(
                    f"each list of equal must hold two moves or more, got {listed!r}; write "
                    "equal=[[(state, next state), (state, next state)], ...]."
                )
            for key, place in zip(listed, places, strict=True):
                if place in taken:
                    where = "twice in one list" if taken[place] == k else "in two lists"
                    raise ValueError(f"equal must name each move once, got {tuple(key)!r} {where}; join the lists.")
                if not moves[place]:
                    raise ValueError(
                        f"equal must name moves that may happen, got {tuple(key)!r}, which allowed, absorbing or a "
                        "fixed rate of 0 rules out; leave one of the two out."
                    )
                if np.isfinite(fixed[place]):
                    raise ValueError(
                        f"equal must name moves of unknown rate, got {tuple(key)!r}, whose rate is fixed at "
                        f"{fixed[place]:g}; fix the rates of all the others instead."
                    )
                taken[place] = k
                leader[place] = leader[places[0]]
        free = moves & ~np.isfinite(fixed)
        group = np.full(moves.shape, -1)
        group[free] = np.unique(leader[free], return_inverse=True)[1]
        return group


def _read_moves(allowed: Any, labels: list[Any]) -> Bools:
    """(M, M) moves of a table of booleans or numbers, where what is not 0 may happen."""
    M = len(labels)
    try:
        table = np.array(allowed)
    except ValueError:  # of rows that differ in length
        table = np.empty(0)
    if table.shape != (M, M):
        raise ValueError(
            f"allowed must be a {(M, M)} table of moves between the states {reprlib.repr(labels)}, or a mapping, "
            f"got shape {table.shape}."
        )
    if table.dtype == object and all(isinstance(x, Real) for x in table.ravel().tolist()):
        table = table.astype(np.float64)
    if table.dtype.kind not in "biuf" or not np.all(table[~np.eye(M, dtype=bool)] >= 0):
        raise ValueError(
            f"allowed must hold True and False, or numbers >= 0, got {reprlib.repr(table.tolist())}; convert the table."
        )
    return table.astype(bool)


def _listed(name: str, states: Any) -> list[Any]:
    """States that were given as a list of them."""
    try:
        if not isinstance(states, str | bytes):
            return list(states)
    except TypeError:
        pass
    raise ValueError(f"{name} must list states, got {states!r}; write [{states!r}].")


def find_state(state: Any, labels: list[Any]) -> int:
    """Place of a state among its labels."""
    if not isinstance(state, Hashable) or state not in labels:
        raise ValueError(f"structure must name states among {reprlib.repr(labels)}, got {state!r}.")
    return labels.index(state)


def _column_of(key: Any, emission: Record) -> int:
    """The one column that has an entry (state, entry)."""
    able = [d for d, column in enumerate(emission.columns) if column.has_entries]
    known = [d for d in able if emission.columns[d].knows_entry(key[1])]
    if len(known) > 1 or not able:
        raise ValueError(
            f"fixed emission entries must be of one column, got {key!r}, which {len(known)} columns may have; name the "
            "column as (state, column, entry), or leave the entry out."
        )
    return (known or able)[0]


def jumps_needed(moves: Bools) -> int:
    """Most jumps that the shortest allowed way between two states can take; at least 1."""
    steps = shortest_path(moves.astype(float), unweighted=True)
    finite = steps[np.isfinite(steps)]
    return max(1, int(finite.max()))


def _move(name: str, key: Any, labels: list[Any]) -> tuple[int, int]:
    """Places of the two states of a move."""
    if not isinstance(key, tuple | list) or len(key) != 2:
        raise ValueError(f"{name} must name moves as (state, next state), got {key!r}.")
    source, target = find_state(key[0], labels), find_state(key[1], labels)
    if source == target:
        raise ValueError(f"{name} must name moves between two states, got {tuple(key)!r}; staying has no rate.")
    return source, target


def _check_value(key: Any, value: Any, what: str, holds: Any) -> None:
    """Refuse a known value that is none."""
    if not is_finite(value) or not holds(value):
        raise ValueError(f"fixed must hold {what}, got {value!r} for {key!r}; correct it, or leave the entry out.")
