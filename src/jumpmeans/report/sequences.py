"""Sequences as the page holds them: each a small record, as many of them and in such detail as fit."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from ..arrays import AnyArray, Floats, Ints
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..engines import get_engine
from ..model.dependence import lay_out
from ..passes import Sequences
from ..plots.scale import make_scale

# A probability is one letter, the index of which is 63 times as large; page.js reads it.
LETTERS = np.array(list("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"))
# Times within a window, beside its rows, at which probabilities are kept: the most, or less where that does not fit.
GRIDS = (60, 30, 12)
# A longer sequence is shown as far as this, in rows and in dwells.
MOST_ROWS, MOST_DWELLS = 3000, 1500
# Sequences by which the room that one takes is estimated, and the share of the room to be filled by it.
PILOT, FILL = 60, 0.92


def browse(model: Any, panel: Panel, trajectories: Trajectories, room: int) -> dict[str, Any]:
    """Records of the sequences within so many bytes, and what had to be left out.

    Parameters
    ----------
    model : fitted model
    panel, trajectories : what was seen, and the paths to show
    room : bytes that all records may take

    Returns
    -------
    dict
        tick: unit of the whole numbers that times are kept as; decimals: how many a time has; list: the records;
        total: sequences of the panel; cut: those of which the beginning is shown; grid: see GRIDS.
        Of a record: id; a, z: start and end of what is shown, as ticks and times; t: ticks between rows, the first
        since a; x: values by column, labels as indices; s, b: states and ticks between dwells; p: probabilities at the
        rows and then at grid + 1 even times, None without; m: misfit; cut: whether there is more of it; l: what states
        show of each column at the level of this person, where people differ in it.
    """
    tick, decimals = _tick(panel)
    rng = np.random.default_rng(0)
    order = rng.permutation(panel.n_sequences)
    pilot = np.sort(order[:PILOT])
    people = _people(model, panel)
    grid = GRIDS[-1]
    for grid in GRIDS:
        size = sum(map(_size, _records(model, panel, trajectories, people, pilot, grid, tick))) / len(pilot)
        if size * panel.n_sequences <= FILL * room:
            break
    chosen = np.sort(order[: max(1, int(FILL * room / size))])
    records = _records(model, panel, trajectories, people, chosen, grid, tick)
    while len(records) > 1 and sum(map(_size, records)) > room:  # the pilot was shorter than most
        records = records[::2]
    return {
        "tick": tick,
        "decimals": decimals,
        "grid": grid,
        "list": records,
        "total": panel.n_sequences,
        "cut": sum(record["cut"] for record in records),
    }


def _size(record: dict[str, Any]) -> int:
    return len(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")) + 1


def _tick(panel: Panel) -> tuple[float, int]:
    """Unit of the times that the page keeps, and the decimals that it shows: fine beside a usual window."""
    windows = panel.end_times - panel.start_times
    usual = float(np.median(windows[windows > 0])) if np.any(windows > 0) else 1.0
    if panel.clock is not None:
        return (1.0 / 1440.0 if usual > 1.0 else 1.0 / 86400.0), 0
    power = int(np.floor(np.log10(usual))) - 5
    return 10.0**power, max(0, -power - 1)


def _records(
    model: Any, panel: Panel, trajectories: Trajectories, people: Floats | None, chosen: Ints, grid: int, tick: float
) -> list[dict[str, Any]]:
    ids = panel.ids.tolist()
    # copies of a sequence share an id: here each has its own
    part = panel.select(chosen)
    part = replace(part.head(MOST_ROWS), ids=np.arange(len(chosen)), weights=np.ones(len(chosen)))
    ends = part.end_times.copy()
    paths = []
    for k, i in enumerate(chosen.tolist()):
        own = slice(trajectories.offsets[i], trajectories.offsets[i + 1])
        codes, starts = trajectories.codes[own], trajectories.start_times[own]
        if len(codes) > MOST_DWELLS:
            ends[k] = min(ends[k], starts[MOST_DWELLS])
        within = starts <= ends[k]
        within[0] = True
        paths.append((codes[within][:MOST_DWELLS], starts[within][:MOST_DWELLS]))
    probs = _probabilities(model, part, ends, grid)
    misfit = _misfit(model, part)
    levels = None if people is None else _own_levels(model, panel, trajectories, people[chosen])
    values = [_column_values(part, d) for d in range(part.n_columns)]
    records = []
    for k, i in enumerate(chosen.tolist()):
        rows = slice(part.offsets[k], part.offsets[k + 1])
        codes, starts = paths[k]
        a = float(part.start_times[k])
        shown = part.times[rows] <= ends[k]
        records.append({
            "id": str(ids[i]),
            "a": a,
            "z": round((float(ends[k]) - a) / tick),
            "t": _steps(part.times[rows][shown], a, tick),
            "x": [column[rows][shown].tolist() for column in values],
            "s": codes.tolist(),
            "b": _steps(starts, a, tick),
            "p": None if probs is None else probs[k],
            "m": None if np.isnan(misfit[k]) else float(f"{misfit[k]:.4g}"),
            "cut": bool(ends[k] < panel.end_times[i]),
            **({} if levels is None else {"l": levels[k]}),
        })  # fmt: skip
    return records


def _steps(times: Floats, a: float, tick: float) -> list[int]:
    """Rising times as whole ticks since the one before, the first since a."""
    return np.diff(np.rint((times - a) / tick).astype(np.int64), prepend=0).tolist()


def _column_values(panel: Panel, d: int) -> AnyArray:
    """(n,) values of a column to six digits, None where missing; labels as indices."""
    x = panel.values[:, d]
    out = np.array([None if np.isnan(v) else float(f"{v:.6g}") for v in x.tolist()], dtype=object)
    whole = [v is not None and v == int(v) for v in out.tolist()]
    out[whole] = [int(v) for v in out[whole].tolist()]
    return out


def _probabilities(model: Any, panel: Panel, ends: Floats, grid: int) -> list[str] | None:
    """Probabilities of all states at the shown rows of each sequence and at even times, as letters."""
    if not hasattr(model, "predict_proba"):
        return None
    sequence = panel.sequence_index
    shown = panel.times <= ends[sequence]
    # within the window, also where rounding would step out of it
    even = panel.start_times[:, None] + (ends - panel.start_times)[:, None] * np.linspace(0.0, 1.0, grid + 1)
    even[:, -1] = ends
    asked_of = np.concatenate([sequence[shown], np.repeat(np.arange(panel.n_sequences), grid + 1)])
    asked = np.concatenate([panel.times[shown], even.ravel()])
    probs = model.predict_proba(panel, at=(asked_of, asked))
    letters = LETTERS[np.clip(np.rint(63.0 * probs), 0, 63).astype(np.int64)]
    order = np.argsort(asked_of, kind="stable")  # rows first, then even times
    bounds = np.searchsorted(asked_of[order], np.arange(panel.n_sequences + 1))
    lines = letters[order]
    return ["".join(lines[a:b].ravel().tolist()) for a, b in pairwise(bounds)]


def _people(model: Any, panel: Panel) -> Floats | None:
    """(S, D) offsets of the people of a panel; None if the model knows no levels."""
    if getattr(model, "offset_sd_", None) is None:
        return None
    found = model._sequences(panel).levels
    return np.asarray(found.means[found.units])


def _own_levels(model: Any, panel: Panel, trajectories: Trajectories, offsets: Floats) -> list[list[Any]]:
    """What states show of each column at some levels (k, D) of people, None of a column in which they do not differ."""
    columns: list[list[Any]] = []
    for d, emission in enumerate(model.process_.emission.columns):
        if model.offset_sd_[d] == 0:
            columns.append([None] * len(offsets))
            continue
        levels = make_scale(trajectories, panel, model.process_, d, None, ()).levels
        own = [emission.at_level(levels, np.full(len(levels), b)) for b in offsets[:, d].tolist()]
        columns.append([[float(f"{x:.6g}") for x in each.tolist()] for each in own])
    return [list(own) for own in zip(*columns, strict=True)]


def _misfit(model: Any, panel: Panel) -> Floats:
    """(S,) how unlikely each sequence is under the process, per row with a value; NaN for one without any."""
    if hasattr(model, "_sequences"):
        held = model._sequences(panel)
    else:
        laid = lay_out(model.process_.effects, panel)
        x = model.process_.emission.encode(laid.panel)
        held = Sequences.of(get_engine("threads"), laid.panel, x, model.process_.states, laid.z)
    log_lik = held.smooth(model.process_)[1]
    n = np.bincount(panel.sequence_index[panel.observed], minlength=panel.n_sequences)
    return np.where(n > 0, -log_lik / np.maximum(n, 1), np.nan)
