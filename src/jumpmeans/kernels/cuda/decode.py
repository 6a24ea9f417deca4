"""Candidates and best path of one sequence by one thread: `jumpmeans.kernels.decode`, step by step.

What differs: the states are a constant, so that loops over them are unrolled; rows are found at `at + 32 row`; a queue
has room for every candidate, so that it never runs over; the state before a jump and the start of its dwell are one
number.
"""

import numpy as np
from numba import cuda

from ...kinds import ENTRY, HELD, SNAPSHOT, TRANSITION
from ..decode import FOLD, SHARES
from .arithmetic import LANES, exp, log

# A link holds a start times this, plus a state.
STATES = 256
N_SHARES = len(SHARES)


def make_costs(real):
    """h and g of the objective (`jumpmeans.model.objective`)."""
    zero, one, inf = real(0.0), real(1.0), real(np.inf)

    @cuda.jit(device=True)
    def complete_cost(z):
        if z <= zero:
            return inf
        return z - log(z) - one

    @cuda.jit(device=True)
    def running_cost(z):
        if z < one:
            return zero
        return z - log(z) - one

    return complete_cost, running_cost


def make_candidates(real, with_kinds):
    """`place_candidates` and `spread_candidates`."""
    zero, half, one = real(0.0), real(0.5), real(1.0)
    shares = tuple(SHARES)

    @cuda.jit(device=True)
    def append(cand_time, cand_row, n, lo, hi, time, row):
        if time <= lo:
            time = hi
        if n == 0 or time > cand_time[n - 1]:
            cand_time[n] = time
            cand_row[n] = row
            n += 1
        return n

    @cuda.jit(device=True)
    def pin(cand_time, cand_row, n, time, row):
        if n == 0 or cand_time[n - 1] < time or cand_row[n - 1] < row:
            cand_time[n] = time
            cand_row[n] = row
            n += 1
        return n

    @cuda.jit(device=True)
    def kind_of(kinds, at, row, L):
        if with_kinds and row < L:
            return kinds[at + LANES * row]
        return np.int8(SNAPSHOT)

    @cuda.jit(device=True)
    def place_candidates(
        tau, seen, kinds, at, L, end, jump_time, jump_row, n_dwells, base, per_gap, beam, cand_time, cand_row
    ):
        # jumps are dwells 1, 2, ... of jump_time and jump_row
        n = 0
        k = 1
        budget = 0
        for row in range(L + 1):
            if row == 0 or seen[at + LANES * (row - 1)]:
                last = row
                while last < L and not seen[at + LANES * last]:
                    last += 1
                budget = per_gap * (last + 1 - row)
                if row == 0 and tau[at] <= zero:
                    budget -= per_gap
                if last == L and end <= tau[at + LANES * (L - 1)]:
                    budget -= per_gap
                i = k
                while i < n_dwells and jump_row[i] <= last:
                    i += 1
                    budget -= 1
                if last < L and i > k:
                    if kind_of(kinds, at, last, L) != SNAPSHOT and jump_time[i - 1] >= tau[at + LANES * last]:
                        budget += 1
            lo = tau[at + LANES * (row - 1)] if row > 0 else zero
            hi = tau[at + LANES * row] if row < L else end
            first = k
            while k < n_dwells and jump_row[k] == row:
                k += 1
            kind = kind_of(kinds, at, row, L)
            if kind == TRANSITION or kind == HELD:
                if kind == TRANSITION:
                    n = pin(cand_time, cand_row, n, hi, row)
                continue
            own = k
            if kind == ENTRY and own > first and jump_time[own - 1] >= hi:
                own -= 1
            here = own - first
            if hi <= lo:
                pass
            elif beam and here > 0:
                left = lo
                for i in range(first, own):
                    jump = real(jump_time[i])
                    if budget > 0:
                        n = append(cand_time, cand_row, n, lo, jump, left + half * (jump - left), row)
                        budget -= 1
                    n = append(cand_time, cand_row, n, lo, hi, jump, row)
                    left = jump
                if budget > 0 and left < hi:
                    n = append(cand_time, cand_row, n, left, hi, left + half * (hi - left), row)
                    budget -= 1
            else:
                fresh = max(min(base - here, budget), 0)
                budget -= fresh
                step = (hi - lo) / real(fresh + 1)
                i = first
                for f in range(1, fresh + 1):
                    time = lo + real(f) * step
                    while i < own and jump_time[i] <= time:
                        n = append(cand_time, cand_row, n, lo, hi, real(jump_time[i]), row)
                        i += 1
                    bound = real(jump_time[i]) if i < own else hi
                    n = append(cand_time, cand_row, n, lo, bound, min(time, bound), row)
                while i < own:
                    n = append(cand_time, cand_row, n, lo, hi, real(jump_time[i]), row)
                    i += 1
            if kind == ENTRY:
                n = pin(cand_time, cand_row, n, hi, row)
        return n

    @cuda.jit(device=True)
    def spread_candidates(tau, kinds, at, L, end, cand_time, cand_row):
        n = 0
        for row in range(L + 1):
            lo = tau[at + LANES * (row - 1)] if row > 0 else zero
            hi = tau[at + LANES * row] if row < L else end
            kind = kind_of(kinds, at, row, L)
            if kind == TRANSITION or kind == ENTRY:
                n = pin(cand_time, cand_row, n, hi, row)
            if hi <= lo or kind != SNAPSHOT:
                continue
            for i in range(N_SHARES):
                share = real(shares[i])
                n = append(cand_time, cand_row, n, lo, hi, lo + share * (hi - lo) if share < one else hi, row)
        return n

    return place_candidates, spread_candidates


def make_best_path(M, real, waits, with_kinds, row_costs):
    """`best_path` and `trace_back`; so many candidates at most (`waits`) come before one row where jumps are one a gap.

    The room is a tuple of a thread's own arrays: cand_time, cand_row (n,); link (n, M); and the queues time, base, over,
    index (M, power of two).
    """
    zero, one, inf, fold = real(0.0), real(1.0), real(np.inf), real(FOLD)
    complete_cost, running_cost = make_costs(real)

    @cuda.jit(device=True)
    def best_path(
        observed, at, row0, L, end, lam, into, start_cost, first_running, free_end, one_a_gap, n_cand, room, found
    ):
        # found (3,): last state, its start, row where all paths died
        x, theta, given, mask, kinds = observed
        cand_time, cand_row, link, q_time, q_base, q_over, q_index = room
        wrap = q_time.shape[1] - 1
        C = cuda.local.array(M, real)
        D = cuda.local.array(M, real)
        W = cuda.local.array((waits, M), real)
        tail = cuda.local.array(M, real)
        first = cuda.local.array(M, real)
        costs = cuda.local.array(M, real)
        head = cuda.local.array(M, np.int32)
        count = cuda.local.array(M, np.int32)
        tail_index = cuda.local.array(M, np.int32)
        starts = cuda.local.array(M, np.int32)
        for s in range(M):
            C[s] = zero
            head[s] = 0
            count[s] = 0 if first_running else 1
            q_time[s, 0] = zero
            q_base[s, 0] = zero
            q_over[s, 0] = zero
            q_index[s, 0] = 0
            first[s] = zero
            tail[s] = zero if free_end or lam[s] * end < one else inf
            tail_index[s] = 0

        row = 0
        waiting = 0
        found[2] = -1
        for j in range(n_cand + 1):
            at_end = j == n_cand
            c = end if at_end else cand_time[j]
            stop = L if at_end else cand_row[j]

            if waiting > 0 and (at_end or not one_a_gap or cand_row[j] != cand_row[j - 1]):
                for i in range(waiting):
                    born = j - waiting + i
                    time = cand_time[born]
                    for s in range(M):
                        base = W[i, s] - C[s]
                        if base == inf:
                            continue
                        if base < tail[s] and (free_end or lam[s] * (end - time) < one):
                            tail[s] = base
                            tail_index[s] = born + 1
                        n = count[s]
                        over = zero
                        if n > 0:
                            back = (head[s] + n - 1) & wrap
                            past = time - q_time[s, back]
                            lead = q_base[s, back] - base + lam[s] * past
                            if lead <= zero:
                                continue
                            over = time + past / (exp(lead) - one)
                            while n > 1 and over <= q_over[s, back]:
                                n -= 1
                                back = (head[s] + n - 1) & wrap
                                past = time - q_time[s, back]
                                over = time + past / (exp(q_base[s, back] - base + lam[s] * past) - one)
                        new = (head[s] + n) & wrap
                        q_time[s, new] = time
                        q_base[s, new] = base
                        q_over[s, new] = over
                        q_index[s, new] = born + 1
                        count[s] = n + 1
                waiting = 0

            while row < stop:
                row_costs(x, theta, given, row0 + row, mask, at + LANES * row, inf, costs)
                for s in range(M):
                    cost = costs[s]
                    if row == 0:
                        cost += start_cost[s]
                    if cost == inf:
                        count[s] = 0
                        first[s] = inf
                        tail[s] = inf
                        C[s] = zero
                    else:
                        C[s] += cost
                        if C[s] > fold:
                            for i in range(count[s]):
                                q_base[s, (head[s] + i) & wrap] += C[s]
                            tail[s] += C[s]
                            first[s] += C[s]
                            C[s] = zero
                row += 1

            alive = False
            for s in range(M):
                d = inf
                start = np.int32(0)
                n = count[s]
                if n > 0:
                    front = head[s]
                    while n > 1 and q_over[s, (front + 1) & wrap] <= c:
                        front = (front + 1) & wrap
                        n -= 1
                    head[s] = front
                    count[s] = n
                    d = q_base[s, front] + C[s] + complete_cost(lam[s] * (c - q_time[s, front]))
                    start = q_index[s, front]
                if first_running:
                    v = first[s] + C[s] + running_cost(lam[s] * c)
                    if v <= d:
                        d = v
                        start = np.int32(0)
                if at_end:
                    v = tail[s] + C[s]
                    if v <= d:
                        d = v
                        start = tail_index[s]
                starts[s] = start
                D[s] = d
                if d < inf or n > 0:
                    alive = True
            if at_end:
                break
            forced = False
            if with_kinds and row < L:
                forced = kinds[at + LANES * row] == ENTRY and (j + 1 == n_cand or cand_row[j + 1] != row)
            if not alive:
                found[2] = row + 1 if forced else row
                return inf

            for r in range(M):
                best = D[0] + into[r, 0]
                before = starts[0] * STATES
                for s in range(1, M):
                    v = D[s] + into[r, s]
                    if v < best:
                        best = v
                        before = starts[s] * STATES + s
                W[waiting, r] = best
                link[j, r] = before
            if forced:
                alive = False
                for s in range(M):
                    count[s] = 0
                    first[s] = inf
                    tail[s] = inf
                    alive = alive or W[waiting, s] < inf
                if not alive:
                    found[2] = row + 1
                    return inf
            waiting += 1

        best = inf
        for s in range(M):
            if D[s] < best:
                best = D[s]
                found[0] = s
                found[1] = starts[s]
        if best == inf:
            found[2] = L
        return best

    @cuda.jit(device=True)
    def trace_back(room, found, states, starts, rows):
        cand_time, cand_row, link = room[0], room[1], room[2]
        n = 1
        s, i = found[0], found[1]
        while i > 0:
            before = link[i - 1, s]
            s = before & (STATES - 1)
            i = before // STATES
            n += 1
        s, i = found[0], found[1]
        k = n - 1
        while i > 0:
            states[k] = s
            starts[k] = cand_time[i - 1]
            rows[k] = cand_row[i - 1]
            before = link[i - 1, s]
            s = before & (STATES - 1)
            i = before // STATES
            k -= 1
        states[0] = s
        starts[0] = 0.0
        rows[0] = 0
        return n

    return best_path, trace_back
