"""What chance chooses of a panel is the same in whatever parts it lies."""

import numpy as np

import jumpmeans as jm
from jumpmeans.data.chosen import held_rows, without_held_rows


def test_rows_are_held_out_by_their_number_in_all_of_the_panel():
    """Planted: the place within a count of the generator forgotten, so that parts agree only at multiples of four."""
    panel = jm.Panel.from_arrays(np.arange(1000) % 7, np.r_[np.nan, np.ones(999)], ids=np.arange(1000) // 7)
    whole = held_rows(panel, 0.25, 5)
    assert 0 not in whole  # what was not observed cannot be held out
    assert 200 < len(whole) < 300
    assert not np.array_equal(whole, held_rows(panel, 0.25, 6))
    for cut in (1, 2, 57, 140):
        parts = panel[:cut], panel[cut:]
        first = parts[0].n_observations
        found = [held_rows(parts[0], 0.25, 5), first + held_rows(parts[1], 0.25, 5, first)]
        np.testing.assert_array_equal(np.concatenate(found), whole)
    masked = without_held_rows(panel, 0.25, 5, 0)
    np.testing.assert_array_equal(np.flatnonzero(panel.observed & ~masked.observed), whole)
