"""
States and moves as a diagram
=============================

A circle holds a state and its mean dwell; an arrow has the rate of its move, and is the
wider, the likelier the move is.
"""

import jumpmeans as jm

panel = jm.datasets.load_edss()
model = jm.JumpMeans(emission="direct").fit(panel)
ax = jm.plots.plot_transitions(model, time_unit="years")
