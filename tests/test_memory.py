"""What cannot fit is refused at once, with an estimate and the way out."""

import numpy as np
import pytest

import jumpmeans as jm
from jumpmeans import memory


@pytest.fixture
def little(monkeypatch):
    """A machine with hardly any memory, and no request too small to be looked at."""
    monkeypatch.setattr(memory, "SMALL", 0)
    monkeypatch.setattr(memory, "free_memory", lambda: 50_000)


@pytest.fixture(scope="module")
def panel():
    law = jm.Process([0.3, 0.3], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0.0, 4.0], sds=1.0))
    return jm.simulate(law, 50, 20, random_state=0)[0]


def test_a_fit_that_cannot_fit_is_refused(little, panel):
    for model in (jm.JumpMeans(2), jm.comparators.EM(2), jm.InfiniteJumpMeans()):
        with pytest.raises(
            jm.TooLargeError,
            match=r"a fit of 1,000 rows must fit into the memory of this machine, of which 0\.0 GB are free, got an "
            r"estimate of 0\.0 GB; fit some of the sequences .*scan_panel",
        ):
            model.fit(panel)
    jm.JumpMeans(2, refine=1, n_init=1).fit(panel[:10])  # a part of it fits


def test_probabilities_that_cannot_fit_are_refused(panel, little):
    law = jm.Process(np.ones(20), (1 - np.eye(20)) / 19, emission=jm.emissions.Gaussian(np.arange(20.0), sds=1.0))
    with pytest.raises(
        jm.TooLargeError,
        match=r"probabilities of 20 states at 1,000 rows must fit .* \(at=\.\.\.\), or .*predict_proba_to",
    ):
        jm.JumpMeans.from_process(law).predict_proba(panel)


def test_what_there_is_room_for_is_not_held_up(panel):
    memory.require_room("nothing", 0.0, "")
    memory.require_room("a little more than we look at", memory.SMALL + 1.0, "")
    free = memory.free_memory()
    assert free is None or free > memory.SMALL
    if free is not None:
        with pytest.raises(jm.TooLargeError, match="all of it must fit"):
            memory.require_room("all of it", 1e6 * free, "take less")


def test_a_container_has_what_its_limit_leaves(monkeypatch):
    """Planted: files that were read counted as memory in use."""
    files = {
        "/proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    5000 kB\n",
        "/sys/fs/cgroup/memory.max": "3000000\n",
        "/sys/fs/cgroup/memory.current": "2500000\n",
        "/sys/fs/cgroup/memory.stat": "anon 5\ninactive_file 700000\nactive_file 3\n",
    }

    def read(path):
        if str(path) not in files:
            raise FileNotFoundError(path)
        return files[str(path)]

    monkeypatch.setattr(memory.Path, "read_text", read)
    assert memory.free_memory() == 1_200_000
    files["/sys/fs/cgroup/memory.max"] = "max\n"
    assert memory.free_memory() == 5000 * 1024
    del files["/proc/meminfo"]
    assert memory.free_memory() is None
