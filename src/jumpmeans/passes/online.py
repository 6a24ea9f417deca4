"""The decode that can be had row by row: jumps stay at candidates that no later row moves."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats
from ..kernels.online import decode_plainly
from ..model.objective import Prices
from ..model.params import Params
from .block import Block, Dwells
from .sweep import Search, places


def decode_online(
    block: Block, _: None, params: Params, costs: Floats, prices: Prices, search: Search
) -> tuple[Dwells, None]:
    """The pass behind `decode(criterion="online")`; `costs` (M, M) are those of the jumps."""
    S = block.n_sequences
    slots = np.arange(S + 1) + search.base * (block.offsets + np.arange(S + 1))
    states, starts, rows = np.zeros(slots[-1], np.int32), np.zeros(slots[-1]), np.zeros(slots[-1], np.int32)
    counts = np.zeros(S, np.int64)
    where = decode_plainly(
        block.tau, block.seen, block.offsets, block.ends, params.emission.cost(block.x, prices.emission),
        params.rates, costs, search.base, search.first_running == 1, search.free_end == 1,
        states, starts, rows, counts,
    )  # fmt: skip
    if where[0] >= 0:
        raise block.no_path(where[0], where[1] - 1)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    here = places(slots, offsets)
    return Dwells(offsets, states[here], starts[here], rows[here]), None
