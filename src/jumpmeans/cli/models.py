"""From options of a command to a model: states, families, allowed moves."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import first_few, nearest

if TYPE_CHECKING:
    from ..data.panel import Panel
    from .say import Say

# Of what is held out.
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
# Labels that by their name are never left.
DEATHS = ("dead", "death", "died", "deceased")
Command = TypeVar("Command", bound=Callable[..., Any])


def model_options(command: Command) -> Command:
    """Options that say what is fitted."""
    for option in reversed(
        [
            click.option("--states", default="auto", metavar="N|auto", help="Number of states, or auto: learned."),
            click.option(
                "--emission",
                multiple=True,
                metavar="FAMILY",
                help="Family of each column: direct (the value is the state), categorical, gaussian, poisson, ...",
            ),
            click.option("--allowed", metavar="A-B,...", help="Moves that may happen, such as 1-2,2-1."),
            click.option("--absorbing", multiple=True, metavar="STATE", help="A state that is never left."),
            click.option(
                "--option", "more", multiple=True, metavar="NAME=VALUE", help="Any other option of the model."
            ),
            click.option("--seed", default=0, type=click.IntRange(0), show_default=True, help="Of random numbers."),
            click.option("--jobs", type=click.IntRange(1), help="Threads to work on; all cores by default."),
        ]
    ):
        command = option(command)
    return command


def make_model(
    say: Say, panel: Panel, *, states: str, emission: tuple[str, ...], allowed: str | None, absorbing: tuple[str, ...],
    more: tuple[str, ...], seed: int, jobs: int | None,
) -> tuple[Any, list[str]]:  # fmt: skip
    """A model of what was asked for, not fitted yet, and what was guessed, in words."""
    from .. import InfiniteJumpMeans, JumpMeans, Structure
    from ..emissions import shows_states
    from ..engines import Threads

    n_states = _number_of_states(states)
    families, guessed = choose_families(panel, emission, n_states)
    for guess in guessed:
        say.note(f"guessed: {guess}")
    family: Any = families[0] if len(families) == 1 else families
    options = dict(map(_read_option, more))
    options |= {"emission": family, "random_state": seed}
    if jobs is not None:
        options["engine"] = Threads(jobs)
    direct = shows_states(family)
    if direct and allowed is None and not absorbing and "structure" not in options:
        found = never_left(panel)
        absorbing = tuple(map(str, found))
        for state, why in found.items():
            say.note(f"guessed: --absorbing {state} ({why})")
            guessed.append(f"--absorbing {state} ({why})")
    if (allowed is not None or absorbing) and not direct and n_states is None:
        raise ValueError(
            "--allowed and --absorbing must come with --states N where states are hidden, which are then called 0 to "
            "N - 1: states that are counted by the fit have no names before it."
        )
    if allowed is not None or absorbing:
        labels = panel.labels(0).tolist() if direct else list(range(n_states or 0))
        labels = options.get("states", labels)
        moves = None if allowed is None else read_moves(allowed, labels)
        options["structure"] = Structure(allowed=moves, absorbing=[find_state(x, labels) for x in absorbing] or None)
    kind: Any = JumpMeans if direct or n_states is not None else InfiniteJumpMeans
    if kind is JumpMeans and not direct:
        options["n_states"] = n_states
    known = kind().get_params(deep=False)
    odd = [name for name in options if name not in known]
    if odd:
        raise ValueError(f"--option must name options of {kind.__name__}, got {odd[0]!r}{nearest(odd[0], known)}.")
    return kind(**options), guessed


def choose_families(panel: Panel, asked: tuple[str, ...], n_states: int | None) -> tuple[list[str], list[str]]:
    """A family for each column: those asked for, or guessed by the values; and the guesses in words."""
    import numpy as np

    from ..emissions.guess import guess_families
    from ..errors import PanelError

    blank = [name for d, name in enumerate(panel.columns) if np.isnan(panel.values[:, d]).all()]
    if blank:
        raise PanelError(f"column {blank[0]!r} must have a value in some row, got none; leave it out, or name another.")
    if asked:
        return list(asked), []
    guesses = guess_families(panel, n_states)
    return [guess.family for guess in guesses], [f"--emission {guess.family} ({guess.why})" for guess in guesses]


def never_left(panel: Panel) -> dict[Any, str]:
    """Labels that no row of a sequence follows and that tell of an end, by their rows or by their name; and why."""
    import numpy as np

    from ..kinds import ENTRY

    last = np.zeros(panel.n_observations, bool)
    last[panel.offsets[1:] - 1] = True
    codes = panel.values[:, 0]
    found: dict[Any, str] = {}
    for k, label in enumerate(panel.labels(0).tolist()):
        own = codes == (k if panel.categories[0] is not None else label)
        if not own.any() or not last[own].all():
            continue
        if panel.kinds is not None and (panel.kinds[own] == ENTRY).all():
            found[label] = "its rows are entries, and no row follows them"
        elif str(label).strip().lower() in DEATHS:
            found[label] = "by its name, and no row follows it"
    return found


def _number_of_states(states: str) -> int | None:
    if states == "auto":
        return None
    if not states.isdecimal() or int(states) < 1:
        raise ValueError(f"--states must be a number of at least 1, or auto, got {states!r}.")
    return int(states)


def _read_option(text: str) -> tuple[str, Any]:
    """NAME=VALUE, the value as JSON if it is some, else as text."""
    name, given, value = text.partition("=")
    if not given:
        raise ValueError(f"--option must be NAME=VALUE, such as tol=1e-6, got {text!r}.")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value


def read_moves(text: str, labels: list[Any]) -> dict[Any, list[Any]]:
    """Moves written as 1-2,2-1 (or well>ill): {state: [states it may move to]}."""
    moves: dict[Any, list[Any]] = {}
    for move in filter(None, (part.strip() for part in text.split(","))):
        source, target = _read_move(move, labels)
        moves.setdefault(source, []).append(target)
    if not moves:
        raise ValueError(f"--allowed must be moves such as 1-2,2-1, got {text!r}.")
    return moves


def _read_move(move: str, labels: list[Any]) -> tuple[Any, Any]:
    known = {str(label): label for label in labels}
    places = [i for i, x in enumerate(move) if x in "->"]
    found = [
        (known[a], known[b])
        for i in places
        if (a := move[:i].strip()) in known and (b := move[i + 1 :].strip()) in known
    ]
    if len(found) == 1:
        return found[0]
    raise ValueError(
        f"--allowed must be moves between states among {first_few(labels)}, as FROM-TO or FROM>TO, got {move!r}."
    )


def find_state(text: str, labels: list[Any]) -> Any:
    """The state of a label given as text."""
    for label in labels:
        if str(label) == text:
            return label
    raise ValueError(f"there is no state {text!r}{nearest(text, labels)}; there are {first_few(labels)}.")
