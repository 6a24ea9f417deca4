"""Engines: where the work runs. All give the same answer; a GPU gives it but for rounding.

An engine has one method, `hold(blocks)`; what it returns runs passes over them (`jumpmeans.passes.engine`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..passes.engine import Engine, Held
from .cuda import Cuda
from .dask import Dask
from .threads import Threads

__all__ = ["Cuda", "Dask", "Engine", "Held", "Threads", "get_engine"]

ENGINES: dict[str, Callable[[], Engine]] = {"cuda": Cuda, "dask": Dask, "threads": Threads}


def get_engine(engine: Any) -> Engine:
    """An engine from its name or from itself."""
    if isinstance(engine, str) and engine in ENGINES:
        return _named(engine)
    if isinstance(engine, str) or not callable(getattr(engine, "hold", None)):
        raise ValueError(
            f"engine must be one of {sorted(ENGINES)} or an engine object such as Threads(n_jobs=4), got {engine!r}."
        )
    return engine  # type: ignore[no-any-return]


@cache
def _named(name: str) -> Engine:
    """The engine of a name, one for the whole process: a cluster is not started twice."""
    return ENGINES[name]()
