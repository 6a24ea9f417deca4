"""What an online decoder says."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..data.frames import make_frame


@dataclass(frozen=True, eq=False)
class Told:
    """What an `OnlineDecoder` says, one entry for each row; of a single row the entries themselves.

    Attributes
    ----------
    id, time : of the row.
    state : label
        The state now; with hysteresis the one that is told, which may lag behind.
    since : time
        When it began.
    best : label
        The last state of the best trajectory.
    margin : float
        How much more the best trajectory that ends in any other state costs; infinite if there is none.
    changed : bool
        Whether the state told is another one than before this row.
    probs : (M,) or (n, M)
        Probabilities of the states given the rows so far, under `process_`; NaN once it cannot produce them.
    """

    id: Any
    time: Any
    state: Any
    since: Any
    best: Any
    margin: Any
    changed: Any
    probs: Any

    def row(self, i: int) -> Told:
        """What is said of one row."""
        # dates stay as they are: a list would make plain numbers of them
        return Told(
            *(x[i] if x.ndim > 1 or x.dtype.kind == "M" else x[i : i + 1].tolist()[0] for _, x in self._items())
        )

    def _items(self) -> list[tuple[str, Any]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)]

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with one row for each; probabilities are left out. `backend` as in `Table.to_frame`."""
        return make_frame({name: np.atleast_1d(x) for name, x in self._items() if name != "probs"}, backend)
