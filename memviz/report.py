"""One self-contained HTML page of what was run: it opens without a network."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from memviz.core.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from memviz.core.files import Document
    from memviz.core.plan import Plan
    from memviz.core.run import Run


def report(document: Document, path: str | Path | None = None) -> Path:
    """Write the runs of a document, their timelines and their plans, as lines to paste; returns where (``report.html``)."""
    import plotly.graph_objects as go

    figure = go.Figure(layout={"xaxis_title": "seconds", "yaxis_title": "MiB live, measured"})
    for run in document.runs:
        figure.add_scatter(x=run.timeline.seconds, y=run.timeline.total / 2**20, name=run.plan.label or "plan")
    rows = "".join(map(_row, document.runs))
    failed = "".join(f"<li>{escape(failure.message)}</li>" for failure in document.failures)
    plans = "".join(f"<h3>{escape(run.plan.label or 'plan')}</h3><pre>{escape(lines(run.plan))}</pre>" for run in document.runs)
    head = "<tr><th>plan<th>peak<th>activations<th>time<th>gradients<th>device</tr>"
    chart = figure.to_html(full_html=False, include_plotlyjs=True, config={"displaylogo": False})
    page = f"<!doctype html><meta charset=utf-8><title>memviz</title><table>{head}{rows}</table><ul>{failed}</ul>{chart}{plans}"
    target = Path(path or "report.html")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, encoding="utf-8")
    return target


def lines(plan: Plan) -> str:
    """The plan as lines for a training script."""
    rules = ", ".join(f"{rule.pattern!r}: {rule.action.value!r}" for rule in plan.rules)
    swap = plan.swap
    settings = "" if swap is None else f", swap=mv.Swap(min_bytes={swap.min_bytes}, occupancy={swap.occupancy}, limit={swap.limit})"
    return f"import memviz as mv\n\nplan = mv.Plan(rules={{{rules}}}{settings})\nwith mv.apply(plan):\n    loss = loss_fn(model(x), y)\nloss.backward()"


def _row(run: Run) -> str:
    cells = (
        run.plan.label or "plan",
        format_bytes(run.peak),
        format_bytes(run.activations),
        format_seconds(run.seconds),
        run.gradients.agreement.value,
        run.device,
    )
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
