"""The page of the reproduction follows from the committed results, and the pieces of its scripts work."""

import importlib
import inspect
import json
from pathlib import Path

import figures
import lab
import numpy as np
import paper
import pytest
import report
import run
import statements
import tasks

SCRIPTS = {item: importlib.import_module(item) for item in run.ITEMS}


def test_page_is_built_from_the_committed_results():
    results = report.read(report.RESULTS)
    complete = len(results) == len(report.ITEMS)
    assert report.PAGE.exists() == complete
    if complete:
        assert report.PAGE.read_text() == report.build(results, "../experiments/results")
        assert not any(result["quick"] for result in results.values())


def test_pictures_of_the_page_are_there():
    if report.PAGE.exists():
        for part in report.PAGE.read_text().split("](")[1:]:
            path = report.PAGE.parent / part.split(")")[0]
            assert path.exists()
            assert path.with_suffix(".png").exists()


def test_items_of_run_and_report_are_the_same():
    assert run.ITEMS == report.ITEMS


@pytest.mark.parametrize("item", run.ITEMS)
@pytest.mark.parametrize("quick", [True, False])
def test_tasks_are_distinct_calls_that_fit_their_functions(item, quick):
    work = SCRIPTS[item].tasks(quick)
    assert len({tasks.Store.key(task) for task in work}) == len(work)
    for task in work:
        module, name = task.work.split(":")
        inspect.signature(getattr(importlib.import_module(module), name)).bind(**task.settings)
        assert json.loads(json.dumps(task.settings)) == task.settings


def test_sizes_of_the_study_are_those_of_the_paper():
    assert len(SCRIPTS["sensitivity"].grid(SCRIPTS["sensitivity"].MS_GRID)) == 48
    assert len(SCRIPTS["sensitivity"].grid(SCRIPTS["sensitivity"].ICU_GRID)) == 1125
    assert [round(paper.gap_recovered(name), 1) for name in paper.TABLE] == [96.6, 59.6, 103.2, 108.4]


@pytest.mark.parametrize("name", lab.SETS)
@pytest.mark.parametrize("method", ["em", "mcmc", *lab.JUMP_MEANS])
def test_every_method_can_be_made_for_every_set(name, method):
    panel = lab.jm.datasets.load_edss()
    case = lab.Case(lab.SETS[name], panel, panel, None, 3)
    model = lab.make(method, case, 7)
    assert getattr(model, "max_iter", 7) == 7
    if method == "mcmc":
        assert model.burn_in + model.n_samples * model.thin in (6, 7)


def test_one_method_on_one_split():
    found, by_hand = (tasks.perform(tasks.Task("lab:assess", {"set": "ms", "seed": 0, "method": key}))
                      for key in ("plain", "by_hand"))  # fmt: skip
    assert set(found["errors"]) == {"plain_trajectory", "plain_posterior"}
    assert 0 < found["errors"]["plain_posterior"] < 50
    assert found["errors"]["plain_posterior"] < by_hand["errors"]["most_common"]


def test_finished_tasks_are_kept_and_half_a_line_is_not(tmp_path):
    task, other = tasks.Task("lab:assess", {"seed": 1}), tasks.Task("lab:assess", {"seed": 2})
    store = tasks.Store("item", tmp_path)
    store.add(task, {"x": 0.25})
    with store.path.open("a") as file:
        file.write('{"key": "cut sh')
    again = tasks.Store("item", tmp_path)
    assert again.missing([task, other]) == [other]
    assert again.results([task]) == [{"x": 0.25}]


def test_tasks_of_other_code_are_done_again(tmp_path, monkeypatch):
    task = tasks.Task("lab:assess", {"seed": 1})
    tasks.Store("item", tmp_path).add(task, {"x": 1})
    monkeypatch.setattr(tasks, "code_digest", lambda: "other")
    assert tasks.Store("item", tmp_path).missing([task]) == [task]
    assert tasks.Store("item", tmp_path, any_code=True).missing([task]) == []


def test_numbers_are_written_short_and_read_back(tmp_path):
    tasks.write_json(tmp_path / "a.json", {"a": [1.23456789, 2, None], "b": {"c": ["x", "y"]}})
    text = (tmp_path / "a.json").read_text()
    assert '"a": [1.23457, 2, null]' in text
    assert json.loads(text) == {"a": [1.23457, 2, None], "b": {"c": ["x", "y"]}}


def table(printed, refined):
    return {"ms": {"means": {"printed_trajectory": {"mean": printed}, "refined_posterior": {"mean": refined}}}}


@pytest.mark.parametrize(
    ("printed", "refined", "verdict"),
    [(1, 9, statements.HOLDS), (9, 1, statements.CAVEAT), (9, 9, statements.FAILS)],
)
def test_verdicts(printed, refined, verdict):
    found = table(printed, refined)

    def mean(name, key):
        return found[name]["means"][key]["mean"]

    said = statements.judge(
        "MS", "small", ("ms",), found, lambda n, k: mean(n, k) < 5, lambda n, k: f"{mean(n, k)}", "path"
    )
    assert said.verdict == verdict
    assert lab.NOT_THE_PAPERS in said.numbers


def test_first_time():
    line = {"seconds": [1.0, 2.0, 3.0], "errors": [{"mean": 9.0}, {"mean": 4.0}, {"mean": 5.0}]}
    assert statements.first_time(line, 5.0) == 2.0
    assert statements.first_time(line, 1.0) == np.inf


def test_places_of_held_out_rows():
    nan = np.nan
    panel = lab.jm.Panel.from_arrays(range(6), [nan, 1.0, nan, 1.0, nan, 2.0], ids=[1] * 6)
    assert SCRIPTS["causes"].place(panel)[[0, 2, 4]].tolist() == [2, 0, 1]


def test_pictures_are_the_same_bytes_twice(tmp_path):
    def draw(folder: Path) -> bytes:
        fig, axes = figures.figure()
        axes[0, 0].plot([1, 10, 100], [3, 2, 1], **figures.STYLE["em"])
        figures.decades(axes[0, 0])
        figures.save(fig, folder, "a")
        return (folder / "a.svg").read_bytes() + (folder / "a.png").read_bytes()

    assert draw(tmp_path / "one") == draw(tmp_path / "two")
