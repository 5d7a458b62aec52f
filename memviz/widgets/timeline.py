"""The timeline's view: one live plotly figure, changed only where the state changed."""

import numpy as np
import plotly.graph_objects as go

from memviz.figures.curves import MOST_POINTS, Scale, scale_for
from memviz.figures.live import live_line
from memviz.figures.timeline import curve_of, timeline_figure
from memviz.widgets.planning import Wrong, limit_of
from memviz.widgets.state import ExplorerState

HEIGHT = 520
MOST_EARLIER = 3
"""Earlier runs that are drawn; more outlines than that can't be told apart, and the table has them all."""

LISTS = ("annotations", "shapes")


class TimelineView:
    """The measured run as areas, earlier ones as outlines, the prediction dashed, and what is being measured as it comes.

    A click on the chart selects the module that ran then.
    """

    def __init__(self, state: ExplorerState) -> None:
        self._state = state
        self._scale = Scale(unit=2**20, name="MiB")
        self.widget = go.FigureWidget()
        self.widget._config = {"responsive": True, "displaylogo": False}
        state.observe(self._redraw, ["predicted", "outcomes", "chosen", "limit", "selected", "dark"])
        state.observe(self._live, ["samples"])
        self._redraw()

    def _redraw(self, _change: object = None) -> None:
        state = self._state
        measured = state.measured
        earlier = [run for run in state.runs_of_step if run is not measured][-MOST_EARLIER:]
        limit = self._limit()
        drawn = timeline_figure(measured, state.predicted, earlier, limit, dark=state.dark, selected=module_of(state.selected))
        peaks = [run.peak for run in (measured, *earlier) if run is not None]
        self._scale = scale_for(max([*peaks, state.predicted.peak if state.predicted is not None else 0, limit or 0]))
        drawn.add_trace(live_line(state.samples, state.predicted, self._scale, dark=state.dark))
        drawn.update_layout(height=HEIGHT, uirevision="timeline")
        if morphed(self.widget, drawn):
            return
        for trace in self.widget.data:
            trace.on_click(self._clicked)

    def _live(self, _change: object) -> None:
        step = max(1, len(self._state.samples) // MOST_POINTS)
        new = live_line(self._state.samples[::step], self._state.predicted, self._scale, dark=self._state.dark)
        with self.widget.batch_update():
            self.widget.data[-1].update(x=new.x, y=new.y, customdata=new.customdata, showlegend=new.showlegend)

    def _limit(self) -> int | None:
        try:
            return limit_of(self._state)
        except Wrong:
            return None

    def _clicked(self, _trace: object, points: object, _state: object) -> None:
        xs: list[float] = getattr(points, "xs", [])
        shown = self._state.measured or self._state.predicted
        if not xs or shown is None:
            return
        curve = curve_of(shown, self._scale)
        at = int(np.searchsorted(curve.timeline.seconds * curve.stretch, xs[0] + 1e-9))
        module = curve.timeline.modules[min(at, len(curve.timeline.modules) - 1)]
        self._state.selected = "" if module == self._state.selected else module


def module_of(pattern: str) -> str:
    """The module that a rule's pattern is about; an empty text where it is about more than one.

    >>> module_of("blocks.0:aten::relu@*.0"), module_of("*")
    ('blocks.0', '')
    """
    module = pattern.partition("@")[0].partition("#")[0].partition(":")[0]
    return "" if set("*?[") & set(module) else module


def morphed(widget: go.FigureWidget, drawn: go.Figure) -> bool:
    """Make the widget show the figure; whether that took no more than new values for the traces that were there.

    New values are one message and no flicker, and what somebody zoomed into stays.
    """
    names = [trace.name for trace in drawn.data]
    same = names == [trace.name for trace in widget.data]
    with widget.batch_update():
        if same:
            for old, new in zip(widget.data, drawn.data, strict=True):
                old.update(new)
        widget.layout.update({name: part for name, part in drawn.layout.to_plotly_json().items() if name not in LISTS})
        for name in LISTS:  # Merged, a shorter one would keep the ends of the longer one before it.
            widget.layout[name] = drawn.layout[name]
    if not same:
        widget.data = ()
        widget.add_traces(drawn.data)
    return same
