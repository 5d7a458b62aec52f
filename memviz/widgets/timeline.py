"""The timeline's view: one plotly figure whose lines are replaced as the state changes."""

import plotly.graph_objects as go

from memviz.core.timeline import Timeline
from memviz.widgets.state import ExplorerState

MEBIBYTE = 2**20


class TimelineView:
    """Predicted is dotted, live thin, the newest run thick, earlier runs pale."""

    def __init__(self, state: ExplorerState) -> None:
        self.state = state
        self.widget = go.FigureWidget(layout={"height": 420, "xaxis_title": "op", "yaxis_title": "MiB"})
        state.observe(self._redraw, ["predicted", "runs"])
        state.observe(self._live, ["samples"])
        self._redraw()

    def _redraw(self, _change: object = None) -> None:
        *earlier, newest = self.state.runs or (None,)
        lines = [line(run.timeline, run.plan.label, color="lightgray", width=1) for run in earlier]
        if newest is not None:
            lines.append(line(newest.timeline, f"measured: {newest.plan.label}", color="royalblue", width=3))
        if self.state.predicted is not None:
            lines.append(line(self.state.predicted, "predicted", color="darkorange", width=2, dash="dot"))
        lines.append(go.Scatter(x=[], y=[], name="live", mode="lines", line={"color": "seagreen", "width": 1}))
        with self.widget.batch_update():
            self.widget.data = ()
            self.widget.add_traces(lines)

    def _live(self, _change: object) -> None:
        samples = self.state.samples
        with self.widget.batch_update():
            self.widget.data[-1].x = [sample.op for sample in samples]
            self.widget.data[-1].y = [sum(sample.nbytes.values()) / MEBIBYTE for sample in samples]


def line(timeline: Timeline, name: str, **style: object) -> go.Scatter:
    """The live bytes of a timeline, in MiB after each op."""
    return go.Scatter(y=timeline.total / MEBIBYTE, name=name, mode="lines", line=style)
