"""Where live work is done: between the cells of a notebook, so that it never meets the user's own code in the middle of a step."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeAlias

from memviz.core.events import Event
from memviz.running.outcome import cancelled

Place: TypeAlias = Callable[[Callable[[], Event]], Event]


def here(work: Callable[[], Event]) -> Event:
    """On the thread that asks."""
    return work()


def between_cells() -> Place:
    """On the event loop that runs the cells, between two of them, if this is called from one; otherwise ``here``.

    A step on another thread would be recorded while a later cell trains the same model, and would give back parameters that
    the cell had just changed. An interrupt of the kernel cancels what runs.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return here

    def place(work: Callable[[], Event]) -> Event:
        done: Future[Event] = Future()

        def turn() -> None:
            try:
                done.set_result(work())
            except KeyboardInterrupt:
                done.set_result(cancelled())
            except BaseException as error:  # Whoever waits raises it.
                done.set_exception(error)

        loop.call_soon_threadsafe(turn)
        return done.result()

    return place
