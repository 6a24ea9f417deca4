"""How good is a model: values held out, errors, and many fits scored on the same hold-outs."""

from .alarms import AlarmRates, alarm_rates
from .bootstrap import Bootstrap, bootstrap
from .compare import Comparison, compare
from .hold_out import Truth, hold_out
from .nested import LikelihoodRatio, likelihood_ratio
from .pearson import PearsonTest, pearson_test
from .scores import match_labels, reconstruction_error
from .state_path import StatePath, state_path
from .tune import Tuned, tune

__all__ = [
    "AlarmRates",
    "Bootstrap",
    "Comparison",
    "LikelihoodRatio",
    "PearsonTest",
    "StatePath",
    "Truth",
    "Tuned",
    "alarm_rates",
    "bootstrap",
    "compare",
    "hold_out",
    "likelihood_ratio",
    "match_labels",
    "pearson_test",
    "reconstruction_error",
    "state_path",
    "tune",
]
