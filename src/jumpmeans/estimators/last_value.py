"""Does a process predict better than the last value carried forward? A cheap check of a fit, when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..arrays import AnyArray, Bools, Floats, Ints
from ..data.panel import Panel
from ..errors import InfeasibleError
from ..stored import stored

if TYPE_CHECKING:
    from .answers import ModelAnswers

# Share of the observed rows of a sequence that is predicted.
LAST = 0.2
# What is looked at of the fitted panel, at the most: enough to tell, and too little to wait for.
MOST_ROWS, MOST_STATES = 5000, 50


@stored
class LastValue(NamedTuple):
    """Errors of two predictions of the same values."""

    model: float
    """Error of the process; NaN if there was nothing to predict."""
    carried: float
    """Error of the last value carried forward."""
    n: int
    """Number of values predicted."""
    measure: str
    """What the errors are."""

    @property
    def better(self) -> bool:
        """Whether the process errs less; True if there was nothing to predict."""
        return not self.model >= self.carried

    def __str__(self) -> str:
        if self.better:
            return f"the process predicts last rows better than the last value carried forward ({self._numbers()})"
        return f"predicts last rows no better than the last value carried forward ({self._numbers()})"

    def _numbers(self) -> str:
        return f"{self.measure} {self.model:.3g} against {self.carried:.3g}, {self.n} values"


NOTHING = LastValue(np.nan, np.nan, 0, "error")


def check_fitted(model: ModelAnswers, panel: Panel) -> LastValue:
    """The same on a part of the fitted panel that costs next to nothing; nothing where it would cost more."""
    if panel.n_observations > MOST_ROWS:
        panel = panel.select(np.arange(0, panel.n_sequences, int(np.ceil(panel.n_observations / MOST_ROWS))))
        panel = panel.head(max(int(panel.lengths.min()), MOST_ROWS // panel.n_sequences, 2))
    if len(model._fitted().rates) > MOST_STATES:
        return NOTHING
    try:
        return compare_last_values(model, panel)
    except InfeasibleError:  # a process that only just explains the rows
        return NOTHING


def compare_last_values(model: ModelAnswers, panel: Panel) -> LastValue:
    """Predict the last values of each sequence from those before."""
    held, source = _held_out(panel)
    emission = model._fitted().emission
    if not len(held):
        return NOTHING
    # nothing is told of the rows after them either
    first = np.full(panel.n_sequences, panel.n_observations)
    np.minimum.at(first, panel.sequence_index[held], held)
    masked = panel.blank(np.arange(panel.n_observations) >= first[panel.sequence_index])
    guess = np.asarray(model._expected_values(masked))[held].reshape(len(held), -1)
    weights = panel.weights[panel.sequence_index[held]]
    parts = []
    for d, column in enumerate(emission.columns):
        true = np.asarray(panel.decode_values(panel.values[:, d], d))
        pairs = _present(panel.values[:, d], held, source)
        if pairs.any():
            errors = [
                _error(x, true[held[pairs]], weights[pairs], column.has_labels)
                for x in (guess[pairs, d], true[source[pairs]])
            ]
            spread = panel.values[:, d][np.isfinite(panel.values[:, d])]
            unit = 1.0 if column.has_labels or len(emission.columns) == 1 else float(np.std(spread)) or 1.0
            parts.append((errors[0] / unit, errors[1] / unit, int(pairs.sum())))
    if not parts:
        return NOTHING
    labels = [column.has_labels for column in emission.columns]
    measure = "share wrong" if all(labels) else "mean absolute error" if len(labels) == 1 else "error"
    own, carried, n = (np.array(x) for x in zip(*parts, strict=True))
    return LastValue(float(own.mean()), float(carried.mean()), int(n.sum()), measure)


def _held_out(panel: Panel) -> tuple[Ints, Ints]:
    """Rows to predict, the last ones of each sequence, and the last row before all of them that has a value."""
    seen = np.flatnonzero(panel.observed)
    sequence = panel.sequence_index[seen]
    counts = np.bincount(sequence, minlength=panel.n_sequences)
    held = np.where(counts > 1, np.maximum(np.rint(LAST * counts), 1), 0).astype(np.int64)
    ends = np.cumsum(counts)[sequence]
    last = np.arange(len(seen)) >= ends - held[sequence]
    before = (ends - held[sequence] - 1)[last]
    return seen[last], seen[before]


def _present(x: Floats, held: Ints, source: Ints) -> Bools:
    return np.asarray(np.isfinite(x[held]) & np.isfinite(x[source]))


def _error(guess: AnyArray, true: AnyArray, weights: Floats, labels: bool) -> float:
    wrong: Any = guess.astype(object) != true.astype(object) if labels else np.abs(guess.astype(float) - true)
    return float(np.average(wrong.astype(np.float64), weights=weights))
