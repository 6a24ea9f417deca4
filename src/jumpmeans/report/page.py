"""The page: content poured into a template, with all that it needs inside, so that it opens without a network."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import MissingExtraError
from ..plots.axes import PALETTE
from .content import MOST_IN_TABLE, make_content

# A report of any panel is no larger than this, in bytes.
LARGEST = 3_000_000
# Room for all but scripts and sequences: tables, curves, the template itself.
ROOM_FOR_THE_REST = 150_000
SCRIPTS = ("vendor/d3.min.js", "vendor/plot.umd.min.js", "assets/common.js", "assets/charts.js", "assets/browser.js")


def write_report(
    model: Any,
    panel: Any,
    path: str | Path,
    *,
    held_out: Any = None,
    title: str | None = None,
    warnings: Sequence[str] = (),
    time_unit: str | None = None,
    bins: Any = None,
    dwell_interval: Any = None,
    effects_interval: Any = None,
    random_state: Any = 0,
) -> Path:
    """Write one HTML file that shows a fitted model and the course of every sequence; it opens offline.

    Parameters
    ----------
    model : fitted model
        With states: JumpMeans, InfiniteJumpMeans, EM, Gibbs and so on.
    panel : Panel or frame
        The sequences to show, usually those that the model was fitted to.
    path : str or Path
        Where to write. A file that is there is replaced.
    held_out : float, Comparison or {name: error}, optional
        Share of the observations to hold out, for a fit of the same model to the rest that is scored beside simple
        rules: the last value carried forward, interpolation, the most common value. Or what `compare` found, or errors
        that are known already, the model's first.
    title : str, optional
    warnings : sequence of str
        What else a reader should be warned of, such as warnings of the fit.
    time_unit : str, optional
        Unit of time to show, such as "hours"; after dates, lengths of time are told in it, or in days.
    bins : sequence of float, or {column: sequence of float}, optional
        Bounds that make categories of numbers for the held-out error, as in `reconstruction_error`.
    dwell_interval : Interval, optional
        Bounds `low` and `high` of the mean dwell of each state, and their `level`; of samplers they are known. From a
        fit of EM: ``em.information(panel).interval(lambda m: m.process_.sojourn())``; from any fit: `bootstrap`.
    effects_interval : Interval, optional
        Bounds of the effects of covariates, logarithms of hazard ratios, made in the same ways:
        ``em.information(panel).interval(lambda m: m.process_.effects.coefs, scale="plain")``.
    random_state : int, Generator or None
        Which observations are held out.

    Returns
    -------
    Path
        Of the file, at most 3 MB. Of a panel that does not fit, some sequences are shown, drawn at random, and the page
        says so. Numbers are rounded, probabilities of a band to 1/63.

    Notes
    -----
    The misfit of a sequence is minus its log-likelihood under `process_`, per row with a value.

    Examples
    --------
    >>> import tempfile
    >>> import jumpmeans as jm
    >>> panel = jm.datasets.load_edss()
    >>> model = jm.JumpMeans(emission="direct").fit(panel)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = jm.write_report(model, panel, f"{folder}/report.html", time_unit="years")
    ...     report.name
    'report.html'
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"path must be a file to write, got the folder {str(path)!r}; add a name such as report.html.")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"path must lie in a folder that exists, got {str(path)!r}; make the folder first.")
    template = _template()
    scripts = [_asset(name) for name in SCRIPTS]
    used = sum(len(text.encode()) for text in [*scripts, _asset("assets/page.css")])
    content = make_content(
        model, panel, held_out=held_out, title=title, warnings=warnings, time_unit=time_unit, bins=bins,
        dwell_interval=dwell_interval, effects_interval=effects_interval, random_state=random_state,
        room=LARGEST - ROOM_FOR_THE_REST - used,
    )  # fmt: skip
    text = render(template, content, scripts)
    # a lone half of a character pair, which no file can hold, becomes a question mark
    path.write_bytes(text.encode("utf-8", "replace"))
    return path


def render(template: Any, content: dict[str, Any], scripts: list[str]) -> str:
    """The page of some content."""
    import jumpmeans

    M = len(content["states"])
    return str(
        template.render(
            content,
            data=as_json(content | {"palette": list(PALETTE) if M <= len(PALETTE) else None}),
            css=_asset("assets/page.css"),
            scripts=scripts,
            hashes=[_hash(script) for script in scripts],
            has_shows=any(state["shows"] for state in content["states"]),
            has_table=M <= MOST_IN_TABLE,
            version=jumpmeans.__version__,
        )
    )


def as_json(content: Any) -> str:
    """JSON that may stand in a script element: nothing in it can end the element, or begin another."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """What a browser compares a script with before it runs it."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _template() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingExtraError("a report needs jinja2; install it by pip install 'jumpmeans[report]'.") from error
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": number, "percent": percent}
    return environment.from_string(_asset("assets/page.html.jinja"))


def number(x: float | None, digits: int = 4) -> str:
    """A number in a table."""
    if x is None:
        return "–"
    return f"{x:,.0f}" if 10.0 ** (digits - 1) <= abs(x) < 1e9 else f"{x:.{digits}g}"


def percent(x: float | None, digits: int = 0) -> str:
    """A share in a table."""
    if x is None:
        return "–"
    least = 0.5 * 10.0**-digits
    return f"< {2 * least:g} %" if 0 < 100 * x < least else f"{100 * x:.{digits}f} %"
