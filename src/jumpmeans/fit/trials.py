"""Several starts for little more than the price of one: each is tried for a few rounds, and only the best goes on.

Which start ends best shows long before any ends (short runs: Biernacki, Celeux and Govaert 2003), in the sweeps of a
descent as in the steps of a climb. A run is an iterator of where it is after each round, so that it can wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, TypeVar

from ..progress import status

Place = TypeVar("Place")

# Starts of hidden states where their number is left to us, and the rounds that each is tried for (docs/choices.md).
STARTS, SWEEPS, STEPS = 3, 5, 10


def last(run: Iterable[Place]) -> Place:
    """Where a run ends."""
    return deque(run, maxlen=1)[0]


def trial(n_init: Any, rounds: int) -> int | None:
    """Rounds that starts are tried for; None, to their ends, where a number of starts was asked for."""
    return rounds if isinstance(n_init, str) else None


def best_of(runs: list[Iterator[Place]], cost: Callable[[Place], float], rounds: int | None) -> Place:
    """The end of the run that costs least after so many rounds; of those that cost the same, of the first."""
    rounds = rounds if len(runs) > 1 else None
    tried = []
    for k, run in enumerate(runs):
        with status(f"start {k + 1} of {len(runs)}"):
            tried.append(last(islice(run, rounds)))
    best = min(range(len(runs)), key=lambda k: cost(tried[k]))
    if rounds is None:
        return tried[best]
    with status("the best start"):
        return last(chain([tried[best]], runs[best]))
