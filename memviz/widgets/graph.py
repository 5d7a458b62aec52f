"""The computation graph as a widget; what is drawn, and how, is under extensions/."""

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from memviz.core.codec import to_json
from memviz.core.graph import Graph, actions

BUNDLE = Path(__file__).parent / "static" / "graph.js"


class GraphWidget(anywidget.AnyWidget):
    """The drawing of a graph.

    Choosing an action in it changes nothing by itself: it sends the custom message
    ``{"type": "set_action", "pattern": a rule's pattern, "action": "keep" | "recompute" | "swap" | "reverse"}``.

    Args:
        drawn: What to draw; ``show`` replaces it.

    Raises:
        ImportError: If the drawing's JavaScript was not built.
    """

    _esm = BUNDLE if BUNDLE.exists() else ""  # anywidget would refuse a missing file when this module is imported
    model = traitlets.Dict().tag(sync=True)
    actions = traitlets.Dict().tag(sync=True)
    """The action of each link by its id; it wins over the one in ``model``."""
    selected = traitlets.Unicode("").tag(sync=True)
    """The rule pattern of what is selected, or an empty text."""

    def __init__(self, model: Graph) -> None:
        if not self._esm:
            msg = f"{BUNDLE} was missing; build it with `npm ci && npm run build` in extensions/, and start the kernel again"
            raise ImportError(msg)
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
