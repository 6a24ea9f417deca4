"""How a command ends: exit codes, and errors in a line or two on standard error."""

from __future__ import annotations

import functools
import os
import re
import sys
import traceback
from collections.abc import Callable
from typing import Any

import click

from ..errors import InfeasibleError, MissingExtraError, ModelFileError, PanelError
from .say import Say, by_options, laid

# Exit codes, as docs/command-line.md has them; the first that fits.
FAULT, ASKED, DATA, MODEL, EXISTS, EXTRA, STOPPED = 1, 2, 3, 4, 5, 6, 130
CODES: tuple[tuple[type[BaseException], int], ...] = (
    (ModelFileError, MODEL),
    (PanelError, DATA),
    (InfeasibleError, DATA),
    (FileExistsError, EXISTS),
    (MissingExtraError, EXTRA),
    (OSError, DATA),
    (ValueError, ASKED),
)


def spoken(command: Callable[..., None]) -> Callable[..., None]:
    """Options that every command has, and errors without a traceback.

    The command gets a `Say` as its first argument.
    """

    @click.option("--quiet", "-q", is_flag=True, help="Say nothing but errors and warnings.")
    @click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on standard output.")
    @click.option("--debug", is_flag=True, help="Show the traceback of an error.")
    @functools.wraps(command)
    def wrapped(quiet: bool, as_json: bool, debug: bool, **options: Any) -> None:
        try:
            with Say(quiet, as_json).listening() as say:
                command(say, **options)
            sys.stdout.flush()
        except (click.ClickException, click.exceptions.Exit):
            raise
        except BrokenPipeError:  # whoever read us has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(0) from None
        except KeyboardInterrupt:
            click.echo("stopped.", err=True)
            raise click.exceptions.Exit(STOPPED) from None
        except Exception as error:
            if debug:
                traceback.print_exc()
            code = next((code for kind, code in CODES if isinstance(error, kind)), FAULT)
            click.echo(laid(f"error: {_told(error, code)}", sys.stderr), err=True)
            raise click.exceptions.Exit(code) from None

    return wrapped


def _told(error: Exception, code: int) -> str:
    if code != FAULT:
        text = by_options(str(error))
        return f"{text} Rows are counted from 0, below the header." if re.search(r"\brow \d", text) else text
    return f"{type(error).__name__}: {error} (this should not happen: it is a fault of jumpmeans; --debug shows where)"
