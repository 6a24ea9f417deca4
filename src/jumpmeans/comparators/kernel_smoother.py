"""A kernel smoother: what a statistician does by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import Floats, power_of_two
from ..data.panel import Panel
from ..emissions.symbols import one_hot
from ..fit.setup import typical_gap
from ..kernels.kernel_means import kernel_means, leave_one_out
from ..stored import stored
from ..stored.kinds import require_floats
from .by_hand import ByHand, Values

# Bandwidths tried, in typical gaps: 1/4 to 32 by factors of √2; beyond them the plain mean of the sequence.
NARROWEST, N_BANDWIDTHS = 0.25, 15


@stored
class KernelSmoother(ByHand):
    """Mean of the values of a sequence, weighted by a Gaussian kernel of the time apart; for labels, a vote.

    Parameters
    ----------
    bandwidth : float or "auto"
        Standard deviation of the kernel in the time unit of the panel; infinite for the plain mean. Auto: for each
        column the one that best predicts every observed row from the others of its sequence (leave-one-out
        squared error; for labels the Brier score), among 1/4 to 32 typical gaps by factors of √2, and infinity.
    emission : str or list of str
        Which columns hold labels, as in `MostCommon`.

    Attributes
    ----------
    bandwidths_ : (D,)
        Bandwidth of each column.
    leave_one_out_ : tuple, length D
        For each column (bandwidths, errors), weighted by sequence; None if the bandwidth was given.
    most_common_ : tuple, length D
        What a sequence without any value shows: the most common label, or the median.
    labels_ : tuple, length D
        Labels of each column, None for numbers.

    Notes
    -----
    Weights are taken relative to the nearest value, so a time far from all values shows the nearest
    one, as the exact limit has it, where plain weights would all be 0.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> from jumpmeans.comparators import KernelSmoother
    >>> panel = jm.Panel.from_arrays([0, 1, 2], [4.0, None, 6.0], ids=[1, 1, 1])
    >>> KernelSmoother(bandwidth=1.0).fit(panel).predict_value(panel).round(2)
    array([4.24, 5.  , 5.76])
    """

    def __init__(self, *, bandwidth: float | str = "auto", emission: str | Sequence[str] = "auto") -> None:
        self.bandwidth = bandwidth
        self.emission = emission

    def _learn(self, panel: Panel) -> None:
        if isinstance(self.bandwidth, str):
            if self.bandwidth != "auto":
                raise ValueError(f"bandwidth must be 'auto' or a positive number, got {self.bandwidth!r}.")
            found = [
                choose_bandwidth(panel, features(self._read(panel, d, labels))) for d, labels in enumerate(self.labels_)
            ]
            self.bandwidths_: Floats = np.array([bandwidth for bandwidth, _ in found])
            self.leave_one_out_: tuple[Any, ...] = tuple(tried for _, tried in found)
            return
        try:
            width = float(self.bandwidth)
        except (TypeError, ValueError, OverflowError):
            width = np.nan
        if not width > 0:
            raise ValueError(f"bandwidth must be 'auto' or a positive number, got {self.bandwidth!r}.")
        self.bandwidths_ = np.full(panel.n_columns, width)
        self.leave_one_out_ = (None,) * panel.n_columns

    def check_fields(self) -> None:
        """Refuse parts that do not fit together, if they come from a file."""
        super().check_fields()
        widths = vars(self).get("bandwidths_")
        require_floats("bandwidths_", widths, (len(self.labels_),), least=0.0, finite=False)

    def _fill(self, panel: Panel, d: int, column: Values) -> Floats:
        votes = self._smooth(panel, d, column)
        if column.labels is None:
            return votes[:, 0]
        return np.where(np.isnan(votes[:, 0]), np.nan, votes.argmax(axis=1))

    def _smooth(self, panel: Panel, d: int, column: Values) -> Floats:
        """(n, F) smoothed values, or the share of votes of each label; NaN where the sequence has no value."""
        values = features(column)
        # in a unit near the largest value, so that no sum overflows; powers of two are exact
        unit = power_of_two(float(np.max(np.abs(values), initial=0.0, where=np.isfinite(values))))
        return np.asarray(
            kernel_means(panel.relative_times(), panel.offsets, values / unit, self.bandwidths_[d]) * unit
        )

    def predict_proba(self, panel: Any) -> Floats:
        """Share of votes of each label of `labels_[0]` at every row, in the caller's row order.

        Parameters
        ----------
        panel : Panel or frame
            Of one column, which must hold labels that the fitted panel had.

        Returns
        -------
        probs : (n, number of labels)
            A sequence without any value shows the most common label.
        """
        panel = self._ready(panel)
        labels = self.labels_[0]
        if labels is None or len(self.labels_) > 1:
            raise ValueError(
                "predict_proba needs a single column of labels; use predict_value, or say "
                "emission='categorical' if these numbers are labels."
            )
        votes = self._smooth(panel, 0, self._read(panel, 0, labels))
        empty = np.isnan(votes[:, 0])
        votes[empty] = (labels == self.most_common_[0]).astype(np.float64)
        return panel.to_caller_order(votes)


def features(column: Values) -> Floats:
    """(n, F) what is averaged: the value, or an indicator of each label; NaN where missing."""
    return column.x[:, None] if column.labels is None else one_hot(column.x, len(column.labels))


def choose_bandwidth(panel: Panel, values: Floats) -> tuple[float, tuple[Floats, Floats]]:
    """Bandwidth of least leave-one-out error, the narrowest of equals, and (bandwidths tried, errors)."""
    widths = typical_gap(panel) * NARROWEST * np.sqrt(2.0) ** np.arange(N_BANDWIDTHS)
    # on its own scale, so that no square overflows
    scale = float(np.nanmax(np.abs(values)))
    shown = values / (scale if scale > 0 else 1.0)
    errors = leave_one_out(panel.relative_times(), panel.offsets, panel.weights, shown, widths)
    widths = np.append(widths, np.inf)
    with np.errstate(over="ignore"):  # the error itself may be beyond floats
        return float(widths[errors.argmin()]), (widths, errors * scale * scale)
