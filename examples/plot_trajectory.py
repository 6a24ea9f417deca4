"""
The course of one stay
======================

The inferred trajectory of one stay in intensive care, its jumps, and the readings that it explains.
"""

import jumpmeans as jm

panel = jm.datasets.load_icu_pressure()
model = jm.JumpMeans(6, emission="gaussian").fit(panel)
ax = jm.plots.plot_trajectory(model.trajectories_, 132540, panel, model, time_unit="hours", value_unit="mmHg")
