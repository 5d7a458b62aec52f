from dataclasses import replace

import pytest

from memviz.core.keys import Key
from memviz.core.machine import Machine
from memviz.core.plan import Action, Plan, Swap
from memviz.core.simulate import simulate
from memviz.core.strategies import plan
from memviz.core.trace import Category, Module, Save
from tests.core.chains import KIB, chain_trace

MACHINE = Machine(name="test", memory=20 * KIB, swap_out=4 * KIB, swap_in=2 * KIB, flops=1.0)


def kib(timeline):
    return [int(total) // KIB for total in timeline.total]


def test_keep():
    found = simulate(chain_trace())
    assert kib(found) == [7, 11, 19, 21, 14]
    assert found.peak == 21 * KIB
    assert found.activations == (4 + 4 + 8) * KIB
    assert list(found.seconds) == [1, 2, 3, 4, 5]
    assert found.holders[0].op == "aten::mm"
    assert found.holders[0].nbytes == 8 * KIB


def test_recompute_adds_a_row_before_its_first_use():
    found = simulate(chain_trace(), Plan(rules={"b": "recompute"}))
    # The relu's output is released at op 3, where it is needed again at once: dropped and made again before the op.
    assert found.recomputed == (3,)
    assert kib(found) == [7, 11, 19, 19, 21, 14]
    assert list(found.seconds) == [1, 2, 3, 4, 5, 6]


def test_recompute_of_a_chain_counts_its_transients():
    trace = chain_trace()
    values = list(trace.values)
    values[3] = replace(values[3], released=2)
    trace = replace(trace, values=tuple(values), saves=trace.saves[1:])
    trace = replace(trace, values=(*values[:2], replace(values[2], freed=2), *values[3:]))
    # Kept: x 1, w 2. End of forward: + c 8. mm again: + 4. relu again: + 4. Then the transient 4 goes and the gradient 2 comes.
    found = simulate(trace, Plan(rules={"b": "recompute"}))
    assert kib(found) == [7, 11, 11, 15, 19, 17, 10]
    assert found.recomputed == (3, 4)


def test_swap_at_once_and_stall():
    found = simulate(chain_trace(), Plan(rules={"a": "swap"}), MACHINE)
    # mm's output (4) leaves at op 2, where it is released, and is back for op 4, which waits 2 s for it.
    assert kib(found) == [7, 11, 15, 17, 14]
    assert list(found.seconds) == [1, 2, 3, 4, 7]
    assert [transfer.out for transfer in found.transfers] == [True, False]


def test_swap_only_above_occupancy():
    assert simulate(chain_trace(), Plan(swap=Swap(occupancy=1.0, limit="1 MiB")), MACHINE).transfers == ()
    found = simulate(chain_trace(), Plan(swap=Swap(occupancy=0.5, min_bytes=0)), MACHINE, limit=20 * KIB)
    assert [transfer.key for transfer in found.transfers if transfer.out] == ["a:aten::mm#0@0.0", "b:aten::relu#0@0.0"]


def test_values_leave_after_the_op_that_filled_the_device():
    found = simulate(chain_trace(), Plan(swap=Swap(occupancy=0.6, min_bytes=0)), MACHINE, limit=20 * KIB)
    # 12 may be held. After op 2, at 19, a's 4 and b's 4 leave; b's are back for op 3, and both are there for op 4.
    assert kib(found) == [7, 11, 19, 17, 14]


def test_what_came_back_goes_after_its_last_use():
    trace = chain_trace()
    trace = replace(trace, saves=(replace(trace.saves[0], unpacked=(3,)), trace.saves[1]))
    assert kib(simulate(trace, Plan(rules={"a": "swap"}), MACHINE)) == [7, 11, 15, 21, 10]


def test_small_values_stay_whatever_a_rule_says():
    assert simulate(chain_trace(), Plan(rules={"a": "swap"}, swap=Swap(min_bytes="8 KiB")), MACHINE).transfers == ()


def test_versions_of_a_storage_count_once():
    trace = chain_trace()
    values = list(trace.values)
    values[3] = replace(values[3], storage=2)
    assert kib(simulate(replace(trace, values=tuple(values)))) == [7, 7, 15, 17, 10]


def test_heuristics_drops_what_a_cheap_op_makes_from_kept_values():
    chosen = plan(chain_trace())
    assert [rule.pattern for rule in chosen.rules] == ["b:aten::relu#0@*.0"]
    assert plan(chain_trace(), recompute="none").rules == ()
    assert simulate(chain_trace(), chosen).activations <= simulate(chain_trace()).activations


@pytest.mark.parametrize(
    ("kept", "rules"),
    [
        ((), {"b:aten::relu#0@*.0": "recompute"}),
        ((0,), {"b:aten::relu#0@*.0": "recompute", "b:aten::relu#0@0.0": "keep"}),
        ((0, 1, 3), {"b:aten::relu#0@2.0": "recompute"}),
    ],
)
def test_a_site_has_one_rule_and_exceptions_only_where_that_is_shorter(kept, rules):
    trace = chain_trace()
    turns = tuple(
        replace(trace.values[3], id=7 + turn, storage=7 + turn, key=f"b:aten::relu#0@{turn}.0", nbytes=64 if turn in kept else 4 * KIB)
        for turn in range(4)
    )
    saves = tuple(Save(value=turn.id, packed=2, unpacked=(3,)) for turn in turns)
    found = plan(replace(trace, values=(*trace.values, *turns), saves=(trace.saves[0], *saves)))
    assert {rule.pattern: rule.action.value for rule in found.rules} == rules


def test_tiny_values_and_masks_stay():
    trace = chain_trace()
    small = tuple(replace(value, nbytes=100) for value in trace.values)
    assert plan(replace(trace, values=small)).rules == ()
    masks = tuple(replace(value, dtype="bool") if value.category is Category.ACTIVATION else value for value in trace.values)
    assert plan(replace(trace, values=masks)).rules == ()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"recompute": "heuristic"}, "did you mean 'heuristics'"),
        ({"rules": {"bb:relu": "recompute"}}, "'bb:relu' matches nothing.*'b:relu'"),
        ({"budget": "6 GiB"}, "budget='6 GiB'"),
    ],
)
def test_errors_name_what_was_passed(arguments, words):
    with pytest.raises(ValueError, match=words):
        plan(chain_trace(), **arguments)


def test_reversed_values_come_back_when_their_part_of_the_block_starts_backward():
    trace = chain_trace()
    modules = (Module(path="", kind="Net"), Module(path="r", kind="ReversibleBlock", reversible=True))
    values = list(trace.values)
    values[2] = replace(values[2], key="r.f:aten::mm#0@0.0")
    ops = (*trace.ops[:3], replace(trace.ops[3], module="r.f"), trace.ops[4])
    found = simulate(replace(trace, modules=modules, values=tuple(values), ops=ops), Plan(rules={"r": "reverse"}))
    # mm's 4 KiB are gone from op 2, where it is released, until op 3, where r.f starts backward.
    assert kib(found) == [7, 11, 15, 19, 21, 14]
    assert found.recomputed == (3,)
    assert kib(simulate(chain_trace(), Plan(rules={"*": "reverse"}))) == kib(simulate(chain_trace()))


def test_a_rule_of_a_module_does_not_drop_what_is_kept_inside_it():
    trace = chain_trace()
    values = list(trace.values)
    values[2] = replace(values[2], key="b.c:aten::relu#0@0.0")
    chosen = plan(replace(trace, values=tuple(values)))
    assert chosen.action(Key.parse("b:aten::relu#0@0.0")) is Action.RECOMPUTE
    assert chosen.action(Key.parse("b.c:aten::relu#0@0.0")) is Action.KEEP
