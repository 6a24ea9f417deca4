"""Other ways to answer the same questions, with the same contract as the estimators."""

from .by_hand import CarriedForward, Interpolation, KernelSmoother, MostCommon
from .ml_trajectory import MLTrajectories, MLTrajectory

__all__ = ["CarriedForward", "Interpolation", "KernelSmoother", "MLTrajectories", "MLTrajectory", "MostCommon"]
