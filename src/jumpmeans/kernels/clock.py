"""Time as the clock of each state tells it, where rates vary along a sequence.

The clock of state s goes `pace` times as fast as time, l_s(t) = ∫ pace_s du, and a dwell from b to c lasts
λ_s (l_s(c) - l_s(b)) mean dwell times. Pace changes at rows only: a gap has that of the row before it, and the one
before the first row that of the first row. So a clock is linear where a jump may move.

A course of None is a pace of 1, clocks that tell time itself: compiled apart, to what it would be without clocks.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..jit import JIT


class Course(NamedTuple):
    """Clocks along one sequence: tau (L,) and pace (L, M) of its rows, the clocks at them (L, M), and room for those at
    candidates, the end of the window behind the last (n, M).
    """

    tau: Any
    pace: Any
    at_rows: Any
    at_candidates: Any


@njit(**JIT)
def room_for_clocks(pace, rows, candidates):
    """Room for the clocks of sequences of so many rows and candidates; None without a pace."""
    if pace is None:
        return None
    M = pace.shape[1]
    return np.empty((rows, M)), np.empty((candidates + 1, M))


@njit(**JIT)
def set_course(pace, tau, room):
    """The course of a sequence, of the pace (L, M) of its rows; uses `room_for_clocks`. None without a pace."""
    if pace is None:
        return None
    at_rows = room[0]
    L, M = pace.shape
    for s in range(M):
        at_rows[0, s] = pace[0, s] * tau[0]
        for row in range(1, L):
            at_rows[row, s] = at_rows[row - 1, s] + pace[row - 1, s] * (tau[row] - tau[row - 1])
    return Course(tau, pace, at_rows, room[1])


@njit(**JIT)
def some_rows(table, first, last):
    """Rows first, ..., last - 1 of a table; None of none."""
    if table is None:
        return None
    return table[first:last]


@njit(**JIT)
def hour(course, row, s, time):
    """A time in the gap before `row` by the clock of s."""
    if course is None:
        return time
    if row == 0:
        return course.pace[0, s] * time
    return course.at_rows[row - 1, s] + course.pace[row - 1, s] * (time - course.tau[row - 1])


@njit(**JIT)
def pace_before(course, row, s):
    """Pace of the clock of s in the gap before `row`."""
    if course is None:
        return 1.0
    return course.pace[max(row - 1, 0), s]


@njit(**JIT)
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


@njit(**JIT)
def candidate_hour(course, j, s, time):
    """Time of candidate j by the clock of s, as `set_candidates` read it."""
    if course is None:
        return time
    return course.at_candidates[j, s]


@njit(**JIT)
def dwell_hours(course, states, starts, rows, k, n, end, n_rows):
    """Length of dwell k of n by the clock of its state, in a sequence of so many rows."""
    if course is None:
        return (starts[k + 1] if k < n - 1 else end) - starts[k]
    s = states[k]
    begin = hour(course, rows[k], s, starts[k])
    if k < n - 1:
        return hour(course, rows[k + 1], s, starts[k + 1]) - begin
    return hour(course, n_rows, s, end) - begin
