"""Panels on a cluster: the same bits as in memory whatever the files; what is wrong is named with its file."""

import os
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import jumpmeans as jm
from jumpmeans.data.scan import id_keys
from jumpmeans.engines.scanned import chunk_bounds
from jumpmeans.estimators import infinite
from jumpmeans.fit import setup
from jumpmeans.passes import Block
from jumpmeans.passes.block import cut_bounds

distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")
ROLES = {"id": "patient", "time": "t", "value": "y"}


@pytest.fixture(scope="module")
def engine():
    """A cluster within this process, of two workers."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield jm.engines.Dask(client)


@pytest.fixture
def small_samples(monkeypatch):
    monkeypatch.setattr(setup, "MANY_ROWS", 2000)
    monkeypatch.setattr(setup, "START_ROWS", 1000)
    monkeypatch.setattr(infinite, "SEARCH_ROWS", 1500)


def table_of(n=300, length=20, family="gaussian", **columns):
    emission = jm.emissions.Gaussian([0.0, 4.0, 8.0], 1.0) if family == "gaussian" else None
    process = jm.Process([0.2, 0.3, 0.4], (1.0 - np.eye(3)) / 2, emission=emission, states=list("abc"))
    panel, _ = jm.simulate(process, n, length, random_state=0)
    values = panel.values[:, 0] if family == "gaussian" else panel.decode_values(panel.values[:, 0])
    ids = np.array([f"p{i:04}" for i in panel.sequence_index])
    table = pd.DataFrame({"patient": ids, "t": panel.times, "y": values})
    return table.assign(**{name: np.repeat(x, length) for name, x in columns.items()})


def write(table, folder, edges):
    """A file for the sequences between each two edges."""
    folder.mkdir()
    number = pd.factorize(table["patient"])[0]
    for k, (i, j) in enumerate(pairwise(edges)):
        table[(number >= i) & (number < j)].to_parquet(folder / f"visits-{k:02}.parquet", index=False)
    return folder


def answers(model):
    process = model.process_
    out = [
        process.rates,
        process.transition_probs,
        process.initial_probs,
        model.history_.values,
        model._occupancy_.visits,
    ]
    if hasattr(process.emission, "columns") and not process.emission.is_direct:
        out.append(process.emission.columns[0].predictive(np.eye(len(process.rates))))
    return out


MODELS = {
    "jump means": ("gaussian", lambda: jm.JumpMeans(3, engine=jm.engines.Threads(1))),
    "symbols": ("labels", lambda: jm.JumpMeans(3, emission="categorical", refine=3, engine=jm.engines.Threads(2))),
    "labels": ("labels", lambda: jm.JumpMeans(emission="direct", engine=jm.engines.Threads(1))),
    "em": ("gaussian", lambda: jm.comparators.EM(3, max_iter=30, engine=jm.engines.Threads(1))),
    "infinite": ("gaussian", lambda: jm.InfiniteJumpMeans(max_states=3, refine=1, engine=jm.engines.Threads(1))),
}


@pytest.mark.parametrize("model", list(MODELS))
def test_the_same_bits_whatever_the_files(model, engine, tmp_path, small_samples):
    """Threads on the rows in memory, and two partitions on the cluster, of which one has a file of a single sequence.

    Planted: blocks cut within each file; medians of every file; weights summed by file.
    """
    family, make = MODELS[model]
    table = table_of(family=family, w=np.random.default_rng(0).choice([1.0, 0.3, 2.7], 300))
    plain = make().fit(jm.Panel.from_frame(table, **ROLES, weight="w"))
    for name, edges in (("even", [0, 100, 200, 300]), ("odd", [0, 1, 37, 290, 300])):
        scanned = jm.scan_panel(write(table, tmp_path / name, edges), engine=engine, weight="w", **ROLES)
        assert (scanned.n_sequences, scanned.n_observations) == (300, 6000)
        found = make().fit(scanned)
        assert not hasattr(found, "trajectories_")
        for mine, its in zip(answers(found), answers(plain), strict=True):
            np.testing.assert_array_equal(mine, its)


def test_blocks_are_those_of_the_panel_in_memory(engine, tmp_path):
    """Planted: a block that ends with its file."""
    table = table_of()
    panel = jm.Panel.from_frame(table, **ROLES)
    scanned = jm.scan_panel(write(table, tmp_path / "odd", [0, 3, 120, 300]), engine=engine, **ROLES)
    model = jm.JumpMeans(3)
    record = model._blank(panel, None)[1]
    held = scanned.hold(record, None).held
    mine = [block for chunk in engine.client.gather(held.chunks) for block in chunk]
    its = Block.of(panel, panel.values).cut()
    assert len(mine) == len(its) == len(held) > 3
    for a, b in zip(mine, its, strict=True):
        assert a.first == b.first
        for name in ("tau", "offsets", "ends", "weights", "x"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_every_block_is_in_one_task(rng):
    """Planted: blocks at the edge of two files in none, or in both."""
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 60, 3000))])
    bounds = cut_bounds(offsets)
    for firsts in ([0, 3000], [0, 1, 2, 3, 1500, 3000], np.append(np.arange(0, 3000, 7), 3000)):
        chunks = chunk_bounds(bounds, offsets, np.asarray(firsts))
        assert [chunk[0] for chunk in chunks[1:]] == [chunk[-1] for chunk in chunks[:-1]]
        assert sorted({edge for chunk in chunks for edge in chunk}) == bounds


def test_dates_labels_sets_kinds_and_groups_agree(engine, tmp_path):
    """A file's first label or day is not that of all. Planted: codes and days left as they are."""
    table = pd.DataFrame({
        "patient": ["a", "a", "b", "b", "c", "c"],
        "t": pd.to_datetime(["2024-03-05", "2024-03-09", "2024-01-01", "2024-01-02", "2025-01-01", "2025-02-01"]),
        "y": ["well", "ill", "dead", None, "alive", "well"],
        "how": ["snapshot", "snapshot", "snapshot", "snapshot", "snapshot", "entry"],
        "clinic": ["x", "x", "y", "y", "x", "x"],
        "score": [1, 2, 3, 4, 5, 6],
    })  # fmt: skip
    roles = ROLES | {"value": ["y", "score"], "kind": "how", "group": "clinic", "sets": {"alive": ["well", "ill"]}}
    whole = jm.Panel.from_frame(table, **roles)
    scanned = jm.scan_panel(write(table, tmp_path / "files", [0, 1, 2, 3]), engine=engine, **roles)
    found = scanned.gather()
    for name in (
        "times",
        "values",
        "offsets",
        "ids",
        "start_times",
        "end_times",
        "weights",
        "groups",
        "kinds",
        "known",
    ):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name), err_msg=name)
    assert (found.clock, found.integer, found.columns) == (whole.clock, whole.integer, whole.columns)
    assert [None if x is None else x.tolist() for x in found.categories] == [["dead", "ill", "well"], None]
    assert found.state_sets == whole.state_sets
    assert scanned.labels("score").tolist() == [1, 2, 3, 4, 5, 6]
    assert "3 sequences, 6 rows in 3 files" in repr(scanned)


def test_a_small_panel_is_fitted_as_the_panel_it_is(engine, tmp_path):
    table = table_of(60, 10)
    scanned = jm.scan_panel(str(write(table, tmp_path / "files", [0, 30, 60]) / "*.parquet"), engine=engine, **ROLES)
    found, plain = jm.JumpMeans(3).fit(scanned), jm.JumpMeans(3).fit(jm.Panel.from_frame(table, **ROLES))
    np.testing.assert_array_equal(found.trajectories_.start_times, plain.trajectories_.start_times)


def test_read_outs_are_written_beside_each_other(engine, tmp_path, small_samples):
    table = table_of()
    panel = jm.Panel.from_frame(table, **ROLES)
    scanned = jm.scan_panel(write(table, tmp_path / "files", [0, 3, 120, 300]), engine=engine, **ROLES)
    model = jm.JumpMeans(3, refine=2).fit(scanned)
    paths = model.decode_to(scanned, tmp_path / "decoded")
    assert [os.path.basename(path) for path in paths] == [f"part-{k:05}.parquet" for k in range(3)]
    decoded, plain = pd.concat(map(pd.read_parquet, paths)), model.decode(panel)
    np.testing.assert_array_equal(decoded["start"], plain.start_times)
    np.testing.assert_array_equal(decoded["state"], plain.states)
    paths = model.predict_proba_to(scanned, tmp_path / "probabilities")
    probs = pd.concat(map(pd.read_parquet, paths))
    assert probs["patient"].tolist() == table["patient"].tolist()
    np.testing.assert_array_equal(probs["t"], table["t"])
    np.testing.assert_allclose(probs[["0", "1", "2"]], model.predict_proba(panel), atol=1e-12)


@pytest.mark.parametrize("name", list(MODELS))
def test_a_bootstrap_draws_the_same_sequences_there_as_here(name, engine, tmp_path, small_samples):
    """Two partitions on the cluster, one with a file of a single sequence; groups drawn as a whole, and not.

    Planted: a file's counts taken from the first of all; a file without a drawn sequence kept; groups numbered by file.
    """
    family, make = MODELS[name]
    rng = np.random.default_rng(0)
    table = table_of(family=family, w=rng.choice([1.0, 0.3, 2.7], 300), ward=rng.integers(0, 60, 300))
    roles = ROLES | {"weight": "w", "group": "ward"}
    panel = jm.Panel.from_frame(table, **roles)
    model = make().fit(panel)
    for edges, groups in (([0, 100, 200, 300], None), ([0, 1, 37, 290, 300], False)):
        here = jm.bootstrap(model, panel, n=2, n_jobs=1, groups=groups, random_state=1)
        folder = write(table, tmp_path / str(groups), edges)
        there = jm.bootstrap(
            model, jm.scan_panel(folder, engine=engine, **roles), n=2, groups=groups, random_state=1
        )  # fmt: skip
        for mine, its in zip(there.replicates, here.replicates, strict=True):
            assert not hasattr(mine, "trajectories_")
            for a, b in zip(answers(mine), answers(its), strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["jump means", "labels"])
def test_tuning_holds_out_the_same_rows_there_as_here(name, engine, tmp_path, small_samples):
    """Planted: rows numbered anew in each file; errors averaged by file; labels of held-out rows forgotten."""
    family, make = MODELS[name]
    table = table_of(family=family)
    model = make().set_params(n_init=1, refine=1)
    grid = {"transition_weight": [0.5, 4.0]}
    here = jm.tune(model, jm.Panel.from_frame(table, **ROLES), grid, folds=2, n_jobs=1, random_state=1)
    for folder, edges in (("even", [0, 100, 200, 300]), ("odd", [0, 1, 37, 290, 300])):
        scanned = jm.scan_panel(write(table, tmp_path / folder, edges), engine=engine, **ROLES)
        there = jm.tune(model, scanned, grid, folds=2, random_state=1)
        np.testing.assert_allclose(there.fold_errors, here.fold_errors, rtol=1e-12)
        assert len(np.unique(here.fold_errors)) > 2
        assert there.best == here.best
        for mine, its in zip(answers(there.model), answers(here.model), strict=True):
            np.testing.assert_array_equal(mine, its)


# ------------------------------------------------------------------------------------------------- what is wrong


def spoil(folder, k, **columns):
    path = folder / f"visits-{k:02}.parquet"
    pd.read_parquet(path).assign(**columns).to_parquet(path, index=False)
    return path


def test_a_schema_error_in_the_57th_file_is_named(engine, tmp_path):
    table = table_of(60, 2)
    folder = write(table, tmp_path / "files", list(range(61)))
    path = spoil(folder, 56, y=["x", "y"])
    with pytest.raises(
        jm.PanelError,
        match=r"values of column 'y' must be of one kind in all files, got numbers in .*00.* and labels in .*visits-56",
    ):
        jm.scan_panel(folder, engine=engine, **ROLES)
    pd.read_parquet(path).drop(columns="y").to_parquet(path, index=False)
    with pytest.raises(jm.PanelError, match=r"in .*visits-56.parquet': there is no column 'y'"):
        jm.scan_panel(folder, engine=engine, **ROLES)
    path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(jm.PanelError, match=r"visits-56.parquet' must be a whole Parquet file, but is damaged"):
        jm.scan_panel(folder, engine=engine, **ROLES)
    path.unlink()
    assert jm.scan_panel(folder, engine=engine, **ROLES).n_sequences == 59


def test_a_bad_row_is_named_with_its_file(engine, tmp_path, small_samples):
    table = table_of(300, 10)
    folder = write(table, tmp_path / "files", [0, 100, 200, 300])
    spoil(folder, 1, t=lambda own: np.where(np.arange(len(own)) == 17, -1.0, own["t"]))
    with pytest.raises(
        jm.PanelError,
        match=r"in .*visits-01.parquet': times must increase strictly .* at sequence 'p0101', row 17; sort",
    ):
        jm.scan_panel(folder, engine=engine, **ROLES)
    for kind, t in (("ids", {"patient": [1, 2]}), ("times", {"t": pd.to_datetime(["2024-01-01", "2024-01-02"])})):
        pd.DataFrame({"patient": ["x", "x"], "t": [1.0, 2.0], "y": [0.0, 1.0]}).assign(**t).to_parquet(
            folder / "visits-01.parquet"
        )
        with pytest.raises(jm.PanelError, match=rf"{kind} must be of one kind in all files, .*visits-01"):
            jm.scan_panel(folder, engine=engine, **ROLES)


def test_what_a_family_or_a_structure_refuses_is_named_with_its_file(engine, tmp_path, small_samples):
    """Found where the blocks are made, and in a sweep."""
    table = table_of(300, 10, family="labels")
    folder = write(table, tmp_path / "files", [0, 100, 200, 300])
    scanned = jm.scan_panel(folder, engine=engine, **ROLES)
    with pytest.raises(jm.PanelError, match=r"in .*visits-00.parquet': labels of column 'y' must be among the known"):
        jm.JumpMeans(emission="direct", states=["a", "b"]).fit(scanned)
    structure = jm.Structure(allowed={"a": ["b"], "b": ["a"], "c": []})
    with pytest.raises(
        jm.InfeasibleError, match=r"in .*visits-0\d.parquet': .* got none for sequence 'p0\d+', row \d+"
    ):
        jm.JumpMeans(emission="direct", structure=structure, jumps_per_gap=1).fit(scanned)
    for ask in (
        jm.JumpMeans(emission="direct").fit(jm.Panel.from_frame(table, **ROLES)).decode,
        jm.comparators.MostCommon().fit,
        jm.hold_out,
    ):
        with pytest.raises(jm.PanelError, match=r"must be one in memory here, got one on a cluster; .*gather\(\)"):
            ask(scanned)
    with pytest.raises(jm.PanelError, match="rates must not depend on covariates"):
        jm.comparators.EM(emission="direct", structure=jm.Structure(covariates="all")).fit(scanned)


def test_a_sequence_in_two_files_is_refused_or_regrouped(engine, tmp_path):
    table = table_of(40, 10)
    folder = tmp_path / "files"
    folder.mkdir()
    for k, (i, j) in enumerate([(0, 105), (105, 203), (203, 209), (209, 400)]):  # the third is all of others
        table[i:j].to_parquet(folder / f"visits-{k:02}.parquet", index=False)
    with pytest.raises(
        jm.PanelError,
        match=r"must lie in one file, got rows of sequence 'p0010' in .*00.* and .*01.*, and 1 more; .*regroup=True",
    ):
        jm.scan_panel(folder, engine=engine, **ROLES)
    scanned = jm.scan_panel(folder, engine=engine, regroup=True, **ROLES)
    found, whole = scanned.gather(), jm.Panel.from_frame(table, **ROLES)
    for name in ("times", "values", "offsets", "ids", "start_times", "end_times"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name), err_msg=name)


def test_ids_of_one_key_are_told_apart(monkeypatch, engine, tmp_path):
    """Two ids with the same key in two files are two sequences. Planted: keys taken for ids."""
    from jumpmeans.data import scan

    table = table_of(4, 5)
    folder = write(table, tmp_path / "files", [0, 2, 4])
    monkeypatch.setattr(scan, "id_keys", lambda ids: np.arange(len(ids), dtype=np.uint64))
    assert jm.scan_panel(folder, engine=engine, **ROLES).n_sequences == 4


def test_keys_of_ids():
    assert id_keys(np.array([3, -1])).tolist() == [3, 2**64 - 1]
    assert id_keys(np.array(["a", "b"], dtype=object)).tolist() == id_keys(np.array(["a", "b"], dtype=object)).tolist()
    assert len(set(id_keys(np.array([f"p{i}" for i in range(10_000)], dtype=object)).tolist())) == 10_000


def test_no_files_no_rows(engine, tmp_path):
    with pytest.raises(jm.PanelError, match="there must be a file for"):
        jm.scan_panel(tmp_path / "nothing", engine=engine, **ROLES)
    with pytest.raises(jm.PanelError, match="paths must name at least one file"):
        jm.scan_panel([], engine=engine, **ROLES)
    table = table_of(4, 5)
    table[:0].to_parquet(tmp_path / "a.parquet", index=False)
    with pytest.raises(jm.PanelError, match="at least one row, got none in 1 files"):
        jm.scan_panel(tmp_path, engine=engine, **ROLES)
    table.to_parquet(tmp_path / "b.parquet", index=False)
    assert jm.scan_panel(tmp_path, engine=engine, **ROLES).n_sequences == 4  # an empty file is one that has nothing
    with pytest.raises(jm.PanelError, match="paths must be distinct"):
        jm.scan_panel([tmp_path / "b.parquet"] * 2, engine=engine, **ROLES)
    with pytest.raises(jm.PanelError, match="covariates must be left out"):
        jm.scan_panel(tmp_path, engine=engine, covariates=["t"], **ROLES)
