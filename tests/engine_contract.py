"""What every engine must keep: the same answers, bit for bit, as the plainest one; errors and states as promised.

An engine of yours: add it to ENGINES of test_engine_contract.py, or call the checks from a test of your own.
"""

import pickle

import numpy as np
import pytest

import jumpmeans as jm
from jumpmeans.passes import Block, Sequences


class Pickling:
    """An engine that pickles all that goes in and all that comes out: nothing is shared, nothing written in place."""

    def hold(self, blocks):
        return PickledBlocks([pickle.dumps(block) for block in blocks])


class PickledBlocks:
    def __init__(self, blocks):
        self.blocks = blocks

    def run(self, work, state, *shared):
        states, results = [], []
        sent = pickle.dumps((work, shared))
        for block, own in zip(self.blocks, state or [pickle.dumps(None)] * len(self.blocks), strict=True):
            there, arguments = pickle.loads(sent)
            new, result = there(pickle.loads(block), pickle.loads(own), *arguments)
            states.append(pickle.dumps(new))
            results.append(pickle.loads(pickle.dumps(result)))
        return states, results

    def fetch(self, state):
        return [pickle.loads(own) for own in state]

    def put(self, states):
        return [pickle.dumps(own) for own in states]

    def __len__(self):
        return len(self.blocks)


def hidden_panel():
    """Sticky states, irregular times, weights, some values missing; several blocks."""
    emission = jm.emissions.Gaussian([0.0, 4.0, 8.0], sds=1.0)
    P = np.array([[0, 0.7, 0.3], [0.5, 0, 0.5], [0.4, 0.6, 0]])
    panel, _ = jm.simulate(jm.Process([0.3, 0.2, 0.4], P, emission=emission), 150, 12, random_state=3)
    return jm.hold_out(panel, 0.2, random_state=0)[0]


def labelled_panel():
    process = jm.Process([0.3, 0.5, 0.2], (1 - np.eye(3)) / 2, states=list("abc"))
    return jm.hold_out(jm.simulate(process, 150, 12, random_state=4)[0], 0.3, random_state=0)[0]


MODELS = {
    "jump means": (lambda e: jm.JumpMeans(3, engine=e, refine=3), hidden_panel),
    "labels": (lambda e: jm.JumpMeans(emission="direct", engine=e, refine=3), labelled_panel),
    "infinite": (lambda e: jm.InfiniteJumpMeans(engine=e, refine=2, max_states=3), hidden_panel),
    "em": (lambda e: jm.comparators.EM(3, engine=e, max_iter=60), hidden_panel),
    "gibbs": (lambda e: jm.comparators.Gibbs(3, emission="gaussian", engine=e, n_samples=3, burn_in=3), hidden_panel),
    "particles": (
        lambda e: jm.comparators.ParticleGibbs(emission="gaussian", engine=e, n_iter=4, burn_in=2, n_particles=10),
        hidden_panel,
    ),
}


def answers(model, panel):
    """All that a fitted model says of a panel."""
    out = {
        "rates": model.process_.rates,
        "P": model.process_.transition_probs,
        "means": model.process_.emission.state_values(),
        "probabilities": model.predict_proba(panel),
        "values": model.predict_value(panel, "trajectory"),
        "expected": model.predict_value(panel, "posterior"),
    }
    if hasattr(model, "objective_history_"):
        out["history"] = model.objective_history_
    if hasattr(model, "trajectories_"):
        out["codes"], out["starts"] = model.trajectories_.codes, model.trajectories_.start_times
        out["decoded"] = model.decode(panel).start_times
    return out


def check_engine(engine, model):
    """The answers of a model are those of one thread, bit for bit."""
    make, panel = MODELS[model]
    panel = panel()
    mine, plain = (answers(make(e).fit(panel), panel) for e in (engine, jm.engines.Threads(1)))
    for name, value in plain.items():
        np.testing.assert_array_equal(mine[name], value, err_msg=name)


def check_errors(engine):
    """A sequence without any path is named by its place in the panel, whichever block it lies in."""
    panel = labelled_panel()
    structure = jm.Structure(allowed={"a": ["b"], "b": ["a"]})
    found = []
    for e in (engine, jm.engines.Threads(1)):
        with pytest.raises(jm.InfeasibleError, match=r"got none for sequence \d+, row \d+") as caught:
            jm.JumpMeans(emission="direct", structure=structure, jumps_per_gap=1, engine=e).fit(panel)
        found.append(str(caught.value))
    assert found[0] == found[1]


def count_rows(block, state, more):
    """A pass of its own: how many rows there were before and are now."""
    before = 0 if state is None else state
    return before + len(block.tau) + more, len(block.tau)


def check_states(engine):
    """States stay beside their blocks from run to run, can be put there, and come back in order."""
    panel = hidden_panel()
    blocks = Block.of(panel, panel.values).cut()
    held = engine.hold(blocks)
    assert len(held) == len(blocks) > 1
    state, rows = held.run(count_rows, None, 1)
    assert rows == [len(b.tau) for b in blocks]
    state, _ = held.run(count_rows, state, 2)
    assert held.fetch(state) == [2 * n + 3 for n in rows]
    state, _ = held.run(count_rows, held.put([10 * n for n in rows]), 0)
    assert held.fetch(state) == [11 * n for n in rows]
    assert Sequences.of(engine, panel, panel.values).longest_gap == max(b.longest_gap for b in blocks)
