import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest
from plotly.offline import get_plotlyjs

from memviz.core.failure import Cause, Failure
from memviz.core.files import Document
from memviz.core.plan import Plan, Swap
from memviz.core.simulate import simulate
from memviz.figures.page import dark_colors
from memviz.figures.page_graph import graph_section
from memviz.figures.timeline import timeline_figure
from memviz.reporting import describes, predicted_for, report
from tests.core.chains import chain_trace
from tests.figures.hand_made import MIB, holder, run, timeline

SWAP = Plan(rules={"a": "recompute"}, swap=Swap(occupancy=0.5), label="swap & <drop>")
FAILURE = Failure(cause=Cause.OUT_OF_MEMORY, message="no room for <this>", details="trace\nback", holders=(holder("h", MIB),))
DOCUMENT = Document(runs=(run(Plan(label="plain")), run(SWAP, limit=7 * MIB), run(title="other")), failures=(FAILURE,))


class Page(HTMLParser):
    """What a page would load, its data by id, its text, and its script and style apart."""

    def __init__(self, text):
        super().__init__()
        self.links, self.data, self.charts, self.text, self.open = [], {}, [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.links += [value for name, value in attrs if name in ("src", "href", "srcset", "action", "data", "poster")]
        self.charts += [given["data-figure"]] if "data-figure" in given else []
        if tag in ("script", "style"):
            self.open = [(tag, given.get("id"))]

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.open = []

    def handle_data(self, data):
        if not self.open:
            self.text += data
        elif self.open[0][1]:
            self.data[self.open[0][1]] = data


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return report(DOCUMENT, tmp_path_factory.mktemp("report") / "new" / "r.html").read_text("utf-8")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_nothing_is_loaded_from_anywhere(text, page):
    assert page.links == []
    own = text.replace(get_plotlyjs(), "")
    assert len(own) < len(text)
    assert not re.findall(r"https?://|//cdn|@import|url\(", own)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'")
    assert "connect-src" not in policy  # so that it is 'none'
    assert "http" not in policy


def test_each_run_has_its_timeline(page):
    assert page.charts == ["run-0", "run-1", "run-2"]
    assert all(name in page.data for name in page.charts)
    names = [trace["name"] for trace in json.loads(page.data["run-1"])["data"]]
    assert "earlier: plain" in names
    assert "measured" in names
    assert "earlier: plain" not in [trace["name"] for trace in json.loads(page.data["run-2"])["data"]]


def test_runs_holders_plans_and_failures_are_there(page):
    for said in ("10.0 MiB (100%)", "everything else", "net.py:7", "no room for <this>", "trace\nback", "swap & <drop>", "7.0 MiB"):
        assert said in page.text
    assert page.text.index("10.0 MiB (100%)") < page.text.index("no room for <this>")
    assert "1 rule to recompute, swaps values of 2.0 KiB or more beyond 50% of the limit" in page.text


def test_the_lines_to_paste_make_the_plan_with_the_runs_own_limit(text):
    (lines,) = (unescape(found) for found in re.findall(r'<pre class="paste">(.*?)</pre>', text, re.DOTALL))
    names = {"batches": []}
    exec(lines, names)
    assert names["plan"] == replace(SWAP, swap=Swap(occupancy=0.5, limit=7 * MIB))


def test_text_of_a_document_stays_text(tmp_path):
    evil = "</script><script>alert(1)</script>"
    made = report(replace(DOCUMENT, runs=(run(Plan(label=evil), title=evil),)), tmp_path / "r.html").read_text("utf-8")
    assert evil not in made
    assert evil in Page(made).text


@pytest.mark.parametrize("predicted", [None, timeline(predicted=True)])
def test_a_light_figure_recoloured_is_the_dark_figure(predicted):
    def figure(*, dark):
        return timeline_figure(run(limit=7 * MIB), predicted, [run()], dark=dark).to_json()

    recoloured = figure(dark=False)
    for light, dark in dark_colors().items():
        recoloured = recoloured.replace(light, dark)
    assert json.loads(recoloured) == json.loads(figure(dark=True))
    assert recoloured != figure(dark=False)


def stepped(plan=None):
    """A run of the hand-made step, as its prediction has it."""
    return run(plan, title="chain", measured=replace(simulate(chain_trace(), plan), predicted=False))


def test_a_prediction_is_shown_where_the_trace_is_of_the_step():
    lean = Plan(rules={"b": "recompute"})
    assert predicted_for(stepped(lean), chain_trace()).peak == simulate(chain_trace(), lean).peak
    assert predicted_for(stepped(), None) is None
    assert not describes(replace(chain_trace(), title="other"), stepped())
    assert not describes(replace(chain_trace(), device="NVIDIA H200"), stepped())
    # Reversed, a model's modules are visited in another order.
    reversed_ = stepped()
    modules = ("a", "c", "b", *reversed_.timeline.modules[3:])
    assert not describes(chain_trace(), replace(reversed_, timeline=replace(reversed_.timeline, modules=modules)))


def test_one_run_several_runs_or_a_document(tmp_path):
    for given in (stepped(), [stepped()], iter((stepped(),)), Document(runs=(stepped(),))):
        made = report(given, tmp_path / "r.html", trace=chain_trace())
        assert "predicted" in [trace["name"] for trace in json.loads(Page(made.read_text("utf-8")).data["run-0"])["data"]]


def test_before_the_first_run_the_prediction_is_there(tmp_path):
    page = Page(report(Document(trace=chain_trace()), tmp_path / "r.html").read_text("utf-8"))
    assert "Recorded, not run yet." in page.text
    assert page.charts == ["predicted"]


def test_the_same_plan_run_twice_has_two_timelines(tmp_path):
    page = Page(report([run(), run()], tmp_path).read_text("utf-8"))
    assert page.charts == ["run-0", "run-1"]


def test_where_it_goes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert report(run()).resolve() == tmp_path / "report.html"
    (tmp_path / "folder").mkdir()
    assert report(run(), tmp_path / "folder") == tmp_path / "folder" / "report.html"


@pytest.mark.parametrize("given", ["runs.memviz.json", 3, None, [Plan()], [], Document()])
def test_what_is_no_run_is_named_and_an_older_report_stays(tmp_path, given):
    path = tmp_path / "r.html"
    path.write_text("older")
    with pytest.raises(ValueError, match=r"mv\.load"):
        report(given, path)
    assert path.read_text() == "older"


def test_the_graph_and_its_script_are_in_the_page_as_data():
    bundle = 'export default { render: () => "</script>" };'
    page = Page(graph_section(bundle, {"title": "<net>"}, [("plain", {"l0": "keep"}), ("lean", {"l0": "swap"})]))
    assert json.loads(page.data["graph-bundle"]) == bundle
    assert json.loads(page.data["graph-data"]) == {
        "model": {"title": "<net>"},
        "plans": [{"label": "plain", "actions": {"l0": "keep"}}, {"label": "lean", "actions": {"l0": "swap"}}],
    }
