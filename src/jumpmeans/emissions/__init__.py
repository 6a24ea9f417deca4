"""Observation families: what a state shows, what a mismatch costs, how parameters follow from assigned values.

To add one, write a `Column` (or, for a Bregman divergence, a `MeanColumn`). Its class can be given as `emission=` at
once; listed in `record.FAMILIES`, its name too.
"""

from ..arrays import power_of_two
from .bregman import Bernoulli, Exponential, MeanColumn, Poisson
from .categorical import Categorical
from .centred import CentredColumn
from .checks import require_values
from .column import Column
from .gaussian import Gaussian, Lognormal
from .laplace import Laplace
from .record import (
    FAMILIES,
    Family,
    Record,
    as_record,
    find_families,
    find_family,
    marks_states,
    require_particles,
    shows_states,
)
from .student import Student
from .symbols import Direct, Marker

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Categorical",
    "CentredColumn",
    "Column",
    "Direct",
    "Exponential",
    "Family",
    "Gaussian",
    "Laplace",
    "Lognormal",
    "Marker",
    "MeanColumn",
    "Poisson",
    "Record",
    "Student",
    "as_record",
    "find_families",
    "find_family",
    "marks_states",
    "power_of_two",
    "require_particles",
    "require_values",
    "shows_states",
]
