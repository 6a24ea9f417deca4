"""The answers that R's msm gives to the same questions: golden values, with the lines that made them.

A panel of our own, written by `write_panel(path)` below, then in R with msm 1.7:

    library(msm); options(digits = 15)
    d <- read.csv("panel.csv")
    Q <- rbind(c(0, .3, .05), c(.15, 0, .25), c(0, 0, 0))
    m <- msm(state ~ time, subject = id, data = d, qmatrix = Q, fixedpars = TRUE)
    -m$minus2loglik / 2; statetable.msm(state, id, d); pmatrix.msm(m, t = 2.5); sojourn.msm(m); pnext.msm(m)
    totlos.msm(m, tot = 4); totlos.msm(m, start = 2, tot = 4); totlos.msm(m); totlos.msm(m, start = 2)
    efpt.msm(m, tostate = 3); efpt.msm(m, tostate = 2); ppass.msm(m, tot = 3)
    prevalence.msm(m, times = c(0, 1, 2, 4))
    # Pearson's test wants no rows after the first death
    d2 <- d[!duplicated(paste(d$id, ifelse(d$state == 3, "d", d$time))), ]
    m2 <- msm(state ~ time, subject = id, data = d2, qmatrix = Q, fixedpars = TRUE)
    for (g in 1:2) print(pearson.msm(m2, timegroups = g, intervalgroups = g, pval = FALSE)$test)
    ctl <- list(reltol = 1e-14, fnscale = 100, maxit = 1000)
    f <- msm(state ~ time, subject = id, data = d2, qmatrix = Q, control = ctl)
    -f$minus2loglik / 2; AIC(f); qmatrix.msm(f, ci = "none")
    pearson.msm(f, timegroups = 2, intervalgroups = 2)$test
    Q1 <- Q; Q1[1, 3] <- 0
    f1 <- msm(state ~ time, subject = id, data = d2, qmatrix = Q1, control = ctl); lrtest.msm(f1, f)
"""

import numpy as np
import pytest

import jumpmeans as jm

STATES = ["well", "ill", "dead"]
PROCESS = jm.Process.from_generator(
    {"well": {"ill": 0.3, "dead": 0.05}, "ill": {"well": 0.15, "dead": 0.25}}, [0.7, 0.3, 0.0]
)
PANEL, _ = jm.simulate(PROCESS, 40, 5, random_state=7)
MODEL = jm.JumpMeans.from_process(PROCESS)
MOVES = {"well": ["ill", "dead"], "ill": ["well", "dead"]}


def write_panel(path):
    frame = PANEL.to_frame()
    frame["state"] = [1 + STATES.index(value) for value in frame["value"]]
    frame[["id", "time", "state"]].to_csv(path, index=False, float_format="%.17g")


def fit(allowed):
    model = jm.comparators.EM(
        emission="direct", states=STATES, structure=jm.Structure(allowed=allowed), tol=1e-13, max_iter=2000
    )
    return model.fit(PANEL)


@pytest.fixture(scope="module")
def fitted():
    return fit(MOVES)


def test_counts_of_successive_states():
    table = PANEL.state_table()
    counts = [[table[a, b] for b in STATES] for a in STATES]
    assert counts == [[57, 18, 5], [3, 35, 12], [0, 0, 30]]


def test_the_likelihood_given_the_first_state():
    assert MODEL.log_likelihood(PANEL, first="given") == pytest.approx(-92.2330395357281, rel=1e-12)
    # caught: π counted twice, or of all rows
    first = PANEL.values[PANEL.offsets[:-1], 0]
    with_pi = sum(np.log([0.7, 0.3][int(PANEL.labels()[int(code)] == "ill")]) for code in first)
    assert MODEL.log_likelihood(PANEL) == pytest.approx(-92.2330395357281 + with_pi, rel=1e-12)


def test_probabilities_and_dwells():
    msm = [[0.474434758681702, 0.307863194685129, 0.217702046633169],
           [0.153931597342564, 0.423124226234180, 0.422944176423255], [0, 0, 1]]  # fmt: skip
    np.testing.assert_allclose(PROCESS.transition_matrix(2.5).values, msm, rtol=1e-12)
    assert PROCESS.sojourn()["well", "mean"] == pytest.approx(2.85714285714286, rel=1e-13)
    np.testing.assert_allclose(PROCESS.next_state().values[:2, :], [[0, 0.8571, 0.1429], [0.375, 0, 0.625]], atol=5e-5)


def test_total_times():
    np.testing.assert_allclose(
        PROCESS.total_time(4).values[:2],
        [[2.324814738602522, 0.989753218634675, 0.685432042762804],
         [0.494876609317338, 2.159855868830075, 1.345267521852587]],
        rtol=1e-12,
    )  # fmt: skip
    # msm integrates to infinity by quadrature
    np.testing.assert_allclose(
        PROCESS.total_time().values[:2],
        [[4.21052631577550, 3.15789473682453, np.inf], [1.57894736841227, 3.68421052630474, np.inf]],
        rtol=1e-9,
    )


def test_first_passages():
    dead = PROCESS.first_passage("dead")
    assert [dead[s, "mean"] for s in STATES] == pytest.approx([7.36842105263158, 5.26315789473684, 0], rel=1e-13)
    ill = PROCESS.first_passage("ill")
    assert [ill[s, "mean"] for s in STATES] == [np.inf, 0, np.inf]
    ppass = {"well": [1, 0.262052170532924, 0], "ill": [0.557196215047581, 1, 0],
             "dead": [0.267731776354347, 0.476130692918560, 1]}  # fmt: skip
    for target, msm in ppass.items():
        np.testing.assert_allclose(1 - PROCESS.survival(target, [3.0]).values[0], msm, rtol=1e-10, atol=1e-14)


def test_prevalence():
    got = MODEL.prevalence(PANEL, [0, 1, 2, 4], initial="observed")
    assert got.n.tolist() == [40, 40, 38, 29]
    observed = got.observed.values * got.n[:, None]
    np.testing.assert_allclose(observed, [[30, 10, 0], [25, 13, 2], [17, 15, 6], [9, 6, 14]], atol=1e-12)
    np.testing.assert_allclose(
        got.expected.values[1:] * got.n[1:, None],
        [[22.6490198693908, 13.08989310088053, 4.26108702972868],
         [16.7910440413875, 12.99737858233178, 8.21157737628072],
         [8.3745115393939, 8.62133777291777, 12.00415068768833]],
        rtol=1e-11,
    )  # fmt: skip


def test_ages_are_no_times_since_the_start():
    """Planted: no word, when all times lie beyond every window. The last time that is observed is none of them."""
    longest = float((PANEL.end_times - PANEL.start_times).max())
    with pytest.warns(
        UserWarning, match=r"count from the start of each sequence.* got 50 to 70: .*ages or dates"
    ) as told:
        MODEL.prevalence(PANEL, [50, 60, 70])
    assert told[0].filename == __file__
    MODEL.prevalence(PANEL, [longest, 50])


def test_pearson(fitted):
    for groups, statistic, df, p_upper in ((1, 2.82884181816606, 4, 0.586864429940924),
                                           (2, 13.9284334053331, 16, 0.604045483329682)):  # fmt: skip
        got = jm.pearson_test(MODEL, PANEL, time_groups=groups, gap_groups=groups, least=0, fitted=False)
        assert (got.statistic, got.p_upper) == pytest.approx((statistic, p_upper), rel=1e-9)
        assert got.df == df
    got = jm.pearson_test(fitted, PANEL, time_groups=2, gap_groups=2, least=0)
    assert got.statistic == pytest.approx(12.728552220786, rel=1e-4)
    assert got.p_lower == pytest.approx(0.389075529594138, rel=1e-4)
    # both by the distribution with weights; msm's information is the observed one, ours the expected one
    assert got.p_value == pytest.approx(0.370149174972698, abs=0.02)


def test_fits(fitted):
    assert fitted.log_likelihood(PANEL, first="given") == pytest.approx(-91.6162389803433, abs=1e-6)
    assert fitted.aic(PANEL, first="given") == pytest.approx(191.232477960687, abs=1e-5)
    msm = [[0, 0.352332690245771, 0.038226272338656], [0.104471696505740, 0, 0.242000914592047], [0, 0, 0]]
    Q = fitted.process_.rate_matrix
    np.testing.assert_allclose(Q - np.diag(np.diag(Q)), msm, rtol=1e-4)
    small = fit({"well": ["ill"], "ill": ["well", "dead"]})
    got = jm.likelihood_ratio(small, fitted, PANEL, first="given")
    assert got.df == 1 and got.statistic == pytest.approx(1.85491030260908, abs=1e-4)
    assert got.p_value == pytest.approx(0.173213375442307, rel=1e-3)
