"""Where jumps may be: candidate times for the decoder, in the gaps between the rows of one sequence.

How rows were seen (`kinds`) decides. The gap before a TRANSITION or a HELD row is barred: it has no candidates. A
TRANSITION has one at its very time, and so has an ENTRY. Gaps where a path that jumps costs more than a limit at
`least` (`bounds.bound_gaps`) get no fresh ones.
"""

import numpy as np
from numba import njit

from ..jit import LEAF
from ..kinds import BARS, PINS, SNAPSHOT

# Candidates in each gap where its one jump may be anywhere: shares of the gap, closer together towards its ends, where
# short dwells begin and end.
SHARES = (0.001, 0.02, 0.08, 0.25, 0.5, 0.75, 0.92, 0.98, 1.0)
SPREAD = len(SHARES)


@njit(forceinline=True, **LEAF)
def _append(cand_time, cand_row, n, lo, hi, time, row):
    """Add a candidate in (lo, hi] unless it is taken; a gap too narrow for a midpoint gets its end."""
    if time <= lo:
        time = hi
    if n == 0 or time > cand_time[n - 1]:
        cand_time[n] = time
        cand_row[n] = row
        n += 1
    return n


@njit(forceinline=True, **LEAF)
def _pin(cand_time, cand_row, n, time, row):
    """Add the candidate at the time of a row itself, also where the row before it has the same time."""
    if n == 0 or cand_time[n - 1] < time or cand_row[n - 1] < row:
        cand_time[n] = time
        cand_row[n] = row
        n += 1
    return n


@njit(forceinline=True, **LEAF)
def place_candidates(
    tau, seen, kinds, end, jump_time, jump_row, n_jumps, base, per_gap, beam, least, limit, cand_time, cand_row
):  # fmt: skip
    """Candidate jump times of one sequence: the current jumps, and fresh ones in the gaps between rows.

    Exact search puts `base` candidates into each gap, spread evenly, less one for every jump that is there.
    Beam search does so in gaps without a jump, and elsewhere puts a fresh candidate into every piece that
    the current jumps cut the gap into: jumps are created where jumps are, and unused ones vanish.
    A stretch between two observations (seen, (L,) bool; the rows between are blank) of m gaps never holds more than
    m `per_gap` candidates, those at a TRANSITION or an ENTRY (kinds, (L,)) apart. Gaps where `least` (L + 1,) is
    beyond `limit` keep the current jumps alone.

    Returns
    -------
    n : int
        Number of candidates written to cand_time (OUT, increasing but for rows of one time) and cand_row (OUT).
    """
    L = tau.shape[0]
    n = np.int64(0)  # a plain 0 would be a type of its own, and what takes it compiled twice
    k = 0
    budget = 0
    for row in range(L + 1):
        if row == 0 or seen[row - 1]:
            # a new stretch: the room that its jumps leave
            last = row
            while last < L and not seen[last]:
                last += 1
            budget = per_gap * (last + 1 - row)
            if row == 0 and tau[0] <= 0.0:
                budget -= per_gap
            if last == L and end <= tau[L - 1]:
                budget -= per_gap
            i = k
            while i < n_jumps and jump_row[i] <= last:
                i += 1
                budget -= 1
            if last < L and i > k and kinds[last] != SNAPSHOT and jump_time[i - 1] >= tau[last]:
                budget += 1  # the jump at the row itself has room of its own
        lo = tau[row - 1] if row > 0 else 0.0
        hi = tau[row] if row < L else end
        first = k
        while k < n_jumps and jump_row[k] == row:
            k += 1
        kind = kinds[row] if row < L else SNAPSHOT
        if BARS[kind]:
            if PINS[kind]:
                n = _pin(cand_time, cand_row, n, hi, row)
            continue
        own = k  # of the jumps in this gap, the one at an ENTRY is added last
        if PINS[kind] and own > first and jump_time[own - 1] >= hi:
            own -= 1
        here = own - first
        if hi <= lo:
            pass
        elif beam and here > 0:
            left = lo
            for i in range(first, own):
                if budget > 0:
                    n = _append(cand_time, cand_row, n, lo, jump_time[i], left + 0.5 * (jump_time[i] - left), row)
                    budget -= 1
                n = _append(cand_time, cand_row, n, lo, hi, jump_time[i], row)
                left = jump_time[i]
            if budget > 0 and left < hi:
                n = _append(cand_time, cand_row, n, left, hi, left + 0.5 * (hi - left), row)
                budget -= 1
        else:
            fresh = max(min(base - here, budget), 0)
            budget -= fresh
            if least[row] > limit:
                fresh = 0
            step = (hi - lo) / (fresh + 1)
            i = first
            for f in range(1, fresh + 1):
                time = lo + f * step
                while i < own and jump_time[i] <= time:
                    n = _append(cand_time, cand_row, n, lo, hi, jump_time[i], row)
                    i += 1
                bound = jump_time[i] if i < own else hi
                n = _append(cand_time, cand_row, n, lo, bound, min(time, bound), row)
            while i < own:
                n = _append(cand_time, cand_row, n, lo, hi, jump_time[i], row)
                i += 1
        if PINS[kind]:
            n = _pin(cand_time, cand_row, n, hi, row)
    return n


@njit(forceinline=True, **LEAF)
def spread_candidates(tau, kinds, end, least, limit, cand_time, cand_row):
    """SPREAD candidates in each gap where `least` is up to `limit`, from its start to its end, for one jump a gap.

    The one jump of a gap before a TRANSITION or an ENTRY is at that row.

    Returns their number; written to cand_time, cand_row (OUT).
    """
    n = np.int64(0)
    for row in range(tau.shape[0] + 1):
        lo = tau[row - 1] if row > 0 else 0.0
        hi = tau[row] if row < tau.shape[0] else end
        kind = kinds[row] if row < tau.shape[0] else SNAPSHOT
        if PINS[kind]:
            n = _pin(cand_time, cand_row, n, hi, row)
        if hi <= lo or kind != SNAPSHOT or least[row] > limit:
            continue
        for share in SHARES:
            n = _append(cand_time, cand_row, n, lo, hi, lo + share * (hi - lo) if share < 1.0 else hi, row)
    return n
