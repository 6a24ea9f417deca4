"""The file itself: small, self-contained, and every text in it is text."""

import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

import jumpmeans as jm
from jumpmeans.report.page import LARGEST, as_json, number, percent

NASTY = ["<script>alert(1)</script>", "=cmd()", "x" * 300, "\u202eمريض", "\ud800 half", "a\u2028b & 'c'"]


class Elements(HTMLParser):
    """Scripts of a page and addresses that it names."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.addresses, self.data = [], [], ""
        self.inside = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.addresses += [attrs[key] for key in ("src", "href") if key in attrs]
        self.inside = attrs.get("type", "code") if tag == "script" else None
        if tag == "script":
            self.scripts.append(self.inside)

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "application/json":
            self.data += data


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    process = jm.Process([0.5] * 6, (np.ones((6, 6)) - np.eye(6)) / 5, states=np.array(NASTY, dtype=object))
    panel, _ = jm.simulate(process, 6, 10)
    values = panel.decode_values(panel.values[:, 0])
    panel = jm.Panel.from_arrays(panel.times, values, np.array(NASTY, dtype=object)[panel.sequence_index])
    path = tmp_path_factory.mktemp("report") / "nasty.html"
    model = jm.JumpMeans.from_process(process)
    jm.write_report(model, panel, path, title="</title><script>", warnings=["</script><b>"], held_out=0.2)
    return path.read_text(encoding="utf-8")


def test_ids_and_labels_are_text(nasty):
    page = Elements(nasty)
    # caught: autoescape off; JSON that ends its script
    assert page.scripts == ["application/json", *["code"] * 5]
    content = json.loads(page.data)
    half = [text.replace("\ud800", "?") for text in NASTY]
    assert [record["id"] for record in content["sequences"]["list"]] == half
    assert [state["label"] for state in content["states"]] == half
    assert content["title"] == "</title><script>"


def test_nothing_is_fetched(nasty):
    page = Elements(nasty)
    assert page.addresses and all(address.startswith("#") for address in page.addresses)
    assert "default-src 'none'" in nasty and not re.search(r"@import|url\(['\"]?http", nasty)


def test_only_our_scripts_may_run(nasty):
    allowed = set(re.findall(r"sha256-([A-Za-z0-9+/=]+)", nasty.replace("&#43;", "+")))
    import base64

    scripts = re.findall(r"<script>(.*?)</script>", nasty, flags=re.DOTALL)
    sums = {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts}
    assert sums == allowed and len(sums) == 5


def test_a_thousand_sequences_fit(tmp_path):
    means = np.linspace(60, 180, 8)
    process = jm.Process([0.3] * 8, (np.ones((8, 8)) - np.eye(8)) / 7, emission=jm.emissions.Gaussian(means, sds=12))
    model = jm.JumpMeans.from_process(process)
    panel, _ = jm.simulate(process, 1000, 40)
    path = jm.write_report(model, panel, tmp_path / "report.html")
    assert path.stat().st_size <= LARGEST
    text = path.read_text(encoding="utf-8")
    assert len(json.loads(Elements(text).data)["sequences"]["list"]) == 1000
    assert "drawn at random" not in text


def test_of_more_than_fit_the_page_says_so(tmp_path):
    process = jm.Process([0.3] * 4, (np.ones((4, 4)) - np.eye(4)) / 3)
    panel, _ = jm.simulate(process, 6000, 25)
    path = jm.write_report(jm.JumpMeans.from_process(process), panel, tmp_path / "report.html")
    assert path.stat().st_size <= LARGEST
    found = re.search(r"holds ([\d,]+) of 6,000 sequences, drawn at random", path.read_text(encoding="utf-8"))
    assert 1000 < int(found[1].replace(",", "")) < 6000


def test_the_same_report_twice(tmp_path, levels_model):
    model, panel = levels_model
    texts = [jm.write_report(model, panel, tmp_path / name, held_out=0.3).read_bytes() for name in ("a.html", "b.html")]
    assert texts[0] == texts[1]


@pytest.fixture(scope="module")
def levels_model():
    process = jm.Process([0.2, 0.3], [[0, 1], [1, 0]], emission=jm.emissions.Gaussian([0, 5], sds=1))
    panel, _ = jm.simulate(process, 10, 8)
    return jm.JumpMeans(2).fit(panel), panel


def test_wrong_paths_are_refused(tmp_path, levels_model):
    with pytest.raises(ValueError, match="path must be a file to write, got the folder"):
        jm.write_report(*levels_model, tmp_path)
    with pytest.raises(ValueError, match="path must lie in a folder that exists"):
        jm.write_report(*levels_model, tmp_path / "none" / "report.html")


def test_a_failure_leaves_the_old_report(tmp_path, levels_model):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="held_out"):
        jm.write_report(*levels_model, path, held_out=7)
    assert path.read_text() == "old"


def test_without_jinja_the_extra_is_named(tmp_path, levels_model, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(jm.MissingExtraError, match=r"jumpmeans\[report\]"):
        jm.write_report(*levels_model, tmp_path / "report.html")


def test_json_cannot_end_its_script():
    text = as_json({"id": "</script><!--\u2028&"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"id": "</script><!--\u2028&"}


def test_numbers_in_tables():
    assert [number(x) for x in (None, 0.0, 1.23456, 12345.6, 1e12)] == ["–", "0", "1.235", "12,346", "1e+12"]
    assert [percent(x) for x in (None, 0.0, 0.004, 0.5, 1.0)] == ["–", "0 %", "< 1 %", "50 %", "100 %"]
    assert percent(0.0004, 1) == "< 0.1 %"


def test_vendored_files_are_those_published():
    vendor = files("jumpmeans.report") / "vendor"
    listed = dict(re.findall(r"\| (\S+\.js) \|.*\| ([0-9a-f]{64}) \|", (vendor / "README.md").read_text()))
    assert set(listed) == {item.name for item in vendor.iterdir() if item.name.endswith(".js")}
    for name, sum in listed.items():
        data = (vendor / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == sum
        assert b"</script" not in data.lower()
    for name in ("LICENSE-d3", "LICENSE-d3-parts", "LICENSE-plot", "LICENSE-plot-parts"):
        assert "Copyright" in (vendor / name).read_text()
