"""λ and β that minimise the objective for given trajectories, where rates depend on covariates.

A dwell lasts λ_s Σ t e^{β_s · z} mean dwell times, summed over its pieces. With v = ln λ, what a complete dwell under
one pattern of covariates costs is e^u - u - 1 in u = v + β · z + ln t, which is linear: convex, and so are running
dwells and the prior b e^v - a v. A complete dwell that covariates change in has -ln of a sum of such exponentials,
which is concave. So the whole need not be convex: steps are those of Newton where the curvature is that of a minimum,
else those of a convex bound, which leaves the curvature of the concave part out; each must lower the objective.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..arrays import Bools, Floats, Ints, totals
from .effects import Effects
from .exposure import Exposure
from .objective import Prices, Stats
from .updates import exact_rate, exact_rates

MOST_STEPS, MOST_HALVINGS = 100, 60
# What can be gained, relative to the number of dwells, below which a step is not worth it.
SETTLED = 1e-15
# Directions in which the curvature is a smaller share than this of the largest are flat: no step along them.
FLAT = 1e-12


class Hill(NamedTuple):
    """What is minimised: dwells, prior prices (a, b), and where each (v_s, β_s) is among what is free.

    place : (M, 1 + K) their numbers, -1 for what stays; running : whether dwells that still run cost anything.
    """

    exposure: Exposure
    prior_count: float
    prior_time: float
    running: bool
    place: Ints

    def value(self, v: Floats, beta: Floats) -> float:
        """The objective's part that depends on λ and β, up to a constant."""
        moving = self.place[:, 0] >= 0
        with np.errstate(over="ignore", invalid="ignore"):
            costs = self.exposure.costs(np.exp(v), beta, self.running)
            prior = self.prior_time * np.exp(v[moving]) - self.prior_count * v[moving]
            total = costs[0] + costs[1] + float(prior.sum())
        return total if np.isfinite(total) else np.inf

    def slopes(self, v: Floats, beta: Floats) -> tuple[Floats, Floats, Floats]:
        """Gradient (F,), curvature (F, F), and the latter without the concave parts."""
        x = self.exposure
        n, K = int(self.place.max(initial=-1)) + 1, self.place.shape[1]
        g, H, C = np.zeros(self.place.shape), np.zeros((*self.place.shape, K)), np.zeros((*self.place.shape, K))
        groups, pieces = x.log_paces(beta)
        groups = np.exp(v[x.state] + groups) * x.time
        pieces = np.exp(v[x.piece_state] + pieces) * x.piece_time
        hours = x.total(pieces)
        counts = np.where(x.running, (hours >= 1.0) & self.running, True) * x.long_weight
        lengths = np.diff(x.offsets)
        shares = pieces / np.repeat(np.where(hours > 0, hours, 1.0), lengths)
        weights = np.repeat(counts, lengths)
        design, piece_design = _with_one(x.z[x.pattern]), _with_one(x.z[x.piece_pattern])
        varied = len(pieces) > len(hours)  # else every dwell is of one piece, and has no concave part
        means = np.add.reduceat(shares[:, None] * piece_design, x.offsets[:-1], axis=0) if varied else piece_design
        piece_state = x.piece_state
        for s in np.flatnonzero((self.place >= 0).any(axis=1)):
            here, own, bits = x.state == s, x.long_state == s, piece_state == s
            z, y, mean, w = design[here], piece_design[bits], means[own], weights[bits]
            g[s] = z.T @ (groups[here] - x.exits[here]) + y.T @ (w * pieces[bits]) - mean.T @ counts[own]
            H[s] = (z.T * groups[here]) @ z + (y.T * (w * pieces[bits])) @ y
            if varied:
                C[s] = (y.T * (w * shares[bits])) @ y - (mean.T * counts[own]) @ mean
        prior = self.prior_time * np.exp(v)
        g[:, 0] += prior - self.prior_count
        H[:, 0, 0] += prior
        gradient, curvature, concave = np.zeros(n), np.zeros((n, n)), np.zeros((n, n))
        free = self.place >= 0
        both = free[:, :, None] & free[:, None, :]
        at = [place[both] for place in np.broadcast_arrays(self.place[:, :, None], self.place[:, None, :])]
        np.add.at(gradient, self.place[free], g[free])
        np.add.at(curvature, tuple(at), (H - C)[both])
        np.add.at(concave, tuple(at), C[both])
        return gradient, curvature, curvature + concave

    def moved(self, v: Floats, beta: Floats, step: Floats) -> tuple[Floats, Floats]:
        """V (M,) and β (K, M) after a step (F,)."""
        own = np.where(self.place >= 0, step[self.place], 0.0)
        return v + own[:, 0], beta + own[:, 1:].T


def _with_one(z: Floats) -> Floats:
    return np.column_stack([np.ones(len(z)), z])


def newton_step(gradient: Floats, curvature: Floats, bound: Floats) -> Floats:
    """-H⁺ g with the curvature if that is of a minimum, else with its convex bound; flat directions are left alone."""
    for H in (curvature, bound):
        size = np.sqrt(np.maximum(np.diag(bound), 0.0))
        size = np.where(size > 0, size, 1.0)
        values, vectors = np.linalg.eigh(H / np.outer(size, size))
        flat = FLAT * max(values[-1], 0.0)
        if values[0] < -flat and H is curvature:
            continue
        inverse = np.where(values > flat, 1.0 / np.where(values > flat, values, 1.0), 0.0)
        return -(vectors @ (inverse * (vectors.T @ (gradient / size)))) / size
    return np.zeros(len(gradient))


def descend_hill(hill: Hill, v: Floats, beta: Floats) -> tuple[Floats, Floats]:
    """V and β of least cost, or as near as steps that lower it come."""
    here = hill.value(v, beta)
    worth = SETTLED * max(float(hill.exposure.exits.sum() + hill.exposure.long_weight.sum()), 1e-300)
    for _ in range(MOST_STEPS):
        gradient, curvature, bound = hill.slopes(v, beta)
        step = newton_step(gradient, curvature, bound)
        gain = -float(gradient @ step)
        if not gain > worth:
            break
        for _ in range(MOST_HALVINGS):
            there = hill.moved(v, beta, step)
            value = hill.value(*there) if np.abs(there[1]).max(initial=0.0) < np.inf else np.inf
            if value <= here - 1e-4 * gain:
                break
            step, gain = 0.5 * step, 0.5 * gain
        else:
            break
        (v, beta), here = there, value
    return v, beta


def exact_hazards(stats: Stats, prices: Prices, effects: Effects, leavable: Bools) -> tuple[Floats, Effects]:
    """λ (M,) and effects of least cost for the trajectories behind `stats`; never of more than those before."""
    assert stats.exposure is not None
    rates = rates_under(stats, prices, effects, leavable)
    hill = Hill(stats.exposure, prices.prior_count, prices.prior_time, prices.running, free_places(effects, rates))
    effects = bottom(hill, rates, effects)[1]
    return rates_under(stats, prices, effects, leavable), effects


def occurrence_hazards(
    stats: Stats, effects: Effects, rates: Floats, count: float, time: float
) -> tuple[Floats, Effects]:
    """λ (M,) and effects of highest likelihood: jumps over exposure, that of running dwells included.

    Each state has `count` more jumps, and `time` more time at the centre of the covariates, than were seen.
    """
    assert stats.exposure is not None
    hill = Hill(stats.exposure.told_apart(), count, time, False, free_places(effects, rates))
    return bottom(hill, rates, effects)


def bottom(hill: Hill, rates: Floats, effects: Effects) -> tuple[Floats, Effects]:
    """λ and effects where a hill ends."""
    with np.errstate(divide="ignore"):
        v = np.log(rates)
    v, beta = descend_hill(hill, v, effects.of_states())
    return np.exp(v), replace(effects, coefs=np.where(effects.number >= 0, beta[:, :, None], 0.0))


def free_places(effects: Effects, rates: Floats) -> Ints:
    """(M, 1 + K) number of what is free: the rates of states that are left, and the effects on them."""
    moving = rates > 0
    place = np.full((len(rates), 1 + len(effects.centres)), -1)
    place[moving, 0] = np.arange(moving.sum())
    number = np.where(moving[:, None], effects.number.max(axis=2).T, -1)  # all moves out of a state share theirs
    _, own = np.unique(number[number >= 0], return_inverse=True)
    place[:, 1:][number >= 0] = moving.sum() + own
    return place


def rates_under(stats: Stats, prices: Prices, effects: Effects, leavable: Bools) -> Floats:
    """(M,) exact rates at the centre of the covariates, given their effects."""
    if not effects.coefs.any():
        return exact_rates(stats, prices, leavable)
    x = stats.exposure
    assert x is not None
    M = len(stats.exits)
    groups, pieces = x.log_paces(effects.of_states())
    hours = x.total(np.exp(pieces) * x.piece_time)
    whole = ~x.running
    exits = totals(x.state, x.exits, M) + totals(x.long_state[whole], x.long_weight[whole], M)
    time = totals(x.state, np.exp(groups) * x.time, M)
    time += totals(x.long_state[whole], x.long_weight[whole] * hours[whole], M)
    rates = np.zeros(M)
    for m in np.flatnonzero(leavable):
        own = x.running & (x.long_state == m) & prices.running
        rates[m] = exact_rate(
            exits[m], time[m], hours[own], x.long_weight[own], prices.prior_count, prices.prior_time
        )  # fmt: skip
    return rates
