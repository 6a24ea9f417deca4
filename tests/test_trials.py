"""Starts that are tried for a few rounds: the best of them goes on as if it had never waited."""

import itertools
import time

import numpy as np
import pytest

import jumpmeans as jm
from jumpmeans.comparators import EM, em
from jumpmeans.estimators import jump_means
from jumpmeans.fit.trials import STARTS, STEPS, SWEEPS, best_of, last
from jumpmeans.history import History

ONE = jm.engines.Threads(1)
UNEVEN = [[0, 0.7, 0.3], [0.5, 0, 0.5], [0.4, 0.6, 0]]


def panel_of(seed):
    process = jm.Process([1.5, 0.4, 0.06], UNEVEN, emission=jm.emissions.Gaussian([0.0, 3.0, 7.0], 1.0))
    return jm.simulate(process, 30, 15, mean_gap=0.5, random_state=seed)[0]


# A model of so many starts, what it falls to, where it tries them.
FITS = {
    "JumpMeans": (lambda **n: jm.JumpMeans(3, **n, engine=ONE), lambda model: model.objective_, jump_means),
    "EM": (lambda **n: EM(3, **n, engine=ONE), lambda model: -model.log_likelihood_, em),
}


class Run:
    """Falls through the costs given, and counts how far it was asked to."""

    def __init__(self, *costs):
        self.costs, self.n = costs, 0

    def __iter__(self):
        for cost in self.costs:
            self.n += 1
            yield cost


def race(runs, rounds):
    return best_of([iter(run) for run in runs], float, rounds)


def test_only_the_best_of_the_first_rounds_goes_on():
    runs = [Run(9, 8, 7, 1), Run(9, 5, 4), Run(6, 6, 6, 0)]
    assert race(runs, 2) == 4
    assert [run.n for run in runs] == [2, 3, 2]


def test_without_rounds_all_go_to_their_ends():
    runs = [Run(9, 8, 7, 1), Run(9, 5, 4), Run(6, 6, 6, 0)]
    assert race(runs, None) == 0
    assert [run.n for run in runs] == [4, 3, 4]


def test_of_equal_starts_the_first_goes_on_and_a_run_may_end_before_its_trial():
    assert last(iter([3, 2])) == 2
    runs = [Run(9, 5, 4), Run(5), Run(6, 5, 0)]
    assert race(runs, 2) == 4
    assert race([Run(5), Run(9, 5, 4)], 3) == 4
    assert race([Run(5), Run(9, 8, 7)], 3) == 5


def test_one_start_needs_no_trial():
    """The one that there is goes on, whatever comes after it: its end is asked for once."""
    run = Run(3, 2, 1)
    assert race([run], 1) == 1 and run.n == 3


@pytest.mark.parametrize("name", FITS)
def test_what_waited_goes_on_with_the_same_bits(name, monkeypatch):
    """Caught: a run that begins anew, or with what its rivals left, where its trial ended."""
    make, _, module = FITS[name]
    panel, alone = panel_of(0), []

    def one_by_one(runs, cost, rounds):
        ends = [last(run) for run in runs]
        alone.extend(tuple((end.timing if name == "JumpMeans" else end.history).values) for end in ends)
        return ends[0]

    chosen = tuple(make().fit(panel).history_.values)
    monkeypatch.setattr(module, "best_of", one_by_one)
    make().fit(panel)
    assert len(set(alone)) == 3 and chosen in alone


@pytest.mark.parametrize("name", FITS)
def test_trials_are_for_starts_whose_number_is_left_to_us(name, monkeypatch):
    """Caught: a number of starts of which only one went to its end."""
    make, _, module = FITS[name]
    asked = []

    def watched(runs, cost, rounds):
        asked.append((len(runs), rounds))
        return best_of(runs, cost, rounds)

    monkeypatch.setattr(module, "best_of", watched)
    make().fit(panel_of(0)), make(n_init=2).fit(panel_of(0))
    assert asked == [(STARTS, {"JumpMeans": SWEEPS, "EM": STEPS}[name]), (2, None)]


@pytest.mark.parametrize("name", FITS)
def test_a_number_of_starts_is_followed_to_the_end(name):
    """More of them are never worse, and never worse than as many that were only tried."""
    make, cost, _ = FITS[name]
    for seed in range(4):
        panel = panel_of(seed)
        ends = [cost(make(n_init=n).fit(panel)) for n in (1, 3, 6)]
        assert all(more <= fewer for fewer, more in itertools.pairwise(ends))
        assert ends[1] <= cost(make().fit(panel))


def test_what_a_history_waits_is_not_counted():
    """Caught: the clock of the start that went on, with what its rivals took in it."""
    history = History()
    history.add(1.0)
    with history.paused():
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
    history.add(0.5)
    assert np.diff(history.cpu_times)[0] < 0.2 and np.diff(history.wall_times)[0] < 0.2
