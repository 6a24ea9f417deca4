"""The errors a user can meet, split by what to do about them."""


class PanelError(ValueError):
    """The data break a rule of the panel; the message names the sequence, the row and the way out."""


class InfeasibleError(ValueError):
    """No trajectory can explain a sequence under the allowed moves; the message names it."""


class MissingExtraError(ImportError):
    """An optional package is needed for this call; the message says how to install it."""


class RiseWarning(RuntimeWarning):
    """The objective rose where no step may raise it: a fault of ours, or numbers beyond what floats can hold."""


class StructureWarning(UserWarning):
    """The data look as if something could not happen that the model allows; the message says how to rule it out."""
