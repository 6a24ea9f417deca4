"""The prior: the supplement's propositions by quadrature, the simulator against them, both small-variance limits."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import dblquad, quad
from scipy.special import gammaincc, gammaln, logsumexp

from jumpmeans.model.gamma_process import ShapedTranslatedPareto, simulate_hggp
from jumpmeans.model.objective import Prices, complete_cost, prior_cost, running_cost

LAWS = [(1.0, 1.5, 1.0), (0.6, 0.8, 3.0), (3.0, 2.0, 0.2), (12.0, 0.4, 50.0)]  # β, α, γ
PARTS = (0.0, 1e-3, 0.1, 1.0, 10.0, 1e3)


def integrate(f, scale=1.0):
    """∫ f over (0, ∞), piece by piece."""
    cuts = [scale * part for part in (*PARTS, np.inf)]
    return sum(quad(f, lo, hi, epsabs=1e-13, epsrel=1e-11)[0] for lo, hi in itertools.pairwise(cuts))


def uniform(pits):
    return stats.kstest(pits, "uniform").pvalue


# ------------------------------------------------------- shaped translated Pareto


@pytest.mark.parametrize("law", LAWS)
def test_density_is_the_gamma_gamma_mixture(law):
    beta, alpha, gamma = law
    stp = ShapedTranslatedPareto(*law)
    assert integrate(lambda t: math.exp(stp.logpdf(t)), gamma / alpha) == pytest.approx(1, rel=1e-7)
    rate = stats.gamma(alpha * beta, scale=1 / gamma)
    for t in gamma * np.array([0.05, 0.7, 4.0]):
        mixture = integrate(lambda x, t=t: stats.gamma.pdf(t, beta, scale=1 / x) * rate.pdf(x), rate.mean())
        assert math.exp(stp.logpdf(t)) == pytest.approx(mixture, rel=1e-8)


@pytest.mark.parametrize("law", LAWS)
def test_distribution_function(law):
    beta, alpha, gamma = law
    stp = ShapedTranslatedPareto(*law)
    t = gamma * np.array([0.01, 0.5, 1.0, 2.0, 30.0])
    np.testing.assert_allclose(stp.cdf(t), stats.beta.cdf(t / (t + gamma), beta, alpha * beta), rtol=1e-10)
    for upper in t:
        area = sum(
            quad(lambda x: math.exp(stp.logpdf(x)), lo, hi, epsabs=0, epsrel=1e-10)[0]
            for lo, hi in itertools.pairwise([0, *t[t <= upper]])
        )
        assert stp.cdf(upper) == pytest.approx(area, rel=1e-7)
    assert uniform(stp.cdf(stp.rvs(5000, random_state=7))) > 0.001


def test_unit_exponent_is_the_lomax_law():
    t = np.array([0.0, 0.1, 1.0, 7.0, 1e6])
    stp, lomax = ShapedTranslatedPareto(1.0, 2.3, 0.7), stats.lomax(2.3, scale=0.7)
    np.testing.assert_allclose(stp.logpdf(t), lomax.logpdf(t), rtol=1e-12)
    np.testing.assert_allclose(stp.cdf(t), lomax.cdf(t), rtol=1e-12)
    assert stp.mean() == pytest.approx(lomax.mean(), rel=1e-12)


def test_mean_where_it_exists():
    stp = ShapedTranslatedPareto(2.0, [1.5, 0.5, 0.3], 4.0)
    np.testing.assert_array_equal(stp.mean(), [4.0, np.inf, np.inf])
    first = ShapedTranslatedPareto(2.0, 1.5, 4.0)
    assert integrate(lambda t: t * math.exp(first.logpdf(t)), 4.0) == pytest.approx(4.0, rel=1e-6)


def test_edges_of_the_support():
    assert ShapedTranslatedPareto(2.0, 1.0, 1.0).logpdf([-1.0, 0.0, np.inf]).tolist() == [-np.inf] * 3
    assert ShapedTranslatedPareto(0.5, 1.0, 1.0).logpdf(0.0) == np.inf
    assert ShapedTranslatedPareto(1.0, 3.0, 2.0).logpdf(0.0) == pytest.approx(math.log(1.5), rel=1e-14)
    assert ShapedTranslatedPareto(2.0, 1.0, 1.0).cdf([-1.0, 0.0, np.inf]).tolist() == [0.0, 0.0, 1.0]
    assert np.isnan(ShapedTranslatedPareto(2.0, 1.0, 1.0).logpdf(np.nan))
    assert np.isnan(ShapedTranslatedPareto(2.0, 1.0, 1.0).cdf(np.nan))


def test_heavy_tail_stays_exact():
    """With αβ = 0.01, S / (S + γ) rounds to 1 while two thirds of the mass are still to come; Lomax at β = 1."""
    stp = ShapedTranslatedPareto(1.0, 0.01, 1.0)
    far = np.array([1e17, 1e100, 1e300])
    np.testing.assert_allclose(stp.cdf(far), -np.expm1(-0.01 * np.log1p(far)), rtol=1e-12)
    draws = ShapedTranslatedPareto(1.0, 0.001, 1.0).rvs(2000, random_state=3)
    assert not np.isnan(draws).any()
    assert np.mean(np.isinf(draws)) == pytest.approx(np.exp(-0.001 * 308.25 * np.log(10)), abs=0.03)


def test_time_unit_and_broadcasting():
    t = np.array([0.2, 3.0])
    law = ShapedTranslatedPareto(1.7, [0.4, 2.0], [1.0, 5.0])
    scaled = ShapedTranslatedPareto(1.7, [0.4, 2.0], [1024.0, 5120.0])
    np.testing.assert_allclose(scaled.logpdf(1024 * t), law.logpdf(t) - math.log(1024), rtol=1e-13)
    np.testing.assert_array_equal(scaled.cdf(1024 * t), law.cdf(t))
    np.testing.assert_allclose(scaled.rvs(random_state=2), 1024 * law.rvs(random_state=2), rtol=1e-13)
    assert law.rvs().shape == (2,) and law.rvs((3, 2)).shape == (3, 2)


# --------------------------------------------------------------- the propositions


def dwells_logpdf(dwells, beta, log_kappa0, gamma, as_printed=False):
    """ln p(t*) of one state, κ_0 by its logarithm so that exp(-ξ_2 β) does not underflow.

    The paper prints it without γ^(β κ_0) / Γ(β κ_0); lnΓ(x) is lnΓ(x + 1) - ln x.
    """
    K, kappa0 = len(dwells), math.exp(log_kappa0)
    log_x = math.log(beta) + log_kappa0
    above = gammaln(beta * (kappa0 + K)) if K else gammaln(beta * kappa0 + 1) - log_x
    value = above - K * gammaln(beta) + (beta - 1) * np.sum(np.log(dwells))
    value -= beta * (kappa0 + K) * math.log(gamma + np.sum(dwells))
    if as_printed:
        return value
    return value + beta * kappa0 * math.log(gamma) - gammaln(beta * kappa0 + 1) + log_x


@pytest.mark.parametrize("beta", [0.5, 1.0, 4.0])
def test_conjugacy_of_the_mass(beta):
    """The prior Gamma(β κ_0, γ) times the likelihood of the dwells, normalised on a grid."""
    kappa0, gamma, dwells = 1.3, 2.0, np.array([0.4, 3.0, 0.9, 1.1])
    x = np.linspace(1e-6, 60, 60_001)
    logs = stats.gamma.logpdf(x, beta * kappa0, scale=1 / gamma)
    logs += sum(stats.gamma.logpdf(t, beta, scale=1 / x) for t in dwells)
    density = np.exp(logs - logs.max())
    density /= np.trapezoid(density, x)
    posterior = stats.gamma(beta * (kappa0 + len(dwells)), scale=1 / (gamma + dwells.sum()))
    np.testing.assert_allclose(density, posterior.pdf(x), atol=1e-6 * posterior.pdf(x).max())


@pytest.mark.parametrize("power", ["as defined", "scaled by beta"])
@pytest.mark.parametrize("beta", [1.0, 3.0])
def test_conjugacy_of_the_measure(beta, power):
    """Two atoms: E[direction | past] is (β μ_0 + F) / (β κ_0 + K), that of DP(β μ_0 + F), by 2-D quadrature.

    The printed (μ_0 + F) / (κ_0 + K), that of ΓP(β (μ_0 + F)), needs a state likelihood raised to the power β.
    """
    mu0, counts, gamma, total = np.array([0.7, 1.1]), np.array([3, 1]), 1.5, 2.4
    K, kappa0 = counts.sum(), mu0.sum()
    e = 1.0 if power == "as defined" else beta

    nodes, node_weights = np.polynomial.legendre.leggauss(120)
    p, x = (nodes[:, None] + 1) / 2, 15 * (nodes + 1)  # direction, mass
    atoms = stats.gamma.pdf(x * p, beta * mu0[0], scale=1 / gamma)
    atoms *= stats.gamma.pdf(x * (1 - p), beta * mu0[1], scale=1 / gamma) * x  # x: the Jacobian
    seen = (p ** counts[0] * (1 - p) ** counts[1]) ** e * x ** (beta * K) * np.exp(-x * total)

    def moment(a, b):
        return float(node_weights @ (atoms * seen * p**a * x**b) @ node_weights)

    mass = moment(0, 0)
    exact = (beta * mu0 + e * counts) / (beta * kappa0 + e * K)
    printed = (mu0 + counts) / (kappa0 + K)
    direction = moment(1, 0) / mass
    mean_mass = beta * (kappa0 + K) / (gamma + total)
    assert direction == pytest.approx(exact[0], rel=1e-6)
    assert moment(0, 1) / mass == pytest.approx(mean_mass, rel=1e-6)
    assert moment(1, 1) / mass == pytest.approx(mean_mass * exact[0], rel=1e-6)  # mass and direction independent
    assert (abs(direction - printed[0]) < 1e-6) == (beta == 1 or power == "scaled by beta")


def predictives(dwells, beta, kappa0, gamma):
    """Σ ln of the predictive densities, one dwell after the other."""
    before = np.concatenate([[0.0], np.cumsum(dwells)[:-1]])
    return ShapedTranslatedPareto(beta, kappa0 + np.arange(len(dwells)), gamma + before).logpdf(dwells).sum()


@pytest.mark.parametrize("beta", [0.7, 1.0, 5.0])
def test_product_of_predictives_is_the_joint_and_exchangeable(beta, rng):
    kappa0, gamma, dwells = 0.8, 1.7, rng.exponential(size=4)
    joint = dwells_logpdf(dwells, beta, math.log(kappa0), gamma)
    for order in itertools.permutations(range(4)):
        assert predictives(dwells[list(order)], beta, kappa0, gamma) == pytest.approx(joint, rel=1e-11)
    # ‖μ-bar'‖ = 1 at every step, as printed, gives neither that joint nor an exchangeable one
    printed = [
        ShapedTranslatedPareto(beta, 1.0, gamma + np.cumsum(t) - t).logpdf(t).sum() for t in (dwells, dwells[::-1])
    ]
    assert abs(printed[0] - joint) > 0.01 and abs(printed[1] - printed[0]) > 0.01


def test_joint_is_normalised():
    """∫∫ p(t_1, t_2) = 1 in u = t / (t + γ); without γ^(β κ_0) / Γ(β κ_0), as printed, it is not."""
    beta, kappa0, gamma = 2.0, 1.4, 0.6

    def density(u, v, as_printed):
        t = gamma * np.array([u / (1 - u), v / (1 - v)])
        jacobian = gamma**2 / ((1 - u) * (1 - v)) ** 2
        return math.exp(dwells_logpdf(t, beta, math.log(kappa0), gamma, as_printed)) * jacobian

    for as_printed, area in ((False, 1.0), (True, math.gamma(beta * kappa0) * gamma ** (-beta * kappa0))):
        assert dblquad(density, 0, 1, 0, 1, args=(as_printed,), epsrel=1e-6)[0] == pytest.approx(area, rel=1e-4)


def test_joint_is_the_mixture_over_the_mass():
    beta, kappa0, gamma, dwells = 1.6, 0.9, 2.0, [0.5, 1.4, 0.1]
    rate = stats.gamma(beta * kappa0, scale=1 / gamma)
    mixture = integrate(lambda x: rate.pdf(x) * np.prod(stats.gamma.pdf(dwells, beta, scale=1 / x)))
    assert math.exp(dwells_logpdf(dwells, beta, math.log(kappa0), gamma)) == pytest.approx(mixture, rel=1e-8)


# ----------------------------------------------------------------- the simulator


def stirling(n, m):
    """Unsigned Stirling number of the first kind: ways to seat n customers at m tables."""
    if n == 0 or m == 0:
        return int(n == m)
    return stirling(n - 1, m - 1) + (n - 1) * stirling(n - 1, m)


def log_state_law(sequences, log_alpha0, log_concentration):
    """Exact ln P(states), labels in order of appearance: the franchise, summed over all seatings.

    Row m seats n_mj customers of dish j at any number of tables, which are the customers of the base.
    """
    alpha0, c = math.exp(log_alpha0), math.exp(log_concentration)
    M = max(max(sequence) for sequence in sequences) + 1
    counts = np.zeros((M, M), dtype=int)
    for sequence in sequences:
        for i, j in itertools.pairwise(sequence):
            counts[i, j] += 1
    starts = np.bincount([sequence[0] for sequence in sequences], minlength=M)
    cells = [tuple(cell) for cell in np.argwhere(counts)]
    terms = []
    for tables in itertools.product(*(range(1, counts[cell] + 1) for cell in cells)):
        served = starts.copy()
        value = sum(gammaln(c + 1) - gammaln(c + n) - log_concentration for n in counts.sum(axis=1) if n)
        for (i, j), m in zip(cells, tables, strict=True):
            served[j] += m
            value += math.log(stirling(int(counts[i, j]), m)) + m * log_concentration
        value += (M - 1) * log_alpha0 + gammaln(alpha0 + 1) - gammaln(alpha0 + served.sum())
        terms.append(value + gammaln(served).sum())
    return float(logsumexp(terms))


def all_patterns(n):
    """Every sequence of n labels numbered as they appear."""
    patterns = [(0,)]
    for _ in range(n - 1):
        patterns = [(*p, s) for p in patterns for s in range(max(p) + 2)]
    return patterns


def test_repeating_the_last_move():
    """One sequence, two jumps: P(s_2 = 0 | s_0 = s_1 = 0) in closed form, by the moments of the Dirichlet process.

    E Σ p_j² = 1 / (1 + α_0) and E Σ p_j³ = 2 / ((1 + α_0)(2 + α_0)); a row makes the same move twice with probability
    p (c p + 1) / (c + 1).
    """
    alpha0, beta, kappa0, n, rng = 1.5, 2.0, 0.6, 6000, np.random.default_rng(1)
    c = beta * kappa0
    draws = [simulate_hggp(2, beta=beta, alpha0=alpha0, kappa0=kappa0, random_state=rng).states[0] for _ in range(n)]
    stays = [s for s in draws if s[1] == 0]
    repeat = (2 * c / (2 + alpha0) + 1) / (c + 1)
    assert log_state_law([(0, 0, 0)], math.log(alpha0), math.log(c)) == pytest.approx(math.log(repeat / (1 + alpha0)))
    assert stats.binomtest(len(stays), n, 1 / (1 + alpha0)).pvalue > 0.001
    assert stats.binomtest(sum(s[2] == 0 for s in stays), len(stays), repeat).pvalue > 0.001


@pytest.mark.parametrize(("beta", "alpha0"), [(1.0, 1.0), (4.0, 0.5)])
def test_states_follow_the_franchise(beta, alpha0):
    """Two sequences of two jumps that share the measures: all 203 patterns against the exact law."""
    kappa0, n, rng = 0.7, 8000, np.random.default_rng(2)
    law = {
        p: math.exp(log_state_law([p[:3], p[3:]], math.log(alpha0), math.log(beta * kappa0))) for p in all_patterns(6)
    }
    assert sum(law.values()) == pytest.approx(1, rel=1e-12)
    seen = dict.fromkeys(law, 0)
    for _ in range(n):
        draw = simulate_hggp(2, n_sequences=2, beta=beta, alpha0=alpha0, kappa0=kappa0, random_state=rng)
        seen[tuple(draw.states.ravel().tolist())] += 1
    common = [p for p in law if n * law[p] >= 10]
    observed = [seen[p] for p in common]
    expected = [n * law[p] for p in common]
    observed, expected = [*observed, n - sum(observed)], [*expected, n - sum(expected)]
    assert len(common) > 40
    assert stats.chisquare(observed, expected).pvalue > 0.001


def test_against_the_definition():
    """The measures themselves drawn on 400 atoms, then two jumps: same law of (states, dwells) to O(1/400)."""
    beta, alpha0, kappa0, gamma, n, rng = 2.5, 1.2, 0.9, 2.0, 5000, np.random.default_rng(3)

    def summary(states, dwells):
        kinds = np.array([100 * (s[1] == s[0]) + 10 * (s[2] == s[0]) + (s[2] == s[1]) for s in states])
        return kinds, np.log(dwells)

    base = rng.dirichlet(np.full(400, alpha0 / 400), n)

    def pick(weights):
        sums = np.cumsum(weights, axis=1)
        return (rng.random(n)[:, None] * sums[:, -1:] >= sums).sum(axis=1)

    s0 = pick(base)
    mu0 = rng.standard_gamma(beta * kappa0 * base) / gamma
    s1 = pick(mu0)
    again = (s1 == s0)[:, None]
    mu1 = np.where(again, mu0, rng.standard_gamma(beta * kappa0 * base) / gamma)
    s2 = pick(mu1)
    dwells = np.column_stack([rng.standard_gamma(beta, n) / mu.sum(axis=1) for mu in (mu0, mu1)])
    kinds, logs = summary(np.column_stack([s0, s1, s2]), dwells)
    options = {"beta": beta, "alpha0": alpha0, "kappa0": kappa0, "gamma": gamma, "random_state": rng}
    draws = [simulate_hggp(2, **options) for _ in range(n)]
    our_kinds, our_logs = summary([d.states[0] for d in draws], np.array([d.dwell_times[0] for d in draws]))
    labels = np.unique(kinds)
    table = [[np.sum(k == label) for label in labels] for k in (kinds, our_kinds)]
    assert len(labels) == 5
    assert stats.chi2_contingency(table).pvalue > 0.001
    for label in labels:  # within each pattern: t_1, t_2 and how they hang together
        a, b = logs[kinds == label], our_logs[our_kinds == label]
        for f in ([1, 0], [0, 1], [1, -1]):
            assert stats.ks_2samp(a @ f, b @ f).pvalue > 0.001


def dwell_pits(draw, beta, gamma):
    """Each dwell through its predictive STP given all earlier ones of its state: independent uniforms."""
    K, T = np.zeros(len(draw.masses)), np.zeros(len(draw.masses))
    before = []
    for s, t in zip(draw.states[:, :-1].ravel(), draw.dwell_times.ravel(), strict=True):
        before.append((K[s], T[s]))
        K[s] += 1
        T[s] += t
    counts, totals = np.array(before).T
    return ShapedTranslatedPareto(beta, draw.kappa0 + counts, gamma + totals).cdf(draw.dwell_times.ravel())


@pytest.mark.parametrize("beta", [0.6, 1.0, 5.0])
def test_dwells_follow_the_predictive_law(beta):
    rng = np.random.default_rng(4)
    first, second, every = [], [], []
    for _ in range(2000):  # κ_0 drawn anew each time; the first dwell of state 0, and the second given it
        draw = simulate_hggp(2, beta=beta, alpha0=2.0, gamma0=0.5, gamma=2.0, random_state=rng)
        pits = dwell_pits(draw, beta, 2.0)
        every.extend(pits)
        if draw.states[0, 1] == 0:
            first.append(pits[0])
            second.append(pits[1])
    assert uniform(first) > 0.001 and uniform(second) > 0.001 and uniform(every) > 0.001
    assert stats.spearmanr(first, second).pvalue > 0.001


def test_dwells_of_a_long_draw():
    draw = simulate_hggp(800, n_sequences=3, beta=2.0, alpha0=4.0, gamma=0.5, random_state=11)
    assert len(draw.masses) > 8
    assert uniform(dwell_pits(draw, 2.0, 0.5)) > 0.001


def test_dwells_are_exchangeable():
    """With a negligible α_0 there is one state; its dwells (t_1, t_2, t_3) have one law in any order."""
    rng = np.random.default_rng(5)
    options = {"beta": 1.5, "alpha0": 1e-12, "kappa0": 1.2, "gamma": 3.0, "random_state": rng}
    draws = [simulate_hggp(3, **options) for _ in range(6000)]
    assert all((draw.states == 0).all() for draw in draws)
    t = np.log([draw.dwell_times[0] for draw in draws])
    half = len(t) // 2
    for i, j in ((0, 1), (1, 2), (0, 2)):
        assert stats.ks_2samp(t[:half, i], t[half:, j]).pvalue > 0.001
        assert stats.ks_2samp((t[:, i] - t[:, j])[:half], (t[:, j] - t[:, i])[half:]).pvalue > 0.001
    # exchangeable, not independent: they share their mass
    assert np.corrcoef(t[:, 0], t[:, 1])[0, 1] > 0.1


def test_masses():
    rng = np.random.default_rng(6)
    draws = [simulate_hggp(1, beta=2.0, alpha0=3.5, gamma0=3.0, gamma=0.5, random_state=rng) for _ in range(4000)]
    kappa0, masses, dwells = np.array([(d.kappa0, d.masses[0], d.dwell_times[0, 0]) for d in draws]).T
    assert stats.kstest(kappa0, stats.gamma(3.5, scale=1 / 3.0).cdf).pvalue > 0.001
    assert uniform(stats.gamma.cdf(masses, 2 * kappa0, scale=2.0)) > 0.001
    assert uniform(stats.gamma.cdf(dwells * masses, 2.0)) > 0.001


def test_unit_beta_is_the_gamma_exponential_process():
    """Exponential dwells given the masses, translated Pareto without, next state F + μ_0 over K + κ_0."""
    rng = np.random.default_rng(7)
    options = {"beta": 1.0, "alpha0": 1e-12, "kappa0": 0.8, "gamma": 2.0}
    draws = [simulate_hggp(1, **options, random_state=rng) for _ in range(4000)]
    t = np.array([draw.dwell_times[0, 0] for draw in draws])
    masses = np.array([draw.masses[0] for draw in draws])
    assert stats.kstest(t * masses, "expon").pvalue > 0.001
    assert stats.kstest(t, stats.lomax(0.8, scale=2.0).cdf).pvalue > 0.001
    default = simulate_hggp(50, random_state=8)
    unit = simulate_hggp(50, beta=1.0, random_state=8)
    np.testing.assert_array_equal(default.dwell_times, unit.dwell_times)


def test_dwells_concentrate_as_beta_grows():
    draw = simulate_hggp(300, beta=1e6, kappa0=2.0, alpha0=3.0, gamma=5.0, random_state=9)
    np.testing.assert_allclose(draw.dwell_times, 5.0 / 2.0, rtol=0.02)


def test_record_of_a_draw():
    draw = simulate_hggp(40, n_sequences=5, alpha0=3.0, random_state=10)
    assert draw.states.shape == (5, 41) and draw.states.dtype == np.int64
    assert draw.dwell_times.shape == (5, 40) and draw.dwell_times.dtype == np.float64
    assert np.all(draw.dwell_times > 0)
    labels, first = np.unique(draw.states, return_index=True)
    np.testing.assert_array_equal(labels, np.arange(len(draw.masses)))
    assert np.all(np.diff(first) > 0)  # numbered as they appear
    assert np.any(draw.states[:, 1:] == draw.states[:, :-1])  # self-jumps are kept
    assert all(set(draw.states[0]) & set(sequence) for sequence in draw.states)
    assert simulate_hggp(3, kappa0=0.25).kappa0 == 0.25


def test_seed_decides():
    def draw(seed):
        return simulate_hggp(30, n_sequences=2, beta=2.0, random_state=seed)

    one, same, other = draw(3), draw(3), draw(4)
    generator = draw(np.random.default_rng(3))
    for a, b, c, d in zip(one, same, generator, other, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a, c)
        assert not np.array_equal(a, d)


def test_extreme_parameters_give_no_nan():
    for beta, alpha0, gamma in itertools.product((1e-6, 1.0, 1e6), (1e-6, 1e3), (1e-200, 1e200)):
        draw = simulate_hggp(20, n_sequences=2, beta=beta, alpha0=alpha0, gamma=gamma, random_state=0)
        assert not np.isnan(draw.dwell_times).any() and np.all(draw.dwell_times >= 0)
        assert not np.isnan(draw.masses).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_jumps": 0}, r"n_jumps and n_sequences must be integers of at least 1, got 0 and 1\."),
        ({"n_sequences": 0}, r"n_jumps and n_sequences must be integers of at least 1, got 5 and 0\."),
        ({"n_jumps": 2.5}, r"n_jumps and n_sequences must be integers of at least 1, got 2\.5 and 1\."),
        ({"n_jumps": None}, "must be integers of at least 1, got None and 1"),
        ({"beta": [1.0, 2.0]}, r"beta must be one number, got \[1\.0, 2\.0\]"),
        ({"kappa0": "large"}, "kappa0 must be one number, got 'large'"),
        ({"alpha0": 10**400}, "alpha0 must be positive and finite, got 1000"),
        ({"beta": 5e-324}, "beta must be such that floats can hold the dwells or the masses, got 5e-324"),  # was NaN
        ({"random_state": -1}, "random_state must be an integer >= 0, a Generator or None, got -1"),
        ({"beta": 0.0}, r"beta must be positive and finite, got 0\.0\."),
        ({"alpha0": -1.0}, r"alpha0 must be positive and finite, got -1\.0\."),
        ({"gamma0": np.inf}, r"gamma0 must be positive and finite, got inf\."),
        ({"gamma": np.nan}, r"gamma must be positive and finite, got nan\."),
        ({"kappa0": 0.0}, r"kappa0 must be positive and finite, got 0\.0\."),
    ],
)
def test_simulation_errors(options, message):
    with pytest.raises(ValueError, match=message):
        simulate_hggp(**{"n_jumps": 5} | options)


@pytest.mark.parametrize("position", range(3))
def test_distribution_errors(position):
    values = [1.0, 1.0, 1.0]
    values[position] = 0.0
    with pytest.raises(ValueError, match=("beta", "alpha", "gamma")[position] + " must be positive and finite, got 0"):
        ShapedTranslatedPareto(*values)
    with pytest.raises(ValueError, match=r"alpha must be positive and finite, got \[ 1\. -2\.\]\."):
        ShapedTranslatedPareto(1.0, [1.0, -2.0], 1.0)


# -------------------------------------------------------------------- the limits

BETAS = 10.0 ** np.arange(1, 8)
XI1, XI2, GAMMA = 0.7, 1.3, 2.0
DWELLS = [np.array([0.4, 2.0, 1.1]), np.array([5.0]), np.array([0.02, 0.3, 0.8, 0.05, 0.3])]
OTHER = [np.array([1.4, 0.2, 3.1]), np.array([0.6]), np.array([0.2, 0.1, 1.8, 0.5, 0.9])]


def assert_limit(at, limit):
    """at(β) → limit, with an error of at most 10 ln β / β over six decades of β."""
    errors = np.array([abs(at(beta) - limit) for beta in BETAS])
    assert np.all(errors <= 10 * np.log(BETAS) / BETAS), errors


def kept(dwells, kappa0):
    """(K + κ_0) ln((γ + T) / (K + κ_0)) - Σ ln t, the dwell term with κ_0, as the library has it."""
    return sum((len(t) + kappa0) * math.log((GAMMA + t.sum()) / (len(t) + kappa0)) - np.log(t).sum() for t in dwells)


def printed(dwells):
    """K ln((γ + T) / K) - Σ ln t, the dwell term as printed."""
    return kept(dwells, 0.0)


def dwells_cost(dwells, beta, log_kappa0, as_printed=False):
    return -sum(dwells_logpdf(t, beta, log_kappa0, GAMMA, as_printed) for t in dwells) / beta


@pytest.mark.parametrize("z", [0.05, 0.6, 1.0, 1.8, 9.0])
def test_limit_of_a_complete_dwell(z):
    """-ln f(t; λ, β) / β → h(λ t), f the scaled exponential Gamma(β, β λ)."""
    lam = 0.3
    assert_limit(lambda b: -stats.gamma.logpdf(z / lam, b, scale=1 / (b * lam)) / b, complete_cost(z))


def log_survival(beta, z):
    """ln{Γ(β, βz) / Γ(β)}; above the mean by x^β e^-x / Γ(β) times ∫ e^-u (1 + u/x)^(β - 1) du / x."""
    if z <= 1:
        return math.log(gammaincc(beta, beta * z))
    x = beta * z
    scale = 1 / (1 - 1 / z)
    f = lambda v: math.exp(-v * scale + (beta - 1) * math.log1p(v * scale / x))
    return beta * math.log(x) - x - gammaln(beta) - math.log(x) + math.log(scale * quad(f, 0, np.inf)[0])


@pytest.mark.parametrize("z", [0.05, 0.6, 1.0, 1.4, 9.0])
def test_limit_of_a_running_dwell(z):
    """-ln(1 - F(y; λ, β)) / β → g(λ y)."""
    assert log_survival(5.0, z) == pytest.approx(math.log(gammaincc(5.0, 5.0 * z)), rel=1e-8)
    assert_limit(lambda b: -log_survival(b, z) / b, running_cost(z))


def test_limit_of_the_rate_prior():
    """λ = ‖μ‖ / β ~ Gamma(β κ_0, β γ): in the limit κ_0 h(γ λ / κ_0), the library's prior with a = κ_0, b = γ."""
    prices = Prices(1.0, np.ones(1), XI2, GAMMA, 0.0)
    for lam in (0.1, 0.65, 3.0):
        limit = prior_cost(np.array([lam]), prices)
        assert_limit(lambda b, lam=lam: -stats.gamma.logpdf(lam, b * XI2, scale=1 / (b * GAMMA)) / b, limit)


def test_limit_of_the_dwells_with_a_fixed_mass():
    """κ_0 = ξ_2: -ln p(t*) / β → Σ_m {kept - κ_0 ln(γ / κ_0)} = Σ_m min_λ {Σ h(λ t) + κ_0 h(γ λ / κ_0)}."""
    prices = Prices(1.0, np.ones(1), XI2, GAMMA, 0.0)
    limit = kept(DWELLS, XI2) - len(DWELLS) * XI2 * math.log(GAMMA / XI2)
    rates = np.array([(len(t) + XI2) / (t.sum() + GAMMA) for t in DWELLS])
    objective = sum(complete_cost(lam * x) for lam, t in zip(rates, DWELLS, strict=True) for x in t)
    assert limit == pytest.approx(objective + prior_cost(rates, prices), rel=1e-12)
    assert_limit(lambda b: dwells_cost(DWELLS, b, math.log(XI2)), limit)


def test_printed_dwell_term_is_not_that_limit():
    """Between two sets of times the constants cancel: the difference tends to that of `kept`, not of `printed`."""
    change = kept(DWELLS, XI2) - kept(OTHER, XI2)
    for as_printed in (False, True):  # the factor that the paper leaves out cancels too
        assert_limit(
            lambda b, p=as_printed: dwells_cost(DWELLS, b, math.log(XI2), p) - dwells_cost(OTHER, b, math.log(XI2), p),
            change,
        )
    assert abs(change - (printed(DWELLS) - printed(OTHER))) > 0.1


def test_left_out_factor_diverges():
    """Without γ^(β κ_0) / Γ(β κ_0), -ln p(t*) / β runs off by -κ_0 ln β for each state."""

    def drift(b):
        return dwells_cost(DWELLS, b, math.log(XI2), as_printed=True) + len(DWELLS) * XI2 * (math.log(b) - 1)

    assert_limit(drift, kept(DWELLS, XI2))


@pytest.mark.parametrize("as_printed", [False, True])
def test_limit_of_the_dwells_with_a_vanishing_mass(as_printed):
    """κ_0 = exp(-ξ_2 β): the printed dwell term, plus ξ_2 for each state left if p(t*) is normalised."""
    extra = 0.0 if as_printed else XI2 * len(DWELLS)
    assert_limit(lambda b: dwells_cost(DWELLS, b, -XI2 * b, as_printed), printed(DWELLS) + extra)
    assert dwells_cost([np.array([])], 1e4, -XI2 * 1e4) == pytest.approx(0.0, abs=1e-12)


def test_kept_term_tends_to_the_printed_one():
    """The limit with κ_0 fixed, constants and all, goes to the printed one as κ_0 → 0."""
    for kappa0 in (1e-2, 1e-4, 1e-6):
        limit = kept(DWELLS, kappa0) - len(DWELLS) * kappa0 * math.log(GAMMA / kappa0)
        assert abs(limit - printed(DWELLS)) < 10 * len(DWELLS) * kappa0 * math.log(1 / kappa0)


SEQUENCES = [(0, 1, 0, 2, 1, 0), (2, 2, 0, 1, 3)]  # 0 -> 1, 2; 1 -> 0, 3; 2 -> 0, 1, 2; 3 is never left
PAIRS, LEFT, STATES = 7, 3, 4


def test_limit_of_the_states():
    """α_0 = exp(-ξ_1 β), κ_0 = exp(-ξ_2 β): ξ_1 (M - 1) + ξ_2 Σ (r_m - 1), over the states that are left."""
    limit = XI1 * (STATES - 1) + XI2 * (PAIRS - LEFT)
    assert_limit(lambda b: -log_state_law(SEQUENCES, -XI1 * b, math.log(b) - XI2 * b) / b, limit)


def test_limit_of_the_integrated_prior():
    """States and dwells together: ξ_1 (M - 1) + ξ_2 Σ r_m + the printed dwell term; the paper has r_m - 1 for r_m."""

    def at(b):
        states = -log_state_law(SEQUENCES, -XI1 * b, math.log(b) - XI2 * b) / b
        return states + dwells_cost([*DWELLS, np.array([])], b, -XI2 * b)

    assert_limit(at, XI1 * (STATES - 1) + XI2 * PAIRS + printed(DWELLS))


def test_limit_of_the_rows():
    """κ_0 = ξ_2: -ln Dir(π_m | β κ_0 π_0) / β → ξ_2 KL(π_0 ‖ π_m), and ξ_1 for each stick of GEM(exp(-ξ_1 β))."""
    base, row = np.array([0.5, 0.2, 0.25, 0.05]), np.array([0.1, 0.6, 0.1, 0.2])
    divergence = float(np.sum(base * np.log(base / row)))
    assert_limit(lambda b: -stats.dirichlet.logpdf(row, b * XI2 * base) / b, XI2 * divergence)

    def sticks(b):  # Beta(v | 1, α_0) = α_0 (1 - v)^(α_0 - 1)
        rest = np.concatenate([[1.0], 1.0 - np.cumsum(base[:-1])])
        ratio = rest[1:] / rest[:-1]
        return -sum(-XI1 * b + (math.exp(-XI1 * b) - 1) * math.log(r) for r in ratio) / b

    assert_limit(sticks, XI1 * 3)
