"""The runs, and who holds the peak, as HTML built from values."""

from collections.abc import Iterable
from html import escape

from memviz.core.run import Run
from memviz.core.timeline import Timeline
from memviz.core.units import format_bytes, format_seconds


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """An HTML table; every cell is escaped."""
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def against(number: float, baseline: float) -> str:
    """The part of the baseline, as in ``(62%)``; nothing without one."""
    return f" ({number / baseline:.0%})" if baseline else ""


def runs_table(runs: tuple[Run, ...]) -> str:
    """Each run against the first one that keeps everything; the first of all if there is none."""
    if not runs:
        return "<i>no run yet</i>"
    base = next((run for run in runs if run.plan.keeps_everything), runs[0])
    rows = (
        (
            run.plan.label,
            format_bytes(run.peak) + against(run.peak, base.peak),
            format_bytes(run.activations) + against(run.activations, base.activations),
            format_seconds(run.seconds) + against(run.seconds, base.seconds),
            run.gradients.agreement.value,
            run.device,
        )
        for run in runs
    )
    return table(("plan", "peak", "activations", "time", "gradients", "device"), rows)


def holders_table(timeline: Timeline | None) -> str:
    """Who is live at the peak, largest first."""
    if timeline is None:
        return ""
    rows = ((h.module or "the model", h.op, h.source or "", format_bytes(h.nbytes)) for h in timeline.holders[:12])
    return table(("module", "op", "line", "bytes"), rows)
