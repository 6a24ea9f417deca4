"""The noise of measured columns, in whose units families count their costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import Floats, power_of_two, weighted_median
from ..errors import PanelError
from .single import LARGEST

if TYPE_CHECKING:
    from ..data.panel import Panel


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
