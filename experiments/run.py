"""The whole reproduction, or some items of it: `python experiments/run.py [--quick] [item ...]`.

Every item is a script of this folder. Its tasks are kept in .cache as they finish, so a run that was stopped goes on
where it was; numbers and pictures go to results (with --quick, to results-quick), and the page
docs/reproduction.md is written from them.
"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path

import report
from tasks import Store, clock, pool, run_tasks, versions, write_json

HERE = Path(__file__).parent
ITEMS = (
    "idea", "table1", "states", "causes", "curves", "patients", "sensitivity", "search", "scaling", "sleep", "credit",
)  # fmt: skip
# Not of the paper, and no part of its page: run by name.
MORE = ("intervals", "covariates", "levels", "frailty", "hazards", "starts")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "items", nargs="*", metavar="item", help=f"of {', '.join(ITEMS + MORE)}; by default all but {', '.join(MORE)}"
    )
    parser.add_argument("--quick", action="store_true", help="few data sets and settings: minutes instead of an hour")
    parser.add_argument("--any-code", action="store_true", help="keep finished tasks of earlier code, too")
    parser.add_argument("--jobs", type=int, help="tasks at a time; all cores by default")
    parser.add_argument("--method", action="append", help="of table1 only these; the others stay as in its results")
    parser.add_argument("--set", action="append", help="with --method, on these data alone")
    parser.add_argument("--estimate", action="store_true", help="only print what is left to do")
    options = parser.parse_args()
    unknown = [item for item in options.items if item not in ITEMS + MORE]
    if unknown:
        parser.error(f"no item {unknown[0]!r}; there are {', '.join(ITEMS + MORE)}")
    chosen = options.items or ITEMS
    if options.estimate:
        estimate(chosen, options.quick, options.any_code)
        return
    folder = HERE / ("results-quick" if options.quick else "results")
    made = versions()
    scripts = {item: importlib.import_module(item) for item in chosen}
    work = {item: script.tasks(options.quick) for item, script in scripts.items()}
    kept = None
    if options.method:
        if chosen != ["table1"]:
            parser.error("--method goes with the item table1 alone")
        work["table1"] = [
            task for task in work["table1"]
            if task.settings["method"] in options.method and (not options.set or task.settings["set"] in options.set)
        ]  # fmt: skip
        kept = json.loads((folder / "table1.json").read_text())
    stores = {item: Store(item, any_code=options.any_code) for item in chosen}
    with pool(options.jobs) as workers:
        for item in run_tasks(work, stores, workers):
            found = stores[item].results(work[item])
            seconds = sum(result["task_seconds"] for result in found)
            head = {"quick": options.quick, "versions": made, "cpu_seconds": seconds, "n_tasks": len(found)}
            if kept is not None:  # what was not run again is as old as it was
                head = {
                    **{key: kept[key] for key in head},
                    "again": {"methods": options.method, "sets": options.set, "versions": made},
                }
                collected = scripts[item].collect(work[item], found, kept)
            else:
                collected = scripts[item].collect(work[item], found)
            write_json(folder / f"{item}.json", {**head, **collected})
            scripts[item].draw(json.loads((folder / f"{item}.json").read_text()), folder)
            print(f"{item}: {folder.name}/{item}.json")
    page = folder / "reproduction.md" if options.quick else report.PAGE
    if report.write(folder, page):
        print(f"{page} written")


def estimate(chosen: tuple[str, ...] | list[str], quick: bool, any_code: bool) -> None:
    """Tasks and CPU time of every item, as guessed."""
    total = 0.0
    for item in chosen:
        work = importlib.import_module(item).tasks(quick)
        todo = Store(item, any_code=any_code).missing(work)
        seconds = sum(task.cost for task in todo)
        total += seconds
        print(f"{item:<12}{len(todo):>6} of {len(work):>6} tasks to do, about {clock(seconds)} of CPU time")
    print(f"together about {clock(total)} of CPU time, to be shared by the cores")


if __name__ == "__main__":
    main()
