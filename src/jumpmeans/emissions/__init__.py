"""Observation families: what a state shows, what a mismatch costs, how parameters follow from assigned values.

To add one, write a `Column` (or, for a Bregman divergence, a `MeanColumn`) and list it in `record.FAMILIES`.
"""

from .bregman import Bernoulli, Exponential, Gaussian, MeanColumn, Poisson
from .column import Column
from .laplace import Laplace
from .record import FAMILIES, Record, as_record, family_names
from .symbols import Categorical, Direct

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Categorical",
    "Column",
    "Direct",
    "Exponential",
    "Gaussian",
    "Laplace",
    "MeanColumn",
    "Poisson",
    "Record",
    "as_record",
    "family_names",
]
