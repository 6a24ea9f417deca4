"""R̂ by hand. Its statistical behaviour is tested beside the samplers."""

import numpy as np
import pytest
from scipy.stats import norm

from jumpmeans.comparators.diagnostics import split_r_hat


def test_r_hat_of_four_draws_by_hand():
    """One chain 1, 2, 3, 4: halves (1, 2) and (3, 4), each of n = 2.

    Ranks r have the scores z = Φ^{-1}((r - 3/8) / 4.25): -b, -a, a, b with a = .2993, b = 1.0491. Within: (b - a)²/2;
    means ± (a + b)/2, so between: (a + b)²/2; R̂² = (n - 1)/n + between / within. Distances to the median are equal
    in both halves, and their R̂ is below 1. Caught: R̂ without (n - 1)/n, 2.058 instead of 1.932.
    """
    a, b = norm.ppf((3 - 0.375) / 4.25), norm.ppf((4 - 0.375) / 4.25)
    expected = np.sqrt(1 / 2 + ((a + b) / (b - a)) ** 2)
    np.testing.assert_allclose(expected, 1.932, atol=5e-4)
    np.testing.assert_allclose(split_r_hat([[1.0, 2.0, 3.0, 4.0]]), expected, rtol=1e-12)


@pytest.mark.parametrize("n", [4, 6, 20])
def test_r_hat_of_halves_that_are_equal(n):
    """Nothing between the halves: R̂ is √((n - 1)/n) with n draws a half, a little below 1."""
    half = np.arange(n // 2, dtype=float)
    np.testing.assert_allclose(split_r_hat([[*half, *half]]), np.sqrt((n / 2 - 1) / (n / 2)), rtol=1e-12)
