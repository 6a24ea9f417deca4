"""
The states of a model
=====================

Left: the level of each state and the share of time spent in it. Right: which state follows which.
"""

import jumpmeans as jm

panel = jm.datasets.load_icu_pressure()
model = jm.JumpMeans(6, emission="gaussian").fit(panel)
ax = jm.plots.plot_states(model, time_unit="hours", value_unit="mmHg")
