"""The demo: real training steps of RevNet and a long LSTM, with and without plans, as a table and a report."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

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
from memviz.reporting import report
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
    """Step everything, print each line as it is measured, write the report; 0, or 1 if ``out`` can't be written."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"memviz demo: can't write to {out}: {error.strerror}; name another folder with --out DIR")
        return 1
    trace, lines = stepped(quick=quick)
    document = Document(
        trace=trace,
        runs=tuple(line.result for line in lines if isinstance(line.result, Run)),
        failures=tuple(line.result for line in lines if isinstance(line.result, Failure)),
    )
    save(out / "runs.memviz.json", document)
    report(document, out / "report.html")
    print(f"\nWrote {out / 'report.html'} (open it in any browser) and {out / 'runs.memviz.json'} (memviz.load reads it).")
    return 0


def stepped(*, quick: bool) -> tuple[Trace, list[Line]]:
    """RevNet's trace, and every line of the demo, printed as they come."""
    revnet = workloads.revnet()
    lstm = workloads.lstm(length=100, units=128) if quick else workloads.lstm()
    print(HEADER)
    traces: list[Trace] = []
    lines: list[Line] = []
    for workload in (revnet, lstm):
        step = as_step(workload)
        traces.append(record(step))
        lines += printed(planned(step, traces[-1], repeats=1 if quick else 3))
    lines += printed([reversed_(revnet, repeats=1 if quick else 3)])
    return traces[0], lines


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
    step = as_step(revnet.with_settings(reverse=True))
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
        return head + line.result.message
    measured = line.result
    sizes = (measured.peak, line.predicted, measured.activations)
    columns = "".join(f"{'' if size is None else format_bytes(size):>11}" for size in sizes)
    return f"{head}{columns}{format_seconds(measured.seconds):>10}  {measured.gradients.agreement.value:<10}{measured.device}"
