"""A workload, run in a warm worker process, so that whatever happens to it is a message and not a dead kernel."""

import itertools
import multiprocessing
import shutil
import tempfile
import threading
import time
import weakref
from ctypes import c_longlong
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from multiprocessing.sharedctypes import RawValue

from memviz.core.events import Event, Failed, Finished, Recorded, Request
from memviz.running.job import Job, OnEvent
from memviz.running.outcome import cancelled, died, failure_of
from memviz.running.worker import CancelledUpTo, Message, serve

LAST = (Recorded, Finished, Failed)


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Worker:
    """A process that is up, this end of its pipe, the number up to which its requests are cancelled, and its temporary files."""

    process: SpawnProcess
    connection: Connection
    cancelled_up_to: CancelledUpTo
    folder: str

    def stop(self) -> int | None:
        """Kill it if it is still there; its exit code."""
        self.connection.close()
        return _end(self.process, self.folder)


class ProcessBackend:
    """A Backend that keeps one process, started by the first request, replaced when it dies or an error leaves its CUDA context in doubt.

    Args:
        workload_name: Which workload the process builds; its settings come with each request.
        work: The callable that does the work, as ``module:function``; see ``worker.Work``.
        patience: Seconds that a cancelled request has to reach the end of its op before its process is killed.
    """

    def __init__(self, workload_name: str, *, work: str = "memviz.running.work:work", patience: float = 10.0) -> None:
        self._workload_name = workload_name
        self._work = work
        self._patience = patience
        self._numbers = itertools.count(1)
        self._latest: Job | None = None
        self._worker: Worker | None = None
        self._starting = threading.Lock()
        self._running = threading.Lock()
        self._closed = False

    def start(self, request: Request, on_event: OnEvent) -> Job:
        """Start the request, cancel the older one, and return at once."""
        job = Job(request, on_event)
        with self._starting:
            if self._closed:
                msg = "this explorer was closed; make a new one to run again"
                raise RuntimeError(msg)
            if self._latest is not None:
                self._latest.cancel()
            self._latest = job
        threading.Thread(target=self._run, args=(job,), name="memviz-run", daemon=True).start()
        return job

    def rest(self) -> None:
        """End the process if nothing runs, for the memory that it holds; the next request starts a new one."""
        if self._running.acquire(blocking=False):
            try:
                self._discard()
            finally:
                self._running.release()

    def close(self) -> None:
        """Cancel what runs and end the process once it has stopped."""
        with self._starting:
            self._closed = True
            if self._latest is not None:
                self._latest.cancel()
        threading.Thread(target=self._end, name="memviz-close", daemon=True).start()

    def _end(self) -> None:
        with self._running:
            self._discard()

    def _discard(self) -> int | None:
        worker, self._worker = self._worker, None
        return worker.stop() if worker else None

    def _run(self, job: Job) -> None:
        with self._running:
            if job.cancelled or self._closed:
                job.finish(cancelled())
                return
            number = next(self._numbers)
            try:
                worker = self._ready()
            except Exception as error:  # No room for its files, or for another process.
                job.finish(Failed(failure=replace(failure_of(error), message=f"the worker process could not be started: {error}")))
                return
            try:
                job.finish(self._follow(worker, job, number))
            except (EOFError, BrokenPipeError, ConnectionResetError):
                worker.process.join(self._patience)  # The pipe breaks a moment before the exit code is known.
                job.finish(died(self._discard()))
            finally:
                worker.cancelled_up_to.value = number  # If a listener raised, the work is nobody's any more.
                job.release()

    def _ready(self) -> Worker:
        if self._worker is not None and not self._worker.process.is_alive():
            self._discard()
        if self._worker is None:
            self._worker = start_worker(self._work, self._workload_name)
        return self._worker

    def _follow(self, worker: Worker, job: Job, number: int) -> Event:
        """Pass the events of one request on; its last one."""
        worker.connection.send((number, job.request))
        give_up: float | None = None
        while True:
            if job.cancelled and give_up is None:
                worker.cancelled_up_to.value = number
                give_up = time.monotonic() + self._patience
            if give_up is not None and time.monotonic() > give_up:
                self._discard()
                return cancelled()
            if not worker.connection.poll(0.02):
                continue
            message: Message = worker.connection.recv()
            if message.number != number:
                continue
            if message.spent:
                self._discard()
            if isinstance(message.event, LAST):
                return message.event
            job.on_event(message.event)


def start_worker(work: str, workload_name: str) -> Worker:
    """Start a process that waits for requests."""
    context = multiprocessing.get_context("spawn")  # A fork would share the kernel's threads' locks and its CUDA context.
    ours, theirs = context.Pipe()
    cancelled_up_to = RawValue(c_longlong, 0)
    folder = tempfile.mkdtemp(prefix="memviz-worker-")
    arguments = (work, workload_name, theirs, cancelled_up_to, folder)
    process = context.Process(target=serve, args=arguments, name="memviz-worker", daemon=True)
    process.start()
    theirs.close()  # Else the pipe would not break when the process dies.
    worker = Worker(process=process, connection=ours, cancelled_up_to=cancelled_up_to, folder=folder)
    weakref.finalize(worker, _end, process, folder)  # Also when the interpreter exits.
    return worker


def _end(process: SpawnProcess, folder: str) -> int | None:
    process.kill()
    process.join()
    shutil.rmtree(folder, ignore_errors=True)
    return process.exitcode
