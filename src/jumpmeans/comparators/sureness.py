"""Standard errors and intervals of a maximum of likelihood, from its observed information."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

from ..arrays import Bools, Floats
from ..data.frames import make_frame
from ..data.interval import LEVEL, Interval, asked, in_form, numbers
from ..data.table import Table
from ..errors import first_few
from ..fit.information import LOG_STEP, STEP, Information, rate_names
from ..options import choice

# Directions with less than this share of the information that seen paths would have are flat: not known at all.
FLAT = 1e-6
# A process from which the likelihood could still rise by more than this is not at its maximum.
RISE = 0.05
# Two answers that differ by less than this share of themselves differ by rounding: no slope.
ROUNDING = 8 * np.finfo(float).eps
SCALES = choice("log", "logit", "plain")
# What a scale does to an answer, back again, and its slope.
ON: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = {
    "log": (np.log, np.exp, lambda x: 1.0 / x),
    "logit": (logit, expit, lambda x: 1.0 / (x * (1.0 - x))),
    "plain": (np.positive, np.positive, np.ones_like),
}


class Sureness:
    """How sure a fit of maximum likelihood is: made by `EM.information(panel)`.

    Attributes
    ----------
    names : list of str, k of them
        What the coordinates are: logarithms of rates, of means of counts and exponential readings and of variances, of
        chances relative to the largest of their row; and means as they are.
    matrix : (k, k)
        Observed information: minus the second derivatives of the log-likelihood at the fit.
    covariance : (k, k)
        Its inverse, without what the data do not tell.
    held : list of str
        What lies at the edge of its range, such as a rate of 0, or what no row tells of, such as the readings of the
        dead: it is taken as known.
    flat : list of str
        What the data do not tell; its standard errors are infinite.
    """

    def __init__(self, model: Any, information: Information) -> None:
        self.model, self._chart, self._pull = model, information.chart, information.pull
        self.names, self.matrix, self.held = information.names, information.matrix, information.held
        # in units of what seen paths would tell, so that the units of the data do not matter
        scale = np.sqrt(information.complete)
        sizes, V = np.linalg.eigh(self.matrix / np.outer(scale, scale))
        sound = sizes > FLAT
        axes = V / scale[:, None]
        self._known = axes[:, sound] / np.sqrt(sizes[sound])
        self._unknown = V[:, ~sound]
        self._scale = scale
        touched = (np.abs(self._unknown) > 1e-3).any(axis=1)
        self.flat = [name for name, is_flat in zip(self.names, touched.tolist(), strict=True) if is_flat]
        edge = [name for name in information.edge if not name.startswith("first state")]  # all begin alike
        if edge:
            warnings.warn(
                f"{first_few(edge)} lie at the edge of their range and are taken as known there; intervals() bounds "
                "such rates from above, or rule the moves out (Structure(allowed=...)).",
                UserWarning,
                stacklevel=3,
            )
        if self.flat:
            warnings.warn(
                f"the data do not tell {first_few(self.flat)}: their standard errors are infinite; merge states, "
                "forbid some moves (Structure(allowed=...)), or observe more often.",
                UserWarning,
                stacklevel=3,
            )
        rise = 0.5 * float(np.sum((information.slope @ self._known) ** 2))
        if rise > RISE:
            warnings.warn(
                f"the log-likelihood of this panel could still rise by about {rise:.2g}: standard errors hold at its "
                "maximum; give the panel of the fit, or fit with a lower tol and a higher max_iter.",
                UserWarning,
                stacklevel=3,
            )

    @property
    def covariance(self) -> Floats:
        """(k, k) inverse of the information, without what the data do not tell."""
        return self._known @ self._known.T

    def _steps(self) -> Floats:
        """(k,) steps of the differences of an answer."""
        logs = self._chart.logs[self._chart.free]
        return np.where(logs, LOG_STEP, STEP / self._scale)

    def _variance(self, gradient: Floats) -> Floats:
        """Variances of answers whose gradients are (k, ...); infinite along what the data do not tell."""
        flat = gradient.reshape(len(gradient), -1)
        variance = ((self._known.T @ flat) ** 2).sum(axis=0)
        size = np.abs(flat / self._scale[:, None]).max(axis=0, initial=0.0)
        lost = (np.abs(self._unknown.T @ (flat / self._scale[:, None])) > 1e-3 * size).any(axis=0)
        return np.asarray(np.where(lost, np.inf, variance).reshape(gradient.shape[1:]))

    def _spread(self, answer: Callable[[Any], Any]) -> tuple[Any, Floats]:
        """The answer of the model, and its standard error."""
        ask = asked(answer)

        def at(step: Floats) -> Floats:
            model = copy(self.model)
            model.process_ = self._chart.process_at(step)
            frailty = self._chart.frailty_at(step)
            if frailty is not None:
                model._frailties_ = replace(model._frailties_, variance=frailty.variance)
            return numbers(ask(model))

        steps, slopes = self._steps(), []
        for i, width in enumerate(steps.tolist()):
            step = np.zeros(len(steps))
            step[i] = width
            there, back = at(step), at(-step)
            with np.errstate(invalid="ignore"):
                rise = there - back  # not a number where an answer is infinite and stays so
                moved = (np.abs(rise) > ROUNDING * np.maximum(np.abs(there), np.abs(back))) | np.isinf(rise)
            slopes.append(np.where(moved, rise / (2.0 * width), 0.0))
        told = ask(self.model)
        gradient = np.array(slopes).reshape(len(steps), *np.shape(numbers(told)))
        return told, np.sqrt(self._variance(gradient))

    def standard_error(self, answer: Callable[[Any], Any]) -> Any:
        """Standard error of an answer, in its form, by the delta method; `answer` as in `interval`."""
        told, se = self._spread(answer)
        return in_form(told, se)

    def interval(self, answer: Callable[[Any], Any], level: float = 0.95, scale: str = "log") -> Interval:
        """Interval of an answer by the delta method.

        Parameters
        ----------
        answer : function of a fitted model
            A smooth function of `process_`, such as ``lambda m: m.process_.sojourn()`` or, for a ratio of rates,
            ``lambda m: m.process_.generator()["well", "dead"] / m.process_.generator()["ill", "dead"]``.
        level : float
            Chance that the bounds hold the truth.
        scale : "log", "logit" or "plain"
            Where the answer is taken as normal: "log" for what has a sign, such as rates, times and their ratios;
            "logit" for chances; "plain" for what may be of either sign, such as differences.

        Returns
        -------
        Interval
            An answer of exactly 0, which no parameter moves, has the bounds 0 and 0.
        """
        LEVEL.check("level", level)
        SCALES.check("scale", scale)
        told, se = self._spread(answer)
        x = numbers(told)
        z = float(ndtri(0.5 * (1 + level)))
        forward, back, slope = ON[scale]
        sign = np.where(x < 0, -1.0, 1.0) if scale == "log" else np.ones_like(x)
        fixed: Bools = ((se == 0) | ~np.isfinite(x)) | ((x == 0) if scale != "plain" else False)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inner = np.where(fixed, 0.5, sign * x)
            width = z * se * np.abs(slope(inner))
            ends = [sign * back(forward(inner) + k * width) for k in (-1.0, 1.0)]
        low, high = np.minimum(*ends), np.maximum(*ends)
        return Interval.of(told, np.where(fixed, x, low), np.where(fixed, x, high), level)

    def standard_errors(self, time_unit: str | None = None) -> Table:
        """Standard error of the rate of each move, and on the diagonal of each exit rate."""
        table = self.standard_error(lambda m: m.generator(time_unit))
        return Table(
            table.values, table.rows, table.columns, "from", "to", "standard error of each rate", table.unit
        )  # fmt: skip

    def intervals(self, level: float = 0.95, backend: str | None = None) -> Any:
        """Rate of each move that may happen, with its standard error and interval, as a frame.

        Parameters
        ----------
        level : float
        backend : "pandas", "polars" or "pyarrow", optional
            As in `Table.to_frame`.

        Returns
        -------
        frame
            Columns from, to, rate, se, low, high and note. Of a rate at 0 there is no standard error; `high` is then
            the rate at which not to have seen the move has a chance of (1 - level) / 2, and the note says so.
        """
        found = self.interval(lambda m: m.process_.rate_matrix, level)
        se = self._spread(lambda m: m.process_.rate_matrix)[1]
        constraints, states = self._chart.task.constraints, self._chart.process.states
        moves = constraints.moves
        source, target = np.nonzero(moves)
        # of each free rate; the last entry is for rates that are known
        held = np.append(np.isin(rate_names(states, constraints), self.held), False)
        pull = np.append(constraints.pool(self._pull), 0.0)
        at_edge = held[constraints.group[moves]]
        with np.errstate(divide="ignore"):
            bound = np.log(2.0 / (1.0 - level)) / np.maximum(-pull[constraints.group[moves]], 0.0)
        notes = np.where(constraints.is_known[moves], "known", "")
        rate = np.where(at_edge, 0.0, found.estimate[moves])
        columns = {
            "from": states[source],
            "to": states[target],
            "rate": rate,
            "se": np.where(at_edge, np.nan, se[moves]),
            "low": np.where(at_edge, 0.0, found.low[moves]),
            "high": np.where(at_edge, bound, found.high[moves]),
            "note": np.where(at_edge, "at 0: bounded by not having been seen", notes),
        }
        return make_frame(columns, backend)
