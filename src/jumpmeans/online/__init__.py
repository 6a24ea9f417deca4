"""At the bedside: the state now, since when and how surely, one row at a time and for many sequences at once."""

from .decoder import OnlineDecoder
from .told import Told

__all__ = ["OnlineDecoder", "Told"]
