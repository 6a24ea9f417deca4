"""Rates that depend on covariates: weighted Poisson regressions of expected jumps on expected times.

Of each free rate j the complete data tell the jumps N_j, the sum s_j of their covariates, and the time T_jg under each
z_g. Given β its baseline is N_j / Σ_g T_jg exp(β_j·z_g); what is left is Σ_j [β_j·s_j - N_j ln Σ_g T_jg exp(β_j·z_g)],
which is concave: Newton, with steps that are halved until it rises.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Floats, Ints, totals
from ..model.constraints import Constraints
from ..model.effects import Effects
from ..model.process import Process
from ..passes.varying import Depending

MOST_STEPS = 50
# A step that is to raise the log-likelihood by less is none.
SMALLEST_GAIN = 1e-13
# A step changes no logarithm of a rate by more.
LONGEST_STEP = 5.0
# Curvature below this share of the largest, in units of the spread of the covariates, is none.
FLAT = 1e-11
# Effects on moves of which fewer are expected to have happened are not told by the data.
FEWEST_JUMPS = 1e-2


class Loads(NamedTuple):
    """Sums over z_g of the expected times, each times the hazard ratio of a move, and once and twice times z.

    time (M, M); first, second (K, M, M): Σ_g T_rg exp(β_rs·z_g) times 1, z_gk, z_gk².
    """

    time: Floats
    first: Floats
    second: Floats

    @classmethod
    def of(cls, effects: Effects, depending: Depending) -> Loads:
        """The sums under some effects."""
        loads = depending.time[:, :, None] * np.exp(effects.log_ratios(depending.z))
        z = depending.z
        return cls(
            loads.sum(axis=0), np.tensordot(z, loads, axes=(0, 0)), np.tensordot(z**2, loads, axes=(0, 0))
        )  # fmt: skip


def by_number(effects: Effects, table: Floats) -> Floats:
    """(n_free,) sum of a table (K, M, M) over what each free coefficient stands for."""
    used = effects.number >= 0
    return totals(effects.number[used], table[used], effects.n_free)


class Problem(NamedTuple):
    """Jumps N (J,), sums s (K, J) of their covariates, log_time (G, J), z (G, K); numbers (K, J) of coefficients."""

    jumps: Floats
    sums: Floats
    log_time: Floats
    z: Floats
    numbers: Ints

    def spread(self, beta: Floats) -> tuple[float, Floats, Floats]:
        """The profile log-likelihood at β, log of Σ_g T_jg exp(β_j·z_g) (J,), and the share of each g in it (G, J)."""
        b = np.where(self.numbers >= 0, beta[self.numbers], 0.0)
        x = self.z @ b + self.log_time
        top = x.max(axis=0)
        shares = np.exp(x - top)
        total = shares.sum(axis=0)
        logs = top + np.log(total)
        return float((b * self.sums).sum() - self.jumps @ logs), logs, shares / total

    def slope(self, shares: Floats, n: int) -> tuple[Floats, Floats]:
        """(n,) gradient and (n, n) information of the profile log-likelihood."""
        means = self.z.T @ shares
        gradient, information = np.zeros(n), np.zeros((n, n))
        for j in range(len(self.jumps)):
            used = np.flatnonzero(self.numbers[:, j] >= 0)
            own = self.numbers[used, j]
            centred = self.z[:, used] - means[used, j]
            np.add.at(gradient, own, self.sums[used, j] - self.jumps[j] * means[used, j])
            spread = (centred * shares[:, j : j + 1]).T @ centred
            np.add.at(information, np.ix_(own, own), self.jumps[j] * spread)
        return gradient, information


def regress(
    process: Process, jumps: Floats, depending: Depending, constraints: Constraints, pseudo_count: float = 0.0
) -> tuple[Floats, Effects]:
    """Baseline rates (M, M) and effects of highest expected log-likelihood, from those of a process.

    jumps (M, M) are expected ones; `pseudo_count` more of each are taken to have happened at the mean covariates.
    """
    effects = process.effects
    assert effects is not None
    z, time, sums = depending.z, np.maximum(depending.time, 0.0), process.rate_matrix * depending.slopes
    if pseudo_count > 0:
        z = np.vstack([z, np.zeros(z.shape[1])])
        per_jump = time.sum() / max(jumps.sum(), 1e-300)
        time = np.vstack([time, pseudo_count * constraints.moves.sum(axis=1) * per_jump])
        jumps = np.where(constraints.moves, jumps + pseudo_count, 0.0)
    counts, J = constraints.pool(jumps), constraints.n_rates
    exposure, places = np.zeros((len(z), J)), np.zeros((J, 2), np.int64)
    for r, s in np.argwhere(constraints.group >= 0).tolist():
        j = constraints.group[r, s]
        exposure[:, j] += time[:, r]
        places[j] = r, s
    pooled = np.array([constraints.pool(own) for own in sums]).reshape(len(sums), J)
    told = (exposure.sum(axis=0) > 0) & (counts > 0)
    beta = effects.free
    free = constraints.free_rates(process.rate_matrix)
    if told.any():
        with np.errstate(divide="ignore"):
            log_time = np.log(exposure[:, told])
        numbers = effects.number[:, places[told, 0], places[told, 1]]
        problem = Problem(counts[told], pooled[:, told], log_time, z, numbers)
        beta, logs = _newton(problem, beta)
        free[told] = counts[told] * np.exp(-logs)
    free[(exposure.sum(axis=0) > 0) & (counts <= 0)] = 0.0
    return constraints.rates(free), effects.with_free(beta)


def _newton(problem: Problem, beta: Floats) -> tuple[Floats, Floats]:
    """β of the highest profile log-likelihood, from another, and the logarithms of `spread` there."""
    value, logs, shares = problem.spread(beta)
    widest = np.abs(problem.z).max(axis=0, initial=0.0)
    reach = np.zeros(len(beta))
    for numbers, width in zip(problem.numbers, widest.tolist(), strict=True):
        np.maximum.at(reach, numbers[numbers >= 0], width)
    reach = np.where(reach > 0, reach, 1.0)
    for _ in range(MOST_STEPS if len(beta) else 0):
        gradient, information = problem.slope(shares, len(beta))
        # in units of the widest covariate, so that the units of the data do not matter
        sizes, V = np.linalg.eigh(information / np.outer(reach, reach))
        sound = sizes > FLAT * max(float(sizes[-1]), 1e-300)
        ahead = V[:, sound].T @ (gradient / reach)
        step = (V[:, sound] @ (ahead / sizes[sound])) / reach
        gain = 0.5 * float(ahead @ (ahead / sizes[sound]))
        if not gain > SMALLEST_GAIN * max(1.0, abs(value)):
            break
        step *= min(1.0, LONGEST_STEP / max(float(np.abs(step * reach).max()), 1e-300))
        while True:
            new_value, new_logs, new_shares = problem.spread(beta + step)
            if new_value > value:
                break
            step *= 0.5
            if np.all(beta + step == beta):
                return beta, logs
        beta, value, logs, shares = beta + step, new_value, new_logs, new_shares
    return beta, logs
