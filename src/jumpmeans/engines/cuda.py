"""A GPU: sequences lie in its memory, one thread works on each; only parameters and statistics go to and fro."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import Floats, Ints
from ..errors import MissingExtraError
from ..interrupts import held_back
from ..options import choice, count, none
from ..passes import smooth as smoothing
from ..passes import sweep as sweeping
from ..passes.block import Block, Dwells
from ..passes.engine import Held
from .threads import Threads

LOGGER = logging.getLogger("jumpmeans")
# Fewer sequences than these leave most of a card idle, which is felt from so many rows on.
FEW_SEQUENCES, MANY_ROWS = 2000, 100_000
# What is known of blocks; one with more goes by threads.
KNOWN = {"tau", "offsets", "ends", "weights", "x", "first", "kinds", "allowed"}


class Cuda:
    """Run passes on an NVIDIA GPU, by numba-cuda (pip install 'jumpmeans[cuda]').

    What has no kernel there runs on threads of this machine, and the log of `jumpmeans` says so once.

    Parameters
    ----------
    dtype : "float64" or "float32"
        What times, values and costs are held and decoded with. Jump times and statistics have 64 bits in any case.
        With "float32" the states of a few rows differ, where two trajectories are of nearly the same cost.
    device : int, optional
        Number of the card; the current one if left out.
    """

    def __init__(self, dtype: str = "float64", device: int | None = None) -> None:
        choice("float64", "float32").check("dtype", dtype)
        (none | count(least=0)).check("device", device)
        self.dtype, self.device = dtype, device

    def __repr__(self) -> str:
        return f"Cuda(dtype={self.dtype!r}, device={self.device})"

    def hold(self, blocks: Sequence[Block]) -> Held:
        """Keep the sequences of all blocks on the device, and the blocks here."""
        find_device(self.device)
        return HeldOnDevice.of(blocks, np.dtype(self.dtype).type)


def find_device(device: int | None) -> None:
    """Make a card the current one; a machine without any is told what to do."""
    try:
        from numba import cuda
    except ImportError as error:
        raise MissingExtraError(
            "engine='cuda' needs the package numba-cuda; pip install 'jumpmeans[cuda]', or use engine='threads'."
        ) from error
    if not cuda.is_available():
        raise MissingExtraError(
            "engine='cuda' must have an NVIDIA GPU, its driver and numba-cuda, got none that work here; "
            "pip install 'jumpmeans[cuda]' on a machine with a GPU (nvidia-smi lists them), or use engine='threads'."
        )
    if device is not None:
        cards = len(cuda.gpus)
        if device >= cards:
            raise ValueError(f"device must be the number of one of {cards} GPUs, counted from 0, got {device}.")
        cuda.select_device(device)


class HeldOnDevice:
    """Sequences on a device. States of its own passes lie there, those of others beside the blocks."""

    def __init__(self, layout: Any, weights: Floats, blocks: Sequence[Block]) -> None:
        self.layout, self.weights, self.blocks = layout, weights, blocks
        self._said: set[str] = set()
        self._kernels = device_passes()

    @classmethod
    def of(cls, blocks: Sequence[Block], real: Any) -> HeldOnDevice:
        """The sequences of all blocks, sent to the device."""
        from .device.layout import Layout

        whole = joined(blocks)
        held = cls(Layout.of(whole, real), whole.weights, blocks)
        if whole.n_sequences < FEW_SEQUENCES and len(whole.tau) >= MANY_ROWS:
            held._say(
                f"{len(whole.tau)} rows in {whole.n_sequences} sequences leave most of a GPU idle, which works on each "
                "sequence by one thread: engine='threads' serves better"
            )
        return held

    def run(self, work: Callable[..., tuple[Any, Any]], state: Any, *shared: Any) -> tuple[Any, list[Any]]:
        """Run a pass over all blocks; see `jumpmeans.passes.engine.Held`."""
        there = self._kernels.get(work)
        if there is not None:
            from .device.sweep import NotHereError

            try:
                self._check_blocks()
                with held_back():
                    return there(self, state, *shared)
            except NotHereError as reason:
                self._say(f"the pass {work.__name__!r} runs on threads of this machine, since {reason}")
        return Threads().hold(self.blocks).run(work, None if state is None else self.fetch(state), *shared)

    def fetch(self, state: Any) -> list[Any]:
        """What is kept beside each block, in their order."""
        if isinstance(state, list):
            return list(state)
        dwells = self.layout.fetch(state)
        edges = np.cumsum([0, *(block.n_sequences for block in self.blocks)])
        return [part_of(dwells, int(i), int(j)) for i, j in pairwise(edges)]

    def put(self, states: list[Any]) -> list[Any]:
        """Keep something beside each block, given in their order."""
        return states

    def __len__(self) -> int:
        return len(self.blocks)

    def _check_blocks(self) -> None:
        """Refuse blocks with parts that kernels know nothing of."""
        from .device.sweep import NotHereError

        for field in fields(Block):
            if field.name not in KNOWN and any(getattr(block, field.name) is not None for block in self.blocks):
                raise NotHereError(f"sequences have {field.name}")

    def _say(self, text: str) -> None:
        """Say it once."""
        if text not in self._said:
            self._said.add(text)
            LOGGER.warning("cuda: %s.", text)

    # what the passes of the device ask of the blocks

    def of_rows(self, table_of: Callable[[Floats], Floats]) -> Floats:
        """A table (n, M) of all rows, made of their values."""
        with np.errstate(over="ignore"):
            return np.concatenate([table_of(block.x) for block in self.blocks])

    def all_values(self) -> Floats:
        """(n, D) values of all rows."""
        return np.concatenate([block.x for block in self.blocks])

    def row_weights(self) -> Floats:
        """(n,) weight of each row."""
        return np.concatenate([block.row_weights for block in self.blocks])

    def sequences(self, numbers: Ints) -> Block:
        """Some sequences of the panel as a block of their own."""
        edges = np.cumsum([0, *(block.n_sequences for block in self.blocks)])
        places = np.searchsorted(edges, numbers, side="right") - 1
        inside = (numbers - edges[places]).tolist()
        return joined([self.blocks[k].part(i, i + 1) for k, i in zip(places.tolist(), inside, strict=True)])


def device_passes() -> dict[Callable[..., Any], Callable[..., Any]]:
    """The passes that a device has kernels for."""
    from .device import smooth, sweep

    return {
        sweeping.blank: sweep.blank,
        sweeping.sweep: sweep.sweep,
        smoothing.smooth: smooth.smooth,
        smoothing.weigh: smooth.weigh,
        smoothing.agree: smooth.agree,
        smoothing.expect: smooth.expect,
    }


def part_of(dwells: Dwells, i: int, j: int) -> Dwells:
    """Dwells of sequences i, ..., j - 1 alone."""
    own = slice(dwells.offsets[i], dwells.offsets[j])
    return Dwells(
        dwells.offsets[i : j + 1] - dwells.offsets[i], dwells.states[own], dwells.starts[own], dwells.rows[own]
    )


def joined(blocks: Sequence[Block]) -> Block:
    """The sequences of all blocks as one."""
    counts = np.concatenate([np.diff(block.offsets) for block in blocks])

    def all_of(name: str) -> Any:
        parts = [getattr(block, name) for block in blocks]
        return None if any(part is None for part in parts) else np.concatenate(parts)

    return Block(
        all_of("tau"), np.append(0, np.cumsum(counts)), all_of("ends"), all_of("weights"), all_of("x"),
        blocks[0].first, all_of("kinds"), all_of("allowed"),
    )  # fmt: skip
