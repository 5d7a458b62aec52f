"""The explorer's layout: controls above, graph left, timeline right, tables below."""

from collections.abc import Mapping
from html import escape

import ipywidgets as widgets

from memviz.core.parameters import Parameter, Setting
from memviz.widgets.collaborators import Collaborators
from memviz.widgets.controls import parameter_controls, plan_controls, with_error
from memviz.widgets.session import Session
from memviz.widgets.state import ExplorerState
from memviz.widgets.tables import holders_table, runs_table
from memviz.widgets.timeline import TimelineView


class Explorer(widgets.VBox):
    """The widget that ``explore`` returns; ``state`` holds all that it shows."""

    def __init__(self, made: Collaborators, parameters: tuple[Parameter, ...] = (), settings: Mapping[str, Setting] | None = None) -> None:
        self.state = ExplorerState()
        self.session = Session(self.state, made)
        self._graph = widgets.Box(layout={"width": "45%"})
        self._tables = (widgets.HTML(), widgets.HTML())
        timeline = widgets.Box([TimelineView(self.state).widget], layout={"width": "55%"})
        chosen = parameter_controls(self.state, parameters, settings or {})
        left = with_error(self.state, "graph", self._graph)
        super().__init__(
            [widgets.HBox([plan_controls(self.state), chosen]), self._buttons(), widgets.HBox([left, timeline]), *self._tables]
        )
        self.state.observe(self._draw_graph, ["trace"])
        self.state.observe(self._draw_tables, ["runs", "predicted"])
        self.state.observe(lambda _change: self.session.record(), ["parameters"])
        self.session.record()

    def _buttons(self) -> widgets.HBox:
        run, cancel, export = (widgets.Button(description=text) for text in ("Run", "Cancel", "Export report"))
        progress, stage = widgets.FloatProgress(min=0, max=1), widgets.Label()
        run.on_click(lambda _button: self.session.run())
        cancel.on_click(lambda _button: self.session.cancel())
        export.on_click(lambda _button: self._export())
        self._exported = widgets.HTML()

        def show(_change: object) -> None:
            progress.value, stage.value, cancel.disabled = self.state.fraction, self.state.stage, not self.state.running

        self.state.observe(show, ["fraction", "stage", "running"])
        return with_error(self.state, "run", run, cancel, export, progress, stage, self._exported)

    def _export(self) -> None:
        state = self.state
        try:
            path = self.session.collaborators.report(state.trace, state.runs, state.failures)
        except (OSError, ValueError, ImportError) as error:
            state.complain("run", str(error))
            return
        self._exported.value = f"wrote {escape(str(path))}"

    def _draw_graph(self, _change: object) -> None:
        make = self.session.collaborators.graph
        if make is None or self.state.trace is None:
            return
        try:
            drawing = make(self.state.trace)
        except ImportError as error:
            self.state.complain("graph", f"the graph can't be drawn: {error}")
            return
        drawing.on_msg(self._receive)
        self._graph.children = (drawing,)

    def _receive(self, _widget: object, content: Mapping[str, str], _buffers: object) -> None:
        if content.get("type") == "set_action":
            self.session.set_action(content["pattern"], content["action"])

    def _draw_tables(self, _change: object) -> None:
        newest = self.state.runs[-1].timeline if self.state.runs else self.state.predicted
        self._tables[0].value, self._tables[1].value = runs_table(self.state.runs), holders_table(newest)
