"""Small data sets that ship with the package; none of them is the data of the paper.

The paper's multiple sclerosis trial and its MIMIC extract are not public. These sets have the same shape, so
the design of its experiments carries over and its error rates do not. Sources, licences and changes are in
``licences/NOTICE.md`` beside this file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jumpmeans.data.files import read_panel
from jumpmeans.data.panel import Panel

__all__ = ["PRESSURE_BINS", "load_credit_ratings", "load_edss", "load_icu_pressure", "load_sleep"]

_DATA = Path(__file__).parent / "data"

PRESSURE_BINS = (120.0, 140.0, 160.0)
"""Bounds in mmHg between the four categories of systolic pressure, as in column 'nih4'."""


def load_icu_pressure(value: str | Sequence[str] = "sys") -> Panel:
    """Invasive blood pressure of 69 stays in intensive care over their first day.

    Parameters
    ----------
    value : str or list of str
        'sys' and 'dia' are the systolic and diastolic pressure in mmHg; 'nih4' is the category 0 to 3 of
        'sys' by the bounds `PRESSURE_BINS`.

    Returns
    -------
    Panel
        69 sequences of 32 readings, 2,208 rows, times in hours over 23 to 24 hours.

    Notes
    -----
    From set A of the PhysioNet/CinC Challenge 2012, an extract of MIMIC-II, under the Open Data Commons
    Attribution License 1.0. Cite Silva et al. 2012 (Comput Cardiol 39:245-248) and Goldberger et al. 2000
    (Circulation 101:e215-e220). Readings of 20-300 mmHg in the first 24 hours; the first 69 stays by record
    id that have at least 32 readings over at least 23 hours; of each the first and the last reading and 30
    others drawn at random. Not the data of the paper. The first rows:

    ======  ======  =====  ====  ====
    id      time    sys    dia   nih4
    ======  ======  =====  ====  ====
    132540  0.0     105.0  67.0  0
    132540  0.25    106.0  69.0  0
    132540  0.3333  75.0   64.0  0
    ======  ======  =====  ====  ====

    Examples
    --------
    >>> panel = load_icu_pressure()
    >>> panel.n_sequences, panel.n_observations
    (69, 2208)
    """
    return read_panel(_DATA / "icu_bp_p12_69x32.csv", value=value)


def load_edss() -> Panel:
    """Disability of people with multiple sclerosis in three states, in windows of three years.

    Returns
    -------
    Panel
        93 sequences of 32 people, 394 rows, times in years. The states are 1 (EDSS 0 to 3.5), 2 (4 to 5.5)
        and 3 (6 and over). `groups` tells the person, since one person may have several windows.

    Notes
    -----
    The EDSS sample data set distributed with the R package MSoutcomes 0.2.1, MIT licence; its source does not
    say whether its patients are real. Cut into windows of three years with at least three scores. Not the
    data of the paper. The first rows:

    =======  =======  =======  ====  ======
    id       patient  time     edss  state3
    =======  =======  =======  ====  ======
    ipt03w0  ipt03    0        4.5   2
    ipt03w0  ipt03    1.7796   6     3
    ipt03w0  ipt03    2.61465  6     3
    =======  =======  =======  ====  ======

    Examples
    --------
    >>> panel = load_edss()
    >>> panel.n_sequences, panel.n_observations
    (93, 394)
    >>> panel.labels()
    array([1, 2, 3])
    """
    return read_panel(_DATA / "ms_edss_3yr_windows.csv", value="state3", group="patient")


def load_sleep(value: str | Sequence[str] = "obs") -> Panel:
    """Sleep stages of 14 nights as a wearable saw them, and as they were.

    Parameters
    ----------
    value : str or list of str
        'obs' is the stage that the wearable reports, 'state' the stage scored from polysomnography.

    Returns
    -------
    Panel
        14 sequences, 10,766 epochs of 30 seconds, times in hours. The stages are 0 (wake), 1 (light), 2
        (deep) and 3 (REM).

    Notes
    -----
    Sample data distributed with yasa, BSD-3-Clause. Not the data of the paper. The first rows:

    =====  ========  =====  ===
    id     time      state  obs
    =====  ========  =====  ===
    sbj01  0.0       0      0
    sbj01  0.008333  0      0
    sbj01  0.016667  0      0
    =====  ========  =====  ===

    Examples
    --------
    >>> panel = load_sleep(value=["obs", "state"])
    >>> panel.values.shape
    (10766, 2)
    """
    return read_panel(_DATA / "sleep_sri_psg_device.csv.gz", value=value)


def load_credit_ratings() -> Panel:
    """Rating grades of 1,635 issuers of debt.

    Returns
    -------
    Panel
        1,635 sequences, 5,142 rows, times scaled to 0 to 1, grades 0 to 8.

    Notes
    -----
    The file rating_data.csv distributed with transitionMatrix, Apache-2.0; the agency is not stated. Of rows
    with the same issuer and time the last was kept. Not the data of the paper. The first rows:

    ==  ===================  =====
    id  time                 state
    ==  ===================  =====
    1   0.0                  6
    1   0.15527950310559005  6
    1   0.2443064182194617   5
    ==  ===================  =====

    Examples
    --------
    >>> panel = load_credit_ratings()
    >>> panel.labels()
    array([0, 1, 2, 3, 4, 5, 6, 7, 8])
    """
    return read_panel(_DATA / "credit_ratings.csv.gz", value="state")
