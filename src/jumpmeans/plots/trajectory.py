"""The path of one sequence, and what was seen of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Bools, Codes, Floats
from ..data.clock import Clock
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..estimators.read_out import as_panel
from .axes import axes, colours, legend, time_axis
from .given import column_index, mean_of, position, process_of
from .scale import Scale, make_scale


def plot_trajectory(
    trajectories: Trajectories,
    id: Any,
    panel: Any = None,
    model: Any = None,
    ax: Any = None,
    *,
    truth: Any = None,
    column: int | str = 0,
    time_unit: str | None = None,
    value_unit: str | None = None,
) -> Any:
    """Draw the path of one sequence with its real jump times, and what was seen of it.

    Parameters
    ----------
    trajectories : Trajectories
        Of an estimator (`trajectories_`, or what `decode` returns).
    id : str or int
        The sequence.
    panel : Panel or frame, optional
        Its observations are shown as dots in the colour of the state on the path.
    model : fitted model, optional
        Tells what a column shows in each state, of this very person if the model has levels of people; without it a
        column whose values are all names of states is taken for
        the states, and the level of a state in a column of numbers is the mean of the values assigned to it.
    ax : matplotlib axes, optional
        A new figure if left out.
    truth : Truth, optional
        What `hold_out` blanked: shown as hollow dots.
    column : int or str
        Which column of values to show.
    time_unit, value_unit : str, optional
        Names for the axes, such as "hours"; dates need none.

    Returns
    -------
    ax : matplotlib axes
        States in one colour each, jumps as faint vertical lines. Dwells that a most likely trajectory
        leaves at once are marked by diamonds.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> panel = jm.datasets.load_edss()
    >>> model = jm.JumpMeans(emission="direct").fit(panel)
    >>> ax = plot_trajectory(model.trajectories_, "ipt03w0", panel, model, time_unit="years")
    >>> ax.get_xlabel(), [label.get_text() for label in ax.get_yticklabels()]
    ('time (years)', ['1', '2', '3'])
    """
    if not isinstance(trajectories, Trajectories):
        raise ValueError(
            f"trajectories must be Trajectories, such as model.trajectories_ or model.decode(panel), got "
            f"{type(trajectories).__name__}."
        )
    path = Path.of(trajectories, position(trajectories.ids, id, "trajectories"))
    if truth is not None and panel is None:
        raise ValueError("truth must come with the panel that it was held out from; give panel=... too.")
    panel = None if panel is None else as_panel(panel)
    process = None if model is None else process_of(model)
    d = column_index(panel, process, column)
    seen = hidden = Looks(np.zeros(0), np.zeros(0))
    if panel is not None:
        _check_clocks(trajectories, panel)
        seen = _seen(panel, position(panel.ids, id, "panel"), d)
        hidden = hidden if truth is None else _held_out(truth, panel, id, d)
    scale = make_scale(trajectories, panel, process, d, value_unit, hidden.values.tolist())
    if process is not None and panel is not None and hasattr(model, "_offset"):
        scale = scale.at_level(process.emission.columns[d], model._offset(panel, position(panel.ids, id, "panel"), d))
    ax = axes(ax)
    shades = colours(len(trajectories.labels))
    _draw_path(ax, path, scale, shades)
    for looks, hollow in ((seen, False), (hidden, True)):
        _draw_looks(ax, looks, path, scale, shades, hollow)
    if len(hidden.times):
        for face, name in (("0.35", "seen"), ("white", "held out")):
            ax.scatter([], [], s=22, facecolor=face, edgecolor="0.35", linewidth=1.1, label=name)
    scale.dress(ax)
    time_axis(ax, trajectories.clock, time_unit)
    legend(ax, f"sequence {id}" + (f", state ({mean_of(value_unit)})" if scale.names else ""))
    return ax


class Path(NamedTuple):
    """The dwells of one sequence: codes of their states, when they start and end, which are left at once."""

    codes: Codes
    starts: Floats
    ends: Floats
    degenerate: Bools
    clock: Clock | None

    @classmethod
    def of(cls, trajectories: Trajectories, i: int) -> Path:
        """Sequence i of the trajectories."""
        own = slice(trajectories.offsets[i], trajectories.offsets[i + 1])
        starts = trajectories.start_times[own]
        ends = np.append(starts[1:], trajectories.end_times[i])
        marked = getattr(trajectories, "degenerate", None)  # most likely trajectories alone mark such dwells
        degenerate = np.zeros(len(starts), dtype=bool) if marked is None else marked[own]
        return cls(trajectories.codes[own], starts, ends, degenerate, trajectories.clock)

    def when(self, t: Any) -> Any:
        """Times as an axis takes them: numbers, or dates."""
        return t if self.clock is None else self.clock.decode(t)

    def codes_at(self, times: NDArray[Any]) -> Codes:
        """Code of the state at each time; at a jump the new one."""
        t = times if self.clock is None else self.clock.encode(times)
        return self.codes[np.maximum(np.searchsorted(self.starts, t, side="right") - 1, 0)]


class Looks(NamedTuple):
    """Times and values of one column, as the caller knows them."""

    times: NDArray[Any]
    values: NDArray[Any]


def _check_clocks(trajectories: Trajectories, panel: Panel) -> None:
    kinds = ["dates" if clock is not None else "numbers" for clock in (trajectories.clock, panel.clock)]
    if kinds[0] != kinds[1]:
        raise ValueError(
            f"panel must have times like those of the trajectories, {kinds[0]}, got {kinds[1]}; give the panel that "
            "was decoded."
        )


def _seen(panel: Panel, i: int, d: int) -> Looks:
    """What was seen of sequence i."""
    rows = slice(panel.offsets[i], panel.offsets[i + 1])
    x, t = panel.values[rows, d], panel.times[rows]
    present = np.isfinite(x)
    return Looks(panel.decode_times(t[present]), panel.decode_values(x[present], d))


def _held_out(truth: Any, panel: Panel, id: Any, d: int) -> Looks:
    """What was held out of one sequence."""
    if not all(hasattr(truth, name) for name in ("ids", "times", "values")):
        raise ValueError(f"truth must be what hold_out returns beside the panel, got {type(truth).__name__}.")
    columns = truth.values.reshape(len(truth.ids), -1)
    if columns.shape[1] != panel.n_columns:
        raise ValueError(
            f"truth must have the {panel.n_columns} value columns of the panel, got {columns.shape[1]}; give the panel "
            "that it was held out from."
        )
    mine = [key == id and x is not None and x == x for key, x in zip(truth.ids.tolist(), columns[:, d], strict=True)]
    return Looks(truth.times[mine], columns[mine, d])


def _draw_path(ax: Any, path: Path, scale: Scale, shades: list[Any]) -> None:
    """Dwells in the colours of their states, jumps between them; a faint line through each jump."""
    codes, starts = path.codes, path.starts
    for t in starts[1:]:
        ax.axvline(path.when(t), color="0.88", linewidth=0.8 if len(codes) < 40 else 0.4, zorder=0)
    level = scale.levels[codes]
    ax.vlines(path.when(starts[1:]), level[:-1], level[1:], color="0.55", linewidth=1.0, zorder=1)
    for s in np.unique(codes):
        here = codes == s
        ax.hlines(
            level[here], path.when(starts[here]), path.when(path.ends[here]), color=shades[s], linewidth=2.4, zorder=2,
            label=scale.names[s] if scale.names else None,
        )  # fmt: skip
    at = path.degenerate
    if at.any():
        ax.scatter(
            path.when(starts[at]), level[at], s=62, marker="D", facecolor="none",
            edgecolor=[shades[s] for s in codes[at]], linewidth=1.3, zorder=4, label="left at once",
        )  # fmt: skip


def _draw_looks(ax: Any, looks: Looks, path: Path, scale: Scale, shades: list[Any], hollow: bool) -> None:
    """Observations in the colour of the state on the path at their time."""
    if len(looks.times) == 0:
        return
    size = np.clip(22.0 * 80.0 / len(looks.times), 5.0, 22.0)  # smaller where there are many
    edge = [shades[s] for s in path.codes_at(looks.times)]
    ax.scatter(
        looks.times, scale.place(looks.values), s=size, facecolor="white" if hollow else edge, edgecolor=edge,
        linewidth=1.1, zorder=3,
    )  # fmt: skip
