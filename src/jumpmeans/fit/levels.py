"""Levels of people in a fit: where they begin, how the objective settles them, EM steps, and reading them out.

The spread τ of the offsets is no part of J, which would fall without end as τ → 0 (each offset pays ½ b²/τ² for a
density that gains ln τ): within a descent the ridge ρ = noise²/τ² is fixed, as is the noise, that of successive
differences. Between descents τ is estimated anew, given the trajectories, until it comes to rest; the history that is
published is that of the last descent, under one ridge. EM steps then estimate τ with all else (`model.levels`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..arrays import Floats, Ints
from ..data.panel import Panel
from ..emissions import Record
from ..engines.scanned import ScannedPanel
from ..errors import PanelError
from ..model.levels import (
    Levels,
    Readings,
    expected_step,
    loosened,
    moved_stats,
    precisions_of,
    respread,
    ridges,
    settle,
)
from ..model.objective import Prices, Stats
from ..model.params import Params
from ..model.process import Process
from ..options import auto, choice, listed, none, price
from ..passes import Expected, Sequences

OFFSETS = none | choice("sequence", "group")
_sd = auto | price()
OFFSET_SD = _sd | listed(_sd, "a list of them, one for each column")
# A spread of offsets to begin with is no less than this share of the noise, and a narrow one is this share of it.
LEAST_SHARE, NARROW_SHARE = 0.1, 0.5
# Steps that estimate a spread given the trajectories, and the relative change that ends them.
SPREAD_STEPS, SPREAD_CHANGE = 200, 1e-4
# Reading levels out: steps from each start, steps from the best of them, and the change, in spreads, that ends these.
TRIAL_STEPS, MOST_STEPS, SMALL_STEP = 4, 100, 1e-7


def refuse_scanned(panel: Any, by: str | None, option: str = "offsets") -> None:
    """What differs between people needs all of them in one place."""
    if by is not None and isinstance(panel, ScannedPanel):
        raise ValueError(
            f"{option} must be None for a panel that is scanned in parts, got {by!r}; fit a panel in memory, or "
            "leave them out."
        )


def begin_levels(panel: Panel, x: Floats, blank: Record, offsets: str | None, offset_sd: Any) -> Levels | None:
    """Offsets to begin with: the mean of each unit above that of all, shrunk; None where none are asked for.

    The first spread is that of these means less what noise makes of it. What states make of it is still in there, so
    that it is rather too large, and the ridge too weak.
    """
    if offsets is None:
        return None
    given = np.ravel(np.asarray(offset_sd, dtype=object)).tolist()
    D = len(blank.columns)
    if len(given) not in (1, D):
        raise ValueError(f"offset_sd must be one number, or one for each of the {D} columns, got {given}.")
    given = given if len(given) == D else given * D
    if not any(column.has_levels for column in blank.columns):
        raise ValueError(
            f"offsets must be None for columns of {[column.name for column in blank.columns]}, got {offsets!r}: only "
            "'gaussian' and 'lognormal' columns have offsets."
        )
    units, shares, weights = units_of(panel, offsets)
    means, sds = np.zeros((len(weights), D)), np.zeros(D)
    noises = blank.noises(x, panel)
    fixed = all(sd != "auto" for sd in given)
    levels = Levels(units, shares, weights, means, np.zeros_like(means), sds, noises, fixed)
    for d, column in enumerate(blank.columns):
        if not column.has_levels:
            continue
        there = np.isfinite(x[:, d])
        first = panel.offsets[:-1]
        n = levels.pool(np.add.reduceat(there.astype(np.float64), first))
        total = levels.pool(np.add.reduceat(np.where(there, x[:, d], 0.0), first))
        centre = float(weights @ total) / max(float(weights @ n), 1e-300)
        away = np.where(n > 0, total - n * centre, 0.0) / np.maximum(n, 1e-300)
        seen = (n > 0) * weights
        spread = (seen @ (away**2 - noises[d] ** 2 / np.maximum(n, 1.0))) / max(float(seen.sum()), 1e-300)
        sds[d] = np.sqrt(max(float(spread), (LEAST_SHARE * noises[d]) ** 2)) if given[d] == "auto" else float(given[d])
        if sds[d] > 0:
            readings_worth = (noises[d] / sds[d]) ** 2
            means[:, d] = n * away / (n + readings_worth)
            levels.variances[:, d] = noises[d] ** 2 / (n + readings_worth)
            means[:, d] -= (weights @ means[:, d]) / max(float(weights.sum()), 1e-300)
    return levels


def units_of(panel: Panel, by: str, option: str = "offsets") -> tuple[Ints, Floats, Floats]:
    """Unit of each sequence, how often it counts within its unit, and how often units count."""
    if by == "sequence":
        S = panel.n_sequences
        return np.arange(S), np.ones(S), panel.weights
    if panel.groups is None:
        raise PanelError(
            f"{option}='group' needs a panel with groups, got none; name them: Panel.from_frame(..., group='patient')."
        )
    units = np.unique(panel.groups, return_inverse=True)[1]
    return units.astype(np.int64), panel.weights, np.ones(int(units.max()) + 1)


def units_at_zero(panel: Panel, offsets: str, sds: Floats) -> Levels:
    """The units of a panel before anything is known of them; sds (D,) of their offsets."""
    units, shares, weights = units_of(panel, offsets)
    means = np.zeros((len(weights), len(sds)))
    return Levels(units, shares, weights, means, means, sds, np.zeros_like(sds), True).with_prior_variances()


def level_starts(levels: Levels | None) -> list[list[Levels | None]]:
    """Offsets that a fit starts from, by their spread; J compares those of one spread, and of several the likelihood.

    Under the spread that the means of people speak for: these means, and none at all. People who stay in their states
    for long have means as far apart as the states are; a fit from there takes states for people and stays there. So
    there is a start under a narrow spread, too, without offsets.
    """
    if levels is None:
        return [[None]]
    wide: list[Levels | None] = [levels, at_zero(levels)]
    narrow = np.minimum(levels.sds, NARROW_SHARE * levels.noises)
    if levels.fixed or np.array_equal(narrow, levels.sds):
        return [wide]
    return [wide, [replace(at_zero(levels), sds=narrow).with_prior_variances()]]


def at_own_level(panel: Panel, x: Floats, levels: Levels | None) -> Floats:
    """Encoded values (n, D) of a panel relative to the levels of its people."""
    return x if levels is None else x - np.repeat(levels.means[levels.units], panel.lengths, axis=0)


def at_zero(levels: Levels) -> Levels:
    """The same people at one level."""
    return replace(levels, means=np.zeros_like(levels.means))


def ridge_of(levels: Levels) -> Floats:
    """(D,) ρ: noise² over the variance of the offsets; infinite where there are none."""
    return np.where(levels.sds > 0, levels.noises**2 * np.where(levels.sds > 0, ridges(levels), 0.0), np.inf)


def settled(levels: Levels, stats: Stats, params: Params, prices: Prices) -> tuple[Levels, Stats]:
    """Offsets of least J given the trajectories behind `stats`, the means of the states settling with them."""
    ones = np.ones_like(precisions_of(params.emission))
    ridge = np.full(len(prices.emission), np.inf) if prices.ridge is None else prices.ridge
    after = settle(levels, stats.readings, ones, ridge)
    emission = moved_stats(params.emission, stats.emission, stats.readings, levels, after, loose=False)
    by = (after.means - levels.means)[levels.units]
    readings = stats.readings._replace(residuals=stats.readings.residuals - stats.readings.counts * by[:, None, :])
    return after, stats._replace(emission=emission, readings=readings, offsets=after.squares())


def spread_given(levels: Levels, stats: Stats, params: Params) -> Levels:
    """The same offsets with the spread of most likelihood, given the trajectories behind `stats`, one noise for all."""
    if levels.fixed:
        return levels
    emission, M = params.emission, params.emission.n_states
    number = np.maximum(np.einsum("s,smd->d", levels.sequence_weights, stats.readings.counts), 1e-300)
    noise = 2.0 * emission.totals(stats.emission) / number
    now = levels
    for _ in range(SPREAD_STEPS):
        p = np.broadcast_to(1.0 / np.maximum(noise, 1e-300), (M, len(noise)))
        after = loosened(settle(now, stats.readings, p, ridges(now)), stats.readings, p)
        moved = moved_stats(emission, stats.emission, stats.readings, levels, after, loose=True)
        noise = 2.0 * emission.update(moved).totals(moved) / number
        before, now = now.sds, replace(levels, sds=respread(after).sds, variances=after.variances)
        if np.all(np.abs(now.sds - before) <= SPREAD_CHANGE * before):
            break
    return now


def step_levels(levels: Levels | None, expected: Expected, process: Process) -> tuple[Levels | None, Expected]:
    """The part of an EM step that is about offsets: they and their spreads, and the statistics relative to them."""
    readings = expected.readings
    if levels is None or readings is None:
        return levels, expected
    after = expected_step(levels, readings, process.emission)
    emission = moved_stats(process.emission, expected.emission, readings, levels, after, loose=True)
    return respread(after), expected._replace(emission=emission)


def find_levels(sequences: Sequences, process: Process) -> Sequences:
    """The sequences at the offsets of most F under a process that stays, each from its own readings alone.

    A unit that is far from level 0 may be taken for one in another state: offsets are looked for from several starts
    (those at which its mean reading is that of a state, or of the process in the long run), and each unit keeps the
    best. Offsets known before play no part, so that a panel is read in the same way when it is seen again.
    """
    levels = sequences.levels
    if levels is None or not levels.columns:
        return sequences
    zero = replace(levels, means=np.zeros_like(levels.means)).with_prior_variances()
    readings, _ = sequences.at(zero).gauge(process)
    above = _mean_readings(zero, readings, process)
    found: list[tuple[Floats, Levels]] = []
    for start in (np.zeros_like(above), *(above - centre for centre in _centres(process.emission))):
        at = expected_step(
            replace(zero, means=np.where(np.isnan(start), 0.0, start)), readings, process.emission, False
        )
        at = replace(at, means=np.where(np.isnan(start), 0.0, start))
        found.append(_steps(sequences, process, at, TRIAL_STEPS)[::-1])
    scores = np.array([score for score, _ in found])
    best = scores.argmax(axis=0)
    pick = np.arange(len(best))
    means = np.stack([at.means for _, at in found])[best, pick]
    variances = np.stack([at.variances for _, at in found])[best, pick]
    return sequences.at(_steps(sequences, process, replace(zero, means=means, variances=variances), MOST_STEPS)[0])


def _steps(sequences: Sequences, process: Process, levels: Levels, n: int) -> tuple[Levels, Floats]:
    """So many steps up F at most, the process staying; and what each unit has of F before the last of them."""
    bounds = np.zeros(0)
    for _ in range(n):
        readings, log_lik = sequences.at(levels).gauge(process)
        bounds = levels.bounds(log_lik)
        before, levels = levels.means, expected_step(levels, readings, process.emission, free=False)
        if np.all(np.abs(levels.means - before) <= SMALL_STEP * levels.sds):
            break
    return levels, bounds


def _mean_readings(levels: Levels, readings: Readings, process: Process) -> Floats:
    """(U, D) mean reading of each unit, NaN where there is none."""
    out = np.full(levels.means.shape, np.nan)
    for d in levels.columns:
        centres = process.emission.columns[d].centres_of_levels()
        n = levels.pool(readings.counts[:, :, d])
        total = levels.pool(readings.residuals[:, :, d]) + n * centres
        seen = n.sum(axis=1) > 0
        out[seen, d] = total[seen].sum(axis=1) / n[seen].sum(axis=1)
    return out


def _centres(emission: Record) -> Floats:
    """(M, D) mean of the encoded readings of each state, 0 in columns without offsets."""
    columns = [c.centres_of_levels() if c.has_levels else np.zeros(emission.n_states) for c in emission.columns]
    return np.column_stack(columns)
