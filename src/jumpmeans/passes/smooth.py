"""Probabilities of a process given all observations: of the states at the rows, and of all that was not seen."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import Floats, sum_in_order
from ..kernels.expectations import expect_block
from ..kernels.forward_backward import smooth_block
from ..model.frailty import Frailty, Weighed
from ..model.levels import Levels, Readings
from ..model.process import Process
from ..model.propagator import Propagator
from .block import Block, Dwells
from .relative import log_densities, relative, shared_readings
from .varying import Depending, Varying, pass_over

# A process made ready: once for all gaps, or for each block by its covariates.
Ready = Propagator | Varying


class Expected(NamedTuple):
    """Expected statistics of the process given all observations, weighted; those of blocks add up in order.

    integrals : (M, M) Σ R: diagonal = time in each state, times q_ij = number of jumps; first : (M,) first states;
    emission : statistics of each column under soft assignment; log_lik : (S,) log-likelihood of each sequence;
    readings : what the offsets of people are settled by, where there are any; people : what is known of the
    multipliers of their rates, where these differ.
    Where rates depend on covariates, off the diagonal times the rates of the baseline, and `depending` has the rest.
    """

    integrals: Floats
    first: Floats
    emission: tuple[Any, ...]
    log_lik: Floats
    depending: Depending | None = None
    readings: Readings | None = None
    people: tuple[Frailty, Weighed] | None = None

    @classmethod
    def join(cls, parts: list[Expected]) -> Expected:
        """Expected statistics of all blocks, added in their order."""
        return cls(
            sum_in_order([part.integrals for part in parts]),
            sum_in_order([part.first for part in parts]),
            tuple(sum_in_order(list(column)) for column in zip(*(part.emission for part in parts), strict=True)),
            np.concatenate([part.log_lik for part in parts]),
            None
            if parts[0].depending is None
            else Depending.join([part.depending for part in parts if part.depending]),
            None
            if parts[0].readings is None
            else Readings.joined([part.readings for part in parts if part.readings is not None]),
        )


def posterior_of(block: Block, propagator: Ready, levels: Levels | None) -> tuple[Floats, Floats]:
    """Posterior (n, M) of the rows of a relative block, and log-likelihood (S,) of its sequences."""
    process = propagator.process
    log_density = log_densities(block, process.emission, levels)
    if isinstance(propagator, Varying):
        found = pass_over(block, process, block.admitted(log_density), integrate=False)
        if found.where[0] >= 0:
            raise block.no_path(found.where[0], found.where[1], -log_density)
        return found.posterior, found.log_lik - log_units(block, process)
    posterior, log_lik = np.empty((len(block.tau), len(process.rates))), np.zeros(block.n_sequences)
    where = smooth_block(
        block.tau, block.row_kinds, block.offsets, block.own_paces, block.admitted(log_density), process.initial_probs,
        propagator.tables, posterior, log_lik,
    )  # fmt: skip
    if where[0] >= 0:
        raise block.no_path(where[0], where[1], -log_density)
    return posterior, log_lik - log_units(block, process)


def log_units(block: Block, process: Process) -> Floats:
    """(S,) what the units that densities are per add to the log-likelihood of each sequence."""
    return np.asarray(np.add.reduceat(process.emission.log_units(block.x), block.offsets[:-1]))


def smooth(
    block: Block, _: None, propagator: Ready, levels: Levels | None = None
) -> tuple[None, tuple[Floats, Floats]]:
    """The pass behind `predict_proba`: posterior of the rows, log-likelihood of the sequences."""
    return None, posterior_of(relative(block, levels), propagator, levels)


def weigh(block: Block, _: None, propagator: Ready, levels: Levels | None = None) -> tuple[None, Floats]:
    """Log-likelihood (S,) of the sequences alone."""
    return None, posterior_of(relative(block, levels), propagator, levels)[1]


def gauge(block: Block, _: None, propagator: Ready, levels: Levels) -> tuple[None, tuple[Readings, Floats]]:
    """What the offsets of people are settled by under a process that stays, and log-likelihood (S,)."""
    block = relative(block, levels)
    posterior, log_lik = posterior_of(block, propagator, levels)
    return None, (shared_readings(block, posterior, propagator.process, levels), log_lik)


def agree(block: Block, dwells: Dwells, propagator: Ready, levels: Levels | None = None) -> tuple[Dwells, Floats]:
    """(M, M) posterior weight of each state over the rows where trajectories are in each."""
    posterior = posterior_of(relative(block, levels), propagator, levels)[0] * block.row_weights[:, None]
    states = dwells.row_states(block.offsets)
    M = posterior.shape[1]
    return dwells, np.array([posterior[states == m].sum(axis=0) for m in range(M)])


def expect(block: Block, _: None, propagator: Ready, levels: Levels | None = None) -> tuple[None, Expected]:
    """The pass of an EM step: expected statistics."""
    process = propagator.process
    block = relative(block, levels)
    log_density = log_densities(block, process.emission, levels)
    if isinstance(propagator, Varying):
        found = pass_over(block, process, block.admitted(log_density), integrate=True)
        if found.where[0] >= 0:
            raise block.no_path(found.where[0], found.where[1], -log_density)
        soft = process.emission.soft_stats(block.x, found.posterior * block.row_weights[:, None])
        log_lik = found.log_lik - log_units(block, process)
        readings = None if levels is None else shared_readings(block, found.posterior, process, levels)
        return None, Expected(found.integrals, found.first, soft, log_lik, found.depending, readings)
    M = len(process.rates)
    posterior, log_lik = np.empty((len(block.tau), M)), np.zeros(block.n_sequences)
    S, R, first = np.zeros((M, M), np.complex128), np.zeros((M, M)), np.zeros(M)
    where = expect_block(
        block.tau, block.row_kinds, block.offsets, block.ends, block.weights, block.own_paces,
        block.admitted(log_density), process.initial_probs, propagator.tables, propagator.eigen,
        posterior, log_lik, S, R, first,
    )  # fmt: skip
    if where[0] >= 0:
        raise block.no_path(where[0], where[1], -log_density)
    del log_density
    log_lik -= log_units(block, process)
    readings = None if levels is None else shared_readings(block, posterior, process, levels)
    posterior *= block.row_weights[:, None]
    emission = process.emission.soft_stats(block.x, posterior)
    return None, Expected(R + propagator.transform(S), first, emission, log_lik, readings=readings)
