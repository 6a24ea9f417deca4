"""Ctrl-C while kernels run: it waits until numba and the pool of threads are done, and then comes.

Before, one that came while numba took a random generator in killed the interpreter (Gibbs, ParticleGibbs), and one that
came while it handed several arrays out was a SystemError. Planted: `held_back` left out of each place below.
"""

import os
import signal
import threading

import numpy as np
import pytest

import jumpmeans as jm
from jumpmeans.comparators import ml_trajectory, particle_chain
from jumpmeans.engines import Threads
from jumpmeans.interrupts import held_back
from jumpmeans.passes import Block

PANEL = jm.Panel.from_arrays(np.tile(np.arange(600.0), 3), np.tile([0.0, 5.0], 900), np.repeat([0, 1, 2], 600))
BLOCKS = Block.of(PANEL, PANEL.values).cut()


@pytest.fixture(autouse=True)
def heard():
    """Ctrl-C as on a terminal; a job that a shell starts in the background is deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(work):
    """The same work, with a Ctrl-C before it; done holds an entry for each that went on to its end."""
    done = []

    def wrapped(*args):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        for _ in range(1000):  # a signal is noticed between two steps of Python
            pass
        result = work(*args)
        done.append(result)
        return result

    return wrapped, done


def test_an_interrupt_waits_for_the_end_of_the_block():
    done = []
    with pytest.raises(KeyboardInterrupt), held_back():
        with held_back():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("inner")
        done.append("outer")
    assert done == ["inner", "outer"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_of_the_work_is_told_and_the_handler_put_back():
    with pytest.raises(ValueError, match="own"), held_back():
        raise ValueError("own")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_and_ignored_interrupts_are_left_alone():
    seen = []

    def work():  # only the main thread may set a handler: here it would be an error
        with held_back():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with held_back():
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.default_int_handler]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_pass_is_not_interrupted_within_a_block(jobs):
    assert len(BLOCKS) == 3
    work, done = interrupted(lambda block, state: (state, block.first))
    with pytest.raises(KeyboardInterrupt):
        Threads(jobs).hold(BLOCKS).run(work, None)
    assert len(done) == (1 if jobs == 1 else 3)  # one thread stops behind the block that it was at


@pytest.mark.parametrize(
    ("module", "kernel", "model"),
    [
        (particle_chain, "draw_tables", jm.comparators.ParticleGibbs(emission="gaussian", n_iter=2, burn_in=1)),
        (
            ml_trajectory,
            "best_chains",
            jm.comparators.MLTrajectory(
                jm.Process([1.0, 1.0], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 5]))
            ),
        ),
    ],
    ids=["ParticleGibbs", "MLTrajectory"],
)
def test_kernels_that_run_outside_a_pass_are_not_interrupted(module, kernel, model, monkeypatch):
    work, done = interrupted(getattr(module, kernel))
    monkeypatch.setattr(module, kernel, work)
    with pytest.raises(KeyboardInterrupt):
        model.fit(PANEL.head(20))
    assert len(done) >= 1
