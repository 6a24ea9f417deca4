"""The trajectories that err least: least expected time in the wrong state, given all observations."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import Floats, Ints
from ..kernels.forward_backward import RADIX, USUAL_DIGITS, power_tables
from ..kernels.least_error import least_error_block
from ..model.levels import Levels
from ..model.process import Process
from .block import Block, Dwells
from .relative import log_densities, relative
from .smooth import Ready
from .varying import Varying

# Bytes of tables at a time.
ROOM = 2**27


def err_least(
    block: Block, _: None, propagator: Ready, prices: Floats, jumps: int, levels: Levels | None = None
) -> tuple[Dwells, None]:
    """The pass behind `decode(criterion="time")`.

    prices (M, M) of the jumps, in units of time; a gap has room for so many `jumps` at least.
    """
    block = relative(block, levels)
    if isinstance(propagator, Varying):
        parts = few_laws(block, len(propagator.process.rates))
        found = [_least(part, propagator.process, _laws(part, propagator), prices, jumps, levels) for part in parts]
        return Dwells.join(found), None
    laws = stacked([propagator.tables]), np.zeros(len(block.tau) + block.n_sequences, np.int64)
    return _least(block, propagator.process, laws, prices, jumps, levels), None


def stacked(found: list[Any]) -> Any:
    """Tables of several laws as one, with one more axis in front."""
    n = max(table.shape[1] for _, _, table, _, _ in found)
    # beyond its last digit e^{Qt} no longer changes
    filled = [
        np.concatenate([table, np.repeat(table[:, -1:], n - table.shape[1], 1)], 1) for _, _, table, _, _ in found
    ]
    rates, Bs, _, n_terms, lams = zip(*found, strict=True)
    return np.array(rates), np.array(Bs), np.array(filled), max(n_terms), np.array(lams)


def _least(
    block: Block, process: Process, laws: tuple[Any, Ints], prices: Floats, jumps: int, levels: Levels | None
) -> Dwells:
    log_density = log_densities(block, process.emission, levels)
    where, counts, states, starts, rows, _, _ = least_error_block(
        block.tau, block.row_kinds, block.offsets, block.ends, block.admitted(log_density), process.initial_probs,
        *laws, prices, jumps,
    )  # fmt: skip
    if where[0] >= 0:
        raise block.no_path(where[0], where[1], -log_density)
    return Dwells(np.concatenate([[0], np.cumsum(counts)]), states, starts, rows)


def few_laws(block: Block, M: int) -> list[Block]:
    """The sequences of a block in parts whose rates differ so little that tables for all of them have room."""
    most = max(1, ROOM // (2 * USUAL_DIGITS * (RADIX - 1) * M * M * 8))
    changes = np.diff(block.offsets)  # no sequence has more laws than rows
    if block.z is not None:
        new = np.ones(len(block.tau), dtype=np.int64)
        new[1:] = (np.diff(block.z, axis=0) != 0).any(axis=1)
        new[block.offsets[:-1]] = 1
        changes = np.add.reduceat(new, block.offsets[:-1])
    edges = [0]
    total = 0
    for i, own in enumerate(changes.tolist()):
        if total and total + own > most:
            edges.append(i)
            total = 0
        total += own
    return [block.part(i, j) for i, j in pairwise([*edges, block.n_sequences])]


def _laws(block: Block, propagator: Varying) -> tuple[Any, Ints]:
    """Tables for each law of a block, and which of them holds over each gap."""
    Q = propagator.process.rate_matrices(block.gaps.z)
    rates = -np.diagonal(Q, axis1=1, axis2=2).min(axis=1)
    # as many digits for all: the longest gap in units of the fastest state is the same
    reach = block.longest_gap * rates.max(initial=0.0)
    found = [power_tables(q, reach / rate if rate > 0 else 0.0) for q, rate in zip(Q, rates.tolist(), strict=True)]
    return stacked(found), block.gaps.groups
