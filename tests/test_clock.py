"""Rates that vary along a sequence: the decoder and the jump times by the clocks of the states."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from jumpmeans.kernels.bounds import make_bounds
from jumpmeans.kernels.clock import Course
from jumpmeans.kernels.decode import QUEUE, make_room, trace_back, widen
from jumpmeans.kernels.jump_times import WORK, place_jumps
from jumpmeans.kernels.sweep import decode
from jumpmeans.kernels.task import Task, trajectory_cost

SEEDS = st.integers(0, 2**32 - 1)
BATCH = 15


class Varying(NamedTuple):
    """What the references take: rates (L, M) and costs of jumps X (L, M, M) hold from each row on."""

    cost: np.ndarray
    end: float
    tau: np.ndarray
    rates: np.ndarray
    X: np.ndarray
    first_running: bool
    cand_time: np.ndarray
    cand_row: np.ndarray


def problem(rng, L=None, M=None, most=2, jumps_vary=True, infinite=0.0, forbidden=0.0):
    """Random rates that change at most rows, finite or infinite costs, some states that are never left."""
    L = int(rng.integers(1, 13)) if L is None else L
    M = int(rng.integers(1, 5)) if M is None else M
    tau = np.cumsum(rng.exponential(1.0, L) + 1e-9)
    if rng.random() < 0.5:
        tau -= tau[0]
    end = float(tau[-1] + (rng.exponential() if rng.random() < 0.5 else 0.0))
    cost = rng.gamma(1.0, rng.choice([0.3, 1.0, 4.0]), (L, M))
    cost[rng.random(cost.shape) < infinite] = np.inf
    rates = rng.gamma(1.0, rng.choice([0.2, 1.0, 5.0]), (L, M)) + 1e-3
    stays = rng.random(L) < 0.3
    for row in range(1, L):
        if stays[row]:
            rates[row] = rates[row - 1]
    rates[:, rng.random(M) < 0.1] = 0.0
    X = rng.gamma(1.0, rng.choice([0.1, 1.0]), (L, M, M))
    if not jumps_vary:
        X[:] = X[0]
    X[:, rng.random((M, M)) < forbidden] = np.inf
    X[:, range(M), range(M)] = np.inf
    times, rows = [], []
    for row in range(L + 1):
        lo, hi = tau[row - 1] if row > 0 else 0.0, tau[row] if row < L else end
        if hi > lo:
            n = rng.integers(0, most + 1)
            inside = np.unique(hi - (hi - lo) * rng.random(n) * (rng.random(n) > 0.15))
            inside = inside[inside > lo]
            times.extend(inside)
            rows.extend([row] * len(inside))
    return Varying(cost, end, tau, rates, X, bool(rng.random() < 0.4), np.array(times, float), np.array(rows, np.int64))


def base_and_pace(rng, rates):
    """Rates as a base and what multiplies it: how they are cut in two must not matter."""
    lam = np.where(rates[0] > 0, rates[0] * rng.gamma(2.0, 1.0, rates.shape[1]), 0.0)
    return lam, np.where(lam > 0, rates / np.where(lam > 0, lam, 1.0), 1.0)


def task_of(rng, p, seen=None):
    """A problem as the kernels take it."""
    L = len(p.tau)
    lam, pace = base_and_pace(rng, p.rates)
    course = Course.of(p.tau, pace, np.array([0, L]), len(p.cand_time) + 20 * L)
    into = np.ascontiguousarray(p.X.transpose(0, 2, 1))
    seen = np.ones(L, bool) if seen is None else seen
    return Task(p.tau, seen, np.zeros(L, np.int8), p.end, p.cost, lam, into, course, p.first_running, False)


def solve(rng, p):
    """Value and path of the fast decoder."""
    n, M = len(p.cand_time), p.cost.shape[1]
    room = make_room(n + 1, M, QUEUE)
    room.cand_time[:n], room.cand_row[:n] = p.cand_time, p.cand_row
    task = task_of(rng, p)
    while (value := decode(task, False, n, room, make_bounds(1, task.into), math.inf)) == -math.inf:
        room = widen(room)
    if value == math.inf:
        return value, None
    states, starts, rows = np.empty(n + 1, np.int32), np.empty(n + 1), np.empty(n + 1, np.int32)
    k = trace_back(room, states, starts, rows)
    return value, (states[:k].tolist(), starts[:k].tolist(), rows[:k].tolist())


def check(rng, p, judge=reference.varying_decode):
    """Same value as the judge, and a path that really costs it. Returns whether there is a path."""
    value, path = solve(rng, p)
    expected = judge(*p)
    assert not math.isnan(value)
    if expected == math.inf:
        assert value == math.inf
        return False
    assert value == pytest.approx(expected, rel=1e-11, abs=1e-11)
    assert reference.varying_path_cost(*path, *p[:6]) == pytest.approx(value, rel=1e-11, abs=1e-11)
    assert all(a != b for a, b in itertools.pairwise(path[0]))
    return True


@pytest.mark.parametrize("infinite, forbidden", [(0.0, 0.0), (0.2, 0.0), (0.3, 0.3)])
@given(seed=SEEDS)
@settings(max_examples=15)
def test_decoder_is_exact_where_rates_and_jump_costs_vary(infinite, forbidden, seed):
    """Planted: costs of jumps of the next gap."""
    rng = np.random.default_rng(seed)
    for _ in range(BATCH):
        check(rng, problem(rng, infinite=infinite, forbidden=forbidden))


@given(seed=SEEDS)
@settings(max_examples=15)
def test_the_judge_agrees_with_all_paths(seed):
    rng = np.random.default_rng(seed)
    p = problem(rng, L=int(rng.integers(1, 4)), M=2, infinite=0.1)
    best = reference.varying_brute_force(*p)
    assert reference.varying_decode(*p) == pytest.approx(best, rel=1e-12)


def test_the_judge_with_equal_rates_is_the_plain_one(rng):
    for _ in range(30):
        p = problem(rng, infinite=0.1)
        lam, X = p.rates[0], p.X[0]
        p = p._replace(rates=np.tile(lam, (len(p.tau), 1)), X=np.tile(X, (len(p.tau), 1, 1)))
        plain = reference.decode(p.cost, p.end, lam, X, p.first_running, p.cand_time, p.cand_row)[0]
        assert reference.varying_decode(*p) == pytest.approx(plain, rel=1e-12)


def trajectory(rng, p, share=0.7):
    """A random trajectory through the candidates of a problem."""
    M = p.cost.shape[1]
    chosen = np.flatnonzero(rng.random(len(p.cand_time)) < share)
    starts, rows = [0.0, *p.cand_time[chosen]], [0, *p.cand_row[chosen]]
    states = [int(rng.integers(M))]
    for _ in chosen:
        states.append(int((states[-1] + rng.integers(1, M)) % M))
    return np.array(states, np.int32), np.array(starts), np.array(rows, np.int32)


@given(seed=SEEDS)
@settings(max_examples=20)
def test_jump_times_are_best_where_rates_vary(seed):
    """Planted: curvature without the paces at its ends."""
    rng = np.random.default_rng(seed)
    for _ in range(BATCH):
        p = problem(rng, L=int(rng.integers(2, 12)), M=int(rng.integers(2, 5)))
        p = p._replace(rates=np.where(p.rates > 0, p.rates, 1.0))
        states, starts, rows = trajectory(rng, p)
        seen = rng.random(len(p.tau)) < 0.8
        seen[1:] |= (p.rates[1:] != p.rates[:-1]).any(axis=1)
        task = task_of(rng, p, seen)
        before = sum(map(sum, reference.varying_costs(states, starts, p.end, p.tau, p.rates, p.first_running)))
        old_rows = rows.copy()
        place_jumps(
            states, starts, rows, len(states), p.tau, seen, task.kinds, p.end, task.lam, task.course, p.first_running,
            np.empty((WORK, len(states))),
        )  # fmt: skip
        after = sum(map(sum, reference.varying_costs(states, starts, p.end, p.tau, p.rates, p.first_running)))
        assert after <= before + 1e-10 * (1 + abs(before))
        for b, (low, high) in zip(starts[1:], reference.boxes(old_rows, p.tau, p.end, seen), strict=True):
            assert low < b <= high
        for b, r in zip(starts[1:], rows[1:], strict=True):
            assert (p.tau[r - 1] if r > 0 else 0.0) < b <= (p.tau[r] if r < len(p.tau) else p.end)
        judged = reference.varying_kkt_residual(states, starts, rows, p.tau, p.end, p.rates, p.first_running, seen)
        assert judged <= 1e-7


@given(seed=SEEDS)
@settings(max_examples=20)
def test_cost_of_a_trajectory_where_rates_vary(seed):
    rng = np.random.default_rng(seed)
    for _ in range(BATCH):
        p = problem(rng, M=int(rng.integers(2, 5)))
        states, starts, rows = trajectory(rng, p)
        found = trajectory_cost(task_of(rng, p), states, starts, rows, len(states))
        judged = reference.varying_path_cost(states.tolist(), starts, rows, *p[:6])
        assert found == pytest.approx(judged, rel=1e-10, abs=1e-10)
