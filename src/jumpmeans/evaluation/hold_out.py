"""Values held out: what a model has to predict without having seen it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ..arrays import AnyArray, Ints
from ..data.panel import Panel
from ..estimators.read_out import as_panel
from ..options import choice


class Truth(NamedTuple):
    """What `hold_out` blanked, in the caller's order of rows."""

    ids: AnyArray
    """Sequence of each blanked row, shape (k,)."""
    times: AnyArray
    """Time of each, shape (k,): dates if the panel has dates."""
    rows: Ints
    """The caller's row numbers, rising, shape (k,)."""
    values: AnyArray
    """What stood there, shape (k,) or (k, D): labels, integers where all values are whole, or floats."""
    columns: tuple[str, ...] = ()
    """Names of the D columns."""
    n_rows: int | None = None
    """Number of rows of the caller's table, if it is known."""


def hold_out(
    panel: Any, fraction: float = 0.3, random_state: Any = 0, *, what: str = "rows"
) -> tuple[Panel, Truth]:  # fmt: skip
    """Blank a part of the observed rows.

    Parameters
    ----------
    panel : Panel or frame
    fraction : float
        Share to blank, strictly between 0 and 1: of the observed rows, of the sequences, or of the observed rows of
        each sequence.
    random_state : int, Generator, RandomState or None
        Decides which rows or sequences; the last rows leave nothing to chance.
    what : "rows", "sequences" or "last"
        Rows anywhere, which a model fills in from both sides. Whole sequences, all of their rows: what a model expects
        of a sequence that it knows nothing of but the times. Or the last rows of each sequence, at least one row of
        which stays: a forecast.

    Returns
    -------
    masked : Panel
        The same rows and times, but the chosen rows tell nothing: no value, no known state, no move at their time.
    truth : Truth
        The rows that were blanked, and their values.

    Examples
    --------
    >>> panel = Panel.from_arrays(range(6), ["a", "a", "b", "b", "a", "b"], ids=[1] * 6)
    >>> masked, truth = hold_out(panel, fraction=0.5)
    >>> truth.rows, truth.values
    (array([1, 2, 5]), array(['a', 'b', 'b'], dtype=object))
    >>> masked.observed
    array([ True, False, False,  True,  True, False])
    >>> hold_out(panel, fraction=0.5, what="last")[1].rows
    array([3, 4, 5])
    """
    panel = as_panel(panel)
    choice("rows", "sequences", "last").check("what", what)
    check_fraction(fraction)
    if what == "rows":
        chosen = _some_rows(panel, fraction, random_state)
    else:
        chosen = _whole_sequences(panel, fraction, random_state) if what == "sequences" else _last_rows(panel, fraction)
    return without(panel, chosen)


def check_fraction(fraction: Any) -> None:
    """Refuse what is no share."""
    if not isinstance(fraction, int | float | np.number) or not 0 < fraction < 1:
        raise ValueError(f"fraction must lie strictly between 0 and 1, got {fraction!r}.")


def without(panel: Panel, chosen: Ints) -> tuple[Panel, Truth]:
    """The panel without what the chosen rows tell, and that."""
    chosen = chosen[np.argsort(panel.rows[chosen])]
    columns = [panel.decode_values(panel.values[chosen, d], d) for d in range(panel.n_columns)]
    truth = Truth(
        ids=panel.ids[panel.sequence_index[chosen]],
        times=panel.decode_times(panel.times[chosen]),
        rows=panel.rows[chosen],
        values=columns[0] if len(columns) == 1 else np.column_stack(columns),
        columns=panel.columns,
        n_rows=panel.n_observations,
    )
    return panel.blank(chosen), truth


def _some_rows(panel: Panel, fraction: float, random_state: Any) -> Ints:
    return _choose(np.flatnonzero(panel.observed), fraction, random_state, "observed rows")


def _whole_sequences(panel: Panel, fraction: float, random_state: Any) -> Ints:
    """Observed rows of some of the sequences that have any."""
    sequence, observed = panel.sequence_index, panel.observed
    there = np.unique(sequence[observed])
    chosen = _choose(there, fraction, random_state, "sequences with a value")
    if len(chosen) == len(there):
        raise ValueError(
            f"fraction={fraction} of {len(there)} sequences with a value is all of them; take a smaller one."
        )
    return np.flatnonzero(observed & np.isin(sequence, chosen))


def _last_rows(panel: Panel, fraction: float) -> Ints:
    """The last observed rows of each sequence, as many as its share but never all."""
    observed = np.flatnonzero(panel.observed)
    sequence = panel.sequence_index[observed]
    counts = np.bincount(sequence, minlength=panel.n_sequences)
    held = np.minimum(np.rint(fraction * counts).astype(np.int64), np.maximum(counts - 1, 0))
    if not held.any():
        raise ValueError(
            f"fraction={fraction} of {counts.max()} observed rows, the most of a sequence, is none, or all that "
            "there are; take a larger one."
        )
    place_from_end = np.cumsum(counts)[sequence] - np.arange(len(observed))  # 1 for the last
    return observed[place_from_end <= held[sequence]]


def _choose(items: Ints, fraction: float, random_state: Any, noun: str) -> Ints:
    """A share of the items, without order."""
    k = round(fraction * len(items))
    if k == 0:
        raise ValueError(f"fraction={fraction} of {len(items)} {noun} is none; take a larger one.")
    if isinstance(random_state, np.random.Generator):
        return random_state.choice(items, size=k, replace=False)
    try:
        state = check_random_state(random_state)
    except ValueError:
        raise ValueError(
            "random_state must be an integer from 0 to 2**32 - 1, a Generator, a RandomState or None, got "
            f"{random_state!r}."
        ) from None
    return np.asarray(state.choice(items, size=k, replace=False))
