"""From the columns of a table to the arrays of a panel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from ..errors import PanelError, first_few, nearest, shorten
from .clock import Clock, encode_times
from .columns import all_integers, read_keys, read_numbers, read_values
from .covariates import covariate_names, read_covariates
from .frames import BACKENDS
from .known import check_sets, read_kinds, read_known
from .layout import Layout
from .times import read_times


class Columns(NamedTuple):
    """What a panel is made of, in the caller's order of rows; weights to end_times are constant within an id.

    sets : {label: states}, what labels among the values and true_states mean; covariates : {name: column}.
    """

    times: Any
    values: Sequence[Any]
    ids: Any
    names: Sequence[str]
    weights: Any = None
    groups: Any = None
    start_times: Any = None
    end_times: Any = None
    kinds: Any = None
    true_states: Any = None
    sets: Any = None
    covariates: Any = None


class Roles(NamedTuple):
    """Names of the columns of a table by what they are for, and which labels among them mean several states."""

    id: str = "id"
    time: str = "time"
    value: tuple[str, ...] = ("value",)
    weight: str | None = None
    group: str | None = None
    start: str | None = None
    end: str | None = None
    kind: str | None = None
    true_state: str | None = None
    sets: Mapping[Any, Any] | None = None
    covariates: tuple[str, ...] = ()

    @classmethod
    def named(cls, *, value: Any = "value", covariates: Any = None, **roles: Any) -> Roles:
        """Roles with names that are strings, and at least one column of values."""
        for role, name in roles.items():
            if role == "sets":
                continue
            if not isinstance(name, str) and (name is not None or role in ("id", "time")):
                raise PanelError(f"{role} must be the name of a column, a string, got {name!r}; rename the column.")
        values = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else None
        if values is None or not all(isinstance(name, str) for name in values):
            raise PanelError(f"value must be the name of a column or a list of names, got {value!r}.")
        if not values:
            raise PanelError("value must name at least one column, got an empty list.")
        return cls(value=values, covariates=covariate_names(covariates), **roles)

    def names(self) -> list[str]:
        """The names in use, each once."""
        optional = (self.weight, self.group, self.start, self.end, self.kind, self.true_state)
        used = (name for name in optional if name is not None)
        return list(dict.fromkeys([self.id, self.time, *self.value, *used, *self.covariates]))

    def check(self, known: Sequence[Any]) -> None:
        """Every name must be that of one column."""
        for name in self.names():
            if name not in known:
                raise PanelError(f"there is no column {name!r}{nearest(name, known)}; there are {first_few(known)}.")
            if list(known).count(name) > 1:
                raise PanelError(f"column names must be distinct, got {name!r} twice; rename one of the two.")

    def pick(self, table: Mapping[str, Any] | nw.DataFrame[Any]) -> Columns:
        """The columns of a table in their roles."""

        def column(name: str | None) -> Any:
            return None if name is None else table[name]

        return Columns(
            times=table[self.time],
            values=[table[name] for name in self.value],
            ids=table[self.id],
            names=self.value,
            weights=column(self.weight),
            groups=column(self.group),
            start_times=column(self.start),
            end_times=column(self.end),
            kinds=column(self.kind),
            true_states=column(self.true_state),
            sets=self.sets,
            covariates={name: table[name] for name in self.covariates},
        )


def open_frame(frame: Any) -> tuple[nw.DataFrame[Any], str | None]:
    """A frame seen through narwhals, and which kind it is if frames of that kind can be made again."""
    try:
        table = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise PanelError(
            f"frame must be a pandas, polars or pyarrow table in memory, got {type(frame).__name__}."
        ) from None
    except nw.exceptions.NarwhalsError as error:
        raise PanelError(f"the columns of the frame must have distinct names: {error}.") from None
    return table, next((name for name in BACKENDS if getattr(table.implementation, f"is_{name}")()), None)


def build(columns: Columns, origin: np.datetime64 | None = None) -> dict[str, Any]:
    """The fields of a panel; a column that cannot be read is refused here, one that breaks a rule by the panel.

    Day 0 of dates is the first of them, or the `origin` that they share with other panels.
    """
    _check_sizes(columns)
    layout = Layout.of_codes(*read_keys(columns.ids, "ids"))
    keys, offsets, rows = layout
    stamps, zone = read_times(columns.times)
    clock = None
    if stamps.dtype.kind == "M":
        clock = Clock(np.fmin.reduce(stamps) if origin is None else origin, zone)
        stamps = clock.days(stamps)
    times = stamps[rows]
    sets = check_sets(columns.sets)
    encoded = [read_values(x, name, sets) for x, name in zip(columns.values, columns.names, strict=True)]
    known, state_sets = read_known(columns.values, columns.true_states, sets)
    fields = {
        "times": times,
        "values": np.column_stack([x for x, _ in encoded])[rows],
        "offsets": offsets,
        "ids": keys,
        "start_times": times[offsets[:-1]],
        "end_times": times[offsets[1:] - 1],
        "weights": np.ones(len(keys)),
        "groups": None,
        "rows": rows,
        "columns": tuple(columns.names),
        "categories": tuple(labels for _, labels in encoded),
        "integer": tuple(labels is None and all_integers(x) for x, labels in encoded),
        "clock": clock,
        "kinds": None if columns.kinds is None else read_kinds(columns.kinds)[rows],
        "known": None if known is None else known[rows],
        "state_sets": state_sets,
        "covariates": read_covariates(columns.covariates, layout),
    }
    if columns.weights is not None:
        fields["weights"] = layout.per_sequence(read_numbers(columns.weights, "weights"), "weights")
    if columns.groups is not None:
        names, group_codes = read_keys(columns.groups, "groups")
        fields["groups"] = names[layout.per_sequence(group_codes, "groups")]
    for name, window in (("start_times", columns.start_times), ("end_times", columns.end_times)):
        if window is not None:
            encoded_window = encode_times(window, None) if clock is None else clock.encode(window)
            fields[name] = layout.per_sequence(encoded_window, name)
    return fields


def _check_sizes(columns: Columns) -> None:
    optional = {name: x for name, x in zip(columns._fields[4:-2], columns[4:-2], strict=True) if x is not None}
    given = {"ids": columns.ids, "times": columns.times} | optional
    sizes = set(map(len, columns.values))
    for name, x in given.items():
        try:
            sizes.add(len(x))
        except TypeError:
            raise PanelError(f"{name} must be a sequence with one entry per row, got {shorten(repr(x))}.") from None
    if len(sizes) > 1:
        raise PanelError(f"all columns must have one entry per row, got lengths {sorted(sizes)}.")
    if sizes == {0}:
        raise PanelError("a panel must have at least one row, got none; was everything filtered out?")
