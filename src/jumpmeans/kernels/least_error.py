"""The trajectory that errs least: least expected time in the wrong state, given all (derivation, eq. 19).

Where the process is in state s at time t with probability p_s(t), a trajectory errs for ∫ (1 - p_s(t)) dt on average.
Each gap between rows is cut into cells, p is carried to their edges from both sides (exact there, by the trapezium
rule in between), and the best states are found by dynamic programming over the cells: a jump has a price in units of
time, jumps that cannot happen are left out, and so is, at a row, a state that could not have shown it. A jump then
moves from the edge of its cell to where the two probabilities cross. A barred gap is one cell without jumps inside; a
row that is entered must have its jump at that instant, and after a barred gap one may lie there.

Cells beside the rows are 1/8 of the fastest state's mean dwell, those further in wider by 1/4 of the way there: what
is left of a row's influence changes no faster. A gap has at least 8, and 4 for each jump of the longest way between
two states. On 300 random processes the integral is off by 0.2 % of the time at most, and the path costs at most 2e-7
of the time more than that on a grid 16 times as fine: crossings make up for the grid.

Time: O(M²) a cell, and about max(8, 9 ln(1 + z)) cells in a gap of z mean dwells of the fastest state. Memory: 24 M
bytes a row and 2 M a cell, of one sequence at a time.
"""

import numpy as np
from numba import njit

from ..arrays import Floats
from ..jit import JIT
from ..kinds import BARS, FORCES, PINS, SNAPSHOT
from .forward_backward import (
    carry,
    filter_sequence,
    future_ratio,
    hold,
    is_barred,
    is_pinned,
    land,
    smooth_sequence,
)
from .stats import label_rows

FIRST_CELL = 0.125
GROWTH = 0.25
LEAST_CELLS = 8
CELLS_PER_JUMP = 4
# Of a jump, in mean dwells. For nothing, noise is followed with up to twice the jumps and no less error; at twice this
# price states behind noisy symbols lose most of what they gain on the path of the objective.
PRICE = 1.0 / 15.0
# Crossings are found to this share of two cells.
CLOSE = 1e-10
MAX_STEPS = 60


def jump_prices(Q: Floats) -> Floats:
    """(M, M) price of each jump in units of time; inf for those that cannot happen.

    One price for all, a share of the mean dwell (by the mean rate of the states that can be left): where prices differ,
    detours may pay.
    """
    rates = -np.diag(Q)
    left = rates[rates > 0.0]
    return np.where(Q > 0.0, PRICE / left.mean() if len(left) else 0.0, np.inf)


@njit(**JIT)
def count_cells(z, least):
    """No gap of z mean dwells of the fastest state is cut into more cells by `cut_gap`."""
    return 2 * (least + 3 + int(np.log1p(0.5 * min(z, 1e300) * GROWTH / FIRST_CELL) / np.log1p(GROWTH)))


@njit(**JIT)
def cut_gap(lo, hi, z, least, edges):
    """Edges of the cells of the gap (lo, hi] of z mean dwells of the fastest state, OUT; returns the number of cells.

    At least `least` of them, as far as there are numbers between lo and hi.
    """
    widest = 1.0 / least
    z = min(z, 1e300)
    even = z * widest <= FIRST_CELL
    half = 0
    edges[0] = 0.0
    while edges[half] < 0.5:
        width = widest if even else min(FIRST_CELL / z + GROWTH * edges[half], widest)
        half += 1
        edges[half] = edges[half - 1] + width
    scale = 0.5 / edges[half]
    for k in range(1, half + 1):
        edges[k] *= scale
    for k in range(half):
        edges[2 * half - k] = 1.0 - edges[k]
    n = 0
    edges[0] = lo
    for k in range(1, 2 * half + 1):
        time = lo + edges[k] * (hi - lo) if k < 2 * half else hi
        if time > edges[n] and (time < hi or k == 2 * half):
            n += 1
            edges[n] = time
    return n


@njit(**JIT)
def _chances(left, right, p):
    """P (M,) OUT, of the past's word and the future's; as it was if both together say nothing."""
    norm = 0.0
    for s in range(p.shape[0]):
        norm += left[s] * right[s]
    if norm > 0.0:
        for s in range(p.shape[0]):
            p[s] = left[s] * right[s] / norm


@njit(**JIT)
def _carry_scaled(v, t, rate, B, table, side, out, work):
    """As `carry`, with a largest entry of 1."""
    carry(v, t, rate, B, table, side, out, work)
    top = out.max()
    if top > 0.0:
        for s in range(out.shape[0]):
            out[s] /= top


@njit(**JIT)
def _future(kind, posterior, ahead, rate, B, word, work):
    """What the future says of each state just before a row of some kind, (M,) OUT, up to a common factor."""
    future_ratio(posterior, ahead, word)
    if is_pinned(kind):
        land(word, kind, rate, B, 1, work)


@njit(forceinline=True, **JIT)
def _move(V, prices, may_stay, may_jump, U, source):
    """Least cost behind a point, U (M,) OUT, given V before it, and the state that it comes from, source (M,) OUT."""
    M = V.shape[0]
    for s in range(M):
        U[s] = V[s] if may_stay else np.inf
        source[s] = s
    if may_jump:
        for r in range(M):
            if V[r] < np.inf:
                for s in range(M):
                    if V[r] + prices[r, s] < U[s]:
                        U[s] = V[r] + prices[r, s]
                        source[s] = r


@njit(**JIT)
def search_sequence(
    tau, kinds, end, log_density, pi, filtered, ahead, posterior, law, lams, rates, Bs, tables, prices, least,
    from_state, point_time, point_row, edges, behind, work,
):  # fmt: skip
    """Best states over the cells of one sequence; law (L + 1,): which of the laws holds over each gap.

    from_state (points, M), point_time, point_row (points,) OUT: at every edge but the window's start, the state before
    it on the best way to each state behind it. Returns the number of points, the last state and the cost of the way.
    """
    L, M = log_density.shape
    U, V = np.zeros(M), np.empty(M)  # least cost so far, with the jump at this point and without
    p, before, v, w = np.empty(M), np.empty(M), np.empty(M), np.empty(M)
    for s in range(M):
        if pi[s] == 0.0:
            U[s] = np.inf
    n = 0
    for row in range(L + 1):
        lo = tau[row - 1] if row > 0 else 0.0
        hi = tau[row] if row < L else end
        kind = kinds[row] if row < L else np.int8(SNAPSHOT)
        lam, rate, B, table = lams[law[row]], rates[law[row]], Bs[law[row]], tables[law[row]]
        # at its end, a gap has room for a jump, unless the next row is of the same instant and has one itself
        may_jump = (
            row < L and (PINS[kind] or not BARS[kind]) and not (kind == SNAPSHOT and row + 1 < L and tau[row + 1] == hi)
        )
        may_stay = not FORCES[kind]
        n_cells = 0
        if hi > lo:
            barred = is_barred(kind)
            if barred:
                n_cells = 1
                edges[0] = lo
                edges[1] = hi
            else:
                n_cells = cut_gap(lo, hi, rate * (hi - lo), least, edges)
            if row < L:
                _future(kind, posterior[row], ahead[row], rate, B, behind[n_cells], work)
            else:
                behind[n_cells] = 1.0
            v[:] = filtered[row - 1] if row > 0 else pi
            if barred:
                hold(behind[1], hi - lo, lam, v, behind[0])
            else:
                for k in range(n_cells - 1, -1, -1):
                    _carry_scaled(behind[k + 1], edges[k + 1] - edges[k], rate, B, table, 1, behind[k], work)
            before[:] = 1.0 / M
            _chances(v, behind[0], before)
            for k in range(1, n_cells + 1):
                t = edges[k] - edges[k - 1]
                p[:] = before
                if not barred:
                    _carry_scaled(v, t, rate, B, table, 0, w, work)
                    v[:] = w
                    _chances(v, behind[k], p)
                for s in range(M):
                    V[s] = U[s] + t * (1.0 - 0.5 * (before[s] + p[s]))
                    before[s] = p[s]
                point_time[n] = edges[k]
                point_row[n] = row
                if k < n_cells:
                    _move(V, prices, True, True, U, from_state[n])
                else:
                    _move(V, prices, may_stay, may_jump, U, from_state[n])
                n += 1
        elif is_pinned(kind):
            V[:] = U
            point_time[n] = hi
            point_row[n] = row
            _move(V, prices, may_stay, may_jump, U, from_state[n])
            n += 1
        if row < L:
            for s in range(M):
                if log_density[row, s] == -np.inf:
                    U[s] = np.inf
    last = 0
    for s in range(1, M):
        # a jump at the very end gains nothing, and nothing is lost if it is free
        if U[s] < U[last] or (U[s] == U[last] and n > 0 and from_state[n - 1, s] == s):
            last = s
    return n, last, U[last]


@njit(**JIT)
def _lead(lo, hi, u, past, future, old, new, rate, B, table, left, right, p, work):
    """How much likelier the new state is than the old one at time u of the gap (lo, hi]."""
    carry(past, u - lo, rate, B, table, 0, left, work)
    carry(future, hi - u, rate, B, table, 1, right, work)
    _chances(left, right, p)
    return p[new] - p[old]


@njit(**JIT)
def find_crossing(lo, hi, low, high, start, past, future, old, new, rate, B, table, left, right, p, work):
    """Where, between low and high, the new state becomes the likelier one: the best jump time; `start` if nowhere."""
    p[:] = 0.0
    at_low = _lead(lo, hi, low, past, future, old, new, rate, B, table, left, right, p, work)
    at_high = _lead(lo, hi, high, past, future, old, new, rate, B, table, left, right, p, work)
    if at_low >= 0.0 or at_high <= 0.0:
        return start
    near = CLOSE * (high - low)
    # false position; the end that stays counts half, so that both ends move
    for _ in range(MAX_STEPS):
        u = low + (high - low) * at_low / (at_low - at_high)
        if not low < u < high:
            break
        lead = _lead(lo, hi, u, past, future, old, new, rate, B, table, left, right, p, work)
        if lead < 0.0:
            low, at_low = u, lead
            at_high *= 0.5
        else:
            high, at_high = u, lead
            at_low *= 0.5
        if high - low <= near or lead == 0.0:
            break
    return high


@njit(**JIT)
def filter_under(tau, kinds, log_density, pi, law, lams, rates, Bs, tables, filtered, ahead, work):
    """As `filter_sequence`, under the law of each gap: the row that the process cannot produce, or -1."""
    before = pi
    one = np.empty(1)
    for row in range(tau.shape[0]):
        one[0] = tau[row] - (tau[row - 1] if row > 0 else 0.0)
        g, own = law[row], slice(row, row + 1)
        _, died = filter_sequence(
            one, kinds[own], log_density[own], before, lams[g], rates[g], Bs[g], tables[g], filtered[own], ahead[own],
            work,
        )  # fmt: skip
        if died >= 0:
            return row
        before = filtered[row]
    return -1


@njit(**JIT)
def smooth_under(tau, kinds, posterior, ahead, law, lams, rates, Bs, tables, ratio, back, work):
    """As `smooth_sequence`, under the law of each gap."""
    for row in range(tau.shape[0] - 2, -1, -1):
        g, own = law[row + 1], slice(row, row + 2)
        smooth_sequence(
            tau[own], kinds[own], posterior[own], ahead[own], lams[g], rates[g], Bs[g], tables[g], ratio, back, work
        )


@njit(**JIT)
def least_error_block(tau, kinds, offsets, ends, log_density, pi, laws, gap_laws, prices, jumps_needed):
    """The trajectory that errs least, of every sequence of a block.

    Parameters
    ----------
    tau, offsets, ends : as in `sweep_block`
    kinds : (n,) how each row was seen, a first row at the start of its window as a snapshot
    log_density : (n, M), zero rows where nothing was observed
    pi : (M,) of the first state
    laws : rate (G,), B, table, n_terms and λ of each law, tables as in `smooth_block` with one more axis in front
    gap_laws : (n + S,) which law holds over the gap before each row, then over those to the ends of the windows
    prices : (M, M) of each jump, in units of time; inf for those that cannot happen and on the diagonal
    jumps_needed : most jumps that the shortest way between two states takes

    Returns
    -------
    where : (2,) int, sequence and row that the process cannot produce; -1 if all went well
    counts : (S,) dwells of each sequence
    states, starts, rows : (Σ counts,) dwells of all of them, as in `sweep_block`, without room between sequences
    row_states : (n,)
    cost : (S,) expected time in the wrong state plus the price of the jumps, on the grid
    """
    rates, Bs, tables, _, lams = laws
    M = pi.shape[0]
    n_rows = tau.shape[0]
    S = ends.shape[0]
    least = max(LEAST_CELLS, CELLS_PER_JUMP * jumps_needed)
    longest, most_cells, most_points = 1, 1, 1
    for i in range(S):
        first, last = offsets[i], offsets[i + 1]
        longest = max(longest, last - first)
        points = 0
        for row in range(first, last + 1):
            lo = tau[row - 1] if row > first else 0.0
            rate = rates[gap_laws[row if row < last else n_rows + i]]
            cells = count_cells(rate * ((tau[row] if row < last else ends[i]) - lo), least)
            most_cells = max(most_cells, cells)
            points += cells
        most_points = max(most_points, points)
    filtered, ahead, posterior = np.empty((longest, M)), np.empty((longest, M)), np.empty((longest, M))
    from_state = np.empty((most_points, M), np.int16)
    point_time, point_row = np.empty(most_points), np.empty(most_points, np.int64)
    edges, behind = np.empty(most_cells + 1), np.empty((most_cells + 1, M))
    jump_points, law = np.empty(most_points, np.int64), np.empty(longest + 1, np.int64)
    work, ratio, back, left, p = np.empty((2, M)), np.empty(M), np.empty(M), np.empty(M), np.empty(M)

    where = np.full(2, -1, np.int64)
    counts, cost = np.zeros(S, np.int64), np.zeros(S)
    row_states = np.zeros(tau.shape[0], np.int32)
    room = tau.shape[0] + S
    states, starts, rows = np.empty(room, np.int32), np.empty(room), np.empty(room, np.int32)
    total = 0
    for i in range(S):
        first, last = offsets[i], offsets[i + 1]
        L = last - first
        tau_i, kinds_i = tau[first:last], kinds[first:last]
        law[:L] = gap_laws[first:last]
        law[L] = gap_laws[n_rows + i]
        died = filter_under(
            tau_i, kinds_i, log_density[first:last], pi, law, lams, rates, Bs, tables, filtered, ahead, work
        )
        if died < 0:
            posterior[:L] = filtered[:L]
            smooth_under(tau_i, kinds_i, posterior[:L], ahead, law, lams, rates, Bs, tables, ratio, back, work)
            n_points, s, cost[i] = search_sequence(
                tau_i, kinds_i, ends[i], log_density[first:last], pi, filtered, ahead, posterior,
                law, lams, rates, Bs, tables, prices, least, from_state, point_time, point_row, edges, behind, work,
            )  # fmt: skip
            if cost[i] == np.inf:
                died = L - 1
        if died >= 0:
            where[0] = i
            where[1] = died
            break

        n_jumps = 0
        state = s
        for k in range(n_points - 1, -1, -1):
            if from_state[k, state] != state:
                state = from_state[k, state]
                jump_points[n_jumps] = k
                n_jumps += 1
        if total + n_jumps + 1 > room:
            room = 2 * (total + n_jumps + 1)
            states, starts, rows = _longer(states, room), _longer(starts, room), _longer(rows, room)
        counts[i] = n_jumps + 1
        states[total] = state
        starts[total] = 0.0
        rows[total] = 0
        # the states, from the last to the first, then the times, from the first to the last
        state = s
        for j in range(n_jumps):
            states[total + n_jumps - j] = state
            state = from_state[jump_points[j], state]
        for j in range(1, n_jumps + 1):
            k = jump_points[n_jumps - j]
            row = point_row[k]
            rate, B, table = rates[law[row]], Bs[law[row]], tables[law[row]]
            lo = tau_i[row - 1] if row > 0 else 0.0
            hi = tau_i[row] if row < L else ends[i]
            low = max(starts[total + j - 1], point_time[k - 1] if k > 0 and point_row[k - 1] == row else lo)
            at_row = k + 1 == n_points or point_row[k + 1] != row
            high = hi if at_row else point_time[k + 1]
            if j < n_jumps:
                high = min(high, point_time[jump_points[n_jumps - j - 1]])
            rows[total + j] = row
            if at_row and row < L and is_pinned(kinds_i[row]):
                starts[total + j] = hi
                continue
            if row < L:
                _future(kinds_i[row], posterior[row], ahead[row], rate, B, ratio, work)
            else:
                ratio[:] = 1.0
            starts[total + j] = find_crossing(
                lo, hi, low, high, point_time[k], filtered[row - 1] if row > 0 else pi, ratio,
                states[total + j - 1], states[total + j], rate, B, table, left, back, p, work,
            )  # fmt: skip
        label_rows(states[total:], rows[total:], counts[i], row_states[first:last])
        total += counts[i]
    return where, counts, states[:total], starts[:total], rows[:total], row_states, cost


@njit(**JIT)
def _longer(a, room):
    out = np.empty(room, a.dtype)
    out[: a.shape[0]] = a
    return out
