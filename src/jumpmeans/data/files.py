"""Files in: the only module that opens files."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import zlib
from collections.abc import Sequence
from contextlib import suppress
from io import StringIO
from itertools import islice
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Any

from ..arrays import AnyArray
from ..errors import MissingExtraError, PanelError, nearest
from .building import Roles, build
from .known import check_sets
from .panel import Panel
from .text import Fields, key_column, number_column, time_column, unshielded, value_column, with_points

LARGEST_UNPACKED = 1 << 30
"""Bytes that a gzip file may unpack to; a small file can hold far more than memory does."""

_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"  # first bytes of such files
_LONGEST_HEADER = 1 << 20  # bytes in which the names of the columns must stand
_LINES_AT_ONCE = 500  # more would make Python look for garbage among all fields, over and over
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_BETWEEN = (",", ";", "\t")


def read_panel(
    path: str | PathLike[str], *, missing: Sequence[str] | None = None, **columns: Any
) -> Panel:  # fmt: skip
    r"""Panel of a file in long format: one row per observation.

    Parameters
    ----------
    path : str or path
        A text file in UTF-8, its fields between commas (``.csv``, ``.csv.gz``) or tabs (``.tsv``, ``.tsv.gz``),
        or a Parquet file (``.parquet``). Where the header has semicolons or tabs and nothing else, these are between
        the fields; with semicolons numbers may have a decimal comma, as spreadsheets of many countries write them.
    missing : list of str, optional
        What stands for a missing value in a text file besides an empty field, for example ``["NA"]``. Left out,
        NA, None, null and the like are refused where all other fields of a column of values are numbers (NaN is
        a missing number).
    columns : id, time, value, weight, group, start, end, kind, true_state, sets, covariates
        As in `Panel.from_frame`.

    Returns
    -------
    Panel
        Its rows are numbered from 0, the first line below the header; empty lines do not count.

    Raises
    ------
    FileNotFoundError
        If there is no such file; the message names the nearest.
    PanelError
        If the file cannot be read, or its table breaks a rule of the panel.
    MissingExtraError
        If pyarrow is not installed and the file is a Parquet file.

    Notes
    -----
    Times of a text file that are not numbers are read as ISO dates. Ids are integers if all of them are written as
    integers; ids such as 007 stay strings. A column of values holds numbers if every field that is not empty (nor the
    label of a set) is written as one; leading zeros make a code, so a column with 01 in it holds labels, and 01, 1 and
    001 are three of them. Labels stay as they are written, NA, None and null too. An apostrophe before what a
    spreadsheet would take for a formula (=, +, - or @), as the files that we write have it, is no part of the text.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "visits.csv")
    >>> _ = path.write_text("patient,day,edss\n007,2024-03-01,2.0\n007,2024-04-15,2.5\n")
    >>> panel = read_panel(path, id="patient", time="day", value="edss")
    >>> panel
    Panel(1 sequence, 2 rows, times 2024-03-01 to 2024-04-15, values of 'edss')
    >>> panel.ids, panel.times
    (array(['007'], dtype=object), array([ 0., 45.]))
    """
    roles = Roles.named(**columns)
    path = Path(path)
    delimiter = find_delimiter(path)
    if delimiter is not None:
        return Panel(**build(roles.pick(_read_text(path, delimiter, roles, missing))))
    table = read_parquet(path)
    return dataclasses.replace(Panel.from_frame(table, **roles._asdict()), frame_backend=None)


def read_header(path: str | PathLike[str]) -> list[str]:
    """Names of the columns of a file that `read_panel` reads."""
    path = Path(path)
    delimiter = find_delimiter(path)
    if delimiter is None:
        return parquet_names(path)
    text = _decode(path, _unpack(path, _LONGEST_HEADER), "ignore")
    try:
        reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
        return list(map(unshielded, next(line for line in reader if line)))
    except (StopIteration, csv.Error):
        raise PanelError(f"{str(path)!r} must have a header and at least one row, but has no header.") from None


def words_of(path: str | PathLike[str], column: str, most: int) -> set[str]:
    """Distinct fields of a column as text, empty where one is missing; no more are looked for than `most` and one."""
    path = Path(path)
    delimiter = find_delimiter(path)
    if delimiter is None:
        return {"" if x is None else str(x) for x in read_parquet(path).column(column).unique()[: most + 1].to_pylist()}
    reader = csv.reader(StringIO(_decode(path, _unpack(path)), newline=""), delimiter=delimiter, strict=True)
    place = list(map(unshielded, next(line for line in reader if line))).index(column)
    found: set[str] = set()
    with suppress(csv.Error):  # a table that is none is told of by whoever reads it whole
        for line in reader:
            if len(line) > place:
                found.add(line[place])
            if len(found) > most:
                break
    return found


def find_delimiter(path: Path) -> str | None:
    """What stands between the fields of a text file; None for a Parquet file. Any other is refused."""
    if not path.is_file():
        others = (other.name for other in path.parent.iterdir()) if path.parent.is_dir() else ()
        if path.is_dir():
            raise FileNotFoundError(f"there is no file {str(path)!r}, it is a folder; name a file in it.")
        if path.exists():
            raise FileNotFoundError(
                f"{str(path)!r} must be a file on disk, got a pipe or a device; write it to one first."
            )
        raise FileNotFoundError(f"there is no file {str(path)!r}{nearest(path.name, others)}; check the name.")
    name = path.name.lower()
    delimiter = _DELIMITERS.get(Path(name.removesuffix(".gz")).suffix)
    if delimiter is None and not name.endswith((".parquet", ".pq")):
        raise PanelError(
            f"{str(path)!r} must be a .csv or .tsv file (or .gz of one), or a .parquet file; save the table as one."
        )
    return delimiter if delimiter is None else _of_header(path, delimiter)


def _of_header(path: Path, usual: str) -> str:
    """What stands between the names of the columns: the usual, or the only other one that is there instead."""
    header = _decode(path, _unpack(path, _LONGEST_HEADER), "ignore").lstrip("\r\n").partition("\n")[0]
    others = [other for other in _BETWEEN if other in header]
    return others[0] if len(others) == 1 else usual


# ----------------------------------------------------------------------------------------------------- text


def _read_text(path: Path, delimiter: str, roles: Roles, missing: Sequence[str] | None) -> dict[str, AnyArray]:
    """The columns of a text file that have a role, each read as its role asks."""
    if isinstance(missing, str):
        raise ValueError(f"missing must be a list of words, got {missing!r}; write [{missing!r}].")
    text = _decode(path, _unpack(path))
    if not text.strip():
        raise PanelError(f"{str(path)!r} must have a header and at least one row, but the file is empty.")
    fields = _split(path, text, delimiter, roles)
    if not fields[roles.id]:
        raise PanelError(f"{str(path)!r} must have at least one row below its header, got none.")
    blank = {"", *(missing or ())}
    apart = {str(label): label for label in check_sets(roles.sets)}
    columns: dict[str, AnyArray] = {}
    for name, written in fields.items():
        if delimiter == ";" and name not in (roles.id, roles.group, roles.kind):
            written = with_points(written, blank)
        column: Fields = [None if x in blank else unshielded(x) for x in written]
        if name in (roles.id, roles.group):
            columns[name] = key_column(column)
        elif name in (roles.time, roles.start, roles.end):
            columns[name] = time_column(column)
        elif name == roles.kind:
            columns[name] = value_column(column, name, decided=True)
        elif name in (*roles.value, roles.true_state):
            columns[name] = value_column(column, name, decided=missing is not None, apart=apart)
        elif name in roles.covariates and name != roles.weight:
            columns[name] = value_column(column, name, decided=missing is not None)
        else:
            columns[name] = number_column(column, "weights")
    return columns


def _split(path: Path, text: str, delimiter: str, roles: Roles) -> dict[str, list[str]]:
    """The fields of each column that has a role."""
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        header = list(map(unshielded, next(line for line in reader if line)))
        roles.check(header)
        out: dict[str, list[str]] = {name: [] for name in roles.names()}
        while batch := list(islice(reader, _LINES_AT_ONCE)):
            lines = [line for line in batch if line]
            if set(map(len, lines)) - {len(header)}:
                raise _bad_line(path, text, delimiter, len(header))
            for name, fields in out.items():
                fields.extend(map(itemgetter(header.index(name)), lines))
    except csv.Error as error:
        raise PanelError(
            f"{str(path)!r} must be a table with closed quotes, but is not on line {reader.line_num}: {error}."
        ) from None
    return out


def _bad_line(path: Path, text: str, delimiter: str, n_fields: int) -> PanelError:
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = next(line for line in reader if line and len(line) != n_fields)
    return PanelError(
        f"every line of {str(path)!r} must have as many fields as its header, {n_fields}, got {len(line)} on line "
        f"{reader.line_num}; mend that line."
    )


def _unpack(path: Path, most: int | None = None) -> bytes:
    """The bytes of a file, or the first ones."""
    if not path.name.lower().endswith(".gz"):
        with path.open("rb") as plain:
            return plain.read(-1 if most is None else most)
    try:
        with gzip.open(path) as file:
            data = file.read(LARGEST_UNPACKED + 1 if most is None else most)
    except (OSError, EOFError, zlib.error) as error:
        raise PanelError(f"{str(path)!r} must be a whole gzip file, but is not: {error}.") from None
    if len(data) > LARGEST_UNPACKED:
        raise PanelError(
            f"{str(path)!r} must unpack to at most {LARGEST_UNPACKED} bytes, but holds more; if it is meant to, unpack "
            "it first and read the file itself."
        )
    return data


def _decode(path: Path, data: bytes, errors: str = "strict") -> str:
    if data.startswith((_GZIP, _PARQUET)) or b"\0" in data:
        raise PanelError(f"{str(path)!r} must be text, but holds binary data; save the table as CSV in UTF-8.")
    try:
        return data.decode("utf-8", errors).removeprefix("\ufeff")  # Excel begins with a byte order mark
    except UnicodeDecodeError as error:
        raise PanelError(
            f"{str(path)!r} must be in UTF-8, got byte 0x{data[error.start]:02x} at offset {error.start}; "
            "save it again as UTF-8."
        ) from None


# -------------------------------------------------------------------------------------------------- Parquet


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> Any:
    """The table of a Parquet file; of a part of a panel only some columns, and it may be empty."""
    pq = _open_parquet(path)
    try:
        table = pq.read_table(path, columns=columns, partitioning=None)
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from None
    if columns is None and not table.num_rows:
        raise PanelError(f"{str(path)!r} must have at least one row, got none.")
    return table


def parquet_names(path: Path) -> list[str]:
    """Names of the columns of a Parquet file."""
    pq = _open_parquet(path)
    try:
        return list(map(str, pq.read_schema(path).names))
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from None


def _open_parquet(path: Path) -> Any:
    """What reads a file that begins as Parquet files do."""
    with path.open("rb") as file:
        magic = file.read(len(_PARQUET))
    if magic != _PARQUET:
        raise PanelError(f"{str(path)!r} must be a Parquet file, but begins with {magic!r}; is it another format?")
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("reading Parquet needs pyarrow: pip install 'jumpmeans[frames]'.") from None
    return pq


def _damaged(path: Path, error: Exception) -> PanelError:
    return PanelError(f"{str(path)!r} must be a whole Parquet file, but is damaged: {error}")
