"""A picture of one sequence, of a fitted model alone."""

from __future__ import annotations

from typing import Any, ClassVar

from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..stored import ModelFields


class Pictured(ModelFields):
    """A fitted model that draws a sequence; it keeps the fitted panel for this, in memory alone."""

    derived: ClassVar[tuple[str, ...]] = ("_seen_",)
    trajectories_: Trajectories
    _seen_: Panel

    def __getstate__(self) -> dict[str, Any]:
        """All but the fitted panel: copies that travel to other processes need none."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name != "_seen_"}

    def plot(
        self,
        id: Any,
        panel: Any = None,
        ax: Any = None,
        *,
        truth: Any = None,
        column: int | str = 0,
        time_unit: str | None = None,
        value_unit: str | None = None,
    ) -> Any:
        """Draw the trajectory of one sequence, and what was seen of it.

        Parameters
        ----------
        id : str or int
            The sequence.
        panel : Panel or frame, optional
            Where the sequence is found, which is then decoded; by default the panel of the fit. A model that was read
            from a file has no panel: it draws the trajectory alone.
        ax, truth, column, time_unit, value_unit : optional
            As `jumpmeans.plots.plot_trajectory` takes them.

        Returns
        -------
        ax : matplotlib axes
            As of `jumpmeans.plots.plot_trajectory`.

        Examples
        --------
        >>> import jumpmeans as jm
        >>> model = jm.JumpMeans(emission="direct").fit(jm.datasets.load_edss())
        >>> model.plot("ipt03w0", time_unit="years").get_xlabel()
        'time (years)'
        """
        from ..plots import plot_trajectory
        from ..plots.given import position
        from .read_out import as_panel

        self.require_fitted()
        seen = vars(self).get("_seen_") if panel is None else as_panel(panel)
        trajectories = vars(self).get("trajectories_") if panel is None else None
        if trajectories is None:
            if seen is None:
                raise ValueError(
                    f"panel must be given to a {type(self).__name__} that was not fitted here, got none; give the "
                    "panel that has the sequence: plot(id, panel)."
                )
            trajectories = self.decode(seen.select([position(seen.ids, id, "panel")]))  # type: ignore[attr-defined]
        return plot_trajectory(
            trajectories, id, seen, self, ax, truth=truth, column=column, time_unit=time_unit, value_unit=value_unit
        )
