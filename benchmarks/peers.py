"""Beside the peers: the same data, one core each, every task in a process of its own; what counts are the ratios.

    make bench-peers          # installs the peers beside jumpmeans (torch and jax: large), writes results/peers.json
    python benchmarks/peers.py --small    # in a minute, to see that it runs

Peers that are not installed, and msm where there is no R, are left out and named. hmmlearn, dynamax and pomegranate
take the rows as evenly spaced: they answer an easier question. Times are CPU seconds of one core, the least of some
repeats; what compiles was compiled before, what a peer asks for (lists of lengths, padded arrays) was made before.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import jumpmeans as jm
from jumpmeans.comparators import EM, Gibbs
from jumpmeans.engines import Threads

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "peers.json"
START, END = "<!-- peers table -->\n", "\n<!-- end of peers table -->"
ONE_CORE = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_ENABLE_X64": "1",
    "JAX_PLATFORMS": "cpu",
}
EM_STEPS = 20
R_FIT = r"""
library(msm)
args <- commandArgs(TRUE)
data <- read.csv(args[1])
n <- as.integer(args[2])
q <- matrix(0.1, n, n)
diag(q) <- 0
q <- crudeinits.msm(state ~ time, id, data, qmatrix = q)
took <- system.time(fit <- msm(state ~ time, subject = id, data = data, qmatrix = q,
                               control = list(fnscale = 4000, maxit = 10000)))
cat(sprintf("{\"seconds\": %.3f, \"msm\": \"%s\", \"minus2loglik\": %.6f}",
            took[["user.self"]] + took[["sys.self"]], packageVersion("msm"), fit$minus2loglik))
"""


class Size(NamedTuple):
    """How large the tasks are."""

    sequences: int
    length: int
    long: int
    fitted: int
    visits: tuple[int, int]


FULL = Size(100_000, 20, 2_000_000, 10_000, (700, 10))
SMALL = Size(2_000, 20, 20_000, 500, (100, 10))


# ------------------------------------------------------------------------------------------------ the same data


def process_of(M: int, *, hidden: bool = True, seed: int = 0) -> jm.Process:
    """M states four sds apart that stay about five gaps each."""
    rng = np.random.default_rng(seed)
    P = np.zeros((M, M))
    for m in range(M):
        P[m, np.arange(M) != m] = rng.dirichlet(np.ones(M - 1))
    emission = jm.emissions.Gaussian(4.0 * np.arange(M), 1.0) if hidden else None
    return jm.Process(rng.gamma(5.0, 0.04, M), P, emission=emission)


def readings(sequences: int, length: int) -> tuple[jm.Process, jm.Panel]:
    """Gaussian readings of five hidden states at irregular times."""
    process = process_of(5)
    return process, jm.simulate(process, sequences, length, random_state=1)[0]


def visits(M: int, size: Size) -> jm.Panel:
    """Visits at which the state is seen."""
    return jm.simulate(process_of(M, hidden=False), *size.visits, mean_gap=2.0, random_state=2)[0]


def even_chain(process: jm.Process) -> tuple[Any, Any, Any, Any]:
    """What a model of even steps is given: P(1), first states, means, variances."""
    step = process.transition_matrix(1.0).values
    means = process.emission.columns[0].means
    return step / step.sum(axis=1, keepdims=True), process.initial_probs, means, np.ones_like(means)


def least(work: Callable[[], Any], repeats: int) -> float:
    """Least CPU time of some runs."""
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


# ------------------------------------------------------------------------------------------------------ decoding


def decode_ours(sequences: int, length: int) -> float:
    """The published decode: best of several sets of candidates, with jump times."""
    process, panel = readings(sequences, length)
    model = jm.JumpMeans.from_process(process, engine=Threads(1))
    model.decode(panel.select(np.arange(min(20, sequences))))
    return least(lambda: model.decode(panel), 3)


def sweep_ours(sequences: int, length: int) -> float:
    """One pass of a fit: decode, jump times, statistics."""
    process, panel = readings(sequences, length)
    model = jm.JumpMeans.from_process(process, engine=Threads(1))
    model.decode(panel.select(np.arange(min(20, sequences))), criterion="online")
    return least(lambda: model.decode(panel, criterion="online"), 3)


def decode_hmmlearn(sequences: int, length: int) -> float:
    from hmmlearn.hmm import GaussianHMM

    process, panel = readings(sequences, length)
    model = GaussianHMM(5, covariance_type="diag")
    model.transmat_, model.startprob_, means, variances = even_chain(process)
    model.means_, model.covars_ = means.reshape(-1, 1), variances.reshape(-1, 1)
    X, lengths = panel.values, panel.lengths.tolist()
    return least(lambda: model.decode(X, lengths), 3)


def decode_dynamax(sequences: int, length: int) -> float:
    import jax
    from dynamax.hidden_markov_model import hmm_posterior_mode

    process, panel = readings(sequences, length)
    P, pi, means, _ = even_chain(process)
    x = jax.numpy.asarray(panel.values.reshape(sequences, length))
    mu, step, first = map(jax.numpy.asarray, (means.ravel(), P, pi))

    @jax.jit
    def decode(x: Any) -> Any:
        log_lik = -0.5 * (x[..., None] - mu) ** 2
        return jax.vmap(lambda own: hmm_posterior_mode(first, step, own))(log_lik)

    decode(x).block_until_ready()
    return least(lambda: decode(x).block_until_ready(), 3)


def decode_pomegranate(sequences: int, length: int) -> float:
    import torch
    from pomegranate.distributions import Normal
    from pomegranate.hmm import DenseHMM

    torch.set_num_threads(1)
    process, panel = readings(sequences, length)
    P, pi, means, _ = even_chain(process)
    shown = [Normal([float(mean)], [1.0], covariance_type="diag") for mean in means.ravel()]
    model = DenseHMM(shown, edges=P.tolist(), starts=pi.tolist())
    x = torch.tensor(panel.values.reshape(sequences, length, 1), dtype=torch.float32)
    return least(lambda: model.viterbi(x), 2)


# ------------------------------------------------------------------------------------------------------- fitting


def fit_ours(sequences: int, length: int) -> float:
    _, panel = readings(sequences, length)
    model = jm.JumpMeans(5, emission="gaussian", engine=Threads(1))
    model.fit(panel.select(np.arange(200)))
    return least(lambda: model.fit(panel), 1)


def fit_em(sequences: int, length: int) -> float:
    process, panel = readings(sequences, length)
    model = EM(5, emission="gaussian", start=process, max_iter=EM_STEPS, tol=0.0, accelerate=False, engine=Threads(1))
    model.fit(panel.select(np.arange(200)))
    return least(lambda: model.fit(panel), 1)


def fit_gibbs(sequences: int, length: int) -> float:
    _, panel = readings(sequences, length)
    model = Gibbs(5, emission="gaussian", n_samples=EM_STEPS // 2, burn_in=EM_STEPS // 2, engine=Threads(1))
    model.fit(panel.select(np.arange(200)))
    return least(lambda: model.fit(panel), 1)


def fit_hmmlearn(sequences: int, length: int) -> float:
    from hmmlearn.hmm import GaussianHMM

    _, panel = readings(sequences, length)
    X, lengths = panel.values, panel.lengths.tolist()
    return least(lambda: GaussianHMM(5, n_iter=EM_STEPS, tol=-np.inf, random_state=0).fit(X, lengths), 1)


def fit_dynamax(sequences: int, length: int) -> float:
    import jax
    from dynamax.hidden_markov_model import DiagonalGaussianHMM

    _, panel = readings(sequences, length)
    x = jax.numpy.asarray(panel.values.reshape(sequences, length, 1))
    model = DiagonalGaussianHMM(5, 1)
    params, props = model.initialize(jax.random.PRNGKey(0), method="kmeans", emissions=x)
    fit = lambda: model.fit_em(params, props, x, num_iters=EM_STEPS, verbose=False)  # noqa: E731
    fit()  # compiles
    return least(fit, 1)


def fit_pomegranate(sequences: int, length: int) -> float:
    import torch
    from pomegranate.distributions import Normal
    from pomegranate.hmm import DenseHMM

    torch.set_num_threads(1)
    process, panel = readings(sequences, length)
    P, pi, means, _ = even_chain(process)
    x = torch.tensor(panel.values.reshape(sequences, length, 1), dtype=torch.float32)

    def fit() -> None:
        shown = [Normal([float(mean)], [1.0], covariance_type="diag") for mean in means.ravel()]
        model = DenseHMM(shown, edges=P.tolist(), starts=pi.tolist(), max_iter=1)
        for _ in range(EM_STEPS):  # left to itself it ends when the likelihood falls by rounding, after two or three
            model.fit(x)

    return least(fit, 1)


# -------------------------------------------------------------------------------------------- irregular visits


def visits_ours(M: int, size: Size) -> float:
    panel = visits(M, size)
    model = jm.JumpMeans(emission="direct", engine=Threads(1))
    model.fit(panel)
    return least(lambda: model.fit(panel), 3)


def visits_em(M: int, size: Size) -> float:
    panel = visits(M, size)
    model = EM(emission="direct", structure=jm.Structure(initial="given"), engine=Threads(1))
    model.fit(panel)
    return least(lambda: model.fit(panel), 3)


def visits_msm(M: int, size: Size) -> float:
    panel = visits(M, size)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        columns = panel.sequence_index, panel.times, panel.values[:, 0].astype(int) + 1
        rows = zip(*(column.tolist() for column in columns), strict=True)
        (folder / "v.csv").write_text("id,time,state\n" + "".join(f"{i},{t!r},{s}\n" for i, t, s in rows))
        (folder / "fit.R").write_text(R_FIT)
        done = subprocess.run(
            ["Rscript", str(folder / "fit.R"), str(folder / "v.csv"), str(M)],
            capture_output=True,
            text=True,
            check=True,
        )
    return float(json.loads(done.stdout[done.stdout.index("{") :])["seconds"])


# ---------------------------------------------------------------------------------------------------------- all

# task -> what it is, in words; then who does it: name -> seconds
TASKS: dict[str, tuple[str, dict[str, Callable[[Size], float]]]] = {
    "decode many": (
        "decode {size.sequences:,} × {size.length} Gaussian rows, 5 states",
        {
            "jumpmeans": lambda s: decode_ours(s.sequences, s.length),
            "jumpmeans, one pass": lambda s: sweep_ours(s.sequences, s.length),
            "hmmlearn": lambda s: decode_hmmlearn(s.sequences, s.length),
            "dynamax": lambda s: decode_dynamax(s.sequences, s.length),
            "pomegranate": lambda s: decode_pomegranate(s.sequences, s.length),
        },
    ),
    "decode one": (
        "decode one sequence of {size.long:,} Gaussian rows, 5 states",
        {
            "jumpmeans": lambda s: decode_ours(1, s.long),
            "jumpmeans, one pass": lambda s: sweep_ours(1, s.long),
            "hmmlearn": lambda s: decode_hmmlearn(1, s.long),
            "dynamax": lambda s: decode_dynamax(1, s.long),
        },
    ),
    "fit": (
        f"fit {{size.fitted:,}} × {{size.length}} Gaussian rows, 5 states (EM: {EM_STEPS} iterations)",
        {
            "jumpmeans": lambda s: fit_ours(s.fitted, s.length),
            "jumpmeans, EM": lambda s: fit_em(s.fitted, s.length),
            "jumpmeans, Gibbs": lambda s: fit_gibbs(s.fitted, s.length),
            "hmmlearn": lambda s: fit_hmmlearn(s.fitted, s.length),
            "dynamax": lambda s: fit_dynamax(s.fitted, s.length),
            "pomegranate": lambda s: fit_pomegranate(s.fitted, s.length),
        },
    ),
    **{
        f"visits {M}": (
            f"fit {{size.visits[0]:,}} × {{size.visits[1]}} visits at irregular times, {M} states seen, all moves free",
            {
                "jumpmeans": lambda s, M=M: visits_ours(M, s),
                "jumpmeans, EM": lambda s, M=M: visits_em(M, s),
                "msm": lambda s, M=M: visits_msm(M, s),
            },
        )
        for M in (3, 5)
    },
}


def versions() -> dict[str, str]:
    """Of everything that takes part, and the processor."""
    found = {"python": platform.python_version()}
    for name in ("jumpmeans", "numpy", "numba", "hmmlearn", "dynamax", "jax", "pomegranate", "torch"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    if shutil.which("Rscript"):
        code = "cat(as.character(packageVersion('msm')), R.version$major, R.version$minor)"
        told = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True)
        if told.returncode == 0:
            found["msm"], major, minor = told.stdout.split()
            found["R"] = f"{major}.{minor}"
    return found


def processor() -> str:
    """Name of the processor, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def is_there(name: str, found: dict[str, str]) -> bool:
    """Whether what does a task is installed."""
    return name.startswith("jumpmeans") or name in found


def measure(task: str, name: str, small: bool) -> dict[str, Any]:
    """One task by one peer, in a process of its own that is bound to one core."""
    command = [sys.executable, __file__, "--task", task, "--name", name, *(["--small"] if small else [])]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ONE_CORE})
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no word"}
    return json.loads(done.stdout.splitlines()[-1])


def one(task: str, name: str, size: Size) -> None:
    """Do a task here and print how long it took."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = TASKS[task][1][name](size)
    print(json.dumps({"seconds": seconds}))


# ------------------------------------------------------------------------------------------------- what is said


def ours_of(rows: dict[str, Any]) -> float:
    """Seconds of the plain method of ours, which all others are compared to."""
    return float(rows["jumpmeans"]["seconds"])


def markdown(found: dict[str, Any]) -> str:
    """A table: for each task the CPU seconds of all, and how many times as long as ours each took."""
    lines = ["| one core each | CPU seconds | times ours |", "|---|---|---|"]
    for task in found["tasks"].values():
        lines.append(f"| **{task['what']}** | | |")
        own = ours_of(task["by"])
        for name, row in task["by"].items():
            if "seconds" in row:
                lines.append(f"| {name} | {row['seconds']:.3g} | {in_figures(row['seconds'] / own)} |")
            else:
                lines.append(f"| {name} | failed | |")
    told = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return "\n".join([*lines, "", f"{found['processor']}; {told}."])


def in_figures(x: float) -> str:
    """Two digits, or all before the point."""
    return f"{x:,.0f}" if x >= 10 else f"{x:.2g}"


def short(found: dict[str, Any]) -> str:
    """A line for each task: our seconds, and how many times as long the others took."""
    lines = ["| one core each | jumpmeans | others, times as long |", "|---|---|---|"]
    for task in found["tasks"].values():
        own = ours_of(task["by"])
        others = [
            f"{name.removeprefix('jumpmeans, ')} {in_figures(row['seconds'] / own)}"
            if "seconds" in row
            else f"{name} failed"
            for name, row in task["by"].items()
            if name != "jumpmeans"
        ]
        lines.append(f"| {task['what']} | {own:.2g} s | {', '.join(others)} |")
    return "\n".join(lines)


def draw(found: dict[str, Any], path: Path) -> None:
    """The same as a picture: bars of seconds on a logarithmic axis, ours in colour."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    tasks = list(found["tasks"].values())
    heights = [len(task["by"]) for task in tasks]
    fig, axes = plt.subplots(
        len(tasks), 1, figsize=(7.5, 0.32 * sum(heights) + 0.75 * len(tasks)), layout="constrained",
        gridspec_kw={"height_ratios": heights},
    )  # fmt: skip
    for ax, task in zip(axes, tasks, strict=True):
        rows = {name: row["seconds"] for name, row in task["by"].items() if "seconds" in row}
        bars = ax.barh(
            list(rows), rows.values(), color=["#0072b2" if n.startswith("jump") else "#999999" for n in rows]
        )
        ax.bar_label(bars, [f" {x:.3g} s" for x in rows.values()], fontsize=8)
        ax.set(xscale="log", title=task["what"])
        ax.title.set(fontsize=9, ha="left", x=0.0)
        ax.invert_yaxis()
        ax.margins(x=0.15)
        ax.tick_params(labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    axes[-1].set_xlabel("CPU seconds on one core")
    fig.savefig(path, dpi=130)


def write(found: dict[str, Any]) -> None:
    """Put the table into the page on speed, the short one into README, and the picture beside them."""
    for name, words in (("docs/speed.md", markdown(found)), ("README.md", short(found))):
        page = ROOT / name
        before, rest = page.read_text().split(START)
        page.write_text(before + START + words + END + rest.split(END)[1])
    draw(found, ROOT / "docs" / "images" / "peers.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="small tasks; prints, writes nothing")
    parser.add_argument("--only", nargs="*", metavar="TASK", help="these tasks; the others stay as they are written")
    parser.add_argument("--write", action="store_true", help="measure nothing: write docs/speed.md of what is there")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--name", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    size = SMALL if asked.small else FULL
    if asked.task:
        one(asked.task, asked.name, size)
        return
    if asked.write:
        write(json.loads(RESULTS.read_text()))
        return
    there = versions()
    tasks: dict[str, Any] = {}
    if asked.only and RESULTS.exists() and not asked.small:
        tasks = json.loads(RESULTS.read_text())["tasks"]
    for task in asked.only or TASKS:
        words, by = TASKS[task]
        rows = {name: measure(task, name, asked.small) for name in by if is_there(name, there)}
        tasks[task] = {"what": words.format(size=size), "by": rows, "missing": [n for n in by if n not in rows]}
        print(tasks[task]["what"])
        for name, row in rows.items():
            print(f"  {name:<22}{row.get('seconds', float('nan')):9.3f} s  {row.get('failed', '')}")
        if not asked.small:
            found = {"processor": processor(), "versions": there, "tasks": tasks}
            RESULTS.parent.mkdir(exist_ok=True)
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
