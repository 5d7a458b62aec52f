"""What the explorer asks of the layers it may not import; ``memviz.exploring`` hands it in."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from memviz.core.events import Event, Request
from memviz.core.files import Document
from memviz.core.parameters import Setting
from memviz.core.trace import Trace

Settings: TypeAlias = dict[str, Setting]


class Job(Protocol):
    """A started request."""

    def cancel(self) -> None:
        """Stop it between two ops; its last event is then a Failed of cause CANCELLED."""


class Memory(Protocol):
    """Traces that were recorded earlier, by the settings of what was stepped."""

    def recall(self, settings: Settings) -> Trace | None:
        """The trace, or None if there is none that can be trusted."""

    def keep(self, settings: Settings, trace: Trace) -> None:
        """Keep it for another time, if that can be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collaborators:
    """The callables behind the controls.

    Attributes:
        start: Starts a request; a newer one replaces the older. ValueError, RuntimeError or OSError where it can't.
        close: Ends what runs the requests.
        export: Writes the report and the file of runs, and returns the report's path.
        memory: Earlier traces, or None.
    """

    start: Callable[[Request, Callable[[Event], None]], Job]
    close: Callable[[], None]
    export: Callable[[Document], Path]
    memory: Memory | None = None
