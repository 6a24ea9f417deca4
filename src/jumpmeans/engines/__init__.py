"""Engines: where the work runs. All give the same answer."""

from __future__ import annotations

from typing import Any

from .base import Engine
from .threads import Threads

__all__ = ["Engine", "Threads", "get_engine"]


def get_engine(engine: Any) -> Engine:
    """An engine from its name or from itself."""
    if isinstance(engine, str):
        if engine == "threads":
            return Threads()
        raise ValueError(f"engine must be 'threads' or an engine object such as Threads(n_jobs=4), got {engine!r}.")
    if not hasattr(engine, "sweep") or not hasattr(engine, "smooth"):
        raise ValueError(f"engine must be 'threads' or an engine object such as Threads(n_jobs=4), got {engine!r}.")
    return engine  # type: ignore[no-any-return]
