"""What a command says: notes on standard error, results on standard output, for people or as JSON."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import click

# A cell of a printed table shows so many characters.
WIDEST = 60


def clean(text: str) -> str:
    """Text without anything that moves the cursor, colours the terminal or turns its direction."""
    return "".join(x if x.isprintable() or x == "\n" else x.encode("unicode_escape").decode() for x in text)


class Say:
    """The voice of one command."""

    def __init__(self, quiet: bool, as_json: bool) -> None:
        self.quiet, self.as_json = quiet, as_json
        self.warnings: list[str] = []

    @contextmanager
    def listening(self) -> Iterator[Say]:
        """Warnings of the library become lines; with `quiet` there are no bars."""
        with ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("always")
            warnings.showwarning = self._warned
            if self.quiet:
                from ..progress import quiet

                stack.enter_context(quiet())
            yield self

    def _warned(self, message: Any, category: Any, *_: Any, **__: Any) -> None:
        if issubclass(category, DeprecationWarning | PendingDeprecationWarning | ResourceWarning):
            return
        self.warn(str(message))

    def warn(self, text: str) -> None:
        """Something to be wary of, once."""
        if text not in self.warnings:
            self.warnings.append(text)
            click.echo(f"warning: {clean(text)}", err=True)

    def note(self, text: str) -> None:
        """What is being done, or was guessed."""
        if not self.quiet:
            click.echo(clean(text), err=True)

    def tell(self, text: str) -> None:
        """A result, for people."""
        if not (self.quiet or self.as_json):
            click.echo(clean(text))

    def result(self, result: Mapping[str, Any]) -> None:
        """The whole result, for programs."""
        if self.as_json:
            click.echo(to_json(result))

    def table(self, title: str, columns: Mapping[str, Sequence[Any]]) -> None:
        """A table that a person reads."""
        if self.quiet or self.as_json:
            return
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(clean(title)), title_justify="left", box=None, pad_edge=False, header_style="bold")
        for name in columns:
            table.add_column(Text(clean(str(name))), overflow="fold")
        for row in zip(*columns.values(), strict=True):
            table.add_row(*(Text(_cell(x)) for x in row))
        text = sys.stdout
        Console(file=text, width=None if text.isatty() else 160, highlight=False, soft_wrap=False).print(table)


def _cell(x: Any) -> str:
    if hasattr(x, "item"):
        x = x.item()
    if x is None or x != x:
        return ""
    text = clean(f"{x:.4g}" if isinstance(x, float) else str(x)).replace("\n", " ")
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def to_json(x: Any) -> str:
    """JSON of results; what is not a finite number is null."""
    return json.dumps(_plain(x), ensure_ascii=False, indent=2, allow_nan=False)


def _plain(x: Any) -> Any:
    if isinstance(x, Mapping):
        return {str(key): _plain(value) for key, value in x.items()}
    if isinstance(x, list | tuple):
        return [_plain(item) for item in x]
    if hasattr(x, "tolist") and not isinstance(x, str):
        return _plain(
            str(x) if getattr(x, "dtype", None) is not None and x.dtype.kind == "M" and x.ndim == 0 else x.tolist()
        )
    if isinstance(x, float):
        return x if abs(x) < float("inf") else None
    return x if x is None or isinstance(x, bool | int | str) else str(x)
