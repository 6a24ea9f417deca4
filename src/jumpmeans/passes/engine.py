"""What an engine must offer: to hold blocks, and to run passes over what it holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .block import Block


class Held(Protocol):
    """Blocks where an engine keeps them."""

    def run(self, work: Callable[..., tuple[Any, Any]], state: Any, *shared: Any) -> tuple[Any, list[Any]]:
        """Run a pass over all blocks.

        Parameters
        ----------
        work : pass
            `work(block, state of the block, *shared) -> (new state, result)`; see `jumpmeans.passes`.
        state : handle or None
            What an earlier run kept beside the blocks; None if the pass needs nothing.
        shared : what every block is given; can be pickled

        Returns
        -------
        state : handle
            What the pass keeps beside each block. It stays where the block is: `fetch` brings it here.
        results : list
            Result of every block, in their order. Of a pass of its own, an engine may give that of all blocks as one,
            as if they were a single block.
        """

    def fetch(self, state: Any) -> list[Any]:
        """What is kept beside each block, in their order."""

    def put(self, states: list[Any]) -> Any:
        """Keep something beside each block, given in their order."""

    def __len__(self) -> int:
        """Number of blocks."""


class Engine(Protocol):
    """Where passes run."""

    def hold(self, blocks: Sequence[Block]) -> Held:
        """Take blocks in; they are held as long as what is returned is."""
