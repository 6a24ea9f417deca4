import re
import runpy
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import jumpmeans as jm
from jumpmeans.comparators import MLTrajectory
from jumpmeans.plots import (
    PALETTE,
    plot_history,
    plot_posterior,
    plot_state_path,
    plot_states,
    plot_trajectory,
    plot_trials,
)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def edss():
    panel = jm.datasets.load_edss()
    return panel, jm.JumpMeans(emission="direct").fit(panel)


@pytest.fixture(scope="module")
def pressure():
    panel = jm.datasets.load_icu_pressure()
    masked, truth = jm.hold_out(panel, 0.25, 0)
    return masked, truth, jm.JumpMeans(3, refine=0).fit(masked)


def most_jumps(trajectories):
    return trajectories.ids.tolist()[int(np.diff(trajectories.offsets).argmax())]


def texts(labels):
    return [label.get_text() for label in labels]


def legend(ax):
    return texts(ax.get_legend().get_texts())


def dots(ax):
    """Places of filled and of hollow dots."""
    found = [c for c in ax.collections if isinstance(c, matplotlib.collections.PathCollection)]
    places = {"filled": [], "hollow": []}
    for c in found:
        offsets = np.asarray(c.get_offsets())
        if len(offsets):
            white = np.allclose(c.get_facecolor()[:1, :3], 1.0) if len(c.get_facecolor()) else True
            places["hollow" if white else "filled"].append(offsets)
    return {k: np.concatenate(v) if v else np.zeros((0, 2)) for k, v in places.items()}


def inside_figure(ax):
    """Nothing is cut off: every text and the legend lie within the figure; the legend lies off the data."""
    figure = ax.figure
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    frame = figure.bbox
    ticks = [  # none where an axis below names them
        [label for label, place in zip(axis.get_ticklabels(), axis.get_ticklocs(), strict=False)
         if min(view) <= place <= max(view)]
        for axis, view in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim()))
    ]  # fmt: skip
    things = [ax.xaxis.label, ax.yaxis.label, ax.title, *ticks[0], *ticks[1], *ax.texts]
    boxes = [t.get_window_extent(renderer) for t in things if t.get_text()]
    limits = ax.get_window_extent(renderer)
    if ax.get_legend() is not None:
        box = ax.get_legend().get_window_extent(renderer)
        assert box.y0 >= limits.y1 - 1
        boxes.append(box)
    for box in boxes:
        assert box.x0 >= frame.x0 - 1 and box.x1 <= frame.x1 + 1, box
        assert box.y0 >= frame.y0 - 1 and box.y1 <= frame.y1 + 1, box
    for labels in ticks:
        spans = [t.get_window_extent(renderer) for t in labels if t.get_text()]
        assert not any(a.overlaps(b) for i, a in enumerate(spans) for b in spans[i + 1 :])


# ------------------------------------------------------------------------------------------------ trajectories


def test_trajectory_of_observed_states(edss):
    panel, model = edss
    key = most_jumps(model.trajectories_)
    ax = plot_trajectory(model.trajectories_, key, panel, model, time_unit="years")
    assert ax.get_xlabel() == "time (years)"
    assert ax.get_ylabel() == "state"
    assert texts(ax.get_yticklabels()) == ["1", "2", "3"]
    assert ax.get_title(loc="left") == f"sequence {key}"
    i = panel.ids.tolist().index(key)
    rows = slice(panel.offsets[i], panel.offsets[i + 1])
    expected = np.column_stack([panel.times[rows], panel.values[rows, 0] - 1])
    np.testing.assert_allclose(dots(ax)["filled"], expected)
    inside_figure(ax)


def test_steps_stand_where_the_dwells_are(edss):
    _, model = edss
    key = most_jumps(model.trajectories_)
    frame = model.trajectories_.to_frame().query("id == @key")
    ax = plot_trajectory(model.trajectories_, key)
    lines = [c for c in ax.collections if isinstance(c, matplotlib.collections.LineCollection)]
    flat = {
        tuple(np.round([*seg[:, 0], seg[0, 1]], 9)) for c in lines for seg in c.get_segments() if seg[0, 1] == seg[1, 1]
    }
    expected = {tuple(np.round([a, b, s - 1], 9)) for s, a, b in zip(frame.state, frame.start, frame.end, strict=True)}
    assert flat == expected
    jumps = [line.get_xdata()[0] for line in ax.lines]
    np.testing.assert_allclose(jumps, frame.start[1:])


def test_trajectory_of_measurements(pressure):
    masked, truth, model = pressure
    key = most_jumps(model.trajectories_)
    ax = plot_trajectory(model.trajectories_, key, masked, model, truth=truth, time_unit="hours", value_unit="mmHg")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (hours)", "sys (mmHg)")
    assert ax.get_legend().get_title().get_text() == f"sequence {key}, state (mean, mmHg)"
    means = model.process_.emission.means
    part = slice(*model.trajectories_.offsets[(i := masked.ids.tolist().index(key)) : i + 2])
    visited = np.unique(model.trajectories_.codes[part])
    assert legend(ax) == [*(f"{s} ({means[s]:.4g})" for s in visited), "seen", "held out"]
    own = truth.ids == key
    np.testing.assert_allclose(dots(ax)["hollow"], np.column_stack([truth.times[own], truth.values[own]]))
    seen = masked.observed[masked.offsets[i] : masked.offsets[i + 1]]
    assert len(dots(ax)["filled"]) == seen.sum() == 32 - own.sum()
    inside_figure(ax)


def test_without_a_model_levels_are_means_of_the_assigned_values(pressure):
    masked, _, model = pressure
    key = most_jumps(model.trajectories_)
    ax = plot_trajectory(model.trajectories_, key, masked)
    x = masked.values[:, 0]
    names = [f"{s} ({np.nanmean(x[model.predict(masked)[masked.rows] == s]):.4g})" for s in range(3)]
    assert set(legend(ax)) <= set(names)


def test_trajectory_of_hidden_states_behind_symbols(rng):
    process = jm.Process(
        [0.3, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Categorical([[0.9, 0.1], [0.2, 0.8]], ["x", "y"])
    )
    panel, truth = jm.simulate(process, 4, 20, random_state=1)
    model = MLTrajectory(process).fit(panel)
    ax = plot_trajectory(truth, 2, panel, model)
    assert sorted(texts(ax.get_yticklabels())) == ["sees x", "sees y", "state 0", "state 1"]
    heights = dict(zip(texts(ax.get_yticklabels()), ax.get_yticks(), strict=True))
    x = panel.values[panel.offsets[2] : panel.offsets[3], 0]
    np.testing.assert_allclose(dots(ax)["filled"][:, 1], np.where(x == 0, heights["sees x"], heights["sees y"]))
    plot_trajectory(truth, 2, panel)
    inside_figure(ax)


def test_degenerate_dwells_are_marked(edss):
    panel, model = edss
    best = MLTrajectory(start=model).fit(panel).trajectories_
    key = best.ids[np.add.reduceat(best.degenerate, best.offsets[:-1]).argmax()]
    ax = plot_trajectory(best, key, panel, model)
    assert legend(ax) == ["left at once"]
    part = slice(*best.offsets[(i := best.ids.tolist().index(key)) : i + 2])
    assert len(dots(ax)["hollow"]) == best.degenerate[part].sum() > 0
    inside_figure(ax)


def test_a_dot_at_a_jump_has_the_colour_of_the_new_state():
    # catches a planted fault: the state before the jump (side="left") gave the colour
    panel = jm.Panel.from_arrays([0.0, 1.0, 2.0, 3.0], [5.0, 5.0, 9.0, 9.0], ids=["p"] * 4)
    path = jm.Trajectories(
        np.array([0, 1], np.int32), np.array([0.0, 2.0]), np.array([0, 2]), np.array([3.0]), panel.ids, np.array([0, 1])
    )
    masked = panel.with_values([[5.0], [5.0], [np.nan], [9.0]])
    truth = jm.evaluation.Truth(np.array(["p"]), np.array([2.0]), np.array([2]), np.array([9.0]))
    for seen, hidden in ((panel, None), (masked, truth)):
        ax = plot_trajectory(path, "p", seen, truth=hidden)
        found = [c for c in ax.collections if isinstance(c, matplotlib.collections.PathCollection)]
        edges = {
            t: tuple(edge) for c in found for (t, _), edge in zip(c.get_offsets(), c.get_edgecolor(), strict=False)
        }
        old, new = (matplotlib.colors.to_rgba(colour) for colour in PALETTE[:2])
        assert [edges[t] for t in (0.0, 1.0, 2.0, 3.0)] == [old, old, new, new]


def test_dates_of_a_panel_with_another_origin_stand_where_they_belong():
    # catches a planted fault: days of the panel's clock read on that of the trajectories
    def dated(first, values):
        times = pd.date_range(first, periods=len(values), freq="D")
        return jm.Panel.from_frame(pd.DataFrame({"id": "p", "time": times, "value": values}))

    process = jm.Process([0.5, 0.5], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([1, 5], 0.5))
    model = MLTrajectory(process).fit(dated("2024-03-01", [1.0, 1.0, 1.0, 5.0, 5.0]))
    ax = plot_trajectory(model.trajectories_, "p", dated("2024-03-03", [1.0, 5.0]), model)
    drawn = next(c for c in ax.collections if isinstance(c, matplotlib.collections.PathCollection))
    np.testing.assert_allclose(
        drawn.get_offsets()[:, 0], matplotlib.dates.date2num(np.array(["2024-03-03", "2024-03-04"], "M8"))
    )
    np.testing.assert_allclose(drawn.get_edgecolor(), [matplotlib.colors.to_rgba(colour) for colour in PALETTE[:2]])


@pytest.mark.parametrize("name", sorted(jm.emissions.FAMILIES))
def test_every_family_can_be_drawn(name, rng):
    # Bernoulli readings, which are symbols without a list of them, failed
    panel = jm.Panel.from_arrays(np.arange(40.0), rng.integers(0, 2, 40) + (name != "bernoulli"), ids=[7] * 40)
    masked, truth = jm.hold_out(panel, 0.3)
    model = jm.JumpMeans(None if name == "direct" else 2, emission=name).fit(masked)
    ax = plot_trajectory(model.trajectories_, 7, masked, model, truth=truth)
    assert len(dots(ax)["filled"]) == 28 and len(dots(ax)["hollow"]) == 12
    assert np.isfinite(np.concatenate(list(dots(ax).values()))).all()
    ticks = texts(ax.get_yticklabels())
    if name in ("categorical", "bernoulli"):
        low, high = (0, 1) if name == "bernoulli" else (1, 2)
        assert sorted(ticks) == [f"sees {low}", f"sees {high}", "state 0", "state 1"]
    assert (ticks == ["1", "2"]) == (name == "direct")
    inside_figure(ax)
    plot_trajectory(model.trajectories_, 7, None, model)
    plot_posterior(model, masked, 7)
    plot_states(model)


def test_of_several_columns_the_one_asked_for_is_drawn(rng):
    emission = [jm.emissions.Direct(["a", "b"]), jm.emissions.Gaussian([0, 4], 1.0),
                jm.emissions.Categorical([[0.9, 0.1], [0.2, 0.8]], ["x", "y"])]  # fmt: skip
    process = jm.Process([0.3, 0.2], [[0, 1], [1, 0]], emission=emission, states=["a", "b"])
    panel, path = jm.simulate(process, 2, 20, random_state=1)
    for d, (label, ticks) in enumerate([
        ("state", ["a", "b"]), (panel.columns[1], None), ("", ["sees x", "sees y", "state a", "state b"])
    ]):  # fmt: skip
        ax = plot_trajectory(path, 0, panel, process, column=panel.columns[d])
        assert ax.get_ylabel() == label
        assert ticks is None or sorted(texts(ax.get_yticklabels())) == ticks
    # hidden states whose symbols have the same names as they are no observed states
    same = jm.Process([0.3, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Categorical([[0.9, 0.1], [0.2, 0.8]]))
    panel, path = jm.simulate(same, 2, 20, random_state=1)
    ax = plot_trajectory(path, 0, panel, same)
    assert sorted(texts(ax.get_yticklabels())) == ["sees 0", "sees 1", "state 0", "state 1"]


def test_labels_seen_only_among_the_held_out():
    panel = jm.Panel.from_arrays([0, 1, 2, 3], [1, 1, 3, 1], ids=["p"] * 4)
    masked = panel.with_values([[1.0], [1.0], [np.nan], [1.0]])
    truth = jm.evaluation.Truth(np.array(["p"]), np.array([2.0]), np.array([2]), np.array([3]))
    process = jm.Process([0.5, 0.5, 0.5], (np.ones((3, 3)) - np.eye(3)) / 2, states=[1, 2, 3])
    model = MLTrajectory(process).fit(masked)
    for given in (model, None):
        ax = plot_trajectory(model.trajectories_, "p", masked, given, truth=truth)
        assert dots(ax)["hollow"].tolist() == [[2.0, 2.0]]
    symbols = jm.emissions.Categorical([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], [1, 2, 3])
    hidden = MLTrajectory(jm.Process([0.5, 0.5], [[0, 1], [1, 0]], emission=symbols)).fit(masked)
    ax = plot_trajectory(hidden.trajectories_, "p", masked, hidden, truth=truth)
    heights = dict(zip(texts(ax.get_yticklabels()), ax.get_yticks(), strict=True))
    assert dots(ax)["hollow"].tolist() == [[2.0, heights["sees 3"]]]


@pytest.mark.parametrize(("zone", "label"), [(None, "date"), ("Europe/Paris", "date (UTC)")])
def test_dates_on_the_axis(zone, label):
    times = pd.date_range("2024-03-01", periods=6, freq="7h", tz=zone)
    frame = pd.DataFrame({"id": "p", "time": times, "value": [1.0, 1.2, 5.0, 5.1, None, 0.9]})
    panel = jm.Panel.from_frame(frame)
    process = jm.Process([0.5, 0.5], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([1, 5], 0.5))
    model = MLTrajectory(process).fit(panel)
    for ax in (plot_trajectory(model.trajectories_, "p", panel, model), plot_posterior(model, panel, "p")):
        assert ax.get_xlabel() == label
        assert isinstance(ax.xaxis.get_major_formatter(), matplotlib.dates.ConciseDateFormatter)
        first, last = matplotlib.dates.num2date(ax.get_xlim())
        assert (first.year, last.month) == (2024, 3)
        inside_figure(ax)


# ----------------------------------------------------------------------------------- posterior, states, history


def test_posterior_is_stacked_to_one(pressure):
    masked, _, model = pressure
    key = masked.ids.tolist()[0]
    ax = plot_posterior(model, masked, key, time_unit="hours")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (hours)", "probability")
    assert legend(ax) == [f"{s} ({m:.4g})" for s, m in enumerate(model.process_.emission.means)]
    assert len(ax.collections) == 3
    top = ax.collections[-1].get_paths()[0].vertices[:, 1]
    assert top.max() == pytest.approx(1.0)
    # the layers are the probabilities: the first one, read at a row
    lowest = ax.collections[0].get_paths()[0].vertices
    t = masked.times[5]
    expected = model.predict_proba(masked)[masked.rows[5], 0]
    assert lowest[np.isclose(lowest[:, 0], t), 1].max() == pytest.approx(expected)
    inside_figure(ax)


def test_states_of_a_fit_and_of_a_process(edss):
    _, model = edss
    ax = plot_states(model, time_unit="years")
    P, rates = model.process_.transition_probs, model.process_.rates
    cells = {(int(t.get_position()[1]), int(t.get_position()[0])): t.get_text() for t in ax.texts}
    assert set(cells) == {(a, b) for a in range(3) for b in range(3) if a != b}
    assert cells[1, 0] == f"{P[1, 0]:.2f}"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("to state", "from state")
    assert ax.get_title(loc="left") == "probability of the jump"
    assert texts(ax.get_xticklabels()) == texts(ax.get_yticklabels()) == ["1", "2", "3"]
    right = ax.child_axes[0]
    assert right.get_ylabel() == "mean dwell time (years)"
    assert texts(right.get_yticklabels()) == [f"{1 / rate:.3g}" for rate in rates]
    inside_figure(ax)
    absorbing = jm.Process([0.5, 0.0], [[0, 1], [0, 0]], states=["well", "dead"])
    ax = plot_states(absorbing)
    assert texts(ax.child_axes[0].get_yticklabels()) == ["2", "for ever"]
    assert texts(ax.texts) == ["1.00"]


def test_many_states_get_a_colour_bar_instead_of_numbers():
    M = 14
    process = jm.Process(np.ones(M), (np.ones((M, M)) - np.eye(M)) / (M - 1), states=[f"grade {k}" for k in range(M)])
    ax = plot_states(process)
    assert not ax.texts
    assert ax.figure.axes[1].get_ylabel() == "probability of the jump"
    inside_figure(ax)
    panel, truth = jm.simulate(process, 1, 60, random_state=0)
    plot_trajectory(truth, 0, panel)


def test_history_shows_every_iteration(pressure):
    model = pressure[2]
    ax = plot_history(model)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.objective_history_)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.arange(1, model.n_iter_ + 1))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("iteration", "objective J")
    inside_figure(ax)

    class Sampler:
        history_ = type("History", (), {"values": np.array([-3.0, -2.0])})

    assert plot_history(Sampler()).get_ylabel() == "log-density"


def test_what_was_seen_at_the_ends_is_not_cut(pressure):
    # catches a planted fault: limits at the ends of the window, which cut the dots there in half
    masked, _, model = pressure
    key = masked.ids.tolist()[0]
    _, axes = plt.subplots(2, 1, sharex=True)
    plot_trajectory(model.trajectories_, key, masked, model, axes[0])
    plot_posterior(model, masked, key, axes[1])
    first, last = masked.start_times[0], masked.end_times[0]
    low, high = axes[0].get_xlim()
    assert low < first - 0.01 * (last - first) and high > last + 0.01 * (last - first)


def test_units_stand_beside_the_numbers(pressure):
    masked, _, model = pressure
    ax = plot_posterior(model, masked, masked.ids.tolist()[0], time_unit="hours", value_unit="mmHg")
    assert ax.get_legend().get_title().get_text().endswith(", state (mean, mmHg)")
    assert plot_states(model, value_unit="mmHg").get_ylabel() == "from state (mean, mmHg)"
    dated = jm.Panel.from_frame(
        pd.DataFrame({"id": "p", "time": pd.date_range("2024-03-01", periods=6), "value": [1, 1, 5, 5, 1, 1.0]})
    )
    assert plot_states(jm.JumpMeans(2).fit(dated)).child_axes[0].get_ylabel() == "mean dwell time (days)"


# -------------------------------------------------------------------------------------------------- nothing to see


def one_path(labels=(0, 1)):
    return jm.Trajectories(
        np.zeros(1, np.int32), np.zeros(1), np.array([0, 1]), np.array([3.0]), np.array([0]), np.array(labels)
    )


def test_nothing_seen_leaves_a_labelled_axis():
    blank = jm.Panel.from_arrays([0.0, 1.0, 3.0], [np.nan] * 3, ids=[0] * 3, columns=["bp"])
    process = jm.Process([0.5, 0.5], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([1, 5], 0.5))
    model = MLTrajectory(process).fit(blank)
    ax = plot_trajectory(one_path(), 0, blank, model)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time", "bp") and len(dots(ax)["filled"]) == 0
    assert plot_trajectory(one_path(), 0, blank).get_ylabel() == "state"
    assert plot_posterior(model, blank, 0).get_ylabel() == "probability"
    for ax in map(plt.figure, plt.get_fignums()):
        ax.canvas.draw()


def test_a_state_without_values_has_no_mean():
    panel = jm.Panel.from_arrays([0.0, 1.0, 3.0], [4.0, 4.5, 5.0], ids=[0] * 3)
    assert legend(plot_trajectory(one_path(), 0, panel)) == ["0 (4.5)"]
    seen = jm.Panel.from_arrays([0.0, 1.0, 0.5], [4.0, 4.5, np.nan], ids=[0, 0, 1])
    both = jm.Trajectories(
        np.array([0, 1], np.int32), np.array([0.0, 0.5]), np.array([0, 1, 2]), np.array([1.0, 0.5]), seen.ids,
        np.array([0, 1]),
    )  # fmt: skip
    assert legend(plot_trajectory(both, 1, seen)) == ["1"]


def test_a_window_without_length():
    panel = jm.Panel.from_arrays([2.0], [1.0], ids=["p"])
    process = jm.Process([0.5, 0.5], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([1, 5], 0.5))
    model = MLTrajectory(process).fit(panel)
    for ax in (plot_trajectory(model.trajectories_, "p", panel, model), plot_posterior(model, panel, "p")):
        ax.figure.canvas.draw()
        assert ax.get_xlabel() == "time"


def test_a_fit_of_no_iterations_has_an_empty_history():
    class Idle:
        objective_history_ = np.zeros(0)

    ax = plot_history(Idle())
    ax.figure.canvas.draw()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("iteration", "objective J") and len(ax.lines[0].get_xdata()) == 0


EMPTY = jm.Trajectories(
    np.zeros(0, np.int32), np.zeros(0), np.zeros(1, np.int64), np.zeros(0), np.zeros(0), np.array([0, 1])
)
NUMBERS = jm.Panel.from_arrays([0.0, 1.0], [1.0, 2.0], ids=[0, 0])
TWO = jm.Panel.from_arrays([0.0, 1.0], [[1.0, 2.0], [2.0, 3.0]], ids=[0, 0], columns=["u", "v"])
DATES = jm.Panel.from_arrays(np.array(["2024-03-01", "2024-03-02"], "M8[ns]"), [1.0, 2.0], ids=[0, 0])
LABELS = jm.Panel.from_arrays([0.0, 1.0], ["a", "b"], ids=[0, 0])
HIDDEN = jm.Process([0.5, 0.5], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([1, 5], 0.5))
TRUTH = jm.evaluation.Truth(np.array([0]), np.array([1.0]), np.array([1]), np.array([2.0]))


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda: plot_trajectory(EMPTY, 0), ValueError, "sequence of the trajectories, got 0; there are none"),
        (lambda: plot_trajectory(one_path(), np.array([0, 1])), ValueError, r"got array\(\[0, 1\]\); there are \[0\]"),
        (lambda: plot_trajectory(HIDDEN, 0), ValueError, "trajectories must be Trajectories, such as .*, got Process"),
        (lambda: plot_trajectory(one_path(), 0, 5), jm.PanelError, "table in memory, got int"),
        (lambda: plot_trajectory(one_path(), 0, NUMBERS, 5), NotFittedError, "have a process_, got int"),
        (lambda: plot_trajectory(one_path(), 0, NUMBERS, column=None), ValueError, "integer below 1, .* got None"),
        (lambda: plot_trajectory(one_path(), 0, None, HIDDEN, column=1), ValueError, "columns of the model, got 1"),
        (lambda: plot_trajectory(one_path(), 0, TWO, HIDDEN, column="v"), ValueError, "columns of the model, got 1"),
        (lambda: plot_trajectory(one_path(), 0, LABELS, HIDDEN), jm.PanelError, "must be numbers for emission"),
        (lambda: plot_trajectory(one_path(), 0, DATES), ValueError, "those of the trajectories, numbers, got dates"),
        (lambda: plot_trajectory(one_path(), 0, NUMBERS, truth=1), ValueError, "what hold_out returns .*, got int"),
        (lambda: plot_trajectory(one_path(), 0, TWO, truth=TRUTH), ValueError, "the 2 value columns .*, got 1"),
        (lambda: plot_trajectory(one_path(), 0, ax=5), ValueError, "ax must be one matplotlib axes, got int"),
        (lambda: plot_states(HIDDEN, np.zeros(2)), ValueError, "ax must be one matplotlib axes, got ndarray"),
        (lambda: plot_posterior(HIDDEN, NUMBERS, 0), ValueError, "must have predict_proba.*, got Process"),
        (lambda: plot_states(None), NotFittedError, "have a process_, got NoneType"),
        (lambda: plot_history(None), NotFittedError, "keep a history, got NoneType"),
        (lambda: plot_trials([], 0), ValueError, "at least one setting with its error and se, got none"),
        (lambda: plot_trials([{"n_states": 2}], 0), ValueError, "with its error and se, got rows without"),
        (lambda: plot_trials([{"error": 0.1, "se": 0.1}], 1), ValueError, "row of a trial, below 1, got 1"),
        (lambda: plot_state_path([], [], [], []), ValueError, r"one entry for each price, got \[0, 0, 0, 0\]"),
        (lambda: plot_state_path([1], [2], [0.1, 0.2], [0]), ValueError, r"got \[1, 1, 2, 1\] of them"),
    ],
)  # fmt: skip
def test_plots_of_nothing_say_so(draw, error, message):
    with pytest.raises(error, match=message):
        draw()
    assert plt.get_fignums() == []  # no empty figure is left behind


# -------------------------------------------------------------------------------------------------- manners


def test_axes_in_axes_out_and_nothing_changed(pressure):
    masked, truth, model = pressure
    key = masked.ids.tolist()[3]
    values, starts = masked.values.copy(), model.trajectories_.start_times.copy()
    figures = len(plt.get_fignums())
    for draw in (
        lambda ax: plot_trajectory(model.trajectories_, key, masked, model, ax, truth=truth),
        lambda ax: plot_posterior(model, masked, key, ax),
        lambda ax: plot_states(model, ax),
        lambda ax: plot_history(model, ax),
    ):
        _, ax = plt.subplots()
        assert draw(ax) is ax
    assert len(plt.get_fignums()) == figures + 4
    np.testing.assert_array_equal(values, masked.values)
    np.testing.assert_array_equal(starts, model.trajectories_.start_times)


def test_half_a_page_is_wide_enough(pressure):
    masked, truth, model = pressure
    key = masked.ids.tolist()[3]
    figure, axes = plt.subplots(1, 2, figsize=(7.0, 2.8), layout="constrained")
    plot_trajectory(model.trajectories_, key, masked, model, axes[0], truth=truth, time_unit="hours")
    plot_posterior(model, masked, key, axes[1], time_unit="hours")
    for ax in axes:
        inside_figure(ax)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    left, right = (ax.get_legend().get_window_extent(renderer) for ax in axes)
    assert not left.overlaps(right)


def test_frames_will_do(edss):
    panel, model = edss
    frame = panel.to_frame().rename(columns={"state3": "value"})
    key = panel.ids.tolist()[0]
    assert texts(plot_trajectory(model.trajectories_, key, frame, model).get_yticklabels()) == ["1", "2", "3"]
    plot_posterior(model, frame, key)


def test_palette_is_of_distinct_colours():
    assert len(set(PALETTE)) == len(PALETTE) == 8


def test_matplotlib_is_named_when_it_is_missing(edss, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(jm.MissingExtraError, match=r"pip install 'jumpmeans\[plots\]'"):
        plot_history(edss[1])


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda p, m: plot_trajectory(m.trajectories_, "x"), ValueError,
         r"id must be a sequence of the trajectories, got 'x'; there are \['ipt03w0', .* and 88 more"),
        (lambda p, m: plot_posterior(m, p, "x"), ValueError, "id must be a sequence of the panel, got 'x'"),
        (lambda p, m: plot_trajectory(m.trajectories_, p.ids[0], p, column="y"), ValueError,
         r"column must be one of \['state3'\], got 'y'"),
        (lambda p, m: plot_trajectory(m.trajectories_, p.ids[0], p, column=1), ValueError,
         "column must be a name or an integer below 1, the number of columns of the panel, got 1"),
        (lambda p, m: plot_trajectory(m.trajectories_, p.ids[0], column="y"), ValueError, "give panel=... too"),
        (lambda p, m: plot_trajectory(m.trajectories_, p.ids[0], truth=1), ValueError,
         "truth must come with the panel"),
        (lambda p, m: plot_trajectory(m.trajectories_, p.ids[0], p, jm.Process([1, 1], [[0, 1], [1, 0]])), ValueError,
         "model must have the 3 states of the trajectories, got 2"),
        (lambda p, m: plot_states(jm.JumpMeans(2)), NotFittedError, "model must be fitted and have a process_"),
        (lambda p, m: plot_posterior(jm.JumpMeans(2), p, p.ids[0]), NotFittedError, "call fit"),
        (lambda p, m: plot_history(jm.JumpMeans(2)), NotFittedError, "keep a history, got JumpMeans"),
    ],
)  # fmt: skip
def test_messages(edss, draw, error, message):
    with pytest.raises(error, match=message):
        draw(*edss)


# -------------------------------------------------------------------------------------------------- examples

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_the_demo_runs(tmp_path, capsys):
    runpy.run_path(str(EXAMPLES / "demo.py"))["main"](str(tmp_path))
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {
        "edss.png",
        "icu.png",
        "icu_states.png",
        "edss_trajectories.csv",
        "icu_trajectories.csv",
        "report.html",
    }
    assert "JUMP-means posterior" in capsys.readouterr().out
    for number in plt.get_fignums():
        for ax in plt.figure(number).axes:
            inside_figure(ax)


def test_the_picture_of_most_likely_trajectories_is_made(tmp_path):
    runpy.run_path(str(EXAMPLES / "plot_most_likely.py"))["main"](str(tmp_path / "picture.png"))
    assert (tmp_path / "picture.png").stat().st_size > 0
    for ax in plt.gcf().axes[:3]:
        inside_figure(ax)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_examples_use_public_names_alone(path):
    assert re.findall(r"\._(?!_)\w+|import _\w+", path.read_text()) == []
