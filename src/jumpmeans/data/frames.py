"""Frames out: the same kind of frame that came in."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from ..arrays import AnyArray
from ..errors import MissingExtraError, PanelError
from ..kinds import NAMES
from ..options import choice, none

if TYPE_CHECKING:
    from .panel import Panel

BACKENDS = ("pandas", "polars", "pyarrow")


def make_frame(columns: Mapping[str, Any], backend: str | None = None, zone: str | None = None) -> Any:
    """A frame of the given columns: of the kind `backend` names, else of the first kind installed.

    NaN and None are missing, as the kind of frame writes it. Columns of datetime64 are in UTC and come out in the
    `zone`, if there is one.
    """
    (none | choice(*BACKENDS)).check("backend", backend)
    names = BACKENDS if backend is None else (backend,)
    found = next((name for name in names if _installed(name)), None)
    if found is None:
        raise MissingExtraError(
            f"a frame needs {backend or 'pandas, polars or pyarrow'}; install it by pip install 'jumpmeans[frames]'."
        )
    plain = {name: _plain(np.asarray(column), found) for name, column in columns.items()}
    frame = nw.from_dict(plain, backend=found)  # type: ignore[arg-type]
    if zone is not None:
        dates = [name for name, column in columns.items() if np.asarray(column).dtype.kind == "M"]
        frame = frame.with_columns(nw.col(dates).dt.replace_time_zone("UTC").dt.convert_time_zone(zone))
    return frame.to_native()


def panel_frame(panel: Panel) -> Any:
    """The rows of a panel in the caller's order, as a frame of the kind that it was made of."""
    sequence = panel.sequence_index
    own: dict[str, AnyArray] = {"id": panel.ids[sequence], "time": panel.decode_times(panel.times)}
    extra: dict[str, AnyArray] = {}
    if np.any(panel.weights != 1):
        extra["weight"] = panel.weights[sequence]
    if panel.groups is not None:
        extra["group"] = panel.groups[sequence]
    if np.any(panel.start_times != panel.times[panel.offsets[:-1]]):
        extra["start"] = panel.decode_times(panel.start_times[sequence])
    if np.any(panel.end_times != panel.times[panel.offsets[1:] - 1]):
        extra["end"] = panel.decode_times(panel.end_times[sequence])
    if panel.kinds is not None:
        extra["kind"] = np.array(NAMES, dtype=object)[panel.kinds]
    if panel.known is not None:
        names = np.array([*(known.name for known in panel.state_sets), None], dtype=object)
        extra["true_state"] = names[panel.known]
    values: dict[str, AnyArray] = {}
    for d, name in enumerate(panel.columns):
        if name in own or name in extra or name in values:
            raise PanelError(f"to_frame() has another column {name!r}; rename that column of values.")
        values[name] = panel.decode_values(panel.values[:, d], d)
    beside: dict[str, AnyArray] = {}
    for name in panel.covariates.names if panel.covariates else ():
        if name in own or name in extra or name in values:
            raise PanelError(f"to_frame() has another column {name!r}; rename that covariate.")
        beside[name] = panel.covariates.column(name)  # type: ignore[union-attr]
    columns = {name: panel.to_caller_order(x) for name, x in (own | values | extra | beside).items()}
    return make_frame(columns, panel.frame_backend, zone=None if panel.clock is None else panel.clock.zone)


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:  # its entry among the loaded modules was blocked
        return False


def _plain(column: Any, backend: str) -> Any:
    """What narwhals reads alike for all kinds of frames; only in pandas is NaN a missing number."""
    if column.dtype.kind == "f" and backend == "polars":
        return import_module("polars").Series(column, nan_to_null=True)
    if column.dtype.kind == "f" and backend == "pyarrow":
        return import_module("pyarrow").array(column, from_pandas=True)
    return column.tolist() if column.dtype.kind in "OUS" else column
