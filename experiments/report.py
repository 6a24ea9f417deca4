"""The page docs/reproduction.md, wholly from the results: `python experiments/report.py`. No number stands here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import paper
from causes import PARAMETERS
from lab import NAMES, PRINTED_INFINITE, SETS
from statements import CAVEAT, FAILS, HOLDS, ON_PAR, VARIANTS, Statement, statements, title

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "reproduction.md"
# How near to EM the posterior is asked to be, in points.
NEAR_EM = 0.3
ITEMS = (
    "idea", "table1", "states", "causes", "curves", "patients", "sensitivity", "search", "scaling", "sleep", "credit",
)  # fmt: skip


def read(folder: Path) -> dict[str, Any]:
    """All results of a folder; what is not there is left out."""
    found = {item: folder / f"{item}.json" for item in ITEMS}
    return {item: json.loads(path.read_text()) for item, path in found.items() if path.exists()}


def write(folder: Path = RESULTS, page: Path = PAGE) -> bool:
    """Write the page, unless some result is missing."""
    results = read(folder)
    if len(results) < len(ITEMS):
        return False
    page.write_text(build(results, Path(os.path.relpath(folder, page.parent)).as_posix()))
    return True


def build(r: dict[str, Any], folder: str) -> str:
    """The whole page; pictures are looked for in `folder`."""
    said = statements(r)
    parts = [head(r, said), differences(said), *why(r, said, folder), table(r["table1"], folder), pictures(r, folder),
             number_of_states(r["states"], folder), more_sets(r, folder), listing(said), how(r)]  # fmt: skip
    return "\n\n".join(part.strip() for part in parts) + "\n"


def head(r: dict[str, Any], said: list[Statement]) -> str:
    count = {verdict: sum(one.verdict == verdict for one in said) for verdict in (HOLDS, CAVEAT, FAILS)}
    quick = "\n\n**This is the page of a quick run: few data sets, wide intervals.**" if r["table1"]["quick"] else ""
    return f"""# The paper, reproduced

<!-- Written by experiments/report.py from experiments/results/*.json: change those, not this page. -->

Of {len(said)} statements in section 5 of the paper {count[HOLDS]} hold, {count[CAVEAT]} hold with a caveat and
{count[FAILS]} do not hold, judged by fixed rules (`experiments/statements.py`) from the numbers below.
`make reproduce` makes them all again.{quick}

**None of the real data are the paper's own**: its MS trial and its MIMIC extract are not public. MS stands for the EDSS
sample data set distributed with MSoutcomes, ICU for systolic pressure from the PhysioNet/CinC Challenge 2012. They have
the same shape, so the design carries over and the error rates need not. The paper does not say at which times its
synthetic processes are observed, so both are shown with two kinds of gaps.

*As printed* means the paper's hyperparameters, start and objective (on ICU from two states, see below); *our weights*
are the defaults of this package without its closing EM steps, and *EM-refined* with them. A *trajectory* is scored as
in the paper; the *posterior* is read from the Markov process behind the same fit. Errors are in % of the held-out
observations, ± is one standard error, and intervals of differences hold 95 %, paired by data set or split."""


def differences(said: list[Statement]) -> str:
    lines = ["## Where our results differ from the paper's", ""]
    for verdict, heading in ((FAILS, "Does not hold here:"), (CAVEAT, "Holds with a caveat:")):
        own = [one for one in said if one.verdict == verdict]
        if own:
            lines += [heading, "", *(f"- **{one.about}: {one.text}.** {one.numbers}." for one in own), ""]
    if len(lines) == 2:
        lines.append("Nowhere.")
    return "\n".join(lines)


def why(r: dict[str, Any], said: list[Statement], folder: str) -> list[str]:
    """An analysis for each cause that a statement needs."""
    needed = {one.cause for one in said if one.verdict != HOLDS}
    analyses = {"mcmc": why_mcmc, "path": why_path, "symbols": why_symbols, "icu": why_icu}
    found = [analysis(r) for cause, analysis in analyses.items() if cause in needed]
    return ["## Why", *found, why_gaps(r, folder)]


def why_mcmc(r: dict[str, Any]) -> str:
    scored, sets = r["causes"]["mcmc"], r["table1"]["sets"]
    rows = []
    for name, found in scored.items():
        printed = paper.TABLE[base(name)]
        cells = [f"{printed[key]:.1f}" for key in ("mcmc", "em", "most_common")]
        mine = [pm(found[key]) for key in ("estimator", "draw")]
        rows.append([title(name), *cells, pm(sets[name]["means"]["em"]), *mine, f"{found['r_hat']['mean']:.2f}"])
    draw = scored["synthetic_2_dense"]["draw"]["mean"]
    common = sets["synthetic_2_dense"]["means"]["most_common"]["mean"]
    theirs, theirs_1 = paper.TABLE["synthetic_2"], paper.TABLE["synthetic_1"]
    cost = scored["synthetic_1"]["draw"]["mean"] - scored["synthetic_1"]["estimator"]["mean"]
    worst = max(abs(sets[n]["means"]["mcmc"]["mean"] - sets[n]["means"]["em"]["mean"]) for n in scored)
    head = ["", "MCMC, paper", "EM, paper", "most common, paper", "EM", "MCMC, most probable value",
            "MCMC, a value drawn", "R̂ of the rates"]  # fmt: skip
    return f"""### MCMC

With every conditional exact, {r["table1"]["iterations"]} iterations (a third left out) and the predictive distributions
of the samples averaged, MCMC ends at most {worst:.1f} points from EM on the sets below. One way to a poor score from
the same samples is to predict by a draw instead of the most probable value: on Synthetic 2 the error is then
{draw:.1f} %, {side(draw, common)} that of the most common observation ({common:.1f} %); in the paper MCMC
({theirs["mcmc"]:.1f} %) is {side(theirs["mcmc"], theirs["most_common"])} it ({theirs["most_common"]:.1f} %). The paper
says no more of its read-out than "Bayes estimator", so this is a possible cause, not a proven one: on Synthetic 1 a
draw costs {cost:.1f} points here, and the paper's MCMC lost {theirs_1["mcmc"] - theirs_1["em"]:.1f} to EM. R̂ (split,
median over states, mean over data sets) is near 1 where chains mix; predictions of observations do not depend on which
state is called which, and can be good before the rates are.

{markdown(head, rows)}"""


def side(a: float, b: float) -> str:
    return "above" if a > b else "below"


def why_path(r: dict[str, Any]) -> str:
    rows = []
    for name, found in r["causes"]["where"].items():
        for row in found["rows"]:
            cells = [f"{row[key]:.1f}" for key in ("share", "trajectory", "posterior", "em")]
            rows.append([title(name), row["place"], *cells])
    ratio = {name: found["median_rate_ratio"] for name, found in r["causes"]["where"].items()}
    means = r["table1"]["sets"]["ms"]["means"]
    plain, refined, least, posterior = (
        means[key]["mean"] for key in ("plain_trajectory", "refined_trajectory", "refined_time", "plain_posterior")
    )
    head = ["", "held-out row", "share of rows (%)", "trajectory", "posterior of the same fit", "EM"]
    return f"""### One path, or all of them

The trajectory is one path; EM, MCMC and our posterior read-out weigh all of them. Between two different observations
the one path jumps at one time, fixed by the mean dwells, and beyond the last observation it jumps on once a dwell is
long for its λ. There λ of the objective counts: it is not the rate of a Markov process, for running dwells are free
until they reach 1/λ. Its median ratio to EM's is {ratio["synthetic_1"]:.2f} on Synthetic 1 and {ratio["ms"]:.2f} on
{title("ms")}. On the latter the trajectory has an error of {plain:.1f} %, the posterior of the same fit
(rates from occurrence over exposure) {posterior:.1f} %, and the trajectory after closing EM steps {refined:.1f} %. A
path chosen to be wrong for the least time (`criterion="time"`) jumps where the posterior changes sides: {least:.1f} %.
Errors (%) by where the held-out row lies, JUMP-means with our weights:

{markdown(head, rows)}"""


def why_symbols(r: dict[str, Any]) -> str:
    found = r["causes"]["parameters"]
    means, share = found["means"], found["recovered"]

    def cell(key: str) -> str:
        return f"{pm(means[key])} ({share[key]:.0f} %)"

    rows = [
        [name, cell(f"{key}_trajectory"), cell(f"{key}_posterior"), f"{means[f'{key}_sharpness']['mean']:.0f} %"]
        for key, name in PARAMETERS.items()
    ]
    head = ["parameters from", "best trajectory", "posterior", "mean of the largest chance in each row of ρ"]
    return f"""### Symbols that say little

{SETS["synthetic_2_dense"].title}, {r["causes"]["n"]} data sets: the same read-outs under parameters from four places.
In brackets the share of the way from the most common observation ({pm(means["most_common"])} %) to the limit (true
parameters, posterior). The decoder recovers {share["true_trajectory"]:.0f} % of it under true parameters,
{share["em_trajectory"]:.0f} % under EM's, {share["plain_trajectory"]:.0f} % under ours and
{share["printed_trajectory"]:.0f} % under those of JUMP-means as printed: one path tells most of what there is to tell
if its parameters are good, and it is parameters from hard assignment that cost. As printed, hard assignment feeds on
itself: symbols look more certain ({means["printed_sharpness"]["mean"]:.0f} %, last column) than they are
({means["true_sharpness"]["mean"]:.0f} %). Even pseudo-counts (our weights) prevent that at the price of rows that are
too even; closing EM steps from there (`refine`, table 1) mend it.

{markdown(head, rows)}"""


def why_icu(r: dict[str, Any]) -> str:
    icu = r["table1"]["sets"]["icu"]
    em, means = icu["em_numbers"], icu["means"]
    rows = [[str(n), pm(a), pm(b)] for n, a, b in zip(em["numbers"], em["means"], em["means_by_state"], strict=True)]
    picked = ", ".join(f"{n} ({em['picked_by_bic'].count(n)})" for n in sorted(set(em["picked_by_bic"])))
    order = "; ".join(f"{NAMES[key]} {means[key]['mean']:.1f}" for key in sorted(means, key=lambda k: means[k]["mean"]))
    names = {"printed": "as printed", "plain": "our weights", "refined": "EM-refined"}
    found = ", ".join(f"{names[key]} {span(values)}" for key, values in icu["n_states"].items() if key in names)
    born = [
        [key, *(pm(one[kind]) for kind in ("n_states", "trajectory", "posterior"))]
        for key, one in r["causes"]["births"].items()
    ]
    n_births = r["causes"]["n"]
    return f"""### ICU pressure (not the paper's data)

From the least to the largest error (%) over {icu["n"]} splits: {order}.

Three causes can be told apart. First, the read-out: the trajectory as printed has an error of
{means["printed_trajectory"]["mean"]:.1f} %, the posterior of the same fit {means["printed_posterior"]["mean"]:.1f} %.
With ζ and ξ at {PRINTED_INFINITE["emission_weight"]:g} against dwell costs of weight 1, observations and jumps cost
next to nothing and a path follows its dwells. Second, what a rival is shown: particle MCMC sees four categories, as in
the paper, and has {means["pmcmc"]["mean"]:.1f} %; shown the readings, {means["pmcmc_gaussian"]["mean"]:.1f} %.
Third, how states are born: the paper starts from one state, where its move (split what is entered by a jump from one
state to another) finds no jump. Printed weights, {n_births} splits:

{markdown(["states born", "number", "trajectory (%)", "posterior (%)"], born)}

States found in table 1: {found}. EM by its number of states, scored by the posterior mean and by the mean of the single
most probable state, is below; BIC picks (splits) {picked}.

{markdown(["states of EM", "posterior mean (%)", "most probable state (%)"], rows)}"""


def why_gaps(r: dict[str, Any], folder: str) -> str:
    rows = r["causes"]["gaps"]
    printed = paper.TABLE["synthetic_1"]

    def distance(row: dict[str, Any]) -> float:
        apart = row["most_common"]["mean"] - printed["most_common"], row["bayes_limit"]["mean"] - printed["em"]
        return abs(apart[0]) + abs(apart[1])

    near = min(rows, key=distance)
    keys = ("most_common", "trajectory", "posterior", "bayes_limit")
    cells = [[row["gaps"], f"{row['mean_gap']:g}", *(pm(row[key]) for key in keys)] for row in rows]
    head = ["gaps", "mean", "most common", "trajectory", "posterior", "limit"]
    return f"""### Times between looks

The level of the errors on Synthetic 1 depends on the times of the observations, which the paper does not give. Of the
gaps tried here, {near["gaps"]} ones of mean {near["mean_gap"]:g} come nearest to its pair of most common observation
({printed["most_common"]:.1f} %) and EM ({printed["em"]:.1f} %): {near["most_common"]["mean"]:.1f} % and, for the
limit, {near["bayes_limit"]["mean"]:.1f} %. JUMP-means with our weights, no EM steps, {r["causes"]["n"]} data sets:

{markdown(head, cells)}

![Error on Synthetic 1 against the mean gap between observations]({folder}/gaps.svg)"""


def table(found: dict[str, Any], folder: str) -> str:
    sets = found["sets"]
    em = sets["icu"]["em_numbers"]
    names = list(sets)
    heads = [f"{title(n)}, {sets[n]['n']} {'splits' if SETS[n].is_real else 'data sets'}" for n in names]
    rows = [
        [label, *(pm(sets[name]["means"][key]) if key in sets[name]["means"] else "" for name in names)]
        for key, label in NAMES.items()
    ]
    printed = [
        [label, *(f"{paper.TABLE[name][key]:.1f}" if key in paper.TABLE[name] else "" for name in paper.TABLE)]
        for key, label in {**NAMES, "jump_means": "JUMP-means"}.items()
        if any(key in row for row in paper.TABLE.values())
    ]
    shares = [["the paper, on its own data", *(f"{paper.gap_recovered(base(name)):.1f}" for name in names)]]
    for key in VARIANTS:
        cells = [sets[name]["recovered"].get(key) for name in names]
        shares.append([NAMES[key], *("" if value is None else f"{value:.1f}" for value in cells)])
    intervals = [
        [title(name), NAMES[key], less(sets[name]["paired"][key])]
        for name in names
        for key in ("printed_trajectory", "plain_trajectory", "refined_trajectory", "refined_posterior")
    ]
    shown = {"synthetic_1": "Synthetic 1", "synthetic_2": "Synthetic 2", "real": "MS and ICU, not the paper's data"}
    plots = "\n\n".join(
        f"![Error of every method, bars of two standard errors: {text}]({folder}/table1_{part}.svg)"
        for part, text in shown.items()
    )
    return f"""## Table 1

Error (%), {found["iterations"]} iterations at most. EM on ICU is the best of 1 to {em["numbers"][-1]} states
({em["best"]}), chosen by the held-out error itself, as in the paper.

{markdown(["", *heads], rows)}

The paper's table, on its own data:

{markdown(["", "Synthetic 1", "Synthetic 2", "MS", "MIMIC"], printed)}

Gap recovered (%): the share of the way from the most common observation to EM.

{markdown(["", *map(title, names)], shares)}

What this project asks of itself on {title("synthetic_1")}: {asked(sets["synthetic_1"])}

Error less that of other methods (points, 95 % intervals):

{markdown(["", "JUMP-means", "less"], intervals)}

{plots}"""


def less(paired: dict[str, list[float]]) -> str:
    """Differences to other methods in one cell."""
    others = [key for key in NAMES if key in paired and key not in (*VARIANTS, "bayes_limit")]
    return ", ".join(f"{NAMES[key]} {paired[key][0]:+.2f} ± {paired[key][1]:.2f}" for key in others)


def asked(one: dict[str, Any]) -> str:
    """The two aims that the project set itself."""
    names = {"plain": "without EM steps", "refined": "EM-refined"}
    near = {key: one["paired"][f"{key}_posterior"]["em"] for key in names}
    share = {key: one["recovered"][f"{key}_trajectory"] for key in names}
    posterior = ", ".join(f"{names[k]} {m:+.2f} ± {h:.2f} ({yes(m <= NEAR_EM)})" for k, (m, h) in near.items())
    path = ", ".join(f"{names[k]} {value:.1f} % ({yes(value >= ON_PAR)})" for k, value in share.items())
    return (
        f"the posterior within {NEAR_EM:g} points of EM: {posterior}; "
        f"the trajectory with at least {ON_PAR:g} % of the gap: {path}."
    )


def yes(it: bool) -> str:
    return "yes" if it else "no"


def pictures(r: dict[str, Any], folder: str) -> str:
    curves, patients, study = r["curves"], r["patients"]["sets"], r["sensitivity"]
    n = ", ".join(f"{title(name)}: {one['n']}" for name, one in curves["sets"].items())
    facts = "; ".join(
        f"{title(name)}: {one['n_settings']:,} settings, errors from {one['least']:.1f} to {one['largest']:.1f} %, "
        f"median {one['median']:.1f} %, {100 * one['share_near']:.0f} % within {study['near_within']:g} points of the "
        f"least (posterior: least {one['posterior_least']:.1f} %, {100 * one['posterior_share_near']:.0f} % within)"
        for name, one in study["sets"].items()
    )
    return f"""## Figures

### The idea (figure 1)

Three hidden states and two symbols; all one sees are the symbols at irregular times.

![A true path with its symbols, and the path that JUMP-means finds]({folder}/idea.svg)

### Error against iterations and CPU time

Means over data sets or splits ({n}). Every point is a fit of its own, stopped there; its time includes reading out
the held-out values. EM on ICU has {curves["em_states_on_icu"]} states; JUMP-means is stopped there at 1, 2, ... states,
and its iterations are the sweeps up to then. JUMP-means with our weights, no EM steps. MS and ICU are not the paper's
data.

![Error against iterations]({folder}/curves_iterations.svg)

![Error against CPU time]({folder}/curves_seconds.svg)

### Trajectories of patients

An MS ({patients["ms"]["id"]}) and an ICU patient ({patients["icu"]["id"]}), by JUMP-means and by maximum likelihood;
not the paper's data. Diamonds mark dwells that maximum likelihood leaves at once.

![An MS patient]({folder}/patient_ms.svg)

![An ICU patient]({folder}/patient_icu.svg)

### Hyperparameters

Trajectories of the paper's algorithm; MS: mean of {study["ms_splits"]} splits, ICU: one split, at most
{study["most_states"]} states. {facts}.

![Histograms of the error over hyperparameter settings]({folder}/sensitivity.svg)

{scaling_part(r["scaling"], folder)}

{search_part(r["search"], folder)}"""


def scaling_part(found: dict[str, Any], folder: str) -> str:
    names = {"infinite": "found", "given": "given"}
    rows = [
        [f"{row['n']:,}", f"{row['n_sets']}", names[model], f"{row['seconds']['mean']:.2f}", pm(row["error"]),
         span(row["n_states"])]
        for model, line in found["lines"].items()
        for row in line["rows"]
    ]  # fmt: skip
    power = {m: "unknown" if x["slope"] is None else f"{x['slope']:.2f}" for m, x in found["lines"].items()}
    head = ["sequences", "data sets", "number of states", "CPU seconds of a fit", "error (%)", "states in the fit"]
    return f"""### Size of the data

Gaussian readings of {found["n_states"]} hidden states, {found["n_observations"]} a sequence, {found["held_out"]} % held
out, one core. From 1,000 sequences on the run time grows as size to the power {power["infinite"]} (number of
states found) and {power["given"]} (given).

{markdown(head, rows)}

![Run time and error against the number of sequences]({folder}/scaling.svg)"""


def search_part(found: dict[str, Any], folder: str) -> str:
    def cell(one: dict[str, Any], key: str) -> str:
        middle, half = one["less_one"][key]
        return f"{pm(one['objective_percent'][key], 2)} %; {middle:+.2f} ± {half:.2f}"

    keys = ("beam", "two", "four")
    rows = [[title(name), *(cell(one, key) for key in keys)] for name, one in found["sets"].items()]
    return f"""### How jumps are looked for

Change of the objective (± standard error) and of the trajectory's error (points, 95 % interval) against the exact
search with one candidate a gap.

{markdown(["", "beam", "2 candidates a gap", "4 candidates a gap"], rows)}

![Objective and error of other searches]({folder}/search.svg)"""


def number_of_states(found: dict[str, Any], folder: str) -> str:
    names = {
        "default": "defaults",
        "unchecked": "births not checked",
        "paper": "the paper's move alone, from 1 state",
        "paper_from_2": "the paper's move alone, from 2 states",
    }
    rows = [
        [names[way], found["titles"][kind], f"{int(size):,}", f"{one['right']} of {one['n']}", span(one["numbers"]),
         *(f"{one[key]:.3f}" for key in ("index", "posterior_index", "limit")), f"{one['seconds']:.1f}"]
        for way, kinds in found["ways"].items()
        for kind, sizes in kinds.items()
        for size, one in sizes.items()
    ]  # fmt: skip
    head = ["", "panels", "sequences", "right number", "numbers found", "adjusted Rand index, trajectory",
            "posterior mode", "true parameters", "CPU seconds"]  # fmt: skip
    gains = [
        [found["titles"][kind], f"{int(size):,}", f"{one['n']}", "" if one["least"] is None else f"{one['least']:.1f}",
         f"{one['largest']:.1f}", f"{one['price']:.1f}"]
        for kind, sizes in found["gains"].items()
        for size, one in sizes.items()
    ]  # fmt: skip
    asked_of = ["panels", "sequences", "number", "least gain of a state that is there", "largest of one too many",
                "what the check asks"]  # fmt: skip
    return f"""## The number of states, learned

Simulated Gaussian panels where it is known: 20 observations a sequence, mean dwell 5 gaps, `InfiniteJumpMeans` with
nothing set. Without the check, births stop at {found["most_unchecked"]} states.

{markdown(head, rows)}

The check of births asks more of the log-likelihood than a state too many gives, and less than one that is there. Gains
of one state more, from `JumpMeans` with {found["gain_steps"]} closing EM steps:

{markdown(asked_of, gains)}

![How often each number of states is found]({folder}/states.svg)"""


def more_sets(r: dict[str, Any], folder: str) -> str:
    sleep, credit = r["sleep"], r["credit"]
    kinds = ("errors", "stage")
    rows = [
        [label, *(pm(sleep["means"][kind][key]) if key in sleep["means"][kind] else "" for kind in kinds)]
        for key, label in {"device": "the device's own reading", **NAMES}.items()
        if any(key in sleep["means"][kind] for kind in kinds)
    ]
    grades = [[NAMES[key], pm(value)] for key, value in credit["means"].items()]
    return f"""## Two more real sets

Neither is in the paper. **Sleep stages through a wearable** (yasa's sample data; hidden, categorical;
{sleep["n"]} splits, {100 * sleep["held_out"]:.0f} % held out): error on held-out readings, and on the true stage of
every epoch, states called by the stage they share most epochs with.

{markdown(["", "reading (%)", "true stage (%)"], rows)}

![Errors on sleep stages]({folder}/sleep.svg)

**Credit ratings** (transitionMatrix's data; direct; {credit["n"]} splits, {100 * credit["held_out"]:.0f} % held out):

{markdown(["", "error (%)"], grades)}

![Errors on credit ratings]({folder}/credit.svg)"""


def listing(said: list[Statement]) -> str:
    rows = [[one.about, one.text, f"**{one.verdict}**", one.numbers] for one in said]
    return f"""## Every statement of section 5

{markdown(["about", "the paper says", "verdict", "our numbers"], rows)}"""


def how(r: dict[str, Any]) -> str:
    made = r["table1"]["versions"]
    names = ", ".join(f"{key} {value}" for key, value in made.items() if key not in ("cpus", "code"))
    hours = sum(result["cpu_seconds"] for result in r.values()) / 3600
    return f"""## How this was made

`make reproduce` ({hours:.1f} hours of CPU time in all), or `python experiments/run.py [item ...]` for some of
{", ".join(r)}; `make reproduce-quick` for a few data sets. Seeds are the numbers of data sets and splits, from 0.
Every fit ran on one thread. Made with {names} on {made["cpus"]} cores."""


def base(name: str) -> str:
    """The paper's name of a set."""
    return (
        "synthetic_1" if name.startswith("synthetic_1") else "synthetic_2" if name.startswith("synthetic_2") else name
    )


def span(values: list[int]) -> str:
    return str(values[0]) if len(set(values)) == 1 else f"{min(values)} to {max(values)}"


def pm(value: dict[str, float], digits: int = 1) -> str:
    return f"{value['mean']:.{digits}f} ± {value['se']:.{digits}f}"


def markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    if not write():
        raise SystemExit("some results are missing; run `python experiments/run.py` first.")
