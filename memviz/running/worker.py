"""Inside the worker process: wait for a request, do it, send its events, wait for the next."""

import signal
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Protocol

from memviz.core.events import Event, Request
from memviz.core.failure import Cancelled
from memviz.core.run import Run
from memviz.core.trace import Trace
from memviz.running.job import IsCancelled, OnEvent
from memviz.running.outcome import outcome


class CancelledUpTo(Protocol):
    """A number in shared memory: requests up to and including this one are cancelled.

    A number, because a flag would have to be cleared for the next request, and could be cleared too late or too early.
    """

    value: int


class Work(Protocol):
    """The callable that a worker process is told to import."""

    def __call__(self, request: Request, workload_name: str, on_event: OnEvent, cancelled: IsCancelled, /) -> Trace | Run: ...


def serve(work: str, workload_name: str, connection: Connection, cancelled_up_to: CancelledUpTo) -> None:
    """Answer numbered requests with numbered events until the other end hangs up."""
    # An interrupt of the kernel reaches its whole process group; here, cancelling is the shared number's business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            number, request = connection.recv()
            send_outcome(work, workload_name, connection, cancelled_up_to, number, request)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def send_outcome(
    work: str, workload_name: str, connection: Connection, cancelled_up_to: CancelledUpTo, number: int, request: Request
) -> None:
    """Do one request, sending its events as they come."""

    def is_cancelled() -> bool:
        return cancelled_up_to.value >= number

    def send(event: Event) -> None:
        connection.send((number, event))

    def call() -> Trace | Run:
        if is_cancelled():
            raise Cancelled
        return import_work(work)(request, workload_name, send, is_cancelled)

    send(outcome(call))


def import_work(path: str) -> Work:
    """The callable at ``module:function``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]
