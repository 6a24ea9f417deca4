"""Text as it was written: which fields are numbers, which are labels, and which are missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arrays import AnyArray
from ..errors import PanelError, shorten

# A number, NaN and infinities included. One with leading zeros, such as 01, is a code: a label, not a number.
NUMBER = re.compile(
    r"\s*[+-]?(?:(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf|infinity)\s*", re.IGNORECASE
)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # as an id is written, within int64
_NOTHING = {"na", "n/a", "nan", "none", "null"}  # how programs write that there is no number
_BOOLEANS = {"true": True, "false": False}

Fields = Sequence[str | None]
"""What stands in a column of a file, None where a field is empty."""


def parse_number(text: str) -> float | int:
    """A number; an integer that float64 might round stays an integer."""
    digits = text.strip().lstrip("+-")
    return int(text) if 15 < len(digits) < 400 and digits.isdigit() else float(text)


def key_column(fields: Fields) -> AnyArray:
    """Integers if every field is written as one, so that 007 is not 7; else the text."""
    whole = all(x is not None and _INTEGER.fullmatch(x) for x in fields)
    return np.array(list(map(int, fields)), np.int64) if whole else text_column(fields)  # type: ignore[arg-type]


def value_column(fields: Fields, name: str, decided: bool) -> AnyArray:
    """Numbers if every field is one, booleans if every field is true or false, else labels as written.

    A word for nothing among numbers may be a missing one or a label: it is refused until the caller has `decided`.
    """
    present = [x for x in fields if x is not None]
    words = [x for x in present if not NUMBER.fullmatch(x)]
    if not words:
        return _objects([None if x is None else parse_number(x) for x in fields])
    if not decided and len(words) < len(present) and all(x.strip().lower() in _NOTHING for x in words):
        word = words[0]
        raise PanelError(
            f"column {name!r} must be all numbers or all labels, got {word!r} among numbers at row "
            f"{fields.index(word)}; say missing=[{word!r}] if it means a missing value, missing=[] if it is a label."
        )
    if all(x.lower() in _BOOLEANS for x in present):
        return _objects([None if x is None else _BOOLEANS[x.lower()] for x in fields])
    return text_column(fields)


def number_column(fields: Fields, name: str) -> AnyArray:
    """Numbers; anything else is refused."""
    for row, x in enumerate(fields):
        if x is not None and not NUMBER.fullmatch(x):
            raise PanelError(f"{name} must be numbers, got {shorten(repr(x))} at row {row}; correct it.")
    return _objects([None if x is None else parse_number(x) for x in fields])


def text_column(fields: Fields) -> AnyArray:
    """The text, None where a field is empty."""
    return _objects(list(fields))


def _objects(items: list[Any]) -> AnyArray:
    return np.array(items, dtype=object)
