"""Where states and observations stand on the y axis: on levels of their own, or at their numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..emissions import Column
from ..model.process import Process
from .axes import in_unit
from .given import with_means


class Scale(NamedTuple):
    """Where states and values stand on the y axis.

    levels (M,) of the states; heights of the values where these are labels, None for numbers; ticks and their labels,
    None for numbers; label of the axis; names (M,) of the states for the legend, None where ticks name them.
    """

    levels: Floats
    heights: dict[Any, float] | None
    ticks: dict[str, float] | None
    label: str
    names: list[str] | None

    def place(self, values: NDArray[Any]) -> Floats:
        """Heights of values as the caller knows them; NaN for a label that has none."""
        if self.heights is None:
            return values.astype(np.float64)
        return np.array([self.heights.get(value, np.nan) for value in values.tolist()])

    def at_level(self, emission: Column, offset: float) -> Scale:
        """The same for a person whose readings are that much above those of all."""
        if offset == 0:
            return self
        means = emission.at_level(self.levels, np.full(len(self.levels), offset))
        states = [name.rpartition(" (")[0] or name for name in self.names or []]
        return self._replace(levels=means, names=with_means(states, means))

    def dress(self, ax: Any) -> None:
        """Name the axis and its ticks."""
        ax.set_ylabel(self.label)
        if self.ticks is not None:
            places = list(self.ticks.values())
            ax.set_yticks(places, list(self.ticks))
            ax.set_ylim(min(places) - 0.5, max(places) + 0.5)
            if min(places) < 0:
                ax.axhline(-0.75, color="0.6", linewidth=0.8)


def make_scale(
    trajectories: Trajectories,
    panel: Panel | None,
    process: Process | None,
    d: int,
    unit: str | None,
    held_out: Iterable[Any],
) -> Scale:
    """How to show column d: what the emission of the process says of it, or else what its values look like."""
    states = trajectories.labels.tolist()
    if process is None:
        if panel is None or all(label in states for label in panel.labels(d).tolist()):
            return _of_states(states)
        if panel.categories[d] is not None:
            return _of_symbols(states, panel.labels(d).tolist())
        return _of_numbers(states, _means_of_assigned(trajectories, panel, d), in_unit(panel.columns[d], unit))
    if len(process.states) != len(states):
        raise ValueError(f"model must have the {len(states)} states of the trajectories, got {len(process.states)}.")
    emission = process.emission.columns[d]
    if panel is not None:
        emission.encode(panel, d)  # refuses what the model cannot know
    if not emission.is_symbolic:
        means = np.asarray(emission.state_values(), dtype=np.float64)
        return _of_numbers(states, means, in_unit("value" if panel is None else panel.columns[d], unit))
    # of the columns of a record one alone can show the states, and that one shows them by their names
    direct = process.emission.is_direct and emission.state_values().tolist() == process.states.tolist()
    if panel is None or direct:
        return _of_states(states)
    return _of_symbols(states, list(dict.fromkeys([*panel.labels(d).tolist(), *held_out])))


def _of_states(states: list[Any]) -> Scale:
    levels = np.arange(len(states), dtype=np.float64)
    ticks = {str(state): k for state, k in zip(states, levels.tolist(), strict=True)}
    return Scale(levels, dict(zip(states, levels.tolist(), strict=True)), ticks, "state", None)


def _of_symbols(states: list[Any], symbols: list[Any]) -> Scale:
    """Symbols below the states, rising as numbers do."""
    levels = np.arange(len(states), dtype=np.float64)
    heights = {symbol: -1.5 - k for k, symbol in enumerate(reversed(symbols))}
    ticks = {f"sees {symbol}": height for symbol, height in heights.items()}
    ticks |= {f"state {state}": k for state, k in zip(states, levels.tolist(), strict=True)}
    return Scale(levels, heights, ticks, "", None)


def _of_numbers(states: list[Any], means: Floats, label: str) -> Scale:
    return Scale(means, None, None, label, with_means(states, means))


def _means_of_assigned(trajectories: Trajectories, panel: Panel, d: int) -> Floats:
    """(M,) mean of the values seen in each state; NaN where there are none."""
    x = panel.values[:, d]
    at = trajectories.at(panel.decode_times(panel.times), panel.ids[panel.sequence_index], outside="hold")
    rows = [np.isfinite(x) & (at == state) for state in trajectories.labels.tolist()]
    return np.array([x[row].mean() if row.any() else np.nan for row in rows])
