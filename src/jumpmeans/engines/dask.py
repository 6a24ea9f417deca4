"""Dask: blocks on the workers of a cluster. Parameters go out once a pass, statistics come back in order.

All that a cluster holds is the result of a task that it could run again: blocks, parameters, what is kept beside the
blocks. So a worker that is lost costs the time to do its part anew, and nothing else.
"""

from __future__ import annotations

import atexit
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Self
from uuid import uuid4

import numpy as np

from ..errors import MissingExtraError
from ..passes.block import Block, NoPathError
from ..passes.engine import Held

# Tasks for each thread of the cluster: few, for each has its price, but enough to even out slow ones.
TASKS_PER_THREAD = 4
# A task has no more rows than this, so that workers can put away what they do not need just now.
MOST_ROWS_OF_A_TASK = 1 << 19


def need_distributed() -> Any:
    """The package `distributed`, or the error that names the extra."""
    try:
        import distributed
    except ImportError:
        raise MissingExtraError("a cluster needs dask.distributed: pip install 'jumpmeans[dask]'.") from None
    return distributed


class Dask:
    """Run passes on the workers of a `dask.distributed` cluster.

    Parameters
    ----------
    client_or_address : distributed.Client or str, optional
        The cluster, or the address of its scheduler, such as "tcp://10.0.0.1:8786". Left out: the client of this
        process, if there is one (`Client(...)` makes itself that), else a `LocalCluster` of its own on the cores of
        this machine, which ends with `close()` or with the process. A script that starts one needs
        ``if __name__ == "__main__":`` around its work, as its workers are processes that import it.

    Notes
    -----
    Results are those of one thread, bit for bit. A panel in memory is sent to the cluster once, by way of the
    scheduler, which keeps it to send it again should a worker be lost; for one that is larger than memory, see
    `jumpmeans.scan_panel`. docs/cluster.md has more.

    Examples
    --------
    >>> import jumpmeans as jm
    >>> jm.engines.Dask("tcp://10.0.0.1:8786")
    Dask('tcp://10.0.0.1:8786')
    """

    def __init__(self, client_or_address: Any = None) -> None:
        known = client_or_address is None or isinstance(client_or_address, str)
        if not known and not isinstance(client_or_address, need_distributed().Client):
            raise ValueError(
                "client_or_address must be a distributed.Client, the address of a scheduler, or None for a cluster on "
                f"this machine, got {client_or_address!r}."
            )
        self.client_or_address = client_or_address
        self._client: Any = None
        self._cluster: Any = None

    def __repr__(self) -> str:
        return f"Dask({'' if self.client_or_address is None else repr(self.client_or_address)})"

    @property
    def client(self) -> Any:
        """The client, connected when it is first asked for."""
        if self._client is None or (self._client.status == "closed" and self.client_or_address is None):
            self._client = self._connect()
        return self._client

    def _connect(self) -> Any:
        distributed = need_distributed()
        given = self.client_or_address
        if isinstance(given, distributed.Client):
            return given
        if given is None:
            try:
                return distributed.default_client()
            except ValueError:  # there is none
                given = self._cluster = distributed.LocalCluster(dashboard_address=":0")
        atexit.register(self.close)
        return distributed.Client(given, set_as_default=False)

    def close(self) -> None:
        """Let go of the cluster: end it if it is our own, disconnect if we connected, leave a given client alone."""
        client, cluster = self._client, self._cluster
        self._client = self._cluster = None
        atexit.unregister(self.close)
        ours = cluster is not None or isinstance(self.client_or_address, str)
        for part in (client if ours else None, cluster):
            if part is not None:
                part.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __deepcopy__(self, _: Any) -> Self:
        return self  # copies of a model share the cluster

    def __reduce__(self) -> tuple[Any, ...]:
        # elsewhere a client is another one, of the same scheduler
        known = self.client_or_address is None or isinstance(self.client_or_address, str)
        return Dask, (self.client_or_address if known else self.client.scheduler.address,)

    def hold(self, blocks: Sequence[Block]) -> Held:
        """Send blocks to the workers, several to a task."""
        client = self.client
        most = sum(client.nthreads().values()) * TASKS_PER_THREAD or 1
        rows = [len(block.tau) for block in blocks]
        size = min(max(sum(rows) // most, 1), MOST_ROWS_OF_A_TASK)
        chunk = np.array([before // size for before in accumulate(rows[:-1], initial=0)])
        bounds = [0, *(np.flatnonzero(np.diff(chunk)) + 1).tolist(), len(blocks)]
        parts = [list(blocks[i:j]) for i, j in pairwise(bounds)]
        return HeldThere(client, submit(client, "blocks", given, parts), list(map(len, parts)))

    def map(self, work: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> Iterator[Any]:
        """Results of `work(*task)` in the order of the tasks; what several of them are given is sent once."""
        client, group = self.client, uuid4().hex
        known = {id(x): x for task in tasks for x in task}
        times = Counter(id(x) for task in tasks for x in task)
        twice = [x for key, x in known.items() if times[key] > 1]
        sent = dict(zip(map(id, twice), submit(client, "shared", given, twice), strict=True)) if twice else {}
        name = work.__name__.strip("_")
        with without_warning():
            futures = [
                client.submit(work, *(sent.get(id(x), x) for x in task), key=f"{name}-{group}-{i}", pure=False)
                for i, task in enumerate(tasks)
            ]
        try:
            for future in futures:
                yield future.result()
        finally:
            client.cancel(futures)


class Done(NamedTuple):
    """What a pass left at some blocks: what is kept beside each, and results, or the sequence that has no path."""

    states: list[Any]
    results: list[Any]
    failure: NoPathError | None = None


class HeldThere:
    """Blocks on workers: `chunks` are futures of lists of them, `counts` their lengths.

    The handle of what is kept beside them is a list of futures of `Done`.
    """

    def __init__(self, client: Any, chunks: list[Any], counts: list[int]) -> None:
        self.client, self.chunks, self.counts = client, chunks, counts

    def run(self, work: Callable[..., tuple[Any, Any]], state: Any, *shared: Any) -> tuple[list[Any], list[Any]]:
        """Run a pass over all blocks; see `jumpmeans.passes.engine.Held`."""
        before = [None] * len(self.chunks) if state is None else state
        common = submit(self.client, "parameters", given, [(work, *shared)]) * len(self.chunks)
        name = work.__name__.replace("_", " ")
        done = submit(self.client, name, pass_over, common, self.chunks, before)
        found = self._gather(name, results_of, done)
        failures = [part for part in found if isinstance(part, NoPathError)]
        if failures:
            raise failures[0]
        return done, [result for part in found for result in part]

    def fetch(self, state: Any) -> list[Any]:
        """What is kept beside each block, in their order."""
        return [own for part in self._gather("fetch", states_of, state) for own in part]

    def put(self, states: list[Any]) -> list[Any]:
        """Keep something beside each block, given in their order."""
        bounds = pairwise(accumulate(self.counts, initial=0))
        return submit(self.client, "put", given, [Done(states[i:j], []) for i, j in bounds])

    def __len__(self) -> int:
        return sum(self.counts)

    def _gather(self, name: str, part: Callable[[Done], Any], done: list[Any]) -> list[Any]:
        """A part of what was left at the blocks, brought here; nothing goes on if we are interrupted."""
        wanted = submit(self.client, f"{name}: results", part, done)
        try:
            return list(self.client.gather(wanted))
        except BaseException:
            self.client.cancel([*wanted, *done])
            raise


def submit(client: Any, name: str, work: Callable[..., Any], *arguments: Sequence[Any]) -> list[Any]:
    """Futures of work(*arguments), one for each entry of the arguments, under a name that the dashboard shows."""
    group = uuid4().hex
    keys = [f"{name}-{group}-{i}" for i in range(len(arguments[0]))]
    with without_warning():
        return list(client.map(work, *arguments, key=keys, pure=False))


def without_warning() -> Any:
    """No warning of large tasks: we know what we send, blocks and panels, once."""
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"})


# -------------------------------------------------------------------------------------------- on the workers


def given(part: Any) -> Any:
    """A task that is nothing but its data."""
    return part


def pass_over(common: tuple[Any, ...], blocks: list[Block], before: Done | None) -> Done:
    """Run a pass over the blocks of one task, one after the other."""
    work, *shared = common
    states, results = [], []
    for k, block in enumerate(blocks):
        try:
            state, result = work(block, None if before is None else before.states[k], *shared)
        except NoPathError as failure:  # told by the first block that has one, whichever worker is the fastest
            return Done([], [], failure)
        states.append(state)
        results.append(result)
    return Done(states, results)


def results_of(done: Done) -> Any:
    """What goes back to the client."""
    return done.results if done.failure is None else done.failure


def states_of(done: Done) -> Any:
    """What is kept beside the blocks."""
    return done.states
