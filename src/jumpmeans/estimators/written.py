"""Read-outs of a panel on a cluster, written where its workers find room."""

from __future__ import annotations

from copy import copy
from os import PathLike
from typing import Any, Self

from ..data.panel import Panel
from ..engines import Threads
from ..engines.scanned import ScannedPanel
from ..errors import PanelError
from .answers import ModelAnswers


class Written(ModelAnswers):
    """A model that has its workers write what it reads out."""

    engine: Any

    def decode_to(self, panel: ScannedPanel, folder: str | PathLike[str], criterion: str | None = None) -> list[str]:
        """Trajectories of a panel on a cluster, written where its workers find room.

        Parameters
        ----------
        panel : ScannedPanel
            Of `jumpmeans.scan_panel`.
        folder : str or path
            Made if it is not there; all workers must see it.
        criterion : str, optional
            As of `decode`.

        Returns
        -------
        paths : list of str
            A Parquet file for each file of the panel, with the columns of `Trajectories.to_frame`.
        """
        criteria = () if criterion is None else (criterion,)
        return self._write(panel, "decode", folder, decoded_columns, criteria)

    def predict_proba_to(self, panel: ScannedPanel, folder: str | PathLike[str]) -> list[str]:
        """Posterior state probabilities at the rows of a panel on a cluster, written where its workers find room.

        Parameters
        ----------
        panel : ScannedPanel
            Of `jumpmeans.scan_panel`.
        folder : str or path
            Made if it is not there; all workers must see it.

        Returns
        -------
        paths : list of str
            A Parquet file for each file of the panel, its rows in their order: id, time, and a column for each state.
        """
        return self._write(panel, "smooth", folder, probability_columns, ())

    def _write(self, panel: Any, name: str, folder: Any, work: Any, more: tuple[Any, ...]) -> list[str]:
        self._fitted()
        if not isinstance(panel, ScannedPanel):
            raise PanelError(
                f"panel must be one on a cluster, made by scan_panel, got {type(panel).__name__}; one in memory is "
                "read by decode and predict_proba."
            )
        return panel.write(name, folder, work, self._light(), *more)

    def _light(self) -> Self:
        """What a worker needs of the model for read-outs of its own."""
        light = copy(self)
        for heavy in ("trajectories_", "_seen_"):
            light.__dict__.pop(heavy, None)
        light.engine = Threads(1)
        return light


def decoded_columns(panel: Panel, names: tuple[str, str], model: Any, *criterion: str) -> dict[str, Any]:
    """What `decode_to` writes of one file."""
    return model.decode(panel, *criterion).to_columns()


def probability_columns(panel: Panel, names: tuple[str, str], model: Any) -> dict[str, Any]:
    """What `predict_proba_to` writes of one file."""
    probs = model.predict_proba(panel)
    own = [panel.ids[panel.sequence_index], panel.decode_times(panel.times)]
    columns = {name: panel.to_caller_order(x) for name, x in zip(names, own, strict=True)}
    return columns | {str(label): probs[:, m] for m, label in enumerate(model.states_.tolist())}
