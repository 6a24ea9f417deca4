"""Files in: the only module that opens files."""

from __future__ import annotations

import difflib
import gzip
import warnings
import zlib
from collections.abc import Sequence
from datetime import datetime
from io import StringIO
from os import PathLike
from pathlib import Path
from typing import Any

from jumpmeans.data.panel import Panel
from jumpmeans.errors import MissingExtraError, PanelError

_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"  # first bytes of such files


def read_panel(
    path: str | PathLike[str],
    *,
    id: str = "id",
    time: str = "time",
    value: str | Sequence[str] = "value",
    weight: str | None = None,
    group: str | None = None,
    start: str | None = None,
    end: str | None = None,
) -> Panel:
    r"""Panel of a file in long format: one row per observation.

    Parameters
    ----------
    path : str or path
        A CSV file in UTF-8 (``.csv``, ``.csv.gz``) or a Parquet file (``.parquet``).
    id, time : str
        Columns of ids and of times. Times that are not numbers are read as ISO dates. Ids of a CSV file
        are integers if all of them are written as integers; ids such as 007 stay strings.
    value : str or list of str
        One or more columns of values: numbers, or labels.
    weight, group, start, end : str, optional
        Columns that are constant within an id: the weight of the sequence, its group, and its window.

    Returns
    -------
    Panel
        Its rows are numbered from 0, the first line below the header.

    Raises
    ------
    FileNotFoundError
        If there is no such file; the message names the nearest.
    PanelError
        If the file cannot be read, or its table breaks a rule of the panel.
    MissingExtraError
        If pandas (or, for Parquet, pyarrow) is not installed.

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
    pd = _import_pandas()
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}{_nearest_file(path)}; check the name.")
    name = path.name.lower()
    if name.endswith((".csv", ".csv.gz")):
        frame = _read_csv(pd, path, keys=[id] if group is None else [id, group])
    elif name.endswith((".parquet", ".pq")):
        frame = _read_parquet(pd, path)
    else:
        raise PanelError(f"{str(path)!r} must be a .csv, .csv.gz or .parquet file; save the table as one.")
    if frame.empty:
        raise PanelError(f"{str(path)!r} must have at least one row below its header, got none.")
    for column in {time, start, end} & set(frame.columns):
        if pd.api.types.is_string_dtype(frame[column]):
            frame[column] = _parse_times(pd, frame[column])
    return Panel.from_frame(frame, id=id, time=time, value=value, weight=weight, group=group, start=start, end=end)


def _import_pandas() -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("reading files needs pandas: pip install 'jumpmeans[frames]'.") from None
    return pd


def _nearest_file(path: Path) -> str:
    names = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _read_csv(pd: Any, path: Path, keys: list[str]) -> Any:
    """Table of a CSV file; the columns of keys hold integers only if each is written as one."""
    text = _decode(path, _decompress(path, path.read_bytes()))
    if not text.strip():
        raise PanelError(f"{str(path)!r} must have a header and at least one row, but the file is empty.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(StringIO(text), dtype=dict.fromkeys(keys, str), index_col=False, low_memory=False)
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        raise PanelError(f"every line of {str(path)!r} must have as many fields as its header: {error}") from None
    for key in set(keys) & set(frame.columns):
        if frame[key].str.fullmatch(r"0|-?[1-9]\d{0,17}").all():
            frame[key] = frame[key].astype("int64")
    return frame


def _decompress(path: Path, data: bytes) -> bytes:
    if not path.name.lower().endswith(".gz"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise PanelError(f"{str(path)!r} must be a whole gzip file, but is not: {error}.") from None


def _decode(path: Path, data: bytes) -> str:
    if data.startswith((_GZIP, _PARQUET)) or b"\0" in data:
        raise PanelError(f"{str(path)!r} must be text, but holds binary data; save the table as CSV in UTF-8.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PanelError(
            f"{str(path)!r} must be in UTF-8, got byte 0x{data[error.start]:02x} at offset {error.start}; "
            "save it again as UTF-8."
        ) from None


def _read_parquet(pd: Any, path: Path) -> Any:
    with path.open("rb") as file:
        magic = file.read(len(_PARQUET))
    if magic != _PARQUET:
        raise PanelError(f"{str(path)!r} must be a Parquet file, but begins with {magic!r}; is it another format?")
    try:
        return pd.read_parquet(path)
    except ImportError:
        raise MissingExtraError("reading Parquet needs pyarrow: pip install 'jumpmeans[frames]'.") from None
    except (OSError, ValueError) as error:
        raise PanelError(f"{str(path)!r} must be a whole Parquet file, but is damaged: {error}") from None


def _parse_times(pd: Any, column: Any) -> Any:
    """Numbers or Python datetimes of a column of strings."""
    numbers = pd.to_numeric(column, errors="coerce")
    stray = column.notna() & numbers.isna()
    if not stray.any():
        return numbers
    if numbers.notna().any():
        row = int(stray.argmax())
        raise PanelError(f"times must be all numbers or all ISO dates, got {column.iloc[row]!r} at row {row}; mend it.")
    dates: list[datetime | None] = []
    for row, text in enumerate(column):
        try:
            dates.append(datetime.fromisoformat(text) if isinstance(text, str) else None)
        except ValueError:
            raise PanelError(
                f"times must be numbers or ISO dates such as 2024-03-01T12:30, got {text!r} at row {row}."
            ) from None
    return pd.Series(dates, index=column.index, dtype=object)
