import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import jumpmeans as jm
from jumpmeans.comparators import MLTrajectory
from jumpmeans.plots import PALETTE, plot_history, plot_posterior, plot_states, plot_trajectory


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
    ticks = [
        [label for label, place in zip(axis.get_ticklabels(), axis.get_ticklocs(), strict=True)
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
    assert ax.get_legend().get_title().get_text() == f"sequence {key}, state (mean)"
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
    names = [f"{s} ({np.nanmean(x[model._row_states(masked) == s]):.4g})" for s in range(3)]
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


def test_labels_seen_only_among_the_held_out():
    panel = jm.Panel.from_arrays([0, 1, 2, 3], [1, 1, 3, 1], ids=["p"] * 4)
    masked = panel.with_values([[1.0], [1.0], [np.nan], [1.0]])
    truth = jm.evaluation.Truth(np.array(["p"]), np.array([2.0]), np.array([2]), np.array([3]))
    process = jm.Process([0.5, 0.5, 0.5], (np.ones((3, 3)) - np.eye(3)) / 2, states=[1, 2, 3])
    model = MLTrajectory(process).fit(masked)
    for given in (model, None):
        ax = plot_trajectory(model.trajectories_, "p", masked, given, truth=truth)
        assert dots(ax)["hollow"].tolist() == [[2.0, 2.0]]


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
    assert len(ax.figure.axes) == 2
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
        (lambda p, m: plot_trajectory(m.trajectories_, p.ids[0], p, column=1), ValueError, "column must be below"),
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
