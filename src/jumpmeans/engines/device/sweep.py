"""The sweep on a device: parameters go up, statistics come down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cuda

from ...arrays import Floats
from ...kernels.candidates import SPREAD
from ...kernels.cuda import sweep as kernels
from ...kernels.cuda.arithmetic import THREADS
from ...kernels.cuda.decode import STATES
from ...kernels.cuda.sums import Summed, label_rows, make_gather, make_outlasted
from ...model.objective import Prices, Stats
from ...model.params import Params
from ...passes.block import NoPathError
from ...passes.sweep import Search
from .columns import cost_forms, is_spoken, kept, read_stats
from .layout import MOST_MASKED, DeviceDwells, Layout, blocks_of, no_scratch, scratch, sum_grid, total

if TYPE_CHECKING:
    from ..cuda import HeldOnDevice

# Sums that a thread keeps, and states: beyond, threads of the processor are the better place.
MOST_SUMS, MOST_STATES = 2048, 32
# More running dwells than these stay on the device, and only sums of them come down.
APART = 1 << 18


class NotHereError(Exception):
    """Internal: the device has no kernel for what is asked; the message says what is missing."""


class StatsApart(Stats):
    """Statistics whose running dwells lie on the device; who asks for the dwells themselves has them brought here."""

    def _here(self, handle: Any) -> Any:
        return np.ascontiguousarray(handle.copy_to_host().T)

    @property
    def is_apart(self) -> bool:
        """True: they lie elsewhere."""
        return True

    @property
    def run_state(self) -> Any:  # type: ignore[override]
        """(S, 2) states of running dwells."""
        return self._here(self[4]).astype(np.int32)

    @property
    def run_time(self) -> Any:  # type: ignore[override]
        """(S, 2) times of running dwells."""
        return self._here(self[5]).astype(np.float64)

    def outlasted(self, rates: Floats) -> tuple[Floats, Floats, Floats]:
        """(M,) sums of w, w y and w ln y over the running dwells y of each state with λ y >= 1."""
        run_state: Any = self[4]
        run_time: Any = self[5]
        M = len(rates)
        grid = sum_grid(run_state.shape[1])
        parts = cuda.device_array((grid[0], 3 * M), np.float64)
        make_outlasted(M)[grid](run_state, run_time.array, run_time.by_number, cuda.to_device(rates), parts)
        number, time, log_time = total(parts).reshape(3, M)
        return number, time, log_time


class Weighted:
    """Running times (2, S) on the device, and the weights (S,) of their sequences."""

    def __init__(self, array: Any, by_number: Any) -> None:
        self.array, self.by_number = array, by_number

    def copy_to_host(self) -> Any:
        """The times, brought here."""
        return self.array.copy_to_host()


def check_states(n_states: int, layout: Layout) -> None:
    """Refuse what no kernel takes."""
    if n_states > MOST_STATES:
        raise NotHereError(f"{n_states} states are more than the {MOST_STATES} that a device thread works with")
    if layout.is_masked and n_states > MOST_MASKED:
        raise NotHereError(f"rows allow some of more than {MOST_MASKED} states")


def check_levels(levels: Any) -> None:
    """Refuse values that are taken relative to levels."""
    if levels is not None:
        raise NotHereError("people differ in level")


def blank(held: HeldOnDevice, state: Any) -> tuple[DeviceDwells, list[Any]]:
    """The pass that lays down trajectories without jumps."""
    return held.layout.blank(), [None]


def sweep(
    held: HeldOnDevice, old: Any, params: Params, costs: Floats, prices: Prices, search: Search, levels: Any = None
) -> tuple[DeviceDwells, list[Any]]:
    """The pass `jumpmeans.passes.sweep.sweep`."""
    check_levels(levels)
    layout, emission = held.layout, params.emission
    M = emission.n_states
    check_states(M, layout)
    if not isinstance(old, DeviceDwells):
        raise NotHereError("the trajectories to go on from are not on the device")
    if params.effects is not None:
        raise NotHereError("rates depend on covariates")
    here = kept(emission)
    summed = Summed(M, layout.real, here.columns, M * (4 + M))
    if summed.column_places[-1] > MOST_SUMS:
        raise NotHereError("the statistics of its columns are too many for a device thread")
    dwells = decode(held, old, params, costs, prices, search)
    return dwells, [gather(held, dwells, params, summed, here, search.first_running == 1)]


def decode(
    held: HeldOnDevice, old: DeviceDwells, params: Params, costs: Floats, prices: Prices, search: Search
) -> DeviceDwells:
    """Best trajectories under the parameters, on the device."""
    layout, emission, real = held.layout, params.emission, held.layout.real
    M = emission.n_states
    forms, theta = cost_forms(emission, prices.emission)
    given = (
        np.zeros((1, M)) if is_spoken(emission) else held.of_rows(lambda x: emission.cost(x, prices.emission))
    )  # fmt: skip
    more = search.rounds > 1
    most = layout.most_dwells(search.per_gap)
    room = max(most, SPREAD * (layout.longest + 1)) if more else most
    room = 1 << int(room).bit_length()
    if room * STATES >= 1 << 31:
        raise NotHereError(f"a sequence of {layout.longest} rows has too many candidates")
    form = kernels.Form(
        M, real, forms, layout.has_kinds, layout.is_masked, room, more, search.first_running == 1, search.free_end == 1
    )
    shapes, S = kernels.scratch_shapes(form), layout.n_sequences
    if form.is_local:
        room_there, blocks = no_scratch(shapes), blocks_of(S)
    else:
        room_there, blocks = scratch(shapes, S, THREADS)
    start = np.zeros(M) if prices.first is None else prices.first
    new = layout.new_dwells(search.per_gap, M)
    where = cuda.to_device(np.full(1, np.iinfo(np.int64).max))
    kernels.make_sweep(form)[blocks, THREADS](
        room_there,
        (layout.x, cuda.to_device(theta.astype(real)), cuda.to_device(given.astype(real)), layout.mask, layout.kinds),
        layout.sequences, layout.tau, layout.seen,
        (
            cuda.to_device(params.rates.astype(real)), cuda.to_device(np.ascontiguousarray(params.rates)),
            cuda.to_device(np.ascontiguousarray(costs.T, real)), cuda.to_device(start.astype(real)),
        ),
        cuda.to_device(np.array(search, np.int32)), old.arrays, new.arrays, where,
    )  # fmt: skip
    failed = int(where.copy_to_host()[0])
    if failed < np.iinfo(np.int64).max:
        # found after the row that no state could explain
        raise no_path(
            held, failed // kernels.PLACE, failed % kernels.PLACE - 1, lambda x: emission.cost(x, prices.emission)
        )
    return new


def gather(
    held: HeldOnDevice, dwells: DeviceDwells, params: Params, summed: Summed, here: Any, first_running: bool
) -> Stats:
    """Statistics of trajectories."""
    layout, emission = held.layout, params.emission
    M, S = emission.n_states, layout.n_sequences
    run_state = cuda.device_array((2, S), np.int8)
    run_time = cuda.device_array((2, S), layout.real)
    grid, places = sum_grid(S), summed.column_places
    parts = cuda.device_array((grid[0], places[-1]), np.float64)
    make_gather(summed)[grid](
        layout.sequences, layout.weights, first_running, dwells.arrays, layout.x, cuda.to_device(here.theta),
        cuda.to_device(here.origin), run_state, run_time, parts,
    )  # fmt: skip
    sums = total(parts)
    exits, time, log_time = sums[: 3 * M].reshape(3, M)
    jumps, first = sums[3 * M : (3 + M) * M].reshape(M, M), sums[(3 + M) * M : (4 + M) * M]
    if is_spoken(emission):
        columns = read_stats(emission, sums, places)
    else:
        row_states = cuda.device_array(layout.n_rows, np.int32)
        label_rows[blocks_of(S), THREADS](layout.sequences, dwells.arrays, row_states)
        columns = emission.stats(held.all_values(), row_states.copy_to_host(), held.row_weights())
    stats = StatsApart(
        exits, time, log_time, jumps, run_state, Weighted(run_time, layout.by_number), held.weights, columns,  # type: ignore[arg-type]
        first,
    )  # fmt: skip
    return stats if S > APART else Stats(*(getattr(stats, name) for name in Stats._fields))


def no_path(held: HeldOnDevice, sequence: int, row: int, cost_of: Any) -> NoPathError:
    """What to raise when a sequence of the panel has no path; cost_of(x) makes the costs of its rows."""
    part = held.sequences(np.array([sequence]))
    with np.errstate(over="ignore"):
        return part.no_path(0, row, cost_of(part.x))
