"""One example of every family, three states far apart, for the laws that hold for all; and a family of our own.

The formulas are plain and know nothing of the package: costs and log-densities of one value x in state s.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats as scipy_stats

import reference
from jumpmeans.emissions import (
    FAMILIES,
    Bernoulli,
    Categorical,
    Column,
    Direct,
    Exponential,
    Gaussian,
    Laplace,
    Lognormal,
    Marker,
    MeanColumn,
    Poisson,
    Student,
    power_of_two,
    require_values,
)


class Gamma(MeanColumn):
    """Positive readings whose spread is half of their mean: gamma of shape 4, d = 4 (x/μ - ln(x/μ) - 1).

    A family written as a user would, by public names; it is in no registry, its class is given as `emission=`.
    """

    name = "gamma"
    bounds = (1e-140, np.inf)  # of the means: none is 0
    shape = 4.0

    @classmethod
    def check(cls, panel, x):
        with np.errstate(invalid="ignore"):
            require_values(panel, x, x > 1e-140, "readings of emission 'gamma' must be > 0", "drop such rows")

    @staticmethod
    def divergence(x, mu):
        return Gamma.shape * (x / mu - np.log(x / mu) - 1.0)

    @property
    def unit(self):
        return power_of_two(float(self.mu.max()))

    def unit_log_density(self, x):
        k, rate = self.shape, self.shape / self.mu
        with np.errstate(invalid="ignore"):
            out = (k - 1) * np.log(x[:, None]) - rate * x[:, None] + k * np.log(rate) - math.lgamma(k)
        out += np.log(self.unit)
        out[np.isnan(x)] = 0.0
        return out

    def sample(self, states, rng):
        return rng.gamma(self.shape, self.mu[states] / self.shape)


class Example(NamedTuple):
    """Three states; some values as the family codes them; cost and log-density of a value x in state s."""

    column: Column
    values: list
    divergence: Callable
    log_density: Callable


def _log(p):
    return math.log(p) if p > 0 else -math.inf


SYMBOLS = Categorical([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.0, 0.1, 0.9]], ["u", "v", "w"])

EXAMPLES = {
    "direct": Example(
        Direct(["a", "b", "c"]),
        [0.0, 1.0, 2.0],
        lambda x, c, s: 0.0 if x == s else math.inf,
        lambda x, c, s: 0.0 if x == s else -math.inf,
    ),
    "marker": Example(
        Marker([0, 1, 2]),
        [0.0, 1.0, 2.0],
        lambda x, c, s: 0.0 if x == s else math.inf,
        lambda x, c, s: 0.0 if x == s else -math.inf,
    ),
    "categorical": Example(
        SYMBOLS, [0.0, 2.0, 1.0], lambda x, c, s: -_log(c.probs[s, int(x)]), lambda x, c, s: _log(c.probs[s, int(x)])
    ),
    "gaussian": Example(
        Gaussian([-1.0, 0.5, 7.0]),
        [-3.0, 0.0, 7.5],
        lambda x, c, s: reference.DIVERGENCE["gaussian"](x, c.means[s]),
        lambda x, c, s: scipy_stats.norm.logpdf(x, c.means[s], c.sds[s]),
    ),
    "lognormal": Example(
        Lognormal([-1.0, 1.0, 3.0], log_sds=0.4),
        [-2.0, 0.5, 3.5],
        lambda x, c, s: reference.DIVERGENCE["gaussian"](x, c.log_means[s]),
        lambda x, c, s: scipy_stats.lognorm.logpdf(math.exp(x), c.log_sds[s], scale=math.exp(c.log_means[s])),
    ),
    "student": Example(
        Student([-4.0, 0.5, 7.0], scales=0.5),
        [-3.0, 0.0, 70.0],
        lambda x, c, s: 2.5 * math.log(1.0 + (x - c.means[s]) ** 2 / (4.0 * float(np.mean(np.square(c.scales))))),
        lambda x, c, s: scipy_stats.t.logpdf(x, 4, c.means[s], c.scales[s]),
    ),
    "laplace": Example(
        Laplace([-1.0, 0.5, 7.0]),
        [-3.0, 0.5, 7.5],
        lambda x, c, s: reference.DIVERGENCE["laplace"](x, c.means[s]),
        lambda x, c, s: scipy_stats.laplace.logpdf(x, c.medians[s], c.scales[s]),
    ),
    "poisson": Example(
        Poisson([0.2, 3.0, 40.0]),
        [0.0, 1.0, 55.0],
        lambda x, c, s: reference.DIVERGENCE["poisson"](x, c.means[s]),
        lambda x, c, s: scipy_stats.poisson.logpmf(x, c.means[s]),
    ),
    "exponential": Example(
        Exponential([0.1, 1.0, 30.0]),
        [1e-3, 1.0, 200.0],
        lambda x, c, s: reference.DIVERGENCE["exponential"](x, c.means[s]),
        lambda x, c, s: scipy_stats.expon.logpdf(x, scale=c.means[s]),
    ),
    "bernoulli": Example(
        Bernoulli([0.05, 0.5, 0.99]),
        [0.0, 1.0, 1.0],
        lambda x, c, s: reference.DIVERGENCE["bernoulli"](x, c.means[s]),
        lambda x, c, s: scipy_stats.bernoulli.logpmf(x, c.means[s]),
    ),
    "gamma": Example(
        Gamma([0.5, 5.0, 40.0]),
        [1e-2, 4.0, 60.0],
        lambda x, c, s: 4.0 * reference.DIVERGENCE["exponential"](x, c.means[s]),
        lambda x, c, s: scipy_stats.gamma.logpdf(x, 4.0, scale=c.means[s] / 4.0),
    ),
}
ALL = list(EXAMPLES)
HIDDEN = [name for name, example in EXAMPLES.items() if not example.column.shows_state]
# Those of a model that learns the number of states: whoever marks states by their names knows it.
COUNTED = [name for name, example in EXAMPLES.items() if not example.column.marks_states]
# Those with parameters to learn.
LEARNED = [name for name in HIDDEN if EXAMPLES[name].column.n_free > 0]
MEASURED = [name for name in HIDDEN if not EXAMPLES[name].column.is_symbolic]


def spec(name):
    """The family as it is given to a model: by its name, or by its class if it has none in the registry."""
    return name if name in FAMILIES else type(EXAMPLES[name].column)
