"""The model that a decoder is given."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from ..estimators import JumpMeans
from ..estimators.jump_model import JumpModel
from ..model.process import Process


def as_jump_model(model: Any) -> JumpModel:
    """A model with prices to decode by: itself, or that of a process."""
    if isinstance(model, Process):
        return JumpMeans.from_process(model)
    if isinstance(model, JumpModel):
        model._fitted()
        return model
    process = getattr(model, "process_", None)
    if not isinstance(process, Process):
        raise ValueError(f"model must be a Process or a fitted model with process_, got {model!r}.")
    return JumpMeans.from_process(process)


def fingerprint(model: JumpModel) -> str:
    """Of all that what is told depends on."""
    process, (params, prices, search, _) = model.process_, model._decoder_
    parts: list[Any] = [process.rates, process.transition_probs, process.initial_probs, process.states]
    parts += [params.rates, params.transition_probs, prices.transition, prices.emission, tuple(search)]
    parts += [] if prices.first is None else [prices.first]
    for column in (*params.emission.columns, *process.emission.columns):
        parts += [column.name, *(getattr(column, name) for name in column.params)]
    text = repr([np.asarray(part).tolist() for part in parts])
    return hashlib.sha256(text.encode()).hexdigest()
