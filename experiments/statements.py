"""Every statement of the paper's section 5, judged by our numbers: holds, holds with a caveat, does not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import paper
from lab import NAMES, NOT_THE_PAPERS, SETS

HOLDS, CAVEAT, FAILS = "holds", "holds with a caveat", "does not hold"
STRICT = "printed_trajectory"
VARIANTS = [key for key in NAMES if key.endswith(("_trajectory", "_posterior"))]
S1, S2, MS, ICU = ("synthetic_1", "synthetic_1_regular"), ("synthetic_2", "synthetic_2_dense"), ("ms",), ("icu",)
# What words are taken to mean. "Comparable": the least share of the gap to EM that the paper itself calls so.
COMPARABLE = paper.gap_recovered("synthetic_2")
ON_PAR = 90.0
LARGE_MARGIN = 5.0
SIGNIFICANT_SHARE = 0.25
# Largest power of the size with which a run time still counts as linear.
LINEAR = 1.1


class Statement(NamedTuple):
    """What the paper says, our verdict, the numbers behind it, and the name of the analysis if it fails."""

    about: str
    text: str
    verdict: str
    numbers: str
    cause: str = ""


def judge(about: str, text: str, sets: tuple[str, ...], table: Any, holds: Callable[[str, str], bool],
          numbers: Callable[[str, str], str], cause: str) -> Statement:  # fmt: skip
    """Holds if true of the algorithm as printed on all sets; with a caveat if of another read-out, or on some sets."""
    true_of = {key: [name for name in sets if key in table[name]["means"] and holds(name, key)] for key in VARIANTS}
    shown = "; ".join(f"{title(name)}: {numbers(name, STRICT)}" for name in sets)
    if len(true_of[STRICT]) == len(sets):
        return Statement(about, text, HOLDS, shown, cause)
    others = [key for key in VARIANTS if true_of[key]]
    if not others:
        return Statement(about, text, FAILS, shown, cause)
    best = max(others, key=lambda key: (len(true_of[key]), -VARIANTS.index(key)))
    of = f"{NAMES[best]} ({'; '.join(f'{title(n)}: {numbers(n, best)}' for n in true_of[best])})"
    return Statement(about, text, CAVEAT, f"{shown}. True of {of}", cause)


def title(name: str) -> str:
    """The name of a set, real ones with what must be said beside their numbers."""
    return SETS[name].title + (f" ({NOT_THE_PAPERS})" if SETS[name].is_real else "")


def statements(r: dict[str, Any]) -> list[Statement]:
    """All of them, in the order of the paper."""
    sets = r["table1"]["sets"]
    return [*errors(sets), *speeds(sets), *search(r["search"]), *curves(r["curves"]), *paths(r["patients"]),
            *numbers_of_states(sets["icu"]), *sensitivity(r["sensitivity"]), *scaling(r["scaling"])]  # fmt: skip


def errors(sets: Any) -> list[Statement]:
    """What table 1 is said to show."""

    def mean(name: str, key: str) -> float:
        return sets[name]["means"][key]["mean"]

    def less(name: str, mine: str, other: str) -> tuple[float, float]:
        return tuple(sets[name]["paired"][mine][other])

    def below(other: str, by: float = 0.0) -> Callable[[str, str], bool]:
        return lambda name, key: sum(less(name, key, other)) < -by

    def shares(least: float) -> Callable[[str, str], bool]:
        return lambda name, key: sets[name]["recovered"].get(key, -1e9) >= least

    def against(other: str) -> Callable[[str, str], str]:
        return lambda name, key: (
            f"{mean(name, key):.1f} against {mean(name, other):.1f} %, "
            f"difference {less(name, key, other)[0]:+.1f} ± {less(name, key, other)[1]:.1f} points"
        )

    def gap(name: str, key: str) -> str:
        return (
            f"{mean(name, key):.1f} against {mean(name, 'em'):.1f} %, {sets[name]['recovered'][key]:.0f} % of the gap"
        )

    def cut(other: str) -> Callable[[str, str], float]:
        return lambda name, key: 100.0 * (1.0 - mean(name, key) / mean(name, other))

    half, fifth = cut("mcmc"), cut("pmcmc")
    made = [
        judge("Synthetic 1", "JUMP-means performs better than MCMC", S1, sets, below("mcmc"), against("mcmc"), "mcmc"),
        judge("Synthetic 1", "JUMP-means is almost on par with EM", S1, sets, shares(ON_PAR), gap, "path"),
        judge("Synthetic 2", "JUMP-means outperforms MCMC by a large margin", S2, sets, below("mcmc", LARGE_MARGIN),
              against("mcmc"), "mcmc"),
        judge("Synthetic 2", "JUMP-means performs comparably to EM", S2, sets, shares(COMPARABLE), gap, "symbols"),
        poor_mcmc(sets),
        judge("MS", "JUMP-means significantly outperforms MCMC", MS, sets, below("mcmc"), against("mcmc"), "mcmc"),
        judge("MS", f"the error is almost {paper.LESS_THAN_MCMC:g} % below that of MCMC", MS, sets,
              lambda n, k: half(n, k) >= 0.8 * paper.LESS_THAN_MCMC, lambda n, k: change(half(n, k)), "mcmc"),
        judge("MS", "JUMP-means is comparable with EM", MS, sets, shares(COMPARABLE), gap, "path"),
        judge("MIMIC", "JUMP-means significantly outperforms particle MCMC", ICU, sets, below("pmcmc"),
              against("pmcmc"), "icu"),
        judge("MIMIC", f"the error is {paper.LESS_THAN_PMCMC:g} % below that of particle MCMC", ICU, sets,
              lambda n, k: fifth(n, k) >= 0.8 * paper.LESS_THAN_PMCMC, lambda n, k: change(fifth(n, k)), "icu"),
        judge("MIMIC", "JUMP-means does better than the best EM", ICU, sets, below("em"), against("em"), "icu"),
    ]  # fmt: skip
    for name, about in (("synthetic_1", "Synthetic 1"), ("synthetic_2", "Synthetic 2"), ("ms", "MS"), ("icu", "MIMIC")):
        kind = {"synthetic_1": S1, "synthetic_2": S2, "ms": MS, "icu": ICU}[name]
        cause = "symbols" if name == "synthetic_2" else "icu" if name == "icu" else "path"
        text = "JUMP-means does better than the most common observation"
        made.append(judge(about, text, kind, sets, below("most_common"), against("most_common"), cause))
    return made


def change(cut: float) -> str:
    return f"{abs(cut):.0f} % {'below' if cut > 0 else 'above'}"


def poor_mcmc(sets: Any) -> Statement:
    """Is MCMC poor on Synthetic 2?"""
    worse = {name: sets[name]["means"]["mcmc"]["mean"] - sets[name]["means"]["em"]["mean"] for name in S2}
    verdict = HOLDS if min(worse.values()) > LARGE_MARGIN else CAVEAT if max(worse.values()) > LARGE_MARGIN else FAILS
    numbers = "; ".join(f"{title(name)}: MCMC {by:+.1f} points from EM" for name, by in worse.items())
    return Statement("Synthetic 2", "MCMC performs poorly, because it mixes slowly", verdict, numbers, "mcmc")


def speeds(sets: Any) -> list[Statement]:
    """Time of an iteration, and of a fit."""
    made = []
    for name, about, others in (("synthetic_1", "Synthetic 1", ("em", "mcmc")), ("icu", "MIMIC", ("pmcmc",))):
        found, theirs = sets[name]["median_seconds_per_iteration"], paper.SECONDS[name]
        keys = ("printed", *others)
        text = ", ".join(f"{key_name(key)} {theirs[key]:g} s" for key in keys)
        numbers = f"{title(name)}: " + ", ".join(f"{key_name(key)} {1e3 * found[key]:.1f} ms" for key in keys)
        verdict = FAILS
        if all(found["printed"] < found[key] for key in others):
            ratio = min(found[key] / found["printed"] for key in others)
            printed = min(theirs[key] / theirs["printed"] for key in others)
            numbers += f"; at least {ratio:.1f} times faster here, {printed:.1f} times in the paper"
            verdict = HOLDS if ratio >= 0.5 * printed else CAVEAT
        made.append(Statement(about, f"an iteration of JUMP-means is the fastest ({text})", verdict, numbers, "speed"))
    slow = sets["icu"]["median_seconds"]
    verdict = HOLDS if slow["pmcmc"] > 10 * slow["printed"] else CAVEAT if slow["pmcmc"] > slow["printed"] else FAILS
    numbers = f"{title('icu')}: a fit of particle MCMC {slow['pmcmc']:.1f} s, of JUMP-means {slow['printed']:.1f} s"
    return [*made, Statement("MIMIC", "particle MCMC cannot easily scale to larger data", verdict, numbers, "speed")]


def key_name(key: str) -> str:
    return {"printed": "JUMP-means", "em": "EM", "mcmc": "MCMC", "pmcmc": "particle MCMC"}[key]


def search(found: Any) -> list[Statement]:
    """The beam variant."""
    gains = {name: one["less_one"]["beam"] for name, one in found["sets"].items()}
    better = [name for name, (middle, half) in gains.items() if middle + half < 0]
    verdict = HOLDS if not better else CAVEAT if len(better) < len(gains) else FAILS
    numbers = "; ".join(f"{title(name)}: {m:+.2f} ± {h:.2f} points" for name, (m, h) in gains.items())
    text = "the beam search variant brings no significant improvement"
    return [Statement("Synthetic 1", text, verdict, numbers, "search")]


def curves(found: Any) -> list[Statement]:
    """Error over iterations, and over CPU time."""
    ours = ("plain_trajectory", "plain_posterior")
    shares: dict[str, dict[str, float]] = {key: {} for key in ours}
    times: dict[str, dict[str, tuple[float, float]]] = {key: {} for key in ours}
    for name, one in found["sets"].items():
        last = {key: line["errors"][-1]["mean"] for key, line in one["lines"].items()}
        best = min(value for key, value in last.items() if key not in ours)
        for key in ours:
            shares[key][name] = 100.0 * (one["most_common"] - last[key]) / (one["most_common"] - best)
            mine = first_time(one["lines"][key], last[key] + 0.2)
            rivals = [first_time(line, last[key] + 0.2) for other, line in one["lines"].items() if other not in ours]
            times[key][name] = mine, min(rivals)
    made = []
    fits = {key: all(share >= COMPARABLE for share in shares[key].values()) for key in ours}
    verdict = HOLDS if fits[ours[0]] else CAVEAT if fits[ours[1]] else FAILS
    numbers = "share of the gap to the best rival: " + "; ".join(
        f"{title(name)}: trajectory {shares[ours[0]][name]:.0f} %, posterior {shares[ours[1]][name]:.0f} %"
        for name in found["sets"]
    )
    text = "over the iterations JUMP-means is better than or comparable to the other methods on all four sets"
    made.append(Statement("Error over iterations", text, verdict, numbers, "symbols"))
    sooner = {key: [mine <= rival for mine, rival in times[key].values()] for key in ours}
    both = [a and fits[ours[0]] for a in sooner[ours[0]]]
    verdict = HOLDS if all(both) else CAVEAT if any(sooner[ours[0]] + sooner[ours[1]]) else FAILS
    numbers = "seconds to JUMP-means' own error, and until the first rival has it: " + "; ".join(
        f"{title(name)}: trajectory {spell(times[ours[0]][name])}, posterior {spell(times[ours[1]][name])}"
        for name in found["sets"]
    )
    text = "at equal CPU time JUMP-means is better than or comparable to the other methods on all four sets"
    return [*made, Statement("Error over CPU time", text, verdict, numbers, "speed")]


def first_time(line: Any, error: float) -> float:
    """Least CPU seconds for an error of at most so much; infinite if never."""
    pairs = zip(line["seconds"], line["errors"], strict=True)
    return min((seconds for seconds, point in pairs if point["mean"] <= error), default=float("inf"))


def spell(pair: tuple[float, float]) -> str:
    return " and ".join(f"{value:.2g}" if value < float("inf") else "never" for value in pair)


def paths(found: Any) -> list[Statement]:
    """Degenerate dwells."""
    made = []
    for name, about in (("ms", "MS"), ("icu", "MIMIC")):
        ml, mine = found["sets"][name]["ml"], found["sets"][name]["jump_means"]
        if name == "ms":
            verdict = HOLDS if ml["n_infinitesimal"] else FAILS
            numbers = (
                f"{title(name)}: {ml['n_infinitesimal']} of {ml['n_complete']} complete dwells, in "
                f"{ml['sequences_with_infinitesimal']} of {ml['n_sequences']} sequences; "
                f"{ml['in_the_picture']} in the one drawn"
            )
            text = "the maximum likelihood trajectory has infinitesimal dwells (two in the paper's picture)"
            made.append(Statement(about, text, verdict, numbers, "path"))
        verdict = HOLDS if mine["n_infinitesimal"] == 0 else FAILS
        numbers = (
            f"{title(name)}: {mine['n_infinitesimal']} of {mine['n_complete']} complete dwells infinitesimal, the "
            f"shortest {mine['shortest_in_gaps']:.2f} of the median gap"
        )
        made.append(Statement(about, "the trajectories of JUMP-means are not degenerate", verdict, numbers, "path"))
    n = found["sets"]["icu"]["n_states"]
    text = "the model captures different levels of blood pressure"
    made.append(Statement("MIMIC", text, HOLDS if n > 1 else FAILS, f"{title('icu')}: {n} states", "icu"))
    return made


def numbers_of_states(icu: Any) -> list[Statement]:
    """Model selection with EM."""
    em = icu["em_numbers"]
    means = dict(zip(em["numbers"], (value["mean"] for value in em["means"]), strict=True))
    best, second = means[em["best"]], means[em["second_best"]]
    apart = second - best
    verdict = HOLDS if apart > LARGE_MARGIN else CAVEAT if max(means.values()) - best > LARGE_MARGIN else FAILS
    numbers = (
        f"{title('icu')}: best {best:.1f} % ({em['best']} states), second best {second:.1f} % ({em['second_best']} "
        f"states), worst {max(means.values()):.1f} %; picked by BIC {icu['means']['em_bic']['mean']:.1f} %"
    )
    text = f"the second-best EM has an error of {paper.EM_SECOND_BEST:g} %: EM needs its number of states chosen well"
    return [Statement("MIMIC", text, verdict, numbers, "icu")]


def sensitivity(found: Any) -> list[Statement]:
    """Hyperparameters."""
    sets = found["sets"]
    good = {name: sets[name]["share_as_good"] for name in ("ms", "icu")}
    passed = [share >= SIGNIFICANT_SHARE for share in good.values()]
    verdict = HOLDS if all(passed) else CAVEAT if any(passed) else FAILS
    numbers = "; ".join(
        f"{title(name)}: {100 * share:.0f} % of {sets[name]['n_settings']:,} settings within "
        f"{found['as_good_within']:g} point of the least error {sets[name]['least']:.1f} %"
        for name, share in good.items()
    )
    text = "a significant fraction of the settings reaches the least error"
    made = [Statement("Hyperparameters", text, verdict, numbers, "weights")]
    apart, close = sets["icu"]["mean_far_apart"], sets["icu"]["mean_close"]
    known = apart is not None and close is not None
    verdict = HOLDS if known and apart > close + 1 else CAVEAT if known and apart > close else FAILS
    numbers = (
        f"{title('icu')}: mean error {apart:.1f} % where the weights are {found['far_apart']:g} times apart or more, "
        f"{close:.1f} % where {found['close']:g} times or less"
        if known
        else "not enough settings in this run"
    )
    text = "settings of different orders of magnitude lead to larger errors"
    made.append(Statement("Hyperparameters", text, verdict, numbers, "weights"))
    below = {name: sets[name]["share_below_most_common"] for name in ("ms", "icu")}
    passed = [share > 0.9 for share in below.values()]
    verdict = HOLDS if all(passed) else CAVEAT if any(passed) else FAILS
    numbers = "; ".join(
        f"{title(name)}: {100 * share:.0f} % of the settings do better than the most common observation, errors from "
        f"{sets[name]['least']:.1f} to {sets[name]['largest']:.1f} %"
        for name, share in below.items()
    )
    made.append(
        Statement("Hyperparameters", "JUMP-means is robust to its hyperparameters", verdict, numbers, "weights")
    )
    return made


def scaling(found: Any) -> list[Statement]:
    """Growth with the data."""
    line = found["lines"]["infinite"]
    rows = line["rows"]
    first, last = rows[0], rows[-1]
    points = last["n"] * found["n_observations"]
    slope = line["slope"]
    linear = slope is not None and slope <= LINEAR
    enough = points >= paper.LARGEST_POINTS
    took = f"{points:,} observations in {last['seconds']['mean']:.0f} s on one core"
    numbers = f"{took}; run time grows as size to the power {slope:.2f}" if slope is not None else took
    verdict = HOLDS if linear and enough else CAVEAT if linear or enough else FAILS
    text = "the algorithm handles up to a million points, its run time growing linearly"
    made = [Statement("Scaling", text, verdict, numbers, "scaling")]
    fell = first["error"]["mean"] - last["error"]["mean"]
    sure = 2 * (first["error"]["se"] ** 2 + last["error"]["se"] ** 2) ** 0.5
    verdict = HOLDS if fell > max(sure, 1.0) else CAVEAT if fell > sure else FAILS
    numbers = (
        f"{first['error']['mean']:.1f} ± {first['error']['se']:.1f} % with {first['n']:,} sequences, "
        f"{last['error']['mean']:.1f} % with {last['n']:,}"
    )
    text = "the error decreases significantly as the data grow"
    return [*made, Statement("Scaling", text, verdict, numbers, "scaling")]
