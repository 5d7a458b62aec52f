"""Live objects of the user's, run on one dedicated thread."""

import sys
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import TypeAlias

from memviz.core.events import Event, Request
from memviz.core.run import Run
from memviz.core.trace import Trace
from memviz.running.job import IsCancelled, Job, OnEvent
from memviz.running.outcome import cancelled, outcome
from memviz.running.place import Place, here

LiveWork: TypeAlias = Callable[[Request, OnEvent, IsCancelled], Trace | Run]


class ThreadBackend:
    """A Backend that calls ``work(request, on_event, cancelled)``, one request at a time.

    Args:
        work: What does it.
        place: Where that is called; on the backend's own thread if not given.
    """

    def __init__(self, work: LiveWork, place: Place = here) -> None:
        self._work = work
        self._place = place
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._latest: Job | None = None
        self._lock = threading.Lock()
        self._closed = False
        threading.Thread(target=self._serve, name="memviz-live", daemon=True).start()

    def start(self, request: Request, on_event: OnEvent) -> Job:
        """Start the request, cancel the older one, and return at once."""
        job = Job(request, on_event)
        with self._lock:
            if self._closed:
                msg = "this explorer was closed; make a new one to run again"
                raise RuntimeError(msg)
            if self._latest is not None:
                self._latest.cancel()
            self._latest = job
            self._jobs.put(job)
        return job

    def close(self) -> None:
        """Cancel what runs and end the thread once it has stopped."""
        with self._lock:
            self._closed = True
            if self._latest is not None:
                self._latest.cancel()
            self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            # A listener's error is reported as any thread's is, and this thread goes on.
            try:
                job.finish(self._place(partial(self._outcome, job)))
            except Exception:
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))

    def _outcome(self, job: Job) -> Event:
        return cancelled() if job.cancelled else outcome(partial(self._do, job))

    def _do(self, job: Job) -> Trace | Run:
        return self._work(job.request, job.on_event, lambda: job.cancelled)
