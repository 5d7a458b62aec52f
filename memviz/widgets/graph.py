"""The computation graph as a widget; what is drawn, and how, is under extensions/."""

from typing import Any

import anywidget
import traitlets

from memviz.core.codec import to_json
from memviz.core.graph import Graph, actions
from memviz.widgets.assets import check_built, script


class GraphWidget(anywidget.AnyWidget):
    """The drawing of a graph.

    Choosing an action in it changes nothing by itself: it sends the custom message
    ``{"type": "set_action", "pattern": a rule's pattern, "action": "keep" | "recompute" | "swap" | "reverse"}``.

    Args:
        drawn: What to draw; ``show`` replaces it.

    Raises:
        ImportError: If the drawing's JavaScript was not built.
    """

    _esm = script("graph")
    model = traitlets.Dict().tag(sync=True)
    actions = traitlets.Dict().tag(sync=True)
    """The action of each link by its id; it wins over the one in ``model``."""
    selected = traitlets.Unicode("").tag(sync=True)
    """The rule pattern of what is selected, or an empty text."""

    def __init__(self, model: Graph) -> None:
        check_built(self._esm, "graph")
        super().__init__(model=_data(model), actions=actions(model))

    def show(self, drawn: Graph) -> None:
        """Draw this graph; where only actions differ from the one on show, only they are sent."""
        data = _data(drawn)
        with self.hold_sync():
            self.actions = actions(drawn)
            if _shape(data) != _shape(self.model):
                self.model = data


def _data(drawn: Graph) -> dict[str, Any]:
    data = to_json(drawn)
    assert isinstance(data, dict)
    return data


def _shape(data: dict[str, Any]) -> dict[str, Any]:
    links = [{name: part for name, part in link.items() if name not in ("action", "rule")} for link in data.get("links", [])]
    return {**data, "links": links}
