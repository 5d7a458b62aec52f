"""The parts of a report, each as HTML made from values."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from html import escape

import plotly.graph_objects as go

from memviz.core.failure import Failure
from memviz.core.plan import Plan
from memviz.core.run import Run
from memviz.core.timeline import Timeline
from memviz.core.units import format_bytes, format_seconds, parse_bytes
from memviz.figures.holders import HolderRow, holder_rows
from memviz.figures.page import chart, folded, table
from memviz.figures.runs import RunRow, label_of, run_rows
from memviz.figures.snippet import training_lines


def runs_section(runs: Sequence[Run]) -> str:
    """The table of the runs of one step."""
    note = "Percentages are of the first run that keeps everything. Time is the median of plain steps; memory is from one metered step."
    return table(RunRow.HEAD, (row.cells for row in run_rows(runs))) + f'<p class="muted">{note}</p>'


def run_section(run: Run, figure: go.Figure, name: str) -> str:
    """One run: its timeline, who holds its peak, and its plan."""
    return "".join(
        [
            f"<h3>{escape(label_of(run))}</h3><p class='muted'>{escape(facts(run))}</p>",
            chart(name, figure),
            holders(run.timeline),
            plan_section(run),
        ]
    )


def facts(run: Run) -> str:
    """What is known of a run beside the table, as one line."""
    said = [f"measured on {run.device}", run.created]
    if run.swapped_out or run.swapped_in:
        moved = f"{format_bytes(run.swapped_out)} swapped out, {format_bytes(run.swapped_in)} back in"
        said.append(f"{moved}, {format_seconds(run.stall_seconds)} waited for it")
    if run.recomputed_ops:
        took = f" in {format_seconds(run.recompute_seconds)}" if run.recompute_seconds else ""
        said.append(f"{run.recomputed_ops} ops recomputed{took}")
    said.append(f"loss {run.loss:.6g}")
    return "; ".join(filter(None, said))


def holders(timeline: Timeline) -> str:
    """Who holds the peak, folded."""
    kind = "predicted" if timeline.predicted else "measured"
    rows = table(HolderRow.HEAD, (row.cells for row in holder_rows(timeline)))
    return folded(f"Who holds the {kind} peak of {format_bytes(timeline.peak)}", rows)


def plan_section(run: Run) -> str:
    """The plan in words, and the lines that apply it elsewhere."""
    if run.plan.keeps_everything:
        return "<p>The plan keeps everything.</p>"
    lines = training_lines(pasted(run))
    return folded(f"The plan ({in_words(run.plan)}), as lines for a training script", f'<pre class="paste">{escape(lines)}</pre>')


def pasted(run: Run) -> Plan:
    """The run's plan, with the run's own limit as that of its swapping: a training script has no run to take it from."""
    swap = run.plan.swap
    if swap is None or swap.limit is not None or run.limit is None:
        return run.plan
    return replace(run.plan, swap=replace(swap, limit=run.limit))


def in_words(plan: Plan) -> str:
    """How many rules for which action, and when it swaps."""
    counts = Counter(rule.action.value for rule in plan.rules)
    said = [f"{count} {'rule' if count == 1 else 'rules'} to {action}" for action, count in counts.items()]
    if plan.swap is not None:
        said.append(
            f"swaps values of {format_bytes(parse_bytes(plan.swap.min_bytes))} or more beyond {plan.swap.occupancy:.0%} of the limit"
        )
    return ", ".join(said)


def failures_section(failures: Sequence[Failure]) -> str:
    """What ended without a result, and why; nothing where nothing did."""
    return "".join(["<h2>Without a result</h2>", *map(_failure, failures)]) if failures else ""


def _failure(failure: Failure) -> str:
    held = ((one.module or "the model", one.op, one.source or "", format_bytes(one.nbytes)) for one in failure.holders)
    holders_ = folded("Who held the memory", table(("module", "op", "line", "bytes"), held)) if failure.holders else ""
    details = folded("Details", f"<pre>{escape(failure.details)}</pre>") if failure.details else ""
    return f'<div class="failure"><p>{escape(failure.message)}</p>{holders_}{details}</div>'
