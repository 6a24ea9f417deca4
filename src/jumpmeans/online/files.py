"""What is kept of the sequences that are open, in a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from .beds import Beds

FORMAT = 2


def write_beds(path: Any, beds: Beds, ids: list[Any], model: str) -> None:
    """Write the slots of some sequences, and the fingerprint of their model."""
    if not all(isinstance(label, int | str) for label in ids):
        raise ValueError("ids must be integers or strings to be saved, got others; name the sequences so.")
    about = {"ids": ids, "model": model, "format": FORMAT}
    with open(Path(path), "wb") as file:
        np.savez(file, **beds.first(len(ids)), about=np.array(json.dumps(about)))


def read_beds(path: Any, n_states: int, model: str) -> tuple[Beds, list[Any]]:
    """The slots of a file and the ids of their sequences; refused if they are not of the model."""
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            arrays = dict(file)
        about = json.loads(str(arrays.pop("about")))
        known = set(arrays) == set(Beds.__dataclass_fields__) and about["format"] == FORMAT
    except (ValueError, KeyError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        known = False
    if not known:
        raise ValueError(f"path must be a file written by OnlineDecoder.save, got {str(path)!r}.")
    if about["model"] != model:
        raise ValueError("model must be the one that the decoder was saved with, got one with other parameters.")
    n = len(about["ids"])
    beds = Beds.empty(max(n, 16), n_states, arrays["queues"].shape[3])
    for name, array in beds.arrays().items():
        array[:n] = arrays[name]
    return beds, about["ids"]
