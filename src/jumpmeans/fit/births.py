"""The search for the number of states: propose, screen, score by the objective, check births, accept."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from ..history import History
from ..model.params import Params
from ..passes import Sequences
from ..stored import stored
from .descent import Descent, Model, descend
from .evidence import evidence
from .proposals import BIRTHS, PROPOSALS, Proposal, Scene, timeline

# Sweeps that score a proposal, and how many of each kind are scored in a round.
TRIAL_SWEEPS = 3
TRIALS = {"emissions": 3, "pair": 2, "dwells": 1, "merge": 2, "drop": 1}
# A round whose J is no lower than this, relatively, is no progress.
LEAST_FALL = 1e-9


@stored
class Step(NamedTuple):
    """One accepted move: its kind, the number of states and the objective after it."""

    kind: str
    n_states: int
    objective: float


class Trial(NamedTuple):
    """A proposal after a few sweeps of its own."""

    kind: str
    run: Descent


class Rules(NamedTuple):
    """What the search may do: kinds of proposals, most states, whether births are checked, length of a descent."""

    kinds: tuple[str, ...]
    max_states: int
    check: bool
    max_iter: int
    tol: float


def search_states(sequences: Sequences, scene: Scene, rules: Rules, n: float) -> tuple[Descent, list[Step]]:
    """Accept the proposal that lowers the objective most, as long as there is one; births must pass the check too.

    n is the weighted number of observations. The history of the run is that of all accepted descents; so is its timing.
    """
    timing = History()

    def model_of(run: Descent) -> Model:
        return scene.model(len(run.params.rates))

    def settle(params: Params, dwells: Any) -> Descent:
        model = scene.model(len(params.rates))
        return descend(sequences, params, model, rules.max_iter, rules.tol, dwells, timing)

    def worth(sequences: Sequences, run: Descent) -> Callable[[], float]:
        """The evidence of a run, when it is first asked for: only births ask, and it takes longer than their trials."""
        return cache(lambda: evidence(sequences, run, model_of(run).constraints, n))

    run = settle(scene.params, None)
    sequences = sequences.at(run.levels)
    path = [Step("start", len(run.params.rates), run.cost.total)]
    history = list(run.history)
    known = worth(sequences, run)
    while True:
        block, features = scene.seen(run.levels)
        dwells = sequences.fetch(run.dwells)
        scene = scene._replace(params=run.params, stats=run.stats, dwells=dwells, block=block, features=features)
        for trial in trials(sequences, scene, run.dwells, rules):
            if not lower(trial.run.cost.total, run.cost.total):
                continue
            found = worth(sequences, trial.run)
            if rules.check and trial.kind in BIRTHS and found() <= known():
                continue
            known = found
            timing.add(trial.run.cost.total)
            sequences = sequences.at(trial.run.levels)
            run = settle(trial.run.params, trial.run.dwells)
            sequences = sequences.at(run.levels)
            history += [trial.run.cost, *run.history]
            path.append(Step(trial.kind, len(run.params.rates), run.cost.total))
            break
        else:
            return run._replace(history=history, timing=timing), path


def lower(new: float, old: float) -> bool:
    """Whether the objective fell by more than rounding."""
    return new < old - LEAST_FALL * abs(old)


def trials(sequences: Sequences, scene: Scene, dwells: Any, rules: Rules) -> list[Trial]:
    """The most promising proposals of each kind after a few sweeps from `dwells`, lowest objective first."""
    out = []
    for proposal in screened(scene, rules.kinds, len(scene.params.rates) < rules.max_states):
        params = proposal.make()
        run = descend(sequences, params, scene.model(len(params.rates)), TRIAL_SWEEPS, 0.0, dwells)
        out.append(Trial(proposal.kind, run))
    return sorted(out, key=lambda trial: trial.run.cost.total)


def screened(scene: Scene, kinds: tuple[str, ...], may_grow: bool) -> list[Proposal]:
    """Of each kind of move, the few of lowest expected objective."""
    time = timeline(scene.block, scene.dwells, bool(scene.model(1).search.first_running))
    chosen: list[Proposal] = []
    for kind in kinds:
        if kind in BIRTHS and not may_grow:
            continue
        found = sorted(PROPOSALS[kind](scene, time), key=lambda proposal: proposal.expected)
        chosen += found[: TRIALS[kind]]
    return chosen
