"""The exact decoder one row at a time, for many sequences at once, and what it is judged by: the same search offline.

Candidates are spread evenly over each gap as soon as the row behind it comes, so that those of a prefix are those of
the whole. For each state of each sequence two queues hold the starts that may still be the best one, oldest first: for
dwells that end at a candidate (cost h, as in `decode.best_path`), and for the dwell that still runs (cost g). Both
costs are convex, so of two starts the later one, once ahead, stays ahead: queries pop from the front, births from the
back, and each start is handled once. Where the dwell began is all that must be kept of a start.
"""

from typing import Any

import numpy as np
from numba import njit

from ..jit import LEAF
from ..kinds import FORCES, SNAPSHOT
from ..model.objective import complete_cost, running_cost
from .bounds import REACH, make_bounds
from .candidates import place_candidates
from .decode import FOLD, QUEUE, make_room, trace_back, widen
from .forward_backward import absorb, arrive, is_barred, is_pinned
from .limit import bound
from .sweep import decode
from .task import Task, is_plain

# Fields of a start in a queue: when it began, its cost less what its state has run up since, when its turn comes.
TIME, BASE, TURN = 0, 1, 2
# Queues: of dwells that end at a candidate, and of the running one.
COMPLETE, RUNNING = 0, 1
# What is kept of a sequence besides: its last row (-1 before the first) and when the state told and the one that waits
# to be told began, when it opened, the margin; the two states, starts lost for want of room, the best state now, how
# the last row was seen. States are -1 for none.
LAST, SHOWN_SINCE, WAITS_SINCE, OPENED, MARGIN_NOW, CLOCKS = range(6)
SHOWN, WAITS, LOST, BEST_NOW, SEEN_AS, NOTES = range(6)
# What is said of a row: codes, and numbers, of which the probabilities are the rest.
STATE, BEST, CHANGED, REFUSED, CODES = range(5)
SINCE, MARGIN, PROBS = range(3)


@njit(forceinline=True, **LEAF)
def _complete_turn(at, base, lam, time, old):
    """When a start at `at` overtakes an older one, for dwells that end; inf if never (derivation, eq. 6)."""
    lead = old - base + lam * (at - time)
    return at + (at - time) / np.expm1(lead) if lead > 0.0 else np.inf


@njit(forceinline=True, **LEAF)
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


@njit(forceinline=True, **LEAF)
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


@njit(forceinline=True, **LEAF)
def _front(q, head, n, c):
    """Head and number of starts of a queue at time c: those overtaken are gone."""
    mask = q.shape[0] - 1
    while n > 1 and q[(head + 1) & mask, TURN] <= c:
        head = (head + 1) & mask
        n -= 1
    return head, n


@njit(forceinline=True, **LEAF)
def _candidates(lo, c, kind, jumps, at):
    """Where a jump may be in the gap (lo, c] before a row, at (jumps + 1,) OUT; those of `decode.place_candidates`.

    Returns their number; a pinned row has the last one at its very time.
    """
    n = 0
    if not is_barred(kind) and c > lo:
        step = (c - lo) / (jumps + 1)
        for f in range(1, jumps + 1):
            time = min(lo + f * step, c)
            if time <= lo:
                time = c
            if n == 0 or time > at[n - 1]:
                at[n] = time
                n += 1
    if is_pinned(kind) and (n == 0 or at[n - 1] < c):
        at[n] = c
        n += 1
    return n


@njit(forceinline=True, **LEAF)
def _ended(queue, heads, counts, s, at, lam, C, first):
    """Cost of the best dwell in s that ends at `at`, and the head and number of starts that are left."""
    D = np.inf
    h0, n = heads[s], counts[s]
    if n > 0:
        h0, n = _front(queue[s], h0, n, at)
        D = queue[s, h0, BASE] + C[s] + complete_cost(lam[s] * (at - queue[s, h0, TIME]))
    if first[s] < np.inf:
        D = min(D, first[s] + C[s] + running_cost(lam[s] * at))
    return D, h0, n


@njit(forceinline=True, **LEAF)
def _can_explain(cost, lam, X, queue, heads, counts, C, first, at, n, forced, alive, grown):
    """Whether a state that the row allows can be reached by jumps at at[:n], the last one forced or not.

    alive, grown : (M,) scratch.
    """
    M = lam.shape[0]
    stay = False
    for s in range(M):
        alive[s] = counts[RUNNING, s] > 0
        stay = stay or (alive[s] and cost[s] < np.inf)
    if stay and not forced:
        return True
    for j in range(n):
        last = forced and j == n - 1
        more = False
        for s in range(M):
            grown[s] = alive[s] and not last
        for s in range(M):
            if not alive[s]:
                continue
            if j == 0:  # later ones end dwells that began before them
                if _ended(queue, heads[COMPLETE], counts[COMPLETE], s, at[0], lam, C, first)[0] == np.inf:
                    continue
            elif lam[s] == 0.0 and first[s] == np.inf:
                continue
            for r in range(M):
                if X[s, r] < np.inf and not grown[r]:
                    grown[r] = True
                    more = True
        if not more and not last:  # no further jump leads anywhere else
            if not forced:
                break
            continue
        for s in range(M):
            alive[s] = grown[s]
    for s in range(M):
        if alive[s] and cost[s] < np.inf:
            return True
    return False


@njit(**LEAF)
def update_rows(
    begin, slots, tau, kinds, cost, log_density, lam, X, jumps, first_running, free_end, pi, rate, B, table, leave,
    least_margin, hold, may_grow, queues, rings, costs, clocks, notes, codes, numbers,
    at, scratch, flags,
):  # fmt: skip
    """Take rows in their order, each of the sequence in its slot; times relative to the first of the sequence.

    begin : row to begin with. Rows : slots, tau, kinds (n,), cost and log_density (n, M). Model : lam (M,), X (M, M),
    jumps (candidates per gap), first_running, free_end as in `best_path`; pi, rate, B, table, leave (M,), the rates
    of the process, as in `filter_sequence`.
    A change of state is told once its margin exceeds least_margin or it has held for `hold`.
    Kept for each slot (IN, OUT): queues (2, M, K, 3); rings (2, 2, M), their heads and numbers of starts; costs (3, M),
    run up since the last fold, of the dwell that began the window, and the filtered probabilities; clocks and notes by
    the names above.
    OUT for each row, by the names above: codes (n, 4), refused if no state explains the row (nothing was changed then);
    numbers (n, 2 + M). Scratch : at (jumps + 1,), scratch (5, M), flags (2, M) of bool.

    Returns
    -------
    row : int
        The first one for which a queue may not have room, if that may be made, or n.
    """
    M = lam.shape[0]
    K = queues.shape[3]
    D, W, ahead, work = scratch[0], scratch[1], scratch[2], scratch[3:]
    alive, grown = flags[0], flags[1]
    for i in range(begin, slots.shape[0]):
        k = slots[i]
        head, count, q = rings[k, 0], rings[k, 1], queues[k]
        C, first, alpha = costs[k, 0], costs[k, 1], costs[k, 2]
        clock, note = clocks[k], notes[k]
        c, lo, kind = tau[i], clock[LAST], kinds[i]
        opens = lo < 0.0
        for s in range(M):
            if may_grow and max(count[COMPLETE, s], count[RUNNING, s]) + jumps + is_pinned(kind) > K:
                return i
        n_at = 0
        if opens:
            kind = SNAPSHOT
            for s in range(M):
                for which in range(2):
                    head[which, s] = 0
                    count[which, s] = 0 if which == COMPLETE and first_running else 1
                    q[which, s, 0, TIME] = 0.0
                    q[which, s, 0, BASE] = 0.0
                    q[which, s, 0, TURN] = 0.0
                C[s] = 0.0
                first[s] = 0.0 if first_running else np.inf
        else:
            n_at = _candidates(lo, c, kind, jumps, at)
        forced = FORCES[kind]
        explained = _can_explain(
            cost[i], lam, X, q[COMPLETE], head, count, C, first, at, n_at, forced, alive, grown
        )  # fmt: skip
        codes[i, REFUSED] = not explained
        if not explained:
            continue
        for j in range(n_at):
            for s in range(M):
                W[s] = np.inf
                D[s], head[COMPLETE, s], count[COMPLETE, s] = _ended(
                    q[COMPLETE], head[COMPLETE], count[COMPLETE], s, at[j], lam, C, first
                )
            for s in range(M):
                if D[s] < np.inf:
                    for r in range(M):
                        W[r] = min(W[r], D[s] + X[s, r])
            if forced and j == n_at - 1:  # whatever was before has ended
                for s in range(M):
                    count[COMPLETE, s] = 0
                    count[RUNNING, s] = 0
                    first[s] = np.inf
            for s in range(M):
                if W[s] < np.inf:
                    base = W[s] - C[s]
                    for which in range(2):
                        own = 0.0 if which == RUNNING and free_end else lam[s]
                        n, gone = _push(q[which, s], head[which, s], count[which, s], which, at[j], base, own)
                        count[which, s] = n
                        note[LOST] += gone
        for s in range(M):
            x = cost[i, s]
            if x == np.inf:
                count[COMPLETE, s] = 0
                count[RUNNING, s] = 0
                first[s] = np.inf
                C[s] = 0.0
            else:
                C[s] += x
                if C[s] > FOLD:  # charged to the starts that ran it up: later ones keep their digits
                    for which in range(2):
                        for m in range(count[which, s]):
                            q[which, s, (head[which, s] + m) & (K - 1), BASE] += C[s]
                    first[s] += C[s]
                    C[s] = 0.0
        top, second = np.inf, np.inf
        b = -1
        begun = 0.0
        for s in range(M):
            if count[RUNNING, s] == 0:
                continue
            h0, n = _front(q[RUNNING, s], head[RUNNING, s], count[RUNNING, s], c)
            head[RUNNING, s] = h0
            count[RUNNING, s] = n
            value = q[RUNNING, s, h0, BASE] + C[s]
            if not free_end:
                value += running_cost(lam[s] * (c - q[RUNNING, s, h0, TIME]))
            if value < top:
                second = top
                top, b, begun = value, s, q[RUNNING, s, h0, TIME]
            elif value < second:
                second = value
        # filtered probabilities; NaN once the process cannot produce what was seen
        if opens:
            for s in range(M):
                ahead[s] = pi[s]
        else:
            arrive(alpha, c - lo, kind, leave, rate, B, table, ahead, work)
        if absorb(ahead, log_density[i], alpha) == -np.inf:
            for s in range(M):
                alpha[s] = np.nan
        for s in range(M):
            numbers[i, PROBS + s] = alpha[s]
        clock[LAST] = c
        note[SEEN_AS] = kind
        # what is told
        codes[i, CHANGED] = 0
        if note[SHOWN] < 0 or b == note[SHOWN]:
            note[SHOWN] = b
            clock[SHOWN_SINCE] = begun
            note[WAITS] = -1
        else:
            if note[WAITS] != b:
                note[WAITS] = b
                clock[WAITS_SINCE] = c
            if top + least_margin < second or c - clock[WAITS_SINCE] >= hold:
                codes[i, CHANGED] = 1
                note[SHOWN] = b
                clock[SHOWN_SINCE] = begun
                note[WAITS] = -1
        note[BEST_NOW] = b
        clock[MARGIN_NOW] = second - top
        codes[i, STATE] = note[SHOWN]
        codes[i, BEST] = b
        numbers[i, SINCE] = clock[SHOWN_SINCE]
        numbers[i, MARGIN] = second - top
    return slots.shape[0]


@njit(**LEAF)
def decode_on(
    i, tau, seen, kinds, offsets, ends, cost, lam, into, jumps, first_running, free_end, dwell_offsets, states, starts,
    rows, room, bounds, none, where,
):  # fmt: skip
    """Decode sequences from i on as far as there is room; returns the next one, their number if one has no path."""
    while i < ends.shape[0]:
        first, last = offsets[i], offsets[i + 1]
        task = Task(
            tau[first:last], seen[first:last], kinds[first:last], ends[i], cost[first:last], lam, into,
            None, first_running, free_end,
        )  # fmt: skip
        a = dwell_offsets[i]
        limit = np.inf
        plain = is_plain(task)
        if jumps == 1 and (plain or last - first <= REACH):
            states[a], starts[a], rows[a] = 0, 0.0, 0
            n, limit, only = bound(
                task, True, plain, states[a:], starts[a:], rows[a:], np.int64(1), True, True, 0.0, bounds
            )  # fmt: skip
            if only:
                i += 1
                dwell_offsets[i] = a + n
                continue
        n = place_candidates(
            task.tau, task.seen, task.kinds, task.end, none[0], none[1], np.int64(0), jumps, jumps, np.bool_(False),
            bounds.gaps, limit, room.cand_time, room.cand_row,
        )  # fmt: skip
        value = decode(task, np.bool_(False), n, room, bounds, limit)
        if value == -np.inf:
            return i
        if value == np.inf:
            where[0] = i
            where[1] = room.found[2]
            return ends.shape[0]
        dwell_offsets[i + 1] = a + trace_back(room, states[a:], starts[a:], rows[a:])
        i += 1
    return i


def decode_plainly(
    tau, seen, kinds, offsets, ends, cost, lam, X, jumps, first_running, free_end, dwell_offsets, states, starts, rows
) -> Any:  # fmt: skip
    """Best trajectories over evenly spread candidates, jump times as they are: what `update_rows` tells, offline.

    Dwells (OUT), one sequence after the other: those of sequence i are dwell_offsets[i]:dwell_offsets[i + 1].

    Returns
    -------
    where : (2,) int
        Sequence without any path and the row where it died; -1 if all went well.
    """
    M = len(lam)
    into = np.ascontiguousarray(X.T).reshape(1, M, M)
    longest = int(np.diff(offsets).max(initial=0))
    room = make_room((jumps + 1) * (longest + 1), M, QUEUE)
    bounds = make_bounds(longest, into)
    where, none = np.full(2, -1, np.int64), (np.empty(0), np.empty(0, np.int32))
    i = 0
    while i < len(ends):
        i = decode_on(
            i, tau, seen, kinds, offsets, ends, cost, lam, into, jumps, first_running, free_end,
            dwell_offsets, states, starts, rows, room, bounds, none, where,
        )  # fmt: skip
        if i < len(ends):
            room = widen(room)
    return where
