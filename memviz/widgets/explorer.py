"""The explorer's layout: controls above, the graph beside the timeline, tables below, one selection through all."""

from collections.abc import Mapping

import ipywidgets as widgets
import traitlets

from memviz.core.graph import graph
from memviz.core.parameters import Parameter, Setting
from memviz.widgets.collaborators import Collaborators
from memviz.widgets.controls import error_of, parameter_controls, plan_controls, rules_list, run_controls
from memviz.widgets.graph import GraphWidget
from memviz.widgets.page import Page
from memviz.widgets.session import Session
from memviz.widgets.state import ExplorerState
from memviz.widgets.tables import HoldersTable, RunsTable
from memviz.widgets.timeline import TimelineView
from memviz.widgets.turns import Pending, Turns


class Explorer(widgets.VBox):
    """The widget that ``explore`` returns; ``state`` holds all that it shows."""

    def __init__(self, made: Collaborators, parameters: tuple[Parameter, ...] = (), settings: Mapping[str, Setting] | None = None) -> None:
        self.state = ExplorerState(parameters=dict(settings or {}))
        self._turns = Turns()
        self._waiting: Pending | None = None
        page = Page()
        self._timeline = TimelineView(self.state, self._turns)
        self._runs, self._holders = RunsTable(self.state), HoldersTable(self.state)
        self._place = widgets.Box([widgets.Label("The graph appears when the first step is recorded.")])
        self.graph: GraphWidget | None = None
        page.observe(self._theme_changed, ["theme"])
        self.state.observe(lambda _change: self._draw_graph(), ["trace"])
        self.state.observe(lambda _change: self._draw_graph_soon(), ["plan"])
        self.session = Session(self.state, made, self._turns)
        views = widgets.Box([self._place, widgets.Box([self._timeline.widget])])
        views.add_class("memviz-views")
        settled = [_folded(parameter_controls(self.state, parameters), "Settings of the step")] if parameters else []
        controls = [*settled, plan_controls(self.session), rules_list(self.state), run_controls(self.session)]
        super().__init__([page, *controls, error_of(self.state, "graph"), views, self._runs.widget, self._holders.widget])
        self.add_class("memviz-explorer")

    def close(self) -> None:
        """Stop what runs, end the process that runs it, and take the widget away."""
        self.session.close()
        super().close()

    def _theme_changed(self, change: Mapping[str, str]) -> None:
        self.state.dark = change["new"] == "dark"

    def _draw_graph_soon(self) -> None:
        """After the prediction, which is what somebody who drags a slider looks at."""
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = self._turns.later(0.1, self._draw_graph)

    def _draw_graph(self) -> None:
        if self.state.trace is None:
            return
        drawn = graph(self.state.trace, self.state.plan)
        self._holders.drawn = drawn
        if self.graph is not None:
            self.graph.show(drawn)
            return
        self.graph = GraphWidget(model=drawn)
        traitlets.link((self.state, "selected"), (self.graph, "selected"))
        self.graph.on_msg(self._receive)
        self._place.children = (self.graph,)

    def _receive(self, _widget: object, content: Mapping[str, str], _buffers: object) -> None:
        if content.get("type") == "set_action":
            self.session.set_action(content["pattern"], content["action"])


def _folded(content: widgets.Widget, title: str) -> widgets.Accordion:
    return widgets.Accordion(children=(content,), titles=(title,), selected_index=None)
