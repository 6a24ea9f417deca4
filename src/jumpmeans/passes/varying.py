"""Passes where rates depend on covariates: every gap of a block has the rates of the row before it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import Floats, Ints
from ..kernels.pairs import expect_pairs, integrate_pairs, transitions_of_pairs
from ..kinds import BARS
from ..model.process import Process
from .block import Block


class Varying(NamedTuple):
    """A process whose rates depend on covariates: what its gaps need is made ready block by block."""

    process: Process


class Gaps(NamedTuple):
    """The gaps of a block by rates and length: those before each row (n), then those to the ends of the windows (S).

    z (G, K): distinct covariates; groups (n + S,): which of them hold over a gap; pairs (n + S,): which pair of group
    and length it is, -1 for a gap of length 0 or one without a jump; pair_groups, lengths (n_pairs,) of each.
    """

    z: Floats
    groups: Ints
    pairs: Ints
    pair_groups: Ints
    lengths: Floats

    @classmethod
    def of(cls, block: Block) -> Gaps:
        """The gaps of a block whose rates depend on covariates."""
        z, codes = block.patterns
        n, first, last = len(block.tau), block.offsets[:-1], block.offsets[1:] - 1
        groups = np.empty(n + block.n_sequences, np.int64)
        groups[1:n] = codes[: n - 1]
        groups[first] = codes[first]
        groups[n:] = codes[last]
        gaps = np.empty(n + block.n_sequences)
        tau, ends = block.own_times
        gaps[1:n] = np.diff(tau)
        gaps[first] = tau[first]
        gaps[n:] = ends - tau[last]
        used = gaps > 0
        used[:n] &= ~BARS[block.row_kinds]
        pairs = np.full(len(gaps), -1)
        own = np.flatnonzero(used)
        order = own[np.lexsort((gaps[own], groups[own]))]
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(groups[order]) != 0) | (np.diff(gaps[order]) != 0)
        pairs[order] = np.cumsum(new) - 1
        return cls(z, groups, pairs, groups[order][new], gaps[order][new])


class Depending(NamedTuple):
    """What the gaps of sequences expect, by the covariates that hold over them; those of blocks add up in order.

    z (G, K): covariates; time (G, M): expected time in each state under them; slopes (K, M, M): times q_ij the sum of
    each column of z over the expected jumps.
    """

    z: Floats
    time: Floats
    slopes: Floats

    @classmethod
    def join(cls, parts: list[Depending]) -> Depending:
        """The same of all blocks."""
        slopes = parts[0].slopes
        for part in parts[1:]:
            slopes = slopes + part.slopes
        return cls(np.concatenate([part.z for part in parts]), np.concatenate([part.time for part in parts]), slopes)


class Passed(NamedTuple):
    """Posterior (n, M) of the rows, log-likelihood (S,) of the sequences, sequence and row that cannot be (-1: none).

    integrals, first, depending : as in `Expected`.
    """

    posterior: Floats
    log_lik: Floats
    where: Ints
    integrals: Floats
    first: Floats
    depending: Depending


def pass_over(block: Block, process: Process, density: Floats, integrate: bool) -> Passed:
    """Posterior and, to `integrate`, expectations; density (n, M): log-densities of the rows in each state."""
    gaps, M = block.gaps, len(process.rates)
    tau, ends = block.own_times
    Q = process.rate_matrices(gaps.z)
    G, n_pairs = len(Q), len(gaps.lengths)
    jumps = np.where(np.eye(M) > 0, 0.0, Q)
    lam = np.ascontiguousarray(-Q[:, np.arange(M), np.arange(M)])
    P, W, R = np.empty((n_pairs, M, M)), np.zeros((n_pairs, M, M)), np.zeros((G, M, M))
    transitions_of_pairs(Q, gaps.pair_groups, gaps.lengths, P)
    posterior, log_lik, first = np.empty((len(block.tau), M)), np.zeros(block.n_sequences), np.zeros(M)
    where = expect_pairs(
        tau, block.row_kinds, block.offsets, ends, block.weights, block.own_paces, density, process.initial_probs,
        gaps.groups, gaps.pairs, np.stack([jumps, jumps.transpose(0, 2, 1)], axis=1), lam, P,
        posterior, log_lik, W, R, first,
    )  # fmt: skip
    if integrate and where[0] < 0:
        integrate_pairs(Q, gaps.pair_groups, gaps.lengths, W, R)
    time = np.ascontiguousarray(R[:, np.arange(M), np.arange(M)])
    ratios = np.exp(process.effects.log_ratios(gaps.z)) if process.effects is not None else np.ones((G, M, M))
    R *= np.where(np.eye(M) > 0, 1.0, ratios)
    slopes = np.tensordot(gaps.z, np.where(np.eye(M) > 0, 0.0, R), axes=(0, 0))
    return Passed(posterior, log_lik, where, R.sum(axis=0), first, Depending(gaps.z, time, slopes))
