"""The report in a real browser: search, sort, page, hover, keys, dark and print, and no text that runs."""

import json
import os
import shutil

import numpy as np
import pytest

import jumpmeans as jm

BROWSER = shutil.which("chromium")
# A check that sets this wants to hear of a missing browser.
NEEDED = bool(os.environ.get("JUMPMEANS_NEEDS_BROWSER"))
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
NASTY = ["<script>alert(1)</script>", "=cmd()", "x" * 300, "\u202eمريض رقم ١"]
LABELS = ["<img src=x onerror=alert(2)>", "=1+1", "l" * 300, "حالة"]
pytestmark = pytest.mark.skipif(
    BROWSER is None and not NEEDED, reason="there is no chromium to open the report with; apt-get install chromium"
)


@pytest.fixture(scope="module")
def chromium():
    if BROWSER is None:
        pytest.fail("JUMPMEANS_NEEDS_BROWSER is set but there is no chromium; apt-get install chromium.")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Opens a report and holds that nothing went wrong on it."""
    pages, wrong = [], []

    def opened(path, **options):
        page = chromium.new_page(**options)
        page.set_default_timeout(10_000)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: None if request.url.startswith("file:") else wrong.append(request.url))
        page.goto(path.as_uri())
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert wrong == []


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """Labels, 37 sequences with odd ids among them, and one state that is never left."""
    process = jm.Process.from_generator(
        [[0, 0.4, 0.1, 0.1], [0.3, 0, 0.2, 0], [0.2, 0.2, 0, 0.2], [0, 0, 0, 0]], [0.4, 0.3, 0.3, 0.0], states=LABELS
    )
    panel, _ = jm.simulate(process, 37, 12, random_state=3)
    ids = np.array([*NASTY, *(f"patient {k}" for k in range(33))], dtype=object)
    panel = jm.Panel.from_arrays(panel.times, panel.decode_values(panel.values[:, 0]), ids[panel.sequence_index])
    model = jm.JumpMeans.from_process(process)
    path = tmp_path_factory.mktemp("report") / "ward.html"
    title = "</title><script>alert(3)</script>"
    return jm.write_report(model, panel, path, title=title, held_out=0.3), model.decode(panel), panel


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    """Two columns, one of them with gaps, and dates."""
    emission = [jm.emissions.Gaussian([0, 5], sds=1), jm.emissions.Categorical([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"])]
    process = jm.Process([0.05, 0.1], [[0, 1], [1, 0]], emission=emission)
    panel, _ = jm.simulate(process, 5, 9, mean_gap=6.0)
    values = np.column_stack([panel.decode_values(panel.values[:, d], d).astype(object) for d in range(2)])
    values[::4, 0] = None
    times = np.datetime64("2024-03-01T08:30", "ns") + (panel.times * 86400e9).astype("timedelta64[ns]")
    panel = jm.Panel.from_arrays(times, values, panel.ids[panel.sequence_index], columns=["lactate", "sign"])
    path = tmp_path_factory.mktemp("report") / "dated.html"
    known = {"JumpMeans, trajectory that errs least": 0.123, "last value carried forward": 0.2}
    return jm.write_report(jm.JumpMeans.from_process(process), panel, path, held_out=known)


def ids_of(page):
    return page.locator("#ids tbody button").all_text_contents()


def test_text_is_text(open_page, ward):
    page = open_page(ward[0])
    # caught by the dialogs, the console and here: a text that became an element
    assert ids_of(page)[:4] == NASTY
    assert page.locator("tbody th bdi").all_text_contents()[-4:] == LABELS
    assert page.title() == page.locator("h1").text_content() == "</title><script>alert(3)</script>"
    assert page.locator("img").count() == 0
    for k in range(4):
        page.locator("#ids tbody button").nth(k).click()
        assert page.locator("#chosen").text_content() == NASTY[k]
    # a long id must not push the page aside
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_search_page_and_sort(open_page, ward):
    path, trajectories, panel = ward
    page = open_page(path)
    assert page.locator("#where").text_content() == "1–10 of 37"
    page.click("#next")
    assert page.locator("#where").text_content() == "11–20 of 37"
    assert ids_of(page) == panel.ids[10:20].tolist()
    page.fill("#search", "PATIENT 1")
    assert ids_of(page) == [id for id in panel.ids.tolist() if id.startswith("patient 1")][:10]
    page.fill("#search", "nobody")
    assert page.locator("#where").text_content() == "nothing found"
    assert page.locator("#chosen").text_content() == "No sequence"
    page.fill("#search", "")
    jumps = np.diff(trajectories.offsets) - 1
    page.select_option("#sort", label="number of jumps")
    assert ids_of(page) == panel.ids[np.argsort(-jumps, kind="stable")[:10]].tolist()
    page.click("#direction")
    assert ids_of(page) == panel.ids[np.argsort(jumps, kind="stable")[:10]].tolist()
    page.select_option("#sort", label="misfit")
    shown = [float(x) for x in page.locator("#ids tbody td:nth-child(4)").all_text_contents()]
    assert shown == sorted(shown, reverse=True)
    page.select_option("#sort", label="time in =1+1")
    time = trajectories.time_in_state()[:, 1]
    assert ids_of(page)[0] == panel.ids[np.argmax(time)]
    most = float(page.locator("#ids tbody td:nth-child(5)").first.text_content())
    assert most == pytest.approx(time.max(), rel=0.01)


def test_hover_reads_the_chart(open_page, ward):
    page = open_page(ward[0])
    page.locator("#ids tbody button").nth(5).click()
    chart = page.locator("#chart svg").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    reading = page.locator("#reading")
    assert "state " in reading.text_content() and " %" in reading.text_content()
    assert "state" in chart.locator("[aria-label=tip]").text_content()
    first = reading.text_content()
    page.mouse.move(box["x"] + box["width"] - 30, box["y"] + box["height"] / 2)
    assert reading.text_content() != first


def test_keys_go_through_list_and_chart(open_page, ward):
    path, _, panel = ward
    page = open_page(path)
    page.focus("#search")
    page.keyboard.press("ArrowDown")
    chosen = lambda: page.locator("#chosen").text_content()
    assert chosen() == NASTY[0]
    page.keyboard.press("ArrowDown")
    assert chosen() == NASTY[1]
    page.keyboard.press("PageDown")
    assert chosen() == panel.ids[11] and page.locator("#where").text_content() == "11–20 of 37"
    page.keyboard.press("End")
    assert chosen() == panel.ids[36]
    assert page.evaluate("document.activeElement.textContent") == panel.ids[36]
    page.focus("#chart")
    own = slice(panel.offsets[36], panel.offsets[37])
    for k in range(3):
        page.keyboard.press("ArrowRight")
        # caught: the tip of another time
        time, text = page.locator("#reading").text_content().split(" · ")[::3]  # of time, state, chances, value
        assert float(time) == pytest.approx(panel.times[own][k], abs=1e-3)
        assert text.startswith("value " + panel.decode_values(panel.values[own, 0])[k][:30])


def test_a_label_has_the_colour_of_its_state(open_page, ward):
    """Caught: the last label of a dwell, seen at the very time of the jump, in the colour of the state after."""
    path, trajectories, panel = ward
    page = open_page(path)
    at_jumps = 0
    for i in range(4, 10):
        page.locator("#ids tbody button").nth(i).click()
        dots = page.locator("#chart svg").first.locator("[aria-label=dot] circle")
        colours = [dots.nth(k).get_attribute("fill") for k in range(dots.count())]
        own = slice(panel.offsets[i], panel.offsets[i + 1])
        states = [trajectories.labels.tolist().index(label) for label in panel.decode_values(panel.values[own, 0])]
        assert colours == [f"var(--s{m})" for m in states]
        starts = trajectories.start_times[trajectories.offsets[i] + 1 : trajectories.offsets[i + 1]]
        at_jumps += np.isin(panel.times[own], starts).sum()
    assert at_jumps > 0


def test_what_few_are_left_of_is_faint(open_page, ward):
    page = open_page(ward[0])
    veil = page.locator("#shares svg").first.locator("[aria-label=rect] rect")
    n = json.loads(page.locator("#data").text_content())["prevalence"]["n"]
    assert min(n) < 0.05 * max(n) and veil.count() == 1


def test_dates_and_columns(open_page, dated):
    page = open_page(dated)
    assert page.locator("#chart svg").count() == 3
    assert page.locator("#about").text_content().startswith("2024-03-01 08:30 to 2024-")
    page.focus("#chart")
    page.keyboard.press("ArrowRight")
    assert page.locator("#reading").text_content().startswith("2024-03-01 08:30 · state ")
    assert "lactate" not in page.locator("#reading").text_content()  # its first value is missing
    assert "sign " in page.locator("#reading").text_content()


def test_dark_print_and_narrow(open_page, dated):
    page = open_page(dated, color_scheme="dark", viewport={"width": 390, "height": 800})
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(20, 23, 27)"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    # caught: errors off the screen, beside the names that they belong to
    assert page.evaluate(
        "[...document.querySelectorAll('.errors')].every(x => x.scrollWidth <= x.parentNode.clientWidth)"
    )
    hatch = "getComputedStyle(document.documentElement).getPropertyValue('--hatch').trim()"
    assert page.evaluate(hatch) == "transparent"
    page.check("#patterns")
    assert page.evaluate(hatch) == "#14171b"
    page.uncheck("#patterns")
    # on paper: white, whatever the screen, and states told apart by patterns
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    assert page.evaluate(hatch) == "#ffffff"
    assert page.locator("#search").is_hidden()
    # caught: a table that a sheet of A4 cuts off
    page.set_viewport_size({"width": 718, "height": 1000})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_charts_have_words(open_page, ward):
    page = open_page(ward[0])
    charts = page.locator("main svg[aria-label]")
    assert charts.count() >= 5
    unlabelled = "[...document.querySelectorAll('#diagram svg, #shares svg, #chart svg')]"
    assert page.evaluate(f"{unlabelled}.every(svg => svg.ariaLabel && svg.querySelectorAll('*').length > 5)")
    assert page.evaluate("[...document.querySelectorAll('input, select')].every(x => x.labels.length === 1)")
