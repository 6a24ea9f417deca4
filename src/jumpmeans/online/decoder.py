"""The decoder: sequences that are open, and what is said of each row."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from ..arrays import AnyArray, Bools, Floats, Ints
from ..data.clock import encode_times
from ..errors import InfeasibleError, PanelError, first_few, shorten
from ..estimators.read_out import require_constant
from ..kernels.forward_backward import power_tables
from ..kernels.online import (
    BEST,
    BEST_NOW,
    CHANGED,
    CODES,
    LAST,
    LOST,
    MARGIN,
    MARGIN_NOW,
    OPENED,
    PROBS,
    REFUSED,
    SEEN_AS,
    SHOWN,
    SHOWN_SINCE,
    SINCE,
    STATE,
    update_rows,
)  # fmt: skip
from ..kinds import FORCES, NAMES, PINS, SAID, SNAPSHOT
from ..model.objective import jump_costs
from ..options import choice, count, none, number
from .beds import Beds
from .files import read_beds, write_beds
from .given import as_jump_model, fingerprint
from .reading import Reader
from .told import Told

# Starts kept for each state at first; room is made for more as they are needed.
FEW_STARTS = 8
# Kinds of rows as they are mostly told, and their codes.
KINDS: dict[Any, int] = {None: SNAPSHOT} | {name: NAMES.index(name) for name in SAID}
# Types of times that need no reading.
NUMBERS = frozenset((float, int, np.float64))
# Gaps of any length: beyond this many mean dwells of the fastest state e^{Qt} is at its limit.
LONGEST_GAP = 1e12


class Given(NamedTuple):
    """Rows as the kernel takes them, and what it says of each."""

    slots: Ints
    tau: Floats
    kinds: AnyArray
    cost: Floats
    log_density: Floats
    codes: Ints
    numbers: Floats

    @classmethod
    def one(cls, M: int) -> Self:
        """Room for one snapshot, used again and again."""
        return cls(
            np.zeros(1, np.int64), np.zeros(1), np.zeros(1, np.int8), np.zeros((1, M)), np.zeros((1, M)),
            np.zeros((1, CODES), np.int64), np.zeros((1, PROBS + M)),
        )  # fmt: skip


class OnlineDecoder:
    """The state of many sequences, kept up to date row by row.

    Parameters
    ----------
    model : fitted model or Process
        JumpMeans and InfiniteJumpMeans decode by their own prices; any other model and a process as
        `JumpMeans.from_process` does.
    least_margin, hold : float, optional
        Hysteresis: a change of state is told once its margin exceeds `least_margin`, or once it has held for the time
        `hold`; of both the earlier. By default at once.
    sets : dict, optional
        Labels that mean one of several states, ``{label: [states]}``, as in `Panel.from_frame`.
    unknown : "refuse" or "missing"
        What to do with a label that the model does not know.
    most_starts : int
        Room for the possible beginnings of the present dwell in each state, at most; rounded up to a power of two.

    Notes
    -----
    After every row, `best` is the last state of ``decode(rows so far, criterion="online")``: the least objective over
    all trajectories with jumps in the middle of a gap. A row costs O(M²), whatever came before it. (The published
    `decode` also moves the jumps within their gaps, for which all rows must be looked at again.) Kinds of rows, sets
    and known states count as they do there.

    What is kept of a sequence are the beginnings of its present dwell that may still turn out best; one that another
    has overtaken never returns, so dropping it loses nothing. There are some ten of them in practice. Beyond
    `most_starts` the newest gives way, which is counted in `lost`; the law then holds no longer.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> process = jm.Process([0.1, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 5], sds=1))
    >>> bed = jm.OnlineDecoder(process)
    >>> [bed.update("bed 7", time, value).state for time, value in enumerate([0.2, -0.5, 5.3, 4.8])]
    [0, 0, 1, 1]
    """

    def __init__(
        self,
        model: Any,
        *,
        least_margin: float | None = None,
        hold: float | None = None,
        sets: Any = None,
        unknown: str = "refuse",
        most_starts: int = 64,
    ) -> None:
        (none | number(least=0)).check("least_margin", least_margin)
        (none | number(least=0)).check("hold", hold)
        choice("refuse", "missing").check("unknown", unknown)
        count(2, 2**16).check("most_starts", most_starts)
        self.model = as_jump_model(model)
        require_constant(self.model.process_, "an OnlineDecoder")
        for option in ("offsets", "frailty"):
            if getattr(model, option, None) is not None:
                raise ValueError(
                    f"{option} must be None for a model to be decoded online, got {getattr(model, option)!r}: what is "
                    "one's own is known from all rows, and what was told of the first ones would change; decode the "
                    "panel."
                )
        self.least_margin, self.hold, self.sets, self.unknown = least_margin, hold, sets, unknown
        process, (params, prices, search, _) = self.model.process_, self.model._decoder_
        self.states = process.states
        self._reader = Reader(
            self.states, params.emission, prices.emission, process.emission, prices.first, sets, unknown == "missing"
        )
        fitted = getattr(self.model, "trajectories_", None)
        self._clock = None if fitted is None else fitted.clock
        at_once = least_margin is None and hold is None
        longest = LONGEST_GAP / (float(process.rates.max()) or 1.0)
        rate, B, table, _, leave = power_tables(process.rate_matrix, longest)
        self._decodes_by = (
            params.rates, jump_costs(params.transition_probs, prices.transition), search.base,
            search.first_running == 1, search.free_end == 1, process.initial_probs, rate, B, table, leave,
            -np.inf if at_once else np.inf if least_margin is None else float(least_margin),
            np.inf if hold is None else float(hold),
        )  # fmt: skip
        few = max(FEW_STARTS, 2 * search.base)
        self._most = _power_of_two(max(most_starts, few))
        self._slots: dict[Any, int] = {}
        self._ids: list[Any] = []
        M = len(self.states)
        self._beds = Beds.empty(16, M, _power_of_two(few))
        self._labels = self.states.tolist()
        self._one = Given.one(M)
        self._scratch = np.empty(search.base + 1), np.empty((5, M)), np.empty((2, M), dtype=bool)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> list[Any]:
        """Sequences that are open, in the order in which they came."""
        return list(self._ids)

    @property
    def takes_dates(self) -> bool:
        """Whether times are dates, as those that the model was fitted to."""
        return self._clock is not None

    @property
    def lost(self) -> int:
        """How many starts of dwells found no room; 0 means that every answer so far is exact."""
        return int(self._beds.notes[: len(self), LOST].sum())

    @property
    def nbytes(self) -> int:
        """Memory that is kept for the sequences that are open and for the next ones."""
        return self._beds.nbytes

    # --------------------------------------------------------------------- rows

    def update(self, id: Any, time: Any, value: Any = None, *, kind: Any = None, true_state: Any = None) -> Told:
        """Take one row, and say what the state is now.

        Parameters
        ----------
        id : int or str
            The sequence; one that was not there before begins with this row.
        time : number, or date for a model of dates
            After all times of this sequence so far; at the last of them only for a move that is known to be then.
        value : number or label, or a sequence of one for each column
            None or NaN: nothing was observed.
        kind : "snapshot", "transition" or "entry", optional
            How the row was seen, as in `Panel.from_frame`: by default a snapshot.
        true_state : label, optional
            The state, where it is known, or the label of one of the `sets`.
        """
        told = self._update_one(id, time, value, kind) if true_state is None else None
        if told is None:  # what is not plain, or wrong, or opens a sequence
            told = self.update_many([id], [time], [value], kinds=[kind], true_states=[true_state]).row(0)
        return told

    def update_many(self, ids: Any, times: Any, values: Any, *, kinds: Any = None, true_states: Any = None) -> Told:
        """Take many rows, of one or many sequences, and say after each what its state is.

        Parameters
        ----------
        ids, times : (n,)
            Rows of one sequence stand in order of time; those of different ones in any order.
        values : (n,), or (n, D) for D columns
        kinds, true_states : (n,), optional
            As `kind` and `true_state` of `update`; None for a row that is a snapshot, or of which nothing is known.

        Notes
        -----
        Times that do not increase and values that the model cannot take are refused before any row is taken. Rows
        that no state can explain (a move that is not allowed) are left out and named by the error at the end; all
        others have been taken, and `now` tells what they say.
        """
        labels = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
        t = np.atleast_1d(encode_times(times, self._clock))
        rows = self._reader.read(values, kinds, _or_none(true_states), len(labels))
        if len(t) != len(labels):
            raise PanelError(f"ids and times must be of one length, got {len(labels)} and {len(t)}.")
        slots, new = self._find(labels)
        tau, opens = self._relative(slots, t, rows.kinds, labels)
        self._open(new, slots, t, opens)
        cost, log_density = self._reader.weigh(rows, opens)
        n = len(slots)
        codes, numbers = np.zeros((n, CODES), np.int64), np.zeros((n, PROBS + len(self.states)))
        given, row = Given(slots, tau, rows.kinds, cost, log_density, codes, numbers), 0
        while (row := self._run(row, given)) < n:
            self._beds = self._beds.grown(len(self._beds), 2 * self._beds.starts)
        refused = codes[:, REFUSED] == 1
        if refused.any():
            self._refuse(labels, t, refused)
        return self._told(
            np.array(labels), t, self._beds.clocks[slots, OPENED] + numbers[:, SINCE], codes[:, STATE], codes[:, BEST],
            numbers[:, MARGIN], codes[:, CHANGED] == 1, numbers[:, PROBS:],
        )  # fmt: skip

    def now(self, ids: Any = None) -> Told:
        """What was last said of some sequences, or of all; `changed` is False.

        Parameters
        ----------
        ids : list, optional
        """
        labels = self._ids if ids is None else list(ids)
        slots = np.array([self._slot(label) for label in labels], dtype=np.int64)
        clocks, notes = self._beds.clocks[slots], self._beds.notes[slots]
        start = clocks[:, OPENED]
        return self._told(
            np.array(labels), start + clocks[:, LAST], start + clocks[:, SHOWN_SINCE], notes[:, SHOWN],
            notes[:, BEST_NOW], clocks[:, MARGIN_NOW], np.zeros(len(slots), dtype=bool), self._beds.costs[slots, 2],
        )  # fmt: skip

    def forget(self, ids: Any) -> None:
        """Close sequences: their room is free for others."""
        gone = {self._slot(label) for label in ids}
        stay = [k for k in range(len(self)) if k not in gone]
        self._beds.keep(stay)
        self._ids = [self._ids[k] for k in stay]
        self._slots = {label: k for k, label in enumerate(self._ids)}

    # -------------------------------------------------------------------- files

    def save(self, path: Any) -> None:
        """Write all that is kept to a file (.npz, plain arrays)."""
        write_beds(path, self._beds, self._ids, fingerprint(self.model))

    @classmethod
    def load(cls, path: Any, model: Any, **options: Any) -> Self:
        """A decoder that goes on where a saved one was.

        Parameters
        ----------
        path : str or Path
        model : fitted model or Process
            The same as when it was saved; another is refused.
        options : as of the constructor
        """
        new = cls(model, **options)
        new._beds, new._ids = read_beds(path, len(new.states), fingerprint(new.model))
        new._slots = {label: k for k, label in enumerate(new._ids)}
        return new

    # ------------------------------------------------------------------- inside

    def _update_one(self, id: Any, time: Any, value: Any, kind: Any) -> Told | None:
        """A plain row of an open sequence, without tables; None, and nothing done, if it must be read with care."""
        try:
            slot, code = self._slots.get(id), KINDS.get(kind)
        except TypeError:
            return None
        if slot is None or code is None or self._clock is not None or type(time) not in NUMBERS:
            return None
        one, clock = self._one, self._beds.clocks[slot]
        opened = float(clock[OPENED])
        tau = time - opened
        if not clock[LAST] < tau < np.inf or not self._reader.weigh_one(value, one.cost[0], one.log_density[0]):
            return None
        one.slots[0] = slot
        one.tau[0] = tau
        one.kinds[0] = code
        if self._run(0, one) == 0:
            return None
        state, best, changed, refused = one.codes[0].tolist()
        if refused:
            return None
        since, margin = one.numbers[0, :PROBS].tolist()
        labels = self._labels
        return Told(
            id, float(time), labels[state], opened + since, labels[best], margin, changed == 1,
            one.numbers[0, PROBS:].copy(),
        )  # fmt: skip

    def _run(self, begin: int, rows: Given) -> int:
        """Takes rows from `begin` on; the first one that needs more room, if it may have it."""
        beds = self._beds
        row: int = update_rows(
            begin, rows.slots, rows.tau, rows.kinds, rows.cost, rows.log_density, *self._decodes_by,
            beds.starts < self._most, beds.queues, beds.rings, beds.costs, beds.clocks, beds.notes,
            rows.codes, rows.numbers, *self._scratch,
        )  # fmt: skip
        return row

    def _slot(self, label: Any) -> int:
        if label not in self._slots:
            raise KeyError(f"there is no sequence {label!r}; there are {first_few(self._ids)}.")
        return self._slots[label]

    def _find(self, labels: list[Any]) -> tuple[Ints, list[Any]]:
        """(n,) slot of each row, and the sequences that are new, which take the next slots."""
        for kind in set(map(type, labels)):
            if not issubclass(kind, int | str | np.integer) or kind is bool:
                odd = next(label for label in labels if type(label) is kind)
                raise PanelError(f"ids must be integers or strings, got {shorten(repr(odd))}.")
        new = [label for label in dict.fromkeys(labels) if label not in self._slots]
        places = self._slots | {label: len(self) + k for k, label in enumerate(new)} if new else self._slots
        return np.fromiter((places[label] for label in labels), np.int64, len(labels)), new

    def _relative(self, slots: Ints, t: Floats, kinds: AnyArray, labels: list[Any]) -> tuple[Floats, Bools]:
        """(n,) times since the first row of each sequence, and whether a row is that one."""
        order = np.argsort(slots, kind="stable")
        own, when, seen_as = slots[order], t[order], kinds[order]
        heads = np.append(True, own[1:] != own[:-1])
        here, is_open = own[heads], own[heads] < len(self)
        start, last, kind = when[heads], np.full(len(here), -np.inf), np.zeros(len(here), np.int64)
        start[is_open] = self._beds.clocks[here[is_open], OPENED]
        last[is_open] = self._beds.clocks[here[is_open], LAST]
        kind[is_open] = self._beds.notes[here[is_open], SEEN_AS]
        start = np.repeat(start, np.diff(np.append(np.flatnonzero(heads), len(own))))
        tau = when - start
        before, kind_before = np.append(-np.inf, tau[:-1]), np.append(0, seen_as[:-1])
        before[heads], kind_before[heads] = last, kind
        moves = PINS[seen_as] & ~(FORCES[seen_as] & FORCES[kind_before])
        bad = np.flatnonzero(~((tau > before) | ((tau == before) & moves)) | ~np.isfinite(when))
        if len(bad):
            i = int(bad[0])
            raise PanelError(
                f"times of sequence {labels[order[i]]!r} must increase strictly, got {self._shown(when[i])} after "
                f"{self._shown(start[i] + before[i])}; no row of this call was taken: a late row cannot be put in, "
                "leave it out (only a transition or an entry may have the time of the row before)."
            )
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        return np.asarray(tau[back]), np.asarray((heads & (before == -np.inf))[back])

    def _open(self, new: list[Any], slots: Ints, t: Floats, opens: Bools) -> None:
        """Slots of sequences that begin."""
        if len(self) + len(new) > len(self._beds):
            self._beds = self._beds.grown(max(2 * len(self._beds), len(self) + len(new)), self._beds.starts)
        self._beds.clocks[slots[opens], OPENED] = t[opens]
        for label in new:
            self._slots[label] = len(self._ids)
            self._ids.append(label)

    def _refuse(self, labels: list[Any], t: Floats, refused: Bools) -> None:
        bad = np.flatnonzero(refused)
        where = [f"{labels[i]!r} at {self._shown(t[i])}" for i in bad[:5].tolist()]
        raise InfeasibleError(
            f"the allowed moves must be able to explain every row, got none for {', '.join(where)}"
            f"{f' and {len(bad) - 5} more' if len(bad) > 5 else ''}; these rows are left out and all others are taken "
            "(see now()): correct the row, or allow the move (Structure(allowed=...))."
        )

    def _shown(self, time: float) -> str:
        return f"{time:g}" if self._clock is None else str(self._clock.decode(time)).removesuffix(".000000000")

    def _told(
        self, ids: AnyArray, t: Floats, since: Floats, state: AnyArray, best: AnyArray, margin: Floats,
        changed: Bools, probs: Floats,
    ) -> Told:  # fmt: skip
        time, begun = (x if self._clock is None else self._clock.decode(x) for x in (t, since))
        return Told(ids, time, self.states[state], begun, self.states[best], margin, changed, probs)


def _power_of_two(n: int) -> int:
    """The least power of two that is no less."""
    return 1 << (n - 1).bit_length()


def _or_none(entries: Any) -> Any:
    """Entries of a column, or None if there are none."""
    return None if isinstance(entries, list) and all(x is None for x in entries) else entries
