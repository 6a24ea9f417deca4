"""Trajectories answer: state at a time, dwell times, time in state, jumps, frame."""

import datetime

import numpy as np
import pandas as pd
import pytest

import jumpmeans as jm
from jumpmeans import Trajectories


@pytest.fixture
def paths():
    """Sequence "p": mild 0-2, severe 2-5, mild 5-6; sequence "q": severe 1-4, dead at the very end, 4."""
    return Trajectories(
        codes=np.array([0, 1, 0, 1, 2], np.int32),
        start_times=np.array([0.0, 2.0, 5.0, 1.0, 4.0]),
        offsets=np.array([0, 3, 5]),
        end_times=np.array([6.0, 4.0]),
        ids=np.array(["p", "q"], dtype=object),
        labels=np.array(["mild", "severe", "dead"], dtype=object),
    )


def test_state_at_times(paths):
    times = [0.0, 1.999, 2.0, 4.9, 5.0, 6.0]
    assert paths.at(times, ["p"] * 6).tolist() == ["mild", "mild", "severe", "severe", "mild", "mild"]
    assert paths.at([1.0, 3.999, 4.0], ["q"] * 3).tolist() == ["severe", "severe", "dead"]


def test_a_jump_belongs_to_the_new_state(paths):
    """Right-continuous: at the jump the new state, one ulp before it the old one."""
    assert paths.at([2.0, np.nextafter(2.0, 0.0)], ["p", "p"]).tolist() == ["severe", "mild"]


def test_times_in_any_order(paths, rng):
    times = np.concatenate([rng.uniform(0, 6, 50), rng.uniform(1, 4, 50)])
    ids = np.repeat(["p", "q"], 50)
    order = rng.permutation(100)
    whole = paths.at(times, ids)
    assert paths.at(times[order], ids[order]).tolist() == whole[order].tolist()
    one = [paths.at([t], [i])[0] for t, i in zip(times, ids, strict=True)]
    assert whole.tolist() == one


def test_all_sequences_at_all_times(paths):
    got = paths.at([1.0, 2.0, 4.0])
    assert got.tolist() == [["mild", "severe", "severe"], ["severe", "severe", "dead"]]
    alone = Trajectories(
        np.array([1, 0], np.int32), np.array([0.0, 1.0]), np.array([0, 2]), np.array([3.0]), np.array([9]),
        np.array([10, 20]),
    )  # fmt: skip
    assert alone.at([0.5, 1.0]).tolist() == [20, 10]
    assert alone.at(2.5).tolist() == [10]
    assert alone.at([0.5], [9]).tolist() == [20]


def test_outside_the_window(paths):
    with pytest.raises(ValueError, match=r"window \[1, 4\] of sequence 'q', got 0.5; give outside='hold'"):
        paths.at([2.0, 0.5], ["q", "q"])
    with pytest.raises(ValueError, match=r"window \[0, 6\] of sequence 'p', got 6\.1"):
        paths.at([6.1], ["p"])
    for outside in ("error", "hold"):  # caught: a NaN that is held shows the last state
        with pytest.raises(ValueError, match=r"of sequence 'p', got nan; drop it"):
            paths.at([np.nan], ["p"], outside=outside)
    assert paths.at([0.5, 99.0, -1.0], ["q", "q", "p"], outside="hold").tolist() == ["severe", "dead", "mild"]
    with pytest.raises(ValueError, match=r"outside must be one of .* got 'nearest'"):
        paths.at([1.0], ["p"], outside="nearest")


def test_wrong_ids(paths):
    with pytest.raises(jm.PanelError, match=r"there is no sequence 'z'; there are \['p', 'q'\]"):
        paths.at([1.0, 2.0], ["p", "z"])
    with pytest.raises(ValueError, match=r"one entry for each of the 2 times, got 1"):
        paths.at([1.0, 2.0], ["p"])

    with pytest.raises(jm.PanelError, match=r"ids must be one-dimensional, one for each time, got shape \(1, 2\)"):
        paths.at([1.0, 2.0], [["p", "q"]])
    with pytest.raises(jm.PanelError, match=r"times must be one-dimensional.*got shape \(1, 2\)"):
        paths.at([[1.0, 2.0]], ["p", "q"])
    with pytest.raises(jm.PanelError, match=r"there is no sequence \['p'\]"):
        paths.at([1.0], np.array([["p"], None], dtype=object)[:1])


def test_of_copies_the_first_is_read():
    """As `Panel.insert_times` does; caught: a dictionary of ids that keeps the last."""
    copies = Trajectories(
        np.array([0, 1], np.int32), np.array([0.0, 0.0]), np.array([0, 1, 2]), np.array([1.0, 1.0]),
        np.array(["a", "a"], dtype=object), np.array(["first", "last"]),
    )  # fmt: skip
    assert copies.at([0.5], ["a"]).tolist() == ["first"]


def test_dwell_times(paths):
    assert paths.dwell_times().tolist() == [2.0, 3.0, 1.0, 3.0, 0.0]
    assert paths.running.tolist() == [False, False, True, False, True]
    assert paths.states.tolist() == ["mild", "severe", "mild", "severe", "dead"]
    assert paths.n_jumps == 3
    assert len(paths) == 2
    assert repr(paths) == "Trajectories(2 sequences, 3 jumps between 3 states)"


def test_time_in_state(paths):
    assert paths.time_in_state().tolist() == [[3.0, 3.0, 0.0], [0.0, 3.0, 0.0]]


def test_jump_counts(paths):
    counts = paths.jump_counts()
    assert counts.tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0]]
    assert counts.dtype.kind == "i"


def test_to_frame(paths):
    frame = paths.to_frame()
    expected = pd.DataFrame(
        {
            "id": ["p", "p", "p", "q", "q"],
            "state": ["mild", "severe", "mild", "severe", "dead"],
            "start": [0.0, 2.0, 5.0, 1.0, 4.0],
            "end": [2.0, 5.0, 6.0, 4.0, 4.0],
            "running": [False, False, True, False, True],
        }
    )
    assert frame.columns.tolist() == expected.columns.tolist()
    for name in expected:
        assert frame[name].tolist() == expected[name].tolist()


def test_sums_agree(rng):
    """On simulated paths: times in state fill the windows, jumps and dwells match the frame."""
    process = jm.Process(rng.gamma(1.0, 1.0, 4) + 0.1, (np.ones((4, 4)) - np.eye(4)) / 3)
    panel, truth = jm.simulate(process, n_sequences=50, n_observations=10, random_state=3)
    np.testing.assert_allclose(truth.time_in_state().sum(axis=1), truth.end_times, rtol=1e-12)
    assert truth.jump_counts().sum() == truth.n_jumps
    assert np.all(np.diag(truth.jump_counts()) == 0)
    frame = truth.to_frame()
    np.testing.assert_allclose(frame.end - frame.start, truth.dwell_times(), rtol=1e-12)
    assert frame.running.sum() == 50
    ids = panel.ids[panel.sequence_index]
    assert truth.at(panel.times, ids).tolist() == panel.values[:, 0].astype(int).tolist()


# ---------------------------------------------------------------------- dates


DAYS = pd.to_datetime(["2024-01-01 00:00", "2024-01-03 00:00", "2024-01-04 12:00", "2024-01-09 00:00"])


def dated(zone=None):
    days = DAYS.tz_localize(zone) if zone else DAYS
    frame = pd.DataFrame({"id": ["a"] * 4, "time": days, "value": ["u", "u", "v", "v"]})
    return frame, jm.JumpMeans(emission="direct").fit(jm.Panel.from_frame(frame)).trajectories_


def test_dates_in():
    frame, paths = dated()
    wanted = ["u", "u", "v", "v"]
    assert paths.at(frame.time, ["a"] * 4).tolist() == wanted
    assert paths.at(frame.time.to_numpy(), ["a"] * 4).tolist() == wanted
    assert paths.at(["2024-01-01", "2024-01-03", "2024-01-04T12:00", "2024-01-09"]).tolist() == wanted
    assert paths.at([datetime.datetime(2024, 1, 2), datetime.datetime(2024, 1, 8)]).tolist() == ["u", "v"]


@pytest.mark.parametrize("time", ["2024-01-08", datetime.datetime(2024, 1, 8), np.datetime64("2024-01-08")])
def test_one_date(time):
    _, paths = dated()
    assert paths.at(time).tolist() == ["v"]


def test_dates_out():
    _, paths = dated()
    out = paths.to_frame()
    assert out.start.dt.tz is None
    assert out.start[0] == DAYS[0] and out.end[1] == DAYS[3]
    assert DAYS[1] < out.start[1] <= DAYS[2]
    assert out.end[0] == out.start[1]


def test_zoned_dates_come_back_in_their_zone():
    frame, paths = dated("Europe/Paris")
    assert paths.at(frame.time, ["a"] * 4).tolist() == ["u", "u", "v", "v"]
    out = paths.to_frame()
    assert str(out.start.dt.tz) == "Europe/Paris"
    assert out.start[0] == frame.time[0] and out.end[1] == frame.time[3]


def test_dates_of_the_wrong_kind():
    _, paths = dated()
    with pytest.raises(jm.PanelError, match=r"without a time zone"):
        paths.at(pd.DatetimeIndex(["2024-01-02"], tz="UTC"))
    with pytest.raises(ValueError, match=r"window .* of sequence 'a'"):
        paths.at(["2025-01-01"])
