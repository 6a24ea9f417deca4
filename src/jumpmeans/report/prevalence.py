"""The share of people in each state over the time since they came: on their paths, and as the process expects it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import expm

from ..arrays import Floats, Ints
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..estimators.aalen_johansen import aalen_johansen
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


def _windows_end_at_entry(process: Process, panel: Panel, paths: Trajectories) -> bool:
    """Whether most sequences that enter a state that is never left are seen there once at most."""
    last = paths.offsets[1:] - 1
    ended = np.flatnonzero(process.rates[paths.codes[last]] == 0)
    if not len(ended):
        return False
    since = paths.start_times[last][panel.sequence_index]
    looks = np.bincount(panel.sequence_index[panel.observed & (panel.times >= since)], minlength=len(paths))
    return bool(np.median(looks[ended]) <= 1)
