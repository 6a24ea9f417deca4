"""Other ways to answer the same questions, with the same contract as the estimators."""

from .by_hand import CarriedForward, Interpolation, KernelSmoother, MostCommon
from .gibbs import Gibbs
from .ml_trajectory import MLTrajectories, MLTrajectory
from .particle_gibbs import ParticleGibbs

__all__ = [
    "CarriedForward",
    "Gibbs",
    "Interpolation",
    "KernelSmoother",
    "MLTrajectories",
    "MLTrajectory",
    "MostCommon",
    "ParticleGibbs",
]
