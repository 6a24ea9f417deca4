"""The decode that can be had row by row: jumps stay at candidates that no later row moves."""

from __future__ import annotations

import numpy as np

from ..arrays import Floats
from ..kernels.online import decode_plainly
from ..model.levels import Levels
from ..model.objective import Prices
from ..model.params import Params
from .block import Block, Dwells
from .relative import relative
from .sweep import Search, admitted


def decode_online(
    block: Block,
    _: None,
    params: Params,
    costs: Floats,
    prices: Prices,
    search: Search,
    levels: Levels | None = None,
) -> tuple[Dwells, None]:
    """The pass behind `decode(criterion="online")`; `costs` (M, M) are those of the jumps."""
    block = relative(block, levels)
    most = block.most_dwells(search.base)
    offsets, states = np.zeros(block.n_sequences + 1, np.int64), np.empty(most, np.int32)
    starts, rows = np.empty(most), np.empty(most, np.int32)
    cost = params.emission.cost(block.x, prices.emission)
    where = decode_plainly(
        block.tau, block.holds, block.row_kinds, block.offsets, block.ends,
        admitted(block, cost, prices), params.rates, costs,
        search.base, search.first_running == 1, search.free_end == 1, offsets, states, starts, rows,
    )  # fmt: skip
    if where[0] >= 0:  # found after the row that no state could explain
        raise block.no_path(where[0], where[1] - 1, cost)
    n = offsets[-1]
    return Dwells(offsets, states[:n].copy(), starts[:n].copy(), rows[:n].copy()), None
