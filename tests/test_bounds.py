"""Where a jump can pay: no path that jumps in a gap costs less than its bound; what is left out changes nothing."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from jumpmeans.kernels import departures
from jumpmeans.kernels.bounds import bound_gaps, look_ahead, make_bounds
from jumpmeans.kernels.decode import QUEUE, make_room, trace_back, widen
from jumpmeans.kernels.limit import SLACK, bound, reach_of, take_likely
from jumpmeans.kernels.sweep import decode
from jumpmeans.kernels.task import Task, dwell_cost, trajectory_cost
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


def task_of(p, tau, seen=None):
    """A problem whose rows are at these times, as the kernels have it."""
    seen = np.ones(len(tau), bool) if seen is None else seen
    into = np.ascontiguousarray(p.X.T)[None]
    return Task(tau, seen, np.zeros(len(tau), np.int8), p.end, p.cost, p.lam, into, None, p.first_running, False)


def find_bounds(p, task, once):
    """All bounds of a problem, and the limit that they were worked out for."""
    bounds = make_bounds(len(p.cost), task.into)
    room = len(p.cost) + 1
    dwells = np.zeros(room, np.int32), np.zeros(room), np.zeros(room, np.int32)
    _, limit, _ = bound(task, once, False, *dwells, 1, once, True, 0.0, bounds)
    return bounds, limit


def bounds_of(p, once):
    """Of each gap of a problem."""
    tau = np.linspace(0.0, p.end, len(p.cost) + 2)[1:-1]
    return find_bounds(p, task_of(p, tau), once)[0].gaps


def solve_within(task, times, rows, one_a_gap, bounds, limit):
    """Value and dwells of the decoder that leaves out what is beyond a limit."""
    n, M = len(times), len(task.lam)
    room = make_room(n + 1, M, QUEUE)
    room.cand_time[:n], room.cand_row[:n] = times, rows
    while (value := decode(task, one_a_gap, n, room, bounds, limit)) == -math.inf:
        room = widen(room)
    dwells = np.empty(n + 1, np.int32), np.empty(n + 1), np.empty(n + 1, np.int32)
    return value, [part[: trace_back(room, *dwells)].tolist() for part in dwells] if value < math.inf else None


@pytest.mark.parametrize("one_a_gap", [False, True])
def test_moves_that_cannot_pay_change_nothing(one_a_gap):
    """The best path is found among the moves within its cost, to the bit, also where blank rows let jumps pass.

    Planted: the best move alone where others are within the limit; bounds of a gap alone in a stretch of blank rows.
    """
    rng = np.random.default_rng(8)
    fewer = 0
    for _ in range(600):
        p = sequence(rng, L=int(rng.integers(2, 12)))
        task = task_of(p, p.tau, p.seen)
        times, rows = candidates(rng, p.tau, p.end, 4 if one_a_gap else 1)
        free = solve_within(task, times, rows, one_a_gap, make_bounds(1, task.into), math.inf)
        if free[1] is None:
            continue
        bounds, known = find_bounds(p, task, True)
        limit = min(known, reach_of(free[0]))
        if limit < reach_of(free[0]):  # the candidates are worse than the path at hand
            continue
        assert solve_within(task, times, rows, one_a_gap, bounds, limit) == free
        M = len(p.lam)
        fewer += np.count_nonzero(bounds.others[: len(p.tau) + 1] > limit) > 0 and M > 2
    assert fewer > 100


def ways_within(task, limit):
    """How many ways to move, one a gap that lasts, cost their rows and jumps no more than a limit: all are tried."""
    L, M = task.cost.shape
    lasts = np.diff(np.concatenate([[0.0], task.tau, [task.end]])) > 0
    found = 0
    for way in itertools.product(range(M), repeat=L + 2):  # before the first gap, then behind each
        moves = [k for k in range(L + 1) if way[k] != way[k + 1]]
        if all(lasts[k] for k in moves):
            rows = sum(task.cost[k, way[k + 1]] for k in range(L))
            found += rows + sum(task.into[0, way[k + 1], way[k]] for k in moves) <= limit
    return found


def test_one_way_is_left():
    """Where it is said that no path within the limit moves otherwise, none does. Planted: no word of other moves, of
    staying, of another state all along, of a jump before the first row."""
    rng = np.random.default_rng(3)
    only = jumps = 0
    for _ in range(400):
        L, M = int(rng.integers(1, 4)), int(rng.integers(2, 4))
        tau = np.cumsum(rng.uniform(0.5, 1.5, L)) - (0.5 if rng.random() < 0.5 else 0.0)
        tau -= tau[0] if rng.random() < 0.5 else 0.0
        X = rng.uniform(0.1, 6.0, (M, M))
        np.fill_diagonal(X, math.inf)
        end = tau[-1] + (0.7 if rng.random() < 0.5 or tau[-1] == 0.0 else 0.0)
        none = np.empty(0), np.empty(0, np.int64)
        p = Problem(rng.exponential(6.0, (L, M)), end, rng.uniform(0.3, 3.0, M), X, True, *none)
        task = task_of(p, tau)
        bounds = make_bounds(L, task.into)
        dwells = np.zeros(L + 2, np.int32), np.zeros(L + 2), np.zeros(L + 2, np.int32)
        look_ahead(task.cost, task.kinds, task.into, True, True, bounds)
        n, value = take_likely(task, *dwells, bounds)
        limit = reach_of(value)
        if not departures.is_alone(task.cost, task.into, tau, end, dwells[0], dwells[2], n, limit, bounds):
            continue
        assert ways_within(task, limit) == 1
        only += 1
        jumps += n > 1
    assert only > 60
    assert jumps > 20


def path_at_hand(rng, task):
    """A path whose jumps are in the middle of some gaps: a likely one, or any."""
    L, M = task.cost.shape
    times = np.concatenate([[0.0], task.tau, [task.end]])
    dwells = np.zeros(L + 2, np.int32), np.zeros(L + 2), np.zeros(L + 2, np.int32)
    if rng.random() < 0.5:
        bounds = make_bounds(L, task.into)
        look_ahead(task.cost, task.kinds, task.into, True, True, bounds)
        return take_likely(task, *dwells, bounds)[0], dwells
    n = 1
    dwells[0][0] = rng.integers(M)
    for row in range(L + 1):
        to = rng.integers(M)
        if rng.random() < 0.3 and times[row] < times[row + 1] and to != dwells[0][n - 1]:
            dwells[0][n], dwells[1][n], dwells[2][n] = to, times[row] + 0.5 * (times[row + 1] - times[row]), row
            n += 1
    return n, dwells


@pytest.mark.parametrize("M", [3, 9])
def test_departures_that_cannot_pay_change_nothing(M):
    """The best path makes no move that is bounded beyond any path at hand, near the best or far from it.

    Planted: dwells that are joined, left or open at the start are not counted; one that was left before is free to be
    left again; what has been departed from cannot end, or not be departed from twice.
    """
    rng = np.random.default_rng(M)
    left_out = 0
    for _ in range(1500 if M == 3 else 600):
        L = int(rng.integers(1, 13))
        tau, end = row_times(rng, L)
        X = rng.gamma(1.0, rng.choice([0.1, 1.0]), (M, M))
        lam = rng.gamma(1.0, rng.choice([0.2, 1.0, 5.0]), M) + 1e-3
        cost = rng.gamma(1.0, rng.choice([0.3, 1.0, 4.0]), (L, M))
        if rng.random() < 0.3:  # forbidden moves, and rows that contradict some states
            X[rng.random((M, M)) < 0.2], cost[rng.random((L, M)) < 0.1] = math.inf, math.inf
        np.fill_diagonal(X, math.inf)
        none = np.empty(0), np.empty(0, np.int64)
        task = task_of(Problem(cost, end, lam, X, bool(rng.random() < 0.5), *none), tau)
        n, (states, starts, rows) = path_at_hand(rng, task)
        bounds = make_bounds(L, task.into)
        if not trajectory_cost(task, states, starts, rows, n) < math.inf:
            continue
        for k in range(n):
            bounds.dwells[k] = dwell_cost(task, states, starts, rows, k, n)
        departures.look_ahead(task.cost, task.into, states, rows, n, bounds.dwells, bounds)
        departures.look_behind(task.cost, task.into, states, rows, n, bounds.dwells, bounds)
        limit = SLACK
        bound_gaps(task.into, L + 1, True, limit, bounds)
        at = np.concatenate([[0.0], tau, [end]])
        gaps = np.flatnonzero(np.diff(at) > 0)
        times = at[gaps] + 0.5 * (at[gaps + 1] - at[gaps])
        free = solve_within(task, times, gaps, True, make_bounds(1, task.into), math.inf)
        assert solve_within(task, times, gaps, True, bounds, limit) == free
        left_out += np.count_nonzero(bounds.gaps[: L + 1] > limit)
    assert left_out > 60


@pytest.mark.parametrize("backward", [False, True])
def test_departures_that_hang_together(backward):
    """One departure pays because another one shortens a dwell that both share: neither is judged alone.

    At hand: 0 for five rows, then 1. Row 2 must be in 2, which leaves a short dwell in 0; so that stays for a row more.
    Planted: a dwell that was left before, or will be, is not left again.
    """
    cost = np.full((7, 3), 20.0)
    cost[[0, 1, 3, 4], 0] = cost[6, 1] = 0.0
    cost[2] = [10.0, 20.0, 0.0]
    cost[5] = [0.1, 0.0, 20.0]
    X = np.full((3, 3), 0.5)
    X[0, 1] = X[1, 0] = 0.01
    np.fill_diagonal(X, math.inf)
    tau, end = np.arange(1.0, 8.0), 8.0
    lam = np.array([1.0 / 5.5, 0.3, 1.0])
    states, starts, rows = np.array([0, 1], np.int32), np.array([0.0, 5.5]), np.array([0, 5], np.int32)
    if backward:
        cost, X = cost[::-1].copy(), X.T
        states, starts, rows = states[::-1].copy(), np.array([0.0, 2.5]), np.array([0, 2], np.int32)
    none = np.empty(0), np.empty(0, np.int64)
    task = task_of(Problem(cost, end, lam, X, True, *none), tau)
    bounds = make_bounds(7, task.into)
    for k in range(2):
        bounds.dwells[k] = dwell_cost(task, states, starts, rows, k, 2)
    departures.look_ahead(task.cost, task.into, states, rows, 2, bounds.dwells, bounds)
    departures.look_behind(task.cost, task.into, states, rows, 2, bounds.dwells, bounds)
    bound_gaps(task.into, 8, True, SLACK, bounds)
    times, gaps = np.arange(0.5, 8.0), np.arange(8)
    best = solve_within(task, times, gaps, True, make_bounds(1, task.into), math.inf)
    assert best[1][0] == ([1, 0, 2, 0] if backward else [0, 2, 0, 1])
    assert best[1][2] == ([0, 1, 4, 5] if backward else [0, 2, 3, 6])
    assert solve_within(task, times, gaps, True, bounds, SLACK) == best


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
