"""Pictures of answers: what they draw, and what they refuse."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

import jumpmeans as jm

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PROCESS = jm.Process.from_generator(
    {"well": {"ill": 0.4, "dead": 0.05}, "ill": {"well": 0.3, "dead": 0.2}}, [0.7, 0.3, 0]
)
PANEL, TRUTH = jm.simulate(PROCESS, 60, 6, random_state=2)
MODEL = jm.JumpMeans.from_process(PROCESS)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_prevalence_has_dots_and_lines():
    ax = jm.plots.plot_prevalence(MODEL, PANEL, [0, 1, 2], time_unit="years")
    assert len(ax.lines) == 3 and len(ax.collections) == 3 and ax.get_xlabel() == "time since the start (years)"
    table = MODEL.prevalence(PANEL, [0, 1, 2])
    dots = np.array([dots.get_offsets()[:, 1] for dots in ax.collections]).T
    np.testing.assert_allclose(dots, table.observed.values)
    for line, share in zip(ax.lines, table.expected.values[-1], strict=True):
        assert line.get_ydata()[-1] == pytest.approx(share)


def test_survival_leaves_out_the_target():
    _, given = plt.subplots()
    ax = jm.plots.plot_survival(PROCESS, "dead", ax=given)
    assert ax is given and len(ax.lines) == 2 and ax.get_ylabel() == "probability of not yet dead"
    assert all(line.get_ydata()[0] == 1.0 and line.get_ydata()[-1] < 0.5 for line in ax.lines)
    one = jm.plots.plot_survival(MODEL, "dead", [0, 1], start=PROCESS.initial_probs)
    assert len(one.lines) == 1
    never = jm.plots.plot_survival(jm.Process.from_generator({"a": {"b": 1.0}}), "a")
    assert never.get_xlim()[1] > 1


@pytest.mark.parametrize("M", [1, 2, 3, 9])
def test_the_diagram_has_a_circle_for_every_state_and_an_arrow_for_every_move(M):
    process = jm.Process(np.ones(M) * (M > 1), (1 - np.eye(M)) / max(M - 1, 1))
    ax = jm.plots.plot_transitions(process, time_unit="years")
    kinds = [type(patch).__name__ for patch in ax.patches]
    assert kinds.count("Circle") == M and kinds.count("FancyArrowPatch") == M * (M - 1)
    numbers = M * (M - 1) if M * (M - 1) <= 20 else 0
    assert len(ax.texts) == M + numbers
    rare = jm.Process.from_generator([[0, 1, 1e-4], [1, 0, 0], [1, 0, 0]])
    arrows = [p for p in jm.plots.plot_transitions(rare).patches if type(p).__name__ == "FancyArrowPatch"]
    assert len(arrows) == 3


def test_dwells_are_kaplan_and_meiers():
    ax = jm.plots.plot_dwells(MODEL, TRUTH, time_unit="years")
    assert ax.get_yscale() == "log" and len(ax.lines) == 4  # death never ends
    steps = ax.lines[0]
    own = TRUTH.states == "well"
    lengths, ended = TRUTH.dwell_times()[own], ~TRUTH.running[own]
    t = np.sort(lengths[ended])[2]
    share = np.prod([1 - 1 / np.sum(lengths >= x) for x in np.sort(lengths[ended])[:3]])
    assert steps.get_ydata()[np.searchsorted(steps.get_xdata(), t)] == pytest.approx(share)
    with pytest.raises(ValueError, match="trajectories must be given for a JumpMeans"):
        jm.plots.plot_dwells(MODEL)


def test_after_dates_axes_are_in_the_unit_asked_for():
    dates = pd.Timestamp("2024-01-01") + pd.to_timedelta(200 * PANEL.times, unit="D")
    dated = jm.Panel.from_arrays(dates, PANEL.decode_values(PANEL.values[:, 0]), PANEL.ids[PANEL.sequence_index])
    model = jm.JumpMeans(emission="direct", structure=jm.Structure(absorbing=["dead"])).fit(dated)
    year = 365.25

    def drawn(plot, *what, **how):
        lines = plot(model, *what, **how).lines[0]
        return np.array(lines.get_xdata(), dtype=float), np.array(lines.get_ydata(), dtype=float)

    draw = jm.plots
    for plot, what in ((draw.plot_prevalence, [dated]), (draw.plot_dwells, []), (draw.plot_survival, ["dead"])):
        (days, shares), (years, same) = drawn(plot, *what), drawn(plot, *what, time_unit="years")
        np.testing.assert_allclose(years, days / year)
        np.testing.assert_allclose(same, shares)
    asked = jm.plots.plot_survival(model, "dead", [0, 1], start="well", time_unit="years")
    assert asked.lines[0].get_ydata()[1] == pytest.approx(model.survival("dead", [year])[year, "well"])
    for plot in (jm.plots.plot_transitions, jm.plots.plot_states):
        dwell = f"{model.sojourn('years')['ill', 'mean']:.3g}"
        ax = plot(model, time_unit="years")
        axes = [ax, *ax.child_axes]
        assert any(dwell in text.get_text() for a in axes for text in (*a.texts, *a.get_yticklabels()))
