"""What a model expects of a panel: of each sequence after its last row, and of all of them over time."""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import AnyArray, Bools, Floats, Ints, totals
from ..data.clock import encode_times
from ..data.covariates import with_covariates_later
from ..data.deriving import split_requests
from ..data.frames import make_frame
from ..data.layout import find_sequences
from ..data.panel import Panel
from ..data.table import Table
from ..errors import PanelError, first_few, nearest
from ..model.passage import transition_matrices
from ..options import choice, flag
from .aalen_johansen import aalen_johansen

if TYPE_CHECKING:
    from .answers import ModelAnswers

CARRY = flag | choice("estimated")


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """What comes after the last rows, one entry for each time asked for.

    Parameters
    ----------
    ids, times : (k,)
        Sequence and time, a date if the panel has dates.
    horizons : (k,)
        Time since the last row of the sequence, in the panel's unit (days for dates).
    probs : (k, M)
        Probability of each state.
    values : (k,) or (k, D)
        The observation to expect: the mean, or the most probable label.
    states : (M,)
    columns : tuple of str, length D
        Names of the columns of values.
    frame_backend, zone : str or None
    """

    ids: AnyArray
    times: AnyArray
    horizons: Floats
    probs: Floats
    values: AnyArray
    states: AnyArray
    columns: tuple[str, ...]
    frame_backend: str | None = None
    zone: str | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Forecast({len(self)} times, {len(self.states)} states)"

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with columns id, time, horizon, one for each value, and `P(state)` for each state.

        Parameters
        ----------
        backend : "pandas", "polars" or "pyarrow", optional
            Kind of frame; that of the panel if left out.
        """
        columns: dict[str, Any] = {"id": self.ids, "time": self.times, "horizon": self.horizons}
        values = self.values.reshape(len(self), len(self.columns))
        columns |= {name: values[:, d] for d, name in enumerate(self.columns)}
        columns |= {f"P({state})": self.probs[:, m] for m, state in enumerate(self.states.tolist())}
        return make_frame(columns, backend or self.frame_backend, zone=self.zone)


@dataclass(frozen=True, eq=False, repr=False)
class Prevalence:
    """Share of the sequences in each state over time.

    Parameters
    ----------
    observed, expected : Table, (K, M)
        Shares at each time since the start; NaN where nobody is observed.
    n : (K,)
        Sequences under observation, by weight.
    """

    observed: Table
    expected: Table
    n: Floats
    frame_backend: str | None = None

    @property
    def times(self) -> Floats:
        """(K,) times since the start."""
        return np.asarray(self.observed.rows, dtype=np.float64)

    def __repr__(self) -> str:
        return f"{self.observed!r}\n\n{self.expected!r}"

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with columns time, state, n, observed and expected: a row for each time and state.

        Parameters
        ----------
        backend : "pandas", "polars" or "pyarrow", optional
            Kind of frame; that of the panel if left out.
        """
        K, M = self.observed.values.shape
        columns = {
            "time": np.repeat(self.times, M),
            "state": np.tile(self.observed.columns, K),
            "n": np.repeat(self.n, M),
            "observed": self.observed.values.ravel(),
            "expected": self.expected.values.ravel(),
        }
        return make_frame(columns, backend or self.frame_backend)


def forecast(model: ModelAnswers, panel: Panel, at: Any, horizon: Any, covariates: Any) -> Forecast:
    """State probabilities and expected values after the last rows."""
    if covariates is not None:
        panel = _from_now_on(model, panel, covariates)
    last = panel.times[panel.offsets[1:] - 1]
    sequence, times = _requests(panel, last, at, horizon)
    early = np.flatnonzero(times < last[sequence])
    if len(early):
        i = int(early[0])
        raise PanelError(
            f"times to forecast must not lie before the last row of their sequence, got {panel.show_time(times[i])} "
            f"before {panel.show_time(last[sequence[i]])} for sequence {panel.ids.tolist()[sequence[i]]!r}; "
            "predict_proba(panel, at=...) reads there."
        )
    # copies of a sequence share an id: here each has its own
    apart = replace(panel, ids=np.arange(panel.n_sequences))
    wide, index = apart.insert_times(sequence, times)
    return Forecast(
        panel.ids[sequence],
        panel.decode_times(times),
        times - last[sequence],
        model._posterior(wide)[index],
        np.asarray(model._expected_values(wide))[index],
        model.states_,
        panel.columns,
        panel.frame_backend,
        None if panel.clock is None else panel.clock.zone,
    )


def _from_now_on(model: ModelAnswers, panel: Panel, covariates: Any) -> Panel:
    """The panel with covariates that hold from the last row of each sequence on."""
    effects = model._fitted().effects
    known = [] if effects is None else [c.name for c in effects.covariates]
    if not isinstance(covariates, Mapping) or not covariates:
        raise ValueError(f"covariates must be {{name: value}}, got {reprlib.repr(covariates)}.")
    for name in covariates:
        if effects is None or name not in known:
            raise ValueError(
                f"covariates must be among those that rates depend on, {first_few(known) if known else 'none here'}, "
                f"got {name!r}{nearest(name, known)}."
            )
        if name in effects.breaks:
            raise ValueError(f"covariates must not be those with breaks, which go on by themselves, got {name!r}.")
    effects.design(panel.covariates)  # type: ignore[union-attr]  # the panel has them all
    return with_covariates_later(panel, covariates)


def _requests(panel: Panel, last: Floats, at: Any, horizon: Any) -> tuple[Ints, Floats]:
    """Sequence and time of each request."""
    if (at is None) == (horizon is None):
        raise ValueError(f"forecast needs times: give at= or horizon=, got {'neither' if at is None else 'both'}.")
    S = panel.n_sequences
    if horizon is not None:
        steps = _durations("horizon", horizon)
        return np.repeat(np.arange(S), len(steps)), (last[:, None] + steps).ravel()
    pair = isinstance(at, tuple) and len(at) == 2 and np.ndim(at[0]) > 0
    if isinstance(at, Mapping) or pair:
        ids, asked = split_requests(at)
        sequence, times = find_sequences(ids, panel.ids), np.atleast_1d(panel.encode_times(asked))
        if sequence.shape != times.shape:
            raise PanelError(f"ids and times must be of one length, got {len(sequence)} and {len(times)}.")
    else:
        times = np.atleast_1d(panel.encode_times(at))
        sequence, times = np.repeat(np.arange(S), len(times)), np.tile(times, S)
    if not len(times) or not np.isfinite(times).all():
        raise PanelError(f"times to forecast must be finite, and at least one, got {reprlib.repr(at)}.")
    return sequence, times


def prevalence(model: ModelAnswers, panel: Panel, times: Any, initial: Any, carry: bool | str) -> Prevalence:
    """Observed and expected shares of the states."""
    process = model._fitted()
    CARRY.check("carry", carry)
    M = len(process.rates)
    codes, known = _row_codes(model, panel)
    since = panel.relative_times()
    windows = panel.end_times - panel.start_times
    t = np.linspace(0.0, float(windows.max()), 11) if times is None else _durations("times", times)
    t = np.unique(t)
    if t[0] > windows.max():
        warnings.warn(
            f"times of prevalence count from the start of each sequence, of which none is followed for longer than "
            f"{windows.max():.6g}, got {t[0]:.6g} to {t[-1]:.6g}: only those in a state that is never left are still "
            "observed there. Where these are ages or dates, say how long after the start instead.",
            UserWarning,
            stacklevel=3,
        )
    stays = (process.rates == 0) & (carry is True)
    counts = _observed(panel, codes, known, since, windows, stays, t)
    n = counts.sum(axis=1)
    if initial is None and model._takes_first_as_given():
        initial = "observed"
    pi = _start(process.initial_probs, initial, lambda: _first_counts(panel, codes, known, since, M))
    if process.effects is None and not model._is_frail:
        expected = pi @ transition_matrices(process.rate_matrix, t)
    else:
        expected = _mean_over_sequences(model, panel, pi, t)
    with np.errstate(invalid="ignore"):
        observed = counts / n[:, None]
    if carry == "estimated":
        observed = np.where(t[:, None] <= windows.max(), _estimated(panel, codes, known, since, windows, M, t), np.nan)
    unit = model._time_unit()
    row_name = "time" if unit is None else f"time ({unit})"
    tables = [
        Table(shares, t, process.states, row_name, "state", f"share of sequences in each state, {name}")
        for name, shares in (("observed", observed), ("expected", expected))
    ]
    return Prevalence(tables[0], tables[1], n, panel.frame_backend)


def _mean_over_sequences(model: ModelAnswers, panel: Panel, pi: Floats, t: Floats) -> Floats:
    """(K, M) mean over the sequences, by weight, of what the process expects of each with its own covariates.

    Where people differ in how fast they move, over these, too.
    """
    blank = replace(panel.blank(np.arange(panel.n_observations)), ids=np.arange(panel.n_sequences))
    sequence = np.repeat(np.arange(panel.n_sequences), len(t))
    wide, index = blank.insert_times(sequence, (panel.start_times[:, None] + t).ravel())
    shares = model._unseen(wide, pi)[index].reshape(panel.n_sequences, len(t), len(pi))
    return np.asarray(np.tensordot(panel.weights / panel.weights.sum(), shares, axes=1))


def _row_codes(model: ModelAnswers, panel: Panel) -> tuple[Ints, Bools]:
    """(n,) state of each row, and whether it is known: seen, or for hidden states given by the model."""
    emission = model._fitted().emission
    if emission.is_direct:
        seen = emission.states_seen(emission.encode(panel))
        allowed = panel.allowed_states(model.states_)
        if allowed is not None:
            seen = np.where(allowed.sum(axis=1) == 1, allowed.argmax(axis=1), seen)
        known = np.isfinite(seen)
        return np.where(known, seen, 0).astype(np.int64), known
    codes = model._posterior(panel).argmax(axis=1)
    return codes, np.ones(len(codes), dtype=bool)


def _observed(
    panel: Panel, codes: Ints, known: Bools, since: Floats, windows: Floats, stays: Bools, t: Floats
) -> Floats:
    """(K, M) weighted number of sequences whose last known state at each time is each."""
    counts = np.zeros((len(t), len(stays)))
    rows = np.flatnonzero(known)
    bounds = np.searchsorted(rows, panel.offsets)
    for s in np.flatnonzero(np.diff(bounds)).tolist():
        own = rows[bounds[s] : bounds[s + 1]]
        place = np.searchsorted(since[own], t, side="right") - 1
        state = codes[own[np.maximum(place, 0)]]
        there = (place >= 0) & ((t <= windows[s]) | stays[state])
        np.add.at(counts, (np.flatnonzero(there), state[there]), panel.weights[s])
    return counts


def _estimated(panel: Panel, codes: Ints, known: Bools, since: Floats, windows: Floats, M: int, t: Floats) -> Floats:
    """(K, M) shares of the states observed last, by Aalen and Johansen: windows that end tell of nothing."""
    rows = np.flatnonzero(known)
    sequence = panel.sequence_index[rows]
    last = np.append(sequence[1:] != sequence[:-1], True)
    end = np.where(last, windows[sequence], np.append(since[rows][1:], 0.0))
    return aalen_johansen(codes[rows], since[rows], end, last, panel.weights[sequence], M, t)


def _first_counts(panel: Panel, codes: Ints, known: Bools, since: Floats, M: int) -> Floats:
    """(M,) weighted number of sequences that are seen in each state at time 0."""
    first = known & (since == 0)
    if not first.any():
        raise PanelError(
            "initial must be probabilities where no state is observed at time 0, got 'observed'; say where sequences "
            "start: initial=[...], one for each state."
        )
    return totals(codes[first], panel.weights[panel.sequence_index[first]], M)


def _start(pi: Floats, initial: Any, observed: Any) -> Floats:
    if initial is None:
        return pi
    if isinstance(initial, str) and initial == "observed":
        counts = observed()
        return np.asarray(counts / counts.sum())
    try:
        given = np.asarray(initial, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape != pi.shape or not np.all(given >= 0) or not np.isclose(given.sum(), 1.0):
        raise ValueError(
            f"initial must be {len(pi)} probabilities that sum to 1, or 'observed', got {reprlib.repr(initial)}."
        )
    return given


def _durations(name: str, x: Any) -> Floats:
    """(K,) lengths of time: numbers >= 0 in the panel's unit, or durations, held as days."""
    try:
        t = np.atleast_1d(encode_times(x, None))
    except (TypeError, ValueError):
        t = np.array([np.nan])
    if t.ndim > 1 or not len(t) or not np.all((t >= 0) & np.isfinite(t)):
        raise ValueError(f"{name} must be finite numbers >= 0, or durations, got {reprlib.repr(x)}.")
    return t
