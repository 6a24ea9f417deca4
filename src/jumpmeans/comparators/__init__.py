"""Other ways to answer the same questions, with the same contract as the estimators."""

from .by_hand import CarriedForward, Interpolation, MostCommon
from .em import EM
from .gibbs import Gibbs
from .kernel_smoother import KernelSmoother
from .ml_trajectory import MLTrajectories, MLTrajectory
from .particle_gibbs import ParticleGibbs

__all__ = [
    "EM",
    "CarriedForward",
    "Gibbs",
    "Interpolation",
    "KernelSmoother",
    "MLTrajectories",
    "MLTrajectory",
    "MostCommon",
    "ParticleGibbs",
]
