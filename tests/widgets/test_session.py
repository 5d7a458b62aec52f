"""A session against a backend that says what it is told to, and fails on what it wasn't told to expect."""

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from memviz.core.events import Event, Failed, Finished, Recorded, Request
from memviz.core.failure import Cause, Failure
from memviz.core.files import Document
from memviz.core.plan import Action, Plan, Rule
from memviz.core.run import Agreement, Gradients, Run
from memviz.core.simulate import simulate
from memviz.core.trace import Trace
from memviz.widgets import session as sessions
from memviz.widgets.collaborators import Collaborators
from memviz.widgets.planning import full_in_words
from memviz.widgets.session import Session
from memviz.widgets.state import ExplorerState
from tests.core.chains import chain_trace

TRACE = chain_trace()


def run_of(plan: Plan | None = None) -> Run:
    """A run of the chain, as if the prediction had been measured."""
    line = replace(simulate(TRACE), predicted=False)
    exact = Gradients(agreement=Agreement.EXACT)
    return Run(title=TRACE.title, plan=plan or Plan(), timeline=line, step_seconds=(1.0,), loss=0.0, gradients=exact)


class Scripted:
    """A backend whose every request has an answer, or None for one that goes on."""

    def __init__(self, *events: Event | None) -> None:
        self.events, self.requests, self.cancels, self.closed = list(events), [], 0, False
        self.listeners: list[Callable[[Event], None]] = []
        self.exported: list[Document] = []

    def start(self, request: Request, on_event: Callable[[Event], None]) -> "Scripted":
        assert self.events, f"unexpected request {request}"
        self.requests.append(request)
        self.listeners.append(on_event)
        event = self.events.pop(0)
        if event is not None:
            on_event(event)
        return self

    def cancel(self) -> None:
        self.cancels += 1

    def close(self) -> None:
        self.closed = True

    def collaborators(self, **others) -> Collaborators:
        def export(document: Document):
            self.exported.append(document)
            return "there.html"

        return Collaborators(**{"start": self.start, "close": self.close, "export": export, **others})


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Controls come to rest at once."""
    monkeypatch.setattr(sessions, "SECONDS_OF_REST", 0.01)


def made(backend: Scripted, **values) -> Session:
    return Session(ExplorerState(**values), backend.collaborators())


def until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not ready() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert ready()


def test_the_unplanned_step_is_recorded_and_run_unasked():
    backend = Scripted(Recorded(trace=TRACE), None)
    state = made(backend).state
    assert [request.plan for request in backend.requests] == [None, Plan(label="no plan")]
    assert state.predicted.peak == simulate(TRACE).peak
    assert state.running


def test_a_change_of_mode_is_predicted_at_once_and_run_when_the_controls_rest():
    backend = Scripted(Recorded(trace=TRACE), Finished(run=run_of()), None)
    state = made(backend).state
    state.mode = "heuristics"
    assert state.plan.label == "heuristics"
    until(lambda: len(backend.requests) == 3)
    assert backend.requests[-1].plan == state.plan


def test_what_runs_already_is_not_started_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sessions, "SECONDS_OF_REST", 0.2)
    backend = Scripted(Recorded(trace=TRACE), None, None)
    session = made(backend)
    session.state.mode = "heuristics"
    until(lambda: len(backend.requests) == 3)
    session.state.rules = ()
    session.state.mode = "none"
    session.state.mode = "heuristics"
    time.sleep(0.4)
    assert len(backend.requests) == 3


def test_nothing_runs_unasked_where_that_is_off():
    backend = Scripted(Recorded(trace=TRACE), None)
    session = made(backend, auto=False)
    session.state.mode = "heuristics"
    time.sleep(0.05)
    assert len(backend.requests) == 1
    session.run()
    assert backend.requests[-1].plan.label == "heuristics"
    session.cancel()
    assert backend.cancels == 1


def test_swapping_without_a_limit_counts_the_unplanned_peak_as_full():
    session = made(Scripted(Recorded(trace=TRACE)), auto=False, swapping=True, occupancy=0.5)
    assert session.state.plan.swap.limit == simulate(TRACE).peak
    assert session.state.plan.label == "swap above 50%"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("limit", "much", "much"),
        ("limit", "1 B", "parameters"),
        ("limit", "9" * 400, "a number of bytes"),
        ("min_bytes", "-3", "-3"),
    ],
)
def test_a_bad_value_is_said_beside_its_control_and_starts_nothing(name, value, said):
    session = made(Scripted(Recorded(trace=TRACE)), auto=False, swapping=True)
    plan = session.state.plan
    setattr(session.state, name, value)
    session.run()
    assert said in session.state.errors[{"min_bytes": "swap"}.get(name, name)]
    assert session.state.plan is plan
    setattr(session.state, name, "1 GiB")
    assert session.state.errors == {}


@pytest.mark.parametrize("occupancy", [float("inf"), float("nan"), -1.0])
def test_where_swapping_begins_is_not_said_of_an_occupancy_that_cannot_be(occupancy):
    assert full_in_words(ExplorerState(occupancy=occupancy, limit="1 KiB"), None) == ""


def test_a_failure_takes_nothing_away_and_an_older_event_changes_nothing():
    failure = Failure(cause=Cause.DIED, message="it died")
    backend = Scripted(Recorded(trace=TRACE), None, Failed(failure=failure))
    session = made(backend, auto=False)
    session.run()
    session.run()
    assert session.state.trace is TRACE
    assert session.state.errors == {"run": "it died"}
    backend.listeners[1](Failed(failure=Failure(cause=Cause.ERROR, message="old")))
    assert [(one.message, one.label) for one in session.state.failures] == [("it died", "no plan")]


def test_run_records_first_where_recording_failed():
    backend = Scripted(Failed(failure=Failure(cause=Cause.ERROR, message="no loss")), None)
    session = made(backend)
    assert session.state.failures[0].label == "recording"
    session.run()
    assert [request.plan for request in backend.requests] == [None, None]


def test_other_settings_record_again_before_anything_runs():
    backend = Scripted(Recorded(trace=TRACE), Finished(run=run_of()), None)
    session = made(backend, parameters={"length": 4})
    session.state.parameters = {"length": 8}
    session.state.mode = "heuristics"
    until(lambda: len(backend.requests) == 3)
    time.sleep(0.05)
    assert backend.requests[-1] == Request(parameters={"length": 8})
    assert len(backend.requests) == 3


class Remembers:
    def __init__(self, trace: Trace | None) -> None:
        self.trace, self.kept = trace, []

    def recall(self, settings):
        return self.trace if settings == {"length": 4} else None

    def keep(self, settings, trace):
        self.kept.append((settings, trace))


def test_an_earlier_trace_is_shown_while_the_step_is_recorded_again():
    backend, memory = Scripted(None, None), Remembers(TRACE)
    state = ExplorerState(parameters={"length": 4})
    Session(state, backend.collaborators(memory=memory))
    assert state.predicted.peak == simulate(TRACE).peak
    assert [request.plan for request in backend.requests] == [None]
    backend.listeners[0](Recorded(trace=TRACE))
    assert memory.kept == [({"length": 4}, TRACE)]
    assert backend.requests[-1].plan == Plan(label="no plan")


def test_settings_that_change_before_the_recording_ends_are_recorded_themselves():
    backend, memory = Scripted(None, None), Remembers(None)
    state = ExplorerState(parameters={"length": 4})
    Session(state, backend.collaborators(memory=memory))
    state.parameters = {"length": 8}
    backend.listeners[0](Recorded(trace=TRACE))
    assert memory.kept == [({"length": 4}, TRACE)]
    until(lambda: len(backend.requests) == 2)
    assert backend.requests[-1] == Request(parameters={"length": 8})


def test_a_value_that_goes_bad_while_the_controls_come_to_rest_starts_nothing(monkeypatch: pytest.MonkeyPatch):
    raised = []
    monkeypatch.setattr("threading.excepthook", raised.append)
    session = made(Scripted(Recorded(trace=TRACE), Finished(run=run_of())))
    session.state.mode = "heuristics"
    session.state.limit = "much"
    until(lambda: session._pending is None)
    time.sleep(0.05)
    assert raised == []
    assert "much" in session.state.errors["limit"]


def test_an_action_by_hand_leaves_mode_none_and_a_rule_can_be_taken_away():
    session = made(Scripted(Recorded(trace=TRACE)), auto=False)
    session.set_action("b", "recompute")
    assert (session.state.mode, session.state.plan.rules) == ("manual", (Rule(pattern="b", action=Action.RECOMPUTE),))
    session.set_action("b", "melt")
    assert "melt" in session.state.errors["graph"]
    session.state.drop_rule(session.state.rules[0])
    assert session.state.plan.rules == ()


def test_an_export_holds_everything_and_a_full_disk_is_said_beside_it():
    backend = Scripted(Recorded(trace=TRACE), Finished(run=run_of()))
    session = made(backend)
    assert session.export() == "there.html"
    assert backend.exported == [Document(trace=TRACE, runs=session.state.runs)]

    def full(_document):
        raise OSError(28, "No space left on device")

    session = Session(ExplorerState(), Scripted(Recorded(trace=TRACE), None).collaborators(export=full))
    assert session.export() == ""
    assert "No space left" in session.state.errors["export"]


def test_a_closed_session_ends_its_backend_and_hears_nothing_more():
    backend = Scripted(None)
    session = made(backend)
    session.close()
    assert backend.closed
    assert (session.state.running, session.state.stage) == (False, "")
    backend.listeners[0](Recorded(trace=TRACE))
    assert session.state.trace is None
