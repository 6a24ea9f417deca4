"""Does a process fit the moves that were seen? Pearson's test for panel data (Aguirre-Hernández and Farewell 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.stats import chi2

from ..arrays import Bools, Floats, Ints, totals
from ..data.frames import make_frame
from ..errors import PanelError
from ..estimators.frail import require_alike
from ..estimators.read_out import ReadOut, as_panel
from ..model.process import Process
from ..model.structure import Structure
from ..options import count, flag, number
from .steps import Steps, cut, hazards, predicted, read_steps, visits

# Relative step of a rate for derivatives: the cube root of what a float rounds to.
STEP = 6e-6
# More cells than this would make their covariance too large.
MOST_CELLS = 3000
# Steps whose hazards are added up at once.
AT_ONCE = 2000


@dataclass(frozen=True, eq=False, repr=False)
class PearsonTest:
    """Moves seen and expected, in cells, and how far they are apart.

    Parameters
    ----------
    statistic : float
        Σ (observed - expected)² / expected over the cells.
    p_value : float
        Probability of more, if the process holds: by the distribution that the statistic then has, a sum of χ² with
        weights, which allows for what was fitted to the same moves (Titman 2009).
    df : int
        Cells less groups with visits. For moves of one gap per group and known rates the statistic is χ² of so many
        degrees.
    p_lower, p_upper : float
        p-values by χ² of df less the number of rates fitted, and of df: the bounds that R's msm reports.
    cells : dict of (C,) arrays
        time_group, gap_group, source, targets, observed, expected of each cell.
    """

    statistic: float
    p_value: float
    df: int
    p_lower: float
    p_upper: float
    cells: dict[str, Any]
    frame_backend: str | None = None

    def __repr__(self) -> str:
        return f"PearsonTest(statistic={self.statistic:.4g}, df={self.df}, p_value={self.p_value:.3g})"

    def to_frame(self, backend: str | None = None) -> Any:
        """The cells as a frame: time_group, gap_group, source, targets, observed, expected.

        Parameters
        ----------
        backend : "pandas", "polars" or "pyarrow", optional
            Kind of frame; that of the panel if left out.
        """
        return make_frame(self.cells, backend or self.frame_backend)


def pearson_test(
    model: ReadOut, panel: Any, *, time_groups: int = 3, gap_groups: int = 3, least: float = 1.0, fitted: bool = True
) -> PearsonTest:  # fmt: skip
    """Compare the moves between successive rows with those that a process expects.

    Parameters
    ----------
    model : fitted model, or `JumpMeans.from_process`
        Of states that are seen.
    panel : Panel or frame
        Rows are snapshots, or exact entries into states that are never left, such as deaths: all of these, or none.
    time_groups, gap_groups : int
        Moves are grouped by the time since the start of their window, then within each group by the length of their
        gap: so many groups of about equal size.
    least : float
        Cells of a group that expect fewer moves than this are merged, those that expect least first; 0 merges none, as
        R's msm.
    fitted : bool
        Whether the rates were fitted to this panel; False for rates from elsewhere, or a panel held out.

    Returns
    -------
    PearsonTest
        statistic, p_value, df; `to_frame()` has observed and expected moves by cell, where a misfit shows.

    Notes
    -----
    A death ends a gap that was meant to be longer. So exact entries are counted apart from the states seen at visits:
    as events, whose number is expected to be the hazard of the process added up over the time at risk, by the time
    since the start and since the last row as they go on; and of states seen at visits what is expected is given that
    one is alive there. No date of a visit that never came has to be guessed (R's msm draws such dates). A row known by
    a set of states is shared out over them, and the next one is predicted from what is known then.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> process = jm.Process([1.0, 0.5], [[0, 1], [1, 0]], states=["well", "ill"])
    >>> panel, _ = jm.simulate(process, 200, 6, random_state=1)
    >>> test = jm.pearson_test(jm.comparators.EM(emission="direct").fit(panel), panel)
    >>> test.df, bool(test.p_value > 0.05)
    (18, True)
    """
    if not isinstance(model, ReadOut):
        raise ValueError(f"model must be a fitted model of a process, got {type(model).__name__}.")
    count().check("time_groups", time_groups)
    count().check("gap_groups", gap_groups)
    number(least=0).check("least", least)
    flag.check("fitted", fitted)
    process = model._fitted()
    if process.effects is not None:
        raise ValueError(
            "rates must be the same for all sequences to be tested by moves and gaps, got a model whose rates depend "
            "on covariates; compare it with others by likelihood_ratio or aic."
        )
    require_alike(model, "a test by moves and gaps", "compare it with others by likelihood_ratio or aic")
    panel = as_panel(panel)
    steps = read_steps(process, panel)
    free = _free_rates(model, process) if fitted else []
    groups = Groups.of(steps, time_groups, gap_groups)
    tally = _counted(process.rate_matrix, steps, groups, free)
    cell = _merged(tally, least)
    C = int(cell.max()) + 1
    O, E = (totals(cell[cell >= 0], x[cell >= 0], C) for x in (tally.observed, tally.expected))
    if not C:
        raise PanelError("a panel must have a cell that expects something for Pearson's test, got none; lower least.")
    statistic = float(((O - E) ** 2 / E).sum())
    variance = _variance(tally, cell, E)
    df = _degrees(tally, cell, steps.exact)
    place = np.array([np.argwhere(cell == c)[0, 0] for c in range(C)])
    by_time, by_gap, source = groups.split(tally.groups[place])
    labels = process.states.tolist()
    cells = {
        "time_group": by_time,
        "gap_group": by_gap,
        "source": np.array([steps.names[s] for s in source.tolist()]),
        "targets": [", ".join(str(labels[m]) for m in np.flatnonzero((cell == c).any(axis=0))) for c in range(C)],
        "observed": O,
        "expected": E,
    }
    p_bounds = [float(chi2.sf(statistic, k)) if k > 0 else float("nan") for k in (df - len(free), df)]
    p = weighted_chi2_sf(statistic, np.asarray(np.linalg.eigvalsh(variance), dtype=np.float64))
    return PearsonTest(statistic, p, df, p_bounds[0], p_bounds[1], cells, panel.frame_backend)


class Groups(NamedTuple):
    """Where times since the start and gaps are cut, and how many sources there are.

    times : (T - 1,) edges; gaps : (T, ...) edges of the gaps in each group of times, infinite where there are fewer.
    """

    times: Floats
    gaps: Floats
    n_sources: int

    @classmethod
    def of(cls, steps: Steps, time_groups: int, gap_groups: int) -> Groups:
        """Groups of about equal size, by the steps that end with a visit."""
        own = ~steps.died if not steps.died.all() else steps.died
        times = _edges(steps.time[own], time_groups)
        group = np.searchsorted(times, steps.time[own], side="right")
        gaps = np.full((len(times) + 1, gap_groups - 1), np.inf)
        for g in np.unique(group).tolist():
            edges = _edges(steps.gap[own][group == g], gap_groups)
            gaps[g, : len(edges)] = edges
        return cls(times, gaps, len(steps.names))

    def at(self, time: Floats, gap: Floats, source: Ints, *, ended: bool = False) -> Ints:
        """Number of the group; what `ended` at an edge belongs to the time before it."""
        t = np.searchsorted(self.times, time, side="left" if ended else "right")
        edges, gap = self.gaps[t], gap[..., None]
        g = (gap > edges).sum(axis=-1) if ended else (gap >= edges).sum(axis=-1)
        return np.asarray((t * (self.gaps.shape[1] + 1) + g) * self.n_sources + source)

    def split(self, group: Ints) -> tuple[Ints, Ints, Ints]:
        """Group of times, of gaps, and source."""
        rest, source = np.divmod(group, self.n_sources)
        t, g = np.divmod(rest, self.gaps.shape[1] + 1)
        return t, g, source


class Tally(NamedTuple):
    """What was seen and expected of G groups.

    groups : (G,) their numbers; observed, expected : (G, M); variance : (G, M, M) of their difference
    slope : (G, M, p) derivative of the expected by each of p fitted rates; information : (p, p) on these
    visited : (G,) whether any step ends there with a visit
    """

    groups: Ints
    observed: Floats
    expected: Floats
    variance: Floats
    slope: Floats
    information: Floats
    visited: Bools

    @classmethod
    def empty(cls, groups: Ints, visited: Bools, M: int, p: int) -> Tally:
        """Nothing counted yet."""
        G = len(groups)
        return cls(
            groups, np.zeros((G, M)), np.zeros((G, M)), np.zeros((G, M, M)), np.zeros((G, M, p)), np.zeros((p, p)),
            visited,
        )  # fmt: skip

    def add(self, group: Ints, observed: Floats, expected: Floats, spread: Floats, slope: Floats, w: Floats) -> None:
        """Count (k, M) observed and expected with covariance (k, M, M) and slopes (k, M, p), by weights (k,)."""
        place = np.searchsorted(self.groups, group)
        for total, x in zip(self[1:5], (observed, expected, spread, slope), strict=True):
            np.add.at(total, place, w.reshape(-1, *(1,) * (x.ndim - 1)) * x)


def _edges(x: Floats, groups: int) -> Floats:
    """Quantiles between groups, each group with its lower bound."""
    return np.unique(np.quantile(x, np.linspace(0.0, 1.0, groups + 1)[1:-1]))


def _counted(Q: Floats, steps: Steps, groups: Groups, free: list[Bools]) -> Tally:
    """What was seen of all steps, and what their process expects."""
    M, seen = len(Q), ~steps.died
    start, end = predicted(Q, steps)
    at_visit = groups.at(steps.time, steps.gap, steps.source)[seen]
    at_risk = groups.at(steps.time, steps.gap, steps.source, ended=True)[steps.died]
    begin = (steps.time - steps.gap)[:, None]
    inside = np.hstack([groups.times - begin, np.tile(groups.gaps[np.isfinite(groups.gaps)], (len(begin), 1))])
    times = cut(steps, inside if steps.exact.any() else inside[:, :0])
    middle = 0.5 * (times[:, 1:] + times[:, :-1])
    within = groups.at(begin + middle, middle, steps.source[:, None])
    found = [at_visit, at_risk, within.ravel() if steps.exact.any() else at_risk]
    numbers = np.unique(np.concatenate(found))
    if len(numbers) * M > MOST_CELLS:
        raise ValueError(f"there must be at most {MOST_CELLS} cells, got {len(numbers) * M}; take fewer groups.")
    tally = Tally.empty(numbers, np.isin(numbers, at_visit), M, len(free))

    either = [[_shifted(Q, own, sign * STEP) for sign in (1.0, -1.0)] for own in free]
    ways = [[predicted(moved, steps) for moved in pair] for pair in either]
    slopes = [(visits(a[1], steps) - visits(b[1], steps))[seen] / (2.0 * STEP) for a, b in ways]
    slope = np.stack(slopes, axis=-1) if free else np.zeros((int(seen.sum()), M, 0))
    _add_visits(tally, at_visit, visits(end, steps)[seen], slope, steps.allowed[seen], steps.weight[seen])
    if not steps.exact.any():
        return tally
    np.add.at(
        tally.observed, np.searchsorted(numbers, at_risk), steps.weight[steps.died, None] * steps.allowed[steps.died]
    )
    for i in range(0, len(times), AT_ONCE):
        own = slice(i, i + AT_ONCE)
        expected = hazards(Q, start[own], steps.exact, times[own])
        slopes = [
            (hazards(p, a[0][own], steps.exact, times[own]) - hazards(m, b[0][own], steps.exact, times[own]))
            / (2.0 * STEP)
            for (p, m), (a, b) in zip(either, ways, strict=True)
        ]
        slope = np.stack(slopes, axis=-1) if free else np.zeros((*expected.shape, 0))
        _add_events(tally, within[own], expected, slope, steps.weight[own])
    return tally


def _add_visits(tally: Tally, group: Ints, P: Floats, slope: Floats, allowed: Bools, weight: Floats) -> None:
    """States seen at visits (k, M): multinomial. One known by a set is shared out over it, as is expected there."""
    inside = np.where(allowed, P, 0.0)
    whole = inside.sum(axis=1)
    share = inside / whole[:, None]
    spread = np.einsum("km,mn->kmn", P - inside, np.eye(P.shape[1]))
    spread += share[:, :, None] * inside[:, None, :] - P[:, :, None] * P[:, None, :]
    together = np.einsum("km,kmp->kp", allowed, slope)
    told = np.where(allowed[..., None], share[..., None] * together[:, None], slope)
    tally.add(group, share, P, spread, told, weight)
    outside = np.where(allowed, 0.0, P)[..., None]
    ratio = np.divide(slope, outside, out=np.zeros_like(slope), where=outside > 0)
    tally.information[...] += np.einsum("kmp,kmq,k->pq", slope * (outside > 0), ratio, weight)
    tally.information[...] += np.einsum("kp,kq,k->pq", together, together, weight / whole)


def _add_events(tally: Tally, group: Ints, expected: Floats, slope: Floats, weight: Floats) -> None:
    """Events expected in pieces of time (k, J, M): as of a Poisson process, whose variance is its mean."""
    M, p = expected.shape[2], slope.shape[3]
    some = expected.sum(axis=2) > 0
    E, S, w = expected[some], slope[some], np.broadcast_to(weight[:, None], some.shape)[some]
    tally.add(group[some], np.zeros_like(E), E, np.einsum("km,mn->kmn", E, np.eye(M)), S, w)
    ratio = np.divide(S, E[..., None], out=np.zeros((len(E), M, p)), where=E[..., None] > 0)
    tally.information[...] += np.einsum("kmp,kmq,k->pq", S, ratio, w)


def _merged(tally: Tally, least: float) -> Ints:
    """(G, M) number of the cell of each group and target, -1 for what cannot happen.

    Nothing is to be merged with events that are expected of a group without visits: few of them are left out.
    """
    expected = tally.expected
    cell = np.full(expected.shape, -1)
    n = 0
    for g, e in enumerate(expected):
        if not tally.visited[g] and e.sum() < least:
            continue
        total, order = 0.0, np.argsort(e, kind="stable")
        order = order[e[order] > 0]
        for i, m in enumerate(order):
            cell[g, m] = n
            total += e[m]
            rest = e[order[i + 1 :]].sum()
            if total >= least and (rest >= least or i + 1 == len(order)):
                n, total = n + 1, 0.0
        n += total > 0
    return cell


def _degrees(tally: Tally, cell: Ints, exact: Bools) -> int:
    """Cells less one for each group whose visits add up: where events are counted apart from them, or not at all."""
    df = int(cell.max()) + 1
    for visited, own in zip(tally.visited, cell, strict=True):
        events = set(own[exact].tolist()) - {-1}
        df -= bool(visited) and not events & set(own[~exact].tolist())
    return df


def _variance(tally: Tally, cell: Ints, E: Floats) -> Floats:
    """(C, C) covariance of (observed - expected) / √expected, less what fitting takes away."""
    C, p = len(E), tally.slope.shape[2]
    variance, slope = np.zeros((C, C)), np.zeros((C, p))
    for own, V, D in zip(cell, tally.variance, tally.slope, strict=True):
        m = np.flatnonzero(own >= 0)
        np.add.at(variance, np.ix_(own[m], own[m]), V[np.ix_(m, m)])
        np.add.at(slope, own[m], D[m])
    variance -= slope @ np.linalg.pinv(tally.information, hermitian=True) @ slope.T
    scale = 1.0 / np.sqrt(E)
    return np.asarray(scale[:, None] * variance * scale)


def _free_rates(model: ReadOut, process: Process) -> list[Bools]:
    """(M, M) moves of each rate that was fitted, those that share one together; rates at 0 are at their edge."""
    group = (getattr(model, "structure", None) or Structure()).constraints(process.states).group
    moves = [(group == k) & (process.rate_matrix > 0) for k in range(int(group.max(initial=-1)) + 1)]
    return [own for own in moves if own.any()]


def _shifted(Q: Floats, moves: Bools, step: float) -> Floats:
    """Q with the logarithm of the rates of some moves shifted."""
    moved = np.where(moves, Q * np.exp(step), Q)
    np.fill_diagonal(moved, 0.0)
    np.fill_diagonal(moved, -moved.sum(axis=1))
    return moved


def weighted_chi2_sf(x: float, weights: Floats) -> float:
    """P(Σ w χ²(1) > x), by inversion of the characteristic function (Imhof 1961)."""
    weights = weights[weights > 1e-8 * weights.max(initial=0.0)]
    if not len(weights):
        return 1.0
    unit = float(weights.mean())
    w, x = weights / unit, x / unit
    if np.ptp(w) < 1e-9:
        return float(chi2.sf(x, len(w)))

    def integrand(u: float) -> float:
        angle = 0.5 * np.sum(np.arctan(w * u)) - 0.5 * x * u
        size = np.exp(-0.25 * np.sum(np.log1p((w * u) ** 2)))
        return float(np.sin(angle) * size / u)

    # beyond this what is left is below 1e-7
    most = float(np.exp(2.0 / len(w) * np.log(1e7)) / np.exp(np.mean(np.log(w)))) if len(w) > 4 else 1e4
    area = quad(integrand, 0.0, most, limit=2000, epsabs=1e-7)[0]
    return float(np.clip(0.5 + area / np.pi, 0.0, 1.0))
