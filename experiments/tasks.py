"""Small independent pieces of work: each kept when done, run over all cores with one thread each."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import json
import os
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
CACHE = HERE / ".cache"
PACKAGE = Path(str(importlib.util.find_spec("jumpmeans").origin)).parent  # type: ignore[union-attr]
# Parts of the package that change no number here.
BESIDE_THE_POINT = ("plots", "io.py", "cli.py", "report", "progress.py", "compiling.py", "online.py")
THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
# Seconds between two lines of progress where there is no terminal.
PAUSE = 30.0


class Task(NamedTuple):
    """A call `module:function(**settings)` that returns what JSON can hold; cost is a guess in CPU seconds."""

    work: str
    settings: dict[str, Any]
    cost: float = 1.0


@functools.cache
def code_digest() -> str:
    """Digest of the package's code, comments and docstrings apart: another code means other results."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0] in BESIDE_THE_POINT:
            continue
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
                node.body = node.body[1:]
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()[:12]


def versions() -> dict[str, Any]:
    """What the numbers were made with."""
    names = ("jumpmeans", "numpy", "scipy", "numba", "scikit-learn")
    made = {name: version(name) for name in names}
    return {"python": ".".join(map(str, sys.version_info[:3])), **made, "code": code_digest(), "cpus": os.cpu_count()}


class Store:
    """Finished tasks of one item: a file of JSON lines, one a task."""

    def __init__(self, item: str, folder: Path = CACHE, any_code: bool = False) -> None:
        self.path = folder / f"{item}.jsonl"
        self.code = code_digest()
        self.done: dict[str, Any] = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                try:
                    record = json.loads(line)
                except json.JSONDecodeError:  # cut short when a run was stopped
                    continue
                if any_code or record["code"] == self.code:
                    self.done[record["key"]] = record["result"]

    @staticmethod
    def key(task: Task) -> str:
        return json.dumps([task.work, task.settings], sort_keys=True)

    def missing(self, tasks: Iterable[Task]) -> list[Task]:
        return [task for task in tasks if self.key(task) not in self.done]

    def add(self, task: Task, result: Any) -> None:
        self.done[self.key(task)] = result
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps({"key": self.key(task), "code": self.code, "result": result}) + "\n")

    def results(self, tasks: Iterable[Task]) -> list[dict[str, Any]]:
        return [self.done[self.key(task)] for task in tasks]


def pool(n_workers: int | None = None) -> ProcessPoolExecutor:
    """Workers of one thread each, on every core."""
    for name in THREAD_LIMITS:
        os.environ[name] = "1"
    return ProcessPoolExecutor(n_workers or os.cpu_count() or 1, mp_context=get_context("spawn"))


def perform(task: Task) -> dict[str, Any]:
    """Do one task; the CPU seconds it took go with its result."""
    warnings.simplefilter("ignore")  # fits stopped early say so; the results tell
    module, function = task.work.split(":")
    begun = time.process_time()
    result: dict[str, Any] = getattr(importlib.import_module(module), function)(**task.settings)
    return {**result, "task_seconds": round(time.process_time() - begun, 3)}


def run_tasks(work: dict[str, list[Task]], stores: dict[str, Store], workers: Executor) -> Iterator[str]:
    """Do what is missing of the tasks of all items, the longest first; yields each item as it is complete."""
    todo = [(item, task) for item, tasks in work.items() for task in stores[item].missing(tasks)]
    todo.sort(key=lambda pair: -pair[1].cost)
    left = Counter(item for item, _ in todo)
    yield from (item for item in work if not left[item])
    progress = Progress(sum(map(len, work.values())), len(todo), sum(task.cost for _, task in todo))
    waiting = {workers.submit(perform, task): (item, task) for item, task in todo}
    failed: Counter[str] = Counter()
    for future in as_completed(waiting):
        item, task = waiting[future]
        left[item] -= 1
        try:
            stores[item].add(task, future.result())
        except Exception:
            failed[item] += 1
            print(f"\n{item}: failed {task.work} {task.settings}\n{traceback.format_exc()}", file=sys.stderr)
        progress.step(task.cost)
        if not left[item] and not failed[item]:
            yield item
    progress.close()
    if failed:
        raise SystemExit(f"failed tasks: {dict(failed)}; mend them and run again.")


class Progress:
    """A line with the share done and the time left, judged by the guessed costs."""

    def __init__(self, n: int, todo: int, cost: float) -> None:
        self.n, self.done, self.cost = n, n - todo, cost
        self.spent = 0.0
        self.begun = self.last = time.monotonic()
        self.live = sys.stderr.isatty()
        print(f"{todo} tasks to do, {self.done} done before", file=sys.stderr, flush=True)

    def step(self, cost: float) -> None:
        self.done += 1
        self.spent += cost
        now = time.monotonic()
        if now - self.last < (0.2 if self.live else PAUSE):
            return
        self.last = now
        left = (now - self.begun) * max(self.cost - self.spent, 0.0) / self.spent
        line = f"{self.done}/{self.n} tasks, {clock(now - self.begun)} so far, {clock(left)} left"
        print(f"\r{line}\x1b[K" if self.live else line, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def close(self) -> None:
        took = clock(time.monotonic() - self.begun)
        print(("\r\x1b[K" if self.live else "") + f"tasks done in {took}", file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    """A duration for people."""
    minutes, s = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min {s:02d} s"


def write_json(path: Path, data: Any) -> None:
    """Readable JSON: numbers with six digits (jump times with all), lists of numbers on one line."""
    text = json.dumps(rounded(data), indent=1)
    text = re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: "[" + " ".join(found[1].split()) + "]", text)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def rounded(data: Any) -> Any:
    if isinstance(data, dict):  # jumps of dwells that are next to nothing need all their digits
        return {key: value if key == "start_times" else rounded(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [rounded(value) for value in data]
    return float(f"{data:.6g}") if isinstance(data, float) else data
