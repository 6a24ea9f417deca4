"""`jumpmeans watch`: after every line what the library says of the rows so far; a bad line ends nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import jumpmeans as jm
from jumpmeans.cli import app

GAUSSIAN = jm.Process([0.3, 0.4], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 3], sds=1))
LABELS = jm.Process([0.3, 0.4, 0.2], (np.ones((3, 3)) - np.eye(3)) / 2, states=[1, 2, 3])


@pytest.fixture
def watch(tmp_path):
    def feed(process, lines, *options):
        model = process if hasattr(process, "save") else jm.JumpMeans.from_process(process)
        model.save(tmp_path / "m.jm")
        done = CliRunner().invoke(
            app, ["watch", str(tmp_path / "m.jm"), *options], input="".join(f"{x}\n" for x in lines)
        )
        return done.exit_code, [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    return feed


def rows_of(panel):
    """Rows of all sequences in the order of their times, as they would come."""
    order = np.argsort(panel.times, kind="stable")
    values = panel.decode_values(panel.values[:, 0], 0)
    return [(f"bed {panel.sequence_index[i]}", float(panel.times[i]), values[i].item()) for i in order.tolist()]


@pytest.mark.parametrize("process", [GAUSSIAN, LABELS], ids=["measured", "labels"])
@pytest.mark.parametrize("as_json", [False, True])
def test_every_line_tells_the_end_of_the_offline_decode(watch, process, as_json):
    """The law of the online decoder, through the pipe; sequences come mixed, as monitors send them."""
    rows = rows_of(jm.simulate(process, 5, 9, random_state=2)[0])
    plain = ["id,time,value", *(f"{i},{t!r},{x!r}" for i, t, x in rows)]
    lines = [json.dumps({"id": i, "time": t, "value": x}) for i, t, x in rows] if as_json else plain
    code, told, err = watch(process, lines, "--all")
    assert code == 0 and err == "" and len(told) == len(rows)
    model = jm.JumpMeans.from_process(process)
    for n, alert in enumerate(told, 1):
        own = [row for row in rows[:n] if row[0] == alert["id"]]
        panel = jm.Panel.from_arrays([t for _, t, _ in own], [x for *_, x in own], [0] * len(own))
        assert alert["state"] == model.decode(panel, "online").states[-1]
        assert alert["time"] == own[-1][1]


def test_a_line_for_each_change(watch):
    lines = ["id,time,value", "a,0,0.1", "a,1,0.2", "a,2,3.4", "b,2,3.0", "a,3,3.1", "b,3,3.2", "a,4,-0.5", "a,5,-0.1"]
    code, told, err = watch(GAUSSIAN, lines)
    assert code == 0 and err == ""
    assert [(x["id"], x["before"], x["state"]) for x in told][:2] == [("a", None, 0), ("a", 0, 1)]
    assert all(x["before"] != x["state"] for x in told)
    assert {x["id"] for x in told} == {"a", "b"} and all(x["since"] <= x["time"] for x in told)
    calm = watch(GAUSSIAN, lines, "--least-margin", "1000")[1]
    assert [x["before"] for x in calm] == [None, None]


def test_a_bad_line_is_told_and_left_out(watch):
    """Caught: a stream that ends at the first line that somebody mistyped, or one that is taken in part."""
    lines = [
        "id,time,value", "a,0,0.1", "", "a,1", "a,x,1", "a,2,high", '"a,3,1', "{not json", '{"id": "a"}', "a,0,9",
        ",4,1", '{"id": 1.5, "time": 4, "value": 1}', "a,5,", "a,6,3.2", "a,7,3.3",
    ]  # fmt: skip
    code, told, err = watch(GAUSSIAN, lines, "--all")
    assert code == 0 and [x["time"] for x in told] == [0, 5, 6, 7]
    said = err.splitlines()
    for number, match in (
        (4, "must have 3 fields"), (5, "a time must be a number, got 'x'"), (6, "a value must be a number, got 'high'"),
        (7, ""), (8, ""), (9, "--time"), (10, "must increase"), (11, "an id must be text"), (12, "an id must be text"),
    ):  # fmt: skip
        found = [line for line in said if line.startswith(f"line {number}: ")]
        assert len(found) == 1 and match in found[0] and found[0].endswith("Left out."), (number, said)
    assert len(said) == 9
    good = [lines[0], lines[1], *lines[-3:]]
    assert watch(GAUSSIAN, good, "--all")[1] == told


def test_labels_dates_and_names_of_columns(watch, tmp_path):
    days = np.datetime64("2024-03-01", "D") + np.tile([0, 3, 9, 20], 6)
    values = np.array(["=well", "ill", "ill", "=well"] * 6, dtype=object)
    panel = jm.Panel.from_arrays(days, values, ids=np.repeat(np.arange(6), 4))
    model = jm.JumpMeans(emission="direct", refine=2).fit(panel)
    lines = ["patient,day,stage", "7,2024-03-01,'=well", "7,2024-03-05,ill", "7,2024-03-09,dead", "7,9 March,ill"]
    code, told, err = watch(model, lines)
    assert code == 0 and [(x["state"], x["before"]) for x in told] == [("=well", None), ("ill", "=well")]
    assert told[1]["since"].startswith("2024-03-0") and told[0]["id"] == "7"
    assert "a value must be one of ['=well', 'ill'], got 'dead'" in err and "line 5: " in err
    code, told, err = watch(GAUSSIAN, ["who,when,bp", "x,0,3"], "--id", "who", "--time", "when", "--value", "bp")
    assert code == 0 and told[0]["state"] == 1
    assert watch(GAUSSIAN, [])[:2] == (0, [])


def test_what_a_line_lacks_is_told_by_the_names_of_the_fit(watch, tmp_path):
    """And advice is of the command line. Caught: an option asked for, in the middle of a stream."""
    (tmp_path / "run.json").write_text('{"columns": {"id": "patient", "time": "day", "value": "stage"}}')
    ill = jm.Process([0.1, 0.0], [[0, 1], [0, 0]], states=["ill", "dead"])
    lines = [
        '{"patient": "a", "day": 0, "stage": "ill"}', '{"patient": "a", "day": 1}',
        '{"patient": "a", "day": 2, "stage": "dead"}', '{"patient": "a", "day": 3, "stage": "ill"}',
    ]  # fmt: skip
    code, told, err = watch(ill, lines)
    assert code == 0 and [x["state"] for x in told] == ["ill", "dead"]
    first, second = err.splitlines()
    assert first.startswith("line 2: a line must have 'stage', as the table of the fit had, got ['patient', 'day']")
    assert second.startswith("line 4: the allowed moves must be able to explain every row") and "--allowed" in second
    assert "Structure" not in err


@pytest.mark.parametrize("said", ["options", "run.json"])
def test_kinds_and_sets_are_those_of_the_fit(watch, tmp_path, said):
    """Caught: a death that was said to be half a gap ago, and a row that says "alive" refused."""
    care = jm.Process.from_generator({1: {2: 0.3, 3: 0.1}, 2: {1: 0.1, 3: 0.4}})
    named = ["--id", "id", "--time", "day", "--value", "stage", "--kind", "how", "--set", "alive=1,2"]
    options = named if said == "options" else []
    columns = {"id": "id", "time": "day", "value": "stage", "kind": "how", "sets": {"alive": ["1", "2"]}}
    if not options:
        (tmp_path / "run.json").write_text(json.dumps({"columns": columns}))
    lines = ["id,day,stage,how", "a,0,1,", "a,1,2,snapshot", "a,2,alive,", "a,2,3,entry", "b,0,1,entered", "b,0,2,"]
    code, told, err = watch(care, lines, "--all", *options)
    assert code == 0 and [x["state"] for x in told] == [1, 2, 2, 3, 2]
    assert told[3]["since"] == 2.0 and err.startswith("line 6: kinds must be 'snapshot'") and len(err.splitlines()) == 1
    as_json = [
        json.dumps(dict(zip(["id", "day", "stage", "how"], line.split(","), strict=True))) for line in lines[1:5]
    ]
    left = [json.dumps({"id": "c", "day": 0, "stage": 2}), "not json"]
    again = watch(care, as_json + left, "--all", *options)
    assert again[1][:4] == told[:4] and again[1][4]["id"] == "c"
    assert "line 6: a line must be a JSON object, as those before it, got 'not json'" in again[2]


def test_lines_come_at_once_and_a_broken_pipe_ends_quietly(tmp_path):
    """A real pipe: the answer is there before the next line is sent, and the end of the reader is no error."""
    jm.JumpMeans.from_process(GAUSSIAN).save(tmp_path / "m.jm")
    env = {**os.environ, "PYTHONPATH": str(Path(jm.__file__).parents[1])}
    env.pop("PYTHONUNBUFFERED", None)
    with subprocess.Popen(
        [sys.executable, "-m", "jumpmeans", "watch", str(tmp_path / "m.jm"), "--all"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1, env=env,
    ) as process:  # fmt: skip
        process.stdin.write("id,time,value\n")
        for time, value in enumerate([0.1, 3.5]):
            process.stdin.write(f"a,{time},{value}\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["time"] == time
        process.stdout.close()
        try:
            for time in range(2, 50):
                process.stdin.write(f"a,{time},0.0\n")
                process.stdin.flush()
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert process.stderr.read() == ""
    assert process.returncode == 0
