"""Parameters as a climb of the likelihood moves them: values, the information in each, and their scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..arrays import Bools, Floats

# Hands out the next coordinates of a climb in a given shape.
Take = Callable[..., Floats]


class Part(NamedTuple):
    """Some parameters: their values, the information in each (see `slope`), and whether they move as square roots.

    whole : the axis along which they are probabilities that sum to 1, if any; name : what they are; known : those that
    are fixed.
    """

    values: Floats
    weights: Floats
    root: bool
    whole: int | None = None
    name: str = "parameter"
    known: Bools | None = None

    @property
    def coordinates(self) -> Floats:
        """The values as a leap moves them, flat."""
        return np.ravel(np.sqrt(self.values) if self.root else self.values)

    @property
    def information(self) -> Floats:
        """Information of the complete data in each coordinate."""
        return np.ravel((4.0 if self.root else 1.0) * self.weights)

    def slope(self, image: Part) -> Floats:
        """Gradient of the log-likelihood: weight times the way to the EM step, per coordinate."""
        way = np.ravel(self.weights * (image.values - self.values))
        if not self.root:
            return way
        u = self.coordinates
        return np.where(u > 0, 2.0 * way / np.where(u > 0, u, 1.0), 0.0)
