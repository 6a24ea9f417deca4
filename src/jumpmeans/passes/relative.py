"""Readings relative to the levels of the people they are of: a block as it looks once their offsets are taken out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..arrays import Codes, Floats, totals
from ..emissions import Record
from ..model.levels import Levels, Readings
from ..model.params import Params
from ..model.process import Process
from .block import Block


def relative(block: Block, levels: Levels | None) -> Block:
    """The block with the offsets of its sequences taken out of its values."""
    if levels is None:
        return block
    own = levels.units[block.first : block.first + block.n_sequences]
    return replace(block, x=block.x - np.repeat(levels.means[own], np.diff(block.offsets), axis=0))


def log_densities(block: Block, emission: Record, levels: Levels | None) -> Floats:
    """(n, M) log-density of each row of a relative block, averaged over what is not known of the offsets."""
    out = emission.unit_log_density(block.x)
    if levels is not None:
        own = levels.units[block.first : block.first + block.n_sequences]
        for d in levels.columns:
            toll = emission.columns[d].level_toll(levels.means[own, d], levels.variances[own, d])
            present = np.isfinite(block.x[:, d])
            out -= np.where(present[:, None], np.repeat(toll, np.diff(block.offsets), axis=0), 0.0)
    return out


def assigned_readings(block: Block, row_states: Codes, params: Params, levels: Levels) -> Readings:
    """Readings of a relative block whose rows are in given states."""
    S, M, D = block.n_sequences, params.emission.n_states, block.x.shape[1]
    counts, residuals = np.zeros((S, M, D)), np.zeros((S, M, D))
    cell = np.repeat(np.arange(S), np.diff(block.offsets)) * M + row_states
    for d in levels.columns:
        x = block.x[:, d]
        there = np.isfinite(x)
        off = x[there] - params.emission.columns[d].centres_of_levels()[row_states[there]]
        counts[:, :, d] = totals(cell[there], np.ones(len(off)), S * M).reshape(S, M)
        residuals[:, :, d] = totals(cell[there], off, S * M).reshape(S, M)
    return Readings(counts, residuals)


def shared_readings(block: Block, posterior: Floats, process: Process, levels: Levels) -> Readings:
    """Readings of a relative block whose rows are shared among the states by the unweighted posterior (n, M)."""
    S, M, D = block.n_sequences, len(process.rates), block.x.shape[1]
    counts, residuals = np.zeros((S, M, D)), np.zeros((S, M, D))
    first = block.offsets[:-1]
    for d in levels.columns:
        there = np.isfinite(block.x[:, d])[:, None]
        share = np.where(there, posterior, 0.0)
        off = block.x[:, d, None] - process.emission.columns[d].centres_of_levels()
        counts[:, :, d] = np.add.reduceat(share, first, axis=0)
        residuals[:, :, d] = np.add.reduceat(np.where(there, share * off, 0.0), first, axis=0)
    return Readings(counts, residuals)
