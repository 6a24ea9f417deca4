"""What a fit found out about the levels of the people in its panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import AnyArray, Floats
from ..data.frames import make_frame
from ..data.panel import Panel
from ..model.levels import Levels
from ..stored import stored
from ..stored.kinds import require, require_floats


@stored
@dataclass(frozen=True, eq=False)
class People:
    """Offsets b of the units of a panel.

    by : "sequence" or "group"; names (U,) of the units; columns : names of the D columns; means, errors (U, D):
    posterior mean of b and its standard deviation; sds (D,): τ, 0 for a column without offsets.
    """

    by: str
    names: AnyArray
    columns: tuple[str, ...]
    means: Floats
    errors: Floats
    sds: Floats
    frame_backend: str | None = None

    @classmethod
    def of(cls, panel: Panel, levels: Levels, by: str) -> People:
        """The levels of a panel."""
        first = np.unique(levels.units, return_index=True)[1]
        names = panel.ids if by == "sequence" or panel.groups is None else panel.groups
        errors = np.where(levels.sds > 0, np.sqrt(levels.variances), 0.0)
        return cls(by, names[first], panel.columns, levels.means, errors, levels.sds, panel.frame_backend)

    def check_fields(self) -> None:
        """Refuse what does not fit together, if it comes from a file."""
        U, D = len(self.names), len(self.columns)
        require(self.by in ("sequence", "group"), f"offsets must be of a 'sequence' or a 'group', got {self.by!r}")
        require_floats("offsets", self.means, (U, D))
        require_floats("errors of the offsets", self.errors, (U, D), least=0.0)
        require_floats("spreads of the offsets", self.sds, (D,), least=0.0)

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with columns id (or group), column, offset and standard_error: a row for each unit and column."""
        d = np.flatnonzero(self.sds > 0)
        columns = {
            "id" if self.by == "sequence" else "group": np.repeat(self.names, len(d)),
            "column": np.tile(np.array(self.columns, dtype=object)[d], len(self.names)),
            "offset": self.means[:, d].ravel(),
            "standard_error": self.errors[:, d].ravel(),
        }
        return make_frame(columns, backend or self.frame_backend)
