"""Frailty: people of whom some leave every state sooner than others, all rates times w, w ~ Gamma(1/v, 1/v).

The multiplier w of a person (a unit: one sequence, or all of a group) has mean 1 and variance v. Given w the person's
sequences are those of a process with rates w·q, so that the likelihood of a unit is one integral,

    Z_u = ∫ L_u(w) p(w; v) dw,      L_u(w) = Π_i L_i(w)^share,

and nothing but L_u at some w need be worked out. If all jumps are seen, L_u is w^n e^{-wH} with n jumps and cumulative
hazard H, and w given all rows is Gamma(1/v + n, 1/v + H). The integral is taken by the trapezoidal rule in t,
w = exp(t - e^{-t}): there the integrand falls as fast as e^{-e^{|t|}} on both sides, whatever v and the rows, and the
rule converges exponentially. Nodes go as far as there is anything to be seen of a unit, and are as close as it needs.

EM climbs Z as any mixture: expectations are means over the nodes, each with its posterior chance; those of times count
by w, so that rates are jumps over Σ w T. Of v, ln a - ψ(a) = E[w - 1 - ln w] at a = 1/v is the step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammaln, logsumexp, polygamma

from ..arrays import Floats, Ints, pooled

# Nodes to begin with, and how many more of them are taken where they prove too few.
NODES, MORE = 20, 1.4
# An integrand smaller than e to minus this, relative to its top, is nothing. Nodes are far enough apart, and reach far
# enough, if none has a larger chance than `CHANCE`, no step is longer than `STEP`, and the last of them have no larger
# chance than `EDGE`.
DEPTH, CHANCE, STEP, EDGE = 24.0, 0.3, 0.25, 1e-9
# No node lies further out.
FARTHEST = 12.0
# Above this shape ln Γ and ψ are taken by Stirling's series.
LARGE = 100.0
# Variances that are looked at, and the steps of Newton for one.
LEAST_VARIANCE, MOST_VARIANCE, NEWTON_STEPS = 1e-7, 25.0, 100


class Weighed(NamedTuple):
    """What the rows of units tell of their multipliers.

    nodes (U, K): log-likelihood at each node; chances (U, K) of the nodes; log_lik (U,) ln Z.
    """

    nodes: Floats
    chances: Floats
    log_lik: Floats


@dataclass(frozen=True, eq=False)
class Frailty:
    """The law of the multipliers of all units, and the nodes that they are looked at with.

    units (S,): unit of each sequence; shares (S,): how often a sequence counts within its unit; weights (U,): how
    often a unit counts. variance : v. lows, highs (U,): where the nodes begin and end, in t; n_nodes : K.
    fixed : whether v is given.
    """

    units: Ints
    shares: Floats
    weights: Floats
    variance: float
    lows: Floats
    highs: Floats
    n_nodes: int = NODES
    fixed: bool = False

    @classmethod
    def of(cls, units: Ints, shares: Floats, weights: Floats, variance: float, fixed: bool = False) -> Frailty:
        """Multipliers of which nothing is known yet."""
        low, high = (np.full(len(weights), end) for end in _reach(1.0 / variance))
        return cls(units, shares, weights, variance, low, high, NODES, fixed)

    @cached_property
    def _t(self) -> Floats:
        """(U, K) nodes, evenly spaced."""
        return np.linspace(self.lows, self.highs, self.n_nodes, axis=1)

    @cached_property
    def nodes(self) -> Floats:
        """(U, K) multipliers that units are looked at with."""
        return np.exp(self._t - np.exp(-self._t))

    @property
    def of_sequences(self) -> Floats:
        """(S, K) the same of each sequence."""
        return self.nodes[self.units]

    @property
    def _steps(self) -> Floats:
        """(U,) steps from node to node."""
        return np.asarray((self.highs - self.lows) / (self.n_nodes - 1))

    @property
    def log_weights(self) -> Floats:
        """(U, K) logarithms of what the nodes count under the gamma law."""
        return np.log(self._steps)[:, None] + _log_density(self._t, 1.0 / self.variance)

    def weigh(self, log_lik: Floats) -> Weighed:
        """From log-likelihoods (S, K) of the sequences at the nodes."""
        own = self.pool(log_lik)
        joint = self.log_weights + own
        total = logsumexp(joint, axis=1)
        return Weighed(own, np.exp(joint - total[:, None]), total)

    def is_enough(self, weighed: Weighed) -> bool:
        """Whether the nodes reach far enough, and are close enough."""
        edges = weighed.chances[:, [0, -1]]
        return bool(weighed.chances.max() <= CHANCE and edges.max() <= EDGE and self._steps.max() <= STEP)

    def zoomed(self, weighed: Weighed, more: bool = False) -> Frailty:
        """The same with nodes where there is something to be seen; `more` of them, if need be."""
        joint = self.log_weights + weighed.nodes
        there = joint > joint.max(axis=1, keepdims=True) - DEPTH
        first = there.argmax(axis=1)
        last = self.n_nodes - 1 - there[:, ::-1].argmax(axis=1)
        step = self._steps
        beyond = np.maximum(1.0, 0.25 * self.n_nodes)  # steps, where the nodes ended too soon
        low = self.lows + step * np.where(first == 0, -beyond, first - 1.0)
        high = self.lows + step * np.where(last == self.n_nodes - 1, last + beyond, last + 1.0)
        n = int(np.ceil(MORE * self.n_nodes)) if more else self.n_nodes
        return replace(self, lows=np.maximum(low, -FARTHEST), highs=np.minimum(high, FARTHEST), n_nodes=n)

    # ------------------------------------------------------------------------------------------- of units

    def pool(self, x: Floats) -> Floats:
        """Sums over the sequences of each unit, (S, ...) to (U, ...)."""
        return pooled(x, self.units, self.shares, len(self.weights))

    def total(self, weighed: Weighed) -> float:
        """Log-likelihood of all units."""
        return float(self.weights @ weighed.log_lik)

    def sequence_weights(self, weighed: Weighed) -> Floats:
        """(S, K) how often each sequence counts at each node."""
        return np.asarray((self.shares * self.weights[self.units])[:, None] * weighed.chances[self.units])

    def means(self, weighed: Weighed) -> Floats:
        """(U,) posterior mean of w."""
        return np.asarray((weighed.chances * self.nodes).sum(axis=1))

    def sds(self, weighed: Weighed) -> Floats:
        """(U,) posterior standard deviation of w."""
        off = self.nodes - self.means(weighed)[:, None]
        return np.sqrt((weighed.chances * off**2).sum(axis=1))

    # ------------------------------------------------------------------------------- steps of the variance

    def begun(self, variance: float) -> Frailty:
        """Another variance, and nothing known yet."""
        return Frailty.of(self.units, self.shares, self.weights, variance, self.fixed)

    def with_variance(self, variance: float) -> Frailty:
        """Another variance, at the same nodes."""
        return replace(self, variance=float(np.clip(variance, LEAST_VARIANCE, MOST_VARIANCE)))

    def _bend(self, weighed: Weighed) -> float:
        """Mean of E[w - 1 - ln w] over the units."""
        x = self._t - np.exp(-self._t)
        each = (weighed.chances * (np.expm1(x) - x)).sum(axis=1)
        return float(self.weights @ each / self.weights.sum())

    def slope(self, weighed: Weighed) -> float:
        """Gradient of the log-likelihood in v."""
        a = 1.0 / self.variance
        return float(-(a**2) * self.weights.sum() * (_log_less_digamma(a) - self._bend(weighed)))

    def information(self) -> float:
        """What seen multipliers would tell of v."""
        a = 1.0 / self.variance
        return float(self.weights.sum() * a**4 * (polygamma(1, a) - 1.0 / a))

    def stepped(self, weighed: Weighed) -> Frailty:
        """The variance of an EM step."""
        if self.fixed:
            return self
        c = max(self._bend(weighed), 0.5 * LEAST_VARIANCE)
        x = -np.log(2.0 * c)  # ln a; ln a - ψ(a) is near 1/2a
        for _ in range(NEWTON_STEPS):
            a = float(np.exp(x))
            step = float(np.clip((_log_less_digamma(a) - c) / (1.0 - a * polygamma(1, a)), -1.0, 1.0))
            x -= step
            if abs(step) < 1e-13:
                break
        return self.with_variance(float(np.exp(-x)))


def _log_density(t: Floats, a: float) -> Floats:
    """Ln of the density of t, for w ~ Gamma(a, a)."""
    x = t - np.exp(-t)
    if a < LARGE:
        norm = a * np.log(a) - gammaln(a) - a
    else:
        norm = 0.5 * np.log(a / (2.0 * np.pi)) - 1.0 / (12.0 * a) + 1.0 / (360.0 * a**3) - 1.0 / (1260.0 * a**5)
    return np.asarray(norm + a * (x - np.expm1(x)) + np.log1p(np.exp(-t)))


def _reach(a: float) -> tuple[float, float]:
    """Where the density of t is no longer anything, below and above."""
    middle = 0.5671432904097838  # w = 1

    def height(t: float) -> float:
        return float(_log_density(np.array(t), a) - _log_density(np.array(middle), a)) + DEPTH

    return brentq(height, -FARTHEST, middle), brentq(height, middle, FARTHEST)


def _log_less_digamma(a: float) -> float:
    """Ln a - ψ(a), which is near 1/2a for a large a."""
    if a < LARGE:
        return float(np.log(a) - digamma(a))
    return float(1.0 / (2.0 * a) + 1.0 / (12.0 * a**2) - 1.0 / (120.0 * a**4) + 1.0 / (252.0 * a**6))
