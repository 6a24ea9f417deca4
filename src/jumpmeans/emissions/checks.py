"""What families refuse of the numbers that constructors and panels give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, read_floats
from ..errors import PanelError, first_few
from .single import LARGEST

if TYPE_CHECKING:
    from ..data.panel import Panel


def per_state(name: str, values: Any, low: float = -np.inf, high: float = np.inf, positive: bool = False) -> Floats:
    """(M,) finite numbers within bounds, one for each state; for constructors."""
    x = np.atleast_1d(read_floats(name, values))
    good = np.isfinite(x) & (x >= low) & (x <= high) & ((x > 0) | (not positive))
    if x.ndim != 1 or len(x) == 0 or not good.all():
        above = " > 0" if positive else f" >= {low:g}" if low > -np.inf else ""
        below = f" and <= {high:g}" if high < np.inf else ""
        raise ValueError(
            f"{name} must be finite numbers{above}{below}, one for each state, got {first_few(x.tolist())}; correct "
            "them."
        )
    return x


def spreads(name: str, values: Any, like: Floats) -> Floats:
    """(M,) positive numbers, one for each state or one for all; for constructors."""
    x = per_state(name, values, positive=True)
    if len(x) not in (1, len(like)):
        raise ValueError(f"{name} must be one number or one for each of the {len(like)} states, got {len(x)}.")
    return np.array(np.broadcast_to(x, like.shape))


def numeric_values(panel: Panel, d: int, family: str, largest: float = LARGEST) -> Floats:
    """Column d of a panel, refused if it holds anything but numbers, or numbers whose squares would overflow."""
    labels = panel.categories[d]
    x = panel.values[:, d]
    if labels is not None and all(isinstance(label, bool | np.bool_) for label in labels.tolist()):
        present = np.isfinite(x)
        x, labels = np.where(present, labels.astype(np.float64)[np.where(present, x, 0).astype(np.int64)], np.nan), None
    if labels is not None and np.isfinite(x).any():
        row = int(np.flatnonzero(np.isfinite(x))[0])
        for i in np.flatnonzero(np.isfinite(x)):
            if not _is_number(labels[int(x[i])]):
                row = int(i)
                break
        raise PanelError(
            f"values of column {panel.columns[d]!r} must be numbers for emission {family!r}, got "
            f"{labels[int(x[row])]!r} at {panel.locate(row)}; convert the column, or use "
            "emission='categorical' (hidden states) or 'direct' (the labels are the states)."
        )
    with np.errstate(invalid="ignore"):
        rule = f"readings of emission {family!r} must be at most {largest:g} in size"
        require_values(panel, x, np.abs(x) <= largest, rule, f"rescale the column {panel.columns[d]!r}")
    return x


def _is_number(label: Any) -> bool:
    try:
        float(label)
    except (TypeError, ValueError):
        return False
    return True


def require_values(panel: Panel, x: Floats, good: NDArray[np.bool_], rule: str, hint: str) -> None:
    """Refuse the first present value that breaks a rule, naming its place; for the `check` of a family.

    Parameters
    ----------
    panel : Panel
    x : (n,)
        Values of a column, NaN where missing.
    good : (n,)
        Whether each keeps the rule.
    rule, hint : str
        What must hold, and what to do next: "readings must be > 0", "drop such rows".
    """
    bad = ~good & np.isfinite(x)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise PanelError(f"{rule}, got {x[row]:g} at {panel.locate(row)}; {hint}.")
