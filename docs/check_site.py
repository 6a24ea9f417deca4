"""Do all links of the built pages lead somewhere, and are all pictures there? `python docs/check_site.py build/docs`.

Other sites are not asked.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, and the places in it that a link may name."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take links and names from a tag."""
        for name, value in attrs:
            if value is not None and name in ("href", "src"):
                self.links.append(value)
            elif value is not None and (name == "id" or (tag == "a" and name == "name")):
                self.anchors.add(value)


def read(path: Path) -> Page:
    """The links and anchors of one file."""
    page = Page()
    page.feed(path.read_text())
    return page


def broken(folder: Path) -> list[str]:
    """Every link to a file or an anchor that is not there."""
    pages = {path.resolve(): read(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or link == "#":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].anchors):
                found.append(f"{path.relative_to(folder.resolve())}: {link}")
    return found


def without_pictures(folder: Path) -> list[str]:
    """Pages with fewer pictures than cells that end in a semicolon, as those do that draw."""
    sources, found = Path(__file__).parent, []
    for source in sorted(sources.rglob("*.md")):
        cells = re.findall(r"^```\{code-cell\}.*?\n(.*?)^```", source.read_text(), re.S | re.M)
        drawn = sum(cell.rstrip().endswith(";") for cell in cells)
        page = folder / source.relative_to(sources).with_suffix(".html")
        if drawn and len(re.findall(r'<img[^>]*src="[^"]*_images/', page.read_text())) < drawn:
            found.append(f"{page.relative_to(folder)}: fewer than {drawn} pictures")
    return found


def main(folder: str) -> None:
    """Say what is broken, and fail if anything is."""
    pages = len(list(Path(folder).rglob("*.html")))
    found = broken(Path(folder)) + without_pictures(Path(folder))
    print("\n".join(found))
    if found or not pages:
        sys.exit(f"{len(found)} faults in {pages} pages of {folder}")


if __name__ == "__main__":
    main(*sys.argv[1:])
