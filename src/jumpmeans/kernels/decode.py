"""The exact decoder: best trajectory over given candidate jump times, linear in their number.

One sequence at a time, times relative to the start of its window. Rows are observations;
a jump is a time plus the first row that belongs to the new state, so rows are assigned by
index and never by comparing times.

No path passes an ENTRY without jumping at it: all dwells end, and the queues begin anew. So the argument by which later
starts overtake earlier ones needs no change.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from ..jit import JIT, LEAF
from ..kinds import FORCES
from ..model.objective import complete_cost, running_cost
from .candidates import SPREAD
from .clock import candidate_hour

# Observation costs run up to this before they are charged to the starts that ran them up.
FOLD = 100.0
# From so many states on it pays to leave out those that no best jump can come from.
MANY = 8
# A start that leads by so much overtakes at once: behind its birth no float is as close.
SOON = 38.0
# What rounding may take off a bound.
SURE = 1.0 - 1e-12
# Starts that a queue has room for at first; few sequences ever need more.
QUEUE = 32


# What is kept of a start in a queue: its time, its base cost A + lam c, when it overtakes the one before, its number.
TIME, BASE, OVER, BORN = range(4)


class Room(NamedTuple):
    """Where the decoder works: as long as the longest sequence asks for, and used again for every other.

    Few arrays, for every one is eight arguments of every call.

    cand_time, cand_row : (n,) candidates; from_start, from_state : (n, M) start of the best dwell that ends at a
    candidate, and the state before it.
    queues : (M, QUEUE or more, 4) ring buffers of starts; their length is a power of two.
    costs : (4, M) and places : (5, M), as `best_path` names them.
    waiting : (SPREAD, M) starts that have not yet joined the queues.
    found : (3,) last state, its start (0 = window start, j + 1 = candidate j), row where all paths died.
    """

    cand_time: Any
    cand_row: Any
    from_start: Any
    from_state: Any
    queues: Any
    costs: Any
    places: Any
    waiting: Any
    found: Any


@njit(**JIT)
def make_room(n, M, queue):
    """Room for n candidates and M states."""
    return Room(
        np.empty(n), np.empty(n, np.int64), np.empty((n, M), np.int32), np.empty((n, M), np.int16),
        np.empty((M, queue, 4)), np.empty((4, M)), np.zeros((5, M), np.int64),
        np.empty((SPREAD, M)), np.zeros(3, np.int64),
    )  # fmt: skip


@njit(**JIT)
def widen(room):
    """The same room with queues twice as long."""
    M, queue = room.queues.shape[:2]
    return Room(
        room.cand_time, room.cand_row, room.from_start, room.from_state, np.empty((M, 2 * queue, 4)),
        room.costs, room.places, room.waiting, room.found,
    )  # fmt: skip


@njit(inline="always", **LEAF)
def _overtakes(at, past, lead):
    """When a start at a time, `past` after another one, costs less for good, by its lead in A."""
    return at + past / (np.exp(lead) - 1.0) if lead < SOON else at


@njit(**LEAF)
def jump_from_likely(D, into, kept, best, before):
    """Least cost (OUT) of a jump into each state and the state before it, of dwells that cost D.

    Jumps into every state can be had from the two states whose dwells cost least, at `worth` or less; a jump costs
    nothing at best, so that none comes from a state whose dwell alone costs more.
    """
    M = D.shape[0]
    likely, second = 0, M - 1
    for s in range(M):
        if D[s] < D[likely]:
            likely, second = s, likely
        elif s != likely and D[s] < D[second]:
            second = s
    worth = -np.inf
    for r in range(M):
        worth = max(worth, min(D[likely] + into[r, likely], D[second] + into[r, second]))
    n = 0
    for s in range(M):
        kept[n] = s
        n += D[s] <= worth
    for r in range(M):
        best[r] = np.inf
        before[r] = 0
        for k in range(n):
            v = D[kept[k]] + into[r, kept[k]]
            if v < best[r]:
                best[r] = v
                before[r] = kept[k]


@njit(**LEAF)
def best_path(cost, kinds, end, lam, into, course, first_running, free_end, one_a_gap, n_cand, room):
    """Shortest semi-Markov path through the candidates, O(n_cand (M² + M)) (derivation, eq. 5 and 6).

    For each state a queue holds the candidate starts that may still be the best one, oldest first.
    Of two starts i < k with A = W - C - lam c, the later one wins for good from the time
    c_k + (c_k - c_i) / (e^{A_i - A_k} - 1) on, and never if A_k >= A_i; so queries pop from the front,
    births pop from the back, and each start is handled once. Where rates vary, all times in a queue are those of the
    clock of its state, in which its dwells cost what they always do.

    Parameters
    ----------
    cost : (L, M) weighted observation costs, may be inf
    kinds : (L,) how each row was seen; the last candidate before an ENTRY is at that row, and must be a jump
    end : length of the window
    lam : (M,) rates at pace 1; 0 marks a state that cannot be left
    into : (1 or L, M, M) cost of a jump into each state (row) from each (column), inf where forbidden and on the
        diagonal; where it varies, that of the gap behind each row, and the first one's before
    course : `clock.Course` that has read the candidates; None where rates do not vary
    first_running : the first dwell costs g instead of h
    free_end : the running dwell costs nothing, however long
    one_a_gap : no two jumps before the same row; at most SPREAD candidates there
    n_cand : number of candidates in room
    room : `Room` (OUT)

    Returns
    -------
    value : float
        Cost of the best path; inf if there is none; -inf if a queue needs more room than there is.
    """
    L, M = cost.shape
    q = room.queues
    mask = q.shape[1] - 1
    cand_time, cand_row = room.cand_time, room.cand_row
    head, count, tail_index, last_start = room.places[0], room.places[1], room.places[2], room.places[3]
    kept = room.places[4]
    # observation cost since the last reset or fold; best cost with a dwell that ends at this candidate; best start
    # still free of charge at the end; the window's start
    C, D, tail, first = room.costs[0], room.costs[1], room.costs[2], room.costs[3]
    W = room.waiting  # best cost with a jump into the state at a candidate, not yet in the queues
    from_start, from_state = room.from_start, room.from_state
    found = room.found
    waiting = 0
    for s in range(M):
        C[s] = 0.0
        head[s] = 0
        count[s] = 0 if first_running else 1
        q[s, 0, TIME] = 0.0
        q[s, 0, BASE] = 0.0
        q[s, 0, OVER] = 0.0
        q[s, 0, BORN] = 0
        first[s] = 0.0
        tail[s] = 0.0 if free_end or lam[s] * candidate_hour(course, n_cand, s, end) < 1.0 else np.inf
        tail_index[s] = 0

    row = 0
    found[2] = -1
    for j in range(n_cand + 1):
        at_end = j == n_cand
        c = end if at_end else cand_time[j]
        stop = L if at_end else cand_row[j]

        # starts join the queues before anything behind them is asked for
        if waiting > 0 and (at_end or not one_a_gap or cand_row[j] != cand_row[j - 1]):
            for s in range(M):
                now = candidate_hour(course, j, s, c)
                for i in range(waiting):
                    born = j - waiting + i
                    base = W[i, s] - C[s]
                    if base == np.inf:
                        continue
                    at = candidate_hour(course, born, s, cand_time[born])
                    left = candidate_hour(course, n_cand, s, end) - at
                    if base < tail[s] and (free_end or lam[s] * left < 1.0):
                        tail[s] = base
                        tail_index[s] = born + 1
                    n = count[s]
                    over = 0.0
                    if n > 0:
                        back = (head[s] + n - 1) & mask
                        past = at - q[s, back, TIME]
                        lead = q[s, back, BASE] - base + lam[s] * past  # A of the back less its own
                        if lead <= 0.0:
                            continue
                        # e^lead - 1 is more than this: before anything is asked, the start overtakes the back, which
                        # has overtaken all others by then
                        soon = SURE * (now - at) * lead * (1.0 + lead * (0.5 + lead / 6.0))
                        if past < soon and (n == 1 or q[s, back, OVER] <= now):
                            n = 0
                        else:
                            over = _overtakes(at, past, lead)
                            while n > 1 and over <= q[s, back, OVER]:
                                n -= 1
                                back = (head[s] + n - 1) & mask
                                past = at - q[s, back, TIME]
                                over = _overtakes(at, past, q[s, back, BASE] - base + lam[s] * past)
                        if n > mask:
                            return -np.inf
                    new = (head[s] + n) & mask
                    q[s, new, TIME] = at
                    q[s, new, BASE] = base
                    q[s, new, OVER] = over
                    q[s, new, BORN] = born + 1
                    count[s] = n + 1
            waiting = 0

        while row < stop:
            for s in range(M):
                x = cost[row, s]
                if x == np.inf:
                    count[s] = 0
                    first[s] = np.inf
                    tail[s] = np.inf
                    C[s] = 0.0
                else:
                    C[s] += x
                    if C[s] > FOLD:
                        # charge what has run up to the starts that ran it up: later ones keep their digits
                        for i in range(count[s]):
                            q[s, (head[s] + i) & mask, BASE] += C[s]
                        tail[s] += C[s]
                        first[s] += C[s]
                        C[s] = 0.0
            row += 1

        alive = False
        for s in range(M):
            d = np.inf
            start = 0
            n = count[s]
            now = candidate_hour(course, j, s, c)
            if n > 0:
                front = head[s]
                while n > 1 and q[s, (front + 1) & mask, OVER] <= now:
                    front = (front + 1) & mask
                    n -= 1
                head[s] = front
                count[s] = n
                d = q[s, front, BASE] + C[s] + complete_cost(lam[s] * (now - q[s, front, TIME]))
                start = int(q[s, front, BORN])
            if first_running:
                v = first[s] + C[s] + running_cost(lam[s] * now)
                if v <= d:
                    d = v
                    start = 0
            if at_end:
                v = tail[s] + C[s]
                if v <= d:
                    d = v
                    start = tail_index[s]
                last_start[s] = start
            else:
                from_start[j, s] = start
            D[s] = d
            # a state that cannot be left, or was entered at this instant, has no end of a dwell, but lives on
            if d < np.inf or n > 0:
                alive = True
        if at_end:
            break
        forced = row < L and FORCES[kinds[row]] and (j + 1 == n_cand or cand_row[j + 1] != row)
        if not alive:
            found[2] = row + 1 if forced else row
            return np.inf

        gap = min(max(stop - 1, 0), into.shape[0] - 1)
        if M < MANY:
            for r in range(M):
                best = D[0] + into[gap, r, 0]
                before = 0
                for s in range(1, M):
                    v = D[s] + into[gap, r, s]
                    if v < best:
                        best = v
                        before = s
                W[waiting, r] = best
                from_state[j, r] = before
        else:
            jump_from_likely(D, into[gap], kept, W[waiting], from_state[j])
        if forced:
            alive = False
            for s in range(M):
                count[s] = 0
                first[s] = np.inf
                tail[s] = np.inf
                alive = alive or W[waiting, s] < np.inf
            if not alive:
                found[2] = row + 1
                return np.inf
        waiting += 1

    best = np.inf
    for s in range(M):
        if D[s] < best:
            best = D[s]
            found[0] = s
            found[1] = last_start[s]
    if best == np.inf:
        found[2] = L
    return best


@njit(**LEAF)
def trace_back(room, states, starts, rows):
    """Write the dwells of the best path (OUT: states, starts, rows); returns their number."""
    from_start, from_state = room.from_start, room.from_state
    n = 1
    s, i = room.found[0], room.found[1]
    while i > 0:
        s = from_state[i - 1, s]
        i = from_start[i - 1, s]
        n += 1
    s, i = room.found[0], room.found[1]
    k = n - 1
    while i > 0:
        states[k] = s
        starts[k] = room.cand_time[i - 1]
        rows[k] = room.cand_row[i - 1]
        s = from_state[i - 1, s]
        i = from_start[i - 1, s]
        k -= 1
    states[0] = s
    starts[0] = 0.0
    rows[0] = 0
    return n
