"""The exact decoder: best trajectory over given candidate jump times, linear in their number.

One sequence at a time, times relative to the start of its window. Rows are observations;
a jump is a time plus the first row that belongs to the new state, so rows are assigned by
index and never by comparing times.
"""

import numpy as np
from numba import njit

from ..jit import JIT
from ..model.objective import complete_cost, running_cost

# Observation costs run up to this before they are charged to the starts that ran them up.
FOLD = 100.0
# Candidates in each gap where its one jump may be anywhere: shares of the gap, closer together towards its ends, where
# short dwells begin and end.
SHARES = (0.001, 0.02, 0.08, 0.25, 0.5, 0.75, 0.92, 0.98, 1.0)
SPREAD = len(SHARES)


@njit(inline="always", **JIT)
def _append(cand_time, cand_row, n, lo, hi, time, row):
    """Add a candidate in (lo, hi] unless it is taken; a gap too narrow for a midpoint gets its end."""
    if time <= lo:
        time = hi
    if n == 0 or time > cand_time[n - 1]:
        cand_time[n] = time
        cand_row[n] = row
        n += 1
    return n


@njit(**JIT)
def place_candidates(tau, seen, end, jump_time, jump_row, n_jumps, base, per_gap, beam, cand_time, cand_row):
    """Candidate jump times of one sequence: the current jumps, and fresh ones in the gaps between rows.

    Exact search puts `base` candidates into each gap, spread evenly, less one for every jump that is there.
    Beam search does so in gaps without a jump, and elsewhere puts a fresh candidate into every piece that
    the current jumps cut the gap into: jumps are created where jumps are, and unused ones vanish.
    A stretch between two observations (seen, (L,) bool; the rows between are blank) of m gaps never holds more than
    m `per_gap` candidates.

    Returns
    -------
    n : int
        Number of candidates written to cand_time (OUT, increasing) and cand_row (OUT).
    """
    L = tau.shape[0]
    n = 0
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
        lo = tau[row - 1] if row > 0 else 0.0
        hi = tau[row] if row < L else end
        first = k
        while k < n_jumps and jump_row[k] == row:
            k += 1
        if hi <= lo:
            continue
        here = k - first
        if beam and here > 0:
            left = lo
            for i in range(first, k):
                if budget > 0:
                    n = _append(cand_time, cand_row, n, lo, jump_time[i], left + 0.5 * (jump_time[i] - left), row)
                    budget -= 1
                n = _append(cand_time, cand_row, n, lo, hi, jump_time[i], row)
                left = jump_time[i]
            if budget > 0 and left < hi:
                n = _append(cand_time, cand_row, n, left, hi, left + 0.5 * (hi - left), row)
                budget -= 1
            continue
        fresh = max(min(base - here, budget), 0)
        budget -= fresh
        step = (hi - lo) / (fresh + 1)
        i = first
        for f in range(1, fresh + 1):
            time = lo + f * step
            while i < k and jump_time[i] <= time:
                n = _append(cand_time, cand_row, n, lo, hi, jump_time[i], row)
                i += 1
            bound = jump_time[i] if i < k else hi
            n = _append(cand_time, cand_row, n, lo, bound, min(time, bound), row)
        while i < k:
            n = _append(cand_time, cand_row, n, lo, hi, jump_time[i], row)
            i += 1
    return n


@njit(**JIT)
def spread_candidates(tau, end, cand_time, cand_row):
    """SPREAD candidates in each gap, from just behind its start to its end, for a search of one jump a gap.

    Returns their number; written to cand_time, cand_row (OUT).
    """
    n = 0
    for row in range(tau.shape[0] + 1):
        lo = tau[row - 1] if row > 0 else 0.0
        hi = tau[row] if row < tau.shape[0] else end
        if hi <= lo:
            continue
        for share in SHARES:
            n = _append(cand_time, cand_row, n, lo, hi, lo + share * (hi - lo) if share < 1.0 else hi, row)
    return n


@njit(**JIT)
def best_path(
    cost, end, lam, X, first_running, cand_time, cand_row, n_cand, from_start, from_state, out,
    free_end=False, one_a_gap=False,
):  # fmt: skip
    """Shortest semi-Markov path through the candidates, O(n_cand (M² + M)).

    For each state a queue holds the candidate starts that may still be the best one, oldest first.
    Of two starts i < k with A = W - C - lam c, the later one wins for good from the time
    c_k + (c_k - c_i) / expm1(A_i - A_k) on, and never if A_k >= A_i; so queries pop from the front,
    births pop from the back, and each start is handled once.

    Parameters
    ----------
    cost : (L, M) weighted observation costs, may be inf
    end : length of the window
    lam : (M,) rates; 0 marks a state that cannot be left
    X : (M, M) cost of a jump, inf where forbidden and on the diagonal
    first_running : the first dwell costs g instead of h
    cand_time, cand_row, n_cand : the candidates
    from_start, from_state : (>= n_cand, M) work: start of the best dwell that ends at a candidate, state before
    out : (3,) OUT: last state, its start (0 = window start, j + 1 = candidate j), row where all paths died
    free_end : the running dwell costs nothing, however long
    one_a_gap : no two jumps before the same row; at most SPREAD candidates there

    Returns
    -------
    value : float
        Cost of the best path; inf if there is none.
    """
    L, M = cost.shape
    size = 32
    mask = size - 1
    q_time = np.empty((M, size))
    q_base = np.empty((M, size))
    q_over = np.empty((M, size))
    q_index = np.empty((M, size), np.int32)
    head = np.zeros(M, np.int64)
    count = np.zeros(M, np.int64)

    C = np.zeros(M)  # observation cost since the last reset or fold
    D = np.empty(M)  # best cost with a dwell that ends at this candidate
    W = np.empty((SPREAD, M))  # best cost with a jump into the state at a candidate; those not yet in the queues
    waiting = 0
    tail_base = np.full(M, np.inf)  # best start among those still free of charge at the end
    tail_index = np.zeros(M, np.int32)
    last_start = np.zeros(M, np.int64)
    first_alive = np.zeros(M, np.bool_)
    first_base = np.zeros(M)
    for s in range(M):
        if first_running:
            first_alive[s] = True
        else:
            q_time[s, 0] = 0.0
            q_base[s, 0] = 0.0
            q_over[s, 0] = 0.0
            q_index[s, 0] = 0
            count[s] = 1
        if free_end or lam[s] * end < 1.0:
            tail_base[s] = 0.0

    row = 0
    out[2] = -1
    for j in range(n_cand + 1):
        at_end = j == n_cand
        c = end if at_end else cand_time[j]
        stop = L if at_end else cand_row[j]

        # starts join the queues before anything behind them is asked for
        if at_end or not one_a_gap or (j > 0 and cand_row[j] != cand_row[j - 1]):
            for i in range(waiting):
                born = j - waiting + i
                at = cand_time[born]
                for s in range(M):
                    if W[i, s] == np.inf:
                        continue
                    base = W[i, s] - C[s]
                    if (free_end or lam[s] * (end - at) < 1.0) and base < tail_base[s]:
                        tail_base[s] = base
                        tail_index[s] = born + 1
                    n = count[s]
                    over = 0.0
                    if n > 0:
                        h0 = head[s]
                        back = (h0 + n - 1) & mask
                        lead = q_base[s, back] - base + lam[s] * (at - q_time[s, back])  # A of the back less its own
                        if lead <= 0.0:
                            continue
                        over = at + (at - q_time[s, back]) / np.expm1(lead)
                        while n > 1 and over <= q_over[s, back]:
                            n -= 1
                            back = (h0 + n - 1) & mask
                            lead = q_base[s, back] - base + lam[s] * (at - q_time[s, back])
                            over = at + (at - q_time[s, back]) / np.expm1(lead)
                    if n == size:
                        wide = 2 * size
                        w_time = np.empty((M, wide))
                        w_base = np.empty((M, wide))
                        w_over = np.empty((M, wide))
                        w_index = np.empty((M, wide), np.int32)
                        for r in range(M):
                            for m in range(count[r]):
                                old = (head[r] + m) & mask
                                w_time[r, m] = q_time[r, old]
                                w_base[r, m] = q_base[r, old]
                                w_over[r, m] = q_over[r, old]
                                w_index[r, m] = q_index[r, old]
                            head[r] = 0
                        q_time, q_base, q_over, q_index = w_time, w_base, w_over, w_index
                        size = wide
                        mask = size - 1
                    new = (head[s] + n) & mask
                    q_time[s, new] = at
                    q_base[s, new] = base
                    q_over[s, new] = over
                    q_index[s, new] = born + 1
                    count[s] = n + 1
            waiting = 0

        while row < stop:
            for s in range(M):
                x = cost[row, s]
                if x == np.inf:
                    count[s] = 0
                    first_alive[s] = False
                    tail_base[s] = np.inf
                    C[s] = 0.0
                else:
                    C[s] += x
                    if C[s] > FOLD:
                        # charge what has run up to the starts that ran it up: later ones keep their digits
                        for i in range(count[s]):
                            q_base[s, (head[s] + i) & (size - 1)] += C[s]
                        tail_base[s] += C[s]
                        first_base[s] += C[s]
                        C[s] = 0.0
            row += 1

        alive = False
        for s in range(M):
            D[s] = np.inf
            start = 0
            if count[s] > 0:
                h0 = head[s]
                n = count[s]
                while n > 1 and q_over[s, (h0 + 1) & mask] <= c:
                    h0 = (h0 + 1) & mask
                    n -= 1
                head[s] = h0
                count[s] = n
                D[s] = q_base[s, h0] + C[s] + complete_cost(lam[s] * (c - q_time[s, h0]))
                start = q_index[s, h0]
            if first_alive[s]:
                v = first_base[s] + C[s] + running_cost(lam[s] * c)
                if v <= D[s]:
                    D[s] = v
                    start = 0
            if at_end:
                v = tail_base[s] + C[s]
                if v <= D[s]:
                    D[s] = v
                    start = tail_index[s]
                last_start[s] = start
            else:
                from_start[j, s] = start
            # a state that cannot be left has no end of a dwell, but lives on
            if D[s] < np.inf or (lam[s] == 0.0 and count[s] > 0):
                alive = True
        if at_end:
            break
        if not alive:
            out[2] = row
            return np.inf

        for s in range(M):
            W[waiting, s] = np.inf
        for s in range(M):
            d = D[s]
            if d < np.inf:
                for r in range(M):
                    v = d + X[s, r]
                    if v < W[waiting, r]:
                        W[waiting, r] = v
                        from_state[j, r] = s
        waiting += 1

    best = np.inf
    for s in range(M):
        if D[s] < best:
            best = D[s]
            out[0] = s
            out[1] = last_start[s]
    if best == np.inf:
        out[2] = L
    return best


@njit(**JIT)
def trace_back(cand_time, cand_row, from_start, from_state, out, states, starts, rows):
    """Write the dwells of the best path (OUT: states, starts, rows); returns their number."""
    n = 1
    s, i = out[0], out[1]
    while i > 0:
        s = from_state[i - 1, s]
        i = from_start[i - 1, s]
        n += 1
    s, i = out[0], out[1]
    k = n - 1
    while i > 0:
        states[k] = s
        starts[k] = cand_time[i - 1]
        rows[k] = cand_row[i - 1]
        s = from_state[i - 1, s]
        i = from_start[i - 1, s]
        k -= 1
    states[0] = s
    starts[0] = 0.0
    rows[0] = 0
    return n
