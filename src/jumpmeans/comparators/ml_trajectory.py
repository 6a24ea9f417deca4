"""The most likely trajectory of a Markov jump process, with the degenerate dwells that make it unfit for use."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, Ints
from ..data.known import snapshots_only
from ..data.panel import Panel
from ..data.trajectories import Trajectories
from ..engines import get_engine
from ..errors import InfeasibleError
from ..estimators.explained import pair_of
from ..estimators.jump_model import MOST_JUMPS
from ..estimators.read_out import ReadOut, all_at_once, as_panel
from ..fit.setup import or_auto, typical_gap
from ..interrupts import held_back
from ..kernels.most_likely import LEAST_GAIN, best_chains, most_likely, place_dwells
from ..model.process import Process
from ..options import Rule, auto, check_options, count, number
from ..passes import Block
from ..stored import stored
from ..stored.kinds import require, require_floats


@stored
@dataclass(frozen=True, eq=False, repr=False)
class MLTrajectories(Trajectories):
    """Most likely paths; see `Trajectories` for the other fields.

    Parameters
    ----------
    degenerate : (n_dwells,)
        Whether a dwell has length 0 in the limit; here it is drawn with a tiny length.
    log_density : (S,)
        Logarithm of the limit of each path's density, observations included.
    """

    degenerate: NDArray[np.bool_] = None  # type: ignore[assignment]
    log_density: Floats = None  # type: ignore[assignment]

    def check_fields(self) -> None:
        """Refuse what are no trajectories, if they come from a file."""
        super().check_fields()
        marks = self.degenerate
        marked = isinstance(marks, np.ndarray) and marks.dtype == bool and marks.shape == self.codes.shape
        require(marked, "degenerate must tell of every dwell")
        require_floats("log_density", self.log_density, (len(self),))


# Bytes that tables of chains may take.
MOST_MEMORY = 4e9


class Chains(NamedTuple):
    """Best chains of jumps from a to b through m, for all triples, and what is needed to walk them.

    value : (M, M, M) value[m, a, b], Σ ln(λ p) of the best chain; -inf if there is none.
    before, behind : (M, M, M) its number of jumps from a to m, and from m to b.
    previous : (K + 1, M, M) previous[k, a, b], last state before b on the best chain of exactly k jumps.
    """

    value: Floats
    before: NDArray[np.int32]
    behind: NDArray[np.int32]
    previous: NDArray[np.int32]


@stored
class MLTrajectory(ReadOut):
    """The trajectory of highest density under a given process (Perkins 2009), which JUMP-means improves upon.

    The density of a path is highest when all the time between two looks is spent in the slowest state visited there:
    every other dwell shrinks to nothing. Such dwells are kept, drawn with length `epsilon` and marked.

    Parameters
    ----------
    process : Process, optional
        The parameters.
    start : fitted model, optional
        Takes its `process_` instead.
    max_jumps_per_gap : int or "auto"
        Jumps between two successive rows at most. Auto: no limit where the most likely path exists, else (see Notes)
        the number of states, with a warning.
    epsilon : float or "auto"
        Length given to dwells of length 0, less where a gap has no room for it; auto: a millionth of the median gap.
    engine : "threads" or an engine
        For `predict_proba`.

    Attributes
    ----------
    trajectories_ : MLTrajectories
        With the arrays `degenerate` (which dwells have length 0 in the limit) and `log_density` (of each sequence).
    process_, states_ : Process, (M,)
        The parameters, and the labels of the states.
    cycle_gain_ : float
        Highest Σ ln(λ p) around a cycle of jumps; above 0 no path is the most likely one.
    max_jumps_per_gap_, epsilon_ : int, float
        The numbers behind "auto".

    Notes
    -----
    Maximises ln π + Σ (ln λ + ln p - λ t) - λ y + Σ ln p(x | s) (the paper's trajectory probability, with the last
    dwell y still running). It is linear in the dwell times, hence the degeneracy. Between two rows a gap apart the best
    path from a to b is a chain of jumps with Σ ln(λ p) - gap · min λ; chains and their slowest state are
    tabulated once, and dynamic programming over rows does the rest, O(M³) a row. Without a limit
    2 (M - 1) jumps suffice: to the slowest state and on.

    A jump is worth ln(λ p), so what is most likely depends on the unit of time, as densities do. A cycle that gains
    could be run through for ever at no cost in time: the supremum is then infinite and the number of jumps
    per gap must be limited.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> from jumpmeans.comparators import MLTrajectory
    >>> process = jm.Process([0.2, 1.0, 0.1], [[0, 1, 0], [0.5, 0, 0.5], [0, 1, 0]])
    >>> panel = jm.Panel.from_arrays([0.0, 4.0], [0, 2], ids=["p", "p"])
    >>> best = MLTrajectory(process, epsilon=0.01).fit(panel).trajectories_
    >>> best.states, best.start_times, best.degenerate
    (array([0, 1, 2]), array([0.  , 0.01, 0.02]), array([ True,  True, False]))
    """

    rules: ClassVar[dict[str, Rule]] = {
        "max_jumps_per_gap": auto | count(most=MOST_JUMPS),
        "epsilon": auto | number(above=0),
    }

    # tables that follow from the process: made again, not stored
    derived: ClassVar[tuple[str, ...]] = ("_seen_", "_chains_", "_direct_")

    def __init__(
        self,
        process: Process | None = None,
        *,
        start: Any = None,
        max_jumps_per_gap: int | str = "auto",
        epsilon: float | str = "auto",
        engine: Any = "threads",
    ) -> None:
        self.process = process
        self.start = start
        self.max_jumps_per_gap = max_jumps_per_gap
        self.epsilon = epsilon
        self.engine = engine

    def fit(self, panel: Any, y: None = None) -> Self:
        """Take the process as given and decode a panel, or a frame with columns id, time and value."""
        check_options(self, self.rules)
        get_engine(self.engine)  # a wrong one is refused here, not at the first read-out
        panel = as_panel(panel)
        snapshots_only(panel, "MLTrajectory")
        process = self._given_process()
        M = len(process.rates)
        most, epsilon = self._max_jumps(M), or_auto(self.epsilon, 1e-6 * typical_gap(panel))
        jump_values = log(process.rates[:, None] * process.transition_probs)
        cycle_gain = best_cycle(jump_values)
        if isinstance(self.max_jumps_per_gap, str) and cycle_gain > LEAST_GAIN:
            most = M
            warnings.warn(
                f"no trajectory is the most likely one: a cycle of jumps gains {cycle_gain:.3g} at no cost in "
                f"time; giving the best with at most max_jumps_per_gap={most} jumps between two rows.",
                UserWarning,
                stacklevel=2,
            )
        with all_at_once(self) as new:
            new.process_, new.states_ = process, process.states
            new.cycle_gain_, new.max_jumps_per_gap_, new.epsilon_ = cycle_gain, most, epsilon
            new._tabulate()
            new.trajectories_, new._seen_ = new.decode(panel), panel
        return self

    def _tabulate(self) -> None:
        """Best chains of jumps, and of one at most."""
        most = self.max_jumps_per_gap_
        jump_values = log(self.process_.rates[:, None] * self.process_.transition_probs)
        with held_back():
            self._chains_ = Chains(*best_chains(jump_values, most))
            self._direct_ = Chains(*best_chains(jump_values, min(most, 1)))

    def check_fields(self) -> None:
        """Refuse parts that do not fit together, if they come from a file, and make the tables again."""
        super().check_fields()
        most, epsilon = vars(self).get("max_jumps_per_gap_"), vars(self).get("epsilon_")
        require(type(most) is int and most >= 0, f"max_jumps_per_gap_ must be a number, got {most!r}")
        require(isinstance(epsilon, float) and 0 < epsilon < np.inf, f"epsilon_ must be a length, got {epsilon!r}")
        check_memory(len(self.process_.rates), self.max_jumps_per_gap_)
        self._tabulate()

    def decode(self, panel: Any, criterion: str = "likelihood") -> Trajectories:
        """Most likely trajectory of every sequence; dwells of length 0 have a tiny one and are marked.

        Parameters
        ----------
        panel : Panel or frame
        criterion : "likelihood" or "time"
            As above, or the trajectory of least expected time in the wrong state.
        """
        if not isinstance(criterion, str) or criterion != "likelihood":
            return super().decode(panel, criterion)
        self._fitted()
        panel = as_panel(panel)
        looks, log_density = self._looks(panel)
        return publish(panel, looks, log_density, self._chains_, self._direct_, self.epsilon_, self.states_)

    def _row_states(self, panel: Panel) -> NDArray[np.int32]:
        looks, _ = self._looks(panel)
        return looks.states[looks.row >= 0]

    def _looks(self, panel: Panel) -> tuple[Looks, Floats]:
        snapshots_only(panel, "MLTrajectory")
        process = self.process_
        block = Block.of(panel, process.emission.encode(panel))
        looks = Looks.of(block, panel, self.max_jumps_per_gap_)
        density = np.vstack([process.emission.log_density(block.x), np.zeros(len(process.rates))])
        log_density = np.empty(panel.n_sequences)
        where = most_likely(
            looks.gaps, looks.narrow, looks.offsets, density[looks.row], log(process.initial_probs), process.rates,
            self._chains_.value, self._direct_.value, looks.states, looks.slow, log_density,
        )  # fmt: skip
        if where >= 0:
            place, _ = pair_of(panel, int(looks.row[where]))
            raise InfeasibleError(
                f"the process must be able to explain every sequence, got no path of at most "
                f"{self.max_jumps_per_gap_} jumps a gap for {place}; raise max_jumps_per_gap, give a process that "
                "allows the move, or correct the row."
            )
        return looks, log_density

    def _max_jumps(self, M: int) -> int:
        """Jumps between two rows at most, for which there must be room."""
        most = 2 * (M - 1) if isinstance(self.max_jumps_per_gap, str) else int(self.max_jumps_per_gap)
        check_memory(M, most)
        return most

    def _given_process(self) -> Process:
        if (self.process is None) == (self.start is None):
            got = "neither" if self.process is None else "both"
            raise ValueError(
                f"MLTrajectory needs its parameters, and from one place: give a process, or start=model, got {got}."
            )
        if self.process is not None:
            if not isinstance(self.process, Process):
                raise ValueError(
                    f"process must be a jumpmeans.Process, got {type(self.process).__name__}; give a fitted "
                    "model by start=model."
                )
            return self.process
        if not isinstance(getattr(self.start, "process_", None), Process):
            step = "give it as process=" if isinstance(self.start, Process) else "fit it first"
            raise ValueError(f"start must be a fitted model with a process_, got {type(self.start).__name__}; {step}.")
        return self.start.process_  # type: ignore[no-any-return]


@dataclass(eq=False)
class Looks:
    """The times at which a path is pinned: the rows, and the window's ends where they lie outside.

    offsets (S + 1,), times (n,) in the caller's unit, row (n,) of the panel, -1 for an end of the window,
    gaps (n,) time since the look before (0 for the first), narrow (n,) whether a gap has room for one jump only.
    states (n,) and slow (n,) are filled in: the state at each look, and the one the gap before it is spent in.
    """

    offsets: Ints
    times: Floats
    row: Ints
    gaps: Floats
    narrow: NDArray[np.bool_]
    states: NDArray[np.int32]
    slow: NDArray[np.int32]

    @classmethod
    def of(cls, block: Block, panel: Panel, most: int) -> Looks:
        """Looks of a panel; `most` jumps must find room in a gap, else one has to do."""
        first, last = panel.times[panel.offsets[:-1]], panel.times[panel.offsets[1:] - 1]
        early, late = first > panel.start_times, last < panel.end_times
        offsets = np.concatenate([[0], np.cumsum(panel.lengths + early + late)])
        n = int(offsets[-1])
        row = np.full(n, -1)
        at = np.arange(panel.n_observations) + np.repeat(offsets[:-1] + early - panel.offsets[:-1], panel.lengths)
        row[at] = np.arange(panel.n_observations)
        times, relative = np.empty(n), np.zeros(n)
        times[at], relative[at] = panel.times, block.tau
        times[offsets[:-1][early]] = panel.start_times[early]
        times[offsets[1:][late] - 1] = panel.end_times[late]
        relative[offsets[1:][late] - 1] = block.ends[late]
        gaps = np.diff(relative, prepend=0.0)
        gaps[offsets[:-1]] = 0.0
        largest = np.maximum(np.abs(times), np.abs(np.roll(times, 1)))
        narrow = gaps <= 4.0 * (most + 1) * np.spacing(largest)
        return cls(offsets, times, row, gaps, narrow, np.zeros(n, np.int32), np.zeros(n, np.int32))


def check_memory(M: int, most: int) -> None:
    """Refuse tables for which there is no room."""
    if 24.0 * (most + 1) * M**2 + 16.0 * M**3 > MOST_MEMORY:
        raise ValueError(
            f"tables of {M} states and max_jumps_per_gap={most} must fit into {MOST_MEMORY / 1e9:g} GB, got more; "
            "allow fewer jumps, or merge states."
        )


def log(x: Floats) -> Floats:
    """Logarithm, -inf at 0."""
    with np.errstate(divide="ignore"):
        return np.log(x)


def best_cycle(jump_values: Floats) -> float:
    """Highest Σ ln(λ p) around a cycle of distinct states; -inf if there is no cycle."""
    best, power = -np.inf, jump_values
    for _ in range(len(jump_values)):
        best = max(best, float(np.diag(power).max()))
        power = (power[:, :, None] + jump_values[None]).max(axis=1)
    return best


def publish(
    panel: Panel, looks: Looks, log_density: Floats, chains: Chains, direct: Chains, epsilon: float,
    labels: NDArray[Any],
) -> MLTrajectories:  # fmt: skip
    """Paths in the caller's time: jumps of length 0 lie just after the look before them, or just before the next."""
    n_jumps = np.where(looks.narrow, count_jumps(direct, looks), count_jumps(chains, looks))
    n_jumps[looks.offsets[:-1]] = 0
    before = np.concatenate([[0], np.cumsum(n_jumps)])
    offsets = before[looks.offsets] + np.arange(panel.n_sequences + 1)
    codes, starts = np.empty(offsets[-1], np.int32), np.empty(offsets[-1])
    limits = np.empty(offsets[-1])
    place_dwells(
        looks.times, looks.gaps, looks.narrow, looks.offsets, looks.states, looks.slow, tuple(chains),
        tuple(direct), epsilon, codes, starts, limits,
    )  # fmt: skip
    degenerate = np.diff(limits, append=np.inf) == 0.0
    degenerate[offsets[1:] - 1] = False
    return MLTrajectories(
        codes, starts, offsets, panel.end_times, panel.ids, labels, panel.clock, degenerate, log_density,
        frame_backend=panel.frame_backend,
    )  # fmt: skip


def count_jumps(chains: Chains, looks: Looks) -> Ints:
    """(n,) jumps in the gap before each look."""
    triple = looks.slow, np.concatenate([[0], looks.states[:-1]]), looks.states
    return (chains.before[triple] + chains.behind[triple]).astype(np.int64)
