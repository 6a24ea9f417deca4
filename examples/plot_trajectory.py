"""
The course of one stay
======================

The inferred trajectory of one stay in intensive care, its jumps, and the readings that it explains. Dots have the
colour of the state that they are explained by.
"""

import jumpmeans as jm

panel = jm.datasets.load_icu_pressure()
model = jm.JumpMeans(6, emission="gaussian").fit(panel)
ax = model.plot(132540, time_unit="hours", value_unit="mmHg")
