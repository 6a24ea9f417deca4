"""From options and data to the numbers a fit works with: states, emission, hyperparameters, search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, weighted_median
from ..data.panel import Panel
from ..data.sampling import SAMPLED_SEQUENCES, sample
from ..emissions import Column, Family, Record, find_families
from ..emissions.symbols import MOST_LABELS, check_labels, distinct
from ..engines.scanned import ScannedPanel
from ..errors import PanelError, first_few
from ..model.constraints import Constraints
from ..model.dependence import Laid, depend
from ..model.structure import Structure, jumps_needed
from ..passes.sweep import BEAM_PER_GAP, Search

# A panel in memory, or one on a cluster.
Data = Panel | ScannedPanel
# α: what a jump never seen is worth; enough that it can return, too little to be felt.
PSEUDO_COUNT = 0.01
# The same for states hidden behind symbols, as a share of the mean count.
EVEN_SHARE = 0.5


def or_auto(value: Any, automatic: float) -> float:
    """A hyperparameter as a number: its own, or the automatic one."""
    return automatic if isinstance(value, str) else float(value)


def states_and_emission(
    panel: Any,
    emission: Family | Sequence[Family],
    n_states: int | None,
    states: Sequence[Any] | None,
    pseudo_count: Any,
) -> tuple[NDArray[Any], Record]:
    """Labels of the states, and an emission that knows each column's support but nothing of its states."""
    families = find_families(emission, panel.n_columns)
    shown = [d for d, family in enumerate(families) if family.shows_state]
    if shown:
        labels = direct_labels(panel, shown[0], n_states, states)
    elif states is not None:
        labels = hidden_labels(n_states, states)
    elif n_states is None:
        raise ValueError(
            f"n_states must be given for hidden states (emission={emission!r}), got None; or name them by states=[...]."
        )
    else:
        labels = np.arange(n_states)
    symbols = None if isinstance(pseudo_count, str) else float(np.ravel(pseudo_count)[-1])
    few = measured_panel(panel) if not all(family.has_labels for family in families) else None
    blank = Record(
        blank_column(family, panel, panel if family.has_labels or few is None else few, d, labels, symbols)
        for d, family in enumerate(families)
    )
    return labels, blank


def blank_column(
    family: type[Column], panel: Data, few: Any, d: int, labels: NDArray[Any], symbols: float | None
) -> Column:
    """Emission of column d that knows of its values what `few` rows tell; what they break is told of the panel."""
    more = d, len(labels), labels.tolist(), symbols
    try:
        return family.blank(few, *more)
    except PanelError:
        if few is panel:
            raise
        if isinstance(panel, ScannedPanel):
            panel.each("check", family.blank, *more)
            raise
    return family.blank(panel, *more)


def hidden_labels(n_states: int | None, states: Sequence[Any]) -> NDArray[Any]:
    """Names of hidden states."""
    labels = distinct("states", states)
    if n_states is not None and n_states != len(labels):
        raise ValueError(
            f"n_states={n_states} must equal the number of names, got {len(labels)}: {first_few(labels.tolist())}; "
            "leave n_states out."
        )
    return labels


def constrain(
    structure: Structure | None, labels: NDArray[Any], blank: Record, panel: Panel, depends: bool = False
) -> tuple[Constraints, Record]:
    """What is known of the process as numbers, and the emission with the entries that are fixed.

    `depends` : whether the model's rates may depend on covariates.
    """
    structure = structure or Structure()
    if not depends and structure.depends:
        raise ValueError(
            "structure must have neither covariates nor breaks for a model whose rates depend on nothing, got "
            f"covariates={structure.covariates!r}, breaks={structure.breaks!r}; use comparators.EM."
        )
    constraints = structure.constraints(labels)
    if constraints.given and not blank.is_direct:
        raise ValueError(
            "initial must be 'estimated', 'uniform' or probabilities for hidden states, got 'given': what is not seen "
            "cannot be given."
        )
    return constraints, structure.fix_emission(blank, labels, panel.columns)


def depend_by_state(structure: Structure | None, panel: Data, labels: NDArray[Any], constraints: Constraints) -> Laid:
    """A panel with effects, all of them 0, on the exit rates that depend on covariates by a structure."""
    if isinstance(panel, ScannedPanel):
        panel.refuse_dependence(structure)
        return Laid(panel, np.empty(0, np.int64))  # type: ignore[arg-type]
    if structure is not None and structure.depends and constraints.binds:
        raise ValueError(
            "structure must have neither fixed nor equal rates beside covariates or breaks for JUMP-means, where those "
            f"act on exit rates, got fixed={structure.fixed!r}, equal={structure.equal!r}; use comparators.EM."
        )
    return depend(structure, panel, labels, constraints, by="state")


def barred_first(constraints: Constraints) -> Floats | None:
    """(M,) cost of a first state, infinite where it cannot be; None if each may be."""
    if constraints.initial is None or np.all(constraints.initial > 0):
        return None
    return np.where(constraints.initial > 0, 0.0, np.inf)


def direct_labels(panel: Panel, d: int, n_states: int | None, states: Sequence[Any] | None) -> NDArray[Any]:
    """Labels of directly observed states: those named, or those seen."""
    labels = panel.labels(d) if states is None else np.asarray(states)
    if len(set(labels.tolist())) != len(labels):
        raise ValueError(f"states must be distinct, got {first_few(labels.tolist())}.")
    if len(labels) == 0:
        raise ValueError(
            f"column {panel.columns[d]!r} must hold at least one label for emission 'direct', got none; "
            "check the column, or name the labels by states=[...]."
        )
    check_labels(panel, d, labels, "direct", MOST_LABELS, looks=states is None)
    if n_states is not None and n_states != len(labels):
        raise ValueError(
            f"n_states={n_states} must equal the number of labels, got {len(labels)}: {first_few(labels.tolist())}; "
            "leave n_states out, or name labels that were never seen by states=[...]."
        )
    return labels


def are_distinct(blank: Record, x: Floats) -> bool:
    """Whether there is a distinct value for every state, as measurements need (a state is a mix of symbols)."""
    if blank.n_states == 1 or any(column.is_symbolic for column in blank.columns):
        return True
    told = told_rows(x)
    # a few of them tell as a rule, and are sorted sooner than all
    return any(count_distinct(rows) >= blank.n_states for rows in (told[: 10 * blank.n_states], told))


def check_distinct(panel: Panel, blank: Record, x: Floats, name: str = "n_states") -> None:
    """Refuse more states than there are distinct measurements."""
    if not are_distinct(blank, x):
        distinct = count_distinct(told_rows(x))
        raise ValueError(
            f"{name}={blank.n_states} must be at most the number of distinct values, got {distinct} in "
            f"columns {list(panel.columns)}; ask for fewer states."
        )


def told_rows(x: Floats) -> Floats:
    """Rows without gaps, or the single values if every row has one."""
    rows = x[np.isfinite(x).all(axis=1)]
    return rows if len(rows) else x[np.isfinite(x)]


def count_distinct(rows: Floats) -> int:
    """Number of distinct rows."""
    return len(np.unique(rows, axis=0))


def emission_weights(value: Any, blank: Record, x: Floats, panel: Panel) -> Floats:
    """(D,) ζ of each column."""
    automatic = are_auto(value, len(blank.columns))
    auto = blank.auto_weights(x, panel) if automatic.any() else np.ones(len(blank.columns))
    given = np.broadcast_to(np.ravel(np.asarray(value, dtype=object)), len(auto))
    return np.array([or_auto(z, a) for z, a in zip(given.tolist(), auto.tolist(), strict=True)])


def are_auto(value: Any, n_columns: int) -> NDArray[np.bool_]:
    """(D,) whether the emission weight of each column is left to us."""
    weights = np.ravel(np.asarray(value, dtype=object)).tolist()
    if len(weights) not in (1, n_columns):
        raise ValueError(
            f"emission_weight must be one number, or one for each of the {n_columns} columns, got {weights}."
        )
    return np.broadcast_to([isinstance(z, str) and z == "auto" for z in weights], n_columns)


def one_or_list(weights: Floats) -> float | list[float]:
    """(D,) weights as a user would give them: a number for one column."""
    return weights.tolist() if len(weights) > 1 else float(weights[0])


def counted(panel: Data) -> Data:
    """The panel with weights that count sequences: those that sum to 1 or less are shares of all there are."""
    total = float(panel.weights.sum())
    if not 0 < total <= 1 or panel.n_sequences == 1:
        return panel
    scale = panel.n_sequences / total
    if isinstance(panel, ScannedPanel):
        return panel.with_scaled_weights(scale)
    return replace(panel, weights=panel.weights * scale)


def typical_gap(panel: Panel) -> float:
    """Median time between successive rows; 1 if there are none."""
    gaps, weights = panel.gaps()
    return weighted_median(gaps, weights) if len(gaps) else 1.0


def total_weight(panel: Data) -> float:
    """Weighted number of observed rows."""
    return panel.present_weight()


def even_jumps(panel: Data, blank: Record, share: float = 1.0) -> float:
    """Pseudo-count α of each jump: hardly any, but behind symbols half the mean count of a `share` of the panel.

    Hard assignment of noisy symbols feeds on itself: it finds certain symbols and favourite jumps where there are
    none. Even counts, here and in the emission, keep it from doing so.
    """
    M = blank.n_states
    if M == 1 or not blank.only_symbols:
        return PSEUDO_COUNT
    return EVEN_SHARE * share * total_weight(panel) / (M * (M - 1))


def make_search(jumps_per_gap: int | str, search: str, first_dwell: str, moves: NDArray[np.bool_]) -> Search:
    """How jumps are looked for, given the moves that may happen."""
    jumps = jumps_needed(moves) if isinstance(jumps_per_gap, str) else int(jumps_per_gap)
    running = int(first_dwell == "running")
    if search == "beam":
        base = max(2, jumps)
        return Search(base, max(BEAM_PER_GAP, 2 * base), 1, running)
    return Search(jumps, jumps, 0, running)


# Panels with more rows than MANY_ROWS start on a sample of about START_ROWS: what they start from is then known to a
# hundredth, and the few sweeps over all rows that are left do the rest.
MANY_ROWS, START_ROWS = 100_000, 25_000
# The relative fall of the objective that ends a descent: on all rows after one on a sample, less is worth no sweep.
TOL, TOL_AFTER_SAMPLE = 1e-9, 1e-6


def start_panel(panel: Data, constraints: Constraints) -> Any:
    """What a fit finds its start on: the panel, or a sample of it if it has many rows.

    Pieces of a long sequence are taken from all of it, unless the first state is given: they begin in any. A sample
    with hardly a value in some column is none.
    """
    if panel.n_observations <= MANY_ROWS:
        return panel
    size = START_ROWS // SAMPLED_SEQUENCES
    cuts = constraints.initial is None and panel.lengths.max() > size
    few = sample_panel(panel, START_ROWS, size if cuts else None)
    columns = range(panel.n_columns)
    present, of_all = ([own.n_present(d) / own.n_observations for d in columns] for own in (few, panel))
    return few if all(2.0 * x >= y for x, y in zip(present, of_all, strict=True)) else panel


def measured_panel(panel: Data) -> Panel:
    """What the units, the noise and the gaps of a panel are taken from: it itself, or a sample if it has many rows."""
    return sample_panel(panel, panel.n_observations if panel.n_observations <= MANY_ROWS else START_ROWS)


def share_of(few: Data, panel: Data) -> float:
    """Weight of the observed rows of a sample, as a share of all."""
    return 1.0 if few is panel else total_weight(few) / max(total_weight(panel), 1e-300)


def sample_panel(panel: Data, most_rows: int, size: int | None = None) -> Panel:
    """The panel, or about `most_rows` of its rows: sequences, or pieces of at most `size` rows, spread over all."""
    return panel.sample(most_rows, size) if isinstance(panel, ScannedPanel) else sample(panel, most_rows, size)
