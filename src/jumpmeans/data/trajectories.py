"""Trajectories: the answer. States with real jump times, for every sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Floats
from ..errors import MissingExtraError

if TYPE_CHECKING:
    from .clock import Clock


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
    """

    codes: NDArray[np.int32]
    start_times: Floats
    offsets: NDArray[np.int64]
    end_times: Floats
    ids: NDArray[Any]
    labels: NDArray[Any]
    clock: Clock | None = None

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

    def _sequence(self) -> NDArray[np.int64]:
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

    def jump_counts(self) -> NDArray[np.int64]:
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
            Sequence of each time. Left out, every sequence is read at every time.
        outside : "error" or "hold"
            A time outside the window is an error, or shows the nearest state.

        Returns
        -------
        states : (n,) labels, or (S, n) if ids is left out and there are several sequences.
        """
        if np.ndim(times) == 0:
            times = [times] if not isinstance(times, np.datetime64) else np.array([times])
        t = self.clock.encode(times) if self.clock is not None else np.asarray(times, np.float64)
        if ids is None:
            sequence = np.repeat(np.arange(len(self)), len(t))
            flat = np.tile(t, len(self))
            found = self._at(flat, sequence, outside)
            return found if len(self) == 1 else found.reshape(len(self), len(t))
        wanted = np.atleast_1d(np.asarray(ids))
        if wanted.shape != t.shape:
            raise ValueError(f"ids must have one entry for each of the {len(t)} times, got {wanted.shape[0]}.")
        index = {key: i for i, key in enumerate(self.ids.tolist())}
        unknown = [key for key in wanted.tolist() if key not in index]
        if unknown:
            raise ValueError(f"ids must be among the {len(self)} sequences of the trajectories, got {unknown[:5]}.")
        return self._at(t, np.array([index[key] for key in wanted.tolist()], dtype=np.int64), outside)

    def _at(self, t: Floats, sequence: NDArray[np.int64], outside: str) -> NDArray[Any]:
        if outside not in ("error", "hold"):
            raise ValueError(f"outside must be 'error' or 'hold', got {outside!r}.")
        starts = self.start_times[self.offsets[:-1]]
        off = ~((t >= starts[sequence]) & (t <= self.end_times[sequence]))
        if outside == "error" and off.any():
            i = int(np.flatnonzero(off)[0])
            s = sequence[i]
            raise ValueError(
                f"times must lie in the window [{starts[s]:g}, {self.end_times[s]:g}] of sequence "
                f"{self.ids.tolist()[s]!r}, got {t[i]:g}; give outside='hold' to carry the nearest state on."
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
        """Pandas data frame with columns id, state, start, end, running: one row per dwell."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("to_frame needs pandas; install it by pip install 'jumpmeans[frames]'.") from error
        start, end = self.start_times, self._ends()

        def dates(x: Floats) -> Any:
            if self.clock is None:
                return x
            stamps = pd.Series(self.clock.decode(x))
            return stamps.dt.tz_localize("UTC").dt.tz_convert(self.clock.zone) if self.clock.zone else stamps

        return pd.DataFrame(
            {
                "id": self.ids[self._sequence()],
                "state": self.states,
                "start": dates(start),
                "end": dates(end),
                "running": self.running,
            }
        )
