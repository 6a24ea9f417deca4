"""What the end of a descent is worth as a process: the likelihood that it comes to in some EM steps.

The objective compares descents of one number of states and one spread of the offsets. Between numbers of states, or
spreads, it is the likelihood that tells.
"""

from __future__ import annotations

import numpy as np

from ..model.constraints import Constraints
from ..model.process import Process
from ..passes import Sequences
from .descent import Descent
from .em_steps import em_steps
from .levels import find_levels, spread_given
from .publish import estimate_process
from .setup import PSEUDO_COUNT

# EM steps before likelihoods are compared.
CHECK_STEPS = 20


def process_behind(run: Descent, constraints: Constraints) -> Process:
    """The process that the trajectories of a descent speak for."""
    return estimate_process(run.stats, run.params, constraints, PSEUDO_COUNT, np.arange(len(run.params.rates)))


def likelihood_behind(sequences: Sequences, run: Descent, constraints: Constraints) -> tuple[float, Process]:
    """Log-likelihood of the process behind a descent after some EM steps, and this process."""
    levels = None if run.levels is None else spread_given(run.levels, run.stats, run.params)
    process = process_behind(run, constraints)
    sequences = find_levels(sequences.at(levels), process)
    process, sequences = em_steps(sequences, process, constraints, CHECK_STEPS, PSEUDO_COUNT)
    return sequences.log_likelihood(process), process


def evidence(sequences: Sequences, run: Descent, constraints: Constraints, n: float) -> float:
    """That log-likelihood less the price of its parameters; n is the weighted number of observations.

    A state adds its emission, a rate and a share of the base row: each costs half the logarithm of the number of
    observations (derivation, eq. 14). Dividing noise gains less than that; docs/choices.md has the null panels.
    """
    log_lik, process = likelihood_behind(sequences, run, constraints)
    return log_lik - price(process, n)


def price(process: Process, n: float) -> float:
    """Half the logarithm of the number of observations for every parameter."""
    return 0.5 * np.log(max(n, 2.0)) * len(process.rates) * (process.emission.n_free + 2)
