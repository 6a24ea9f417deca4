"""Shared by all tests: one seeded generator, and hypothesis without chance."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "jumpmeans",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("jumpmeans")


@pytest.fixture
def rng():
    return np.random.default_rng(20150706)
