"""Which column of a table is which: as asked for, as a model was fitted to, or guessed where that is safe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from ..errors import first_few

if TYPE_CHECKING:
    from ..data.panel import Panel
    from .say import Say

Command = TypeVar("Command", bound=Callable[..., Any])
# Names that columns have, the plain one first: where it is there it is taken, else the only one of the others.
NAMES = {
    "id": (
        "id", "patient", "patient_id", "subject", "subject_id", "person", "person_id", "pid", "usubjid", "ptnum",
        "case", "case_id", "unit", "sequence", "stay", "stay_id", "record_id",
    ),
    "time": (
        "time", "t", "date", "datetime", "timestamp", "day", "days", "week", "weeks", "month", "months", "year",
        "years", "hour", "hours", "minute", "minutes", "age", "visit_date",
    ),
    "value": (
        "value", "values", "state", "obs", "observation", "status", "stage", "grade", "score", "label", "reading",
    ),
}  # fmt: skip


class Columns(NamedTuple):
    """Names of columns by their role, and what was guessed, in words."""

    roles: dict[str, Any]
    guessed: list[str]


def column_options(command: Command) -> Command:
    """Options that name the columns of a table."""
    for option in reversed(
        [
            click.option("--id", metavar="COLUMN", help="Column of ids."),
            click.option("--time", metavar="COLUMN", help="Column of times: numbers or ISO dates."),
            click.option(
                "--value", multiple=True, metavar="COLUMN", help="Column of values; may be given several times."
            ),
            click.option("--group", metavar="COLUMN", help="Column of what sequences have in common."),
            click.option("--weight", metavar="COLUMN", help="Column of weights of sequences."),
            click.option("--kind", metavar="COLUMN", help="Column of how rows were seen: snapshot, transition, entry."),
            click.option("--missing", multiple=True, metavar="WORD", help="A word that stands for a missing value."),
        ]
    ):
        command = option(command)
    return command


ASKED = ("id", "time", "value", "group", "weight", "kind", "missing")


def take_asked(options: dict[str, Any]) -> dict[str, Any]:
    """The options of `column_options`, out of all."""
    return {name: options.pop(name) for name in ASKED}


def read_table(
    path: str, asked: Mapping[str, Any], say: Say, known: Mapping[str, Any] | None = None
) -> tuple[Panel, Columns]:
    """The panel of a file, and which columns it was made of; `known` are those of an earlier fit."""
    from ..data.files import read_header, read_panel

    say.note(f"reading {path}")
    columns = find_columns(read_header(path), asked, known or {})
    for guess in columns.guessed:
        say.note(f"guessed: {guess}")
    missing = list(asked["missing"]) or None
    panel = read_panel(path, missing=missing, **columns.roles)
    say.note(f"{panel.n_sequences} sequences, {panel.n_observations} rows, values of {', '.join(panel.columns)}")
    return panel, columns


def find_columns(header: Sequence[str], asked: Mapping[str, Any], known: Mapping[str, Any]) -> Columns:
    """Roles of columns: asked for, known, or guessed where there is no doubt."""
    roles: dict[str, Any] = {name: asked[name] for name in ("group", "weight", "kind") if asked[name] is not None}
    guessed: list[str] = []
    for role in ("id", "time"):
        roles[role] = asked[role] or (known.get(role) if known.get(role) in header else None)
    roles["value"] = list(asked["value"]) or [name for name in known.get("value", ()) if name in header]
    for role in ("id", "time", "value"):
        if roles[role]:
            continue
        taken = {x for value in roles.values() if value for x in ([value] if isinstance(value, str) else value)}
        found = _guess(role, [name for name in header if name not in taken])
        roles[role] = [found] if role == "value" else found
        guessed.append(f"--{role} {found}")
    if len(roles["value"]) == 1:
        roles["value"] = roles["value"][0]
    return Columns(roles, guessed)


def _guess(role: str, free: list[str]) -> str:
    """The column of a role, if there is one that it must be."""
    plain = {name: name.strip().lower().replace(" ", "_").replace("-", "_") for name in free}
    words = NAMES[role]
    first = [name for name in free if plain[name] == words[0]]
    found = first or [name for name in free if plain[name] in words]
    if not found and role == "value":
        found = free
    if len(found) == 1:
        return found[0]
    which = f"could be any of {first_few(found)}" if found else f"is none of {first_few(free)} by its name"
    raise ValueError(f"the column of the {role} must be named by --{role}: it {which}.")


def fitted_columns(model: Path) -> dict[str, Any]:
    """Columns that a model was fitted to, if the file beside it tells."""
    import json

    try:
        columns = json.loads((model.parent / "run.json").read_text("utf-8"))["columns"]
        roles = {name: columns[name] for name in ("id", "time") if isinstance(columns.get(name), str)}
        values = columns["value"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    listed = [values] if isinstance(values, str) else values
    return roles | {"value": listed} if isinstance(listed, list) else roles
