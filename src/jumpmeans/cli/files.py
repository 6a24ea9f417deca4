"""Files out: tables that a spreadsheet opens, and the record of a run."""

from __future__ import annotations

import csv
import hashlib
import io
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from ..version import __version__
from .say import clean, to_json

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "joblib", "narwhals", "pandas", "pyarrow")


def check_free(paths: Iterable[Path], force: bool) -> None:
    """Refuse to replace files, unless that was asked for."""
    there = [path for path in paths if path.exists()]
    if there and not force:
        names = ", ".join(path.name for path in there)
        raise FileExistsError(
            f"nothing is replaced unless that is asked for, but {names} in {str(there[0].parent)!r} "
            f"{'is' if len(there) == 1 else 'are'} there already; "
            "give --force, or another --out."
        )


def make_folder(folder: Path) -> None:
    """A folder to write into."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"--out must be a folder, but {str(folder)!r} is a file; give another.")
    folder.mkdir(parents=True, exist_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text, whole or not at all."""
    from ..writing import written_whole

    with written_whole(path) as file:
        file.write(text.encode("utf-8"))


def write_csv(path: Path | None, columns: Mapping[str, Any]) -> None:
    """Write a table for a spreadsheet, to a file or to standard output; on a terminal nothing in it steers that."""
    if path is None:
        _write_rows(_Screen(sys.stdout) if sys.stdout.isatty() else sys.stdout, columns)
        return
    from ..writing import written_whole

    with written_whole(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        _write_rows(text, columns)
        text.detach()


class _Screen:
    """A terminal that is shown text as text."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> None:
        self.stream.write(clean(text))


def _write_rows(file: Any, columns: Mapping[str, Any]) -> None:
    from ..data.text import shielded

    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([shielded(str(name)) for name in columns])
    writer.writerows(zip(*map(_cells, columns.values()), strict=True))


def _cells(column: Any) -> list[Any]:
    """What stands in the fields of a column: text behind an apostrophe where a spreadsheet would run it."""
    import numpy as np

    from ..data.text import shielded

    array = np.asarray(column)
    if array.dtype.kind == "M":
        return [x.removesuffix("000").removesuffix(".000") for x in np.datetime_as_string(array, unit="us").tolist()]
    if array.dtype.kind == "b":
        return ["true" if x else "false" for x in array.tolist()]
    if array.dtype.kind == "f":
        return ["" if x != x else repr(x) for x in array.tolist()]
    return ["" if x is None or x != x else shielded(x) if isinstance(x, str) else x for x in array.tolist()]


def write_trajectories(path: Path | None, trajectories: Any) -> None:
    """Write trajectories as CSV, or as Parquet if the name says so."""
    if path is None or path.suffix.lower() not in (".parquet", ".pq"):
        write_csv(path, trajectories.to_columns())
        return
    from ..data.frames import make_frame
    from ..writing import written_whole

    zone = None if trajectories.clock is None else trajectories.clock.zone
    table = make_frame(trajectories.to_columns(), "pyarrow", zone)
    import pyarrow.parquet as pq

    with written_whole(path) as file:
        pq.write_table(table, file)


class Clock:
    """Seconds that each part of a run took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Time a part."""
        begun = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - begun


def write_run(path: Path, source: str, columns: Mapping[str, Any], clock: Clock, **more: Any) -> None:
    """Write down how a result came about: versions, settings, seed, checksum of the input, timings."""
    context = click.get_current_context()
    record = {
        "command": context.info_name,
        "jumpmeans": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: found for name in PACKAGES if (found := installed(name)) is not None},
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "input": {"path": str(Path(source).resolve()), "sha256": checksum(Path(source))},
        "columns": dict(columns),
        "arguments": {name: x for name, x in context.params.items() if x is not None},
        "seconds": {name: round(x, 3) for name, x in clock.seconds.items()},
        **more,
    }
    write_text(path, to_json(record) + "\n")


def installed(name: str) -> str | None:
    """Version of a package, if it is there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find_model(path: str) -> Path:
    """The file of a model: itself, or the one that `fit` wrote into a folder."""
    given = Path(path)
    return given / "model.jm" if given.is_dir() else given


def peak_memory() -> float | None:
    """Most memory that this process has had, in MB, where the system tells."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)
