"""
The objective, sweep by sweep
=============================

It never rises; a rise would be a fault, and is told as a warning.
"""

import jumpmeans as jm

panel = jm.datasets.load_icu_pressure()
model = jm.JumpMeans(6, emission="gaussian").fit(panel)
ax = jm.plots.plot_history(model)
