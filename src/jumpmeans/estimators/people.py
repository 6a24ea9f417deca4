"""What a fit found out about the levels of the people in its panel, and what it tells of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import AnyArray, Floats
from ..data.frames import make_frame
from ..data.panel import Panel
from ..model.levels import Levels
from ..passes import Sequences
from ..stored import stored
from ..stored.kinds import require, require_floats
from .answers import ModelAnswers
from .explained import explained


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


class Levelled(ModelAnswers):
    """A model whose people may stand at levels of their own."""

    _people_: People
    offset_sd: Any

    def _sequences(self, panel: Panel) -> Sequences:
        """A panel as the engine holds it, at the levels of its people."""
        raise NotImplementedError

    @property
    def offsets_(self) -> Any:
        """Levels of the people of the fitted panel: a frame with columns id (or group), column, offset, standard_error.

        An offset is the mean of what is known of it under `process_`, given all readings of its person.
        """
        return self._known_people().to_frame()

    @property
    def offset_sd_(self) -> Floats:
        """τ, (D,): standard deviation of the offsets of each column; 0 for a column without."""
        return self._known_people().sds

    def find_offsets(self, panel: Any) -> Any:
        """Levels of the people of a panel, read from their own rows: a frame as `offsets_`.

        Parameters
        ----------
        panel : Panel or frame
            One without readings of a person gives that person an offset of 0.
        """
        self._known_people()
        panel = self._panel(panel)
        return self._people_in(panel).to_frame()

    @property
    def _n_levels(self) -> int:
        """Spreads of the offsets that are free."""
        if "_people_" not in vars(self) or "auto" not in np.ravel(np.asarray(self.offset_sd, dtype=object)).tolist():
            return 0
        return sum(column.has_levels for column in self.process_.emission.columns)

    def _people_in(self, panel: Panel) -> People:
        with explained(panel, "the fitted process"):
            levels = self._sequences(panel).levels
        if levels is None:
            raise ValueError("a model must have levels of people, got none.")
        return People.of(panel, levels, self._people_.by)

    def _offset(self, panel: Panel, i: int, d: int) -> float:
        """Offset of sequence i of a panel in column d; 0 where people do not differ."""
        if "_people_" not in vars(self):
            return 0.0
        if self._people_.by == "sequence":
            panel, i = panel.select([i]), 0
        with explained(panel, "the fitted process"):
            levels = self._sequences(panel).levels
        return 0.0 if levels is None else float(levels.means[levels.units[i], d])

    def _known_people(self) -> People:
        self._fitted()
        if "_people_" not in vars(self):
            raise AttributeError("this model must be fitted with offsets='sequence' or 'group' to have any, got none.")
        return self._people_

    def _at_levels(self, panel: Panel, sequences: Sequences, values: AnyArray) -> AnyArray:
        """Values (n,) or (n, D) of people at level 0 as those of the people that they are of."""
        levels = sequences.levels
        if levels is None:
            return values
        return self.process_.emission.at_levels(values, levels.means[levels.units][panel.sequence_index])
