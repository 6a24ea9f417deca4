"""What a system was doing between irregular looks at it: JUMP-means for Markov jump processes."""

from . import comparators, datasets, emissions, engines, plots
from .data.files import read_panel
from .data.panel import Panel
from .data.trajectories import Trajectories
from .errors import InfeasibleError, MissingExtraError, ModelFileError, PanelError
from .estimators import InfiniteJumpMeans, JumpMeans
from .evaluation import (
    alarm_rates,
    bootstrap,
    hold_out,
    likelihood_ratio,
    pearson_test,
    reconstruction_error,
    state_path,
    tune,
)
from .loading import load
from .model.gamma_process import simulate_hggp
from .model.process import Process
from .model.structure import Structure
from .online import OnlineDecoder
from .report import write_report
from .simulate import simulate
from .version import __version__ as __version__

__all__ = [
    "InfeasibleError",
    "InfiniteJumpMeans",
    "JumpMeans",
    "MissingExtraError",
    "ModelFileError",
    "OnlineDecoder",
    "Panel",
    "PanelError",
    "Process",
    "Structure",
    "Trajectories",
    "alarm_rates",
    "bootstrap",
    "comparators",
    "datasets",
    "emissions",
    "engines",
    "hold_out",
    "likelihood_ratio",
    "load",
    "pearson_test",
    "plots",
    "read_panel",
    "reconstruction_error",
    "simulate",
    "simulate_hggp",
    "state_path",
    "tune",
    "write_report",
]
