"""The helper that compiles beside the first fit: what it compiles fits, and nothing of it is left or heard of."""

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numba
import numpy as np
import pytest

import jumpmeans as jm
from jumpmeans import ahead
from jumpmeans.kernels import expectations
from jumpmeans.kernels import sweep as sweeping
from jumpmeans.model import objective
from jumpmeans.passes import ahead as jobs
from jumpmeans.passes import smooth

needs_compiler = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled without the compiler"
)
SAYS_ONE = "import sys; print('one', flush=True); sys.stdin.read()"
WORKS_LONG = """
import time
from jumpmeans.passes import ahead
ahead.JOBS = {"one": lambda: time.sleep(600)}
ahead.main()
"""


def helper_of(monkeypatch, code):
    monkeypatch.setattr(ahead, "CODE", code)
    return ahead.Helper()


def types_at(monkeypatch, where, name):
    """A list that will have the types of the arguments of every call."""
    own, seen = getattr(where, name), []

    def call(*args):
        seen.append([numba.typeof(x) for x in args])
        return own(*args)

    monkeypatch.setattr(where, name, call)
    return seen


# ------------------------------------------------------------------------------------------------- what is compiled


@needs_compiler
def test_kernels_are_kept_and_awaited():
    for kernel in (expectations.gather_block, smooth.smooth_block, jobs.best_path, jobs.place_jumps):
        assert isinstance(kernel._cache, ahead._Awaited) and kernel.py_func.__name__ in jobs.JOBS
    assert ahead.is_kept(sweeping.sweep_on)
    assert not ahead.is_kept(numba.njit(lambda z: z)) and not ahead.is_kept(len)


@pytest.mark.parametrize("family", ["gaussian", "categorical"])
def test_types_are_those_of_a_fit(monkeypatch, family):
    """Of no use otherwise: an array that a fit has read-only, and the helper not, is another kernel."""
    gathered = types_at(monkeypatch, expectations, "gather_block")
    smoothed = types_at(monkeypatch, smooth, "smooth_block")
    found, placed = types_at(monkeypatch, jobs, "best_path"), types_at(monkeypatch, jobs, "place_jumps")
    swept = types_at(monkeypatch, sweeping, "sweep_on")
    for job in jobs.JOBS.values():
        job()
    (own_gathered,), (own_smoothed,), (own_found,), (own_placed,) = map(list, (gathered, smoothed, found, placed))
    rng = np.random.default_rng(1)
    values = rng.normal(size=60) if family == "gaussian" else rng.choice(list("abc"), 60)
    panel = jm.Panel.from_arrays(np.tile(np.arange(6.0), 10), values, np.repeat(np.arange(10), 6))
    jm.JumpMeans(2, emission=family, n_init=1, refine=2).fit(panel).predict_proba(panel)
    assert len(gathered) > 2 and all(types == own_gathered for types in gathered)
    assert len(smoothed) > 1 and all(types == own_smoothed for types in smoothed)
    assert len(swept) > 1
    row = numba.typeof(np.empty(1))
    for types in swept:  # as it hands them on: parts of arrays, and rows
        _, _, tau, seen, kinds, _, _, _, cost, lam, into, course, _, _, states, starts, rows = types[:17]
        room, bounds = types[-4:-2]
        assert lam == numba.typeof(np.empty((1, 1)))
        work = numba.typeof(np.empty((1, 1)))
        flag, number = numba.types.boolean, numba.types.float64
        assert own_placed == [
            states, starts, rows, numba.typeof(2), tau, seen, kinds, number, row, course, flag, work, flag
        ]  # fmt: skip
        assert own_found == [
            cost, kinds, number, row, into, course, flag, flag, flag, numba.typeof(0), room, bounds, number
        ]  # fmt: skip


@pytest.mark.slow
@needs_compiler
def test_first_fit_finds_what_the_helper_made(tmp_path):
    code = """
import numpy as np
from numba.core import event
import jumpmeans as jm
from jumpmeans import ahead
ahead.can_help = lambda: True

class Compiled(event.Listener):
    names = set()
    def on_start(self, event):
        self.names.add(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
times, ids = np.tile(np.arange(6.0), 10), np.repeat(np.arange(10), 6)
panel = jm.Panel.from_arrays(times, 3.0 * (times > 2), ids)
jm.JumpMeans(2).fit(panel).predict_proba(panel)
assert "sweep_on" in Compiled.names
print(sorted(Compiled.names & {"place_jumps", "gather_block", "smooth_block"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


# ------------------------------------------------------------------------------------------------- when it is started


def test_started_once_when_the_sweep_is_compiled(monkeypatch):
    begun = []
    monkeypatch.setattr(ahead, "Helper", lambda: begun.append("helper") or begun)
    monkeypatch.setattr(ahead, "can_help", lambda: True)
    monkeypatch.setattr(ahead, "_helper", None)
    ahead.start()
    ahead.start()
    assert begun == ["helper"]


@needs_compiler
def test_started_by_the_sweep_alone(monkeypatch):
    begun = []
    monkeypatch.setattr(ahead, "start", lambda: begun.append("helper"))
    for name, kept in (("place_jumps", True), ("sweep_on", False), ("sweep_on", True)):
        monkeypatch.setattr(ahead, "is_kept", lambda _, kept=kept: kept)  # where nothing is, a helper has no use

        def kernel(z):
            return z + 1.0

        kernel.__name__, kernel.__module__ = name, "jumpmeans.kernels.made_up"
        assert begun == []
        numba.njit(kernel)(2.0)
    assert begun == ["helper"]


def test_not_started_where_it_is_no_help_or_not_ours(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert ahead.can_help()
    with monkeypatch.context() as context:
        context.setattr(os, "sched_getaffinity", lambda _: {1})
        assert not ahead.can_help()
    for executable in (None, "", "/opt/editor/bin/editor"):
        with monkeypatch.context() as context:
            context.setattr(sys, "executable", executable)
            assert not ahead.can_help()
    with monkeypatch.context() as context:
        context.setattr(sys, "frozen", True, raising=False)
        assert not ahead.can_help()
    with monkeypatch.context() as context:
        context.setattr(multiprocessing, "parent_process", lambda: multiprocessing.current_process())
        assert not ahead.can_help()


def test_a_machine_that_allows_no_process_compiles_alone(monkeypatch):
    def refuse(*_, **__):
        raise OSError("no more processes")

    monkeypatch.setattr(ahead, "can_help", lambda: True)
    monkeypatch.setattr(ahead, "_helper", None)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    ahead.start()
    assert ahead._helper is None


# ------------------------------------------------------------------------------------------------- waiting, and the end


def test_waits_for_what_may_come_only(monkeypatch):
    helper = helper_of(monkeypatch, SAYS_ONE)
    helper.wait_for("one")
    assert not helper.is_at("one") and helper.is_at("two")
    monkeypatch.setattr(ahead, "PATIENCE", 0.01)
    helper.wait_for("two")  # which never comes
    assert helper.is_at("two")
    helper.end()
    assert not helper.is_at("two") and helper.process.returncode is not None


def test_a_helper_that_fails_is_not_waited_for(monkeypatch, capfd):
    helper = helper_of(monkeypatch, "raise SystemExit('it cannot be done')")
    helper.wait_for("one")
    assert helper.over and helper.process.returncode == 1
    assert capfd.readouterr() == ("", "")
    helper.end()


def test_a_forked_process_waits_for_nothing(monkeypatch):
    helper = helper_of(monkeypatch, SAYS_ONE)
    with monkeypatch.context() as context:
        context.setattr(os, "getpid", lambda: -1)
        assert not helper.is_at("two")
        helper.end()  # nor does it end what is not its own
    assert helper.is_at("two")
    helper.end()


@pytest.mark.skipif(os.name != "posix", reason="asks for a process by its number")
@pytest.mark.parametrize("ending", ["pass", "raise KeyboardInterrupt", "os.kill(os.getpid(), 9)", "os._exit(0)"])
def test_ends_with_the_process_that_started_it(ending):
    code = f"""
import os
from jumpmeans import ahead
ahead.CODE = {WORKS_LONG!r}
print(ahead.Helper().process.pid, flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code + ending], capture_output=True, text=True, check=False)
    pid, until = int(done.stdout), time.monotonic() + 30.0
    while os.path.exists(f"/proc/{pid}") if os.path.isdir("/proc") else is_running(pid):
        assert time.monotonic() < until, "the helper is still there"
        time.sleep(0.05)


def is_running(pid):
    try:
        os.kill(pid, signal.SIG_DFL)
    except ProcessLookupError:
        return False
    return True


@needs_compiler
def test_a_wait_is_said_as_if_compiled_here(monkeypatch, caplog):
    waits = []

    class Slow:
        def is_at(self, kernel):
            return not waits

        def wait_for(self, kernel):
            assert caplog.messages == [f"compiling {kernel}, once"]
            waits.append(kernel)

    caplog.set_level(logging.INFO, "jumpmeans")
    monkeypatch.setattr(ahead, "_helper", Slow())
    kernel = ahead.awaited(numba.njit(cache=True)(objective.running_cost.py_func))
    assert kernel(0.5) == objective.running_cost(0.5) and waits == ["running_cost"]
    assert caplog.messages[1].startswith("compiled running_cost: ")
