"""A cluster: the same bits as one thread, whoever works and whoever is lost."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import engine_contract as contract
import jumpmeans as jm
from jumpmeans.engines import get_engine
from jumpmeans.engines.dask import HeldThere, submit
from jumpmeans.fit import setup
from jumpmeans.model.objective import Prices
from jumpmeans.model.params import Params
from jumpmeans.passes import Block, Search, Sequences

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    """Two workers, each a process with a nanny that starts another should it die."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def engine(client):
    return jm.engines.Dask(client)


@pytest.fixture
def here():
    """A cluster within this process."""
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.parametrize("model", ["jump means", "labels", "em", "gibbs"])
def test_same_bits(engine, model):
    contract.check_engine(engine, model)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["infinite", "particles"])
def test_same_bits_of_many_passes(engine, model):
    contract.check_engine(engine, model)


def test_errors_and_states(engine):
    contract.check_errors(engine)
    contract.check_states(engine)


def test_blocks_are_spread_over_tasks(engine):
    """Caught: all blocks in one task, or a cut that follows the number of workers and not the data."""
    panel = contract.hidden_panel()
    blocks = Block.of(panel, panel.values).cut()
    held = engine.hold(blocks)
    assert len(held) == sum(held.counts) == len(blocks)
    assert 2 <= len(held.chunks) <= len(blocks)


def test_a_lost_worker_costs_time_and_not_the_result(client, engine, monkeypatch):
    """Caught: blocks scattered instead of made by a task (a fit then ends with a CancelledError)."""
    panel = contract.hidden_panel()
    plain = jm.JumpMeans(3, n_init=1).fit(panel)
    runs = []

    def run(held, work, state, *shared):
        runs.append(work.__name__)
        if len(runs) == 6:  # dwells of five sweeps are gone with it
            (worker, pid), *_ = client.run(os.getpid).items()
            holds = client.has_what()[worker]
            assert any(key.startswith("blocks") for key in holds)
            assert any(key.startswith("sweep") for key in holds)
            os.kill(pid, signal.SIGKILL)
        return unspoiled(held, work, state, *shared)

    unspoiled = HeldThere.run
    monkeypatch.setattr(HeldThere, "run", run)
    model = jm.JumpMeans(3, n_init=1, engine=engine).fit(panel)
    assert runs[5] == "sweep" and len(runs) > 6
    np.testing.assert_array_equal(model.objective_history_, plain.objective_history_)
    np.testing.assert_array_equal(model.trajectories_.start_times, plain.trajectories_.start_times)
    np.testing.assert_array_equal(model.process_.rates, plain.process_.rates)


def pid_and_rows(block, state):
    return None, (os.getpid(), len(block.tau))


def test_work_is_done_on_the_workers(client, engine):
    panel = contract.hidden_panel()
    client.wait_for_workers(2)
    _, results = engine.hold(Block.of(panel, panel.values).cut()).run(pid_and_rows, None)
    pids = {pid for pid, _ in results}
    assert pids == set(client.run(os.getpid).values())
    assert os.getpid() not in pids


def test_the_dashboard_tells_what_runs(here):
    panel = contract.hidden_panel()
    jm.JumpMeans(2, n_init=1, refine=1, engine=jm.engines.Dask(here)).fit(panel).predict_proba(panel)
    names = here.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    assert {"blocks", "parameters", "sweep", "expect", "smooth", "sweep: results"} <= names


def test_nothing_is_left_on_the_cluster(here):
    """Caught: futures that a fit keeps would fill the workers."""
    panel = contract.hidden_panel()
    model = jm.JumpMeans(2, n_init=1, refine=1, engine=jm.engines.Dask(here)).fit(panel)
    assert model.n_iter_ > 1
    for _ in range(100):
        left = here.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        if not left:
            break
        threading.Event().wait(0.05)
    assert left == 0


def test_interrupts_leave_the_cluster_as_it_was(engine):
    panel = contract.hidden_panel()
    code = """
import os, signal, sys, threading
import distributed, engine_contract as contract, jumpmeans as jm
client = distributed.Client(sys.argv[1], set_as_default=False)
engine = jm.engines.Dask(client)
threading.Timer(float(sys.argv[2]), os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        jm.JumpMeans(3, engine=engine).fit(contract.hidden_panel())
except KeyboardInterrupt:
    print("interrupted")
"""
    address = engine.client.scheduler.address
    found = subprocess.run(
        [sys.executable, "-c", code, address, "1.0"], capture_output=True, text=True, timeout=60,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(["src", "tests"])}, cwd=os.path.dirname(__file__) + "/..",
    )  # fmt: skip
    assert found.stdout.split() == ["interrupted"], found.stderr
    model = jm.JumpMeans(3, n_init=1, engine=engine, refine=1).fit(panel)
    np.testing.assert_array_equal(
        model.objective_history_, jm.JumpMeans(3, n_init=1, refine=1).fit(panel).objective_history_
    )


def test_the_engine_of_a_name_or_an_address(here, monkeypatch):
    assert get_engine("dask") is get_engine("dask")
    named = jm.engines.Dask(here.scheduler.address)
    assert repr(named) == f"Dask({here.scheduler.address!r})"
    assert named.client is named.client is not here
    there = pickle.loads(pickle.dumps(named))
    assert there.client_or_address == here.scheduler.address
    named.close()
    assert here.status == "running"
    monkeypatch.setattr(distributed, "default_client", lambda: here)
    assert jm.engines.Dask().client is here
    given = jm.engines.Dask(here)
    given.close()
    assert given.client is here and here.status == "running"


def test_copies_of_a_model_share_the_cluster(here):
    from sklearn.base import clone

    engine = jm.engines.Dask(here)
    model = jm.JumpMeans(2, engine=engine)
    assert clone(model).engine is engine
    assert copy.deepcopy(engine) is engine
    assert pickle.loads(pickle.dumps(engine)).client_or_address == here.scheduler.address


def test_bootstrap_and_tune_run_on_the_workers(engine, monkeypatch):
    """The same numbers as here. Planted: a panel for every task; refits that each spread over the cluster again."""
    panel = contract.hidden_panel()
    sent = []
    monkeypatch.setattr("jumpmeans.engines.dask.submit", lambda *args: sent.append(args[1]) or submit(*args))
    there = jm.JumpMeans(3, refine=1, n_init=1, engine=engine).fit(panel)
    here = jm.JumpMeans(3, refine=1, n_init=1).fit(panel)
    there.summary()  # its note on the last value is worked out when it is asked for, or before the model travels
    sent.clear()
    sure = jm.bootstrap(there, panel, n=6, random_state=1)
    assert sent == ["shared"]
    plain = jm.bootstrap(here, panel, n=6, random_state=1, n_jobs=1)
    np.testing.assert_array_equal(sure.values(lambda m: m.rates_), plain.values(lambda m: m.rates_))
    grid = {"transition_weight": [0.5, 2.0]}
    tuned = [jm.tune(m, panel, grid, folds=2, n_jobs=1, random_state=0) for m in (there, here)]
    assert [trial["error"] for trial in tuned[0].trials] == [trial["error"] for trial in tuned[1].trials]


ROLES = {"id": "id", "time": "time", "value": "value"}


def write_files(panel, edges, folder):
    """A file for the sequences between each two edges; the table of all of them."""
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"id": panel.sequence_index, "time": panel.times, "value": panel.values[:, 0]})
    folder.mkdir(exist_ok=True)
    for k, (i, j) in enumerate(pairwise(edges)):
        table[panel.offsets[i] : panel.offsets[j]].to_parquet(folder / f"visits-{k}.parquet")
    return table


LAW = jm.Process([0.3, 0.2, 0.4], (1 - np.eye(3)) / 2, emission=jm.emissions.Gaussian([0.0, 4.0, 8.0], sds=1.0))


def held(engine, panel):
    return Sequences.of(engine, panel, LAW.emission.encode(panel))


def statistics(sequences, n=20):
    """All that so many sweeps leave."""
    law = LAW
    params, prices = Params(law.rates, law.transition_probs, law.emission), Prices(1.0, np.ones(1), 1.0, 1.0, 0.01)
    dwells = sequences.no_jumps()
    for k in range(n):
        rates = params.rates * (1.0 + 0.1 * np.sin(k))
        dwells, stats = sequences.sweep(dwells, replace(params, rates=rates), prices, Search(1, 1, 0, 0))
    return stats, sequences.fetch(dwells)


def test_twenty_sweeps_leave_the_same_statistics(engine, here, monkeypatch, tmp_path):
    """One thread, two, one worker, two workers, blocks in other tasks, and rows in files. Planted: sums by task."""
    panel = contract.hidden_panel()
    plain = statistics(held(jm.engines.Threads(1), panel))
    engines = [jm.engines.Threads(2), jm.engines.Dask(here), engine]
    found = [statistics(held(own, panel)) for own in engines]
    monkeypatch.setattr("jumpmeans.engines.dask.TASKS_PER_THREAD", 1)
    found.append(statistics(held(engine, panel)))
    for edges in ([0, 50, 90, 150], [0, 1, 149, 150]):
        folder = tmp_path / str(len(found))
        write_files(panel, edges, folder)
        scanned = jm.scan_panel(folder, engine=engine, **ROLES)
        found.append(statistics(scanned.hold(LAW.emission, None)))
    for stats, dwells in found:
        for mine, its in zip([*stats[:7], *stats.emission[0], stats.first, *dwells], [
            *plain[0][:7], *plain[0].emission[0], plain[0].first, *plain[1]
        ], strict=True):  # fmt: skip
            np.testing.assert_array_equal(mine, its)


def test_a_panel_in_files_outlives_a_worker(client, engine, tmp_path, monkeypatch):
    """Files are read again, and sweeps made again. Caught: blocks that the client read and scattered."""
    monkeypatch.setattr(setup, "MANY_ROWS", 1000)
    monkeypatch.setattr(setup, "START_ROWS", 600)
    panel = contract.hidden_panel()
    table = write_files(panel, [0, 50, 90, 150], tmp_path)
    scanned = jm.scan_panel(tmp_path, engine=engine, **ROLES)
    runs = []

    def run(held, work, state, *shared):
        runs.append(work.__name__)
        if runs.count("sweep") == 2 and runs[-1] == "sweep":
            (_, pid), *_ = client.run(os.getpid).items()
            os.kill(pid, signal.SIGKILL)
        return unspoiled(held, work, state, *shared)

    unspoiled = HeldThere.run
    monkeypatch.setattr(HeldThere, "run", run)
    model = jm.JumpMeans(3, refine=2).fit(scanned)
    plain = jm.JumpMeans(3, refine=2).fit(jm.Panel.from_frame(table))
    assert runs.count("sweep") > 2
    np.testing.assert_array_equal(model.objective_history_, plain.objective_history_)
    np.testing.assert_array_equal(model.rates_, plain.rates_)


@pytest.mark.slow
def test_out_of_core(tmp_path, monkeypatch):
    """A panel of more bytes than its worker may have: blocks go to disk and come back the same.

    Planted: blocks that do not tell their size (a worker is then killed, over and over).
    """
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    D, files, limit = 12, 70, 640 * 2**20
    columns = [f"y{d}" for d in range(D)]
    law = jm.Process([0.3, 0.2], 1.0 - np.eye(2), emission=[jm.emissions.Gaussian([0.0, 4.0], sds=1.0)] * D)
    part, _ = jm.simulate(law, 1000, 100, random_state=0)
    for k in range(files):
        own = {"id": part.sequence_index + 1000 * k, "time": part.times} | dict(
            zip(columns, part.values.T, strict=True)
        )
        pq.write_table(pa.table(own), tmp_path / f"visits-{k:02}.parquet")
    params, prices = Params(law.rates, law.transition_probs, law.emission), Prices(1.0, np.ones(D), 1.0, 1.0, 0.01)

    def look(sequences):
        dwells, stats = sequences.sweep(sequences.no_jumps(), params, prices, Search(1, 1, 0, 0))
        dwells, stats = sequences.sweep(dwells, params, prices, Search(1, 1, 0, 0))
        return [*stats[:7], stats.first], sequences.expect(law).integrals

    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit=limit, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        panel = jm.scan_panel(tmp_path, id="id", time="time", value=columns, engine=jm.engines.Dask(client))
        assert panel.n_observations * (D + 1) * 8 > limit
        sequences = panel.hold(law.emission, None)
        found = look(sequences)
        spilled = sum(client.run(lambda dask_worker: dask_worker.data.spilled_total.disk).values())
        assert spilled > limit / 10
        del sequences
    whole = panel_of_copies(part, files)
    plain = look(Sequences.of(jm.engines.Threads(1), whole, whole.values))
    for mine, its in zip([*found[0], found[1]], [*plain[0], plain[1]], strict=True):
        np.testing.assert_array_equal(mine, its)


def panel_of_copies(part, n):
    return part.select(np.tile(np.arange(part.n_sequences), n))


@pytest.mark.slow
def test_a_cluster_of_our_own_ends():
    with jm.engines.Dask() as engine:
        workers = engine.client.run(os.getpid)
        assert len(workers) >= 1 and os.getpid() not in workers.values()
        contract.check_states(engine)
    assert engine._client is None and engine._cluster is None


def test_options(monkeypatch):
    with pytest.raises(ValueError, match=r"client_or_address must be a distributed.Client, the address .* got 3\."):
        jm.engines.Dask(3)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(jm.MissingExtraError, match=r"pip install 'jumpmeans\[dask\]'"):
        _ = jm.engines.Dask("tcp://nowhere:1").client
