"""The computation graph's place in a page, with the drawing's script and data inside it."""

import json
from collections.abc import Iterable, Mapping
from importlib.resources import files

from memviz.figures.page import data_script


def graph_section(bundle: str, model: object, plans: Iterable[tuple[str, Mapping[str, str]]]) -> str:
    """HTML that draws the graph.

    Args:
        bundle: The drawing's script: an anywidget module.
        model: Its ``model``, as JSON-able data.
        plans: Name and ``actions`` of each plan that can be looked at; the last is shown first. At least one.
    """
    data = {"model": model, "plans": [{"label": label, "actions": dict(actions)} for label, actions in plans]}
    return "".join(
        [
            '<h2>The computation graph</h2><p><label>under <select id="graph-plan"></select></label> ',
            '<span id="graph-note" class="muted" role="status"></span></p><div id="graph"></div>',
            data_script("graph-data", json.dumps(data)),
            data_script("graph-bundle", json.dumps(bundle)),
            f"<script>{files('memviz.figures').joinpath('page_graph.js').read_text('utf-8')}</script>",
        ]
    )
