"""Pictures of trajectories, probabilities, states and fits. Every function takes an axes and returns it."""

from .axes import PALETTE
from .history import plot_history
from .posterior import plot_posterior
from .states import plot_states
from .trajectory import plot_trajectory
from .tuning import plot_state_path, plot_trials

__all__ = [
    "PALETTE",
    "plot_history",
    "plot_posterior",
    "plot_state_path",
    "plot_states",
    "plot_trajectory",
    "plot_trials",
]
