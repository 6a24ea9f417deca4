"""The site as a whole, without building it: nothing is missing, links lead somewhere, formulas keep their numbers."""

import inspect
import re
from pathlib import Path

import pytest

import jumpmeans as jm

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "jumpmeans"
# made by the build, or by its scripts
BUILT = ("gallery", "generated", "_templates")
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if not set(BUILT) & set(path.relative_to(DOCS).parts)]
FENCE = re.compile(r"^(`{3,}|:{3,})\{(\w[\w-]*)\}.*?\n(.*?)^\1", re.S | re.M)
WITHOUT_PAGES = {"Family", "FAMILIES", "PALETTE"} | {
    # what families are looked up with
    "as_record", "find_families", "find_family", "marks_states", "require_particles", "shows_states", "get_engine",
}  # fmt: skip


def listed():
    """Names that the reference lists, from jumpmeans on."""
    names = set()
    for page in (DOCS / "reference").glob("*.md"):
        text = page.read_text()
        module = re.search(r"currentmodule:: jumpmeans\.?([\w.]*)", text)
        for block in re.findall(r"autosummary::\n   :toctree: generated\n\n((?:   \S+\n)+)", text):
            names |= {f"{module[1]}.{name}".strip(".") for name in block.split()}
    return names


def found(name):
    thing = jm
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


def test_every_public_name_is_in_the_reference():
    """Caught: a name left out of the pages; a name that the package does not have."""
    names = listed()
    things = [found(name) for name in names]
    modules = [name for name in jm.__all__ if inspect.ismodule(getattr(jm, name))]
    public = {name: getattr(jm, name) for name in jm.__all__ if name not in modules}
    for module in modules:
        public |= {f"{module}.{name}": getattr(found(module), name) for name in found(module).__all__}
    for name, thing in public.items():
        if name.split(".")[-1] not in WITHOUT_PAGES and (callable(thing) or inspect.isclass(thing)):
            assert any(thing is other for other in things), f"{name} has no line in docs/reference/*.md"


def toctree(page):
    """Pages that a page has in its tree of contents."""
    entries = []
    for _, kind, body in FENCE.findall(page.read_text()):
        if kind == "toctree":
            entries += [line for line in body.split("\n") if line and not line.startswith(":")]
    return [
        found
        for entry in entries
        for found in ([path.resolve() for path in page.parent.glob(f"{entry}.md")] or [page.parent / f"{entry}.md"])
    ]


def test_every_page_is_in_the_tree_of_contents():
    reached, todo = set(), [DOCS / "index.md"]
    while todo:
        page = todo.pop()
        if page not in reached and page.exists():
            reached.add(page)
            todo += toctree(page)
    unreached = [str(page.relative_to(DOCS)) for page in PAGES if page not in reached]
    assert not unreached, f"{unreached} must stand in a toctree: of docs/howto/index.md, tutorials/index.md, ..."


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda path: str(path.relative_to(ROOT))
)
def test_links_lead_somewhere(page):
    """Files alone; the build checks anchors. Caught: a page moved away from under a link."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for link in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", text):
        if "://" not in link:
            target = page.parent / link
            assert target.exists() or target.is_relative_to(DOCS / "gallery") or "gallery/" in link, link


DERIVATION = (DOCS / "explanation" / "derivation.md").read_text()
NUMBERS = {label: k for k, label in enumerate(re.findall(r"\$\$ \((eq-[\w-]+)\)", DERIVATION), start=1)}


def cited(path):
    """Numbers of the equations that a module cites."""
    lists = re.findall(r"derivation, eq\.\s+(\d+(?:(?:, | and )\d+)*)", path.read_text())
    return {int(k) for numbers in lists for k in re.findall(r"\d+", numbers)}


def test_formulas_are_cited_where_they_are_computed():
    """Caught: an equation put in between, so that later numbers are wrong; a citation that is not in the table."""
    table = re.findall(r"^\| \{eq\}`(eq-[\w-]+)` \| `([\w/.]+)` \|$", DERIVATION, re.M)
    assert {label for label, _ in table} == set(NUMBERS)
    expected: dict = {}
    for label, module in table:
        expected.setdefault(module, set()).add(NUMBERS[label])
    assert expected == {str(p.relative_to(SOURCE)): cited(p) for p in SOURCE.rglob("*.py") if cited(p)}


def test_symbols_are_those_of_the_code():
    """Caught: an option or attribute renamed, a kernel that calls λ something else."""
    text = (DOCS / "explanation" / "symbols.md").read_text()
    owners = {
        name: getattr(jm, name) for name in ("Process", "JumpMeans", "InfiniteJumpMeans", "Panel", "Trajectories")
    }
    shown = re.findall(r"`(\w+)\.(\w+)`", text.split("## Options")[0] + text.split("## Data")[1])
    assert len(shown) > 12
    for owner, name in shown:
        if owner != "model":
            kind = owners[owner]
            known = set(dir(kind)) | set(getattr(kind, "__annotations__", {})) | set(inspect.signature(kind).parameters)
            known |= {x for base in kind.__mro__ for x in getattr(base, "__annotations__", {})}
            assert name in known, (owner, name)
    options = re.findall(r"`(\w+)\((\w+)=\)`", text)
    assert len(options) > 8
    for owner, name in options:
        assert name in inspect.signature(getattr(jm, owner)).parameters, (owner, name)
    kernels = "".join(path.read_text() for path in (SOURCE / "kernels").glob("*.py"))
    names = re.findall(r"^\| [^|]+ \| [^|]* \| `(\w+)` \|", text, re.M)
    assert len(names) > 9
    for name in names:
        assert re.search(rf"\b{name}\b", kernels), name
