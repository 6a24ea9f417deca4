"""Bars on screens, silence elsewhere, and a word before every wait for the compiler."""

import io
import logging
import os
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import numba
import numpy as np
import pytest
import tqdm.auto
from numba.core import event

import jumpmeans as jm
from jumpmeans import progress
from jumpmeans.history import History
from jumpmeans.model import objective
from jumpmeans.progress import quiet, say, status, track

needs_compiler = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled without the compiler"
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "monotonic", clock)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    return clock


def a_screen(monkeypatch):
    """A terminal; set up inside the test, for pytest takes standard error back before each."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def is_clean(screen):
    """The last thing that stood on the line was wiped."""
    return screen.getvalue().rpartition("\r")[2].strip() == "" and "\n" not in screen.getvalue()


# ------------------------------------------------------------------------------------------------- bars


def test_a_bar_appears_once_the_work_takes_a_while(monkeypatch, clock):
    screen = a_screen(monkeypatch)
    seen = []
    for _ in track(5, "counting"):
        seen.append(screen.getvalue())
        clock.now += 0.45
    assert seen[:3] == ["", "", ""]  # after 0.9 s nothing; the third step ends at 1.35 s
    assert "counting:  60%" in seen[3] and "3/5" in seen[3]
    assert "4/5" in seen[4]
    assert is_clean(screen)


def test_short_work_shows_nothing(monkeypatch, clock):
    screen = a_screen(monkeypatch)
    for _ in track(1000, "counting"):
        clock.now += 0.9 / 1000
    with status("looking"):
        say("found")
    assert screen.getvalue() == ""


def test_work_that_ends_early_leaves_a_clean_line(monkeypatch, clock):
    screen = a_screen(monkeypatch)
    for _ in track(100, "counting"):
        clock.now += 2.0
        if "1/100" in screen.getvalue():
            break
    assert is_clean(screen) and progress.Bar.in_front() is None
    with pytest.raises(ValueError, match="halfway"):
        for i in track(3, "counting"):
            clock.now += 2.0
            if i == 1:
                raise ValueError("halfway")
    assert is_clean(screen) and progress.Bar.in_front() is None


def test_to_need_fewer_steps_is_no_failure(monkeypatch, clock):
    # a notebook paints a bar red that is closed before its end
    a_screen(monkeypatch)
    ends = []

    class Notebook(tqdm.auto.tqdm):
        def close(self):
            ends.append((self.n, self.total))
            super().close()

    monkeypatch.setattr(tqdm.auto, "tqdm", Notebook)
    for i in track(100, "counting"):
        clock.now += 2.0
        if i == 7:
            break
    assert ends[0] == (7, 7)


def test_work_of_unknown_length_tells_what_it_does(monkeypatch, clock):
    screen = a_screen(monkeypatch)
    with status("looking"):
        say("sweep 1")
        clock.now = 2.0
        say("sweep 2")
        say("sweep 3")
        assert "sweep 1" not in screen.getvalue()
        assert "looking: sweep 2 [" in screen.getvalue() and "looking: sweep 3 [" in screen.getvalue()
    assert is_clean(screen)
    say("nobody listens")
    assert "nobody" not in screen.getvalue()


def test_nested_work_shows_one_bar(monkeypatch, clock):
    screen = a_screen(monkeypatch)
    for _ in track(2, "outer"):
        clock.now += 2.0
        for _ in track(2, "inner"):
            clock.now += 2.0
        with status("within"):
            clock.now += 2.0
            say("deep")
    assert "outer" in screen.getvalue()
    assert not any(word in screen.getvalue() for word in ("inner", "within", "deep"))


def test_quiet_work_shows_none(monkeypatch, clock):
    screen = a_screen(monkeypatch)
    with quiet():
        for _ in track(3, "counting"):
            clock.now += 2.0
    assert screen.getvalue() == ""
    for _ in track(3, "afterwards"):
        clock.now += 2.0
    assert "afterwards" in screen.getvalue()


@pytest.mark.parametrize("nothing", ["file", "closed", "none"])
def test_nothing_where_there_is_no_screen(monkeypatch, clock, nothing):
    stream = io.StringIO()
    if nothing == "closed":
        stream.close()
    monkeypatch.setattr(sys, "stderr", None if nothing == "none" else stream)
    for _ in track(3, "counting"):
        clock.now += 2.0
    assert nothing != "file" or stream.getvalue() == ""


def test_plain_lines_where_they_are_asked_for(monkeypatch, clock):
    """One every ten seconds, of whatever is being done; none where somebody sees a bar.

    Caught: a line for every piece of work, however short; a line beside a bar.
    """
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.Bar.in_lines():
        for _ in track(12, "counting"):
            clock.now += 4.0
        with status("searching"):
            for _ in range(2):
                clock.now += 3.0
                say("round 7")
        with quiet():
            for _ in track(9, "quietly"):
                clock.now += 4.0
    assert stream.getvalue() == "counting: 3 of 12\ncounting: 6 of 12\ncounting: 9 of 12\ncounting: 12 of 12\n"
    for _ in track(9, "afterwards"):
        clock.now += 4.0
    assert "afterwards" not in stream.getvalue()
    screen = a_screen(monkeypatch)
    with progress.Bar.in_lines():
        for _ in track(9, "on a screen"):
            clock.now += 4.0
    assert "\n" not in screen.getvalue()


def test_a_notebook_is_a_screen(monkeypatch, clock):
    stream = io.StringIO()  # standard error of a notebook is no terminal
    monkeypatch.setattr(sys, "stderr", stream)
    shell = SimpleNamespace(kernel=object())
    notebook = ModuleType("IPython")
    notebook.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    for _ in track(3, "counting"):
        clock.now += 2.0
    assert "2/3" in stream.getvalue()
    notebook.get_ipython = lambda: None  # IPython was imported by a script
    for _ in track(3, "in a script"):
        clock.now += 2.0
    assert "script" not in stream.getvalue()


def test_fits_tell_how_far_they_are(monkeypatch):
    screen = a_screen(monkeypatch)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    process = jm.Process([0.2, 0.2], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 4], sds=1))
    panel, _ = jm.simulate(process, 10, 10, random_state=0)
    jm.InfiniteJumpMeans().fit(panel)
    assert "looking for states: 1 states, sweep 1" in screen.getvalue()
    assert "EM step 20 of 20" in screen.getvalue() and "closing steps: " in screen.getvalue()
    jm.JumpMeans(2).fit(panel)
    assert "start 1 of 3: 2 states, sweep 2, objective" in screen.getvalue()
    assert is_clean(screen)


def test_the_log_says_how_long_things_took(clock, caplog):
    caplog.set_level(logging.INFO, "jumpmeans")
    for _ in track(2, "counting"):
        clock.now += 0.25
    with quiet(), status("looking"):
        clock.now += 3.0
    assert caplog.messages == ["counting: 0.50 s", "looking: 3.00 s"]


def test_importing_loads_neither_bars_nor_notebooks(tmp_path):
    (tmp_path / "IPython").mkdir()
    (tmp_path / "IPython" / "__init__.py").write_text("raise RuntimeError('imported')")
    code = "import sys, jumpmeans; print([m for m in ('tqdm', 'IPython', 'matplotlib') if m in sys.modules])"
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": path}
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


# ------------------------------------------------------------------------------------------------- compiling


class Watcher(event.Listener):
    """What stands on the screen when the compiler begins."""

    def __init__(self, screen):
        self.screen, self.seen = screen, []

    def on_start(self, event):
        self.seen.append(self.screen.getvalue())

    def on_end(self, event):
        pass


def fresh(function):
    """A kernel of the package that has never been compiled."""
    return numba.njit(function.py_func)


@needs_compiler
def test_compiling_is_said_before_the_wait(monkeypatch, caplog):
    screen = a_screen(monkeypatch)
    caplog.set_level(logging.INFO, "jumpmeans")
    kernel, watcher = fresh(objective.complete_cost), Watcher(screen)
    with event.install_listener("numba:compile", watcher):
        kernel(2.0)
    assert watcher.seen[0].startswith("\rcompiling complete_cost, once")
    assert is_clean(screen) and progress.Bar.in_front() is None
    assert caplog.messages[0] == "compiling complete_cost, once"
    assert caplog.messages[1].startswith("compiled complete_cost: ")
    caplog.clear()
    kernel(3.0)
    assert caplog.messages == []


@needs_compiler
def test_compiling_is_said_on_the_bar_of_the_work_that_waits(monkeypatch, clock):
    screen = a_screen(monkeypatch)
    with status("fitting"):
        fresh(objective.complete_cost)(2.0)
        assert "fitting: compiling complete_cost, once [" in screen.getvalue()  # no matter how short the wait was
        clock.now += 2.0
        say("sweep 1")
        assert "fitting: sweep 1 [" in screen.getvalue()
    assert is_clean(screen)


@needs_compiler
def test_compiling_is_said_at_once_on_a_fresh_line(monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL", 1e9)
    screen = a_screen(monkeypatch)
    with status("fitting"):
        fresh(objective.complete_cost)(2.0)
        fresh(objective.running_cost)(2.0)
        assert "fitting: compiling running_cost, once [" in screen.getvalue()


@needs_compiler
def test_a_kernel_and_what_it_calls_are_one_wait(caplog):
    caplog.set_level(logging.INFO, "jumpmeans")
    inner = fresh(objective.complete_cost)

    def outer(z):
        return inner(z) + 1.0

    outer.__module__ = "jumpmeans.kernels.made_up"
    numba.njit(outer)(2.0)
    assert [message.partition(":")[0] for message in caplog.messages] == ["compiling outer, once", "compiled outer"]


@needs_compiler
def test_a_failed_compilation_ends_its_line(monkeypatch):
    screen = a_screen(monkeypatch)

    def wrong(z):
        return z.there_is_no_such_thing

    wrong.__module__ = "jumpmeans.kernels.made_up"
    with pytest.raises(numba.TypingError):
        numba.njit(wrong)(2.0)
    assert "compiling wrong, once" in screen.getvalue()
    assert is_clean(screen) and progress.Bar.in_front() is None


@needs_compiler
def test_compiling_quietly_is_logged_only(monkeypatch, caplog):
    screen = a_screen(monkeypatch)
    caplog.set_level(logging.INFO, "jumpmeans")
    with quiet():
        fresh(objective.complete_cost)(2.0)
    assert screen.getvalue() == "" and "compiling complete_cost, once" in caplog.messages


@needs_compiler
def test_kernels_of_others_are_their_own_affair(monkeypatch, caplog):
    screen = a_screen(monkeypatch)
    caplog.set_level(logging.INFO, "jumpmeans")
    numba.njit(lambda z: z + 1)(2.0)
    assert screen.getvalue() == "" and caplog.messages == []


# ------------------------------------------------------------------------------------------------- history


def test_history_keeps_values_and_times():
    history = History()
    for value in (3, 2.5):
        history.add(value)
    assert len(history) == 2
    np.testing.assert_array_equal(history.values, [3.0, 2.5])
    for times in (history.wall_times, history.cpu_times):
        assert 0 <= times[0] <= times[1]
