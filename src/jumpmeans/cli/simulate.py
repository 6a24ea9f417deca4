"""`jumpmeans simulate`: tables drawn from a fitted model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .at import at_option, process_at
from .columns import fitted_columns
from .ending import spoken
from .files import check_free, find_model, write_csv, write_trajectories
from .say import plural

if TYPE_CHECKING:
    from .say import Say


@click.command()
@click.argument("model", type=click.Path())
@click.option("--sequences", "-n", default=100, show_default=True, type=click.IntRange(1), help="Number of sequences.")
@click.option("--rows", default=20, show_default=True, type=click.IntRange(1), help="Rows of each.")
@click.option("--mean-gap", type=float, help="Mean time between rows; a third of the shortest dwell by default.")
@at_option
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of random numbers.")
@click.option("--out", type=click.Path(), help="CSV file to write; standard output by default.")
@click.option("--truth", type=click.Path(), help="File for the true trajectories, .csv or .parquet.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@spoken
def simulate(
    say: Say, model: str, sequences: int, rows: int, mean_gap: float | None, given: tuple[str, ...], seed: int,
    out: str | None, truth: str | None, force: bool,
) -> None:  # fmt: skip
    """Draw a table from a fitted model."""
    from ..loading import load
    from ..simulation import simulate as draw

    check_free([Path(x) for x in (out, truth) if x is not None], force)
    path = find_model(model)
    fitted = load(path).process_
    process = process_at(fitted, given)
    if fitted.effects is not None:
        others = "the mean of all other covariates" if given else "the mean covariates"
        say.note(f"rates at {', '.join([*given, others])}")
    known = fitted_columns(path)
    values = known.get("value", [])
    fastest = float(process.rates.max())
    gap = mean_gap if mean_gap is not None else (1.0 / (3.0 * fastest) if fastest > 0 else 1.0)
    panel, paths = draw(process, sequences, rows, mean_gap=gap, random_state=seed)
    # a table like the one that the model was fitted to, where that is known
    names = values if len(values) == panel.n_columns else panel.columns
    columns: dict[str, Any] = {known.get("id", "id"): panel.ids[panel.sequence_index]}
    columns[known.get("time", "time")] = panel.times
    columns |= {name: panel.decode_values(panel.values[:, d], d) for d, name in enumerate(names)}
    say.note(f"{plural(sequences, 'sequence')} of {plural(rows, 'row')}, {gap:.4g} apart on the average")
    if say.as_json:
        say.result(columns)
    if out is not None or not say.as_json:
        write_csv(None if out is None else Path(out), columns)
    if truth is not None:
        write_trajectories(Path(truth), paths)
