"""Where a fit begins: the emission of each state, before any trajectory is known."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ..arrays import AnyArray, Floats, totals, weighted_median, weighted_quantile
from ..data.panel import Panel
from ..emissions import Record
from ..kernels.smoothing import smooth_rows
from ..model.constraints import split
from ..model.effects import Effects
from ..model.process import Process
from ..model.updates import uniform_rows

# Rows this many median gaps apart share a state about as often as not, when symbols are smoothed over time.
SMOOTHING = 2.0
# What a value that a state cannot show counts, where states are given to the names that rows are known by.
LARGEST_COST = 1e6
# A clustering to start from needs no more rows than this.
MOST_ROWS = 20_000
# Steps of that clustering at most, and the sum of squared moves of its centres, in spreads, that ends it.
LLOYD_STEPS, SMALL_SHIFT = 300, 1e-4


def start_emission(
    blank: Record, x: Floats, panel: Panel, init: str, rng: np.random.Generator, first: bool, in_order: bool = False
) -> Record:
    """First emission: `noise` as in the paper, or `data`: what the observed rows look like.

    From data, a single measured column starts at its quantiles (the first time; there is nothing random in it),
    anything else from a clustering of the rows. Symbols are smoothed over time before that: a hidden state is a
    mix of symbols that persists, not a symbol. With `in_order`, states stand in the order of their
    values, for those that have names.
    """
    weights = np.repeat(panel.weights, panel.lengths)
    if any(column.marks_states for column in blank.columns):
        return marked_emission(blank, x, panel, init, rng, first)
    loose = Record(column.without_fixed() for column in blank.columns)
    if any(column is not other for column, other in zip(blank.columns, loose.columns, strict=True)):
        if first and init == "data" and (known := misclassified(blank)) is not None:
            return known
        return matched_emission(blank, start_emission(loose, x, panel, init, rng, first, in_order=True))
    if blank.n_states == 1 or blank.is_direct:
        return blank.update(blank.stats(x, np.zeros(len(x), np.int64), weights))
    if init == "noise":
        return blank.noisy(x, rng)
    if first and len(blank.columns) == 1 and not blank.columns[0].is_symbolic:
        return quantile_emission(blank, x, weights)
    features = row_features(blank, x, panel)
    seen = np.isfinite(x).any(axis=1)
    if not seen.all():
        x, features, weights = x[seen], features[seen], weights[seen]
    rows = sample_rows(features, weights)
    row_weights = weights[rows] if len(rows) == len(x) else np.ones(len(rows))
    found = cluster_emission(blank, x[rows], features[rows], row_weights, rng)
    return found.take(found.stable_order(np.zeros(found.n_states))) if in_order else found


def marked_emission(blank: Record, x: Floats, panel: Panel, init: str, rng: np.random.Generator, first: bool) -> Record:
    """First emission where a column marks states: of states that share a mark, from the rows of that mark alone.

    Rows without a mark go with the mark that most states share.
    """
    (marker,) = (d for d, column in enumerate(blank.columns) if column.marks_states)
    others = [d for d in range(len(blank.columns)) if d != marker]
    if not others:
        return blank
    values = blank.columns[marker].state_values().tolist()
    groups = [np.flatnonzero([value == mark for value in values]) for mark in dict.fromkeys(values)]
    widest = max(groups, key=len)
    rest = Record(blank.columns[d] for d in others)
    parts = []
    for states in groups:
        rows = blank.columns[marker].cost(x[:, marker])[:, states[0]] == 0
        rows &= np.isfinite(x[:, marker]) | (states is widest)
        own = np.where(rows[:, None], x[:, others], np.nan)
        part = rest.take(states)
        if np.isfinite(own).any():
            part = start_emission(part, own, panel, init, rng, first, in_order=True)
        parts.append(part)
    joined = reduce(Record.join, parts).take(np.argsort(np.concatenate(groups)))
    found = dict(zip(others, joined.columns, strict=True))
    return Record(found.get(d, column) for d, column in enumerate(blank.columns))


def misclassified(blank: Record) -> Record | None:
    """First emission where all that is seen is a symbol for each state, shown in error by some; None if it is not."""
    first = blank.columns[0].one_symbol_each() if len(blank.columns) == 1 else None
    return None if first is None else Record([first])


def matched_emission(blank: Record, found: Record) -> Record:
    """The states that were found, each in the place whose fixed entries it is nearest to, with these entries."""
    states = np.arange(blank.n_states)
    misfit = 1e-9 * np.abs(states[:, None] - states)  # where nothing tells, they stay in order
    for column, other in zip(blank.columns, found.columns, strict=True):
        misfit = misfit + column.misfit(other)
    order = linear_sum_assignment(misfit)[1]
    columns = zip(blank.columns, found.take(order).columns, strict=True)
    return Record(other.with_fixed_of(column) for column, other in columns)


def named_emission(emission: Record, x: Floats, panel: Panel, labels: AnyArray) -> Record:
    """The same states in the order in which they best explain the rows whose states are known.

    A start finds states without names; a row known to be in one of several speaks for each of them alike.
    """
    allowed = panel.allowed_states(labels)
    if allowed is None or emission.tells_apart:
        return emission
    told = ~allowed.all(axis=1)
    shares = allowed[told] / allowed[told].sum(axis=1, keepdims=True)
    shares *= np.repeat(panel.weights, panel.lengths)[told, None]
    cost = np.minimum(emission.cost(x[told], np.ones(len(emission.columns))), LARGEST_COST)
    return emission.take(linear_sum_assignment(shares.T @ cost)[1])


def row_features(blank: Record, x: Floats, panel: Panel) -> Floats:
    """(n, F) coordinates of each row for a clustering, NaN where missing; symbols are smoothed over time."""
    features = blank.features(x)
    gaps, weights = panel.gaps()
    if len(gaps) and any(column.is_symbolic for column in blank.columns):
        width = SMOOTHING * weighted_median(gaps, weights)
        return smooth_rows(np.ascontiguousarray(features), panel.times, panel.offsets, width)
    return features


def feature_units(blank: Record, x: Floats, panel: Panel) -> Floats:
    """(F,) spread of the column behind each coordinate, so that the units of several columns do not matter."""
    weights = np.repeat(panel.weights, panel.lengths)
    units = []
    for d, column in enumerate(blank.columns):
        features = column.features(x[:, d])
        present = np.isfinite(features)
        total = np.maximum(weights @ present, 1e-300)
        mean = weights @ np.where(present, features, 0.0) / total
        variance = weights @ np.where(present, features - mean, 0.0) ** 2 / total
        units += [float(np.sqrt(variance.sum())) or 1.0] * features.shape[1]
    return np.array(units)


def start_rows(blank: Record, x: Floats, panel: Panel, moves: NDArray[np.bool_], init: str) -> Floats:
    """P, (M, M), to start from: uniform as in the paper (`noise`), or a little uneven.

    Under equal rows and rates, detours through unseen states tie exactly, and rounding would choose. Directly observed
    states start from the pairs of labels seen in succession, hidden ones from a fixed unevenness of a tenth.
    """
    rows = uniform_rows(moves)
    if init == "noise":
        return rows
    M = blank.n_states
    uneven = 1.0 + 0.1 * ((0.6180339887498949 * np.arange(1, M * M + 1)) % 1.0).reshape(M, M)
    for d, column in enumerate(blank.columns):
        counts = column.successions(x[:, d], panel)
        if counts is not None:
            uneven = 1.0 + counts / max(float(counts.sum()), 1e-300)
    rows = rows * uneven
    return rows / np.where(moves.any(axis=1, keepdims=True), rows.sum(axis=1, keepdims=True), 1.0)


def quantile_emission(blank: Record, x: Floats, weights: Floats) -> Record:
    """States that share the values of a single column evenly, in order."""
    seen = np.isfinite(x[:, 0])
    if not seen.all():
        x, weights = x[seen], weights[seen]
    edges = weighted_quantile(x[:, 0], weights, np.arange(1, blank.n_states) / blank.n_states)
    return blank.update(blank.stats(x, np.searchsorted(edges, x[:, 0], side="left"), weights))


def sample_rows(features: Floats, weights: Floats) -> NDArray[np.int64]:
    """Rows to cluster, sorted by their features: all, or many rows spread evenly over the weight.

    Sorted, so that neither the order of the sequences nor copies in place of weights change the sample.
    """
    order = np.lexsort(features.T)
    if len(order) <= MOST_ROWS:
        return order
    reached = np.cumsum(weights[order])
    wanted = (np.arange(MOST_ROWS) + 0.5) / MOST_ROWS * reached[-1]
    return order[np.searchsorted(reached, wanted)]


def cluster_emission(blank: Record, x: Floats, features: Floats, weights: Floats, rng: np.random.Generator) -> Record:
    """Emission of a k-means clustering of rows, sorted by their features; first centres drawn as in k-means++."""
    present = np.isfinite(features)
    filled = np.where(present, features, 0.0)
    centre = (weights @ filled) / np.maximum(weights @ present, 1e-300)
    F = np.where(present, features - centre, 0.0)
    spread = np.sqrt(weights @ F**2 / weights.sum())
    F /= np.where(spread > 0, spread, 1.0)
    centres = spread_centres(F, weights, blank.n_states, rng)
    return blank.update(blank.stats(x, nearest_centres(F, weights, centres), weights))


def nearest_centres(F: Floats, weights: Floats, centres: Floats) -> NDArray[np.int64]:
    """(n,) cluster of each row by Lloyd's steps from the given centres; some may stay empty.

    Our own, for the start of a fit must touch nothing that the process shares: no pool of threads that would not
    outlive a fork, no filter of warnings.
    """
    states = np.full(len(F), -1)
    for _ in range(LLOYD_STEPS):
        before, states = states, ((centres**2).sum(axis=1) - 2.0 * F @ centres.T).argmin(axis=1)
        if np.array_equal(states, before):
            break
        size = totals(states, weights, len(centres))
        sums = np.column_stack([totals(states, weights * f, len(centres)) for f in F.T])
        moved = np.where(size[:, None] > 0, sums / np.where(size > 0, size, 1.0)[:, None], centres)
        settled = ((moved - centres) ** 2).sum() <= SMALL_SHIFT
        centres = moved
        if settled:
            return ((centres**2).sum(axis=1) - 2.0 * F @ centres.T).argmin(axis=1)
    return states


def spread_centres(F: Floats, weights: Floats, n: int, rng: np.random.Generator) -> Floats:
    """(n, F) rows, each drawn with probability proportional to its squared distance to those before."""
    distance = np.ones(len(F))
    centres: list[Floats] = []
    for u in rng.random(n):
        reached = np.cumsum(weights * distance)
        i = min(int(np.searchsorted(reached, u * reached[-1], side="right")), len(F) - 1)
        own = ((F - F[i]) ** 2).sum(axis=1)
        distance = np.minimum(distance, own) if centres else own
        centres.append(F[i])
    return np.array(centres)


def given_process(start: Any, n_states: int | None) -> Process:
    """The process to start from: itself, or that of a fitted model."""
    process = getattr(start, "process_", start)
    if not isinstance(process, Process):
        raise ValueError(f"start must be a Process or a fitted model with process_, got {start!r}.")
    if n_states is not None and n_states != len(process.rates):
        raise ValueError(
            f"n_states={n_states} must equal the number of states of start, got {len(process.rates)}; "
            "leave n_states out."
        )
    return process


def with_effects(process: Process, effects: Effects | None, emission: Record) -> Process:
    """A process to start from, its rates as those of a panel depend on covariates; its own effects where they fit.

    The baseline goes with the centres: it is the process at the mean covariates of this panel.
    """
    old = process.effects
    if effects is None or old is None or old.names != effects.names or not np.array_equal(old.number, effects.number):
        return replace(process, emission=emission, effects=effects)
    shifted = process.rate_matrices((effects.centres - old.centres)[None])[0]
    np.fill_diagonal(shifted, 0.0)
    rates, P = split(shifted, process.transition_probs)
    moved = replace(effects, coefs=old.coefs)
    return replace(process, rates=rates, transition_probs=P, emission=emission, effects=moved)
