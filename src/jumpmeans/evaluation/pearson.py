"""Does a process fit the moves that were seen? Pearson's test for panel data (Aguirre-Hernández and Farewell 2002)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.stats import chi2

from ..arrays import Bools, Floats, Ints, totals
from ..data.frames import make_frame
from ..data.panel import Panel
from ..errors import PanelError
from ..estimators.frail import require_alike
from ..estimators.read_out import ReadOut, as_panel
from ..model.passage import transition_matrices
from ..model.process import Process
from ..model.structure import Structure
from ..options import count, flag, number

# Relative step of a rate for derivatives: the cube root of what a float rounds to.
STEP = 6e-6
# More cells than this would make their covariance too large.
MOST_CELLS = 3000


class Moves(NamedTuple):
    """Successive rows with a state: (k,) source and target, gap, time since the start at the second, weight."""

    source: Ints
    target: Ints
    gap: Floats
    time: Floats
    weight: Floats


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
        Cells less groups. For moves of one gap per group and known rates the statistic is χ² of so many degrees.
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
        Rows must be snapshots: no exact times, since a gap that ends with a move is no gap that was planned.
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
    moves = _moves(process, panel)
    M = len(process.rates)
    by_time = _cut(moves.time, time_groups)
    by_gap = np.zeros(len(by_time), dtype=np.int64)
    for g in range(by_time.max() + 1):
        by_gap[by_time == g] = _cut(moves.gap[by_time == g], gap_groups)
    _, group = np.unique((by_time * gap_groups + by_gap) * M + moves.source, return_inverse=True)
    G = int(group.max()) + 1
    if G * M > MOST_CELLS:
        raise ValueError(f"there must be at most {MOST_CELLS} cells, got {G * M}; take fewer groups.")
    P = _probs(process.rate_matrix, moves)
    expected = _gather(group, moves.weight[:, None] * P, G)
    observed = totals(group * M + moves.target, moves.weight, G * M).reshape(G, M)
    cell = _merged(expected, least)
    C = int(cell.max()) + 1
    O, E = (totals(cell[cell >= 0], x[cell >= 0], C) for x in (observed, expected))
    statistic = float(((O - E) ** 2 / E).sum())
    free = _free_rates(model, process) if fitted else []
    variance = _variance(process.rate_matrix, moves, P, group, cell, E, free)
    df = C - G
    n_rates = len(free)
    first = np.array([np.flatnonzero(group == g)[0] for g in range(G)])
    place = np.array([np.argwhere(cell == c)[0] for c in range(C)]).reshape(C, 2)
    labels = process.states.tolist()
    cells = {
        "time_group": by_time[first][place[:, 0]],
        "gap_group": by_gap[first][place[:, 0]],
        "source": process.states[moves.source[first]][place[:, 0]],
        "targets": [", ".join(str(labels[m]) for m in np.flatnonzero((cell == c).any(axis=0))) for c in range(C)],
        "observed": O,
        "expected": E,
    }
    p_bounds = [float(chi2.sf(statistic, k)) if k > 0 else float("nan") for k in (df - n_rates, df)]
    p = weighted_chi2_sf(statistic, np.asarray(np.linalg.eigvalsh(variance), dtype=np.float64))
    return PearsonTest(statistic, p, df, p_bounds[0], p_bounds[1], cells, panel.frame_backend)


def _moves(process: Process, panel: Panel) -> Moves:
    """Successive rows with a state, those from states that are never left aside."""
    if not process.emission.is_direct:
        raise ValueError("states must be seen for Pearson's test, got a model of hidden states; see `prevalence`.")
    if panel.kinds is not None:
        raise PanelError(
            "rows must be snapshots for Pearson's test, got rows of exact times, whose gaps were not planned; "
            "compare by prevalence(panel)."
        )
    seen = process.emission.states_seen(process.emission.encode(panel))
    rows = np.flatnonzero(np.isfinite(seen))
    sequence = panel.sequence_index[rows]
    pair = np.flatnonzero(sequence[1:] == sequence[:-1])
    source, target = seen[rows[pair]].astype(np.int64), seen[rows[pair + 1]].astype(np.int64)
    since = panel.relative_times()[rows]
    weight = panel.weights[sequence[pair]]
    left = process.rates[source] > 0
    if not left.any():
        raise PanelError("a panel must hold two successive rows with a state that can be left, got none.")
    gap = since[pair + 1] - since[pair]
    return Moves(source[left], target[left], gap[left], since[pair + 1][left], weight[left])


def _cut(x: Floats, groups: int) -> Ints:
    """(k,) group of each number: between quantiles, each group with its lower bound."""
    edges = np.unique(np.quantile(x, np.linspace(0.0, 1.0, groups + 1)[1:-1]))
    return np.unique(np.searchsorted(edges, x, side="right"), return_inverse=True)[1]


def _probs(Q: Floats, moves: Moves) -> Floats:
    """(k, M) probability of each state at the end of each gap."""
    gaps, index = np.unique(moves.gap, return_inverse=True)
    return np.asarray(transition_matrices(Q, gaps)[index, moves.source])


def _gather(group: Ints, x: Floats, n: int) -> Floats:
    """(n, M) sums of the rows of x (k, M) by group."""
    return np.stack([totals(group, column, n) for column in x.T], axis=1)


def _merged(expected: Floats, least: float) -> Ints:
    """(G, M) number of the cell of each group and target, -1 for what cannot happen."""
    cell = np.full(expected.shape, -1)
    n = 0
    for g, e in enumerate(expected):
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


def _variance(Q: Floats, moves: Moves, P: Floats, group: Ints, cell: Ints, E: Floats, free: list[Bools]) -> Floats:
    """(C, C) covariance of (observed - expected) / √expected: multinomial, less what fitting takes away."""
    C = len(E)
    own = cell[group]  # (k, M) cell of each move and target
    A = np.zeros((len(P), C))
    k, m = np.nonzero(own >= 0)
    np.add.at(A, (k, own[k, m]), P[k, m])
    weighted = A * moves.weight[:, None]
    variance = np.diag(weighted.sum(axis=0)) - weighted.T @ A
    if free:
        slopes = _slopes(Q, moves, free)  # (k, M, p)
        D = np.zeros((C, slopes.shape[2]))
        np.add.at(D, own[k, m], slopes[k, m] * moves.weight[k, None])
        ratio = np.divide(slopes, P[..., None], out=np.zeros_like(slopes), where=P[..., None] > 0)
        information = np.einsum("kmp,kmq,k->pq", slopes, ratio, moves.weight)
        variance -= D @ np.linalg.pinv(information, hermitian=True) @ D.T
    scale = 1.0 / np.sqrt(E)
    return np.asarray(scale[:, None] * variance * scale)


def _free_rates(model: ReadOut, process: Process) -> list[Bools]:
    """(M, M) moves of each rate that was fitted, those that share one together; rates at 0 are at their edge."""
    group = (getattr(model, "structure", None) or Structure()).constraints(process.states).group
    moves = [(group == k) & (process.rate_matrix > 0) for k in range(int(group.max(initial=-1)) + 1)]
    return [own for own in moves if own.any()]


def _slopes(Q: Floats, moves: Moves, free: list[Bools]) -> Floats:
    """(k, M, p) derivative of the probabilities by the logarithm of each free rate."""
    parts = []
    for own in free:
        pair = []
        for sign in (1.0, -1.0):
            moved = np.where(own, Q * np.exp(sign * STEP), Q)
            np.fill_diagonal(moved, 0.0)
            np.fill_diagonal(moved, -moved.sum(axis=1))
            pair.append(_probs(moved, moves))
        parts.append((pair[0] - pair[1]) / (2.0 * STEP))
    return np.stack(parts, axis=-1)


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
