"""
The states of a model
=====================

Which state follows which: a row for each state, with its level and its mean dwell, a column for what comes next.
"""

import jumpmeans as jm

panel = jm.datasets.load_icu_pressure()
model = jm.JumpMeans(6, emission="gaussian").fit(panel)
ax = jm.plots.plot_states(model, time_unit="hours", value_unit="mmHg")
