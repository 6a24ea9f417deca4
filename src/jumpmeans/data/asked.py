"""Times that a caller asks about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays import Ints
from ..errors import PanelError
from .panel import Panel


def insert_asked(panel: Panel, at: Any) -> tuple[Panel, Ints]:
    """The panel with empty rows at the times asked about, and the row of each in the order of asking.

    Parameters
    ----------
    panel : Panel
    at : mapping {id: times} or pair (ids, times)
    """
    if isinstance(at, Mapping):
        times = [np.atleast_1d(np.asarray(t)) for t in at.values()]
        if not sum(map(len, times)):
            raise PanelError("at must ask for at least one time, got none; leave it out for the rows of the panel.")
        ids = [key for key, t in zip(at, times, strict=True) for _ in t]
        return panel.insert_times(ids, np.concatenate(times))
    if not isinstance(at, list | tuple) or len(at) != 2:
        raise PanelError(f"at must be {{id: times}} or a pair (ids, times), got {type(at).__name__}.")
    ids, times = at
    return panel.insert_times(ids, [times] if np.ndim(times) == 0 else times)
