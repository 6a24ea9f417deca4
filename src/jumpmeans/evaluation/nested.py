"""Nested models compared: the likelihood-ratio test."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom, chi2

from ..estimators.read_out import ReadOut, as_panel

# A larger model may be less likely by so much of the log-likelihood: fits end somewhere.
SLACK = 1e-6


class LikelihoodRatio(NamedTuple):
    """A likelihood-ratio test."""

    statistic: float
    """Twice the rise of the log-likelihood."""
    df: int
    """Parameters that the larger model has more."""
    p_value: float
    """Probability of a rise so large if the smaller model holds, by the χ² of df degrees of freedom; for a frailty
    or levels of people that the smaller model has not, by half the χ² of df - 1 and half that of df."""


def likelihood_ratio(small: ReadOut, large: ReadOut, panel: Any, first: str | None = None) -> LikelihoodRatio:
    """Test a fitted model against one of which it is a special case.

    Parameters
    ----------
    small, large : fitted models
        At their maximum likelihood: `comparators.EM`, or `JumpMeans(refine="converged")`. That one is nested in the
        other is for you to know.
    panel : Panel or frame
        The one that both were fitted to.
    first : "estimated" or "given", optional
        As in `log_likelihood`; by default "given" if that is how one of them was fitted.

    Returns
    -------
    LikelihoodRatio
        statistic, df, p_value.

    Notes
    -----
    Frailty (``EM(frailty=...)``) is tested against none so: its variance is 0 or larger, so that without any the
    statistic is 0 in about half of all panels, and the p-value that of a mixture of two χ² (Self and Liang 1987). So
    are levels of people (``offsets=``), whose likelihood is known by a lower bound: the p-value is rather too large.

    The χ² does not hold where the smaller model has rates at 0 that the larger one has not, which lie at the edge of
    what is possible: p-values are then too large (for one such rate twice as large), so that a small one still tells.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> panel = jm.datasets.load_edss()
    >>> large = jm.comparators.EM(emission="direct").fit(panel)
    >>> onward = jm.Structure(allowed={1: [2], 2: [1, 3], 3: [2]})
    >>> small = jm.comparators.EM(emission="direct", structure=onward).fit(panel)
    >>> jm.likelihood_ratio(small, large, panel).df
    2
    """
    for name, model in (("small", small), ("large", large)):
        if not isinstance(model, ReadOut):
            raise ValueError(f"{name} must be a fitted model of a process, got {type(model).__name__}.")
    panel = as_panel(panel)
    if first is None:
        first = "given" if any(model._takes_first_as_given() for model in (small, large)) else "estimated"
    few, many = small._n_counted(first), large._n_counted(first)
    if many <= few:
        raise ValueError(
            f"large must have more parameters than small, got {many} and {few}; swap them, or compare models that are "
            "not nested by aic(panel)."
        )
    low, high = small.log_likelihood(panel, first), large.log_likelihood(panel, first)
    if high < low - SLACK * max(1.0, abs(low)):
        raise ValueError(
            f"large must be at least as likely as small, which it has within it, got log-likelihoods {high:.8g} and "
            f"{low:.8g}; fit it to this panel at maximum likelihood, with start=small."
        )
    statistic, df = max(2.0 * (high - low), 0.0), many - few
    p_value = float(chi2.sf(statistic, df))
    # each variance that the smaller model has not is at its edge there, or above it, with even chances
    edges = large._n_variances - small._n_variances
    if 0 < edges <= df:
        chances = binom.pmf(np.arange(edges + 1), edges, 0.5)
        tails = [float(chi2.sf(statistic, k)) if k > 0 else float(statistic <= 0) for k in range(df - edges, df + 1)]
        p_value = float(chances @ tails)
    return LikelihoodRatio(statistic, df, p_value)
