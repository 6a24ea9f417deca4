"""The share of people in each state over the time since they came: on their paths, and as the process expects it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import expm

from ..arrays import Bools, Floats, Ints
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..model.process import Process

# Times at which the prevalence of the states is told.
TIMES = 101


def prevalence(process: Process, panel: Panel, paths: Trajectories, given: bool = False) -> dict[str, Any]:
    """Shares on the paths and as the process expects, and how many sequences are under observation.

    A sequence counts until the end of its window. Where windows end with the entry into a state that is never left, as
    with death, that would forget the dead, and to go on counting them would forget those who left alive: there the
    shares are the Aalen-Johansen estimate, which takes those who left to fare as those who stayed. What is expected
    starts from π, or from the shares themselves where the first state is `given` and the process has no π.
    """
    M = len(process.rates)
    begin = paths.start_times[paths.offsets[:-1]]
    sequence = np.repeat(np.arange(len(paths)), np.diff(paths.offsets))
    weights, last = panel.weights[sequence], paths.running
    codes: Ints = paths.codes.astype(np.int64)
    start = paths.start_times - begin[sequence]
    end = np.append(start[1:], 0.0)
    end[last] = paths.end_times - begin
    longest = float(end.max())
    t = np.linspace(0.0, longest, TIMES) if longest > 0 else np.zeros(1)
    # the last moment of a window belongs to it, that of a dwell to the next one
    counts = _counts(codes, start, np.where(last, np.nextafter(end, np.inf), end), weights, M, t)
    ended = _windows_end_at_entry(process, panel, paths)
    if ended:
        n = counts @ (process.rates > 0)
        shares = aalen_johansen(codes, start, end, last, weights, M, t)
    else:
        n = counts.sum(axis=1)
        shares = counts / np.where(n > 0, n, 1.0)[:, None]
    step = expm(process.rate_matrix * (t[1] if len(t) > 1 else 0.0))
    expected = [shares[0] if given else process.initial_probs]
    for _ in t[1:]:
        expected.append(expected[-1] @ step)
    return {"times": t, "ended": ended, "n": n, "shares": shares, "expected": np.array(expected)}


def _counts(codes: Ints, start: Floats, end: Floats, weights: Floats, M: int, t: Floats) -> Floats:
    """(K, M) weight of the dwells in each state that hold each time: start <= t < end."""
    counts = np.zeros((len(t) + 1, M))
    for edge, sign in ((start, 1.0), (end, -1.0)):
        np.add.at(counts, (np.searchsorted(t, edge), codes), sign * weights)
    return np.maximum(np.cumsum(counts[:-1], axis=0), 0.0)


def aalen_johansen(codes: Ints, start: Floats, end: Floats, last: Bools, weights: Floats, M: int, t: Floats) -> Floats:
    """(K, M) probability of each state at times since the start, from dwells of which some are cut off.

    At each time of a move, the part w / n of what is in its state goes with it, for moves of weight w out of the n that
    are in that state under observation just before.
    """
    moved = np.flatnonzero(~last)
    moved = moved[np.argsort(end[moved], kind="stable")]
    source, target, when = codes[moved], codes[moved + 1], end[moved]
    part = np.empty(len(moved))
    for m in range(M):
        own, out = codes == m, source == m
        at_risk = _before(start[own], weights[own], when[out]) - _before(end[own], weights[own], when[out])
        part[out] = weights[moved[out]] / at_risk
    first = np.r_[True, last[:-1]]
    p: Floats = np.bincount(codes[first], weights=weights[first], minlength=M) / weights[first].sum()
    shares = np.empty((len(t), M))
    place = np.searchsorted(when, t, side="right")  # moves until each time
    done = 0
    for k, until in enumerate(place.tolist()):
        while done < until:
            same = done + 1
            while same < until and when[same] == when[done]:
                same += 1
            flow = p[source[done:same]] * part[done:same]
            np.subtract.at(p, source[done:same], flow)
            np.add.at(p, target[done:same], flow)
            done = same
        shares[k] = p
    return shares


def _before(x: Floats, weights: Floats, t: Floats) -> Floats:
    """(len(t),) weight of what lies before each time."""
    order = np.argsort(x, kind="stable")
    return np.append(0.0, np.cumsum(weights[order]))[np.searchsorted(x[order], t, side="left")]


def _windows_end_at_entry(process: Process, panel: Panel, paths: Trajectories) -> bool:
    """Whether most sequences that enter a state that is never left are seen there once at most."""
    last = paths.offsets[1:] - 1
    ended = np.flatnonzero(process.rates[paths.codes[last]] == 0)
    if not len(ended):
        return False
    since = paths.start_times[last][panel.sequence_index]
    looks = np.bincount(panel.sequence_index[panel.observed & (panel.times >= since)], minlength=len(paths))
    return bool(np.median(looks[ended]) <= 1)
