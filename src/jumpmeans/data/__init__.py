"""Data in and out: panels, clocks, files, trajectories."""
