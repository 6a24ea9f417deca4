"""`jumpmeans watch`: observations as they come, and a line each time a sequence changes state."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .columns import ASKED, find_columns, fitted_columns, read_sets
from .ending import spoken
from .files import find_model
from .say import by_options, clean, unsteered

if TYPE_CHECKING:
    from .say import Say


class Row(NamedTuple):
    """One observation, its values one for each column, and how it was seen."""

    id: Any
    time: Any
    values: list[Any]
    kind: Any
    true_state: Any


@click.command(short_help="Tell each change of state as observations come.")
@click.argument("model", type=click.Path())
@click.option("--id", metavar="COLUMN", help="Column, or key, of ids.")
@click.option("--time", metavar="COLUMN", help="Column, or key, of times.")
@click.option("--value", multiple=True, metavar="COLUMN", help="Column, or key, of values.")
@click.option("--kind", metavar="COLUMN", help="Column, or key, of how rows were seen: snapshot, transition, entry.")
@click.option("--true-state", metavar="COLUMN", help="Column, or key, of states that are known of hidden ones.")
@click.option("--set", "sets", multiple=True, metavar="LABEL=A,B", help="A label that means one of several states.")
@click.option("--all", "every", is_flag=True, help="A line for every row, not only where the state changes.")
@click.option("--least-margin", type=float, help="Tell a change once its margin exceeds this.")
@click.option("--hold", type=float, help="Tell a change once it has held for this time.")
@spoken
def watch(
    say: Say, model: str, every: bool, least_margin: float | None, hold: float | None, **asked: Any
) -> None:  # fmt: skip
    """Read observations from standard input and tell each change of state at once.

    Lines are CSV below a header, or JSON objects, with an id, a time and a value. Each change is one JSON line: id,
    time, state, the state before, since when, and the margin. A line that cannot be read is told on standard error and
    left out.

    \b
    monitor | jumpmeans watch icu-fit | while read alert; do ...
    """
    from ..loading import load
    from ..online import OnlineDecoder

    path = find_model(model)
    fitted, known = load(path), fitted_columns(path)
    states = {str(state): state for state in fitted.states_.tolist()}
    sets = {
        label: [states.get(str(name), name) for name in own]
        for label, own in (read_sets(asked["sets"]) or known.get("sets", {})).items()
    }
    decoder = OnlineDecoder(fitted, least_margin=least_margin, hold=hold, sets=sets)
    reader = Reader(decoder, asked, known)
    before: dict[Any, Any] = {}
    for number, line in enumerate(_lines(), 1):
        try:
            row = reader.read(line)
            if row is None:
                continue
            value = row.values if len(row.values) > 1 else row.values[0]
            told = decoder.update(row.id, row.time, value, kind=row.kind, true_state=row.true_state)
        except (ValueError, TypeError, KeyError, OverflowError, csv.Error) as error:
            click.echo(f"line {number}: {clean(by_options(str(error)))} Left out.", err=True)
            continue
        if every or told.changed or row.id not in before:
            alert = {"id": row.id, "time": row.time, "state": told.state, "before": before.get(row.id)}
            alert |= {"since": _shown(told.since), "margin": told.margin if told.margin < float("inf") else None}
            sys.stdout.write(unsteered(json.dumps(alert, ensure_ascii=False, default=str)) + "\n")
            sys.stdout.flush()
        before[row.id] = told.state


def _lines() -> Iterator[str]:
    """Lines of standard input, each as soon as it is there; bytes that are no text are told as such."""
    stream = sys.stdin.buffer if hasattr(sys.stdin, "buffer") else sys.stdin
    while line := stream.readline():
        yield line if isinstance(line, str) else line.decode("utf-8", "backslashreplace")


def _shown(time: Any) -> Any:
    return time if isinstance(time, int | float) else str(time).removesuffix(".000000000")


class Reader:
    """Lines to rows: CSV below its header, or JSON."""

    def __init__(self, decoder: Any, asked: dict[str, Any], known: dict[str, Any]) -> None:
        self.asked = dict.fromkeys(ASKED) | asked
        self.known = known
        self.header: list[str] | None = None
        self.speaks_json = False
        self.names: dict[str, Any] = {}
        self.dates = decoder.takes_dates
        sets = {label: label for label in decoder.sets or {}}
        self.labels = [
            {str(label): label for label in column.symbols.tolist()} | sets if column.has_labels else None
            for column in decoder.model.process_.emission.columns
        ]
        self.states = {str(state): state for state in decoder.states.tolist()} | sets

    def read(self, line: str) -> Row | None:
        """The row of a line; None for a blank line and for the header."""
        if not line.strip():
            return None
        if line.lstrip().startswith("{"):
            fields = json.loads(line)
            self.speaks_json = True
            return self._row(fields, self._name(list(fields)))
        cells = next(csv.reader([line.rstrip("\r\n")], strict=True))
        if self.header is None:
            if self.speaks_json:
                raise ValueError(f"a line must be a JSON object, as those before it, got {line.strip()[:40]!r}.")
            self.names = self._name(cells)
            self.header = cells
            return None
        if len(cells) != len(self.header):
            raise ValueError(f"a line must have {len(self.header)} fields as the header has, got {len(cells)}.")
        return self._row(dict(zip(self.header, cells, strict=True)), self.names)

    def _name(self, header: list[str]) -> dict[str, Any]:
        known = [self.known.get("id"), self.known.get("time"), *self.known.get("value", ())]
        lacking = [name for name in known if name not in header]
        if lacking and len(lacking) < len(known) and not any(self.asked.values()):
            raise ValueError(f"a line must have {lacking[0]!r}, as the table of the fit had, got {header[:5]}.")
        roles = find_columns(header, self.asked, self.known).roles
        values = [roles["value"]] if isinstance(roles["value"], str) else roles["value"]
        if len(values) != len(self.labels):
            raise ValueError(f"the model has {len(self.labels)} columns of values, got {values}; name them by --value.")
        return roles | {"value": values}

    def _row(self, fields: dict[str, Any], names: dict[str, Any]) -> Row:
        from ..data.text import unshielded

        for name in (names["id"], names["time"], *names["value"]):
            if name not in fields:
                raise ValueError(f"a line must have {name!r}, got {list(fields)[:5]}.")
        id = fields[names["id"]]
        if isinstance(id, float | bool | list | dict) or id is None or id == "":
            raise ValueError(f"an id must be text or a whole number, got {id!r}.")
        values = [self._value(fields[name], known) for name, known in zip(names["value"], self.labels, strict=True)]
        kind, true_state = (fields.get(names.get(role, "")) or None for role in ("kind", "true_state"))
        if true_state is not None:
            true_state = self._known(true_state, self.states, "a state")
        return Row(
            unshielded(id) if isinstance(id, str) else id, self._time(fields[names["time"]]), values, kind, true_state
        )

    def _time(self, time: Any) -> Any:
        if self.dates and isinstance(time, str):
            return time
        try:
            return float(time)
        except (TypeError, ValueError):
            raise ValueError(f"a time must be a number, got {time!r}.") from None

    def _value(self, value: Any, known: dict[str, Any] | None) -> Any:
        if value is None or value == "":
            return None
        if known is not None:
            return self._known(value, known, "a value")
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ValueError(f"a value must be a number, got {value!r}.") from None

    def _known(self, value: Any, known: dict[str, Any], what: str) -> Any:
        from ..data.text import unshielded

        text = unshielded(value) if isinstance(value, str) else str(value)
        if text not in known:
            raise ValueError(f"{what} must be one of {list(known)[:5]}, got {text!r}.")
        return known[text]
