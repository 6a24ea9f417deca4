"""Posteriors, log-likelihoods and expected statistics on a device: a process goes up, and what is asked comes down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cuda

from ...arrays import Floats
from ...kernels.cuda import smooth as kernels
from ...kernels.cuda.arithmetic import SUM_THREADS
from ...kernels.cuda.sums import Summed
from ...kernels.cuda.sweep import PLACE
from ...kernels.forward_backward import largest_gap
from ...model.propagator import Propagator
from ...passes import smooth as passes
from ...passes.smooth import Expected
from .columns import density_forms, is_spoken, kept, read_stats
from .layout import DeviceDwells, no_scratch, scratch, sum_grid, total
from .sweep import MOST_SUMS, NotHereError, check_levels, check_states, no_path

if TYPE_CHECKING:
    from ..cuda import HeldOnDevice


class Ready:
    """A process and all else that the kernels of this module take, on the device."""

    def __init__(self, held: HeldOnDevice, propagator: Propagator) -> None:
        process, layout = propagator.process, held.layout
        if not isinstance(propagator, Propagator) or process.effects is not None:
            raise NotHereError("rates depend on covariates")
        M = len(process.rates)
        check_states(M, layout)
        if layout.has_kinds:
            raise NotHereError("rows are not all snapshots")
        forms, theta = density_forms(process.emission)
        given = np.zeros((1, M)) if is_spoken(process.emission) else held.of_rows(process.emission.log_density)
        room = 1 << int(layout.longest).bit_length()
        self.form = kernels.Smoothed(M, layout.real, forms, layout.is_masked, room)
        self.observed = layout.x, cuda.to_device(theta), cuda.to_device(given), layout.mask
        rate, B, table, _, _ = propagator.tables
        self.chain: tuple[Any, ...] = (
            cuda.to_device(process.initial_probs), float(rate), float(largest_gap(table.shape[1])), cuda.to_device(B),
            cuda.to_device(table),
        )  # fmt: skip
        shapes, self.grid = kernels.scratch_shapes(self.form), sum_grid(layout.n_sequences)
        if self.form.is_local:
            self.scratch = no_scratch(shapes)
        else:
            self.scratch, blocks = scratch(shapes, self.grid[0] * SUM_THREADS, SUM_THREADS)
            self.grid = blocks, SUM_THREADS
        self.held, self.process = held, process
        self.log_lik = cuda.device_array(layout.n_sequences, np.float64)
        self.where = cuda.to_device(np.full(1, np.iinfo(np.int64).max))

    def check(self) -> None:
        """Refuse a sequence that the process cannot produce."""
        failed = int(self.where.copy_to_host()[0])
        if failed < np.iinfo(np.int64).max:
            emission = self.process.emission
            raise no_path(self.held, failed // PLACE, failed % PLACE, lambda x: -emission.unit_log_density(x))


def run(held: HeldOnDevice, propagator: Propagator, what: str, dwells: Any = None) -> tuple[Any, Floats, Any]:
    """Posterior (n, M) on the device if it is asked for, log-likelihoods (S,), and sums (M²,) if they are."""
    ready = Ready(held, propagator)
    layout, M = held.layout, ready.form.n_states
    posterior = cuda.device_array((layout.n_rows if what == kernels.POSTERIOR else 1, M), np.float64)
    dwells = layout.blank() if dwells is None else dwells
    parts = cuda.device_array((ready.grid[0], M * M), np.float64)
    kernels.make_smooth(ready.form, what)[ready.grid](
        ready.scratch, ready.observed, layout.sequences, layout.weights, layout.tau, ready.chain,
        (ready.log_lik, posterior, dwells.arrays), parts, ready.where,
    )  # fmt: skip
    ready.check()
    return posterior, ready.log_lik.copy_to_host(), parts


def smooth(held: HeldOnDevice, state: Any, propagator: Propagator, levels: Any = None) -> tuple[Any, list[Any]]:
    """The pass `jumpmeans.passes.smooth.smooth`."""
    check_levels(levels)
    posterior, log_lik, _ = run(held, propagator, kernels.POSTERIOR)
    return state, [(posterior.copy_to_host(), log_lik)]


def weigh(held: HeldOnDevice, state: Any, propagator: Propagator, levels: Any = None) -> tuple[Any, list[Any]]:
    """The pass `jumpmeans.passes.smooth.weigh`."""
    check_levels(levels)
    return state, [run(held, propagator, kernels.WEIGH)[1]]


def agree(held: HeldOnDevice, state: Any, propagator: Propagator, levels: Any = None) -> tuple[Any, list[Any]]:
    """The pass `jumpmeans.passes.smooth.agree`."""
    check_levels(levels)
    if not isinstance(state, DeviceDwells):
        raise NotHereError("the trajectories are not on the device")
    parts = run(held, propagator, kernels.AGREE, state)[2]
    M = len(propagator.process.rates)
    return state, [total(parts).reshape(M, M)]


def expect(held: HeldOnDevice, state: Any, propagator: Propagator, levels: Any = None) -> tuple[Any, list[Any]]:
    """The pass `jumpmeans.passes.smooth.expect`; sequences that must not go by the eigenbasis go by threads."""
    check_levels(levels)
    process, layout = propagator.process, held.layout
    ready = Ready(held, propagator)
    sound, values, *basis = propagator.eigen
    if not sound:
        raise NotHereError("the eigenvectors of the rate matrix are too nearly alike")
    M, S, emission = ready.form.n_states, layout.n_sequences, process.emission
    here = kept(emission)
    summed = Summed(M, layout.real, here.columns, kernels.expected_places(M))
    places = summed.column_places
    if places[-1] > MOST_SUMS:
        raise NotHereError("the statistics of its columns are too many for a device thread")
    if not is_spoken(emission):
        raise NotHereError("a column has a family without device code")
    posterior = cuda.device_array((1, M), np.float64)
    left_out = cuda.device_array(S, np.int8)
    parts = cuda.device_array((ready.grid[0], places[-1]), np.float64)
    is_real = not np.any(values.imag)
    chain = *ready.chain, *(cuda.to_device(np.ascontiguousarray(part)) for part in (values, *basis))
    kernels.make_expect(ready.form, summed, False, is_real)[ready.grid](
        ready.scratch, ready.observed, layout.sequences, layout.weights, layout.tau, chain,
        (
            layout.sequences[3], ready.log_lik, posterior, cuda.to_device(here.theta), cuda.to_device(here.origin),
            left_out,
        ),
        parts, ready.where,
    )  # fmt: skip
    ready.check()
    sums = total(parts)
    gathered = sums[: 2 * M * M].reshape(2, M, M)
    log_lik = ready.log_lik.copy_to_host()
    integrals = propagator.transform(gathered[0] + 1j * gathered[1])
    first = sums[2 * M * M : places[0]]
    found = Expected(integrals, first, read_stats(emission, sums, places), log_lik)
    rest = np.flatnonzero(left_out.copy_to_host())
    if len(rest) == 0:
        return state, [found]
    numbers = np.sort(layout.sequences[4].copy_to_host()[rest])
    more = passes.expect(held.sequences(numbers), None, propagator)[1]
    log_lik[numbers] = more.log_lik
    columns = tuple(mine + other for mine, other in zip(found.emission, more.emission, strict=True))
    return state, [Expected(integrals + more.integrals, first + more.first, columns, log_lik)]
