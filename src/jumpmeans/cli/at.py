"""Values of covariates at which a command takes a model whose rates depend on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import first_few, nearest

if TYPE_CHECKING:
    from ..model.process import Process

Command = TypeVar("Command", bound=Callable[..., Any])


def at_option(command: Command) -> Command:
    """The option that gives them."""
    return click.option(
        "--at",
        "given",
        multiple=True,
        metavar="COVARIATE=VALUE",
        help="Value of a covariate that rates depend on; those left out are at their mean.",
    )(command)


def process_at(process: Process, given: Sequence[str]) -> Process:
    """The process at values as --at has them: labels as the model knows them, or numbers."""
    covariates = {c.name: c for c in process.effects.covariates} if process.effects is not None else {}
    values: dict[str, Any] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise ValueError(f"--at must be COVARIATE=VALUE, such as age=60, got {text!r}.")
        if name not in covariates:
            known = first_few(covariates) if covariates else "none"
            raise ValueError(
                f"--at must name covariates of the model, {known}, got {name!r}{nearest(name, covariates)}."
            )
        labels = {str(label): label for label in covariates[name].labels or ()}
        values[name] = labels.get(value, value) if labels else _number(value)
    return process.at(values)


def _number(text: str) -> Any:
    """A number, or text as it stands: a date, or what is refused."""
    try:
        return float(text)
    except ValueError:
        return text
