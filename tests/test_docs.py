"""What the pages say must follow from the committed results, and their code must run."""

import doctest
import json
import runpy
from pathlib import Path

import core
import covariates
import frailty
import hazards
import intervals
import levels
import pytest
import starts

ROOT = Path(__file__).parents[1]


def block(page, name):
    return page.split(f"<!-- {name} -->\n")[1].split(f"\n<!-- end of {name} -->")[0]


def test_tables_are_built_from_the_committed_results():
    results = json.loads((ROOT / "experiments/results/core.json").read_text())
    assert block((ROOT / "README.md").read_text(), "core table") == core.markdown(results, core.SHORT)
    choices = (ROOT / "docs/choices.md").read_text()
    for name, text in (("table", core.markdown), ("aims", core.aims), ("facts", core.facts)):
        assert block(choices, f"core {name}") == text(results)


def test_an_aim_that_is_missed_is_said():
    """Caught: aims met and missed exchanged."""
    results = json.loads((ROOT / "experiments/results/core.json").read_text())
    said = core.aims(results)
    for name, aim in core.AIMS.items():
        missed = results[name]["mean"]["trajectory_time"] > aim + core.NEAR
        assert (f"{core.SETS[name]} " in said.split("It misses on")[1].split("It jumps")[0]) == missed


def test_the_numbers_beside_msm_are_those_of_the_committed_run():
    """And they keep what is asked of them: no worse a likelihood, rates and answers within 1e-3, errors within 2 %."""
    table = runpy.run_path(str(ROOT / "benchmarks/msm.py"))["markdown"]
    results = json.loads((ROOT / "benchmarks/results/msm.json").read_text())
    assert block((ROOT / "docs/coming-from-msm.md").read_text(), "msm table") == table(results)
    for name in ("labels", "misclassified"):
        found = results[name]
        assert found["minus2loglik"]["ours"] <= found["minus2loglik"]["msm"] + 1e-3
        *answers, errors = found["largest difference"].values()
        assert max(answers) <= 1e-3 and errors <= 0.02


def test_the_speed_at_the_bedside_is_that_of_the_committed_run():
    """And it is what was asked for: 200,000 rows a second and core at 5 states, 10,000 sequences open."""
    results = json.loads((ROOT / "benchmarks/results/online.json").read_text())
    said = runpy.run_path(str(ROOT / "benchmarks/online.py"))["markdown"](results)
    assert block((ROOT / "docs/online.md").read_text(), "online speed") == said
    assert (results["states"], results["open"]) == (5, 10_000)
    assert results["rows_a_second"]["update_many"] >= 200_000


def test_what_a_million_rows_cost_is_what_was_measured():
    results = json.loads((ROOT / "benchmarks/results/cli.json").read_text())
    said = runpy.run_path(str(ROOT / "benchmarks/cli.py"))["markdown"](results)
    assert block((ROOT / "docs/command-line.md").read_text(), "cli speed") == said
    assert results["rows"] == 1_000_000 and results["report_mb"] <= 3 and results["help"]["cpu_seconds"] < 0.3


def test_times_beside_the_peers_are_those_measured():
    """JUMP-means is the quicker one beside EM, whatever else is written."""
    results = json.loads((ROOT / "benchmarks/results/peers.json").read_text())
    peers = runpy.run_path(str(ROOT / "benchmarks/peers.py"))
    assert block((ROOT / "docs/speed.md").read_text(), "peers table") == peers["markdown"](results)
    assert block((ROOT / "README.md").read_text(), "peers table") == peers["short"](results)
    fit = results["tasks"]["fit"]["by"]
    assert fit["jumpmeans"]["seconds"] <= fit["jumpmeans, EM"]["seconds"]


def test_growth_is_what_was_measured():
    results = json.loads((ROOT / "benchmarks/results/growth.json").read_text())
    growth = runpy.run_path(str(ROOT / "benchmarks/growth.py"))
    page = (ROOT / "docs/speed.md").read_text()
    for name, words in (("growth table", "markdown"), ("limits", "bounds"), ("cost model", "costs")):
        assert block(page, name) == growth[words](results)
    assert all(p["seconds"]["fit"] <= p["seconds"]["em"] for p in results["points"]["states"])


def test_sweeps_are_what_was_measured(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    results = json.loads((ROOT / "benchmarks/results/sweeps.json").read_text())
    said = runpy.run_path(str(ROOT / "benchmarks/sweeps.py"))["markdown"](results)
    assert block((ROOT / "docs/speed.md").read_text(), "sweeps") == said


def test_the_first_time_is_what_was_measured():
    results = json.loads((ROOT / "benchmarks/results/cold.json").read_text())
    said = runpy.run_path(str(ROOT / "benchmarks/cold.py"))["markdown"](results)
    assert block((ROOT / "docs/speed.md").read_text(), "cold start") == said
    assert results["import"]["seconds"] <= 0.5


def test_what_a_cluster_costs_is_what_was_measured():
    """And out of core a fit keeps to what its workers may have, and is the fit in memory."""
    pytest.importorskip("distributed")
    results = json.loads((ROOT / "benchmarks/results/cluster.json").read_text())
    table = runpy.run_path(str(ROOT / "benchmarks/cluster.py"))["table"]
    assert block((ROOT / "docs/cluster.md").read_text(), "shipped") == table(results).rstrip("\n") + "\n"
    for own in results["larger"]:
        assert own["equal_bits"]
        assert own["out_of_core"]["peak_gigabytes_of_a_worker"] < own["out_of_core"]["gigabytes_a_worker"]


def test_nothing_is_slower_than_before_the_house_was_rebuilt():
    """As it was measured, but for rounding."""
    results = json.loads((ROOT / "benchmarks/results/against.json").read_text())
    table = runpy.run_path(str(ROOT / "benchmarks/against.py"))["table"]
    assert block((ROOT / "CONTRIBUTING.md").read_text(), "against") == table(results)
    assert not {name: row["ratio"] for name, row in results["cpu_seconds"].items() if row["ratio"] > 1.05}


def test_the_tour_runs():
    code = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    assert 0 < names["jm"].reconstruction_error(names["predicted"], names["truth"], bins=(120.0, 140.0, 160.0)) < 0.5


def test_what_the_page_on_covariates_says_of_recovery_and_cost_is_what_was_found():
    """And it keeps what is asked of it: 93 % within two standard errors, three times a step at 1,000 pairs, 1.3 times
    a sweep where covariates stay within sequences."""
    page = (ROOT / "docs/covariates.md").read_text()
    found = json.loads((ROOT / "experiments/results/covariates.json").read_text())
    assert block(page, "recovery") == covariates.markdown(found)
    assert found["n_panels"] == 200 and found["within_two_standard_errors"] >= 0.93
    table = runpy.run_path(str(ROOT / "benchmarks/covariates.py"))["markdown"]
    cost = json.loads((ROOT / "benchmarks/results/covariates.json").read_text())
    assert block(page, "cost") == table(cost)
    assert all(own["ratio"] <= 3 for name, own in cost["steps"].items() if name.startswith("pairs"))
    assert all(own["ratio"] <= 1.3 for name, own in cost["sweeps"].items() if name.startswith("people"))
    bias = json.loads((ROOT / "experiments/results/hazards.json").read_text())
    assert not bias["quick"] and block(page, "hazards") == hazards.markdown(bias)


def test_what_the_page_on_patients_says_of_frailty_is_what_was_found():
    """And the test of one against none keeps its level."""
    found = json.loads((ROOT / "experiments/results/frailty.json").read_text())
    assert not found["quick"] and block((ROOT / "docs/patients.md").read_text(), "frailty") == frailty.markdown(found)
    none = found["found"]["0.0"]
    assert none["n"] == 100 and none["rejected"] <= 0.1
    assert all(own["largest_fall"] >= 0 for own in found["found"].values())


def test_the_page_on_structure_runs():
    code = "".join(part.split("```")[0] for part in (ROOT / "docs/structure.md").read_text().split("```python\n")[1:])
    names: dict = {}
    exec(compile(code, "docs/structure.md", "exec"), names)
    assert names["model"].emission_.columns[0].probs[0, 2] == 0


@pytest.mark.parametrize(
    ("page", "least"), [("answers", 20), ("covariates", 20), ("intervals", 9), ("online", 9), ("patients", 10)]
)
def test_the_answers_are_those_that_the_page_shows(page, least):
    # a fence is no output
    text = "\n".join(line for line in (ROOT / f"docs/{page}.md").read_text().split("\n") if line[:3] != "```")
    examples = doctest.DocTestParser().get_doctest(text, {}, f"{page}.md", None, 0)
    done = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(examples)
    assert done.attempted > least and done.failed == 0


def test_states_are_counted_and_not_people():
    """The table of the page is that of the committed results, and with offsets the number is right in 18 of 20."""
    results = json.loads((ROOT / "experiments/results/levels.json").read_text())
    assert not results["quick"]
    assert block((ROOT / "docs/patients.md").read_text(), "levels") == levels.markdown(results)
    for ways in results["counted"].values():
        assert ways["with"]["n"] == 20 and ways["with"]["right"] >= 18


def test_starts_that_end_elsewhere_are_counted():
    """The table of the page is that of the committed results; the default ends at the best fit known nearly always."""
    results = json.loads((ROOT / "experiments/results/starts.json").read_text())
    assert not results["quick"]
    assert block((ROOT / "docs/choices.md").read_text(), "starts") == starts.markdown(results)
    for name in ("JumpMeans, default", "EM, default"):
        assert results["fits"][name]["far"] <= 0.05 * results["n_panels"]


def test_intervals_hold_what_they_promise():
    """The table of the page is that of the committed results, and all of it lies within 85 to 95 %."""
    results = json.loads((ROOT / "experiments/results/intervals.json").read_text())
    assert not results["quick"] and results["level"] == 0.9
    assert block((ROOT / "docs/intervals.md").read_text(), "coverage") == intervals.markdown(results)
    for methods in results["sets"].values():
        for entry in methods.values():
            shares = [x for ways in entry["coverage"].values() for xs in ways.values() for x in xs]
            assert entry["n_panels"] == 200 and 0.85 <= min(shares) and max(shares) <= 0.95
