"""At the bedside: the state now, since when and how surely, one row at a time and for many sequences at once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

import numpy as np

from .arrays import AnyArray, Bools, Floats, Ints
from .data.clock import encode_times
from .data.frames import make_frame
from .data.panel import Panel
from .errors import InfeasibleError, PanelError, first_few
from .estimators import JumpMeans
from .estimators.jump_model import JumpModel
from .estimators.read_out import require_constant
from .kernels.forward_backward import power_tables
from .kernels.online import update_rows
from .model.objective import jump_costs
from .model.process import Process
from .options import choice, count, none, number

# Starts kept for each state at first; room is made for more as they are needed.
FEW_STARTS = 8
# Gaps of any length: beyond this many mean dwells of the fastest state e^{Qt} is at its limit.
LONGEST_GAP = 1e12


@dataclass(frozen=True, eq=False)
class Told:
    """What an `OnlineDecoder` says, one entry for each row; of a single row the entries themselves.

    Attributes
    ----------
    id, time : of the row.
    state : label
        The state now; with hysteresis the one that is told, which may lag behind.
    since : time
        When it began.
    best : label
        The last state of the best trajectory.
    margin : float
        How much more the best trajectory that ends in any other state costs; infinite if there is none.
    changed : bool
        Whether the state told is another one than before this row.
    probs : (M,) or (n, M)
        Probabilities of the states given the rows so far, under `process_`; NaN once it cannot produce them.
    """

    id: Any
    time: Any
    state: Any
    since: Any
    best: Any
    margin: Any
    changed: Any
    probs: Any

    def row(self, i: int) -> Told:
        """What is said of one row."""
        # dates stay as they are: a list would make plain numbers of them
        return Told(
            *(x[i] if x.ndim > 1 or x.dtype.kind == "M" else x[i : i + 1].tolist()[0] for _, x in self._items())
        )

    def _items(self) -> list[tuple[str, Any]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)]

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with one row for each; probabilities are left out. `backend` as in `Table.to_frame`."""
        return make_frame({name: np.atleast_1d(x) for name, x in self._items() if name != "probs"}, backend)


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
    unknown : "refuse" or "missing"
        What to do with a label that the model does not know.
    most_starts : int
        Room for the possible beginnings of the present dwell in each state, at most; rounded up to a power of two.

    Notes
    -----
    After every row, `best` is the last state of ``decode(rows so far, criterion="online")``: the least objective over
    all trajectories with jumps in the middle of a gap. A row costs O(M²), whatever came before it. (The published
    `decode` also moves the jumps within their gaps, for which all rows must be looked at again.)

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
        unknown: str = "refuse",
        most_starts: int = 64,
    ) -> None:
        (none | number(least=0)).check("least_margin", least_margin)
        (none | number(least=0)).check("hold", hold)
        choice("refuse", "missing").check("unknown", unknown)
        count(2, 2**16).check("most_starts", most_starts)
        self.model = as_jump_model(model)
        require_constant(self.model.process_, "an OnlineDecoder")
        if "_people_" in vars(self.model):
            raise ValueError(
                f"offsets must be None for a model to be decoded online, got {self.model.offsets!r}: the level of a "
                "person is known from all readings, and what was told of the first ones would change; decode the panel."
            )
        self.least_margin, self.hold, self.unknown = least_margin, hold, unknown
        process, (params, prices, search, _) = self.model.process_, self.model._decoder_
        self.states = process.states
        fitted = getattr(self.model, "trajectories_", None)
        self._clock = None if fitted is None else fitted.clock
        at_once = least_margin is None and hold is None
        self._hysteresis = (
            -np.inf if at_once else np.inf if least_margin is None else float(least_margin),
            np.inf if hold is None else float(hold),
        )
        longest = LONGEST_GAP / max(float(process.rates.max()), 1e-300)
        rate, B, table = power_tables(process.rate_matrix, longest)[:3]
        self._decodes_by = (
            params.rates, jump_costs(params.transition_probs, prices.transition), search.base,
            search.first_running == 1, search.free_end == 1, process.initial_probs, rate, B, table,
        )  # fmt: skip
        self._emission, self._prices, self._densities = params.emission, prices.emission, process.emission
        self._most = 1 << (max(most_starts, 2 * search.base) - 1).bit_length()
        self._slots: dict[Any, int] = {}
        self._ids: list[Any] = []
        self._kept = self._room(16, min(self._most, 1 << (max(FEW_STARTS, 2 * search.base) - 1).bit_length()))

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
        return int(self._kept["lost"][: len(self)].sum())

    @property
    def nbytes(self) -> int:
        """Memory that is kept for the sequences that are open and for the next ones."""
        return sum(array.nbytes for array in self._kept.values())

    # --------------------------------------------------------------------- rows

    def update(self, id: Any, time: Any, value: Any) -> Told:
        """Take one row, and say what the state is now.

        Parameters
        ----------
        id : int or str
            The sequence; one that was not there before begins with this row.
        time : number, or date for a model of dates
            After all times of this sequence so far.
        value : number or label, or a sequence of one for each column
            None or NaN: nothing was observed.
        """
        return self.update_many([id], [time], [value]).row(0)

    def update_many(self, ids: Any, times: Any, values: Any) -> Told:
        """Take many rows, of one or many sequences, and say after each what its state is.

        Parameters
        ----------
        ids, times : (n,)
            Rows of one sequence stand in order of time; those of different ones in any order.
        values : (n,), or (n, D) for D columns

        Notes
        -----
        Times that do not increase and values that the model cannot take are refused before any row is taken. Rows
        that no state can explain (a move that is not allowed) are left out and named by the error at the end; all
        others have been taken, and `now` tells what they say.
        """
        labels = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
        t = np.atleast_1d(encode_times(times, self._clock))
        x = self._encode(values, len(labels))
        if len(t) != len(labels):
            raise PanelError(f"ids and times must be of one length, got {len(labels)} and {len(t)}.")
        slots, new = self._find(labels)
        tau = self._relative(slots, t, labels, new)
        n, M = len(slots), len(self.states)
        state, best = np.zeros(n, np.int32), np.zeros(n, np.int32)
        since, margin, probs = np.zeros(n), np.zeros(n), np.zeros((n, M))
        changed, refused = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        cost = self._emission.cost(x, self._prices)
        log_density = self._densities.unit_log_density(x)
        row = 0
        while row < n:
            kept = self._kept
            may_grow = kept["queues"].shape[3] < self._most
            row = update_rows(
                row, slots, tau, cost, log_density, *self._decodes_by, *self._hysteresis, may_grow,
                *(kept[name] for name in KEPT), state, best, since, margin, changed, probs, refused,
            )  # fmt: skip
            if row < n:
                self._make_room(len(kept["last"]), 2 * kept["queues"].shape[3])
        good = ~refused
        self._kept["best"][slots[good]], self._kept["margin"][slots[good]] = best[good], margin[good]
        if refused.any():
            self._refuse(labels, t, refused)
        return self._told(np.array(labels), t, self._kept["start"][slots] + since, state, best, margin, changed, probs)

    def now(self, ids: Any = None) -> Told:
        """What was last said of some sequences, or of all; `changed` is False.

        Parameters
        ----------
        ids : list, optional
        """
        labels = self._ids if ids is None else list(ids)
        slots = np.array([self._slot(label) for label in labels], dtype=np.int64)
        kept = {name: array[slots] for name, array in self._kept.items() if name != "queues"}
        start = kept["start"]
        return self._told(
            np.array(labels), start + kept["last"], start + kept["shown_since"], kept["shown"], kept["best"],
            kept["margin"], np.zeros(len(slots), dtype=bool), kept["alpha"],
        )  # fmt: skip

    def forget(self, ids: Any) -> None:
        """Close sequences: their room is free for others."""
        gone = {self._slot(label) for label in ids}
        stay = [k for k in range(len(self)) if k not in gone]
        for array in self._kept.values():
            array[: len(stay)] = array[stay]
            array[len(stay) :] = 0
        self._kept["last"][len(stay) :] = -1.0
        self._kept["shown"][len(stay) :] = -1
        self._ids = [self._ids[k] for k in stay]
        self._slots = {label: k for k, label in enumerate(self._ids)}

    # -------------------------------------------------------------------- files

    def save(self, path: Any) -> None:
        """Write all that is kept to a file (.npz, plain arrays)."""
        if not all(isinstance(label, int | str) for label in self._ids):
            raise ValueError("ids must be integers or strings to be saved, got others; name the sequences so.")
        n = len(self)
        arrays = {name: array[:n] for name, array in self._kept.items()}
        about = {"ids": self._ids, "model": self._fingerprint(), "format": 1}
        with open(Path(path), "wb") as file:
            np.savez(file, **(arrays | {"about": np.array(json.dumps(about))}))  # type: ignore[arg-type]

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
        try:
            with np.load(Path(path), allow_pickle=False) as file:
                arrays = dict(file)
            about = json.loads(str(arrays.pop("about")))
            known = set(arrays) == set(new._kept) and about["format"] == 1
        except (ValueError, KeyError, OSError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            known = False
        if not known:
            raise ValueError(f"path must be a file written by OnlineDecoder.save, got {str(path)!r}.")
        if about["model"] != new._fingerprint():
            raise ValueError("model must be the one that the decoder was saved with, got one with other parameters.")
        n = len(about["ids"])
        new._kept = new._room(max(n, 16), arrays["queues"].shape[3])
        for name, array in arrays.items():
            new._kept[name][:n] = array
        new._ids, new._slots = about["ids"], {label: k for k, label in enumerate(about["ids"])}
        return new

    def _fingerprint(self) -> str:
        process, (params, prices, search, _) = self.model.process_, self.model._decoder_
        parts: list[Any] = [
            process.rates,
            process.transition_probs,
            process.initial_probs,
            process.states,
            params.rates,
        ]
        parts += [params.transition_probs, prices.transition, prices.emission, tuple(search)]
        for column in (*params.emission.columns, *process.emission.columns):
            parts += [column.name, *(getattr(column, name) for name in column.params)]
        text = repr([np.asarray(part).tolist() for part in parts])
        return hashlib.sha256(text.encode()).hexdigest()

    # ------------------------------------------------------------------- inside

    def _room(self, n: int, K: int) -> dict[str, AnyArray]:
        """What is kept of n sequences, empty; K starts in each queue."""
        M = len(self.states)
        return {
            "queues": np.zeros((n, 2, M, K, 3)),
            "heads": np.zeros((n, 2, M), np.int64),
            "counts": np.zeros((n, 2, M), np.int64),
            "C": np.zeros((n, M)),
            "first_base": np.zeros((n, M)),
            "first_alive": np.zeros((n, M), dtype=bool),
            "last": np.full(n, -1.0),
            "lost": np.zeros(n, np.int64),
            "alpha": np.zeros((n, M)),
            "shown": np.full(n, -1, np.int32),
            "shown_since": np.zeros(n),
            "waits": np.full(n, -1, np.int32),
            "waits_since": np.zeros(n),
            "start": np.zeros(n),
            "best": np.zeros(n, np.int32),
            "margin": np.zeros(n),
        }

    def _make_room(self, n: int, K: int) -> None:
        """Room for n sequences and K starts in each queue."""
        old, new = self._kept, self._room(n, K)
        m, k = len(old["last"]), old["queues"].shape[3]
        for name, array in old.items():
            if name != "queues":
                new[name][:m] = array
        # queues begin at their heads: unrolled, they begin at 0
        order = (old["heads"][..., None] + np.arange(k)) & (k - 1)
        new["queues"][:m, :, :, :k] = np.take_along_axis(old["queues"], order[..., None], axis=3)
        new["heads"][:] = 0
        self._kept = new

    def _slot(self, label: Any) -> int:
        if label not in self._slots:
            raise KeyError(f"there is no sequence {label!r}; there are {first_few(self._ids)}.")
        return self._slots[label]

    def _find(self, labels: list[Any]) -> tuple[Ints, list[Any]]:
        """(n,) slot of each row, and the sequences that are new, which take the next slots."""
        new = [label for label in dict.fromkeys(labels) if label not in self._slots]
        for label in new:
            if not isinstance(label, int | str) or isinstance(label, bool):
                raise PanelError(f"ids must be integers or strings, got {label!r}.")
        places = self._slots | {label: len(self) + k for k, label in enumerate(new)} if new else self._slots
        return np.fromiter((places[label] for label in labels), np.int64, len(labels)), new

    def _relative(self, slots: Ints, t: Floats, labels: list[Any], new: list[Any]) -> Floats:
        """Times since the first row of each sequence; opens those that are new."""
        order = np.argsort(slots, kind="stable")
        own, when = slots[order], t[order]
        opens = np.append(True, own[1:] != own[:-1])
        before = np.append(-np.inf, when[:-1])
        here = own[opens]
        is_open = here < len(self)
        before[opens] = -np.inf
        before[np.flatnonzero(opens)[is_open]] = (self._kept["start"] + self._kept["last"])[here[is_open]]
        bad = np.flatnonzero(~(when > before) | ~np.isfinite(when))
        if len(bad):
            i = int(bad[0])
            raise PanelError(
                f"times of sequence {labels[order[i]]!r} must increase strictly, got {when[i]:g} after {before[i]:g}; "
                "no row of this call was taken: a late row cannot be put in, leave it out."
            )
        if len(self) + len(new) > len(self._kept["last"]):
            n = max(2 * len(self._kept["last"]), len(self) + len(new))
            self._make_room(n, self._kept["queues"].shape[3])
        self._kept["start"][here[~is_open]] = when[opens][~is_open]
        for label in new:
            self._slots[label] = len(self._ids)
            self._ids.append(label)
        return np.asarray(t - self._kept["start"][slots])

    def _encode(self, values: Any, n: int) -> Floats:
        """(n, D) values as the emission works on them."""
        panel = _one_sequence(values, n)
        if panel.n_observations != n:
            raise PanelError(f"ids and values must be of one length, got {n} and {panel.n_observations}.")
        if self.unknown == "missing":
            panel = panel.with_values(np.where(self._unknown(panel), np.nan, panel.values))
        return self._emission.encode(panel)

    def _unknown(self, panel: Panel) -> Bools:
        """(n, D) whether a value is a label that the model does not know."""
        out = np.zeros(panel.values.shape, dtype=bool)
        for d, column in enumerate(self._emission.columns[: panel.n_columns]):
            if column.has_labels:
                known = set(column.symbols.tolist())  # type: ignore[attr-defined]
                held, categories = panel.values[:, d], panel.categories[d]
                labels = panel.labels(d)
                codes = labels.astype(np.float64) if categories is None else np.arange(len(labels))
                odd = [code for code, label in zip(codes.tolist(), labels.tolist(), strict=True) if label not in known]
                out[:, d] = np.isin(held, odd)
        return out

    def _refuse(self, labels: list[Any], t: Floats, refused: Bools) -> None:
        bad = np.flatnonzero(refused)
        where = [f"{labels[i]!r} at {t[i]:g}" for i in bad[:5].tolist()]
        raise InfeasibleError(
            f"the allowed moves must be able to explain every row, got none for {', '.join(where)}"
            f"{f' and {len(bad) - 5} more' if len(bad) > 5 else ''}; these rows are left out and all others are taken "
            "(see now()): correct the row, or allow the move (Structure(allowed=...))."
        )

    def _told(
        self, ids: AnyArray, t: Floats, since: Floats, state: AnyArray, best: AnyArray, margin: Floats,
        changed: Bools, probs: Floats,
    ) -> Told:  # fmt: skip
        time, begun = (x if self._clock is None else self._clock.decode(x) for x in (t, since))
        return Told(ids, time, self.states[state], begun, self.states[best], margin, changed, probs)


# What the kernel keeps, in its order.
KEPT = (
    "queues", "heads", "counts", "C", "first_base", "first_alive", "last", "lost", "alpha",
    "shown", "shown_since", "waits", "waits_since",
)  # fmt: skip


def _one_sequence(values: Any, n: int) -> Panel:
    """A panel of nothing but values."""
    plain = np.asarray(values) if not isinstance(values, list) or all(isinstance(x, float) for x in values) else None
    if plain is None or plain.dtype.kind not in "fiu" or plain.ndim not in (1, 2):
        return Panel.from_arrays(np.arange(n, dtype=np.float64), values, np.zeros(n, np.int64))
    table = plain.astype(np.float64).reshape(len(plain), -1)  # numbers as they are: no need to read them
    m, D = table.shape
    one, rows = np.zeros(1), np.arange(m)
    return Panel(
        rows.astype(np.float64), table, np.array([0, m]), np.zeros(1, np.int64), one, one + max(m - 1, 0), one + 1.0,
        None, rows, tuple(f"value_{d}" for d in range(D)) if D > 1 else ("value",), (None,) * D, (False,) * D,
    )  # fmt: skip


def as_jump_model(model: Any) -> JumpModel:
    """A model with prices to decode by: itself, or that of a process."""
    if isinstance(model, Process):
        return JumpMeans.from_process(model)
    if isinstance(model, JumpModel):
        model._fitted()
        return model
    process = getattr(model, "process_", None)
    if not isinstance(process, Process):
        raise ValueError(f"model must be a Process or a fitted model with process_, got {model!r}.")
    return JumpMeans.from_process(process)
