"""
What if states cost more?
=========================

The number of states as their price grows, and the error on hidden readings along the way. The true number is 3.
"""

import jumpmeans as jm

levels = jm.emissions.Gaussian([0.0, 3.0, 6.0], sds=1.0)
truth = jm.Process.from_generator([[0, 0.1, 0.05], [0.2, 0, 0.1], [0.05, 0.15, 0]], emission=levels)
panel, _ = jm.simulate(truth, 100, 30, mean_gap=1.0, random_state=0)
ax = jm.state_path(panel).plot()
