from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memviz.core.keys import Key
from memviz.core.matching import LastMatch
from memviz.core.plan import Action, Plan, Rule

MODULES = ["", "a", "b", "a.a", "a.b", "a.b.a", "x[0]"]
OPS = ["aten::mm", "aten::relu", "relu", "mm_"]
KEYS = st.builds(
    Key, module=st.sampled_from(MODULES), op=st.sampled_from(OPS), output=st.integers(0, 11), call=st.integers(0, 11), nth=st.integers(0, 2)
)


def parts(*choices):
    return st.one_of(st.sampled_from(choices), st.text("ab*?[].0", max_size=3))


PATTERNS = st.builds(
    lambda module, op, output, calls: module + op + output + calls,
    parts("", "*", "a", "a.b", "a.*", "?", "x[[]0]", "[ab]"),
    st.one_of(st.just(""), parts("", "*", "relu", "aten::relu", "aten::*", "m*", "[*]").map(":{}".format)),
    st.one_of(st.just(""), parts("", "*", "0", "1", "1?").map("#{}".format)),
    st.one_of(st.just(""), parts("", "*", "3.1", "*.1", "3.*", "[0-4].?").map("@{}".format)),
).filter(str.strip)


def matches(pattern, key):
    """The rules of matching, written as they are told."""
    where, _, calls = pattern.partition("@")
    where, _, output = where.partition("#")
    module, _, op = where.partition(":")
    names = key.module.split(".")
    return (
        any(fnmatchcase(".".join(names[:depth]), module) for depth in range(1, len(names) + 1))
        and any(fnmatchcase(name, op or "*") for name in (key.op, key.op.removeprefix("aten::")))
        and fnmatchcase(str(key.output), output or "*")
        and fnmatchcase(f"{key.call}.{key.nth}", calls or "*")
    )


@given(st.lists(PATTERNS, max_size=8), st.lists(KEYS, min_size=1, max_size=8))
def test_the_last_match_is_what_trying_all_finds(patterns, keys):
    found = LastMatch(patterns)
    for key in keys:
        want = [position for position, pattern in enumerate(patterns) if matches(pattern, key)]
        assert found.at(key.module, key.op, key.output).last(f"{key.call}.{key.nth}") == (want[-1] if want else None)
        assert [Rule(pattern=pattern, action=Action.SWAP).matches(key) for pattern in patterns] == [matches(p, key) for p in patterns]


@pytest.mark.parametrize(("call", "action"), [(0, Action.SWAP), (7, Action.RECOMPUTE), (70, Action.SWAP)])
def test_a_rule_of_one_call_wins_over_an_earlier_one_of_its_place(call, action):
    plan = Plan(rules={"*": "keep", "a:relu#0@*.0": "swap", "a:relu#0@7.0": "recompute"})
    key = Key(module="a", op="aten::relu", output=0, call=call, nth=0)
    assert plan.action(key) is action
    assert plan.rule(key).action is action
    assert plan.rule(Key(module="c", op="d", output=0, call=0, nth=0)).pattern == "*"
