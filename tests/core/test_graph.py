import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memviz.core.codec import from_json, to_json
from memviz.core.graph import Graph, Link, actions, graph
from memviz.core.keys import Key
from memviz.core.plan import Action, Plan, Rule
from memviz.core.trace import Module
from tests.core.chains import chain_trace
from tests.core.graphs import KIB, Tape, blocks_trace, fixtures, loop_trace

FIXTURES = Path(__file__).parents[1] / "fixtures"
SWAP = Action.SWAP


@pytest.mark.parametrize("name", ["graph-chain", "graph-loop", "graph-blocks"])
def test_the_typescript_tests_read_what_python_writes(name: str):
    written = json.loads((FIXTURES / f"{name}.json").read_text(encoding="utf-8"))
    assert written == to_json(fixtures()[name])
    assert from_json(Graph, written) == fixtures()[name]


def test_a_chain():
    drawn = graph(chain_trace(), Plan(rules={"b": "recompute"}))
    assert [(node.id, node.count, node.nbytes) for node in drawn.nodes] == [
        ("a:aten::mm@*.0", 1, 4 * KIB),
        ("b:aten::relu@*.0", 1, 4 * KIB),
        ("c:aten::mm@*.0", 1, 0),
    ]
    assert drawn.links == (
        Link(
            id="a:aten::mm#0@*.0>b:aten::relu@*.0", source="a:aten::mm@*.0", target="b:aten::relu@*.0", pattern="a:aten::mm#0@*.0",
            nbytes=4 * KIB, count=1, action=Action.KEEP, rule=None,
        ),
        Link(
            id="b:aten::relu#0@*.0>c:aten::mm@*.0", source="b:aten::relu@*.0", target="c:aten::mm@*.0", pattern="b:aten::relu#0@*.0",
            nbytes=4 * KIB, count=1, action=Action.RECOMPUTE, rule="b",
        ),
    )  # fmt: skip


def test_the_turns_of_a_loop_are_one_set_of_nodes():
    drawn = graph(loop_trace(400))
    mm, tanh = drawn.nodes
    assert (mm.count, mm.seconds, mm.nbytes) == (400, 400.0, 0)
    assert (tanh.count, tanh.seconds, tanh.nbytes) == (400, 400.0, 400 * 4 * KIB)  # Saved twice, counted once.
    assert {(link.target, link.count, link.nbytes) for link in drawn.links} == {
        (tanh.id, 400, 400 * 4 * KIB),
        (mm.id, 399, 399 * 4 * KIB),
    }


def test_a_loop_written_out_in_one_module_is_one_node_for_each_line():
    tape = Tape()
    for turn in range(20):
        made = tape.op("", "aten::tanh", nth=turn)
        tape.save(made, made)
    drawn = graph(tape.trace("lines", Module(path="", kind="Model")), Plan(rules={":tanh@*.3": "swap"}))
    assert [(node.id, node.count) for node in drawn.nodes] == [(":aten::tanh@*.*", 20)]
    assert [(link.pattern, link.count, link.action, link.rule) for link in drawn.links] == [(":aten::tanh#0@*.*", 20, None, None)]


def test_the_backward_op_says_where_a_value_is_needed():
    drawn = graph(blocks_trace(), Plan(rules={"blocks.0": "recompute", "blocks.1": "reverse"}))
    assert {(link.source, link.target, link.action, link.rule) for link in drawn.links} == {
        ("blocks.0.conv:aten::convolution@*.0", "blocks.0:aten::relu@*.0", Action.RECOMPUTE, "blocks.0"),
        ("blocks.1.conv:aten::convolution@*.0", "blocks.1:aten::relu@*.0", Action.REVERSE, "blocks.1"),
    }
    assert {node.id: node.backward_seconds for node in drawn.nodes}["blocks.1:aten::relu@*.0"] == 1.0


def test_turns_that_differ_have_no_one_action():
    drawn = fixtures()["graph-loop"]
    assert {link.action for link in drawn.links} == {None}
    assert set(actions(drawn).values()) == {"mixed"}
    assert set(actions(graph(loop_trace(3), Plan(rules={"*": "swap"}))).values()) == {"swap"}


def test_a_links_pattern_sets_its_action():
    for link in graph(blocks_trace()).links:
        again = graph(blocks_trace(), Plan(rules={link.pattern: "swap"}))
        assert [one.pattern for one in again.links if one.action is SWAP] == [link.pattern]


def test_a_modules_name_is_not_taken_for_a_glob():
    tape = Tape()
    for module in ("a[0]", "a0"):
        made = tape.op(module, "aten::exp")
        tape.save(made, made)
    first = graph(tape.trace("names")).links[0]
    again = graph(tape.trace("names"), Plan(rules={first.pattern: "swap"}))
    assert [link.action for link in again.links] == [SWAP, Action.KEEP]


PARTS = st.sampled_from(["*", "cell", "cell:tanh", "cell:aten::mm", "other", ":tanh", "c*:t*#0"])
CALLS = st.sampled_from(["", "@*", "@1.*", "@1.0", "@[0-1].0", "@2.0", "@1"])
RULES = st.lists(st.builds(lambda part, call, action: Rule(pattern=part + call, action=action), PARTS, CALLS, st.sampled_from(Action)))


@given(RULES)
def test_actions_are_those_of_the_plan(rules: list[Rule]):
    plan = Plan(rules=tuple(rules))
    of_turns = {plan.action(Key.parse(f"cell:aten::tanh#0@{turn}.0")) for turn in range(3)}
    mine = next(link for link in graph(loop_trace(3), plan).links if link.count == 3)
    assert mine.action is (of_turns.pop() if len(of_turns) == 1 else None)
