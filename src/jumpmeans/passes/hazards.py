"""What covariates do to the rates and the costs of jumps of a block, and what its dwells tell of their effects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Bools, Floats
from ..kernels.candidates import SPREAD
from ..kernels.clock import Course
from ..kernels.stats import split_dwells
from ..model.effects import LARGEST_LOG, Effects
from ..model.exposure import Exposure
from ..model.objective import jump_costs
from ..model.params import Params
from .block import Block, Dwells


class Hazards(NamedTuple):
    """Rates and costs of jumps as `sweep_block` takes them.

    rates : (1 or S, M); jumps : (1, S or n, M, M); pace : (n, M) where rates change within sequences, else None.
    holds : (n,) rows that no jump is moved past: those of the block, and those where rates change.
    """

    rates: Floats
    jumps: Floats
    pace: Floats | None
    holds: Bools

    @classmethod
    def of(cls, block: Block, params: Params, costs: Floats, weight: float) -> Hazards:
        """For params and their costs of jumps (M, M), -ξ ln p with ξ = `weight`.

        Covariates without any effect change nothing, to the last bit.
        """
        effects, z = params.effects, block.z
        felt = np.zeros(0, dtype=bool) if effects is None or z is None else effects.coefs.any(axis=(1, 2))
        if effects is None or z is None or not felt.any():
            return cls(params.rates[None], costs[None], None, block.holds)
        if not block.turning[felt].any():
            pace, chain = paces(effects, params, z[block.offsets[:-1]])
            jumps = costs[None] if chain is None else jump_costs(chain, weight)
            return cls(params.rates * pace, jumps, None, block.holds)
        turns: Bools = np.asarray(block.turns[:, felt].any(axis=1))
        new = turns.copy()
        new[block.offsets[:-1]] = True
        pace, chain = paces(effects, params, z[new])
        jumps = costs[None] if chain is None else jump_costs(chain, weight)
        place = np.cumsum(new) - 1  # equal rows have equal bits
        return cls(
            params.rates[None], jumps if chain is None else jumps[place], pace[place], block.holds | turns
        )  # fmt: skip

    def course(self, block: Block, per_gap: int) -> Course | None:
        """The clocks of the states, with room for as many candidates as there may be; None if they tell time itself."""
        if self.pace is None:
            return None
        most = int(np.diff(block.offsets).max()) + 1
        pinned = int(np.count_nonzero(block.row_kinds))
        return Course.of(block.tau, self.pace, block.offsets, max(per_gap, SPREAD) * most + pinned)


def paces(effects: Effects, params: Params, z: Floats) -> tuple[Floats, Floats | None]:
    """What multiplies the exit rates (G, M) at z (G, K), and P (G, M, M) there; None if it stays the same."""
    P = params.transition_probs
    own = effects.of_states()
    if np.all((effects.coefs == own[:, :, None]) | (P == 0) | np.eye(len(P), dtype=bool)):
        return np.exp(np.clip(z @ own, -LARGEST_LOG, LARGEST_LOG)), None
    Q = params.jump_chain() * np.exp(effects.log_ratios(z))
    pace = Q.sum(axis=2)
    pace[:, params.rates == 0] = 1.0
    return pace, Q / np.where(pace > 0, pace, 1.0)[:, :, None]


def exposure_of(block: Block, dwells: Dwells, n_states: int, first_running: bool) -> Exposure:
    """Dwells of a block by the covariates that they were spent under."""
    z, pattern = block.patterns
    n = len(dwells.states)
    most = n + (int(np.count_nonzero(block.turns.any(axis=1))) if block.turning.any() else 0)
    exits, time, log_time = np.zeros((3, len(z), n_states))
    long_state, long_weight, running = np.empty(n, np.int64), np.empty(n), np.empty(n, np.bool_)
    offsets, piece_pattern, piece_time = np.zeros(n + 1, np.int64), np.empty(most, np.int64), np.empty(most)
    R = split_dwells(
        block.tau, block.offsets, block.ends, block.weights, pattern, first_running, *dwells,
        exits, time, log_time, long_state, long_weight, running, offsets, piece_pattern, piece_time,
    )  # fmt: skip
    Q = offsets[R]
    own, state = np.nonzero(exits)
    return Exposure(
        z, state, own, exits[own, state], time[own, state], log_time[own, state],
        long_state[:R].copy(), long_weight[:R].copy(), running[:R].copy(), offsets[: R + 1].copy(),
        piece_pattern[:Q].copy(), piece_time[:Q].copy(),
    )  # fmt: skip
