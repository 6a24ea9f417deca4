"""How kernels are compiled: kept on disk, without the GIL. No fastmath: our sentinels are infinite."""

from typing import Any

JIT: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
