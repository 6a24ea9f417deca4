"""The group of all commands."""

from __future__ import annotations

import click

from ..version import __version__
from .compare import compare
from .decode import decode, forecast
from .doctor import doctor
from .fit import fit
from .report import report
from .simulate import simulate
from .tune import tune
from .watch import watch


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "-V", "--version", prog_name="jumpmeans")
def app() -> None:
    """What a system was doing between irregular looks at it.

    FILE is a table in long format, one row for each observation: .csv, .tsv (or .gz of one) or .parquet. Start with
    `jumpmeans fit FILE`.
    """


for command in (fit, compare, decode, forecast, simulate, tune, report, watch, doctor):
    app.add_command(command)
