"""Model files in."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from . import comparators, estimators
from .emissions import Column
from .errors import first_few
from .stored import read_model
from .stored.kinds import KINDS, name_of

__all__ = ["load"]
# Importing them is what lets their classes stand in files.
_MODELS = [comparators, estimators]


def load(path: str | PathLike[str], families: Sequence[type[Column]] = ()) -> Any:
    """The fitted model of a file that `save` wrote.

    Parameters
    ----------
    path : str or path
    families : list of classes, optional
        Emission families of your own that the model uses: a file holds their numbers, not their code.

    Returns
    -------
    model
        As it was saved: options, results, and every answer to the bit.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ModelFileError
        If the file is no model, is cut short or damaged, is of a newer format, or does not make sense.

    Notes
    -----
    A file of a stranger can be read: nothing in it is run, and no more memory is taken than such a file needs.
    docs/model-files.md has the format.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import jumpmeans as jm
    >>> path = pathlib.Path(tempfile.mkdtemp(), "edss.jm")
    >>> model = jm.JumpMeans(emission="direct").fit(jm.datasets.load_edss())
    >>> model.save(path)
    >>> jm.load(path).states_
    array([1, 2, 3])
    """
    odd = [family for family in families if not (isinstance(family, type) and issubclass(family, Column))]
    if odd:
        raise ValueError(f"families must be classes of jumpmeans.emissions.Column, got {first_few(odd)}.")
    own = {name_of(family): family for family in families}
    taken = [name for name, family in own.items() if KINDS.get(name, family) is not family]
    if taken:
        raise ValueError(f"families must have names of their own, got {first_few(taken)}; give the class another name.")
    return read_model(path, KINDS | own)
