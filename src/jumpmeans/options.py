"""The one idiom of validation: a class lists a rule for each of its options, and `check_options` holds them.

A rule knows what must hold in words and whether a value does. The error then always reads
"{name} must be {what}, got {value!r}."
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Set
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np


class Rule(NamedTuple):
    """What a value must be, in words, and the test of it."""

    what: str
    holds: Callable[[Any], bool]

    def __or__(self, other: Rule) -> Rule:
        """Either of two rules."""
        return Rule(f"{self.what} or {other.what}", lambda value: self.holds(value) or other.holds(value))

    def check(self, name: str, value: Any) -> None:
        """Refuse a value that breaks the rule, by the name of its option."""
        if not self.holds(value):
            raise ValueError(f"{name} must be {self.what}, got {shown(value)}.")


def shown(value: Any, most: int = 200) -> str:
    """A value as an error shows it: not longer than a line or two."""
    text = repr(value)
    return text if len(text) <= most else f"{text[:most]}... ({type(value).__name__})"


def is_finite(value: Any) -> bool:
    """A real number that a float can hold; True and False are none."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def count(least: int = 1, most: int | None = None) -> Rule:
    """A whole number that is neither too small nor too large."""
    what = f"an integer of at least {least}" if most is None else f"an integer from {least} to {most}"

    def holds(value: Any) -> bool:
        whole = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
        return whole and int(value) >= least and (most is None or int(value) <= most)

    return Rule(what, holds)


def number(above: float | None = None, least: float | None = None) -> Rule:
    """A finite number, above or not below a bound."""
    bound = f" > {above:g}" if above is not None else f" >= {least:g}" if least is not None else ""
    return Rule(
        f"a finite number{bound}",
        lambda value: is_finite(value) and (above is None or value > above) and (least is None or value >= least),
    )


def scale(largest: float = 1e100) -> Rule:
    """A number that data can be multiplied with and divided by without leaving what floats hold."""
    return Rule(
        f"a number from {1 / largest:g} to {largest:g}",
        lambda value: is_finite(value) and 1 / largest <= value <= largest,
    )


def price(largest: float = 1e100) -> Rule:
    """Nothing, or such a number."""
    return Rule("0", lambda value: is_finite(value) and value == 0) | scale(largest)


def choice(*names: str) -> Rule:
    """One of some words."""
    what = repr(names[0]) if len(names) == 1 else f"one of {names}"
    return Rule(what, lambda value: isinstance(value, str) and value in names)


def listed(rule: Rule, what: str, least: int = 1, most: float = math.inf) -> Rule:
    """A list (or an array, a column of a frame) of so many entries, all of which keep a rule."""
    return Rule(what, lambda value: is_list(value) and least <= len(value) <= most and all(map(rule.holds, value)))


def is_list(value: Any) -> bool:
    """Whether a value has entries in an order; text is one thing, not many."""
    if isinstance(value, str | bytes | Mapping | Set):
        return False
    return getattr(value, "ndim", 1) == 1 and hasattr(value, "__len__") and hasattr(value, "__getitem__")


def instance(*types: type) -> Rule:
    """An object of some type."""
    return Rule(
        " or ".join(f"a {kind.__name__}" for kind in types), lambda value: isinstance(value, types)
    )  # fmt: skip


auto = choice("auto")
none = Rule("None", lambda value: value is None)
flag = Rule("True or False", lambda value: isinstance(value, bool | np.bool_))
label = Rule("a label", lambda value: isinstance(value, Hashable) and not is_list(value))
# Which families there are is for the emissions to say.
family = Rule("the name of a family", lambda value: isinstance(value, str | type))
families = family | listed(family, "a list of them, one for each column")
state_labels = none | listed(label, "a list of labels")
seed = (
    none
    | count(0)
    | listed(count(0), "a list of them")
    | instance(np.random.Generator, np.random.BitGenerator, np.random.SeedSequence)
)


def check_options(model: Any, rules: Mapping[str, Rule]) -> None:
    """Refuse the first option of a model that breaks its rule."""
    for name, rule in rules.items():
        rule.check(name, getattr(model, name))
