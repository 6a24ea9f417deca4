"""Which column of a table is which: as asked for, as a model was fitted to, or guessed where that is safe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from ..errors import first_few
from .say import plural

if TYPE_CHECKING:
    from ..data.panel import Panel
    from .say import Say

Command = TypeVar("Command", bound=Callable[..., Any])
# Names that columns have, the plain one first: where it is there it is taken, else the only one of the others.
NAMES = {
    "id": (
        "id", "patient", "patient_id", "subject", "subject_id", "person", "person_id", "pid", "usubjid", "ptnum",
        "case", "case_id", "unit", "sequence", "stay", "stay_id", "record_id", "participant", "participant_id", "bed",
        "animal", "issuer", "customer", "client", "machine", "device", "sensor", "molecule", "encounter_id", "mrn",
    ),
    "time": (
        "time", "t", "date", "datetime", "timestamp", "day", "days", "week", "weeks", "month", "months", "year",
        "years", "hour", "hours", "minute", "minutes", "second", "seconds", "age", "visit_date",
    ),
    "value": (
        "value", "values", "state", "obs", "observation", "status", "stage", "grade", "score", "label",
        "reading", "rating",
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
            click.option("--value", multiple=True, metavar="COLUMN", help="Column of values; can be repeated."),
            click.option("--group", metavar="COLUMN", help="Column of what sequences have in common."),
            click.option("--weight", metavar="COLUMN", help="Column of weights of sequences."),
            click.option("--start", metavar="COLUMN", help="Column of where the windows of sequences begin."),
            click.option("--end", metavar="COLUMN", help="Column of where they end, as with follow-up after a visit."),
            click.option("--kind", metavar="COLUMN", help="Column of how rows were seen: snapshot, transition, entry."),
            click.option("--true-state", metavar="COLUMN", help="Column of states that are known of hidden ones."),
            click.option(
                "--set", "sets", multiple=True, metavar="LABEL=A,B", help="A label that means one of several states."
            ),
            click.option(
                "--covariate",
                "covariates",
                multiple=True,
                metavar="COLUMN",
                help="Column that rates may depend on; can be repeated.",
            ),
            click.option("--missing", multiple=True, metavar="WORD", help="A word that stands for a missing value."),
        ]
    ):
        command = option(command)
    return command


MUST = ("id", "time", "value")
MAY = ("group", "weight", "start", "end", "kind", "true_state")
ASKED = (*MUST, *MAY, "sets", "covariates", "missing")
# Names of a column of numbers that tell their unit.
UNITS = {name: f"{name.removesuffix('s')}s" for name in (
    "second", "seconds", "minute", "minutes", "hour", "hours", "day", "days", "week", "weeks", "month", "months",
    "year", "years",
)}  # fmt: skip
# Names by which a column is taken for how rows were seen, if that is what its words say.
KINDS = ("kind", "kinds", "obstype")


def take_asked(options: dict[str, Any]) -> dict[str, Any]:
    """The options of `column_options`, out of all."""
    return {name: options.pop(name) for name in ASKED}


def read_table(
    path: str, asked: Mapping[str, Any], say: Say, known: Mapping[str, Any] | None = None
) -> tuple[Panel, Columns]:
    """The panel of a file, and which columns it was made of; `known` are those of an earlier fit."""
    from ..data.files import find_delimiter, read_header, read_panel

    say.note(f"reading {path}")
    header = read_header(path)
    columns = find_columns(header, asked, known or {}, _kinds(path, header))
    if find_delimiter(Path(path)) == ";":
        columns.guessed.insert(0, "semicolons between fields, decimal commas")
    for guess in columns.guessed:
        say.note(f"guessed: {guess}")
    missing = list(asked["missing"]) or None
    panel = read_panel(path, missing=missing, **columns.roles)
    say.note(
        f"{plural(panel.n_sequences, 'sequence')}, {plural(panel.n_observations, 'row')}, "
        f"values of {', '.join(panel.columns)}"
    )
    return panel, columns


def find_unit(say: Say, columns: Columns, panel: Panel, asked: str | None) -> tuple[str | None, list[str]]:
    """The unit of times to show: as asked for, days for dates, or as the column's name says; and the guess in words."""
    if asked is not None or panel.clock is not None:
        return asked or "days", []
    unit = UNITS.get(str(columns.roles["time"]).strip().lower())
    if unit is None:
        return None, []
    guess = f"--time-unit {unit}"
    say.note(f"guessed: {guess}")
    return unit, [guess]


def find_columns(
    header: Sequence[str], asked: Mapping[str, Any], known: Mapping[str, Any], kinds: str | None = None
) -> Columns:
    """Roles of columns: asked for, known, or guessed where there is no doubt; `kinds` tells how rows were seen."""
    roles: dict[str, Any] = {}
    guessed: list[str] = []
    for role in MAY:
        column = asked.get(role) or (known.get(role) if known.get(role) in header else None)
        if column is not None:
            roles[role] = column
    if "kind" not in roles and kinds is not None:
        roles["kind"] = kinds
        guessed.append(f"--kind {kinds}")
    covariates = list(asked.get("covariates") or ()) or list(known.get("covariates", ()))
    if covariates:
        roles["covariates"] = covariates
    sets = read_sets(asked.get("sets")) or known.get("sets")
    if sets:
        roles["sets"] = _in_numbers(sets)
    for role in ("id", "time"):
        roles[role] = asked[role] or (known.get(role) if known.get(role) in header else None)
    roles["value"] = list(asked["value"]) or [name for name in known.get("value", ()) if name in header]
    for role in MUST:
        if roles[role]:
            continue
        named = [value for name, value in roles.items() if value and name != "sets"]
        taken = {x for value in named for x in ([value] if isinstance(value, str) else value)}
        found = _guess(role, [name for name in header if name not in taken])
        roles[role] = [found] if role == "value" else found
        guessed.append(f"--{role} {found}")
    if len(roles["value"]) == 1:
        roles["value"] = roles["value"][0]
    return Columns(roles, guessed)


def _kinds(path: str, header: Sequence[str]) -> str | None:
    """The column that tells how rows were seen, if one has such a name and such words."""
    from ..data.files import words_of
    from ..kinds import SAID

    words = {"", *SAID, "1", "2", "3"}
    named = [name for name in header if name.strip().lower() in KINDS]
    return next((name for name in named if words_of(path, name, len(words)) <= words), None)


def read_sets(given: Sequence[str] | None) -> dict[str, list[str]]:
    """What labels may mean, as said by --set."""
    return dict(map(_read_set, given or ()))


def _read_set(given: str) -> tuple[str, list[str]]:
    """A label and the states that it may mean, of "label=state,state"."""
    label, _, states = given.partition("=")
    listed = [state.strip() for state in states.split(",") if state.strip()]
    if not label.strip() or len(listed) < 2:
        raise ValueError(f"--set must be LABEL=A,B with two states or more, got {given!r}.")
    return label.strip(), listed


def _in_numbers(sets: Mapping[Any, Sequence[Any]]) -> dict[Any, list[Any]]:
    """Sets of labels that are whole numbers, as a column of such labels has them; others as they are."""
    labels = [str(label) for label in (*sets, *(state for own in sets.values() for state in own))]
    read = int if all(label.removeprefix("-").isdecimal() for label in labels) else str
    return {read(label): [read(str(state)) for state in own] for label, own in sets.items()}


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
    # a table with a column for each visit is what people often have
    long = "" if found or role != "time" else "; a table has one row for each observation, and its time in a column"
    raise ValueError(f"the column of the {role} must be named by --{role}: it {which}{long}.")


def fitted_columns(model: Path) -> dict[str, Any]:
    """Columns that a model was fitted to, if the file beside it tells."""
    import json

    try:
        columns = json.loads((model.parent / "run.json").read_text("utf-8"))["columns"]
        values = columns["value"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    roles = {name: columns[name] for name in ("id", "time", *MAY) if isinstance(columns.get(name), str)}
    roles |= {"value": [values] if isinstance(values, str) else values, "covariates": columns.get("covariates", ())}
    if isinstance(columns.get("sets"), dict):
        roles["sets"] = columns["sets"]
    return {name: x for name, x in roles.items() if isinstance(x, str | dict) or _are_names(x)}


def _are_names(x: Any) -> bool:
    return isinstance(x, list) and all(isinstance(name, str) for name in x)
