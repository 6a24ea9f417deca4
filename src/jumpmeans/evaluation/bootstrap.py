"""How sure are we: the model refitted to resampled sequences, and percentile intervals of whatever it answers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..arrays import AnyArray, Floats, Ints
from ..chance import as_generator
from ..data.chosen import resampled
from ..data.interval import LEVEL, Interval, asked, numbers
from ..engines import get_engine
from ..engines.scanned import ScannedPanel
from ..errors import first_few
from ..estimators.read_out import ReadOut, as_data
from ..fit.setup import Data, counted
from ..options import count
from ..progress import quiet, track
from .folds import cluster_of, in_parallel, shared_engine


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """What `bootstrap` found.

    Attributes
    ----------
    model : fitted model
        The one that was given.
    replicates : list of fitted models
        It, refitted to each resampled panel, their states in the order of the model's own.
    failures : list of str
        Why refits failed, one entry for each that did. Intervals are of the others.
    warned : dict of str to int
        What refits warned of, and how many did.
    """

    model: Any
    replicates: list[Any] = field(repr=False)
    failures: list[str]
    warned: dict[str, int]

    def values(self, answer: Callable[[Any], Any]) -> Floats:
        """(n, ...) what each replicate answers, as plain numbers."""
        ask = asked(answer)
        shape = np.shape(numbers(ask(self.model)))
        found = [numbers(ask(replicate)) for replicate in self.replicates]
        odd = next((x for x in found if x.shape != shape), None)
        if odd is not None:
            raise ValueError(
                f"an answer must have one shape for all refits, got {shape} of the model and {odd.shape} of a refit; "
                "ask for something that every refit has, such as a rate."
            )
        return np.stack(found)

    def interval(self, answer: Callable[[Any], Any], level: float = 0.9) -> Interval:
        """Percentile interval of an answer.

        Parameters
        ----------
        answer : function of a fitted model
            Such as ``lambda m: m.process_.sojourn()``; gives a Table, an array or a number.
        level : float
            Chance that the bounds hold the truth.

        Returns
        -------
        Interval
            Estimate of the model itself, low and high in the same form.

        Notes
        -----
        Bounds are answers of refits, never between two of them, the wider ones: an infinite one, such as the dwell of
        a state that a refit never leaves, stays infinite. An answer that one refit does not have (NaN) has no bounds.
        """
        LEVEL.check("level", level)
        found = self.values(answer)
        low = np.quantile(found, 0.5 * (1 - level), axis=0, method="lower")
        high = np.quantile(found, 0.5 * (1 + level), axis=0, method="higher")
        return Interval.of(answer(self.model), low, high, level)


def bootstrap(
    model: Any,
    panel: Any,
    n: int = 200,
    *,
    groups: Any = None,
    engine: Any = None,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Bootstrap:
    """Refit a fitted model to panels resampled from its own, to see how far its answers move.

    Parameters
    ----------
    model : fitted JumpMeans, InfiniteJumpMeans or EM
        Left as it is. Refits start from its parameters, so that state k of every refit is its state k.
    panel : Panel, frame or ScannedPanel
        The one it was fitted to. Refits to a panel on a cluster follow one another, each on all of its workers.
    n : int
        Number of refits; 200 are enough for intervals of 90 %, 1000 for 99 %.
    groups : (S,) labels, or False, optional
        What is drawn as a whole: sequences that share a label. By default the groups of the panel, where it has any;
        False draws every sequence by itself.
    engine : "threads" or an engine, optional
        Where each refit runs; by default where the model did. An engine of your own must be one that can be pickled, or
        goes with n_jobs=1. On a cluster ("dask") every refit is a task of one thread on one worker.
    n_jobs : int, optional
        Processes to work in, all cores by default; does not change the result. With more than one, a "threads"
        engine has a single thread in each.
    random_state : int, Generator or None
        Decides what is drawn.

    Returns
    -------
    Bootstrap
        Ask it for the `interval` of any answer of the model.

    Notes
    -----
    As many sequences (or groups) as there are, are drawn with replacement. A sequence drawn k times counts k times its
    weight; one of weight w is one sequence all the same, for it was drawn once.

    An `InfiniteJumpMeans` of hidden states is refitted with its number of states: intervals do not tell how sure that
    number is. Of `Gibbs` and `ParticleGibbs` read the samples: they have a posterior.

    A refit that fails is left out and told by a warning; what refits warn of is kept in `warned`.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> panel = jm.datasets.load_edss()
    >>> model = jm.comparators.EM(emission="direct").fit(panel)
    >>> sure = jm.bootstrap(model, panel, n=20, n_jobs=1)
    >>> low, high = sure.interval(lambda m: m.process_.sojourn())
    >>> bool(low[1, "mean"] < model.process_.sojourn()[1, "mean"] < high[1, "mean"])
    True
    """
    if not isinstance(model, ReadOut):
        raise ValueError(f"model must be a fitted model of a process, got {type(model).__name__}.")
    if model.no_refit:
        raise ValueError(
            f"model must be a JumpMeans, an InfiniteJumpMeans or an EM, got {type(model).__name__}: {model.no_refit}."
        )
    model._fitted()
    count().check("n", n)
    panel = counted(as_data(panel))
    units = _units(panel, groups)
    draws, seeds = _draws(as_generator(random_state), int(units.max()) + 1, n)
    if engine is not None:
        get_engine(engine)  # refused now rather than in every refit
    there = isinstance(panel, ScannedPanel)
    own = {} if there else shared_engine(model, n_jobs, engine)
    tasks = ((model, panel, draw[units], {"random_state": seed} | own) for draw, seed in zip(draws, seeds, strict=True))
    found: list[Refit]
    if there:
        found = [_refit(*next(tasks)) for _ in track(n, "bootstrap")]
    else:
        found = in_parallel(_refit, list(tasks), n_jobs, "bootstrap", cluster_of(model, engine))
    failures = [refit.failure for refit in found if refit.failure]
    if len(failures) == n:
        raise ValueError(f"at least one refit must succeed, got none of {n}: {failures[0]}")
    if failures:
        warnings.warn(
            f"{len(failures)} of {n} refits failed and are left out of all intervals, which may be too narrow: "
            f"{first_few(dict.fromkeys(failures))}.",
            UserWarning,
            stacklevel=2,
        )
    said = Counter(message for refit in found for message in refit.said)
    return Bootstrap(model, [refit.model for refit in found if not refit.failure], failures, dict(said))


def _draws(rng: np.random.Generator, k: int, n: int) -> tuple[Iterator[Ints], list[int]]:
    """Times (k,) that each of k is drawn, for n draws one after the other, and a seed for each."""
    again, share = deepcopy(rng), np.full(k, 1.0 / k)
    for _ in range(n):  # and made again when they are wanted: all of them at once would be n panels of numbers
        rng.multinomial(k, share)
    return (again.multinomial(k, share) for _ in range(n)), rng.integers(2**31, size=n).tolist()


class Refit(NamedTuple):
    """A refitted model, why it failed ("" if it did not), and what it warned of."""

    model: Any
    failure: str
    said: list[str]


def _refit(model: Any, panel: Data, times: Ints, options: dict[str, Any]) -> Refit:
    with warnings.catch_warnings(record=True) as caught, quiet():
        warnings.simplefilter("always")
        try:
            drawn = panel.resampled(times) if isinstance(panel, ScannedPanel) else resampled(panel, times)
            again = model._refitted(drawn, options)
            again.__dict__.pop("_seen_", None)  # a panel for each refit would be kept
        except Exception as failure:  # in whatever way it fails: it is told
            return Refit(None, str(failure), [])
    return Refit(again, "", list(dict.fromkeys(warning.category.__name__ for warning in caught)))


def _units(panel: Data, groups: Any) -> Ints:
    """(S,) which draw each sequence belongs to."""
    own = panel.groups if groups is None else groups
    if own is None or own is False:
        units = np.arange(panel.n_sequences)
    else:
        labels: AnyArray = np.asarray(own)
        if labels.shape != (panel.n_sequences,):
            raise ValueError(
                f"groups must be a label for each of the {panel.n_sequences} sequences, or False, got shape "
                f"{labels.shape}."
            )
        index = {label: i for i, label in enumerate(dict.fromkeys(labels.tolist()))}
        units = np.array([index[label] for label in labels.tolist()])
    if units.max() == 0:
        raise ValueError(
            "there must be at least two sequences (or groups) to draw from, got one; a bootstrap asks what other "
            "patients would have shown."
        )
    return units
