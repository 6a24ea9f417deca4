"""`jumpmeans tune`: weights chosen by values held out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import legible
from .columns import column_options, read_table, take_asked
from .ending import spoken
from .files import Clock, check_free, make_folder, write_csv, write_run
from .models import SHARE, make_model, model_options

if TYPE_CHECKING:
    from .say import Say

FILES = ("model.jm", "trials.csv", "run.json")


@click.command(short_help="Try other weights of the objective, keep the best.")
@click.argument("file", type=click.Path())
@column_options
@model_options
@click.option("--budget", default=10, show_default=True, type=click.IntRange(1), help="Settings to try.")
@click.option("--folds", default=3, show_default=True, type=click.IntRange(1), help="Hold-outs that each is judged by.")
@click.option("--hold-out", type=SHARE, default=0.25, show_default=True, help="Share of values held out.")
@click.option("--out", type=click.Path(), help="Folder for the best model and the table of trials.")
@click.option("--force", is_flag=True, help="Replace files that are there.")
@spoken
def tune(
    say: Say, file: str, budget: int, folds: int, hold_out: float, out: str | None, force: bool, **options: Any
) -> None:
    """Try other weights of the objective, and keep the best by values held out."""
    from ..evaluation import tune as tune_model

    if out is not None:
        check_free([Path(out) / name for name in FILES], force)
    clock = Clock()
    asked = take_asked(options)
    with clock.part("read"):
        panel, columns = read_table(file, asked, say)
    jobs = options.pop("jobs")
    model, guessed = make_model(say, panel, jobs=None, **options)
    say.note(f"trying {budget} settings of {type(model).__name__}")
    with clock.part("tune"):
        found = tune_model(
            model, panel, budget=budget, folds=folds, fraction=hold_out, n_jobs=jobs, random_state=options["seed"]
        )
    table = {name: [row.get(name) for row in found.trials] for name in found.trials[0]}
    if out is not None:
        make_folder(Path(out))
        found.model.save(Path(out) / "model.jm")
        write_csv(Path(out) / "trials.csv", {name: [_text(x) for x in column] for name, column in table.items()})
        write_run(
            Path(out) / "run.json", file, columns.roles, clock,
            guessed=[*columns.guessed, *guessed], best=found.best, seed=options["seed"], warnings=say.warnings,
        )  # fmt: skip
    say.table(found.measure, legible.of_trials(table, found.measure))
    best = ", ".join(f"{name}={value}" for name, value in found.best.items()) or "the model as it was given"
    say.tell(f"best: {best}")
    if out is not None:
        say.tell(f"{', '.join(FILES)} in {out}")
    say.result({"best": found.best, "best_trial": found.best_trial, "trials": found.trials, "measure": found.measure})


def _text(x: Any) -> Any:
    return str(x) if isinstance(x, list | tuple | dict) else x
