"""One thing at a time: backends speak on their threads, and a kernel may handle its controls on another one."""

import threading
from collections.abc import Callable
from typing import Protocol, TypeAlias

Call: TypeAlias = Callable[[], None]


class Pending(Protocol):
    """A call that was put off."""

    def cancel(self) -> None:
        """Never make it."""


class Turns:
    """Calls from any thread, made at once by whoever asks, but never two of them together."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def take(self, call: Call) -> None:
        """Make the call when no other one is being made."""
        with self._lock:
            call()

    def later(self, seconds: float, call: Call) -> Pending:
        """Make the call after some seconds."""
        timer = threading.Timer(seconds, self.take, [call])
        timer.daemon = True
        timer.start()
        return timer
