"""What a row's values say of each state, as numbers that a thread makes itself: costs, and log-densities.

Columns are spoken of by the forms and tables of `jumpmeans.forms`. The form GIVEN stands for all columns together: a
table of all rows and states that was made elsewhere, for families that have no formula.
"""

import math

import numpy as np
from numba import cuda

from ...forms import EXPONENTIAL, POISSON, QUADRATIC, TABLE
from .arithmetic import lgamma, log

GIVEN = "given"
FORMS = (QUADRATIC, TABLE, POISSON, EXPONENTIAL)


def make_value(form, real):
    """value(x, theta, s) of one column."""
    zero, one = real(0.0), real(1.0)

    if form == QUADRATIC:

        def value(x, theta, s):
            d = x - theta[2, s]
            return theta[0, s] + theta[1, s] * (d * d) + theta[3, s] * x

    elif form == TABLE:

        def value(x, theta, s):
            return theta[np.int32(x), s]

    elif form == POISSON:

        def value(x, theta, s):
            d = zero
            if theta[2, s] != zero:
                d = theta[3, s] - x
                if x > zero:
                    d += x * (log(x) - theta[4, s])
            total = theta[0, s] + theta[2, s] * max(d, zero)
            if x > zero:
                total += theta[1, s] * x
            if theta[5, s] != zero:
                total -= theta[5, s] * lgamma(x + one)
            return total

    elif form == EXPONENTIAL:

        def value(x, theta, s):
            z = x / theta[2, s]
            return theta[0, s] + theta[1, s] * z + theta[3, s] * log(z)

    else:
        raise ValueError(f"form must be one of {FORMS}, got {form!r}.")
    return cuda.jit(device=True)(value)


def make_row(forms, M, real, masked):
    """row(x, theta, given, given_row, mask, at, worst, out): what the row held at `at` says of each state, out (M,).

    x (D, N) and mask (N,), the states that a row allows as bits, are held interleaved; theta (D, K, M);
    given (n, M) in the order of the panel. `worst` is what a state gets that a row does not allow.
    """
    zero, one = real(0.0), np.uint64(1)
    if forms == (GIVEN,):

        @cuda.jit(device=True)
        def observed(x, theta, given, given_row, at, out):
            for s in range(M):
                out[s] = given[given_row, s]

    else:
        observed = _sum_of(forms, 0, M, real)

    @cuda.jit(device=True)
    def row(x, theta, given, given_row, mask, at, worst, out):
        for s in range(M):
            out[s] = zero
        observed(x, theta, given, given_row, at, out)
        if masked:
            allowed = mask[at]
            for s in range(M):
                if (allowed >> np.uint64(s)) & one == np.uint64(0):
                    out[s] = worst

    return row


def _sum_of(forms, d, M, real):
    """What columns d, d + 1, ... say together."""
    value = make_value(forms[d], real)
    if d + 1 == len(forms):

        @cuda.jit(device=True)
        def observed(x, theta, given, given_row, at, out):
            y = x[d, at]
            if not math.isnan(y):
                for s in range(M):
                    out[s] += value(y, theta[d], s)

        return observed

    rest = _sum_of(forms, d + 1, M, real)

    @cuda.jit(device=True)
    def observed(x, theta, given, given_row, at, out):
        y = x[d, at]
        if not math.isnan(y):
            for s in range(M):
                out[s] += value(y, theta[d], s)
        rest(x, theta, given, given_row, at, out)

    return observed
