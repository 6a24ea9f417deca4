"""
Are dwells exponential?
=======================

How many dwells of the trajectories last longer than a given time (steps), and how many would, were the process a Markov
process (dashed). On this scale an exponential law is a straight line.
"""

import jumpmeans as jm

panel = jm.datasets.load_icu_pressure()
model = jm.JumpMeans(6, emission="gaussian").fit(panel)
ax = jm.plots.plot_dwells(model, time_unit="hours")
