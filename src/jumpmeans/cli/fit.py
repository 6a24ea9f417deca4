"""`jumpmeans fit`: from a table to a model, trajectories, a report and a record of the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import legible
from .columns import column_options, find_unit, read_table, take_asked
from .ending import spoken
from .files import Clock, check_free, make_folder, peak_memory, write_csv, write_run, write_trajectories
from .held_out import has_failed, hold_out_test, usual_share
from .held_out import to_record as held_record
from .models import make_model, model_options
from .say import by_options, plural, titled
from .sureness import dwell_interval, to_record

if TYPE_CHECKING:
    from .say import Say


@click.command()
@click.argument("file", type=click.Path())
@column_options
@model_options
@click.option(
    "--hold-out",
    type=click.FloatRange(0, 1, max_open=True),
    help="Share of values to test on, 0: none; by default 0.25 if a report is written of at most 5,000 rows.",
)
@click.option(
    "--refits",
    type=click.IntRange(0),
    help="Refits behind the intervals of dwell times; by default 100 if a report is written of at most 5,000 rows.",
)
@click.option("--out", type=click.Path(), help="Folder to write into; by default the file's name and -fit.")
@click.option(
    "--format", "file_format", type=click.Choice(["csv", "parquet"]), default="csv", help="Of the trajectories."
)
@click.option("--time-unit", metavar="WORD", help="Unit of time to be shown, such as years.")
@click.option("--title", help="Title of the report.")
@click.option("--no-report", is_flag=True, help="Write no report.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@spoken
def fit(
    say: Say, file: str, hold_out: float | None, refits: int | None, out: str | None, file_format: str,
    time_unit: str | None, title: str | None, no_report: bool, force: bool, **options: Any,
) -> None:  # fmt: skip
    """Fit a model to a table.

    Columns, the family of the values and the number of states are guessed where that is safe, and what was guessed is
    said. Writes model.jm, trajectories.csv, states.csv, report.html and run.json into a folder.

    \b
    jumpmeans fit visits.csv --id patient --time day --value edss --hold-out 0.25
    jumpmeans fit visits.csv --allowed well-ill,ill-well,well-dead,ill-dead --absorbing dead
    """
    from ..data.times import in_unit

    folder = Path(out) if out is not None else Path(f"{Path(file).name.split('.')[0] or 'jumpmeans'}-fit")
    names = ["model.jm", f"trajectories.{file_format}", "states.csv", "run.json"] + (
        [] if no_report else ["report.html"]
    )
    check_free([folder / name for name in names], force)
    clock = Clock()
    asked = take_asked(options)
    with clock.part("read"):
        panel, columns = read_table(file, asked, say)
    unit, units = find_unit(say, columns, panel, time_unit)
    length, shown = (1.0, None) if panel.clock is None else in_unit("days", unit)
    model, families = make_model(say, panel, **options)
    guessed = [*columns.guessed, *units, *families]
    say.note(f"fitting {type(model).__name__}")
    with clock.part("fit"):
        model.fit(panel)
    held = None
    share = usual_share(panel, not no_report) if hold_out is None else hold_out
    if share > 0:
        say.note(f"testing on {100 * share:g} % of the values, held out")
        with clock.part("hold out"):
            held = hold_out_test(model, panel, share, options["seed"])
        if hold_out is None and has_failed(held):  # nobody asked for it
            held = None
    with clock.part("refits"):
        wanted = 0 if refits is None and no_report else refits
        sure = dwell_interval(say, model, panel, wanted, options["jobs"], options["seed"])
    summary = model.summary_columns(shown)
    if sure is not None:
        bounds = {"dwell_low": sure.low, "dwell_high": sure.high}
        summary |= {name: table.values.ravel() / length for name, table in bounds.items()}
    make_folder(folder)
    with clock.part("write"):
        model.save(folder / "model.jm")
        write_trajectories(folder / names[1], model.trajectories_)
        write_csv(folder / "states.csv", summary)
        called = title or titled(model, panel, file)
        page = None if no_report else _write_report(say, model, panel, folder, held, sure, called, unit)
        written = names if no_report or page is not None else names[:-1]
    write_run(
        folder / "run.json", file, columns.roles, clock,
        guessed=guessed, model=_describe(model), seed=options["seed"], title=title, time_unit=unit,
        held_out=held_record(held), dwell_interval=to_record(sure), warnings=say.warnings, files=written,
        peak_memory_mb=peak_memory(),
    )  # fmt: skip
    heading = f"{type(model).__name__} of {Path(file).name}: {plural(len(model.states_), 'state')}"
    say.table(heading, legible.of_states(summary, unit))
    say.tell("".join(f"Mind: {by_options(note)}.\n" for note in summary.get("note", ()) if note).rstrip())
    if held is not None:
        say.tell(held.verdict)
    say.tell(f"{', '.join(written)} in {folder}")
    if page is not None:
        say.tell(f"Open {page} in a browser.")
    say.result(
        {
            "folder": str(folder), "files": written, "states": summary, "guessed": guessed, "time_unit": unit,
            "held_out": held_record(held), "warnings": say.warnings,
        }
    )  # fmt: skip


def _describe(model: Any) -> dict[str, Any]:
    """The settings of a model, as text where they are no plain values."""
    options = model.get_params(deep=False)
    plain = bool | int | float | str | None
    shown = {name: x if isinstance(x, plain | list) else repr(x) for name, x in options.items()}
    fitted = {
        "states": model.states_,
        "objective": model.objective_,
        "sweeps": model.n_iter_,
        "converged": model.converged_,
    }
    return {"class": type(model).__name__, "options": shown, **fitted}


def _write_report(
    say: Say, model: Any, panel: Any, folder: Path, held: Any, sure: Any, title: str, unit: str | None
) -> Path | None:
    """Write the report, where what it needs is there; where it is."""
    try:
        from ..report import write_report
    except ImportError as error:
        say.note(f"no report.html: {error}")
        return None
    from ..errors import MissingExtraError

    try:
        return write_report(
            model, panel, folder / "report.html",
            held_out=held, dwell_interval=sure, title=title, warnings=say.warnings, time_unit=unit,
        )  # fmt: skip
    except MissingExtraError as error:
        say.note(f"no report.html: {error}")
        return None
