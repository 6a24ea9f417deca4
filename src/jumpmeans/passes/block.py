"""What passes work on: some sequences in the layout of the kernels, and the dwells of their trajectories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache, cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import AnyArray, Bools, Codes, Floats, Ints
from ..kinds import BARS, SNAPSHOT

if TYPE_CHECKING:
    from ..data.panel import Panel
    from .varying import Gaps

# Rows of a block: enough blocks for all cores, blocks large enough to be worth a call.
BLOCKS, LEAST_ROWS, MOST_ROWS = 16, 512, 16384


def cut_bounds(offsets: Ints, least: int = LEAST_ROWS) -> list[int]:
    """Edges of blocks, as numbers of sequences, for sequences with the rows between offsets (S + 1,)."""
    n = int(offsets[-1])
    size = int(np.clip(n // BLOCKS, least, MOST_ROWS))
    edges = np.searchsorted(offsets, np.arange(0, n, size))
    return np.unique(np.append(edges, len(offsets) - 1)).tolist()


# A row that costs more than this in every state is one that none can show: a few of them would sum to infinity.
LARGEST_COST = 1e290


class NoPathError(Exception):
    """Internal: sequence `sequence` of the panel has no path of finite cost; it dies at `row` (within the sequence).

    shown : whether some state can show that row, so that it is the moves that are missing.
    """

    def __init__(self, sequence: int, row: int, shown: bool = True) -> None:
        super().__init__(sequence, row, shown)
        self.sequence, self.row, self.shown = sequence, row, shown


@dataclass(frozen=True, eq=False)
class Block:
    """Some sequences of a panel: times relative to each window, values encoded. Read-only.

    Parameters
    ----------
    tau : (n,)
        Row times, each relative to the start of its window.
    offsets : (S + 1,)
        Rows of sequence i are offsets[i]:offsets[i + 1].
    ends, weights : (S,)
        Length of each window, and weight of each sequence.
    x : (n, D)
        Encoded values, NaN where nothing was observed.
    first : int
        Number of the first sequence in the panel.
    kinds : (n,), optional
        How each row was seen, by the codes of `jumpmeans.kinds`; None: as a snapshot.
    allowed : (n, M), optional
        States that each row allows; None: all that its values do.
    z : (n, K), optional
        Centred columns of the covariates that rates depend on (`Effects.design`), which hold from a row on; before the
        first row of a sequence its own. None: rates depend on nothing.
    paces : (S,), optional
        What multiplies all rates of each sequence; None: 1.
    """

    tau: Floats
    offsets: Ints
    ends: Floats
    weights: Floats
    x: Floats
    first: int = 0
    kinds: NDArray[np.int8] | None = None
    allowed: Bools | None = None
    z: Floats | None = None
    paces: Floats | None = None

    def __post_init__(self) -> None:
        for name in _field_names():
            part = getattr(self, name)
            if isinstance(part, np.ndarray) and (part.flags.writeable or not part.flags.c_contiguous):
                part = np.ascontiguousarray(part).view()
                part.flags.writeable = False
                object.__setattr__(self, name, part)

    def __reduce__(self) -> tuple[Any, ...]:  # unpickled arrays are read-only again
        return Block, tuple(getattr(self, name) for name in _field_names())

    def __sizeof__(self) -> int:  # what a worker of a cluster plans its memory by
        parts = (getattr(self, name) for name in _field_names())
        return object.__sizeof__(self) + sum(part.nbytes for part in parts if isinstance(part, np.ndarray))

    @classmethod
    def of(cls, panel: Panel, x: Floats, labels: AnyArray | None = None, z: Floats | None = None) -> Block:
        """All sequences of a panel whose encoded values are x (n, D).

        `labels` (M,) of the states are needed where states of rows are known; `z` (n, K) where rates depend on
        covariates.
        """
        if labels is None and panel.known is not None:
            raise ValueError("labels of the states must be given for a panel with known states, got None.")
        return cls(
            panel.relative_times(), panel.offsets, panel.end_times - panel.start_times, panel.weights, x,
            kinds=panel.kinds, allowed=None if labels is None else panel.allowed_states(labels), z=z,
        )  # fmt: skip

    def cut(self) -> list[Block]:
        """The same sequences in blocks that depend on the data alone, never on who works on them."""
        # what gaps of equal rates and length share is worked out once in each block: fewer of them, where rates depend
        least = LEAST_ROWS if self.z is None else MOST_ROWS
        return [self.part(i, j) for i, j in pairwise(cut_bounds(self.offsets, least))]

    @classmethod
    def joined(cls, parts: list[Block]) -> Block:
        """The sequences of successive blocks as one; rows of which nothing is told stay so."""

        def all_of(name: str, nothing: Callable[[Block], AnyArray]) -> Any:
            found = [getattr(part, name) for part in parts]
            if all(x is None for x in found):
                return None
            return np.concatenate([nothing(part) if x is None else x for part, x in zip(parts, found, strict=True)])

        first = np.cumsum([0, *(len(part.tau) for part in parts)])
        width = next((part.allowed.shape[1] for part in parts if part.allowed is not None), 0)
        return cls(
            np.concatenate([part.tau for part in parts]),
            np.concatenate([[0], *(part.offsets[1:] + n for part, n in zip(parts, first, strict=False))]),
            np.concatenate([part.ends for part in parts]),
            np.concatenate([part.weights for part in parts]),
            np.concatenate([part.x for part in parts]),
            parts[0].first,
            all_of("kinds", lambda part: np.full(len(part.tau), SNAPSHOT, np.int8)),
            all_of("allowed", lambda part: np.ones((len(part.tau), width), dtype=bool)),
            None if parts[0].z is None else np.concatenate([part.z for part in parts if part.z is not None]),
        )

    def part(self, i: int, j: int) -> Block:
        """Sequences i, ..., j - 1 alone."""
        rows, own = slice(self.offsets[i], self.offsets[j]), slice(i, j)
        return Block(
            self.tau[rows],
            self.offsets[i : j + 1] - self.offsets[i],
            self.ends[own],
            self.weights[own],
            self.x[rows],
            self.first + i,
            None if self.kinds is None else self.kinds[rows],
            None if self.allowed is None else self.allowed[rows],
            None if self.z is None else self.z[rows],
            None if self.paces is None else self.paces[own],
        )

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return len(self.ends)

    @cached_property
    def seen(self) -> Bools:
        """(n,) whether a row holds any observation."""
        seen = np.zeros(len(self.x), dtype=bool)
        for column in self.x.T:  # few columns: quicker than row by row
            seen |= np.isfinite(column)
        return seen

    @cached_property
    def tells(self) -> Bools:
        """(n,) whether a row tells of its state, by what it holds or by what it allows."""
        return self.seen if self.allowed is None else self.seen | ~self.allowed.all(axis=1)

    @cached_property
    def row_kinds(self) -> NDArray[np.int8]:
        """(n,) how each row was seen; a row that opens its window has nothing before it and is a snapshot."""
        kinds = np.full(len(self.tau), SNAPSHOT, np.int8)
        if self.kinds is not None:
            kinds[:] = self.kinds
            opening = self.offsets[:-1]
            kinds[opening[self.tau[opening] == 0.0]] = SNAPSHOT
        return kinds

    @cached_property
    def holds(self) -> Bools:
        """(n,) whether no jump is moved past a row: it was seen, tells of its state or of a move, or bars a gap."""
        holds = self.tells
        if self.kinds is not None:
            barred = np.append(BARS[self.row_kinds][1:], False)
            barred[self.offsets[1:] - 1] = False
            holds = holds | (self.row_kinds != SNAPSHOT) | barred
        return holds

    @cached_property
    def turns(self) -> Bools:
        """(n, K) whether a covariate changes at a row from what it was at the row before, of the same sequence."""
        assert self.z is not None
        turns = np.zeros(self.z.shape, dtype=bool)
        turns[1:] = self.z[1:] != self.z[:-1]
        turns[self.offsets[:-1]] = False
        return turns

    @cached_property
    def turning(self) -> Bools:
        """(K,) whether a covariate changes within any sequence."""
        return np.asarray(self.turns.any(axis=0))

    @cached_property
    def patterns(self) -> tuple[Floats, Ints]:
        """Distinct rows (Z, K) of the covariates, and which of them each row (n,) has."""
        z = self.z
        assert z is not None
        if z.shape[1] == 0:
            return z[:1], np.zeros(len(z), np.int64)
        order = np.lexsort(z.T)
        new = np.ones(len(z), dtype=bool)
        new[1:] = (np.diff(z[order], axis=0) != 0).any(axis=1)
        codes = np.empty(len(z), np.int64)
        codes[order] = np.cumsum(new) - 1
        return np.ascontiguousarray(z[order][new]), codes

    @cached_property
    def own_paces(self) -> Floats:
        """(S,) what multiplies all rates of each sequence."""
        return np.ones(self.n_sequences) if self.paces is None else self.paces

    @cached_property
    def own_times(self) -> tuple[Floats, Floats]:
        """Times of the rows (n,) and ends of the windows (S,) by clocks that go as fast as their sequences."""
        if self.paces is None:
            return self.tau, self.ends
        return self.tau * np.repeat(self.paces, np.diff(self.offsets)), self.ends * self.paces

    @cached_property
    def gaps(self) -> Gaps:
        """The gaps by rates and length, where rates depend on covariates."""
        from .varying import Gaps

        return Gaps.of(self)

    @property
    def is_exact(self) -> bool:
        """Whether rows with values tell all of every window, to its end: what was seen held until the next of them."""
        if self.kinds is None and len(self.tau) > self.n_sequences:
            return False
        told = BARS[self.row_kinds]
        opening, closing = self.offsets[:-1], self.offsets[1:] - 1
        told[opening] |= self.tau[opening] == 0.0
        return bool(told.all() and self.seen.all() and np.all(self.tau[closing] == self.ends))

    def admitted(self, log_density: Floats) -> Floats:
        """Log-densities (n, M) of the values, -inf in the states that a row does not allow."""
        return log_density if self.allowed is None else np.where(self.allowed, log_density, -np.inf)

    @cached_property
    def row_weights(self) -> Floats:
        """(n,) weight of each row: that of its sequence."""
        if np.all(self.weights == self.weights[0]):  # as nearly always: one number, seen n times
            return np.broadcast_to(self.weights[0], len(self.tau))
        return np.repeat(self.weights, np.diff(self.offsets))

    @property
    def longest_gap(self) -> float:
        """No gap, window ends included, is longer."""
        inside = np.empty_like(self.tau)
        np.subtract(self.tau[1:], self.tau[:-1], out=inside[1:])
        inside[self.offsets[:-1]] = self.tau[self.offsets[:-1]]
        return float(max(inside.max(), (self.ends - self.tau[self.offsets[1:] - 1]).max(), 0.0))

    def most_dwells(self, per_gap: int) -> int:
        """More dwells there cannot be, with so many jumps in each gap, those to the ends of the window included."""
        pinned = 0 if self.kinds is None else int(np.count_nonzero(self.row_kinds))
        return self.n_sequences + per_gap * (len(self.tau) + self.n_sequences) + pinned

    def no_path(self, sequence: int, row: int, cost: Floats) -> NoPathError:
        """What to raise when a sequence of this block has no path; cost (n, M) of each row in each state."""
        least = cost[self.offsets[sequence] : self.offsets[sequence + 1]].min(axis=1)
        beyond = np.flatnonzero(~(least < LARGEST_COST))
        if len(beyond):
            return NoPathError(self.first + int(sequence), int(beyond[0]), shown=False)
        return NoPathError(self.first + int(sequence), int(row))


@cache
def _field_names() -> tuple[str, ...]:
    """What a block is made of; asked for once, for there are thousands of blocks."""
    return tuple(field.name for field in fields(Block))


class Dwells(NamedTuple):
    """Dwells of the trajectories of a block.

    offsets (S + 1,): dwells of sequence i are offsets[i]:offsets[i + 1]; states, starts (relative to the window) and
    rows (first row of the dwell, within the sequence) of each.
    """

    offsets: Ints
    states: Codes
    starts: Floats
    rows: Codes

    @classmethod
    def blank(cls, block: Block) -> Dwells:
        """No jumps: every sequence is in state 0."""
        S = block.n_sequences
        return cls(np.arange(S + 1), np.zeros(S, np.int32), np.zeros(S), np.zeros(S, np.int32))

    @classmethod
    def join(cls, parts: list[Dwells]) -> Dwells:
        """Dwells of all blocks, in their order."""
        counts = [np.diff(part.offsets) for part in parts]
        return cls(
            np.concatenate([[0], np.cumsum(np.concatenate(counts))]),
            *(np.concatenate([part[k] for part in parts]) for k in (1, 2, 3)),
        )

    @property
    def sequence(self) -> Ints:
        """(n_dwells,) sequence of each dwell."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def row_dwells(self, offsets: Ints) -> Ints:
        """(n,) dwell of each row; rows of sequence i are offsets[i]:offsets[i + 1]."""
        first = offsets[self.sequence] + self.rows
        return np.repeat(np.arange(len(first)), np.diff(np.append(first, offsets[-1])))

    def row_states(self, offsets: Ints) -> Codes:
        """(n,) state of each row."""
        return np.asarray(self.states[self.row_dwells(offsets)])
