"""Passes: what is done to a block of sequences. Each is a pure function

    pass(block, state, *shared) -> (state, result)

of one immutable block, of what is kept beside it (dwells, paths; None if nothing is) and of what all blocks share
(parameters). Everything that goes in or comes out can be pickled, and nothing is written in place: where a pass runs
changes no bit of what it returns.
"""

from .block import Block, Dwells, NoPathError
from .engine import Engine, Held
from .sequences import Sequences
from .smooth import Expected
from .sweep import Search

__all__ = ["Block", "Dwells", "Engine", "Expected", "Held", "NoPathError", "Search", "Sequences"]
