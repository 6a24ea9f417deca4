"""How kernels are compiled: kept on disk where possible, without the GIL, said aloud. No fastmath: ∞ is used."""

import logging
from typing import Any

from numba import njit

from .compiling import announce


def _probe() -> None:
    """Nothing: asked for a place on disk, never called."""


def can_cache() -> bool:
    """Whether numba finds a folder for compiled kernels; said once if not."""
    try:
        njit(cache=True)(_probe)
    except RuntimeError:  # of numba, on decoration: no folder beside the code or of the user can be written
        logging.getLogger("jumpmeans").warning(
            "compiled kernels cannot be kept on disk, so that every process compiles them anew (about a minute); "
            "set NUMBA_CACHE_DIR to a folder that can be written."
        )
        return False
    return True


JIT: dict[str, Any] = {"cache": can_cache(), "nogil": True, "error_model": "numpy"}
# For kernels that make no array: numba then counts no references, which took a third of a sweep (atomic increments for
# every array of every call) and as much of the time to compile.
LEAF: dict[str, Any] = {**JIT, "_nrt": False}
announce()
