"""What a command says: notes on standard error, results on standard output, for people or as JSON."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import click

# Advice of the library is for Python; here the same is said by options.
ADVICE: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"say sets=\{label: \[states\]\} in Panel\.from_frame", "give --set LABEL=STATE,STATE"),
    (r"(?:say )?(?:structure=)?Structure\(absorbing=(\[.*?\])\)", lambda found: _absorbing(found)),
    (r"Structure\(allowed=\.\.\.\)", "--allowed A-B,..."),
    (r"\b(refine|first_dwell|objective)='(\w+)'", r"--option \1=\2"),
    (r"(?:by )?criterion='time'", "--criterion time"),
    (r"by states=\[\.\.\.\](?: \(direct\))?(?: when fitting)?", "by --option 'states=[...]' of fit"),
    (r"by covariates=\[\.\.\.\]", "by --covariate"),
    (r"say missing=\[(.*?)\](.*?), missing=\[\]", lambda found: _missing(found)),
    (r"say by kind=", "say by a column named by --kind"),
    (r"say kind=\.\.\. in Panel\.from_frame \(kinds=\.\.\. in from_arrays\)", "name a column of words by --kind"),
    (r"\bemission=", "--emission "),
)
# A cell of a printed table shows so many characters.
WIDEST = 100


def clean(text: str) -> str:
    """Text without anything that moves the cursor, colours the terminal or turns its direction."""
    return "".join(x if x.isprintable() or x == "\n" else x.encode("unicode_escape").decode() for x in text)


def plural(n: int, noun: str) -> str:
    """A number with its noun."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def titled(model: Any, panel: Any, file: str) -> str:
    """The title of a report where none is given: of which table it is, and of what."""
    names = panel.columns[:3]
    values = ", ".join(names) if panel.n_columns <= 3 else f"{', '.join(names)} and {panel.n_columns - 3} more"
    return f"{os.path.basename(file)}: {plural(len(model.states_), 'state')} of {values}"


def by_options(text: str) -> str:
    """Advice for users of the library, as one follows it at the command line."""
    for pattern, options in ADVICE:
        text = re.sub(pattern, options, text)
    return text


def _absorbing(found: re.Match[str]) -> str:
    try:
        labels = ast.literal_eval(found[1])
    except (ValueError, SyntaxError):
        return "give --absorbing STATE"
    return "give " + " ".join(f"--absorbing {shlex.quote(str(label))}" for label in labels)


def _missing(found: re.Match[str]) -> str:
    try:
        word = shlex.quote(ast.literal_eval(found[1]))
    except (ValueError, SyntaxError, TypeError):
        word = "WORD"
    return f"give --missing {word}{found[2]}, --missing ''"


def laid(text: str, stream: Any) -> str:
    """Text without what steers a terminal, in lines that fit one; whole lines where it goes elsewhere."""
    text = clean(text)
    if not stream.isatty():
        return text
    width = max(shutil.get_terminal_size().columns, 40)
    wrapped = (textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) for line in text.split("\n"))
    return "\n".join(line for lines in wrapped for line in lines or [""])


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
            from ..progress import Bar, quiet

            stack.enter_context(quiet() if self.quiet else Bar.in_lines())
            yield self

    def _warned(self, message: Any, category: Any, *_: Any, **__: Any) -> None:
        if issubclass(category, DeprecationWarning | PendingDeprecationWarning | ResourceWarning):
            return
        self.warn(str(message))

    def warn(self, text: str) -> None:
        """Something to be wary of, once."""
        text = by_options(text)
        if text not in self.warnings:
            self.warnings.append(text)
            click.echo(laid(f"warning: {text}", sys.stderr), err=True)

    def note(self, text: str) -> None:
        """What is being done, or was guessed."""
        if not self.quiet:
            click.echo(laid(text, sys.stderr), err=True)

    def tell(self, text: str) -> None:
        """A result, for people."""
        if text and not (self.quiet or self.as_json):
            click.echo(laid(text, sys.stdout))

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
        for name, column in columns.items():
            justify: Any = "right" if all(map(_is_numeric, column)) else "left"
            table.add_column(Text(clean(str(name))), overflow="fold", justify=justify)
        for row in zip(*columns.values(), strict=True):
            table.add_row(*(Text(_cell(x)) for x in row))
        text = sys.stdout
        console = Console(file=text, width=None if text.isatty() else 160, highlight=False, soft_wrap=False)
        with console.capture() as captured:
            console.print(table)
        click.echo("\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n")))


def _is_numeric(x: Any) -> bool:
    """Whether a cell is a number, or one with its unit."""
    return isinstance(x, int | float) or hasattr(x, "item") or bool(re.fullmatch(r"[-\d.e+]+( %)?|for ever|", str(x)))


def _cell(x: Any) -> str:
    if hasattr(x, "item"):
        x = x.item()
    if x is None or x != x:
        return ""
    text = clean(f"{x:.4g}" if isinstance(x, float) else str(x)).replace("\n", " ")
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def to_json(x: Any) -> str:
    """JSON of results; what is not a finite number is null."""
    return unsteered(json.dumps(_plain(x), ensure_ascii=False, indent=2, allow_nan=False))


def unsteered(text: str) -> str:
    """The same JSON, with what could steer a terminal written by its number."""
    return re.sub(r"[^\x20-\x7e\n]", lambda found: found[0] if found[0].isprintable() else _by_number(found[0]), text)


def _by_number(letter: str) -> str:
    return json.dumps(letter)[1:-1]


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
