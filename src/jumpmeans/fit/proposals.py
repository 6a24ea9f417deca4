"""Moves that change the number of states, each a small function on the statistics of the current trajectories.

A split first sorts dwells (or rows) into classes, each within one state; the statistics of all classes come from one
pass over the data. Any split is then a grouping of classes, and what it does to the objective follows
from their statistics alone: M² proposals cost no more passes than one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Ints, totals
from ..emissions import Record
from ..model.levels import Levels
from ..model.objective import Prices, Stats, evaluate
from ..model.params import Params
from ..model.updates import exact_rates, shared_rows, used_moves
from ..passes import Block, Dwells
from .descent import Model, minimise

# Lloyd steps of a split by emissions.
LLOYD_STEPS = 20
# Of M² pairs so many are looked at closely, those of least objective after so many rounds of rows and base row.
SHORTLIST, ROUGH_ROUNDS = 16, 3


class Scene(NamedTuple):
    """Where the search stands: the sequences as one block, their trajectories, statistics and parameters.

    features (n, F): coordinates of each row in which a state is split, NaN where nothing was observed;
    rate : of a state that has none yet; model : the objective for a given number of states; seen : block and features
    relative to given levels of people.
    """

    block: Block
    dwells: Dwells
    params: Params
    features: Floats
    rate: float
    model: Callable[[int], Model]
    stats: Stats = None  # type: ignore[assignment]
    seen: Callable[[Levels | None], tuple[Block, Floats]] = None  # type: ignore[assignment]

    @property
    def prices(self) -> Prices:
        """Hyperparameters."""
        return self.model(len(self.params.rates)).prices


class Proposal(NamedTuple):
    """A change of the states: the objective to expect of it, and how to make the parameters to go on from."""

    kind: str
    expected: float
    make: Callable[[], Params]


class Timeline(NamedTuple):
    """All dwells of all sequences in a row: state, state before (-1: none), length, weight, whether it is complete.

    first (S,): index of each sequence's first dwell; row_dwell (n,): dwell of each row.
    """

    state: Ints
    before: Ints
    length: Floats
    weight: Floats
    complete: NDArray[np.bool_]
    first: Ints
    row_dwell: Ints


def timeline(block: Block, dwells: Dwells, first_running: bool) -> Timeline:
    """Lay the current dwells out in a row."""
    first, last = dwells.offsets[:-1], dwells.offsets[1:] - 1
    state = dwells.states.astype(np.int64)
    before = np.concatenate([[-1], state[:-1]])
    before[first] = -1
    ends = np.append(dwells.starts[1:], 0.0)
    ends[last] = block.ends
    complete = np.ones(len(state), dtype=bool)
    complete[last] = False
    if first_running:
        complete[first] = False
    return Timeline(
        state,
        before,
        ends - dwells.starts,
        block.weights[dwells.sequence],
        complete,
        first,
        dwells.row_dwells(block.offsets),
    )


class Classes(NamedTuple):
    """Statistics of classes of dwells, each class within the state `parent`; jumps as (from, to, count)."""

    parent: Ints
    stats: Stats
    jumps: tuple[Ints, Ints, Floats]

    def pool(self, scene: Scene, groups: Ints) -> tuple[Stats, Params]:
        """Statistics of M' states, class c being state groups[c], and parameters that know nothing of them."""
        n = int(groups.max()) + 1
        source, target, counts = self.jumps
        cell = groups[source] * n + groups[target]
        parent = np.zeros(n, np.int64)
        parent[groups] = self.parent
        old = self.stats
        run = np.where(old.run_state >= 0, groups[old.run_state], -1)
        emission = scene.params.emission.take(parent)
        exits, times, log_times = (totals(groups, part, n) for part in (old.exits, old.time, old.log_time))
        jumps = totals(cell, counts, n * n).reshape(n, n)
        pooled = emission.pool(old.emission, groups, n)
        stats = Stats(
            exits, times, log_times, jumps, run.astype(np.int32), old.run_time, old.weights, pooled, offsets=old.offsets
        )
        return stats, Params(np.ones(n), np.full((n, n), 1.0 / n), emission, np.full(n, 1.0 / n))

    def regroup(self, scene: Scene, groups: Ints) -> tuple[Stats, Params]:
        """Statistics of M' states, class c being state groups[c], and their best parameters."""
        stats, start = self.pool(scene, groups)
        return stats, minimise(stats, start, scene.model(len(start.rates)))

    def rough(self, scene: Scene, groups: Ints, m: int, before: Params) -> float:
        """The objective as `proposal` expects it or little more, where some classes of state m become the last state.

        All other states have their rates as before, and the base row is near its best: that takes hundreds of rounds.
        """
        stats, start = self.pool(scene, groups)
        prices, constraints, _ = scene.model(len(start.rates))
        new = np.zeros(len(start.rates), dtype=bool)
        new[[m, -1]] = True
        rates = np.where(new, exact_rates(stats, prices, new), np.append(before.rates, 0.0))
        emission = start.emission.update(stats.emission)
        base_row = None
        if before.base_row is None:
            rows = used_moves(stats.jumps, constraints.moves, prices)
        else:
            base_row = np.append(before.base_row, before.base_row[m])
            base_row /= base_row.sum()
            rows, base_row = shared_rows(stats.jumps, constraints.moves, prices, base_row, ROUGH_ROUNDS)
        return evaluate(stats, Params(rates, rows, emission, base_row), prices).total

    def proposal(self, scene: Scene, kind: str, groups: Ints) -> Proposal:
        """The same as a proposal: the objective of the relabelled trajectories is known exactly."""
        stats, params = self.regroup(scene, groups)
        return Proposal(kind, evaluate(stats, params, scene.prices).total, lambda: params)


def class_stats(scene: Scene, time: Timeline, classes: Ints, parent: Ints) -> Classes:
    """Statistics of classes of dwells, in one pass."""
    n = len(parent)
    block = scene.block
    done = time.complete
    weight = time.weight[done]
    own, length = classes[done], time.length[done]

    follows = np.flatnonzero(time.before >= 0)
    cells, inverse = np.unique(classes[follows - 1] * n + classes[follows], return_inverse=True)
    counts = totals(inverse, time.weight[follows], len(cells))
    # of each sequence, its first and last dwell as far as they are running
    ends = np.column_stack([time.first, np.append(time.first[1:], len(classes)) - 1])
    running = ~time.complete[ends] & np.column_stack([ends[:, 0] < ends[:, 1], np.ones(len(ends), dtype=bool)])
    run_state = np.where(running, classes[ends], -1).astype(np.int32)
    run_time = np.where(running, time.length[ends], 0.0)
    emission = scene.params.emission.take(parent)
    stats = Stats(
        totals(own, weight, n), totals(own, weight * length, n), totals(own, weight * np.log(length), n),
        np.zeros((0, 0)), run_state, run_time, block.weights,
        emission.stats(block.x, classes[time.row_dwell], block.row_weights),
        offsets=None if scene.stats is None else scene.stats.offsets,
    )  # fmt: skip
    return Classes(parent, stats, (cells // n, cells % n, counts))


def pair_moves(scene: Scene, time: Timeline) -> Iterator[Proposal]:
    """The paper's move: what is entered from m by a jump to m' becomes a state of its own."""
    M = len(scene.params.rates)
    # class of a dwell: its state and the one before, M for none
    classes = time.state * (M + 1) + np.where(time.before < 0, M, time.before)
    split = class_stats(scene, time, classes, np.repeat(np.arange(M), M + 1))
    entered = totals(classes, time.weight, M * (M + 1)).reshape(M, M + 1)
    # where that is all that enters, the state only changes its name
    pairs = np.argwhere((entered[:, :M] > 0) & (entered[:, :M] < entered.sum(axis=1, keepdims=True)))

    def groups_of(m: int, before: int) -> Ints:
        groups = split.parent.copy()
        groups[m * (M + 1) + before] = M
        return groups

    if len(pairs) > SHORTLIST:
        now = split.regroup(scene, split.parent)[1]
        rough = [split.rough(scene, groups_of(m, before), m, now) for m, before in pairs]
        pairs = pairs[np.sort(np.argsort(rough, kind="stable")[:SHORTLIST])]
    for m, before in pairs:
        yield split.proposal(scene, "pair", groups_of(m, before))


def dwell_splits(scene: Scene, time: Timeline) -> Iterator[Proposal]:
    """Short dwells of a state become a state of their own."""
    M = len(scene.params.rates)
    short = np.zeros(len(time.state), dtype=bool)
    for m in range(M):
        own = np.flatnonzero((time.state == m) & time.complete)
        if len(own) > 1:
            short[own[time.length[own] <= short_and_long(time.length[own], time.weight[own])]] = True
    split = class_stats(scene, time, 2 * time.state + short, np.repeat(np.arange(M), 2))
    sizes = np.bincount(2 * time.state + short, minlength=2 * M).reshape(M, 2)
    for m in np.flatnonzero(sizes.all(axis=1)).tolist():
        groups = split.parent.copy()
        groups[2 * m + 1] = M
        yield split.proposal(scene, "dwells", groups)


def short_and_long(length: Floats, weight: Floats) -> float:
    """Longest of the short ones, in the best division of dwells by Σ h; the longest of all if there is none."""
    order = np.argsort(length, kind="stable")
    t, w = length[order], weight[order]
    count, total = np.cumsum(w), np.cumsum(w * t)
    k = np.flatnonzero(t[:-1] < t[1:])
    if len(k) == 0:
        return float(t[-1])
    rest, rest_total = count[-1] - count[k], total[-1] - total[k]
    cost = count[k] * np.log(total[k] / count[k]) + rest * np.log(rest_total / rest)
    return float(t[k[np.argmin(cost)]])


def emission_splits(scene: Scene, time: Timeline) -> Iterator[Proposal]:
    """2-means of the rows inside a state; the decoder then finds where the new state begins and ends."""
    params, block, prices = scene.params, scene.block, scene.prices
    M = len(params.rates)
    states = time.state[time.row_dwell]
    weight = block.row_weights
    upper = np.zeros(len(states), dtype=bool)
    seen = np.isfinite(scene.features).any(axis=1)
    for m in range(M):
        own = np.flatnonzero((states == m) & seen)
        if len(own) > 1:
            upper[own] = two_means(scene.features[own], weight[own])
    parent = np.repeat(np.arange(M), 2)
    doubled = params.emission.take(parent)
    fine = doubled.stats(block.x, 2 * states + upper, weight)
    sizes = np.bincount((2 * states + upper)[seen], minlength=2 * M).reshape(M, 2)
    now = evaluate(scene.stats, params, prices)
    for m in np.flatnonzero(sizes.all(axis=1)).tolist():
        groups = parent.copy()
        groups[2 * m + 1] = M
        index = np.append(np.arange(M), m)
        pooled = doubled.pool(fine, groups, M + 1)
        emission = params.emission.take(index).update(pooled)
        change = prices.emission @ (emission.totals(pooled) + emission.prior_costs())
        expected = now.total - now.observations - now.emission_prior + change + prices.state_cost
        yield Proposal("emissions", float(expected), partial(changed, scene, index, emission))


def changed(scene: Scene, index: Ints, emission: Record) -> Params:
    """Parameters of the states `index` of before; rows half way to even, since a state new or gone changes them all."""
    n = len(index)
    old = scene.params.take(index)
    rates = np.where(old.rates > 0, old.rates, scene.rate)
    if scene.prices.integrated:
        return Params(rates, np.ones((n, n)), emission)
    rows = old.transition_probs / np.maximum(old.transition_probs.sum(axis=1, keepdims=True), 1e-300)
    return Params(rates, 0.5 * (rows + 1.0 / n), emission, np.full(n, 1.0 / n))


def two_means(F: Floats, weights: Floats) -> NDArray[np.bool_]:
    """Rows in the second of two clusters; begins on either side of the mean along the widest direction."""
    present = np.isfinite(F)
    filled = np.where(present, F, 0.0)
    mean = (weights @ filled) / np.maximum(weights @ present, 1e-300)
    F = np.where(present, F - mean, 0.0)
    widest = np.linalg.eigh((F * weights[:, None]).T @ F)[1][:, -1]
    widest *= np.sign(widest[np.argmax(np.abs(widest))])
    upper = F @ widest > 0
    for _ in range(LLOYD_STEPS):
        w1, w0 = np.where(upper, weights, 0.0), np.where(upper, 0.0, weights)
        if w1.sum() == 0 or w0.sum() == 0:
            break
        c1, c0 = w1 @ F / w1.sum(), w0 @ F / w0.sum()
        new = F @ (c1 - c0) > 0.5 * (c1 @ c1 - c0 @ c0)
        if np.array_equal(new, upper):
            break
        upper = new
    return np.asarray(upper)


def merges(scene: Scene, time: Timeline) -> Iterator[Proposal]:
    """Two states become one: the rows of m go to r."""
    states, cost = time.state[time.row_dwell], row_costs(scene)
    M = len(scene.params.rates)
    handed = np.array([cost[states == m].sum(axis=0) for m in range(M)])
    now = evaluate(scene.stats, scene.params, scene.prices).total - scene.prices.state_cost

    def make(m: int, r: int) -> Params:
        keep = np.delete(np.arange(M), m)
        joined = np.where(states == m, r, states)
        emission = scene.params.emission
        stats = emission.stats(scene.block.x, joined, scene.block.row_weights)
        return changed(scene, keep, emission.update(stats).take(keep))

    for m in range(M):
        for r in range(M):
            if m != r:
                yield Proposal("merge", float(now + handed[m, r] - handed[m, m]), partial(make, m, r))


def drops(scene: Scene, time: Timeline) -> Iterator[Proposal]:
    """A state is given up, empty or not; the decoder finds which others take its rows."""
    states, cost = time.state[time.row_dwell], row_costs(scene)
    M = len(scene.params.rates)
    now = evaluate(scene.stats, scene.params, scene.prices).total - scene.prices.state_cost
    for m in range(M if M > 1 else 0):
        own = cost[states == m]
        keep = np.delete(np.arange(M), m)
        expected = now + float((own[:, keep].min(axis=1) - own[:, m]).sum())
        yield Proposal("drop", expected, partial(changed, scene, keep, scene.params.emission.take(keep)))


def row_costs(scene: Scene) -> Floats:
    """(n, M) weighted observation cost of each row in each state."""
    cost = scene.params.emission.cost(scene.block.x, scene.prices.emission)
    return cost * scene.block.row_weights[:, None]


PROPOSALS: dict[str, Callable[[Scene, Timeline], Iterator[Proposal]]] = {
    "pair": pair_moves,
    "emissions": emission_splits,
    "dwells": dwell_splits,
    "merge": merges,
    "drop": drops,
}
BIRTHS = ("pair", "emissions", "dwells")
