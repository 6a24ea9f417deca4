"""Text as it was written: which fields are numbers, which are labels, and which are missing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..arrays import AnyArray
from ..errors import PanelError, shorten

# A number, NaN and infinities included. One with leading zeros, such as 01, is a code: a label, not a number.
NUMBER = re.compile(
    r"\s*[+-]?(?:(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|inf|infinity)\s*", re.IGNORECASE
)
_LONG = re.compile(r"\s*[+-]?[0-9]{16,400}\s*")  # an integer that float64 might round
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # as an id is written, within int64
_NOTHING = {"na", "n/a", "nan", "none", "null"}  # how programs write that there is no number
_BOOLEANS = {"true": True, "false": False}

# What a spreadsheet would take for a formula: text that begins so is written behind an apostrophe, and read without it.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")

Fields = Sequence[str | None]
"""What stands in a column of a file, None where a field is empty."""


def shielded(text: str) -> str:
    """Text as a spreadsheet shows it and does not run it; the inverse of `unshielded`.

    Examples
    --------
    >>> shielded("=cmd()"), shielded("mild"), unshielded(shielded("'=x"))
    ("'=cmd()", 'mild', "'=x")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unshielded(text: str) -> str:
    """Text as it was before `shielded`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def read_numbers(fields: Fields) -> AnyArray | None:
    """Numbers, NaN where a field is empty; objects if an integer is so long that float64 might round it.

    None if some field is not a number.
    """
    present = [x for x in fields if x is not None]
    if not all(map(NUMBER.fullmatch, present)):
        return None
    if any(map(_LONG.fullmatch, present)):
        return _objects([None if x is None else int(x) if _LONG.fullmatch(x) else float(x) for x in fields])
    return np.array([np.nan if x is None else float(x) for x in fields])


def key_column(fields: Fields) -> AnyArray:
    """Integers if every field is written as one, so that 007 is not 7; else the text."""
    if None in fields or not all(map(_INTEGER.fullmatch, fields)):  # type: ignore[arg-type]
        return _objects(list(fields))
    return np.array(list(map(int, fields)), np.int64)  # type: ignore[arg-type]


def value_column(fields: Fields, name: str, decided: bool, apart: Mapping[str, Any] | None = None) -> AnyArray:
    """Numbers if every field is one, booleans if every field is true or false, else labels as written.

    A word for nothing among numbers may be a missing one or a label: it is refused until the caller has `decided`.
    Words `apart` decide nothing of that, and come out as what they stand for.
    """
    words_apart = [None if x is None else (apart or {}).get(x) for x in fields]
    if any(x is not None for x in words_apart):
        others = [x if word is None else None for x, word in zip(fields, words_apart, strict=True)]
        column = value_column(others, name, decided).astype(object)
        column[[word is not None for word in words_apart]] = [word for word in words_apart if word is not None]
        return column
    numbers = read_numbers(fields)
    if numbers is not None:
        return numbers
    present = [x for x in fields if x is not None]
    words = [x for x in present if not NUMBER.fullmatch(x)]
    if not decided and len(words) < len(present) and all(x.strip().lower() in _NOTHING for x in words):
        word = words[0]
        raise PanelError(
            f"column {name!r} must be all numbers or all labels, got {word!r} among numbers at row "
            f"{fields.index(word)}; say missing=[{word!r}] if it means a missing value, missing=[] if it is a label."
        )
    if all(x.lower() in _BOOLEANS for x in present):
        return _objects([None if x is None else _BOOLEANS[x.lower()] for x in fields])
    return _objects(list(fields))


def with_points(fields: list[str], blank: set[str]) -> list[str]:
    """Numbers with a decimal point instead of a comma, if with it every field that is not blank is one."""
    if not any("," in x for x in fields):
        return fields
    pointed = [x.replace(",", ".", 1) for x in fields]
    return pointed if all(x in blank or NUMBER.fullmatch(x) for x in pointed) else fields


def number_column(fields: Fields, name: str) -> AnyArray:
    """Numbers; anything else is refused."""
    numbers = read_numbers(fields)
    if numbers is None:
        row, word = next((i, x) for i, x in enumerate(fields) if x is not None and not NUMBER.fullmatch(x))
        raise PanelError(f"{name} must be numbers, got {shorten(repr(word))} at row {row}; correct it.")
    return numbers


def time_column(fields: Fields) -> AnyArray:
    """Numbers if every field is one, else the text, to be read as dates."""
    numbers = read_numbers(fields)
    return _objects(list(fields)) if numbers is None else numbers


def _objects(items: list[Any]) -> AnyArray:
    return np.array(items, dtype=object)
