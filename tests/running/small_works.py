"""Small pieces of work for a worker process to import: each does one thing that a step can do."""

import os
import signal
import sys
import tempfile
import time
import warnings
from types import SimpleNamespace

import numpy as np

from memviz.core.events import Progress, Request, Sample, Samples
from memviz.core.failure import Cancelled
from memviz.core.plan import Plan
from memviz.core.run import Agreement, Gradients, Run
from memviz.core.timeline import Timeline
from memviz.core.trace import Category, Phase, Trace


def a_run(title: str) -> Run:
    timeline = Timeline(
        predicted=False,
        device="cpu",
        seconds=np.array([0.5]),
        nbytes={Category.ACTIVATION: np.array([7])},
        phases=(Phase.FORWARD,),
        modules=("",),
    )
    return Run(title=title, plan=Plan(), timeline=timeline, step_seconds=(0.5,), loss=1.0, gradients=Gradients(agreement=Agreement.EXACT))


def streams(request: Request, workload_name, on_event, cancelled):
    for op in range(3):
        on_event(Samples(samples=(Sample(op=op, seconds=op / 10, phase=Phase.FORWARD, nbytes={Category.ACTIVATION: op}),)))
    if request.plan is None:
        return Trace(title=workload_name, device="cpu", ops=(), values=(), saves=())
    return a_run(f"{workload_name} {os.getpid()}")


def by_parameter(request: Request, workload_name, on_event, cancelled):
    """What happens is in the request, so that one backend meets one thing after another."""
    return globals()[request.parameters.get("does", "streams")](request, workload_name, on_event, cancelled)


def kills_itself(request, workload_name, on_event, cancelled):
    os.kill(os.getpid(), signal.SIGKILL)


def exits(request, workload_name, on_event, cancelled):
    os._exit(3)


def raises_memory_error(request, workload_name, on_event, cancelled):
    raise MemoryError


def raises_value_error(request, workload_name, on_event, cancelled):
    raise ValueError("length is at least 1, not 0")


def loops(request, workload_name, on_event, cancelled):
    on_event(Progress(stage="step 1 of 2", fraction=0.5))
    while not cancelled():
        time.sleep(0.005)
    raise Cancelled


def is_stuck(request, workload_name, on_event, cancelled):
    on_event(Progress(stage="stuck", fraction=0.0))
    time.sleep(60)
    sys.exit("nobody stopped it")


def errs_on_cuda(request, workload_name, on_event, cancelled):
    """A stand-in for torch with a CUDA context: that is all that the worker looks at."""
    sys.modules["torch"] = SimpleNamespace(cuda=SimpleNamespace(is_initialized=lambda: True))
    on_event(Progress(stage=str(os.getpid()), fraction=0.0))
    raise RuntimeError("CUDA error: device-side assert triggered")


def warns(request, workload_name, on_event, cancelled):
    for _ in range(2):
        warnings.warn("the disk is full", RuntimeWarning, stacklevel=1)
    warnings.warn("of no interest", UserWarning, stacklevel=1)
    return a_run("warned")


def writes_a_file(request, workload_name, on_event, cancelled):
    handle, path = tempfile.mkstemp(prefix=f"{os.getpid()}-")
    os.close(handle)
    on_event(Progress(stage=path, fraction=0.0))
    return is_stuck(request, workload_name, on_event, cancelled) if request.parameters.get("then_stuck") else a_run(path)
