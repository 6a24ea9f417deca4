"""Time as the clock of each state tells it, where rates vary along a sequence.

The clock of state s goes `pace` times as fast as time, l_s(t) = ∫ pace_s du, and a dwell from b to c lasts
λ_s (l_s(c) - l_s(b)) mean dwell times. Pace changes at rows only: a gap has that of the row before it, and the one
before the first row that of the first row. So a clock is linear where a jump may move.

A course of None is a pace of 1, clocks that tell time itself: compiled apart, to what it would be without clocks.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..jit import LEAF


class Course(NamedTuple):
    """Clocks along one or more sequences.

    tau (n,), pace (n, M) of the rows and the clocks at them (n, M), 0 at the start of each window; and room for the
    clocks at the candidates of one sequence, the end of its window behind the last, (candidates + 1, M).
    """

    tau: Any
    pace: Any
    at_rows: Any
    at_candidates: Any

    @classmethod
    def of(cls, tau: Any, pace: Any, offsets: Any, candidates: int) -> "Course":
        """Clocks of sequences (rows of i: offsets[i]:offsets[i + 1]) of so many candidates at most."""
        at_rows = np.empty_like(pace)
        read_rows(tau, pace, offsets, at_rows)
        return cls(tau, pace, at_rows, np.empty((candidates + 1, pace.shape[1])))


@njit(**LEAF)
def read_rows(tau, pace, offsets, at_rows):
    """Clocks at all rows (OUT)."""
    for i in range(offsets.shape[0] - 1):
        first = offsets[i]
        for s in range(pace.shape[1]):
            at_rows[first, s] = pace[first, s] * tau[first]
            for row in range(first + 1, offsets[i + 1]):
                at_rows[row, s] = at_rows[row - 1, s] + pace[row - 1, s] * (tau[row] - tau[row - 1])


@njit(**LEAF)
def hour(course, row, s, time):
    """A time in the gap before `row` by the clock of s."""
    if course is None:
        return time
    if row == 0:
        return course.pace[0, s] * time
    return course.at_rows[row - 1, s] + course.pace[row - 1, s] * (time - course.tau[row - 1])


@njit(**LEAF)
def pace_before(course, row, s):
    """Pace of the clock of s in the gap before `row`."""
    if course is None:
        return 1.0
    return course.pace[max(row - 1, 0), s]


@njit(**LEAF)
def set_candidates(course, cand_time, cand_row, n_cand, end):
    """Read all clocks at the candidates and at the end of the window."""
    if course is None:
        return
    L, M = course.pace.shape
    for j in range(n_cand):
        for s in range(M):
            course.at_candidates[j, s] = hour(course, cand_row[j], s, cand_time[j])
    for s in range(M):
        course.at_candidates[n_cand, s] = hour(course, L, s, end)


@njit(**LEAF)
def candidate_hour(course, j, s, time):
    """Time of candidate j by the clock of s, as `set_candidates` read it."""
    if course is None:
        return time
    return course.at_candidates[j, s]


@njit(**LEAF)
def dwell_hours(course, states, starts, rows, k, n, end, n_rows):
    """Length of dwell k of n by the clock of its state, in a sequence of so many rows."""
    if course is None:
        return (starts[k + 1] if k < n - 1 else end) - starts[k]
    s = states[k]
    begin = hour(course, rows[k], s, starts[k])
    if k < n - 1:
        return hour(course, rows[k + 1], s, starts[k + 1]) - begin
    return hour(course, n_rows, s, end) - begin
