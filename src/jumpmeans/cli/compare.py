"""`jumpmeans compare`: models and rules of thumb on values that none has seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import legible
from .columns import column_options, read_table, take_asked
from .ending import spoken
from .files import check_free
from .models import SHARE, _number_of_states, choose_families

if TYPE_CHECKING:
    from .say import Say


@click.command()
@click.argument("file", type=click.Path())
@column_options
@click.option("--states", default="auto", metavar="N|auto", help="Hidden states of JumpMeans and EM.")
@click.option("--emission", multiple=True, metavar="FAMILY", help="Family of each value column.")
@click.option("--hold-out", type=SHARE, default=0.25, show_default=True, help="Share of values to test on.")
@click.option("--folds", default=3, show_default=True, type=click.IntRange(1), help="How many times.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of random numbers.")
@click.option("--jobs", type=click.IntRange(1), help="Processes to work in; all cores by default.")
@click.option("--picture", type=click.Path(), help="Draw the table into this file, such as errors.png.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@spoken
def compare(
    say: Say, file: str, states: str, emission: tuple[str, ...], hold_out: float, folds: int, seed: int,
    jobs: int | None, picture: str | None, force: bool, **options: Any,
) -> None:  # fmt: skip
    """Compare models and rules of thumb, and say what to use."""
    from ..evaluation import compare as compare_models

    if picture is not None:
        check_free([Path(picture)], force)
    panel, columns = read_table(file, take_asked(options), say)
    if panel.covariates is not None:
        named = ", ".join(panel.covariates.names)
        say.warn(f"rates of what is compared depend on nothing: --covariate {named} is left out; fit has its effects.")
    n_states = _number_of_states(states)
    families, guessed = choose_families(panel, emission, n_states)
    for guess in guessed:
        say.note(f"guessed: {guess}")
    say.note("comparing")
    family: Any = families[0] if len(families) == 1 else families
    found = compare_models(
        panel, emission=family, n_states=n_states, fraction=hold_out, folds=folds, n_jobs=jobs, random_state=seed
    )
    say.table(f"{found.measure}, with 95 % intervals", legible.of_comparison(found))
    for row in found.rows:
        if row["message"]:
            say.warn(f"{row['name']}: {row['message']}")
    say.tell(found.verdict)
    if picture is not None:
        draw(found, picture)
    say.result(
        {
            "measure": found.measure, "rows": found.rows, "verdict": found.verdict,
            "guessed": [*columns.guessed, *guessed],
        }
    )  # fmt: skip


def draw(found: Any, path: str) -> None:
    """Draw a comparison into a file, without a screen."""
    from ..errors import MissingExtraError

    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("a picture needs matplotlib: pip install 'jumpmeans[plots]'.") from None
    matplotlib.use("agg")
    figure = found.plot().figure
    figure.savefig(path, dpi=150)
