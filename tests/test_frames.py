"""A frame comes back in the kind that went in."""

import subprocess
import sys

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jumpmeans as jm
from jumpmeans.comparators import MLTrajectory
from jumpmeans.data.frames import make_frame

MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
TYPES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}
VISITS = {"id": ["p", "p", "q", "p"], "time": [0.0, 1.0, 0.0, 4.5], "value": ["a", None, "b", "b"]}


@pytest.fixture(params=MAKERS)
def kind(request):
    return request.param


def items(frame):
    """Columns of a frame as lists, None where missing."""
    frame = nw.from_native(frame)
    missing = {name: frame[name].is_null().to_list() for name in frame.columns}
    return {
        name: [None if gone else x for x, gone in zip(frame[name].to_list(), missing[name], strict=True)]
        for name in frame.columns
    }


def test_panel_to_frame(kind):
    frame = MAKERS[kind](VISITS | {"temp": [36.5, None, 37.0, None], "flag": [True, False, True, True]})
    panel = jm.Panel.from_frame(frame, value=["value", "temp", "flag"])
    assert panel.frame_backend == kind
    back = panel.to_frame()
    assert isinstance(back, TYPES[kind])
    assert items(back) == items(frame)
    for derived in (panel.select([0]), panel.head(1), panel.with_values(panel.values)):
        assert isinstance(derived.to_frame(), TYPES[kind])


def test_a_missing_number_is_missing_in_every_kind(kind):
    frame = MAKERS[kind]({"id": [1, 1], "time": [0.0, 1.0], "value": np.array([np.nan, np.nan])})
    back = nw.from_native(jm.Panel.from_frame(frame).to_frame())
    assert back["value"].is_null().all()
    assert back["value"].dtype == nw.Float64


def test_trajectories_to_frame(kind):
    panel = jm.Panel.from_frame(MAKERS[kind](VISITS))
    model = jm.JumpMeans(emission="direct").fit(panel)
    for paths in (
        model.trajectories_,
        model.decode(MAKERS[kind](VISITS)),
        MLTrajectory(model.process_).fit(panel).trajectories_,
    ):
        table = paths.to_frame()
        assert isinstance(table, TYPES[kind])
        assert nw.from_native(table).columns == ["id", "state", "start", "end", "running"]
        assert items(table)["state"] == paths.states.tolist()
        assert items(table)["running"] == paths.running.tolist()


@pytest.mark.parametrize("zone", [None, "Europe/Paris"])
def test_dates(kind, zone):
    days = np.array(["2024-01-01T00:00", "NaT", "2024-07-01T12:00"], "M8[ns]")
    frame = nw.from_native(make_frame({"day": days, "word": np.array(["a", None, "b"], object)}, kind, zone))
    assert frame["day"].dtype == nw.Datetime("ns", zone)
    assert frame["day"].is_null().to_list() == [False, True, False]
    assert (frame["day"][2].timestamp() if zone else frame["day"].to_numpy()[2]) == (
        1719835200.0 if zone else np.datetime64("2024-07-01T12:00")
    )
    assert items(frame.to_native())["word"] == ["a", None, "b"]


def test_zoned_windows_and_trajectories(kind):
    days = np.array(["2024-01-01", "2024-01-03", "2024-01-09"], "M8[ns]")
    frame = make_frame(
        {"id": np.array(["a"] * 3, object), "time": days, "value": np.arange(3) > 0}, kind, "Europe/Paris"
    )
    panel = jm.Panel.from_frame(frame)
    assert items(panel.to_frame()) == items(frame)
    wide, _ = panel.insert_times(["a"], [20.0])
    assert isinstance(wide.select([0]).to_frame(), TYPES[kind])
    out = nw.from_native(jm.JumpMeans(emission="direct").fit(panel).trajectories_.to_frame())
    assert out["start"].dtype.time_zone == out["end"].dtype.time_zone == "Europe/Paris"
    assert out["start"][0] == nw.from_native(frame)["time"][0]


def test_panels_of_arrays_come_as_the_first_kind_installed():
    panel = jm.Panel.from_arrays([0.0], [1], [1])
    assert panel.frame_backend is None
    assert isinstance(panel.to_frame(), pd.DataFrame)


def test_kinds_that_are_not_installed(monkeypatch):
    panel = jm.Panel.from_arrays([0.0], [1], [1])
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(panel.to_frame(), pl.DataFrame)
    monkeypatch.setitem(sys.modules, "polars", None)
    assert isinstance(panel.to_frame(), pa.Table)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(jm.MissingExtraError, match=r"needs pandas, polars or pyarrow; .*'jumpmeans\[frames\]'"):
        panel.to_frame()
    with pytest.raises(jm.MissingExtraError, match=r"needs polars; install it"):
        make_frame({"x": [1]}, "polars")


def test_names_that_meet_in_a_frame():
    for columns in (["time"], ["x", "x"]):
        panel = jm.Panel.from_arrays([0.0], np.ones((1, len(columns))), [1], columns=columns)
        with pytest.raises(jm.PanelError, match=r"another column '(time|x)'; rename that column of values"):
            panel.to_frame()


WITHOUT = """
import sys
for name in ("pandas", "polars", "pyarrow"):
    sys.modules[name] = None
import jumpmeans as jm
for load in (jm.datasets.load_edss, jm.datasets.load_icu_pressure, jm.datasets.load_sleep,
             jm.datasets.load_credit_ratings):
    print(load())
print(jm.Panel.from_arrays(["2024-03-01", "2024-03-02"], ["a", None], [1, 1]))
print(jm.JumpMeans(emission="direct").fit(jm.datasets.load_edss()).states_)
"""


def test_data_sets_load_with_no_frames_installed():
    # caught: a reader that imports pandas
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Panel(") == 5
    assert "[1 2 3]" in done.stdout
