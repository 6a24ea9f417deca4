"""Where a fit begins: the emission of each state, before any trajectory is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from ..emissions import Record
from ..panel import Panel

Floats = NDArray[np.float64]


def start_emission(blank: Record, x: Floats, panel: Panel, weights: Floats, init: str, rng: np.random.Generator) -> Record:
    """First emission: `noise` as in the paper, or `data`, a clustering of the observed rows."""
    if blank.n_states == 1 or all(column.sort_key() is None for column in blank.columns):
        return blank.update(blank.stats(x, np.zeros(len(x), np.int64), np.repeat(panel.weights, panel.lengths)))
    if init == "noise":
        return blank.noisy(x, rng)
    return cluster_emission(blank, x, panel, weights, rng)


def cluster_emission(blank: Record, x: Floats, panel: Panel, weights: Floats, rng: np.random.Generator) -> Record:
    """Emission of a k-means clustering of the rows.

    The first centres are drawn k-means++ fashion along the sorted rows, so that neither the order of
    the sequences nor copies in place of weights change the draw.
    """
    features = blank.features(x)
    rows = np.flatnonzero(np.isfinite(features).any(axis=1))
    row_weights = np.repeat(panel.weights, panel.lengths)[rows]
    F = features[rows]
    centre = np.array([np.average(f[np.isfinite(f)], weights=row_weights[np.isfinite(f)]) if np.isfinite(f).any() else 0.0 for f in F.T])
    F = np.where(np.isfinite(F), F, centre)
    spread = np.sqrt(np.average((F - centre) ** 2, axis=0, weights=row_weights))
    F = (F - centre) / np.where(spread > 0, spread, 1.0)
    order = np.lexsort(F.T)
    F, rows, row_weights = F[order], rows[order], row_weights[order]
    centres = spread_centres(F, row_weights, blank.n_states, rng)
    states = KMeans(blank.n_states, init=centres, n_init=1).fit_predict(F, sample_weight=row_weights)
    return blank.update(blank.stats(x[rows], states.astype(np.int64), row_weights))


def spread_centres(F: Floats, weights: Floats, n: int, rng: np.random.Generator) -> Floats:
    """n of the rows F, each drawn with probability proportional to its squared distance to those before."""
    distance = np.ones(len(F))
    centres = []
    for u in rng.random(n):
        reached = np.cumsum(weights * distance)
        i = min(int(np.searchsorted(reached, u * reached[-1], side="right")), len(F) - 1)
        centres.append(F[i])
        distance = np.minimum(distance if len(centres) > 1 else np.inf, ((F - F[i]) ** 2).sum(axis=1))
    return np.array(centres)
