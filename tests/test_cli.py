"""The command line, as a person uses it: what it guesses, writes, says and refuses, and how it ends."""

import csv
import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import jumpmeans as jm
from jumpmeans.cli import app, legible
from jumpmeans.cli.columns import find_columns
from jumpmeans.cli.files import write_csv
from jumpmeans.cli.held_out import has_failed
from jumpmeans.cli.models import read_moves
from jumpmeans.cli.say import by_options, laid
from jumpmeans.data.text import shielded, unshielded
from jumpmeans.evaluation.compare import Comparison
from jumpmeans.report.page import number

DATA = Path(jm.datasets.__file__).parent / "data"
EDSS = "ms_edss_3yr_windows.csv"
NOTHING = {"id": None, "time": None, "value": (), "group": None, "weight": None, "kind": None}
HOSTILE = ["=cmd()", "<script>alert(1)</script>", "x" * 300, "שלום עולם", "+1", "@a", "-b", "'=c", 'a,b\n"c"', "[red]x"]


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a command in an empty folder: (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments, given=None):
        done = CliRunner().invoke(app, [str(x) for x in arguments], input=given)
        return done.exit_code, done.stdout, done.stderr

    return invoke


def visits(states=("mild", "severe"), n=8, rows=6, times=None, seed=0):
    """A table of labels: header patient, day, stage."""
    rng = np.random.default_rng(seed)
    lines = [["patient", "day", "stage"]]
    for i in range(n):
        state = 0
        for k in range(rows):
            state = int(rng.random() < (0.2 if state == 0 else 0.8))
            lines.append([f"p{i}", k if times is None else times(k), states[state]])
    out = io.StringIO()
    csv.writer(out).writerows(lines)
    return out.getvalue()


# ------------------------------------------------------------------------------------------------------ fit


def by_treatment(n=60, rows=8):
    """A table of labels with two covariates: who is treated recovers sooner; header id, time, value, arm, age."""
    process = jm.Process([0.4, 0.4], [[0, 1], [1, 0]], states=["well", "ill"]).with_effects(
        {"arm[new drug]": {"ill": 1.5}}, at={"arm": "=none"}
    )
    arms = np.array(["=none", "new drug"])[np.arange(n) % 2]
    panel, _ = jm.simulate(process, n, rows, covariates={"arm": arms}, random_state=0)
    frame = panel.to_frame()
    return frame.assign(age=40 + frame["id"] % 30 + frame["time"])


def test_rates_depend_on_the_covariates_that_are_named(run, tmp_path):
    """What --covariate names has effects, in a file, on the screen, in JSON and in the report; --at says for whom."""
    by_treatment().to_csv(tmp_path / "v.csv", index=False)
    code, out, err = run("fit", "v.csv", "--covariate", "arm", "--refits", "5", "--json", "-q")
    assert code == 0, err
    rows = list(csv.DictReader(io.StringIO((tmp_path / "v-fit" / "hazard_ratios.csv").read_text())))
    said = json.loads(out)
    assert "hazard_ratios.csv" in said["files"]
    assert [row["hazard_ratio"] for row in rows] == [str(x) for x in said["hazard_ratios"]["hazard_ratio"]]
    model = jm.load(tmp_path / "v-fit" / "model.jm")
    found = {(row["covariate"], row["from"]): row for row in rows}
    own = found["arm[new drug]", "ill"]
    coefficient = model.coefficients_.set_index("from").loc["ill", "coefficient"]
    assert float(own["hazard_ratio"]) == np.exp(coefficient) > 1.5
    assert 1.0 < float(own["low"]) <= float(own["hazard_ratio"]) * 1.5 and float(own["high"]) > float(own["low"])
    page = (tmp_path / "v-fit" / "report.html").read_text()
    assert "Effects of covariates" in page and "90 % interval" in page
    first = page.split('id="effects"')[1].split("</section>")[0]
    assert run("report", "v-fit", "--force", "-q")[0] == 0
    again = (tmp_path / "v-fit" / "report.html").read_text()
    assert again.split('id="effects"')[1].split("</section>")[0] == first

    untreated, treated = (
        run("simulate", "v-fit", "-n", "300", "--seed", "1", "-q", "--at", f"arm={arm}")[1]
        for arm in ("=none", "new drug")
    )
    assert untreated.count(",ill") > 1.3 * treated.count(",ill")
    assert run("simulate", "v-fit", "-n", "1", "--at", "arm=old", "-q")[2].startswith("error: covariate 'arm' must be")
    assert "--at must name covariates" in run("simulate", "v-fit", "-n", "1", "--at", "am=x", "-q")[2]
    code, _, err = run("watch", "v-fit", given="id,time,value\n1,0,well\n")
    assert code == 2 and "give --at COVARIATE=VALUE" in err
    assert run("watch", "v-fit", "--at", "arm=new drug", given="id,time,value\n1,0,well\n")[0] == 0


def test_breaks_and_shared_effects(run, tmp_path):
    by_treatment().to_csv(tmp_path / "v.csv", index=False)
    quick = ("--no-report", "--force", "-q", "--option", "max_iter=5")
    more = ("--covariate", "age", "--breaks", "2,5", "--breaks", "age=50", *quick)
    assert run("fit", "v.csv", "--covariate", "arm", "--effects", "shared", *more)[0] == 0
    effects = jm.load(tmp_path / "v-fit" / "model.jm").process_.effects
    assert effects.names == ["arm[new drug]", "time[2 to 5]", "time[from 5]", "age[from 50]"]
    assert effects.n_free == 4
    for arguments, said in (
        (("--effects", "shared"), "--effects must come with --covariate"),
        (("--breaks", "x"), "breaks must be numbers"),
        (("--covariate", "arm", "--value", "age", "--emission", "gaussian"), "--states must be a number"),
    ):
        code, _, err = run("fit", "v.csv", *arguments, *quick)
        assert code in (2, 3) and said in err


SHIPPED = {
    "ms_edss_3yr_windows.csv": ["--value", "state3", "--group", "patient"],
    "icu_bp_p12_69x32.csv": ["--value", "sys", "--states", "3"],
    "credit_ratings.csv.gz": [],
    "sleep_sri_psg_device.csv.gz": ["--value", "obs", "--option", "max_iter=20"],
}


@pytest.mark.parametrize("name", SHIPPED)
def test_fit_on_each_shipped_data_set(run, name):
    code, out, err = run("fit", DATA / name, *SHIPPED[name], "--out", "fit", "--no-report")
    assert code == 0, err
    folder = Path("fit")
    assert {path.name for path in folder.iterdir()} == {"model.jm", "trajectories.csv", "states.csv", "run.json"}
    model = jm.load(folder / "model.jm")
    assert f"{len(model.states_)} states" in out and "guessed: --id id" in err
    with (folder / "trajectories.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(model.trajectories_.codes)
    assert [float(row["start"]) for row in rows] == model.trajectories_.start_times.tolist()
    record = json.loads((folder / "run.json").read_text())
    assert record["input"]["sha256"] == hashlib.sha256((DATA / name).read_bytes()).hexdigest()
    assert record["seed"] == 0 and record["jumpmeans"] == jm.__version__ and record["seconds"]["fit"] > 0
    assert record["model"]["class"] == "JumpMeans" and record["columns"]["time"] == "time"


def test_fit_says_the_same_as_the_library(run):
    """The command is a way to the library, and no other one."""
    code, out, _ = run("fit", DATA / EDSS, "--value", "state3", "--json", "--no-report", "-q")
    assert code == 0
    told = json.loads(out)
    model = jm.JumpMeans(emission="direct").fit(jm.datasets.load_edss())
    assert told["states"]["mean_dwell"] == model.summary()["mean_dwell"].tolist()
    assert told["folder"] == "ms_edss_3yr_windows-fit"


def test_dates_strings_and_a_structure(run):
    """Dates as times, text as states, moves that may not happen."""
    Path("v.csv").write_text(visits(times=lambda k: f"2024-0{k + 1}-15"))
    few = ["--no-report", "--option", "refine=2"]
    code, out, err = run("fit", "v.csv", "--allowed", "mild-severe", "--absorbing", "severe", *few)
    # stages return in these data: the error names the first row that no allowed move explains
    assert code == 3 and "error: " in err and "mild" in err
    code, out, err = run("fit", "v.csv", "--allowed", "mild>severe,severe-mild", *few)
    assert code == 0, err
    for guess in ("--id patient", "--time day", "--value stage", "--emission direct ('stage' holds labels"):
        assert f"guessed: {guess}" in err
    first = Path("v-fit/trajectories.csv").read_text().splitlines()[1]
    assert first.startswith("p0,mild,2024-01-15T00:00:00,")
    assert "mean dwell (days)" in out
    in_days = list(csv.DictReader(Path("v-fit/states.csv").read_text().splitlines()))
    again = ["--allowed", "mild-severe,severe-mild", "--refits", "5", "--force", *few[1:]]
    code, out, err = run("fit", "v.csv", *again, "--time-unit", "weeks")
    assert code == 0 and "mean dwell (weeks)" in out, err
    assert "weeks" in Path("v-fit/report.html").read_text()
    in_weeks = list(csv.DictReader(Path("v-fit/states.csv").read_text().splitlines()))
    for day, week in zip(in_days, in_weeks, strict=True):
        assert float(week["mean_dwell_weeks"]) == pytest.approx(float(day["mean_dwell_days"]) / 7)
        assert float(week["dwell_low"]) <= float(week["mean_dwell_weeks"]) <= float(week["dwell_high"])
    assert run("fit", "v.csv", *few, "--time-unit", "fortnights", "--force")[0] == 2
    code, out, _ = run("forecast", "v-fit", "v.csv", "--at", "2024-08-01")
    assert (
        code == 0 and out.splitlines()[0] == "id,time,horizon,stage,P(mild),P(severe)" and "2024-08-01T00:00:00" in out
    )


def test_sets_of_labels_that_are_numbers(run):
    """As msm has them: 99 stands for 1 or 2. Caught: states that are text beside a column of numbers."""
    rows = [
        f"{who},{day},{99 if day == 4 and who % 2 else 1 + (who + day) // 3 % 2}"
        for who in range(20)
        for day in range(5)
    ]
    Path("v.csv").write_text("\n".join(["ptnum,years,state", *rows]))
    code, out, err = run("fit", "v.csv", "--set", "99=1,2", "--no-report")
    assert code == 0 and "2 states" in out, err
    panel = jm.read_panel("v.csv", id="ptnum", time="years", value="state", sets={99: [1, 2]})
    model = jm.JumpMeans(emission="direct").fit(panel)
    np.testing.assert_array_equal(jm.load("v-fit/model.jm").process_.rate_matrix, model.process_.rate_matrix)
    code, out, err = run("decode", "v-fit", "v.csv")  # the sets are those of the fit
    assert code == 0 and len(out.splitlines()) > 20, err
    code, out, err = run("watch", "v-fit", "--all", given="ptnum,years,state\n1,0,2\n1,1,99\n")
    assert code == 0 and [json.loads(line)["state"] for line in out.splitlines()] == [2, 2], err


def test_how_rows_were_seen(run):
    """Deaths to the day, people seen alive at last, follow-up after a visit: the library's panel, and its model."""
    rows = ["id,time,value,kind,until"]
    for who in range(30):
        states = ["well", "well", "ill", "dead" if who % 2 else "alive"]
        for when, state in enumerate(states):
            rows.append(
                f"{who},{when + 0.1 * who:.1f},{state},{'entry' if state == 'dead' else ''},{3 + 0.1 * who:.1f}"
            )
    Path("v.csv").write_text("\n".join(rows))
    more = ["--end", "until", "--set", "alive=well,ill", "--no-report", "--option", "refine=2"]
    code, _, err = run("fit", "v.csv", *more)
    assert code == 0 and "guessed: --kind kind" in err and "guessed: --absorbing dead (its rows" in err, err
    panel = jm.read_panel("v.csv", kind="kind", end="until", sets={"alive": ["well", "ill"]})
    model = jm.JumpMeans(emission="direct", structure=jm.Structure(absorbing=["dead"]), refine=2).fit(panel)
    np.testing.assert_array_equal(jm.load("v-fit/model.jm").process_.rate_matrix, model.process_.rate_matrix)
    # a fit remembers its columns
    code, out, err = run("decode", "v-fit", "v.csv")
    assert code == 0 and len(out.splitlines()) == 1 + len(model.trajectories_.codes), err
    # a column of that name with other words is something else
    Path("v.csv").write_text("\n".join(row.replace("entry", "car") for row in rows[:1] + rows[5:9]))
    assert "--kind" not in run("fit", "v.csv", "--no-report", "--value", "value", "--force")[2]
    code, _, err = run("fit", "v.csv", "--set", "alive", "--force")
    assert code == 2 and "--set must be LABEL=A,B" in err


@pytest.mark.parametrize("names", [["well", "ill", "dead"], ["1", "2", "3"]])
def test_deaths_are_known_by_their_rows(run, names):
    """Caught: states that are numbers told by their places among the labels."""
    rows = ["id,time,value,kind"]
    rows += [
        f"{who},{t},{names[s]},{'entry' if s == 2 else ''}" for who in range(30) for t, s in enumerate([0, 1, 0, 2])
    ]
    Path("v.csv").write_text("\n".join(rows))
    code, _, err = run("fit", "v.csv", "--no-report", "--option", "refine=2")
    assert code == 0 and f"guessed: --absorbing {names[2]} (its rows are entries" in err, err


def test_deaths_are_known_by_their_name(run):
    def fit(*rows):
        Path("v.csv").write_text("\n".join(["id,time,value", *rows, *(row.replace("a,", "b,") for row in rows)]))
        code, out, err = run("fit", "v.csv", "--no-report", "--option", "refine=2", "--force")
        assert code == 0, err
        return out, err

    out, err = fit("a,0,well", "a,1,ill", "a,2,well", "a,3,Dead")
    assert "guessed: --absorbing Dead (by its name, and no row follows it)" in err and "for ever" in out
    # a row follows it: this is something else
    out, err = fit("a,0,well", "a,1,ill", "a,2,dead", "a,3,well")
    assert "--absorbing" not in err and "for ever" not in out


def test_advice_is_given_in_options(run):
    """Caught: a warning of the library passed on in Python."""
    Path("v.csv").write_text(
        "id,time,value\n" + "".join(f"{i},{t},{s}\n" for i in range(9) for t, s in enumerate("aabab~"))
    )
    code, _, err = run("fit", "v.csv", "--no-report", "--option", "refine=2")
    assert code == 0 and "if it cannot be left, give --absorbing '~'," in err and "Structure" not in err
    assert json.loads(Path("v-fit/run.json").read_text())["warnings"][0] in err
    told = by_options(
        "say structure=Structure(absorbing=['a b', 'c']), or (Structure(allowed=...)); refine='converged'"
    )
    assert told == "give --absorbing 'a b' --absorbing c, or (--allowed A-B,...); --option refine=converged"
    assert by_options("Structure(absorbing=[<odd>])") == "give --absorbing STATE"
    assert by_options("correct it, or name every state by states=[...] when fitting.") == (
        "correct it, or name every state by --option 'states=[...]' of fit."
    )
    assert by_options("say missing=[<odd>] if so, missing=[]") == "give --missing WORD if so, --missing ''"


def test_a_word_for_nothing_among_numbers(run):
    """As R writes a missing value: both ways out that the error names are ways out."""
    rows = [f"{i},{t},{t if i else 'NA'}\n" for i in (0, 1) for t in (1, 2)]
    Path("v.csv").write_text("".join(["id,time,value\n", *rows]))
    code, _, err = run("fit", "v.csv", "--no-report")
    assert code == 3 and "got 'NA' among numbers at row 0; give --missing NA if it means" in err
    assert err.rstrip().endswith("--missing '' if it is a label. Rows are counted from 0, below the header.")
    quick = ["--no-report", "--option", "refine=1", "--json", "-q", "--force", "--emission", "direct"]
    told = [json.loads(run("fit", "v.csv", "--missing", word, *quick)[1])["states"]["state"] for word in ("NA", "")]
    assert told == [[1.0, 2.0], ["1", "2", "NA"]]


def test_a_terminal_sees_tables_in_full_numbers():
    """Caught: a bound of 1,766 days printed as 1.77e+03."""
    assert [legible.number(x) for x in (0.0123, 8.126, 999.6, 1766.2, 3e12, np.inf)] == [
        "0.0123", "8.13", "1000", "1766", "3e+12", "inf",
    ]  # fmt: skip
    summary = {"state": [1], "mean_dwell": [5371.4], "visits": [68399.0], "dwell_low": [65.21], "dwell_high": [1766.2]}
    assert legible.of_states(summary, "days") == {
        "state": [1], "mean dwell (days)": ["5371"], "90 % interval": ["65.2 to 1766"], "visits": ["68399"],
    }  # fmt: skip


def test_a_table_as_spreadsheets_of_many_countries_write_it(run):
    text = visits(times=lambda k: k + 0.5)
    Path("v.csv").write_text(text)
    Path("w.csv").write_text("\ufeff" + text.replace(",", ";").replace(".", ","), "utf-8")
    quick = ["--no-report", "--option", "refine=2", "-q", "--json"]
    told = [json.loads(run("fit", name, *quick)[1]) for name in ("v.csv", "w.csv")]
    assert told[0]["states"] == told[1]["states"]
    assert told[1]["guessed"] == ["semicolons between fields, decimal commas", *told[0]["guessed"]]


def test_lines_fit_a_terminal(run, monkeypatch):
    """Words are not cut at the edge of a terminal; elsewhere a message is one line."""

    monkeypatch.setenv("COLUMNS", "50")
    text = "guessed: " + "word " * 30 + "\x1b[31m"
    assert "\n" not in laid(text, io.StringIO()) and "\x1b" not in laid(text, Screen())
    lines = laid(text, Screen()).split("\n")
    assert len(lines) == 4 and max(map(len, lines)) <= 50 and " ".join(lines) == laid(text, io.StringIO())


def test_hold_out_and_seed(run):
    code, out, err = run(
        "fit", DATA / EDSS, "--value", "state3", "--hold-out", "0.25", "--seed", "3", "--jobs", "1",
        "--no-report", "--out", "o",
    )  # fmt: skip
    assert code == 0, err
    record = json.loads(Path("o/run.json").read_text())
    names = [row["name"] for row in record["held_out"]["rows"]]
    assert "JumpMeans, posterior" in names and "interpolation" in names
    assert record["held_out"]["verdict"] in out and record["seed"] == 3
    assert jm.load("o/model.jm").random_state == 3


def test_a_part_is_held_out_where_that_is_quick(run):
    """With a report of a table that is neither tiny nor large; caught: one whose own fit to the rest failed."""
    Path("v.csv").write_text(visits())
    Path("small.csv").write_text(visits(n=6))
    quick = ["--option", "refine=2", "--refits", "0", "--jobs", "1", "--force"]

    def held_out(*arguments):
        code, out, err = run("fit", *arguments, *quick)
        assert code == 0, err
        return json.loads(Path(f"{arguments[0].removesuffix('.csv')}-fit/run.json").read_text())["held_out"], out

    found, out = held_out("v.csv")
    assert "<title>v.csv: 2 states of stage</title>" in Path("v-fit/report.html").read_text("utf-8")
    assert found["verdict"] in out and "Nothing was held out" not in Path("v-fit/report.html").read_text("utf-8")
    for arguments in (["v.csv", "--hold-out", "0"], ["v.csv", "--no-report"], ["small.csv"]):
        assert held_out(*arguments)[0] is None
    rows = [{"error": 0.2, "rule_of_thumb": True}, {"error": float("nan"), "rule_of_thumb": False}]
    assert has_failed(Comparison(rows, "share wrong", ""))
    assert not has_failed(Comparison([rows[0] | {"rule_of_thumb": False}, *rows], "share wrong", ""))


def test_hidden_states_are_counted_where_no_number_is_given(run):
    process = jm.Process([0.2, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 6], sds=1))
    panel, _ = jm.simulate(process, 15, 15, random_state=0)
    panel.to_frame().to_csv("x.csv", index=False)
    code, _, err = run("fit", "x.csv", "--no-report", "--format", "parquet")
    assert code == 0, err
    model = jm.load("x-fit/model.jm")
    assert isinstance(model, jm.InfiniteJumpMeans) and model.n_states_ == 2
    import pandas as pd

    pd.testing.assert_frame_equal(
        pd.read_parquet("x-fit/trajectories.parquet"), model.trajectories_.to_frame(), check_dtype=False
    )


def test_nothing_is_replaced_unless_asked(run):
    """Caught: a check after the fit, or of the folder alone."""
    Path("v.csv").write_text(visits())
    options = ["fit", "v.csv", "--no-report", "--option", "refine=2", "--out", "o"]
    assert run(*options)[0] == 0
    before = Path("o/model.jm").read_bytes()
    Path("o/other.txt").write_text("mine")
    code, _, err = run(*options, "--seed", "5")
    assert code == 5 and "nothing is replaced unless that is asked for" in err and "model.jm" in err
    assert Path("o/model.jm").read_bytes() == before
    assert run(*options, "--seed", "5", "--force")[0] == 0
    assert Path("o/model.jm").read_bytes() != before and Path("o/other.txt").read_text() == "mine"
    Path("file").write_text("")
    code, _, err = run("fit", "v.csv", "--no-report", "--option", "refine=2", "--out", "file")
    assert code == 5 and "--out must be a folder" in err


def test_quiet_and_debug(run):
    Path("v.csv").write_text(visits())
    code, out, err = run("fit", "v.csv", "--no-report", "--option", "refine=2", "-q")
    assert (code, out, err) == (0, "", "")
    code, _, err = run("fit", "none.csv", "--debug")
    assert code == 3 and "Traceback" in err
    assert "Traceback" not in run("fit", "none.csv")[2]


# ----------------------------------------------------------------------------------------------- what is refused


def test_bad_input_ends_with_a_line_and_a_code(run):
    Path("empty.csv").write_text("")
    Path("binary.csv").write_bytes(os.urandom(50) + b"\0" * 50)
    Path("header.csv").write_text("id,time,value\n")
    Path("v.csv").write_text(visits())
    Path("twice.csv").write_text("id,time,value\n1,0,a\n1,0,b\n")
    Path("many.csv").write_text("id,time,sys,dia\n1,0,3,4\n")
    Path("blank.csv").write_text("id,time,value\n1,0,\n1,1,\n")
    Path("x.csv").write_text("id,time,value\n" + "".join(f"1,{t},{t / 7}\n" for t in range(20)))
    os.mkfifo("pipe.csv")
    Path("folder.csv").mkdir()
    cases = {
        ("fit", "nothing.csv"): (3, "there is no file 'nothing.csv'"),
        ("fit", "empty.csv"): (3, "must have a header and at least one row"),
        ("fit", "binary.csv"): (3, "must be text, but holds binary data"),
        ("fit", "header.csv"): (3, "must have at least one row below its header"),
        ("fit", "folder.csv"): (3, "it is a folder; name a file in it"),
        ("fit", "v.txt"): (3, "there is no file"),
        ("fit", "v.csv", "--value", "stag"): (3, "there is no column 'stag' (did you mean 'stage'?)"),
        ("fit", "v.csv", "--time", "date"): (3, "there is no column 'date'"),
        ("fit", "twice.csv"): (3, "times must increase strictly"),
        ("fit", "blank.csv"): (3, "column 'value' must have a value in some row, got none"),
        ("compare", "blank.csv"): (3, "column 'value' must have a value in some row, got none"),
        ("fit", "pipe.csv"): (3, "'pipe.csv' must be a file on disk, got a pipe or a device"),
        ("fit", "x.csv", "--absorbing", "1"): (2, "--allowed and --absorbing must come with --states N"),
        ("fit", "many.csv"): (2, "the column of the value must be named by --value: it could be any of ['sys', 'dia']"),
        ("fit", "v.csv", "--states", "x"): (2, "--states must be a number of at least 1, or auto"),
        ("fit", "v.csv", "--emission", "gausian"): (2, "emission must be one of"),
        ("fit", "v.csv", "--emission", "gaussian", "--states", "2"): (3, "must be numbers for emission 'gaussian'"),
        ("fit", "v.csv", "--allowed", "mild-ill"): (2, "--allowed must be moves between states"),
        ("fit", "v.csv", "--absorbing", "sever"): (2, "there is no state 'sever' (did you mean 'severe'?)"),
        ("fit", "v.csv", "--option", "tol"): (2, "--option must be NAME=VALUE"),
        ("fit", "v.csv", "--option", "tool=3"): (2, "--option must name options of JumpMeans, got 'tool'"),
        ("fit", "v.csv", "--option", "tol=-1"): (2, "tol must be 'auto' or a finite number >= 0, got -1"),
        ("fit", "v.csv", "--hold-out", "2", "--option", "refine=1"): (2, "2.0 is not in the range 0<=x<1"),
        ("fit", "v.csv", "--frobnicate"): (2, "No such option"),
        ("decode", "v.csv", "v.csv"): (4, "must be a model file"),
        ("decode", "none.jm", "v.csv"): (3, "there is no file 'none.jm'"),
        ("forecast", "v.csv", "v.csv"): (2, "must be given by --at or by --horizon"),
        ("report", "v.csv"): (4, "must be a model file"),
    }
    for arguments, (wanted, match) in cases.items():
        code, out, err = run(*arguments, *(["--no-report"] if arguments[0] == "fit" else []))
        assert code == wanted and match in err and "Traceback" not in err and not out, (arguments, code, err)
    assert {path.name for path in Path().iterdir() if path.is_dir()} == {"folder.csv"}


def test_a_fault_of_ours_is_told_as_such(run, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("jumpmeans.data.files.read_header", broken)
    code, _, err = run("fit", "v.csv")
    assert code == 1 and "ZeroDivisionError: by zero (this should not happen" in err

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("jumpmeans.data.files.read_header", stopped)
    assert run("fit", "v.csv")[0] == 130


def test_columns_are_guessed_only_where_there_is_no_doubt():
    def found(header, **asked):
        return find_columns(header, NOTHING | asked, {}).roles

    assert found(["PTNUM", "years", "state"]) == {"id": "PTNUM", "time": "years", "value": "state"}
    assert found(["id", "patient", "time", "day", "value", "x"]) == {"id": "id", "time": "time", "value": "value"}
    assert found(["Subject ID", "t", "bp"]) == {"id": "Subject ID", "time": "t", "value": "bp"}
    assert found(["a", "time", "sys", "dia"], id="a", value=("sys", "dia"))["value"] == ["sys", "dia"]
    for header, match in (
        (["patient", "subject", "time", "value"], "of the id must be named by --id: it could be any of"),
        (["who", "time", "value"], "of the id must be named by --id: it is none of"),
        (["patient", "visit1", "visit2"], "by its name; a table has one row for each observation, and its time in a"),
        (["id", "day", "month", "value"], "of the time must be named by --time"),
        (["id", "time", "state", "score"], "of the value must be named by --value"),
    ):
        with pytest.raises(ValueError, match=match):
            found(header)


def test_moves_between_labels_that_hold_a_hyphen():
    labels = ["a-b", "a", "b-c"]
    assert read_moves("a-b>a, a-b-c", labels) == {"a-b": ["a"], "a": ["b-c"]}
    assert read_moves("1-2,2-1,2-3", [1, 2, 3]) == {1: [2], 2: [1, 3]}
    with pytest.raises(ValueError, match="--allowed must be moves"):
        read_moves(",", labels)


# ------------------------------------------------------------------------------------------------ text is text


def test_hostile_ids_and_labels_are_text_everywhere(run):
    """Formulas, markup, 300 characters, right to left: shown as text, never run, and read back as they were."""
    lines = [["id", "time", "value"]]
    for i, name in enumerate(HOSTILE):
        lines += [[shielded(name), k, shielded(HOSTILE[(i + k // 2) % 2])] for k in range(6)]
    out = io.StringIO()
    csv.writer(out).writerows(lines)
    Path("h.csv").write_text(out.getvalue(), encoding="utf-8", newline="")
    code, shown, err = run("fit", "h.csv", "--no-report", "--option", "refine=2")
    assert code == 0, err
    model = jm.load("h-fit/model.jm")
    assert model.trajectories_.ids.tolist() == HOSTILE and set(model.states_.tolist()) == set(HOSTILE[:2])
    assert "=cmd()" in shown and "<script>alert(1)</script>" in shown
    with Path("h-fit/trajectories.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert row["id"][0] not in "=+-@" and row["state"][0] not in "=+-@"
    assert list(dict.fromkeys(unshielded(row["id"]) for row in rows)) == HOSTILE
    again = jm.read_panel("h-fit/trajectories.csv", time="start", value="state")
    assert again.ids.tolist() == HOSTILE
    code, decoded, _ = run("decode", "h-fit", "h.csv", "-q")
    assert code == 0 and decoded == Path("h-fit/trajectories.csv").read_text(encoding="utf-8")


def test_a_terminal_is_never_steered(run, monkeypatch, tmp_path):
    """Caught: an id with an escape sequence, or one that turns the direction of the line, printed as it is."""
    Path("h.csv").write_text("id,time,value\n\x1b[31mred,0,a\n\x1b[31mred,0,b\n\u202eevil,0,a\n", encoding="utf-8")
    code, _, err = run("fit", "h.csv", "--no-report")
    assert code == 3 and "\x1b" not in err and "\\x1b" in err
    Path("h.csv").write_text("id,time,value\n\u202e\x9bevil,0,a\n\u202e\x9bevil,1,b\n", encoding="utf-8")
    assert run("fit", "h.csv", "--no-report", "--option", "refine=1", "--force")[0] == 0
    decoded = run("decode", "h-fit", "h.csv", "-q")[1]  # into a pipe or a file: as it is
    assert decoded.split("\n")[1].startswith("\u202e\x9bevil,")
    told = run("decode", "h-fit", "h.csv", "--json", "-q")[1]
    assert "\u202e" not in told and "\x9b" not in told and json.loads(told)["id"][0] == "\u202e\x9bevil"
    monkeypatch.setattr(sys, "stdout", screen := Screen())
    write_csv(None, {"id": ["\u202e\x9bevil"]})
    assert screen.getvalue() == "id\n\\u202e\\x9bevil\n"
    monkeypatch.undo()
    os.chdir(tmp_path)
    Path("h.csv").write_text("id,time,\u202e\n1,0,a\n1,1,b\n", encoding="utf-8")
    assert "\u202e" not in run("fit", "h.csv", "--no-report", "--option", "refine=1")[2]


def test_shielding_is_undone():
    for text in [*HOSTILE, "", "'", "''=", "a=b", "\t=x", "0"]:
        assert unshielded(shielded(text)) == text
    assert not any(shielded(text).startswith(("=", "+", "-", "@", "\t", "\r")) for text in HOSTILE)


# --------------------------------------------------------------------------------------------- the other commands


def test_compare(run):
    Path("v.csv").write_text(visits(n=12))
    code, out, err = run("compare", "v.csv", "--folds", "1", "--jobs", "1", "--picture", "e.png")
    assert code == 0, err
    for name in ("JumpMeans, posterior", "EM", "interpolation", "kernel smoother", "most common value"):
        assert name in out
    assert Path("e.png").stat().st_size > 1000
    assert run("compare", "v.csv", "--picture", "e.png")[0] == 5
    code, out, _ = run("compare", "v.csv", "--folds", "1", "--jobs", "1", "--json", "-q")
    told = json.loads(out)
    assert told["rows"][0]["error"] <= told["rows"][-1]["error"] and told["verdict"]


def test_compare_says_that_it_leaves_covariates_out(run):
    Path("v.csv").write_text(
        "id,time,value,sex\n" + "".join(f"{i},{t},{t % 2},{'mf'[i % 2]}\n" for i in range(8) for t in range(6))
    )
    code, _, err = run("compare", "v.csv", "--covariate", "sex", "--folds", "1", "--jobs", "1")
    assert code == 0 and "--covariate sex is left out" in " ".join(err.split()), err


def test_decode_and_forecast(run, tmp_path):
    source = DATA / "icu_bp_p12_69x32.csv"
    model = jm.JumpMeans(3, n_init=1, refine=2).fit(jm.datasets.load_icu_pressure())
    model.save(tmp_path / "m.jm")
    code, out, err = run("decode", "m.jm", source, "--value", "sys", "--criterion", "time", "-q")
    assert code == 0, err
    wanted = model.decode(jm.datasets.load_icu_pressure(), "time")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [float(row["start"]) for row in rows] == wanted.start_times.tolist()
    assert [int(row["state"]) for row in rows] == wanted.states.tolist()
    code, _, err = run("decode", "m.jm", source, "--value", "sys", "--out", "t.csv", "-q")
    assert code == 0 and Path("t.csv").exists()
    assert run("decode", "m.jm", source, "--value", "sys", "--out", "t.csv")[0] == 5
    code, out, err = run(
        "forecast", "m.jm", source, "--value", "sys", "--horizon", "1", "--horizon", "2", "--json", "-q"
    )
    assert code == 0, err
    found = model.forecast(jm.datasets.load_icu_pressure(), horizon=[1, 2])
    np.testing.assert_array_equal(json.loads(out)["P(1)"], found.probs[:, 1])
    code, _, err = run("forecast", "m.jm", source, "--value", "sys", "--at", "noon")
    assert code == 2 and "--at must be a number" in err
    assert run("decode", "m.jm", source, "--value", "sys", "--criterion", "x")[0] == 2


def test_simulate(run, tmp_path):
    process = jm.Process([0.2, 0.2], [[0, 1], [1, 0]], states=["=well", "ill"])
    jm.JumpMeans.from_process(process).save(tmp_path / "m.jm")
    code, out, _ = run("simulate", "m.jm", "-n", "4", "--rows", "3", "--mean-gap", "2", "--seed", "1", "-q")
    wanted, truth = jm.simulate(process, 4, 3, mean_gap=2, random_state=1)
    assert code == 0
    Path("s.csv").write_text(out)
    panel = jm.read_panel("s.csv")
    np.testing.assert_array_equal(panel.times, wanted.times)
    np.testing.assert_array_equal(panel.values, wanted.values)
    assert panel.labels().tolist() == ["=well", "ill"]
    assert run("simulate", "m.jm", "-n", "4", "--rows", "3", "--truth", "t.csv", "--out", "x.csv")[0] == 0
    assert Path("t.csv").read_text().startswith("id,state,start,end,running\n") and len(truth) == 4
    # a table like the one that was fitted
    Path("v.csv").write_text(visits())
    assert run("fit", "v.csv", "--no-report", "--option", "refine=2")[0] == 0
    assert run("simulate", "v-fit", "-n", "2", "-q")[1].startswith("patient,day,stage\n0,0.0,")


def test_tune(run):
    Path("v.csv").write_text(visits())
    arguments = ["tune", "v.csv", "--budget", "2", "--folds", "1", "--jobs", "1", "--option", "refine=1", "--out", "t"]
    code, out, err = run(*arguments)
    assert code == 0, err
    assert "best: " in out and {path.name for path in Path("t").iterdir()} == {"model.jm", "trials.csv", "run.json"}
    assert len(Path("t/trials.csv").read_text().splitlines()) == 3
    assert out.endswith("model.jm, trials.csv, run.json in t\n") and "message" not in out and " %" in out
    assert run(*arguments)[0] == 5


def test_doctor(run):
    code, out, _ = run("doctor", "--json")
    told = json.loads(out)
    assert code == 0 and told["jumpmeans"].startswith(jm.__version__)
    assert {"threads", "GPU", "Dask", "compiled kernels", "numpy"} <= set(told)
    assert "compiled kernels" in run("doctor")[1]


# --------------------------------------------------------------------------------------------------- a real shell


HERE = {**os.environ, "PYTHONPATH": str(Path(jm.__file__).parents[1])}


def shell(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "jumpmeans", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env=HERE,
        **options,
    )


def test_help_keeps_its_lines_apart(run):
    out = run("fit", "--help")[1]
    assert "\n  jumpmeans fit visits.csv --allowed" in out and "\\b" not in out


def test_help_loads_nothing_heavy():
    """The start is quick as long as numpy and what lies above it are not there yet."""
    code = (
        "import sys; from jumpmeans.cli import app\n"
        "try: app(['--help'])\nexcept SystemExit: pass\n"
        "heavy = {'numpy', 'scipy', 'numba', 'sklearn', 'pandas', 'narwhals', 'rich', 'joblib'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=HERE)
    assert done.returncode == 0, done.stderr
    for name in ("fit", "compare", "decode", "forecast", "simulate", "tune", "report", "watch", "doctor"):
        assert f"\n  {name} " in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes(shell):
    """What docs/command-line.md tells people to evaluate, and what it then asks for."""
    program = [sys.executable, "-c", "from jumpmeans.cli import app; app(prog_name='jumpmeans')"]

    def told(step, **more):
        env = {**os.environ, "_JUMPMEANS_COMPLETE": f"{shell}_{step}", **more}
        return subprocess.run(program, env=env, capture_output=True, text=True, timeout=60).stdout

    assert "jumpmeans" in told("source") and f"_JUMPMEANS_COMPLETE={shell}_complete" in told("source")
    found = told("complete", COMP_WORDS="jumpmeans fit --ho", COMP_CWORD="--ho" if shell == "fish" else "2")
    assert "--hold-out" in found and "--help" not in found


def test_python_m_and_exit_codes(tmp_path):
    (tmp_path / "v.csv").write_text(visits(n=4))
    done = shell("fit", "v.csv", "--no-report", "--option", "refine=2", cwd=tmp_path)
    assert done.returncode == 0 and "2 states" in done.stdout, done.stderr
    assert shell("--version").stdout.strip() == f"jumpmeans, version {jm.__version__}"
    done = shell("fit", "none.csv", cwd=tmp_path)
    assert done.returncode == 3 and "there is no file" in done.stderr and not done.stdout


def test_a_reader_that_has_enough_ends_it_quietly(tmp_path):
    """Caught: a traceback of BrokenPipeError where `| head -1` would do."""
    process = jm.Process([0.2, 0.2], [[0, 1], [1, 0]])
    jm.JumpMeans.from_process(process).save(tmp_path / "m.jm")
    with subprocess.Popen(
        [sys.executable, "-m", "jumpmeans", "simulate", str(tmp_path / "m.jm"), "-n", "2000", "-q"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=HERE,
    ) as done:  # fmt: skip
        assert done.stdout.readline() == "id,time,value\n"
        done.stdout.close()
        assert done.stderr.read() == ""
    assert done.returncode == 0


def test_names_of_the_package_are_all_there():
    """Names come late: every one must still be found, be listed, and be what the type checker sees."""
    assert set(jm.__all__) <= set(dir(jm))
    for name in jm.__all__:
        assert getattr(jm, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        jm.nothing  # noqa: B018
    assert callable(jm.simulate) and sorted(jm._HOMES) == sorted(jm.__all__)
    text = Path(jm.__file__).read_text().partition("if TYPE_CHECKING:")[2].partition("\n# Names")[0]
    assert all(name in text for name in jm.__all__)


# --------------------------------------------------------------------------------------------------------- the report


def test_fit_and_report_write_the_page(run):
    """Hostile ids stand in the page as text; the report of a fit can be written again from its folder."""
    Path("v.csv").write_text(visits().replace("p0", "<script>alert(1)</script>"))
    quick = ["--option", "refine=2", "--refits", "6", "--jobs", "1"]
    code, out, err = run("fit", "v.csv", *quick, "--hold-out", "0.25", "--title", "Stages")
    assert code == 0 and "report.html" in out, err
    page = Path("v-fit/report.html").read_text("utf-8")
    with Path("v-fit/states.csv").open() as file:
        bounds = [(float(row["dwell_low"]), float(row["dwell_high"])) for row in csv.DictReader(file)]
    model = jm.load("v-fit/model.jm")
    panel = jm.read_panel("v.csv", id="patient", time="day", value="stage")
    sure = jm.bootstrap(model, panel, 6, n_jobs=1).interval(lambda fitted: fitted.process_.sojourn())
    assert bounds == list(zip(sure.low.values.ravel(), sure.high.values.ravel(), strict=True))
    told = page[page.index('id="states"') : page.index('id="moves"')]
    assert "Mean dwell (days)" in told  # the column is called day
    # caught: the model's own posterior named as the best simple rule
    tested = page[page.index("Held-out error") : page.index("How the fit went")]
    assert json.loads(Path("v-fit/run.json").read_text())["held_out"]["verdict"] in tested
    assert all(f"({number(low, 3)} to" in told for low, _ in bounds), told
    assert "Stages" in page and "<script>alert(1)" not in page
    assert run("report", "v-fit")[0] == 5
    Path("v-fit/report.html").unlink()
    code, out, err = run("report", "v-fit")
    again = Path("v-fit/report.html").read_text("utf-8")
    assert code == 0 and told in again and tested in again and "Stages" in again, err
    Path("v.csv").write_text(visits(seed=1))
    code, _, err = run("report", "v-fit", "--out", "other.html")
    assert code == 0 and "is no longer what the model was fitted to" in err and Path("other.html").exists()
    Path("v-fit/run.json").unlink()
    code, _, err = run("report", "v-fit", "--force")
    assert code == 2 and "--data must name the table" in err
    assert run("report", "v-fit", "--data", "v.csv", "--force")[0] == 0
