"""Files out: whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO


@contextmanager
def written_whole(path: str | PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write bytes into, which takes the place of `path` once all of it is on the disk.

    Until then it has another name in the same folder. Work that fails leaves what stood there as it was, and nothing
    beside it.
    """
    path = Path(path)
    other = path.with_name(f".{path.name[:80]}.{secrets.token_hex(6)}.part")
    try:
        with other.open("x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(other, path)
    except BaseException:
        with suppress(FileNotFoundError):
            other.unlink()
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Bring the new name itself to the disk, where folders can be opened."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems of a network cannot
            os.fsync(handle)
    finally:
        os.close(handle)
