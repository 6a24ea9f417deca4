"""Exact minimisers of the objective over each block of parameters, from sufficient statistics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..objective import Stats, Weights

Floats = NDArray[np.float64]


def exact_rate(exits: float, time: float, run_times: Floats, run_weights: Floats, a: float, b: float) -> float:
    """λ that minimises Σ h(λ t) + Σ g(λ y) + b λ - a ln λ.

    The derivative times λ is λ (b + T) - (a + K) + Σ w (λ y - 1)₊, increasing and piecewise linear with
    breaks at 1/y: the dwells y that have outlasted their mean are those whose break lies below its root.
    """
    order = np.argsort(-run_times, kind="stable")
    y, w = run_times[order], run_weights[order]
    y, w = y[y > 0], w[y > 0]
    count = a + exits + np.concatenate([[0.0], np.cumsum(w)])
    total = b + time + np.concatenate([[0.0], np.cumsum(w * y)])
    outlasted = int(np.count_nonzero(total[:-1] <= count[:-1] * y))
    if total[outlasted] == 0:  # no prior and no time at all: nothing speaks against any rate
        return 0.0
    return float(count[outlasted] / total[outlasted])


def exact_rates(stats: Stats, weights: Weights, leavable: NDArray[np.bool_]) -> Floats:
    """(M,) exact rates; 0 for states that cannot be left."""
    rates = np.zeros(len(stats.exits))
    run_weights = np.broadcast_to(stats.weights[:, None], stats.run_state.shape)
    for m in np.flatnonzero(leavable):
        own = stats.run_state == m
        rates[m] = exact_rate(
            stats.exits[m], stats.time[m], stats.run_time[own], run_weights[own],
            weights.prior_count, weights.prior_time,
        )  # fmt: skip
    return rates


def transition_rows(
    jumps: Floats, pseudo_count: float, moves: NDArray[np.bool_], previous: Floats | None = None
) -> Floats:
    """P, (M, M): p ∝ n + α over the allowed moves; a row without any count keeps its previous values."""
    counts = np.where(moves, jumps + pseudo_count, 0.0)
    total = counts.sum(axis=1, keepdims=True)
    if previous is None:
        previous = uniform_rows(moves)
    return np.where(total > 0, counts / np.where(total > 0, total, 1.0), previous)


def uniform_rows(moves: NDArray[np.bool_]) -> Floats:
    """P, (M, M) with every allowed move equally likely."""
    return moves / np.maximum(moves.sum(axis=1, keepdims=True), 1)
