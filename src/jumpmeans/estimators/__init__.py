"""Estimators: JUMP-means for a given number of states, and for one that is learned."""

from .infinite import InfiniteJumpMeans
from .jump_means import JumpMeans

__all__ = ["InfiniteJumpMeans", "JumpMeans"]
