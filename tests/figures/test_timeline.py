from dataclasses import replace

import numpy as np
import pytest

from memviz.core.plan import Plan
from memviz.core.timeline import Timeline, Transfer
from memviz.core.trace import Category, Phase
from memviz.figures.thinning import shown_indices
from memviz.figures.timeline import timeline_figure
from tests.figures.hand_made import ACTIVATIONS, MIB, PARAMETERS, SECONDS, TOTAL, run, timeline


def traces(figure):
    return {trace.name: trace for trace in figure.data}


def texts(figure):
    return [note.text for note in figure.layout.annotations]


def test_categories_are_stacked_from_the_floor_up_and_sum_to_the_total():
    figure = timeline_figure(timeline())
    stacked = [trace for trace in figure.data if trace.stackgroup]
    assert [trace.name for trace in stacked] == ["parameter", "activation"]  # no area for gradients, of which there are none
    assert list(stacked[0].y) == list(PARAMETERS)
    assert list(stacked[1].y) == list(ACTIVATIONS)
    assert list(np.sum([trace.customdata for trace in stacked], axis=0)) == [mib * MIB for mib in TOTAL]
    assert list(traces(figure)["measured"].y) == list(TOTAL)
    assert list(stacked[0].x) == list(SECONDS)


def test_each_point_tells_its_bytes_in_the_unit_of_the_axis():
    figure = timeline_figure(timeline())
    assert figure.layout.yaxis.title.text == "live memory (MiB)"
    assert "%{y:.2f} MiB (%{customdata:,d} bytes)" in traces(figure)["activation"].hovertemplate


def test_from_one_gibibyte_on_the_axis_is_in_gib():
    figure = timeline_figure(timeline(factor=2**30 // 10 + 1))
    assert figure.layout.yaxis.title.text == "live memory (GiB)"
    assert traces(figure)["measured"].y[2] == pytest.approx(1.0)
    assert traces(figure)["measured"].customdata[2] == 10 * (2**30 // 10 + 1)
    assert timeline_figure(timeline(factor=2**30 // 10)).layout.yaxis.title.text == "live memory (MiB)"


def test_the_peak_is_marked_where_it_is():
    figure = timeline_figure(timeline())
    peak = traces(figure)["peak"]
    assert (peak.x, peak.y, peak.customdata) == ((1.5,), (10.0,), (10 * MIB,))
    assert peak.hovertext == ("peak in c",)
    assert texts(figure) == ["◆ peak 10.0 MiB"]
    assert figure.layout.yaxis.range[1] > 12  # room for the text above the peak


def test_what_is_predicted_is_dashed_and_says_so():
    figure = timeline_figure(timeline(), timeline(predicted=True))
    line = traces(figure)["predicted"]
    assert line.line.dash == "dash"
    assert line.stackgroup is None
    assert list(line.y) == list(TOTAL)
    assert traces(figure)["predicted peak"].marker.symbol == "diamond-open"
    assert texts(figure) == ["◇ predicted peak 10.0 MiB", "◆ peak 10.0 MiB"]


def test_only_predicted():
    figure = timeline_figure(predicted=timeline(predicted=True))
    assert [trace.name for trace in figure.data] == ["predicted", "predicted peak"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"measured": timeline(predicted=True)}, "measured= got a predicted timeline"),
        ({"predicted": timeline()}, "predicted= got a measured timeline"),
        ({"earlier": [timeline(predicted=True)]}, "earlier= got a predicted timeline"),
    ],
)
def test_predicted_and_measured_are_not_mixed_up(given, message):
    with pytest.raises(ValueError, match=message):
        timeline_figure(**given)


def test_earlier_runs_are_outlines_with_their_names():
    old = [run(Plan(label="first")), run(Plan(label="<b>second"))]
    figure = timeline_figure(timeline(), earlier=old)
    outlines = [trace for trace in figure.data if trace.name.startswith("earlier")]
    assert [trace.name for trace in outlines] == ["earlier: first", "earlier: &lt;b>second"]
    assert all(trace.stackgroup is None and trace.fill is None for trace in outlines)
    assert outlines[0].line.dash != outlines[1].line.dash


def test_the_limit_is_a_line_within_the_axis():
    figure = timeline_figure(run(limit=20 * MIB))
    assert [(shape.y0, shape.y1) for shape in figure.layout.shapes] == [(20, 20)]
    assert "limit 20.0 MiB" in texts(figure)
    assert figure.layout.yaxis.range[1] > 20
    given = timeline_figure(run(limit=20 * MIB), limit=5 * MIB)
    assert given.layout.shapes[0].y0 == 5
    assert not timeline_figure(run()).layout.shapes


def test_swaps_are_marked_where_they_began_on_the_edge_of_the_stack():
    out = Transfer(key="a:aten::relu#0@0.0", nbytes=2 * MIB, out=True, start=1.2, end=1.25)
    back = Transfer(key="a:aten::relu#0@0.0", nbytes=2 * MIB, out=False, start=3.5, end=3.75)
    first = replace(out, start=0.1)
    marks = traces(timeline_figure(timeline(transfers=(first, out, back))))
    assert list(marks["swapped out"].x) == [0.1, 1.2]
    assert list(marks["swapped out"].y) == [3, 6]  # before the first op has ended there is only the first level to sit on
    assert list(marks["swapped in"].x) == [3.5]
    assert list(marks["swapped in"].y) == [5]
    assert marks["swapped in"].text == ("a:aten::relu#0@0.0 in 250.0 ms",)
    assert "swapped out" not in traces(timeline_figure(timeline()))
    predicted = traces(timeline_figure(predicted=timeline(predicted=True, transfers=(out,))))
    assert predicted["predicted: swapped out"].marker.symbol == "triangle-down-open"


def test_a_run_takes_as_long_as_its_unmetered_steps():
    moved = Transfer(key="k", nbytes=MIB, out=True, start=3.0, end=4.0)
    figure = timeline_figure(run(seconds=2.0, measured=timeline(transfers=(moved,))))  # metered, it took 4 seconds
    marks = traces(figure)
    assert list(marks["measured"].x) == [0.25, 0.5, 0.75, 1.5, 2.0]
    assert marks["peak"].x == (0.75,)
    assert list(marks["swapped out"].x) == [1.5]


def test_the_device_is_named():
    assert timeline_figure(timeline()).layout.xaxis.title.text == "seconds since the step began, on cpu"
    both = timeline_figure(timeline(), earlier=[replace(timeline(), device="NVIDIA H200")])
    assert both.layout.xaxis.title.text == "seconds since the step began, on NVIDIA H200 and cpu"


def test_nothing_to_draw_is_an_empty_figure():
    empty = Timeline(predicted=False, device="cpu", seconds=np.empty(0), nbytes={}, phases=(), modules=())
    assert not timeline_figure().data
    assert not texts(timeline_figure(empty))


def long(count: int) -> Timeline:
    rng = np.random.default_rng(0)
    nbytes = rng.integers(1, 1000, count)
    nbytes[count // 3] = 5000
    nbytes[count // 2] = 0
    return Timeline(
        predicted=False, device="cpu", seconds=np.arange(1.0, count + 1), nbytes={Category.ACTIVATION: nbytes},
        phases=(Phase.FORWARD,) * (count - 3) + (Phase.BACKWARD,) * 3, modules=("",) * count,
    )  # fmt: skip


def test_a_long_step_keeps_its_peak_its_dip_and_its_ends():
    line = long(20_000)
    shown = shown_indices(line, 100)
    assert len(shown) <= 104
    assert {0, 20_000 // 3, 20_000 // 2, 19_996, 19_999} <= set(shown)
    assert (np.diff(shown) > 0).all()
    # Each stretch of 400 ops has its most and its fewest live bytes drawn.
    for start in range(0, 20_000, 400):
        part = line.total[start : start + 400]
        drawn = line.total[[at for at in shown if start <= at < start + 400]]
        assert (drawn.max(), drawn.min()) == (part.max(), part.min())


def test_a_short_step_is_drawn_whole():
    assert list(shown_indices(timeline(), 5)) == [0, 1, 2, 3, 4]
    assert len(shown_indices(replace(timeline(), seconds=np.empty(0), nbytes={}, phases=(), modules=()), 5)) == 0
