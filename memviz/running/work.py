"""The real work: build a workload's step, keep it, and record it or run a plan on it."""

from functools import lru_cache

from memviz.core.events import Request
from memviz.core.parameters import Setting
from memviz.core.run import Run
from memviz.core.trace import Trace
from memviz.pytorch.record import record
from memviz.pytorch.run import run
from memviz.pytorch.step import TrainStep, as_step
from memviz.running.job import IsCancelled, OnEvent
from memviz.running.thread import LiveWork
from memviz.workloads import get


def work(request: Request, workload_name: str, on_event: OnEvent, cancelled: IsCancelled) -> Trace | Run:
    """Do the request on the named workload, with the request's parameters as its settings."""
    return do(request, built(workload_name, tuple(sorted(request.parameters.items()))), on_event, cancelled)


def live(step: TrainStep) -> LiveWork:
    """The work of a ThreadBackend on a live step."""
    return lambda request, on_event, cancelled: do(request, step, on_event, cancelled)


def do(request: Request, step: TrainStep, on_event: OnEvent, cancelled: IsCancelled) -> Trace | Run:
    """Record the step, or run it under the request's plan."""
    if request.plan is None:
        return record(step, on_event=on_event, cancelled=cancelled)
    return run(step, request.plan, limit=request.limit, repeats=request.repeats, on_event=on_event, cancelled=cancelled)


@lru_cache(maxsize=1)  # One at a time: a second model would stay in the memory that is being measured.
def built(workload_name: str, settings: tuple[tuple[str, Setting], ...]) -> TrainStep:
    """The step of a workload; a run restores what it changes (E10), so that the step can be used again."""
    return as_step(get(workload_name, **dict(settings)))
