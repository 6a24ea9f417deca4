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

from ..ahead import awaited
from ..jit import LEAF
from ..kinds import FORCES
from ..model.objective import complete_cost, running_cost
from .bounds import find_moves
from .candidates import SPREAD
from .clock import candidate_hour

# Observation costs run up to this before they are charged to the starts that ran them up.
FOLD = 1000.0
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
    costs : (4, M) and places : (6, M), as `best_path` names them.
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


def make_room(n: int, M: int, queue: int) -> Room:
    """Room for n candidates and M states."""
    return Room(
        np.empty(n), np.empty(n, np.int64), np.empty((n, M), np.int32), np.empty((n, M), np.int16),
        np.empty((M, queue, 4)), np.empty((4, M)), np.zeros((6, M), np.int64),
        np.empty((SPREAD, M)), np.zeros(3, np.int64),
    )  # fmt: skip


def widen(room):
    """The same room with queues twice as long."""
    M, queue = room.queues.shape[:2]
    return Room(
        room.cand_time, room.cand_row, room.from_start, room.from_state, np.empty((M, 2 * queue, 4)),
        room.costs, room.places, room.waiting, room.found,
    )  # fmt: skip


@njit(forceinline=True, **LEAF)
def _overtakes(at, past, lead):
    """When a start at a time, `past` after another one, costs less for good, by its lead in A."""
    return at + past / (np.exp(lead) - 1.0) if lead < SOON else at


@njit(forceinline=True, **LEAF)
def _dwell(q, head, count, first, C, s, now, lam, first_running):
    """Cost of the best dwell in s that ends now, by its clock, and its start; starts that were overtaken go (OUT)."""
    d = np.inf
    start = 0
    n = count[s]
    if n > 0:
        front, mask = head[s], q.shape[1] - 1
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
    return d, start


@njit(**LEAF)
def leave_out(D, into, kept, n):
    """How many of the n kept states (IN, OUT) a best jump may come from, by what their dwells cost.

    Jumps into every state can be had from the two states whose dwells cost least, at `worth` or less; a jump costs
    nothing at best, so that none comes from a state whose dwell alone costs more.
    """
    likely, second = kept[0], kept[n - 1]
    for k in range(n):
        s = kept[k]
        if D[s] < D[likely]:
            likely, second = s, likely
        elif s != likely and D[s] < D[second]:
            second = s
    worth = -np.inf
    for r in range(D.shape[0]):
        worth = max(worth, min(D[likely] + into[r, likely], D[second] + into[r, second]))
    m = 0
    for k in range(n):
        kept[m] = kept[k]
        m += D[kept[k]] <= worth
    return m


@awaited
@njit(**LEAF)
def best_path(
    cost, kinds, end, lam, into, course, first_running, free_end, one_a_gap, n_cand, room, bounds, limit
):  # fmt: skip
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
    bounds, limit : `bounds.Bounds` of paths that jump once a gap, and what paths that are looked for cost at most; an
        infinite limit leaves nothing out, and asks for no bounds

    Returns
    -------
    value : float
        Cost of the best path; inf if there is none within the limit; -inf if a queue needs more room than there is.
    """
    L, M = cost.shape
    q = room.queues
    mask = q.shape[1] - 1
    cand_time, cand_row = room.cand_time, room.cand_row
    head, count, tail_index = room.places[0], room.places[1], room.places[2]
    # states that jumps may lead from, into, and, of the first, those that a best jump may come from
    sources, targets, kept = room.places[3], room.places[4], room.places[5]
    # observation cost since the last reset or fold; best cost with a dwell that ends at this candidate; best start
    # still free of charge at the end; the window's start
    C, D, tail, first = room.costs[0], room.costs[1], room.costs[2], room.costs[3]
    W = room.waiting  # best cost with a jump into the state at a candidate, not yet in the queues
    from_start, from_state = room.from_start, room.from_state
    found = room.found
    waiting = 0
    n_sources, n_targets = M, M
    for s in range(M):
        sources[s] = s
        targets[s] = s
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
            for t in range(n_targets):
                s = targets[t]
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
            much = False
            for s in range(M):
                C[s] += cost[row, s]
                much |= C[s] > FOLD
            if much:
                for s in range(M):
                    if cost[row, s] == np.inf:
                        count[s] = 0
                        first[s] = np.inf
                        tail[s] = np.inf
                        C[s] = 0.0
                    elif C[s] > FOLD:
                        # charge what has run up to the starts that ran it up: later ones keep their digits
                        for i in range(count[s]):
                            q[s, (head[s] + i) & mask, BASE] += C[s]
                        tail[s] += C[s]
                        first[s] += C[s]
                        C[s] = 0.0
            row += 1

        if at_end:
            break
        gap = min(max(stop - 1, 0), into.shape[0] - 1)
        if limit < np.inf and (j == 0 or stop != cand_row[j - 1]):
            n_sources, n_targets = find_moves(into, stop, gap, limit, bounds, sources, targets)
        alive = False
        for i in range(n_sources):
            s = sources[i]
            now = candidate_hour(course, j, s, c)
            D[s], from_start[j, s] = _dwell(q, head, count, first, C, s, now, lam, first_running)
            alive = alive or D[s] < np.inf
        if not alive:
            # a state that cannot be left, or was entered at this instant, has no end of a dwell, but lives on
            for s in range(M):
                alive = alive or count[s] > 0 or (first_running and first[s] < np.inf)
        forced = row < L and FORCES[kinds[row]] and (j + 1 == n_cand or cand_row[j + 1] != row)
        if not alive:
            found[2] = row + 1 if forced else row
            return np.inf

        n = n_sources
        for i in range(n):
            kept[i] = sources[i]
        if n >= MANY:
            n = leave_out(D, into[gap], kept, n)
        for t in range(n_targets):
            r = targets[t]
            best = np.inf
            before = 0
            for k in range(n):
                v = D[kept[k]] + into[gap, r, kept[k]]
                if v < best:
                    best = v
                    before = kept[k]
            W[waiting, r] = best
            from_state[j, r] = before
        if forced:
            alive = False
            for s in range(M):
                count[s] = 0
                first[s] = np.inf
                tail[s] = np.inf
            for t in range(n_targets):
                alive = alive or W[waiting, targets[t]] < np.inf
            if not alive:
                found[2] = row + 1
                return np.inf
        waiting += 1

    best = np.inf
    for s in range(M):
        now = candidate_hour(course, n_cand, s, end)
        d, start = _dwell(q, head, count, first, C, s, now, lam, first_running)
        if tail[s] + C[s] <= d:
            d = tail[s] + C[s]
            start = tail_index[s]
        if d < best:
            best = d
            found[0] = s
            found[1] = start
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
