"""How good is a model: values held out, errors, and many fits scored on the same hold-outs."""

from .scores import Truth, hold_out, match_labels, reconstruction_error
from .tuning import state_path, tune

__all__ = ["Truth", "hold_out", "match_labels", "reconstruction_error", "state_path", "tune"]
