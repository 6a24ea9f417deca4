"""Have the chains mixed? Split R̂ and effective sample size, after Vehtari et al. 2021 (Bayesian Analysis 16:667)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from scipy.stats import rankdata

from ..arrays import Floats


def split_r_hat(draws: ArrayLike) -> float:
    """Rank-normalised split R̂: 1 for chains that agree, above 1.01 for chains that do not yet.

    Parameters
    ----------
    draws : (n_chains, n)
        One number per draw. Each chain is cut in half, so one chain is enough.

    Returns
    -------
    float
        The larger of R̂ of the ranks and R̂ of the ranks of the distances to the median, equations 4 and 14 of the
        paper; NaN for constant draws or fewer than four per chain.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> round(split_r_hat(rng.standard_normal((2, 1000))), 2)
    1.0
    """
    chains = _split(draws)
    if not _varies(chains):
        return float("nan")
    folded = np.abs(chains - np.median(chains))
    return max(_potential_scale(_normal_scores(chains)), _potential_scale(_normal_scores(folded)))


def bulk_ess(draws: ArrayLike) -> float:
    """Bulk effective sample size: how many independent draws the chains are worth.

    Parameters
    ----------
    draws : (n_chains, n)

    Returns
    -------
    float
        NaN for constant draws or fewer than four per chain.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> bulk_ess(np.cumsum(rng.standard_normal((1, 1000)), axis=1)) < 20
    True
    """
    chains = _split(draws)
    if not _varies(chains):
        return float("nan")
    return effective_size(_normal_scores(chains))


def effective_size(chains: Floats) -> float:
    """Effective sample size of (m, n) chains by Geyer's initial monotone sequence, of the numbers as they are."""
    m, n = chains.shape
    covariances = np.array([_autocovariance(chain) for chain in chains])
    within = covariances[:, 0].mean() * n / (n - 1)
    total = within * (n - 1) / n + (chains.mean(axis=1).var(ddof=1) if m > 1 else 0.0)
    rho = 1.0 - (within - covariances.mean(axis=0) * n / (n - 1)) / total
    rho[0] = 1.0
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: negative[0]] if len(negative) else pairs)
    tau = max(-1.0 + 2.0 * pairs.sum(), 1.0 / np.log10(m * n))
    return float(m * n / tau)


def _split(draws: ArrayLike) -> Floats:
    chains = np.atleast_2d(np.asarray(draws, dtype=np.float64))
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, chains.shape[1] - half :]])


def _varies(chains: Floats) -> bool:
    return chains.shape[1] >= 2 and bool(np.isfinite(chains).all()) and bool(np.ptp(chains) > 0)


def _normal_scores(chains: Floats) -> Floats:
    ranks = rankdata(chains).reshape(chains.shape)
    return np.asarray(ndtri((ranks - 0.375) / (chains.size + 0.25)))


def _potential_scale(chains: Floats) -> float:
    """√(pooled variance / mean variance within the chains)."""
    n = chains.shape[1]
    within = chains.var(axis=1, ddof=1).mean()
    between = chains.mean(axis=1).var(ddof=1)
    if within == 0:
        return float("inf") if between > 0 else float("nan")
    return float(np.sqrt((n - 1) / n + between / within))


def _autocovariance(x: Floats) -> Floats:
    """(n,) autocovariances of one chain, divided by n, by fast Fourier transform."""
    n = len(x)
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(x - x.mean(), size)
    return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, size)[:n] / n)
