"""Inside the worker process: wait for a request, do it, send its events, wait for the next."""

import os
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from typing import Protocol

from memviz.core.events import Event, Failed, Request
from memviz.core.failure import Cancelled, Cause
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An event of the request with this number. ``spent``: the process should serve no other request."""

    number: int
    event: Event
    spent: bool = False


def serve(work: str, workload_name: str, connection: Connection, cancelled_up_to: CancelledUpTo, folder: str) -> None:
    """Answer numbered requests with messages until the other end hangs up; temporary files go to the folder."""
    # An interrupt of the kernel reaches its whole process group; here, cancelling is the shared number's business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = folder
    threading.Thread(target=_end_with_parent, args=(folder,), name="memviz-orphan", daemon=True).start()
    while True:
        try:
            number, request = connection.recv()
            send_outcome(work, workload_name, connection, cancelled_up_to, number, request)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def _end_with_parent(folder: str) -> None:
    """Without the parent nobody waits for the work, and nobody else removes its files."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def send_outcome(
    work: str, workload_name: str, connection: Connection, cancelled_up_to: CancelledUpTo, number: int, request: Request
) -> None:
    """Do one request, sending its events as they come."""

    def is_cancelled() -> bool:
        return cancelled_up_to.value >= number

    def send(event: Event) -> None:
        connection.send(Message(number=number, event=event))

    def call() -> Trace | Run:
        if is_cancelled():
            raise Cancelled
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", RuntimeWarning)
            result = import_work(work)(request, workload_name, send, is_cancelled)
        return noted(result, caught)

    last = outcome(call)
    connection.send(Message(number=number, event=last, spent=spent_by(last)))


def noted(result: Trace | Run, caught: list[warnings.WarningMessage]) -> Trace | Run:
    """The result with what was warned of as its notes: the worker's stderr is not where the person looks."""
    notes = dict.fromkeys(str(warning.message) for warning in caught if issubclass(warning.category, RuntimeWarning))
    return replace(result, notes=(*result.notes, *notes)) if isinstance(result, Run) else result


def spent_by(last: Event) -> bool:
    """Whether the process can't be trusted after its request ended so: a CUDA context does not survive most errors."""
    torch = sys.modules.get("torch")  # Looked at, not imported: this part does not know torch.
    return isinstance(last, Failed) and last.failure.cause is Cause.ERROR and torch is not None and torch.cuda.is_initialized()


def import_work(path: str) -> Work:
    """The callable at ``module:function``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]
