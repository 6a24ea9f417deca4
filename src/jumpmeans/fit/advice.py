"""What a fit says when the data look otherwise than declared, with the remedy."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..arrays import AnyArray, Bools, Ints, sum_in_order
from ..data.panel import Panel
from ..emissions import Record
from ..engines.scanned import ScannedPanel
from ..errors import StructureWarning
from ..model.process import Process
from ..stored import stored

# A rate that as many closing steps again would change by about this factor is not to be relied on.
DRIFT = 1.4
# A state that ends so many sequences and is never seen to be left is taken for one that cannot be; where rows follow
# it, if that many of them would have shown another state, had it been left as often as the others are.
ENDINGS = LEAVINGS = 5
# So many successive rows, of which no larger share repeats the state before, are not looks at random times.
FEWEST_PAIRS, FEW_REPEATS = 20, 0.02


@stored
class Drift(NamedTuple):
    """The state whose rate is farthest from where EM steps would lead it, and the last step of its logarithm."""

    state: int
    step: float

    def __str__(self) -> str:
        return f"still {'rises' if self.step > 0 else 'falls'} by {100 * abs(self.step):.2g} % a step"

    def after(self, order: Ints) -> Drift:
        """The same of states in another order."""
        return self._replace(state=int(np.flatnonzero(order == self.state)[0]))


def find_drift(last: list[Process], steps: int, hidden: bool) -> Drift | None:
    """What moves most, if the rates of the last three processes of a row of EM steps are on their way elsewhere.

    Steps that fall off as 1/k, or slower, have no end in sight; k times the last one is how far they go while their
    number grows e-fold. docs/choices.md has the numbers that DRIFT was chosen by. Of hidden states, whose steps are
    few, those count as well that fall off by a factor r, r / (1 - r) times the last one, or that grow by it.
    """
    a, b, c = (np.log(np.maximum(process.rates, 1e-300)) for process in last[-3:])
    before, step = np.abs(b - a), c - b
    slow = np.abs(step) > (1.0 - 1.5 / steps) * before
    r = np.minimum(np.abs(step) / np.maximum(before, 1e-300), 2.0)
    growing = steps * np.maximum(r, 1.0) ** steps
    falling = r / np.where(slow, 1.0, 1.0 - r)
    ahead = step * (np.where(slow, growing, falling) if hidden else np.where(slow, steps, 0.0))
    s = int(np.argmax(np.abs(ahead)))
    return Drift(s, float(step[s])) if abs(ahead[s]) > np.log(DRIFT) else None


def warn_of_drift(last: list[Process], steps: int) -> None:
    """Warn if closing steps end while rates are on their way to somewhere else."""
    drift = find_drift(last, steps, hidden=False)
    if drift is not None:
        process, s = last[-1], drift.state
        warnings.warn(
            f"process_ is not at the maximum of the likelihood: after {steps} closing steps the rate of state "
            f"{process.states.tolist()[s]!r} is {process.rates[s]:.3g} and {drift} "
            "(converged_ speaks of the objective). refine='converged' goes on to "
            "the maximum; if there is none, the likelihood is flat: observe more often, forbid moves "
            "(Structure(allowed=...)), or see whether rows are the times of the moves rather than looks in between.",
            ConvergenceWarning,
            stacklevel=6,
        )


class Looks(NamedTuple):
    """How states that are seen follow each other; those of parts of a panel add up.

    ended, followed : (M,) rows in each state that are the last of their sequence with a state, or not
    repeats : (M,) those that are followed by a row in the same state; declared : whether rows say how they were seen
    """

    ended: Ints
    followed: Ints
    repeats: Ints
    declared: bool

    @classmethod
    def of(cls, panel: Panel, blank: Record) -> Looks:
        """Of a panel with directly observed states."""
        x = blank.states_seen(blank.encode(panel))
        seen = np.flatnonzero(np.isfinite(x))
        codes, sequence = x[seen].astype(np.int64), panel.sequence_index[seen]
        same = sequence[1:] == sequence[:-1]
        last = np.append(~same, True)[: len(seen)]
        M = blank.n_states
        again = codes[:-1][same & (codes[:-1] == codes[1:])]
        ended, followed, repeats = (np.bincount(rows, minlength=M) for rows in (codes[last], codes[~last], again))
        return cls(ended, followed, repeats, panel.kinds is not None)

    @classmethod
    def join(cls, parts: list[Looks]) -> Looks:
        """Of all parts of a panel."""
        ended, followed, repeats, declared = zip(*parts, strict=True)
        return cls(
            sum_in_order(list(ended)), sum_in_order(list(followed)), sum_in_order(list(repeats)), any(declared)
        )  # fmt: skip

    @property
    def never_left(self) -> Bools:
        """(M,) states that many sequences end in, and that no row shows to have been left."""
        left = self.followed - self.repeats
        share = left.sum() / max(int(self.followed[left > 0].sum()), 1)
        enough = (self.followed == 0) | (share * self.followed >= LEAVINGS)
        return np.asarray((self.ended >= ENDINGS) & (left == 0) & enough)


def warn_of_looks(panel: Any, blank: Record, labels: AnyArray, moves: Bools) -> None:
    """Warn of directly observed states that look otherwise than declared."""
    if not blank.is_direct:
        return
    parts = panel.each("looks", Looks.of, blank) if isinstance(panel, ScannedPanel) else [Looks.of(panel, blank)]
    looks = Looks.join(parts)
    warn_of_ends(looks, labels, moves)
    warn_of_times(looks)


def warn_of_times(looks: Looks) -> None:
    """Warn if hardly any row repeats the state seen before it, which looks that were not chosen by the state would.

    Rows that are declared otherwise are believed.
    """
    pairs, rows = int(looks.followed.sum()), looks.followed + looks.ended
    states = np.count_nonzero(rows)
    if looks.declared or pairs < FEWEST_PAIRS or not 2 <= states <= rows.sum() / 2:
        return  # labels that hardly come twice are no states
    repeats = int(looks.repeats.sum())
    if repeats <= FEW_REPEATS * pairs:
        warnings.warn(
            f"only {repeats} of {pairs} rows show the state of the row before them: are these the times at which "
            "states were entered, and not those of looks in between? Then say kind=... in Panel.from_frame (kinds=... "
            "in from_arrays): 'transition' where nothing else happened since the row before, 'entry' where something "
            "may have; as snapshots, rates come out far too high.",
            StructureWarning,
            stacklevel=4,
        )


def warn_of_ends(looks: Looks, labels: AnyArray, moves: Bools) -> None:
    """Warn of states seen directly that end sequences, are never seen to be left, and could be."""
    found = np.flatnonzero(looks.never_left & moves.any(axis=1))
    if len(found):
        names, first = [labels.tolist()[s] for s in found], found[0]
        again = int(looks.repeats[first])
        if again:
            said, or_else = f"all {again} rows that follow state {names[0]!r} show it again", ""
        else:
            said = f"no row ever follows state {names[0]!r}"
            or_else = (
                "; if it means one of several states, as 'alive' may, say sets={label: [states]} in Panel.from_frame"
            )
        warnings.warn(
            f"{said}, in which {looks.ended[first]} sequences end"
            + (f" (nor are {names[1:]} ever left)" if len(names) > 1 else "")
            + f"; if it cannot be left, say structure=Structure(absorbing={names}), or it comes back in predictions"
            + f"{or_else}.",
            StructureWarning,
            stacklevel=4,
        )
