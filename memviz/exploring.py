"""The front door of the explorer: it alone knows the widgets and what runs a step."""

from pathlib import Path
from typing import TYPE_CHECKING

from memviz.core.failure import Failure
from memviz.core.files import Document
from memviz.core.run import Run
from memviz.core.simulate import simulate
from memviz.core.strategies import plan
from memviz.core.trace import Trace
from memviz.widgets.collaborators import Collaborators
from memviz.widgets.explorer import Explorer
from memviz.workloads.description import DEVICE, Workload

if TYPE_CHECKING:
    from memviz.core.parameters import Parameter, Setting
    from memviz.running.job import Backend


def explore(step: object) -> Explorer:
    """The explorer of a workload (in a worker process) or of a live step (on one thread)."""
    parameters: tuple[Parameter, ...] = ()
    settings: dict[str, Setting] = {}
    if isinstance(step, Workload):
        parameters, settings = (*step.parameters, DEVICE), {**step.settings, DEVICE.name: step.device}
    made = Collaborators(start=_backend(step).start, plan=plan, simulate=simulate, report=_report, graph=_graph)
    return Explorer(made, parameters, settings)


def _backend(step: object) -> "Backend":
    if isinstance(step, Workload):
        from memviz.running.process import ProcessBackend

        return ProcessBackend(step.name)
    from memviz.pytorch.step import as_step
    from memviz.running.thread import ThreadBackend
    from memviz.running.work import live

    return ThreadBackend(live(as_step(step)))


def _graph(trace: Trace) -> object:
    from memviz.core.graph import graph
    from memviz.widgets.graph import GraphWidget

    return GraphWidget(model=graph(trace))


def _report(trace: Trace | None, runs: tuple[Run, ...], failures: tuple[Failure, ...]) -> Path:
    from memviz.reporting import report

    return report(Document(trace=trace, runs=runs, failures=failures))
