"""Candidates and best path of one sequence by one thread: `jumpmeans.kernels.decode`, step by step.

What differs: the states are a constant, so that loops over them are unrolled; rows are found at `at + 32 row`; a queue
has room for every candidate, so that it never runs over; the state before a jump and the start of its dwell are one
number.
"""

import numpy as np
from numba import cuda

from ...kinds import BARS, FORCES, PINS, SNAPSHOT
from ..candidates import SHARES
from ..decode import FOLD
from .arithmetic import LANES, exp, log

# Of states in a link, at most.
STATES = 32
N_SHARES = len(SHARES)


def make_costs(real):
    """The functions h and g of the objective (`jumpmeans.model.objective`)."""
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
            if BARS[kind]:
                if PINS[kind]:
                    n = pin(cand_time, cand_row, n, hi, row)
                continue
            own = k
            if PINS[kind] and own > first and jump_time[own - 1] >= hi:
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
            if PINS[kind]:
                n = pin(cand_time, cand_row, n, hi, row)
        return n

    @cuda.jit(device=True)
    def spread_candidates(tau, kinds, at, L, end, cand_time, cand_row):
        n = 0
        for row in range(L + 1):
            lo = tau[at + LANES * (row - 1)] if row > 0 else zero
            hi = tau[at + LANES * row] if row < L else end
            kind = kind_of(kinds, at, row, L)
            if PINS[kind]:
                n = pin(cand_time, cand_row, n, hi, row)
            if hi <= lo or kind != SNAPSHOT:
                continue
            for i in range(N_SHARES):
                share = real(shares[i])
                n = append(cand_time, cand_row, n, lo, hi, lo + share * (hi - lo) if share < one else hi, row)
        return n

    return place_candidates, spread_candidates


def links(n_candidates, M):
    """How many states a link has room for, and of what type it is: the smaller, the less there is to carry."""
    states = 1 << int(M - 1).bit_length()
    return states, np.int16 if (n_candidates + 1) * states < 1 << 15 else np.int32


def make_best_path(form, waits, row_costs):
    """`best_path` and `trace_back`; so many candidates at most (`waits`) come before one row where jumps are one a gap.

    The front of each queue, which every candidate asks for, is kept apart from the starts behind it: nearly always that
    is all there is. The room is a tuple of a thread's own arrays: cand_time, cand_row (n,); link (n, M); and the rest
    of the queues, time, base, over, index (M, power of two).
    """
    M, real, with_kinds = form.n_states, form.real, form.kinds
    first_running, free_end = form.first_running, form.free_end
    zero, one, inf, fold = real(0.0), real(1.0), real(np.inf), real(FOLD)
    states_of_link, _ = links(form.room, M)
    complete_cost, running_cost = make_costs(real)

    @cuda.jit(device=True)
    def join_queues(W, i, born, time, end, lam, C, tail, tail_index, front, head, count, queues):
        """Starts at a candidate, of costs W[i], join the queues."""
        f_time, f_base, f_index, next_over = front
        q_time, q_base, q_over, q_index = queues
        wrap = q_time.shape[1] - 1
        for s in range(M):
            base = W[i, s] - C[s]
            if base == inf:
                continue
            if base < tail[s] and (free_end or lam[s] * (end - time) < one):
                tail[s] = base
                tail_index[s] = born + 1
            n = count[s]
            if n == 0:
                f_time[s] = time
                f_base[s] = base
                f_index[s] = born + 1
                next_over[s] = inf
                count[s] = 1
                continue
            back_time, back_base = f_time[s], f_base[s]
            if n > 1:
                back = (head[s] + n - 2) & wrap
                back_time, back_base = q_time[s, back], q_base[s, back]
            past = time - back_time
            lead = back_base - base + lam[s] * past  # A of the back less its own
            if lead <= zero:
                continue
            over = time + past / (exp(lead) - one)
            while n > 1 and over <= q_over[s, (head[s] + n - 2) & wrap]:
                n -= 1
                back_time, back_base = f_time[s], f_base[s]
                if n > 1:
                    back = (head[s] + n - 2) & wrap
                    back_time, back_base = q_time[s, back], q_base[s, back]
                past = time - back_time
                over = time + past / (exp(back_base - base + lam[s] * past) - one)
            if n == 1:
                head[s] = 0
                next_over[s] = over
            new = (head[s] + n - 1) & wrap
            q_time[s, new] = time
            q_base[s, new] = base
            q_over[s, new] = over
            q_index[s, new] = born + 1
            count[s] = n + 1

    @cuda.jit(device=True)
    def best_path(observed, at, row0, L, end, lam, into, start_cost, one_a_gap, n_cand, room, found):
        # found (3,): last state, its start, row where all paths died
        x, theta, given, mask, kinds = observed
        cand_time, cand_row, link, q_time, q_base, q_over, q_index = room
        queues = q_time, q_base, q_over, q_index
        wrap = q_time.shape[1] - 1
        C = cuda.local.array(M, real)
        D = cuda.local.array(M, real)
        W = cuda.local.array((waits, M), real)
        tail = cuda.local.array(M, real)
        first = cuda.local.array(M, real)
        costs = cuda.local.array(M, real)
        f_time = cuda.local.array(M, real)
        f_base = cuda.local.array(M, real)
        next_over = cuda.local.array(M, real)
        f_index = cuda.local.array(M, np.int32)
        head = cuda.local.array(M, np.int32)
        count = cuda.local.array(M, np.int32)
        tail_index = cuda.local.array(M, np.int32)
        starts = cuda.local.array(M, np.int32)
        front = f_time, f_base, f_index, next_over
        for s in range(M):
            C[s] = zero
            head[s] = 0
            count[s] = 0 if first_running else 1
            f_time[s] = zero
            f_base[s] = zero
            f_index[s] = 0
            next_over[s] = inf
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

            # starts join the queues before anything behind them is asked for
            if waits == 1:
                if j > 0:
                    join_queues(
                        W, 0, j - 1, cand_time[j - 1], end, lam, C, tail, tail_index, front, head, count,
                        queues,
                    )  # fmt: skip
            elif waiting > 0 and (at_end or not one_a_gap or cand_row[j] != cand_row[j - 1]):
                for i in range(waiting):
                    born = j - waiting + i
                    join_queues(
                        W, i, born, cand_time[born], end, lam, C, tail, tail_index, front, head, count,
                        queues,
                    )  # fmt: skip
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
                            # charge what has run up to the starts that ran it up: later ones keep their digits
                            f_base[s] += C[s]
                            for i in range(count[s] - 1):
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
                    while n > 1 and next_over[s] <= c:
                        place = head[s]
                        f_time[s] = q_time[s, place]
                        f_base[s] = q_base[s, place]
                        f_index[s] = q_index[s, place]
                        head[s] = (place + 1) & wrap
                        n -= 1
                        next_over[s] = q_over[s, head[s]] if n > 1 else inf
                    count[s] = n
                    d = f_base[s] + C[s] + complete_cost(lam[s] * (c - f_time[s]))
                    start = f_index[s]
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
                # a state that cannot be left, or was entered at this instant, has no end of a dwell, but lives on
                if d < inf or n > 0:
                    alive = True
            if at_end:
                break
            forced = False
            if with_kinds and row < L:
                forced = FORCES[kinds[at + LANES * row]] and (j + 1 == n_cand or cand_row[j + 1] != row)
            if not alive:
                found[2] = row + 1 if forced else row
                return inf

            slot = waiting if waits > 1 else 0
            alive = False
            for r in range(M):
                best = D[0] + into[r, 0]
                before = starts[0] * states_of_link
                for s in range(1, M):
                    v = D[s] + into[r, s]
                    if v < best:
                        best = v
                        before = starts[s] * states_of_link + s
                W[slot, r] = best
                link[j, r] = before
                alive = alive or best < inf
            if forced:
                for s in range(M):
                    count[s] = 0
                    first[s] = inf
                    tail[s] = inf
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
            before = np.int32(link[i - 1, s])
            s = before & (states_of_link - 1)
            i = before // states_of_link
            n += 1
        s, i = found[0], found[1]
        k = n - 1
        while i > 0:
            states[k] = s
            starts[k] = cand_time[i - 1]
            rows[k] = cand_row[i - 1]
            before = np.int32(link[i - 1, s])
            s = before & (states_of_link - 1)
            i = before // states_of_link
            k -= 1
        states[0] = s
        starts[0] = 0.0
        rows[0] = 0
        return n

    return best_path, trace_back
