"""Numbers that families are given, by constructors and by panels: what is refused of them, and their noise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, power_of_two, read_floats, weighted_median
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
        require(panel, x, np.abs(x) <= largest, rule, f"rescale the column {panel.columns[d]!r}")
    return x


def _is_number(label: Any) -> bool:
    try:
        float(label)
    except (TypeError, ValueError):
        return False
    return True


def require(panel: Panel, x: Floats, good: NDArray[np.bool_], rule: str, hint: str) -> None:
    """Refuse the first present value that breaks a rule, naming its place."""
    bad = ~good & np.isfinite(x)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise PanelError(f"{rule}, got {x[row]:g} at {panel.locate(row)}; {hint}.")


# -------------------------------------------------------------------- noise


def noise_scale(x: Floats, panel: Panel, median_of_noise: float) -> float:
    """Noise of a column from its successive differences, whose median is `median_of_noise` per unit of noise.

    Coarsely rounded data can have a median difference of 0: then the mean difference, then the
    spread of the whole column, then 1. Noise that cannot be squared, alone or as a share of the readings, is refused.
    """
    present = np.flatnonzero(np.isfinite(x))
    if not len(present):
        return 1.0
    sequence = np.searchsorted(panel.offsets, present, side="right") - 1
    same = sequence[1:] == sequence[:-1]
    steps, weights = np.abs(np.diff(x[present]))[same], panel.weights[sequence[1:]][same]
    noise = (weighted_median(steps, weights) or float(np.average(steps, weights=weights))) if len(steps) else 0.0
    noise = noise / median_of_noise or _spread(x[present], panel.weights[sequence])
    largest = float(np.abs(x[present]).max())
    if noise < max(1.0, largest) / LARGEST:
        around = np.abs(x[present] - float(np.median(x[present])))
        row = int(present[np.where(around > 0, around, np.inf).argmin()])
        raise PanelError(
            f"the noise of readings must be at least {1 / LARGEST:g}, and this share of the largest reading "
            f"{largest:g}, got {noise:g}, as by {x[row]:g} at {panel.locate(row)}; rescale the column."
        )
    return noise


def _spread(x: Floats, weights: Floats) -> float:
    """Standard deviation, 1 if it is but rounding."""
    centre = float(np.average(x, weights=weights))
    unit = power_of_two(float(np.abs(x - centre).max()))
    spread = unit * float(np.sqrt(np.average(((x - centre) / unit) ** 2, weights=weights)))
    return spread if spread > 1e-12 * abs(centre) else 1.0
