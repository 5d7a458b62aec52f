import pytest

from memviz.core.graph import graph
from memviz.core.plan import Plan
from memviz.widgets.graph import GraphWidget
from tests.core.chains import chain_trace


def test_a_new_plan_sends_actions_only(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(GraphWidget, "_esm", "export default { render() {} }")
    drawn = GraphWidget(model=graph(chain_trace()))
    model = drawn.model
    changes: list[str] = []
    drawn.observe(lambda change: changes.append(change["name"]), ["model", "actions"])
    drawn.show(graph(chain_trace(), Plan(rules={"b": "swap"})))
    assert changes == ["actions"]
    assert drawn.model is model
    assert list(drawn.actions.values()) == ["keep", "swap"]


def test_a_drawing_that_was_not_built_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(GraphWidget, "_esm", "")
    with pytest.raises(ImportError, match="npm ci && npm run build"):
        GraphWidget(model=graph(chain_trace()))
