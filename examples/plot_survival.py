"""
Time until a state is reached
=============================

The probability of not having been in the severe stage yet, from each stage that one may start in.
"""

import jumpmeans as jm

panel = jm.datasets.load_edss()
model = jm.JumpMeans(emission="direct").fit(panel)
ax = jm.plots.plot_survival(model, 3, time_unit="years")
