"""Shares of states over time where some are lost from sight: those who left are taken to fare as those who stayed."""

from __future__ import annotations

import numpy as np

from ..arrays import Bools, Floats, Ints


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
