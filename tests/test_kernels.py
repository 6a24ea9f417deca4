"""What holds for all kernels: no index out of bounds, and no need of a folder to write to."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import jumpmeans

SOURCE = Path(jumpmeans.__file__).parent

BOUNDS = """
import numpy as np
import jumpmeans as jm
from jumpmeans.comparators import EM

rng = np.random.default_rng(0)
one = jm.engines.Threads(1)
# windows from next to nothing to far beyond any table
for end in (3.0, 1e13, 2.9e14, 1e15, 1e300):
    panel = jm.Panel.from_arrays([0.0, 1, 2, 3], list("abab"), [0] * 4, end_times=[end] * 4)
    model = EM(emission="direct", max_iter=3, tol=1.0, engine=one).fit(panel)
    assert np.isfinite(model.process_.rates).all()
    probs = model.predict_proba(panel, at={0: [0.5, 1e14, 1e15, 1e20]})
    assert np.isfinite(probs).all()
ids = np.repeat(np.arange(6), 7)
gaps = 10.0 ** rng.uniform(-9, 5, 42)
times = np.concatenate([np.cumsum(gaps[ids == i]) for i in range(6)])
for values in (rng.normal(size=42), rng.choice(list("abc"), 42)):
    shown = values.astype(object)
    shown[rng.random(42) < 0.3] = None
    panel = jm.Panel.from_arrays(times, list(shown), ids)
    for options in ({}, {"search": "beam"}, {"jumps_per_gap": 3, "first_dwell": "running"}):
        n_states = {"emission": "direct"} if values.dtype.kind == "U" else {"n_states": 3}
        model = jm.JumpMeans(**n_states, **options, n_init=1, max_iter=20, refine=1, engine=one).fit(panel)
        model.predict_proba(panel)
    assert len(model.decode(panel, criterion="time")) == 6
print("done")
"""


def run(code, folder, **environment):
    """Output of a fresh interpreter that takes jumpmeans from `folder`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "XDG_"))}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True, text=True, env={**kept, "PYTHONPATH": str(folder), **environment},
    )  # fmt: skip


def test_no_index_is_out_of_bounds(tmp_path):
    """Planted: clamping a gap to 16^15 - 1, which rounds to 16^15, and so to one digit too many."""
    # unoptimised code compiles in a third of the time, and is asked for its indices all the same
    done = run(BOUNDS, SOURCE.parent, NUMBA_BOUNDSCHECK="1", NUMBA_OPT="0", NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_kernels_without_a_folder_to_write_to(tmp_path):
    """Neither beside the code nor at home: compiled anew each time, and said once. Planted: always cache=True."""
    copy = shutil.copytree(SOURCE, tmp_path / "jumpmeans", ignore=shutil.ignore_patterns("__pycache__", "*.csv"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("a file where a folder should be: nobody can write into it")
    code = """
import numpy as np
import jumpmeans
from jumpmeans.kernels.stats import label_rows
states = np.full(3, -1, np.int32)
label_rows(np.array([4, 5], np.int32), np.array([0, 2], np.int32), 2, states)
print(jumpmeans.__file__, states.tolist())
"""
    done = run(code, tmp_path, HOME=os.devnull)
    assert done.stdout == f"{copy / '__init__.py'} [4, 4, 5]\n", done.stderr
    assert done.stderr.count("compiled kernels cannot be kept on disk") == 1
    assert "set NUMBA_CACHE_DIR" in done.stderr
    kept = run(code, tmp_path, HOME=os.devnull, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert kept.stdout == done.stdout and kept.stderr == ""
    assert list((tmp_path / "cache").rglob("*.nbc"))
