"""What the explorer asks of the layers it may not import; ``memviz.exploring`` hands it in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import ipywidgets as widgets

from memviz.core.events import Event, Request
from memviz.core.failure import Failure
from memviz.core.plan import Plan, Rule, Swap
from memviz.core.run import Run
from memviz.core.timeline import Timeline
from memviz.core.trace import Trace


class Job(Protocol):
    """A started request."""

    def cancel(self) -> None:
        """Stop it between two ops; its last event is then a Failed of cause CANCELLED."""


class Planner(Protocol):
    """Makes a plan of the mode and the rules; ValueError for what can't be."""

    def __call__(self, trace: Trace, *, recompute: str, rules: Sequence[Rule], swap: Swap | None) -> Plan: ...


class Simulator(Protocol):
    """Predicts the memory of a step."""

    def __call__(self, trace: Trace, plan: Plan, *, limit: int | None) -> Timeline: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Collaborators:
    """The callables behind the controls; ``graph`` makes the drawing's widget, or is None where there is no drawing."""

    start: Callable[[Request, Callable[[Event], None]], Job]
    plan: Planner
    simulate: Simulator
    report: Callable[[Trace | None, tuple[Run, ...], tuple[Failure, ...]], Path]
    graph: Callable[[Trace], widgets.DOMWidget] | None = None
