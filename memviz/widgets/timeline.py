"""The timeline's view: one live plotly figure, changed only where the state changed."""

import numpy as np
import plotly.graph_objects as go

from memviz.figures.curves import MOST_POINTS, Scale, peak_text, prediction, scale_for, swap_markers
from memviz.figures.live import live_line
from memviz.figures.theme import theme
from memviz.figures.timeline import curve_of, timeline_figure
from memviz.widgets.planning import Wrong, limit_of
from memviz.widgets.state import ExplorerState
from memviz.widgets.turns import Turns

HEIGHT = 600
MOST_EARLIER = 3
"""Earlier runs that are drawn; more outlines than that can't be told apart, and the table has them all."""

PREDICTED = "predicted"
"""How the names and texts of everything predicted begin."""

HEADROOM = 1.1
"""How far above its peak a curve's texts reach."""


class TimelineView:
    """The measured run as areas, earlier ones as outlines, the prediction dashed, and what is being measured as it comes.

    A click on the chart selects the module that ran then.
    """

    def __init__(self, state: ExplorerState, turns: Turns) -> None:
        self._state = state
        self._scale = Scale(unit=2**20, name="MiB")
        self._laid_out: dict[str, object] = {}
        self.widget = go.FigureWidget()
        self.widget._config = {"responsive": True, "displaylogo": False}  # noqa: SLF001  # plotly offers no other way to set it
        state.observe(lambda _change: turns.take(self._redraw), ["outcomes", "chosen", "limit", "selected", "dark", "trace"])
        state.observe(lambda _change: turns.take(self._repredict), ["predicted"])
        state.observe(lambda _change: turns.take(self._live), ["samples"])
        self._redraw()

    def _redraw(self) -> None:
        state = self._state
        measured = state.measured
        earlier = [run for run in state.runs_of_step if run is not measured][-MOST_EARLIER:]
        limit = self._limit()
        drawn = timeline_figure(measured, state.predicted, earlier, limit, dark=state.dark, selected=module_of(state.selected))
        peaks = [run.peak for run in (measured, *earlier) if run is not None]
        self._scale = scale_for(max([*peaks, state.predicted.peak if state.predicted is not None else 0, limit or 0]))
        if state.predicted is not None:
            there = {trace.name for trace in drawn.data}
            markers = swap_markers(curve_of(state.predicted, self._scale), theme(dark=state.dark), even_if_none=True)
            drawn.add_traces([marker for marker in markers if marker.name not in there])  # A slider may fill them.
        drawn.add_trace(live_line(state.samples, state.predicted, self._scale, dark=state.dark))
        drawn.update_layout(height=HEIGHT, uirevision="timeline")
        self._lay_out(drawn.layout)
        self.widget.data = ()
        self.widget.add_traces(drawn.data)
        for trace in self.widget.data:
            trace.on_click(self._clicked)

    def _lay_out(self, layout: go.Layout) -> None:
        """Take over what differs: told of the width again, which is nobody's but the page's, plotly goes back to its first one."""
        wanted = layout.to_plotly_json()
        with self.widget.batch_update():
            for name in self._laid_out.keys() | wanted.keys():
                if self._laid_out.get(name) != wanted.get(name):
                    self.widget.layout[name] = wanted.get(name)
        self._laid_out = wanted

    def _repredict(self) -> None:
        """Move the prediction alone: somebody who drags a slider waits for it. All is drawn again where it no longer fits in."""
        predicted, look = self._state.predicted, theme(dark=self._state.dark)
        there = {trace.name: trace for trace in self.widget.data if trace.name.startswith(PREDICTED)}
        if predicted is None or predicted.peak / self._scale.unit * HEADROOM > self.widget.layout.yaxis.range[1]:
            self._redraw()
            return
        curve = curve_of(predicted, self._scale)
        wanted = {trace.name: trace for trace in [*swap_markers(curve, look, even_if_none=True), *prediction(curve, look)]}
        if wanted.keys() != there.keys():
            self._redraw()
            return
        texts = [text for text in self.widget.layout.annotations if PREDICTED not in text.text]
        with self.widget.batch_update():
            for name, trace in wanted.items():
                revalue(there[name], trace)
            self.widget.layout.annotations = (*texts, peak_text(curve, look))
        self._laid_out.pop("annotations", None)

    def _live(self) -> None:
        step = max(1, len(self._state.samples) // MOST_POINTS)
        new = live_line(self._state.samples[::step], self._state.predicted, self._scale, dark=self._state.dark)
        with self.widget.batch_update():
            revalue(self.widget.data[-1], new)

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


def revalue(shown: go.Scatter, new: go.Scatter) -> None:
    """Give a trace on show the values of another of the same look."""
    for name in ("x", "y", "customdata", "text", "hovertext", "showlegend"):
        if new[name] is not None:
            shown[name] = new[name]
