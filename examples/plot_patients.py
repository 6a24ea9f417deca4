"""
Several patients in one figure
==============================

Every function that draws takes an axes and returns it, so that pictures can be put together. These are the windows
of the EDSS data with the most moves.
"""

import matplotlib.pyplot as plt
import numpy as np

import jumpmeans as jm

panel = jm.datasets.load_edss()
model = jm.JumpMeans(emission="direct").fit(panel)
busiest = panel.ids[np.argsort(-np.diff(model.trajectories_.offsets), kind="stable")[:4]]

fig, axes = plt.subplots(2, 2, figsize=(8, 5), sharex=True, layout="constrained")
for ax, id in zip(axes.flat, busiest, strict=True):
    model.plot(id, ax=ax, time_unit="years")
