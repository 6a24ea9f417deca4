"""The GPU's kernels, in numba's simulator, beside threads; on a GPU benchmarks/gpu.py compares the same.

Planted, and seen to fail here: costs of jumps read as if from and into were each other; a front of a queue that is not
charged what has run up (FOLD); a front that leaves too late; an ENTRY that does not end all dwells; a jump at a row
that moves; a tree of sums that adds a thread to itself; the imaginary part of gaps left out; a mask read one bit too
high; a sequence that must not go by the eigenbasis and is added by nobody.
"""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cuda_cases
import jumpmeans as jm
from jumpmeans.engines.cuda import Cuda, find_device

pytestmark = pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    path = tmp_path_factory.mktemp("cuda") / "answers"
    env = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, cuda_cases.__file__, str(path)], env=env, stderr=subprocess.PIPE, text=True
        )
        # the simulator's threads swap what `cuda` means while others run: now and then one finds the wrong one
        if "module 'numba.cuda' has no attribute" not in done.stderr:
            break
    assert done.returncode == 0, done.stderr
    return pickle.loads(path.read_bytes())


@pytest.fixture(scope="module")
def threads():
    return cuda_cases.answers(jm.engines.Threads(1))


CASES = [*(f"{kind}: {name}" for kind in ("sweep", "kinds") for name in cuda_cases.SEARCHES), "families", "long", "fit"]
SMOOTH = ["smooth", *(f"smooth: {name}" for name in ("complex", "families", "long", "surprise", "kinds"))]


def check(mine, plain, rtol):
    assert mine.keys() == plain.keys()
    for name, value in plain.items():
        value = np.asarray(value)
        size = np.abs(value[np.isfinite(value)]).max(initial=0.0)
        np.testing.assert_allclose(mine[name], value, rtol=rtol, atol=rtol * size, err_msg=name)


@pytest.mark.parametrize("case", [*CASES, "no device code"])
def test_sweeps_and_fits(case, device, threads):
    """Trajectories, statistics, J and rates of threads; integers are equal, so states and rows are."""
    check(device[case], threads[case], 1e-9)


@pytest.mark.parametrize("case", SMOOTH)
def test_probabilities(case, device, threads):
    """Posteriors, log-likelihoods and expected statistics of threads."""
    check(device[case], threads[case], 1e-9)


@pytest.mark.parametrize("search", ["exact", "settled"])
def test_32_bits(search, device, threads):
    """The same states here, where no two trajectories are nearly alike; J to 1e-5."""
    mine, plain = device[f"narrow: {search}"], threads[f"narrow: {search}"]
    np.testing.assert_array_equal(mine["dwells states"], plain["dwells states"])
    check(mine, plain, 1e-5)


def test_running_dwells_that_stay_there(device, threads):
    """Rates, J and total time from sums alone; who asks for the dwells gets them."""
    check(device["apart"], threads["sweep: two a gap"], 1e-9)


def test_two_runs_agree_to_the_bit(device):
    for name, value in device["sweep: exact"].items():
        np.testing.assert_array_equal(device["again"][name], value, err_msg=name)


def test_sequences_without_a_path(device, threads):
    assert device["refused"] == threads["refused"]
    assert len(device["refused"]) == 3


def test_what_runs_on_threads_is_said_once(device):
    said = device["said"]
    assert any("leave most of a GPU idle" in line for line in said)
    assert any("'smooth' runs on threads of this machine, since rows are not all snapshots" in line for line in said)
    assert not any("'sweep' runs on threads" in line for line in said)


def test_docs_have_the_numbers_of_the_committed_run():
    root = Path(__file__).parents[1]
    told = subprocess.run(
        [sys.executable, str(root / "benchmarks" / "gpu.py"), "--table"], check=True, capture_output=True, text=True
    )
    assert told.stdout.strip() in (root / "docs" / "gpu.md").read_text()


def test_options():
    assert repr(Cuda("float32", device=1)) == "Cuda(dtype='float32', device=1)"
    with pytest.raises(ValueError, match=r"dtype must be one of \('float64', 'float32'\), got 'half'"):
        Cuda("half")
    with pytest.raises(ValueError, match=r"device must be None or an integer of at least 0, got -1"):
        Cuda(device=-1)


def test_no_gpu(monkeypatch):
    """Said with the extra, before any data are moved."""
    from numba import cuda

    monkeypatch.setattr(cuda, "is_available", lambda: False)
    with pytest.raises(jm.MissingExtraError, match=r"must have an NVIDIA GPU.*jumpmeans\[cuda\].*engine='threads'"):
        jm.JumpMeans(2, engine="cuda").fit(jm.Panel.from_arrays([0.0, 1.0, 2.0], [0.0, 1.0, 5.0], [0, 0, 0]))
    with pytest.raises(jm.MissingExtraError, match=r"NVIDIA GPU"):
        find_device(None)
