"""Dwells by the covariates that they were spent under: all that λ and β of the objective depend on."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import Bools, Floats, Ints


class Exposure(NamedTuple):
    """Weighted dwells of trajectories, by pattern of covariates.

    z : (Z, K) centred columns of the covariates, a row for each pattern.
    Groups of complete dwells under one pattern: state, pattern (G,); exits, time, log_time (G,): their number, total
    and total logarithm. Long dwells, each with pieces of its own, are those that still run and those that covariates
    change in: long_state, long_weight, running (R,); offsets (R + 1,) of their pieces; piece_pattern, piece_time (Q,).
    """

    z: Floats
    state: Ints
    pattern: Ints
    exits: Floats
    time: Floats
    log_time: Floats
    long_state: Ints
    long_weight: Floats
    running: Bools
    offsets: Ints
    piece_pattern: Ints
    piece_time: Floats

    @classmethod
    def join(cls, parts: list[Exposure]) -> Exposure:
        """Those of all parts, in their order."""
        first = np.cumsum([0, *(len(part.z) for part in parts)])
        pieces = np.cumsum([0, *(len(part.piece_time) for part in parts)])

        def joined(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts])

        def shifted(name: str) -> Ints:
            return np.concatenate([getattr(part, name) + k for part, k in zip(parts, first[:-1], strict=True)])

        ends = [part.offsets[1:] + k for part, k in zip(parts, pieces[:-1], strict=True)]
        return cls(
            joined("z"), joined("state"), shifted("pattern"), joined("exits"), joined("time"), joined("log_time"),
            joined("long_state"), joined("long_weight"), joined("running"), np.concatenate([[0], *ends]),
            shifted("piece_pattern"), joined("piece_time"),
        )  # fmt: skip

    @property
    def piece_state(self) -> Ints:
        """(Q,) state of each piece."""
        return np.repeat(self.long_state, np.diff(self.offsets))

    def log_paces(self, beta: Floats) -> tuple[Floats, Floats]:
        """β_s · z of each group (G,) and of each piece (Q,), for β (K, M)."""
        table = np.einsum("zk,km->zm", self.z, beta)
        return table[self.pattern, self.state], table[self.piece_pattern, self.piece_state]

    def total(self, pieces: Floats) -> Floats:
        """(R,) sums over the pieces of each long dwell."""
        return np.add.reduceat(pieces, self.offsets[:-1]) if len(self.long_state) else np.zeros(0)

    def told_apart(self) -> Exposure:
        """The same as occurrences and exposure: every piece a group, with the exit of its dwell in the last of them."""
        lengths = np.diff(self.offsets)
        weights = np.repeat(self.long_weight, lengths)
        last = np.zeros(len(weights), dtype=bool)
        last[self.offsets[1:] - 1] = ~self.running
        nothing, none = np.zeros(0, np.int64), np.zeros(0)
        return Exposure(
            self.z, np.append(self.state, self.piece_state), np.append(self.pattern, self.piece_pattern),
            np.append(self.exits, np.where(last, weights, 0.0)), np.append(self.time, weights * self.piece_time),
            np.append(self.log_time, np.zeros(len(weights))),
            nothing, none, none > 0, np.zeros(1, np.int64), nothing, none,
        )  # fmt: skip

    def costs(self, rates: Floats, beta: Floats, running: bool) -> tuple[float, float]:
        """Σ w h of the complete dwells and Σ w g of those that still run, which cost nothing unless `running`."""
        groups, pieces = self.log_paces(beta)
        lam = rates[self.state]
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.where(self.exits > 0, self.exits * (np.log(lam) + groups + 1.0), 0.0)
        complete = lam * np.exp(groups) * self.time - own - self.log_time
        hours = rates[self.long_state] * self.total(np.exp(pieces) * self.piece_time)
        whole, w = ~self.running, self.long_weight
        crossed = w[whole] * (hours[whole] - np.log(hours[whole]) - 1.0)
        z = np.maximum(hours[self.running], 1.0)
        still = w[self.running] * (z - np.log(z) - 1.0)
        return float(complete.sum() + crossed.sum()), float(still.sum()) if running else 0.0
