"""Many fits scored on the same hold-outs: the folds, how predictions are judged, and fits side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, cpu_count, delayed

from ..arrays import Floats, sum_in_order
from ..data.bins import bins_by_column
from ..data.chosen import held_rows
from ..data.panel import Panel
from ..emissions import find_families
from ..engines import Dask, Threads, get_engine
from ..engines.scanned import ScannedPanel
from ..estimators.read_out import METHODS
from ..fit import setup
from ..fit.setup import Data, measured_panel
from ..options import count
from ..progress import track
from .hold_out import Truth, check_fraction, hold_out, without
from .scores import differences, held_out_rows, present_pairs

MOST_FOLDS = 10_000


class HeldOut(NamedTuple):
    """A panel without some of its values, and these."""

    masked: Panel
    truth: Truth


class HeldOutThere(NamedTuple):
    """A panel on a cluster without a share of its values, and the panel with them: workers know which they are."""

    masked: ScannedPanel
    panel: ScannedPanel
    fraction: float
    seed: int


class Scorer(NamedTuple):
    """How predictions are judged, column by column.

    method : what predicts; labels : (D,) whether a column is scored as labels, which bins make of numbers; units : (D,)
    units of the other columns' errors; bins : as the user gave them; bounds : (D,) the same by column; measure :
    what the error is, in words.
    """

    method: str
    labels: tuple[bool, ...]
    units: tuple[float, ...]
    bins: Any
    bounds: list[Floats | None]
    measure: str

    def error(self, model: Any, held: HeldOut | HeldOutThere) -> float:
        """Error of a fitted model on what was held out."""
        far, n = self.sums(model, held) if isinstance(held, HeldOut) else self.sums_there(model, held)
        if not n.any():
            raise ValueError("fraction must leave out at least one value, got none held out; take a larger one.")
        if all(self.labels):
            return float(far.sum() / n.sum())
        return float(np.mean(far[n > 0] / n[n > 0]))

    def sums(self, model: Any, held: HeldOut) -> Floats:
        """Sums of errors, and how many there are, (2, D)."""
        true = held.truth.values
        guess = held_out_rows(model.predict_value(held.masked, method=self.method), held.truth, true.shape[1:])
        found = np.zeros((2, len(self.labels)))
        for d, (is_label, unit, bounds) in enumerate(zip(self.labels, self.units, self.bounds, strict=True)):
            far = differences(*present_pairs(guess, true, d), bounds, wrong=is_label)
            found[:, d] = np.sum(far) if is_label else np.sum(np.abs(far) / unit), len(far)
        return found

    def sums_there(self, model: Any, held: HeldOutThere) -> Floats:
        """The same of a panel on a cluster, added in the order of its files."""
        light = model._light()
        shared = light, self, held.fraction, held.seed
        tasks = {p: (first, *shared) for p, first in enumerate(held.panel.first_rows)}
        return np.asarray(sum_in_order(held.panel.each_own("score", score_part, tasks)))


def score_part(panel: Panel, first: int, model: Any, scorer: Scorer, fraction: float, seed: int) -> Floats:
    """Sums of errors in one file of a panel on a cluster; `first` is the number of its first row."""
    chosen = held_rows(panel, fraction, seed, first)
    if not len(chosen):
        return np.zeros((2, panel.n_columns))
    return scorer.sums(model, HeldOut(*without(panel, chosen)))


def make_scorer(model: Any, panel: Data, method: str, bins: Any) -> Scorer:
    """How predictions of a model for a panel are judged."""
    METHODS.check("method", method)
    bounds = bins_by_column(bins, panel.columns)
    emission = getattr(model, "emission", "auto")
    if isinstance(emission, str) and emission == "auto":
        symbols = [categories is not None for categories in panel.categories]
    else:
        symbols = [family.has_labels for family in find_families(emission, panel.n_columns)]
    labels = tuple(is_symbol or edges is not None for is_symbol, edges in zip(symbols, bounds, strict=True))
    units: tuple[float, ...] = (1.0,)
    if panel.n_columns > 1:
        few = measured_panel(panel).values.T
        spreads = [np.nanmean(np.abs(x - np.nanmedian(x))) if np.isfinite(x).any() else 1.0 for x in few]
        units = tuple(float(spread) or 1.0 for spread in spreads)
    if all(labels):
        measure = "share wrong, held out"
    elif panel.n_columns > 1:
        measure = "error, held out"
    else:
        measure = "mean absolute error, held out"
    return Scorer(method, labels, units, bins, bounds, measure)


def make_folds(panel: Panel, fraction: float, folds: int, rng: np.random.Generator) -> list[HeldOut]:
    """Hold-outs of random rows; of many, each row has a number of its own, the same where they are on a cluster."""
    count(most=MOST_FOLDS).check("folds", folds)
    check_fraction(fraction)
    seeds = rng.integers(2**31, size=folds).tolist()
    if panel.n_observations > setup.MANY_ROWS:
        return [HeldOut(*without(panel, held_rows(panel, fraction, seed))) for seed in seeds]
    return [HeldOut(*hold_out(panel, fraction, seed)) for seed in seeds]


def make_folds_there(
    panel: ScannedPanel, fraction: float, folds: int, rng: np.random.Generator
) -> list[HeldOutThere]:  # fmt: skip
    """Hold-outs of random rows of a panel on a cluster, those that `make_folds` has of the same panel in memory."""
    count(most=MOST_FOLDS).check("folds", folds)
    check_fraction(fraction)
    seeds = rng.integers(2**31, size=folds).tolist()
    return [HeldOutThere(panel.without_held_rows(fraction, seed), panel, fraction, seed) for seed in seeds]


def in_parallel(
    work: Callable[..., Any], tasks: list[tuple[Any, ...]], n_jobs: int | None, title: str, cluster: Dask | None = None
) -> list[Any]:
    """Results in the order of the tasks, with a bar; on the workers of a cluster, if there is one."""
    stream: Iterator[Any]
    jobs = min(_jobs(n_jobs), max(len(tasks), 1))
    if cluster is not None:
        stream = cluster.map(work, tasks)
    elif jobs == 1:
        stream = (work(*task) for task in tasks)
    else:
        stream = Parallel(jobs, return_as="generator")(delayed(work)(*task) for task in tasks)
    return [next(stream) for _ in track(len(tasks), title)]


def shared_engine(model: Any, n_jobs: int | None, engine: Any = None) -> dict[str, Any]:
    """Engine of a model that shares the cores with others: as given, else its own; nothing if that stays as it is."""
    name = getattr(model, "engine", None) if engine is None else engine
    if cluster_of(model, engine) is not None:  # whose workers have a task each
        return {"engine": Threads(1)}
    if isinstance(name, str) and name == "threads" and _jobs(n_jobs) > 1:
        return {"engine": Threads(1)}
    return {} if engine is None else {"engine": engine}


def cluster_of(model: Any, engine: Any = None) -> Dask | None:
    """The cluster that a model, or what is given instead, has for its engine."""
    name = getattr(model, "engine", None) if engine is None else engine
    found = get_engine(name) if isinstance(name, str) and name == "dask" else name
    return found if isinstance(found, Dask) else None


def _jobs(n_jobs: int | None) -> int:
    if n_jobs is None or (isinstance(n_jobs, int) and n_jobs == -1):
        return int(cpu_count())
    count().check("n_jobs", n_jobs)
    return int(n_jobs)


def standard_error(x: Floats) -> float:
    """Standard error of the mean; NaN of a single number."""
    return float(np.std(x, ddof=1) / np.sqrt(len(x))) if len(x) > 1 else np.nan
