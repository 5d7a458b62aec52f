"""What happens when a control moves or an event arrives: state to request, event to state."""

import threading
import time

from memviz.core.events import Event, Failed, Finished, Progress, Recorded, Request, Sample, Samples
from memviz.core.failure import Cause
from memviz.core.plan import Rule, Swap, parse_action
from memviz.core.units import parse_bytes
from memviz.widgets.collaborators import Collaborators, Job
from memviz.widgets.state import ExplorerState

SECONDS_BETWEEN_DRAWINGS = 0.1


class Session:
    """Ties an ExplorerState to its collaborators. Events of a request that was replaced change nothing."""

    def __init__(self, state: ExplorerState, collaborators: Collaborators) -> None:
        self.state = state
        self.collaborators = collaborators
        self._job: Job | None = None
        self._number = 0
        self._lock = threading.RLock()
        self._waiting: list[Sample] = []
        self._drawn = 0.0
        state.observe(self._replan, ["trace", "mode", "rules", "swapping", "min_bytes", "occupancy", "limit"])

    def record(self) -> None:
        """Ask for a new trace."""
        self._start(Request(parameters=dict(self.state.parameters)))

    def run(self) -> None:
        """Step for real under the plan on show; nothing where there is none or a control holds what can't be."""
        if self.state.plan is not None and self._replan():
            self._start(Request(plan=self.state.plan, limit=self._limit(), parameters=dict(self.state.parameters)))

    def cancel(self) -> None:
        """Stop what runs."""
        if self._job is not None:
            self._job.cancel()

    def set_action(self, pattern: str, action: str) -> None:
        """Give what the pattern matches an action, by hand."""
        try:
            self.state.set_rule(Rule(pattern=pattern, action=parse_action(action)))
        except ValueError as error:
            self.state.complain("graph", str(error))
            return
        if self.state.mode == "none":
            self.state.mode = "manual"

    def _limit(self) -> int | None:
        return parse_bytes(self.state.limit, name="limit") if self.state.limit.strip() else None

    def _swap(self) -> Swap | None:
        state = self.state
        return Swap(min_bytes=state.min_bytes, occupancy=state.occupancy, limit=self._limit()) if state.swapping else None

    def _replan(self, _change: object = None) -> bool:
        """Plan and predict again; False where a control holds what can't be, with the message beside it."""
        state = self.state
        control = "limit"
        try:
            limit = self._limit()
            control = "swap"
            swap = self._swap()
            control = "graph" if state.rules else "mode"
            if state.trace is not None:
                plan = self.collaborators.plan(state.trace, recompute=state.mode, rules=state.rules, swap=swap)
                control = "limit"
                state.predicted = self.collaborators.simulate(state.trace, plan, limit=limit)
                state.plan = plan
        except ValueError as error:
            state.complain(control, str(error))
            return False
        for name in ("limit", "swap", "graph", "mode"):
            state.complain(name, "")
        return True

    def _start(self, request: Request) -> None:
        with self._lock:
            self._number += 1
            number = self._number
            self._waiting = []
            self.state.samples = ()
            self.state.complain("run", "")
            self.state.running, self.state.stage, self.state.fraction = True, "starting", 0.0
        try:
            self._job = self.collaborators.start(request, lambda event: self._receive(number, event))
        except (RuntimeError, ValueError, OSError) as error:
            self.state.running = False
            self.state.complain("run", str(error))

    def _receive(self, number: int, event: Event) -> None:
        with self._lock:
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
                state.trace = event.trace
            case Finished():
                state.add_run(event.run)
            case Failed() if event.failure.cause is Cause.CANCELLED:
                state.complain("run", "cancelled")
            case Failed():
                state.add_failure(event.failure)
        state.running, state.stage, state.fraction = False, "", 0.0
