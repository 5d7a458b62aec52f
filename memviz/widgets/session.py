"""What happens when a control moves or an event arrives: state to request, event to state."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from memviz.core.events import Event, Failed, Finished, Progress, Recorded, Request, Sample, Samples
from memviz.core.failure import Cause
from memviz.core.files import Document
from memviz.core.plan import Plan, Rule, parse_action
from memviz.core.simulate import simulate
from memviz.widgets.collaborators import Collaborators, Job
from memviz.widgets.planning import Wrong, limit_of, planned
from memviz.widgets.state import ExplorerState
from memviz.widgets.turns import Pending, Turns

if TYPE_CHECKING:
    from memviz.core.timeline import Timeline

SECONDS_BETWEEN_DRAWINGS = 0.1
SECONDS_OF_REST = 0.5
"""How long the controls rest before a change of theirs is run."""

PLANNING = ["mode", "rules", "swapping", "min_bytes", "occupancy", "limit"]


class Session:
    """Ties an ExplorerState to its collaborators. Events of a request that was replaced change nothing."""

    def __init__(self, state: ExplorerState, collaborators: Collaborators, turns: Turns | None = None) -> None:
        self.state = state
        self.unplanned: Timeline | None = None
        self._made = collaborators
        self._turns = turns or Turns()
        self._job: Job | None = None
        self._request: Request | None = None
        self._number = 0
        self._pending: Pending | None = None
        self._is_recorded = False
        self._waiting: list[Sample] = []
        self._drawn = 0.0
        state.observe(lambda _change: self._turns.take(self._look), ["trace"])
        state.observe(lambda _change: self._turns.take(self._changed), PLANNING)
        state.observe(lambda _change: self._turns.take(self._set_up_again), ["parameters"])
        if collaborators.memory is not None:
            state.trace = collaborators.memory.recall(dict(state.parameters))
        self.record()

    def record(self) -> None:
        """Ask for a new trace; a run of the plan follows."""
        self._is_recorded = False
        self._start(self._recording())

    def run(self) -> None:
        """Step for real under the plan on show, recording first where that is not done; nothing where a control is wrong."""
        if not self._is_recorded:
            self.record()
        elif self._replan():
            self._start(self._wanted())

    def cancel(self) -> None:
        """Stop what runs, and what was about to."""
        self._put_off()
        if self._job is not None:
            self._job.cancel()

    def close(self) -> None:
        """Stop what runs and end what runs it."""
        self.cancel()
        self._number += 1
        state = self.state
        state.running, state.stage, state.fraction = False, "", 0.0
        self._made.close()

    def export(self) -> str:
        """Write the report and the runs; the report's path, or an empty text where that failed, which is said beside Export."""
        state = self.state
        try:
            path = self._made.export(Document(trace=state.trace, runs=state.runs, failures=state.failures))
        except (OSError, ValueError, ImportError) as error:
            state.complain("export", f"the report could not be written: {error}")
            return ""
        state.complain("export", "")
        return str(path)

    def set_action(self, pattern: str, action: str) -> None:
        """Give what the pattern matches an action, by hand."""
        state = self.state
        try:
            rule = Rule(pattern=pattern, action=parse_action(action))
        except ValueError as error:
            state.complain("graph", str(error))
            return
        with state.hold_trait_notifications():
            state.set_rule(rule)
            state.mode = "manual" if state.mode == "none" else state.mode

    def _recording(self) -> Request:
        return Request(parameters=dict(self.state.parameters))

    def _wanted(self) -> Request:
        return Request(plan=self.state.plan, limit=limit_of(self.state), parameters=dict(self.state.parameters))

    def _tried(self) -> str:
        """What was asked for last, in a few words."""
        return "recording" if self._request is None or self._request.plan is None else self._request.plan.label

    def _look(self) -> None:
        """A new trace is there."""
        state = self.state
        self.unplanned = None if state.trace is None else simulate(state.trace, Plan())
        self._replan()

    def _changed(self) -> None:
        """The controls ask for another plan: predict it at once, and run it when they have come to rest."""
        if self._replan() and self.state.auto:
            self._rest()

    def _set_up_again(self) -> None:
        self._is_recorded = False
        self._rest()

    def _rest(self) -> None:
        self._put_off()
        self._pending = self._turns.later(SECONDS_OF_REST, self._rested)

    def _put_off(self) -> None:
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None

    def _rested(self) -> None:
        """Do what the controls ask for, unless just that is being done."""
        self._pending = None
        try:
            wanted = self._wanted() if self._is_recorded else self._recording()
        except Wrong:
            return  # It became so while the controls came to rest, and is said beside its control already.
        if not (self.state.running and self._request == wanted):
            self.run()

    def _replan(self) -> bool:
        """Plan and predict again; False where a control holds what can't be, with the message beside it."""
        state = self.state
        if state.trace is None or self.unplanned is None:
            return False
        try:
            plan, predicted = planned(state, self.unplanned)
        except Wrong as wrong:
            state.complain(wrong.control, str(wrong))
            return False
        state.predicted, state.plan = predicted, plan
        for name in ("limit", "swap", "graph", "mode"):
            state.complain(name, "")
        return True

    def _start(self, request: Request) -> None:
        self._put_off()
        self._number += 1
        number = self._number
        self._request = request
        self._waiting.clear()
        state = self.state
        state.complain("run", "")
        state.samples, state.stage, state.fraction, state.running = (), "starting", 0.0, True
        try:
            self._job = self._made.start(request, lambda event: self._turns.take(lambda: self._receive(number, event)))
        except (RuntimeError, ValueError, OSError) as error:
            state.running, state.stage = False, ""
            state.complain("run", str(error))

    def _receive(self, number: int, event: Event) -> None:
        if number == self._number:
            self._show(event)

    def _show(self, event: Event) -> None:
        state = self.state
        match event:
            case Progress():
                state.stage, state.fraction = event.stage, event.fraction
                return
            case Samples():
                self._waiting.extend(event.samples)
                if time.monotonic() - self._drawn >= SECONDS_BETWEEN_DRAWINGS:
                    self._drawn = time.monotonic()
                    state.samples = tuple(self._waiting)
                return
            case Recorded():
                # The settings may have changed since they were asked for: the recording that follows is then still to come.
                assert self._request is not None
                settings = self._request.parameters
                self._is_recorded = settings == state.parameters
                if self._made.memory is not None:
                    self._made.memory.keep(dict(settings), event.trace)
                state.trace = event.trace
            case Finished():
                state.samples = ()
                state.add_run(event.run)
            case Failed() if event.failure.cause is Cause.CANCELLED:
                state.complain("run", "cancelled; Run starts again")
            case Failed():
                state.add_failure(replace(event.failure, label=self._tried()))
        state.running, state.stage, state.fraction = False, "", 0.0
        if isinstance(event, Recorded) and state.auto and self._is_recorded:
            self.run()
