"""The front door of the explorer: it alone knows the widgets and what runs a step."""

import re
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

from memviz.core.files import Document, save
from memviz.widgets.collaborators import Collaborators
from memviz.widgets.explorer import Explorer
from memviz.workloads.description import DEVICE, Workload
from memviz.workloads.registry import names

if TYPE_CHECKING:
    from memviz.running.process import ProcessBackend

LONGEST_NAME = 100
"""Characters of the title in a file's name; most file systems take 255 bytes in all."""

_backends: "WeakSet[ProcessBackend]" = WeakSet()


def explore(step: object) -> Explorer:
    """The explorer of a workload, which runs in a process of its own, or of a live step, which runs in this one.

    Args:
        step: What ``mv.workloads.revnet()`` and its like give, or a TrainStep. In a notebook a live step runs between two cells;
            in a script it runs on another thread, and nothing else may use its model while ``state.running``.

    Raises:
        ValueError: For something else than a step.
        ImportError: If the widgets' JavaScript was not built.
    """
    if isinstance(step, str):
        msg = f"explore takes a workload, such as mv.workloads.{step if step in names() else 'revnet'}(), or a mv.TrainStep of a model, not {step!r}"
        raise ValueError(msg)
    if isinstance(step, Workload):
        from memviz.running.memory import TraceMemory
        from memviz.running.process import ProcessBackend

        # A notebook's cell that is run again leaves the explorer of its last run behind, model, worker and all.
        for idle in _backends:
            idle.rest()
        process = ProcessBackend(step.name)
        _backends.add(process)
        made = Collaborators(start=process.start, close=process.close, export=export, memory=TraceMemory(step.name))
        return Explorer(made, (*step.parameters, DEVICE), {**step.settings, DEVICE.name: step.device})
    from memviz.pytorch.step import as_step
    from memviz.running.place import between_cells
    from memviz.running.thread import ThreadBackend
    from memviz.running.work import live

    backend = ThreadBackend(live(as_step(step)), between_cells())
    return Explorer(Collaborators(start=backend.start, close=backend.close, export=export))


def export(document: Document) -> Path:
    """Write the report and the file of runs beside it, under a name that no earlier one has; the report's path."""
    from memviz.reporting import report

    titles = [run.title for run in document.runs] or [document.trace.title if document.trace is not None else ""]
    name = re.sub(r"[^a-z0-9]+", "-", titles[-1].lower())[:LONGEST_NAME].strip("-") or "step"
    name = f"{name}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    stems = (Path.cwd() / (f"{name}-{number}" if number else name) for number in count())
    stem = next(stem for stem in stems if not stem.with_suffix(".report.html").exists())
    path = report(document, stem.with_suffix(".report.html"))
    save(stem.with_suffix(".memviz.json"), document)
    return path
