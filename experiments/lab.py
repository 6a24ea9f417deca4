"""The data sets and the methods of the experiments: every script takes both from here."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from protocol import paired_interval, percent_wrong, synthetic_1, synthetic_2

import jumpmeans as jm
from jumpmeans.comparators import EM, CarriedForward, Gibbs, Interpolation, KernelSmoother, MostCommon, ParticleGibbs
from jumpmeans.engines import Threads

ONE = Threads(1)
ITERATIONS = 300
MOST_STATES = 12
NOT_THE_PAPERS = "not the paper's data"


class Set(NamedTuple):
    """A kind of data: how it is called, the share held out, and what every model of it must know."""

    title: str
    held_out: float
    options: dict[str, Any]
    is_real: bool = True
    bins: tuple[float, ...] | None = None
    prior_dwell_time: float | str = 1.0
    mean_gap: float = 1.0
    gaps: str = "exponential"


TEN: dict[str, Any] = {"emission": "direct", "states": list(range(10))}
FIVE: dict[str, Any] = {"n_states": 5, "emission": "categorical"}
SETS = {
    "synthetic_1": Set("Synthetic 1, gaps ~ Exp(1)", 0.3, TEN, False),
    "synthetic_1_regular": Set("Synthetic 1, gaps of 5", 0.3, TEN, False, mean_gap=5.0, gaps="regular"),
    "synthetic_2": Set("Synthetic 2, gaps ~ Exp(1)", 0.3, FIVE, False),
    "synthetic_2_dense": Set("Synthetic 2, gaps ~ Exp(0.3)", 0.3, FIVE, False, mean_gap=0.3),
    "ms": Set("MS", 0.5, {"emission": "direct", "states": [1, 2, 3]}),
    "icu": Set("ICU", 0.25, {"emission": "gaussian"}, bins=jm.datasets.PRESSURE_BINS),
    "sleep": Set("Sleep", 0.3, {"n_states": 4, "emission": "categorical"}, prior_dwell_time="auto"),
    "credit": Set("Credit", 0.3, {"emission": "direct", "states": list(range(9))}, prior_dwell_time="auto"),
}


class Case(NamedTuple):
    """One data set, or one split of a real one: what a method may see, and what was held out."""

    kind: Set
    panel: jm.Panel
    masked: jm.Panel
    held: Any
    seed: int
    process: jm.Process | None = None


def load(name: str, seed: int) -> Case:
    """Data set number `seed` of a synthetic kind, or split number `seed` of a real one."""
    kind, process = SETS[name], None
    if name.startswith("synthetic_1"):
        process, panel, _ = synthetic_1(seed, kind.gaps, kind.mean_gap)
    elif name.startswith("synthetic_2"):
        process, panel, _ = synthetic_2(seed, kind.mean_gap)
    else:
        panel = {
            "ms": jm.datasets.load_edss,
            "icu": jm.datasets.load_icu_pressure,
            "sleep": jm.datasets.load_sleep,
            "credit": jm.datasets.load_credit_ratings,
        }[name]()
    masked, held = jm.hold_out(panel, kind.held_out, random_state=seed)
    return Case(kind, panel, masked, held, seed, process)


# The hyperparameters and the start that the paper prints. Its time units are those of the sets here; those of ICU are
# for readings in mmHg.
PRINTED: dict[str, Any] = {
    "transition_weight": 1.0, "prior_dwell_count": 1.0, "prior_dwell_time": 0.5, "pseudo_count": 0.0, "refine": 0,
}  # fmt: skip
PRINTED_HIDDEN: dict[str, Any] = {**PRINTED, "emission_weight": 1.0, "init": "noise", "n_init": 1}
# From one state, where the paper starts, its move finds no jump to work on (see causes.py): from two it does.
PRINTED_INFINITE: dict[str, Any] = {
    "emission_weight": 0.005, "transition_weight": 0.005, "shared_row_weight": 0.005, "prior_time": 5.0,
    "state_cost": 5.0, "objective": "printed", "proposals": "paper", "check": False, "start_states": 2, "refine": 0,
}  # fmt: skip
NAMES = {
    "most_common": "most common observation",
    "carried_forward": "last value carried forward",
    "interpolation": "linear interpolation",
    "kernel_smoother": "kernel smoother",
    "em": "EM",
    "em_bic": "EM, number of states by BIC",
    "mcmc": "MCMC (Gibbs)",
    "pmcmc": "particle MCMC",
    "pmcmc_gaussian": "particle MCMC on the readings",
    "printed_trajectory": "JUMP-means as printed, trajectory",
    "printed_posterior": "JUMP-means as printed, posterior",
    "plain_trajectory": "JUMP-means, our weights, trajectory",
    "plain_posterior": "JUMP-means, our weights, posterior",
    "refined_trajectory": "JUMP-means, EM-refined, trajectory",
    "refined_time": "JUMP-means, EM-refined, trajectory that errs least",
    "refined_posterior": "JUMP-means, EM-refined, posterior",
    "bayes_limit": "posterior, true parameters (the limit)",
}
JUMP_MEANS = ("printed", "plain", "refined")


def make(method: str, case: Case, iterations: int = ITERATIONS, **changes: Any) -> Any:
    """An unfitted model by the name of its method."""
    kind = case.kind
    common: dict[str, Any] = {**kind.options, "engine": ONE, "random_state": case.seed}
    if method == "em":
        return EM(max_iter=iterations, **common, **changes)
    if method == "mcmc":
        burn_in = iterations // 3
        thin = 2 if iterations - burn_in > 1 else 1
        kept = (iterations - burn_in) // thin
        prior = kind.prior_dwell_time
        return Gibbs(n_samples=kept, burn_in=burn_in, thin=thin, prior_dwell_time=prior, **common, **changes)
    if method.startswith("pmcmc"):
        del common["emission"]
        family = "gaussian" if method == "pmcmc_gaussian" else "categorical"
        return ParticleGibbs(emission=family, n_iter=iterations, burn_in=iterations // 3, **common, **changes)
    infinite = "n_states" not in kind.options and kind.options["emission"] != "direct"
    settings: dict[str, Any] = {} if method == "refined" else {"refine": 0}
    if method == "printed":
        hidden = PRINTED_INFINITE if infinite else PRINTED_HIDDEN
        settings = dict(PRINTED if kind.options["emission"] == "direct" else hidden)
    model: Any = jm.InfiniteJumpMeans if infinite else jm.JumpMeans
    return model(**{**common, "max_iter": iterations, **settings, **changes})


def data_for(method: str, case: Case) -> tuple[jm.Panel, Any, Any]:
    """What a method sees, what was held out, and the bins of the score: particle MCMC sees categories."""
    if method == "pmcmc":
        panel = jm.datasets.load_icu_pressure("nih4")
        masked, held = jm.hold_out(panel, case.kind.held_out, random_state=case.seed)
        return masked, held, None
    return case.masked, case.held, case.kind.bins


_WARM: set[tuple[str, str]] = set()


def fit(method: str, case: Case, iterations: int = ITERATIONS, **changes: Any) -> tuple[Any, float]:
    """The fitted model and the CPU seconds it took, kernels loaded before."""
    masked = data_for(method, case)[0]
    if (method, case.kind.title) not in _WARM:
        _WARM.add((method, case.kind.title))
        make(method, case, 2, **changes).fit(masked)
    begun = time.process_time()
    model = make(method, case, iterations, **changes).fit(masked)
    return model, time.process_time() - begun


def read_outs(method: str, case: Case, model: Any) -> dict[str, tuple[float, float]]:
    """Error (%) of every read-out of a fitted model, and the CPU seconds it took."""
    masked, held, bins = data_for(method, case)
    if method in JUMP_MEANS:
        ways = {f"{method}_{how}": {"method": how} for how in ("trajectory", "posterior")}
    else:
        ways = {method: {"method": "posterior"}}
    if method == "refined":
        ways["refined_time"] = {"method": "trajectory", "criterion": "time"}
    found = {}
    for name, how in ways.items():
        begun = time.process_time()
        values = model.predict_value(masked, **how)
        found[name] = percent_wrong(values, held, bins), time.process_time() - begun
    return found


def errors(method: str, case: Case, model: Any) -> dict[str, float]:
    """Error (%) of every read-out of a fitted model."""
    return {name: error for name, (error, _) in read_outs(method, case, model).items()}


def assess(set: str, seed: int, method: str) -> dict[str, Any]:
    """Task: errors of one method on one data set, the time of its fit and the number of its iterations."""
    case = load(set, seed)
    if method == "by_hand":
        return {"errors": by_hand(case)}
    if method == "em_numbers":
        return em_numbers(case)
    model, seconds = fit(method, case)
    found = {"errors": errors(method, case, model), "seconds": seconds, "per_iteration": per_iteration(model)}
    if hasattr(model, "n_states_"):
        found["n_states"] = int(model.n_states_)
    return found


def per_iteration(model: Any) -> float:
    """CPU seconds of an iteration of the best start, all cores together."""
    return float(model.history_.cpu_times[-1] / len(model.history_))


def by_hand(case: Case) -> dict[str, float]:
    """Errors (%) of what people do without a model, and of the truth where it is known."""
    kind = case.kind
    labels = "auto" if kind.bins else "direct"
    rules = {
        "most_common": MostCommon(bins=kind.bins, emission=labels),
        "carried_forward": CarriedForward(emission=labels),
        "interpolation": Interpolation(emission=labels),
        "kernel_smoother": KernelSmoother(emission=labels),
    }
    found = {
        name: percent_wrong(rule.fit(case.masked).predict_value(case.masked), case.held, kind.bins)
        for name, rule in rules.items()
    }
    if case.process is not None:
        limit = jm.JumpMeans.from_process(case.process).predict_value(case.masked, "posterior")
        found["bayes_limit"] = percent_wrong(limit, case.held)
    return found


def em_numbers(case: Case) -> dict[str, Any]:
    """EM with 1 to 12 states: error (%) and BIC of each."""
    numbers = list(range(1, MOST_STATES + 1))
    found, by_state, bics, seconds = [], [], [], 0.0
    n = int(case.masked.observed.sum())
    for M in numbers:
        model, spent = fit("em", case, n_states=M)
        seconds += spent
        found.append(errors("em", case, model)["em"])
        by_state.append(percent_wrong(model.predict_value(case.masked, "trajectory"), case.held, case.kind.bins))
        bics.append(-2.0 * model.log_likelihood_ + (M * (M - 1) + M - 1 + 2 * M) * float(np.log(n)))
    picked = int(np.argmin(bics))
    return {
        "errors": {"em_bic": found[picked]}, "numbers": numbers, "em": found, "em_by_state": by_state, "bic": bics,
        "picked": numbers[picked], "seconds": seconds,
    }  # fmt: skip


def mean_and_error(values: Any) -> dict[str, float]:
    """Mean and its standard error."""
    x = np.asarray(values, dtype=float)
    return {"mean": float(x.mean()), "se": float(x.std(ddof=1) / np.sqrt(len(x))) if len(x) > 1 else 0.0}


def compare(columns: dict[str, list[float]], mine: str) -> dict[str, list[float]]:
    """95 % intervals (middle, half width) of one method's error less each other's, paired by data set."""
    return {
        other: list(paired_interval(columns[mine], values))
        for other, values in columns.items()
        if other != mine and len(values) == len(columns[mine]) > 1
    }
