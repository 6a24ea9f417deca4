"""`jumpmeans report`: the report of a fit, written again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .columns import column_options, fitted_columns, read_table, take_asked
from .ending import spoken
from .files import check_free, checksum, find_model
from .held_out import from_record as read_test
from .say import titled
from .sureness import from_record

if TYPE_CHECKING:
    from .say import Say


@click.command(short_help="Write the report of a fit again.")
@click.argument("folder", type=click.Path())
@click.option("--data", type=click.Path(), help="The table; by default the one that the model was fitted to.")
@column_options
@click.option("--out", type=click.Path(), help="File to write; by default report.html in the folder.")
@click.option("--time-unit", metavar="WORD", help="Unit of time to be shown; by default that of the fit.")
@click.option("--title", help="Title of the report.")
@click.option("--force", is_flag=True, help="Replace a report that is there.")
@spoken
def report(
    say: Say, folder: str, data: str | None, out: str | None, time_unit: str | None, title: str | None, force: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Write the report of a fit: FOLDER is what fit wrote, or a model file."""
    from ..errors import MissingExtraError
    from ..loading import load

    path = find_model(folder)
    target = Path(out) if out is not None else path.parent / "report.html"
    check_free([target], force)
    model = load(path)
    run = _read_run(path)
    if data is None:
        data = str(run.get("input", {}).get("path") or "")
        if not data:
            raise ValueError("--data must name the table, since there is no run.json beside the model.")
        if Path(data).is_file() and checksum(Path(data)) != run["input"].get("sha256"):
            say.warn(f"{data} is no longer what the model was fitted to; the report shows what it is now")
    panel, _ = read_table(data, take_asked(options), say, fitted_columns(path))
    try:
        from ..report import write_report
    except ImportError as error:
        raise MissingExtraError(f"a report needs more than is installed: {error}") from None
    write_report(
        model, panel, target, held_out=read_test(run.get("held_out")),
        title=title or run.get("title") or titled(model, panel, data),
        warnings=run.get("warnings", ()), time_unit=time_unit or run.get("time_unit"),
        dwell_interval=from_record(run.get("dwell_interval"), model),
    )  # fmt: skip
    say.tell(f"{target}")
    say.result({"report": str(target)})


def _read_run(path: Path) -> dict[str, Any]:
    try:
        run = json.loads((path.parent / "run.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return run if isinstance(run, dict) else {}
