"""
Models beside rules of thumb
============================

Error on hidden visits with 95 % intervals; hollow marks are rules of thumb.
"""

import jumpmeans as jm

ax = jm.compare(jm.datasets.load_edss(), folds=2, n_jobs=1).plot()
