"""Spreads of levels of people that nothing speaks for: from a climb with levels to one with fewer (`model.levels`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..arrays import Bools
from ..model.levels import Levels
from .ascent import Climb, Task, climb, look, with_best_levels

# A climb may raise the likelihood without a spread by no more than this, where there is next to none.
IN_REACH = 10.0


def climb_without_spreads(task: Task, run: Climb, max_iter: int, tol: float, accelerate: bool) -> Climb:
    """A climb from where another ended, without the spreads of columns that are no likelier than none; or that one.

    EM steps shrink a spread ever more slowly, and never to 0.
    """
    levels, options = run.end.levels, (max_iter, tol, accelerate)
    if levels is None or levels.fixed:
        return run
    for d in sorted(levels.columns, key=lambda d: float(levels.sds[d] / levels.noises[d])):
        process, now = run.end.process, run.end.levels
        assert now is not None
        less = without(now, np.arange(len(now.sds)) == d)
        if look(task, process, less).log_lik < run.end.log_lik - IN_REACH:
            continue
        found = with_best_levels(task, climb(task, process, *options, less), *options)
        if found.end.log_lik >= run.end.log_lik:
            run = found
    return run


def without(levels: Levels, columns: Bools) -> Levels:
    """The same without offsets in some of the columns (D,)."""
    return replace(
        levels,
        means=np.where(columns, 0.0, levels.means),
        variances=np.where(columns, 0.0, levels.variances),
        sds=np.where(columns, 0.0, levels.sds),
    )
