"""The main job as a person does it: notebook 01 in JupyterLab, with mouse and keyboard, up to the report."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.conftest import Lab

RUN = 180_000
"""Milliseconds in which a real step of RevNet was recorded or run, on a slow machine with other work."""

PREDICTED = """() => {
  const chart = document.querySelector(".memviz-explorer .js-plotly-plot");
  const line = chart.data.find((trace) => trace.name === "predicted");
  return Math.max(...line.y);
}"""

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def page(browser: Browser, lab: Lab) -> Iterator[Page]:
    """Notebook 01 after its one cell was run and the unplanned step was measured."""
    made = browser.new_page(viewport={"width": 1280, "height": 1700})
    made.set_default_timeout(60_000)
    made.goto(f"{lab.url}/lab/tree/01-revnet.ipynb")
    run_cell(made)
    expect(badges(made)).to_have_count(1, timeout=RUN)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def screenshot(page: Page, request: pytest.FixtureRequest) -> Iterator[None]:
    """What the page looks like after each test, for whoever sets MEMVIZ_SCREENSHOTS to a folder."""
    yield
    folder = os.environ.get("MEMVIZ_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{request.node.name}.png")


def run_cell(page: Page) -> None:
    """Run the one cell. JupyterLab forgets what is asked of it while its kernel connects: ask again where nothing is under way."""
    cell = page.locator(".jp-CodeCell").first
    page.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for()
    for _ in range(60):
        if cell.locator(".jp-InputPrompt").inner_text().strip() == "[ ]:":
            cell.locator(".jp-InputArea-editor").click()
            page.keyboard.press("Control+Enter")
        page.wait_for_timeout(2000)
        if page.locator(".memviz-explorer").count():
            return
        assert not cell.get_by_text("Traceback").count(), cell.inner_text()
    pytest.fail("the cell did not show the explorer")


def badges(page: Page) -> Locator:
    """One for each run whose gradients are exactly those of the unplanned step."""
    return page.locator(".memviz-explorer .chip.good", has_text="exact")


def one_more_run(page: Page, act: Callable[[], object]) -> None:
    """Do something, and wait until a further run was measured and nothing runs any more."""
    before = badges(page).count()
    act()
    expect(badges(page)).to_have_count(before + 1, timeout=RUN)
    expect(button(page, "Cancel")).to_be_disabled(timeout=RUN)


def button(page: Page, text: str) -> Locator:
    return page.locator(".memviz-explorer button").filter(has_text=re.compile(rf"^\s*{re.escape(text)}\s*$"))


def module(page: Page, path: str) -> Locator:
    """The box of a module in the graph."""
    return page.locator(f'.memviz-graph [data-id="module {path}"]')


def test_the_first_cell_shows_the_graph_and_the_timeline_of_a_real_step(page: Page):
    expect(module(page, "stages")).to_be_visible()
    names = page.evaluate('document.querySelector(".memviz-explorer .js-plotly-plot").data.map((trace) => trace.name)')
    assert {"activation", "parameter", "measured", "predicted"} <= set(names)


def test_heuristics_predict_at_once_run_for_real_and_are_exact(page: Page):
    unplanned = page.evaluate(PREDICTED)
    one_more_run(page, lambda: page.locator(".memviz-explorer button", has_text="Heuristics").click())
    assert page.evaluate(PREDICTED) < 0.8 * unplanned
    newest = page.locator(".memviz-table", has=page.locator("caption", has_text="Runs")).locator("tbody tr").last
    expect(newest).to_contain_text("heuristics")
    expect(newest).to_have_attribute("aria-selected", "true")


def test_a_module_is_recomputed_by_mouse(page: Page):
    def choose() -> None:
        module(page, "stem").click(position={"x": 60, "y": 10})
        page.locator(".memviz-graph .menu button", has_text="recompute").click()

    one_more_run(page, choose)
    expect(button(page, "stem: recompute")).to_be_visible()


def test_a_module_is_swapped_by_keyboard_and_the_rule_taken_away(page: Page):
    def choose() -> None:
        module(page, "norm").focus()
        page.keyboard.press("s")

    one_more_run(page, choose)
    expect(button(page, "norm: swap")).to_be_visible()
    one_more_run(page, lambda: button(page, "norm: swap").click())
    expect(button(page, "norm: swap")).to_have_count(0)


def test_dragging_the_occupancy_moves_the_predicted_line_and_runs(page: Page):
    before = page.evaluate(PREDICTED)

    def drag() -> None:
        handle = page.locator(".memviz-explorer .widget-slider .noUi-handle").first
        box = handle.bounding_box()
        assert box is not None
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x - 60, y, steps=10)
        page.mouse.up()

    one_more_run(page, drag)
    assert page.evaluate(PREDICTED) < before
    expect(page.locator(".memviz-explorer").get_by_label("Swap", exact=True)).to_be_checked()


def test_a_run_is_cancelled_and_nothing_is_lost(page: Page):
    before = badges(page).count()
    button(page, "Run").click()
    button(page, "Cancel").click()
    expect(page.get_by_role("alert")).to_have_text("cancelled; Run starts again", timeout=RUN)
    assert badges(page).count() == before
    one_more_run(page, lambda: button(page, "Run").click())


def test_a_limit_that_can_t_be_is_said_beside_it(page: Page):
    before = badges(page).count()
    limit = page.locator(".memviz-explorer").get_by_label("Limit")
    limit.fill("much")
    limit.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("'much'")
    assert badges(page).count() == before
    limit.fill("")
    limit.press("Enter")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_one_selection_goes_through_all_views(page: Page):
    page.locator(".memviz-table", has=page.locator("caption", has_text="Who holds the peak")).locator("tbody tr").first.click()
    expect(page.locator(".memviz-graph .selected").first).to_be_attached()
    page.wait_for_function('document.querySelector(".memviz-explorer .js-plotly-plot").layout.shapes?.length > 0')


def test_the_report_opens_without_a_network(page: Page, browser: Browser, lab: Lab):
    button(page, "Export report").click()
    page.locator(".memviz-note", has_text="wrote").wait_for()
    (report,) = lab.folder.glob("revnet-*.report.html")
    assert list(lab.folder.glob("revnet-*.memviz.json"))
    opened = browser.new_page()
    asked: list[str] = []
    problems: list[str] = []
    opened.on("request", lambda request: asked.append(request.url))
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.goto(Path(report).as_uri())
    opened.locator(".js-plotly-plot .main-svg").first.wait_for()
    opened.locator(".memviz-graph .row").first.wait_for()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert problems == []
    opened.close()
