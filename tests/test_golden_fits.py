"""A change of the house must not change an answer: numbers of golden fits, kept in golden/fits.npz."""

import warnings

import numpy as np

from golden import fits


def test_golden_fits_keep_their_numbers():
    # to rounding, which differs between machines; `python tests/golden/fits.py` compares bits on one
    kept = np.load(fits.FILE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fits.fit_all()
    assert set(found) == set(kept.files)
    for key in kept.files:
        np.testing.assert_allclose(found[key], kept[key], rtol=1e-6, atol=1e-9, err_msg=key)
