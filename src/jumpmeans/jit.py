"""How kernels are compiled: on disk for the next time, without the GIL, said aloud. No fastmath: ∞ is used."""

from typing import Any

from .compiling import announce

JIT: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
announce()
