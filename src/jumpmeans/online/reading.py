"""Rows of a stream as a decoder needs them: numbers, kinds, states that they allow, costs and densities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import AnyArray, Bools, Floats
from ..data.known import Kinds, check_sets, read_kinds
from ..data.panel import Panel
from ..emissions.record import Record
from ..errors import PanelError, first_few, nearest
from ..kinds import SNAPSHOT


class ReadRows(NamedTuple):
    """Some rows: x (n, D), kinds (n,), and the states that each allows, (n, M), None if all allow all."""

    x: Floats
    kinds: Kinds
    allowed: Bools | None


class Reader:
    """Reads rows for a decoder that charges by one emission and its prices, and weighs by another's densities.

    states : (M,) labels; first : (M,) cost of the first state, or None; lenient : whether labels that are not known are
    missing.
    """

    def __init__(
        self, states: AnyArray, charged: Record, prices: Floats, weighed: Record, first: Floats | None,
        sets: Any, lenient: bool,
    ) -> None:  # fmt: skip
        self.states, self.charged, self.prices, self.weighed, self.first = states, charged, prices, weighed, first
        self.sets: Mapping[Any, Sequence[Any]] = check_sets(sets)
        self.lenient = lenient
        known = states.tolist()
        odd = [state for own in self.sets.values() for state in own if state not in known]
        if odd:
            raise ValueError(
                f"sets must be made of states, {first_few(known)}, got {odd[0]!r}{nearest(odd[0], known)}."
            )
        # cost of each state in a row that a set is known of; its density is the opposite
        self.barred = {
            name: np.where([state in own for state in known], 0.0, np.inf) for name, own in self.sets.items()
        }
        self.coders = [column.coder() for column in charged.columns]
        self.add_costs = [
            column.cost_adder(float(weight)) if weight > 0 else None
            for column, weight in zip(charged.columns, prices, strict=True)
        ]
        self.add_densities = [column.density_adder() for column in weighed.columns]

    def read(self, values: Any, kinds: Any, true_states: Any, n: int) -> ReadRows:
        """Rows of values (n,) or (n, D)."""
        panel = _one_sequence(values, n, self.sets, true_states)
        codes = np.full(n, SNAPSHOT, np.int8) if kinds is None else read_kinds(kinds)
        for name, own in (("values", panel.n_observations), ("kinds", len(codes))):
            if own != n:
                raise PanelError(f"ids and {name} must be of one length, got {n} and {own}.")
        if self.lenient:
            panel = panel.with_values(np.where(self._unknown(panel), np.nan, panel.values))
        return ReadRows(self.charged.encode(panel), codes, panel.allowed_states(self.states))

    def weigh(self, rows: ReadRows, opens: Bools) -> tuple[Floats, Floats]:
        """Costs and log-densities (n, M) of rows, of which some open their sequences."""
        cost = self.charged.cost(rows.x, self.prices)
        log_density = self.weighed.unit_log_density(rows.x)
        if self.first is not None:
            cost[opens] += self.first
        if rows.allowed is not None:
            cost[~rows.allowed] = np.inf
            log_density[~rows.allowed] = -np.inf
        return cost, log_density

    def weigh_one(self, value: Any, cost: Floats, log_density: Floats) -> bool:
        """Costs and log-densities (M,), OUT, of one value that says nothing else; False if it must be read."""
        coders = self.coders
        if self.barred:
            try:
                barred = self.barred.get(value)
            except TypeError:
                return False
            if barred is not None:
                cost[:] = barred
                log_density[:] = -barred
                return True
            if len(coders) > 1:  # any of the values may be the label of a set
                return False
        if len(coders) == 1:
            values = (value,)
        elif isinstance(value, list | tuple) and len(value) == len(coders):
            values = tuple(value)
        else:
            return False
        cost.fill(0.0)
        log_density.fill(0.0)
        for d, x in enumerate(values):
            number = coders[d](x)
            if number is None:
                return False
            add = self.add_costs[d]
            if add is not None:
                add(number, cost)
            self.add_densities[d](number, log_density)
        return True

    def _unknown(self, panel: Panel) -> Bools:
        """(n, D) whether a value is a label that the model does not know."""
        out = np.zeros(panel.values.shape, dtype=bool)
        for d, column in enumerate(self.charged.columns[: panel.n_columns]):
            if column.has_labels:
                known = set(column.symbols.tolist())  # type: ignore[attr-defined]
                held, categories = panel.values[:, d], panel.categories[d]
                labels = panel.labels(d)
                codes = labels.astype(np.float64) if categories is None else np.arange(len(labels))
                odd = [code for code, label in zip(codes.tolist(), labels.tolist(), strict=True) if label not in known]
                out[:, d] = np.isin(held, odd)
        return out


def _one_sequence(values: Any, n: int, sets: Mapping[Any, Sequence[Any]], true_states: Any) -> Panel:
    """A panel of nothing but values and of what is known of their states."""
    plain = np.asarray(values) if not isinstance(values, list) or all(isinstance(x, float) for x in values) else None
    if sets or true_states is not None or plain is None or plain.dtype.kind not in "fiu" or plain.ndim not in (1, 2):
        return Panel.from_arrays(
            np.arange(n, dtype=np.float64), values, np.zeros(n, np.int64), true_states=true_states, sets=sets
        )
    table = plain.astype(np.float64).reshape(len(plain), -1)  # numbers as they are: no need to read them
    m, D = table.shape
    one, rows = np.zeros(1), np.arange(m)
    return Panel(
        rows.astype(np.float64), table, np.array([0, m]), np.zeros(1, np.int64), one, one + max(m - 1, 0), one + 1.0,
        None, rows, tuple(f"value_{d}" for d in range(D)) if D > 1 else ("value",), (None,) * D, (False,) * D,
    )  # fmt: skip
