"""Objects as JSON and arrays, and back.

In the JSON, numbers, text, truth values, null and lists stand for themselves; whatever else is an object with the key
"is": an array (by the name of its member), a mapping, a tuple, a number of numpy, a family, or one of the classes of
`kinds` with its fields.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

import numpy as np

from ..arrays import AnyArray
from ..errors import ModelFileError, nearest, shorten
from ..version import __version__
from .archive import read_archive, write_archive
from .kinds import KINDS, Fields, ModelFields, name_of, put_together, take_apart

SCHEMA = 1
"""Version of the format that is written; files of all versions up to it are read."""
FORMAT = "jumpmeans model"
_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


def write_model(model: Any, path: str | PathLike[str]) -> None:
    """Write a model to a file."""
    writer = Writer()
    document = {"format": FORMAT, "schema": SCHEMA, "version": __version__, "model": writer.plain(model, "model")}
    text = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    write_archive(path, text.encode("utf-8", "surrogatepass"), writer.arrays)


def read_model(path: str | PathLike[str], kinds: Mapping[str, type]) -> Any:
    """The model of a file whose classes are among `kinds`, by their names in files."""
    data, arrays = read_archive(path)
    try:
        document = json.loads(data.decode("utf-8", "surrogatepass"), parse_constant=_no_number)
        _check_schema(document)
        model = Reader(kinds, arrays).value(document.get("model"), "model")
        if not isinstance(model, ModelFields):
            raise ValueError(f"it must be a model, got {type(model).__name__}")
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError, MemoryError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ModelFileError(f"{str(path)!r} must hold a model that makes sense, but {what.rstrip('.')}.") from None
    return model


def _no_number(word: str) -> float:
    raise ValueError(f"its JSON holds {word}")


def _check_schema(document: Any) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"it does not say that it is a {FORMAT!r}")
    schema = document.get("schema")
    if isinstance(schema, bool) or not isinstance(schema, int) or schema < 1:
        raise ValueError(f"its schema must be a whole number of at least 1, got {shorten(repr(schema))}")
    if schema > SCHEMA:
        by = shorten(str(document.get("version")))
        raise ValueError(
            f"it is of schema {schema}, written by jumpmeans {by}, and this version reads up to schema {SCHEMA}; "
            "upgrade jumpmeans"
        )


class Writer:
    """Objects to JSON; arrays are put aside, each once."""

    def __init__(self) -> None:
        self.arrays: dict[str, AnyArray] = {}
        self._known: dict[int, tuple[AnyArray, str]] = {}  # with the array, so that no other takes its place in memory

    def plain(self, x: Any, where: str) -> Any:
        """A value as JSON; `where` it stands, for the error of one that cannot be stored."""
        if isinstance(x, np.generic):
            return self._scalar(x, where)
        if x is None or isinstance(x, bool | str) or type(x) is int:
            return x
        if isinstance(x, float):
            return x if math.isfinite(x) else {"is": "float", "value": repr(x)}
        if isinstance(x, np.ndarray):
            return self._array(x, where)
        fields = take_apart(x)
        if fields is not None:
            return self._object(x, fields, where)
        if isinstance(x, list):
            return [self.plain(item, f"{where}[{i}]") for i, item in enumerate(x)]
        if type(x) in (tuple, set, frozenset):
            return {"is": type(x).__name__, "items": [self.plain(item, f"{where}[{i}]") for i, item in enumerate(x)]}
        if isinstance(x, Mapping):
            pairs = [[self.plain(key, where), self.plain(item, f"{where}[{key!r}]")] for key, item in x.items()]
            return {"is": "mapping", "items": pairs}
        if isinstance(x, type) and issubclass(x, Fields):
            return {"is": "class", "name": _name_for_good(x)}
        if isinstance(x, np.random.Generator | np.random.BitGenerator):
            return self._generator(x, where)
        raise ValueError(
            f"a model must hold nothing but numbers, text, arrays and what is made of them to be saved, got "
            f"{shorten(repr(x))} of type {type(x).__name__} in {where}; leave it out."
        )

    def _object(self, x: Any, fields: dict[str, Any], where: str) -> dict[str, Any]:
        plain = {name: self.plain(value, f"{where}.{name}") for name, value in fields.items()}
        return {"is": _name_for_good(type(x)), "fields": plain}

    def _scalar(self, x: Any, where: str) -> dict[str, Any]:
        if x.dtype.kind in "mM":
            value: Any = int(x.astype(np.int64))
        else:
            value = self.plain(x.item(), where)
        return {"is": "scalar", "dtype": x.dtype.str, "value": value}

    def _array(self, x: AnyArray, where: str) -> dict[str, Any]:
        if x.dtype == object:
            items = [self.plain(item, where) for item in x.ravel().tolist()]
            return {"is": "objects", "shape": list(x.shape), "items": items}
        if id(x) not in self._known:
            name = f"arrays/{len(self.arrays)}.npy"
            self.arrays[name] = x
            self._known[id(x)] = x, name
        return {"is": "array", "name": self._known[id(x)][1]}

    def _generator(self, x: Any, where: str) -> dict[str, Any]:
        bits = x.bit_generator if isinstance(x, np.random.Generator) else x
        name = type(bits).__name__
        if name not in _GENERATORS:
            raise ValueError(f"random_state must be a generator of {_GENERATORS} to be saved, got {name} in {where}.")
        return {"is": "generator" if bits is not x else "bits", "name": name, "state": self.plain(bits.state, where)}


def _name_for_good(kind: type) -> str:
    """The name of a class in files; one that a class of ours has already is refused."""
    name = name_of(kind)
    if KINDS.get(name, kind) is not kind:
        raise ValueError(
            f"{kind.__name__} must have a name of its own to be saved, got {name!r}, which is that of "
            f"{KINDS[name].__name__}; give the class another name."
        )
    if issubclass(kind, ModelFields) and name not in KINDS:
        raise ValueError(f"a model must be one of jumpmeans to be saved, got {kind.__name__}; save the one it wraps.")
    return name


class Reader:
    """JSON to objects; classes by name, arrays by the name of their member."""

    def __init__(self, kinds: Mapping[str, type], arrays: dict[str, AnyArray]) -> None:
        self.kinds, self.arrays = kinds, arrays
        self._ways: dict[str, Callable[[dict[str, Any], str], Any]] = {
            "float": self._float,
            "scalar": self._scalar,
            "array": self._array,
            "objects": self._objects,
            "mapping": self._mapping,
            "tuple": lambda plain, where: tuple(self.value(plain["items"], where)),
            "set": lambda plain, where: set(self.value(plain["items"], where)),
            "frozenset": lambda plain, where: frozenset(self.value(plain["items"], where)),
            "class": lambda plain, where: self._kind(plain["name"]),
            "generator": lambda plain, where: np.random.Generator(self._bits(plain, where)),
            "bits": self._bits,
        }

    def value(self, plain: Any, where: str) -> Any:
        """The value of some JSON; raises ValueError, saying where, if there is none."""
        if isinstance(plain, list):
            return [self.value(item, f"{where}[{i}]") for i, item in enumerate(plain)]
        if not isinstance(plain, dict):
            return plain
        way = self._ways.get(str(plain.get("is")))
        try:
            return self._object(plain, where) if way is None else way(plain, where)
        except _PlaceKnownError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, IndexError, OverflowError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else str(error)
            raise _PlaceKnownError(f"{where}: {what}") from None

    def _object(self, plain: dict[str, Any], where: str) -> Any:
        kind = self._kind(plain.get("is"))
        fields = plain["fields"]
        return put_together(kind, {name: self.value(x, f"{where}.{name}") for name, x in fields.items()})

    def _kind(self, name: Any) -> Any:
        if not isinstance(name, str) or name not in self.kinds:
            remedy = nearest(name, self.kinds)
            if str(name).startswith("emission "):
                remedy = "; if that is a family of your own, give its class: load(path, families=[...])"
            raise ValueError(f"there is no {shorten(repr(name))} to be read{remedy}")
        return self.kinds[name]

    def _float(self, plain: dict[str, Any], where: str) -> float:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[plain["value"]]

    def _scalar(self, plain: dict[str, Any], where: str) -> Any:
        dtype, value = np.dtype(str(plain["dtype"])), self.value(plain["value"], where)
        if dtype.kind in "mM":
            return np.array(value, np.int64).view(dtype)[()]
        if dtype.kind not in "biufU" or not isinstance(value, int | float | str) or dtype.itemsize > 4 * 10**6:
            raise ValueError(f"a number of numpy must be a number or text, got {dtype}")
        return np.array(value, dtype)[()]

    def _array(self, plain: dict[str, Any], where: str) -> AnyArray:
        name = plain["name"]
        if name not in self.arrays:
            raise ValueError(f"there is no member {shorten(repr(name))}")
        return self.arrays[name]

    def _objects(self, plain: dict[str, Any], where: str) -> AnyArray:
        shape, items = tuple(plain["shape"]), plain["items"]
        if any(type(n) is not int or n < 0 for n in shape) or math.prod(shape) != len(items):
            raise ValueError(f"an array of shape {shape} must not have {len(items)} entries")
        out = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            out[i] = self.value(item, f"{where}[{i}]")
        return out.reshape(shape)

    def _mapping(self, plain: dict[str, Any], where: str) -> dict[Any, Any]:
        return {self.value(key, where): self.value(x, f"{where}[{key!r}]") for key, x in plain["items"]}

    def _bits(self, plain: dict[str, Any], where: str) -> Any:
        if plain["name"] not in _GENERATORS:
            raise ValueError(f"a generator must be one of {_GENERATORS}, got {shorten(repr(plain['name']))}")
        bits = getattr(np.random, plain["name"])(0)
        bits.state = self.value(plain["state"], where)
        return bits


class _PlaceKnownError(ValueError):
    """An error that says already where it was found."""
