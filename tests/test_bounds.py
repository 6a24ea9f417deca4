"""Where a jump can pay: no path that jumps in a gap costs less than its bound; what is left out changes nothing."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from jumpmeans.kernels.bounds import bound_jumps, make_bounds
from test_decode import (
    Problem,
    candidates,
    direct,
    forbidden,
    infinite,
    place,
    plain,
    publish,
    row_times,
    sequence,
    solve,
)

SEEDS = st.integers(0, 2**32 - 1)
BATCH = 10
KINDS = {kind.__name__: kind for kind in (plain, infinite, direct, forbidden)}


def bounds_of(p, once):
    """Of each gap of a problem."""
    bounds = make_bounds(*p.cost.shape)
    bound_jumps(p.cost, np.ascontiguousarray(p.X.T)[None], once, bounds)
    return bounds.gaps


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
@settings(max_examples=15, deadline=None)
def test_no_path_that_jumps_there_costs_less(kind, seed):
    """Planted: moves that cost what the dearest does; a way there and back that is forgotten where it may be."""
    rng = np.random.default_rng(seed)
    for _ in range(BATCH):
        p = KINDS[kind](rng)
        once = bool(rng.random() < 0.5)
        tau, end = row_times(rng, len(p.cost))
        times, rows = candidates(rng, tau, end, 3)
        p = p._replace(end=end, cand_time=times, cand_row=rows)
        gaps = bounds_of(p, once)
        for k in range(len(times)):
            value, _ = reference.decode(*p, once, [k])
            assert gaps[rows[k]] <= value + 1e-9 * (1 + abs(value))


def test_there_and_back_in_one_gap():
    """Where a gap has room for two jumps, the bound knows of them: 4 in the middle, and 52 for one alone."""
    X = np.array([[math.inf, 2.0], [2.0, math.inf]])
    cost = np.array([[0.0, 50.0], [0.0, 50.0]])
    p = Problem(cost, 1.0, np.ones(2), X, False, np.empty(0), np.empty(0, np.int64))
    assert bounds_of(p, False).tolist() == [2.0, 4.0, 2.0]
    assert bounds_of(p, True).tolist() == [2.0, 52.0, 2.0]


@pytest.mark.parametrize("again", [False, True])
def test_what_is_left_out_changes_nothing(again):
    """A sweep finds the path of the decoder over all candidates. Planted: limits that are 1 too low."""
    rng = np.random.default_rng(5)
    fewer = 0
    for _ in range(400):
        p = sequence(rng, L=int(rng.integers(2, 12)))
        path = publish(p)[1] if again else None
        if again and path is None:
            continue
        p = p._replace(lam=p.lam * rng.uniform(0.5, 2.0, len(p.lam)))
        jumps = list(zip(path[1][1:], path[2][1:], strict=True)) if again else []
        times, rows = place(p.tau, p.end, jumps, 1, 1, False, p.seen)
        problem = Problem(p.cost, p.end, p.lam, p.X, p.first_running, times, rows)
        value, best = solve(problem)
        cost, found = publish(p, rounds=1, path=path)
        if value == math.inf:
            assert cost == math.inf
            continue
        assert cost <= value + 1e-9 * (1 + abs(value))
        assert found[0] == best[0]
        if p.seen.all():  # else jumps move across blank rows
            assert found[2] == best[2]
        fewer += bool(np.any(bounds_of(problem, True) > value))
    assert fewer > 100
