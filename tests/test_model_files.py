"""Model files: the same answers to the bit, and nothing trusted that stands in a file."""

import hashlib
import io
import json
import zipfile

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import jumpmeans as jm
from all_families import ALL, EXAMPLES, Gamma, spec
from golden import models as golden
from test_contract import MASKED, PANEL, PROCESS, REGISTRY


def same(a, b, where=""):
    """Equal to the bit, all the way down."""
    assert type(a) is type(b), (where, a, b)
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape, where
        if a.dtype == object:
            same(a.ravel().tolist(), b.ravel().tolist(), where)
        else:
            assert np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes(), where
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{where}[{i}]")
    elif isinstance(a, dict):
        assert set(a) == set(b), where
        for key in a:
            same(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, np.random.Generator):
        same(a.bit_generator.state, b.bit_generator.state, where)
    elif hasattr(a, "__dict__") and not isinstance(a, type):
        skip = {"_wall", "_cpu", "engine", "_seen_"}  # the clock of a history starts anew; panels are not kept
        same(*({k: v for k, v in vars(x).items() if k not in skip} for x in (a, b)), where)
    else:
        assert a == b or (a != a and b != b), (where, a, b)


def answers(model, panel):
    """All that a model says of a panel."""
    out = {"value": model.predict_value(panel)}
    if hasattr(model, "process_"):
        out |= {"proba": model.predict_proba(panel), "predict": model.predict(panel)}
        out |= {"log_likelihood": model.log_likelihood(panel), "trajectory": model.predict_value(panel, "trajectory")}
        out |= {"decode": vars(model.decode(panel)), "decode by time": vars(model.decode(panel, "time"))}
        frame = model.summary()
        out |= {"summary": {name: frame[name].to_numpy() for name in frame.columns}}
    return out


def saved(model, tmp_path, **more):
    model.save(tmp_path / "m.jm")
    return jm.load(tmp_path / "m.jm", **more)


@pytest.mark.parametrize("name", REGISTRY)
def test_every_model_is_the_same_when_read_again(name, tmp_path):
    """Caught: a fitted attribute left out, a tuple that became a list, a number that lost its last digit."""
    model = clone(REGISTRY[name]).fit(MASKED)
    again = saved(model, tmp_path)
    same(model, again)
    same(answers(model, PANEL), answers(again, PANEL))
    assert clone(again).get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert [path.name for path in tmp_path.iterdir()] == ["m.jm"]  # nothing is left beside it


@pytest.mark.parametrize("name", ALL)
def test_every_family(name, tmp_path):
    column = EXAMPLES[name].column
    P = (np.ones((3, 3)) - np.eye(3)) / 2
    process = jm.Process([0.2, 0.3, 0.1], P, emission=column, states=["a", "b", "c"])
    panel, _ = jm.simulate(process, 15, 12, random_state=3)
    known = jm.JumpMeans.from_process(process.take(np.array([2, 0, 1])))
    same(known, saved(known, tmp_path, families=[Gamma] if name == "gamma" else []))
    if name == "marker":  # needs names of its states, and another column
        return
    model = jm.JumpMeans(None if column.shows_state else 2, emission=spec(name), n_init=1, refine=2).fit(panel)
    again = saved(model, tmp_path, families=[Gamma] if name == "gamma" else [])
    same(model, again)
    same(answers(model, panel), answers(again, panel))
    assert again.emission == spec(name)


def test_dates_text_options_and_several_columns(tmp_path):
    days = np.datetime64("2024-03-01", "D") + np.tile([0, 3, 9, 20], 10)
    values = np.array([["x", "y", "y", "x"][i % 4] for i in range(40)], dtype=object)
    panel = jm.Panel.from_arrays(days, values, ids=np.repeat([f"=p{i}" for i in range(10)], 4))
    loose = jm.Structure(allowed={"x": ["y"], "y": ["x"]})
    model = jm.JumpMeans(emission="direct", refine=3, structure=loose, random_state=np.random.default_rng(5)).fit(panel)
    again = saved(model, tmp_path)
    same(model, again)
    same(answers(model, panel), answers(again, panel))
    frame, other = model.trajectories_.to_frame(), again.trajectories_.to_frame()
    assert frame.equals(other)
    columns = [jm.emissions.Gaussian([0, 4]), jm.emissions.Categorical(np.eye(2), ["u", "v"])]
    both = jm.Process([0.3, 0.2], [[0, 1], [1, 0]], emission=columns)
    wide, _ = jm.simulate(both, 20, 10, random_state=1)
    model = jm.JumpMeans(2, emission=["gaussian", "categorical"], start=both).fit(wide)
    same(model, saved(model, tmp_path))


def test_known_parameters_and_an_engine_of_its_own(tmp_path):
    """An engine is where work runs, not what was learned: a model read again works on threads."""
    model = jm.JumpMeans.from_process(PROCESS, engine=jm.engines.Threads(1))
    again = saved(model, tmp_path)
    assert again.engine == "threads"
    same(answers(model, PANEL), answers(again, PANEL))


def test_the_same_model_gives_the_same_file(tmp_path):
    model = jm.JumpMeans.from_process(PROCESS)
    for name in "ab":
        model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# ---------------------------------------------------------------------------------------------- what is refused


def test_what_cannot_be_saved(tmp_path):
    path = tmp_path / "m.jm"
    with pytest.raises(NotFittedError, match="must be fitted first"):
        jm.JumpMeans(2).save(path)
    with pytest.raises(NotFittedError, match="must be fitted first"):
        jm.comparators.MostCommon().save(path)

    class Own(jm.JumpMeans):
        pass

    with pytest.raises(ValueError, match="a model must be one of jumpmeans to be saved, got Own"):
        Own.from_process(PROCESS).save(path)
    model = jm.JumpMeans.from_process(PROCESS)
    model.start = object()
    with pytest.raises(ValueError, match=r"got <object .* of type object in model.options\['start'\]"):
        model.save(path)

    class Gaussian(jm.emissions.Gaussian):
        """A family that took the name of ours: read again it would be another one."""

    process = jm.Process([1.0, 1.0], [[0, 1], [1, 0]], emission=Gaussian([0, 1]))
    with pytest.raises(ValueError, match="must have a name of its own to be saved, got 'emission gaussian'"):
        jm.JumpMeans.from_process(process).save(path)
    with pytest.raises(ValueError, match="families must have names of their own"):
        jm.load(path, families=[Gaussian])
    with pytest.raises(ValueError, match="families must be classes of"):
        jm.load(path, families=["gaussian"])
    assert not list(tmp_path.iterdir())


def test_a_family_of_the_users_must_be_given(tmp_path):
    process = jm.Process([1.0, 1.0], [[0, 1], [1, 0]], emission=Gamma([1.0, 5.0]))
    jm.JumpMeans.from_process(process).save(tmp_path / "m.jm")
    with pytest.raises(jm.ModelFileError, match=r"no 'emission gamma' to be read; .*load\(path, families="):
        jm.load(tmp_path / "m.jm")
    assert isinstance(jm.load(tmp_path / "m.jm", families=[Gamma]).emission_.columns[0], Gamma)


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    """Caught: a target that is opened, and so emptied, before the new file is whole."""
    path = tmp_path / "m.jm"
    model = jm.JumpMeans.from_process(PROCESS)
    model.save(path)
    before = path.read_bytes()

    def full(*_, **__):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="no space left"):
            model.save(path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["m.jm"]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Bytes of a small model, and its parts."""
    path = tmp_path_factory.mktemp("model") / "m.jm"
    model = jm.JumpMeans(2, emission="categorical", n_init=1, refine=1).fit(MASKED.select(range(3)))
    model.save(path)
    return path.read_bytes()


def test_not_a_model(tmp_path):
    path = tmp_path / "m.jm"
    with pytest.raises(FileNotFoundError, match="there is no file"):
        jm.load(path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        jm.load(tmp_path)
    for data in (b"", b"id,time,value\n1,2,3\n", b"\x80\x04\x95pickle", b"\0" * 1000):
        path.write_bytes(data)
        with pytest.raises(jm.ModelFileError, match="must be a model file, got one that begins with"):
            jm.load(path)
    with zipfile.ZipFile(path, "w") as other:
        other.writestr("hello.txt", "hello")
    with pytest.raises(jm.ModelFileError, match="do not match their checksum"):
        jm.load(path)


def test_cut_short_or_longer(small, tmp_path):
    path = tmp_path / "m.jm"
    for n in (4, 30, 1000, len(small) // 2, len(small) - 65, len(small) - 1):
        path.write_bytes(small[:n])
        with pytest.raises(jm.ModelFileError, match=r"cut short or damaged|do not match their checksum"):
            jm.load(path)
    path.write_bytes(small + b"more")
    with pytest.raises(jm.ModelFileError):
        jm.load(path)


def test_any_flipped_bit_is_found(small, tmp_path):
    """Caught: checksums of members alone, which say nothing of names, dates and the directory."""
    path, rng = tmp_path / "m.jm", np.random.default_rng(0)
    some = rng.integers(0, len(small), 300)
    for i in [*range(60), *range(len(small) - 100, len(small)), *some.tolist()]:
        data = bytearray(small)
        data[i] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(data))
        with pytest.raises(jm.ModelFileError, match=r"m\.jm"):
            jm.load(path)
    body = bytearray(small)
    body[small.index(b"NUMPY") + 130] ^= 1
    path.write_bytes(bytes(body))
    with pytest.raises(jm.ModelFileError, match=r"do not match their checksum, first in 'arrays/0.npy'"):
        jm.load(path)


def forged(path, data, change, *, compress=zipfile.ZIP_STORED):
    """The file with its parts changed and its checksum made right again: what somebody who means harm would do."""
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    document = json.loads(parts["model.json"])
    change(document, parts)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compress) as new:
        new.comment = b"0" * 64
        for name, content in parts.items():
            new.writestr(name, content)
    seal(path, out.getvalue())


def seal(path, data):
    path.write_bytes(data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode())


def edit(**changes):
    """A change of the document: {"options.tol": 3} and the like, by the dotted path of fields."""

    def change(document, parts):
        for key, value in changes.items():
            *way, last = key.split("__")
            at = document
            for name in way:
                at = at[name]
            at[last] = value
        parts["model.json"] = json.dumps(document).encode()

    return change


def npy(array):
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asarray(array), version=(1, 0))
    return out.getvalue()


def header(descr, shape):
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": descr, "fortran_order": False, "shape": shape})
    return out.getvalue()


def at(document, *names):
    """The array member, or the part, of a fitted model by its fields."""
    part = document["model"]["fields"]["fitted"]["items"]
    part = next(x for key, x in part if key == names[0])
    for name in names[1:]:
        part = part["fields"][name]
    return part


def swap(*names, value):
    """A change of one array."""

    def change(document, parts):
        parts[at(document, *names)["name"]] = npy(value)

    return change


def member(data):
    """A change of the first array to other bytes."""
    return lambda document, parts: parts.update({"arrays/0.npy": data})


def whole(data):
    """A change of the document to other bytes."""
    return lambda document, parts: parts.update({"model.json": data})


def mapping(*pairs):
    return {"is": "mapping", "items": [list(pair) for pair in pairs]}


STEP = {"is": "Step", "fields": {"kind": "a", "n_states": 1, "objective": 0}}
CODE = b"__import__('os').sep \n"
DECODER = "_decoder_", "params", "rates"
REFUSED = {
    "newer": (
        edit(schema=2, version="9.9"),
        r"schema 2, written by jumpmeans 9\.9, .* reads up to schema 1",
    ),
    "no schema": (edit(schema="x"), "schema must be a whole number"),
    "another format": (edit(format="x"), "does not say that it is"),
    "unknown class": (edit(model={"is": "os.system", "fields": {}}), "there is no 'os.system' to be read"),
    "no model": (edit(model=STEP), "must be a model, got Step"),
    "nothing": (edit(model=None), "must be a model, got NoneType"),
    "unknown option": (edit(model__fields__options=mapping(("evil", 1))), r"no options or results \['evil'\]"),
    "wrong option": (
        edit(model__fields__options=mapping(("tol", -1))),
        "tol must be 'auto' or a finite number >= 0, got -1",
    ),
    "a method replaced": (edit(model__fields__fitted=mapping(("fit", 1))), r"no options or results \['fit'\]"),
    "NaN": (swap("process_", "rates", value=[np.nan, 1.0]), r"model.fitted\['process_'\]: rates must be finite"),
    "wrong shape": (swap("process_", "rates", value=np.ones(3)), r"process_.*must be a list of 3 labels"),
    "other states": (swap(*DECODER, value=np.ones(7)), r"_decoder_.*rates must be floats of shape \(2,\)"),
    "integers for floats": (swap(*DECODER, value=np.ones(2, int)), r"rates must be floats of shape \(2,\), got int64"),
    "codes beyond": (swap("trajectories_", "codes", value=np.full(9, 5, np.int32)), "codes must be of states"),
    "falling offsets": (swap("trajectories_", "offsets", value=[0, 5, 2, 9]), "every sequence must have a dwell"),
    "not JSON": (whole(b"{"), "m.jm' must hold a model that makes sense"),
    "JSON with NaN": (whole(b'{"format": NaN}'), "its JSON holds NaN"),
    "deep": (whole(b"[" * 10**6), "nested too deeply"),
    "null": (whole(b"null"), "does not say that it is"),
    "no document": (lambda document, parts: parts.pop("model.json"), "must hold 'model.json', but does not"),
    "no member": (lambda document, parts: parts.pop("arrays/0.npy"), "there is no member 'arrays/0.npy'"),
    "a petabyte": (member(header("<f8", (10**15,))), r"shape \(1000000000000000,\) of float64 must be its 0 bytes"),
    "below 0": (member(header("<f8", (-1, -2)) + b"\0" * 16), "must be its 16 bytes"),
    "objects": (member(header("|O", (1,)) + b"\0" * 8), "entries must be numbers, text or dates"),
    "records": (member(header([("a", "<f8")], (1,)) + b"\0" * 8), "entries must be numbers, text or dates"),
    "no text": (member(header("<U1", (1,)) + b"\xff" * 4), "text must be made of characters"),
    "truth of 7": (member(header("|b1", (1,)) + b"\7"), "truth values must be 0 or 1"),
    "code": (member(b"\x93NUMPY\1\0" + len(CODE).to_bytes(2, "little") + CODE), "must be a plain .npy array"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_forged_file_is_told(small, tmp_path, name):
    """Checksums are right in all of these; the last line of defence is what the parts say of themselves."""
    change, match = REFUSED[name]
    path = tmp_path / "m.jm"
    forged(path, small, change)
    with pytest.raises(jm.ModelFileError, match=match):
        jm.load(path)


def test_a_forged_file_without_a_change_is_read(small, tmp_path):
    """The forger is right, or the cases above would prove nothing."""
    forged(tmp_path / "m.jm", small, lambda document, parts: None)
    assert jm.load(tmp_path / "m.jm").states_.tolist() == [0, 1]


def test_a_bomb_is_not_unpacked(small, tmp_path):
    path = tmp_path / "m.jm"
    forged(path, small, lambda d, p: p.update({"arrays/0.npy": b"\0" * 10**7}), compress=zipfile.ZIP_DEFLATED)
    with pytest.raises(jm.ModelFileError, match="must be neither compressed nor encrypted"):
        jm.load(path)
    # members that lie over each other: each is honest, all together are more than the file
    with zipfile.ZipFile(io.BytesIO(small)) as old:
        first = old.infolist()[0]
        count = len(old.infolist())
    directory = small.index(b"PK\1\2")
    entry = small[directory : directory + 46 + len(first.filename)]
    copies = b"".join(entry[:46] + f"m{i:09}"[: len(first.filename)].encode() for i in range(200))
    end = small[small.rindex(b"PK\5\6") :]
    n = (200).to_bytes(2, "little")
    end = end[:8] + n + n + len(copies).to_bytes(4, "little") + end[16:]
    assert count and len(f"m{0:09}") == len(first.filename)
    seal(path, small[:directory] + copies + end)
    with pytest.raises(jm.ModelFileError, match="must be what the file holds"):
        jm.load(path)


def test_names_of_members_are_no_paths(small, tmp_path):
    """A member called ../evil is a key like any other; nothing is ever written."""

    def change(document, parts):
        parts["../evil.npy"] = parts["arrays/0.npy"]
        parts["/tmp/evil.npy"] = parts["arrays/0.npy"]

    folder = tmp_path / "folder"
    folder.mkdir()
    forged(folder / "m.jm", small, change)
    jm.load(folder / "m.jm")
    assert [path.name for path in tmp_path.rglob("*")] == ["folder", "m.jm"]


# ------------------------------------------------------------------------------------------- files of earlier releases


@pytest.mark.parametrize("path", golden.FILES, ids=lambda path: path.stem)
def test_files_of_earlier_releases_are_read(path):
    """Parameters to the bit; what is computed from them to rounding, since mathematical libraries differ."""
    model = jm.load(path)
    kept = np.load(path.with_suffix(".npz"), allow_pickle=False)
    found = golden.answers(model)
    assert set(found) == set(kept.files)
    for name in kept.files:
        if name.startswith("exact "):
            same(np.asarray(found[name]), kept[name], name)
        elif kept[name].dtype.kind == "f":
            np.testing.assert_allclose(found[name], kept[name], rtol=1e-9, atol=1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], kept[name], err_msg=name)


def test_there_are_files_of_this_release():
    assert {path.stem.split("-")[0] for path in golden.FILES} == {"JumpMeans", "InfiniteJumpMeans", "EM", "Gibbs"}
