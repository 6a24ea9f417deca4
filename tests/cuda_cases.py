"""What test_cuda.py asks of an engine: run as a script, the GPU's answers as numba's simulator gives them, pickled."""

import pickle
import sys

import numpy as np

import jumpmeans as jm
from jumpmeans.model.objective import Prices, evaluate
from jumpmeans.model.params import Params
from jumpmeans.model.updates import exact_rates
from jumpmeans.passes import Block, Search, Sequences

M = 3
P = np.array([[0, 0.7, 0.3], [0.5, 0, 0.5], [0.4, 0.6, 0]])
TURNING = np.array([[0, 0.98, 0.02], [0.02, 0, 0.98], [0.98, 0.02, 0]])  # its eigenvalues are complex
RATES = np.array([0.8, 0.6, 1.1])
GAUSSIAN = jm.emissions.Gaussian([0.0, 3.0, 6.0], sds=[1.0, 0.8, 1.3])
MIXED = [
    GAUSSIAN,
    jm.emissions.Categorical([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]], pseudo_count=1.0),
    jm.emissions.Poisson([1.0, 4.0, 9.0]),
    jm.emissions.Exponential([0.5, 2.0, 7.0]),
    jm.emissions.Bernoulli([0.1, 0.5, 0.8]),
    jm.emissions.Lognormal([0.0, 1.0, 2.0], [0.5, 0.4, 0.6]),
]
SEARCHES = {
    "exact": Search(1, 1, 0, 0),
    "two a gap": Search(2, 2, 0, 1),
    "beam": Search(2, 8, 1, 0),
    "free end": Search(1, 1, 0, 0, 1, 1),
    "settled": Search(2, 2, 0, 0, 100),
}


def process_of(emission, chain=P):
    return jm.Process(RATES, chain, emission=emission)


def block_of(process, n_sequences, n_rows, seed=1, kinds=False):
    """Sequences of unequal length and weight, some values missing; where asked, rows of all kinds and known states."""
    panel, _ = jm.simulate(process, n_sequences, n_rows, random_state=seed)
    rng = np.random.default_rng(seed)
    keep = rng.random(panel.n_observations) < 0.85
    keep[panel.offsets[:-1]] = True
    tau, sequence = panel.relative_times()[keep], panel.sequence_index[keep]
    x = process.emission.encode(panel)[keep]
    x[rng.random(x.shape) < 0.2] = np.nan
    offsets = np.searchsorted(sequence, np.arange(n_sequences + 1))
    ends = panel.end_times - panel.start_times + 0.5
    weights = 1.0 + rng.integers(0, 3, n_sequences)
    row_kinds = allowed = None
    if kinds:
        row_kinds = rng.choice([0, 0, 1, 2], len(tau)).astype(np.int8)
        allowed = rng.random((len(tau), M)) < 0.9
        allowed[~allowed.any(axis=1)] = True
    return Block(tau, offsets, ends, weights, x, kinds=row_kinds, allowed=allowed)


def swept(engine, block, emission, search, sweeps=2):
    """Trajectories and statistics of some sweeps."""
    sequences = Sequences.hold(engine, block)
    params = Params(RATES, P, jm.emissions.Record([emission] if not isinstance(emission, list) else emission))
    prices = Prices(1.0, np.full(block.x.shape[1], 1.5), 1.0, 1.0, 0.01, running=search.free_end == 0)
    dwells = sequences.no_jumps()
    for _ in range(sweeps):
        dwells, stats = sequences.sweep(dwells, params, prices, search)
    found = sequences.fetch(dwells)
    names = [name for name in stats._fields if name != "emission" and getattr(stats, name) is not None]
    out = {name: np.asarray(getattr(stats, name)) for name in names}
    out |= {f"dwells {name}": np.asarray(getattr(found, name)) for name in found._fields}
    return (
        out
        | columns_of(stats)
        | {
            "J": evaluate(stats, params, prices).total,
            "rates": exact_rates(stats, prices, np.ones(M, bool)),
            "total time": stats.total_time,
        }
    )


def smoothed(engine, block, process):
    """All that is said of a process given the rows."""
    sequences = Sequences.hold(engine, block)
    posterior, log_lik = sequences.smooth(process)
    expected = sequences.expect(process)
    out = {
        "posterior": posterior,
        "log_lik": log_lik,
        "weighed": sequences.log_likelihood(process),
        "agreement": sequences.agreement(sequences.no_jumps(), process),
        "integrals": expected.integrals,
        "first": expected.first,
        "each": expected.log_lik,
    }
    return out | columns_of(expected)


def columns_of(stats):
    """Statistics of all columns, part by part."""
    return {
        f"column {d} part {k}": np.asarray(part)
        for d, column in enumerate(stats.emission)
        for k, part in enumerate(column)
    }


def refused(engine):
    """What is said of a sequence without any path, by a sweep and by an E-step."""
    said = {}
    moves = jm.Process([1.0, 0.0], [[0, 1], [0, 0]], states=["a", "b"])
    block = Block(
        np.array([0.0, 1.0, 2.0, 0.0, 1.0, 2.0]), np.array([0, 3, 6]), np.full(2, 2.0), np.ones(2),
        np.array([[0.0], [1.0], [1.0], [0.0], [1.0], [0.0]]),
    )  # fmt: skip
    sequences = Sequences.hold(engine, block)
    params = Params(moves.rates, moves.transition_probs, moves.emission)
    for name, work in {
        "sweep": lambda: sequences.decode(params, Prices(1.0, np.ones(1), 1.0, 1.0, 0.01), SEARCHES["exact"]),
        "expect": lambda: sequences.expect(moves),
        "smooth": lambda: sequences.smooth(moves),
    }.items():
        try:
            work()
        except Exception as error:
            said[name] = f"{type(error).__name__} {error.args}"
    return said


def fitted(engine):
    """A whole fit."""
    panel, _ = jm.simulate(process_of(GAUSSIAN), 8, 6, random_state=2)
    model = jm.JumpMeans(2, n_init=1, refine=2, max_iter=100, tol=1e-3, engine=engine, random_state=0).fit(panel)
    return {
        "J": model.objective_,
        "states": model.trajectories_.codes,
        "starts": model.trajectories_.start_times,
        "process": model.process_.rates,
        "proba": model.predict_proba(panel),
    }


def surprising(block):
    """The same rows, of which two just one after the other show states far apart: what the second one says is large."""
    tau, x = block.tau.copy(), block.x.copy()
    tau[1], x[:2, 0] = tau[0] + 1e-9, (-6.0, 60.0)
    return Block(tau, block.offsets, block.ends, block.weights, x)


def answers(engine, narrow=None):
    """All cases; `narrow` is an engine of 32 bits."""
    gaussian, mixed = process_of(GAUSSIAN), process_of(MIXED)
    laplace = jm.emissions.Laplace([0.0, 3.0, 6.0])
    plain, told = block_of(gaussian, 5, 8), block_of(gaussian, 5, 8, kinds=True)
    out = {f"sweep: {name}": swept(engine, plain, GAUSSIAN, search) for name, search in SEARCHES.items()}
    out |= {f"kinds: {name}": swept(engine, told, GAUSSIAN, search) for name, search in SEARCHES.items()}
    out["families"] = swept(engine, block_of(mixed, 5, 8), MIXED, SEARCHES["exact"])
    out["no device code"] = swept(engine, plain, laplace, SEARCHES["exact"])
    out["long"] = swept(engine, block_of(gaussian, 2, 75), GAUSSIAN, SEARCHES["exact"])
    out["smooth"] = smoothed(engine, plain, gaussian)
    out["smooth: complex"] = smoothed(engine, plain, process_of(GAUSSIAN, TURNING))
    out["smooth: families"] = smoothed(engine, block_of(mixed, 4, 8), mixed)
    out["smooth: long"] = smoothed(engine, block_of(gaussian, 2, 75), gaussian)
    out["smooth: surprise"] = smoothed(engine, surprising(plain), gaussian)
    out["smooth: kinds"] = smoothed(engine, told, gaussian)
    out["refused"] = refused(engine)
    out["fit"] = fitted(engine)
    for name in ("exact", "settled"):
        out[f"narrow: {name}"] = swept(narrow or engine, plain, GAUSSIAN, SEARCHES[name])
    return out


def main(path):
    """The answers of the simulator, and those with running dwells that stay on the device; what the log said."""
    np.seterr(all="ignore")  # Python says what a device keeps to itself
    import logging

    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("jumpmeans").addHandler(handler)
    from jumpmeans.engines import cuda
    from jumpmeans.engines.device import sweep

    cuda.MANY_ROWS = 0
    wide, narrow = jm.engines.Cuda(), jm.engines.Cuda("float32", device=0)
    out = answers(wide, narrow)
    block = block_of(process_of(GAUSSIAN), 5, 8)
    out["again"] = swept(wide, block, GAUSSIAN, SEARCHES["exact"])
    sweep.APART = 0
    out["apart"] = swept(wide, block, GAUSSIAN, SEARCHES["two a gap"])
    out["said"] = said
    with open(path, "wb") as file:
        pickle.dump(out, file)


if __name__ == "__main__":
    main(sys.argv[1])
