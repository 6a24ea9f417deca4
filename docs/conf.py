"""How the documentation is built: `make docs`."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import jumpmeans

ROOT = Path(__file__).parents[1]


def version_of_sources() -> str:
    """A name for all that a page may run or read: pages are run again when any of it has changed."""
    found = hashlib.sha256()
    files = [
        path
        for folder, kind in (("src", "*.py"), ("experiments", "*.py"), ("experiments/results", "*.json"),
                             ("benchmarks/results", "*.json"), ("tests/golden", "*"))
        for path in (ROOT / folder).rglob(kind)
        if path.is_file()
    ]  # fmt: skip
    for path in sorted(files):
        found.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return found.hexdigest()[:16]


# What tutorials and examples print must not depend on the machine: one thread, no bars, lines of one length.
os.environ.update(NUMBA_NUM_THREADS="1", TQDM_DISABLE="1", PYDEVD_DISABLE_FILE_VALIDATION="1", COLUMNS="95")
os.environ.pop("MPLBACKEND", None)  # notebooks have their own, which keeps the pictures
# Pages run in folders of their own; they find the command line, and the committed results.
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
os.environ["JUMPMEANS_REPOSITORY"] = str(ROOT)

project = "jumpmeans"
author = "The jumpmeans developers"
copyright = author
version = release = jumpmeans.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax beside the pages instead of from the network
]
exclude_patterns = ["_templates", "gallery/**.ipynb", "gallery/**.py", "gallery/**.json", "gallery/**.zip"]
templates_path = ["_templates"]
# Every reference that is written as one must lead somewhere; names in docstrings' backticks may be of anything.
nitpicky = True
default_role = "py:obj"
nitpick_ignore_regex = [("py:obj", ".*")]
suppress_warnings = ["mystnb.unknown_mime_type"]

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_dmath_allow_labels = True
math_number_all = False

nb_execution_mode = "cache"
nb_execution_cache_path = str(ROOT / "build" / "notebooks" / version_of_sources())
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 240
nb_merge_streams = True

autodoc_typehints = "none"
autodoc_member_order = "groupwise"
autodoc_preserve_defaults = True
autosummary_generate = True
autosummary_imported_members = False
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()
add_module_names = False
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 100

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"^(?!plot_)",  # the others are programs
    "backreferences_dir": "gallery/uses",
    "doc_module": ("jumpmeans",),
    "reference_url": {"jumpmeans": None},
    "within_subsection_order": "FileNameSortKey",
    "show_memory": False,
    "min_reported_time": 10**6,
    "write_computation_times": False,
    "show_signature": False,
    "download_all_examples": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")


def skip_member(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn gives to every estimator."""
    return True if str(getattr(thing, "__module__", "")).startswith("sklearn") else None


def setup(app: Any) -> None:
    """Tell Sphinx."""
    app.connect("autodoc-skip-member", skip_member)


html_theme = "pydata_sphinx_theme"
html_context = {"default_mode": "auto"}
html_sidebars = {"start": []}
html_title = "jumpmeans"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "jumpmeans"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
    "secondary_sidebar_items": ["page-toc"],
}
