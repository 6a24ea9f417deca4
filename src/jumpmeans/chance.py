"""Where random numbers come from."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_generator(random_state: Any) -> np.random.Generator:
    """A generator of random numbers: itself, or one seeded by an integer (by the system, for None)."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(f"random_state must be an integer >= 0, a Generator or None, got {random_state!r}.") from None
