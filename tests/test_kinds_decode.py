"""The decoder where rows tell of moves: forced jumps, barred gaps, sets of states; against all paths."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jumpmeans as jm
import reference
from jumpmeans.comparators import EM, Gibbs
from jumpmeans.kernels.bounds import make_bounds
from jumpmeans.kernels.candidates import SPREAD, place_candidates, spread_candidates
from jumpmeans.kernels.decode import QUEUE, make_room, trace_back, widen
from jumpmeans.kernels.jump_times import WORK, place_jumps
from jumpmeans.kernels.sweep import decode, sweep_block
from jumpmeans.kernels.task import Task
from jumpmeans.kinds import ENTRY, HELD, SNAPSHOT, TRANSITION
from jumpmeans.passes import Block

SEEDS = st.integers(0, 2**32 - 1)
BATCH = 15


class Sequence(NamedTuple):
    tau: np.ndarray
    end: float
    cost: np.ndarray
    lam: np.ndarray
    X: np.ndarray
    first_running: bool
    kinds: np.ndarray
    holds: np.ndarray


def sequence(rng, L, M):
    """Rows of all kinds, some blank, some at one instant; states seen, known by sets, or guessed; some moves barred."""
    tau = np.cumsum(rng.exponential(1.0, L) + 1e-6)
    if rng.random() < 0.5:
        tau -= tau[0]
    kinds = rng.choice([SNAPSHOT, TRANSITION, ENTRY, HELD], L, p=[0.4, 0.25, 0.25, 0.1]).astype(np.int8)
    for row in range(1, L):
        if rng.random() < 0.2 and kinds[row] in (TRANSITION, ENTRY) and tau[row - 1] > 0:
            tau[row:] -= tau[row] - tau[row - 1]
    if tau[0] == 0:
        kinds[0] = SNAPSHOT
    end = float(tau[-1] + (rng.exponential() if rng.random() < 0.5 else 0.0))
    cost = rng.gamma(1.0, rng.choice([0.3, 2.0]), (L, M))
    if rng.random() < 0.5:
        cost[rng.random((L, M)) < 0.3] = np.inf  # sets, and states seen
    seen = rng.random(L) < 0.7
    cost[~seen] = 0.0
    X = rng.gamma(1.0, 0.5, (M, M))
    if rng.random() < 0.4:
        X[rng.random((M, M)) < 0.3] = np.inf
    np.fill_diagonal(X, np.inf)
    lam = rng.gamma(1.0, rng.choice([0.3, 2.0]), M) + 1e-3
    if rng.random() < 0.3:
        lam[-1], X[-1] = 0.0, np.inf  # it cannot be left
    block = Block(tau, np.array([0, L]), np.array([end]), np.ones(1), np.where(seen, 0.0, np.nan)[:, None], kinds=kinds)
    return Sequence(tau, end, cost, lam, X, bool(rng.random() < 0.4), kinds, block.holds)


def candidates(p, base=1, beam=False):
    """Of the kernel."""
    most = (base + 1) * (len(p.tau) + 1)
    times, rows = np.empty(most), np.empty(most, np.int64)
    n = place_candidates(
        p.tau, p.holds, p.kinds, p.end, np.empty(0), np.empty(0, np.int32), 0, base, base, beam,
        np.zeros(len(p.tau) + 1), math.inf, times, rows,
    )  # fmt: skip
    return times[:n], rows[:n]


def middles_and_rows(p):
    """The middle of every gap, barred or not, and the time of every row: which may be used is for others to say."""
    bounds = [0.0, *p.tau, p.end]
    out = []
    for row in range(len(p.tau) + 1):
        lo, hi = bounds[row], bounds[row + 1]
        out += [(lo + 0.5 * (hi - lo), row)] if hi > lo else []
        out += [(hi, row)] if row < len(p.tau) and p.kinds[row] != SNAPSHOT else []
    return np.array([t for t, _ in out]), np.array([r for _, r in out], np.int64)


def solve(p, cand_time, cand_row, one_a_gap=False):
    n, M = len(cand_time), len(p.lam)
    room = make_room(n + 1, M, QUEUE)
    room.cand_time[:n], room.cand_row[:n] = cand_time, cand_row
    into = np.ascontiguousarray(p.X.T)[None]
    task = Task(p.tau, p.holds, p.kinds, p.end, p.cost, p.lam, into, None, p.first_running, False)
    while (value := decode(task, one_a_gap, n, room, make_bounds(1, task.into), math.inf)) == -math.inf:
        room = widen(room)
    if value == math.inf:
        return value, int(room.found[2])
    states, starts, rows = np.empty(n + 1, np.int32), np.empty(n + 1), np.empty(n + 1, np.int32)
    k = trace_back(room, states, starts, rows)
    return value, (states[:k].tolist(), starts[:k].tolist(), rows[:k].tolist())


@given(SEEDS)
@settings(max_examples=8, deadline=None)
def test_no_lawful_path_costs_less(seed):
    """Every subset of jumps at middles and rows, every sequence of states, judged by the law of kinds alone.

    Planted: a forced jump that may be passed; candidates in barred gaps; queues that live on over an entry.
    """
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(BATCH):
        p = sequence(rng, int(rng.integers(1, 4)), 2 + int(rng.random() < 0.3))
        value, path = solve(p, *candidates(p))
        best, _ = reference.brute_force(
            *p[2:3], p.end, p.lam, p.X, p.first_running, *middles_and_rows(p),
            lambda starts, rows, p=p: reference.lawful(starts, rows, p.tau, p.kinds),
        )  # fmt: skip
        if best == math.inf:
            assert value == math.inf
            assert 0 <= path <= len(p.tau)
            continue
        found += 1
        assert value == pytest.approx(best, rel=1e-12, abs=1e-12)
        assert reference.lawful(path[1], path[2], p.tau, p.kinds)
        cost = reference.path_cost(*path, p.cost, p.end, p.lam, p.X, p.first_running)
        assert cost == pytest.approx(value, rel=1e-12, abs=1e-12)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_linear_and_plain_decoder_agree_on_long_sequences(seed):
    """Many candidates a gap, or one jump a gap. Planted: a start kept alive for the free end of the window."""
    rng = np.random.default_rng(seed)
    for _ in range(BATCH):
        p = sequence(rng, int(rng.integers(3, 16)), int(rng.integers(2, 5)))
        one_a_gap = bool(rng.random() < 0.4)
        if one_a_gap:
            room = SPREAD * (len(p.tau) + 1)
            times, rows = np.empty(room), np.empty(room, np.int64)
            n = spread_candidates(p.tau, p.kinds, p.end, np.zeros(len(p.tau) + 1), math.inf, times, rows)
            times, rows = times[:n], rows[:n]
        else:
            times, rows = candidates(p, int(rng.integers(1, 4)))
        forced = [int(np.flatnonzero(rows == row)[-1]) for row in np.flatnonzero(p.kinds == ENTRY)]
        best, _ = reference.decode(p.cost, p.end, p.lam, p.X, p.first_running, times, rows, one_a_gap, forced)
        value, path = solve(p, times, rows, one_a_gap)
        if best == math.inf:
            assert value == math.inf
            continue
        assert value == pytest.approx(best, rel=1e-11, abs=1e-11)
        assert reference.lawful(path[1], path[2], p.tau, p.kinds)


def sweep(p, search, path=([0], [0.0], [0])):
    """Dwells that the kernel of a sweep finds, going on from others; None if there are none."""
    L, M = p.cost.shape
    most = 2 + (search[1] + 1) * (L + 1)
    old = [np.array(part, dtype) for part, dtype in zip(path, (np.int32, float, np.int32), strict=True)]
    offsets, states, starts, rows = (
        np.zeros(2, np.int64),
        np.zeros(most, np.int32),
        np.zeros(most),
        np.zeros(most, np.int32),
    )
    where = sweep_block(
        p.tau, p.holds, p.kinds, np.array([0, L]), np.array([p.end]), np.ones(1), p.cost, p.lam[None],
        p.X[None], None,
        (*search[:3], int(p.first_running), search[3], 0),
        np.array([0, len(old[0])]), *old, offsets, states, starts, rows,
        np.zeros(L, np.int32), np.zeros(M), np.zeros(M), np.zeros(M), np.zeros((M, M)),
        np.zeros((1, 2), np.int32), np.zeros((1, 2)),
    )  # fmt: skip
    n = offsets[1]
    return None if where[0] >= 0 else (states[:n].tolist(), starts[:n].tolist(), rows[:n].tolist())


def cost_of(p, path):
    return reference.path_cost(*path, p.cost, p.end, p.lam, p.X, p.first_running)


@pytest.mark.parametrize("search", [(1, 1, 0), (3, 3, 0), (2, 8, 1)])
def test_sweeps_keep_pinned_jumps_and_never_cost_more(search):
    """Sweep after sweep lawful and no dearer, never dearer than middles and rows; published ones are fixed points.

    Planted: pinned jumps that the jump-time step moves, or that a sweep forgets; a jump moved over a blank row into a
    barred gap.
    """
    rng = np.random.default_rng(5)
    moved = 0
    for _ in range(150):
        p = sequence(rng, int(rng.integers(2, 10)), int(rng.integers(2, 4)))
        path = sweep(p, (*search, 1))
        if path is None:
            continue
        value, _ = solve(p, *candidates(p, search[0]))
        costs = [value]
        for _ in range(3):
            assert reference.lawful(path[1], path[2], p.tau, p.kinds)
            assert np.all(np.diff(path[1]) > 0)
            costs.append(cost_of(p, path))
            path = sweep(p, (*search, 1), path)
        assert np.all(np.diff(costs) <= 1e-10 * (1 + abs(value)))
        moved += costs[0] - costs[-1] > 1e-6
        published = sweep(p, (*search, 100))
        assert reference.lawful(published[1], published[2], p.tau, p.kinds)
        assert cost_of(p, published) <= costs[1] + 1e-9 * (1 + abs(value))
        again = cost_of(p, sweep(p, (*search, 1), published))
        assert again == pytest.approx(cost_of(p, published), rel=1e-9, abs=1e-9)
    assert moved >= 30


def test_free_jumps_are_placed_best_between_pinned_ones():
    """A pinned jump cuts the chain: what is before it is a problem of its own. Planted: a pin that gives way."""
    tau, lam = np.array([0.0, 2.0, 5.0, 9.0]), np.array([1.0, 2.0, 0.3])
    states, rows = np.array([0, 1, 2, 0], np.int32), np.array([0, 1, 2, 3], np.int32)
    starts = np.array([0.0, 1.0, 5.0, 7.0])
    free = starts.copy()
    for kinds, b in ((np.array([0, 0, ENTRY, 0], np.int8), starts), (np.zeros(4, np.int8), free)):
        place_jumps(states, b, rows.copy(), 4, tau, np.ones(4, bool), kinds, 9.0, lam, None, False, np.empty((WORK, 4)))
    assert starts[2] == 5.0 > free[2] + 0.5
    grid = np.linspace(1e-6, 2.0, 20001)
    best = grid[np.argmin(reference.h(lam[0] * grid) + reference.h(lam[1] * (5.0 - grid)))]
    assert starts[1] == pytest.approx(best, abs=2e-4)


# ------------------------------------------------------------------------------------------------ the models


STATES = ["well", "ill", "dead"]
MOVES = jm.Structure(allowed={"well": ["ill", "dead"], "ill": ["well", "dead"]})


def patients(seed=0, n=60, **more):
    """Visits at random times; deaths are known to the day."""
    process = jm.Process.from_generator([[-0.5, 0.4, 0.1], [0.3, -0.7, 0.4], [0, 0, 0]], [0.8, 0.2, 0], states=STATES)
    return jm.simulate(process, n, 6, exact=["dead"], random_state=seed, **more)


def lawful_panel(panel, trajectories):
    """Whether published trajectories are where the rows let them be, in the caller's times."""
    for i in range(len(panel)):
        own = slice(trajectories.offsets[i], trajectories.offsets[i + 1])
        starts = trajectories.start_times[own]
        rows = slice(panel.offsets[i], panel.offsets[i + 1])
        kinds, times = panel.kinds[rows], panel.times[rows]
        for k in np.flatnonzero(kinds != SNAPSHOT):
            before = times[k - 1] if k else panel.start_times[i]
            inside = starts[1:][(starts[1:] > before) & (starts[1:] < times[k])]
            if kinds[k] == ENTRY and times[k] not in starts[1:]:
                return False
            if kinds[k] != ENTRY and len(inside):
                return False
    return True


@pytest.mark.parametrize("model", [jm.JumpMeans, jm.InfiniteJumpMeans])
@pytest.mark.parametrize("refine", [0, "auto"])
def test_deaths_are_where_they_were(model, refine):
    panel, _ = patients()
    fitted = model(emission="direct", structure=MOVES, refine=refine, states=STATES).fit(panel)
    assert lawful_panel(panel, fitted.trajectories_)
    died = panel.kinds == ENTRY
    assert died.sum() > 20
    assert fitted.predict(panel)[died].tolist() == ["dead"] * died.sum()
    again = fitted.decode(panel)
    assert np.array_equal(again.start_times, fitted.trajectories_.start_times)
    dead = fitted.trajectories_.states == "dead"
    assert np.array_equal(np.sort(fitted.trajectories_.start_times[dead]), np.sort(panel.times[died]))


def test_a_death_on_the_day_of_a_visit_and_a_set():
    panel = jm.Panel.from_arrays(
        [0, 1, 2, 2, 0, 1, 3, 5], ["well", "ill", "ill", "dead", "well", "ill", "alive", "dead"], [0] * 4 + [1] * 4,
        kinds=[1, 1, 1, 3, 1, 1, 1, 3], sets={"alive": ["well", "ill"]},
    )  # fmt: skip
    model = jm.JumpMeans(emission="direct", structure=MOVES, states=STATES).fit(panel)
    assert lawful_panel(panel, model.trajectories_)
    assert model.predict(panel)[3] == "dead"
    assert model.predict(panel)[2] == "ill"  # by row, although the path is dead at that time
    assert model.trajectories_.at([2.0], [0]).tolist() == ["dead"]
    assert model.predict(panel)[6] in ("well", "ill")


def test_exact_transitions_leave_nothing_to_guess():
    """Every dwell is what was seen. Planted: gaps before transitions that are not barred."""
    process = jm.Process.from_generator([[-0.5, 0.5], [0.3, -0.3]], states=["a", "b"])
    panel, truth = jm.simulate(process, 20, 5, exact="all", random_state=3)
    model = jm.JumpMeans(emission="direct").fit(panel)
    assert np.array_equal(model.trajectories_.codes, truth.codes)
    assert np.array_equal(model.trajectories_.start_times, truth.start_times)


def test_blank_and_inserted_rows_in_barred_gaps():
    process = jm.Process.from_generator([[-0.5, 0.5], [0.3, -0.3]], states=["a", "b"])
    panel, truth = jm.simulate(process, 20, 5, exact="all", random_state=3)
    model = jm.JumpMeans(emission="direct").fit(panel)
    asked = np.linspace(0.1, panel.end_times.min() - 0.1, 7)
    for i in range(3):
        shown = model.predict_value(panel, at=(np.full(7, i), asked), method="trajectory")
        assert shown.tolist() == truth.at(asked, np.full(7, i)).tolist()


@pytest.mark.parametrize("model", [jm.JumpMeans(2), EM(2), Gibbs(2, emission="gaussian", n_samples=20, burn_in=20)])
def test_hidden_states_known_by_name_keep_their_names(model):
    """Names against the order of the means: state 0 is the high one. Planted: states sorted by their means."""
    rng = np.random.default_rng(2)
    process = jm.Process([0.2, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([5.0, 0.0], sds=1.0))
    panel, truth = jm.simulate(process, 40, 15, random_state=4)
    states = truth.at(panel.times, panel.ids[panel.sequence_index])
    known = np.where(rng.random(len(states)) < 0.1, states, np.nan)
    named = jm.Panel.from_arrays(panel.times, panel.values[:, 0], panel.ids[panel.sequence_index], true_states=known)
    model.fit(named)
    means = model.emission_.columns[0].means
    assert means[0] > 4 > 1 > means[1]
    told = ~np.isnan(known)
    assert np.array_equal(model.predict(named)[told], known[told])
    assert np.mean(model.predict(named) == states) > 0.95


def test_states_that_are_looked_for_have_no_names():
    panel = jm.Panel.from_arrays([0, 1, 2], [0.0, 1.0, 5.0], [0] * 3, true_states=[0, None, 1])
    with pytest.raises(jm.PanelError, match="which have no names yet; use JumpMeans"):
        jm.InfiniteJumpMeans().fit(panel)


def test_entry_times_of_hidden_states_are_kept():
    """With kinds alone a hidden state jumps where it is said to."""
    process = jm.Process([0.3, 0.3], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0.0, 5.0], sds=1.0))
    panel, _ = jm.simulate(process, 20, 8, exact="all", random_state=1)
    for model in (jm.JumpMeans(2), jm.InfiniteJumpMeans()):
        assert lawful_panel(panel, model.fit(panel).trajectories_)


def test_no_path_names_the_row():
    panel = jm.Panel.from_arrays([0, 1, 2], ["dead", "dead", "dead"], ["x"] * 3, kinds=[1, 1, 3])
    model = jm.JumpMeans(emission="direct", structure=jm.Structure(absorbing=["dead"]), states=STATES)
    with pytest.raises(jm.InfeasibleError, match="sequence 'x', row 2"):
        model.fit(panel)
    panel = jm.Panel.from_arrays([0, 0, 1, 0, 1], list("abbab"), [1, 1, 1, 2, 2], kinds=[1, 3, 1, 1, 1])
    with pytest.raises(jm.InfeasibleError, match=r"sequence 1, row 1.*dwell of length 0"):
        jm.JumpMeans(emission="direct").fit(panel)
    assert jm.JumpMeans(emission="direct", first_dwell="running", refine=0).fit(panel).trajectories_.n_jumps == 2
