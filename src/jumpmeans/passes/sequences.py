"""The sequences of a panel, held by an engine: what a fit and its read-outs do to all blocks at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import AnyArray, Floats, Ints, sum_in_order
from ..kernels.least_error import jump_prices
from ..model.frailty import Frailty, Weighed
from ..model.levels import Levels, Readings
from ..model.objective import Prices, Stats, join_stats, jump_costs
from ..model.params import Params
from ..model.process import Process
from ..model.propagator import Propagator
from ..model.structure import jumps_needed
from .block import Block, Dwells
from .draw import Drawn, Law, begin, draw
from .engine import Engine, Held
from .frail import err_least_at, expect_at, smooth_at, weigh_at, with_multiplier
from .least_error import err_least
from .online import decode_online
from .smooth import Expected, Ready, agree, expect, gauge, smooth, weigh
from .sweep import Search, blank, occupy, sweep
from .varying import Varying

if TYPE_CHECKING:
    from ..data.panel import Panel

# So often nodes of frailty are looked for, and so often before there are more of them.
MOST_ZOOMS, FREE_ZOOMS = 12, 3


@dataclass(frozen=True, eq=False)
class Sequences:
    """Blocks held by an engine, and the little that must be known of all of them together.

    Trajectories are passed around as handles: they stay beside the blocks until `fetch` brings them here. `exact` says
    whether rows tell all that happened; where they show states, there is nothing to guess. `row_weight`: of all rows.
    Values are taken relative to `levels`, if there are any; rates of people differ by `frailty`, if there is any.
    """

    held: Held
    weights: Floats
    longest_gap: float
    exact: bool = False
    row_weight: float = 0.0
    levels: Levels | None = None
    frailty: Frailty | None = None

    @classmethod
    def of(
        cls, engine: Engine, panel: Panel, x: Floats, labels: AnyArray | None = None, z: Floats | None = None
    ) -> Sequences:
        """The sequences of a panel whose encoded values are x (n, D); for `labels` and `z` see `Block.of`."""
        return cls.hold(engine, Block.of(panel, x, labels, z))

    @classmethod
    def hold(cls, engine: Engine, block: Block) -> Sequences:
        """The sequences of one block, cut for the engine."""
        row_weight = float(block.weights @ np.diff(block.offsets))
        return cls(engine.hold(block.cut()), block.weights, block.longest_gap, block.is_exact, row_weight)

    def at(self, levels: Levels | None) -> Sequences:
        """The same sequences, at other levels."""
        return self if levels is self.levels else replace(self, levels=levels)

    def under(self, frailty: Frailty | None) -> Sequences:
        """The same sequences, under another law of frailty."""
        return self if frailty is self.frailty else replace(self, frailty=frailty)

    @property
    def _told(self) -> tuple[Levels, ...]:
        """What passes are told of people: nothing where there are no levels."""
        return () if self.levels is None else (self.levels,)

    def no_jumps(self) -> Any:
        """Trajectories to begin with: without jumps."""
        return self.held.run(blank, None)[0]

    def fetch(self, dwells: Any) -> Dwells:
        """Trajectories of all sequences, brought here."""
        return Dwells.join(self.held.fetch(dwells))

    def sweep(self, dwells: Any, params: Params, prices: Prices, search: Search) -> tuple[Any, Stats]:
        """Best trajectories, going on from `dwells`, and their statistics joined in order."""
        costs = jump_costs(params.transition_probs, prices.transition)
        dwells, parts = self.held.run(sweep, dwells, params, costs, prices, search, *self._told)
        stats = join_stats(parts)
        return dwells, stats if self.levels is None else stats._replace(offsets=self.levels.squares())

    def occupancy(self, dwells: Any, n_states: int) -> tuple[Floats, Ints]:
        """(M,) time in each state of trajectories, and (M,) visits, of sequences as they are, whatever their weight."""
        time, visits = zip(*self.held.run(occupy, dwells, n_states)[1], strict=True)
        return sum_in_order(list(time)), sum_in_order(list(visits))

    def decode(self, params: Params, prices: Prices, search: Search) -> tuple[Any, Stats]:
        """Best trajectories from the parameters alone."""
        return self.sweep(self.no_jumps(), params, prices, search)

    def decode_online(self, params: Params, prices: Prices, search: Search) -> Any:
        """Best trajectories whose jumps stay where a decoder that goes row by row would put them."""
        costs = jump_costs(params.transition_probs, prices.transition)
        return self.held.run(decode_online, None, params, costs, prices, search, *self._told)[0]

    def _propagator(self, process: Process) -> Ready:
        longest = self.longest_gap * (1.0 if self.frailty is None else float(self.frailty.nodes.max()))
        return Varying(process) if process.effects is not None else Propagator.of(process, longest)

    def smooth(self, process: Process) -> tuple[Floats, Floats]:
        """Posterior (n, M) of every row, and log-likelihood (S,) of sequences; with frailty, its share of a unit."""
        if self.frailty is not None:
            frailty, weighed = self.weigh(process)
            ready, paces = self.under(frailty)._propagator(process), frailty.of_sequences
            chances = weighed.chances[frailty.units]
            found = self.held.run(smooth_at, None, ready, paces, chances)[1]
            each = weighed.log_lik / frailty.pool(np.ones(len(frailty.units)))
            return np.concatenate(found), each[frailty.units]
        posterior, log_lik = zip(*self.held.run(smooth, None, self._propagator(process), *self._told)[1], strict=True)
        return np.concatenate(posterior), np.concatenate(log_lik)

    def log_likelihood(self, process: Process) -> float:
        """Weighted log-likelihood of all sequences; the bound of `Levels` where people have levels."""
        if self.frailty is not None:
            return self.frailty.total(self.weigh(process)[1])
        each = np.concatenate(self.held.run(weigh, None, self._propagator(process), *self._told)[1])
        return float(self.weights @ each) if self.levels is None else self.levels.bound(each)

    def gauge(self, process: Process) -> tuple[Readings, Floats]:
        """Readings of all sequences about their states at the present levels, and log-likelihoods (S,)."""
        parts = self.held.run(gauge, None, self._propagator(process), *self._told)[1]
        return Readings.joined([part[0] for part in parts]), np.concatenate([part[1] for part in parts])

    def weigh(self, process: Process) -> tuple[Frailty, Weighed]:
        """What the sequences tell of the multipliers of their people; and the frailty with nodes that serve for it."""
        frailty = self.frailty
        assert frailty is not None
        for k in range(MOST_ZOOMS):
            own = frailty.of_sequences
            found = self.held.run(weigh_at, None, self.under(frailty)._propagator(process), own)[1]
            weighed = frailty.weigh(np.concatenate(found))
            if frailty.is_enough(weighed):
                break
            frailty = frailty.zoomed(weighed, more=k >= FREE_ZOOMS)
        return frailty, weighed

    def err_least(self, process: Process) -> Any:
        """Trajectories of least expected time in the wrong state; with frailty, at the mean multiplier of each."""
        prices, jumps = jump_prices(process.rate_matrix), jumps_needed(process.rate_matrix > 0)
        if self.frailty is not None:
            frailty, weighed = self.weigh(process)
            paces = frailty.means(weighed)[frailty.units]
            return self.held.run(err_least_at, None, with_multiplier(process), prices, jumps, paces)[0]
        return self.held.run(err_least, None, self._propagator(process), prices, jumps, *self._told)[0]

    def agreement(self, dwells: Any, process: Process) -> Floats:
        """(M, M) posterior weight of each state over the rows where trajectories are in each."""
        return np.asarray(sum_in_order(self.held.run(agree, dwells, self._propagator(process), *self._told)[1]))

    def expect(self, process: Process) -> Expected:
        """Expected statistics of all sequences, joined in order; with frailty, times count by the multipliers."""
        if self.frailty is not None:
            frailty, weighed = self.weigh(process)
            ready, paces = self.under(frailty)._propagator(process), frailty.of_sequences
            weights = frailty.sequence_weights(weighed)
            found = Expected.join(self.held.run(expect_at, None, ready, paces, weights)[1])
            return found._replace(log_lik=weighed.log_lik, people=(frailty, weighed))
        return Expected.join(self.held.run(expect, None, self._propagator(process), *self._told)[1])

    def time_in_states(self, process: Process) -> Floats:
        """(M,) expected time in each state, by clocks of one pace for all."""
        assert self.frailty is not None
        frailty, weighed = self.weigh(process)
        ready, paces = self.under(frailty)._propagator(process), frailty.of_sequences
        weights = frailty.sequence_weights(weighed) / paces
        return np.diag(Expected.join(self.held.run(expect_at, None, ready, paces, weights)[1]).integrals)

    def begin_paths(self, rng: np.random.Generator, jumps: int) -> Any:
        """Paths to draw from: as many possible jumps in every gap, and random numbers of its own for each block."""
        return self.held.run(begin, self.held.put(list(rng.spawn(len(self.held)))), jumps)[0]

    def draw(self, paths: Any, process: Process, *, fresh: bool = False) -> tuple[Any, Drawn]:
        """New paths given the parameters, and what follows from them."""
        paths, parts = self.held.run(draw, paths, Law.of(process), fresh)
        return paths, Drawn.join(parts)

    def fetch_paths(self, paths: Any) -> Dwells:
        """Drawn paths of all sequences, brought here."""
        return Dwells.join([own.dwells for own in self.held.fetch(paths)])
