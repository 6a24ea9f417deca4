"""Families whose states have numbers of their own, such as a mean and a spread, some of which may be known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from ..arrays import Floats
from ..errors import nearest
from .column import Column, EntryRule, Ints


class EntryColumn(Column):
    """A family of `params`, each (M,), by which single `entries` of a state are fixed, in the same order.

    `fixed` (M, len(params)) holds those that no update changes, NaN elsewhere; None: there are none.
    """

    has_entries = True
    # What users call the parameters of one state.
    entries: ClassVar[tuple[str, ...]]
    fixed: Floats | None = None

    @property
    def n_parameters(self) -> int:
        known = 0 if self.fixed is None else int(np.isfinite(self.fixed).sum())
        return self.n_states * self.n_free - known

    def knows_entry(self, entry: Any) -> bool:
        return entry in self.entries

    def entry_rule(self, entry: Any) -> EntryRule:
        if self.params[self.entries.index(entry) if entry in self.entries else 0] in self.positive:
            return "a finite number > 0", lambda x: x > 0
        low, high = self.entry_bounds()
        what = "a finite number" if low == -np.inf else f"a finite number from {low:g} to {high:g}"
        return what, lambda x: low <= x <= high

    def entry_bounds(self) -> tuple[float, float]:
        """Between which the first parameter lies."""
        return -np.inf, np.inf

    # Parameters that must be above 0.
    positive: ClassVar[tuple[str, ...]] = ()

    def with_fixed(self, entries: Mapping[tuple[int, Any], float]) -> Self:
        fixed = self._fixed_table()
        for (s, entry), value in entries.items():
            if entry not in self.entries:
                raise ValueError(
                    f"fixed must name entries among {list(self.entries)} for emission {self.name!r}, got {entry!r}"
                    f"{nearest(entry, self.entries)}; correct it."
                )
            fixed[s, self.entries.index(entry)] = value
        return self._copy(fixed=fixed)

    def without_fixed(self) -> Self:
        return self if self.fixed is None else self._copy(fixed=None)

    def with_fixed_of(self, other: Self) -> Self:
        return self if other.fixed is None else self._copy(fixed=other.fixed)

    def misfit(self, other: Self) -> Floats:
        spread = other.spread()
        unit = 1.0 if spread is None else float(np.mean(spread))
        first = self._fixed_table()[:, :1]
        return np.asarray(np.nan_to_num(np.abs(first - getattr(other, self.params[0])) / unit, nan=0.0))

    def _fixed_table(self) -> Floats:
        return np.full((self.n_states, len(self.params)), np.nan) if self.fixed is None else self.fixed.copy()

    def _known(self, p: int) -> Any:
        """(M,) whether parameter p is fixed, for `Part`; None if it is in no state."""
        return None if self.fixed is None else np.isfinite(self.fixed[:, p])

    def _copy(self, **changes: Any) -> Self:
        new = super()._copy(**changes)
        if new.fixed is not None:  # whatever an update says
            own = {name: getattr(new, name) for name in self.params}
            kept = {
                name: np.where(np.isnan(new.fixed[:, p]), x, new.fixed[:, p]) for p, (name, x) in enumerate(own.items())
            }
            new.__dict__.update(kept)
        return new

    def take(self, index: Ints) -> Self:
        if self.fixed is None:
            return super().take(index)
        return self._copy(fixed=self.fixed[index], **{name: getattr(self, name)[index] for name in self.params})

    def join(self, other: Self) -> Self:
        if self.fixed is None and other.fixed is None:
            return super().join(other)
        pairs = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in self.params}
        return self._copy(fixed=np.concatenate([self._fixed_table(), other._fixed_table()]), **pairs)

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Self:
        given = dict(fields)
        fixed = given.pop("fixed", None)
        new = super().from_fields(given)
        if fixed is None:
            return new
        if np.shape(fixed) != (new.n_states, len(cls.params)):
            raise ValueError("fixed entries must be in the shape of the parameters")
        return new._copy(fixed=fixed)
