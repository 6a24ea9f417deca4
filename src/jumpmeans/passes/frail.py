"""Passes where all rates of a sequence are multiplied by what is not known of its person (`model.frailty`).

A sequence is looked at with each of K multipliers; what it expects is the mean over them, each by its chance.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..arrays import Floats, sum_in_order
from ..model.effects import Covariate, Effects
from ..model.process import Process
from .block import Block, Dwells
from .least_error import err_least
from .smooth import Expected, Ready, expect, posterior_of
from .varying import Depending, Varying


def _own(block: Block, table: Floats) -> Floats:
    """The part of a table (S, ...) of all sequences that a block has."""
    return np.ascontiguousarray(table[block.first : block.first + block.n_sequences])


def weigh_at(block: Block, _: None, ready: Ready, paces: Floats) -> tuple[None, Floats]:
    """Log-likelihood (S, K) of the sequences at multipliers (S, K)."""
    own = _own(block, paces)
    found = [posterior_of(replace(block, paces=pace), ready, None)[1] for pace in own.T]
    return None, np.column_stack(found)


def smooth_at(block: Block, _: None, ready: Ready, paces: Floats, chances: Floats) -> tuple[None, Floats]:
    """Posterior (n, M) of the rows, its mean over multipliers (S, K) with chances (S, K)."""
    out = np.zeros((len(block.tau), len(ready.process.rates)))
    lengths = np.diff(block.offsets)
    for pace, chance in zip(_own(block, paces).T, _own(block, chances).T, strict=True):
        out += np.repeat(chance, lengths)[:, None] * posterior_of(replace(block, paces=pace), ready, None)[0]
    return None, out


def expect_at(block: Block, _: None, ready: Ready, paces: Floats, weights: Floats) -> tuple[None, Expected]:
    """Expected statistics, sequences counting by weights (S, K) at multipliers (S, K); times count by these, too."""
    parts = [
        expect(replace(block, paces=pace, weights=weight), None, ready)[1]
        for pace, weight in zip(_own(block, paces).T, _own(block, weights).T, strict=True)
    ]
    found = Expected.join(parts)
    depending = [part.depending for part in parts if part.depending is not None]
    if depending:  # under the same covariates, whatever the multiplier
        time = sum_in_order([part.time for part in depending])
        found = found._replace(
            depending=Depending(depending[0].z, time, sum_in_order([part.slopes for part in depending]))
        )
    return None, found


def err_least_at(
    block: Block, _: None, process: Process, prices: Floats, jumps: int, paces: Floats
) -> tuple[Dwells, None]:
    """As `err_least`, of a process whose last effect is that of the logarithm of a multiplier, here (S,)."""
    z = np.repeat(np.log(_own(block, paces)), np.diff(block.offsets))[:, None]
    z = z if block.z is None else np.hstack([block.z, z])
    return err_least(replace(block, z=z), None, Varying(process), prices, jumps)


def with_multiplier(process: Process) -> Process:
    """The process with one more effect, of 1 on all rates, for the logarithm of a multiplier."""
    M = len(process.rates)
    old = process.effects or Effects([], np.zeros(0), np.zeros((0, M, M)), np.zeros((0, M, M), np.int64))
    return replace(
        process,
        effects=Effects(
            [*old.covariates, Covariate("multiplier")],
            np.append(old.centres, 0.0),
            np.concatenate([old.coefs, np.ones((1, M, M))]),
            np.concatenate([old.number, np.full((1, M, M), old.n_free)]),
        ),
    )
