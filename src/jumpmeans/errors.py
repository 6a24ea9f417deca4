"""The errors a user can meet, split by what to do about them, and how they list what they found."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice
from typing import Any

_SHOWN = 5  # entries that a message lists
_WIDEST = 60  # characters that it shows of one
_SEARCHED = 10_000  # names among which a likely one is looked for


class PanelError(ValueError):
    """The data break a rule of the panel; the message names the sequence, the row and the way out."""


class InfeasibleError(ValueError):
    """No trajectory can explain a sequence under the allowed moves; the message names it."""


class ModelFileError(ValueError):
    """A file holds no model, or not a whole one; the message says what is wrong with it."""


class TooLargeError(ValueError):
    """What was asked for cannot fit into memory; the message says how much it would be, and the way out."""


class MissingExtraError(ImportError):
    """An optional package is needed for this call; the message says how to install it."""


class RiseWarning(RuntimeWarning):
    """The objective rose where no step may raise it: a fault of ours, or numbers beyond what floats can hold."""


class StructureWarning(UserWarning):
    """The data look as if something could not happen that the model allows; the message says how to rule it out."""


def first_few(items: Iterable[Any]) -> str:
    """The first five of the items as a message lists them, and how many more there are.

    Examples
    --------
    >>> first_few(["a", "b"]), first_few(range(1000))
    ("['a', 'b']", '[0, 1, 2, 3, 4] and 995 more')
    """
    items = list(items)
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return f"[{', '.join(shorten(repr(x)) for x in items[:_SHOWN])}]{more}"


def shorten(text: str) -> str:
    """The text, or its beginning if it is long."""
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


def nearest(name: Any, known: Iterable[Any]) -> str:
    """The likeliest meaning of a wrong name: a part of a message, or nothing."""
    close = difflib.get_close_matches(str(name), map(str, islice(known, _SEARCHED)), n=1)
    return f" (did you mean {shorten(repr(close[0]))}?)" if close else ""
