"""What the house promises of its own tree: who uses what, read from the sources."""

import ast
import importlib
import re
from doctest import DocTestParser
from pathlib import Path

import pytest

import jumpmeans as jm
from jumpmeans import kinds
from jumpmeans.emissions import Column

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/jumpmeans"
MODULES = {"comparators", "datasets", "emissions", "engines", "evaluation", "plots"}
BLOCK = re.compile(r"^```(?:\{code-cell\} )?python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
USERS = sorted(
    path
    for folder, ends in (("experiments", "py"), ("examples", "py"), ("docs", "md"), ("docs", "py"), (".", "md"))
    for path in (ROOT / folder).glob(f"*.{ends}" if folder == "." else f"**/*.{ends}")
    if not any(part.startswith(("_", ".")) for part in path.relative_to(ROOT).parts)
)


def code_of(path):
    """What a script does, or the Python blocks of a page; options of cells, commands and printed answers apart."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return ast.parse(text)
    blocks = [re.sub(r"(?m)^[:!].*$", "", block) for block in BLOCK.findall(text)]
    shown = DocTestParser()
    return ast.parse("\n".join(
        "".join(part.source for part in shown.get_examples(block)) if ">>>" in block else block for block in blocks
    ))  # fmt: skip


def private_uses(tree):
    """All that is asked of the package and is not public."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "jumpmeans":
            inner = node.module.partition(".")[2]
            home = importlib.import_module(node.module) if inner in {"", *MODULES} else None
            found += [f"{node.module}.{a.name}" for a in node.names if home is None or a.name not in home.__all__]
        elif isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.startswith("jumpmeans.") and a.name[10:] not in MODULES]
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            hidden = node.attr.startswith("_") and not node.attr.startswith("__") and owner not in ("self", "cls")
            unknown = owner == "jm" and node.attr not in {*jm.__all__, "__version__"}
            found += [f"{owner}.{node.attr}"] if hidden or unknown else []
    return found


@pytest.mark.parametrize("path", USERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_experiments_examples_and_pages_use_what_is_public(path):
    assert private_uses(code_of(path)) == []


@pytest.mark.parametrize(
    "code",
    [
        "from jumpmeans.model.effects import Effects", "from jumpmeans.emissions import noise_scale",
        "import jumpmeans.passes", "model._decoder_", "jm.passes", "jm.JumpMeans(2).fit(panel)._posterior(panel)",
    ],
)  # fmt: skip
def test_what_is_private_is_found(code):
    assert len(private_uses(ast.parse(code))) == 1


def test_every_kind_of_row_has_its_laws():
    assert len(kinds.NAMES) == len(kinds.BARS) == len(kinds.PINS) == len(kinds.FORCES)
    assert (kinds.PINS | ~kinds.FORCES).all()  # what must be there may be there


def families(kind=Column):
    """Names of all classes of emissions."""
    return {own.__name__ for own in kind.__subclasses__()}.union(*(families(own) for own in kind.__subclasses__()))


def type_tests(tree, names):
    """Questions for the type of an emission: of a class, by isinstance or by type(...), or of its name."""
    found = []
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("isinstance", "issubclass")
        ):
            found += [n.id for n in ast.walk(node.args[1]) if isinstance(n, ast.Name) and n.id in names]
        elif isinstance(node, ast.Compare):
            asked = [n for part in (node.left, *node.comparators) for n in ast.walk(part)]
            if any(isinstance(n, ast.Name) and n.id == "type" for n in asked):
                found += [n.id for n in asked if isinstance(n, ast.Name) and n.id in names]
            if any(isinstance(n, ast.Attribute) and n.attr == "name" for n in asked):
                texts = {getattr(own, "value", None) for own in asked if isinstance(own, ast.Constant)}
                found += sorted(texts & {name.lower() for name in names})
        elif isinstance(node, ast.Dict):
            found += [key.id for key in node.keys if isinstance(key, ast.Name) and key.id in names]
    return found


def test_nobody_but_emissions_asks_for_a_family():
    """A table by the classes of families is such a question too."""
    names = families() & set(dir(importlib.import_module("jumpmeans.emissions"))) | {"MeanColumn", "CertainColumn"}
    outside = [path for path in SOURCE.rglob("*.py") if "emissions" not in path.parts]
    asked = {str(path): type_tests(ast.parse(path.read_text(encoding="utf-8")), names) for path in outside}
    assert {path: found for path, found in asked.items() if found} == {}
    for question in (
        "isinstance(column, Bernoulli)", "isinstance(x, (int, Gaussian))", "type(column) is Gaussian",
        "column.name == 'categorical'", "{Gaussian: 1}", "issubclass(family, Direct)",
    ):  # fmt: skip
        assert type_tests(ast.parse(question), names), question
