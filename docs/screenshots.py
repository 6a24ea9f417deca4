"""Take the pictures of README and documentation: `python docs/screenshots.py`. Needs chromium."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from playwright.sync_api import Page, sync_playwright

import jumpmeans as jm

IMAGES = Path(__file__).parent / "images"
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def picture(page: Page, name: str, first: str, last: str) -> None:
    """What lies between the top of one section and the bottom of another."""
    top, bottom = page.locator(first).bounding_box(), page.locator(last).bounding_box()
    if top is None or bottom is None:
        raise RuntimeError(f"the report must have {first} and {last}, got none.")
    height = bottom["y"] + bottom["height"] - top["y"]
    clip = {"x": 0, "y": top["y"], "width": page.viewport_size["width"], "height": height}  # type: ignore[index]
    page.screenshot(path=IMAGES / name, clip=clip)  # type: ignore[arg-type]
    print(IMAGES / name, (IMAGES / name).stat().st_size)


def course(model: jm.JumpMeans, panel: jm.Panel, id: int) -> None:
    """The picture of one stay: its trajectory, and the probabilities of the states."""
    units = {"time_unit": "hours", "value_unit": "mmHg"}
    fig, axes = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained")
    model.plot(id, ax=axes[0], **units)
    jm.plots.plot_posterior(model, panel, id, axes[1], **units)
    axes[0].label_outer()
    fig.savefig(IMAGES / "icu.png", dpi=150)
    print(IMAGES / "icu.png")


def main() -> None:
    """Fit, write the report, and take its pictures."""
    browser_path = shutil.which("chromium")
    if browser_path is None:
        sys.exit("there is no chromium to take pictures with; apt-get install chromium")
    panel = jm.datasets.load_icu_pressure()
    model = jm.JumpMeans(6, emission="gaussian").fit(panel)
    course(model, panel, 132540)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = jm.write_report(
            model, panel, Path(folder) / "report.html", held_out=0.25, bins=jm.datasets.PRESSURE_BINS,
            time_unit="hours", title="Systolic pressure of 69 stays in intensive care",
        )  # fmt: skip
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        for scheme, suffix in (("light", ""), ("dark", "_dark")):
            page = browser.new_page(viewport={"width": 1180, "height": 3000}, color_scheme=scheme)  # type: ignore[arg-type]
            page.goto(report.as_uri())
            page.evaluate("document.querySelector('header').style.position = 'static'")
            chart = page.locator("#chart svg").first.bounding_box()
            if chart is not None:
                page.mouse.move(chart["x"] + 0.55 * chart["width"], chart["y"] + 90)
            picture(page, f"report{suffix}.png", "#prevalence", "#sequences")
            if scheme == "light":
                picture(page, "report_overview.png", "header", "#moves")
        browser.close()


if __name__ == "__main__":
    main()
