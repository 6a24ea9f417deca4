"""The command line: from a table to a model, trajectories and a report, without a line of Python.

Modules of commands import nothing heavy at their top: `jumpmeans --help` must not wait. docs/command-line.md tells
what each command does, what it writes and how it ends.
"""

from .app import app

__all__ = ["app"]
