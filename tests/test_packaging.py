"""What the package says of itself: its types, and the oldest versions that it works with."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PINNED = dict(
    line.split("==") for line in (ROOT / "requirements.lowest").read_text(encoding="utf-8").splitlines() if "==" in line
)
NEEDED = [
    *PROJECT["project"]["dependencies"],
    *PROJECT["project"]["optional-dependencies"]["frames"],
    *PROJECT["project"]["optional-dependencies"]["plots"],
]


def test_types_are_shipped():
    assert (files("jumpmeans") / "py.typed").is_file()


@pytest.mark.parametrize("needed", NEEDED)
def test_every_lower_bound_is_a_tested_one(needed):
    # caught: a bound that nobody has tried
    name, bound = re.fullmatch(r"([\w-]+)>=([\w.]+)", needed).groups()
    assert Version(bound) == Version(PINNED[name])
