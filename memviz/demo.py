"""The demo: real training steps of RevNet and a long LSTM, with and without plans, as a table and a report."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill

from memviz import workloads
from memviz.core.failure import Failure, OutOfMemoryError
from memviz.core.files import Document, save
from memviz.core.plan import Plan, Swap
from memviz.core.run import Run
from memviz.core.simulate import simulate
from memviz.core.strategies import plan
from memviz.core.trace import Trace
from memviz.core.units import format_bytes, format_seconds
from memviz.pytorch.record import record
from memviz.pytorch.run import run
from memviz.pytorch.step import TrainStep, as_step
from memviz.workloads import Workload

LIMIT = 0.6
"""Part of the unplanned peak that the swapping runs have to stay within."""

SWAP = Swap(occupancy=0.7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table: a measured run and, where there is a trace for it, the predicted peak; or a failure."""

    title: str
    label: str
    result: Run | Failure
    predicted: int | None = None


def demo(*, quick: bool, out: Path) -> int:
    """Step everything, print each line as it is measured, write what came of it; 0, or 1 if ``out`` can't be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        trace, lines = stepped(quick=quick)
        print(f"\nWrote {written(document_of(trace, lines), out)}.")
    except OSError as error:
        print(f"memviz demo: can't write to {out}: {error.strerror or error}; name another folder with --out DIR", file=sys.stderr)
        return 1
    return 0


def document_of(trace: Trace, lines: Iterable[Line]) -> Document:
    """The lines as the file holds them."""
    results = [line.result for line in lines]
    return Document(
        trace=trace,
        runs=tuple(result for result in results if isinstance(result, Run)),
        failures=tuple(result for result in results if isinstance(result, Failure)),
    )


def written(document: Document, out: Path) -> str:
    """Write the file, and the report where plotly is there; what was written, in words."""
    file = f"{save(out / 'runs.memviz.json', document)} (mv.load reads it)"
    try:
        from memviz.reporting import report
    except ModuleNotFoundError as error:
        return f"{file}, but no report, which needs {error.name}: pip install 'memviz[notebook]'"
    return f"{report(document, out / 'report.html')} (open it in any browser) and {file}"


def stepped(*, quick: bool) -> tuple[Trace, list[Line]]:
    """RevNet's trace, and every line of the demo, printed as they come."""
    revnet = workloads.revnet(batch=16) if quick else workloads.revnet()
    lstm = workloads.lstm(length=60, units=128) if quick else workloads.lstm()
    print(HEADER)
    traces: list[Trace] = []
    lines: list[Line] = []
    for workload in (revnet, lstm):
        step = titled(workload)
        traces.append(record(step))
        lines += printed(planned(step, traces[-1], repeats=1 if quick else 3))
    lines += printed([reversed_(revnet, repeats=1 if quick else 3)])
    return traces[0], lines


def titled(workload: Workload) -> TrainStep:
    """The workload's step under its bare title: what is set otherwise is the same in all of the demo, and reversing is a plan here."""
    step = as_step(workload)
    step.title = workload.title
    return step


def planned(step: TrainStep, trace: Trace, *, repeats: int) -> Iterator[Line]:
    """Unplanned, with heuristics, and under a limit first unplanned and then with swapping."""
    unplanned = attempt(step, Plan(label="no plan"), trace, repeats=repeats)
    yield unplanned
    yield attempt(step, plan(trace, recompute="heuristics", label="heuristics"), trace, repeats=repeats)
    if isinstance(unplanned.result, Run):
        limit = int(LIMIT * unplanned.result.peak)
        yield attempt(step, Plan(label=f"no plan, {LIMIT:.0%} limit"), trace, repeats=repeats, limit=limit)
        yield attempt(step, Plan(swap=SWAP, label=f"swap, {LIMIT:.0%} limit"), trace, repeats=repeats, limit=limit)


def reversed_(revnet: Workload, *, repeats: int) -> Line:
    """RevNet rebuilding its activations from its output (E8)."""
    step = titled(revnet.with_settings(reverse=True))
    return attempt(step, Plan(label="reversed"), record(step), repeats=repeats)


def attempt(step: TrainStep, tried: Plan, trace: Trace, *, repeats: int, limit: int | None = None) -> Line:
    """The run under a plan, or how it ran out of memory."""
    try:
        result: Run | Failure = run(step, tried, repeats=repeats, limit=limit)
    except OutOfMemoryError as error:
        return Line(title=trace.title, label=tried.label, result=error.failure)
    predicted = simulate(trace, tried, limit=limit).peak
    return Line(title=trace.title, label=tried.label, result=replace(result, title=trace.title), predicted=predicted)


HEADER = f"{'step':<14}{'plan':<21}{'peak':>11}{'predicted':>11}{'waiting':>11}{'time':>10}  {'gradients':<10}device"
WIDTH = 120


def printed(lines: Iterable[Line]) -> list[Line]:
    """The lines, each printed as soon as it is there."""
    shown = []
    for line in lines:
        print(row(line), flush=True)
        shown.append(line)
    return shown


def row(line: Line) -> str:
    """One line of the table as text."""
    head = f"{line.title[:13]:<14}{line.label:<21}"
    if isinstance(line.result, Failure):
        return fill(line.result.message, WIDTH, initial_indent=head, subsequent_indent=" " * len(head))
    measured = line.result
    sizes = (measured.peak, line.predicted, measured.activations)
    columns = "".join(f"{'' if size is None else format_bytes(size):>11}" for size in sizes)
    return f"{head}{columns}{format_seconds(measured.seconds):>10}  {measured.gradients.agreement.value:<10}{measured.device}"
