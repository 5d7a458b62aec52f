"""A session against a backend that says what it is told to, and fails on what it wasn't told to expect."""

import numpy as np
import pytest

from memviz.core.events import Failed, Recorded, Request
from memviz.core.failure import Cause, Failure
from memviz.core.plan import Action, Plan
from memviz.core.timeline import Timeline
from memviz.core.trace import Trace
from memviz.widgets.collaborators import Collaborators
from memviz.widgets.session import Session
from memviz.widgets.state import ExplorerState

TRACE = Trace(title="empty", device="cpu", ops=(), values=(), saves=())


class Scripted:
    def __init__(self, *events):
        self.events, self.requests, self.cancels, self.listeners = list(events), [], 0, []

    def start(self, request, on_event):
        assert self.events, f"unexpected request {request}"
        self.requests.append(request)
        self.listeners.append(on_event)
        event = self.events.pop(0)
        if event is not None:
            on_event(event)
        return self

    def cancel(self):
        self.cancels += 1


def session(backend):
    line = Timeline(predicted=True, device="cpu", seconds=np.zeros(0), nbytes={}, phases=(), modules=())
    made = Collaborators(
        start=backend.start,
        plan=lambda trace, *, recompute, rules, swap: Plan(rules=rules, swap=swap, label=recompute),
        simulate=lambda trace, plan, *, limit: line,
        report=lambda trace, runs, failures: pytest.fail("no report was asked for"),
    )
    return Session(ExplorerState(), made)


def test_a_mode_replans_and_runs():
    backend = Scripted(Recorded(trace=TRACE), None)
    made = session(backend)
    made.record()
    made.state.mode = "heuristics"
    made.run()
    assert backend.requests == [Request(), Request(plan=Plan(label="heuristics"))]
    made.cancel()
    assert backend.cancels == 1


def test_a_bad_limit_is_said_beside_it_and_starts_nothing():
    made = session(Scripted(Recorded(trace=TRACE)))
    made.record()
    plan = made.state.plan
    made.state.limit = "much"
    made.run()
    assert "much" in made.state.errors["limit"]
    assert made.state.plan is plan
    made.state.limit = "1 GiB"
    assert made.state.errors == {}


def test_a_failure_takes_nothing_away_and_an_older_event_changes_nothing():
    failure = Failure(cause=Cause.DIED, message="it died")
    backend = Scripted(Recorded(trace=TRACE), None, Failed(failure=failure))
    made = session(backend)
    made.record()
    made.run()
    made.run()
    assert made.state.trace is TRACE
    assert made.state.errors == {"run": "it died"}
    backend.listeners[1](Failed(failure=Failure(cause=Cause.ERROR, message="old")))
    assert made.state.failures == (failure,)


def test_an_action_by_hand_leaves_mode_none():
    made = session(Scripted())
    made.set_action("blocks.0", "recompute")
    assert (made.state.mode, made.state.rules[0].action) == ("manual", Action.RECOMPUTE)
    made.set_action("blocks.0", "melt")
    assert "melt" in made.state.errors["graph"]
