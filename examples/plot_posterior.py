"""
How sure is the state, at every moment?
=======================================

Probabilities of the states of one stay, given all its readings, which are ticked along the bottom.
"""

import jumpmeans as jm

panel = jm.datasets.load_icu_pressure()
model = jm.JumpMeans(6, emission="gaussian").fit(panel)
ax = jm.plots.plot_posterior(model, panel, 132540, time_unit="hours", value_unit="mmHg")
