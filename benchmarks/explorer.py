"""How long a person waits for the explorer, in a real browser: for its first paint, and for the line that a slider moves."""

import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.findings import Finding, publish
from tests.browser.conftest import ARGUMENTS, chromium, served
from tests.browser.test_explorer import RUN, badges, run_cell

PAINTED = """async () => {
  const began = performance.now();
  const shown = () => document.querySelector(".memviz-graph .row")
    && document.querySelector(".memviz-explorer .js-plotly-plot")?.data?.some((trace) => trace.name === "predicted" && trace.y.length);
  while (!shown()) await new Promise(requestAnimationFrame);
  return (performance.now() - began) / 1000;
}"""

MOVED = """async () => {
  const peak = () => {
    const chart = document.querySelector(".memviz-explorer .js-plotly-plot");
    const line = chart.data.find((trace) => trace.name === "predicted");
    return line === undefined ? null : Math.max(...line.y);  // None for a moment, where all is drawn again.
  };
  const before = peak();
  const pressed = await new Promise((resolve) =>
    document.addEventListener("keydown", () => resolve(performance.now()), { capture: true, once: true }));
  while ([before, null].includes(peak()) && performance.now() - pressed < 10000) await new Promise(requestAnimationFrame);
  return performance.now() - pressed;
}"""


def findings() -> Iterator[Finding]:
    """Notebook 01, its cell run twice: the second time the kernel is warm and the trace is in the cache."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        lab, home = Path(folder) / "lab", Path(folder) / "home"
        lab.mkdir()
        home.mkdir()
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        with served(lab, home) as server:
            page = browser.new_page(viewport={"width": 1280, "height": 1700})
            page.set_default_timeout(RUN)
            page.goto(f"{server.url}/lab/tree/01-revnet.ipynb")
            run_cell(page)
            expect(badges(page)).to_have_count(1, timeout=RUN)
            painted = [first_paint(page) for _ in range(3)]
            question = "seconds to the graph and the predicted line, warm kernel, trace in the cache"
            yield Finding(question=question, measured=statistics.median(painted), target=3.0, details={"seconds": painted})
            page.locator(".memviz-explorer").get_by_label("run after every change").uncheck()
            moved = [slider(page) for _ in range(9)]
            question = "milliseconds from a key on the slider to the moved line, RevNet"
            yield Finding(question=question, measured=statistics.median(moved), target=200.0, details={"milliseconds": moved})
        browser.close()


def first_paint(page: Page) -> float:
    """Run the cell again; seconds from the key to the paint."""
    page.locator(".jp-CodeCell .jp-InputArea-editor").first.click()
    page.evaluate("document.querySelector('.memviz-explorer').remove()")
    page.keyboard.press("Control+Enter")
    seconds = float(page.evaluate(PAINTED))
    expect(badges(page)).to_have_count(1, timeout=RUN)  # What it runs would compete with the next.
    return seconds


def slider(page: Page) -> float:
    """Move the occupancy by a step; milliseconds from the key to the moved line."""
    page.locator(".memviz-explorer .widget-slider .noUi-handle").first.focus()
    asked = page.evaluate_handle(f"({{ waiting: ({MOVED})() }})")
    page.keyboard.press("ArrowLeft")
    return float(asked.evaluate("({ waiting }) => waiting"))


if __name__ == "__main__":
    publish("explorer", findings())
