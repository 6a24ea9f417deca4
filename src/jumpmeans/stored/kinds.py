"""Which classes may stand in a model file, and what each is made of.

Named tuples and dataclasses are made of their fields, and are made again by their constructor; any other class says so
by `Fields`. What a constructor does not check, `check_fields` does: kernels trust the shapes they are given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from os import PathLike
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from ..errors import first_few
from ..options import check_options

Kind = TypeVar("Kind", bound=type)
KINDS: dict[str, type] = {}
_FITTED = re.compile(r"_?[a-z][a-z0-9_]*_")


def stored(kind: Kind) -> Kind:
    """Let objects of a class stand in model files, under its name."""
    KINDS[name_of(kind)] = kind
    return kind


def name_of(kind: type) -> str:
    """The name of a class in a file."""
    return kind.stored_name() if issubclass(kind, Fields) else kind.__name__


class Fields:
    """A class that says what its objects are made of."""

    @classmethod
    def stored_name(cls) -> str:
        """The name in a file."""
        return cls.__name__

    def to_fields(self) -> dict[str, Any]:
        """All that this object knows, by name: numbers, text, arrays, lists, or objects that can be stored."""
        return dict(vars(self))

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """The object of its fields, which are not to be trusted."""
        raise NotImplementedError(f"{cls.__name__} must say how it is made of its fields.")


def take_apart(thing: Any) -> dict[str, Any] | None:
    """The fields of an object that may be stored; None if it may not."""
    kind = type(thing)
    if isinstance(thing, Fields):
        return thing.to_fields()
    if KINDS.get(kind.__name__) is not kind:
        return None
    if is_dataclass(kind):
        return {field.name: getattr(thing, field.name) for field in fields(kind)}
    return dict(thing._asdict())


def put_together(kind: Any, given: dict[str, Any]) -> Any:
    """The object of a class with these fields; raises ValueError where they do not fit."""
    thing = kind.from_fields(given) if issubclass(kind, Fields) else kind(**given)
    if hasattr(thing, "check_fields"):
        thing.check_fields()
    return thing


class ModelFields(Fields):
    """A model that can be saved: its options, and what a fit has set."""

    # fitted attributes that follow from the others, and are made again by `check_fields`
    derived: ClassVar[tuple[str, ...]] = ()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file, to be read by `jumpmeans.load`.

        Parameters
        ----------
        path : str or path
            By custom it ends in ``.jm``. What stood there is replaced, once the new file is whole.

        Notes
        -----
        All answers of the model that is read are the same to the bit. An engine that was given as an object is left
        out: where a model is read, it works on the threads of that machine. docs/model-files.md has the format.
        """
        from .plain import write_model

        self.require_fitted()
        write_model(self, path)

    def require_fitted(self) -> None:
        """Refuse a model that has nothing to tell yet."""

    def to_fields(self) -> dict[str, Any]:
        """Options and what was fitted."""
        options: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        fitted = {name: x for name, x in vars(self).items() if name not in options and name not in self.derived}
        if not isinstance(options.get("engine", ""), str):
            options["engine"] = "threads"
        return {"options": options, "fitted": fitted}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        """A model with these options, fitted."""
        options, fitted = fields["options"], fields["fitted"]
        known = cls._get_param_names()  # type: ignore[attr-defined]
        odd = [name for name in options if name not in known]
        odd += [name for name in fitted if not _FITTED.fullmatch(name) or name in cls.derived or hasattr(cls, name)]
        if odd:
            raise ValueError(f"there are no options or results {first_few(odd)} of {cls.__name__}")
        model = cls(**options)
        check_options(model, getattr(cls, "rules", {}))
        vars(model).update(fitted)
        return model


# --------------------------------------------------------------------------------- what a class may ask of its fields


def require(holds: Any, what: str) -> None:
    """Refuse fields that break a rule."""
    if not holds:
        raise ValueError(what)


def require_floats(name: str, x: Any, shape: tuple[int, ...], least: float = -np.inf, finite: bool = True) -> None:
    """Refuse what is no array of floats of one shape, none of them NaN."""
    if not isinstance(x, np.ndarray) or x.dtype != np.float64 or x.shape != shape:
        got = f"{x.dtype} {x.shape}" if isinstance(x, np.ndarray) else type(x).__name__
        raise ValueError(f"{name} must be floats of shape {shape}, got {got}")
    if not (x >= least).all() or (finite and not np.isfinite(x).all()):
        raise ValueError(f"{name} must be {'finite numbers' if finite else 'numbers'} of at least {least:g}")


def require_types(owner: Any, kinds: Mapping[str, type]) -> None:
    """Refuse attributes that are there but of another type."""
    for name, kind in kinds.items():
        x = vars(owner).get(name)
        if name in vars(owner) and not isinstance(x, kind):
            raise ValueError(f"{name} must be {kind.__name__}, got {type(x).__name__}")
