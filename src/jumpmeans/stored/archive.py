"""The file: a zip of one JSON document and .npy arrays, none of them compressed, with a checksum of all its bytes.

Nothing of it is trusted. Members are stored as they are, so that no more can come out than the file is long; the shape
that an array declares must be what its bytes hold before any memory is asked for; objects are never unpickled; names of
members are keys of a dictionary and never paths.
"""

from __future__ import annotations

import hashlib
import io
import math
import struct
import sys
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import IO
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np

from ..arrays import AnyArray
from ..errors import ModelFileError, nearest, shorten
from ..writing import written_whole

DOCUMENT = "model.json"
# Every member has the same date: the same model gives the same bytes.
DATE = (1980, 1, 1, 0, 0, 0)
_BEGINNING = b"PK\x03\x04"
_DIGEST = 64  # hexadecimal digits of SHA-256, the comment at the end of the zip
_PIECE = 1 << 20
# What a zip file adds to each member and to itself; whatever is longer holds something else.
_PER_MEMBER, _PER_FILE = 512, 4096
# What zipfile raises on files that are none.
_BROKEN = (
    BadZipFile, EOFError, IndexError, LookupError, NotImplementedError, OSError, OverflowError, RuntimeError,
    ValueError, struct.error,
)  # fmt: skip


def write_archive(path: str | PathLike[str], document: bytes, arrays: Mapping[str, AnyArray]) -> None:
    """Write a document and its arrays; the file is there once it is whole."""
    with written_whole(path) as file:
        with ZipFile(file, "w", ZIP_STORED) as archive:
            archive.comment = b"0" * _DIGEST
            archive.writestr(ZipInfo(DOCUMENT, DATE), document)
            for name, array in arrays.items():
                with archive.open(ZipInfo(name, DATE), "w", force_zip64=array.nbytes >= 1 << 31) as member:
                    np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
        length = file.seek(0, io.SEEK_END) - _DIGEST
        digest = _digest(file, length)
        file.seek(length)
        file.write(digest)


def read_archive(path: str | PathLike[str]) -> tuple[bytes, dict[str, AnyArray]]:
    """The document and the arrays of a file; one that is no such file, or is damaged, is refused."""
    path = Path(path)
    if not path.is_file():
        others = (other.name for other in path.parent.iterdir()) if path.parent.is_dir() else ()
        raise FileNotFoundError(f"there is no file {str(path)!r}{nearest(path.name, others)}; check the name.")
    with path.open("rb") as file:
        beginning = file.read(len(_BEGINNING))
        if beginning != _BEGINNING:
            raise ModelFileError(
                f"{str(path)!r} must be a model file, got one that begins with {beginning!r}; models are written by "
                "model.save(path)."
            )
        try:
            archive = ZipFile(file)
        except _BROKEN as error:
            raise ModelFileError(
                f"{str(path)!r} must be a whole model file, but it is cut short or damaged: {shorten(str(error))}; "
                "copy it again."
            ) from None
        with archive:
            _check_members(path, archive.infolist())
            _check_digest(path, file, archive)
            members = {info.filename: _bytes(path, archive, info) for info in archive.infolist()}
    document = members.pop(DOCUMENT, None)
    if document is None:
        raise ModelFileError(f"{str(path)!r} must hold {DOCUMENT!r}, but does not; it is a zip file, but no model.")
    return document, {name: _array(path, name, data) for name, data in members.items()}


def _check_members(path: Path, members: list[ZipInfo]) -> None:
    """Refuse members that could be more than the bytes of the file, before any of them is read."""
    names = [info.filename for info in members]
    length = path.stat().st_size
    total = sum(info.file_size for info in members)
    if len(set(names)) < len(names):
        raise ModelFileError(f"{str(path)!r} must name every member once, but does not; save the model again.")
    for info in members:
        if info.compress_type != ZIP_STORED or info.file_size != info.compress_size or info.flag_bits & 1:
            raise ModelFileError(
                f"members of {str(path)!r} must be neither compressed nor encrypted, but "
                f"{shorten(repr(info.filename))} is; save the model again."
            )
    if not total <= length <= total + _PER_FILE + _PER_MEMBER * len(members):
        raise ModelFileError(
            f"the {len(members)} members of {str(path)!r} must be what the file holds, but are {total} bytes in a file "
            f"of {length}; save the model again."
        )


def _check_digest(path: Path, file: IO[bytes], archive: ZipFile) -> None:
    if _digest(file, path.stat().st_size - _DIGEST) == archive.comment:
        return
    try:
        bad = archive.testzip()
    except _BROKEN:
        bad = None
    where = "" if bad is None else f", first in {shorten(repr(bad))}"
    raise ModelFileError(
        f"{str(path)!r} must be as it was written, but its bytes do not match their checksum{where}; copy it again."
    )


def _digest(file: IO[bytes], length: int) -> bytes:
    """SHA-256, in hexadecimal digits, of the first bytes of a file."""
    digest = hashlib.sha256()
    file.seek(0)
    while length > 0 and (piece := file.read(min(length, _PIECE))):
        digest.update(piece)
        length -= len(piece)
    return digest.hexdigest().encode()


def _bytes(path: Path, archive: ZipFile, info: ZipInfo) -> bytes:
    try:
        data = archive.read(info)
    except _BROKEN as error:
        raise ModelFileError(
            f"{shorten(repr(info.filename))} of {str(path)!r} must be readable, but is not: {shorten(str(error))}."
        ) from None
    return data


def _array(path: Path, name: str, data: bytes) -> AnyArray:
    """An array, if the member is nothing but one and as long as its shape says."""
    try:
        return parse_array(data)
    except ValueError as error:
        raise ModelFileError(
            f"{shorten(repr(name))} of {str(path)!r} must be a plain .npy array, but is not: {shorten(str(error))}."
        ) from None


def parse_array(data: bytes) -> AnyArray:
    """The array of a .npy file in memory; only numbers, truth values, text and dates, in their own byte order."""
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("its format must be 1.0")
    try:
        shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
    except (SyntaxError, TypeError, RecursionError, MemoryError):  # of a header that is no literal
        raise ValueError("its header cannot be read") from None
    if dtype.kind not in "biufUMm" or dtype.hasobject or dtype.itemsize == 0:
        raise ValueError(f"its entries must be numbers, text or dates, got {dtype}")
    body = memoryview(data)[file.tell() :]
    if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != len(body):
        raise ValueError(f"shape {shape} of {dtype} must be its {len(body)} bytes")
    flat = np.frombuffer(body, dtype).astype(dtype.newbyteorder("="))
    _check_entries(flat)
    return flat.reshape(shape, order="F" if by_columns else "C")


def _check_entries(flat: AnyArray) -> None:
    """Truth values are 0 or 1 and text is text: numpy takes other bytes for granted."""
    if flat.dtype.kind == "b" and flat.size and flat.view(np.uint8).max() > 1:
        raise ValueError("truth values must be 0 or 1")
    if flat.dtype.kind == "U" and flat.size and flat.view(np.uint32).max() > sys.maxunicode:
        raise ValueError("text must be made of characters")
