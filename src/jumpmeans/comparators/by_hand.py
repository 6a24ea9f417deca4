"""What people do by hand: the most common value, the last one, a line between two."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from ..arrays import AnyArray, Floats, Ints, weighted_median
from ..data.bins import bins_by_column
from ..data.deriving import split_requests
from ..data.panel import Panel
from ..emissions import find_families
from ..emissions.checks import numeric_values
from ..emissions.symbols import encode_labels
from ..errors import PanelError
from ..estimators.read_out import METHODS, all_at_once, as_panel
from ..stored import ModelFields, stored
from ..stored.kinds import require


class Values(NamedTuple):
    """One column of a panel: values x (n,), NaN where missing, indices into `labels` if it holds labels."""

    x: Floats
    labels: AnyArray | None

    def decode(self, x: Floats) -> AnyArray:
        """Predicted numbers or indices as the caller knows them."""
        return x if self.labels is None else np.asarray(self.labels[x.astype(np.int64)])


class ByHand(ModelFields, BaseEstimator):  # type: ignore[misc]
    """What the methods share: columns one by one, and the most common value where a sequence has none.

    Values are all that a rule of thumb goes by: it takes every row as a snapshot, and a known state for no value.
    """

    def __init__(self, *, emission: str | Sequence[str] = "auto") -> None:
        self.emission = emission

    def fit(self, panel: Any, y: None = None) -> Self:
        """Learn from a panel, or from a frame with columns id, time and value."""
        panel = as_panel(panel)
        with all_at_once(self) as new:
            new._learn_all(panel)
        return self

    def _learn_all(self, panel: Panel) -> None:
        kinds = self._are_labels(panel)
        self.labels_: tuple[AnyArray | None, ...] = tuple(
            panel.labels(d) if is_label else None for d, is_label in enumerate(kinds)
        )
        values: list[Any] = []
        for d, labels in enumerate(self.labels_):
            column = self._read(panel, d, labels)
            if not np.isfinite(column.x).any():
                raise PanelError(
                    f"column {panel.columns[d]!r} must hold at least one value to learn from, got none; "
                    "check that the right column was named."
                )
            values += column.decode(np.array([self._most_common(panel, d, column)])).tolist()
        self.most_common_: tuple[Any, ...] = tuple(values)
        self._learn(panel)

    def predict_value(self, panel: Any, method: str = "posterior", at: Any = None) -> AnyArray:
        """The observation each row should show, in the caller's row order.

        Parameters
        ----------
        panel : Panel or frame
            Its own values are read; a row without one is filled in from the others of its sequence.
        method : "posterior" or "trajectory"
            As every model has it; a rule of thumb has one answer to both.
        at : mapping {id: times} or pair (ids, times), optional
            Times to read at, within or beyond the window; by default every row of the panel.

        Returns
        -------
        values : (n,), or (n, D) for D columns
            With `at`, in the order asked for.
        """
        METHODS.check("method", method)
        panel = self._ready(panel)
        wide, asked = (panel, None) if at is None else panel.insert_times(*split_requests(at))
        filled = []
        for d in range(wide.n_columns):
            column = self._read_known(wide, d)
            fallback = self.most_common_[d]
            if column.labels is not None:
                fallback = column.labels.tolist().index(fallback)
            x = self._fill(wide, d, column)
            filled.append(column.decode(np.where(np.isnan(x), fallback, x)))
        if len(filled) > 1 and any(part.dtype.kind not in "fiu" for part in filled):
            filled = [part.astype(object) for part in filled]
        values = filled[0] if len(filled) == 1 else np.column_stack(filled)
        return wide.to_caller_order(values) if asked is None else values[asked]

    @abstractmethod
    def _fill(self, panel: Panel, d: int, column: Values) -> Floats:
        """(n,) prediction of every row, in panel order; NaN where the sequence has no value."""

    def _learn(self, panel: Panel) -> None:
        """Whatever else a method learns."""
        return

    def _most_common(self, panel: Panel, d: int, column: Values) -> float:
        return most_common(column, row_weights(panel), None)

    def require_fitted(self) -> None:
        """Refuse a model that has nothing to tell yet."""
        if not hasattr(self, "most_common_"):
            raise NotFittedError(f"this {type(self).__name__} must be fitted first; call fit(panel).")

    def check_fields(self) -> None:
        """Refuse parts that do not fit together, if they come from a file."""
        common, labels = vars(self).get("most_common_"), vars(self).get("labels_")
        require(isinstance(common, tuple) and isinstance(labels, tuple) and common, "a model must be fitted")
        require(len(self.most_common_) == len(self.labels_), "there must be a most common value for each column")
        for value, known in zip(self.most_common_, self.labels_, strict=True):
            require(known is None or isinstance(known, np.ndarray), "labels of a column must be a list")
            there = isinstance(value, int | float) and value == value if known is None else value in known.tolist()
            require(there, "the most common value of a column must be one")

    def _ready(self, panel: Any) -> Panel:
        self.require_fitted()
        panel = as_panel(panel)
        if panel.n_columns != len(self.labels_):
            raise PanelError(
                f"the panel must have {len(self.labels_)} value columns as when fitted, got {panel.n_columns}: "
                f"{list(panel.columns)}."
            )
        return panel

    def _are_labels(self, panel: Panel) -> list[bool]:
        """Whether each column holds labels."""
        if isinstance(self.emission, str) and self.emission == "auto":
            return [labels is not None for labels in panel.categories]
        return [family.is_symbolic for family in find_families(self.emission, panel.n_columns)]

    def _read(self, panel: Panel, d: int, labels: AnyArray | None) -> Values:
        if labels is None:
            auto = isinstance(self.emission, str) and self.emission == "auto"
            family = "auto" if auto else find_families(self.emission, panel.n_columns)[d].name
            return Values(numeric_values(panel, d, family, largest=np.inf), None)
        return Values(encode_labels(panel, d, labels), labels)

    def _read_known(self, panel: Panel, d: int) -> Values:
        """A column of a panel that may hold labels which the fitted one did not."""
        known = self.labels_[d]
        if known is not None:
            found, old = panel.labels(d), known.tolist()
            new = [label for label in found.tolist() if label not in old]
            if new:
                known = np.array(old + new, dtype=known.dtype if found.dtype == known.dtype else object)
        return self._read(panel, d, known)


@stored
class MostCommon(ByHand):
    """The most common observation, for every row: the paper's baseline, blind to sequences and times.

    Parameters
    ----------
    bins : sequence of float, or {column: sequence of float}, optional
        Rising bounds for columns of numbers: the prediction is then the median of the values in the
        most common bin. Without bins it is the median of all values.
    emission : str or list of str
        Which columns hold labels: "auto" takes text and booleans for labels and numbers for measurements; a family
        such as "direct" or "categorical" makes labels of whole numbers too.

    Attributes
    ----------
    most_common_ : tuple, length D
        The prediction for each column; the first of the sorted labels among equally common ones.
    labels_ : tuple, length D
        Labels of each column, None for numbers.

    Notes
    -----
    A continuous value hardly occurs twice, so "most common" needs bins; held-out error in bins is least
    when both use the same ones. Sequences count by their weights.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> from jumpmeans.comparators import MostCommon
    >>> MostCommon(emission="direct").fit(jm.datasets.load_edss()).most_common_
    (3,)
    """

    def __init__(self, *, bins: Any = None, emission: str | Sequence[str] = "auto") -> None:
        self.bins = bins
        self.emission = emission

    def _most_common(self, panel: Panel, d: int, column: Values) -> float:
        return most_common(column, row_weights(panel), bins_by_column(self.bins, panel.columns)[d])

    def _fill(self, panel: Panel, d: int, column: Values) -> Floats:
        return np.full(panel.n_observations, np.nan)


@stored
class CarriedForward(ByHand):
    """The last value seen, carried forward in time; before the first value of a sequence, that one.

    Parameters
    ----------
    emission : str or list of str
        Which columns hold labels, as in `MostCommon`. It decides only what stands in for sequences without a value.

    Attributes
    ----------
    most_common_ : tuple, length D
        What a sequence without any value shows: the most common label, or the median.
    labels_ : tuple, length D
        Labels of each column, None for numbers.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> from jumpmeans.comparators import CarriedForward
    >>> panel = jm.Panel.from_arrays([0, 1, 2, 3], [None, 5.0, None, 7.0], ids=[1, 1, 1, 1])
    >>> CarriedForward().fit(panel).predict_value(panel)
    array([5., 5., 5., 7.])
    """

    def _fill(self, panel: Panel, d: int, column: Values) -> Floats:
        before, after = neighbours(panel, column.x)
        return take(column.x, np.where(before >= 0, before, after))


@stored
class Interpolation(ByHand):
    """A straight line between the values before and after; for labels, the nearer of the two in time.

    Before the first value of a sequence and after its last one, that value. Of two labels equally near,
    the earlier one. Parameters and attributes are those of `CarriedForward`.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> from jumpmeans.comparators import Interpolation
    >>> panel = jm.Panel.from_arrays([0, 1, 2, 4], [None, 5.0, None, 8.0], ids=[1, 1, 1, 1])
    >>> Interpolation().fit(panel).predict_value(panel)
    array([5., 5., 6., 8.])
    """

    def _fill(self, panel: Panel, d: int, column: Values) -> Floats:
        before, after = neighbours(panel, column.x)
        before, after = np.where(before >= 0, before, after), np.where(after >= 0, after, before)
        since, until = panel.times - panel.times[before], panel.times[after] - panel.times
        x = column.x
        if column.labels is not None:
            return take(x, np.where(until < since, after, before))
        # before = after at a row with a value, and where values are on one side only
        apart = since + until > 0
        share = np.where(apart, since / np.where(apart, since + until, 1.0), 0.0)
        return np.where(before >= 0, (1.0 - share) * take(x, before) + share * take(x, after), np.nan)


# ------------------------------------------------------------------------------------------------- the parts


def row_weights(panel: Panel) -> Floats:
    """(n,) weight of the sequence of each row."""
    return np.repeat(panel.weights, panel.lengths)


def most_common(column: Values, weights: Floats, bins: Floats | None) -> float:
    """The most common label, or the median of the values in the most common bin (of all, without bins)."""
    present = np.isfinite(column.x)
    x, w = column.x[present], weights[present]
    if column.labels is not None:
        return float(np.bincount(x.astype(np.int64), weights=w).argmax())
    if bins is not None:
        bin_of = np.digitize(x, bins)
        inside = bin_of == np.bincount(bin_of, weights=w).argmax()
        x, w = x[inside], w[inside]
    return weighted_median(x, w)


def neighbours(panel: Panel, x: Floats) -> tuple[Ints, Ints]:
    """(n,) rows of the last value at or before each row and of the first at or after it; -1 for none."""
    n = len(x)
    row = np.arange(n)
    seen = np.isfinite(x)
    before = np.maximum.accumulate(np.where(seen, row, -1))
    after = np.minimum.accumulate(np.where(seen, row, n)[::-1])[::-1]
    first, last = np.repeat(panel.offsets[:-1], panel.lengths), np.repeat(panel.offsets[1:], panel.lengths)
    return np.where(before >= first, before, -1), np.where(after < last, after, -1)


def take(x: Floats, rows: Ints) -> Floats:
    """Values of the given rows, NaN for row -1."""
    return np.where(rows >= 0, x[rows], np.nan)
