"""Pictures of trajectories, probabilities, states and fits. Every function takes an axes and returns it."""

from .axes import PALETTE
from .comparison import plot_comparison
from .diagram import plot_transitions
from .dwells import plot_dwells
from .history import plot_history
from .over_time import plot_prevalence, plot_survival
from .posterior import plot_posterior
from .states import plot_states
from .trajectory import plot_trajectory
from .tuning import plot_state_path, plot_trials

__all__ = [
    "PALETTE",
    "plot_comparison",
    "plot_dwells",
    "plot_history",
    "plot_posterior",
    "plot_prevalence",
    "plot_state_path",
    "plot_states",
    "plot_survival",
    "plot_trajectory",
    "plot_transitions",
    "plot_trials",
]
