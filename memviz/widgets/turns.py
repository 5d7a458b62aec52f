"""One thing at a time: what backends say on their threads is handled where the controls are."""

import asyncio
import threading
from collections.abc import Callable
from typing import Protocol, TypeAlias

Call: TypeAlias = Callable[[], None]


class Pending(Protocol):
    """A call that was put off."""

    def cancel(self) -> None:
        """Never make it."""


class Turns:
    """Calls from any thread, made one after another.

    In a kernel they are made by its event loop, between the messages of the controls, so that no widget is changed by two threads.
    Without a loop (a script, a test) they are made at once, by whoever asks, under a lock.
    """

    def __init__(self) -> None:
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None
        self._lock = threading.RLock()

    def soon(self, call: Call) -> None:
        """Make the call when it is its turn; dropped where the loop has ended, since nobody looks any more."""
        if self._loop is None:
            with self._lock:
                call()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    def later(self, seconds: float, call: Call) -> Pending:
        """Make the call after some seconds."""
        if self._loop is not None:
            return self._loop.call_later(seconds, call)
        timer = threading.Timer(seconds, self.soon, [call])
        timer.daemon = True
        timer.start()
        return timer
