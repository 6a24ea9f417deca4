"""What a system was doing between irregular looks at it: JUMP-means for Markov jump processes."""

from . import comparators, datasets, emissions, engines, plots
from .errors import InfeasibleError, MissingExtraError, PanelError
from .estimators import InfiniteJumpMeans, JumpMeans
from .evaluation import hold_out, reconstruction_error
from .io import read_panel
from .panel import Panel
from .params import Process
from .prior import simulate_hggp
from .simulate import simulate
from .structure import Structure
from .trajectories import Trajectories
from .tuning import state_path, tune

__version__ = "0.1.0"

__all__ = [
    "InfeasibleError",
    "InfiniteJumpMeans",
    "JumpMeans",
    "MissingExtraError",
    "Panel",
    "PanelError",
    "Process",
    "Structure",
    "Trajectories",
    "comparators",
    "datasets",
    "emissions",
    "engines",
    "hold_out",
    "plots",
    "read_panel",
    "reconstruction_error",
    "simulate",
    "simulate_hggp",
    "state_path",
    "tune",
]
