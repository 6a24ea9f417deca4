"""`jumpmeans decode` and `jumpmeans forecast`: what a fitted model says of a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .columns import column_options, fitted_columns, read_table, take_asked
from .ending import spoken
from .files import check_free, find_model, write_csv, write_trajectories

if TYPE_CHECKING:
    from .say import Say


@click.command(short_help="Trajectories of a table, by a fitted model.")
@click.argument("model", type=click.Path())
@click.argument("file", type=click.Path())
@column_options
@click.option("--criterion", help="What a trajectory is best by: objective, time or online (as watch).")
@click.option("--out", type=click.Path(), help="File to write, .csv or .parquet; standard output by default.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@spoken
def decode(
    say: Say, model: str, file: str, criterion: str | None, out: str | None, force: bool, **options: Any
) -> None:
    """Trajectories of the sequences of a table: one row for each dwell.

    MODEL is a file that fit wrote, or its folder.
    """
    fitted, panel = _open(say, model, file, take_asked(options))
    target = _target(out, force)
    found = fitted.decode(panel) if criterion is None else fitted.decode(panel, criterion)
    if say.as_json:
        say.result(found.to_columns())
    if target is not None or not say.as_json:
        write_trajectories(target, found)


@click.command(short_help="Probabilities of the states after the last rows.")
@click.argument("model", type=click.Path())
@click.argument("file", type=click.Path())
@column_options
@click.option("--at", multiple=True, metavar="TIME", help="A time, number or date, the same for all.")
@click.option("--horizon", multiple=True, type=float, help="A time since the last rows (days, for dates).")
@click.option("--out", type=click.Path(), help="CSV file to write; standard output by default.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@spoken
def forecast(
    say: Say, model: str, file: str, at: tuple[str, ...], horizon: tuple[float, ...], out: str | None, force: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Probabilities of the states, and values to expect, after the last row of each sequence."""
    if bool(at) == bool(horizon):
        raise ValueError("times to forecast must be given by --at or by --horizon, one of the two.")
    fitted, panel = _open(say, model, file, take_asked(options))
    target = _target(out, force)
    if at:
        times: Any = list(at) if panel.clock is not None else [_number(x) for x in at]
        found = fitted.forecast(panel, times)
    else:
        found = fitted.forecast(panel, horizon=list(horizon))
    values = found.values[:, None] if found.values.ndim == 1 else found.values
    columns: dict[str, Any] = {"id": found.ids, "time": found.times, "horizon": found.horizons}
    columns |= {name: values[:, d] for d, name in enumerate(found.columns)}
    columns |= {f"P({label})": found.probs[:, m] for m, label in enumerate(found.states.tolist())}
    if say.as_json:
        say.result(columns)
    if target is not None or not say.as_json:
        write_csv(target, columns)


def _open(say: Say, model: str, file: str, asked: dict[str, Any]) -> tuple[Any, Any]:
    """The model and the panel; columns are those that the model was fitted to, where that is known."""
    from ..loading import load

    path = find_model(model)
    fitted = load(path)
    panel, _ = read_table(file, asked, say, fitted_columns(path))
    return fitted, panel


def _target(out: str | None, force: bool) -> Path | None:
    if out is None:
        return None
    check_free([Path(out)], force)
    return Path(out)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--at must be a number, like the times of the table, got {text!r}.") from None
