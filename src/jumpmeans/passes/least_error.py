"""The trajectories that err least: least expected time in the wrong state, given all observations."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats
from ..kernels.least_error import least_error_block
from ..model.levels import Levels
from ..model.propagator import Propagator
from .block import Block, Dwells
from .relative import log_densities, relative


def err_least(
    block: Block, _: None, propagator: Propagator, prices: Floats, jumps: int, levels: Levels | None = None
) -> tuple[Dwells, None]:
    """The pass behind `decode(criterion="time")`.

    prices (M, M) of the jumps, in units of time; a gap has room for so many `jumps` at least.
    """
    process = propagator.process
    block = relative(block, levels)
    log_density = log_densities(block, process.emission, levels)
    where, counts, states, starts, rows, _, _ = least_error_block(
        block.tau, block.row_kinds, block.offsets, block.ends, block.admitted(log_density), process.initial_probs,
        propagator.tables, prices, jumps,
    )  # fmt: skip
    if where[0] >= 0:
        raise block.no_path(where[0], where[1], -log_density)
    return Dwells(np.concatenate([[0], np.cumsum(counts)]), states, starts, rows), None
