"""Slow, plain counterparts of everything that jumpmeans computes fast. Imports nothing from jumpmeans.

Times are relative to the start of the window. A dwell is (state, start, first row); a trajectory is three
lists `states, starts, rows`, and its last dwell runs to `end`. Candidates are (time, first row of the new
state), increasing in time.
"""

import decimal
import itertools
import math

import numpy as np
from scipy.linalg import expm
from scipy.optimize import brentq

# ------------------------------------------------------------------ objective


def h(z):
    """Cost of a complete dwell of z mean dwell times."""
    z = np.asarray(z, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(z > 0, z - np.log(np.where(z > 0, z, 1.0)) - 1.0, np.inf)


def g(z):
    """Cost of a running dwell."""
    z = np.asarray(z, dtype=float)
    return np.where(z < 1, 0.0, h(np.maximum(z, 1.0)))


def dwell_costs(states, starts, end, lam, first_running=False):
    """Costs of the complete dwells, and of the running ones, as two lists."""
    bounds = [*starts, end]
    complete, running = [], []
    for k, s in enumerate(states):
        z = lam[s] * (bounds[k + 1] - bounds[k])
        last = k == len(states) - 1
        if last or (k == 0 and first_running):
            running.append(float(g(z)))
        else:
            complete.append(float(h(z)))
    return complete, running


def path_cost(states, starts, rows, cost, end, lam, X, first_running=False):
    """Cost of one explicit trajectory: observations, jumps, dwells; inf if it is impossible."""
    terms = []
    row_bounds = [*rows, len(cost)]
    for k, s in enumerate(states):
        terms.extend(cost[row_bounds[k] : row_bounds[k + 1], s].tolist())
    terms.extend(float(X[s, r]) for s, r in itertools.pairwise(states))
    complete, running = dwell_costs(states, starts, end, lam, first_running)
    terms += complete + running
    return math.inf if math.inf in terms else math.fsum(terms)


def objective(
    sequences, rates, P, divergence, *, xi=1.0, a=0.0, b=0.0, alpha=0.0, emission_prior=0.0,
    first_running=False,
):  # fmt: skip
    """J of the objective as plain sums, by named term.

    sequences : list of (states, starts, rows, end, weight, values), values one entry per row
    divergence : function (value, state) -> weighted cost of the observation, 0 if missing
    emission_prior : cost of the emission's pseudo-counts
    """
    J = dict.fromkeys(("observations", "transitions", "dwells", "running_dwells"), 0.0)
    for states, starts, rows, end, weight, values in sequences:
        row_bounds = [*rows, len(values)]
        for k, s in enumerate(states):
            for value in values[row_bounds[k] : row_bounds[k + 1]]:
                J["observations"] += weight * divergence(value, s)
        for s, r in itertools.pairwise(states):
            J["transitions"] += weight * xi * -math.log(P[s][r])
        complete, running = dwell_costs(states, starts, end, rates, first_running)
        J["dwells"] += weight * sum(complete)
        J["running_dwells"] += weight * sum(running)
    left = [rate for rate in rates if rate > 0]
    J["rate_prior"] = sum(a * float(h(b * rate / a)) for rate in left) if a > 0 else b * sum(left)
    J["transition_prior"] = -xi * alpha * sum(math.log(p) for row in P for p in row if p > 0)
    J["emission_prior"] = emission_prior
    return J


def xlogx(x, y):
    """x ln(x/y) with 0 ln 0 = 0."""
    return 0.0 if x == 0 else (math.inf if y == 0 else x * math.log(x / y))


# d(x, parameter of the state) of each family of measurements
DIVERGENCE = {
    "gaussian": lambda x, m: 0.5 * (x - m) ** 2,
    "laplace": lambda x, m: abs(x - m),
    "poisson": lambda x, m: xlogx(x, m) - x + m,
    "exponential": lambda x, m: x / m - math.log(x / m) - 1.0,
    "bernoulli": lambda x, m: xlogx(x, m) + xlogx(1.0 - x, 1.0 - m),
}


# -------------------------------------------------------------------- decoder


def lawful(starts, rows, tau, kinds):
    """Whether jumps (times, and the first row of the new state) are where the kinds of rows let them be.

    Before a transition (1) none but at its time, at an entry (2) one for sure, before a held row (3) none.
    """
    jumps = list(zip(starts[1:], rows[1:], strict=True))
    for row, kind in enumerate(kinds):
        here = [time for time, r in jumps if r == row]
        if (kind == 1 and any(time != tau[row] for time in here)) or (kind == 3 and here):
            return False
        if kind == 2 and (not here or here[-1] != tau[row]):
            return False
    return True


def brute_force(cost, end, lam, X, first_running, cand_time, cand_row, may=lambda starts, rows: True):
    """Least cost over every subset of the candidates that `may` be and every sequence of states."""
    M = cost.shape[1]
    best, best_path = math.inf, None
    for n in range(len(cand_time) + 1):
        for chosen in itertools.combinations(range(len(cand_time)), n):
            starts = [0.0, *(float(cand_time[j]) for j in chosen)]
            rows = [0, *(int(cand_row[j]) for j in chosen)]
            if not may(starts, rows):
                continue
            for states in itertools.product(range(M), repeat=n + 1):
                value = path_cost(states, starts, rows, cost, end, lam, X, first_running)
                if value < best:
                    best, best_path = value, (list(states), starts, rows)
    return best, best_path


def decode(cost, end, lam, X, first_running, cand_time, cand_row, one_a_gap=False, forced=()):
    """Best trajectory by the plain O(n²) recursion over all pairs of candidates: value and path.

    one_a_gap : no two jumps before the same row. forced : candidates that no dwell may reach across.
    Every start carries its own sum of observation costs, so that nothing is ever subtracted.
    """
    L, M = cost.shape
    n = len(cand_time)
    times = np.concatenate([[0.0], cand_time])
    W = np.full((n + 1, M), np.inf)  # a jump into the state at this point; point 0 is the window's start
    W[0] = 0.0
    seen = np.zeros((n + 1, M))  # observation cost since this start
    from_start = np.zeros((n + 2, M), dtype=int)
    from_state = np.zeros((n + 2, M), dtype=int)
    row = 0
    for j in range(1, n + 2):
        at_end = j == n + 1
        c = end if at_end else times[j]
        for r in range(row, L if at_end else cand_row[j - 1]):
            seen[:j] += cost[r]
        row = L if at_end else cand_row[j - 1]
        z = lam * (c - times[:j, None])
        dwell = g(z) if at_end else h(z)
        if first_running:
            dwell[0] = g(z[0])
        value = W[:j] + seen[:j] + dwell
        if one_a_gap and not at_end:
            value[1:][np.asarray(cand_row)[: j - 1] == cand_row[j - 1]] = np.inf
        crossed = [i + 1 for i in forced if i + 1 < j]
        if crossed:
            value[: max(crossed)] = np.inf
        from_start[j] = value.argmin(axis=0)
        D = value.min(axis=0)
        if not at_end:
            into = D[:, None] + X
            from_state[j] = into.argmin(axis=0)
            W[j] = into.min(axis=0)
    s = int(D.argmin())
    if D[s] == np.inf:
        return math.inf, None
    states, starts, rows = [], [], []
    i = from_start[n + 1, s]
    while True:
        states.insert(0, s)
        starts.insert(0, float(times[i]))
        rows.insert(0, int(cand_row[i - 1]) if i > 0 else 0)
        if i == 0:
            return float(D.min()), (states, starts, rows)
        s = int(from_state[i, s])
        i = from_start[i, s]


# ----------------------------------------------------------------- jump times


def boxes(rows, tau, end, seen=None):
    """(low, high) of each jump: open below at the observation before it, closed at the one behind it."""
    out = []
    for r in rows[1:]:
        before, after = r - 1, r
        while before >= 0 and seen is not None and not seen[before]:
            before -= 1
        while after < len(tau) and seen is not None and not seen[after]:
            after += 1
        out.append((float(tau[before]) if before >= 0 else 0.0, float(tau[after]) if after < len(tau) else end))
    return out


def dwell_slopes(states, starts, end, lam, first_running=False):
    """Derivative of each dwell's cost by its length, and its size (the sum of its terms' sizes)."""
    bounds = [*starts, end]
    slopes, sizes = [], []
    for k, s in enumerate(states):
        t = bounds[k + 1] - bounds[k]
        running = k == len(states) - 1 or (k == 0 and first_running)
        if running and lam[s] * t < 1:
            slopes.append(0.0)
            sizes.append(lam[s])
        else:
            slopes.append(lam[s] - 1 / t)
            sizes.append(lam[s] + 1 / t)
    return slopes, sizes


def kkt_residual(states, starts, rows, tau, end, lam, first_running=False, seen=None):
    """Largest projected gradient over the jumps, relative to the size of its own terms.

    What rounding of the times alone explains (a dwell of few ulps has a slope of few digits) is left out.
    """
    slopes, sizes = dwell_slopes(states, starts, end, lam, first_running)
    lengths = np.diff([*starts, end])
    worst = 0.0
    for k, (low, high) in enumerate(boxes(rows, tau, end, seen), start=1):
        gradient = slopes[k - 1] - slopes[k]
        at_low, at_high = starts[k] <= np.nextafter(low, np.inf), starts[k] >= high
        if (at_low and gradient > 0) or (at_high and gradient < 0):
            continue
        ulp = 2 * np.spacing(starts[k + 1] if k + 1 < len(starts) else end)
        rounding = sum(ulp / lengths[i] ** 2 for i in (k - 1, k) if slopes[i] != 0)
        worst = max(worst, (abs(gradient) - rounding) / (sizes[k - 1] + sizes[k]))
    return worst


def place_jumps(states, starts, rows, tau, end, lam, first_running=False, seen=None, sweeps=200):
    """Best jump times for fixed states: each run of neighbours shifted by bisection, until none moves."""
    b = np.array(starts, dtype=float)
    K = len(states) - 1
    limits = boxes(rows, tau, end, seen)
    low = np.array([0.0, *(np.nextafter(lo, np.inf) for lo, _ in limits)])
    high = np.array([0.0, *(hi for _, hi in limits)])

    def slope(k, t):
        s = states[k]
        running = k == K or (k == 0 and first_running)
        return 0.0 if running and lam[s] * t < 1 else (lam[s] - 1 / t if t > 0 else -math.inf)

    for _ in range(sweeps):
        moved = 0.0
        for i in range(1, K + 1):
            for j in range(i, K + 1):
                # shifting jumps i..j lengthens dwell i - 1 and shortens dwell j
                before, after = b[i] - b[i - 1], (b[j + 1] if j < K else end) - b[j]
                least, most = (low - b)[i : j + 1].max(), (high - b)[i : j + 1].min()
                least = max(least, -before)
                most = min(most, after)
                if most <= least or slope(i - 1, before + most) - slope(j, after - most) < 0:
                    shift = max(most, least)
                else:
                    for _ in range(200):
                        middle = least + 0.5 * (most - least)
                        if slope(i - 1, before + middle) - slope(j, after - middle) < 0:
                            least = middle
                        else:
                            most = middle
                    shift = least if abs(least) < abs(most) else most
                new = np.clip(b[i : j + 1] + shift, low[i : j + 1], high[i : j + 1])
                closes = new[0] <= b[i - 1] or (j < K and new[-1] >= b[j + 1]) or (np.diff(new) <= 0).any()
                if not closes:
                    moved = max(moved, abs(new[0] - b[i]))
                    b[i : j + 1] = new
        if moved <= 1e-15 * end:
            break
    return b.tolist()


def best_trajectory(tau, end, cost, lam, X, first_running=False, seen=None):
    """Best trajectory with at most one jump in each gap, at any time within it: all sequences of states, each with its
    best jump times. The cheapest first, by what their observations, jumps and boxes cost at least.
    """
    L, M = cost.shape
    bounds = [0.0, *tau, end]
    gaps = [row for row in range(L + 1) if bounds[row + 1] > bounds[row]]
    paths = []
    for n in range(len(gaps) + 1):
        for rows in itertools.combinations(gaps, n):
            rows = [0, *rows]
            box = [(0.0, 0.0), *boxes(rows, tau, end, seen), (end, end)]
            for states in itertools.product(range(M), repeat=n + 1):
                edges = [*rows, L]
                least = sum(cost[edges[k] : edges[k + 1], s].sum() for k, s in enumerate(states))
                least += sum(X[s, r] for s, r in itertools.pairwise(states))
                for k, s in enumerate(states):
                    low, high = lam[s] * (box[k + 1][0] - box[k][1]), lam[s] * (box[k + 1][1] - box[k][0])
                    running = k == n or (k == 0 and first_running)
                    least += float(g(max(low, 0.0)) if running else h(min(max(low, 1.0), high)))
                if least < math.inf:
                    paths.append((float(least), list(states), rows))
    best, best_path = math.inf, None
    for least, states, rows in sorted(paths, key=lambda path: path[0]):
        if least >= best:
            break
        middles = [0.0, *(0.5 * (bounds[row] + bounds[row + 1]) for row in rows[1:])]
        starts = place_jumps(states, middles, rows, tau, end, lam, first_running, seen)
        value = path_cost(states, starts, rows, cost, end, lam, X, first_running)
        if value < best:
            best, best_path = value, (states, starts, rows)
    return best, best_path


# ------------------------------------------------------------ rates that vary


def clocks(times, tau, rates):
    """(n, M) ∫ rate du from 0 to each time; rates (L, M) hold from each row on, the first row's before it too."""
    edges = [0.0, *tau, math.inf]
    held = [rates[0], *rates]
    return np.array([
        sum(max(min(t, edges[g + 1]) - edges[g], 0.0) * held[g] for g in range(len(held))) for t in times
    ])  # fmt: skip


def jump_cost(X, row, s, r):
    """Cost of a jump before a row; X (L, M, M) holds from each row on, the first row's before it too."""
    return float(X[max(row - 1, 0)][s, r])


def varying_costs(states, starts, end, tau, rates, first_running=False):
    """`dwell_costs` where rates vary: h and g of what the clock of the state goes on by."""
    at = clocks([*starts, end], tau, rates)
    complete, running = [], []
    for k, s in enumerate(states):
        z = at[k + 1, s] - at[k, s]
        last = k == len(states) - 1
        (running if last or (k == 0 and first_running) else complete).append(
            float(g(z) if last or (k == 0 and first_running) else h(z))
        )
    return complete, running


def varying_path_cost(states, starts, rows, cost, end, tau, rates, X, first_running=False):
    """`path_cost` where rates (L, M) and costs of jumps X (L, M, M) vary from row to row."""
    terms = []
    row_bounds = [*rows, len(cost)]
    for k, s in enumerate(states):
        terms.extend(cost[row_bounds[k] : row_bounds[k + 1], s].tolist())
    terms.extend(jump_cost(X, rows[k + 1], s, r) for k, (s, r) in enumerate(itertools.pairwise(states)))
    complete, running = varying_costs(states, starts, end, tau, rates, first_running)
    terms += complete + running
    return math.inf if math.inf in terms else math.fsum(terms)


def varying_brute_force(cost, end, tau, rates, X, first_running, cand_time, cand_row):
    """Least cost over every subset of the candidates and every sequence of states."""
    best = math.inf
    for n in range(len(cand_time) + 1):
        for chosen in itertools.combinations(range(len(cand_time)), n):
            starts = [0.0, *(float(cand_time[j]) for j in chosen)]
            rows = [0, *(int(cand_row[j]) for j in chosen)]
            for states in itertools.product(range(cost.shape[1]), repeat=n + 1):
                best = min(best, varying_path_cost(states, starts, rows, cost, end, tau, rates, X, first_running))
    return best


def varying_decode(cost, end, tau, rates, X, first_running, cand_time, cand_row):
    """Least cost by the plain O(n²) recursion over all pairs of candidates."""
    L, M = cost.shape
    n = len(cand_time)
    at = clocks([0.0, *cand_time, end], tau, rates)
    begins = [0, *cand_row]
    W = np.full((n + 1, M), np.inf)
    W[0] = 0.0
    for j in range(1, n + 2):
        at_end = j == n + 1
        stop = L if at_end else cand_row[j - 1]
        D = np.full(M, np.inf)
        for i in range(j):
            for s in range(M):
                z = at[j, s] - at[i, s]
                dwell = g(z) if at_end or (i == 0 and first_running) else h(z)
                D[s] = min(D[s], W[i, s] + cost[begins[i] : stop, s].sum() + dwell)
        if at_end:
            return float(D.min())
        for r in range(M):
            W[j, r] = min(D[s] + jump_cost(X, stop, s, r) for s in range(M))


def varying_kkt_residual(states, starts, rows, tau, end, rates, first_running=False, seen=None):
    """`kkt_residual` where rates vary; each box must lie where they do not."""
    at = clocks([*starts, end], tau, rates)
    slopes = []
    for k, s in enumerate(states):
        z = at[k + 1, s] - at[k, s]
        running = k == len(states) - 1 or (k == 0 and first_running)
        slopes.append(0.0 if running and z < 1 else 1 - 1 / z)
    worst = 0.0
    for k, (low, high) in enumerate(boxes(rows, tau, end, seen), start=1):
        gap = max(rows[k] - 1, 0)
        before, after = rates[gap][states[k - 1]] * slopes[k - 1], rates[gap][states[k]] * slopes[k]
        at_low, at_high = starts[k] <= np.nextafter(low, np.inf), starts[k] >= high
        if (at_low and before > after) or (at_high and before < after):
            continue
        ulp = 4 * np.spacing(end)
        size = sum(rates[gap][states[i]] * (1 + (1 - slopes[i])) for i in (k - 1, k))
        rounding = sum(
            ulp * rates[gap][states[i]] * max(r[states[i]] for r in rates) * (1 - slopes[i]) ** 2
            for i in (k - 1, k)
            if slopes[i] != 0
        )
        worst = max(worst, (abs(before - after) - rounding) / size)
    return worst


# ---------------------------------------------------------------------- rates


def rate_cost(rate, exits, time, run_times, run_weights, a, b):
    """What the rate of one state minimises, up to a constant."""
    cost = rate * (time + b)
    if exits + a > 0:
        cost -= (exits + a) * math.log(rate)
    return cost + float(np.sum(np.asarray(run_weights) * g(rate * np.asarray(run_times)), initial=0.0))


def best_rate(exits, time, run_times, run_weights, a, b):
    """Root of the increasing function λ dF/dλ, by Brent's method on ln λ."""
    y, w = np.asarray(run_times), np.asarray(run_weights)

    def pull(log_rate):
        rate = math.exp(log_rate)
        return rate * (time + b) - (exits + a) + float(np.sum(w * np.maximum(rate * y - 1, 0), initial=0.0))

    return math.exp(brentq(pull, -80.0, 80.0, xtol=1e-15, rtol=1e-15, maxiter=1000))


# ------------------------------------------------------------------ posterior


def exact_expm(Q, t, digits=60):
    """e^{Qt} in decimal arithmetic, by a Taylor series of non-negative terms and squaring; floats out."""
    M = len(Q)
    D = decimal.Decimal

    def product(A, B):
        return [[sum((A[i][k] * B[k][j] for k in range(M)), D(0)) for j in range(M)] for i in range(M)]

    with decimal.localcontext() as context:
        context.prec = digits + 40
        A = [[D(float(Q[i][j])) if i != j else D(0) for j in range(M)] for i in range(M)]
        exits = [sum(row, D(0)) for row in A]
        rate = max(exits)
        if rate == 0 or t == 0:
            return np.eye(M)
        for i in range(M):  # A = Q + rate I: every entry is >= 0, and the rows of Q sum to 0 exactly
            A[i][i] = rate - exits[i]
        halvings = max(0, 4 * (rate * D(float(t))).logb() + 4)
        step = D(float(t)) / 2 ** int(halvings)
        term = [[D(int(i == j)) for j in range(M)] for i in range(M)]
        total = term
        for n in range(1, 10_000):
            term = [[value * step / n for value in row] for row in product(term, A)]
            total = [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(total, term, strict=True)]
            if max(map(max, term)) < D(10) ** -(digits + 30):
                break
        shrink = (-rate * step).exp()
        total = [[value * shrink for value in row] for row in total]
        for _ in range(int(halvings)):
            total = product(total, total)
        return np.array([[float(value) for value in row] for row in total])


def enumerate_posterior(tau, log_density, pi, Q, transition=expm):
    """Posterior of every row and log-likelihood by summing over all sequences of hidden states."""
    L, M = log_density.shape
    gaps = np.diff(np.concatenate([[0.0], tau]))
    steps = [transition(Q * t) for t in gaps]
    posterior = np.zeros((L, M))
    total = 0.0
    at_first = pi @ steps[0]
    for states in itertools.product(range(M), repeat=L):
        p = at_first[states[0]]
        for row in range(1, L):
            p *= steps[row][states[row - 1], states[row]]
        p *= math.exp(sum(log_density[row, s] for row, s in enumerate(states)))
        total += p
        for row, s in enumerate(states):
            posterior[row, s] += p
    with np.errstate(invalid="ignore", divide="ignore"):
        return posterior / total, float(np.log(total))


def forward_backward(tau, log_density, pi, steps):
    """The same by the textbook recursion; `steps[row]` is the transition matrix up to that row."""
    L, M = log_density.shape
    forward, backward = np.empty((L, M)), np.ones((L, M))
    log_lik = 0.0
    v = pi
    for row in range(L):
        top = log_density[row].max()
        v = (v @ steps[row]) * np.exp(log_density[row] - top)
        log_lik += top + math.log(v.sum())
        v = v / v.sum()
        forward[row] = v
    for row in range(L - 2, -1, -1):
        top = log_density[row + 1].max()
        b = steps[row + 1] @ (np.exp(log_density[row + 1] - top) * backward[row + 1])
        backward[row] = b / b.max()
    posterior = forward * backward
    return posterior / posterior.sum(axis=1, keepdims=True), log_lik


def expected_statistics(tau, end, log_density, pi, Q):
    """Expected time in each state (M,), expected jumps (M, M) and first-state chances (M,) of one window.

    Each gap by the integral ∫ e^{Qu} E_ij e^{Q(t-u)} du, a block of the exponential of [[Q, E_ij], [0, Q]].
    """
    M = len(pi)
    points = np.concatenate([[0.0], tau, [end]])
    weights = np.vstack([np.ones(M), np.exp(log_density), np.ones(M)])  # of the start, the rows, the end
    steps = [expm(Q * t) for t in np.diff(points)]
    forward, backward = [pi * weights[0]], [weights[-1]]
    for step, weight in zip(steps, weights[1:], strict=True):
        forward.append((forward[-1] @ step) * weight)
    for step, weight in zip(reversed(steps), reversed(weights[:-1]), strict=True):
        backward.insert(0, weight * (step @ backward[0]))
    total = float(forward[-1].sum())
    integrals = np.zeros((M, M))
    for k, t in enumerate(np.diff(points)):
        after = backward[k + 1]
        for i in range(M):
            for j in range(M):
                block = np.zeros((2 * M, 2 * M))
                block[:M, :M] = block[M:, M:] = Q
                block[i, M + j] = 1.0
                integrals[i, j] += forward[k] @ expm(block * t)[:M, M:] @ after / total
    jumps = np.where(np.eye(M, dtype=bool), 0.0, Q * integrals)
    return np.diag(integrals).copy(), jumps, forward[0] * (steps[0] @ backward[1]) / total


# ---------------------------------------------------------------- least error


def chances(times, tau, log_density, pi, Q):
    """(len(times), M) posterior at any times within the window, by blank rows at them."""
    M = len(pi)
    all_times = np.unique(np.concatenate([times, tau]))
    density = np.zeros((len(all_times), M))
    density[np.searchsorted(all_times, tau)] = log_density
    steps = expm(Q * np.diff(all_times, prepend=0.0)[:, None, None])
    return forward_backward(all_times, density, pi, steps)[0][np.searchsorted(all_times, times)]


def times_in_states(edges, tau, log_density, pi, Q, nodes=8):
    """(cells, M) expected time in each state within each cell, by Gauss's rule; every row is an edge."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    times = (middle[:, None] + half[:, None] * x).ravel()
    p = chances(times, tau, log_density, pi, Q).reshape(len(half), nodes, len(pi))
    return half[:, None] * np.einsum("n,cns->cs", w, p)


def wrong_time(states, starts, tau, end, log_density, pi, Q):
    """Expected time in the wrong state of one trajectory."""
    edges = np.unique(np.concatenate([starts, tau, [0.0, end]]))
    right = times_in_states(edges, tau, log_density, pi, Q)
    state = np.asarray(states)[np.searchsorted(starts, edges[:-1], side="right") - 1]
    return float(end - right[np.arange(len(state)), state].sum())


def least_error(tau, end, log_density, pi, Q, prices, edges):
    """Least expected time in the wrong state plus prices over every path that jumps at the given edges or rows only."""
    edges = np.unique(np.concatenate([[0.0], edges, tau, [end]]))
    right = times_in_states(edges, tau, log_density, pi, Q)
    at_row = {int(np.searchsorted(edges, t)): k for k, t in enumerate(tau)}
    best = math.inf
    for states in itertools.product(range(len(pi)), repeat=len(edges)):  # behind each edge; the last is a point
        shown = all(log_density[row, states[k]] > -math.inf for k, row in at_row.items())
        if shown and pi[states[0]] > 0:
            jumps = sum(prices[a, b] for a, b in itertools.pairwise(states) if a != b)
            best = min(best, end + jumps - sum(right[k, s] for k, s in enumerate(states[:-1])))
    return best


# ----------------------------------------------------------- how a row was seen


def steps_by_kind(tau, kinds, Q):
    """Matrix that leads to each row from the one before, or from the window's start: msm's table, kind by kind.

    Takes Q as it is, complex or with rows that do not sum to 0: derivatives by its entries are the integrals that
    expected times and jumps are made of.
    """
    jump = np.where(np.eye(len(Q), dtype=bool), 0.0, Q)
    steps, before = [], 0.0
    for row, (time, kind) in enumerate(zip(tau, kinds, strict=True)):
        held = np.diag(np.exp(np.diag(Q) * (time - before)))
        if kind == 0 or (row == 0 and time == 0):
            steps.append(expm(Q * (time - before)))
        elif kind == 1:
            steps.append(held @ (np.eye(len(Q)) + jump))
        elif kind == 2:
            steps.append(expm(Q * (time - before)) @ jump)
        else:
            steps.append(held)
        before = time
    return steps


def likelihood_by_kind(tau, kinds, end, likelihood, pi, Q):
    """Likelihood of one window: a product over its rows, summed over all states at all of them."""
    v = np.asarray(pi)
    for step, row in zip(steps_by_kind(tau, kinds, Q), likelihood, strict=True):
        v = (v @ step) * row
    return v @ expm(Q * (end - tau[-1])) @ np.ones(len(Q))


def integrals_by_kind(tau, kinds, end, likelihood, pi, Q):
    """(M, M) derivatives of the log-likelihood by the entries of Q (complex step), and those by the first states (M,).

    Diagonal: expected times; off it, times q_ij: expected jumps. By π, times π: first states.
    """
    M, tiny = len(Q), 1e-30
    base = likelihood_by_kind(tau, kinds, end, likelihood, pi, Q)
    R = np.empty((M, M))
    for i, j in itertools.product(range(M), repeat=2):
        moved = Q.astype(complex)
        moved[i, j] += tiny * 1j
        R[i, j] = likelihood_by_kind(tau, kinds, end, likelihood, pi, moved).imag / tiny / base
    first = [likelihood_by_kind(tau, kinds, end, likelihood, np.eye(M)[s] * pi, Q) / base for s in range(M)]
    return R, np.array(first)


def chances_by_kind(times, tau, kinds, log_density, pi, Q):
    """(len(times), M) posterior at times that are no rows, by rows put there: held ones in barred gaps."""
    later = np.searchsorted(tau, times)
    all_times = np.concatenate([tau, times])
    inside = [3 if k < len(tau) and kinds[k] in (1, 3) else 0 for k in later]
    density = np.concatenate([log_density, np.zeros((len(times), len(pi)))])
    order = np.argsort(all_times, kind="stable")
    steps = steps_by_kind(all_times[order], np.concatenate([kinds, inside])[order], Q)
    posterior = forward_backward(all_times[order], density[order], pi, steps)[0]
    return posterior[np.argsort(order)[len(tau) :]]


def times_by_kind(edges, tau, kinds, log_density, pi, Q, nodes=8):
    """(cells, M) expected time in each state within each cell, by Gauss's rule; every row is an edge."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    times = (middle[:, None] + half[:, None] * x).ravel()
    p = chances_by_kind(times, tau, kinds, log_density, pi, Q).reshape(len(half), nodes, len(pi))
    return half[:, None] * np.einsum("n,cns->cs", w, p)


def breaks_kind(states, starts, rows, tau, kinds):
    """Why a trajectory contradicts how the rows were seen; None if it does not. A first row at 0 is a snapshot."""
    jumps = list(zip(starts[1:], rows[1:], strict=True))
    for row, (time, kind) in enumerate(zip(tau, kinds, strict=True)):
        if kind == 0 or (row == 0 and time == 0):
            continue
        own = [start for start, first in jumps if first == row]
        at_row = [start for start in own if start == time]
        if kind == 2 and len(at_row) != 1:
            return f"row {row} is entered by {len(at_row)} jumps"
        if kind == 1 and len(own) > len(at_row):
            return f"a jump in the barred gap before row {row}"
        if kind == 3 and own:
            return f"a jump before held row {row}"
    return None


def least_error_by_kind(tau, kinds, end, log_density, pi, Q, prices, edges):
    """Least expected time in the wrong state plus prices over every path that jumps at the given edges or rows only."""
    edges = np.unique(np.concatenate([[0.0], edges, tau, [end]]))
    right = times_by_kind(edges, tau, kinds, log_density, pi, Q)
    at_row = {int(np.searchsorted(edges, t)): k for k, t in enumerate(tau)}
    later = np.searchsorted(tau, edges)
    best = math.inf
    for states in itertools.product(range(len(pi)), repeat=len(edges)):  # behind each edge; the last is a point
        if pi[states[0]] == 0 and tau[0] > 0:
            continue
        cost = end
        for k, s in enumerate(states):
            row = at_row.get(k)
            if row is not None and log_density[row, s] == -math.inf:
                cost = math.inf
            if k == 0:
                continue
            kind = kinds[later[k]] if later[k] < len(tau) else 0
            jumped = s != states[k - 1]
            if jumped and ((kind in (1, 3) and row is None) or (kind == 3 and row is not None)):
                cost = math.inf
            if not jumped and kind == 2 and row is not None:
                cost = math.inf
            cost += prices[states[k - 1], s] if jumped else 0.0
        best = min(best, cost - sum(right[k, s] for k, s in enumerate(states[:-1])))
    return best
