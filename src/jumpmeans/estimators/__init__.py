"""Estimators: JUMP-means for a given number of states."""

from .jump_means import JumpMeans

__all__ = ["JumpMeans"]
