"""The prior behind the nonparametric model: the hierarchical gamma-gamma process, and its law of dwells.

Section 4 and the supplement of the paper, at finite β. Its small-variance limit, β → ∞, is the objective of the
nonparametric model (derivation, eq. 3); at β = 1 it is the hierarchical gamma-exponential process, whose dwells are
exponential.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincc, betaln, xlogy

from ..arrays import Floats
from ..chance import as_generator


def _require_positive(**values: ArrayLike) -> None:
    for name, value in values.items():
        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{name} must be positive and finite, got {value!r}.") from None
        if not np.all((array > 0) & (array < np.inf)):
            raise ValueError(f"{name} must be positive and finite, got {array}.")


def _log_gamma_draws(shape: ArrayLike, size: Any, rng: np.random.Generator) -> Floats:
    """Logarithms of Gamma(shape, 1) draws: G(a) = G(a + 1) U^(1/a), so that a small shape does not underflow."""
    a = np.broadcast_to(np.asarray(shape, dtype=np.float64), size)
    with np.errstate(divide="ignore", over="ignore"):
        return np.log(rng.standard_gamma(a + 1.0)) - rng.standard_exponential(size) / a


@dataclass(frozen=True, eq=False)
class ShapedTranslatedPareto:
    """STP(β, α, γ): a dwell Gamma(β, x) whose rate x is itself Gamma(α β, γ).

    Its density is γ^(αβ) t^(β - 1) / {B(β, αβ) (t + γ)^((1 + α) β)} for t > 0; S / (S + γ) is Beta(β, αβ). The
    tail falls like t^(-αβ - 1); at β = 1 this is the translated Pareto, or Lomax, distribution.

    Parameters
    ----------
    beta, alpha, gamma : float or array
        β, shape of the dwells; α, number of dwells the law of the rate is worth; γ, their total time, in the unit
        of the dwells. All positive; arrays broadcast, one distribution per element.

    Notes
    -----
    From the supplement, appendix B. The predictive law of the next dwell of a state in which K dwells of total T
    have been seen is STP(β, κ_0 + K, γ + T): the paper's proposition prints the mass of the normalised measure as
    second parameter, which would be 1; its proof has that of the measure itself, κ_0 + K.

    Examples
    --------
    >>> from jumpmeans.model.gamma_process import ShapedTranslatedPareto
    >>> law = ShapedTranslatedPareto(beta=1.0, alpha=3.0, gamma=2.0)
    >>> float(law.mean()), float(law.cdf(2.0))
    (1.0, 0.875)
    """

    beta: Floats
    alpha: Floats
    gamma: Floats

    def __init__(self, beta: ArrayLike, alpha: ArrayLike, gamma: ArrayLike) -> None:
        values = {"beta": beta, "alpha": alpha, "gamma": gamma}
        _require_positive(**values)
        for name, value in values.items():
            object.__setattr__(self, name, np.asarray(value, dtype=np.float64))

    def logpdf(self, t: ArrayLike) -> Floats:
        """Logarithm of the density at `t`; -inf below 0."""
        t = np.asarray(t, dtype=np.float64)
        z = np.maximum(t / self.gamma, 0.0)
        with np.errstate(invalid="ignore"):  # inf - inf at infinity
            logs = xlogy(self.beta - 1.0, z) - (1.0 + self.alpha) * self.beta * np.log1p(z)
        logs = logs - betaln(self.beta, self.alpha * self.beta) - np.log(self.gamma)
        return np.where((t < 0) | (z == np.inf), -np.inf, logs)[()]

    def cdf(self, t: ArrayLike) -> Floats:
        """P(S <= t), by the beta distribution of S / (S + γ), or of γ / (S + γ) where that is the smaller."""
        z = np.maximum(np.asarray(t, dtype=np.float64) / self.gamma, 0.0)
        b, ab = self.beta, self.alpha * self.beta
        low = np.minimum(z, 1.0)
        return np.where(z <= 1.0, betainc(b, ab, low / (1.0 + low)), betaincc(ab, b, 1.0 / (1.0 + z)))[()]

    def mean(self) -> Floats:
        """γ β / (α β - 1) where α β > 1, else infinite."""
        excess = self.alpha * self.beta - 1.0
        with np.errstate(divide="ignore"):
            return np.where(excess > 0, self.gamma * self.beta / np.maximum(excess, 0.0), np.inf)[()]

    def rvs(self, size: Any = None, *, random_state: Any = 0) -> Floats:
        """Draws of shape `size` (that of the parameters if left out).

        The tail is heavy where α β is small: what exceeds the largest float comes out infinite.

        Parameters
        ----------
        size : int or tuple of int, optional
        random_state : int, Generator or None

        Returns
        -------
        draws : array of shape `size`
        """
        rng = as_generator(random_state)
        shape = np.broadcast_shapes(self.beta.shape, self.alpha.shape, self.gamma.shape) if size is None else size
        log_ratio = _log_gamma_draws(self.beta, shape, rng) - _log_gamma_draws(self.alpha * self.beta, shape, rng)
        with np.errstate(over="ignore"):
            return np.exp(np.log(self.gamma) + log_ratio)


class HGGPDraw(NamedTuple):
    """One draw of the hierarchical gamma-gamma process.

    states : (S, K + 1) states s_0, ..., s_K of each sequence, numbered 0, 1, ... as they appear; a state may follow
    itself.
    dwell_times : (S, K) dwell_times[i, k] is the time in states[i, k] before the jump to states[i, k + 1].
    kappa0 : κ_0 = ‖μ_0‖, mass of the base measure.
    masses : (M,) ‖μ_m‖ of each state seen: its dwells are Gamma(β, ‖μ_m‖), with mean β / ‖μ_m‖.
    """

    states: NDArray[np.int64]
    dwell_times: Floats
    kappa0: float
    masses: Floats


def simulate_hggp(
    n_jumps: int, *, n_sequences: int = 1, beta: float = 1.0, alpha0: float = 1.0, gamma0: float = 1.0,
    gamma: float = 1.0, kappa0: float | None = None, random_state: Any = 0,
) -> HGGPDraw:  # fmt: skip
    """Draw state and dwell sequences from the hierarchical gamma-gamma process, exactly.

    μ_0 ~ ΓP(α_0 H_0, γ_0) and μ_i | μ_0 ~ ΓP(β μ_0, γ); then s_k ~ μ_{s_{k-1}} / ‖μ_{s_{k-1}}‖ and
    t_k ~ Gamma(β, ‖μ_{s_{k-1}}‖), shape and rate. The sequences of one draw share the measures, hence the states.
    β = 1 gives the hierarchical gamma-exponential process.

    Parameters
    ----------
    n_jumps, n_sequences : int
        K jumps in each of S sequences.
    beta : float
        β, shape of the dwells: their variance given the measures is mean² / β.
    alpha0 : float
        α_0, concentration: the more, the more states.
    gamma0 : float
        γ_0, rate of the base measure: its mass κ_0 has mean α_0 / γ_0.
    gamma : float
        γ, rate of the states' measures, a time: given κ_0, dwells are of the order of γ / κ_0.
    kappa0 : float, optional
        κ_0, mass of the base measure; drawn from Gamma(α_0, γ_0) if left out.
    random_state : int, Generator or None

    Returns
    -------
    draw : HGGPDraw
        `states` (S, K + 1), `dwell_times` (S, K), `kappa0` and `masses` (M,).

    Notes
    -----
    Nothing is truncated: the infinite measures are integrated out, and only finitely many numbers remain.

    *Masses and directions part.* A gamma process with base measure H has mass Gamma(‖H‖, rate), independent of its
    normalised measure, a Dirichlet process DP(H). So κ_0 ~ Gamma(α_0, γ_0), ‖μ_m‖ ~ Gamma(β κ_0, γ), and
    given κ_0 the states depend on the directions alone, and the dwells, given the states, on the masses alone.

    *Dwells.* ‖μ_m‖ is drawn once for each state seen, then the dwells given it. By the supplement's proposition on
    conjugacy, ‖μ_m‖ given K dwells of total T is Gamma(β (κ_0 + K), γ + T); hence its other two: the next dwell is
    STP(β, κ_0 + K, γ + T), see `ShapedTranslatedPareto`, and the dwells of a state are exchangeable. No step here
    uses them, so that the tests can hold the draws against them.

    *States.* With the directions integrated out they follow the Chinese restaurant franchise, drawn here as two
    levels of Pólya urns. From state m, left K times before, one of the K earlier destinations follows with
    probability K / (β κ_0 + K), each equally likely; otherwise a new draw from the base measure. That is one of the
    n earlier such draws with probability n / (α_0 + n), each equally likely, otherwise a new state. The first state
    of each sequence, which the paper takes as known, is a draw from the base measure too: so it can come back.

    *Deviation.* For β ≠ 1 conjugacy as printed (given the past, μ_m ~ ΓP(β (μ_0 + F_m), γ + T_m), with F_m the counts
    of destinations) holds for the mass but not for the direction, whose posterior is DP(β μ_0 + F_m): the definition
    draws states from the measure itself. The printed form belongs to a state likelihood raised to the power β,
    which is no probability; the supplement's own integrated likelihood has Γ(β κ_0 + K_m), as here.

    *Self-jumps* are part of the process (μ_m has an atom at m) and are kept. A trajectory in the sense of
    `Trajectories` comes from adding up the dwells of runs of one state.

    A mass below the smallest float comes out as 0, a dwell beyond the largest as infinite: with κ_0 well below 1,
    dwells are that heavy-tailed.

    Examples
    --------
    >>> from jumpmeans.model.gamma_process import simulate_hggp
    >>> draw = simulate_hggp(4, n_sequences=3, beta=2.0, alpha0=2.0, random_state=1)
    >>> draw.states.shape, draw.dwell_times.shape, draw.masses.shape
    ((3, 5), (3, 4), (5,))
    """
    for n in (n_jumps, n_sequences):
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(
                f"n_jumps and n_sequences must be integers of at least 1, got {n_jumps!r} and {n_sequences!r}."
            )
    numbers = {"beta": beta, "alpha0": alpha0, "gamma0": gamma0, "gamma": gamma}
    numbers |= {} if kappa0 is None else {"kappa0": kappa0}
    for name, value in numbers.items():
        if not isinstance(value, int | float | np.number):
            raise ValueError(f"{name} must be one number, got {value!r}.")
    _require_positive(**numbers)
    rng = as_generator(random_state)
    if kappa0 is None:
        kappa0 = float(np.exp(_log_gamma_draws(alpha0, (), rng) - np.log(gamma0)))
    states = _draw_states(n_jumps, n_sequences, alpha0, beta * kappa0, rng)
    log_masses = _log_gamma_draws(beta * kappa0, states.max() + 1, rng) - np.log(gamma)
    log_dwells = _log_gamma_draws(beta, (n_sequences, n_jumps), rng)
    if np.any(np.isinf(log_dwells) & np.isinf(log_masses[states[:, :-1]])):
        raise ValueError(
            f"beta must be such that floats can hold the dwells or the masses, got {beta!r} with kappa0={kappa0:g}."
        )
    log_dwells -= log_masses[states[:, :-1]]
    with np.errstate(over="ignore"):
        return HGGPDraw(states, np.exp(log_dwells), float(kappa0), np.exp(log_masses))


def _draw_states(
    n_jumps: int, n_sequences: int, alpha0: float, concentration: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """(S, K + 1) states from rows DP(concentration, base) with base DP(alpha0, H_0): urns fed by an urn."""
    base: list[int] = []  # states drawn from the base measure so far
    rows: list[list[int]] = []  # destinations so far from each state

    def from_base(u: float) -> int:
        place = u * (alpha0 + len(base))
        if place < len(base):
            state = base[int(place)]
        else:
            state = len(rows)
            rows.append([])
        base.append(state)
        return state

    states = np.empty((n_sequences, n_jumps + 1), dtype=np.int64)
    for sequence in states:
        uniforms = rng.random((n_jumps + 1, 2)).tolist()
        state = sequence[0] = from_base(uniforms[0][0])
        for k in range(1, n_jumps + 1):
            row = rows[state]
            place = uniforms[k][1] * (concentration + len(row))
            state = row[int(place)] if place < len(row) else from_base(uniforms[k][0])
            row.append(state)
            sequence[k] = state
    return states
