"""Every engine through the contract; a pass that wrote in place, or kept its state elsewhere, would show here."""

import numpy as np
import pytest

import engine_contract as contract
import jumpmeans as jm
from jumpmeans.passes import Block

ENGINES = {"threads": jm.engines.Threads(3), "pickling": contract.Pickling()}


@pytest.mark.parametrize("model", list(contract.MODELS))
@pytest.mark.parametrize("engine", list(ENGINES))
def test_same_bits(engine, model):
    contract.check_engine(ENGINES[engine], model)


@pytest.mark.parametrize("engine", list(ENGINES))
def test_errors_and_states(engine):
    contract.check_errors(ENGINES[engine])
    contract.check_states(ENGINES[engine])


def test_the_contract_can_fail():
    """Planted: an engine that forgets the states of its blocks, one that mixes up their order."""

    class Forgets(contract.PickledBlocks):
        def run(self, work, state, *shared):
            return super().run(work, None, *shared)

    class Swaps(contract.PickledBlocks):
        def run(self, work, state, *shared):
            state, results = super().run(work, state, *shared)
            return state, results[::-1]

    for kind in (Forgets, Swaps):
        engine = contract.Pickling()
        engine.hold = lambda blocks, kind=kind: kind(contract.Pickling().hold(blocks).blocks)
        with pytest.raises((AssertionError, TypeError, AttributeError)):
            contract.check_states(engine)


def test_blocks_are_read_only_also_after_a_pickle(rng):
    import pickle

    panel = contract.hidden_panel()
    for block in (Block.of(panel, panel.values), pickle.loads(pickle.dumps(Block.of(panel, panel.values)))):
        for name in ("tau", "offsets", "ends", "weights", "x"):
            with pytest.raises(ValueError, match="read-only"):
                getattr(block, name)[0] = 1.0


def test_named_room_is_cut_with_the_rows():
    """Kinds, allowed sets and rate offsets of the rows go with them."""
    panel = contract.hidden_panel()
    n = panel.n_observations
    whole = Block.of(panel, panel.values)
    kinds, allowed = np.arange(n, dtype=np.int32), np.arange(3 * n).reshape(n, 3) % 2 == 0
    parts = Block(
        whole.tau, whole.offsets, whole.ends, whole.weights, whole.x, 0, kinds, allowed, 0.5 * kinds[:, None]
    ).cut()  # fmt: skip
    np.testing.assert_array_equal(np.concatenate([part.kinds for part in parts]), kinds)
    np.testing.assert_array_equal(np.concatenate([part.allowed for part in parts]), allowed)
    np.testing.assert_array_equal(np.concatenate([part.z for part in parts])[:, 0], 0.5 * kinds)
