"""A sweep: decode every sequence of a block, place its jumps, gather statistics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Floats, Ints, totals
from ..kernels.sweep import sweep_block
from ..model.levels import Levels
from ..model.objective import Prices, Stats
from ..model.params import Params
from ..stored import stored
from ..stored.kinds import require
from .block import Block, Dwells
from .hazards import Hazards, exposure_of
from .relative import assigned_readings, relative

# Rounds of decoding and jump times after which a closing decode stops in any case.
MAX_ROUNDS = 100
BEAM_PER_GAP = 8
# Candidates in a gap at most: twice what `jumps_per_gap` may be, for a beam.
MOST_PER_GAP = 2000


@stored
class Search(NamedTuple):
    """How jumps are looked for: candidates per gap at first, at most, and the paper's choices.

    rounds : 1 for a sweep of a fit; more alternate decoding and jump times to a fixed point.
    free_end : 1 if the running dwell costs nothing, as in the nonparametric objective as printed.
    """

    base: int
    per_gap: int
    beam: int
    first_running: int
    rounds: int = 1
    free_end: int = 0

    def check_fields(self) -> None:
        """Refuse what is no search, if it comes from a file: a kernel takes its numbers for sizes."""
        most = {"base": MOST_PER_GAP, "per_gap": MOST_PER_GAP, "rounds": MAX_ROUNDS}
        for name, x in self._asdict().items():
            require(type(x) is int and 0 <= x <= most.get(name, 1), f"{name} of a search must be a number, got {x!r}")
        require(1 <= self.base <= self.per_gap, f"a search must have candidates, got {self}")


def blank(block: Block, _: None) -> tuple[Dwells, None]:
    """The pass that lays down trajectories without jumps."""
    return Dwells.blank(block), None


def occupy(block: Block, dwells: Dwells, n_states: int) -> tuple[Dwells, tuple[Floats, Ints]]:
    """Time in each state of trajectories, and visits."""
    ends = np.append(dwells.starts[1:], 0.0)
    ends[dwells.offsets[1:] - 1] = block.ends
    time = totals(dwells.states, ends - dwells.starts, n_states)
    return dwells, (time, np.bincount(dwells.states, minlength=n_states))


def sweep(
    block: Block,
    dwells: Dwells,
    params: Params,
    costs: Floats,
    prices: Prices,
    search: Search,
    levels: Levels | None = None,
) -> tuple[Dwells, Stats]:
    """Best trajectories under the parameters, going on from `dwells`, and their statistics.

    `costs` (M, M) are those of the jumps; values are relative to `levels`, if there are any.
    """
    block = relative(block, levels)
    M, S = params.emission.n_states, block.n_sequences
    most = block.most_dwells(search.per_gap)
    offsets, states = np.zeros(S + 1, np.int64), np.empty(most, np.int32)
    starts, rows = np.empty(most), np.empty(most, np.int32)
    row_states = np.empty(len(block.tau), np.int32)
    exits, time, log_time, jumps = np.zeros(M), np.zeros(M), np.zeros(M), np.zeros((M, M))
    run_state, run_time = np.empty((S, 2), np.int32), np.empty((S, 2))
    cost = params.emission.cost(block.x, prices.emission)
    hazards = Hazards.of(block, params, costs, prices.transition)
    where = sweep_block(
        block.tau, hazards.holds, block.row_kinds, block.offsets, block.ends, block.weights,
        admitted(block, cost, prices), hazards.rates, hazards.jumps,
        hazards.course(block, search.per_gap), tuple(search),
        *dwells, offsets, states, starts, rows,
        row_states, exits, time, log_time, jumps, run_state, run_time,
    )  # fmt: skip
    if where[0] >= 0:  # found after the row that no state could explain
        raise block.no_path(where[0], where[1] - 1, cost)
    del cost  # the largest array of a sweep
    n = offsets[-1]
    found = Dwells(offsets, states[:n].copy(), starts[:n].copy(), rows[:n].copy())
    emission = params.emission.stats(block.x, row_states, block.row_weights)
    first = totals(found.states[offsets[:-1]], block.weights, M)
    told = None if params.effects is None else exposure_of(block, found, M, search.first_running == 1)
    readings = None if levels is None else assigned_readings(block, row_states, params, levels)
    return found, Stats(
        exits, time, log_time, jumps, run_state, run_time, block.weights, emission, first, told, readings
    )  # fmt: skip


def admitted(block: Block, cost: Floats, prices: Prices) -> Floats:
    """Costs (n, M) of the rows, infinite in states that a row does not allow, or that none may begin in."""
    if block.allowed is not None:
        cost = np.where(block.allowed, cost, np.inf)
    if prices.first is not None:
        cost = cost.copy()
        cost[block.offsets[:-1]] += prices.first  # windows begin with their first rows (`check_first`)
    return cost
