"""What follows a descent: EM steps for the process, and the decoder that goes with it.

The objective's own rates are biased where windows are short, and hard assignment of noisy symbols feeds on itself
(docs/choices.md); a few EM steps from where the descent ended mend both. Their process is the model that is published:
trajectories, probabilities and summaries all speak of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..arrays import AnyArray
from ..emissions import Record
from ..model.levels import Levels
from ..model.objective import Prices, Stats
from ..model.params import Params
from ..model.process import Process
from ..passes import Search, Sequences
from ..passes.sweep import MAX_ROUNDS
from ..stored import stored
from ..stored.kinds import require
from .advice import Drift, find_drift, warn_of_drift
from .descent import Descent, Model
from .em_steps import em_steps, steps_after_sample
from .levels import find_levels
from .publish import estimate_process
from .setup import PSEUDO_COUNT, are_auto

# Closing EM steps: as many as held-out error gains from (see docs/choices.md).
REFINE_DIRECT, REFINE_MEASURED, REFINE_SYMBOLS = 20, 10, 100
# What these steps add to every count of jumps and of symbols, for states hidden behind symbols.
SYMBOLS_PSEUDO_COUNT = 3.0
# The same where all moves were seen: events over exposure is the answer, and a move never seen is only just possible.
EXACT_PSEUDO_COUNT = 1e-9
# After as many steps on a sample, a step over all rows whose gain in log-likelihood is less, for each row, is the last.
# Measurements tell states apart and need few; what moves slowly otherwise is known no better than from the sample.
LEAST_GAIN, LEAST_GAIN_MEASURED = 1e-6, 1e-4
# ξ of the decode that follows them, under ζ = 1 in units of the noise that is left.
CLOSING_TRANSITION_WEIGHT = 2.0


@stored
class Decoder(NamedTuple):
    """All that a panel is decoded with; shown (M,) or (M, D): what a state on a trajectory shows."""

    params: Params
    prices: Prices
    search: Search
    shown: AnyArray

    @classmethod
    def of(cls, process: Process, prices: Prices, search: Search) -> Decoder:
        """The decoder of a process: its rates, jumps and emission, decoded to a fixed point."""
        params = Params(process.rates, process.transition_probs, process.emission, effects=process.effects)
        return cls(params, prices, search._replace(rounds=MAX_ROUNDS), process.emission.state_values())

    def check_fields(self) -> None:
        """Refuse parts that do not fit together, if they come from a file."""
        parts = isinstance(self.params, Params), isinstance(self.prices, Prices), isinstance(self.search, Search)
        require(all(parts) and isinstance(self.shown, np.ndarray), "a decoder must have all its parts")
        M, D = self.params.emission.n_states, len(self.params.emission.columns)
        require(len(self.prices.emission) == D, f"a decoder must have prices for {D} columns")
        require(self.prices.first is None or len(self.prices.first) == M, f"a decoder must have {M} first states")
        require(self.shown.shape in ((M,), (M, D)), f"a decoder must show something in each of {M} states")

    def decode(self, sequences: Sequences) -> tuple[Any, Stats]:
        """Best trajectories, and their statistics."""
        return sequences.decode(self.params, self.prices, self.search)


class Refined(NamedTuple):
    """The end of a fit: one process, its decoder, the trajectories decoded by it, and the levels of people.

    drift : what still moves of the rates of hidden states
    """

    process: Process
    decoder: Decoder
    dwells: Any
    levels: Levels | None = None
    drift: Drift | None = None


def closing_prices(prices: Prices, emission: Record, transition_weight: Any, emission_weight: Any) -> Prices:
    """Prices of a decode under a process: what was left to us follows its densities."""
    automatic = are_auto(emission_weight, len(emission.columns))
    prices = prices._replace(emission=np.where(automatic, emission.natural_weights(), prices.emission))
    if isinstance(transition_weight, str):
        prices = prices._replace(transition=CLOSING_TRANSITION_WEIGHT)
    return prices


def n_steps(refine: int | str, emission: Record) -> int:
    """Number of closing steps."""
    if not isinstance(refine, str):
        return int(refine)
    if emission.is_direct:
        return REFINE_DIRECT
    return REFINE_SYMBOLS if emission.hides_symbols else REFINE_MEASURED


def close(
    sequences: Sequences, sample: Sequences | None, descent: Descent, model: Model, labels: AnyArray, refine: int | str,
    prices: Callable[[Record], Prices], ascend: Callable[[Process, Sequences], tuple[Process, Sequences]],
) -> Refined:  # fmt: skip
    """From the end of a descent to one model: EM steps, then a decode under `prices(emission)`.

    Without any step the trajectories are those of the objective, and the process is what they show. `ascend` goes on
    to the maximum of the likelihood, for refine="converged". Where the descent began on a `sample`, so do the steps.
    """
    params, steps = descent.params, n_steps(refine, descent.params.emission)
    plain = Decoder(
        params, model.prices, model.search._replace(rounds=MAX_ROUNDS), params.emission.state_values()
    )  # fmt: skip
    if sample is not None and steps:  # what follows is not the trajectories': one more sweep will do
        dwells, stats = sequences.sweep(descent.dwells, params, model.prices, model.search)
    else:
        dwells, stats = plain.decode(sequences)
    # rows drawn to a base row need no count of their own, the process does
    free = params.base_row is not None or model.prices.integrated
    count = PSEUDO_COUNT if free else model.prices.jump_pseudo_count
    process = estimate_process(stats, params, model.constraints, count, labels)
    if steps == 0:
        if sequences.levels is not None:
            sequences = find_levels(sequences, process)
            dwells, _ = plain.decode(sequences)
        return Refined(process, plain, dwells, sequences.levels)
    del dwells, stats  # one set at a time: they are most of the memory of a fit
    behind_symbols = params.emission.hides_symbols
    count = SYMBOLS_PSEUDO_COUNT if behind_symbols else PSEUDO_COUNT
    if sequences.exact and params.emission.is_direct:
        count = EXACT_PSEUDO_COUNT
    if sample is not None:
        process, _ = em_steps(sample, process, model.constraints, steps, count)
        least = LEAST_GAIN if behind_symbols or params.emission.is_direct else LEAST_GAIN_MEASURED
        last = steps_after_sample(sequences, process, model.constraints, steps, count, least)
    else:
        last = []
        for n in (max(steps - 2, 0), *[1] * min(steps, 2)):
            process, sequences = em_steps(sequences, process, model.constraints, n, count)
            last.append(process)
    process = last[-1]
    if refine == "converged":
        process, sequences = ascend(process, sequences)
    drift = None
    if refine == "auto" and len(last) > 2:
        if params.emission.is_direct:
            warn_of_drift(last, steps)
        else:  # ends early on purpose, see REFINE_MEASURED: not to be warned of, but to be said
            drift = find_drift(last, steps, hidden=True)
    sequences = find_levels(sequences, process)
    decoder = Decoder.of(process, prices(process.emission), model.search)
    dwells, _ = decoder.decode(sequences)
    if behind_symbols:
        decoder = decoder._replace(shown=shown_on_trajectories(sequences, dwells, process))
    return Refined(process, decoder, dwells, sequences.levels, drift)


def shown_on_trajectories(sequences: Sequences, dwells: Any, process: Process) -> AnyArray:
    """(M,) or (M, D): the observation to expect where a trajectory is in each state.

    A trajectory is one path of many: where it is in state m, the process may hold others possible as well. What to
    expect there is the mean of the posteriors of all rows that trajectories give to m.
    """
    trust = sequences.agreement(dwells, process)
    total = trust.sum(axis=1, keepdims=True)
    return process.emission.expected(np.where(total > 0, trust / np.where(total > 0, total, 1.0), np.eye(len(trust))))
