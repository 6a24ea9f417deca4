"""What a system was doing between irregular looks at it: JUMP-means for Markov jump processes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__ as __version__

if TYPE_CHECKING:
    from . import comparators, datasets, emissions, engines, evaluation, plots
    from .data.files import read_panel
    from .data.panel import Panel
    from .data.trajectories import Trajectories
    from .engines.scanned import scan_panel
    from .errors import (
        InfeasibleError,
        MissingExtraError,
        ModelFileError,
        PanelError,
        RiseWarning,
        StructureWarning,
        TooLargeError,
    )
    from .estimators import InfiniteJumpMeans, JumpMeans
    from .evaluation import (
        alarm_rates,
        bootstrap,
        compare,
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
    from .simulation import simulate

# Names and where they live: a name is loaded when it is first asked for, so that `jumpmeans --help` does not wait.
_HOMES = {
    "InfeasibleError": "errors",
    "InfiniteJumpMeans": "estimators",
    "JumpMeans": "estimators",
    "MissingExtraError": "errors",
    "ModelFileError": "errors",
    "OnlineDecoder": "online",
    "Panel": "data.panel",
    "PanelError": "errors",
    "Process": "model.process",
    "RiseWarning": "errors",
    "Structure": "model.structure",
    "StructureWarning": "errors",
    "TooLargeError": "errors",
    "Trajectories": "data.trajectories",
    "alarm_rates": "evaluation",
    "bootstrap": "evaluation",
    "comparators": "",
    "compare": "evaluation",
    "datasets": "",
    "emissions": "",
    "engines": "",
    "evaluation": "",
    "hold_out": "evaluation",
    "likelihood_ratio": "evaluation",
    "load": "loading",
    "pearson_test": "evaluation",
    "plots": "",
    "read_panel": "data.files",
    "reconstruction_error": "evaluation",
    "scan_panel": "engines.scanned",
    "simulate": "simulation",
    "simulate_hggp": "model.gamma_process",
    "state_path": "evaluation",
    "tune": "evaluation",
    "write_report": "report",
}

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
    "RiseWarning",
    "Structure",
    "StructureWarning",
    "TooLargeError",
    "Trajectories",
    "alarm_rates",
    "bootstrap",
    "comparators",
    "compare",
    "datasets",
    "emissions",
    "engines",
    "evaluation",
    "hold_out",
    "likelihood_ratio",
    "load",
    "pearson_test",
    "plots",
    "read_panel",
    "reconstruction_error",
    "scan_panel",
    "simulate",
    "simulate_hggp",
    "state_path",
    "tune",
    "write_report",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f".{home}", __name__), name) if home else import_module(f".{name}", __name__)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
