"""What whoever asks for a run holds on to, and what runs it: the same for a process and for a thread."""

import threading
from collections.abc import Callable
from typing import Protocol, TypeAlias

from memviz.core.events import Event, Request

OnEvent: TypeAlias = Callable[[Event], None]
IsCancelled: TypeAlias = Callable[[], bool]


class Job:
    """One started request. Its events end with exactly one of Recorded, Finished and Failed; then it is done."""

    def __init__(self, request: Request, on_event: OnEvent) -> None:
        self.request = request
        self.on_event = on_event
        self._cancelled = threading.Event()
        self._done = threading.Event()

    def cancel(self) -> None:
        """Ask it to stop between two ops; it then ends with a Failed of cause CANCELLED. No effect once it is done."""
        self._cancelled.set()

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked it to stop."""
        return self._cancelled.is_set()

    @property
    def done(self) -> bool:
        """Whether its last event has been delivered."""
        return self._done.is_set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is done, at most ``timeout`` seconds; whether it is."""
        return self._done.wait(timeout)

    def finish(self, last: Event) -> None:
        """Deliver the last event; for backends."""
        try:
            self.on_event(last)
        finally:
            self.release()

    def release(self) -> None:
        """Let go of whoever waits, even where a listener's error kept the last event from being delivered."""
        self._done.set()


class Backend(Protocol):
    """Runs one request at a time; a newer one cancels the older. ``on_event`` is called on the backend's own thread."""

    def start(self, request: Request, on_event: OnEvent) -> Job:
        """Start the request and return at once."""
        ...

    def close(self) -> None:
        """Cancel what runs and let go of the thread or process; a closed backend starts nothing more."""
        ...
