"""The exact decoder one row at a time, for many sequences at once, and what it is judged by: the same search offline.

Candidates are spread evenly over each gap as soon as the row behind it comes, so that those of a prefix are those of
the whole. For each state of each sequence two queues hold the starts that may still be the best one, oldest first: for
dwells that end at a candidate (cost h, as in `decode.best_path`), and for the dwell that still runs (cost g). Both
costs are convex, so of two starts the later one, once ahead, stays ahead: queries pop from the front, births from the
back, and each start is handled once. Where the dwell began is all that must be kept of a start.
"""

import numpy as np
from numba import njit

from ..jit import JIT
from ..model.objective import complete_cost, running_cost
from .decode import FOLD, QUEUE, make_room, place_candidates, trace_back, widen
from .forward_backward import carry
from .sweep import Task, decode

# Fields of a start in a queue: when it began, its cost less what its state has run up since, when its turn comes.
TIME, BASE, TURN = 0, 1, 2
# Queues: of dwells that end at a candidate, and of the running one.
COMPLETE, RUNNING = 0, 1


@njit(inline="always", **JIT)
def _complete_turn(at, base, lam, time, old):
    """When a start at `at` overtakes an older one, for dwells that end; inf if never (derivation, eq. 6)."""
    lead = old - base + lam * (at - time)
    return at + (at - time) / np.expm1(lead) if lead > 0.0 else np.inf


@njit(inline="always", **JIT)
def _running_turn(at, base, lam, time, old):
    """When a start at `at` overtakes an older one, for dwells that run; inf if never, `at` if at once."""
    behind = base - old
    a = lam * (at - time)
    if behind < 0.0:
        return at
    if behind >= a:
        return np.inf
    z = a / np.expm1(a - behind)  # both have outlasted their mean
    if z >= 1.0:
        return at + z / lam
    y = 1.0 + behind + np.sqrt(2.0 * behind)  # the older one alone has: h(y) = behind, from above
    for _ in range(50):
        if y <= 1.0:
            break
        step = (y - np.log(y) - 1.0 - behind) * y / (y - 1.0)
        y -= step
        if step <= 1e-15 * y:
            break
    return max(at, time + y / lam)


@njit(inline="always", **JIT)
def _push(q, head, n, kind, at, base, lam):
    """Add a start to a queue q (K, 3) that has room for K; returns the number of starts, and whether one was lost."""
    mask = q.shape[0] - 1
    lost = 0
    turn = 0.0
    while n > 0:
        back = (head + n - 1) & mask
        if kind == COMPLETE:
            turn = _complete_turn(at, base, lam, q[back, TIME], q[back, BASE])
        else:
            turn = _running_turn(at, base, lam, q[back, TIME], q[back, BASE])
        if turn == np.inf:
            return n, lost
        if turn <= at or (n > 1 and turn <= q[back, TURN]):
            n -= 1
        elif n > mask:  # no room: the newest gives way
            n -= 1
            lost = 1
        else:
            break
    new = (head + n) & mask
    q[new, TIME] = at
    q[new, BASE] = base
    q[new, TURN] = turn
    return n + 1, lost


@njit(inline="always", **JIT)
def _front(q, head, n, c):
    """Head and number of starts of a queue at time c: those overtaken are gone."""
    mask = q.shape[0] - 1
    while n > 1 and q[(head + 1) & mask, TURN] <= c:
        head = (head + 1) & mask
        n -= 1
    return head, n


@njit(inline="always", **JIT)
def _can_explain(cost, lam, X, counts, first_alive, jumps, reach):
    """Whether a state that the row allows can be reached within the gap; reach : (M,) scratch, jumps that it takes."""
    M = lam.shape[0]
    for s in range(M):
        reach[s] = 0 if counts[COMPLETE, s] > 0 or first_alive[s] else -1
    for jump in range(1, jumps + 1):
        grown = False
        for s in range(M):
            if 0 <= reach[s] < jump and (lam[s] > 0.0 or first_alive[s]):
                for r in range(M):
                    if X[s, r] < np.inf and reach[r] < 0:
                        reach[r] = jump
                        grown = True
        if not grown:
            break
    for s in range(M):
        if reach[s] >= 0 and cost[s] < np.inf:
            return True
    return False


@njit(**JIT)
def update_rows(
    first, slots, tau, cost, log_density, lam, X, jumps, first_running, free_end, pi, rate, B, table,
    least_margin, hold, may_grow,
    queues, heads, counts, C, first_base, first_alive, last, lost, alpha, shown, shown_since, waits, waits_since,
    state, best, since, margin, changed, probs, refused,
):  # fmt: skip
    """Take rows in their order, each of the sequence in its slot; times relative to the first of the sequence.

    first : row to begin with. Rows : slots, tau (n,), cost and log_density (n, M). Model : lam (M,), X (M, M), jumps
    (candidates per gap), first_running, free_end as in `best_path`; pi, rate, B, table as in `filter_sequence`.
    A change of state is told once its margin exceeds least_margin or it has held for `hold`.
    Kept for each slot (IN, OUT): queues (2, M, K, 3) with heads and counts (2, M); C, first_base, first_alive (M,);
    last (-1 before the first row); lost (number of starts for which there was no room); alpha (M,) filtered; what is
    told (shown, -1 before, since when) and what waits to be.
    OUT for each row: state, best, since, margin, changed, probs, refused (no state explains it; nothing was changed).

    Returns
    -------
    row : int
        The first one for which a queue may not have room, if that may be made, or n.
    """
    M = lam.shape[0]
    K = queues.shape[3]
    D = np.empty(M)
    W = np.empty(M)
    reach = np.empty(M, np.int64)
    work = np.empty((2, M))
    ahead = np.empty(M)
    for i in range(first, slots.shape[0]):
        k = slots[i]
        head, count, q = heads[k], counts[k], queues[k]
        for s in range(M):
            if may_grow and max(count[COMPLETE, s], count[RUNNING, s]) + jumps > K:
                return i
        c = tau[i]
        if last[k] < 0.0:
            for s in range(M):
                for kind in range(2):
                    head[kind, s] = 0
                    count[kind, s] = 0 if kind == COMPLETE and first_running else 1
                    q[kind, s, 0, TIME] = 0.0
                    q[kind, s, 0, BASE] = 0.0
                    q[kind, s, 0, TURN] = 0.0
                C[k, s] = 0.0
                first_base[k, s] = 0.0
                first_alive[k, s] = first_running
                alpha[k, s] = pi[s]
        if not _can_explain(cost[i], lam, X, count, first_alive[k], jumps if last[k] >= 0.0 else 0, reach):
            refused[i] = True
            continue
        if last[k] >= 0.0:
            lo = last[k]
            step = (c - lo) / (jumps + 1)
            before = lo
            for f in range(1, jumps + 1):
                at = lo + f * step
                if at <= lo:
                    at = c
                if at <= before:
                    continue
                before = at
                for s in range(M):
                    W[s] = np.inf
                    D[s] = np.inf
                    if count[COMPLETE, s] > 0:
                        h0, n = _front(q[COMPLETE, s], head[COMPLETE, s], count[COMPLETE, s], at)
                        head[COMPLETE, s] = h0
                        count[COMPLETE, s] = n
                        D[s] = q[COMPLETE, s, h0, BASE] + C[k, s]
                        D[s] += complete_cost(lam[s] * (at - q[COMPLETE, s, h0, TIME]))
                    if first_alive[k, s]:
                        D[s] = min(D[s], first_base[k, s] + C[k, s] + running_cost(lam[s] * at))
                for s in range(M):
                    if D[s] < np.inf:
                        for r in range(M):
                            W[r] = min(W[r], D[s] + X[s, r])
                for s in range(M):
                    if W[s] < np.inf:
                        base = W[s] - C[k, s]
                        for kind in range(2):
                            own = 0.0 if kind == RUNNING and free_end else lam[s]
                            n, gone = _push(q[kind, s], head[kind, s], count[kind, s], kind, at, base, own)
                            count[kind, s] = n
                            lost[k] += gone
        for s in range(M):
            x = cost[i, s]
            if x == np.inf:
                count[COMPLETE, s] = 0
                count[RUNNING, s] = 0
                first_alive[k, s] = False
                C[k, s] = 0.0
            else:
                C[k, s] += x
                if C[k, s] > FOLD:  # charged to the starts that ran it up: later ones keep their digits
                    for kind in range(2):
                        for m in range(count[kind, s]):
                            q[kind, s, (head[kind, s] + m) & (K - 1), BASE] += C[k, s]
                    first_base[k, s] += C[k, s]
                    C[k, s] = 0.0
        top, second = np.inf, np.inf
        b = -1
        begun = 0.0
        for s in range(M):
            if count[RUNNING, s] == 0:
                continue
            h0, n = _front(q[RUNNING, s], head[RUNNING, s], count[RUNNING, s], c)
            head[RUNNING, s] = h0
            count[RUNNING, s] = n
            value = q[RUNNING, s, h0, BASE] + C[k, s]
            if not free_end:
                value += running_cost(lam[s] * (c - q[RUNNING, s, h0, TIME]))
            if value < top:
                second = top
                top, b, begun = value, s, q[RUNNING, s, h0, TIME]
            elif value < second:
                second = value
        # filtered probabilities; NaN once the process cannot produce what was seen
        if last[k] >= 0.0:
            carry(alpha[k], c - last[k], rate, B, table, 0, ahead, work)
        else:
            ahead[:] = alpha[k]
        highest = -np.inf
        for s in range(M):
            if ahead[s] > 0.0:
                highest = max(highest, log_density[i, s])
        norm = 0.0
        for s in range(M):
            alpha[k, s] = ahead[s] * np.exp(log_density[i, s] - highest) if ahead[s] > 0.0 else 0.0 * ahead[s]
            norm += alpha[k, s]
        for s in range(M):
            alpha[k, s] = alpha[k, s] / norm if norm > 0.0 else np.nan
            probs[i, s] = alpha[k, s]
        last[k] = c
        # what is told
        if shown[k] < 0 or b == shown[k]:
            changed[i] = False
            shown[k] = b
            shown_since[k] = begun
            waits[k] = -1
        else:
            if waits[k] != b:
                waits[k] = b
                waits_since[k] = c
            changed[i] = top + least_margin < second or c - waits_since[k] >= hold
            if changed[i]:
                shown[k] = b
                shown_since[k] = begun
                waits[k] = -1
        state[i] = shown[k]
        since[i] = shown_since[k]
        best[i] = b
        margin[i] = second - top
    return slots.shape[0]


@njit(**JIT)
def decode_plainly(
    tau, seen, kinds, offsets, ends, cost, lam, X, jumps, first_running, free_end, dwell_offsets, states, starts, rows
):  # fmt: skip
    """Best trajectories over evenly spread candidates, jump times as they are: what `update_rows` tells, offline.

    Dwells (OUT), one sequence after the other: those of sequence i are dwell_offsets[i]:dwell_offsets[i + 1].

    Returns
    -------
    where : (2,) int
        Sequence without any path and the row where it died; -1 if all went well.
    """
    M = lam.shape[0]
    into = np.ascontiguousarray(X.T).reshape(1, M, M)
    where = np.full(2, -1, np.int64)
    none_time, none_row = np.empty(0), np.empty(0, np.int32)
    longest = 0
    for i in range(ends.shape[0]):
        longest = max(longest, offsets[i + 1] - offsets[i])
    room = make_room((jumps + 1) * (longest + 1), M, QUEUE)
    for i in range(ends.shape[0]):
        first, last = offsets[i], offsets[i + 1]
        task = Task(
            tau[first:last], seen[first:last], kinds[first:last], ends[i], cost[first:last], lam, into,
            None, first_running, free_end,
        )  # fmt: skip
        n = place_candidates(
            task.tau, task.seen, task.kinds, task.end, none_time, none_row, np.int64(0), jumps, jumps, np.bool_(False),
            room.cand_time, room.cand_row,
        )  # fmt: skip
        value = decode(task, np.bool_(False), n, room)
        while value == -np.inf:
            room = widen(room)
            value = decode(task, np.bool_(False), n, room)
        if value == np.inf:
            where[0] = i
            where[1] = room.found[2]
            return where
        a = dwell_offsets[i]
        dwell_offsets[i + 1] = a + trace_back(room, states[a:], starts[a:], rows[a:])
    return where
