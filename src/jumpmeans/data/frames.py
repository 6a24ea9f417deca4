"""Frames out: the same kind of frame that came in."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import narwhals as nw

from ..errors import MissingExtraError

BACKENDS = ("pandas", "polars", "pyarrow")


def make_frame(columns: Mapping[str, Any], backend: str | None = None) -> Any:
    """A frame of the given columns: of the kind `backend` names, else of the first kind installed."""
    for name in BACKENDS if backend is None else (backend,):
        if find_spec(name) is not None:
            return nw.from_dict(dict(columns), backend=name).to_native()  # type: ignore[arg-type]
    raise MissingExtraError(
        f"a frame needs {backend or 'pandas, polars or pyarrow'}; install it by pip install 'jumpmeans[frames]'."
    )
