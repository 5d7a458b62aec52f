"""One self-contained HTML page of what was run: it opens without a network."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from memviz.core.codec import to_json
from memviz.core.files import Document
from memviz.core.graph import actions, graph
from memviz.core.plan import Plan
from memviz.core.run import Run
from memviz.core.simulate import simulate
from memviz.figures.page import chart, page
from memviz.figures.page_graph import graph_section
from memviz.figures.runs import baseline_of, label_of
from memviz.figures.sections import failures_section, holders, run_section, runs_section
from memviz.figures.timeline import timeline_figure

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from memviz.core.timeline import Timeline
    from memviz.core.trace import Trace


def report(
    document_or_runs: Document | Run | Iterable[Run], path: str | os.PathLike[str] | None = None, *, trace: Trace | None = None
) -> Path:
    """Write the page: the timelines, the runs, who holds the peak, the plans as lines to paste, and the failures.

    Args:
        document_or_runs: What ``load`` gives, or one run, or several.
        path: The file, or a folder that exists; ``report.html`` in the working directory if not given. Missing folders are made.
        trace: The unplanned step, where runs are given alone: it adds what had been predicted for them.

    Returns:
        The file's path.

    Raises:
        ValueError: For anything else than a document or runs.
    """
    document = _document(document_or_runs, trace)
    target = Path("report.html" if path is None else path)
    target = target / "report.html" if target.is_dir() else target
    if document.trace is None and not document.runs and not document.failures:
        msg = "there is nothing to report: give the runs that mv.run returned, or what mv.load reads"
        raise ValueError(msg)
    # Made before the file is touched, so that a mistake leaves an older report whole.
    text = _page(document)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return target


def _document(given: Document | Run | Iterable[Run], trace: Trace | None) -> Document:
    if isinstance(given, Document):
        return given if trace is None else Document(trace=trace, runs=given.runs, failures=given.failures)
    runs = (given,) if isinstance(given, Run) else tuple(given) if hasattr(given, "__iter__") else ()
    if isinstance(given, str) or not all(isinstance(run, Run) for run in runs) or (not runs and not hasattr(given, "__iter__")):
        msg = f"report takes what mv.load or mv.run gives, or a list of runs, not {given!r}; to report on a file: mv.report(mv.load(path))"
        raise ValueError(msg)
    return Document(trace=trace, runs=runs)


def _page(document: Document) -> str:
    steps = dict.fromkeys(run.title for run in document.runs)
    body = [_head(document), *(_step(document, title) for title in steps)]
    if not document.runs and document.trace is not None:
        body.append(_unrun(document.trace))
    body += [failures_section(document.failures), _graph(document)]
    return page("memviz: " + (", ".join(steps) or "nothing was run"), body)


def _head(document: Document) -> str:
    environment = next((run.environment for run in document.runs), document.trace.environment if document.trace else {})
    said = ", ".join(f"{name} {version}" for name, version in environment.items())
    return f"<h1>Where the memory of a training step goes</h1><p class='muted'>{escape(said)}</p>"


def _step(document: Document, title: str) -> str:
    runs = [run for run in document.runs if run.title == title]
    parts = [f"<h2>{escape(title or 'The step')}</h2>", runs_section(runs)]
    for number, run in enumerate(document.runs):
        if run.title != title:
            continue
        base = baseline_of(run, runs)
        earlier = () if base is None or base is run else (base,)
        figure = timeline_figure(run, predicted_for(run, document.trace), earlier)
        parts.append(run_section(run, figure, f"run-{number}"))
    return "".join(parts)


def _graph(document: Document) -> str:
    """The graph under each plan that ran on it; nothing without a trace, or where the drawing was not built."""
    bundle = files("memviz").joinpath("widgets", "static", "graph.js")
    trace = document.trace
    if trace is None or not bundle.is_file():
        return ""
    plans = [(label_of(run), run.plan) for run in document.runs if describes(trace, run)] or [("no plan", Plan())]
    drawn = [(label, actions(graph(trace, plan))) for label, plan in plans]
    return graph_section(bundle.read_text("utf-8"), to_json(graph(trace)), drawn)


def _unrun(trace: Trace) -> str:
    predicted = simulate(trace)
    figure = timeline_figure(predicted=predicted)
    return f"<h2>{escape(trace.title)}</h2><p>Recorded, not run yet.</p>{chart('predicted', figure)}{holders(predicted)}"


def predicted_for(run: Run, trace: Trace | None) -> Timeline | None:
    """What is predicted for the run; None without a trace that describes it."""
    return simulate(trace, run.plan, limit=run.limit) if trace is not None and describes(trace, run) else None


def describes(trace: Trace, run: Run) -> bool:
    """Whether the run stepped what the trace recorded, and not the same model built otherwise (as RevNet reversed is)."""
    forward = run.timeline.modules[: run.timeline.end_of_forward + 1]
    recorded = (op.module for op in trace.ops[: trace.end_of_forward])
    return (trace.title, trace.device) == (run.title, run.device) and _visits(forward) == _visits(recorded)


def _visits(modules: Iterable[str]) -> list[str]:
    return [module for module, _ in groupby(modules)]
