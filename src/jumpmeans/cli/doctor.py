"""`jumpmeans doctor`: what this machine has, for a question or a report of a fault."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..version import __version__
from .ending import spoken
from .files import installed

if TYPE_CHECKING:
    from .say import Say

PACKAGES = (
    "numpy", "scipy", "numba", "scikit-learn", "joblib", "narwhals", "click", "rich", "pandas", "polars", "pyarrow",
    "matplotlib", "jinja2", "distributed", "numba-cuda",
)  # fmt: skip


@click.command(short_help="Versions, threads, GPU, Dask, cache of kernels.")
@spoken
def doctor(say: Say) -> None:
    """Versions, threads, GPU, Dask, and where compiled kernels are kept."""
    found: dict[str, Any] = {
        "jumpmeans": f"{__version__} in {Path(__file__).parents[1]}",
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": platform.platform(),
        "threads": f"{os.cpu_count()} cores, {_usable()} for this process",
        "GPU": _gpu(),
        "Dask": installed("distributed") or "not installed: pip install 'jumpmeans[dask]'",
        "compiled kernels": _cache(),
    }
    found |= {name: installed(name) or "not installed" for name in PACKAGES}
    say.table("jumpmeans doctor", {"what": list(found), "here": list(found.values())})
    say.result(found)


def _usable() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _gpu() -> str:
    try:
        from numba import cuda

        if not cuda.is_available():
            return "none that can be used"
        return ", ".join(str(device.name.decode()) for device in cuda.gpus)
    except Exception as error:  # drivers fail in ways of their own
        return f"none that can be used ({type(error).__name__})"


def _cache() -> str:
    """Where numba keeps what it compiled, and whether it can."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(named) if named else Path(__file__).parents[1] / "kernels" / "__pycache__"
    there = folder if folder.exists() else folder.parent
    can = "can be written" if os.access(there, os.W_OK) else "cannot be written: kernels are compiled in every run"
    return f"{folder} ({can})"
