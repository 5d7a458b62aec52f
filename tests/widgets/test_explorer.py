"""The layout, driven through its values and without a browser."""

from dataclasses import replace

import ipywidgets as widgets
import pytest

from memviz.core.events import Failed, Finished, Recorded, Sample, Samples
from memviz.core.failure import Cause, Failure
from memviz.core.parameters import Parameter
from memviz.core.plan import Plan
from memviz.core.simulate import simulate
from memviz.core.trace import Category, Phase
from memviz.widgets import session as sessions
from memviz.widgets.explorer import Explorer
from memviz.widgets.timeline import module_of
from tests.widgets.test_session import TRACE, Scripted, run_of, until

LENGTH = Parameter(name="length", default=4, help="Steps.", minimum=1)
MEASURED = run_of()


def explorer(*events, parameters=(), settings=None) -> tuple[Explorer, Scripted]:
    backend = Scripted(*events)
    return Explorer(backend.collaborators(), parameters, settings), backend


def found(root: widgets.Widget, description: str) -> widgets.Widget:
    """The control of that description, somewhere inside."""
    everything = [root]
    for one in everything:
        everything += getattr(one, "children", ())
    return next(one for one in everything if getattr(one, "description", "") == description)


def lines(shown: Explorer) -> dict[str, object]:
    return {trace.name: trace for trace in shown._timeline.widget.data}


def test_samples_are_drawn_where_the_same_ops_are_expected():
    shown, backend = explorer(Recorded(trace=TRACE), None)
    sample = Sample(op=1, seconds=9.0, phase=Phase.FORWARD, nbytes={Category.PARAMETER: 2**20, Category.ACTIVATION: 2**21})
    backend.listeners[1](Samples(samples=(sample,)))
    live = lines(shown)["being measured"]
    assert list(live.x) == [simulate(TRACE).seconds[1]]
    assert list(live.y) == [3.0]


def test_a_run_is_listed_with_its_badge_and_laid_under_the_next():
    shown, _ = explorer(Recorded(trace=TRACE), Finished(run=replace(MEASURED, plan=Plan(label="<a>"))))
    (row,) = shown._runs.widget.rows
    assert row["cells"][0] == {"text": "<a>"}
    assert {"text": "exact", "tone": "good"} in row["cells"]
    assert "measured" in lines(shown)
    shown.state.add_run(replace(MEASURED, plan=Plan(label="b")))
    assert "earlier: &lt;a>" in lines(shown)
    assert shown._runs.widget.marked == ["1"]


def test_choosing_an_older_run_looks_at_it():
    shown, _ = explorer(Recorded(trace=TRACE), Finished(run=replace(MEASURED, plan=Plan(label="a"))))
    shown.state.add_run(replace(MEASURED, plan=Plan(label="b")))
    shown._runs._chosen(shown._runs.widget, {"type": "choose", "id": "0"}, [])
    assert "earlier: b" in lines(shown)
    assert "measured: a" in shown._holders.widget.caption


def test_runs_of_another_step_stay_listed_and_are_not_laid_over_this_one():
    shown, _ = explorer(Recorded(trace=TRACE), Finished(run=MEASURED))
    shown.state.trace = replace(TRACE, title="another")
    assert "measured" not in lines(shown)
    (row,) = shown._runs.widget.rows
    assert (row["id"], row["tone"]) == ("", "muted")


def test_a_failure_is_listed_beside_the_runs():
    failure = Failure(cause=Cause.OUT_OF_MEMORY, message="too much", limit=2**20)
    shown, _ = explorer(Recorded(trace=TRACE), Failed(failure=failure))
    (row,) = shown._runs.widget.rows
    assert {"text": "out of memory", "tone": "bad", "title": "too much"} in row["cells"]
    assert "too much" in shown.state.errors["run"]


def test_a_plan_changes_the_graph_s_actions():
    shown, _ = explorer(Recorded(trace=TRACE), None, None)
    shown._receive(shown.graph, {"type": "set_action", "pattern": "b", "action": "swap"}, [])
    until(lambda: "swap" in shown.graph.actions.values())


def test_one_selection_goes_through_all_views():
    shown, _ = explorer(Recorded(trace=TRACE), Finished(run=MEASURED))
    key = next(holder.key for holder in MEASURED.timeline.holders if holder.key.startswith("a"))
    shown._holders._chosen(shown._holders.widget, {"type": "choose", "id": key}, [])
    assert shown.graph.selected == shown.state.selected
    assert module_of(shown.state.selected) == "a"
    assert key in shown._holders.widget.marked
    assert shown._timeline.widget.layout.shapes
    shown.graph.selected = ""
    assert shown._holders.widget.marked == []
    assert not shown._timeline.widget.layout.shapes


def test_dragging_the_occupancy_turns_swapping_on():
    shown, _ = explorer(Recorded(trace=TRACE), None, None, None)
    found(shown, "occupancy").value = 0.2
    assert shown.state.swapping
    assert shown.state.plan.swap.occupancy == pytest.approx(0.2)


def test_a_parameter_records_again_and_a_wrong_one_does_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sessions, "SECONDS_OF_REST", 0.0)
    shown, backend = explorer(Recorded(trace=TRACE), None, None, parameters=(LENGTH,), settings={"length": 4})
    control = found(shown, "length")
    control.value = 0
    assert "at least 1" in shown.state.errors["length"]
    control.value = 8
    until(lambda: len(backend.requests) == 3)
    assert backend.requests[-1].parameters == {"length": 8}
