"""Simulation: panels from a process, with the true trajectories."""

from __future__ import annotations

import math
import reprlib
from dataclasses import replace
from typing import Any

import numpy as np

from .arrays import Bools, Floats, Ints
from .chance import as_generator
from .data.panel import Panel
from .data.trajectories import Trajectories
from .drawing import Stretches, draw_stretches, read_given
from .model.process import Process
from .options import count, listed, number, price

# Jumps to be expected at most: in all sequences, since they fill the memory, and in one, since each is a step.
MOST_JUMPS, MOST_JUMPS_EACH = 5e8, 1e6


def simulate(
    process: Process, n_sequences: int = 500, n_observations: int = 20, *, gaps: Any = "exponential",
    mean_gap: float = 1.0, exact: Any = None, covariates: Any = None, offsets: Any = 0.0, frailty_variance: float = 0.0,
    random_state: Any = 0,
) -> tuple[Panel, Trajectories]:  # fmt: skip
    """Draw trajectories of a process and look at them at irregular times.

    Parameters
    ----------
    process : Process
    n_sequences, n_observations : int
        S sequences of L observations each, the first at time 0.
    gaps : "exponential", "regular" or (S, L - 1) array
        Times between looks; drawn with mean `mean_gap`, all equal to it, or given (whatever broadcasts to that shape).
    mean_gap : float
        Finite and above 0.
    exact : list of states or "all", optional
        States whose entries are known to the instant, such as death: each is a row of kind "entry", in its place among
        the looks, and with its state known where the emission hides it. Or all moves are: every one has a row, and all
        rows are of kind "transition". Either way a sequence ends when it enters, for all to see, a state that cannot
        be left.
    offsets : float or list of float
        Standard deviation, in each column, of what is added to all readings of a sequence (to their logarithms where
        the emission is lognormal): people who differ in level.
    frailty_variance : float
        Variance of what multiplies all rates of a sequence, a gamma variable of mean 1: people who differ in how fast
        they move.
    covariates : {name: values}, frame or function, optional
        What the rates of a process with effects depend on: of each covariate a number or label for all, one for each
        sequence (S,), or one for each look (S, L), which holds until the next; or a frame with a row for each sequence;
        or a function of the times of the looks (S, L) that gives such a mapping. Rates are then constant from look to
        look, or to the next of the breaks that the effects know, and paths are drawn exactly.
    random_state : int, Generator or None

    Returns
    -------
    panel : Panel
        Labels where the state itself is seen, else what the emission shows.
    trajectories : Trajectories
        The truth.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> process = jm.Process([1.0, 0.5], [[0, 1], [1, 0]], states=["well", "ill"])
    >>> panel, truth = jm.simulate(process, n_sequences=3, n_observations=5, random_state=1)
    >>> panel.n_observations
    15
    """
    if not isinstance(process, Process):
        raise ValueError(
            f"process must be a jumpmeans.Process, got {type(process).__name__}; "
            "Process.from_generator(Q) makes one of a rate matrix, and a fitted model has its process_."
        )
    for name, n in (("n_sequences", n_sequences), ("n_observations", n_observations)):
        count(most=int(MOST_JUMPS)).check(name, n)
    rng = as_generator(random_state)
    S, L = int(n_sequences), int(n_observations)
    steps = _draw_gaps(gaps, mean_gap, (S, L - 1), rng)
    with np.errstate(over="ignore"):
        times = np.concatenate([np.zeros((S, 1)), np.cumsum(steps, axis=1)], axis=1)
    if not np.isfinite(times).all():
        raise ValueError(
            f"gaps must sum to a finite time, got {steps.max():g} as the longest; change the unit of time."
        )
    timed = _timed_states(exact, process)
    told: dict[str, Any] = {}
    known = read_given(covariates, times)
    paces = _draw_paces(frailty_variance, S, rng)
    if process.effects is None:
        _check_jumps(process, times[:, -1] * paces)
        truth = _draw_paths(process, times[:, -1], paces, rng)
    else:
        stretches = Stretches.of(process, times, known)
        _check_jumps(stretches.fastest(process), times[:, -1] * paces)
        truth = draw_stretches(process, stretches, paces, rng)
    ids, rows = np.repeat(np.arange(S), L), times.ravel()
    looks = np.arange(S * L)
    if timed.any():
        truth, ids, rows, at_move = _with_moves(truth, ids, rows, timed, process.rates == 0)
        every = isinstance(exact, str)
        seen = np.cumsum(~at_move)  # every sequence begins with a look
        looks = ids * L + seen - seen[np.searchsorted(ids, ids)]
        told["kinds"] = np.where(at_move | every, "transition" if every else "entry", "snapshot")
    if known:
        told["covariates"] = {name: column[looks] for name, column in known.items()}
    row_states = truth.at(rows, ids)
    code = {label: i for i, label in enumerate(process.states.tolist())}
    codes = np.array([code[label] for label in row_states.tolist()], dtype=np.int64)
    if timed.any() and not every and not process.emission.is_direct:
        told["true_states"] = [state if known else None for state, known in zip(row_states, at_move, strict=True)]
    spreads = _level_spreads(offsets, process)
    drawn = process.emission.sample(codes, rng)
    if spreads.any():
        drawn = drawn + (spreads * rng.standard_normal((S, len(spreads))))[ids]
    bad = np.flatnonzero(~np.isfinite(drawn).all(axis=1))
    if len(bad):
        raise ValueError(
            f"emission must show finite values, got {drawn[bad[0]].tolist()} in state {row_states.tolist()[bad[0]]!r}; "
            "check its parameters."
        )
    values = process.emission.named(drawn)
    table = values[0] if len(values) == 1 else np.column_stack([v.astype(object) for v in values])
    return Panel.from_arrays(rows, table, ids, **told), truth


def _draw_paces(variance: float, S: int, rng: np.random.Generator) -> Floats:
    """(S,) what multiplies all rates of each sequence."""
    price().check("frailty_variance", variance)
    return rng.gamma(1.0 / variance, variance, S) if variance > 0 else np.ones(S)


def _level_spreads(offsets: Any, process: Process) -> Floats:
    """(D,) standard deviation of the levels of people in each column."""
    columns = process.emission.columns
    rule = price() | listed(price(), "a list of them, one for each column", len(columns), len(columns))
    rule.check("offsets", offsets)
    spreads = np.array(np.broadcast_to(np.asarray(offsets, dtype=np.float64), len(columns)))
    odd = [
        column.name for column, sd in zip(columns, spreads.tolist(), strict=True) if sd > 0 and not column.has_levels
    ]
    if odd:
        raise ValueError(f"offsets must be 0 for columns other than gaussian and lognormal, got one for {odd[0]!r}.")
    return spreads


def _timed_states(exact: Any, process: Process) -> Bools:
    """(M,) whether entries into a state are known to the instant."""
    labels = process.states.tolist()
    if exact is None:
        return np.zeros(len(labels), dtype=bool)
    if isinstance(exact, str):
        if exact != "all":
            raise ValueError(f"exact must be a list of states or 'all', got {exact!r}; write [{exact!r}].")
        return np.ones(len(labels), dtype=bool)
    odd = [state for state in exact if state not in labels]
    if odd:
        raise ValueError(f"exact must name states among {reprlib.repr(labels)}, got {odd[0]!r}.")
    return np.array([label in list(exact) for label in labels])


def _with_moves(
    truth: Trajectories, ids: Ints, times: Floats, timed: Bools, final: Bools
) -> tuple[Trajectories, Ints, Floats, Bools]:
    """Rows for the looks and for the moves into `timed` states; a sequence ends with its move into a `final` one.

    Returns the trajectories up to there, sequence and time of each row, and whether it is a move.
    """
    sequence = np.repeat(np.arange(len(truth)), np.diff(truth.offsets))
    moves = np.ones(len(sequence), dtype=bool)
    moves[truth.offsets[:-1]] = False
    moves &= timed[truth.codes]
    ends = truth.end_times.copy()
    over = moves & final[truth.codes]
    ends[sequence[over]] = truth.start_times[over]
    kept = times <= ends[ids]
    kept &= ~((times == ends[ids]) & np.isin(ids, sequence[over]))
    all_ids = np.concatenate([ids[kept], sequence[moves]])
    all_times = np.concatenate([times[kept], truth.start_times[moves]])
    at_move = np.arange(len(all_ids)) >= np.count_nonzero(kept)
    order = np.lexsort((at_move, all_times, all_ids))
    return replace(truth, end_times=ends), all_ids[order], all_times[order], at_move[order]


def _draw_gaps(gaps: Any, mean_gap: float, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """(S, L - 1) times between looks."""
    if isinstance(gaps, str):
        if gaps not in ("exponential", "regular"):
            raise ValueError(f"gaps must be 'exponential', 'regular' or an array of shape {shape}, got {gaps!r}.")
        number(above=0).check("mean_gap", mean_gap)
        return rng.exponential(float(mean_gap), shape) if gaps == "exponential" else np.full(shape, float(mean_gap))
    try:
        steps = np.broadcast_to(np.asarray(gaps, dtype=np.float64), shape)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"gaps must be 'exponential', 'regular' or numbers of shape {shape}, got {reprlib.repr(gaps)}."
        ) from None
    bad = ~((steps > 0) & (steps < np.inf))
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise ValueError(f"gaps must be finite and above 0, got {steps[i, j]:g} after look {j} of sequence {i}.")
    return steps


def _check_jumps(process: Process, ends: Floats) -> None:
    """Refuse windows in which more jumps are to be expected than can be drawn."""
    # windows of about one length, to a factor of 2, share a bound
    longest = np.minimum(np.ceil(np.log2(ends[ends > 0])), 1023.0)
    lengths, counts = np.unique(2.0**longest, return_counts=True)
    each = np.array([_expected_jumps(process, length) for length in lengths.tolist()])
    if len(each) and (each.max() > MOST_JUMPS_EACH or each @ counts > MOST_JUMPS):
        raise ValueError(
            f"at most {MOST_JUMPS_EACH:.0e} jumps in a sequence and {MOST_JUMPS:.0e} in all can be drawn, got up to "
            f"{each.max():.1e} and {each @ counts:.1e} to be expected (the largest rate is {process.rates.max():g}, "
            f"the longest window {ends.max():g}); shorten the gaps or slow the process down."
        )


def _expected_jumps(process: Process, time: float) -> float:
    """A bound on the mean number of jumps until `time`, infinite where it is beyond all use.

    Let the window end at a random time, exponential with mean T. A state is then left before the end with chance
    a = λT / (1 + λT), so that the mean numbers of visits are v = π + v A P, and the jumps are Σ a v. With probability
    1/e the random time is past T, and jumps only become more: until T itself there are at most e times as many.
    """
    with np.errstate(divide="ignore", over="ignore"):
        a = 1.0 / (1.0 + 1.0 / (process.rates * time))
    try:
        visits = np.linalg.solve(np.eye(len(a)) - (a[:, None] * process.transition_probs).T, process.initial_probs)
    except np.linalg.LinAlgError:  # no end in sight, to all digits
        return np.inf
    jumps = float(math.e * (visits @ a))
    return jumps if 0 <= jumps < np.inf else np.inf


def _draw_paths(process: Process, ends: Floats, paces: Floats, rng: np.random.Generator) -> Trajectories:
    """One path for each window [0, end], all sequences advanced together, jump by jump, rates times `paces` (S,)."""
    S = len(ends)
    chain = np.cumsum(process.transition_probs, axis=1)
    start = np.cumsum(process.initial_probs)
    state = np.minimum(np.searchsorted(start, rng.random(S) * start[-1], side="right"), len(start) - 1)
    now = np.zeros(S)
    alive = np.arange(S)
    sequences, states, starts = [alive], [state], [now]
    while len(alive):
        rates = process.rates[state] * paces[alive]
        with np.errstate(divide="ignore"):
            now = now + np.where(rates > 0, rng.standard_exponential(len(alive)) / rates, np.inf)
        inside = now < ends[alive]
        alive, now, state = alive[inside], now[inside], state[inside]
        u = rng.random(len(alive))
        state = np.minimum((u[:, None] * chain[state][:, -1:] >= chain[state]).sum(axis=1), len(start) - 1)
        sequences.append(alive)
        states.append(state)
        starts.append(now)
    sequence = np.concatenate(sequences)
    order = np.argsort(sequence, kind="stable")
    offsets = np.searchsorted(sequence[order], np.arange(S + 1))
    return Trajectories(
        np.concatenate(states)[order].astype(np.int32), np.concatenate(starts)[order], offsets, ends,
        np.arange(S), process.states,
    )  # fmt: skip
