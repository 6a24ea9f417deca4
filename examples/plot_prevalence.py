"""
Who is where, as time goes on
=============================

Shares of the sequences under observation in each state, as observed and as the process expects them. A state counts
from the row that shows it, so what is observed lags behind by about half a gap. Patients are simulated.
"""

import jumpmeans as jm

truth = jm.Process.from_generator(
    {"well": {"ill": 0.2, "dead": 0.03}, "ill": {"well": 0.1, "dead": 0.3}}, [0.9, 0.1, 0.0]
)
panel, _ = jm.simulate(truth, 300, 6, mean_gap=1.5, random_state=0)
model = jm.JumpMeans(emission="direct", structure=jm.Structure(absorbing=["dead"])).fit(panel)
ax = jm.plots.plot_prevalence(model, panel, [0, 1, 2, 3, 4, 6, 8], carry=False, time_unit="years")
