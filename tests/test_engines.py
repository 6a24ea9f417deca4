"""Engines: the number of threads changes no bit, kernels compile once, memory stays small."""

import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc

import numpy as np
import pytest

import jumpmeans as jm
from jumpmeans.engines import get_engine
from jumpmeans.model.objective import Prices, join_stats
from jumpmeans.model.params import Params
from jumpmeans.passes import Block, Search, Sequences

JIT_ON = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"


def panel_of(n_sequences, n_rows, seed=0, family="gaussian", missing=0.2):
    """Sticky states 4 sds apart, irregular times, some values missing."""
    M = 5
    if family == "direct":
        emission, states = None, list("abcde")
    else:
        emission, states = jm.emissions.Gaussian(4.0 * np.arange(M), sds=1.0), None
    process = jm.Process(np.full(M, 0.3), (1 - np.eye(M)) / (M - 1), emission=emission, states=states)
    panel, _ = jm.simulate(process, n_sequences, n_rows, random_state=seed)
    values = panel.values.copy()
    values[np.random.default_rng(seed).random(len(values)) < missing] = np.nan
    return panel.with_values(values)


@pytest.fixture(scope="module")
def panels():
    return {name: panel_of(1500, 12, family=name) for name in ("gaussian", "direct")}


@pytest.mark.parametrize("family", ["gaussian", "direct"])
@pytest.mark.parametrize("search", ["exact", "beam"])
def test_threads_change_no_bit(family, search, panels):
    panel = panels[family]
    found = []
    for engine in (jm.engines.Threads(1), jm.engines.Threads(2), jm.engines.Threads(4), "threads"):
        model = jm.JumpMeans(
            None if family == "direct" else 5, emission=family, engine=engine, n_init=1, refine=3, search=search
        ).fit(panel)
        found.append(
            {
                "states": model.trajectories_.codes,
                "starts": model.trajectories_.start_times,
                "decode": model.decode(panel).start_times,
                "history": model.objective_history_,
                "rates": model.rates_,
                "P": model.transition_probs_,
                "process": model.process_.rates,
                "Q": model.process_.rate_matrix,
                "proba": model.predict_proba(panel),
                "at": model.predict_proba(panel, at=([3, 700, 1499], [0.1, 2.0, 1.7])),
                "value": model.predict_value(panel, "posterior"),
            }
        )
    for other in found[1:]:
        for name, value in found[0].items():
            np.testing.assert_array_equal(value, other[name], err_msg=name)


def test_threads_really_cut_the_work(panels):
    """Enough blocks for the test above to mean something, and every row in exactly one of them."""
    panel = panels["gaussian"]
    whole = Block.of(panel, panel.values)
    blocks = whole.cut()
    assert len(blocks) >= 8
    for name in ("tau", "ends", "weights", "x"):
        np.testing.assert_array_equal(np.concatenate([getattr(b, name) for b in blocks]), getattr(whole, name))
    assert [b.first for b in blocks] == np.cumsum([0, *(b.n_sequences for b in blocks[:-1])]).tolist()


def test_one_long_and_many_short(rng):
    """Blocks of very unequal sequences: none empty, none lost."""
    lengths = np.concatenate([[20_000], np.ones(50, int), [5000], rng.integers(1, 30, 200)])
    ids = np.repeat(np.arange(len(lengths)), lengths)
    times = np.concatenate([np.arange(n) * 1.0 for n in lengths])
    panel = jm.Panel.from_arrays(times, rng.normal(size=len(ids)), ids)
    blocks = Block.of(panel, panel.values).cut()
    assert all(b.n_sequences > 0 for b in blocks)
    assert sum(b.n_sequences for b in blocks) == len(lengths)
    a, b = (jm.JumpMeans(2, n_init=1, refine=1, engine=jm.engines.Threads(n)).fit(panel) for n in (1, 2))
    np.testing.assert_array_equal(a.trajectories_.start_times, b.trajectories_.start_times)


def test_statistics_join_in_order(panels):
    """Statistics of the whole equal those of any cut of the panel, joined."""
    panel = panels["gaussian"]
    emission = jm.emissions.Record([jm.emissions.Gaussian(4.0 * np.arange(5))])
    params = Params(np.full(5, 0.3), (1 - np.eye(5)) / 4, emission)
    prices, search = Prices(1.0, np.ones(1), 1.0, 1.0, 0.01), Search(1, 1, 0, 0)
    engine = jm.engines.Threads(1)

    def stats_of(part):
        return Sequences.of(engine, part, part.values).decode(params, prices, search)[1]

    whole = stats_of(panel)
    parts = [stats_of(panel.select(np.arange(a, b))) for a, b in ((0, 400), (400, 401), (401, 1500))]
    joined = join_stats(parts)
    for name in ("exits", "time", "log_time", "jumps", "run_time", "weights"):
        np.testing.assert_allclose(getattr(joined, name), getattr(whole, name), rtol=1e-12)
    np.testing.assert_array_equal(joined.run_state, whole.run_state)
    np.testing.assert_allclose(joined.total_time.sum(), panel.end_times.sum(), rtol=1e-12)
    np.testing.assert_allclose(joined.emission[0].weight, whole.emission[0].weight, rtol=1e-12)


def test_engine_options():
    with pytest.raises(ValueError, match=r"n_jobs must be None or an integer of at least 1, got 0"):
        jm.engines.Threads(0)
    for wrong in ("tea", 3):
        with pytest.raises(ValueError, match=rf"engine must be one of .* or an engine object .* got {wrong!r}"):
            get_engine(wrong)
    engine = jm.engines.Threads(2)
    assert get_engine(engine) is engine
    assert repr(engine) == "Threads(n_jobs=2)"
    assert isinstance(get_engine("threads"), jm.engines.Threads)


def test_errors_come_out_of_threads(panels):
    """A sequence without a path is named, whichever thread found it."""
    panel = panels["direct"]
    for n in (1, 4):
        with pytest.raises(jm.InfeasibleError, match=r"got none for sequence \d+, row \d+"):
            jm.JumpMeans(
                emission="direct",
                structure=jm.Structure(allowed={"a": ["b"], "b": ["a"]}),
                engine=jm.engines.Threads(n),
                jumps_per_gap=1,
            ).fit(panel)


def test_threads_are_kept_as_long_as_the_blocks(panels):
    """To start them for every pass takes longer than the passes of a small panel."""
    held = jm.engines.Threads(2).hold(Block.of(panels["gaussian"], np.zeros((18_000, 1))).cut())

    def where(block, own):
        return own, threading.current_thread().name

    before = threading.active_count()
    used = {who for _ in range(20) for who in held.run(where, None)[1]}
    assert 1 <= len(used) <= 2 and threading.current_thread().name not in used
    del held
    until = time.monotonic() + 30.0
    while threading.active_count() > before:
        assert time.monotonic() < until, "threads go on without work"
        time.sleep(0.01)


def test_after_an_error_nothing_goes_on(panels):
    held = jm.engines.Threads(2).hold(Block.of(panels["gaussian"], np.zeros((18_000, 1))).cut())
    at_work = []

    def wrong(block, own):
        if block.first == 0:
            raise ValueError("the first one")
        at_work.append(block.first)
        time.sleep(0.05)
        at_work.remove(block.first)
        return own, None

    with pytest.raises(ValueError, match="the first one"):
        held.run(wrong, None)
    assert at_work == []
    assert held.run(lambda block, own: (own, block.first), None)[1][0] == 0  # and the threads are there again


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(panels):
    held = jm.engines.Threads(2).hold(Block.of(panels["gaussian"], np.zeros((18_000, 1))).cut())
    first = held.run(lambda block, own: (own, block.first), None)[1]
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        os._exit(0 if held.run(lambda block, own: (own, block.first), None)[1] == first else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.skipif(not JIT_ON, reason="numba is off")
def test_every_kernel_compiles_once():
    """Two families, read-only and fresh arrays, exact and beam: one signature per kernel after all of it."""
    code = """
import numpy as np, jumpmeans as jm, importlib, pkgutil, jumpmeans.kernels as kernels
rng = np.random.default_rng(0)
ids = np.repeat(np.arange(10), 8)
times = np.tile(np.arange(8) * 1.0, 10)
first = jm.Panel.from_arrays(times, rng.normal(size=80), ids)
second = jm.Panel.from_arrays(times, rng.choice(list("ab"), 80), ids, weights=ids + 1.0)
for panel, options in (
    (first, dict(n_states=2)),
    (first, dict(n_states=3, search="beam", first_dwell="running")),
    (second, dict(emission="direct")),
    (second.select(np.arange(5)), dict(n_states=2, emission="categorical")),
):
    model = jm.JumpMeans(n_init=1, refine=2, **options).fit(panel)
    model.predict_proba(panel)
    model.predict(panel)
for info in pkgutil.iter_modules(kernels.__path__):
    module = importlib.import_module("jumpmeans.kernels." + info.name)
    for name, kernel in vars(module).items():
        if hasattr(kernel, "signatures") and kernel.__module__ == module.__name__:
            print(info.name, name, len(kernel.signatures))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    counts = {tuple(line.split()[:2]): int(line.split()[2]) for line in out.splitlines()}
    for needed in ("sweep_on", "smooth_block", "best_path", "place_jumps", "place_candidates", "carry"):
        assert any(name == needed for _, name in counts), needed
    assert {key: n for key, n in counts.items() if n > 1} == {}


@pytest.mark.skipif(not JIT_ON, reason="numba is off")
def test_memory_of_a_fit():
    """At most 66 bytes per observation beyond the panel, for 5 states and short sequences."""
    jm.JumpMeans(5, n_init=1, refine=1).fit(panel_of(300, 20, seed=1))  # compile
    panel = panel_of(10_000, 20, seed=2, missing=0.0)
    for options in ({}, {"n_init": 2, "refine": 0}):
        model = jm.JumpMeans(5, max_iter=300, engine=jm.engines.Threads(2), **options)
        tracemalloc.start()
        try:
            model.fit(panel)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak / panel.n_observations <= 66, options
