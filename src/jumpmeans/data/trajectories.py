"""Trajectories: the answer. States with real jump times, for every sequence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats, Ints
from ..errors import PanelError
from ..options import choice
from ..stored import stored
from ..stored.kinds import require, require_floats
from .clock import encode_times
from .frames import BACKENDS, make_frame
from .layout import find_sequences

if TYPE_CHECKING:
    from .clock import Clock


@stored
@dataclass(frozen=True, eq=False)
class Trajectories:
    """Piecewise constant, right-continuous paths, one per sequence.

    Dwell k of a sequence lasts from its start time to that of the next; the last one is still running
    at the end of the window and may have length 0.

    Parameters
    ----------
    codes : (n_dwells,)
        Index into `labels` of each dwell's state.
    start_times : (n_dwells,)
        b, start of each dwell, in the time unit of the panel.
    offsets : (S + 1,)
        Dwells of sequence i are offsets[i]:offsets[i + 1].
    end_times : (S,)
        End of each window.
    ids : (S,)
    labels : (M,)
        Labels of the states.
    clock : Clock or None
        Turns times back into dates.
    frame_backend : str or None
        The kind of frame that `to_frame` makes: that of the panel.
    """

    codes: NDArray[np.int32]
    start_times: Floats
    offsets: Ints
    end_times: Floats
    ids: NDArray[Any]
    labels: NDArray[Any]
    clock: Clock | None = None
    frame_backend: str | None = field(default=None, kw_only=True)

    def check_fields(self) -> None:
        """Refuse what are no trajectories, if they come from a file."""
        arrays = self.codes, self.offsets, self.ids, self.labels
        require(all(isinstance(x, np.ndarray) and x.ndim == 1 for x in arrays), "trajectories must be made of arrays")
        require(self.codes.dtype == np.int32 and self.offsets.dtype == np.int64, "codes and offsets must be integers")
        require(len(self.offsets) and self.offsets[0] == 0, "offsets must begin with 0")
        require((np.diff(self.offsets) > 0).all(), "every sequence must have a dwell")
        S, n, M = len(self.offsets) - 1, int(self.offsets[-1]), len(self.labels)
        require(len(self.ids) == S, f"there must be an id for each of {S} sequences")
        require(self.codes.shape == (n,) and ((self.codes >= 0) & (self.codes < M)).all(), "codes must be of states")
        require_floats("start_times", self.start_times, (n,))
        require_floats("end_times", self.end_times, (S,))
        require(self.clock is None or type(self.clock).__name__ == "Clock", "clock must be a clock")
        require(self.frame_backend in (None, *BACKENDS), f"frame_backend must be one of {BACKENDS}")

    def __len__(self) -> int:
        return len(self.end_times)

    def __repr__(self) -> str:
        return f"Trajectories({len(self)} sequences, {self.n_jumps} jumps between {len(self.labels)} states)"

    @property
    def n_jumps(self) -> int:
        """K, number of jumps of all sequences together."""
        return len(self.codes) - len(self)

    @property
    def states(self) -> NDArray[Any]:
        """(n_dwells,) label of each dwell's state."""
        return np.asarray(self.labels[self.codes])

    @property
    def running(self) -> NDArray[np.bool_]:
        """(n_dwells,) whether the dwell is the last of its sequence, cut by the end of the window."""
        running = np.zeros(len(self.codes), dtype=bool)
        running[self.offsets[1:] - 1] = True
        return running

    def _ends(self) -> Floats:
        ends = np.append(self.start_times[1:], 0.0)
        ends[self.offsets[1:] - 1] = self.end_times
        return ends

    def _sequence(self) -> Ints:
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    def dwell_times(self) -> Floats:
        """(n_dwells,) t, how long each dwell lasts within its window; see `running` for those that go on."""
        return self._ends() - self.start_times

    def time_in_state(self) -> Floats:
        """(S, M) time that each sequence spends in each state."""
        M = len(self.labels)
        cell = self._sequence() * M + self.codes
        total: Floats = np.bincount(cell, weights=self.dwell_times(), minlength=len(self) * M).astype(np.float64)
        return total.reshape(len(self), M)

    def jump_counts(self) -> Ints:
        """(M, M) number of jumps from each state to each other one, over all sequences."""
        M = len(self.labels)
        source = np.flatnonzero(~self.running)
        cell = self.codes[source].astype(np.int64) * M + self.codes[source + 1]
        return np.bincount(cell, minlength=M * M).reshape(M, M)

    def at(self, times: Any, ids: ArrayLike | None = None, *, outside: str = "error") -> NDArray[Any]:
        """State at given times.

        Parameters
        ----------
        times : (n,)
            Numbers, or dates if the panel had dates.
        ids : (n,), optional
            Sequence of each time; of sequences with the same id the first, as in `Panel.insert_times`. Left out,
            every sequence is read at every time.
        outside : "error" or "hold"
            A time outside the window is an error, or shows the nearest state. A missing time is always an error.

        Returns
        -------
        states : (n,) labels, or (S, n) if ids is left out and there are several sequences.
        """
        choice("error", "hold").check("outside", outside)
        t = np.atleast_1d(encode_times(times, self.clock))
        if ids is None:
            sequence = np.repeat(np.arange(len(self)), len(t))
            flat = np.tile(t, len(self))
            found = self._at(flat, sequence, outside)
            return found if len(self) == 1 else found.reshape(len(self), len(t))
        sequence = find_sequences(ids, self.ids)
        if sequence.shape != t.shape:
            raise PanelError(f"ids must have one entry for each of the {len(t)} times, got {len(sequence)}.")
        return self._at(t, sequence, outside)

    def _at(self, t: Floats, sequence: Ints, outside: str) -> NDArray[Any]:
        starts = self.start_times[self.offsets[:-1]]
        off = ~((t >= starts[sequence]) & (t <= self.end_times[sequence]))
        if outside == "hold":
            off &= np.isnan(t)
        if off.any():
            i = int(np.flatnonzero(off)[0])
            s = sequence[i]
            remedy = "drop it" if np.isnan(t[i]) else "give outside='hold' to carry the nearest state on"
            raise PanelError(
                f"times must lie in the window [{starts[s]:g}, {self.end_times[s]:g}] of sequence "
                f"{self.ids.tolist()[s]!r}, got {t[i]:g}; {remedy}."
            )
        # dwells are sorted by (sequence, start): one search for all queries
        order = np.lexsort((t, sequence))
        dwell = np.empty(len(t), dtype=np.int64)
        bounds = np.searchsorted(sequence[order], np.arange(len(self) + 1))
        for s in np.flatnonzero(np.diff(bounds)):
            part = order[bounds[s] : bounds[s + 1]]
            a, b = self.offsets[s], self.offsets[s + 1]
            dwell[part] = a + np.maximum(np.searchsorted(self.start_times[a:b], t[part], side="right") - 1, 0)
        return np.asarray(self.labels[self.codes[dwell]])

    def to_frame(self) -> Any:
        """Table with columns id, state, start, end, running: one row per dwell.

        Returns
        -------
        pandas, polars or pyarrow table
            Of the kind that the panel was made of, else of the first of these that is installed.
        """
        start, end = self.start_times, self._ends()
        columns = {
            "id": self.ids[self._sequence()],
            "state": self.states,
            "start": start if self.clock is None else self.clock.decode(start),
            "end": end if self.clock is None else self.clock.decode(end),
            "running": self.running,
        }
        return make_frame(columns, self.frame_backend, zone=None if self.clock is None else self.clock.zone)
