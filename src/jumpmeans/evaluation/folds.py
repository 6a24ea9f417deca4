"""Many fits scored on the same hold-outs: the folds, how predictions are judged, and fits side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, cpu_count, delayed

from ..arrays import Floats
from ..data.bins import bins_by_column
from ..data.panel import Panel
from ..emissions import find_families
from ..engines import Dask, Threads, get_engine
from ..estimators.read_out import METHODS
from ..options import count
from ..progress import track
from .hold_out import Truth, hold_out
from .scores import differences, held_out_rows, present_pairs, reconstruction_error

MOST_FOLDS = 10_000


class HeldOut(NamedTuple):
    """A panel without some of its values, and these."""

    masked: Panel
    truth: Truth


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

    def error(self, model: Any, held: HeldOut) -> float:
        """Error of a fitted model on what was held out."""
        predicted = model.predict_value(held.masked, method=self.method)
        if all(self.labels):
            return reconstruction_error(predicted, held.truth, self.bins, measure="wrong")
        true = held.truth.values
        guess = held_out_rows(predicted, held.truth, true.shape[1:])
        parts = []
        for d, (is_label, unit, bounds) in enumerate(zip(self.labels, self.units, self.bounds, strict=True)):
            far = differences(*present_pairs(guess, true, d), bounds, wrong=is_label)
            if len(far):
                parts.append(np.mean(far) if is_label else np.mean(np.abs(far) / unit))
        return float(np.mean(parts))


def make_scorer(model: Any, panel: Panel, method: str, bins: Any) -> Scorer:
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
        spreads = [np.nanmean(np.abs(x - np.nanmedian(x))) if np.isfinite(x).any() else 1.0 for x in panel.values.T]
        units = tuple(float(spread) or 1.0 for spread in spreads)
    if all(labels):
        measure = "share wrong, held out"
    elif panel.n_columns > 1:
        measure = "error, held out"
    else:
        measure = "mean absolute error, held out"
    return Scorer(method, labels, units, bins, bounds, measure)


def make_folds(panel: Panel, fraction: float, folds: int, rng: np.random.Generator) -> list[HeldOut]:
    """Hold-outs of random rows."""
    count(most=MOST_FOLDS).check("folds", folds)
    return [HeldOut(*hold_out(panel, fraction, int(seed))) for seed in rng.integers(2**31, size=folds)]


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
