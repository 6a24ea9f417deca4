"""Observed information of EM: against msm's standard errors, and against a likelihood written out."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import jumpmeans as jm
from jumpmeans.comparators import EM
from jumpmeans.engines import Threads

GOLDEN = Path(__file__).parent / "golden"
TIGHT = {"tol": 1e-14, "max_iter": 3000, "engine": Threads(1)}


def read_golden(name):
    with open(GOLDEN / f"em_{name}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    return jm.Panel.from_arrays(
        [float(row["time"]) for row in rows], [int(row["state"]) for row in rows], [row["id"] for row in rows]
    )


@pytest.mark.parametrize("name", ["direct", "illness_death", "misclassified"])
def test_equals_msm(name):
    """Standard errors and intervals of msm 1.7 (golden/msm_se.R); fails if pi or the emission is left out."""
    golden = json.loads((GOLDEN / "se_msm.json").read_text())[name]
    panel, hidden = read_golden(name), name == "misclassified"
    allowed = {"illness_death": {1: [2, 3], 2: [3]}, "misclassified": {0: [1], 1: [0, 2], 2: [1]}}.get(name)
    structure = None if allowed is None else jm.Structure(allowed=allowed)
    model = EM(3 if hidden else None, emission="categorical" if hidden else "direct", structure=structure, **TIGHT)
    sure = model.fit(panel).information(panel)
    order = np.argsort(model.emission_.probs.argmax(axis=1)) if hidden else np.arange(3)
    rates = sure.standard_errors().values[np.ix_(order, order)]
    np.testing.assert_allclose(rates, golden["rates"], rtol=1e-3, atol=1e-12)
    found = sure.interval(lambda m: m.process_.sojourn())
    se = sure.standard_error(lambda m: m.process_.sojourn())
    ours = np.column_stack([found.estimate.values, se.values, found.low.values, found.high.values])[order]
    np.testing.assert_allclose(ours[: len(golden["sojourn"])], golden["sojourn"], rtol=1e-3)
    i, j, k = order
    ratio = lambda m: m.process_.rate_matrix[i, j] / m.process_.rate_matrix[j, k]
    found = sure.interval(ratio)
    ours = [found.estimate, sure.standard_error(ratio), found.low, found.high]
    np.testing.assert_allclose(ours, golden["ratio"][0], rtol=1e-3)
    if hidden:
        off = ~np.eye(3, dtype=bool)
        chances = sure.standard_error(lambda m: m.emission_.probs)[order]
        np.testing.assert_allclose(chances[off], np.array(golden["emission"])[off], rtol=1e-3)


# ------------------------------------------------------------- by brute force


def density(family, theta, x):
    """(M,) plain density of one value, up to a constant; theta: the free parameters, one row for each state."""
    if family == "gaussian":
        sd = np.exp(0.5 * theta[:, 1])
        return np.exp(-0.5 * ((x - theta[:, 0]) / sd) ** 2) / sd
    if family == "poisson":
        return np.exp(x * theta[:, 0] - np.exp(theta[:, 0]))
    if family == "exponential":
        return np.exp(-x / np.exp(theta[:, 0]) - theta[:, 0])
    if family == "bernoulli":
        p = 1 / (1 + np.exp(-theta[:, 0]))
        return p if x == 1 else 1 - p
    raise AssertionError(family)


def plain_log_likelihood(phi, family, panel, M):
    """Log-likelihood, row by row; phi: ln rates, ln pi_k / pi_0, then the emission row by row."""
    Q = np.zeros((M, M))
    off = ~np.eye(M, dtype=bool)
    k = M * (M - 1)
    Q[off] = np.exp(phi[:k])
    np.fill_diagonal(Q, -Q.sum(axis=1))
    pi = np.exp(np.concatenate([[0.0], phi[k : k + M - 1]]))
    theta = phi[k + M - 1 :].reshape(M, -1)
    gaps = np.diff(panel.times, prepend=0.0)
    gaps[panel.offsets[:-1]] = 0.0
    # e^{Qt} of two states: the limit, and what is left of the start
    limit = np.array([Q[1, 0], Q[0, 1]]) / (Q[1, 0] + Q[0, 1]) * np.ones((2, 2))
    steps = limit + np.exp(-(Q[0, 1] + Q[1, 0]) * gaps)[:, None, None] * (np.eye(2) - limit)
    total = 0.0
    for s in range(panel.n_sequences):
        v = pi / pi.sum()
        for row in range(panel.offsets[s], panel.offsets[s + 1]):
            v, x = v @ steps[row], panel.values[row, 0]
            if np.isfinite(x):
                v = v * density(family, theta, x)
        total += panel.weights[s] * np.log(v.sum())
    return total


def second_derivatives(f, x, h):
    """Central second differences."""
    k = len(x)
    H = np.empty((k, k))
    for i in range(k):
        for j in range(i + 1):
            a, b = h * np.eye(k)[[i, j]]
            H[i, j] = H[j, i] = (f(x + a + b) - f(x + a - b) - f(x - a + b) + f(x - a - b)) / (4 * h**2)
    return H


EMISSIONS = {
    "gaussian": jm.emissions.Gaussian([0.0, 3.0], [1.0, 0.7]),
    "poisson": jm.emissions.Poisson([1.0, 5.0]),
    "exponential": jm.emissions.Exponential([0.3, 3.0]),
    "bernoulli": jm.emissions.Bernoulli([0.2, 0.8]),
}


@pytest.mark.parametrize("family", EMISSIONS)
def test_equals_brute_force(family):
    """Every entry of the covariance, weights and gaps included; fails if a slope is off by a factor or a term."""
    process = jm.Process([0.3, 0.5], [[0, 1], [1, 0]], [0.6, 0.4], emission=EMISSIONS[family])
    panel, _ = jm.simulate(process, 20, 10, random_state=8)
    values = panel.values.copy()
    values[::7] = np.nan
    panel = panel.with_values(values)
    frame = panel.to_frame()
    frame["weight"] = 1.0 + (frame["id"] % 3)
    panel = jm.Panel.from_frame(frame, weight="weight")
    model = EM(start=process, **TIGHT).fit(panel)
    sure = model.information(panel)
    fitted = model.process_
    means = fitted.emission.means
    rows = {
        "gaussian": lambda: np.column_stack([means, 2 * np.log(fitted.emission.sds)]),
        "bernoulli": lambda: np.log(means / (1 - means))[:, None],
    }.get(family, lambda: np.log(means)[:, None])()
    pi = fitted.initial_probs
    phi = np.concatenate([np.log(fitted.rate_matrix[~np.eye(2, dtype=bool)]), [np.log(pi[1] / pi[0])], rows.ravel()])
    plain = -second_derivatives(lambda x: plain_log_likelihood(x, family, panel, 2), phi, 5e-4)
    # standard errors of the same coordinates, asked as a user would
    k = len(phi)

    def coordinates(m):
        emission, p = m.process_.emission, m.process_.initial_probs
        mu = emission.means
        if family == "gaussian":
            theta = np.column_stack([mu, 2 * np.log(emission.sds)])
        else:
            theta = (np.log(mu / (1 - mu)) if family == "bernoulli" else np.log(mu))[:, None]
        return np.concatenate(
            [np.log(m.process_.rate_matrix[~np.eye(2, dtype=bool)]), [np.log(p[1] / p[0])], theta.ravel()]
        )

    assert len(sure.names) == k
    np.testing.assert_allclose(
        sure.standard_error(coordinates), np.sqrt(np.diag(np.linalg.inv(plain))), rtol=1e-4
    )  # fmt: skip
    pairs = lambda m: np.add.outer(coordinates(m), coordinates(m))
    C = np.linalg.inv(plain)
    summed = np.sqrt(np.diag(C)[:, None] + np.diag(C) + 2 * C)
    np.testing.assert_allclose(sure.standard_error(pairs), summed, rtol=1e-4)


# -------------------------------------------------------------------- edges


def test_rate_at_zero_is_bounded_and_told():
    """Plain exposure: no move 1 → 3 in time T is less likely than 2.5 % from ln 40 / T on; fails if NaN comes out."""
    panel = jm.datasets.load_edss()
    model = EM(emission="direct", **TIGHT).fit(panel)
    with pytest.warns(UserWarning, match=r"rate 1 → 3.*lie at the edge.*taken as known.*intervals\(\)"):
        sure = model.information(panel)
    frame = sure.intervals()
    edge = frame[frame["note"] != ""]
    assert list(zip(edge["from"], edge["to"], strict=True)) == [(1, 3), (3, 1)]
    assert (edge["rate"] == 0).all() and (edge["low"] == 0).all() and edge["se"].isna().all()
    Q = model.process_.rate_matrix
    for i, j, high in zip(edge["from"] - 1, edge["to"] - 1, edge["high"], strict=True):
        h = 1e-6  # the slope of the likelihood in this rate, by the likelihood itself
        moved = Q.copy()
        moved[i, j] += h
        moved[i, i] -= h
        at = [jm.JumpMeans.from_process(jm.Process.from_generator(
            np.where(np.eye(3), 0, M), model.process_.initial_probs, states=[1, 2, 3]
        )).log_likelihood(panel) for M in (Q, moved)]  # fmt: skip
        assert high == pytest.approx(np.log(40) / ((at[0] - at[1]) / h), rel=1e-3)
    inside = frame[frame["note"] == ""]
    assert (inside["low"] < inside["rate"]).all() and (inside["rate"] < inside["high"]).all()
    np.testing.assert_array_equal(
        sure.interval(lambda m: m.process_.rate_matrix[0, 2]).high, model.process_.rate_matrix[0, 2]
    )


def test_what_the_data_do_not_tell_is_infinite():
    """A state never seen twice in a row: its rate may be anything; fails if a near-singular matrix is just inverted."""
    panel = jm.Panel.from_arrays(
        np.tile(np.arange(8.0), 6), np.tile([0, 0, 1, 0, 0, 0, 1, 0], 6), np.repeat(np.arange(6), 8)
    )
    with pytest.warns(UserWarning, match="may have no maximum"):
        model = EM(emission="direct", **TIGHT).fit(panel)
    with pytest.warns(UserWarning, match="the data do not tell.*rate 1 → 0.*infinite"):
        sure = model.information(panel)
    assert np.isinf(sure.standard_error(lambda m: m.process_.rates)[1])


def test_warns_away_from_the_maximum():
    panel = jm.datasets.load_edss()
    model = EM(emission="direct", structure=jm.Structure(allowed={1: [2], 2: [1, 3], 3: [2]}), **TIGHT).fit(panel)
    with pytest.warns(UserWarning, match="could still rise by about .*give the panel of the fit"):
        model.information(panel.select(np.arange(10)))


def test_refuses_families_without_a_gradient():
    process = jm.Process([0.3, 0.5], [[0, 1], [1, 0]], emission=jm.emissions.Laplace([0.0, 5.0]))
    panel, _ = jm.simulate(process, 10, 8, random_state=0)
    model = EM(2, emission="laplace", engine=Threads(1)).fit(panel)
    with pytest.raises(ValueError, match=r"gradient is known.*got 'laplace'; jm.bootstrap"):
        model.information(panel)


def test_scales_and_options():
    """Logit keeps chances within 0 and 1, plain is symmetric; negative answers keep their sign."""
    panel = read_golden("direct")
    sure = EM(emission="direct", **TIGHT).fit(panel).information(panel)
    chance = lambda m: m.process_.next_state()
    found = sure.interval(chance, scale="logit")
    off = ~np.eye(3, dtype=bool)
    assert (found.low.values[off] > 0).all() and (found.high.values[off] < 1).all()
    assert found.low.columns.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(np.diag(found.high.values), 0)
    plain = sure.interval(lambda m: m.process_.rates[0] - m.process_.rates[1], 0.9, "plain")
    assert plain.low + plain.high == pytest.approx(2 * plain.estimate)
    diagonal = sure.interval(lambda m: np.diag(m.process_.rate_matrix))
    assert (diagonal.low < diagonal.estimate).all() and (diagonal.high < 0).all()
    assert np.linalg.inv(sure.matrix) == pytest.approx(sure.covariance)
    with pytest.raises(ValueError, match="level must be a number between 0 and 1, got 95"):
        sure.interval(chance, 95)
    with pytest.raises(ValueError, match=r"scale must be one of \('log', 'logit', 'plain'\), got 'exp'"):
        sure.interval(chance, scale="exp")
    with pytest.raises(ValueError, match=r"answer must be a function of a fitted model.*got 3"):
        sure.interval(3)
    with pytest.raises(ValueError, match="an answer must be a Table, an array or a number, got Process"):
        sure.interval(lambda m: m.process_)


def test_readings_that_a_state_never_has_are_at_no_edge():
    """Caught: a warning that the mean of the dead lies at the edge of its range, which is an error here."""
    pd = pytest.importorskip("pandas")
    shown = [jm.emissions.Gaussian([55.0, 85.0, 0.0], sds=10.0), jm.emissions.Marker(["alive", "alive", "dead"])]
    states = ["severe", "mild", "dead"]
    rates = [[0.0, 0.1, 0.35], [0.25, 0.0, 0.03], [0.0, 0.0, 0.0]]
    process = jm.Process.from_generator(rates, [0.0, 1.0, 0.0], shown, states)
    frame = jm.simulate(process, 80, 10, exact=["dead"], random_state=0)[0].to_frame()
    assert isinstance(frame, pd.DataFrame)
    frame.loc[frame["value_1"] == "dead", "value_0"] = np.nan
    panel = jm.Panel.from_frame(frame, value=["value_0", "value_1"], kind="kind")
    structure = jm.Structure(absorbing=["dead"], initial={"mild": 1.0})
    model = EM(emission=["gaussian", "marker"], states=states, structure=structure, **TIGHT).fit(panel)
    known = model.information(panel)
    assert known.held == ["mean of dead", "variance of dead"] and "mean of mild" in known.names
