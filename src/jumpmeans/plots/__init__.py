"""Pictures of trajectories, probabilities, states and fits. Every function takes an axes and returns it."""

from __future__ import annotations

import textwrap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from ..arrays import Floats
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..errors import MissingExtraError
from ..estimators.read_out import as_panel
from ..model.process import Process

__all__ = ["plot_history", "plot_posterior", "plot_state_path", "plot_states", "plot_trajectory", "plot_trials"]


# Okabe and Ito's colours, told apart by all kinds of colour vision; yellow last, for it is faint on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
# Small enough to be printed at half the width of a page with its letters still legible.
FIGURE_SIZE = (4.8, 3.0)
LETTERS_PER_INCH = 16.0
# More looks than this would hide the lowest probabilities under ticks.
MOST_TICKS = 150
# More cells than this on a side leave no room for numbers.
MOST_CELLS = 12
# A longer entry of a legend is broken into lines.
LEGEND_LETTERS = 60


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
        Tells what a column shows in each state; without it a column whose values are all names of states is taken for
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
    ax = _axes(ax)
    i = _position(trajectories.ids, id, "trajectories")
    if truth is not None and panel is None:
        raise ValueError("truth must come with the panel that it was held out from; give panel=... too.")
    panel = None if panel is None else as_panel(panel)
    d = _column_index(panel, column)
    scale = _scale(trajectories, panel, model, d, value_unit)
    colours = _colours(len(trajectories.labels))
    own = slice(trajectories.offsets[i], trajectories.offsets[i + 1])
    codes, starts = trajectories.codes[own], trajectories.start_times[own]
    ends = np.append(starts[1:], trajectories.end_times[i])

    def when(t: Any) -> Any:
        return trajectories.clock.decode(t) if trajectories.clock is not None else t

    for t in starts[1:]:
        ax.axvline(when(t), color="0.88", linewidth=0.8 if len(codes) < 40 else 0.4, zorder=0)
    level = scale.levels[codes]
    ax.vlines(when(starts[1:]), level[:-1], level[1:], color="0.55", linewidth=1.0, zorder=1)
    for s in np.unique(codes):
        here = codes == s
        ax.hlines(
            level[here], when(starts[here]), when(ends[here]), color=colours[s], linewidth=2.4, zorder=2,
            label=scale.names[s] if scale.names else None,
        )  # fmt: skip
    degenerate = getattr(trajectories, "degenerate", None)
    if degenerate is not None and degenerate[own].any():
        at = degenerate[own]
        ax.scatter(
            when(starts[at]), level[at], s=62, marker="D", facecolor="none", edgecolor=[colours[s] for s in codes[at]],
            linewidth=1.3, zorder=4, label="left at once",
        )  # fmt: skip
    if panel is not None:
        j = _position(panel.ids, id, "panel")
        rows = slice(panel.offsets[j], panel.offsets[j + 1])
        x, t = panel.values[rows, d], panel.times[rows]
        seen = np.isfinite(x)
        _dots(ax, when(t[seen]), scale.place(x[seen]), codes, starts, t[seen], colours, hollow=False)
        if truth is not None:
            hidden = _held_out(truth, panel, id, d)
            if len(hidden[0]):
                _dots(ax, when(hidden[0]), scale.place(hidden[1]), codes, starts, hidden[0], colours, hollow=True)
                for face, name in (("0.35", "seen"), ("white", "held out")):
                    ax.scatter([], [], s=22, facecolor=face, edgecolor="0.35", linewidth=1.1, label=name)
    scale.dress(ax)
    _time_axis(ax, trajectories.clock, time_unit)
    _legend(ax, f"sequence {id}" + (", state (mean)" if scale.names else ""))
    return ax


def plot_posterior(model: Any, panel: Any, id: Any, ax: Any = None, *, time_unit: str | None = None) -> Any:
    """Draw the probability of every state over the window of one sequence, stacked to 1.

    Parameters
    ----------
    model : fitted model
        With `predict_proba(panel, at=...)`.
    panel : Panel or frame
    id : str or int
        The sequence.
    ax : matplotlib axes, optional
        A new figure if left out.
    time_unit : str, optional
        Name for the time axis, such as "hours"; dates need none.

    Returns
    -------
    ax : matplotlib axes
        Rows with a value are ticked along the bottom, unless there are too many to tell apart.
    """
    _process(model)
    panel = as_panel(panel)
    i = _position(panel.ids, id, "panel")
    one = panel.select([i])
    grid = np.unique(np.concatenate([np.linspace(one.start_times[0], one.end_times[0], 400), one.times]))
    probs = model.predict_proba(one, at={id: grid})
    ax = _axes(ax)
    when = one.decode_times(grid)
    names, means = _state_names(model)
    ax.stackplot(when, probs.T, colors=_colours(len(names)), labels=names, linewidth=0.0, alpha=0.9)
    looks = one.decode_times(one.times[one.observed])
    if len(looks) <= MOST_TICKS:
        for shade, width in (("white", 2.6), ("black", 1.0)):
            ax.plot(
                looks, np.zeros(len(looks)), "|", color=shade, markersize=8, markeredgewidth=width, clip_on=False,
                zorder=5,
            )  # fmt: skip
    ax.set_ylim(0.0, 1.0)
    if len(grid) > 1:
        ax.set_xlim(when[0], when[-1])
    ax.set_ylabel("probability")
    _time_axis(ax, panel.clock, time_unit)
    _legend(ax, f"sequence {id}, state" + (" (mean)" if means else ""))
    return ax


def plot_states(model: Any, ax: Any = None, *, time_unit: str | None = None) -> Any:
    """Draw how long each state lasts on average and where it goes: the process as a table of colours.

    Parameters
    ----------
    model : fitted model or Process
    ax : matplotlib axes, optional
        A new figure if left out.
    time_unit : str, optional
        Unit of the mean dwell times, such as "years"; dates are in days.

    Returns
    -------
    ax : matplotlib axes
        Row: the state left, its mean dwell time 1/λ at the right. Cell: probability of the jump.
    """
    process = _process(model)
    M = len(process.rates)
    P = np.ma.masked_array(process.transition_probs, np.eye(M, dtype=bool))
    ax = _axes(ax, size=(4.8, 3.0 + max(0.0, 0.22 * (M - 6))))
    image = ax.imshow(P, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    ax.set_facecolor("0.93")
    names, means = _state_names(model)
    short = [str(label) for label in process.states.tolist()]
    inches = ax.get_position().width * ax.figure.get_size_inches()[0]
    crowded = (max(map(len, short)) + 2) * M > LETTERS_PER_INCH * 0.8 * inches
    ax.set_xticks(range(M), short, rotation=90 if crowded else 0)
    ax.set_yticks(range(M), names)
    ax.set_xlabel("to state")
    ax.set_ylabel("from state (mean)" if means else "from state")
    dwells = [f"{1.0 / rate:.3g}" if rate > 0 else "for ever" for rate in process.rates]
    right = ax.secondary_yaxis("right")
    right.set_yticks(range(M), dwells)
    right.set_ylabel("mean dwell time" + (f" ({time_unit})" if time_unit else ""))
    right.tick_params(length=0)
    right.spines["right"].set_visible(False)
    ax.tick_params(length=0)
    ax.set_xticks(np.arange(M + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(M + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.5)
    ax.tick_params(which="minor", length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    if M > MOST_CELLS:
        ax.figure.colorbar(image, ax=ax, label="probability of the jump", pad=0.12)
        return ax
    size = "medium" if M <= 6 else "x-small"
    for a, b in np.argwhere(~np.eye(M, dtype=bool)):
        p = process.transition_probs[a, b]
        if p > 0:
            text = f"{p:.2f}" if p >= 0.005 else "<.01"
            ax.text(b, a, text, ha="center", va="center", size=size, color="white" if p > 0.55 else "black")
    return ax


def plot_history(model: Any, ax: Any = None) -> Any:
    """Draw what the fit optimises, after each of its iterations.

    Parameters
    ----------
    model : fitted model
        Of JumpMeans the objective, which falls; of EM and the samplers their log-density.
    ax : matplotlib axes, optional
        A new figure if left out.

    Returns
    -------
    ax : matplotlib axes
    """
    values, name = getattr(model, "objective_history_", None), "objective J"
    if values is None and hasattr(model, "history_"):
        values, name = model.history_.values, "log-density"
    if values is None:
        raise NotFittedError(
            f"model must be fitted and keep a history, got {type(model).__name__}; call fit(panel) first."
        )
    ax = _axes(ax)
    marker = "o" if len(values) <= 40 else None
    ax.plot(np.arange(1, len(values) + 1), values, color=PALETTE[0], marker=marker, markersize=3.5, linewidth=1.6)
    ax.set_xlabel("iteration")
    ax.set_ylabel(name)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.ticklabel_format(axis="y", useOffset=False)
    _open_frame(ax)
    return ax


def plot_trials(trials: list[dict[str, Any]], best: int, measure: str = "held-out error", ax: Any = None) -> Any:
    """Draw the held-out error of every setting that was tried.

    Parameters
    ----------
    trials : list of dict
        As `jumpmeans.tune` returns them: parameters, `error`, `se`, the model as given first.
    best : int
        Index of the best one.
    measure : str
        Name of the error.
    ax : matplotlib axes, optional
        A new figure if left out.

    Returns
    -------
    ax : matplotlib axes
        Bars: one standard error over the hold-outs to either side. Over the number of the trial; where a single
        parameter was varied and has numbers, over its values.
    """
    ax = _axes(ax)
    error, se = (np.array([row[name] for row in trials], dtype=np.float64) for name in ("error", "se"))
    varied = [name for name in trials[0] if name not in ("error", "se", "change", "change_se", "states", "message")]
    x, name = _trial_places(trials, varied)
    ok, winner = np.isfinite(error), np.arange(len(trials)) == best
    if ok[0]:
        ax.axhline(error[0], color="0.35", linestyle="--", linewidth=1.1, zorder=1, label="as given")
    changed = [key for key in varied if repr(trials[best][key]) != repr(trials[0][key])]
    setting = ", ".join(f"{key} {_short(trials[best][key])}" for key in changed) or "as given"
    for rows, marker, colour, label in (
        (ok & ~winner, "o", PALETTE[0], None),
        (winner, "D", PALETTE[1], textwrap.fill(f"best: {setting}", LEGEND_LETTERS)),
    ):
        ax.errorbar(
            x[rows], error[rows], np.nan_to_num(se[rows]), linestyle="none", marker=marker, markersize=4.5,
            color=colour, elinewidth=1.2, label=label, zorder=2,
        )  # fmt: skip
    if not ok.all():
        ax.plot(
            x[~ok], np.zeros((~ok).sum()), "x", color="black", markersize=5, clip_on=False, zorder=4,
            transform=ax.get_xaxis_transform(), label="failed",
        )  # fmt: skip
    if np.nanmin(x) > 0 and np.nanmax(x) / np.nanmin(x) > 50:
        ax.set_xscale("log")
    elif np.all(np.isnan(x) | (x == np.round(x))):
        ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel(name)
    ax.set_ylabel(measure)
    _open_frame(ax)
    _legend(ax, f"{len(trials)} settings")
    return ax


def plot_state_path(
    state_cost: Floats, n_states: NDArray[Any], error: Floats, error_se: Floats, measure: str = "held-out error",
    ax: Any = None, *, auto_cost: float | None = None,
) -> Any:  # fmt: skip
    """Draw how the number of states falls as their price grows, and the held-out error along the way.

    Parameters
    ----------
    state_cost, n_states, error, error_se : (C,)
        Columns of the table that `jumpmeans.state_path` returns.
    measure : str
        Name of the error.
    ax : matplotlib axes, optional
        A new figure if left out.
    auto_cost : float, optional
        The automatic price, to be marked.

    Returns
    -------
    ax : matplotlib axes
        Of the number of states, on the left; the error, with one standard error over the hold-outs to either side,
        has the axis on the right.
    """
    ax = _axes(ax)
    steps, dots = PALETTE[0], PALETTE[1]
    ax.plot(state_cost, n_states, color=steps, marker="o", markersize=4, linewidth=1.6, zorder=2)
    if auto_cost is not None:
        ax.axvline(auto_cost, color="0.35", linestyle=":", linewidth=1.4, zorder=1, label="automatic price")
        _legend(ax, "")
    ax.set_xscale("log")
    ax.set_xlabel("state_cost")
    ax.set_ylabel("number of states", color=steps)
    ax.set_ylim(0.0, float(np.max(n_states)) * 1.08)
    ax.yaxis.get_major_locator().set_params(integer=True)
    _open_frame(ax)
    right = ax.twinx()
    right.errorbar(
        state_cost, error, np.nan_to_num(error_se), color=dots, marker="s", markersize=3.5, linewidth=1.2,
        linestyle="--", elinewidth=1.2,
    )  # fmt: skip
    right.set_ylabel(measure, color=dots)
    right.spines["top"].set_visible(False)
    for axis, colour in ((ax, steps), (right, dots)):
        axis.tick_params(axis="y", colors=colour)
    return ax


# ------------------------------------------------------------------------------------------------- the parts


def _trial_places(trials: list[dict[str, Any]], varied: list[str]) -> tuple[Floats, str]:
    """Where trials stand and on what axis: values of the one parameter varied, if they are numbers, or their rows."""
    if len(trials) > 2 and len(varied) == 1:
        values = [row[varied[0]] for row in trials]
        if not isinstance(values[0], int | float):  # "auto", or nothing: the dashed line alone stands for it
            values[0] = np.nan
        if all(isinstance(value, int | float) for value in values):
            return np.array(values, dtype=np.float64), varied[0]
    return np.arange(len(trials), dtype=np.float64), "trial (row of the table)"


def _short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "/".join(map(_short, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)


class Scale(NamedTuple):
    """Where states and values stand on the y axis.

    levels (M,) of the states; heights of the values where these are labels, None for numbers; ticks and their labels,
    None for numbers; label of the axis; names (M,) of the states for the legend, None where ticks name them.
    """

    levels: Floats
    heights: dict[float, float] | None
    ticks: dict[str, float] | None
    label: str
    names: list[str] | None

    def place(self, x: Floats) -> Floats:
        """Heights of values as the panel holds them; NaN for a label that has none."""
        if self.heights is None:
            return x
        return np.array([self.heights.get(value, np.nan) for value in x.tolist()])

    def dress(self, ax: Any) -> None:
        """Name the axis and its ticks."""
        ax.set_ylabel(self.label)
        if self.ticks is not None:
            places = list(self.ticks.values())
            ax.set_yticks(places, list(self.ticks))
            ax.set_ylim(min(places) - 0.5, max(places) + 0.5)
            if min(places) < 0:
                ax.axhline(-0.75, color="0.6", linewidth=0.8)


def _scale(trajectories: Trajectories, panel: Any, model: Any, d: int, unit: str | None) -> Scale:
    """How to show column d: as states, as symbols below the states, or as numbers."""
    states = trajectories.labels.tolist()
    M = len(states)
    levels = np.arange(M, dtype=np.float64)
    emission: Any = None if model is None else _process(model).emission.columns[d]
    if emission is not None and emission.n_states != M:
        raise ValueError(f"model must have the {M} states of the trajectories, got {emission.n_states}.")
    own_ticks = {str(state): k for state, k in zip(states, levels.tolist(), strict=True)}
    if panel is None and (emission is None or emission.is_symbolic):
        return Scale(levels, None, own_ticks, "state", None)
    if emission is None:
        direct = all(label in states for label in panel.labels(d).tolist())
        symbols = panel.categories[d] is not None
    else:
        direct, symbols = emission.shows_state, emission.is_symbolic
    if direct:
        places = dict(zip(states, levels.tolist(), strict=True))
        return Scale(levels, _by_code(panel, d, places), own_ticks, "state", None)
    if symbols:
        found = panel.labels(d).tolist() if emission is None else emission.symbols.tolist()
        places = {label: -1.5 - k for k, label in enumerate(reversed(found))}
        ticks = {f"sees {label}": place for label, place in places.items()}
        ticks |= {f"state {name}": place for name, place in own_ticks.items()}
        return Scale(levels, _by_code(panel, d, places), ticks, "", None)
    if emission is None:
        x = panel.values[:, d]
        at = trajectories.at(panel.decode_times(panel.times), panel.ids[panel.sequence_index], outside="hold")
        rows = [np.isfinite(x) & (at == state) for state in states]
        levels = np.array([x[row].mean() if row.any() else np.nan for row in rows])
    else:
        levels = np.asarray(emission.state_values(), dtype=np.float64)
    name = panel.columns[d] if panel is not None else "value"
    names = [f"{state} ({level:.4g})" for state, level in zip(states, levels, strict=True)]
    return Scale(levels, None, None, name + (f" ({unit})" if unit else ""), names)


def _by_code(panel: Panel, d: int, places: dict[Any, float]) -> dict[float, float]:
    """The same places by the numbers that stand for the labels in the values of a panel."""
    categories = panel.categories[d]
    if categories is None:
        return {float(label): place for label, place in places.items()}
    return {float(k): places[label] for k, label in enumerate(categories.tolist()) if label in places}


def _state_names(model: Any) -> tuple[list[str], bool]:
    """Labels of the states, with the mean of each where there is one column of numbers; and whether there is."""
    process = _process(model)
    names = [str(label) for label in process.states.tolist()]
    columns = process.emission.columns
    if len(columns) > 1 or columns[0].is_symbolic:
        return names, False
    return [f"{name} ({x:.4g})" for name, x in zip(names, columns[0].state_values(), strict=True)], True


def _dots(
    ax: Any, when: Any, heights: Floats, codes: Any, starts: Floats, t: Floats, colours: list[Any], hollow: bool
) -> None:
    """Observations in the colour of the state on the path at their time."""
    size = np.clip(22.0 * 80.0 / max(len(t), 1), 5.0, 22.0)  # smaller where there are many
    shades = [colours[s] for s in codes[np.maximum(np.searchsorted(starts, t, side="right") - 1, 0)]]
    ax.scatter(
        when, heights, s=size, facecolor="white" if hollow else shades, edgecolor=shades, linewidth=1.1, zorder=3
    )  # fmt: skip


def _held_out(truth: Any, panel: Panel, id: Any, d: int) -> tuple[Floats, Floats]:
    """Times and values (as the panel holds them) that were held out of one sequence."""
    own = np.array([key == id for key in truth.ids.tolist()], dtype=bool)
    values = (truth.values if truth.values.ndim == 1 else truth.values[:, d])[own]
    times = panel.encode_times(truth.times[own]) if own.any() else np.zeros(0)
    categories = panel.categories[d]
    if categories is not None:
        index = {label: float(k) for k, label in enumerate(categories.tolist())}
        x = np.array([index.get(value, np.nan) for value in values.tolist()], dtype=np.float64)
    else:
        x = values.astype(np.float64)
    present = np.isfinite(x)
    return times[present], x[present]


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingExtraError("plots need matplotlib; install it by pip install 'jumpmeans[plots]'.") from error
    return plt


def _axes(ax: Any, size: tuple[float, float] = FIGURE_SIZE) -> Any:
    plt = _pyplot()
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def _process(model: Any) -> Process:
    process = model if isinstance(model, Process) else getattr(model, "process_", None)
    if process is None:
        raise NotFittedError(
            f"model must be fitted and have a process_, got {type(model).__name__}; call fit(panel) first."
        )
    return process  # type: ignore[no-any-return]


def _position(ids: NDArray[Any], id: Any, name: str) -> int:
    known = ids.tolist()
    if id not in known:
        more = f" and {len(known) - 5} more" if len(known) > 5 else ""
        raise ValueError(f"id must be a sequence of the {name}, got {id!r}; there are {known[:5]}{more}.")
    return known.index(id)


def _column_index(panel: Any, column: int | str) -> int:
    if panel is None:
        if isinstance(column, str):
            raise ValueError(f"column {column!r} must come with the panel that names it; give panel=... too.")
        return column
    if isinstance(column, str):
        if column not in panel.columns:
            raise ValueError(f"column must be one of {list(panel.columns)}, got {column!r}.")
        return int(panel.columns.index(column))
    if not 0 <= column < panel.n_columns:
        raise ValueError(f"column must be below the number of value columns {panel.n_columns}, got {column}.")
    return column


def _colours(M: int) -> list[Any]:
    """A colour for every state; beyond the palette, shades of one scale that every eye can order."""
    if M <= len(PALETTE):
        return list(PALETTE[:M])
    import matplotlib

    return [tuple(shade) for shade in matplotlib.colormaps["viridis"](np.linspace(0.0, 0.95, M))]


def _time_axis(ax: Any, clock: Any, unit: str | None) -> None:
    if clock is None:
        ax.set_xlabel(f"time ({unit})" if unit else "time")
    else:
        import matplotlib.dates as dates

        locator = dates.AutoDateLocator(minticks=3, maxticks=6)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        ax.set_xlabel("date (UTC)" if clock.zone else "date")
    _open_frame(ax)


def _open_frame(ax: Any) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _legend(ax: Any, title: str) -> None:
    """Names above the axes, where there are no data, in as many columns as fit; the title alone if there are none."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        ax.set_title(title, loc="left", size="medium")
        return
    inches = ax.get_position().width * ax.figure.get_size_inches()[0]
    columns = int(np.clip(LETTERS_PER_INCH * inches // (max(map(len, labels)) + 5), 1, len(labels)))
    ax.legend(
        handles, labels, title=title, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, frameon=False,
        fontsize="small", title_fontsize="medium", alignment="left", handlelength=1.3, columnspacing=1.2,
        borderaxespad=0.2, handletextpad=0.5,
    )  # fmt: skip
