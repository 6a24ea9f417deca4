"""What a fit found out about how fast the people in its panel move, and what it tells of others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import AnyArray, Floats
from ..data.frames import make_frame
from ..data.panel import Panel
from ..model.frailty import MOST_VARIANCE, Frailty, Weighed
from ..passes import Sequences
from ..stored import stored
from ..stored.kinds import require, require_floats
from .answers import ModelAnswers
from .explained import explained


@stored
@dataclass(frozen=True, eq=False)
class Frailties:
    """Multipliers w of the rates of the units of a panel.

    by : "sequence" or "group"; names (U,) of the units; means, sds (U,): posterior mean and standard deviation of w;
    variance : v, 0 where rates do not differ; free : whether it was estimated.
    """

    by: str
    names: AnyArray
    means: Floats
    sds: Floats
    variance: float
    free: bool = True
    frame_backend: str | None = None

    @classmethod
    def of(cls, panel: Panel, by: str, found: tuple[Frailty, Weighed] | None, free: bool) -> Frailties:
        """Those of a panel; all 1 where nothing was found to differ."""
        names = panel.ids
        if by == "group" and panel.groups is not None:
            names = np.unique(panel.groups)
        if found is None:
            return cls(by, names, np.ones(len(names)), np.zeros(len(names)), 0.0, free, panel.frame_backend)
        frailty, weighed = found
        return cls(
            by, names, frailty.means(weighed), frailty.sds(weighed), frailty.variance, free, panel.frame_backend
        )  # fmt: skip

    def check_fields(self) -> None:
        """Refuse what does not fit together, if it comes from a file."""
        U = len(self.names)
        require(self.by in ("sequence", "group"), f"frailty must be of a 'sequence' or a 'group', got {self.by!r}")
        require_floats("frailties", self.means, (U,), least=0.0)
        require_floats("spreads of the frailties", self.sds, (U,), least=0.0)
        require(0 <= self.variance <= MOST_VARIANCE, f"a variance of frailty must be from 0 to {MOST_VARIANCE:g}")

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame with columns id (or group), frailty and sd: a row for each unit."""
        name = "id" if self.by == "sequence" else "group"
        columns = {name: self.names, "frailty": self.means, "sd": self.sds}
        return make_frame(columns, backend or self.frame_backend)


class Frail(ModelAnswers):
    """A model whose people may move faster or slower than others."""

    _frailties_: Frailties

    def _sequences(self, panel: Panel) -> Sequences:
        """A panel as the engine holds it, under the law of frailty of the model."""
        raise NotImplementedError

    @property
    def frailties_(self) -> Any:
        """What multiplies all rates of each person of the fitted panel: a frame with id (or group), frailty and sd.

        Posterior mean and standard deviation of the multiplier under `process_`, given all rows of its person.
        """
        return self._known_frailties().to_frame()

    @property
    def frailty_variance_(self) -> float:
        """v, variance of the multipliers among people; their mean is 1."""
        return self._known_frailties().variance

    def find_frailties(self, panel: Any) -> Any:
        """Multipliers of the people of a panel, read from their own rows: a frame as `frailties_`.

        Parameters
        ----------
        panel : Panel or frame
            One of whom nothing is seen has a multiplier of 1.
        """
        own, panel = self._known_frailties(), self._panel(panel)
        found = None
        if own.variance > 0:
            with explained(panel, "the fitted process"):
                found = self._sequences(panel).weigh(self._fitted())
        return Frailties.of(panel, own.by, found, own.free).to_frame()

    def _known_frailties(self) -> Frailties:
        self._fitted()
        if "_frailties_" not in vars(self):
            raise AttributeError("this model must be fitted with frailty='sequence' or 'group' to have any, got none.")
        return self._frailties_

    @property
    def _n_frailty(self) -> int:
        """Parameters of the frailty that are free."""
        own = vars(self).get("_frailties_")
        return 0 if own is None else int(own.free)

    @property
    def _is_frail(self) -> bool:
        own = vars(self).get("_frailties_")
        return own is not None and own.variance > 0


def require_alike(model: ModelAnswers, what: str, instead: str) -> None:
    """Refuse a model whose people differ in their rates where one rate for all is what is known."""
    if model._is_frail:
        raise ValueError(f"{what} must have people of the same rates, got a model with frailty; {instead}.")
